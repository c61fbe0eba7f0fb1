//! Takes the data of the previous allocation, for groups with a sticky disk: on this node its directories are moved, from
//! another one they are fetched if the group wants to have them migrated.

use std::io;
use std::path::Path;

use super::fetch::fetch;
use super::{AllocContext, AllocHook, Previous, group_of};
use crate::alloc::status;
use crate::hook::{HookFuture, HookState};
use crate::layout::AllocDir;
use crate::task::events;

/// Its name.
pub const NAME: &str = "migrate_disk";

#[derive(Debug)]
pub struct MigrateDisk;

impl AllocHook for MigrateDisk {
    fn name(&self) -> &'static str {
        NAME
    }

    /// Done once: after that the tasks write there.
    ///
    /// As in Nomad, a replacement without its data is better than none: what fails is an event of the tasks, and no error.
    fn prerun<'a>(&'a self, alloc: &'a AllocContext, state: &'a mut HookState) -> HookFuture<'a> {
        Box::pin(async {
            let newest = alloc.alloc();
            let disk = group_of(&newest).and_then(|group| group.ephemeral_disk.as_ref());
            let wants = |flag: Option<bool>| flag == Some(true);
            let is_sticky = disk.is_some_and(|disk| wants(disk.sticky));
            match &alloc.predecessors.previous {
                Previous::Here { dir, .. } if is_sticky => {
                    if let Err(error) = take_over_here(alloc, dir).await {
                        tell(
                            alloc,
                            &format!("the data of the previous allocation was not taken over: {error}"),
                        );
                    }
                }
                Previous::Elsewhere(id) if is_sticky && disk.is_some_and(|disk| wants(disk.migrate)) => {
                    migrate(alloc, id).await;
                }
                Previous::Here { .. } | Previous::Elsewhere(_) | Previous::None => {}
            }
            state.done = true;
            Ok(())
        })
    }
}

/// Fetches the data from the node of the allocation `id`, until this allocation is stopped.
async fn migrate(alloc: &AllocContext, id: &str) {
    let mut versions = alloc.versions.clone();
    let fetched = tokio::select! {
        fetched = fetch(alloc, id) => fetched,
        _ = versions.wait_for(|newest| status::is_stopped(&newest.desired_status)) => return,
    };
    let moved = fetched.and_then(|from| {
        let moved = take_over(&from, &alloc.dir, alloc.roles.keys());
        std::fs::remove_dir_all(from.root()).and(moved).map_err(|error| error.to_string())
    });
    match moved {
        Ok(()) => {
            tracing::info!(alloc = alloc.id, from = id, "the data of the previous allocation was fetched")
        }
        Err(why) => tell(alloc, &format!("the data of allocation {id} was not fetched from its node: {why}")),
    }
}

fn tell(alloc: &AllocContext, what: &str) {
    tracing::warn!(alloc = alloc.id, "{what}");
    for task in alloc.roles.keys() {
        alloc.tasks.add_event(task, events::hook_message(&format!("ephemeral_disk: {what}")));
    }
}

/// Takes the data of an allocation of this node, which counts for this one from then on.
async fn take_over_here(alloc: &AllocContext, from: &AllocDir) -> io::Result<()> {
    let (from, to) = (from.clone(), alloc.dir.clone());
    let quotas = alloc.context.disk_quotas.clone();
    let tasks: Vec<String> = alloc.roles.keys().cloned().collect();
    let moving = move || {
        if let Some(quotas) = quotas {
            let data = from.shared().join("data");
            for part in tasks.iter().map(|task| from.task(task).local).chain([data]) {
                quotas.hand_over(&part, to.root())?;
            }
        }
        take_over(&from, &to, tasks.iter())
    };
    tokio::task::spawn_blocking(moving).await?
}

/// Moves `alloc/data` and each task's `local` out of `from` into `to`, where they must not have content yet.
///
/// # Errors
/// When a directory cannot be moved; those that were are not moved back.
fn take_over<'a>(from: &AllocDir, to: &AllocDir, tasks: impl Iterator<Item = &'a String>) -> io::Result<()> {
    replace(&from.shared().join("data"), &to.shared().join("data"))?;
    for task in tasks {
        let (old, new) = (from.task(task), to.task(task));
        if old.local.is_dir() {
            to.build_task(task, None)?;
            replace(&old.local, &new.local)?;
        }
    }
    Ok(())
}

/// A rename onto an empty directory replaces it.
fn replace(from: &Path, to: &Path) -> io::Result<()> {
    match std::fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        moved => moved,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_moves_to_the_successor() {
        let base = tempfile::tempdir().unwrap();
        let dir = |last: u8| {
            let id = format!("5d16e7fe-8a2e-4b44-9c0a-3c7ab13b9f0{last}");
            let dir = AllocDir::new(base.path(), &id).unwrap();
            dir.build().unwrap();
            dir
        };
        let (old, new) = (dir(1), dir(2));
        old.build_task("web", None).unwrap();
        std::fs::write(old.shared().join("data/db"), "1").unwrap();
        std::fs::write(old.task("web").local.join("cache"), "2").unwrap();
        take_over(&old, &new, ["web".to_string(), "new".to_string()].iter()).unwrap();
        assert_eq!(std::fs::read(new.shared().join("data/db")).unwrap(), b"1");
        assert_eq!(std::fs::read(new.task("web").local.join("cache")).unwrap(), b"2");
    }
}
