//! The shared directories of the allocation.

use super::{AllocContext, AllocHook};
use crate::hook::{HookError, HookFuture, HookState, ready};

#[derive(Debug)]
pub struct AllocDirHook;

impl AllocHook for AllocDirHook {
    fn name(&self) -> &'static str {
        "alloc_dir"
    }

    /// Never done: directories that exist stay as they are.
    fn prerun<'a>(&'a self, alloc: &'a AllocContext, _: &'a mut HookState) -> HookFuture<'a> {
        ready(alloc.dir.build().map_err(|error| HookError::fatal(self.name(), error)))
    }

    fn destroy<'a>(&'a self, alloc: &'a AllocContext) -> HookFuture<'a> {
        Box::pin(async {
            let dir = alloc.dir.clone();
            // Away from the runtime: a large directory takes its time.
            let removed = tokio::task::spawn_blocking(move || dir.destroy()).await;
            removed
                .unwrap_or_else(|error| Err(error.into()))
                .map_err(|error| HookError::fatal(self.name(), error))
        })
    }
}
