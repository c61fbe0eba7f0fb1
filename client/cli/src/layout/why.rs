//! The output of `why`: an explanation that fits on one screen.

use api::{AllocWhy, AllocationTransition, Decision, EvalWhy, GroupNow, JobWhy, Wait};
use base::Time;
use model::document::{GroupReasons, Lack, NearMiss};

use super::{cell, metrics};
use crate::output::{OutputStyle, Paint, Table, fields};

/// Transitions that are shown; all of them are in `history alloc`.
const TRANSITIONS_SHOWN: usize = 8;

pub(crate) fn job(style: &OutputStyle, why: &JobWhy) -> String {
    let stopped = if why.stopped { " (stopped)" } else { "" };
    let mut text =
        format!("{}\n", style.paint(Paint::Bold, &format!("Job {:?} is {}{stopped}", why.id, why.status)));
    for (name, now) in &why.groups {
        text.push_str(&format!("  {name}: {}\n", counts(now)));
    }
    text.push_str(&waiting(style, &why.waits_for));
    match &why.evaluation {
        None => text.push_str("\nNo scheduler has looked at it yet.\n"),
        Some(eval) => text.push_str(&decided(style, eval)),
    }
    text
}

pub(crate) fn eval(style: &OutputStyle, why: &EvalWhy) -> String {
    let head = format!("Evaluation {} of job {:?} is {}", style.id(&why.id), why.job_id, why.status);
    let mut text = format!("{}\n", style.paint(Paint::Bold, &head));
    text.push_str(&format!("  triggered by: {}\n", why.triggered_by));
    if !why.status_description.is_empty() {
        text.push_str(&format!("  {}\n", why.status_description));
    }
    text + &waiting(style, &why.waits_for) + &decided(style, why)
}

pub(crate) fn alloc(style: &OutputStyle, why: &AllocWhy) -> String {
    let head = format!("{} ({}) is {} on {}", why.name, style.id(&why.id), why.client_status, why.node_name);
    let mut text = format!("{}\n", style.paint(Paint::Bold, &head));
    let wanted = format!("{} {}", why.desired_status, why.desired_description);
    text.push_str(&format!("  wanted: {}\n", wanted.trim()));
    if !why.client_description.is_empty() {
        text.push_str(&format!("  client description: {}\n", why.client_description));
    }
    text.push_str(&waiting(style, &why.waits_for));
    text.push_str(&provenance(style, &why.decision));
    if let Some(placed) = why.placed.as_ref().filter(|placed| !placed.score_meta_data.is_empty()) {
        let title = "Scores when the first of its group was placed, the best node first";
        text.push_str(&style.section(title, &metrics::scores(style, placed)));
        let seen = format!(
            "{} nodes looked at, {} ruled out by checks, {} without room\n",
            placed.nodes_evaluated, placed.nodes_filtered, placed.nodes_exhausted
        );
        text.push_str(&seen);
    }
    if why.chain.len() > 1 {
        let mut table = Table::new(["ID", "Node", "Desired", "Status", "Why"]);
        for link in why.chain.iter() {
            let own = if link.id == why.id { " *" } else { "" };
            let id = format!("{}{own}", style.id(&link.id));
            let [node, desired] = [&link.node_name, &link.desired_status].map(String::clone);
            table.row([id, node, desired, link.client_status.clone(), link.desired_description.clone()]);
        }
        text.push_str(&style.section("One after the other", &table.render()));
    }
    text + &transitions(style, &why.transitions)
}

fn counts(now: &GroupNow) -> String {
    let named = [
        (now.wanted, "wanted"),
        (now.running, "running"),
        (now.starting, "starting"),
        (now.queued, "without a place"),
        (now.unknown, "unknown"),
        (now.failed, "failed"),
        (now.lost, "lost"),
        (now.complete, "complete"),
    ];
    let parts: Vec<String> =
        named.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}")).collect();
    if parts.is_empty() { "nothing".to_string() } else { parts.join(", ") }
}

fn waiting(style: &OutputStyle, waits: &[Wait]) -> String {
    if waits.is_empty() {
        return String::new();
    }
    let lines = waits.iter().map(|wait| {
        let until = wait.until.as_ref().map(|until| until.time()).filter(|until| *until != Time::ZERO);
        let until = until.map(|until| format!(" at {} ({})", style.time(until.0), style.ago(until.0)));
        let by = if wait.eval_id.is_empty() {
            String::new()
        } else {
            format!(" [evaluation {}]", style.id(&wait.eval_id))
        };
        format!("  * {}{}{by}\n", wait.what, until.unwrap_or_default())
    });
    style.section("Waits for", &lines.collect::<String>())
}

fn decided(style: &OutputStyle, why: &EvalWhy) -> String {
    let mut text = String::new();
    for (name, group) in &why.groups {
        text.push_str(&of_group(style, name, group));
    }
    text + &provenance(style, &why.decision)
}

fn of_group(style: &OutputStyle, name: &str, group: &GroupReasons) -> String {
    let Some(failed) = &group.failed else {
        let desired = &group.desired;
        let named = [
            (desired.place, "placed"),
            (desired.in_place_update, "updated in place"),
            (desired.destructive_update, "replaced"),
            (desired.migrate, "moved"),
            (desired.stop, "stopped"),
            (desired.ignore, "left as they are"),
        ];
        let parts = named.iter().filter(|(count, _)| *count > 0);
        let parts: Vec<String> = parts.map(|(count, what)| format!("{count} {what}")).collect();
        let parts = if parts.is_empty() { "nothing to do".to_string() } else { parts.join(", ") };
        return style.section(&format!("Group {name:?}"), &format!("  {parts}\n"));
    };
    let version = group.older_version.map(|version| format!(" of version {version}")).unwrap_or_default();
    let title = format!("Group {name:?}: no place for {}{version}", plural(group.missing));
    let seen = format!(
        "{} nodes looked at, {} ruled out by checks, {} without room",
        failed.nodes_evaluated, failed.nodes_filtered, failed.nodes_exhausted
    );
    let mut text = style.section(&title, &format!("  {seen}\n{}", metrics::reasons(style, failed, "    ")));
    if !group.missing_names.is_empty() {
        let more = group.missing.saturating_sub(group.missing_names.len() as u64);
        let more = if more > 0 { ", ..." } else { "" };
        text.push_str(&format!("  Missing: {}{more}\n", group.missing_names.join(", ")));
    }
    if !group.nearest.is_empty() {
        text.push_str("  Closest nodes:\n");
        text.extend(group.nearest.iter().map(near));
    }
    text + &hints(style, group)
}

fn hints(style: &OutputStyle, group: &GroupReasons) -> String {
    let tried = match group.tried {
        1 => "1 change was tried".to_string(),
        tried => format!("{tried} changes were tried"),
    };
    if !group.would_fit_if.is_empty() {
        let title = style.paint(Paint::Green, "Would fit if (each one tried out):");
        let hints = group.would_fit_if.iter().map(|change| format!("    * {change}\n"));
        return format!("  {title}\n{}", hints.collect::<String>());
    }
    if group.nodes == 0 {
        return "  The cluster has no nodes.\n".to_string();
    }
    let rest = if group.hints_cut_short { ", not all there are" } else { "" };
    format!("  Nothing tried here helps by itself ({tried}{rest}).\n")
}

fn plural(missing: u64) -> String {
    format!("{missing} allocation{}", if missing == 1 { "" } else { "s" })
}

fn near(miss: &NearMiss) -> String {
    let lacks: Vec<String> = miss.lacks.iter().map(lack).collect();
    format!("    * {}: {}\n", miss.node_name, lacks.join("; "))
}

fn lack(lack: &Lack) -> String {
    if lack.asked == 0 {
        return lack.what.clone();
    }
    let unit = if lack.unit.is_empty() { String::new() } else { format!(" {}", lack.unit) };
    let stopping = match lack.stopping {
        0 => String::new(),
        stopping => format!(", {stopping} more once what is being stopped there has ended"),
    };
    format!("{}{unit} more {} (asked {}, free {}{stopping})", lack.short, lack.what, lack.asked, lack.free)
}

/// How the explanation was obtained: recomputed from the log, or not.
fn provenance(style: &OutputStyle, decision: &Decision) -> String {
    if decision.snapshot == 0 {
        return if decision.note.is_empty() { String::new() } else { format!("\n{}\n", decision.note) };
    }
    let how = match (decision.recomputed, decision.as_logged) {
        (true, Some(true)) => "made again from the log: the same plan",
        (true, None) => "made again from the log",
        (true, Some(false)) => "made again from the log, and it is NOT what the log has: please report this",
        (false, _) => "not made again",
    };
    let mut block = vec![
        ("Evaluation", style.id(&decision.eval_id)),
        ("State", cell(decision.snapshot)),
        ("Time", style.time(decision.time.time().0)),
        ("Decision", how.to_string()),
    ];
    if !decision.note.is_empty() {
        block.push(("Note", decision.note.clone()));
    }
    style.section("Decided on", &fields(&block))
}

fn transitions(style: &OutputStyle, all: &[AllocationTransition]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["Event", "Time", "Desired", "Client", "Cause"]);
    let left = all.len().saturating_sub(TRANSITIONS_SHOWN);
    for one in &all[left..] {
        table.row([
            format!("{}.{}", one.index, one.ordinal),
            style.time(one.time.time().0),
            one.new_desired.clone(),
            one.new_client.clone(),
            one.cause.clone(),
        ]);
    }
    let more = if left > 0 { format!("{left} earlier ones: see history alloc\n") } else { String::new() };
    style.section("What became of it", &(table.render() + &more))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_explanation_fits_on_one_screen() {
        let text = r#"{"ID": "web", "Status": "pending", "Groups": {"g": {"Wanted": 3, "Queued": 2, "Running": 1}},
            "WaitsFor": [{"What": "room on any node", "EvalID": "0123456789"}],
            "Evaluation": {"ID": "0123456789", "Groups": {"g": {
                "Missing": 2, "Failed": {"NodesEvaluated": 2, "NodesExhausted": 2,
                    "DimensionExhausted": {"memory": 2}},
                "Nearest": [{"NodeName": "n1", "Lacks": [
                    {"What": "memory", "Unit": "MiB", "Asked": 4096, "Free": 3000, "Short": 1096}]}],
                "WouldFitIf": ["task \"t\" asked for 3000 MiB of memory instead of 4096"]}},
                "Decision": {"EvalID": "abcdefghij", "Snapshot": 7, "Recomputed": true, "AsLogged": true}}}"#;
        let why: JobWhy = model::document::input::from_slice(text.as_bytes()).unwrap();
        let expected = "Job \"web\" is pending\n  g: 3 wanted, 1 running, 2 without a place\n\n\
            Waits for\n  * room on any node [evaluation 01234567]\n\n\
            Group \"g\": no place for 2 allocations\n  \
            2 nodes looked at, 0 ruled out by checks, 2 without room\n    \
            * Resources exhausted on 2 nodes\n    * Dimension \"memory\" exhausted on 2 nodes\n  \
            Closest nodes:\n    * n1: 1096 MiB more memory (asked 4096, free 3000)\n  \
            Would fit if (each one tried out):\n    * task \"t\" asked for 3000 MiB of memory instead of 4096\n\n\
            Decided on\nEvaluation = abcdefgh\nState      = 7\nTime       = N/A\n\
            Decision   = made again from the log: the same plan";
        let text = job(&OutputStyle::for_tests(), &why);
        assert!(text.starts_with(expected), "{text}");
        assert!(text.lines().count() < 24, "one screen");
    }

    #[test]
    fn only_what_was_tried_is_said_not_to_help() {
        let style = OutputStyle::for_tests();
        let group = GroupReasons { nodes: 2, tried: 12, ..GroupReasons::default() };
        assert_eq!(hints(&style, &group), "  Nothing tried here helps by itself (12 changes were tried).\n");
        let cut = GroupReasons { hints_cut_short: true, ..group.clone() };
        let text = "  Nothing tried here helps by itself (12 changes were tried, not all there are).\n";
        assert_eq!(hints(&style, &cut), text);
        let none = GroupReasons { nodes: 0, ..group };
        assert_eq!(hints(&style, &none), "  The cluster has no nodes.\n");
    }

    #[test]
    fn room_that_is_being_freed_is_told() {
        let lacks = Lack {
            what: "memory".into(),
            unit: "MiB".into(),
            asked: 500,
            free: 100,
            short: 400,
            stopping: 450,
        };
        let text =
            "400 MiB more memory (asked 500, free 100, 450 more once what is being stopped there has ended)";
        assert_eq!(lack(&lacks), text);
    }
}
