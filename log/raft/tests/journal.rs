//! A server of its own: it founds, leads, commits, restarts and refuses.

use crate::support::*;
use base::{Index, Term};
use journal::{Journal, ProposeError};
use raft::{Member, OpenError};

#[tokio::test(flavor = "multi_thread")]
async fn a_founder_leads_and_commits_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::open(dir.path()).await;
    let term = server.leading().await;
    (1..=10).for_each(|index| server.journal.propose(term, batch(index, 30)).unwrap());
    for index in 1..=10 {
        assert_eq!(server.heard().await, Heard::Committed(batch(index, 30)));
    }
    assert_eq!((server.journal.committed(), server.journal.horizon()), (Index(10), Index(1)));
    let status = server.journal.status();
    assert_eq!((status.node, status.leader, status.term, status.committed), (1, Some(1), term, Index(10)));
    assert_eq!(status.members, [Member { node: 1, address: "here:4647".into(), voter: true }]);
    server.journal.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_hands_everything_over_and_then_leads_a_later_term() {
    let dir = tempfile::tempdir().unwrap();
    let mut first = Server::open(dir.path()).await;
    let before = first.leading().await;
    first.commit(before, 1..=50).await;
    first.journal.shutdown().await;
    let mut again = Server::open(dir.path()).await;
    for index in 1..=50 {
        assert_eq!(again.heard().await, Heard::Committed(batch(index, 30)));
    }
    let term = again.leading().await;
    assert!(term > before);
    again.commit(term, 51..=60).await;
    again.journal.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_has_lost_nothing_it_acknowledged() {
    let (dir, killed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut server = Server::open(dir.path()).await;
    let term = server.leading().await;
    server.commit(term, 1..=20).await;
    copy(dir.path(), killed.path());
    let mut again = Server::open(killed.path()).await;
    assert!(again.replayed().await >= 20);
    server.journal.shutdown().await;
    again.journal.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_torn_end_is_cut_and_the_rest_is_served() {
    let (dir, killed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut server = Server::open(dir.path()).await;
    let term = server.leading().await;
    server.commit(term, 1..=20).await;
    server.journal.shutdown().await;
    copy(dir.path(), killed.path());
    change_last_segment(killed.path(), |bytes| {
        let end = bytes[..bytes.len() - 64].iter().rposition(|byte| *byte != 0).unwrap() + 1;
        bytes[end.next_multiple_of(16)..][..300].fill(0xa5);
    });
    let mut again = Server::open(killed.path()).await;
    assert_eq!(again.replayed().await, 20);
    again.journal.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_log_is_refused_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::open(dir.path()).await;
    let term = server.leading().await;
    server.commit(term, 1..=3).await;
    server.journal.shutdown().await;
    change_last_segment(dir.path(), |bytes| bytes[100] ^= 1);
    let refused = Server::try_open(dir.path(), 1).await.err().unwrap().to_string();
    let expected = "the log is damaged in segment 00000000000000000001.seg at byte ";
    assert!(refused.starts_with(expected), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn proposals_of_another_term_or_out_of_order_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::open(dir.path()).await;
    let term = server.leading().await;
    for wrong in [Term(term.0 - 1), Term(term.0 + 1)] {
        let refused = server.journal.propose(wrong, batch(1, 30));
        assert_eq!(refused, Err(ProposeError::NotLeading { term: wrong }));
    }
    let gap = ProposeError::OutOfOrder { last: Index(0), got: Index(2) };
    assert_eq!(server.journal.propose(term, batch(2, 30)), Err(gap));
    server.commit(term, 1..=1).await;
    let repeated = ProposeError::OutOfOrder { last: Index(1), got: Index(1) };
    assert_eq!(server.journal.propose(term, batch(1, 30)), Err(repeated));
    server.journal.shutdown().await;
    let closed = server.journal.propose(term, batch(2, 30));
    assert_eq!(closed, Err(ProposeError::NotLeading { term }));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_proposals_in_flight_keep_their_order() {
    const WINDOW: u64 = 256;
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::open(dir.path()).await;
    let term = server.leading().await;
    let mut proposed = 0;
    for committed in 0..5000 {
        while proposed < (committed + WINDOW).min(5000) {
            proposed += 1;
            server.journal.propose(term, batch(proposed, 30)).unwrap();
        }
        assert_eq!(server.heard().await, Heard::Committed(batch(committed + 1, 30)));
    }
    let read = server.journal.read(Index(4001), usize::MAX).unwrap();
    assert_eq!(read, (4001..=5000).map(|index| batch(index, 30)).collect::<Vec<_>>());
    assert_eq!(server.journal.read(Index(5001), usize::MAX).unwrap(), []);
    server.journal.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn large_batches_are_kept_and_read_back() {
    const TEXT: usize = 1 << 20;
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::open(dir.path()).await;
    let term = server.leading().await;
    for index in 1..=10 {
        server.journal.propose(term, batch(index, TEXT)).unwrap();
    }
    for index in 1..=10 {
        assert_eq!(server.heard().await, Heard::Committed(batch(index, TEXT)));
    }
    server.journal.shutdown().await;
    let mut again = Server::open(dir.path()).await;
    assert_eq!(again.replayed().await, 10);
    assert_eq!(again.journal.read(Index(0), 0).unwrap(), [batch(1, TEXT)]);
    assert_eq!(again.journal.read(Index(3), 3 * TEXT + 3000).unwrap().len(), 3);
    again.journal.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_serves_one_server() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::open(dir.path()).await;
    let refused = Server::try_open(dir.path(), 1).await.err().unwrap().to_string();
    assert!(refused.ends_with("is in use by another process"), "{refused}");
    server.journal.shutdown().await;
    let other = Server::try_open(dir.path(), 2).await.err().unwrap();
    assert!(matches!(&other, OpenError::OtherServer { node: 2, members } if members == &[1]), "{other}");
    // What was refused let go of it.
    let again = Server::open(dir.path()).await;
    again.journal.shutdown().await;
}
