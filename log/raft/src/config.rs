//! The types openraft is used with, and its timings.

use std::fmt;

use journal::EncodedBatch;
use openraft::vote::leader_id_std;
use openraft::{Config, SnapshotPolicy};

use crate::gate::Ticket;

/// How often a leader lets its followers hear from it.
const HEARTBEAT_MS: u64 = 150;
/// How long a follower waits for its leader before it asks to be one: six lost heartbeats, spread over as much
/// again so that two servers rarely ask at once.
const ELECTION_MS: std::ops::Range<u64> = 900..1800;

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
    type AsyncRuntime = openraft::impls::TokioRuntime;
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
pub(crate) type StoredMembership = openraft::alias::StoredMembershipOf<Types>;

/// What raft carries: bytes it does not look into.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Data(pub EncodedBatch);

impl fmt::Display for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "batch {}", self.0.index())
    }
}

pub(crate) fn timings() -> Config {
    Config {
        cluster_name: "sojourn".into(),
        heartbeat_interval: HEARTBEAT_MS,
        election_timeout_min: ELECTION_MS.start,
        election_timeout_max: ELECTION_MS.end,
        snapshot_policy: SnapshotPolicy::Never,
        enable_pre_vote: Some(true),
        // A leader that restarts asks for votes like anybody else: its followers may have gone on without it.
        enable_leader_restore: Some(false),
        ..Config::default()
    }
}
