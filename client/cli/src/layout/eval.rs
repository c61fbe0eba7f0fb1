//! Evaluations: the list, the block, what they placed and what they could not.

use model::document::{Evaluation, EvaluationStub};

use super::{cell, metrics, plural};
use crate::output::{OutputStyle, Table, UNSET, fields};

/// The list of evaluations.
pub(crate) fn table(style: &OutputStyle, evals: &[Evaluation]) -> String {
    let head =
        ["ID", "Priority", "Triggered By", "Job ID", "Namespace", "Node ID", "Status", "Placement Failures"];
    let wide = style.wide.then_some(["Type", "Created", "Modified", "Description"]);
    let mut table = Table::new(head.into_iter().chain(wide.into_iter().flatten()));
    for eval in evals {
        let mut row = vec![
            style.id(&eval.id),
            cell(eval.priority),
            eval.triggered_by.clone(),
            eval.job_id.clone(),
            eval.namespace.clone(),
            style.id(&eval.node_id),
            eval.status.clone(),
            failures(eval),
        ];
        if style.wide {
            let times = [eval.create_time, eval.modify_time].map(|time| style.when(time));
            row.extend([eval.kind.clone()].into_iter().chain(times).chain([description(eval)]));
        }
        table.row(row);
    }
    table.render()
}

/// Whether placements failed: not known before the end.
fn failures(eval: &Evaluation) -> String {
    match eval.status.as_str() {
        "pending" => format!("{UNSET} - In Progress"),
        _ => cell(!eval.failed_tg_allocs.is_empty()),
    }
}

/// The block of one evaluation.
pub(crate) fn block(style: &OutputStyle, eval: &Evaluation) -> String {
    let mut entries = vec![
        ("ID", style.id(&eval.id)),
        ("Create Time", style.when(eval.create_time)),
        ("Modify Time", style.when(eval.modify_time)),
        ("Status", eval.status.clone()),
        ("Status Description", description(eval)),
        ("Type", eval.kind.clone()),
        ("TriggeredBy", eval.triggered_by.clone()),
        ("Job ID", eval.job_id.clone()),
        ("Namespace", eval.namespace.clone()),
    ];
    if !eval.node_id.is_empty() {
        entries.push(("Node ID", style.id(&eval.node_id)));
    }
    entries.push(("Priority", cell(eval.priority)));
    entries.push(("Placement Failures", failures(eval)));
    if !eval.wait_until.is_zero() {
        entries.push(("Wait Until", style.time(eval.wait_until.time().0)));
    }
    if !eval.quota_limit_reached.is_empty() {
        entries.push(("Quota Limit Reached", eval.quota_limit_reached.clone()));
    }
    entries.push(("Previous Eval", style.id(&eval.previous_eval)));
    entries.push(("Next Eval", style.id(&eval.next_eval)));
    entries.push(("Blocked Eval", style.id(&eval.blocked_eval)));
    fields(&entries)
}

fn description(eval: &Evaluation) -> String {
    if eval.status_description.is_empty() { eval.status.clone() } else { eval.status_description.clone() }
}

/// Evaluations that came before and after.
pub(crate) fn related(style: &OutputStyle, evals: &[EvaluationStub]) -> String {
    if evals.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["ID", "Priority", "Triggered By", "Node ID", "Status", "Description"]);
    for eval in evals {
        table.row([
            style.id(&eval.id),
            cell(eval.priority),
            eval.triggered_by.clone(),
            style.id(&eval.node_id),
            eval.status.clone(),
            eval.status_description.clone(),
        ]);
    }
    style.section("Related Evaluations", &table.render())
}

/// The desired changes of each group. Rare columns appear when any group uses them.
pub(crate) fn annotations(style: &OutputStyle, eval: &Evaluation) -> String {
    let Some(annotations) = &eval.plan_annotations else { return String::new() };
    let groups = &annotations.desired_tg_updates;
    if groups.is_empty() {
        return String::new();
    }
    type Count = fn(&model::document::DesiredUpdates) -> u64;
    let always: [(&str, Count); 5] = [
        ("Ignore", |group| group.ignore),
        ("Place", |group| group.place),
        ("Stop", |group| group.stop),
        ("InPlace", |group| group.in_place_update),
        ("Destructive", |group| group.destructive_update),
    ];
    let rare: [(&str, Count); 7] = [
        ("Migrate", |group| group.migrate),
        ("Canary", |group| group.canary),
        ("Preemptions", |group| group.preemptions),
        ("Reschedule Now", |group| group.reschedule_now),
        ("Reschedule Later", |group| group.reschedule_later),
        ("Disconnect", |group| group.disconnect),
        ("Reconnect", |group| group.reconnect),
    ];
    let used =
        rare.into_iter().filter(|(_, count)| style.verbose || groups.values().any(|group| count(group) > 0));
    let columns: Vec<_> = always.into_iter().chain(used).collect();
    let mut table = Table::new(["Task Group"].into_iter().chain(columns.iter().map(|(name, _)| *name)));
    for (name, group) in groups {
        table.row([name.clone()].into_iter().chain(columns.iter().map(|(_, count)| cell(count(group)))));
    }
    style.section("Plan Annotations", &table.render())
}

/// Groups that could not be placed, with the reasons; each line begins with `indent`.
pub(crate) fn failed_groups(style: &OutputStyle, eval: &Evaluation, indent: &str) -> String {
    let mut text = String::new();
    for (group, metric) in &eval.failed_tg_allocs {
        let count = metric.coalesced_failures + 1;
        let failed = format!("failed to place {}", plural(count, "allocation"));
        text.push_str(&format!("{indent}Task Group \"{group}\" ({failed}):\n"));
        text.push_str(&metrics::reasons(style, metric, &format!("{indent}  ")));
    }
    text
}

/// The section about failed placements; empty when there are none.
pub(crate) fn failed_placements(style: &OutputStyle, eval: &Evaluation) -> String {
    if eval.failed_tg_allocs.is_empty() {
        return String::new();
    }
    let mut text = failed_groups(style, eval, "");
    if !eval.blocked_eval.is_empty() {
        let id = style.id(&eval.blocked_eval);
        text.push_str(&format!("\nEvaluation \"{id}\" waiting for additional capacity to place remainder\n"));
    }
    style.section("Failed Placements", &text)
}

#[cfg(test)]
mod tests {
    use model::document::{AllocationMetric, DesiredUpdates, PlanAnnotations};

    use super::*;

    fn eval() -> Evaluation {
        Evaluation {
            id: "11111111-2222".into(),
            priority: 50,
            kind: "service".into(),
            triggered_by: "job-register".into(),
            job_id: "web".into(),
            namespace: "default".into(),
            status: "complete".into(),
            create_time: OutputStyle::for_tests().now.0 - 3_000_000_000,
            modify_time: OutputStyle::for_tests().now.0 - 2_000_000_000,
            blocked_eval: "33333333-4444".into(),
            failed_tg_allocs: [(
                "api".to_string(),
                AllocationMetric {
                    nodes_evaluated: 2,
                    nodes_exhausted: 2,
                    coalesced_failures: 3,
                    ..Default::default()
                },
            )]
            .into_iter()
            .collect(),
            ..Evaluation::default()
        }
    }

    #[test]
    fn the_block_has_nomads_fields() {
        assert_eq!(
            block(&OutputStyle::for_tests(), &eval()),
            "ID                 = 11111111\n\
             Create Time        = 3s ago\n\
             Modify Time        = 2s ago\n\
             Status             = complete\n\
             Status Description = complete\n\
             Type               = service\n\
             TriggeredBy        = job-register\n\
             Job ID             = web\n\
             Namespace          = default\n\
             Priority           = 50\n\
             Placement Failures = true\n\
             Previous Eval      = <none>\n\
             Next Eval          = <none>\n\
             Blocked Eval       = 33333333\n"
        );
    }

    #[test]
    fn failed_placements_are_explained() {
        assert_eq!(
            failed_placements(&OutputStyle::for_tests(), &eval()),
            "\nFailed Placements\n\
             Task Group \"api\" (failed to place 4 allocations):\n\
             \x20 * Resources exhausted on 2 nodes\n\
             \nEvaluation \"33333333\" waiting for additional capacity to place remainder\n"
        );
    }

    #[test]
    fn rare_columns_appear_when_they_are_used() {
        let updates = DesiredUpdates { place: 2, canary: 1, ..DesiredUpdates::default() };
        let annotations = PlanAnnotations {
            desired_tg_updates: [("api".to_string(), updates)].into_iter().collect(),
            ..PlanAnnotations::default()
        };
        let eval = Evaluation { plan_annotations: Some(annotations), ..eval() };
        assert_eq!(
            super::annotations(&OutputStyle::for_tests(), &eval),
            "\nPlan Annotations\n\
             Task Group  Ignore  Place  Stop  InPlace  Destructive  Canary\n\
             api         0       2      0     0        0            1\n"
        );
    }
}
