//! Hooks as a whole agent runs them: around restarts of tasks and of the agent, and before an end.

use std::time::{Duration, Instant};

use executor::spec::{ExecutorProcesses, STATE_FILE, read};
use node::alloc::handle::AllocCommand;
use serde_json::json;

use crate::support::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_is_written_once_and_not_again_after_a_restart_of_task_or_agent() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let script = "cat local/in; echo changed > local/in; exec tail -f /dev/null";
    let mut task = shell("t", script);
    task["DispatchPayload"] = json!({"File": "in"});
    let mut dispatched = alloc(1, "service", json!([task]));
    // The text "hi " in Snappy's block format.
    dispatched.job.as_mut().unwrap().payload = serde_json::from_value(json!("AwhoaSA=")).unwrap();
    servers.assign(dispatched);
    let agent = start(settings(base.path()), &servers).await;
    let output = |expected: &str| {
        eventually(expected, || (log(base.path(), 1, "t.stdout.0") == expected).then_some(()));
    };
    output("hi ");
    servers.await_status(&alloc_id(1), "running");
    let handle = agent.local().allocs.get(&alloc_id(1)).unwrap();
    handle.ask(|reply| AllocCommand::Restart { task: None, revive: false, reply }).await.unwrap();
    output("hi changed\n");
    // It holds the local state, which only one agent can have.
    drop(handle);
    agent.shutdown().await;

    let directory = std::fs::read_dir(base.path().join("client/executors")).unwrap().next().unwrap().unwrap();
    let state: ExecutorProcesses = read(&directory.path(), STATE_FILE).unwrap().unwrap();
    let killed = std::process::Command::new("kill").args(["-9", &state.executor.pid.to_string()]).status();
    assert!(killed.unwrap().success());
    let agent = start(settings(base.path()), &servers).await;
    output("hi changed\nchanged\n");
    servers.stop(&alloc_id(1));
    servers.await_status(&alloc_id(1), "complete");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_delays_of_group_and_task_pass_before_the_signal() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let mut task = mock("t", json!({"run_for": "1h"}));
    task["ShutdownDelay"] = json!("200ms");
    servers.assign(group_alloc(1, "service", json!({"ShutdownDelay": "300ms", "Tasks": [task]})));
    let agent = start(settings(base.path()), &servers).await;
    servers.await_status(&alloc_id(1), "running");
    let asked = Instant::now();
    servers.stop(&alloc_id(1));
    let update = servers.await_status(&alloc_id(1), "complete");
    assert!(asked.elapsed() >= Duration::from_millis(500), "{:?}", asked.elapsed());
    let kinds = kinds(&update.task_states["t"]);
    assert_eq!(kinds[3..], ["Killing", "Waiting for shutdown delay", "Terminated", "Killed"]);
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_urgent_stop_waits_for_no_delay() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let mut task = mock("t", json!({"run_for": "1h"}));
    task["ShutdownDelay"] = json!("1h");
    servers.assign(group_alloc(1, "service", json!({"ShutdownDelay": "1h", "Tasks": [task]})));
    let agent = start(settings(base.path()), &servers).await;
    servers.await_status(&alloc_id(1), "running");
    servers.stop(&alloc_id(1));
    let mut urgent = servers.cluster.lock().unwrap().assigned[&alloc_id(1)].clone();
    urgent.desired_transition.no_shutdown_delay = Some(true);
    servers.assign(urgent);
    let update = servers.await_status(&alloc_id(1), "complete");
    assert!(kinds(&update.task_states["t"]).contains(&"Skipping shutdown delay"));
    agent.shutdown().await;
}
