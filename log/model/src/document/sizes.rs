//! How large the parts of a job may be that servers work with themselves.
//!
//! What a task is configured with only passes through, and is bounded by the size of the whole. Names stand in indexes and
//! in every event, patterns are compiled by each scheduler for each evaluation, and lists are gone through for each node.

use super::{Affinity, Constraint, Job, Spread, Task, TaskGroup};

/// Bytes of a name or an id. A child's id is its parent's and some 50 bytes more.
pub const NAME_BYTES_MAX: usize = 1_024;

/// Bytes of what a constraint or an affinity compares with by a pattern. A regular expression of 5 MB took 770 MB to compile.
pub const PATTERN_BYTES_MAX: usize = 4_096;

/// Bytes of any other side of a constraint, an affinity or a spread: a list of values fits.
pub const TARGET_BYTES_MAX: usize = 65_536;

/// Groups of a job. Those of a document of the largest size have 1,400 bytes each with all their defaults.
pub const GROUPS_MAX: usize = 10_000;

/// Entries of any other list or map of a job, a group or a task.
pub const ENTRIES_MAX: usize = 10_000;

/// Whether an operand compares by a pattern that has to be compiled.
pub fn is_pattern(operand: &str) -> bool {
    matches!(operand, "regexp" | "version" | "semver")
}

/// The first part of a job that is larger than allowed, by its field.
///
/// # Errors
/// `FIELD: 5000000 bytes: expected at most 4096`.
pub fn check_sizes(job: &Job) -> Result<(), String> {
    let optional = |name: &Option<String>| name.clone().unwrap_or_default();
    for (field, text) in [
        ("ID", &job.id),
        ("Name", &job.name),
        ("Namespace", &job.namespace),
        ("NodePool", &job.node_pool),
        ("Region", &job.region),
    ] {
        name(field, &optional(text))?;
    }
    entries("Datacenters", job.datacenters.len())?;
    for datacenter in job.datacenters.iter() {
        name("Datacenters", datacenter)?;
    }
    entries("Meta", job.meta.len())?;
    placement("", &job.constraints, &job.affinities, &job.spreads)?;
    bounded("TaskGroups", job.task_groups.len(), "groups", GROUPS_MAX)?;
    (0..).zip(job.task_groups.iter()).try_for_each(|(at, one)| group(&format!("TaskGroups[{at}]."), one))
}

fn group(at: &str, group: &TaskGroup) -> Result<(), String> {
    name(&format!("{at}Name"), group.name.as_deref().unwrap_or_default())?;
    for (field, len) in [
        ("Tasks", group.tasks.len()),
        ("Meta", group.meta.len()),
        ("Networks", group.networks.len()),
        ("Services", group.services.len()),
        ("Volumes", group.volumes.len()),
    ] {
        entries(&format!("{at}{field}"), len)?;
    }
    placement(at, &group.constraints, &group.affinities, &group.spreads)?;
    (0..).zip(group.tasks.iter()).try_for_each(|(number, one)| task(&format!("{at}Tasks[{number}]."), one))
}

fn task(at: &str, task: &Task) -> Result<(), String> {
    name(&format!("{at}Name"), &task.name)?;
    name(&format!("{at}Driver"), &task.driver)?;
    for (field, len) in [
        ("Artifacts", task.artifacts.len()),
        ("Env", task.env.len()),
        ("Meta", task.meta.len()),
        ("Services", task.services.len()),
        ("Templates", task.templates.len()),
        ("VolumeMounts", task.volume_mounts.len()),
    ] {
        entries(&format!("{at}{field}"), len)?;
    }
    placement(at, &task.constraints, &task.affinities, &[])?;
    let devices = task.resources.iter().flat_map(|resources| resources.devices.iter());
    for (number, device) in (0..).zip(devices) {
        let at = format!("{at}Resources.Devices[{number}].");
        entries(&at, number)?;
        name(&format!("{at}Name"), &device.name)?;
        placement(&at, &device.constraints, &device.affinities, &[])?;
    }
    Ok(())
}

fn placement(
    at: &str,
    constraints: &[Constraint],
    affinities: &[Affinity],
    spreads: &[Spread],
) -> Result<(), String> {
    entries(&format!("{at}Constraints"), constraints.len())?;
    entries(&format!("{at}Affinities"), affinities.len())?;
    entries(&format!("{at}Spreads"), spreads.len())?;
    for (number, one) in constraints.iter().enumerate() {
        compared(&format!("{at}Constraints[{number}]"), &one.l_target, &one.operand, &one.r_target)?;
    }
    for (number, one) in affinities.iter().enumerate() {
        compared(&format!("{at}Affinities[{number}]"), &one.l_target, &one.operand, &one.r_target)?;
    }
    for (number, one) in spreads.iter().enumerate() {
        let at = format!("{at}Spreads[{number}]");
        bytes(&format!("{at}.Attribute"), &one.attribute, TARGET_BYTES_MAX)?;
        entries(&format!("{at}.SpreadTarget"), one.spread_target.len())?;
        for target in one.spread_target.iter() {
            bytes(&format!("{at}.SpreadTarget"), &target.value, TARGET_BYTES_MAX)?;
        }
    }
    Ok(())
}

fn compared(at: &str, left: &str, operand: &str, right: &str) -> Result<(), String> {
    let most = if is_pattern(operand) { PATTERN_BYTES_MAX } else { TARGET_BYTES_MAX };
    bytes(&format!("{at}.LTarget"), left, TARGET_BYTES_MAX)?;
    bytes(&format!("{at}.Operand"), operand, NAME_BYTES_MAX)?;
    bytes(&format!("{at}.RTarget"), right, most)
}

fn name(field: &str, text: &str) -> Result<(), String> {
    bytes(field, text, NAME_BYTES_MAX)
}

fn bytes(field: &str, text: &str, most: usize) -> Result<(), String> {
    bounded(field, text.len(), "bytes", most)
}

fn entries(field: &str, len: usize) -> Result<(), String> {
    bounded(field, len, "entries", ENTRIES_MAX)
}

fn bounded(field: &str, len: usize, unit: &str, most: usize) -> Result<(), String> {
    if len > most { Err(format!("{field}: {len} {unit}: expected at most {most}")) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Change = fn(&mut Job);

    #[test]
    fn what_is_too_large_is_named_by_its_field() {
        let job = || {
            let task = Task { name: "t".to_string(), ..Task::default() };
            let group = TaskGroup { tasks: vec![task].into(), ..TaskGroup::default() };
            Job { id: Some("web".to_string()), task_groups: vec![group].into(), ..Job::default() }
        };
        assert_eq!(check_sizes(&job()), Ok(()));
        let pattern = |operand: &str, len: usize| Constraint {
            operand: operand.to_string(),
            r_target: "x".repeat(len),
            ..Constraint::default()
        };
        let mut fits = job();
        fits.constraints = vec![pattern("regexp", 4_096), pattern("set_contains_any", 65_536)].into();
        assert_eq!(check_sizes(&fits), Ok(()));
        let mut large = job();
        large.task_groups[0].tasks[0].constraints =
            vec![pattern("=", 5), pattern("regexp", 5_000_000)].into();
        let why = "TaskGroups[0].Tasks[0].Constraints[1].RTarget: 5000000 bytes: expected at most 4096";
        assert_eq!(check_sizes(&large), Err(why.to_string()));
        let changes: [(Change, &str); 4] = [
            (|job| job.id = Some("x".repeat(1_025)), "ID: 1025 bytes: expected at most 1024"),
            (
                |job| job.task_groups = vec![TaskGroup::default(); 10_001].into(),
                "TaskGroups: 10001 groups: expected at most 10000",
            ),
            (
                |job| {
                    let env = (0..10_001).map(|number| (number.to_string(), String::new()));
                    job.task_groups[0].tasks[0].env = env.collect();
                },
                "TaskGroups[0].Tasks[0].Env: 10001 entries: expected at most 10000",
            ),
            (
                |job| {
                    let spread = Spread { attribute: "x".repeat(65_537), ..Spread::default() };
                    job.task_groups[0].spreads = vec![spread].into();
                },
                "TaskGroups[0].Spreads[0].Attribute: 65537 bytes: expected at most 65536",
            ),
        ];
        for (change, expected) in changes {
            let mut job = job();
            change(&mut job);
            assert_eq!(check_sizes(&job), Err(expected.to_string()));
        }
    }
}
