//! A cluster that lost most of its servers for good goes on from the log of one that is left.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;

use base::Index;
use journal::store::{self, Directory, Done, Driving, Entry, Payload, RETENTION, Reader, Store, StoreError};
use openraft::BasicNode;
use openraft::vote::leader_id_std::LeaderId;

use crate::config::{Membership, Vote};
use crate::formats;
use crate::journal::OpenError;
use crate::status::Member;

/// A spare segment is made when a log is opened, and the next server to open it takes what it finds.
const SEGMENT_BYTES: u64 = 1 << 20;

/// Where a log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEnd {
    pub term: u64,
    /// The number of the last entry.
    pub entry: u64,
    /// The index of the last batch.
    pub index: Index,
    /// The oldest batch that can be read.
    pub oldest: Index,
}

/// Where the log in that directory ends; `None` if nothing was ever written. Nothing is changed.
///
/// # Errors
/// The log is damaged, in use, or not there.
pub fn log_end(dir: &Path) -> Result<Option<LogEnd>, OpenError> {
    is_there(dir)?;
    let log = Reader::open(dir)?;
    Ok(log.last().map(|last| LogEnd {
        term: last.term,
        entry: last.index,
        index: log.batch_at(last.index),
        oldest: log.horizon(),
    }))
}

/// The members of the cluster from an entry of the log on.
///
/// # Errors
/// The entry's payload is none of members.
pub fn logged_members(payload: &[u8]) -> io::Result<Vec<Member>> {
    let members = formats::membership(payload)?;
    let voters: BTreeSet<u64> = members.voter_ids().collect();
    let member = |(node, at): (&u64, &BasicNode)| Member {
        node: *node,
        address: at.addr.clone(),
        voter: voters.contains(node),
    };
    Ok(members.nodes().map(member).collect())
}

/// Makes a server the only one of its cluster: the last entry of its log says so. Everything in the log counts from now on,
/// also what was not known to be committed. Servers that are not started again lose their votes; those that are join it.
///
/// The entry is of a term of its own, so no other log has an entry that could be taken for it: that is why there can be
/// only one server to go on from.
///
/// # Errors
/// The log is damaged, in use, or empty.
pub fn go_on_alone(dir: &Path, node: u64, address: &str) -> Result<LogEnd, OpenError> {
    let store = open(dir)?;
    let done = append_alone(&store, node, address);
    store.close();
    done
}

fn append_alone(store: &Store, node: u64, address: &str) -> Result<LogEnd, OpenError> {
    let wrong = |why: &dyn std::fmt::Display| OpenError::Consensus(why.to_string());
    let end = end_of(store).ok_or_else(|| wrong(&"the log is empty: there is nothing to go on from"))?;
    let voted = store.vote().map(|vote| formats::vote(&vote)).transpose().map_err(|why| wrong(&why))?;
    let term = voted.map_or(0, |vote| vote.leader_id.term).max(end.term) + 1;
    let vote = Vote { leader_id: LeaderId { term, voted_for: node }, committed: false };
    synced(|done| store.save_vote(formats::vote_bytes(&vote), done))?;
    let nodes = BTreeMap::from([(node, BasicNode { addr: address.to_string() })]);
    let alone = Membership::new(vec![BTreeSet::from([node])], nodes).map_err(|why| wrong(&why))?;
    let payload = Payload::Membership(formats::membership_bytes(&alone));
    let entry = Entry { index: end.entry + 1, term, payload };
    synced(|done| store.append(vec![entry], done))?;
    Ok(end)
}

fn end_of(store: &Store) -> Option<LogEnd> {
    let last = store.last()?;
    Some(LogEnd {
        term: last.term,
        entry: last.index,
        index: store.batch_at(last.index),
        oldest: store.horizon(),
    })
}

fn is_there(dir: &Path) -> Result<(), OpenError> {
    match dir.is_dir() {
        true => Ok(()),
        false => Err(OpenError::Consensus(format!("there is no directory {}", dir.display()))),
    }
}

fn open(dir: &Path) -> Result<Store, OpenError> {
    is_there(dir)?;
    let settings = store::Settings {
        segment_bytes: SEGMENT_BYTES,
        retention: RETENTION,
        archive: None,
        keep: None,
        driving: Driving::Threads,
    };
    Ok(Store::open(Arc::new(Directory::open(dir)?), settings, Arc::new(store::abort))?)
}

/// Waits until what is asked for is on the disk.
fn synced(ask: impl FnOnce(Done) -> Result<(), StoreError>) -> Result<(), StoreError> {
    let (done, synced) = mpsc::channel();
    // Who waits is there until it is called.
    ask(Box::new(move || done.send(()).unwrap_or(())))?;
    synced.recv().map_err(|_| StoreError::Stopped)
}
