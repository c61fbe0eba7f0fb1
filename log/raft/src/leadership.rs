//! Who leads, as openraft sees it and as the proposer is notified.

use std::sync::Arc;

use base::Term;
use journal::store::Fatal;
use openraft::Instant as _;
use openraft::ReadPolicy;
use openraft::async_runtime::WatchReceiver;
use openraft::error::Fatal as Ended;
use openraft::metrics::RaftServerMetrics;
use tokio::sync::mpsc::Sender;
use tokio::time::{Instant, sleep, sleep_until};

use crate::config::{Timings, Types};
use crate::journal::Raft;
use crate::notifier::{News, Standing};
use crate::proposals::{Breaks, Proposals};

/// Passes every change of leadership on, until consensus ends.
pub(crate) async fn watch(raft: Raft, proposals: Arc<Proposals>, news: Sender<News>, fatal: Fatal) {
    let node = *raft.node_id();
    let (mut votes, mut breaks) = (raft.server_metrics(), proposals.breaks());
    let mut last = None;
    loop {
        let standing = standing(&votes.borrow_watched(), node, *breaks.borrow_and_update());
        if last != Some(standing) && news.send(News::Standing(standing)).await.is_err() {
            return;
        }
        last = Some(standing);
        tokio::select! {
            biased;
            changed = votes.changed() => if changed.is_err() { break },
            changed = breaks.changed() => if changed.is_err() { break },
        }
    }
    let ended = raft.metrics().borrow_watched().running_state.clone();
    match ended {
        Err(Ended::Stopped) => {}
        // It is gone without having said why.
        Ok(()) | Err(Ended::Panicked) => fatal("consensus panicked"),
        // The receiver is gone if this is a shutdown.
        Err(Ended::StorageError(why)) => news.send(News::Halted(why.to_string())).await.unwrap_or(()),
    }
}

/// A leader whose term is broken does not lead, as far as the proposer is concerned.
fn standing(votes: &RaftServerMetrics<Types>, node: u64, breaks: Breaks) -> Standing {
    let term = Term(votes.vote.leader_id.term);
    let whole = votes.current_leader != Some(node) || breaks.term != Some(term);
    let leader = votes.current_leader.filter(|_| whole);
    Standing { term, leader, mine: leader == Some(node), breaks: breaks.count }
}

/// Lets a server that was started anew ask for votes.
pub(crate) async fn campaign_from(raft: Raft, from: Instant) {
    sleep_until(from).await;
    raft.runtime_config().elect(true);
}

/// Breaks the term of a leader that has no contact to a majority for as long as it takes to elect another: callers
/// get the answer that the outcome is unknown, and do not wait for the end of a partition.
pub(crate) async fn watch_lease(raft: Raft, proposals: Arc<Proposals>, timings: Timings) {
    let metrics = raft.metrics();
    loop {
        sleep(timings.heartbeat).await;
        let Some(term) = proposals.term() else {
            if metrics.borrow_watched().running_state.is_err() {
                return;
            }
            continue;
        };
        let lapsed = {
            let metrics = metrics.borrow_watched();
            let alone = metrics.membership_config.voter_ids().all(|voter| voter == metrics.id);
            let acked = metrics.last_quorum_acked;
            !alone && acked.is_some_and(|acked| acked.elapsed() > timings.election.end)
        };
        if lapsed {
            tracing::warn!(term = term.0, "this leader has had no contact to a majority for too long");
            proposals.fail(term);
        }
    }
}

/// Mends what broke: when nothing of the term is in flight, so that everything it proposed was either passed to the sink or
/// will never be, and a majority confirms that it still lasts.
pub(crate) async fn mend(raft: Raft, proposals: Arc<Proposals>, timings: Timings) {
    let mut breaks = proposals.breaks();
    loop {
        let broken = breaks.wait_until(|breaks| breaks.term.is_some()).await;
        let Some(term) = broken.ok().and_then(|breaks| breaks.term) else { return };
        proposals.idle().await;
        let over = raft.server_metrics().borrow_watched().vote.leader_id.term > term.0;
        let confirmed = !over && raft.get_read_linearizer(ReadPolicy::ReadIndex).await.is_ok();
        if over || confirmed {
            proposals.mend(term);
        } else if raft.metrics().borrow_watched().running_state.is_err() {
            return;
        } else {
            // During a transfer of leadership the answer comes at once, and it is no.
            sleep(timings.heartbeat).await;
        }
    }
}
