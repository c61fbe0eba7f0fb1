//! The output of `job plan`: the differences, then what the scheduler would do.

use std::collections::BTreeMap;

use api::{FieldDiff, JobDiff, JobPlanResponse, ObjectDiff, TaskDiff, TaskGroupDiff};
use base::Time;
use model::document::{AllocationListStub, Job};

use super::metrics;
use crate::output::{OutputStyle, Paint, Table};

/// The whole plan; `again` is the command that registers it.
pub(crate) fn whole(style: &OutputStyle, job: &Job, answer: &JobPlanResponse, again: &str) -> String {
    let mut text = planned(style, job, answer);
    let index = style.paint(Paint::Bold, &format!("Job Modify Index: {}", answer.job_modify_index));
    text.push_str(&format!(
        "{index}\nTo submit the job with version verification run:\n\n{again}\n\n\
         When running the job with the check-index flag, the job will only be run if the\n\
         job modify index given matches the server-side version. If the index has\n\
         changed, another user has modified the job and the plan's results are\n\
         potentially invalid.\n"
    ));
    text
}

/// The plans of a job in several regions. Each region has indexes of its own, so none is checked by `again`.
pub(crate) fn in_regions(
    style: &OutputStyle,
    job: &Job,
    answers: &[(String, JobPlanResponse)],
    again: &str,
) -> String {
    let mut text = String::new();
    for (region, answer) in answers {
        let heading = style.paint(Paint::Bold, &format!("Region: {region:?}"));
        text.push_str(&format!("{heading}\n{}", planned(style, job, answer)));
    }
    text.push_str(&format!("To submit the job run:\n\n{again}\n"));
    text
}

fn planned(style: &OutputStyle, job: &Job, answer: &JobPlanResponse) -> String {
    let mut text = String::new();
    if let Some(diff) = &answer.diff {
        text.push_str(&differences(style, diff));
        text.push('\n');
    }
    text.push_str(&style.paint(Paint::Bold, "Scheduler dry-run:"));
    text.push('\n');
    text.push_str(&dry_run(style, job, answer));
    text.push('\n');
    if !answer.warnings.is_empty() {
        let warnings = format!("Job Warnings:\n{}", answer.warnings.trim_end());
        text.push_str(&format!("{}\n\n", style.paint(Paint::Warning, &warnings)));
    }
    let preempted = answer.annotations.as_ref().map_or(&[][..], |found| &found.preempted_allocs);
    if !preempted.is_empty() {
        text.push_str(&style.section("Preemptions", &preemptions(style, preempted)));
        text.push('\n');
    }
    text
}

/// Rows of one kind that are shown; when there are more, they are counted together.
const PREEMPTIONS_SHOWN: usize = 10;

/// Allocations that would be preempted: one by one, or else counted by job, or else by type.
fn preemptions(style: &OutputStyle, preempted: &[AllocationListStub]) -> String {
    if preempted.len() < PREEMPTIONS_SHOWN {
        let mut table = Table::new(["Alloc ID", "Job ID", "Task Group"]);
        for alloc in preempted {
            table.row([style.id(&alloc.id), alloc.job_id.clone(), alloc.task_group.clone()]);
        }
        return table.render();
    }
    let mut jobs: BTreeMap<(&str, &str, &str), usize> = BTreeMap::new();
    let mut types: BTreeMap<&str, usize> = BTreeMap::new();
    for alloc in preempted {
        *jobs.entry((&alloc.job_id, &alloc.namespace, &alloc.job_type)).or_default() += 1;
        *types.entry(&alloc.job_type).or_default() += 1;
    }
    if jobs.len() < PREEMPTIONS_SHOWN {
        let mut table = Table::new(["Job ID", "Namespace", "Job Type", "Preemptions"]);
        for ((id, namespace, kind), count) in jobs {
            table.row([id.to_string(), namespace.to_string(), kind.to_string(), count.to_string()]);
        }
        return table.render();
    }
    let mut table = Table::new(["Job Type", "Preemptions"]);
    types.into_iter().for_each(|(kind, count)| table.row([kind.to_string(), count.to_string()]));
    table.render()
}

fn dry_run(style: &OutputStyle, job: &Job, answer: &JobPlanResponse) -> String {
    let mut text = String::new();
    if answer.failed_tg_allocs.is_empty() {
        let line = style.paint(Paint::Green, "All tasks successfully allocated.");
        text.push_str(&format!("- {line}\n"));
    } else {
        let per_node = matches!(job.kind.as_deref(), Some("system" | "sysbatch"));
        let on = if per_node { " on all nodes" } else { "" };
        let line = format!("WARNING: Failed to place all allocations{on}.");
        text.push_str(&format!("- {}\n", style.paint(Paint::Yellow, &line)));
        for (group, metric) in &answer.failed_tg_allocs {
            let failed = metric.coalesced_failures + 1;
            let noun = if failed == 1 { "allocation" } else { "allocations" };
            let head = format!("Task Group \"{group}\" (failed to place {failed} {noun}):");
            text.push_str(&format!("  {}\n", style.paint(Paint::Yellow, &head)));
            text.push_str(&metrics::reasons(style, metric, "    "));
        }
    }
    let rolling = answer.created_evals.iter().find(|eval| eval.triggered_by == "rolling-update");
    if let Some(eval) = rolling.filter(|eval| eval.wait.0.0 > 0) {
        text.push_str(&format!("- Rolling update, next evaluation will be in {}.\n", eval.wait.0));
    }
    let launch = answer.next_periodic_launch.time();
    if launch != Time::ZERO {
        let (at, span) = (style.time(launch.0), style.ago(launch.0));
        text.push_str(&format!("- If submitted now, next periodic launch would be at {at} ({span}).\n"));
    }
    text
}

const MARKERS: [(&str, &str, Paint); 3] =
    [("Added", "+ ", Paint::Green), ("Deleted", "- ", Paint::Red), ("Edited", "+/- ", Paint::Yellow)];

/// The sign of a change, and its length without colours; nothing for what stays.
fn marker(style: &OutputStyle, kind: &str) -> (String, usize) {
    let found = MARKERS.iter().find(|(name, ..)| *name == kind);
    found.map_or((String::new(), 0), |(_, sign, paint)| (style.paint(*paint, sign), sign.len()))
}

fn widest<'a>(kinds: impl Iterator<Item = &'a String>) -> usize {
    let widths =
        kinds.map(|kind| MARKERS.iter().find(|(name, ..)| name == kind).map_or(0, |(_, sign, _)| sign.len()));
    widths.max().unwrap_or(0)
}

/// The differences, as a tree.
pub(crate) fn differences(style: &OutputStyle, diff: &JobDiff) -> String {
    let bold = |text: String| style.paint(Paint::Bold, &text);
    let mut text = format!("{}{}\n", marker(style, &diff.kind).0, bold(format!("Job: {:?}", diff.id)));
    let groups = diff.task_groups.iter().map(|group| &group.kind);
    if diff.kind == "Edited" || style.verbose {
        let own = parts(style, &diff.fields, &diff.objects, 0);
        text.push_str(&own);
        if !own.is_empty() {
            text.push('\n');
        }
    }
    let widest = widest(groups);
    for group in diff.task_groups.iter() {
        text.push_str(&of_group(style, group, widest));
        text.push('\n');
    }
    text
}

fn of_group(style: &OutputStyle, group: &TaskGroupDiff, widest: usize) -> String {
    let (sign, width) = marker(style, &group.kind);
    let name = style.paint(Paint::Bold, &format!("Task Group: {:?}", group.name));
    let mut text = format!("{sign}{}{name}", " ".repeat(widest - width));
    if !group.updates.is_empty() {
        let parts: Vec<String> =
            group.updates.iter().map(|(what, count)| counted(style, what, *count)).collect();
        text.push_str(&format!(" ({})", parts.join(", ")));
    }
    text.push('\n');
    if group.kind == "Edited" || style.verbose {
        text.push_str(&parts(style, &group.fields, &group.objects, 2));
    }
    let widest = self::widest(group.tasks.iter().map(|task| &task.kind));
    text.extend(group.tasks.iter().map(|task| of_task(style, task, widest)));
    text
}

fn counted(style: &OutputStyle, what: &str, count: u64) -> String {
    let paint = match what {
        "create" => Some(Paint::Green),
        "destroy" => Some(Paint::Red),
        "migrate" | "canary" | "create/destroy update" => Some(Paint::Yellow),
        _ => None,
    };
    let text = format!("{count} {what}");
    paint.map_or(text.clone(), |paint| style.paint(paint, &text))
}

fn of_task(style: &OutputStyle, task: &TaskDiff, widest: usize) -> String {
    let (sign, width) = marker(style, &task.kind);
    let name = style.paint(Paint::Bold, &format!("Task: {:?}", task.name));
    let mut text = format!("  {sign}{}{name}", " ".repeat(widest - width));
    if !task.annotations.is_empty() {
        text.push_str(&format!(" ({})", task.annotations.join(", ")));
    }
    text.push('\n');
    if task.kind == "Edited" || style.verbose && task.kind != "None" {
        text.push_str(&parts(style, &task.fields, &task.objects, 4));
    }
    text
}

/// Fields and objects that changed, and with `-verbose`, or as Nomad's command line, also the others.
fn parts(style: &OutputStyle, fields: &[FieldDiff], objects: &[ObjectDiff], indent: usize) -> String {
    let shows_unchanged = style.verbose || style.is_stock();
    let fields: Vec<&FieldDiff> =
        fields.iter().filter(|field| shows_unchanged || field.kind != "None").collect();
    let kinds = fields.iter().map(|field| &field.kind).chain(objects.iter().map(|object| &object.kind));
    let widest = widest(kinds);
    let longest = fields.iter().map(|field| field.name.len()).max().unwrap_or(0);
    let start = |kind: &str| {
        let (sign, width) = marker(style, kind);
        format!("{}{sign}{}", " ".repeat(indent), " ".repeat(widest - width))
    };
    let mut text = String::new();
    for field in fields {
        let pad = " ".repeat(longest - field.name.len());
        text.push_str(&format!("{}{}: {pad}{}\n", start(&field.kind), field.name, value(field)));
    }
    for object in objects {
        let inner = parts(style, &object.fields, &object.objects, indent + 2);
        let end = format!("{}{}}}\n", " ".repeat(indent), " ".repeat(widest));
        text.push_str(&format!("{}{} {{\n{inner}{end}", start(&object.kind), object.name));
    }
    text
}

fn value(field: &FieldDiff) -> String {
    let mut text = match field.kind.as_str() {
        "Deleted" => format!("{:?}", field.old),
        "Edited" => format!("{:?} => {:?}", field.old, field.new),
        _ => format!("{:?}", field.new),
    };
    if !field.annotations.is_empty() {
        text.push_str(&format!(" ({})", field.annotations.join(", ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer() -> JobPlanResponse {
        let text = r#"{"JobModifyIndex": 7, "Diff": {"Type": "Edited", "ID": "web", "TaskGroups": [
            {"Type": "Edited", "Name": "g", "Updates": {"create": 2, "in-place update": 10},
             "Fields": [{"Type": "Edited", "Name": "Count", "Old": "10", "New": "12",
                         "Annotations": ["forces create"]}],
             "Tasks": [{"Type": "Edited", "Name": "t", "Annotations": ["forces create/destroy update"],
                "Objects": [{"Type": "Edited", "Name": "Config", "Fields": [
                    {"Type": "Edited", "Name": "command", "Old": "a", "New": "b"},
                    {"Type": "None", "Name": "args[0]", "Old": "x", "New": "x"}]}]},
                {"Type": "None", "Name": "u"}]}]}}"#;
        model::document::input::from_slice(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_plan_shows_what_changes_and_how_to_go_on() {
        let text = whole(&OutputStyle::for_tests(), &Job::default(), &answer(), "sojourn job run web.hcl");
        let expected = "+/- Job: \"web\"\n\
            +/- Task Group: \"g\" (2 create, 10 in-place update)\n  \
            +/- Count: \"10\" => \"12\" (forces create)\n  \
            +/- Task: \"t\" (forces create/destroy update)\n    \
            +/- Config {\n      \
            +/- command: \"a\" => \"b\"\n        }\n      \
            Task: \"u\"\n\n\n\
            Scheduler dry-run:\n- All tasks successfully allocated.\n\n\
            Job Modify Index: 7\n";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.contains("\n\nsojourn job run web.hcl\n\n"), "{text}");
    }

    #[test]
    fn preempted_allocations_are_listed_or_counted() {
        let alloc = |number: usize, job: usize| AllocationListStub {
            id: format!("{number:08}-1"),
            job_id: format!("job-{job:02}"),
            namespace: "default".into(),
            job_type: "service".into(),
            task_group: "web".into(),
            ..AllocationListStub::default()
        };
        let style = OutputStyle::for_tests();
        let one = preemptions(&style, &[alloc(1, 1)]);
        assert_eq!(one, "Alloc ID  Job ID  Task Group\n00000001  job-01  web\n");
        let two_jobs: Vec<_> = (0..12).map(|number| alloc(number, number % 2)).collect();
        let counted = preemptions(&style, &two_jobs);
        assert!(
            counted.ends_with("job-00  default    service   6\njob-01  default    service   6\n"),
            "{counted}"
        );
        let many: Vec<_> = (0..12).map(|number| alloc(number, number)).collect();
        assert_eq!(preemptions(&style, &many), "Job Type  Preemptions\nservice   12\n");
    }

    #[test]
    fn failed_placements_are_listed_by_group() {
        let metric = model::document::AllocationMetric {
            nodes_evaluated: 3,
            nodes_exhausted: 3,
            coalesced_failures: 4,
            ..Default::default()
        };
        let answer = JobPlanResponse {
            failed_tg_allocs: [("g".to_string(), metric)].into_iter().collect(),
            ..JobPlanResponse::default()
        };
        let text = whole(&OutputStyle::for_tests(), &Job::default(), &answer, "x");
        let head = "Scheduler dry-run:\n- WARNING: Failed to place all allocations.\n  \
            Task Group \"g\" (failed to place 5 allocations):\n    ";
        assert!(text.starts_with(head), "{text}");
    }
}
