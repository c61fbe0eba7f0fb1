use base::pages::PAGE_ROWS;
use base::{Index, Time, Uuid};
use model::Digest;

use super::{ImageError, Table, variables};
use crate::{State, TableIndexes};

const MAGIC: &[u8; 8] = b"SOJSTATE";

/// The layout of the chunks. It changes when any of them does: what a release does not know it refuses.
const FORMAT: u16 = 3;

/// The layout of a state without variables: an earlier release can read it too.
const WITHOUT_VARIABLES: u16 = 2;

const DIGEST: usize = 88;
const ROWS: usize = DIGEST + Digest::LEN;
const LEN: usize = ROWS + 4 * Table::ALL.len();

/// The first chunk: what the others are, and what belongs to no table.
pub(super) struct Contents {
    pub index: Index,
    pub time: Time,
    pub cluster: Uuid,
    pub tables: TableIndexes,
    pub digest: Digest,
    pub rows: [u32; Table::ALL.len()],
}

impl Contents {
    pub fn of(state: &State) -> Contents {
        let rows = |table: Table| match table {
            Table::Nodes => state.nodes.hot.len(),
            Table::Classes => state.nodes.classes.len(),
            Table::Jobs | Table::OldVersions => state.jobs.rows.len(),
            Table::Evals => state.evals.rows.len(),
            Table::Blocked => state.evals.blocked.len(),
            Table::Allocs => state.allocs.rows.len(),
            Table::Requests => state.requests.current.rows.len(),
            Table::OlderRequests => state.requests.previous.rows.len(),
            Table::Settings => 1,
            Table::Deployments => state.deployments.rows.len(),
            Table::Volumes => state.volumes.len(),
            Table::Variables => state.variables.len(),
        };
        Contents {
            index: state.index,
            time: state.time,
            cluster: state.cluster,
            tables: state.tables,
            digest: state.digest(),
            rows: Table::ALL.map(|table| rows(table) as u32),
        }
    }

    pub fn rows(&self, table: Table) -> usize {
        self.rows[table as usize] as usize
    }

    pub fn chunks(&self, table: Table) -> usize {
        match table {
            Table::Blocked | Table::Volumes => self.rows(table).min(1),
            Table::Variables if self.rows(table) == 0 => 0,
            Table::Variables => variables::CHUNKS,
            _ => self.rows(table).div_ceil(PAGE_ROWS),
        }
    }

    /// Rows in one chunk of a table.
    pub fn rows_in(&self, table: Table, chunk: usize) -> usize {
        match table {
            Table::Blocked | Table::Volumes | Table::Variables => self.rows(table),
            _ => PAGE_ROWS.min(self.rows(table) - chunk * PAGE_ROWS),
        }
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(LEN);
        bytes.extend_from_slice(MAGIC);
        let has_variables = self.rows(Table::Variables) > 0;
        let format = if has_variables { FORMAT } else { WITHOUT_VARIABLES };
        bytes.extend_from_slice(&format.to_le_bytes());
        bytes.extend_from_slice(&[0; 6]);
        bytes.extend_from_slice(&self.index.0.to_le_bytes());
        bytes.extend_from_slice(&self.time.0.to_le_bytes());
        bytes.extend_from_slice(&self.cluster.0);
        let TableIndexes { nodes, jobs, evals, allocs, deployments } = self.tables;
        for index in [nodes, jobs, evals, allocs, deployments] {
            bytes.extend_from_slice(&index.0.to_le_bytes());
        }
        bytes.extend_from_slice(&self.digest.to_bytes());
        let tables = if has_variables { self.rows.len() } else { Table::Variables as usize };
        self.rows[..tables].iter().for_each(|rows| bytes.extend_from_slice(&rows.to_le_bytes()));
        bytes
    }

    pub fn decode(bytes: &[u8]) -> Result<Contents, ImageError> {
        if bytes.get(..8) != Some(&MAGIC[..]) || bytes.len() < 10 {
            return Err(ImageError::NoImage);
        }
        let format = u16::from_le_bytes([bytes[8], bytes[9]]);
        let mut bytes = bytes.to_vec();
        match format {
            FORMAT => {}
            // One table less.
            WITHOUT_VARIABLES if bytes.len() == LEN - 4 => bytes.extend_from_slice(&[0; 4]),
            WITHOUT_VARIABLES => return Err(ImageError::NoImage),
            _ => return Err(ImageError::UnknownFormat(format)),
        }
        let bytes: &[u8; LEN] = bytes[..].try_into().map_err(|_| ImageError::NoImage)?;
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes were sliced"));
        let count =
            |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes were sliced"));
        Ok(Contents {
            index: Index(word(16)),
            time: Time(word(24) as i64),
            cluster: Uuid(bytes[32..48].try_into().expect("16 bytes were sliced")),
            tables: TableIndexes {
                nodes: Index(word(48)),
                jobs: Index(word(56)),
                evals: Index(word(64)),
                allocs: Index(word(72)),
                deployments: Index(word(80)),
            },
            digest: Digest::from_bytes(bytes[DIGEST..ROWS].try_into().expect("a digest's bytes were sliced")),
            rows: std::array::from_fn(|table| count(ROWS + 4 * table)),
        })
    }
}
