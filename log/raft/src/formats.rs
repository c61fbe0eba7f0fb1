//! What raft has to store, in formats of our own: the library's may change with every release.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use bytes::Bytes;
use journal::store;
use openraft::vote::leader_id_std::{CommittedLeaderId, LeaderId};
use openraft::{BasicNode, EntryPayload};
use serde::{Deserialize, Serialize};

use crate::config::{Data, Entry, LogId, Membership, StoredMembership, Vote};

/// Members as they stand in the log, as JSON.
#[derive(Serialize, Deserialize)]
struct StoredMembers {
    /// Voters; two sets while one replaces the other.
    configs: Vec<BTreeSet<u64>>,
    nodes: BTreeMap<u64, StoredNode>,
}

#[derive(Serialize, Deserialize)]
struct StoredNode {
    address: String,
}

/// Members and the entry that made them so: what goes with an image, as JSON.
#[derive(Serialize, Deserialize)]
struct ImageMembers {
    /// Raft index and term.
    since: Option<(u64, u64)>,
    members: StoredMembers,
}

/// Term (8 bytes), node (8), won or not (1).
const VOTE: usize = 17;

pub(crate) fn log_id(id: store::LogId) -> LogId {
    LogId::new(CommittedLeaderId::new(id.term), id.index)
}

pub(crate) fn stored_id(id: &LogId) -> store::LogId {
    store::LogId { index: id.index, term: id.committed_leader_id().term }
}

pub(crate) fn stored_entry(entry: Entry) -> store::Entry {
    let id = stored_id(&entry.log_id);
    let payload = match entry.payload {
        EntryPayload::Blank => store::Payload::Blank,
        EntryPayload::Normal(data) => store::Payload::Batch(data.batch),
        EntryPayload::Membership(members) => store::Payload::Membership(membership_bytes(&members)),
    };
    store::Entry { index: id.index, term: id.term, payload }
}

pub(crate) fn entry(stored: store::Entry) -> io::Result<Entry> {
    let payload = match stored.payload {
        store::Payload::Blank => EntryPayload::Blank,
        store::Payload::Batch(batch) => EntryPayload::Normal(Data::logged(batch)),
        store::Payload::Membership(bytes) => EntryPayload::Membership(membership(&bytes)?),
    };
    Ok(Entry { log_id: log_id(store::LogId { index: stored.index, term: stored.term }), payload })
}

pub(crate) fn vote_bytes(vote: &Vote) -> Bytes {
    let mut bytes = Vec::with_capacity(VOTE);
    bytes.extend_from_slice(&vote.leader_id.term.to_le_bytes());
    bytes.extend_from_slice(&vote.leader_id.voted_for.to_le_bytes());
    bytes.push(u8::from(vote.committed));
    bytes.into()
}

pub(crate) fn vote(bytes: &[u8]) -> io::Result<Vote> {
    let bytes: &[u8; VOTE] = bytes.try_into().map_err(|_| invalid("a vote has 17 bytes"))?;
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes were sliced"));
    let leader_id = LeaderId { term: number(0), voted_for: number(8) };
    Ok(Vote { leader_id, committed: bytes[16] != 0 })
}

pub(crate) fn membership_bytes(members: &Membership) -> Bytes {
    serde_json::to_vec(&stored_members(members)).expect("members hold only what JSON can write").into()
}

pub(crate) fn membership(bytes: &[u8]) -> io::Result<Membership> {
    members(serde_json::from_slice(bytes).map_err(invalid)?)
}

pub(crate) fn image_members_bytes(members: &StoredMembership) -> Bytes {
    let since = members.log_id().as_ref().map(stored_id).map(|id| (id.index, id.term));
    let stored = ImageMembers { since, members: stored_members(members.membership()) };
    serde_json::to_vec(&stored).expect("members hold only what JSON can write").into()
}

pub(crate) fn image_members(bytes: &[u8]) -> io::Result<StoredMembership> {
    let stored: ImageMembers = serde_json::from_slice(bytes).map_err(invalid)?;
    let since = stored.since.map(|(index, term)| log_id(store::LogId { index, term }));
    Ok(StoredMembership::new(since, members(stored.members)?))
}

fn stored_members(members: &Membership) -> StoredMembers {
    let node = |(id, node): (&u64, &BasicNode)| (*id, StoredNode { address: node.addr.clone() });
    StoredMembers { configs: members.get_joint_config().clone(), nodes: members.nodes().map(node).collect() }
}

fn members(stored: StoredMembers) -> io::Result<Membership> {
    let nodes = stored.nodes.into_iter().map(|(id, node)| (id, BasicNode { addr: node.address }));
    Membership::new(stored.configs, nodes.collect::<BTreeMap<_, _>>()).map_err(invalid)
}

fn invalid(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn votes_and_members_are_stored_in_these_bytes() {
        let given = Vote { leader_id: LeaderId { term: 3, voted_for: 258 }, committed: true };
        let bytes = vote_bytes(&given);
        assert_eq!(bytes[..], [3, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(vote(&bytes).unwrap(), given);

        let nodes = BTreeMap::from([
            (1, BasicNode { addr: "a:4647".into() }),
            (2, BasicNode { addr: "b:4647".into() }),
        ]);
        let members = Membership::new(vec![BTreeSet::from([1])], nodes).unwrap();
        let bytes = membership_bytes(&members);
        let json = r#"{"configs":[[1]],"nodes":{"1":{"address":"a:4647"},"2":{"address":"b:4647"}}}"#;
        assert_eq!(bytes, json);
        assert_eq!(membership(&bytes).unwrap(), members);

        let since = log_id(store::LogId { index: 7, term: 3 });
        let stored = StoredMembership::new(Some(since), members);
        let bytes = image_members_bytes(&stored);
        assert_eq!(bytes, format!(r#"{{"since":[7,3],"members":{json}}}"#));
        assert_eq!(image_members(&bytes).unwrap(), stored);
    }
}
