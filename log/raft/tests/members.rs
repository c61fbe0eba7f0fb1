//! Founding, adding, removing, handing over: while batches are being committed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::cluster::{Cluster, member, takes, until};
use crate::support::*;
use base::{Index, Term};
use journal::{Journal, ProposeError};
use raft::{Member, MemberError, RaftJournal};
use tokio::task::JoinHandle;

const ALL: [u64; 3] = [1, 2, 3];

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_founded_once() {
    let mut cluster = Cluster::founded(3).await;
    let (leader, term) = cluster.leader(&ALL).await;
    cluster.commit(leader, term, 1..=3).await;
    let other = Member { address: "elsewhere:1".into(), ..member(9) };
    for node in ALL {
        cluster.servers[&node].journal.bootstrap(&[member(node), other.clone()]).await.unwrap();
        assert_eq!(cluster.status(node).members.len(), 3);
    }
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_a_cluster_is_not_founded() {
    let mut cluster = Cluster::empty();
    cluster.start(1).await;
    let journal = cluster.servers[&1].journal.clone();
    let same_address = Member { address: member(1).address, ..member(2) };
    let mute = Member { voter: false, ..member(2) };
    for wrong in [vec![], vec![member(2)], vec![member(1), same_address], vec![member(1), mute]] {
        let refused = journal.bootstrap(&wrong).await;
        assert!(matches!(refused, Err(MemberError::Invalid(_))), "{refused:?}");
        assert!(!journal.status().has_log);
    }
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn members_come_and_go_under_load() {
    let mut cluster = Cluster::founded(1).await;
    let (leader, _) = cluster.leader(&[1]).await;
    let load = Load::start(&cluster, leader);
    for node in [2, 3, 4] {
        cluster.start(node).await;
        cluster.servers[&leader].journal.add(member(node), PATIENCE).await.unwrap();
        assert!(cluster.status(leader).members.contains(&member(node)));
    }
    // Asked again, it is so already.
    cluster.servers[&leader].journal.add(member(4), PATIENCE).await.unwrap();
    cluster.servers[&leader].journal.remove(3).await.unwrap();
    assert_eq!(cluster.status(leader).members, [1, 2, 4].map(member));
    let again = cluster.servers[&leader].journal.remove(3).await;
    assert_eq!(again, Err(MemberError::Unknown(3)));
    let last = load.stop().await;
    cluster.stop(3).await;
    cluster.agree(last).await;
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_without_a_vote_gets_the_log_and_can_be_given_one() {
    let mut cluster = Cluster::founded(1).await;
    let (leader, term) = cluster.leader(&[1]).await;
    cluster.commit(leader, term, 1..=5).await;
    cluster.start(2).await;
    let learner = Member { voter: false, ..member(2) };
    let journal = cluster.servers[&leader].journal.clone();
    journal.add(learner.clone(), PATIENCE).await.unwrap();
    cluster.committed(2, 5).await;
    assert_eq!(cluster.status(2).members, [member(1), learner]);
    assert_eq!(journal.transfer(Some(2)).await, Err(MemberError::NoVote(2)));
    journal.add(member(2), PATIENCE).await.unwrap();
    journal.remove(2).await.unwrap();
    assert_eq!(cluster.status(leader).members, [member(1)]);
    assert_eq!(journal.remove(1).await, Err(MemberError::LastVoter(1)));
    assert_eq!(journal.transfer(None).await, Err(MemberError::NoSuccessor));
    cluster.commit(leader, term, 6..=6).await;
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_cannot_be_reached_stays_without_a_vote() {
    let mut cluster = Cluster::founded(1).await;
    let (leader, term) = cluster.leader(&[1]).await;
    cluster.commit(leader, term, 1..=5).await;
    let journal = cluster.servers[&leader].journal.clone();
    let behind = journal.add(member(2), Duration::from_millis(300)).await;
    assert!(matches!(behind, Err(MemberError::Behind { node: 2, lag: 1.. })), "{behind:?}");
    assert_eq!(cluster.status(leader).members[1], Member { voter: false, ..member(2) });
    cluster.start(2).await;
    journal.add(member(2), PATIENCE).await.unwrap();
    assert_eq!(cluster.status(leader).members, [1, 2].map(member));
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_moves_to_another_address() {
    let mut cluster = Cluster::founded(3).await;
    let (leader, term) = cluster.leader(&ALL).await;
    let moved = ALL.into_iter().find(|node| *node != leader).unwrap();
    let there = Member { address: "new:4647".into(), ..member(moved) };
    cluster.servers[&leader].journal.add(there.clone(), PATIENCE).await.unwrap();
    assert!(cluster.status(leader).members.contains(&there));
    cluster.commit(leader, term, 1..=3).await;
    cluster.agree(3).await;
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_follows_changes_nothing() {
    let cluster = Cluster::founded(3).await;
    let (leader, _) = cluster.leader(&ALL).await;
    let follower = ALL.into_iter().find(|node| *node != leader).unwrap();
    let journal = cluster.servers[&follower].journal.clone();
    until(|| (journal.status().leader == Some(leader)).then_some(())).await;
    let refused = MemberError::NotLeading { leader: Some(leader) };
    assert_eq!(journal.add(member(9), PATIENCE).await, Err(refused.clone()));
    assert_eq!(journal.remove(leader).await, Err(refused.clone()));
    assert_eq!(journal.remove(follower).await, Err(refused.clone()));
    assert_eq!(journal.transfer(None).await, Err(refused));
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leadership_is_handed_over_with_nothing_in_doubt() {
    let mut cluster = Cluster::founded(3).await;
    let (mut leader, _) = cluster.leader(&ALL).await;
    for round in 0..4 {
        let load = Load::start(&cluster, leader);
        cluster.committed(leader, cluster.servers[&leader].journal.committed().0 + 20).await;
        let mut heard = cluster.server(leader).heard_so_far();
        let to = ALL.into_iter().find(|node| *node != leader).filter(|_| round % 2 == 0);
        let journal = cluster.servers[&leader].journal.clone();
        let next = journal.transfer(to).await.unwrap();
        assert!(to.is_none_or(|to| to == next));
        assert_ne!(next, leader);
        let last = load.stop().await;
        // Everything that was accepted is committed before the end is reported.
        while !matches!(heard.last(), Some(Heard::Following(_))) {
            heard.push(cluster.server(leader).heard().await);
        }
        let committed = heard.iter().rev().find_map(|heard| match heard {
            Heard::Committed(batch) => Some(batch.index()),
            _ => None,
        });
        assert_eq!(committed, Some(Index(last)));
        assert_eq!(cluster.leader(&ALL).await.0, next);
        leader = next;
    }
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_successor_that_cannot_be_reached_leaves_the_leader_leading() {
    let mut cluster = Cluster::founded(3).await;
    let (leader, term) = cluster.leader(&ALL).await;
    cluster.commit(leader, term, 1..=3).await;
    let to = ALL.into_iter().find(|node| *node != leader).unwrap();
    cluster.network.part(&[to]);
    let journal = cluster.servers[&leader].journal.clone();
    // It has not received this one, so it cannot take over.
    cluster.commit(leader, term, 4..=4).await;
    cluster.server(leader).heard_so_far();
    let failed = journal.transfer(Some(to)).await;
    assert!(matches!(failed, Err(MemberError::TimedOut(_))), "{failed:?}");
    assert_eq!(cluster.server(leader).heard().await, Heard::Following(None));
    assert_eq!(cluster.server(leader).heard().await, Heard::Leading(term));
    cluster.commit(leader, term, 5..=6).await;
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_is_removed_hands_over_first() {
    let mut cluster = Cluster::founded(3).await;
    let (leader, term) = cluster.leader(&ALL).await;
    cluster.commit(leader, term, 1..=3).await;
    cluster.servers[&leader].journal.remove(leader).await.unwrap();
    cluster.stop(leader).await;
    let left: Vec<u64> = cluster.servers.keys().copied().collect();
    let (next, term) = cluster.leader(&left).await;
    assert_eq!(cluster.status(next).members, [member(left[0]), member(left[1])]);
    cluster.commit(next, term, 4..=6).await;
    cluster.agree(6).await;
    cluster.stop_all().await;
}

/// What asks the successor to remove it may come once more, when somebody has added it again.
#[tokio::test(flavor = "multi_thread")]
async fn messages_that_come_late_remove_nobody() {
    let mut cluster = Cluster::founded(3).await;
    let (leader, term) = cluster.leader(&ALL).await;
    cluster.commit(leader, term, 1..=3).await;
    cluster.network.copy();
    cluster.servers[&leader].journal.remove(leader).await.unwrap();
    let late = cluster.network.copies();
    let others: Vec<u64> = ALL.into_iter().filter(|node| *node != leader).collect();
    let (next, _) = cluster.leader(&others).await;
    cluster.servers[&next].journal.add(member(leader), PATIENCE).await.unwrap();
    assert!(late.iter().any(|(to, _)| *to == next));
    for (to, message) in late {
        // What is out of date is refused.
        cluster.servers[&to].journal.answer(message).await.ok();
    }
    let (now, _) = cluster.leader(&ALL).await;
    assert_eq!(cluster.status(now).members, ALL.map(member));
    cluster.stop_all().await;
}

/// Proposes one batch after the other on one server, as long as it leads.
struct Load {
    stop: Arc<AtomicBool>,
    task: JoinHandle<u64>,
}

impl Load {
    fn start(cluster: &Cluster, node: u64) -> Load {
        let stop = Arc::new(AtomicBool::new(false));
        let journal = cluster.servers[&node].journal.clone();
        let task = tokio::spawn(propose(journal, stop.clone()));
        Load { stop, task }
    }

    /// The last batch that was taken.
    async fn stop(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.task.await.unwrap()
    }
}

async fn propose(journal: Arc<RaftJournal>, stop: Arc<AtomicBool>) -> u64 {
    let term: Term = until(|| {
        let term = journal.status().term;
        takes(&journal, term).then_some(term)
    })
    .await;
    let mut taken = journal.committed().0;
    while !stop.load(Ordering::Relaxed) {
        match journal.propose(term, batch(taken + 1, 30)) {
            Ok(()) => taken += 1,
            // The server transfers leadership, or has transferred it.
            Err(ProposeError::Full) => tokio::task::yield_now().await,
            Err(_) => break,
        }
        if taken > journal.committed().0 + 8 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    taken
}
