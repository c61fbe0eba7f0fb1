use std::sync::Arc;

use base::StableHash;

use super::state::{Deployment, GroupProgress};
use crate::domain::Domain;

pub(crate) fn row(row: u32, deployment: &Arc<Deployment>) -> u64 {
    let mut hash = Domain::Deployment.row(row);
    hash.id(deployment.id);
    hash.pair(u64::from(deployment.job.0), deployment.version);
    hash.pair(deployment.job_created.0, deployment.registered.0);
    hash.pair(deployment.job_modified.0, u64::from(deployment.priority));
    let flags = u64::from(deployment.gone) | u64::from(deployment.is_multiregion) << 1;
    hash.pair(deployment.status as u64, flags);
    hash.text(&deployment.description);
    hash.pair(deployment.progressed.0, deployment.groups.len() as u64);
    for (name, progress) in &deployment.groups {
        hash.text(name);
        group(&mut hash, progress);
    }
    hash.pair(deployment.created.0, deployment.modified.0);
    hash.pair(deployment.create_time.0 as u64, deployment.modify_time.0 as u64);
    hash.finish()
}

fn group(hash: &mut StableHash, progress: &GroupProgress) {
    let goal = &progress.goal;
    hash.text(&goal.group);
    let flags = [goal.auto_revert, goal.auto_promote, progress.promoted];
    let flags = flags.into_iter().fold(0, |word, flag| word << 1 | u64::from(flag));
    hash.pair(flags, goal.progress_deadline.0 as u64);
    hash.pair(u64::from(goal.desired_canaries), u64::from(goal.desired_total));
    hash.pair(u64::from(progress.placed), u64::from(progress.healthy));
    hash.pair(u64::from(progress.unhealthy), progress.require_progress_by.0 as u64);
    hash.word(progress.placed_canaries.len() as u64);
    progress.placed_canaries.iter().for_each(|id| hash.id(*id));
}
