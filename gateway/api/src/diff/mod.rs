//! What is different between two versions of a job.
//!
//! Told from the JSON of Nomad's API, so that a field that is added to a document is compared from then on: what is
//! a text, a number or a truth value there is a field, all else an object. Fields compare as texts.
//!
//! Source: `PUT /v1/job/:id/plan`; the annotations are the cases K11 to K19 of `docs/behaviour/plans.md`.

mod annotate;
mod compare;

use std::collections::{BTreeMap, BTreeSet};

use model::document::Job;
use serde_json::Value;

use crate::plan::{JobDiff, TaskDiff, TaskGroupDiff};
pub use annotate::annotate;
pub use compare::Detail;
use compare::{Object, fields, object_of, objects, verdict};

pub const NONE: &str = "None";
pub const ADDED: &str = "Added";
pub const DELETED: &str = "Deleted";
pub const EDITED: &str = "Edited";

/// What servers fill in or change by themselves, and what is a copy of something else.
const JOB_IGNORES: [&str; 15] = [
    "ID",
    "Status",
    "StatusDescription",
    "Version",
    "VersionTag",
    "Stable",
    "CreateIndex",
    "ModifyIndex",
    "JobModifyIndex",
    "Update",
    "SubmitTime",
    "NomadTokenID",
    "Reschedule",
    "Migrate",
    "TaskGroups",
];
const GROUP_IGNORES: [&str; 2] = ["Name", "Tasks"];
const TASK_IGNORES: [&str; 1] = ["Name"];

/// From one version of a job to another; no old one for a job that is new.
pub fn jobs(old: Option<&Job>, new: &Job, detail: Detail) -> JobDiff {
    let written = |job: &Job| without_defaults(object_of(job));
    let (before, after) = (old.map(written), written(new));
    let (old, new) = (before.as_ref(), Some(&after));
    let fields = fields(old, new, &JOB_IGNORES, Detail::Changes);
    let objects = objects(old, new, &JOB_IGNORES, detail);
    let pairs = named(old, new, "TaskGroups").into_iter();
    let groups: Vec<TaskGroupDiff> = pairs.map(|(name, (old, new))| group(name, old, new, detail)).collect();
    let changed = !fields.is_empty() || !objects.is_empty() || groups.iter().any(|group| group.kind != NONE);
    JobDiff {
        kind: verdict(old, new, changed),
        id: after.get("ID").and_then(Value::as_str).unwrap_or_default().to_string(),
        fields: fields.into(),
        objects: objects.into(),
        task_groups: groups.into(),
    }
}

/// A job without the parts that servers fill in from others: a change is shown where it was written. A task has its group's
/// restart policy, and a group a Consul block, though nobody wrote one. A job of several regions has the mark by which they
/// find each other.
fn without_defaults(mut job: Object) -> Object {
    if let Some(regions) = job.get_mut("Multiregion").and_then(Value::as_object_mut) {
        regions.remove("Rollout");
    }
    let groups = job.get_mut("TaskGroups").and_then(Value::as_array_mut);
    for group in groups.into_iter().flatten().filter_map(Value::as_object_mut) {
        if group.get("Consul").is_some_and(is_empty_consul) {
            group.remove("Consul");
        }
        let policy = group.get("RestartPolicy").cloned();
        let tasks = group.get_mut("Tasks").and_then(Value::as_array_mut);
        for task in tasks.into_iter().flatten().filter_map(Value::as_object_mut) {
            if policy.is_some() && task.get("RestartPolicy") == policy.as_ref() {
                task.remove("RestartPolicy");
            }
        }
    }
    job
}

fn is_empty_consul(consul: &Value) -> bool {
    let mut values = consul.as_object().into_iter().flat_map(|consul| consul.values());
    values.all(|value| value.is_null() || matches!(value.as_str(), Some("" | "default")))
}

fn group(name: &str, old: Option<&Object>, new: Option<&Object>, detail: Detail) -> TaskGroupDiff {
    let fields = fields(old, new, &GROUP_IGNORES, Detail::Changes);
    let objects = objects(old, new, &GROUP_IGNORES, detail);
    let pairs = named(old, new, "Tasks").into_iter();
    let tasks: Vec<TaskDiff> = pairs.map(|(name, (old, new))| task(name, old, new, detail)).collect();
    let changed = !fields.is_empty() || !objects.is_empty() || tasks.iter().any(|task| task.kind != NONE);
    TaskGroupDiff {
        kind: verdict(old, new, changed),
        name: name.to_string(),
        fields: fields.into(),
        objects: objects.into(),
        tasks: tasks.into(),
        updates: Default::default(),
    }
}

fn task(name: &str, old: Option<&Object>, new: Option<&Object>, detail: Detail) -> TaskDiff {
    let fields = fields(old, new, &TASK_IGNORES, Detail::Changes);
    let objects = objects(old, new, &TASK_IGNORES, detail);
    let changed = !fields.is_empty() || !objects.is_empty();
    TaskDiff {
        kind: verdict(old, new, changed),
        name: name.to_string(),
        fields: fields.into(),
        objects: objects.into(),
        annotations: Default::default(),
    }
}

/// Something of one name as it was, and as it is to be.
type Pair<'a> = (Option<&'a Object>, Option<&'a Object>);

/// The members of a list by their names.
fn named<'a>(old: Option<&'a Object>, new: Option<&'a Object>, list: &str) -> BTreeMap<&'a str, Pair<'a>> {
    let members = |of: Option<&'a Object>| -> BTreeMap<&'a str, &'a Object> {
        let list = of.and_then(|of| of.get(list)).and_then(Value::as_array);
        let members = list.into_iter().flatten().filter_map(Value::as_object);
        members.map(|one| (one.get("Name").and_then(Value::as_str).unwrap_or_default(), one)).collect()
    };
    let (old, new) = (members(old), members(new));
    let names: BTreeSet<&str> = old.keys().chain(new.keys()).copied().collect();
    names.into_iter().map(|name| (name, (old.get(name).copied(), new.get(name).copied()))).collect()
}

#[cfg(test)]
mod tests;
