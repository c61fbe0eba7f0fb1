//! `sojourn record`, of a real agent.

use std::path::Path;

use serde_json::Value;

use crate::end_to_end::support::*;

/// A recorder of the agent, and where its recording is read.
struct Recorder {
    process: Follower,
    address: String,
}

impl Recorder {
    fn start(agent: &Agent, directory: &Path) -> Recorder {
        let (port, from) = (free_port(), format!("http://{}", agent.config.http));
        let (directory, port_flag) = (directory.display().to_string(), format!("-http-port={port}"));
        let words = ["record", "-from", &from, "-data-dir", &directory, &port_flag, "-list-every=1"];
        let mut process = agent.follow(&words);
        process.until("listed", || ());
        Recorder { process, address: format!("http://127.0.0.1:{port}") }
    }

    fn run(&self, agent: &Agent, words: &[&str]) -> CommandOutput {
        let mut command = agent.config.user(&sojourn());
        command.env("NOMAD_ADDR", &self.address).args(words).output().unwrap().into()
    }

    fn get(&self, agent: &Agent, path: &str) -> Value {
        serde_json::from_str(&self.run(agent, &["operator", "api", path]).expect_success()).unwrap()
    }

    fn allocs(&self, agent: &Agent) -> Vec<Value> {
        self.get(agent, "/v1/allocations").as_array().unwrap().iter().map(of_alloc).collect()
    }
}

/// What a recording has of an allocation too: indexes and times of changes are its own.
fn of_alloc(alloc: &Value) -> Value {
    let fields =
        ["ID", "JobID", "NodeID", "Name", "DesiredStatus", "ClientStatus", "TaskStates", "JobVersion"];
    fields.iter().map(|field| alloc[field].clone()).collect()
}

#[test]
fn a_recording_is_as_the_cluster_is_and_remembers_what_that_was() {
    let home = tempfile::tempdir().unwrap();
    let agent = AgentConfig::server_and_client(home.path(), "one").start();
    agent.wait_for_a_ready_node();
    agent.register(&staying("early"));
    agent.running("early");
    let kept = home.path().join("recording");
    let recorder = Recorder::start(&agent, &kept);
    agent.register(&staying("late"));
    let late = agent.running("late");
    until("the allocation is recorded as running", || {
        let alloc = recorder.run(&agent, &["operator", "api", &format!("/v1/allocation/{late}")]);
        let alloc = (alloc.code == 0).then(|| serde_json::from_str::<Value>(&alloc.stdout).unwrap());
        alloc.is_some_and(|alloc| alloc["ClientStatus"] == "running")
    });
    let then = format!("-as-of={}", recorder.get(&agent, &format!("/v1/allocation/{late}"))["ModifyIndex"]);
    agent.run(&["job", "stop", "-detach", "late"]).expect_success();
    until("the recording is as the cluster is", || {
        let allocs: Vec<Value> =
            agent.get("/v1/allocations").as_array().unwrap().iter().map(of_alloc).collect();
        allocs.iter().any(|alloc| alloc[5] == "complete") && allocs == recorder.allocs(&agent)
    });
    let history = recorder.run(&agent, &["history", "alloc", &late]).expect_success();
    assert!(history.contains("pending -> running") && history.contains("observed at index"), "{history}");
    let status = recorder.run(&agent, &["alloc", "status", &then, &late]).expect_success();
    assert!(
        status.lines().any(|line| line.starts_with("Client Status") && line.ends_with("running")),
        "{status}"
    );
    let why = recorder.run(&agent, &["why", "job", "early"]).expect_success();
    let from = format!("recomputed from the state that was observed of http://{}: ", agent.config.http);
    assert!(why.starts_with(&format!("Approximate: {from}")), "{why}");
    for of in ["job/early", &format!("allocation/{late}")] {
        let why = recorder.get(&agent, &format!("/v1/{of}/explain"));
        assert!(why["Approximate"].as_str().unwrap().starts_with(&from), "{of}: {why}");
        assert!(agent.get(&format!("/v1/{of}/explain")).get("Approximate").is_none());
    }
    let refused = recorder.run(&agent, &["job", "stop", "early"]).expect_failure();
    assert!(refused.contains("this is a recording of http://"), "{refused}");
    assert_eq!(recorder.process.interrupt(), 0);
    let flag = format!("-data-dir={}", kept.display());
    let refused = agent.run(&["agent", "-server", "-bootstrap-expect=1", &flag]).expect_failure();
    assert!(refused.contains("holds a recording of http://"), "{refused}");
    let again = Recorder::start(&agent, &kept);
    let history_again = again.run(&agent, &["history", "alloc", &late]).expect_success();
    assert_eq!(history_again, history, "a restart adds nothing to what is over");
    assert_eq!(again.process.interrupt(), 0);
}
