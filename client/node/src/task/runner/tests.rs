//! A task whose earlier agent saw its end and did not live to decide what follows.

use serde_json::json;

use super::*;
use crate::store::StoredTask;
use crate::task::requests::Kill;
use crate::testing;

/// Runs a task that ended with code 1 under the previous agent, with so many restarts allowed; what happened to it
/// then, until it is dead.
async fn events_after_the_end(attempts: u64) -> Vec<String> {
    let base = tempfile::tempdir().unwrap();
    let context = testing::context(base.path());
    context.contacted.send_replace(true);
    let alloc: Allocation = serde_json::from_value(json!({
        "ID": testing::ALLOC_ID, "TaskGroup": "g", "DesiredStatus": "run",
        "Job": {"ID": "job", "Type": "batch", "TaskGroups": [{"Name": "g", "Tasks": [{
            "Name": "t", "Driver": "none", "RestartPolicy": {"Attempts": attempts, "Delay": 0}
        }]}]}
    }))
    .unwrap();
    let (_versions, alloc) = watch::channel(Arc::new(alloc));
    let (kill, killed) = watch::channel(None);
    let task = TaskContext { alloc, kill: killed, ..testing::task_context(&context) };
    task.tasks.change("t", |stored| {
        let exit = Exit { code: 1, ..Exit::default() };
        *stored = StoredTask { undecided: Some(exit), ..StoredTask::default() };
        stored.state.state = RUNNING.to_string();
    });
    let tasks = Arc::clone(&task.tasks);
    let (_gate, gate) = watch::channel(true);
    let (_requests, requests) = mpsc::channel(1);
    let hooks = TaskHooks::load(&task);
    let running = tokio::spawn(TaskRunner { task, hooks, gate, requests, restarting: Vec::new() }.run());
    let mut changes = tasks.subscribe();
    while tasks.state("t").unwrap().state != DEAD {
        changes.changed().await.unwrap();
    }
    kill.send_replace(Some(Kill::default()));
    running.await.unwrap();
    let state = tasks.state("t").unwrap();
    assert!(state.failed, "{state:?}");
    state.events.iter().map(|event| event.kind.clone()).collect()
}

#[tokio::test]
async fn an_end_that_nothing_followed_from_is_decided_by_the_next_agent() {
    assert_eq!(
        events_after_the_end(0).await,
        ["Not Restarting"],
        "no restart is allowed, so nothing is started"
    );
    let events = events_after_the_end(1).await;
    assert_eq!(events[0], "Restarting", "{events:?}");
}
