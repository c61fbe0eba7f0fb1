//! Several servers: elections, replication, partitions.

use std::time::Duration;

use crate::support::cluster::{Cluster, member, takes, until};
use crate::support::*;
use base::Index;
use fake_network::Conditions;
use journal::{Journal, ProposeError};

const ALL: [u64; 3] = [1, 2, 3];

#[tokio::test(flavor = "multi_thread")]
async fn three_servers_elect_one_and_have_the_same_log() {
    let mut cluster = Cluster::founded(3).await;
    let (leader, term) = cluster.leader(&ALL).await;
    cluster.commit(leader, term, 1..=50).await;
    cluster.agree(50).await;
    let status = cluster.status(leader);
    assert_eq!(status.members, ALL.map(member));
    assert!(status.has_log);
    assert_eq!(status.progress.len(), 2);
    until(|| cluster.status(leader).progress.values().all(|other| other.lag == 0).then_some(())).await;
    for node in ALL.into_iter().filter(|node| *node != leader) {
        assert!(cluster.status(leader).progress[&node].last_contact.unwrap() < Duration::from_secs(5));
        assert_eq!(cluster.status(node).leader, Some(leader));
        assert!(cluster.status(node).last_contact.is_some());
        assert!(cluster.status(node).progress.is_empty());
    }
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn five_servers_go_on_without_two() {
    let mut cluster = Cluster::founded(5).await;
    let (first, term) = cluster.leader(&[1, 2, 3, 4, 5]).await;
    cluster.commit(first, term, 1..=10).await;
    cluster.stop(first).await;
    let left: Vec<u64> = cluster.servers.keys().copied().collect();
    let (second, term) = cluster.leader(&left).await;
    cluster.commit(second, term, 11..=20).await;
    cluster.stop(second).await;
    let left: Vec<u64> = cluster.servers.keys().copied().collect();
    let (third, term) = cluster.leader(&left).await;
    cluster.commit(third, term, 21..=30).await;
    cluster.agree(30).await;
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_was_gone_comes_back_and_catches_up() {
    let mut cluster = Cluster::founded(3).await;
    let (first, term) = cluster.leader(&ALL).await;
    cluster.commit(first, term, 1..=20).await;
    cluster.stop(first).await;
    let left: Vec<u64> = cluster.servers.keys().copied().collect();
    let (second, later) = cluster.leader(&left).await;
    assert!(later > term);
    cluster.commit(second, later, 21..=200).await;
    cluster.start(first).await;
    cluster.agree(200).await;
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_servers_restart_with_what_they_acknowledged() {
    let mut cluster = Cluster::founded(3).await;
    let (leader, term) = cluster.leader(&ALL).await;
    cluster.commit(leader, term, 1..=20).await;
    for node in ALL {
        cluster.stop(node).await;
    }
    for node in ALL {
        cluster.start(node).await;
    }
    let (leader, later) = cluster.leader(&ALL).await;
    assert!(later > term);
    cluster.commit(leader, later, 21..=30).await;
    cluster.agree(30).await;
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_minority_commits_nothing_and_what_it_proposed_is_replaced() {
    let mut cluster = Cluster::founded(3).await;
    let (old, term) = cluster.leader(&ALL).await;
    cluster.commit(old, term, 1..=10).await;
    cluster.network.part(&[old]);
    // In the queue before anybody knows of the partition: its fate is open.
    cluster.servers[&old].journal.propose(term, batch_by(7, 11, 30)).unwrap();
    let others: Vec<u64> = ALL.into_iter().filter(|node| *node != old).collect();
    let (new, later) = cluster.leader(&others).await;
    assert!(later > term);
    cluster.commit(new, later, 11..=20).await;
    // The deposed leader steps down without a message from the others, and takes nothing more.
    until(|| cluster.status(old).leader.is_none().then_some(())).await;
    let refused = cluster.servers[&old].journal.propose(term, batch(12, 30));
    assert_eq!(refused, Err(ProposeError::NotLeading { term }));
    assert_eq!(cluster.servers[&old].journal.committed(), Index(10));
    cluster.network.heal();
    cluster.committed(old, 20).await;
    let heard = cluster.server(old).heard_so_far();
    let followed = heard.iter().position(|heard| matches!(heard, Heard::Following(None))).unwrap();
    let eleventh = heard.iter().position(|heard| *heard == Heard::Committed(batch(11, 30))).unwrap();
    assert!(followed < eleventh);
    assert!(!heard.contains(&Heard::Committed(batch_by(7, 11, 30))));
    cluster.stop_all().await;
}

/// No answer reaches the leader, but its followers hear it and elect nobody else.
#[tokio::test(flavor = "multi_thread")]
async fn a_term_that_lapsed_begins_again_when_nothing_of_it_is_in_flight() {
    let mut cluster = Cluster::founded(3).await;
    let (leader, term) = cluster.leader(&ALL).await;
    cluster.commit(leader, term, 1..=5).await;
    cluster.server(leader).heard_so_far();
    let journal = cluster.servers[&leader].journal.clone();
    ALL.into_iter().filter(|node| *node != leader).for_each(|node| cluster.network.cut(node, leader));
    (6..=8).for_each(|index| journal.propose(term, batch(index, 30)).unwrap());
    until(|| (!takes(&journal, term)).then_some(())).await;
    assert_eq!(cluster.server(leader).heard().await, Heard::Following(None));
    assert_eq!(cluster.status(leader).leader, None);
    cluster.network.heal();
    for index in 6..=8 {
        assert_eq!(cluster.server(leader).heard().await, Heard::Committed(batch(index, 30)));
    }
    assert_eq!(cluster.server(leader).heard().await, Heard::Leading(term));
    cluster.commit(leader, term, 9..=10).await;
    cluster.same_logs(10).await;
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_are_late_or_lost_cost_time_only() {
    let mut cluster = Cluster::founded(3).await;
    cluster.network.set_conditions(Conditions::lossy(Duration::from_millis(4), 50));
    let mut last = 0;
    while last < 100 {
        let (leader, term) = cluster.leader(&ALL).await;
        let journal = cluster.servers[&leader].journal.clone();
        last = journal.committed().0;
        if journal.propose(term, batch(last + 1, 30)).is_ok() {
            until(|| (journal.committed().0 > last || !takes(&journal, term)).then_some(())).await;
        }
    }
    cluster.network.set_conditions(Conditions::default());
    cluster.agree(100).await;
    cluster.stop_all().await;
}
