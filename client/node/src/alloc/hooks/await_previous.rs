//! Waits until the allocation that this one replaces has ended, if it is on this node.

use super::{AllocContext, AllocHook};
use crate::alloc::status;
use crate::hook::{HookFuture, HookState};

#[derive(Debug)]
pub struct AwaitPrevious;

impl AllocHook for AwaitPrevious {
    fn name(&self) -> &'static str {
        "await_previous_allocations"
    }

    /// Done once: tasks of a restored allocation may run already.
    fn prerun<'a>(&'a self, alloc: &'a AllocContext, state: &'a mut HookState) -> HookFuture<'a> {
        Box::pin(async {
            if let Some(previous) = &alloc.previous {
                let (mut ended, mut versions) = (previous.status.clone(), alloc.versions.clone());
                tokio::select! {
                    // A previous allocation that was removed has ended as well.
                    _ = ended.wait_for(|status| status.done) => {}
                    _ = versions.wait_for(|newest| status::is_stopped(&newest.desired_status)) => return Ok(()),
                }
            }
            state.done = true;
            Ok(())
        })
    }
}
