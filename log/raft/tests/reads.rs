//! What a reader must have seen.

use crate::support::cluster::{Cluster, until};
use crate::support::*;
use base::Index;
use journal::{Freshness, Journal, NotLeading};
use raft::RaftJournal;
use tokio::sync::oneshot;

const ALL: [u64; 3] = [1, 2, 3];

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_tells_what_was_acknowledged() {
    let mut cluster = Cluster::founded(3).await;
    let (leader, term) = cluster.leader(&ALL).await;
    for index in 1..=5 {
        cluster.commit(leader, term, index..=index).await;
        for freshness in [Freshness::Lease, Freshness::Confirmed] {
            assert_eq!(ask(&cluster.servers[&leader].journal, freshness).await, Ok(Index(index)));
        }
    }
    for follower in ALL.into_iter().filter(|node| *node != leader) {
        for freshness in [Freshness::Lease, Freshness::Confirmed] {
            assert_eq!(ask(&cluster.servers[&follower].journal, freshness).await, Err(NotLeading));
        }
    }
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_single_server_is_always_sure() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::open(dir.path()).await;
    let term = server.leading().await;
    server.commit(term, 1..=3).await;
    for freshness in [Freshness::Lease, Freshness::Confirmed] {
        assert_eq!(ask(&server.journal, freshness).await, Ok(Index(3)));
    }
    server.journal.shutdown().await;
    assert_eq!(ask(&server.journal, Freshness::Lease).await, Err(NotLeading));
}

/// Once another may lead, the one that was cut off is never sure again, although it does not know of the other.
#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_was_cut_off_tells_nothing() {
    let mut cluster = Cluster::founded(3).await;
    let (old, term) = cluster.leader(&ALL).await;
    cluster.commit(old, term, 1..=3).await;
    cluster.network.part(&[old]);
    // No majority can confirm it from now on.
    assert_eq!(ask(&cluster.servers[&old].journal, Freshness::Confirmed).await, Err(NotLeading));
    let others: Vec<u64> = ALL.into_iter().filter(|node| *node != old).collect();
    let (new, later) = cluster.leader(&others).await;
    for freshness in [Freshness::Lease, Freshness::Confirmed] {
        assert_eq!(ask(&cluster.servers[&old].journal, freshness).await, Err(NotLeading));
    }
    cluster.commit(new, later, 4..=4).await;
    cluster.network.heal();
    until(|| (cluster.status(old).leader == Some(new)).then_some(())).await;
    assert_eq!(ask(&cluster.servers[&old].journal, Freshness::Confirmed).await, Err(NotLeading));
    assert_eq!(ask(&cluster.servers[&new].journal, Freshness::Confirmed).await, Ok(Index(4)));
    cluster.stop_all().await;
}

/// A follower that had a message of the leader a moment ago and starts anew has forgotten it. It must not help to elect another
/// while the leader still counts on it.
#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_follower_does_not_betray_a_lease() {
    for _ in 0..3 {
        let mut cluster = Cluster::founded(3).await;
        let (old, term) = cluster.leader(&ALL).await;
        cluster.commit(old, term, 1..=3).await;
        let others: Vec<u64> = ALL.into_iter().filter(|node| *node != old).collect();
        let journal = cluster.servers[&old].journal.clone();
        cluster.network.part(&[old]);
        cluster.stop(others[0]).await;
        cluster.start(others[0]).await;
        let (new, later) = cluster.leader(&others).await;
        // Whoever reads by lease on the old one from now on would miss what the new one acknowledges.
        assert_eq!(ask(&journal, Freshness::Lease).await, Err(NotLeading));
        cluster.commit(new, later, 4..=4).await;
        cluster.stop_all().await;
    }
}

async fn ask(journal: &RaftJournal, freshness: Freshness) -> Result<Index, NotLeading> {
    let (tell, told) = oneshot::channel();
    journal.read_index(freshness, Box::new(move |answer| tell.send(answer).unwrap()));
    tokio::time::timeout(PATIENCE, told).await.expect("an answer in time").expect("an answer")
}
