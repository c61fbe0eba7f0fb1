//! What the differences lead to, as a person sees it. An approximation by the names of what changed: the scheduler
//! looks more closely, and may do in place what is shown as destructive here.

use model::document::{DesiredUpdates, Map};

use super::{ADDED, DELETED, NONE};
use crate::plan::{FieldDiff, JobDiff, ObjectDiff, TaskDiff};

const CREATE: &str = "forces create";
const DESTROY: &str = "forces destroy";
const IN_PLACE: &str = "forces in-place update";
const DESTRUCTIVE: &str = "forces create/destroy update";

/// Objects of a task that can change while it runs.
const CHANGES_IN_PLACE: [&str; 5] = ["Service", "Constraint", "Affinity", "Spread", "LogConfig"];

/// Writes into the differences what the scheduler would do, group by group.
pub fn annotate(diff: &mut JobDiff, desired: &Map<String, DesiredUpdates>) {
    for group in diff.task_groups.iter_mut() {
        if let Some(desired) = desired.get(&group.name) {
            group.updates = updates(desired);
        }
        if let Some(count) = group.fields.iter_mut().find(|field| field.name == "Count") {
            count.annotations =
                count_change(count).map(str::to_string).into_iter().collect::<Vec<_>>().into();
        }
        let kind = group.kind.clone();
        for task in group.tasks.iter_mut().filter(|task| task.kind != NONE) {
            task.annotations = vec![task_change(&kind, task).to_string()].into();
        }
    }
}

fn updates(desired: &DesiredUpdates) -> Map<String, u64> {
    let named = [
        ("ignore", desired.ignore),
        ("create", desired.place),
        ("destroy", desired.stop),
        ("migrate", desired.migrate),
        ("canary", desired.canary),
        ("in-place update", desired.in_place_update),
        ("create/destroy update", desired.destructive_update),
    ];
    let counts = named.into_iter().filter(|(_, count)| *count > 0);
    counts.map(|(name, count)| (name.to_string(), count)).collect()
}

fn count_change(count: &FieldDiff) -> Option<&'static str> {
    let number = |text: &str| text.parse::<i64>().unwrap_or(0);
    match number(&count.new).cmp(&number(&count.old)) {
        std::cmp::Ordering::Greater => Some(CREATE),
        std::cmp::Ordering::Less => Some(DESTROY),
        std::cmp::Ordering::Equal => None,
    }
}

fn task_change(group: &str, task: &TaskDiff) -> &'static str {
    if group == ADDED || task.kind == ADDED {
        return CREATE;
    }
    if group == DELETED || task.kind == DELETED {
        return DESTROY;
    }
    let logs_on_or_off = |object: &ObjectDiff| {
        object.fields.iter().any(|field| field.name == "Disabled" && field.kind != NONE)
    };
    let in_place = task.fields.iter().all(|field| field.name == "KillTimeout")
        && task.objects.iter().all(|object| {
            CHANGES_IN_PLACE.contains(&object.name.as_str())
                && !(object.name == "LogConfig" && logs_on_or_off(object))
        });
    if in_place { IN_PLACE } else { DESTRUCTIVE }
}
