//! What is wrong with a job document, all of it at once.
//!
//! Works on canonical jobs; on others, what is unset is taken to be fine.

mod constraint;
mod group;
mod mesh;
mod network;
mod pattern;
mod policy;
mod report;
mod service;
mod task;

use std::collections::BTreeSet;

use model::document::sizes::check_sizes;
use model::document::{Job, Multiregion, MultiregionStrategy, ParameterizedJobConfig, PeriodicConfig};

use model::cron;

pub(crate) use network::is_port_label;
use report::Report;
pub use report::{FieldError, Validation};

/// Priorities run from 1 to this.
pub const PRIORITY_MAX: i64 = 100;

/// Regions of one job.
const REGIONS_MAX: usize = 64;

/// Longest description of a job, in characters.
const DESCRIPTION_MAX: usize = 1000;

const TYPES: [&str; 4] = ["service", "batch", "system", "sysbatch"];

/// Judges a job as a server does before it accepts it, except for how many allocations it may ask for: that is the server's to
/// say.
pub fn validate(job: &Job) -> Validation {
    let mut report = Report::new();
    // What is too large is not looked at any further.
    if let Err(why) = check_sizes(job) {
        let (field, why) = why.split_once(": ").unwrap_or(("", &why));
        report.error(field, why.to_string());
        return report.finish();
    }
    names(&mut report, job);
    kind(&mut report, job);
    placement(&mut report, job);
    if let Some(regions) = &job.multiregion {
        multiregion(&mut report, regions);
    }
    if let Some(periodic) = &job.periodic {
        periodic_block(&mut report, job, periodic);
    }
    if let Some(parameterized) = &job.parameterized_job {
        parameterized_block(&mut report, job, parameterized);
    }
    if !job.payload.0.is_empty() {
        report.error("Payload", "a payload is given when a job is dispatched, not when it is registered");
    }
    let description = job.ui.as_ref().map_or(0, |ui| ui.description.chars().count());
    if description > DESCRIPTION_MAX {
        report
            .error("UI.Description", format!("{description} characters; at most {DESCRIPTION_MAX} are kept"));
    }
    groups(&mut report, job);
    report.finish()
}

fn multiregion(report: &mut Report, block: &Multiregion) {
    let regions = &block.regions;
    if regions.is_empty() {
        report.error("Multiregion.Regions", "a job of several regions names at least one");
    }
    if regions.len() > REGIONS_MAX {
        report.error("Multiregion.Regions", format!("{} regions; at most {REGIONS_MAX}", regions.len()));
    }
    for (at, region) in regions.iter().enumerate() {
        let name = &region.name;
        if name.is_empty() {
            report.error(&format!("Multiregion.Regions[{at}].Name"), "a region has no name");
        } else if regions.iter().take(at).any(|other| other.name == *name) {
            report.error(
                &format!("Multiregion.Regions[{at}].Name"),
                format!("region \"{name}\" is named twice"),
            );
        }
        if region.count.is_some_and(|count| count < 0) {
            report.error(&format!("Multiregion.Regions[{at}].Count"), "a count is not negative");
        }
        if region.datacenters.iter().any(String::is_empty) {
            report.error(&format!("Multiregion.Regions[{at}].Datacenters"), "a datacenter has no name");
        }
    }
    let Some(strategy) = &block.strategy else { return };
    if strategy.max_parallel.is_some_and(|regions| regions < 0) {
        report.error("Multiregion.Strategy.MaxParallel", "expected zero for all regions at once, or more");
    }
    let known = ["", MultiregionStrategy::FAIL_ALL, MultiregionStrategy::FAIL_LOCAL];
    if let Some(other) = strategy.on_failure.as_deref().filter(|word| !known.contains(word)) {
        report.error(
            "Multiregion.Strategy.OnFailure",
            format!("there is no \"{other}\"; known are fail_all, fail_local, or nothing"),
        );
    }
}

fn names(report: &mut Report, job: &Job) {
    match job.id.as_deref().unwrap_or("") {
        "" => report.error("ID", "the job has no ID"),
        id if id.contains(' ') => report.error("ID", "the ID of a job must not contain spaces"),
        id if id.contains('\0') => report.error("ID", "the ID of a job must not contain a null character"),
        _ => {}
    }
    match job.name.as_deref() {
        Some("") => report.error("Name", "the job has no name"),
        Some(name) if name.contains('\0') => {
            report.error("Name", "the name of a job must not contain a null character")
        }
        _ => {}
    }
    if job.namespace.as_deref() == Some("") {
        report.error("Namespace", "the job has no namespace");
    }
}

fn kind(report: &mut Report, job: &Job) {
    let Some(kind) = job.kind.as_deref() else { return };
    if !TYPES.contains(&kind) {
        report.error("Type", format!("there is no job type \"{kind}\"; known are {}", TYPES.join(", ")));
    }
    if is_batch(job)
        && let Some(update) = &job.update
        && !crate::canonical::is_zero_update(update)
    {
        report.error("Update", format!("job type \"{kind}\" does not allow update block"));
    }
}

pub(super) fn is_batch(job: &Job) -> bool {
    matches!(job.kind.as_deref(), Some("batch" | "sysbatch"))
}

pub(super) fn is_system(job: &Job) -> bool {
    matches!(job.kind.as_deref(), Some("system" | "sysbatch"))
}

fn placement(report: &mut Report, job: &Job) {
    if let Some(priority) = job.priority.filter(|priority| !(1..=PRIORITY_MAX).contains(priority)) {
        report.error("Priority", format!("priority {priority} is not between 1 and {PRIORITY_MAX}"));
    }
    for (at, datacenter) in job.datacenters.iter().enumerate() {
        if datacenter.is_empty() {
            report.error(&format!("Datacenters[{at}]"), "a datacenter has no name");
        }
    }
    report.each("Constraints", &job.constraints, constraint::check);
    if is_system(job) {
        let kind = job.kind.as_deref().unwrap_or_default();
        if !job.affinities.is_empty() {
            report.error("Affinities", format!("{kind} jobs may not have affinities"));
        }
        if !job.spreads.is_empty() {
            report.error("Spreads", format!("{kind} jobs may not have spreads"));
        }
    }
    report.each("Affinities", &job.affinities, constraint::check_affinity);
    report.each("Spreads", &job.spreads, constraint::check_spread);
}

fn periodic_block(report: &mut Report, job: &Job, periodic: &PeriodicConfig) {
    if job.kind.is_some() && !is_batch(job) {
        report.error("Periodic", "only batch and sysbatch jobs can be periodic");
    }
    let single = periodic.spec.as_deref().filter(|spec| !spec.is_empty());
    if single.is_some() && !periodic.specs.is_empty() {
        report.error("Periodic", "give either cron or crons, not both");
    }
    if single.is_none() && periodic.specs.is_empty() && periodic.enabled.unwrap_or(true) {
        report.error("Periodic.Spec", "the periodic block has no cron");
    }
    for spec in single.into_iter().chain(periodic.specs.iter().map(String::as_str)) {
        if !cron::is_rule(spec) {
            report.error("Periodic.Spec", format!("\"{spec}\" is not a cron expression"));
        }
    }
    let zone = periodic.time_zone.as_deref().unwrap_or_default();
    if !cron::is_zone(zone) {
        report.error("Periodic.TimeZone", format!("there is no time zone \"{zone}\""));
    }
    if zone == cron::LOCAL_ZONE {
        report.warn("time_zone \"Local\" is UTC: a server may stand in another zone than the next");
    }
}

fn parameterized_block(report: &mut Report, job: &Job, config: &ParameterizedJobConfig) {
    if job.kind.is_some() && !is_batch(job) {
        report.error("ParameterizedJob", "only batch and sysbatch jobs can be parameterized");
    }
    if !["", "optional", "required", "forbidden"].contains(&config.payload.as_str()) {
        let message = format!("\"{}\" is not one of optional, required, forbidden", config.payload);
        report.error("ParameterizedJob.Payload", message);
    }
    for key in config.meta_required.iter().filter(|key| config.meta_optional.contains(key)) {
        report.error(
            "ParameterizedJob.MetaOptional",
            format!("the meta key \"{key}\" is both required and optional"),
        );
    }
}

fn groups(report: &mut Report, job: &Job) {
    if job.task_groups.is_empty() {
        report.error("TaskGroups", "the job has no groups");
    }
    let mut seen = BTreeSet::new();
    for (at, group) in job.task_groups.iter().enumerate() {
        let name = group.name.as_deref().unwrap_or_default();
        report.within(&format!("TaskGroups[{at}]"), &format!("group \"{name}\""), |report| {
            if name.is_empty() {
                report.error("Name", "the group has no name");
            } else if !seen.insert(name) {
                report.error("Name", "a second group of this name");
            }
            group::check(report, job, group);
        });
    }
    let promoting = job.task_groups.iter().filter_map(|group| group.update.as_ref());
    let promoting: Vec<bool> = promoting
        .filter(|update| update.canary.unwrap_or(0) > 0)
        .map(|update| update.auto_promote.unwrap_or(false))
        .collect();
    if promoting.contains(&true) && promoting.contains(&false) {
        report.warn(
            "auto_promote is on for some groups with canaries and off for others, so nothing is promoted",
        );
    }
}
