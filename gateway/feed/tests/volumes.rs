//! What the stream shows of volumes, and of the plugins that mount them.

use base::{Duration, Index};
use feed::{Cursor, Feed};
use model::command::{Plan, RegisterJob};
use model::document::{
    CSIInfo, CSIVolume, CSIVolumeCapability, HostVolume, HostVolumeCapability, HostVolumeInfo, Node,
    VolumeRequest,
};
use model::{Command, NodeStatus, VolumeKey, VolumeKind};
use serde_json::{Value, json};
use test_world::{World, job_document, node_document, node_id};

use crate::support::{Log, everything, read};

const MODE: &str = "single-node-writer";

fn key() -> VolumeKey {
    VolumeKey::new(VolumeKind::Csi, "default", "data")
}

/// A node that runs a plugin and has a host volume of this id.
fn with_plugin(host_volume: &str) -> Node {
    let plugin = CSIInfo { healthy: true, provider: "aws.ebs".into(), ..CSIInfo::default() };
    let info = HostVolumeInfo { id: host_volume.into(), name: "scratch".into(), ..HostVolumeInfo::default() };
    Node {
        csi_node_plugins: [("ebs".to_string(), plugin)].into_iter().collect(),
        host_volumes: [("scratch".to_string(), info)].into_iter().collect(),
        ..node_document(1, "r1")
    }
}

fn csi_volume() -> CSIVolume {
    let capability = CSIVolumeCapability { access_mode: MODE.into(), attachment_mode: "file-system".into() };
    CSIVolume {
        id: "data".into(),
        name: "the data".into(),
        plugin_id: "ebs".into(),
        requested_capabilities: vec![capability].into(),
        ..CSIVolume::default()
    }
}

fn host_volume() -> HostVolume {
    let capability = HostVolumeCapability { access_mode: MODE.into(), attachment_mode: "file-system".into() };
    HostVolume {
        name: "scratch".into(),
        node_id: node_id(1).to_string(),
        host_path: "/srv/scratch".into(),
        plugin_id: "mkdir".into(),
        requested_capabilities: vec![capability].into(),
        ..HostVolume::default()
    }
}

/// Registers a job that mounts the volume and has one allocation of it placed.
fn mounting(world: &mut World) {
    let request = VolumeRequest {
        kind: "csi".into(),
        source: "data".into(),
        access_mode: MODE.into(),
        attachment_mode: "file-system".into(),
        ..VolumeRequest::default()
    };
    let mut job = job_document("web", "service", Duration::ZERO);
    job.task_groups[0].volumes = [("v".to_string(), request)].into_iter().collect();
    world.submit(Command::RegisterJob(Box::new(RegisterJob::new(job)))).unwrap();
    let plan = Plan { placed: vec![world.placement("web", 0, 1, None)], ..world.plan() };
    assert!(world.settle("web", plan).unwrap().full);
}

async fn events(world: &World) -> Vec<Value> {
    let log = Log::of(&world.log);
    let events = read(&Feed::new(log.clone()), Cursor::at(Index(1)), log.last(), &everything()).await;
    let events = events.iter().map(|event| serde_json::from_slice::<Value>(&event.body).unwrap());
    let own = ["CSIVolume", "HostVolume", "CSIPlugin"];
    events.filter(|event| own.iter().any(|topic| event["Topic"] == *topic)).collect()
}

fn kinds(events: &[Value]) -> Vec<String> {
    let kind = |event: &Value| format!("{} {}", event["Topic"], event["Type"]).replace('"', "");
    events.iter().map(kind).collect()
}

#[tokio::test]
async fn the_life_of_a_volume_of_a_plugin_is_seen() {
    let mut world = World::new();
    world.submit(Command::RegisterNode { document: Box::new(with_plugin("")) }).unwrap();
    let claimed = NodeStatus::Ready;
    world.submit(Command::UpdateNodeStatus { node: node_id(1), claimed }).unwrap();
    world.submit(Command::RegisterCsiVolume { volume: Box::new(csi_volume()) }).unwrap();
    mounting(&mut world);
    let (alloc, node) = (world.alloc("web[0]"), node_id(1));
    world.submit(Command::ClaimCsiVolume { volume: key(), alloc, node }).unwrap();
    world.report(1, &[("web[0]", "complete")]).unwrap();
    world.submit(Command::DetachCsiClaim { volume: key(), alloc, node: Some(node) }).unwrap();
    world.submit(Command::ReleaseCsiClaim { volume: key(), alloc }).unwrap();
    world.submit(Command::DeregisterVolume { volume: key(), force: false }).unwrap();
    world.check_replay();

    let events = events(&world).await;
    assert_eq!(
        kinds(&events),
        [
            "CSIPlugin NodeRegistration",
            "CSIVolume CSIVolumeRegistered",
            "CSIVolume CSIVolumeClaim",
            "CSIVolume CSIVolumeClaim",
            "CSIVolume CSIVolumeClaim",
            "CSIVolume CSIVolumeDeregistered",
        ]
    );
    let plugin = &events[0];
    assert_eq!((&plugin["Key"], &plugin["Namespace"]), (&json!("ebs"), &json!("")));
    assert_eq!(plugin["FilterKeys"], json!(["ebs"]));
    assert_eq!(plugin["Payload"]["Plugin"]["NodesHealthy"], 1);
    for event in &events[1..] {
        assert_eq!((&event["Key"], &event["Namespace"]), (&json!("data"), &json!("default")));
        assert_eq!(event["FilterKeys"], json!(["data", "the data", "ebs"]));
        let volume = &event["Payload"]["Volume"];
        assert_eq!((&volume["ID"], &volume["Secrets"]), (&json!("data"), &Value::Null), "{event}");
        assert_eq!(volume["Provider"], "aws.ebs");
    }
    // Who has it are those whose claims are not over: an allocation that has ended still has it.
    let has: Vec<usize> = events[1..]
        .iter()
        .map(|event| event["Payload"]["Volume"]["WriteAllocs"].as_object().unwrap().len())
        .collect();
    assert_eq!(has, [0, 1, 1, 0, 0]);
}

#[tokio::test]
async fn by_force_a_volume_goes_with_its_claims_and_is_seen_as_it_was() {
    let mut world = World::new();
    world.submit(Command::RegisterNode { document: Box::new(with_plugin("")) }).unwrap();
    world.submit(Command::UpdateNodeStatus { node: node_id(1), claimed: NodeStatus::Ready }).unwrap();
    world.submit(Command::RegisterCsiVolume { volume: Box::new(csi_volume()) }).unwrap();
    mounting(&mut world);
    let alloc = world.alloc("web[0]");
    world.submit(Command::ClaimCsiVolume { volume: key(), alloc, node: node_id(1) }).unwrap();
    world.submit(Command::DeregisterVolume { volume: key(), force: true }).unwrap();
    world.check_replay();
    let events = events(&world).await;
    let last = events.last().unwrap();
    assert_eq!(last["Type"], "CSIVolumeDeregistered");
    assert!(last["Payload"]["Volume"]["WriteAllocs"].get(alloc.to_string()).is_some(), "{last}");
    let own = events.iter().filter(|event| event["Index"] == last["Index"]).count();
    assert_eq!(own, 1, "the claims that go with it are a part of that");
}

#[tokio::test]
async fn the_life_of_a_volume_of_a_node_is_seen() {
    let mut world = World::new();
    world.register_node(1, "r1").unwrap();
    world.submit(Command::RegisterHostVolume { volume: Box::new(host_volume()) }).unwrap();
    let id = world.state.volumes.iter().next().unwrap().0.id.clone();
    // The node says that it has it.
    world.submit(Command::RegisterNode { document: Box::new(with_plugin(&id)) }).unwrap();
    world.submit(Command::UpdateNodeStatus { node: node_id(1), claimed: NodeStatus::Down }).unwrap();
    let volume = VolumeKey::new(VolumeKind::Host, "default", &id);
    world.submit(Command::DeregisterVolume { volume, force: false }).unwrap();
    world.submit(Command::DeregisterNode { node: node_id(1) }).unwrap();
    world.check_replay();

    let events = events(&world).await;
    assert_eq!(
        kinds(&events),
        [
            "HostVolume HostVolumeRegistered",
            "CSIPlugin NodeRegistration",
            "HostVolume NodeRegistration",
            "CSIPlugin NodeStreamEvent",
            "HostVolume NodeStreamEvent",
            "HostVolume HostVolumeDeleted",
            "CSIPlugin NodeDeregistration",
        ]
    );
    let shown = |at: usize| &events[at]["Payload"]["Volume"];
    for at in [0, 2, 4, 5] {
        assert_eq!((&events[at]["Key"], &events[at]["Namespace"]), (&json!(id), &json!("default")));
        assert_eq!(events[at]["FilterKeys"], json!([id, "scratch", "mkdir"]));
        assert_eq!(shown(at)["HostPath"], "/srv/scratch");
    }
    let states = [0, 2, 4, 5].map(|at| shown(at)["State"].as_str().unwrap().to_string());
    assert_eq!(states, ["pending", "ready", "unavailable", "unavailable"]);
    let healthy = [1, 3].map(|at| events[at]["Payload"]["Plugin"]["NodesHealthy"].as_i64().unwrap());
    assert_eq!(healthy, [1, 0]);
    // The last node that had it is gone: the plugin is shown as it was.
    assert_eq!(events[6]["Payload"]["Plugin"]["NodesExpected"], 1);
}

/// Readers have stored ids of what was listed before there were volumes in the stream.
#[tokio::test]
async fn they_stand_behind_what_was_always_listed() {
    let mut world = World::new();
    world.submit(Command::RegisterNode { document: Box::new(with_plugin("")) }).unwrap();
    let log = Log::of(&world.log);
    let events = read(&Feed::new(log.clone()), Cursor::at(Index(1)), log.last(), &everything()).await;
    let topics: Vec<_> = events.iter().map(|event| (event.id.ordinal, event.topic)).collect();
    assert_eq!(topics, [(0, "Node"), (1, "CSIPlugin")]);
}
