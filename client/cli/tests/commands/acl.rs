//! Policies, roles and tokens.

use std::io::Write;

use serde_json::{Value, json};
use tempfile::NamedTempFile;

use crate::commands::support::{Cluster, CommandOutput};

const SECRET: &str = "3f4a0fcd-7c42-473c-85db-2d31ba0c05fe";

fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

/// The body of the last request.
fn sent(output: &CommandOutput) -> Value {
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    let request = output.requests.last().unwrap();
    serde_json::from_str(request.splitn(3, ' ').nth(2).expect("it has a body")).unwrap()
}

#[test]
fn the_first_token_is_made_with_a_secret_out_of_a_file_or_one_that_is_drawn() {
    let token = r#"{"AccessorID": "a1", "SecretID": "s1", "Name": "Bootstrap Token", "Type": "management",
        "Global": true, "CreateIndex": 7, "ModifyIndex": 7}"#;
    let cluster = Cluster::answering(&[("PUT /v1/acl/bootstrap", token)]);
    let drawn = cluster.run(&["acl", "bootstrap"]);
    assert_eq!(sent(&drawn), json!({"BootstrapSecret": ""}));
    let head =
        "Accessor ID  = a1\nSecret ID    = s1\nName         = Bootstrap Token\nType         = management\n";
    assert!(drawn.stdout.starts_with(head), "{}", drawn.stdout);
    let own = file(&format!("{SECRET}\n"));
    let brought = cluster.run(&["acl", "bootstrap", "-json", own.path().to_str().unwrap()]);
    assert_eq!(sent(&brought), json!({"BootstrapSecret": SECRET}));
    assert!(brought.stdout.contains("\"SecretID\": \"s1\""), "{}", brought.stdout);
    let done = "400 ACL bootstrap already done (reset index: 7)";
    let again = Cluster::answering(&[("PUT /v1/acl/bootstrap", done)]).run(&["acl", "bootstrap"]);
    assert_eq!((again.code, again.stdout.as_str()), (1, ""));
    assert!(again.stderr.contains("already done (reset index: 7)"), "{}", again.stderr);
}

#[test]
fn policies_are_written_shown_and_deleted() {
    let rules = "node { policy = \"read\" }\n";
    let policy = json!({"Name": "readers", "Description": "See nodes", "Rules": rules, "CreateIndex": 7});
    let cluster = Cluster::answering(&[
        ("GET /v1/acl/policies", &json!([policy]).to_string()),
        ("GET /v1/acl/policy/self", &json!([policy]).to_string()),
        ("GET /v1/acl/policy/readers", &policy.to_string()),
        ("PUT /v1/acl/policy/readers", ""),
        ("DELETE /v1/acl/policy/readers", ""),
    ]);
    let file = file(rules);
    let path = file.path().to_str().unwrap();
    let applied = cluster.run(&["acl", "policy", "apply", "-description=See nodes", "readers", path]);
    assert_eq!(applied.stdout, "Successfully wrote \"readers\" ACL policy!\n", "{}", applied.stderr);
    let wanted = sent(&applied);
    assert_eq!((&wanted["Rules"], &wanted["Description"]), (&json!(rules), &json!("See nodes")));
    assert_eq!(wanted["JobACL"], Value::Null);
    let apply =
        |flags: &[&str]| cluster.run(&[&["acl", "policy", "apply"], flags, &["readers", path]].concat());
    let of_task = sent(&apply(&["-job=web", "-group=api", "-task=main"]))["JobACL"].clone();
    assert_eq!(of_task, json!({"Namespace": "default", "JobID": "web", "Group": "api", "Task": "main"}));
    let of_job = sent(&apply(&["-namespace=prod", "-job=web"]))["JobACL"].clone();
    assert_eq!(of_job, json!({"Namespace": "prod", "JobID": "web", "Group": "", "Task": ""}));

    let list = cluster.run(&["acl", "policy", "list"]);
    assert_eq!(list.stdout, "Name     Description\nreaders  See nodes\n", "{}", list.stderr);
    let own = cluster.run(&["acl", "policy", "self"]);
    assert_eq!(own.stdout, "Name     Job ID  Group Name  Task Name\nreaders  <none>  <none>      <none>\n");
    let info = cluster.run(&["acl", "policy", "info", "readers"]);
    assert!(info.stdout.ends_with("\nRules\nnode { policy = \"read\" }\n"), "{}", info.stdout);
    let deleted = cluster.run(&["acl", "policy", "delete", "readers"]);
    assert_eq!(deleted.stdout, "Successfully deleted readers policy!\n", "{}", deleted.stderr);
    let none = Cluster::answering(&[("GET /v1/acl/policies", "[]")]).run(&["acl", "policy", "list"]);
    assert_eq!(none.stdout, "No policies found\n");
}

#[test]
fn a_role_keeps_what_an_update_does_not_name_unless_it_is_replaced() {
    let role = r#"{"ID": "r1", "Name": "staff", "Description": "All of us", "Policies": [{"Name": "b"}],
        "CreateIndex": 7, "ModifyIndex": 8}"#;
    let cluster = Cluster::answering(&[
        ("GET /v1/acl/roles", &format!("[{role}]")),
        ("GET /v1/acl/role/r1", role),
        ("GET /v1/acl/role/name/staff", role),
        ("PUT /v1/acl/role", role),
        ("DELETE /v1/acl/role/r1", ""),
    ]);
    let created = cluster.run(&["acl", "role", "create", "-name=staff", "-policy=b", "-policy=a"]);
    let wanted = sent(&created);
    assert_eq!((&wanted["ID"], &wanted["Name"]), (&json!(""), &json!("staff")));
    assert_eq!(wanted["Policies"], json!([{"Name": "b"}, {"Name": "a"}]));
    let block = "ID           = r1\nName         = staff\nDescription  = All of us\nPolicies     = b\n\
                 Create Index = 7\nModify Index = 8\n";
    assert_eq!(created.stdout, block);

    let merged = sent(&cluster.run(&["acl", "role", "update", "-policy=a", "r1"]));
    assert_eq!((&merged["ID"], &merged["Name"]), (&json!("r1"), &json!("staff")));
    assert_eq!(merged["Description"], "All of us");
    assert_eq!(merged["Policies"], json!([{"Name": "a"}, {"Name": "b"}]));
    let replaced =
        sent(&cluster.run(&["acl", "role", "update", "-no-merge", "-name=new", "-policy=a", "r1"]));
    assert_eq!((&replaced["ID"], &replaced["Name"]), (&json!("r1"), &json!("new")));
    assert_eq!((&replaced["Description"], &replaced["Policies"]), (&json!(""), &json!([{"Name": "a"}])));
    for nameless in [&["create", "-policy=a"][..], &["update", "-no-merge", "-policy=a", "r1"]] {
        let refused = cluster.run(&[&["acl", "role"], nameless].concat());
        assert_eq!(refused.code, 1);
        assert!(refused.stderr.starts_with("-name is required\n"), "{}", refused.stderr);
        assert!(!refused.requests.iter().any(|request| request.starts_with("PUT")), "nothing is written");
    }

    let list = cluster.run(&["acl", "role", "list"]);
    assert_eq!(list.stdout, "ID  Name   Description  Policies\nr1  staff  All of us    b\n");
    assert_eq!(cluster.run(&["acl", "role", "info", "r1"]).stdout, block);
    assert_eq!(cluster.run(&["acl", "role", "info", "-by-name", "staff"]).stdout, block);
    let deleted = cluster.run(&["acl", "role", "delete", "r1"]);
    assert_eq!(deleted.stdout, "ACL role r1 successfully deleted\n");
}

#[test]
fn a_token_is_made_of_flags_and_keeps_what_an_update_does_not_name() {
    let token = r#"{"AccessorID": "a1", "SecretID": "s1", "Name": "ci", "Type": "client", "Policies": ["dev"],
        "Roles": [{"ID": "r1", "Name": "staff"}], "CreateTime": "2026-01-02T03:04:05Z", "Hash": "AAEC",
        "ExpirationTTL": "1h0m0s", "ExpirationTime": "2026-01-02T04:04:05Z", "CreateIndex": 7, "ModifyIndex": 7}"#;
    let cluster = Cluster::answering(&[
        ("GET /v1/acl/tokens", &format!("[{token}]")),
        ("GET /v1/acl/token/a1", token),
        ("GET /v1/acl/token/self", token),
        ("PUT /v1/acl/token", token),
        ("DELETE /v1/acl/token/a1", ""),
    ]);
    let create =
        ["acl", "token", "create", "-name=ci", "-policy=dev", "-ttl=1h", "-role-name=staff", "-role-id=r2"];
    let created = cluster.run(&create);
    let wanted = sent(&created);
    assert_eq!((&wanted["AccessorID"], &wanted["SecretID"]), (&json!(""), &json!("")));
    assert_eq!((&wanted["Type"], &wanted["Policies"]), (&json!("client"), &json!(["dev"])));
    assert_eq!(wanted["Roles"], json!([{"ID": "", "Name": "staff"}, {"ID": "r2", "Name": ""}]));
    assert_eq!((&wanted["ExpirationTTL"], &wanted["Global"]), (&json!("1h0m0s"), &json!(false)));
    assert!(created.stdout.contains("\nExpiry Time  = 2026-01-02T04:04:05Z\n"), "{}", created.stdout);
    assert!(
        created.stdout.ends_with("\nPolicies     = [dev]\n\nRoles\nID  Name\nr1  staff\n"),
        "{}",
        created.stdout
    );

    let own = file(&format!("{SECRET}\n"));
    let path = own.path().to_str().unwrap();
    let brought = sent(&cluster.run(&["acl", "token", "create", "-accessor=a2", "-policy=dev", path]));
    assert_eq!((&brought["AccessorID"], &brought["SecretID"]), (&json!("a2"), &json!(SECRET)));
    for (flags, why) in [
        (&["-accessor=a2"][..], "-accessor and a file with the secret are given together, or neither\n"),
        (&["-policy=dev", path], "-accessor and a file with the secret are given together, or neither\n"),
        (&["-ttl=soon"], "-ttl \"soon\": expected a duration like 8h\n"),
        (&["-ttl=-1h"], "-ttl \"-1h\": expected a duration like 8h\n"),
    ] {
        let refused = cluster.run(&[&["acl", "token", "create"], flags].concat());
        assert_eq!((refused.code, refused.requests.len()), (1, 0), "{flags:?}");
        assert!(refused.stderr.starts_with(why), "{}", refused.stderr);
    }

    let renamed = sent(&cluster.run(&["acl", "token", "update", "-name=new", "a1"]));
    assert_eq!((&renamed["AccessorID"], &renamed["Name"]), (&json!("a1"), &json!("new")));
    assert_eq!((&renamed["Policies"], &renamed["Type"]), (&json!(["dev"]), &json!("client")));
    let other = sent(&cluster.run(&["acl", "token", "update", "-policy=ops", "a1"]));
    assert_eq!((&other["Policies"], &other["Name"]), (&json!(["ops"]), &json!("ci")));
    assert_eq!(other["Roles"], json!([{"ID": "r1", "Name": "staff"}]));

    let list = cluster.run(&["acl", "token", "list"]);
    let lines = "Name  Type    Global  Accessor ID  Expired\nci    client  false   a1           true\n";
    assert_eq!(list.stdout, lines, "{}", list.stderr);
    for shown in [&["info", "a1"][..], &["self"]] {
        let shown = cluster.run(&[&["acl", "token"], shown].concat());
        assert!(shown.stdout.starts_with("Accessor ID  = a1\nSecret ID    = s1\n"), "{}", shown.stderr);
    }
    let deleted = cluster.run(&["acl", "token", "delete", "a1"]);
    assert_eq!(deleted.stdout, "Token a1 successfully deleted\n");
}
