//! The state at one index as chunks of bytes: what a restart begins from, and what a server that is far behind is
//! sent.
//!
//! Little-endian. The first chunk is the contents:
//!
//! | at | size | field |
//! |---|---|---|
//! | 0 | 8 | `SOJSTATE` |
//! | 8 | 2 | format |
//! | 10 | 6 | zero |
//! | 16 | 8 | index |
//! | 24 | 8 | time, nanoseconds since the Unix epoch |
//! | 32 | 16 | cluster |
//! | 48 | 40 | the batches that last changed nodes, jobs, evaluations, allocations and deployments |
//! | 88 | 56 | digest; see [`model::Digest`] |
//! | 144 | 4 each | rows of each [`Table`] in its order; in format 3 without services, in format 2 without variables too |
//! | 200 (196 in format 3) | | for jobs, evaluations, allocations and deployments the pages of which every row was released: how many runs of them, where each begins (4 each) and ends (4 each), and the sum of the hashes of their rows (8); not in format 2 |
//!
//! The chunks of each table follow in the same order. A chunk holds the rows of one copy-on-write page, column by
//! column (see `columns.rs` and the module of each table), and nothing that depends on another page: what rows share
//! stands once in each chunk that needs it and is shared again when it is read. So a chunk changes only when a row
//! of its page does, and equal pages give equal chunks on every server.
//!
//! Not stored is what follows from rows: maps from names to rows, and lists that repeat what their members say. See
//! `relations.rs`.

mod allocs;
mod chunks;
mod columns;
mod contents;
mod deployments;
mod evals;
mod imager;
mod jobs;
mod nodes;
mod pool;
mod relations;
mod released;
mod requests;
mod restore;
mod services;
mod settings;
mod sparse;
mod variables;
mod versions;
mod volumes;

use base::Index;

pub use imager::Imager;
pub use restore::restore;

/// Parts of the state in the order of their chunks. Numbers on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    Nodes = 0,
    Classes = 1,
    Jobs = 2,
    Evals = 3,
    /// Blocked evaluations by job: all in one chunk, none where there are none.
    Blocked = 4,
    Allocs = 5,
    /// For each page of jobs the versions that they dropped and allocations still run.
    OldVersions = 6,
    Requests = 7,
    OlderRequests = 8,
    /// What operators set, and node pools: one chunk, one document.
    Settings = 9,
    Deployments = 10,
    /// All in one chunk, none where there are none.
    Volumes = 11,
    /// Spread over as many chunks as there are, none where there are none. Since format 3.
    Variables = 12,
    /// The same. Since format 4.
    Services = 13,
}

impl Table {
    const ALL: [Table; 14] = [
        Table::Nodes,
        Table::Classes,
        Table::Jobs,
        Table::Evals,
        Table::Blocked,
        Table::Allocs,
        Table::OldVersions,
        Table::Requests,
        Table::OlderRequests,
        Table::Settings,
        Table::Deployments,
        Table::Volumes,
        Table::Variables,
        Table::Services,
    ];

    const fn name(self) -> &'static str {
        match self {
            Table::Nodes => "nodes",
            Table::Classes => "node classes",
            Table::Jobs => "jobs",
            Table::Evals => "evals",
            Table::Blocked => "blocked evals",
            Table::Allocs => "allocs",
            Table::OldVersions => "old versions of jobs",
            Table::Requests => "requests",
            Table::OlderRequests => "older requests",
            Table::Settings => "settings",
            Table::Deployments => "deployments",
            Table::Volumes => "volumes",
            Table::Variables => "variables",
            Table::Services => "services",
        }
    }

    const fn damaged(self, chunk: usize, why: &'static str) -> ImageError {
        ImageError::Damaged { table: self.name(), chunk, why }
    }

    const fn two_rows(self) -> ImageError {
        ImageError::Names { table: self.name() }
    }
}

/// Why there is no state in an image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// The first chunk is not that of an image.
    #[error("the image of the state has no table of contents")]
    NoImage,
    #[error("format {0} of the state's image is not known to this server: it was written by a newer release")]
    UnknownFormat(u16),
    #[error("epoch {0} of the state's image is not known to this server: it was written by a newer release")]
    UnknownEpoch(u16),
    /// It is of another index than the caller says.
    #[error("the image of the state is of index {found}, where that of {expected} was expected")]
    Index { expected: Index, found: Index },
    /// There are more chunks than the contents list, or fewer.
    #[error("the image of the state has {found} chunks, but its contents list {expected}")]
    Chunks { expected: usize, found: usize },
    /// `chunk` counts within the table, from 0.
    #[error("the image of the state is damaged in table {table}, chunk {chunk}: {why}")]
    Damaged { table: &'static str, chunk: usize, why: &'static str },
    /// One name stands for two rows.
    #[error("the image of the state is damaged in table {table}: one name stands for two rows")]
    Names { table: &'static str },
    /// All that was stored reads well, and is not what was imaged.
    #[error("the image of the state is damaged in table {table}: its digest is another")]
    Digest { table: &'static str },
}
