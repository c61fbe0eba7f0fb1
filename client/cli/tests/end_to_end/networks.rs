//! A job in a network of its own, from a job file to a request that it answers.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::end_to_end::support::*;

const TEST: &str = "end_to_end::networks::a_job_on_a_bridge_is_reached_from_the_host_and_leaves_nothing";

/// Set in the process that has the namespaces of its own.
const INSIDE: &str = "SOJOURN_TEST_NETWORK";

/// Runs the test in a process with a network and mounts of its own. Returns true in that process.
fn alone() -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED {TEST}: networks of groups need root");
        return false;
    }
    for program in ["python3", "ip"] {
        let found = Command::new(program).arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if !found.is_ok_and(|status| status.success()) {
            eprintln!("SKIPPED {TEST}: it needs {program}");
            return false;
        }
    }
    let script = "mount -t tmpfs tmpfs /run && ip link set lo up && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "sh", "-c", script, "sh"]).arg(std::env::current_exe().unwrap());
    let output = command.args(["--exact", TEST, "--nocapture"]).env(INSIDE, "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() && complained.contains("unshare failed") {
        eprintln!("SKIPPED {TEST}: the kernel gives no namespaces: {complained}");
        return false;
    }
    assert!(output.status.success(), "{said}\n{complained}");
    false
}

fn interfaces() -> String {
    String::from_utf8(Command::new("ip").args(["-o", "link"]).output().unwrap().stdout).unwrap()
}

#[test]
fn a_job_on_a_bridge_is_reached_from_the_host_and_leaves_nothing() {
    if !alone() {
        return;
    }
    let before = interfaces();
    let directory = tempfile::tempdir().unwrap();
    // Whatever plugins this host has.
    let block = "client {\n  cni_path = \"/nowhere\"\n  bridge_network_subnet = \"10.88.0.0/24\"\n}\n";
    let agent = AgentConfig::server_and_client(directory.path(), "one").with(block).start();
    agent.wait_for_a_ready_node();
    let example = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/bridge.nomad.hcl");
    let file = example.to_str().unwrap();
    assert_eq!(agent.run(&["job", "validate", file]).expect_success(), "Job validation successful\n");
    let ran = agent.run(&["job", "run", file]);
    assert!(!ran.stderr.contains("Warning"), "{}", ran.stderr);
    ran.expect_success();
    let id = agent.running("bridged");
    let alloc = agent.get(&format!("/v1/allocation/{id}"));
    assert_eq!(alloc["NetworkStatus"]["InterfaceName"], "eth0");
    assert_eq!(alloc["NetworkStatus"]["Address"], "10.88.0.2");
    let instance = agent.get("/v1/service/bridged");
    assert_eq!((&instance[0]["Address"], &instance[0]["Port"]), (&json!("10.88.0.2"), &json!(8080)));
    let port = &alloc["AllocatedResources"]["Shared"]["Ports"][0]["Value"];
    let host: SocketAddr = format!("127.0.0.1:{port}").parse().unwrap();
    let answers = |address: SocketAddr| http::get(address, "/").is_ok_and(|answer| answer.status == 200);
    until("the host reaches it by its port", || answers(host));
    until("the check passes", || {
        let checks = agent.get(&format!("/v1/client/allocation/{id}/checks"));
        checks.as_object().is_some_and(|all| all.values().any(|check| check["Status"] == "success"))
    });
    let shown = agent.run(&["alloc", "exec", &id[..8], "ip", "-o", "-4", "address", "show", "eth0"]);
    assert!(shown.expect_success().contains("10.88.0.2/24"));

    // The agent is killed, and the job stays where it is.
    let config = agent.kill();
    assert!(answers(host));
    let agent = config.start();
    agent.wait_for_a_ready_node();
    assert!(answers(host));
    agent.run(&["job", "stop", "bridged"]).expect_success();
    until("the allocation has ended", || {
        agent.get(&format!("/v1/allocation/{id}"))["ClientStatus"] == "complete"
    });
    until("nothing is left", || interfaces() == before);
}
