//! A disk that takes nothing for a while. In a process of its own, because the whole process has to do without it.

use std::path::Path;
use std::process::Command;

use crate::support::*;
use rustix::process::{Resource, Rlimit, setrlimit};
use serde_json::json;

/// Names the directory in which the process started below is an agent.
const FULL_DISK: &str = "NODE_TEST_FULL_DISK";

/// Not a test of its own: what [`a_node_whose_disk_is_full_keeps_its_tasks_and_starts_none_until_there_is_room`] runs.
#[tokio::test(flavor = "multi_thread")]
async fn agent() {
    let Ok(base) = std::env::var(FULL_DISK) else { return };
    let base = Path::new(&base);
    let room = |current| setrlimit(Resource::Fsize, Rlimit { current, maximum: None }).unwrap();
    let endless = |id| alloc(id, "service", json!([mock("t", json!({"run_for": "1h"}))]));
    let servers = FakeServers::new();
    // The driver that the servers have this node with last.
    let driver = || servers.cluster.lock().unwrap().registered.last().unwrap().drivers["mock_driver"].clone();
    servers.assign(endless(1));
    let agent = start(settings(base), &servers).await;
    servers.await_status(&alloc_id(1), "running");
    assert!(driver().healthy);

    room(Some(0));
    servers.assign(endless(2));
    let refused = servers.await_status(&alloc_id(2), "failed");
    let events = &refused.task_states["t"].events;
    let why = "local state cannot be written";
    assert!(events.iter().any(|event| event.display_message.contains(why)), "{events:?}");
    eventually("an unhealthy driver", || (!driver().healthy).then_some(()));
    assert!(driver().health_description.contains(why), "{}", driver().health_description);
    assert_eq!(servers.update(&alloc_id(1)).unwrap().client_status, "running");

    room(None);
    eventually("a healthy driver", || driver().healthy.then_some(()));
    servers.assign(endless(3));
    servers.await_status(&alloc_id(3), "running");
    agent.shutdown().await;
}

#[test]
fn a_node_whose_disk_is_full_keeps_its_tasks_and_starts_none_until_there_is_room() {
    let base = Base::new();
    // A file that must not grow is an error then, and no signal.
    let child = Command::new("/bin/sh")
        .args(["-c", "trap '' XFSZ; exec \"$0\" --exact full_disk::agent --nocapture"])
        .arg(std::env::current_exe().unwrap())
        .env(FULL_DISK, base.path())
        .output()
        .unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));
}
