//! What one evaluation may cost, counted before anything is taken for it.
//!
//! A bound on jobs is kept where commands are decided, but operators may lift it, and a log may hold jobs from before there was
//! one. Memory that cannot be had ends the process, and it would end again with the next start, so nothing may be
//! begun that is sure to be too much.

use state::State;
use state::job::JobVersion;

/// Most allocations and canaries that an evaluation may have to place: twenty times as many as a job may ask for unless operators
/// say otherwise. Each takes about 300 bytes while the plan is made, so that a worker stays below 300 MB.
pub const PLACED_MAX: u64 = 1_000_000;

/// Most pairs of a group and a node: each group is compared with all nodes, at a rate of a million in a second or so.
/// A worker that is silent for a minute loses its evaluation to another one, in vain.
pub const COMPARED_MAX: u64 = 100_000_000;

/// # Errors
/// Why the job is not scheduled.
pub fn check(state: &State, version: &JobVersion) -> Result<(), String> {
    let groups = version.job.task_groups.iter();
    let per_node = version.kind.is_per_node();
    let nodes = state.nodes.len() as u64;
    // On every node, or as many as are asked for; of canaries as many as the groups ask for, or there are nodes.
    let wanted = groups.clone().map(|group| {
        let count = group.count.unwrap_or(1).max(0) as u64;
        let canaries = group.update.as_ref().and_then(|update| update.canary).unwrap_or(0).max(0) as u64;
        if per_node { nodes.saturating_mul(count) } else { count.saturating_add(canaries) }
    });
    let wanted = wanted.fold(0, u64::saturating_add);
    if wanted > PLACED_MAX {
        return Err(format!(
            "too large to be scheduled: the job asks for {wanted} allocations and canaries, and an evaluation places at most \
             {PLACED_MAX}"
        ));
    }
    let compared = (groups.count() as u64).saturating_mul(nodes);
    if compared > COMPARED_MAX {
        return Err(format!(
            "too large to be scheduled: {} groups on {nodes} nodes are {compared} comparisons, and an evaluation makes at most \
             {COMPARED_MAX}",
            version.job.task_groups.len()
        ));
    }
    Ok(())
}
