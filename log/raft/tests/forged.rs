//! Messages that no server of the cluster can have sent, in the bytes that `message` describes. They change nothing.

use std::collections::BTreeMap;

use crate::support::cluster::{Cluster, until};
use base::Term;
use bytes::Bytes;
use raft::{PeerError, Status};

const ALL: [u64; 3] = [1, 2, 3];
const STRANGER: u64 = 9;
/// What elections cannot lead to so soon.
const FAR: u64 = 2_000_000;

const APPEND: u8 = 1;
const VOTE: u8 = 2;
const PRE_VOTE: u8 = 3;
const TRANSFER: u8 = 4;
const REMOVE: u8 = 5;
const OFFER: u8 = 6;
const WHICH_IMAGE: u8 = 7;
const WANTED: u8 = 8;

/// The fields of a message.
#[derive(Clone, Default)]
struct Fields(Vec<u8>);

impl Fields {
    fn u8(mut self, value: u8) -> Fields {
        self.0.push(value);
        self
    }

    fn u32(mut self, value: u32) -> Fields {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn u64(mut self, value: u64) -> Fields {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn bytes(mut self, bytes: &[u8]) -> Fields {
        self = self.u32(bytes.len() as u32);
        self.0.extend(bytes);
        self
    }

    fn vote(self, term: u64, node: u64, won: bool) -> Fields {
        self.u64(term).u64(node).u8(u8::from(won))
    }

    fn id(self, id: Option<(u64, u64)>) -> Fields {
        match id {
            None => self.u8(0),
            Some((index, term)) => self.u8(1).u64(index).u64(term),
        }
    }

    fn message(self, kind: u8, from: u64, to: u64) -> Bytes {
        let mut bytes = vec![1, kind, 0, 0, 0, 0, 0, 0];
        bytes.extend(from.to_le_bytes());
        bytes.extend(to.to_le_bytes());
        bytes.extend(self.0);
        let sum = crc32c::crc32c(&bytes[8..]);
        bytes[4..8].copy_from_slice(&sum.to_le_bytes());
        bytes.into()
    }
}

/// An append of blank entries with these terms, as `leader` in `term` would send it.
fn append(
    (term, leader): (u64, u64),
    previous: Option<(u64, u64)>,
    committed: Option<(u64, u64)>,
    blanks: &[u64],
) -> Fields {
    let fields = Fields::default().vote(term, leader, true).id(previous).id(committed);
    let fields = fields.u32(blanks.len() as u32);
    blanks.iter().fold(fields, |fields, term| fields.u8(0).u64(*term).bytes(&[]))
}

fn vote(term: u64, node: u64, last: Option<(u64, u64)>) -> Fields {
    Fields::default().vote(term, node, false).id(last).u8(1)
}

/// The offer of an image without chunks.
fn offer(term: u64, leader: u64, last: (u64, u64)) -> Fields {
    let members = br#"{"since":null,"members":{"configs":[[1]],"nodes":{"1":{"address":"here:4647"}}}}"#;
    let fields = Fields::default().vote(term, leader, true).bytes(b"here:4647");
    fields.u64(last.0).u64(last.1).u64(1).u8(0).bytes(members).u32(0)
}

/// What must be as it was.
fn core(status: Status) -> (Term, Option<u64>, Option<u64>, u64) {
    (status.term, status.leader, status.last_entry, status.committed.0)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_can_have_sent_changes_nothing() {
    let mut cluster = Cluster::founded(3).await;
    let (leader, term) = cluster.leader(&ALL).await;
    cluster.commit(leader, term, 1..=20).await;
    let follower = ALL.into_iter().find(|node| *node != leader).unwrap();
    for node in ALL {
        cluster.committed(node, 20).await;
        until(|| (cluster.status(node).leader == Some(leader)).then_some(())).await;
    }
    // Blank entries and members count too.
    let last = cluster.status(leader).last_entry.unwrap();
    let (now, far) = (term.0, u64::MAX);
    let forged: Vec<(&str, u8, u64, Fields)> = vec![
        ("term", APPEND, leader, append((far, leader), None, None, &[])),
        ("term", APPEND, leader, append((now + FAR, leader), None, None, &[])),
        ("term", VOTE, leader, vote(far, leader, Some((last + 9, now)))),
        ("term", PRE_VOTE, leader, vote(far, leader, Some((last + 9, now)))),
        ("term", TRANSFER, leader, Fields::default().vote(far, leader, true).u64(1).id(Some((last, now)))),
        ("term", OFFER, leader, offer(far, leader, (last + 9, now))),
        ("later than the vote's", APPEND, leader, append((now, leader), Some((last, far)), None, &[])),
        ("later than the vote's", APPEND, leader, append((now, leader), None, Some((last, far)), &[])),
        ("later than the vote's", VOTE, leader, vote(now + 1, leader, Some((last, far)))),
        ("later term", OFFER, leader, offer(now, leader, (last + 9, far))),
        ("out of order", APPEND, leader, append((now, leader), None, None, &[far])),
        ("out of reach", APPEND, leader, append((now, leader), Some((far, now)), None, &[])),
        ("out of reach", APPEND, leader, append((now, leader), None, Some((far, now)), &[])),
        ("out of reach", OFFER, leader, offer(now, leader, (far, now))),
        ("in the name of", APPEND, STRANGER, append((now + 1, leader), None, None, &[])),
        ("in the name of", VOTE, leader, vote(now + 1, STRANGER, Some((last + 9, now)))),
        ("contradicts", APPEND, leader, append((now + 1, leader), None, None, &[0, 0, 0])),
        ("contradicts", APPEND, leader, append((now + 1, leader), Some((last, 0)), None, &[])),
        ("contradicts", APPEND, leader, append((now + 1, leader), Some((last + 1, 0)), None, &[])),
        ("contradicts", OFFER, leader, offer(now + 1, leader, (2, now + 1))),
        ("not a member", REMOVE, STRANGER, Fields::default().u64(leader).id(None)),
        ("not a member", WHICH_IMAGE, STRANGER, Fields::default()),
        ("not a member", WANTED, STRANGER, Fields::default().u32(0).u64(0)),
    ];
    let before: BTreeMap<u64, _> = ALL.into_iter().map(|node| (node, core(cluster.status(node)))).collect();
    for (nth, (why, kind, from, fields)) in (1..).zip(&forged) {
        let message = fields.clone().message(*kind, *from, follower);
        match cluster.servers[&follower].journal.answer(message).await {
            Err(PeerError::Refused(said)) => assert!(said.contains(why), "{nth}: {said}"),
            other => panic!("{nth} {why}: {other:?}"),
        }
        assert_eq!(cluster.status(follower).dropped, nth, "{why}");
    }
    for node in ALL {
        assert_eq!(core(cluster.status(node)), before[&node]);
    }
    cluster.commit(leader, term, 21..=30).await;
    // What is stored is what it was, too.
    cluster.committed(follower, 30).await;
    cluster.stop(follower).await;
    cluster.start(follower).await;
    until(|| (cluster.status(follower).leader == Some(leader)).then_some(())).await;
    assert_eq!(cluster.status(follower).term, term);
    cluster.commit(leader, term, 31..=40).await;
    cluster.same_logs(40).await;
    cluster.stop_all().await;
}

/// As high as elections can lead, it is believed: the others follow.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_follows_a_server_whose_term_leapt() {
    let mut cluster = Cluster::founded(3).await;
    let (leader, term) = cluster.leader(&ALL).await;
    cluster.commit(leader, term, 1..=5).await;
    let others: Vec<u64> = ALL.into_iter().filter(|node| *node != leader).collect();
    let last = cluster.status(leader).last_entry.unwrap();
    let leap = vote(term.0 + 900_000, others[1], Some((last + 9, term.0)));
    let leap = leap.message(VOTE, others[1], others[0]);
    cluster.servers[&others[0]].journal.answer(leap).await.unwrap();
    until(|| cluster.servers.keys().all(|node| cluster.status(*node).term.0 >= 900_000).then_some(())).await;
    let (leader, term) = cluster.leader(&ALL).await;
    cluster.commit(leader, term, 6..=10).await;
    cluster.same_logs(10).await;
    cluster.stop_all().await;
}
