use model::document::{Job, RequestedDevice, Resources, TaskGroup};

use super::policy::{self, JobKind};
use super::{fill, fill_text, service, task};

pub(super) fn apply_defaults(job: &mut Job) {
    let kind = JobKind::of(job);
    let owner = job.name.clone().unwrap_or_default();
    for group in &mut job.task_groups {
        fill(&mut group.name, "");
        scaling(group);
        fill(&mut group.count, 1_i64);
        complete_disk(group);
        complete_disconnect(group);
        policy::complete_update(group, job.update.as_ref());
        policy::complete_reschedule(group, job.reschedule.as_ref(), kind);
        policy::complete_migrate(group, job.migrate.as_ref(), kind);
        let restart = policy::overlay_restart(group.restart_policy.as_ref(), &policy::restart_default(kind));
        group.restart_policy = Some(restart);
        group.affinities.iter_mut().for_each(|affinity| fill(&mut affinity.weight, 50_i8));
        group.spreads.iter_mut().for_each(|spread| fill(&mut spread.weight, 50_i8));
        if let Some(consul) = &mut group.consul {
            fill_text(&mut consul.cluster, "default");
        }
        let name = group.name.clone().unwrap_or_default();
        for given in &mut group.services {
            service::apply_defaults(given, &service::Owner { job: &owner, group: &name, task: None });
        }
        tasks(group, &owner);
    }
}

/// Without a count, a scaled group starts at its minimum.
fn scaling(group: &mut TaskGroup) {
    let Some(scaling) = &mut group.scaling else { return };
    if group.count.is_none() {
        group.count = Some(scaling.min.unwrap_or(1));
    }
    fill(&mut scaling.enabled, true);
    fill(&mut scaling.min, group.count.unwrap_or(1));
    fill_text(&mut scaling.kind, "horizontal");
}

fn complete_disk(group: &mut TaskGroup) {
    let disk = group.ephemeral_disk.get_or_insert_default();
    fill(&mut disk.sticky, false);
    fill(&mut disk.migrate, false);
    fill(&mut disk.size_mb, 300_i64);
}

pub(super) fn complete_disconnect(group: &mut TaskGroup) {
    if let Some(disconnect) = &mut group.disconnect {
        fill(&mut disconnect.replace, true);
        fill(&mut disconnect.reconcile, "best_score");
    }
}

fn tasks(group: &mut TaskGroup, job: &str) {
    let name = group.name.clone().unwrap_or_default();
    let restart = group.restart_policy.clone().unwrap_or_default();
    for given in &mut group.tasks {
        given.restart_policy = Some(policy::overlay_restart(given.restart_policy.as_ref(), &restart));
        task::apply_defaults(given, job, &name);
    }
}

pub(super) fn complete_resources(resources: &mut Resources) {
    // Naming cores, be it none, leaves no share of the others' time unless it is asked for.
    fill(&mut resources.cpu, if resources.cores.is_some() { 0_i64 } else { 100 });
    fill(&mut resources.cores, 0_i64);
    fill(&mut resources.memory_mb, 300_i64);
    resources.devices.iter_mut().for_each(complete_device);
    if let Some(numa) = &mut resources.numa {
        fill_text(&mut numa.affinity, "none");
    }
}

fn complete_device(device: &mut RequestedDevice) {
    fill(&mut device.count, 1_u64);
    device.affinities.iter_mut().for_each(|affinity| fill(&mut affinity.weight, 50_i8));
}
