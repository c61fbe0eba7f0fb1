//! What expressions say about documents of Nomad's API.

use filter::{EvalError, Filter, STEPS_MAX, Schema};
use serde_json::{Value, json};

fn job() -> Value {
    json!({
        "ID": "web", "Status": "running", "Priority": 70, "AllAtOnce": true, "Version": 3,
        "Datacenters": ["dc1", "dc2"],
        "Meta": {"team": "payments", "my.key": "dotted", "a/b": "slashed", "empty": ""},
        "SubmitTime": 1_700_000_000_000_000_000_i64,
        "TaskGroups": [
            {"Name": "front", "Count": 2, "Tasks": [
                {"Name": "nginx", "Driver": "docker", "KillTimeout": 5_000_000_000_i64,
                 "Config": {"image": "nginx:1.27", "ports": ["http", 8080], "privileged": false},
                 "Constraints": null, "Env": {"A": "1"}},
            ]},
            {"Name": "back", "Count": 0, "Tasks": [{"Name": "api", "Driver": "exec"}]},
        ],
    })
}

fn ask(text: &str) -> Result<bool, EvalError> {
    let filter = Filter::parse(text).unwrap_or_else(|why| panic!("{text}: {why}"));
    filter.matches(Schema::nomad(), "Job", &job())
}

fn yes(texts: &[&str]) {
    for text in texts {
        assert_eq!(ask(text), Ok(true), "{text}");
    }
}

fn no(texts: &[&str]) {
    for text in texts {
        assert_eq!(ask(text), Ok(false), "{text}");
    }
}

fn refused(text: &str, message: &str) {
    let why = ask(text).expect_err(text).to_string();
    assert!(why.contains(message), "{text}: {why}");
}

#[test]
fn values_are_compared_as_what_the_field_holds() {
    yes(&[
        r#"Status == "running""#,
        "Status == running",
        "Status == `running`",
        r#"Status != "dead""#,
        "Priority == 70",
        r#"Priority == "70""#,
        "Priority == \"0x46\"",
        "Priority != 71",
        "AllAtOnce == true",
        "AllAtOnce == T",
        r#"AllAtOnce == "1""#,
        "TaskGroups.0.Tasks.0.KillTimeout == 5000000000",
        "TaskGroups.0.Tasks.0.Config.image == `nginx:1.27`",
        "TaskGroups.0.Tasks.0.Config.privileged == false",
        "SubmitTime == 1700000000000000000",
    ]);
    no(&["Status == Running", "Priority == 7", "AllAtOnce == false", "Priority != 70"]);
    refused("Priority == high", "Priority: \"high\" is not a whole number");
    refused("AllAtOnce == yes", "is not true or false");
    refused("Version == -1", "is not a number that is not negative");
    refused("TaskGroups.0.Tasks.0.KillTimeout == `5s`", "is not a number of nanoseconds");
    refused("Datacenters == dc1", "is a list, which is equal to no value");
    refused("Meta == x", "is a map, which is equal to no value");
    refused("TaskGroups.0 == x", "is an object, which is equal to no value");
}

#[test]
fn a_duration_in_text_is_compared_by_its_nanoseconds() {
    let method = json!({"Name": "sso", "MaxTokenTTL": "1m30s"});
    let filter = Filter::parse("MaxTokenTTL == 90000000000").unwrap();
    assert_eq!(filter.matches(Schema::nomad(), "ACLAuthMethod", &method), Ok(true));
}

#[test]
fn containing_means_part_of_a_text_key_of_a_map_or_element_of_a_list() {
    yes(&[
        "Status contains unn",
        r#""unn" in Status"#,
        "Status not contains xyz",
        "xyz not in Status",
        "dc1 in Datacenters",
        "Datacenters contains `dc2`",
        "dc9 not in Datacenters",
        "team in Meta",
        "Meta contains team",
        "payments not in Meta",
        "TaskGroups.0.Tasks.0.Config.ports contains http",
        "8080 in TaskGroups.0.Tasks.0.Config.ports",
        "TaskGroups.0.Tasks.0.Config contains image",
    ]);
    no(&["dc in Datacenters", "Datacenters not contains dc1", "team not in Meta"]);
    refused("7 in Priority", "Priority: is a number, which contains nothing");
    refused("x in AllAtOnce", "contains nothing");
    refused("x in TaskGroups", "is an object, which is equal to no value");
}

#[test]
fn patterns_are_searched_for_anywhere() {
    yes(&[
        "Status matches `^run`",
        "Status matches unn",
        "Status not matches `^ning`",
        "ID matches `^(web|api)$`",
    ]);
    no(&["Status matches `^ning`", "Status not matches run"]);
    refused("Priority matches `7.`", "only text can match");
    refused("Datacenters matches dc", "only text can match");
}

#[test]
fn empty_and_nil() {
    yes(&[
        "Datacenters is not empty",
        "Meta is not empty",
        "StatusDescription is empty",
        "Status is not empty",
        "Constraints is empty",
        "Constraints is nil",
        "TaskGroups.0.Tasks.0.Constraints is nil",
        "Datacenters is not nil",
        "Periodic is nil",
        "Meta is not nil",
        "Meta.empty is empty",
        "Status is not nil",
        "StatusDescription is not nil",
        "TaskGroups.1.Tasks.0.Config is empty",
    ]);
    refused("Priority is empty", "only text, lists and maps can be empty");
    refused("TaskGroups.0 is empty", "is an object");
}

#[test]
fn fields_left_out_have_their_zero_value() {
    yes(&[
        "Stop == false",
        "StatusDescription == ``",
        "CreateIndex == 0",
        "TaskGroups.1.Tasks.0.KillTimeout == 0",
        "x not in Periodic.Specs",
        "Periodic.Enabled == false",
        "VersionTag.Name == ``",
        "not (any Spreads as s { s.Weight == 1 })",
    ]);
    refused("stranger in Periodic", "Periodic: is an object, which contains nothing");
}

#[test]
fn a_missing_key_of_a_map_answers_no_and_is_empty_and_nil() {
    yes(&[
        "Meta.nope != x",
        "x not in Meta.nope",
        "Meta.nope not contains x",
        "Meta.nope is empty",
        "Meta.nope not matches x",
        "Meta.nope is nil",
        "all Meta.nope as x { x == 1 }",
        "TaskGroups.1.Tasks.0.Env.A != 1",
    ]);
    no(&[
        "Meta.nope == x",
        "Meta.nope == ``",
        "x in Meta.nope",
        "Meta.nope contains x",
        "Meta.nope is not empty",
        "Meta.nope matches x",
        "Meta.nope is not nil",
        "any Meta.nope as x { x == 1 }",
    ]);
}

#[test]
fn an_unknown_field_is_a_mistake_and_names_are_case_sensitive() {
    refused(
        "Nope == 1",
        "error finding value in datum: Nope: Job has no such field: couldn't find key: struct field with name \"Nope\"",
    );
    refused(
        "status == running",
        "Job has no such field: couldn't find key: struct field with name \"status\"",
    );
    refused("JobSummary is nil", "has no such field");
    refused("TaskGroups.0.Nope == 1", "couldn't find key: struct field with name \"Nope\"");
    refused("Status.x == 1", "text has no member \"x\"");
    refused("TaskGroups.first.Name == 1", "use a number");
    refused("TaskGroups.7.Name == 1", "the list has 2 elements, none at 7");
    refused("TaskGroups.99999999999999999999.Name == 1", "use a number");
    let filter = Filter::parse("A == 1").unwrap();
    let why = filter.matches(Schema::nomad(), "Nobody", &json!({})).unwrap_err();
    assert_eq!(why, EvalError::UnknownType("Nobody".to_string()));
}

#[test]
fn keys_with_odd_letters_are_reached_in_two_ways() {
    yes(&[
        r#"Meta["my.key"] == dotted"#,
        "Meta[`my.key`] == dotted",
        r#"Meta[ "team" ] == payments"#,
        r#""/Meta/my.key" == dotted"#,
        r#""/Meta/a~1b" == slashed"#,
        r#""/TaskGroups/0/Tasks/0/Name" == nginx"#,
        r#""/Meta/nope" is nil"#,
        r#"TaskGroups[`1`].Name == back"#,
    ]);
    assert!(Filter::parse(r#""Meta" == x"#).is_err(), "text is no selector unless it starts with a slash");
    no(&[r#""/Meta/team" in Meta"#]);
}

#[test]
fn not_binds_tighter_than_and_and_and_tighter_than_or() {
    yes(&[
        "Status == dead and Priority == 1 or Status == running",
        "Status == running or Status == dead and Priority == 1",
        "not Status == dead and Status == running",
        "not (Status == dead and Status == running)",
        "not not Status == running",
        "(((Status == running)))",
        "Status==running and Priority==70",
        "not(Status == dead)",
        "  Status == running\n\tand Priority == 70  ",
    ]);
    no(&[
        "(Status == running or Status == dead) and Priority == 1",
        "not Status == running or Status == dead",
        "not Status == running",
    ]);
}

#[test]
fn what_is_decided_is_not_looked_at_further() {
    yes(&["Status == running or Nope == 1"]);
    no(&["Status == dead and Nope == 1"]);
}

#[test]
fn collections_bind_elements_keys_and_indexes() {
    yes(&[
        "any Datacenters as dc { dc == dc2 }",
        "all Datacenters as dc { dc matches `^dc` }",
        "any Datacenters as i, dc { i == 1 and dc == dc2 }",
        "any Datacenters as i, _ { i == 1 }",
        "any Datacenters as _, dc { dc == dc1 }",
        "any Meta as key { key == team }",
        "any Meta as key, value { key == team and value == payments }",
        "any Meta as _, value { value == payments }",
        "any TaskGroups as group { any group.Tasks as task { task.Driver == exec and group.Name == back } }",
        "all TaskGroups as group { group.Count != 9 }",
        "all Constraints as c { c.Operand == x }",
        "any TaskGroups.0.Tasks.0.Config.ports as port { port == http }",
        "any TaskGroups as Status { Status.Name == back } and Status == running",
        "not any Datacenters as dc { dc == dc7 }",
    ]);
    no(&[
        "all Datacenters as dc { dc == dc1 }",
        "any Constraints as c { c.Operand == x }",
        "any Meta as key { key == payments }",
    ]);
    refused("any Status as s { s == x }", "is text, not a list or a map");
    refused("any Priority as s { s == x }", "not a list or a map");
    refused("any TaskGroups as g { g.Nope == 1 }", "couldn't find key: struct field with name \"Nope\"");
}

#[test]
fn keywords_are_names_where_only_a_name_can_stand() {
    let schema = Schema::read(&json!({"Odd": {"kind": "object", "fields": [
        {"name": "not", "type": "string"}, {"name": "any", "type": "string"}, {"name": "all", "type": "list<string>"},
        {"name": "android", "type": "string"},
    ]}}))
    .unwrap();
    let document = json!({"not": "a", "any": "b", "all": ["c"], "android": "d"});
    for text in [
        "not == a",
        "any == b and not not == x",
        "c in all",
        "all is not empty",
        "android == d",
        "any all as all { all == c }",
    ] {
        let filter = Filter::parse(text).unwrap_or_else(|why| panic!("{text}: {why}"));
        assert_eq!(filter.matches(&schema, "Odd", &document), Ok(true), "{text}");
    }
}

#[test]
fn nested_collections_end_when_they_take_too_long() {
    let many: Vec<Value> = (0..100).map(|at| json!({"Name": at.to_string()})).collect();
    let job = json!({"TaskGroups": many});
    let mut text = "x0.Name == never".to_string();
    for depth in 0..4 {
        text = format!("any TaskGroups as x{depth} {{ {text} }}");
    }
    let why = Filter::parse(&text).unwrap().matches(Schema::nomad(), "Job", &job).unwrap_err();
    assert_eq!(why, EvalError::TooMuchWork);
    assert!(why.to_string().contains(&STEPS_MAX.to_string()));
}

#[test]
fn what_an_expression_looks_at_is_known_without_a_document() {
    let looks_at = |text: &str| Filter::parse(text).unwrap().looks_at("Job");
    for text in [
        "Job.Type == batch",
        "a == 1 or not (b == 2 and Job is nil)",
        "any Job.TaskGroups as g { g.Count == 1 }",
    ] {
        assert!(looks_at(text), "{text}");
    }
    assert!(looks_at("any Tasks as t { t.Job == 1 or Job.ID == t.Name }"));
    for text in ["JobID == a", "x.Job == 1", "any Tasks as t { t.Job == 1 }", "Name == \"Job\""] {
        assert!(!looks_at(text), "{text}");
    }
}
