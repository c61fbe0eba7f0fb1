//! The types openraft is used with, and its timings.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use journal::EncodedBatch;
use openraft::vote::leader_id_std;
use openraft::{Config, SnapshotPolicy};

use crate::message::ENTRIES_MAX;
use crate::proposals::Ticket;
use crate::runtime::Runtime;

/// How servers find out that a leader is gone. The same on all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timings {
    /// How often a leader sends heartbeats to its followers.
    pub heartbeat: Duration,
    /// How long a follower waits for its leader before it starts an election, drawn anew each time. Nobody helps to
    /// elect another for as long as the longest after its last contact to the leader.
    pub election: Range<Duration>,
}

impl Default for Timings {
    /// For servers in one place. A follower asks for votes when the leader's lease, the longest of these, is over and
    /// then one of these has passed: from 1.5 to 2 seconds after the last contact. When two ask at once and
    /// neither wins, the next round is over within 3 seconds.
    fn default() -> Timings {
        Timings {
            heartbeat: Duration::from_millis(100),
            election: Duration::from_millis(500)..Duration::from_millis(1_000),
        }
    }
}

impl Timings {
    /// All of them `factor` times as long: for servers far from each other, or on slow disks.
    pub fn times(&self, factor: u32) -> Timings {
        Timings {
            heartbeat: self.heartbeat * factor,
            election: self.election.start * factor..self.election.end * factor,
        }
    }

    /// How long one message and its answer may take: by then a follower would ask for votes.
    pub(crate) fn patience(&self) -> Duration {
        self.election.start
    }

    /// How long after its last contact to a majority a leader reads without asking. Its followers elect nobody else for as
    /// long as `election.end` by their own clocks: theirs may be a tenth too fast, and its own a tenth too slow.
    pub(crate) fn lease(&self) -> Duration {
        self.election.end * 4 / 5
    }

    pub(crate) fn config(&self) -> Result<Config, openraft::ConfigError> {
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let config = Config {
            cluster_name: "sojourn".into(),
            heartbeat_interval: millis(self.heartbeat),
            election_timeout_min: millis(self.election.start),
            election_timeout_max: millis(self.election.end),
            max_payload_entries: ENTRIES_MAX as u64,
            snapshot_policy: SnapshotPolicy::Never,
            // The log is purged when an image is kept, and not by a rule of the library.
            max_in_snapshot_log_to_keep: u64::MAX,
            enable_pre_vote: Some(true),
            // A leader that restarts asks for votes like any server: its followers may have gone on without it.
            enable_leader_restore: Some(false),
            ..Config::default()
        };
        config.validate()
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Types;

/// One leader a term, as in the paper: the term alone fences.
impl openraft::RaftTypeConfig for Types {
    type D = Data;
    type R = ();
    type NodeId = u64;
    type Node = openraft::BasicNode;
    type Term = u64;
    type LeaderId = leader_id_std::LeaderId<u64, u64>;
    type Vote = openraft::impls::Vote<Self::LeaderId>;
    type Payload = openraft::EntryPayload<Data, u64, Self::Node>;
    type Entry = openraft::impls::Entry<leader_id_std::CommittedLeaderId<u64>, Self::Payload>;
    type AsyncRuntime = Runtime;
    type Responder<T>
        = Ticket
    where
        T: openraft::OptionalSend + 'static;
    type Batch<T>
        = openraft::impls::InlineBatch<T>
    where
        T: openraft::OptionalSend + 'static;
    type ErrorSource = openraft::impls::BoxedErrorSource;
}

pub(crate) type LogId = openraft::alias::LogIdOf<Types>;
pub(crate) type Vote = openraft::alias::VoteOf<Types>;
pub(crate) type Entry = openraft::alias::EntryOf<Types>;
pub(crate) type Membership = openraft::Membership<u64, openraft::BasicNode>;
pub(crate) type SnapshotMeta = openraft::alias::SnapshotMetaOf<Types>;
pub(crate) type StoredMembership = openraft::alias::StoredMembershipOf<Types>;

/// What raft carries: bytes it does not look into.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Data {
    pub batch: EncodedBatch,
    /// It comes from this server's proposer and has no place in a log yet. The library may have refused the
    /// proposal before it and take this one: then it must not become an entry.
    pub proposed: bool,
}

impl Data {
    pub fn proposed(batch: EncodedBatch) -> Data {
        Data { batch, proposed: true }
    }

    /// It is in a log, here or elsewhere.
    pub fn logged(batch: EncodedBatch) -> Data {
        Data { batch, proposed: false }
    }
}

impl fmt::Display for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "batch {}", self.batch.index())
    }
}
