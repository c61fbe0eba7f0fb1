use model::document::{DisconnectStrategy, Job, Map, RequestedDevice, Resources, TaskGroup};

use super::policy::{self, Kind};
use super::{fill, fill_text, service, task};

pub(super) fn apply_defaults(job: &mut Job) {
    let kind = Kind::of(job);
    let names = Names {
        namespace: job.namespace.clone().unwrap_or_default(),
        job: job.id.clone().unwrap_or_default(),
    };
    for group in &mut job.task_groups {
        scaling(group, &names);
        fill(&mut group.count, 1_i64);
        complete_disk(group);
        disconnect(group);
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
            service::apply_defaults(given, &service::Owner { job: &names.job, group: &name, task: None });
        }
        tasks(group, &names);
    }
}

/// The names above a group.
pub(super) struct Names {
    pub namespace: String,
    pub job: String,
}

/// Without a count, a scaled group starts at its minimum.
fn scaling(group: &mut TaskGroup, names: &Names) {
    let name = group.name.clone().unwrap_or_default();
    let Some(scaling) = &mut group.scaling else { return };
    if group.count.is_none() {
        group.count = Some(scaling.min.unwrap_or(1));
    }
    fill(&mut scaling.enabled, true);
    fill(&mut scaling.min, group.count.unwrap_or(1));
    fill_text(&mut scaling.kind, "horizontal");
    scaling.target = target(names, &[("Group", &name)]);
}

pub(super) fn target(names: &Names, below: &[(&str, &str)]) -> Map<String, String> {
    let above = [("Namespace", names.namespace.as_str()), ("Job", names.job.as_str())];
    let all = above.into_iter().chain(below.iter().copied());
    all.map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

fn complete_disk(group: &mut TaskGroup) {
    let disk = group.ephemeral_disk.get_or_insert_default();
    fill(&mut disk.sticky, false);
    fill(&mut disk.migrate, false);
    fill(&mut disk.size_mb, 300_i64);
}

/// The older spellings become a disconnect block; next to one they stay, for validation to refuse.
fn disconnect(group: &mut TaskGroup) {
    let legacy = group.stop_after_client_disconnect.is_some()
        || group.max_client_disconnect.is_some()
        || group.prevent_reschedule_on_lost.unwrap_or(false);
    if legacy && group.disconnect.is_none() {
        group.disconnect = Some(DisconnectStrategy {
            lost_after: group.max_client_disconnect.take(),
            stop_on_client_after: group.stop_after_client_disconnect.take(),
            replace: Some(!group.prevent_reschedule_on_lost.take().unwrap_or(false)),
            reconcile: None,
        });
    }
    if let Some(disconnect) = &mut group.disconnect {
        fill(&mut disconnect.replace, true);
        fill(&mut disconnect.reconcile, "best_score");
    }
}

fn tasks(group: &mut TaskGroup, names: &Names) {
    let name = group.name.clone().unwrap_or_default();
    let restart = group.restart_policy.clone().unwrap_or_default();
    for given in &mut group.tasks {
        given.restart_policy = Some(policy::overlay_restart(given.restart_policy.as_ref(), &restart));
        task::apply_defaults(given, names, &name);
    }
}

pub(super) fn complete_resources(resources: &mut Resources) {
    fill(&mut resources.cpu, if resources.cores.unwrap_or(0) > 0 { 0_i64 } else { 100 });
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
