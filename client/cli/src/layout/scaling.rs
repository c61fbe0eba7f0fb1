//! Scaling events and scaling policies.

use api::{JobScaleStatusResponse, ScalingPolicy, ScalingPolicyListStub};

use super::cell;
use crate::output::{OutputStyle, Table, fields, json};

/// Scaling events of all groups, newest first.
pub(crate) fn events(style: &OutputStyle, status: &JobScaleStatusResponse) -> String {
    let mut head = vec!["Task Group", "Count", "PrevCount"];
    if style.verbose {
        head.extend(["Error", "Message", "Eval ID"]);
    }
    head.push("Date");
    let mut table = Table::new(head);
    let events = status.task_groups.iter();
    let mut events: Vec<_> =
        events.flat_map(|(group, status)| status.events.iter().map(move |event| (group, event))).collect();
    events.sort_by_key(|(_, event)| std::cmp::Reverse(event.time));
    for (group, event) in events {
        let count = event.count.map(cell).unwrap_or_default();
        let mut row = vec![group.clone(), count, cell(event.previous_count)];
        if style.verbose {
            row.push(cell(event.error));
            row.push(event.message.clone());
            row.push(event.eval_id.clone().unwrap_or_default());
        }
        row.push(style.time(i64::try_from(event.time).unwrap_or(0)));
        table.row(row);
    }
    table.render()
}

/// The list of policies.
pub(crate) fn policies(style: &OutputStyle, policies: &[ScalingPolicyListStub]) -> String {
    let mut table = Table::new(["ID", "Enabled", "Type", "Target"]);
    for policy in policies {
        let target = policy.target.iter().map(|(key, value)| format!("{key}:{value}"));
        table.row([
            style.id(&policy.id),
            cell(policy.enabled),
            policy.kind.clone(),
            target.collect::<Vec<_>>().join(","),
        ]);
    }
    table.render()
}

/// One scaling policy.
pub(crate) fn policy(style: &OutputStyle, policy: &ScalingPolicy) -> String {
    let target = policy.target.iter().map(|(key, value)| format!("{key}:{value}"));
    let bound = |bound: Option<i64>| bound.map(cell).unwrap_or_default();
    let entries = [
        ("ID", style.id(&policy.id)),
        ("Enabled", cell(policy.enabled.unwrap_or(false))),
        ("Target", target.collect::<Vec<_>>().join(",")),
        ("Min", bound(policy.min)),
        ("Max", bound(policy.max)),
    ];
    fields(&entries) + &style.section("Policy", &json(&policy.policy))
}

#[cfg(test)]
mod tests {
    use api::{ScalingEvent, TaskGroupScaleStatus};

    use super::*;

    #[test]
    fn changes_of_counts_are_listed_newest_first() {
        let event = |count, time| ScalingEvent { count: Some(count), time, ..ScalingEvent::default() };
        let events = vec![event(2, 1_767_323_045_000_000_000), event(3, 1_767_323_046_000_000_000)].into();
        let group = TaskGroupScaleStatus { events, ..TaskGroupScaleStatus::default() };
        let status = JobScaleStatusResponse {
            task_groups: [("api".to_string(), group)].into_iter().collect(),
            ..JobScaleStatusResponse::default()
        };
        assert_eq!(
            super::events(&OutputStyle::for_tests(), &status),
            "Task Group  Count  PrevCount  Date\n\
             api         3      0          2026-01-02T03:04:06Z\n\
             api         2      0          2026-01-02T03:04:05Z\n"
        );
        let verbose = OutputStyle { verbose: true, ..OutputStyle::for_tests() };
        let text = super::events(&verbose, &status);
        assert!(text.starts_with("Task Group  Count  PrevCount  Error  Message  Eval ID  Date\n"), "{text}");
    }
}
