//! The index that a consistent read must wait for. Reads are answered in rounds, so that a thousand of them cost one
//! round trip to the other servers.

use std::sync::Arc;
use std::time::Duration;

use journal::store::Store;
use journal::{Freshness, IndexCallback, NotLeading};
use openraft::ReadPolicy;
use openraft::raft::linearizable_read::LinearizerOption;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::config::Timings;
use crate::journal::Raft;

/// Readers that wait for one round. When there are more, the others are rejected.
const READERS_MAX: usize = 16 << 10;

/// Where readers queue up, by how fresh an answer they want.
pub(crate) struct Reads {
    lease: Sender<IndexCallback>,
    confirmed: Sender<IndexCallback>,
}

impl Reads {
    pub fn start(raft: &Raft, store: &Arc<Store>, timings: &Timings, runtime: &Handle) -> Reads {
        let queue = |option| {
            let (ask, asked) = channel(READERS_MAX);
            runtime.spawn(serve(raft.clone(), store.clone(), option, asked));
            ask
        };
        // Who has no such lease is not waited for.
        let lease = LinearizerOption::new(Some(timings.lease()), false).with_wait_timeout(Duration::ZERO);
        Reads { lease: queue(lease), confirmed: queue(ReadPolicy::ReadIndex.into()) }
    }

    pub fn ask(&self, freshness: Freshness, callback: IndexCallback) {
        let queue = match freshness {
            Freshness::Lease => &self.lease,
            Freshness::Confirmed => &self.confirmed,
        };
        if let Err(full) = queue.try_send(callback) {
            (full.into_inner())(Err(NotLeading));
        }
    }
}

async fn serve(raft: Raft, store: Arc<Store>, option: LinearizerOption, mut asked: Receiver<IndexCallback>) {
    let mut waiting = Vec::new();
    // Every read in this round came before the round trip begins.
    while asked.recv_many(&mut waiting, READERS_MAX).await > 0 {
        let answer = match raft.get_read_linearizer(option.clone()).await {
            Ok(sure) => Ok(store.batch_at(sure.read_log_id().index())),
            Err(why) => {
                tracing::debug!(%why, "no index for readers");
                Err(NotLeading)
            }
        };
        waiting.drain(..).for_each(|callback| callback(answer));
    }
}
