//! What a server knows about the cluster.

use std::collections::BTreeMap;
use std::time::Duration;

use base::{Index, Term};
use openraft::BasicNode;
use openraft::async_runtime::WatchReceiver;

use crate::journal::RaftJournal;
use crate::members::{contact, lag};

/// Who leads and who takes part, as this server sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub node: u64,
    pub term: Term,
    /// Also `None` on a leader that cannot be sure any more that it is one.
    pub leader: Option<u64>,
    pub members: Vec<Member>,
    /// How far each member has come, by number; only the leader knows.
    pub progress: BTreeMap<u64, Progress>,
    /// How long ago the leader contacted this server; nothing on the leader itself, and before the first time.
    pub last_contact: Option<Duration>,
    /// The last batch that is committed here.
    pub committed: Index,
    /// Raft's own number of the last entry, committed or not.
    pub last_entry: Option<u64>,
    /// The oldest entry that can be sent to a follower: who lacks an older one is sent an image.
    pub first_entry: u64,
    /// Messages of other servers that were dropped since the start: malformed, or saying what cannot be.
    pub dropped: u64,
    /// A cluster was founded, and this server knows of it.
    pub has_log: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub node: u64,
    pub address: String,
    pub voter: bool,
}

/// A member as its leader sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// How long ago the newest message that it answered was sent.
    pub last_contact: Option<Duration>,
    /// Raft's number of the last entry that it is known to share with the leader.
    pub matched: Option<u64>,
    /// How many entries it lacks.
    pub lag: u64,
}

impl RaftJournal {
    pub fn status(&self) -> Status {
        let metrics = self.raft.metrics().borrow_watched().clone();
        let members = metrics.membership_config.membership();
        let voters: Vec<u64> = members.voter_ids().collect();
        let member = |(node, at): (&u64, &BasicNode)| Member {
            node: *node,
            address: at.addr.clone(),
            voter: voters.contains(node),
        };
        let others = metrics.replication.iter().flatten().filter(|(node, _)| **node != metrics.id);
        let progress = others.map(|(node, matched)| {
            let (last_contact, lag) = (contact(&metrics, *node), lag(&metrics, *node).unwrap_or(0));
            (*node, Progress { last_contact, matched: matched.map(|matched| matched.index), lag })
        });
        let leads = metrics.current_leader == Some(metrics.id);
        let term = Term(metrics.current_term);
        let unsure = leads && self.proposals.breaks().borrow_watched().term == Some(term);
        Status {
            node: metrics.id,
            term,
            leader: metrics.current_leader.filter(|_| !unsure),
            members: members.nodes().map(member).collect(),
            progress: progress.collect(),
            last_contact: self.last_contact.lock().filter(|_| !leads).map(|at| at.elapsed()),
            committed: self.proposals.committed(),
            last_entry: metrics.last_log_index,
            first_entry: metrics.purged.map_or(0, |purged| purged.index + 1),
            dropped: self.network.bounds.dropped(),
            has_log: metrics.last_log_index.is_some(),
        }
    }
}
