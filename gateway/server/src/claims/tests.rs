use base::Duration as Span;
use model::VolumeKind;
use model::command::{Plan, RegisterJob};
use model::document::{CSIInfo, CSIVolume, CSIVolumeCapability, VolumeRequest};
use test_world::{World, job_document, node_document, node_id};

use super::*;

const MODE: &str = "multi-node-multi-writer";

fn key() -> VolumeKey {
    VolumeKey::new(VolumeKind::Csi, "default", "data")
}

fn register(world: &mut World) {
    let plugin = CSIInfo { healthy: true, requires_controller_plugin: true, ..CSIInfo::default() };
    let mut document = node_document(1, "r1");
    document.csi_node_plugins = [("ebs".to_string(), plugin)].into_iter().collect();
    world.submit(Command::RegisterNode { document: Box::new(document) }).unwrap();
    let claimed = NodeStatus::Ready;
    world.submit(Command::UpdateNodeStatus { node: node_id(1), claimed }).unwrap();
}

/// Two allocations on one node that have the same volume.
fn claimed() -> World {
    let mut world = World::new();
    register(&mut world);
    let capability = CSIVolumeCapability { access_mode: MODE.into(), attachment_mode: "file-system".into() };
    let volume = CSIVolume {
        id: "data".into(),
        plugin_id: "ebs".into(),
        requested_capabilities: vec![capability].into(),
        ..CSIVolume::default()
    };
    world.submit(Command::RegisterCsiVolume { volume: Box::new(volume) }).unwrap();
    let mut job = job_document("web", "service", Span::ZERO);
    let request = VolumeRequest {
        kind: "csi".into(),
        source: "data".into(),
        access_mode: MODE.into(),
        attachment_mode: "file-system".into(),
        ..VolumeRequest::default()
    };
    job.task_groups[0].volumes = [("v".to_string(), request)].into_iter().collect();
    world.submit(Command::RegisterJob(Box::new(RegisterJob::new(job)))).unwrap();
    let placed = vec![world.placement("web", 0, 1, None), world.placement("web", 1, 1, None)];
    let plan = Plan { placed, ..world.plan() };
    world.settle("web", plan).unwrap();
    for name in ["web[0]", "web[1]"] {
        let alloc = world.alloc(name);
        world.submit(Command::ClaimCsiVolume { volume: key(), alloc, node: node_id(1) }).unwrap();
    }
    world
}

fn step(world: &World, name: &str) -> Option<Step> {
    let alloc = world.alloc(name);
    let claimed = world.state.claims.get(&key(), alloc).expect("there is a claim");
    next(&world.state, (&key(), alloc), claimed)
}

#[test]
fn the_last_claim_of_a_node_has_the_volume_detached_and_the_others_are_released() {
    let mut world = claimed();
    assert_eq!((step(&world, "web[0]"), step(&world, "web[1]")), (None, None), "they live");
    world.report(1, &[("web[0]", "complete")]).unwrap();
    assert_eq!(step(&world, "web[0]"), Some(Step::Unmount));
    let first = world.alloc("web[0]");
    world.submit(Command::DetachCsiClaim { volume: key(), alloc: first, node: None }).unwrap();
    assert_eq!(step(&world, "web[0]"), Some(Step::Release), "the other one needs it attached");
    world.submit(Command::ReleaseCsiClaim { volume: key(), alloc: first }).unwrap();
    world.report(1, &[("web[1]", "failed")]).unwrap();
    let second = world.alloc("web[1]");
    world.submit(Command::DetachCsiClaim { volume: key(), alloc: second, node: None }).unwrap();
    assert_eq!(step(&world, "web[1]"), Some(Step::Detach));
    world.check_replay();
}

/// The allocations of a node that is lost have ended, and nobody there can unmount anything.
#[test]
fn claims_of_a_lost_node_are_given_up_and_detached() {
    let mut world = claimed();
    world.submit(Command::MissHeartbeat { node: node_id(1) }).unwrap();
    let allocs = vec![world.alloc("web[0]"), world.alloc("web[1]")];
    if world.waiting_eval("web").is_some() {
        let lost = test_world::stop(allocs, Some(model::ClientStatus::Lost));
        let plan = Plan { stopped: vec![lost], ..world.plan() };
        world.settle("web", plan).unwrap();
    }
    assert_eq!(step(&world, "web[0]"), Some(Step::GiveUpNode));
    let first = world.alloc("web[0]");
    world.submit(Command::DetachCsiClaim { volume: key(), alloc: first, node: None }).unwrap();
    let second = world.alloc("web[1]");
    world.submit(Command::DetachCsiClaim { volume: key(), alloc: second, node: None }).unwrap();
    assert_eq!(step(&world, "web[0]"), Some(Step::Detach));
    world.check_replay();
}

/// A node that does not give a volume back in time is asked, and what failed is tried again later each time.
#[test]
fn what_fails_is_tried_again_ever_later_and_what_is_done_is_forgotten() {
    let mut world = claimed();
    world.report(1, &[("web[0]", "complete")]).unwrap();
    let (mut pending, id) = (BTreeMap::new(), (key(), world.alloc("web[0]")));
    refresh(&world.state, &mut pending);
    assert_eq!(pending.len(), 1);
    let known = pending.get_mut(&id).unwrap();
    assert!(known.not_before > Instant::now() + GRACE / 2, "its node has time to do it itself");
    known.at_work = true;
    finish(&mut pending, id.clone(), Err("no".to_string()));
    assert_eq!((pending[&id].at_work, pending[&id].pause), (false, AGAIN * 2));
    (0..9).for_each(|_| finish(&mut pending, id.clone(), Err("no".to_string())));
    assert_eq!(pending[&id].pause, AGAIN_MAX);
    refresh(&world.state, &mut pending);
    assert_eq!(pending[&id].pause, AGAIN_MAX, "it is the same step");
    world.submit(Command::DetachCsiClaim { volume: key(), alloc: id.1, node: None }).unwrap();
    refresh(&world.state, &mut pending);
    assert_eq!((pending[&id].step, pending[&id].pause), (Step::Release, AGAIN));
    finish(&mut pending, id, Ok(()));
    assert!(pending.is_empty());
}
