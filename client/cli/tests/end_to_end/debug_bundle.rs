//! A bundle of what a cluster says of itself: `operator debug`.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::end_to_end::support::{AgentConfig, program, sojourn, staying, text};

fn read(path: PathBuf) -> Value {
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&bytes).unwrap()
}

/// The only entry of a directory.
fn only(folder: &Path) -> PathBuf {
    let mut entries: Vec<PathBuf> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(entries.len(), 1, "{entries:?}");
    entries.remove(0)
}

#[test]
fn a_bundle_holds_logs_objects_metrics_and_events() {
    let directory = tempfile::tempdir().unwrap();
    let agent = AgentConfig::server_and_client(directory.path(), "one").with("enable_debug = true\n").start();
    agent.wait_for_a_ready_node();
    agent.register(&staying("kept"));
    agent.running("kept");
    let node = text(&agent.get("/v1/nodes")[0]["ID"]);
    let output = directory.path().join("bundles");
    let shown = output.display().to_string();
    let words = ["operator", "debug", "-duration=2s", "-interval=1s", "-event-topic=all", "-event-index=1"];
    let done = agent.run(&[&words[..], &["-output", &shown]].concat()).expect_success();
    assert!(done.contains("Created debug bundle: "), "{done}");
    let bundle = only(&output);
    for number in ["0000", "0001"] {
        let interval = bundle.join("interval").join(number);
        assert_eq!(read(interval.join("jobs.json"))[0]["ID"], "kept");
        assert_eq!(read(interval.join("nodes.json"))[0]["ID"], node);
        assert!(read(interval.join("metrics.json"))["Gauges"].is_array());
    }
    assert!(read(bundle.join("cluster/members.json"))["Members"].is_array());
    let server = only(&bundle.join("server"));
    for folder in [server, bundle.join("client").join(&node)] {
        assert!(read(folder.join("agent-host.json")).is_object());
        let log = std::fs::read_to_string(folder.join("monitor.log")).unwrap();
        assert!(log.contains("[DEBUG]") || log.contains("[TRACE]"), "{log}");
    }
    let events = std::fs::read_to_string(bundle.join("cluster/eventstream.json")).unwrap();
    assert!(events.contains("JobRegistered"), "{events}");
    let index = read(bundle.join("index.json"));
    assert_eq!(index["Errors"], serde_json::json!({}));
    assert!(index["Files"].as_array().unwrap().len() > 25, "{index}");

    // An archive in the working directory, unless a directory is named; it is the owner's alone.
    let home = directory.path().join("home");
    std::fs::create_dir(&home).unwrap();
    let address = format!("http://{}", agent.config.http);
    let made = program(&sojourn())
        .current_dir(&home)
        .args(["operator", "debug", "-duration=1s", "-interval=1s", "-node-id=none", "-address", &address])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let archive = only(&home);
    let mode = std::os::unix::fs::PermissionsExt::mode(&archive.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let list = Command::new("tar").arg("-tzf").arg(&archive).output().unwrap();
    let list = String::from_utf8(list.stdout).unwrap();
    assert!(list.contains("/interval/0000/jobs.json\n") && !list.contains("/client/"), "{list}");

    for (words, why) in [
        (["-pprof-duration=1s", "-duration=1s"], "-pprof-duration: agents are no Go programs"),
        (["-vault-token=x", "-duration=1s"], "-vault-token: Vault is not captured"),
        (["-duration=1s", "-interval=2s"], "-interval must not be longer"),
        (["-interval=1s", "-log-level=loud"], "-log-level is trace"),
        (["-interval=1s", "-node-id=zz"], "-node-id: there is no node \"zz\""),
        (["-interval=1s", "-server-id=zz"], "-server-id: there is no server \"zz\""),
    ] {
        let refused = agent.run(&[&["operator", "debug"][..], &words].concat()).expect_failure();
        assert!(refused.contains(why), "{words:?}: {refused}");
    }
}
