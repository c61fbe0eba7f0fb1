//! Jobs: the list, and the parts of `job status`.

use std::collections::BTreeMap;

use api::{JobListStub, JobSummary};
use base::Time;
use model::document::{AllocationListStub, Evaluation, Job};

use super::{cell, metrics};
use crate::output::{OutputStyle, Table, fields};

/// Most task groups whose failed placements are shown.
const FAILED_GROUPS_MAX: usize = 5;

/// The list of jobs; with the namespace when several are shown.
pub(crate) fn table(style: &OutputStyle, jobs: &[JobListStub], namespaces: bool) -> String {
    let space = namespaces.then_some("Namespace");
    let mut head: Vec<&str> = ["ID"].into_iter().chain(space).collect();
    head.extend(["Type", "Priority", "Status", "Submit Date"]);
    if style.wide {
        head.extend(["Node Pool", "Datacenters", "Running", "Queued", "Failed"]);
    }
    let mut table = Table::new(head);
    for job in jobs {
        let mut row = vec![job.id.clone()];
        row.extend(namespaces.then(|| job.namespace.clone()));
        row.extend([
            kind(&job.kind, job.periodic, job.parameterized_job),
            cell(job.priority),
            status(&job.status, job.stop),
            style.time(job.submit_time),
        ]);
        if style.wide {
            row.extend([job.node_pool.clone(), job.datacenters.join(",")]);
            row.extend(counts(job).map(cell));
        }
        table.row(row);
    }
    table.render()
}

/// Allocations, or children, that run, that wait, and that have failed.
pub(crate) fn counts(job: &JobListStub) -> [i64; 3] {
    let groups = || job.job_summary.summary.values();
    let children = job.job_summary.children.clone().unwrap_or_default();
    [
        groups().map(|group| group.running).sum::<i64>() + children.running,
        groups().map(|group| group.queued + group.starting).sum::<i64>() + children.pending,
        groups().map(|group| group.failed + group.lost).sum(),
    ]
}

pub(crate) fn kind(kind: &str, periodic: bool, parameterized: bool) -> String {
    let periodic = if periodic { "/periodic" } else { "" };
    let parameterized = if parameterized { "/parameterized" } else { "" };
    format!("{kind}{periodic}{parameterized}")
}

fn status(status: &str, stopped: bool) -> String {
    format!("{status}{}", if stopped { " (stopped)" } else { "" })
}

/// True when the job is periodic and only launches child jobs.
pub(crate) fn is_periodic(job: &Job) -> bool {
    job.periodic.is_some()
}

/// True when the job is parameterized and only starts child jobs when dispatched.
pub(crate) fn is_parameterized(job: &Job) -> bool {
    job.parameterized_job.is_some() && !job.dispatched
}

/// The block of one job; `launch` is its next periodic launch.
pub(crate) fn block(style: &OutputStyle, job: &Job, launch: Option<Time>) -> String {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let mut entries = vec![
        ("ID", text(&job.id)),
        ("Name", text(&job.name)),
        ("Submit Date", style.time(job.submit_time.unwrap_or(0))),
        ("Type", text(&job.kind)),
        ("Priority", cell(job.priority.unwrap_or(0))),
        ("Datacenters", job.datacenters.join(",")),
        ("Namespace", text(&job.namespace)),
        ("Node Pool", text(&job.node_pool)),
        ("Status", status(job.status.as_deref().unwrap_or_default(), job.stop == Some(true))),
        ("Periodic", cell(is_periodic(job))),
        ("Parameterized", cell(is_parameterized(job))),
    ];
    if let Some(token) = job.dispatch_idempotency_token.as_ref().filter(|token| !token.is_empty()) {
        entries.push(("Idempotency Token", token.clone()));
    }
    if let Some(launch) = launch {
        let text = format!("{} ({})", style.time(launch.0), style.ago(launch.0));
        entries.push(("Next Periodic Launch", text));
    }
    fields(&entries)
}

/// How the allocations of each group are doing; a parent's children instead.
pub(crate) fn summary(style: &OutputStyle, job: &Job, summary: &JobSummary) -> String {
    if is_periodic(job) || is_parameterized(job) {
        let title = if is_periodic(job) { "Children Job Summary" } else { "Parameterized Job Summary" };
        let children = summary.children.clone().unwrap_or_default();
        let mut table = Table::new(["Pending", "Running", "Dead"]);
        table.row([cell(children.pending), cell(children.running), cell(children.dead)]);
        return style.section(title, &table.render());
    }
    let mut table =
        Table::new(["Task Group", "Queued", "Starting", "Running", "Failed", "Complete", "Lost", "Unknown"]);
    for (group, count) in &summary.summary {
        let counts = [
            count.queued,
            count.starting,
            count.running,
            count.failed,
            count.complete,
            count.lost,
            count.unknown,
        ];
        table.row([group.clone()].into_iter().chain(counts.map(cell)));
    }
    style.section("Summary", &table.render())
}

/// The child jobs of a periodic or parameterized job.
pub(crate) fn children(style: &OutputStyle, job: &Job, children: &[JobListStub]) -> String {
    let (title, none) = if is_periodic(job) {
        ("Previously Launched Jobs", "No instances of periodic job found")
    } else {
        ("Dispatched Jobs", "No dispatched instances of parameterized job found")
    };
    if children.is_empty() {
        return format!("\n{none}\n");
    }
    let mut table = Table::new(["ID", "Status"]);
    for child in children {
        table.row([child.id.clone(), status(&child.status, child.stop)]);
    }
    style.section(title, &table.render())
}

/// Payload and metadata of a parameterized job.
pub(crate) fn parameters(style: &OutputStyle, job: &Job) -> String {
    let Some(config) = &job.parameterized_job else { return String::new() };
    let entries = [
        ("Payload", config.payload.clone()),
        ("Required Metadata", config.meta_required.join(", ")),
        ("Optional Metadata", config.meta_optional.join(", ")),
    ];
    style.section("Parameterized Job", &fields(&entries))
}

/// The job's evaluations, newest first.
pub(crate) fn evaluations(style: &OutputStyle, evals: &[Evaluation]) -> String {
    let mut table = Table::new(["ID", "Priority", "Triggered By", "Status", "Placement Failures"]);
    for eval in evals {
        table.row([
            style.id(&eval.id),
            cell(eval.priority),
            eval.triggered_by.clone(),
            eval.status.clone(),
            cell(!eval.failed_tg_allocs.is_empty()),
        ]);
    }
    style.section("Evaluations", &table.render())
}

/// Why the newest failed placement failed, while an evaluation is blocked.
pub(crate) fn placement_failure(style: &OutputStyle, evals: &[Evaluation]) -> String {
    if evals.iter().all(|eval| eval.status != "blocked") {
        return String::new();
    }
    let failing = evals.iter().filter(|eval| !eval.failed_tg_allocs.is_empty() && eval.status != "blocked");
    let Some(newest) = failing.max_by_key(|eval| eval.create_index) else { return String::new() };
    let groups = newest.failed_tg_allocs.iter().take(FAILED_GROUPS_MAX);
    let mut text: String = groups
        .map(|(group, metric)| format!("Task Group \"{group}\":\n{}", metrics::reasons(style, metric, "  ")))
        .collect();
    let left = newest.failed_tg_allocs.len().saturating_sub(FAILED_GROUPS_MAX);
    if left > 0 {
        text.push_str(&format!(
            "\nPlacement failures truncated. {left} more: see eval status {}\n",
            style.id(&newest.id)
        ));
    }
    style.section("Placement Failure", &text)
}

/// When failed allocations will be rescheduled. `evals` holds the follow-ups by id.
pub(crate) fn rescheduling(
    style: &OutputStyle,
    allocs: &[AllocationListStub],
    evals: &BTreeMap<String, Evaluation>,
) -> String {
    let mut groups = BTreeMap::new();
    for alloc in allocs.iter().filter(|alloc| awaits_follow_up(alloc)) {
        let Some(eval) = evals.get(&alloc.followup_eval_id) else { continue };
        if eval.wait_until.time() > style.now {
            groups.entry(&alloc.task_group).or_insert(eval);
        }
    }
    if groups.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["Task Group", "Eval ID", "Eval Time"]);
    for (group, eval) in groups {
        table.row([group.clone(), style.id(&eval.id), style.ago(eval.wait_until.time().0)]);
    }
    style.section("Future Rescheduling Attempts", &table.render())
}

/// True when a later evaluation is to replace the allocation.
pub(crate) fn awaits_follow_up(alloc: &AllocationListStub) -> bool {
    !alloc.followup_eval_id.is_empty() && alloc.next_allocation.is_empty()
}

/// The actions of the job's tasks.
pub(crate) fn actions(style: &OutputStyle, job: &Job) -> String {
    let mut table = Table::new(["Action Name", "Task Group", "Task"]);
    let mut any = false;
    for group in &job.task_groups {
        for task in &group.tasks {
            for action in &task.actions {
                any = true;
                let group = group.name.clone().unwrap_or_default();
                table.row([action.name.clone(), group, task.name.clone()]);
            }
        }
    }
    if any { style.section("Actions", &table.render()) } else { String::new() }
}

/// One version of a job, for its list of versions.
pub(crate) fn version(style: &OutputStyle, job: &Job) -> Vec<(&'static str, String)> {
    let mut entries = vec![
        ("Version", cell(job.version.unwrap_or(0))),
        ("Stable", cell(job.stable.unwrap_or(false))),
        ("Submit Date", style.time(job.submit_time.unwrap_or(0))),
    ];
    if let Some(tag) = &job.version_tag {
        entries.push(("Tag Name", tag.name.clone()));
        entries.push(("Tag Description", tag.description.clone()));
    }
    entries
}

#[cfg(test)]
mod tests {
    use api::TaskGroupSummary;
    use model::document::{AllocationMetric, PeriodicConfig};

    use super::*;

    fn style() -> OutputStyle {
        OutputStyle::for_tests()
    }

    fn web() -> Job {
        Job {
            id: Some("web".into()),
            name: Some("web".into()),
            kind: Some("service".into()),
            priority: Some(50),
            datacenters: vec!["dc1".to_string(), "dc2".to_string()].into(),
            namespace: Some("default".into()),
            node_pool: Some("default".into()),
            status: Some("running".into()),
            submit_time: Some(style().now.0),
            ..Job::default()
        }
    }

    #[test]
    fn the_list_marks_parents_and_stopped_jobs() {
        let stub = JobListStub {
            id: "nightly".into(),
            namespace: "ops".into(),
            kind: "batch".into(),
            priority: 50,
            periodic: true,
            stop: true,
            status: "dead".into(),
            submit_time: style().now.0,
            ..JobListStub::default()
        };
        assert_eq!(
            table(&style(), std::slice::from_ref(&stub), true),
            "ID       Namespace  Type            Priority  Status          Submit Date\n\
             nightly  ops        batch/periodic  50        dead (stopped)  2026-01-02T03:04:05Z\n"
        );
        assert!(
            table(&style(), std::slice::from_ref(&stub), false)
                .starts_with("ID       Type            Priority")
        );
        let wide = OutputStyle { wide: true, ..style() };
        let stub = JobListStub { node_pool: "gpu".into(), ..stub };
        assert_eq!(
            table(&wide, &[stub], false)
                .lines()
                .next()
                .unwrap()
                .split("Submit Date")
                .nth(1)
                .unwrap()
                .trim_start(),
            "Node Pool  Datacenters  Running  Queued  Failed"
        );
    }

    #[test]
    fn the_block_has_nomads_fields() {
        assert_eq!(
            block(&style(), &web(), None),
            "ID            = web\n\
             Name          = web\n\
             Submit Date   = 2026-01-02T03:04:05Z\n\
             Type          = service\n\
             Priority      = 50\n\
             Datacenters   = dc1,dc2\n\
             Namespace     = default\n\
             Node Pool     = default\n\
             Status        = running\n\
             Periodic      = false\n\
             Parameterized = false\n"
        );
    }

    #[test]
    fn the_summary_counts_groups_or_children() {
        let mut counts = JobSummary::default();
        counts
            .summary
            .insert("api".into(), TaskGroupSummary { running: 2, queued: 1, ..TaskGroupSummary::default() });
        assert_eq!(
            summary(&style(), &web(), &counts),
            "\nSummary\n\
             Task Group  Queued  Starting  Running  Failed  Complete  Lost  Unknown\n\
             api         1       0         2        0       0         0     0\n"
        );
        let parent = Job { periodic: Some(PeriodicConfig::default()), ..web() };
        assert_eq!(
            summary(&style(), &parent, &counts),
            "\nChildren Job Summary\nPending  Running  Dead\n0        0        0\n"
        );
        assert_eq!(children(&style(), &parent, &[]), "\nNo instances of periodic job found\n");
    }

    #[test]
    fn a_failure_is_explained_only_while_something_waits() {
        let eval = |id: &str, status: &str, failed: bool| Evaluation {
            id: id.into(),
            status: status.into(),
            failed_tg_allocs: failed
                .then(|| ("api".to_string(), AllocationMetric::default()))
                .into_iter()
                .collect(),
            ..Evaluation::default()
        };
        let failed = eval("1", "complete", true);
        assert_eq!(placement_failure(&style(), std::slice::from_ref(&failed)), "");
        assert_eq!(
            placement_failure(&style(), &[eval("2", "blocked", false), failed]),
            "\nPlacement Failure\nTask Group \"api\":\n  * No nodes were eligible for evaluation\n"
        );
    }
}
