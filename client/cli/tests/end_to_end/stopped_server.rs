//! What a stopped server left in its data directory is read where it lies.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use model::Image;
use serde_json::{Value, json};
use server::snapshot_file::{Decoder, Kept};
use state::State;

use crate::end_to_end::support::{AgentConfig, CommandOutput, program, sojourn, staying, until};

#[test]
fn the_log_and_the_state_of_a_stopped_server_are_printed_and_nothing_of_it_changes() {
    let directory = tempfile::tempdir().unwrap();
    let config = AgentConfig::server(directory.path(), "one");
    let agent = config.start();
    agent.register(&staying("first"));
    let second = agent.register(&staying("second"));
    let data = config.home.join("data");
    for command in ["info", "logs", "state"] {
        let refused = raft(command, &[], &data).expect_failure();
        assert!(refused.contains("is in use by another process"), "{command}: {refused}");
    }
    agent.run(&["status"]).expect_success();
    agent.kill();
    let log = data.join("server/log");
    let before = files(&log);

    let entries: Vec<Value> = lines(&raft("logs", &[], &data).expect_success());
    let numbers: Vec<u64> = entries.iter().map(|entry| entry["Entry"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
    let members = entries.iter().find(|entry| entry["Kind"] == "members").unwrap();
    assert_eq!(members["Members"][0]["Voter"], true);
    let batch = entries.iter().find(|entry| entry["Index"] == second).unwrap();
    let events = batch["Events"].as_array().unwrap();
    let registered = events.iter().find(|event| event["Event"] == "JobRegistered").unwrap();
    assert_eq!(
        (&registered["Object"], &registered["Description"]),
        (&json!("job/default/second"), &json!("registered as version 0"))
    );
    let pretty = raft("logs", &["-pretty"], &data).expect_success();
    assert!(pretty.contains("\n    \"Kind\": \"blank\""), "{pretty}");

    let last = entries.iter().filter_map(|entry| entry["Index"].as_u64()).max().unwrap();
    let info = raft("info", &[], &data).expect_success();
    assert!(info.ends_with(&format!("Last index: {last}\n")), "{info}");
    let state = printed(&raft("state", &[], &data));
    assert_eq!((state["Index"].as_u64(), jobs(&state)), (Some(last), vec!["first", "second"]));
    assert_eq!(state["NodePools"].as_array().unwrap().len(), 2);
    let earlier = printed(&raft("state", &["-last-index", &(second - 1).to_string()], &data));
    assert_eq!((earlier["Index"].as_u64(), jobs(&earlier)), (Some(second - 1), vec!["first"]));
    let back = printed(&raft("state", &["-last-index=-1"], &data));
    assert_eq!(back["Index"], last - 1);
    let only = printed(&raft("state", &["-table", "Nodes"], &data));
    assert_eq!(only.as_object().unwrap().keys().collect::<Vec<_>>(), ["Cluster", "Index", "Nodes", "Time"]);
    let unknown = raft("state", &["-table", "nodes"], &data).expect_failure();
    assert!(unknown.contains("-table nodes: expected one of Nodes, JobVersions, "), "{unknown}");
    assert_eq!(files(&log), before);

    let elsewhere = raft("logs", &[], &data.join("server")).expect_failure();
    assert!(elsewhere.contains("expected a server's data_dir"), "{elsewhere}");
    assert!(!data.join("server/server").exists());
    let agent = config.start();
    assert_eq!(agent.get("/v1/job/second")["ID"], "second");
}

#[test]
fn a_damaged_log_is_named_and_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let config = AgentConfig::server(directory.path(), "one");
    let agent = config.start();
    for number in 0..10 {
        agent.register(&staying(&format!("job-{number}")));
    }
    agent.kill();
    let data = config.home.join("data");
    let log = data.join("server/log");
    let segment = log.join("00000000000000000001.seg");
    let mut bytes = fs::read(&segment).unwrap();
    // The last 64 bytes mark the segment's end.
    let written = bytes[..bytes.len() - 64].iter().rposition(|byte| *byte != 0).unwrap();
    bytes[written / 2] ^= 0x20;
    fs::write(&segment, bytes).unwrap();
    let before = files(&log);
    for command in ["info", "logs", "state"] {
        let refused = raft(command, &[], &data).expect_failure();
        assert!(refused.contains("the log is damaged in segment 00000000000000000001.seg"), "{refused}");
    }
    assert_eq!(files(&log), before);
}

#[test]
fn a_snapshot_is_printed_and_loses_its_keys() {
    let directory = tempfile::tempdir().unwrap();
    let agent = AgentConfig::server(directory.path(), "one").start();
    agent.register(&staying("kept"));
    agent.run(&["var", "put", "some/path", "key=value"]).expect_success();
    let file = |name: &str| directory.path().join(name).display().to_string();
    let (whole, short) = (file("whole.snap"), file("short.snap"));
    until("its keys are where they belong", || {
        // Of the try before.
        let _ = fs::remove_file(&whole);
        agent.run(&["operator", "snapshot", "save", &whole]).expect_success();
        let state = stored(Path::new(&whole));
        let mut holders = state.erasure.holders().values();
        state.without_private_keys().1 == 1 && holders.all(|holder| holder.has.is_some())
    });
    let state = printed(&agent.run(&["operator", "snapshot", "state", &whole]));
    assert_eq!(jobs(&state), ["kept"]);
    assert_eq!(state["Variables"][0]["Variable"]["Path"], "some/path");
    let keys = |name: &str| stored(Path::new(name)).without_private_keys().1;
    assert_eq!(keys(&whole), 1);

    agent.run(&["operator", "snapshot", "save", "-redact", &short]).expect_success();
    assert_eq!(keys(&short), 0);
    let said = agent.run(&["operator", "snapshot", "redact", &whole]).expect_success();
    assert_eq!(said, format!("Snapshot redacted: 1 sealed copy of a root key was taken out of {whole}\n"));
    assert_eq!(keys(&whole), 0);
    let redacted = printed(&agent.run(&["operator", "snapshot", "state", &whole]));
    assert_eq!(redacted, state, "the keys are all that is gone");
    let bytes = fs::read(&whole).unwrap();
    let said = agent.run(&["operator", "snapshot", "redact", &whole]).expect_success();
    assert!(said.ends_with("holds no key material: nothing was changed\n"), "{said}");
    assert_eq!(fs::read(&whole).unwrap(), bytes);

    // The cluster has its keys: it takes the rest of the state back.
    agent.run(&["var", "purge", "some/path"]).expect_success();
    agent.run(&["operator", "snapshot", "restore", &whole]).expect_success();
    let shown = agent.run(&["var", "get", "-item", "key", "some/path"]).expect_success();
    assert_eq!(shown.trim(), "value");

    fs::write(&whole, &bytes[..bytes.len() - 1]).unwrap();
    for command in ["state", "redact"] {
        let refused = agent.run(&["operator", "snapshot", command, &whole]).expect_failure();
        assert!(refused.contains("the file is cut off"), "{command}: {refused}");
    }
}

fn raft(command: &str, flags: &[&str], data: &Path) -> CommandOutput {
    let words = ["operator", "raft", command];
    program(&sojourn()).args(words).args(flags).arg(data).output().unwrap().into()
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn printed(output: &CommandOutput) -> Value {
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn jobs(state: &Value) -> Vec<&str> {
    let mut ids: Vec<&str> =
        state["JobVersions"].as_array().unwrap().iter().map(|job| job["ID"].as_str().unwrap()).collect();
    ids.sort_unstable();
    ids
}

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let file =
        |entry: fs::DirEntry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap());
    entries.map(file).collect()
}

fn stored(path: &Path) -> State {
    let mut decoder = Decoder::new(Kept::Everything);
    decoder.push(&fs::read(path).unwrap()).unwrap();
    let read = decoder.finish().unwrap();
    state::restore(&Image { index: read.index, chunks: read.chunks }).unwrap()
}
