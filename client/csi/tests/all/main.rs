//! Calls of the plugin for tests, over a real socket.

mod plugin;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use csi::messages::*;
use csi::{Code, CsiError, Patience, Plugin, Secrets, capability};
use plugin::{NODE_ID, SECRET, serve};
use tempfile::TempDir;
use tokio::task::JoinHandle;

const PATIENCE: Patience =
    Patience { question: Duration::from_secs(5), pause: Duration::from_millis(1), ..Patience::USUAL };

struct Served {
    base: TempDir,
    serving: JoinHandle<()>,
}

impl Served {
    async fn new() -> (Served, Plugin) {
        let base = tempfile::tempdir().unwrap();
        let (socket, dir) = (base.path().join("csi.sock"), base.path().to_owned());
        let at = socket.clone();
        let serving = tokio::spawn(async move { serve(&at, &dir).await });
        while !socket.exists() {
            tokio::task::yield_now().await;
        }
        let plugin = Plugin::connect("dirs", &socket, PATIENCE).await.unwrap();
        (Served { base, serving }, plugin)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.base.path().join(name)
    }

    fn calls(&self) -> Vec<String> {
        let calls = fs::read_to_string(self.path("calls")).unwrap_or_default();
        calls.lines().map(str::to_string).collect()
    }

    fn fails(&self, call: &str, code: Code) {
        fs::write(self.path("faults").join(call), (code as i32).to_string()).unwrap();
    }
}

fn writer() -> VolumeCapability {
    capability("single-node-writer", "file-system", "ext4", &["noatime".to_string()]).unwrap()
}

fn named(name: &str) -> CreateVolumeRequest {
    CreateVolumeRequest { name: name.into(), volume_capabilities: vec![writer()], ..Default::default() }
}

#[tokio::test]
async fn a_plugin_says_what_it_is_and_what_it_can_do() {
    let (served, plugin) = Served::new().await;
    assert!(plugin.probe().await.unwrap());
    let known = plugin.describe().await.unwrap();
    assert_eq!((known.name.as_str(), known.version.as_str()), ("dirs.test", "1.2"));
    assert!(known.has_controller && !known.has_topology);
    let controller = plugin.controller_capabilities().await.unwrap();
    assert!(controller.create_delete && controller.publish && controller.snapshots && controller.expand);
    assert!(!controller.clone_volume && !controller.get_capacity);
    assert!(plugin.node_capabilities().await.unwrap().stage);
    let info = plugin.node_info().await.unwrap();
    assert_eq!((info.node_id.as_str(), info.max_volumes_per_node), (NODE_ID, 7));
    fs::create_dir_all(served.path("NO/READY")).unwrap();
    assert!(!plugin.probe().await.unwrap());
    served.serving.abort();
}

#[tokio::test]
async fn a_volume_lives_from_its_creation_to_its_deletion() {
    let (served, plugin) = Served::new().await;
    let volume = plugin.create_volume(named("data")).await.unwrap();
    assert_eq!(volume.volume_id, "ext-data");
    let id = volume.volume_id.as_str();
    let request = ControllerPublishVolumeRequest {
        volume_id: id.into(),
        node_id: NODE_ID.into(),
        volume_capability: Some(writer()),
        ..Default::default()
    };
    let publish_context = plugin.controller_publish(request).await.unwrap();
    assert_eq!(publish_context["device"], "/dev/none");
    let (staging, target) = (served.path("staging"), served.path("target"));
    let text = |path: &Path| path.to_str().unwrap().to_string();
    for _ in 0..2 {
        let request = NodeStageVolumeRequest {
            volume_id: id.into(),
            publish_context: publish_context.clone(),
            staging_target_path: text(&staging),
            volume_capability: Some(writer()),
            ..Default::default()
        };
        plugin.node_stage(request).await.unwrap();
        let request = NodePublishVolumeRequest {
            volume_id: id.into(),
            publish_context: publish_context.clone(),
            staging_target_path: text(&staging),
            target_path: text(&target),
            volume_capability: Some(writer()),
            ..Default::default()
        };
        plugin.node_publish(request).await.unwrap();
    }
    fs::write(target.join("greeting"), "hello").unwrap();
    assert_eq!(fs::read_to_string(served.path("volumes/ext-data/greeting")).unwrap(), "hello");
    for _ in 0..2 {
        plugin.node_unpublish(id, &text(&target)).await.unwrap();
        plugin.node_unstage(id, &text(&staging)).await.unwrap();
        plugin.controller_unpublish(id, NODE_ID, &Secrets::default()).await.unwrap();
    }
    assert!(!target.exists());
    let listed = plugin.list_volumes(ListVolumesRequest::default()).await.unwrap();
    assert_eq!(listed.entries[0].volume.as_ref().unwrap().volume_id, "ext-data");
    plugin.delete_volume(id, &Secrets::default()).await.unwrap();
    plugin.delete_volume(id, &Secrets::default()).await.unwrap();
    assert!(fs::read_dir(served.path("volumes")).unwrap().next().is_none());
}

#[tokio::test]
async fn a_volume_is_checked_expanded_and_kept_as_a_snapshot() {
    let (_served, plugin) = Served::new().await;
    plugin.create_volume(named("data")).await.unwrap();
    let asked = ValidateVolumeCapabilitiesRequest {
        volume_id: "ext-data".into(),
        volume_capabilities: vec![writer()],
        ..Default::default()
    };
    plugin.validate(asked.clone()).await.unwrap().unwrap();
    let unknown = ValidateVolumeCapabilitiesRequest { volume_id: "no".into(), ..asked };
    assert!(plugin.validate(unknown).await.unwrap_err().is_not_found());
    let larger = ControllerExpandVolumeRequest {
        volume_id: "ext-data".into(),
        capacity_range: Some(CapacityRange { required_bytes: 9, limit_bytes: 0 }),
        ..Default::default()
    };
    assert_eq!(plugin.controller_expand(larger).await.unwrap().capacity_bytes, 9);
    let wanted = CreateSnapshotRequest {
        source_volume_id: "ext-data".into(),
        name: "monday".into(),
        ..Default::default()
    };
    let snapshot = plugin.create_snapshot(wanted).await.unwrap();
    assert_eq!((snapshot.snapshot_id.as_str(), snapshot.ready_to_use), ("snap-monday", true));
    let listed = plugin.list_snapshots(ListSnapshotsRequest::default()).await.unwrap();
    assert_eq!(listed.entries.len(), 1);
    plugin.delete_snapshot("snap-monday", &Secrets::default()).await.unwrap();
    plugin.delete_snapshot("snap-monday", &Secrets::default()).await.unwrap();
}

#[tokio::test]
async fn a_busy_plugin_is_asked_again_a_bounded_number_of_times() {
    let (served, plugin) = Served::new().await;
    for code in [Code::Unavailable, Code::ResourceExhausted] {
        served.fails("ListVolumes", code);
        let before = served.calls().len();
        let error = plugin.list_volumes(ListVolumesRequest::default()).await.unwrap_err();
        assert!(error.may_pass(), "{error}");
        assert_eq!(served.calls().len() - before, PATIENCE.attempts as usize);
    }
    // What is refused for good is not.
    served.fails("ListVolumes", Code::InvalidArgument);
    let before = served.calls().len();
    let error = plugin.list_volumes(ListVolumesRequest::default()).await.unwrap_err();
    assert_eq!(served.calls().len() - before, 1);
    assert!(!error.may_pass());
    let text = error.to_string();
    assert!(text.starts_with("plugin dirs: ListVolumes: told to fail"), "{text}");
    assert!(text.ends_with("(InvalidArgument)"), "{text}");
}

#[tokio::test]
async fn secrets_reach_the_plugin_and_no_message() {
    let (served, plugin) = Served::new().await;
    let with = |secret: &str| CreateVolumeRequest {
        parameters: BTreeMap::from([("secret".to_string(), "yes".to_string())]),
        secrets: BTreeMap::from([("key".to_string(), secret.to_string())]),
        ..named("sealed")
    };
    plugin.create_volume(with(SECRET)).await.unwrap();
    let refused = plugin.create_volume(with("wrong")).await.unwrap_err();
    assert!(matches!(refused, CsiError::Refused { code: Code::Unauthenticated, .. }), "{refused}");
    // A plugin that repeats the secret in its own words is not repeated.
    served.fails("CreateVolume", Code::Internal);
    let told = plugin.create_volume(with(SECRET)).await.unwrap_err().to_string();
    assert!(told.contains("<hidden>") && !told.contains(SECRET), "{told}");
    let shown = format!("{:?} {:?}", with(SECRET), Secrets(with(SECRET).secrets));
    assert!(!shown.contains(SECRET), "{shown}");
}

#[tokio::test]
async fn a_plugin_that_comes_again_is_reached_again_and_one_that_is_gone_is_named() {
    let (served, plugin) = Served::new().await;
    assert!(plugin.probe().await.unwrap());
    let (socket, dir) = (served.path("csi.sock"), served.base.path().to_owned());
    let none = Plugin::connect("other", &served.path("no.sock"), PATIENCE).await.unwrap_err();
    assert!(none.to_string().starts_with("plugin other: nothing answers on its socket: "), "{none}");
    served.serving.abort();
    fs::remove_file(&socket).unwrap();
    // A new process on the same path; what was connected to the old one may still be answered by it.
    tokio::spawn(async move { serve(&socket, &dir).await });
    assert!(plugin.probe().await.unwrap());
}

/// Paths of plugins are longer than an address of a socket.
#[tokio::test]
async fn a_socket_with_a_long_path_is_reached() {
    let base = tempfile::tempdir().unwrap();
    let long = base.path().join("x".repeat(120));
    fs::create_dir(&long).unwrap();
    let short = base.path().join("s");
    std::os::unix::fs::symlink(&long, &short).unwrap();
    let (bound, dir) = (short.join("csi.sock"), base.path().to_owned());
    tokio::spawn(async move { serve(&bound, &dir).await });
    let socket = long.join("csi.sock");
    while !socket.exists() {
        tokio::task::yield_now().await;
    }
    assert!(Plugin::connect("dirs", &socket, PATIENCE).await.unwrap().probe().await.unwrap());
}

#[test]
fn words_that_are_none_are_named() {
    let error = capability("rw", "file-system", "", &[]).unwrap_err();
    assert!(error.starts_with("access_mode \"rw\""), "{error}");
    let error = capability("single-node-writer", "disk", "", &[]).unwrap_err();
    assert!(error.starts_with("attachment_mode \"disk\""), "{error}");
}
