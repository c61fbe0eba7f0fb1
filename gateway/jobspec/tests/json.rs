//! Job files in JSON: the API's form and HCL's.

use jobspec::{NoFiles, Source, Variables, parse_json};
use model::document::{Duration, Job};

fn read(text: &str) -> Result<Job, String> {
    let parsed = parse_json(&Source::new("j.json", text), &Variables::default(), &NoFiles);
    parsed.map(|parsed| parsed.job).map_err(|wrong| wrong.plain())
}

#[test]
fn a_job_is_read_bare_or_in_its_envelope() {
    for text in [
        r#"{"ID": "a", "TaskGroups": []}"#,
        r#"{"Job": {"id": "a"}}"#,
        r#"{"job": {"ID": "a"}, "EnforceIndex": true}"#,
    ] {
        assert_eq!(read(text).unwrap().id.as_deref(), Some("a"), "{text}");
    }
}

#[test]
fn durations_are_numbers_or_text() {
    let job = read(r#"{"ID": "a", "TaskGroups": [{"ShutdownDelay": 5000000000, "MaxRunDuration": "1h"}]}"#)
        .unwrap();
    assert_eq!(job.task_groups[0].shutdown_delay, Some(Duration::from_secs(5)));
    assert_eq!(job.task_groups[0].max_run_duration, Some(Duration::from_secs(3600)));
}

#[test]
fn a_value_of_the_wrong_type_is_named_by_its_path() {
    let wrong = read(r#"{"Job": {"ID": "a", "TaskGroups": [{"Count": "three"}]}}"#).unwrap_err();
    assert!(wrong.contains("Job.TaskGroups[0].Count: "), "{wrong}");
    let wrong = read(r#"{"ID": "a", "Priority": []}"#).unwrap_err();
    assert!(wrong.contains(" Priority: "), "{wrong}");
}

#[test]
fn what_is_not_json_is_shown_with_its_position() {
    let wrong = read("{\n  \"ID\": \"a\",\n  \"Type\" \"b\"\n}").unwrap_err();
    assert!(wrong.starts_with("j.json:3:10: not JSON: expected `:`"), "{wrong}");
    assert!(read("[1]").unwrap_err().contains("expected an object"));
}

#[test]
fn the_json_syntax_of_hcl_has_labels_as_keys_and_templates_as_text() {
    let job = read(
        r#"{
  "variable": {"n": {"default": 2}},
  "locals": {"name": "x"},
  "job": {"web": {
    "datacenters": ["dc1"],
    "group": {"g": {
      "count": "${var.n + 1}",
      "network": {"port": {"http": {"to": 80}, "ssh": {"static": 22}}},
      "constraint": [{"attribute": "${attr.kernel.name}", "value": "linux"}, {"distinct_hosts": true}],
      "task": [{"t": {"driver": "raw_exec", "config": {"command": "/bin/${local.name}"}, "env": {"A": 1}}}]
    }}
  }}
}"#,
    )
    .unwrap();
    assert_eq!(job.id.as_deref(), Some("web"));
    let group = &job.task_groups[0];
    assert_eq!((group.name.as_deref(), group.count), (Some("g"), Some(3)));
    assert_eq!(group.networks[0].reserved_ports[0].label, "ssh");
    assert_eq!(group.constraints[0].l_target, "${attr.kernel.name}");
    assert_eq!(group.constraints[1].operand, "distinct_hosts");
    assert_eq!(
        (group.tasks[0].config["command"].as_str(), group.tasks[0].env["A"].as_str()),
        (Some("/bin/x"), "1")
    );
    let wrong = read(r#"{"job": {"web": {"cuont": 1}}}"#).unwrap_err();
    assert!(wrong.starts_with("j.json:1:18: \"cuont\" is not expected in job \"web\""), "{wrong}");
}

#[test]
fn a_value_of_the_wrong_type_is_shown_where_it_stands() {
    let text =
        "{\n  \"job\": {\n    \"ID\": \"a\",\n    \"taskgroups\": [{}, {\"Count\": \"three\"}]\n  }\n}";
    let wrong =
        parse_json(&Source::new("j.json", text), &Variables::default(), &NoFiles).unwrap_err().to_string();
    let expected = r#"
j.json:4:34: Job.TaskGroups[1].Count: invalid type: string "three", expected a whole number
 4 |     "taskgroups": [{}, {"Count": "three"}]
   |                                  ^^^^^^^"#;
    assert_eq!(wrong, expected.trim_start());
}

#[test]
fn dynamic_blocks_have_their_kind_as_key() {
    let text = |dynamic: &str| format!(r#"{{"job": {{"j": {{"dynamic": {dynamic}}}}}}}"#);
    let job = read(&text(
        r#"{"group": [{
            "for_each": {"a": 1, "b": 2}, "iterator": "it", "labels": ["g-${it.key}"],
            "content": {"count": "${it.value}", "task": {"t": {"driver": "x"}}}
        }]}"#,
    ))
    .unwrap();
    let groups: Vec<_> =
        job.task_groups.iter().map(|group| (group.name.as_deref().unwrap(), group.count)).collect();
    assert_eq!(groups, [("g-a", Some(1)), ("g-b", Some(2))]);
    let wrong = read(&text(r#"{"grup": {"for_each": [], "content": {}}}"#)).unwrap_err();
    assert!(wrong.contains("there is no block \"grup\" to make here; did you mean \"group\"?"), "{wrong}");
}

#[test]
fn a_single_block_may_stand_in_a_list() {
    let job = read(
        r#"{
  "variable": [{"n": [{"default": 2}]}],
  "job": [{"web": [{
    "meta": [{"a": "b"}],
    "update": [{"max_parallel": "${var.n}"}],
    "dynamic": [{"group": [{"for_each": ["g"], "labels": ["${group.value}"], "content": [{
      "meta": [{"c": "d"}],
      "restart": [{"attempts": 3}],
      "task": [{"t": [{
        "driver": "docker",
        "config": [{"image": "x", "auth": [{"username": "u"}], "args": ["a"]}],
        "env": [{"A": 1}],
        "template": [{"data": "x", "destination": "y"}],
        "resources": [{"cpu": 10}]
      }]}]
    }]}]}]
  }]}]
}"#,
    )
    .unwrap();
    assert_eq!((job.meta["a"].as_str(), job.update.unwrap().max_parallel), ("b", Some(2)));
    let group = &job.task_groups[0];
    assert_eq!((group.meta["c"].as_str(), group.restart_policy.as_ref().unwrap().attempts), ("d", Some(3)));
    let task = &group.tasks[0];
    assert_eq!((task.config["image"].as_str(), task.env["A"].as_str()), (Some("x"), "1"));
    assert_eq!(task.config["auth"], serde_json::json!([{"username": "u"}]));
    assert_eq!(task.resources.as_ref().unwrap().cpu, Some(10));
    let wrong = read(r#"{"job": {"web": {"meta": [{"a": 1}, {"b": 2}]}}}"#).unwrap_err();
    assert!(wrong.contains("\"meta\": expected an object, found a list"), "{wrong}");
}
