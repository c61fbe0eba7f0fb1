//! Services of Nomad's own and their checks, from a job file to a request that they answer.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::end_to_end::support::*;

/// The one instance of a service.
fn instance(agent: &Agent, service: &str) -> Value {
    let found = agent.get(&format!("/v1/service/{service}"));
    assert_eq!(found.as_array().unwrap().len(), 1, "{found}");
    found[0].clone()
}

fn address(instance: &Value) -> SocketAddr {
    format!("{}:{}", text(&instance["Address"]), instance["Port"]).parse().unwrap()
}

#[test]
fn a_job_is_found_by_its_services_while_it_runs() {
    let python = Command::new("python3").arg("--version").stdout(Stdio::null()).status();
    if !python.is_ok_and(|status| status.success()) {
        eprintln!("skipped: the web server of the example needs python3");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let agent = AgentConfig::development(directory.path(), "dev").start();
    agent.wait_for_a_ready_node();
    let example = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/services.nomad.hcl");
    let file = example.to_str().unwrap();
    assert_eq!(agent.run(&["job", "validate", file]).expect_success(), "Job validation successful\n");
    // It returns once the deployment has ended, and that ends well once the checks have passed for a while.
    let ran = agent.run(&["job", "run", file]);
    assert!(!ran.stderr.contains("Warning"), "{}", ran.stderr);
    ran.expect_success();
    let constraints = agent.get("/v1/job/files")["TaskGroups"][0]["Constraints"].clone();
    let implied = json!({"LTarget": "${attr.nomad.service_discovery}", "Operand": "=", "RTarget": "true"});
    assert!(constraints.as_array().unwrap().contains(&implied), "{constraints}");

    let of_group = instance(&agent, "files");
    assert_eq!(of_group["Tags"], json!(["v1", "group-files"]));
    assert_eq!((&of_group["JobID"], &of_group["Namespace"]), (&json!("files"), &json!("default")));
    let alloc = agent.running("files");
    let id = format!("_nomad-task-{alloc}-group-files-files-http");
    assert_eq!((&of_group["ID"], &of_group["AllocID"]), (&json!(id), &json!(alloc)));
    let of_task = instance(&agent, "files-port");
    assert_eq!(of_task["ID"], format!("_nomad-task-{alloc}-serve-files-port-http"));
    assert_eq!(address(&of_task), address(&of_group));
    let answer = http::get(address(&of_group), "/").unwrap();
    assert_eq!(answer.status, 200);
    assert!(answer.body.contains("Directory listing"), "{}", answer.body);

    let checks = agent.get(&format!("/v1/client/allocation/{alloc}/checks"));
    let mut seen: Vec<_> = checks.as_object().unwrap().values().collect();
    seen.sort_by_key(|check| text(&check["Check"]));
    let shown = |check: &Value| ["Check", "Status", "Output", "Task", "Mode"].map(|key| text(&check[key]));
    assert_eq!(shown(seen[0]), ["answers", "success", "nomad: http ok", "", "healthiness"]);
    assert_eq!(shown(seen[1]), ["listens", "success", "nomad: tcp ok", "serve", "healthiness"]);
    assert_eq!((&seen[0]["StatusCode"], &seen[1]["StatusCode"]), (&json!(200), &json!(0)));
    let printed = agent.run(&["alloc", "checks", &alloc[..8]]).expect_success();
    assert!(printed.contains("Status of 2 Nomad Service Checks") && printed.contains("http ok"), "{printed}");

    agent.run(&["job", "stop", "-detach", "files"]).expect_success();
    for service in ["files", "files-port"] {
        until("the instance is gone", || agent.get(&format!("/v1/service/{service}")) == json!([]));
    }
    until("the task has ended", || {
        agent.get(&format!("/v1/allocation/{alloc}"))["ClientStatus"] == "complete"
    });
    assert_eq!(agent.get("/v1/services"), json!([]));
}
