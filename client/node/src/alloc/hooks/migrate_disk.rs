//! Takes the data of the previous allocation on this node, for groups with a sticky disk. Data on another node stays there,
//! and the tasks get an event that says so.

use std::io;
use std::path::Path;

use super::{AllocContext, AllocHook, Previous, group_of};
use crate::hook::{HookFuture, HookState, ready};
use crate::layout::AllocDir;
use crate::task::events;

#[derive(Debug)]
pub struct MigrateDisk;

impl AllocHook for MigrateDisk {
    fn name(&self) -> &'static str {
        "migrate_disk"
    }

    /// Done once: after that the tasks write there.
    fn prerun<'a>(&'a self, alloc: &'a AllocContext, state: &'a mut HookState) -> HookFuture<'a> {
        state.done = true;
        let newest = alloc.alloc();
        let disk = group_of(&newest).and_then(|group| group.ephemeral_disk.as_ref());
        match &alloc.predecessors.previous {
            Previous::Here { dir, .. } if disk.is_some_and(|disk| disk.sticky == Some(true)) => {
                if let Err(error) = take_over(dir, &alloc.dir, alloc.roles.keys()) {
                    // As in Nomad: a replacement without its data is better than none.
                    tracing::warn!(alloc = alloc.id, %error, "data of the previous allocation was not taken over");
                }
            }
            Previous::Elsewhere(id) if disk.is_some_and(|disk| disk.migrate == Some(true)) => {
                let text = format!(
                    "ephemeral_disk.migrate: the data of allocation {id} stays on its node, this release does not copy it"
                );
                for task in alloc.roles.keys() {
                    alloc.tasks.add_event(task, events::hook_message(&text));
                }
            }
            Previous::Here { .. } | Previous::Elsewhere(_) | Previous::None => {}
        }
        ready(Ok(()))
    }
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
            to.build_task(task)?;
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
        old.build_task("web").unwrap();
        std::fs::write(old.shared().join("data/db"), "1").unwrap();
        std::fs::write(old.task("web").local.join("cache"), "2").unwrap();
        take_over(&old, &new, ["web".to_string(), "new".to_string()].iter()).unwrap();
        assert_eq!(std::fs::read(new.shared().join("data/db")).unwrap(), b"1");
        assert_eq!(std::fs::read(new.task("web").local.join("cache")).unwrap(), b"2");
    }
}
