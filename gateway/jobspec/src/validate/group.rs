use std::collections::BTreeSet;

use model::document::{Duration, Job, TaskGroup, VolumeRequest};

use super::report::Report;
use super::task::RESOURCE_MAX;
use super::{constraint, is_batch, is_system, mesh, network, policy, service, task};

const DISK_MIN_MIB: i64 = 10;

pub(super) fn check(report: &mut Report, job: &Job, group: &TaskGroup) {
    let name = group.name.as_deref().unwrap_or_default();
    if name.contains('\0') {
        report.error("Name", "the name of a group must not contain a null character");
    }
    count(report, job, group);
    placement(report, job, group);
    policies(report, job, group);
    disconnect(report, job, group);
    lifetime(report, job, group);
    for (label, volume) in &group.volumes {
        report.within(&format!("Volumes[{label}]"), &format!("volume \"{label}\""), |report| {
            self::volume(report, job, group, volume);
        });
    }
    network::check(report, &group.networks);
    service::check_all(report, &group.services, None);
    service::check_providers(report, group);
    mesh::check(report, group);
    scaling(report, group);
    tasks(report, job, group);
}

fn count(report: &mut Report, job: &Job, group: &TaskGroup) {
    match group.count {
        Some(count) if count < 0 => report.error("Count", format!("count {count} is negative")),
        Some(count) if count > 1 && is_system(job) => {
            let kind = job.kind.as_deref().unwrap_or_default();
            report
                .error("Count", format!("a {kind} job runs once on each node; count {count} is not 0 or 1"));
        }
        Some(0) => report.warn("count is 0, so nothing is started"),
        _ => {}
    }
}

fn placement(report: &mut Report, job: &Job, group: &TaskGroup) {
    report.each("Constraints", &group.constraints, constraint::check);
    if is_system(job) && !group.affinities.is_empty() {
        report.error("Affinities", "system jobs may not have affinities");
    }
    if is_system(job) && !group.spreads.is_empty() {
        report.error("Spreads", "system jobs may not have spreads");
    }
    report.each("Affinities", &group.affinities, constraint::check_affinity);
    report.each("Spreads", &group.spreads, constraint::check_spread);
}

fn policies(report: &mut Report, job: &Job, group: &TaskGroup) {
    let kind = job.kind.as_deref().unwrap_or("service");
    if let Some(restart) = &group.restart_policy {
        report.within("RestartPolicy", "restart", |report| policy::restart(report, restart));
    }
    if let Some(reschedule) = &group.reschedule_policy {
        if is_system(job) {
            report.error("ReschedulePolicy", format!("{kind} jobs do not allow a reschedule block"));
        }
        report.within("ReschedulePolicy", "reschedule", |report| policy::reschedule(report, reschedule));
    }
    if let Some(update) = &group.update {
        if is_batch(job) {
            report.error("Update", format!("job type \"{kind}\" does not allow update block"));
        }
        report.within("Update", "update", |report| policy::update(report, update));
        let parallel = update.max_parallel.unwrap_or(0);
        if group.count.is_some_and(|count| count > 0 && parallel > count) {
            report.warn(format!("update max_parallel {parallel} is more than the group's count"));
        }
    }
    if let Some(migrate) = &group.migrate {
        if kind != "service" {
            report.error("Migrate", format!("job type \"{kind}\" does not allow migrate block"));
        }
        report.within("Migrate", "migrate", |report| policy::migrate(report, migrate));
    }
}

fn disconnect(report: &mut Report, job: &Job, group: &TaskGroup) {
    let Some(block) = &group.disconnect else { return };
    let legacy = [
        ("stop_after_client_disconnect", group.stop_after_client_disconnect.is_some()),
        ("max_client_disconnect", group.max_client_disconnect.is_some()),
        ("prevent_reschedule_on_lost", group.prevent_reschedule_on_lost == Some(true)),
    ];
    for (name, _) in legacy.iter().filter(|(_, given)| *given) {
        report.error("Disconnect", format!("{name} and the disconnect block say the same; keep the block"));
    }
    let negative = |span: Option<Duration>| span.is_some_and(|span| span.0.0 < 0);
    if negative(block.lost_after) || negative(block.stop_on_client_after) {
        report.error("Disconnect", "a span of time is negative");
    }
    if block.lost_after.is_some() && block.stop_on_client_after.is_some() {
        report.error("Disconnect", "lost_after and stop_on_client_after exclude each other");
    }
    if block.stop_on_client_after.is_some() && is_system(job) {
        report.error("Disconnect.StopOnClientAfter", "only service and batch jobs have stop_on_client_after");
    }
    let known = ["keep_original", "keep_replacement", "best_score", "longest_running"];
    report.one_of("Disconnect.Reconcile", block.reconcile.as_deref().unwrap_or(""), &known);
}

fn lifetime(report: &mut Report, job: &Job, group: &TaskGroup) {
    if let Some(limit) = group.max_run_duration {
        if limit.0.0 <= 0 {
            report.error("MaxRunDuration", "max_run_duration must be longer than 0");
        }
        if job.kind.is_some() && !is_batch(job) {
            report.error("MaxRunDuration", "only batch and sysbatch jobs have max_run_duration");
        }
    }
    if group.shutdown_delay.is_some_and(|delay| delay.0.0 < 0) {
        report.error("ShutdownDelay", "shutdown_delay is negative");
    }
    let Some(disk) = &group.ephemeral_disk else { return };
    if let Some(size) = disk.size_mb.filter(|size| *size < DISK_MIN_MIB) {
        report
            .error("EphemeralDisk.SizeMB", format!("{size} MB of disk; at least {DISK_MIN_MIB} are needed"));
    }
    if let Some(size) = disk.size_mb.filter(|size| *size > RESOURCE_MAX) {
        report.error(
            "EphemeralDisk.SizeMB",
            format!("{size} is more than the {RESOURCE_MAX} that may be asked for"),
        );
    }
    if disk.migrate == Some(true) && disk.sticky != Some(true) {
        report.warn("ephemeral_disk migrate has no effect without sticky");
    }
}

fn volume(report: &mut Report, job: &Job, group: &TaskGroup, volume: &VolumeRequest) {
    if !["host", "csi"].contains(&volume.kind.as_str()) {
        report.error("Type", format!("there is no volume type \"{}\"; known are host and csi", volume.kind));
    }
    if volume.source.is_empty() {
        report.error("Source", "the volume has no source");
    }
    let modes: &[&str] = match volume.kind.as_str() {
        "csi" => &[
            "single-node-reader-only",
            "single-node-writer",
            "multi-node-reader-only",
            "multi-node-single-writer",
            "multi-node-multi-writer",
        ],
        _ => &[
            "single-node-writer",
            "single-node-reader-only",
            "single-node-single-writer",
            "single-node-multi-writer",
        ],
    };
    report.one_of("AccessMode", &volume.access_mode, modes);
    report.one_of("AttachmentMode", &volume.attachment_mode, &["file-system", "block-device"]);
    if volume.kind == "csi" && (volume.access_mode.is_empty() || volume.attachment_mode.is_empty()) {
        report.error("AccessMode", "a csi volume needs access_mode and attachment_mode");
    }
    if volume.kind == "csi" && is_alone(volume) && !volume.per_alloc && group.count.unwrap_or(1) > 1 {
        let message = format!(
            "access mode \"{}\" is for one allocation; raise it or use per_alloc",
            volume.access_mode
        );
        report.error("AccessMode", message);
    }
    let canaries = group.update.as_ref().and_then(|update| update.canary).unwrap_or(0) > 0;
    if volume.per_alloc && (canaries || volume.sticky || is_system(job)) {
        report.error("PerAlloc", "per_alloc excludes canaries, sticky volumes and system jobs");
    }
}

/// Whether at most one allocation may have the volume, as it is mounted here.
fn is_alone(volume: &VolumeRequest) -> bool {
    match volume.access_mode.as_str() {
        "single-node-reader-only" | "single-node-writer" => true,
        "multi-node-single-writer" => !volume.read_only,
        _ => false,
    }
}

fn scaling(report: &mut Report, group: &TaskGroup) {
    let Some(scaling) = &group.scaling else { return };
    let (least, most) = (scaling.min.unwrap_or(0), scaling.max.unwrap_or(i64::MAX));
    if scaling.max.is_none() {
        report.error("Scaling.Max", "scaling has no max");
    }
    if least < 0 || least > most {
        report.error("Scaling.Min", format!("the minimum {least} does not fit the maximum {most}"));
    } else if let Some(count) = group.count.filter(|count| !(least..=most).contains(count)) {
        report.error("Count", format!("count {count} lies outside of the scaling limits {least} to {most}"));
    }
}

fn tasks(report: &mut Report, job: &Job, group: &TaskGroup) {
    if group.tasks.is_empty() {
        return report.error("Tasks", "the group has no tasks");
    }
    if group.tasks.iter().all(|task| task.lifecycle.is_some()) {
        report.error("Tasks", "the group has only lifecycle tasks; at least one main task is needed");
    }
    if group.tasks.iter().filter(|task| task.leader).count() > 1 {
        report.error("Tasks", "the group has more than one leader");
    }
    let mut seen = BTreeSet::new();
    for (at, task) in group.tasks.iter().enumerate() {
        report.within(&format!("Tasks[{at}]"), &format!("task \"{}\"", task.name), |report| {
            if !task.name.is_empty() && !seen.insert(task.name.as_str()) {
                report.error("Name", "a second task of this name");
            }
            task::check(report, job, group, task);
        });
    }
}
