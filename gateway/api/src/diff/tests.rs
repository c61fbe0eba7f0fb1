use serde_json::{from_value, json};

use super::*;

fn job(value: &Value) -> Job {
    from_value(value.clone()).unwrap()
}

fn web() -> Value {
    json!({
        "ID": "web", "Name": "web", "Type": "service", "Priority": 50, "Datacenters": ["dc1"], "Version": 3,
        "TaskGroups": [{
            "Name": "g", "Count": 10,
            "RestartPolicy": {"Attempts": 2, "Delay": 15_000_000_000_i64, "Mode": "fail"},
            "Tasks": [{
                "Name": "t", "Driver": "raw_exec", "KillTimeout": 5_000_000_000_i64,
                "Config": {"command": "sleep", "args": ["1", "2"]}, "Env": {"A": "1"},
                "Resources": {"CPU": 100, "MemoryMB": 300},
                "Services": [{"Name": "a", "PortLabel": "http"}, {"Name": "b", "PortLabel": "http"}],
            }],
        }],
    })
}

/// The diff from `web` to `web` with changes at these places.
fn changed(changes: &[(&str, Value)]) -> JobDiff {
    let mut new = web();
    for (at, value) in changes {
        *new.pointer_mut(at).unwrap_or_else(|| panic!("{at}")) = value.clone();
    }
    jobs(Some(&job(&web())), &job(&new), Detail::Contextual)
}

fn annotated(mut diff: JobDiff, desired: DesiredUpdatesOf) -> JobDiff {
    annotate(&mut diff, &[("g".to_string(), desired)].into_iter().collect());
    diff
}

type DesiredUpdatesOf = model::document::DesiredUpdates;

fn line(field: &crate::FieldDiff) -> String {
    format!("{} {} {:?} {:?}", field.kind, field.name, field.old, field.new)
}

#[test]
fn the_same_job_is_not_different_whatever_servers_filled_in() {
    let mut old = web();
    old["Version"] = json!(7);
    old["Status"] = json!("running");
    old["ModifyIndex"] = json!(99);
    let diff = jobs(Some(&job(&old)), &job(&web()), Detail::Contextual);
    assert_eq!((diff.kind.as_str(), diff.id.as_str()), (NONE, "web"));
    assert!(diff.fields.is_empty() && diff.objects.is_empty());
    assert_eq!((diff.task_groups[0].kind.as_str(), diff.task_groups[0].tasks[0].kind.as_str()), (NONE, NONE));
}

/// K11.
#[test]
fn a_new_job_is_added_with_all_it_says() {
    let diff = jobs(None, &job(&web()), Detail::Contextual);
    assert_eq!(diff.kind, ADDED);
    let fields: Vec<String> = diff.fields.iter().map(line).collect();
    assert!(fields.contains(&"Added Priority \"\" \"50\"".to_string()), "{fields:?}");
    assert_eq!(diff.task_groups[0].kind, ADDED);
    assert_eq!(diff.task_groups[0].tasks[0].kind, ADDED);
    let config = diff.task_groups[0].tasks[0].objects.iter().find(|object| object.name == "Config").unwrap();
    let fields: Vec<String> = config.fields.iter().map(line).collect();
    let expected = ["Added args[0] \"\" \"1\"", "Added args[1] \"\" \"2\"", "Added command \"\" \"sleep\""];
    assert_eq!(fields, expected);
}

/// K13.
#[test]
fn a_count_that_grows_forces_creations() {
    let desired = DesiredUpdatesOf { place: 2, in_place_update: 10, ..Default::default() };
    let diff = annotated(changed(&[("/TaskGroups/0/Count", json!(12))]), desired.clone());
    let group = &diff.task_groups[0];
    assert_eq!((diff.kind.as_str(), group.kind.as_str()), (EDITED, EDITED));
    assert_eq!(line(&group.fields[0]), "Edited Count \"10\" \"12\"");
    assert_eq!(*group.fields[0].annotations, ["forces create".to_string()]);
    let updates: Vec<(&str, u64)> =
        group.updates.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    assert_eq!(updates, [("create", 2), ("in-place update", 10)]);
    assert!(group.tasks[0].annotations.is_empty(), "the task is as it was");
    let fewer = annotated(changed(&[("/TaskGroups/0/Count", json!(1))]), desired);
    assert_eq!(*fewer.task_groups[0].fields[0].annotations, ["forces destroy".to_string()]);
}

fn task_annotation(changes: &[(&str, Value)]) -> String {
    let diff = annotated(changed(changes), Default::default());
    diff.task_groups[0].tasks[0].annotations.first().cloned().unwrap_or_default()
}

/// K14, K15.
#[test]
fn what_a_change_of_a_task_forces_follows_from_its_names() {
    let task = "/TaskGroups/0/Tasks/0";
    let at = |path: &str| format!("{task}/{path}");
    assert_eq!(task_annotation(&[(&at("KillTimeout"), json!(9))]), "forces in-place update");
    assert_eq!(task_annotation(&[(&at("Services/0/PortLabel"), json!("x"))]), "forces in-place update");
    assert_eq!(task_annotation(&[(&at("Config/command"), json!("x"))]), "forces create/destroy update");
    assert_eq!(task_annotation(&[(&at("Env/A"), json!("2"))]), "forces create/destroy update");
    let both = [(at("KillTimeout"), json!(9)), (at("Driver"), json!("exec"))];
    let both: Vec<(&str, Value)> = both.iter().map(|(at, value)| (at.as_str(), value.clone())).collect();
    assert_eq!(task_annotation(&both), "forces create/destroy update");
}

/// K16: the group's policy changes, and no task does.
#[test]
fn a_changed_restart_policy_is_shown_with_what_stays() {
    let diff = changed(&[("/TaskGroups/0/RestartPolicy/Attempts", json!(3))]);
    let policy = &diff.task_groups[0].objects[0];
    assert_eq!((policy.name.as_str(), policy.kind.as_str()), ("RestartPolicy", EDITED));
    let fields: Vec<String> = policy.fields.iter().map(line).collect();
    let expected = [
        "Edited Attempts \"2\" \"3\"",
        "None Delay \"15000000000\" \"15000000000\"",
        "None Mode \"fail\" \"fail\"",
    ];
    assert_eq!(fields, expected);
    // A task's own policy is canonical from the group's, so that there the change is shown as destructive.
    let mut old = web();
    old["TaskGroups"][0]["Tasks"][0]["RestartPolicy"] = json!({"Attempts": 2});
    let mut new = old.clone();
    new["TaskGroups"][0]["Tasks"][0]["RestartPolicy"] = json!({"Attempts": 3});
    let diff = jobs(Some(&job(&old)), &job(&new), Detail::Contextual);
    let diff = annotated(diff, DesiredUpdatesOf { in_place_update: 10, ..Default::default() });
    assert_eq!(*diff.task_groups[0].tasks[0].annotations, ["forces create/destroy update".to_string()]);
    assert_eq!(diff.task_groups[0].updates.get("in-place update"), Some(&10));
}

/// K19.
#[test]
fn tasks_of_a_group_that_comes_or_goes_come_and_go_with_it() {
    let mut with_more = web();
    let mut other = with_more["TaskGroups"][0].clone();
    other["Name"] = json!("more");
    with_more["TaskGroups"].as_array_mut().unwrap().push(other);
    let (small, large) = (job(&web()), job(&with_more));
    for (old, new, kind, forces) in
        [(&small, &large, ADDED, "forces create"), (&large, &small, DELETED, "forces destroy")]
    {
        let diff = annotated(jobs(Some(old), new, Detail::Contextual), Default::default());
        let group = diff.task_groups.iter().find(|group| group.name == "more").unwrap();
        assert_eq!((group.kind.as_str(), group.tasks[0].kind.as_str()), (kind, kind));
        assert_eq!(*group.tasks[0].annotations, [forces.to_string()]);
    }
}

#[test]
fn members_of_lists_find_each_other_by_what_they_are() {
    let diff = changed(&[("/Datacenters", json!(["dc2"]))]);
    let fields: Vec<String> = diff.objects[0].fields.iter().map(line).collect();
    assert_eq!(fields, ["Added Datacenters \"\" \"dc2\"", "Deleted Datacenters \"dc1\" \"\""]);
    let services = "/TaskGroups/0/Tasks/0/Services";
    let diff = changed(&[(
        services,
        json!([{"Name": "b", "PortLabel": "http"}, {"Name": "a", "PortLabel": "admin"}]),
    )]);
    let objects = &diff.task_groups[0].tasks[0].objects;
    assert_eq!(objects.len(), 1, "b is as it was: {objects:?}");
    assert_eq!((objects[0].name.as_str(), objects[0].kind.as_str()), ("Service", EDITED));
    let edited: Vec<&str> = objects[0]
        .fields
        .iter()
        .filter(|field| field.kind == EDITED)
        .map(|field| field.name.as_str())
        .collect();
    assert_eq!(edited, ["PortLabel"]);
}

#[test]
fn objects_have_the_names_that_clients_look_for() {
    let mut old = web();
    old["ParameterizedJob"] = json!({"Payload": "optional"});
    old["TaskGroups"][0]["Scaling"] = json!({"Min": 1, "Max": 3});
    let mut new = old.clone();
    new["ParameterizedJob"]["Payload"] = json!("required");
    new["TaskGroups"][0]["Scaling"]["Max"] = json!(5);
    let diff = jobs(Some(&job(&old)), &job(&new), Detail::Contextual);
    assert_eq!(diff.objects[0].name, "ParameterizedJob");
    assert_eq!(diff.task_groups[0].objects[0].name, "Scaling");
    let fields: Vec<String> = diff.task_groups[0].objects[0].fields.iter().map(line).collect();
    assert!(fields.contains(&"None Min \"1\" \"1\"".to_string()), "{fields:?}");
}

#[test]
fn what_servers_fill_in_from_elsewhere_is_no_change_of_its_own() {
    let mut old = web();
    let policy = old["TaskGroups"][0]["RestartPolicy"].clone();
    old["TaskGroups"][0]["Tasks"][0]["RestartPolicy"] = policy;
    let mut new = old.clone();
    new["TaskGroups"][0]["RestartPolicy"]["Attempts"] = json!(5);
    new["TaskGroups"][0]["Tasks"][0]["RestartPolicy"]["Attempts"] = json!(5);
    new["TaskGroups"][0]["Consul"] = json!({"Namespace": "", "Cluster": "default"});
    let diff = jobs(Some(&job(&old)), &job(&new), Detail::Contextual);
    let group = &diff.task_groups[0];
    let names: Vec<&str> = group.objects.iter().map(|object| object.name.as_str()).collect();
    assert_eq!((names.as_slice(), group.tasks[0].kind.as_str()), (&["RestartPolicy"][..], NONE));
    new["TaskGroups"][0]["Tasks"][0]["RestartPolicy"]["Attempts"] = json!(7);
    let diff = jobs(Some(&job(&old)), &job(&new), Detail::Contextual);
    assert_eq!(diff.task_groups[0].tasks[0].objects[0].name, "RestartPolicy", "its own is shown");
}

#[test]
fn the_mark_of_a_job_of_several_regions_is_no_change() {
    let of = |count: u64, rollout: &str| {
        let mut web = web();
        web["Multiregion"] = json!({"Regions": [{"Name": "eu", "Count": count}], "Rollout": rollout});
        job(&web)
    };
    assert_eq!(jobs(Some(&of(2, "7f3a")), &of(2, ""), Detail::Contextual).kind, NONE);
    assert_eq!(jobs(Some(&of(2, "7f3a")), &of(3, ""), Detail::Contextual).objects[0].name, "Multiregion");
}
