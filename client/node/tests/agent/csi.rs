//! Storage plugins as tasks, and volumes of theirs in other tasks.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::isolated::skipped;
use crate::support::*;
use model::document::{Allocation, CSIVolume};
use node::csi::CsiSettings;
use node::settings::NodeSettings;
use serde_json::json;
use wire::messages::CsiCapacityRange;

#[path = "../../../csi/tests/all/plugin.rs"]
mod plugin;

/// This program, called again by a task: the plugin.
#[test]
#[ignore = "a task's process, no test"]
fn serve() {
    let (Ok(endpoint), Ok(dir)) = (std::env::var("CSI_ENDPOINT"), std::env::var("CSI_TEST_DIR")) else {
        return;
    };
    let socket = endpoint.strip_prefix("unix://").unwrap().to_string();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(plugin::serve(socket.as_ref(), dir.as_ref()));
}

fn patient(base: &Path) -> NodeSettings {
    let csi = CsiSettings {
        probe_every: Duration::from_millis(100),
        probe_unhealthy_every: Duration::from_millis(50),
        probe_new_every: Duration::from_millis(20),
        claim_pause: Duration::from_millis(20),
        claim_pause_max: Duration::from_millis(100),
        undo_within: Duration::from_secs(10),
        ..CsiSettings::usual()
    };
    NodeSettings { csi, ..settings(base) }
}

/// The directory of the plugin, with a volume in it.
fn storage(base: &Base) -> PathBuf {
    let storage = base.path().join("storage");
    std::fs::create_dir_all(storage.join("volumes/ext-data")).unwrap();
    std::fs::create_dir_all(storage.join("faults")).unwrap();
    std::fs::write(storage.join("volumes/ext-data/greeting"), "hello").unwrap();
    storage
}

fn plugin_alloc(storage: &Path, config: serde_json::Value) -> Allocation {
    let program = std::env::current_exe().unwrap();
    let args = ["--exact", "csi::serve", "--ignored", "--nocapture"];
    alloc(
        1,
        "system",
        json!([{
            "Name": "plugin", "Driver": "raw_exec", "Config": {"command": program, "args": args},
            "Env": {"CSI_TEST_DIR": storage}, "CSIPluginConfig": config,
        }]),
    )
}

fn monolith() -> serde_json::Value {
    json!({"ID": "dirs", "Type": "monolith"})
}

fn user_alloc(id: u8, script: &str) -> Allocation {
    let volume = json!({
        "Name": "v", "Type": "csi", "Source": "data",
        "AccessMode": "single-node-writer", "AttachmentMode": "file-system",
    });
    let task = json!({
        "Name": "t", "Driver": "exec", "Config": {"command": "/bin/sh", "args": ["-c", script]},
        "VolumeMounts": [{"Volume": "v", "Destination": "/data", "PropagationMode": "private"}],
    });
    group_alloc(id, "service", json!({"Tasks": [task], "Volumes": {"v": volume}}))
}

/// As above, with the volume as a device.
fn device_alloc(id: u8, driver: &str, read_only: bool) -> Allocation {
    let volume = json!({
        "Name": "v", "Type": "csi", "Source": "data", "AccessMode": "single-node-writer",
        "AttachmentMode": "block-device",
    });
    let script = "stat -c '%F %t:%T' /dev/xvdb; while :; do sleep 0.1; done";
    let task = json!({
        "Name": "t", "Driver": driver, "Config": {"command": "/bin/sh", "args": ["-c", script]},
        "VolumeMounts": [{"Volume": "v", "Destination": "/dev/xvdb", "ReadOnly": read_only}],
    });
    group_alloc(id, "service", json!({"Tasks": [task], "Volumes": {"v": volume}}))
}

fn with_volume(servers: &FakeServers) {
    let volume = CSIVolume {
        id: "data".into(),
        external_id: "ext-data".into(),
        plugin_id: "dirs".into(),
        ..CSIVolume::default()
    };
    servers.change(|cluster| drop(cluster.csi_volumes.insert("data".into(), volume)));
}

fn calls(storage: &Path) -> Vec<String> {
    let calls = std::fs::read_to_string(storage.join("calls")).unwrap_or_default();
    calls.lines().map(str::to_string).collect()
}

fn count(storage: &Path, call: &str) -> usize {
    calls(storage).iter().filter(|line| line.starts_with(call)).count()
}

fn claims(servers: &Arc<FakeServers>) -> usize {
    servers.cluster.lock().unwrap().claims.len()
}

fn runs(servers: &Arc<FakeServers>, id: u8) {
    eventually("it runs", || {
        servers.update(&alloc_id(id)).filter(|update| update.client_status == "running")
    });
}

const STAYS: &str = "cat /data/greeting; echo here > /data/left 2>/dev/null; while :; do sleep 0.1; done";

#[tokio::test(flavor = "multi_thread")]
async fn a_task_has_a_volume_of_a_plugin_and_gives_it_back() {
    if skipped("a_task_has_a_volume_of_a_plugin") {
        return;
    }
    let (base, servers) = (Base::new(), FakeServers::new());
    let storage = storage(&base);
    with_volume(&servers);
    servers.assign(plugin_alloc(&storage, monolith()));
    // Another allocation still has the volume.
    servers.change(|cluster| cluster.claims.extend([("data".into(), "another".into())]));
    servers.assign(user_alloc(2, STAYS));
    let agent = start(patient(base.path()), &servers).await;
    let info = eventually("the plugin is reported", || {
        let node = agent.local().context.node();
        node.csi_node_plugins.get("dirs").filter(|info| info.healthy).cloned()
    });
    assert_eq!((info.provider.as_str(), info.provider_version.as_str()), ("dirs.test", "1.2"));
    let node_info = info.node_info.unwrap();
    assert_eq!((node_info.id.as_str(), node_info.max_volumes), (plugin::NODE_ID, 7));
    assert!(node_info.requires_node_stage_volume && info.requires_controller_plugin);
    let controller = agent.local().context.node().csi_controller_plugins["dirs"].clone();
    assert!(controller.controller_info.unwrap().supports_attach_detach);
    let events = eventually("the plugin's event", || {
        let update = servers.update(&alloc_id(1))?;
        let events: Vec<String> =
            update.task_states["plugin"].events.iter().map(|event| event.kind.clone()).collect();
        events.contains(&"Plugin became healthy".to_string()).then_some(events)
    });
    assert!(events.contains(&"Started".to_string()));
    eventually("it waits, and says why", || {
        let update = servers.update(&alloc_id(2))?;
        let mut events = update.task_states["t"].events.iter();
        events.any(|event| event.display_message.contains("waiting for volume data")).then_some(())
    });
    servers.change(|cluster| cluster.claims.clear());
    runs(&servers, 2);
    eventually("what it reads", || (log(base.path(), 2, "t.stdout.0") == "hello").then_some(()));
    assert_eq!(claims(&servers), 1);

    servers.stop(&alloc_id(2));
    eventually("the claim is given back", || (claims(&servers) == 0).then_some(()));
    let order = ["NodeStageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume"];
    let called: Vec<String> =
        calls(&storage).iter().filter_map(|line| line.split(' ').next().map(str::to_string)).collect();
    assert_eq!(called, order);
    let mounts = base.path().join("client/csi/mounts/dirs");
    for folder in ["per-alloc", "staging"] {
        assert_eq!(std::fs::read_dir(mounts.join(folder)).unwrap().count(), 0, "nothing is left in {folder}");
    }
    servers.stop(&alloc_id(1));
    eventually("the plugin is reported no more", || {
        agent.local().context.node().csi_node_plugins.is_empty().then_some(())
    });
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_has_a_volume_as_a_block_device() {
    if skipped("a_task_has_a_volume_as_a_block_device") {
        return;
    }
    let (base, servers) = (Base::new(), FakeServers::new());
    let storage = storage(&base);
    with_volume(&servers);
    servers.assign(plugin_alloc(&storage, monolith()));
    servers.assign(device_alloc(2, "exec", false));
    let agent = start(patient(base.path()), &servers).await;
    runs(&servers, 2);
    let seen = eventually("what it sees", || {
        Some(log(base.path(), 2, "t.stdout.0").trim().to_string()).filter(|text| !text.is_empty())
    });
    assert_eq!(seen, "block special file 7:fa0");
    servers.stop(&alloc_id(2));
    eventually("the claim is given back", || (claims(&servers) == 0).then_some(()));
    let per_alloc = base.path().join("client/csi/mounts/dirs/per-alloc");
    assert_eq!(std::fs::read_dir(per_alloc).unwrap().count(), 0, "the device file is removed");

    servers.assign(device_alloc(3, "exec", true));
    eventually("it is refused", || {
        let update = servers.update(&alloc_id(3))?;
        let mut events = update.task_states["t"].events.iter();
        let words = "driver \"exec\" cannot keep a task from writing to a block device";
        events.any(|event| event.display_message.contains(words)).then_some(())
    });
    servers.stop(&alloc_id(1));
    agent.shutdown().await;
}

/// A task can run on less than there is: it does not wait for a plugin that cannot expand the volume now.
#[tokio::test(flavor = "multi_thread")]
async fn a_volume_that_has_grown_is_expanded_when_it_is_mounted_next() {
    if skipped("a_volume_that_has_grown_is_expanded_when_it_is_mounted_next") {
        return;
    }
    let (base, servers) = (Base::new(), FakeServers::new());
    let storage = storage(&base);
    with_volume(&servers);
    let to = CsiCapacityRange { required_bytes: 4096, limit_bytes: 0 };
    servers.change(|cluster| cluster.expansions.extend([("data".into(), to)]));
    servers.assign(plugin_alloc(&storage, monolith()));
    servers.assign(user_alloc(2, STAYS));
    // Not to be passed by trying once more.
    std::fs::write(storage.join("faults/NodeExpandVolume"), "3").unwrap();
    let agent = start(patient(base.path()), &servers).await;
    runs(&servers, 2);
    let update = servers.update(&alloc_id(2)).unwrap();
    let mut events = update.task_states["t"].events.iter();
    let words = "volume data is mounted, but what is on it is not as large as the volume";
    assert!(events.any(|event| event.display_message.contains(words)));
    let awaited = || servers.cluster.lock().unwrap().expansions.len();
    assert_eq!(awaited(), 1, "the servers keep it in mind");
    servers.stop(&alloc_id(2));
    eventually("the claim is given back", || (claims(&servers) == 0).then_some(()));
    std::fs::remove_file(storage.join("faults/NodeExpandVolume")).unwrap();

    servers.assign(user_alloc(3, STAYS));
    runs(&servers, 3);
    assert_eq!((awaited(), count(&storage, "NodeExpandVolume ext-data 4096")), (0, 1));
    servers.stop(&alloc_id(3));
    eventually("the claim is given back", || (claims(&servers) == 0).then_some(()));
    servers.stop(&alloc_id(1));
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_died_between_staging_and_publishing_goes_on() {
    if skipped("an_agent_that_died_between_staging_and_publishing") {
        return;
    }
    let (base, servers) = (Base::new(), FakeServers::new());
    let storage = storage(&base);
    with_volume(&servers);
    servers.assign(plugin_alloc(&storage, monolith()));
    servers.assign(user_alloc(2, STAYS));
    // The agent dies while it waits to ask again.
    std::fs::write(storage.join("faults/NodePublishVolume"), "14").unwrap();
    let agent = start(patient(base.path()), &servers).await;
    eventually("it is staged, and not published", || {
        (count(&storage, "NodePublishVolume fails") > 0).then_some(())
    });
    assert_eq!((count(&storage, "NodeStageVolume"), claims(&servers)), (1, 1));
    drop(agent);
    std::fs::remove_file(storage.join("faults/NodePublishVolume")).unwrap();
    let agent = start(patient(base.path()), &servers).await;
    runs(&servers, 2);
    eventually("what it reads", || (log(base.path(), 2, "t.stdout.0") == "hello").then_some(()));
    assert_eq!(count(&storage, "NodeUn"), 0);

    // A task that runs is not disturbed by the next agent.
    let before = (count(&storage, "NodeStageVolume"), count(&storage, "NodePublishVolume ext"));
    agent.shutdown().await;
    let agent = start(patient(base.path()), &servers).await;
    eventually("the plugin is there again", || {
        let node = agent.local().context.node();
        node.csi_node_plugins.get("dirs").filter(|info| info.healthy).map(drop)
    });
    assert_eq!((count(&storage, "NodeStageVolume"), count(&storage, "NodePublishVolume ext")), before);
    servers.stop(&alloc_id(2));
    eventually("the claim is given back", || (claims(&servers) == 0).then_some(()));
    assert_eq!((count(&storage, "NodeUnpublishVolume"), count(&storage, "NodeUnstageVolume")), (1, 1));
    servers.stop(&alloc_id(1));
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_is_never_ready_is_restarted_and_bad_blocks_are_named() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let storage = storage(&base);
    std::fs::create_dir_all(storage.join("NO/READY")).unwrap();
    let config = json!({"ID": "dirs", "Type": "node", "HealthTimeout": 100_000_000});
    servers.assign(plugin_alloc(&storage, config));
    let wrong = json!([{
        "Name": "t", "Driver": "raw_exec", "Config": {"command": "/bin/true"},
        "CSIPluginConfig": {"ID": "x", "Type": "both"},
    }]);
    servers.assign(alloc(2, "service", wrong));
    let agent = start(patient(base.path()), &servers).await;
    let said = |id: u8, task: &str, words: &str| {
        eventually(words, || {
            let update = servers.update(&alloc_id(id))?;
            let mut events = update.task_states[task].events.iter();
            events.any(|event| event.display_message.contains(words)).then_some(())
        });
    };
    said(1, "plugin", "did not become healthy in time");
    said(2, "t", "csi_plugin type \"both\": expected \"node\", \"controller\" or \"monolith\"");
    agent.shutdown().await;
}
