//! From where on each server has history, as the servers said when they dropped what was before.

use std::collections::BTreeMap;

use base::{Index, StableHash, Time};
use model::event::HistoryDropped;
use serde::{Deserialize, Serialize};

use crate::State;
use crate::domain::Domain;
use crate::moment::Moment;

/// Servers that are remembered. When there are more, the one goes that dropped nothing for longest: servers come and go.
const SERVERS_MAX: usize = 128;

/// What a server said last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DroppedHistory {
    /// The oldest batch that it can read, and when that was decided.
    pub oldest: Index,
    pub time: Time,
    /// The batch in which it said so.
    pub noted: Index,
}

impl State {
    pub(crate) fn history_dropped(&mut self, at: Moment, event: &HistoryDropped) {
        let said = DroppedHistory { oldest: event.oldest, time: event.time, noted: at.index };
        self.dropped_history.insert(event.server.clone(), said);
        if self.dropped_history.len() > SERVERS_MAX {
            let longest_ago = self.dropped_history.iter().min_by_key(|(name, said)| (said.noted, *name));
            let name = longest_ago.map(|(name, _)| name.clone()).expect("there are some");
            self.dropped_history.remove(&name);
        }
    }

    /// Zero where nothing was dropped: such a log's digests stay what they were.
    pub(crate) fn dropped_history_hash(&self) -> u64 {
        hash(&self.dropped_history)
    }
}

fn hash(dropped: &BTreeMap<String, DroppedHistory>) -> u64 {
    if dropped.is_empty() {
        return 0;
    }
    let mut hash = StableHash::new(Domain::DroppedHistory as u64);
    for (server, DroppedHistory { oldest, time, noted }) in dropped {
        hash.text(server);
        hash.pair(oldest.0, time.0 as u64);
        hash.word(noted.0);
    }
    hash.finish()
}
