use std::sync::Arc;

use super::state::{Alloc, Health};
use crate::domain::Domain;
use crate::job;

pub(crate) fn row(row: u32, alloc: &Arc<Alloc>) -> u64 {
    let mut hash = Domain::Alloc.row(row);
    hash.id(alloc.id);
    hash.pair(u64::from(alloc.job.0) << 32 | u64::from(alloc.node.0), u64::from(alloc.name_index));
    job::hash::version(&mut hash, &alloc.version);
    hash.text(&alloc.group);
    hash.id(alloc.eval);
    hash.pair(states(alloc), alloc.states.len() as u64);
    hash.text(&alloc.desired_description);
    hash.text(&alloc.client_description);
    hash.pair(alloc.template.hash(), alloc.metrics.hash());
    ports(&mut hash, &alloc.ports);
    for known in alloc.states.iter() {
        hash.pair(known.status as u64, known.time.0 as u64);
    }
    hash.id(alloc.previous.unwrap_or_default());
    hash.id(alloc.next.unwrap_or_default());
    hash.id(alloc.follow_up.unwrap_or_default());
    hash.pair(alloc.given.hash(), alloc.preempted.len() as u64);
    alloc.preempted.iter().for_each(|id| hash.id(*id));
    hash.id(alloc.preempted_by.unwrap_or_default());
    if let Some(deployment) = alloc.deployment {
        hash.id(deployment);
    }
    if alloc.health != Health::default() {
        hash.pair(alloc.health.modified.0, alloc.health.time.0 as u64);
    }
    hash.pair(alloc.report.hash(), alloc.created.0);
    hash.pair(alloc.modified.0, alloc.alloc_modified.0);
    hash.pair(alloc.create_time.0 as u64, alloc.modify_time.0 as u64);
    hash.finish()
}

/// Everything that has few values, in one word.
fn states(alloc: &Alloc) -> u64 {
    let flags = [
        alloc.gone,
        alloc.transition.migrate,
        alloc.transition.reschedule,
        alloc.transition.no_shutdown_delay,
        alloc.previous.is_some(),
        alloc.next.is_some(),
        alloc.follow_up.is_some(),
        alloc.preempted_by.is_some(),
        alloc.transition.force_reschedule,
        alloc.transition.disable_placement,
        alloc.deployment.is_some(),
        alloc.health.canary,
        alloc.health.healthy.is_some(),
        alloc.health.healthy == Some(true),
        alloc.health != Health::default(),
    ];
    let flags = flags.into_iter().fold(0, |word, flag| word << 1 | u64::from(flag));
    flags << 16 | (alloc.desired as u64) << 8 | alloc.client as u64
}

fn ports(hash: &mut base::StableHash, ports: &[u16]) {
    hash.word(ports.len() as u64);
    for four in ports.chunks(4) {
        hash.word(four.iter().fold(0, |word, port| word << 16 | u64::from(*port)));
    }
}
