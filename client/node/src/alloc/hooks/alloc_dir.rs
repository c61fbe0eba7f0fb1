//! The shared directories of the allocation, and the bound of what it may store.

use std::io;

use super::{AllocContext, AllocHook, group_of};
use crate::hook::{HookError, HookFuture, HookState};

#[derive(Debug)]
pub struct AllocDirHook;

/// MiB, where the job says nothing.
const DISK_MIB: i64 = 300;

impl AllocHook for AllocDirHook {
    fn name(&self) -> &'static str {
        "alloc_dir"
    }

    /// Never done: directories that exist stay as they are.
    fn prerun<'a>(&'a self, alloc: &'a AllocContext, _: &'a mut HookState) -> HookFuture<'a> {
        Box::pin(async {
            let built = match alloc.dir.build() {
                Ok(()) => bound(alloc).await,
                failed => failed,
            };
            built.map_err(|error| HookError::fatal(self.name(), error))
        })
    }

    fn destroy<'a>(&'a self, alloc: &'a AllocContext) -> HookFuture<'a> {
        Box::pin(async {
            let (dir, quotas) = (alloc.dir.clone(), alloc.context.disk_quotas.clone());
            let remove = move || {
                // It stands in the directory, which goes.
                let limited = quotas.and_then(|quotas| Some((quotas.project_of(dir.root())?, quotas)));
                dir.destroy()?;
                limited.map_or(Ok(()), |(project, quotas)| quotas.release(project))
            };
            // Away from the runtime: a large directory takes its time.
            let removed = tokio::task::spawn_blocking(remove).await;
            removed
                .unwrap_or_else(|error| Err(error.into()))
                .map_err(|error| HookError::fatal(self.name(), error))
        })
    }
}

/// Logs are a part of the size, and what the job has in memory is not.
async fn bound(alloc: &AllocContext) -> io::Result<()> {
    let Some(quotas) = alloc.context.disk_quotas.clone() else { return Ok(()) };
    let newest = alloc.alloc();
    let disk = group_of(&newest).and_then(|group| group.ephemeral_disk.as_ref());
    let mib = disk.and_then(|disk| disk.size_mb).unwrap_or(DISK_MIB).max(1).unsigned_abs();
    let root = alloc.dir.root().to_path_buf();
    let bounded = tokio::task::spawn_blocking(move || quotas.bound(&root, mib)).await?;
    bounded.map_err(|error| io::Error::new(error.kind(), format!("bound the disk to {mib} MiB: {error}")))
}
