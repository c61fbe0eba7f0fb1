//! P8: until its canaries are promoted, the old version serves: no plan takes it below its count.

use std::collections::BTreeSet;

use model::{AllocId, Event};
use state::State;
use state::alloc::Alloc;
use state::alloc::endings::NOT_NEEDED;

use crate::fact::{Check, Fact};
use crate::witness::Witness;

#[derive(Default)]
pub struct OldVersionServes;

impl Check for OldVersionServes {
    fn sentence(&self) -> &'static str {
        "P8 until its canaries are promoted, no plan stops what a group needs of its old version"
    }

    fn see(&mut self, fact: &Fact<'_>, _: &Witness) -> Result<(), String> {
        let Fact::Folded(folded) = fact else { return Ok(()) };
        let stopped: BTreeSet<AllocId> =
            folded.events.iter().flat_map(|event| not_needed(event)).copied().collect();
        for id in &stopped {
            let alloc = folded.after.allocs.lookup(*id).ok_or_else(|| format!("{id} is not known"))?;
            let Some(count) = count_beside_canaries(folded.after, alloc) else { continue };
            let held = names(folded.after, alloc);
            // Somebody who asked for it to leave gets one in its stead, when there is room. What had ended served no longer.
            let served = !alloc.transition.is_asked_to_leave() && !alloc.client.is_terminal();
            if served && !held.contains(&alloc.name_index) && held.len() < count {
                let (name, left) = (alloc.name(), held.len());
                return Err(format!("{name} is stopped, and {left} of {count} are left"));
            }
        }
        Ok(())
    }
}

fn not_needed(event: &Event) -> &[AllocId] {
    match event {
        Event::AllocsStopped(stopped) if stopped.description == NOT_NEEDED => &stopped.allocs,
        _ => &[],
    }
}

/// How many of its group are wanted beside the canaries; `None` if no canaries wait to be promoted, or it is one.
fn count_beside_canaries(state: &State, alloc: &Alloc) -> Option<usize> {
    let job = state.jobs.get(alloc.job);
    let deployment = state.deployments.get(*job.deployments.last()?);
    let progress = deployment.groups.get(&*alloc.group)?;
    let tried_out = deployment.is_active() && deployment.is_of(job.current()) && job.is_wanted();
    let waits = tried_out && progress.goal.desired_canaries > 0 && !progress.promoted;
    let group = job.current().group(&alloc.group)?;
    let count = usize::try_from(group.count.unwrap_or(1)).ok()?;
    (waits && !alloc.health.canary).then_some(count)
}

/// The names that live allocations of its group hold, canaries aside.
fn names(state: &State, alloc: &Alloc) -> BTreeSet<u32> {
    let allocs = state.jobs.get(alloc.job).allocs.iter().map(|row| state.allocs.get(*row));
    let live = allocs.filter(|other| other.group == alloc.group && !other.is_terminal());
    live.filter(|other| !other.health.canary).map(|other| other.name_index).collect()
}
