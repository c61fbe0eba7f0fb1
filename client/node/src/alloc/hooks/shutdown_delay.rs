//! The group's `shutdown_delay`: the time between the order to end and the first signal, so that clients can leave.

use super::{AllocContext, AllocHook, group_of};
use crate::hook::{HookError, HookFuture};
use crate::task::events::RUNNING;
use crate::task::requests::Kill;

#[derive(Debug)]
pub struct ShutdownDelay;

impl AllocHook for ShutdownDelay {
    fn name(&self) -> &'static str {
        "group_shutdown_delay"
    }

    /// Ends early when no task runs any more, or when the allocation is to end: that has a delay of its own.
    fn prerestart<'a>(&'a self, alloc: &'a AllocContext) -> HookFuture<'a> {
        Box::pin(wait(alloc, |_| true))
    }

    /// Ends early when no task runs any more, or when the order becomes urgent.
    fn prekill<'a>(&'a self, alloc: &'a AllocContext) -> HookFuture<'a> {
        Box::pin(wait(alloc, |kill| kill.at_once))
    }
}

async fn wait(alloc: &AllocContext, cuts_short: impl Fn(&Kill) -> bool + Send) -> Result<(), HookError> {
    let delay = group_of(&alloc.alloc()).and_then(|group| group.shutdown_delay);
    let Some(delay) = delay.filter(|delay| delay.0.0 > 0) else { return Ok(()) };
    let mut stopping = alloc.stopping.clone();
    tokio::select! {
        () = tokio::time::sleep(delay.to_std()) => {}
        () = none_runs(alloc) => {}
        _ = stopping.wait_for(|kill| kill.as_ref().is_some_and(&cuts_short)) => {}
    }
    Ok(())
}

async fn none_runs(alloc: &AllocContext) {
    let mut changed = alloc.tasks.subscribe();
    while alloc.tasks.states().values().any(|state| state.state == RUNNING) {
        if changed.changed().await.is_err() {
            return;
        }
    }
}
