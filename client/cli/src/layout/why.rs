//! The output of `why`: an explanation that fits on one screen.

use api::{
    AllocWhy, AllocationTransition, Decision, DeploymentWhy, DispatchNow, EvalWhy, GroupNow, JobWhy, Link,
    MissingSlot, NodeWhy, Wait, WhyNot,
};
use base::Time;

use super::{cell, metrics, placement, plural};
use crate::output::{OutputStyle, Paint, Table, fields};

/// Transitions that are shown; all of them are in `history alloc`.
const TRANSITIONS_SHOWN: usize = 8;

pub(crate) fn job(style: &OutputStyle, why: &JobWhy) -> String {
    let stopped = if why.stopped { " (stopped)" } else { "" };
    let mut text =
        format!("{}\n", style.paint(Paint::Bold, &format!("Job {:?} is {}{stopped}", why.id, why.status)));
    for (name, now) in &why.groups {
        text.push_str(&format!("  {name}: {}\n", counts(now)));
        text.extend(now.missing.iter().map(|slot| missing(style, slot)));
    }
    if let Some(dispatch) = &why.dispatch {
        text.push_str(&format!("  dispatch it: {}\n", dispatched(&why.id, dispatch)));
    }
    text.push_str(&waiting(style, &why.waits_for));
    if let Some(deployment) = &why.deployment {
        let title = format!("Deployment {} is {}", style.id(&deployment.id), deployment.status);
        text.push_str(&style.section(&title, &progress(style, deployment)));
    }
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
    if why.collected {
        text.push_str("  it has been forgotten: this is what the log still says\n");
    }
    text.push_str(&state_of(style, why));
    text.push_str(&waiting(style, &why.waits_for));
    text.push_str(&provenance(style, &why.decision));
    if let Some(placed) = why.placed.as_ref().filter(|placed| !placed.score_meta_data.is_empty()) {
        let title = "Scores when the first of its group was placed, the best node first";
        text.push_str(&style.section(title, &metrics::named_scores(style, placed, &why.node_names)));
        let seen = format!(
            "{} looked at, {} ruled out by checks, {} without room\n",
            plural(placed.nodes_evaluated, "node"),
            placed.nodes_filtered,
            placed.nodes_exhausted
        );
        text.push_str(&seen);
    }
    if why.chain.len() > 1 {
        let mut table = Table::new(["ID", "Node", "Desired", "Status", "Why", "Tasks"]);
        for link in why.chain.iter() {
            let own = if link.id == why.id { " *" } else { "" };
            let id = format!("{}{own}", style.id(&link.id));
            let [node, desired] = [&link.node_name, &link.desired_status].map(String::clone);
            let [status, why] = [&link.client_status, &link.desired_description].map(String::clone);
            table.row([id, node, desired, status, why, link.trouble.clone()]);
        }
        text.push_str(&style.section("One after the other", &table.render()));
    }
    text + &transitions(style, &why.transitions)
}

pub(crate) fn deployment(style: &OutputStyle, why: &DeploymentWhy) -> String {
    let head = format!(
        "Deployment {} of job {:?} version {} is {}",
        style.id(&why.id),
        why.job_id,
        why.job_version,
        why.status
    );
    format!("{}\n", style.paint(Paint::Bold, &head)) + &progress(style, why) + &waiting(style, &why.waits_for)
}

pub(crate) fn node(style: &OutputStyle, why: &NodeWhy) -> String {
    let work = if why.takes_work { "takes work" } else { "takes no work" };
    let head = format!("Node {:?} ({}) is {} and {work}", why.name, style.id(&why.id), why.status);
    let mut text = format!("{}\n", style.paint(Paint::Bold, &head));
    text.extend(why.obstacles.iter().map(|obstacle| format!("  * {obstacle}\n")));
    let named = [
        (why.running, "running"),
        (why.starting, "starting"),
        (why.stopping, "being stopped"),
        (why.unknown, "unknown"),
    ];
    text.push_str(&format!("  allocations: {}\n", named_counts(&named)));
    let mut table = Table::new(["Resource", "Free", "Used", "Of which stopping", "Capacity"]);
    for room in &why.room {
        let free = room.capacity.saturating_sub(room.used);
        let cells =
            [free, room.used, room.stopping, room.capacity].map(|amount| format!("{amount} {}", room.unit));
        table.row([vec![room.what.clone()], cells.to_vec()].concat());
    }
    text.push_str(&style.section("Room", &table.render()));
    text.push_str(&waiting(style, &why.waits_for));
    if !why.messages.is_empty() {
        let line = |one: &model::document::NodeEvent| {
            format!("  * {} {}: {}\n", style.time(one.timestamp.time().0), one.subsystem, one.message)
        };
        text.push_str(&style.section("Said of it", &why.messages.iter().map(line).collect::<String>()));
    }
    text
}

/// What stands in the way of a job on a node.
pub(crate) fn not(style: &OutputStyle, why: &WhyNot) -> String {
    let stopped = if why.stopped { ", which is stopped" } else { "" };
    let head =
        format!("Job {:?}{stopped} on node {:?} ({})", why.job_id, why.node_name, style.id(&why.node_id));
    let mut text = format!("{}\n", style.paint(Paint::Bold, &head));
    for group in &why.groups {
        text += &format!("  {}: {} there, {} everywhere\n", group.group, group.there, group.everywhere);
        if group.lacks.is_empty() {
            text +=
                "    nothing stands in the way of one more: others were preferred, or no more are wanted\n";
        }
        text.extend(group.lacks.iter().map(|lack| format!("    * {}\n", placement::lack(lack))));
    }
    text
}

fn missing(style: &OutputStyle, slot: &MissingSlot) -> String {
    let until = slot.until.as_ref().map(|until| until.time().0);
    let until = until.map(|until| format!(" at {} ({})", style.time(until), style.ago(until)));
    let last = slot.last.as_ref();
    let trouble = last.map(|last| last.trouble.as_str()).filter(|trouble| !trouble.is_empty());
    let trouble = trouble.map(|trouble| format!(" ({trouble})")).unwrap_or_default();
    format!("    missing {}: {}{}{trouble}\n", slot.name, slot.why, until.unwrap_or_default())
}

/// The command that dispatches the job, with what it needs.
fn dispatched(job: &str, dispatch: &DispatchNow) -> String {
    let mut text = "job dispatch".to_string();
    dispatch.meta_required.iter().for_each(|key| text.push_str(&format!(" -meta {key}=...")));
    dispatch.meta_optional.iter().for_each(|key| text.push_str(&format!(" [-meta {key}=...]")));
    text.push_str(&format!(" {job}"));
    match dispatch.payload.as_str() {
        "required" => text.push_str(" <payload file>"),
        "forbidden" => {}
        _ => text.push_str(" [payload file]"),
    }
    text
}

/// How far each group of a deployment is, and what went wrong.
fn progress(style: &OutputStyle, why: &DeploymentWhy) -> String {
    let mut text = String::new();
    if !why.status_description.is_empty() {
        text.push_str(&format!("  {}\n", why.status_description));
    }
    for (name, group) in &why.groups {
        let mut line = format!("  {name}: {} of {} healthy", group.healthy, group.desired_total);
        if group.desired_canaries > 0 {
            let how = match (group.promoted, group.auto_promote) {
                (true, _) => "promoted",
                (false, true) => "promoted by themselves",
                (false, false) => "promoted by hand",
            };
            let (healthy, wanted) = (group.healthy_canaries, group.desired_canaries);
            let canaries = if wanted == 1 { "canary" } else { "canaries" };
            line.push_str(&format!(", {healthy} of {wanted} {canaries} healthy ({how})"));
        }
        line.push_str(&format!(", {} placed, {} unhealthy", group.placed, group.unhealthy));
        if let Some(by) = group.require_progress_by.as_ref().filter(|_| why.status == "running") {
            let by = by.time().0;
            line.push_str(&format!(", fails without progress by {} ({})", style.time(by), style.ago(by)));
        }
        text.push_str(&format!("{line}\n"));
    }
    for link in &why.unhealthy {
        let trouble = if link.trouble.is_empty() { String::new() } else { format!(": {}", link.trouble) };
        let id = style.id(&link.id);
        text.push_str(&format!(
            "  unhealthy: {id} on {} is {}{trouble}\n",
            link.node_name, link.client_status
        ));
    }
    text
}

/// How the tasks are, what follows a failure, and who made room.
fn state_of(style: &OutputStyle, why: &AllocWhy) -> String {
    let mut text = String::new();
    for (name, task) in &why.tasks {
        let mut line = format!("  task {name:?} is {}", task.state);
        if let Some(code) = task.exit_code {
            line.push_str(&format!(", exit code {code}"));
        }
        if task.restarts > 0 {
            line.push_str(&format!(", restarted {} times", task.restarts));
        }
        if !task.trouble.is_empty() {
            line.push_str(&format!(": {}", task.trouble));
        }
        text.push_str(&format!("{line}\n"));
    }
    if let Some(healthy) = why.healthy {
        let verdict = if healthy { "healthy" } else { "unhealthy" };
        text.push_str(&format!("  {verdict} in deployment {}\n", style.id(&why.deployment_id)));
    }
    if let Some(reschedule) = &why.reschedule {
        let mut line = match reschedule.attempts_max {
            None => format!(
                "  rescheduled {}: {} used",
                reschedule.policy,
                plural(reschedule.attempts, "attempt")
            ),
            Some(most) => format!(
                "  rescheduled {}: {} of {} used",
                reschedule.policy,
                reschedule.attempts,
                plural(most, "attempt")
            ),
        };
        if let Some(next) = &reschedule.next {
            let next = next.time().0;
            line.push_str(&format!(", next at {} ({})", style.time(next), style.ago(next)));
        }
        if !reschedule.why_not.is_empty() {
            line.push_str(&format!(", not again: {}", reschedule.why_not));
        }
        text.push_str(&format!("{line}\n"));
    }
    if let Some(disconnect) = &why.disconnect {
        let replaced = if disconnect.replace { "replaced" } else { "not replaced" };
        let lost = disconnect.lost_at.as_ref().map(|at| format!(" at {}", style.time(at.time().0)));
        text.push_str(&format!(
            "  while its node is disconnected: {replaced}, lost after {}{}, then {}\n",
            disconnect.lost_after.0,
            lost.unwrap_or_default(),
            disconnect.reconcile
        ));
    }
    let link = |link: &Link| format!("{} on {}", style.id(&link.id), link.node_name);
    if !why.preempted.is_empty() {
        let victims: Vec<String> = why.preempted.iter().map(link).collect();
        text.push_str(&format!("  preempted: {}\n", victims.join(", ")));
    }
    if let Some(by) = &why.preempted_by {
        text.push_str(&format!("  preempted by {}\n", link(by)));
    }
    text
}

pub(crate) fn named_counts(named: &[(u64, &str)]) -> String {
    let parts = named.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}"));
    let parts: Vec<String> = parts.collect();
    if parts.is_empty() { "none".to_string() } else { parts.join(", ") }
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
    match named_counts(&named).as_str() {
        "none" => "nothing".to_string(),
        some => some.to_string(),
    }
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
        text.push_str(&placement::of_group(style, name, group));
    }
    text + &provenance(style, &why.decision)
}

/// How the explanation was obtained: recomputed from the log, or not.
fn provenance(style: &OutputStyle, decision: &Decision) -> String {
    if decision.snapshot == 0 {
        return if decision.note.is_empty() { String::new() } else { format!("\n{}\n", decision.note) };
    }
    let how = match (decision.recomputed, decision.as_logged) {
        (true, Some(true)) => "made again from the log: the same plan",
        (true, None) => "made again from the log",
        (true, Some(false)) => {
            "made again from the log by this release, which would decide otherwise than the log has it"
        }
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
    fn what_stands_in_the_way_on_a_node_is_listed_by_group() {
        let why: WhyNot = read(
            r#"{"JobID": "web", "NodeID": "0123456789", "NodeName": "n3", "Groups": [
                {"Group": "a", "There": 1, "Everywhere": 3},
                {"Group": "b", "Lacks": [{"What": "it is not eligible for scheduling"},
                    {"What": "memory", "Unit": "MiB", "Asked": 512, "Free": 500, "Short": 12}]}]}"#,
        );
        assert_eq!(
            not(&OutputStyle::for_tests(), &why),
            "Job \"web\" on node \"n3\" (01234567)\n  a: 1 there, 3 everywhere\n    \
            nothing stands in the way of one more: others were preferred, or no more are wanted\n  \
            b: 0 there, 0 everywhere\n    * it is not eligible for scheduling\n    \
            * 12 MiB more memory (asked 512, free 500)\n"
        );
    }

    #[test]
    fn a_deployment_shows_how_far_it_is_and_what_it_waits_for() {
        let why: DeploymentWhy = read(
            r#"{"ID": "0123456789", "JobID": "web", "JobVersion": 2, "Status": "running",
                "StatusDescription": "Deployment is running but requires manual promotion",
                "Groups": {"g": {"DesiredCanaries": 1, "HealthyCanaries": 1, "DesiredTotal": 3, "Placed": 2,
                    "Healthy": 1, "Unhealthy": 1}},
                "Unhealthy": [{"ID": "abcdefghij", "NodeName": "n1", "ClientStatus": "failed",
                    "Trouble": "t: Terminated: Exit Code: 3"}],
                "WaitsFor": [{"What": "deployment 0123456789: somebody to promote \"g\""}]}"#,
        );
        assert_eq!(
            deployment(&OutputStyle::for_tests(), &why),
            "Deployment 01234567 of job \"web\" version 2 is running\n  \
            Deployment is running but requires manual promotion\n  \
            g: 1 of 3 healthy, 1 of 1 canary healthy (promoted by hand), 2 placed, 1 unhealthy\n  \
            unhealthy: abcdefgh on n1 is failed: t: Terminated: Exit Code: 3\n\n\
            Waits for\n  * deployment 0123456789: somebody to promote \"g\"\n"
        );
    }

    #[test]
    fn a_node_shows_why_it_takes_no_work() {
        let why: NodeWhy = read(
            r#"{"ID": "0123456789", "Name": "n1", "Status": "ready", "Obstacles": ["it is not eligible for scheduling"],
                "Running": 2, "Stopping": 1,
                "Room": [{"What": "memory", "Unit": "MiB", "Capacity": 800, "Used": 600, "Stopping": 200}],
                "WaitsFor": [{"What": "web.g[0] to stop: alloc is being migrated"}]}"#,
        );
        assert_eq!(
            node(&OutputStyle::for_tests(), &why),
            "Node \"n1\" (01234567) is ready and takes no work\n  * it is not eligible for scheduling\n  \
            allocations: 2 running, 1 being stopped\n\nRoom\n\
            Resource  Free     Used     Of which stopping  Capacity\n\
            memory    200 MiB  600 MiB  200 MiB            800 MiB\n\n\
            Waits for\n  * web.g[0] to stop: alloc is being migrated\n"
        );
    }

    #[test]
    fn an_allocation_shows_exit_codes_and_what_follows_a_failure() {
        let why: AllocWhy = read(
            r#"{"Tasks": {"t": {"State": "dead", "Failed": true, "Restarts": 2, "ExitCode": 3,
                    "Trouble": "Terminated: Exit Code: 3"}},
                "Reschedule": {"Policy": "at most 2 times in 10m, each after 30s", "Attempts": 2, "AttemptsMax": 2,
                    "WhyNot": "the attempts of its reschedule policy are used up"},
                "Preempted": [{"ID": "abcdefghij", "NodeName": "n1"}]}"#,
        );
        assert_eq!(
            state_of(&OutputStyle::for_tests(), &why),
            "  task \"t\" is dead, exit code 3, restarted 2 times: Terminated: Exit Code: 3\n  \
            rescheduled at most 2 times in 10m, each after 30s: 2 of 2 attempts used, not again: \
            the attempts of its reschedule policy are used up\n  preempted: abcdefgh on n1\n"
        );
    }

    #[test]
    fn how_to_dispatch_is_a_command() {
        let dispatch = DispatchNow {
            payload: "required".into(),
            meta_required: vec!["who".to_string()].into(),
            meta_optional: vec!["why".to_string()].into(),
        };
        assert_eq!(
            dispatched("mail", &dispatch),
            "job dispatch -meta who=... [-meta why=...] mail <payload file>"
        );
    }

    fn read<T: serde::de::DeserializeOwned>(text: &str) -> T {
        model::document::input::from_slice(text.as_bytes()).unwrap()
    }
}
