//! Snapshots of the state: saved, inspected and restored.

use serde_json::Value;

use crate::end_to_end::support::http::{self, Events};
use crate::end_to_end::support::{AgentConfig, Process, staying, text, until};

#[test]
fn a_snapshot_restores_the_state() {
    let directory = tempfile::tempdir().unwrap();
    let config = AgentConfig::server_and_client(directory.path(), "one");
    let agent = config.start();
    agent.wait_for_a_ready_node();
    agent.register(&staying("kept"));
    let first = agent.running("kept");
    let file = directory.path().join("one.snap").display().to_string();
    let saved = agent.run(&["operator", "snapshot", "save", &file]).expect_success();
    assert!(saved.contains(&file), "{saved}");
    let shown = agent.run(&["operator", "snapshot", "inspect", &file]).expect_success();
    assert!(shown.contains("Index"), "{shown}");

    agent.run(&["job", "stop", "-detach", "kept"]).expect_success();
    agent.register(&staying("later"));
    let later = agent.process_of(&agent.running("later"));
    let before = agent.get("/v1/agent/self")["stats"]["raft"]["applied_index"].clone();

    agent.run(&["operator", "snapshot", "restore", &file]).expect_success();
    assert_eq!(http::get(config.http, "/v1/job/later").unwrap().status, 404);
    assert_eq!(agent.get("/v1/job/kept")["Stop"], false);
    // The client follows: allocations that are not wanted any more end, and those wanted again run.
    until("the later task ends", || !later.is_alive());
    // Ended allocations are replaced, or run again if nothing was left of them.
    until("it runs again", || {
        let running = agent.allocs("kept").into_iter().filter(|alloc| alloc["ClientStatus"] == "running");
        running.filter_map(|alloc| agent.process_now(&text(&alloc["ID"]))).any(Process::is_alive)
    });
    // The index continues: readers of the event stream do not go back.
    assert!(number(&agent.get("/v1/agent/self")["stats"]["raft"]["applied_index"]) > number(&before));

    // The restored state survives a crash, and readers of all events get it.
    agent.kill();
    let agent = config.start();
    assert_eq!(agent.get("/v1/job/kept")["Stop"], false);
    assert_eq!(http::get(config.http, "/v1/job/later").unwrap().status, 404);
    let last = agent.register(&staying("last"));
    let mut events = Events::open(config.http, None).unwrap();
    let ids: Vec<_> =
        std::iter::from_fn(|| Some(events.next().unwrap().id)).take_while(|id| id.0 < last).collect();
    assert!(!ids.is_empty() && ids.is_sorted_by(|one, next| one < next), "ids rise: {ids:?}");

    // Another cluster can restore it.
    let elsewhere = AgentConfig::server(directory.path(), "two").start();
    elsewhere.register(&staying("own"));
    elsewhere.run(&["operator", "snapshot", "restore", &file]).expect_success();
    assert_eq!(elsewhere.get("/v1/job/kept")["Stop"], false);
    assert_eq!(http::get(elsewhere.config.http, "/v1/job/own").unwrap().status, 404);
    assert_eq!(elsewhere.allocs("kept")[0]["ID"], first);
}

#[test]
fn a_state_with_a_job_of_11_mib_is_restored_and_kept() {
    let directory = tempfile::tempdir().unwrap();
    let agent = AgentConfig::server(directory.path(), "one").start();
    let mut large = staying("large");
    large["Meta"] = serde_json::json!({"blob": "x".repeat(11 << 20)});
    agent.register(&large);
    let file = directory.path().join("one.snap").display().to_string();
    agent.run(&["operator", "snapshot", "save", &file]).expect_success();
    agent.register(&staying("later"));
    agent.run(&["operator", "snapshot", "restore", &file]).expect_success();
    assert_eq!(agent.get("/v1/job/large")["Meta"]["blob"].as_str().map(str::len), Some(11 << 20));
    assert_eq!(http::get(agent.config.http, "/v1/job/later").unwrap().status, 404);
    // One that is larger than what the log takes is refused with its size, and changes nothing.
    large["Meta"]["blob"] = "x".repeat((14 << 20) + 1).into();
    let body = serde_json::json!({"Job": large});
    let refused = http::put(agent.config.http, "/v1/jobs", &body).unwrap();
    assert_eq!(refused.status, 400);
    assert!(refused.body.contains("expected at most 14680064"), "{}", refused.body);
}

#[test]
fn a_file_that_is_no_snapshot_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let agent = AgentConfig::server(directory.path(), "one").start();
    agent.register(&staying("own"));
    let file = directory.path().join("one.snap");
    let name = file.display().to_string();
    agent.run(&["operator", "snapshot", "save", &name]).expect_success();
    let whole = std::fs::read(&file).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    for (bytes, what) in
        [(b"no snapshot".to_vec(), "text"), (whole[..whole.len() - 1].to_vec(), "cut"), (flipped, "flipped")]
    {
        std::fs::write(&file, bytes).unwrap();
        let index = agent.get("/v1/job/own")["JobModifyIndex"].clone();
        let refused = agent.run(&["operator", "snapshot", "restore", &name]).expect_failure();
        assert!(refused.contains("napshot"), "{what}: {refused}");
        agent.run(&["operator", "snapshot", "inspect", &name]).expect_failure();
        assert_eq!(agent.get("/v1/job/own")["JobModifyIndex"], index, "{what}");
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().or_else(|| value.as_str()?.parse().ok()).unwrap_or_else(|| panic!("{value} is no number"))
}
