//! Looks once a second at what tasks and the host use.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use tokio::time::Instant;

use crate::allocs::Allocs;
use crate::context::Context;
use crate::driver::{RunningTask, Usage};
use crate::stats;

/// Between two looks.
const EVERY: Duration = Duration::from_secs(1);

/// Runs until it is dropped.
pub async fn run(context: Arc<Context>, allocs: Arc<Allocs>) {
    let mut looks = tokio::time::interval(EVERY);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        let running = allocs.all().into_iter().flat_map(|(id, handle)| {
            handle.tasks.all_running().into_iter().map(move |(task, running)| ((id.clone(), task), running))
        });
        let readings = running.map(|(key, running)| async move { Some((key, read(&*running).await?)) });
        let tasks = join_all(readings).await.into_iter().flatten().collect();
        context.samples.take_in(Instant::now(), tasks, stats::host_times());
    }
}

/// `None` when the task has ended, or its driver takes too long: the others must not wait for it.
async fn read(task: &dyn RunningTask) -> Option<Usage> {
    tokio::time::timeout(EVERY, task.stats(EVERY).next()).await.ok()?
}
