use base::pages::PAGE_ROWS;
use base::{Index, Time, Uuid};
use model::Digest;

use super::columns::{Column, Fault, Reader, Writer};
use super::{ImageError, Table, services, variables};
use crate::rows::BlankPages;
use crate::{State, TableIndexes};

const MAGIC: &[u8; 8] = b"SOJSTATE";

/// The layout of the chunks. It changes when any of them does: what a release does not know it refuses.
const FORMAT: u16 = 4;

/// The format before: without services. Still written where there are none, so that a server of an older release reads it.
const FORMAT_WITHOUT_SERVICES: u16 = 3;

/// Tables in the contents of that.
const TABLES_WITHOUT_SERVICES: usize = Table::Services as usize;

/// The format before that: without variables too, and every row of every page is stored.
pub(super) const EARLIER_FORMAT: u16 = 2;

/// Tables in the contents of that.
const EARLIER_TABLES: usize = Table::Variables as usize;

const DIGEST: usize = 88;
const ROWS: usize = DIGEST + Digest::LEN;
/// The tables whose rows can be released, in the order of their blank pages.
const RELEASING: [Table; 4] = [Table::Jobs, Table::Evals, Table::Allocs, Table::Deployments];

/// The first chunk: what the others are, and what belongs to no table.
pub(super) struct Contents {
    pub format: u16,
    pub index: Index,
    pub time: Time,
    pub cluster: Uuid,
    pub tables: TableIndexes,
    pub digest: Digest,
    pub rows: [u32; Table::ALL.len()],
    blank: [BlankPages; RELEASING.len()],
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
            Table::Services => state.services.len(),
        };
        Contents {
            format: if state.services.is_empty() { FORMAT_WITHOUT_SERVICES } else { FORMAT },
            index: state.index,
            time: state.time,
            cluster: state.cluster,
            tables: state.tables,
            digest: state.digest(),
            rows: Table::ALL.map(|table| rows(table) as u32),
            blank: [
                state.jobs.rows.blank_pages(),
                state.evals.rows.blank_pages(),
                state.allocs.rows.blank_pages(),
                state.deployments.rows.blank_pages(),
            ],
        }
    }

    pub fn rows(&self, table: Table) -> usize {
        self.rows[table as usize] as usize
    }

    /// The pages of a table that have no chunk. Old versions of jobs stand by the pages of their jobs.
    pub fn blank(&self, table: Table) -> Option<&BlankPages> {
        let releasing = if table == Table::OldVersions { Table::Jobs } else { table };
        RELEASING.iter().position(|known| *known == releasing).map(|at| &self.blank[at])
    }

    /// All pages of a table, blank ones included.
    pub fn all_pages(&self, table: Table) -> usize {
        match table {
            Table::Blocked | Table::Volumes => self.rows(table).min(1),
            Table::Variables if self.rows(table) == 0 => 0,
            Table::Variables => variables::CHUNKS,
            Table::Services if self.rows(table) == 0 => 0,
            Table::Services => services::CHUNKS,
            _ => self.rows(table).div_ceil(PAGE_ROWS),
        }
    }

    /// The pages of a table that have a chunk, in the order of the chunks.
    pub fn pages(&self, table: Table) -> impl Iterator<Item = usize> {
        let is_blank = move |page| self.blank(table).is_some_and(|blank| blank.contains(page));
        (0..self.all_pages(table)).filter(move |page| !is_blank(*page))
    }

    pub fn chunks(&self, table: Table) -> usize {
        self.all_pages(table) - self.blank(table).map_or(0, BlankPages::len)
    }

    /// Rows in one page of a table.
    pub fn rows_in(&self, table: Table, page: usize) -> usize {
        match table {
            Table::Blocked | Table::Volumes | Table::Variables | Table::Services => self.rows(table),
            _ => PAGE_ROWS.min(self.rows(table) - page * PAGE_ROWS),
        }
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(ROWS + 4 * Table::ALL.len() + 64);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&self.format.to_le_bytes());
        bytes.extend_from_slice(&[0; 6]);
        bytes.extend_from_slice(&self.index.0.to_le_bytes());
        bytes.extend_from_slice(&self.time.0.to_le_bytes());
        bytes.extend_from_slice(&self.cluster.0);
        let TableIndexes { nodes, jobs, evals, allocs, deployments } = self.tables;
        for index in [nodes, jobs, evals, allocs, deployments] {
            bytes.extend_from_slice(&index.0.to_le_bytes());
        }
        bytes.extend_from_slice(&self.digest.to_bytes());
        let tables = tables_of(self.format).expect("contents are of a known format");
        self.rows[..tables].iter().for_each(|rows| bytes.extend_from_slice(&rows.to_le_bytes()));
        let mut to = Writer(bytes);
        for BlankPages { pages, sum } in &self.blank {
            to.counts(std::iter::once(pages.len()));
            to.u32s(pages.iter().map(|range| range.start));
            to.u32s(pages.iter().map(|range| range.end));
            to.u64s(std::iter::once(*sum));
        }
        to.0
    }

    pub fn decode(bytes: &[u8]) -> Result<Contents, ImageError> {
        if bytes.get(..8) != Some(&MAGIC[..]) || bytes.len() < 10 {
            return Err(ImageError::NoImage);
        }
        let format = u16::from_le_bytes([bytes[8], bytes[9]]);
        let tables = tables_of(format).ok_or(ImageError::UnknownFormat(format))?;
        let (bytes, rest) = bytes.split_at_checked(ROWS + 4 * tables).ok_or(ImageError::NoImage)?;
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes were sliced"));
        let count =
            |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes were sliced"));
        let rows = std::array::from_fn(|table| if table < tables { count(ROWS + 4 * table) } else { 0 });
        let blank = match format {
            EARLIER_FORMAT if rest.is_empty() => Default::default(),
            EARLIER_FORMAT => return Err(ImageError::NoImage),
            _ => decode_blank(rest, &rows).map_err(|_| ImageError::NoImage)?,
        };
        Ok(Contents {
            format,
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
            rows,
            blank,
        })
    }
}

/// How many tables the contents of a format list; `None` for one that is not known.
const fn tables_of(format: u16) -> Option<usize> {
    match format {
        FORMAT => Some(Table::ALL.len()),
        FORMAT_WITHOUT_SERVICES => Some(TABLES_WITHOUT_SERVICES),
        EARLIER_FORMAT => Some(EARLIER_TABLES),
        _ => None,
    }
}

fn decode_blank(
    bytes: &[u8],
    rows: &[u32; Table::ALL.len()],
) -> Result<[BlankPages; RELEASING.len()], Fault> {
    let mut from = Reader(bytes);
    let mut all: [BlankPages; RELEASING.len()] = Default::default();
    for (blank, table) in all.iter_mut().zip(RELEASING) {
        let len = from.count()?;
        let (starts, ends): (Column<'_, 4>, Column<'_, 4>) = (from.column(len)?, from.column(len)?);
        blank.pages = (0..len).map(|at| starts.u32(at)..ends.u32(at)).collect();
        blank.sum = from.column::<8>(1)?.u64(0);
        let is_ordered = blank.pages.is_sorted_by(|a, b| a.end < b.start);
        let full = rows[table as usize] / PAGE_ROWS as u32;
        let is_within = blank.pages.iter().all(|range| range.start < range.end && range.end <= full);
        if !is_ordered || !is_within {
            return Err("what was released are no pages of the table");
        }
    }
    from.end()?;
    Ok(all)
}
