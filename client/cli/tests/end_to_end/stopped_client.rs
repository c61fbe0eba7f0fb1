//! What a stopped node has stored is read from a copy.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::end_to_end::support::{AgentConfig, CommandOutput, program, sojourn, staying, until};

#[test]
fn the_state_of_a_stopped_node_is_printed_and_nothing_of_it_changes() {
    let directory = tempfile::tempdir().unwrap();
    let config = AgentConfig::server_and_client(directory.path(), "one");
    let agent = config.start();
    agent.wait_for_a_ready_node();
    agent.register(&staying("kept"));
    let alloc = agent.running("kept");
    let task = agent.process_of(&alloc);
    let data = config.home.join("data");
    let refused = client_state(&data).expect_failure();
    assert!(refused.contains("the agent has to be stopped first"), "{refused}");
    agent.kill();

    let (mut before, mut after) = (BTreeMap::new(), BTreeMap::new());
    files(&data.join("client/state.db"), &mut before);
    let printed = client_state(&data).expect_success();
    let state: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(client_state(&data.join("client")).expect_success(), printed, "its state_dir will do");
    files(&data.join("client/state.db"), &mut after);
    assert!(!before.is_empty() && before == after, "nothing is changed");
    assert_eq!(state["Registered"], true);
    let stored = &state["Allocs"][0];
    assert_eq!((&stored["Alloc"]["ID"], &stored["Alloc"]["JobID"]), (&alloc.into(), &"kept".into()));
    let (_, kept) = stored["Tasks"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(kept["State"]["State"], "running");
    assert!(kept["Handle"].is_object(), "{kept}");
    assert!(!stored["HooksDone"].as_object().unwrap().is_empty());

    let elsewhere = client_state(directory.path()).expect_failure();
    assert!(elsewhere.contains("expected a client's data_dir"), "{elsewhere}");

    // The next agent finds the task by the same handle.
    let agent = config.start();
    agent.run(&["job", "stop", "-detach", "kept"]).expect_success();
    until("the task ends", || !task.is_alive());
}

fn client_state(data: &Path) -> CommandOutput {
    program(&sojourn()).args(["operator", "client-state"]).arg(data).output().unwrap().into()
}

fn files(folder: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.insert(path.display().to_string(), fs::read(&path).unwrap());
        }
    }
}
