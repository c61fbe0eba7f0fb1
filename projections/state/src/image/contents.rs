use base::pages::PAGE_ROWS;
use base::{Index, Time, Uuid};
use model::{Autopilot, Digest};

use super::{ImageError, Table};
use crate::operator::{Configured, Operator};
use crate::{State, TableIndexes};

const MAGIC: &[u8; 8] = b"SOJSTATE";

/// The layout of the chunks. It changes when any of them does: what a release does not know it refuses.
const FORMAT: u16 = 1;

const AUTOPILOT: usize = 128 + 4 * Table::ALL.len();
const LEN: usize = AUTOPILOT + 48;

/// The first chunk: what the others are, and what belongs to no table.
pub(super) struct Contents {
    pub index: Index,
    pub time: Time,
    pub cluster: Uuid,
    pub tables: TableIndexes,
    pub digest: Digest,
    pub rows: [u32; Table::ALL.len()],
    pub operator: Operator,
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
            Table::Volumes => state.volumes.len(),
        };
        Contents {
            index: state.index,
            time: state.time,
            cluster: state.cluster,
            tables: state.tables,
            digest: state.digest(),
            rows: Table::ALL.map(|table| rows(table) as u32),
            operator: state.operator.clone(),
        }
    }

    pub fn rows(&self, table: Table) -> usize {
        self.rows[table as usize] as usize
    }

    pub fn chunks(&self, table: Table) -> usize {
        match table {
            Table::Blocked | Table::Volumes => self.rows(table).min(1),
            _ => self.rows(table).div_ceil(PAGE_ROWS),
        }
    }

    /// Rows in one chunk of a table.
    pub fn rows_in(&self, table: Table, chunk: usize) -> usize {
        match table {
            Table::Blocked | Table::Volumes => self.rows(table),
            _ => PAGE_ROWS.min(self.rows(table) - chunk * PAGE_ROWS),
        }
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(LEN);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&FORMAT.to_le_bytes());
        bytes.extend_from_slice(&[0; 6]);
        bytes.extend_from_slice(&self.index.0.to_le_bytes());
        bytes.extend_from_slice(&self.time.0.to_le_bytes());
        bytes.extend_from_slice(&self.cluster.0);
        let TableIndexes { nodes, jobs, evals, allocs } = self.tables;
        [nodes, jobs, evals, allocs].iter().for_each(|index| bytes.extend_from_slice(&index.0.to_le_bytes()));
        bytes.extend_from_slice(&self.digest.to_bytes());
        self.rows.iter().for_each(|rows| bytes.extend_from_slice(&rows.to_le_bytes()));
        bytes.extend_from_slice(&self.autopilot());
        bytes
    }

    pub fn decode(bytes: &[u8]) -> Result<Contents, ImageError> {
        if bytes.get(..8) != Some(&MAGIC[..]) || bytes.len() < 10 {
            return Err(ImageError::NoImage);
        }
        let format = u16::from_le_bytes([bytes[8], bytes[9]]);
        if format != FORMAT {
            return Err(ImageError::UnknownFormat(format));
        }
        let bytes: &[u8; LEN] = bytes.try_into().map_err(|_| ImageError::NoImage)?;
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
            },
            digest: Digest::from_bytes(bytes[80..128].try_into().expect("a digest's bytes were sliced")),
            rows: std::array::from_fn(|table| count(128 + 4 * table)),
            operator: Operator { autopilot: (bytes[AUTOPILOT] != 0).then(|| configured(bytes)) },
        })
    }

    fn autopilot(&self) -> [u8; LEN - AUTOPILOT] {
        let mut bytes = [0; LEN - AUTOPILOT];
        let Some(Configured { rules, created, modified }) = &self.operator.autopilot else { return bytes };
        (bytes[0], bytes[1]) = (1, u8::from(rules.cleanup_dead_servers));
        bytes[4..8].copy_from_slice(&rules.min_quorum.to_le_bytes());
        let words = [
            created.0,
            modified.0,
            rules.last_contact_threshold_ns as u64,
            rules.max_trailing_logs,
            rules.server_stabilization_ns as u64,
        ];
        for (to, word) in bytes[8..].chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}

fn configured(bytes: &[u8; LEN]) -> Configured {
    let word = |nth: usize| {
        let at = AUTOPILOT + 8 + 8 * nth;
        u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes were sliced"))
    };
    let quorum = bytes[AUTOPILOT + 4..AUTOPILOT + 8].try_into().expect("4 bytes were sliced");
    Configured {
        created: Index(word(0)),
        modified: Index(word(1)),
        rules: Autopilot {
            cleanup_dead_servers: bytes[AUTOPILOT + 1] != 0,
            last_contact_threshold_ns: word(2) as i64,
            max_trailing_logs: word(3),
            min_quorum: u32::from_le_bytes(quorum),
            server_stabilization_ns: word(4) as i64,
        },
    }
}
