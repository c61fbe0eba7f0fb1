//! `bench cluster` against an agent: what it measures, and that it leaves nothing behind.

use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::end_to_end::support::*;

fn report(agent: &Agent, arguments: &[&str]) -> Value {
    let arguments = [&["bench", "cluster", "-json"], arguments].concat();
    serde_json::from_str(&agent.run(&arguments).expect_success()).unwrap()
}

fn assert_nothing_is_left(agent: &Agent) {
    let names = |path: &str, field: &str| {
        agent.get(path).as_array().unwrap().iter().map(|found| text(&found[field])).collect::<Vec<_>>()
    };
    assert_eq!(names("/v1/jobs", "ID"), [""; 0]);
    assert_eq!(names("/v1/nodes", "ID"), [""; 0]);
    assert_eq!(names("/v1/node/pools", "Name"), ["all", "default"]);
}

#[test]
fn live_nodes_run_every_job_and_all_is_gone_afterwards() {
    let directory = tempfile::tempdir().unwrap();
    let agent = AgentConfig::server(directory.path(), "one").start();
    let pid = agent.pid().to_string();
    let closed = ["-nodes", "10", "-live", "-clients", "3", "-wait", "running", "-jobs", "12", "-time", "1h"];
    let closed = report(&agent, &[&closed[..], &["-settle", "2m", "-pid", &pid]].concat());
    let step = &closed["Steps"][0];
    for count in ["Submitted", "Accepted", "Placed", "Running"] {
        assert_eq!(step[count], 12, "{count}: {step}");
    }
    for count in ["Errors", "Backlog", "Unplaced", "Unseen", "HeartbeatErrors"] {
        assert_eq!(step[count], 0, "{count}: {step}");
    }
    let milliseconds = |kind: &str| step[kind]["P50"].as_f64().unwrap();
    assert!(milliseconds("AcceptedMs") > 0.0, "{step}");
    assert!(milliseconds("AcceptedMs") <= milliseconds("RunningMs"), "{step}");
    assert!(milliseconds("PlacedMs") <= milliseconds("RunningMs"), "{step}");
    assert!(step["Server"]["ResidentMib"].as_f64().unwrap() > 1.0, "{step}");
    assert_nothing_is_left(&agent);

    let bulk =
        report(&agent, &["-nodes", "20", "-jobs", "2", "-count", "50", "-subscribers", "3", "-time", "1h"]);
    let step = &bulk["Steps"][0];
    assert_eq!((&step["Placed"], &step["AllocationsPlaced"]), (&2.into(), &100.into()), "{step}");
    // A job, an evaluation and its allocations, for each of two jobs and three subscribers, at the least.
    assert!(step["Subscribers"]["Deliveries"].as_u64().unwrap() >= 312, "{step}");
    assert_nothing_is_left(&agent);

    // 20 heartbeats a second of each of 5 nodes.
    let idle = report(&agent, &["-nodes", "5", "-jobs", "0", "-beat-every", "50ms", "-time", "1s"]);
    let step = &idle["Steps"][0];
    assert!((10..=110).contains(&step["Heartbeats"].as_u64().unwrap()), "{step}");

    let ramp = ["-nodes", "5", "-rate", "5", "-ramp", "10", "-limit", "1ms", "-time", "1s"];
    let ramp = report(&agent, &ramp);
    assert_eq!(ramp["Steps"].as_array().unwrap().len(), 1, "nothing is placed in a millisecond: {ramp}");
    assert_eq!(ramp.get("HighestRate"), None);
    assert_nothing_is_left(&agent);
}

#[test]
fn what_was_on_nodes_that_fall_silent_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let agent = AgentConfig::server(directory.path(), "one").with(SOON_LOST).start();
    let options = ["-nodes", "6", "-fail", "1", "-rate", "10", "-time", "2s", "-settle", "2m"];
    let failed = report(&agent, &options);
    let failure = &failed["Steps"][0]["Failure"];
    assert_eq!((&failure["Nodes"], &failure["DownMs"]["Count"]), (&1.into(), &1.into()), "{failed}");
    let count = |field: &str| failure[field].as_u64().unwrap();
    assert!(count("Lost") > 0 && count("Replaced") >= count("Lost"), "{failed}");
    assert_nothing_is_left(&agent);
}

#[test]
fn an_interrupted_run_cleans_up_and_says_that_it_is_no_result() {
    let directory = tempfile::tempdir().unwrap();
    let agent = AgentConfig::server(directory.path(), "one").start();
    let mut command = agent.config.user(&sojourn());
    command.args(["bench", "cluster", "-nodes", "3", "-rate", "20", "-time", "2m"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("jobs are submitted", || !agent.get("/v1/jobs").as_array().unwrap().is_empty());
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output: CommandOutput = child.wait_with_output().unwrap().into();
    assert_eq!(output.code, 1, "{}{}", output.stdout, output.stderr);
    assert!(output.stdout.contains("\nInterrupted: these are no results\n"), "{}", output.stdout);
    assert_nothing_is_left(&agent);
}

#[test]
fn a_run_that_cannot_be_is_refused_by_the_name_of_its_flag_and_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let agent = AgentConfig::server(directory.path(), "one").start();
    for (arguments, why) in [
        (&["-nodes", "100001"][..], "-nodes: expected 0 to 100000, not 100001"),
        (&["-wait", "soon"], "-wait: expected accepted, placed or running, not \"soon\""),
        (&["-ramp", "2"], "-ramp: expected with -rate only"),
        (&["-rate", "5", "-wait", "placed"], "-wait: expected with a closed loop, without -rate, only"),
        (&["-pid", "4294967295"], "-pid: there is no process 4294967295 on this host"),
        (&["-address", "https://127.0.0.1:1"], "-address: expected http://HOST:PORT"),
        (&["-rpc", "127.0.0.1:1"], "-rpc: 127.0.0.1:1"),
        (
            &["-nodes", "1", "-node-cpu", "20", "-rate", "10"],
            "-nodes: 300 allocations find no room on 1 nodes",
        ),
    ] {
        let error = agent.run(&[&["bench", "cluster"], arguments].concat()).expect_failure();
        assert!(error.contains(why), "{arguments:?}: {error}");
        assert_nothing_is_left(&agent);
    }
}
