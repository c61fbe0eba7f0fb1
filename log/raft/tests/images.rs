//! Images: kept, started from, sent to servers that are too far behind.

use std::collections::BTreeMap;

use crate::support::cluster::{Cluster, member, until};
use crate::support::*;
use base::Index;
use bytes::Bytes;
use fake_network::Conditions;
use journal::{Journal, KeepError, ReadError};
use model::{Chunk, Image};
use raft::{MemberError, Tail};

/// A state that is the bytes of all its batches, ten to a chunk.
#[derive(Clone, Debug, Default, PartialEq)]
struct State {
    index: u64,
    chunks: Vec<Vec<u8>>,
}

impl State {
    /// What the sink makes of what it is notified of.
    fn hear(&mut self, heard: &Heard) {
        match heard {
            Heard::Committed(batch) => {
                assert_eq!(batch.index().0, self.index + 1);
                if self.index.is_multiple_of(10) {
                    self.chunks.push(Vec::new());
                }
                self.index += 1;
                self.chunks.last_mut().unwrap().extend_from_slice(batch.bytes());
            }
            Heard::Restored(image) => {
                let bytes = |chunk: &Chunk| chunk.bytes.as_ref().expect("each has its bytes").to_vec();
                *self = State { index: image.index.0, chunks: image.chunks.iter().map(bytes).collect() };
            }
            _ => {}
        }
    }

    fn at(index: u64) -> State {
        let mut state = State::default();
        (1..=index).for_each(|index| state.hear(&Heard::Committed(batch(index, 30))));
        state
    }

    /// Without the bytes of what `before` has.
    fn image(&self, before: &State) -> Image {
        let chunk = |chunk: &Vec<u8>| {
            let full = Chunk::new(Bytes::from(chunk.clone()));
            match before.chunks.contains(chunk) {
                true => Chunk { bytes: None, ..full },
                false => full,
            }
        };
        Image { index: Index(self.index), chunks: self.chunks.iter().map(chunk).collect() }
    }
}

/// What a sink has received adds up to the same as everything from the beginning.
async fn adds_up(server: &mut Server, last: u64) -> Vec<Heard> {
    let (mut state, mut all) = (State::default(), Vec::new());
    while state.index < last {
        let heard = server.heard().await;
        state.hear(&heard);
        all.push(heard);
    }
    assert_eq!(state, State::at(last));
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_from_an_image_and_the_rest_is_the_same_as_from_everything() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::open(dir.path()).await;
    let term = server.leading().await;
    server.commit(term, 1..=45).await;
    server.journal.keep(State::at(25).image(&State::default())).unwrap();
    server.journal.keep(State::at(33).image(&State::at(25))).unwrap();
    let bytes = |first: u64, last: u64| -> u64 {
        (first..=last).map(|index| batch(index, 30).bytes().len() as u64).sum()
    };
    assert_eq!(server.journal.unkept_bytes(), bytes(34, 45));
    server.journal.shutdown().await;
    let mut again = Server::open(dir.path()).await;
    let heard = adds_up(&mut again, 45).await;
    assert!(matches!(&heard[0], Heard::Restored(image) if image.index == Index(33)));
    assert_eq!(heard.len(), 1 + 12);
    let term = again.leading().await;
    assert_eq!(again.journal.unkept_bytes(), bytes(34, 45));
    assert_eq!(again.journal.horizon(), Index(1));
    assert_eq!(again.journal.read(Index(0), usize::MAX).unwrap().len(), 45);
    again.commit(term, 46..=50).await;
    again.journal.keep(State::at(50).image(&State::at(33))).unwrap();
    assert_eq!(again.journal.unkept_bytes(), 0);
    again.journal.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_kept_is_refused_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::open(dir.path()).await;
    let term = server.leading().await;
    server.commit(term, 1..=20).await;
    let keep = |index, before| server.journal.keep(State::at(index).image(&State::at(before)));
    keep(10, 0).unwrap();
    assert_eq!(keep(21, 10), Err(KeepError::NotCommitted(Index(21))));
    for index in [0, 5, 10] {
        assert_eq!(keep(index, 0), Err(KeepError::NotNewer { index: Index(index), kept: Index(10) }));
    }
    assert!(matches!(keep(20, 20), Err(KeepError::UnknownChunk(_))));
    keep(20, 10).unwrap();
    server.journal.shutdown().await;
}

/// A cluster of one that keeps nearly no log before its image.
async fn short(last: u64, kept: u64) -> Cluster {
    let mut cluster = Cluster::empty();
    cluster.tail = Tail { entries: 5, bytes: 1 << 30 };
    cluster.start(1).await;
    cluster.servers[&1].journal.bootstrap(&[member(1)]).await.unwrap();
    let (_, term) = cluster.leader(&[1]).await;
    cluster.commit(1, term, 1..=last).await;
    cluster.servers[&1].journal.keep(State::at(kept).image(&State::default())).unwrap();
    until(|| (cluster.status(1).first_entry > 0).then_some(())).await;
    cluster
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_server_is_sent_the_image_and_goes_on_from_it() {
    let mut cluster = short(60, 42).await;
    cluster.start(2).await;
    cluster.servers[&1].journal.add(member(2), PATIENCE).await.unwrap();
    let heard = adds_up(cluster.server(2), 60).await;
    assert!(heard.iter().any(|heard| matches!(heard, Heard::Restored(image) if image.index == Index(42))));
    let journal = cluster.servers[&2].journal.clone();
    assert_eq!(journal.horizon(), Index(43));
    let compacted = ReadError::Compacted { from: Index(42), oldest: Index(43) };
    assert_eq!(journal.read(Index(42), 1000), Err(compacted));
    assert_eq!(journal.read(Index(0), usize::MAX).unwrap().len(), 18);
    // It can lead, keep an image of its own, and be started anew.
    journal.keep(State::at(55).image(&State::at(42))).unwrap();
    assert_eq!(cluster.servers[&1].journal.transfer(Some(2)).await.unwrap(), 2);
    let (_, term) = cluster.leader(&[2]).await;
    cluster.commit(2, term, 61..=70).await;
    cluster.stop(2).await;
    cluster.start(2).await;
    let heard = adds_up(cluster.server(2), 70).await;
    assert!(matches!(&heard[0], Heard::Restored(image) if image.index == Index(55)));
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_away_too_long_is_sent_the_image_over_bad_links() {
    let mut cluster = short(30, 20).await;
    for node in [2, 3] {
        cluster.start(node).await;
        cluster.servers[&1].journal.add(member(node), PATIENCE).await.unwrap();
    }
    cluster.committed(3, 30).await;
    cluster.stop(3).await;
    let (leader, term) = cluster.leader(&[1, 2]).await;
    cluster.commit(leader, term, 31..=120).await;
    cluster.servers[&leader].journal.keep(State::at(110).image(&State::default())).unwrap();
    until(|| (cluster.status(leader).first_entry > 100).then_some(())).await;
    cluster.network.set_conditions(Conditions::lossy(std::time::Duration::from_millis(3), 100));
    cluster.start(3).await;
    let heard = adds_up(cluster.server(3), 120).await;
    assert!(heard.iter().any(|heard| matches!(heard, Heard::Restored(image) if image.index == Index(110))));
    cluster.network.set_conditions(Conditions::default());
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn large_chunks_go_in_pieces_and_small_ones_together() {
    let mut cluster = Cluster::empty();
    cluster.tail = Tail { entries: 0, bytes: 0 };
    cluster.start(1).await;
    cluster.servers[&1].journal.bootstrap(&[member(1)]).await.unwrap();
    let (_, term) = cluster.leader(&[1]).await;
    cluster.commit(1, term, 1..=5).await;
    let chunk = |nth: usize, len: usize| Chunk::new(Bytes::from(vec![nth as u8; len]));
    let mut chunks: Vec<Chunk> = (0..40).map(|nth| chunk(nth, 100_000)).collect();
    chunks.insert(7, chunk(77, 3_500_000));
    chunks.push(chunk(3, 100_000));
    chunks.push(chunk(0, 0));
    let image = Image { index: Index(5), chunks };
    cluster.servers[&1].journal.keep(image.clone()).unwrap();
    until(|| (cluster.status(1).first_entry > 0).then_some(())).await;
    cluster.start(2).await;
    cluster.servers[&1].journal.add(member(2), PATIENCE).await.unwrap();
    loop {
        if let Heard::Restored(heard) = cluster.server(2).heard().await {
            assert_eq!(heard, image);
            break;
        }
    }
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_gets_its_state_from_the_leader_anew() {
    let mut cluster = Cluster::founded(3).await;
    let (leader, term) = cluster.leader(&[1, 2, 3]).await;
    cluster.commit(leader, term, 1..=30).await;
    let follower = if leader == 1 { 2 } else { 1 };
    let journal = cluster.servers[&follower].journal.clone();
    cluster.committed(follower, 30).await;
    assert!(matches!(journal.refetch().await, Err(MemberError::Invalid(_))));
    cluster.servers[&leader].journal.keep(State::at(20).image(&State::default())).unwrap();
    assert!(matches!(cluster.servers[&leader].journal.refetch().await, Err(MemberError::Invalid(_))));
    // What it has itself is older, and wrong.
    let mut wrong = State::at(10);
    wrong.chunks[0][0] ^= 1;
    journal.keep(wrong.image(&State::default())).unwrap();
    adds_up(cluster.server(follower), 30).await;
    journal.refetch().await.unwrap();
    let heard = adds_up(cluster.server(follower), 30).await;
    let told: BTreeMap<bool, usize> = heard.iter().fold(BTreeMap::new(), |mut counts, heard| {
        *counts.entry(matches!(heard, Heard::Restored(_))).or_default() += 1;
        counts
    });
    assert_eq!(told, BTreeMap::from([(true, 1), (false, 10)]));
    cluster.commit(leader, term, 31..=35).await;
    cluster.committed(follower, 35).await;
    // The right image took the place of the wrong one.
    cluster.stop(follower).await;
    cluster.start(follower).await;
    let heard = adds_up(cluster.server(follower), 35).await;
    assert!(matches!(&heard[0], Heard::Restored(image) if image.index == Index(20)));
    until(|| cluster.status(follower).leader.map(drop)).await;
    cluster.stop_all().await;
}
