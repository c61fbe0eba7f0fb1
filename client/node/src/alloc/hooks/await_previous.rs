//! Waits until the allocation that this one replaces has ended, wherever it is, and those that had to make room for it.

use super::{AllocContext, AllocHook, Previous};
use crate::alloc::status;
use crate::hook::{HookFuture, HookState};

/// Its name.
pub const NAME: &str = "await_previous_allocations";

#[derive(Debug)]
pub struct AwaitPrevious;

impl AllocHook for AwaitPrevious {
    fn name(&self) -> &'static str {
        NAME
    }

    /// Done once: tasks of a restored allocation may run already.
    fn prerun<'a>(&'a self, alloc: &'a AllocContext, state: &'a mut HookState) -> HookFuture<'a> {
        Box::pin(async {
            let mut versions = alloc.versions.clone();
            tokio::select! {
                () = end_of_predecessors(alloc) => {}
                _ = versions.wait_for(|newest| status::is_stopped(&newest.desired_status)) => return Ok(()),
            }
            state.done = true;
            Ok(())
        })
    }
}

/// What was removed has ended as well.
async fn end_of_predecessors(alloc: &AllocContext) {
    match (&alloc.predecessors.previous, alloc.context.servers.get()) {
        (Previous::Here { status, .. }, _) => drop(status.clone().wait_for(|status| status.done).await),
        (Previous::Elsewhere(id), Some(servers)) => servers.end_of(id).await,
        (Previous::Elsewhere(_), None) | (Previous::None, _) => {}
    }
    for preempted in &alloc.predecessors.preempted {
        preempted.clone().wait_for(|status| status.done).await.ok();
    }
}
