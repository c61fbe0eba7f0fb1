//! Claims of CSI volumes: one takes it, whoever comes later waits, and nothing is released before it is detached.

use base::Duration;
use model::command::{Plan, RegisterJob};
use model::document::{CSIInfo, CSINodeInfo, CSIVolume, CSIVolumeCapability, VolumeRequest};
use model::{AllocId, Command, EPOCH, NodeStatus, Rejection, VolumeKey, VolumeKind};
use rules::Decision;
use test_world::{World, job_document, node_document, node_id};

const SINGLE: &str = "single-node-writer";
const SHARED: &str = "multi-node-multi-writer";
const ONE_WRITER: &str = "multi-node-single-writer";

fn volume_key() -> VolumeKey {
    VolumeKey::new(VolumeKind::Csi, "default", "data")
}

/// A volume that two nodes can mount, and a job with an allocation on each of them.
fn story(mode: &str, read_only: bool) -> World {
    let mut story = World::new();
    for number in [1, 2] {
        let node_info = CSINodeInfo { id: format!("i-{number}"), ..CSINodeInfo::default() };
        let plugin = CSIInfo {
            healthy: true,
            requires_controller_plugin: true,
            node_info: Some(node_info),
            ..CSIInfo::default()
        };
        let mut document = node_document(number, "r1");
        document.csi_node_plugins = [("ebs".to_string(), plugin)].into_iter().collect();
        story.submit(Command::RegisterNode { document: Box::new(document) }).unwrap();
        let claimed = NodeStatus::Ready;
        story.submit(Command::UpdateNodeStatus { node: node_id(number), claimed }).unwrap();
    }
    let capability = CSIVolumeCapability { access_mode: mode.into(), attachment_mode: "file-system".into() };
    let volume = CSIVolume {
        id: "data".into(),
        external_id: "vol-1".into(),
        plugin_id: "ebs".into(),
        requested_capabilities: vec![capability].into(),
        ..CSIVolume::default()
    };
    story.submit(Command::RegisterCsiVolume { volume: Box::new(volume) }).unwrap();
    let mut job = job_document("web", "service", Duration::ZERO);
    let request = VolumeRequest {
        kind: "csi".into(),
        source: "data".into(),
        access_mode: mode.into(),
        attachment_mode: "file-system".into(),
        read_only,
        ..VolumeRequest::default()
    };
    job.task_groups[0].count = Some(2);
    job.task_groups[0].volumes = [("v".to_string(), request)].into_iter().collect();
    story.submit(Command::RegisterJob(Box::new(RegisterJob::new(job)))).unwrap();
    let placed = vec![story.placement("web", 0, 1, None), story.placement("web", 1, 2, None)];
    let plan = Plan { placed, ..story.plan() };
    assert!(story.settle("web", plan).unwrap().full);
    story
}

fn claim(story: &mut World, name: &str, node: u128) -> Result<Decision, Rejection> {
    let alloc = story.alloc(name);
    story.submit(Command::ClaimCsiVolume { volume: volume_key(), alloc, node: node_id(node) })
}

fn detach(story: &mut World, alloc: AllocId, node: Option<u128>) -> Result<Decision, Rejection> {
    story.submit(Command::DetachCsiClaim { volume: volume_key(), alloc, node: node.map(node_id) })
}

fn release(story: &mut World, alloc: AllocId) -> Decision {
    story.submit(Command::ReleaseCsiClaim { volume: volume_key(), alloc }).unwrap()
}

#[test]
fn of_racers_for_a_single_writer_one_takes_it_and_the_other_waits_until_it_is_detached() {
    let mut story = story(SINGLE, false);
    assert!(!claim(&mut story, "web[0]", 1).unwrap().events.is_empty());
    assert!(claim(&mut story, "web[0]", 1).unwrap().events.is_empty(), "claimed so already");
    let first = story.alloc("web[0]");
    let claimed = story.state.claims.get(&volume_key(), first).unwrap().clone();
    let known = (claimed.claim.external_volume.as_str(), claimed.claim.external_node.as_str());
    assert_eq!((known, claimed.claim.attached), (("vol-1", "i-1"), true));
    let refused = claim(&mut story, "web[1]", 2).unwrap_err().to_string();
    assert!(
        refused.contains("volume max claims reached") && refused.contains(&first.to_string()),
        "{refused}"
    );

    // Ended is not detached.
    story.report(1, &[("web[0]", "complete")]).unwrap();
    claim(&mut story, "web[1]", 2).unwrap_err();
    assert!(release(&mut story, first).events.is_empty(), "what a node has is not released");
    assert!(matches!(detach(&mut story, first, Some(2)), Err(Rejection::NodeForeignAlloc { .. })));
    detach(&mut story, first, Some(1)).unwrap();
    assert!(detach(&mut story, first, None).unwrap().events.is_empty());
    claim(&mut story, "web[1]", 2).unwrap_err();
    assert!(!release(&mut story, first).events.is_empty());
    assert!(release(&mut story, first).events.is_empty());
    claim(&mut story, "web[1]", 2).unwrap();
    assert_eq!(story.state.claims.iter().count(), 1);
    story.check_replay();
}

#[test]
fn modes_say_who_may_have_it_beside_whom() {
    for (mode, read_only, together) in [
        (SHARED, false, true),
        (SHARED, true, true),
        (ONE_WRITER, false, false),
        (ONE_WRITER, true, true),
        ("multi-node-reader-only", true, true),
        ("single-node-reader-only", true, false),
        (SINGLE, true, false),
    ] {
        let mut story = story(mode, read_only);
        claim(&mut story, "web[0]", 1).unwrap();
        assert_eq!(claim(&mut story, "web[1]", 2).is_ok(), together, "{mode}, read-only: {read_only}");
        story.check_replay();
    }
    let mut story = story("multi-node-reader-only", false);
    let refused = claim(&mut story, "web[0]", 1).unwrap_err().to_string();
    assert!(refused.contains("AccessMode: expected one that allows writing"), "{refused}");
}

#[test]
fn a_volume_that_is_being_detached_from_a_node_is_not_claimed_there() {
    let mut story = story(SHARED, false);
    claim(&mut story, "web[0]", 1).unwrap();
    story.report(1, &[("web[0]", "complete")]).unwrap();
    let first = story.alloc("web[0]");
    detach(&mut story, first, Some(1)).unwrap();
    let another = story.placement("web", 0, 1, Some(first));
    let again = another.ids[0];
    story.submit(Command::EvaluateJob { key: test_world::key("web"), force_reschedule: false }).ok();
    if story.waiting_eval("web").is_some() {
        let plan = Plan { placed: vec![another], ..story.plan() };
        story.settle("web", plan).unwrap();
        let command = Command::ClaimCsiVolume { volume: volume_key(), alloc: again, node: node_id(1) };
        let refused = story.submit(command.clone()).unwrap_err().to_string();
        assert!(refused.contains("being detached"), "{refused}");
        // Elsewhere it is free.
        claim(&mut story, "web[1]", 2).unwrap();
        release(&mut story, first);
        story.submit(command).unwrap();
    }
    story.check_replay();
}

#[test]
fn only_what_the_job_asks_for_is_claimed_and_by_its_own_node() {
    let mut story = story(SINGLE, false);
    assert!(matches!(claim(&mut story, "web[0]", 2), Err(Rejection::NodeForeignAlloc { .. })));
    let alloc = story.alloc("web[0]");
    let other = VolumeKey::new(VolumeKind::Csi, "default", "other");
    let unknown = Command::ClaimCsiVolume { volume: other, alloc, node: node_id(1) };
    assert!(matches!(story.submit(unknown), Err(Rejection::VolumeUnknown(_))));
    story.report(1, &[("web[0]", "failed")]).unwrap();
    let refused = claim(&mut story, "web[0]", 1).unwrap_err().to_string();
    assert!(refused.contains("AllocationID: expected an allocation that has not ended"), "{refused}");
    assert!(detach(&mut story, alloc, Some(1)).unwrap().events.is_empty(), "nothing was claimed");
    story.check_replay();
}

#[test]
fn a_volume_with_a_claim_is_forgotten_by_force_alone_and_its_claims_with_it() {
    let mut story = story(SINGLE, false);
    claim(&mut story, "web[0]", 1).unwrap();
    story.report(1, &[("web[0]", "complete")]).unwrap();
    story.report(2, &[("web[1]", "complete")]).unwrap();
    let deregister = |force| Command::DeregisterVolume { volume: volume_key(), force };
    assert!(matches!(story.submit(deregister(false)), Err(Rejection::VolumeInUse(_))), "not detached yet");
    story.submit(deregister(true)).unwrap();
    assert_eq!((story.state.claims.iter().count(), story.state.volumes.len()), (0, 0));
    story.check_replay();
}

fn grown(story: &mut World, required_bytes: i64) -> Decision {
    let volume = volume_key();
    story.submit(Command::AwaitCsiExpansion { volume, required_bytes, limit_bytes: 0 }).unwrap()
}

fn expanded(story: &mut World, node: u128, required_bytes: i64) -> Result<Decision, Rejection> {
    let volume = volume_key();
    story.submit(Command::EndCsiExpansion { volume, node: node_id(node), required_bytes })
}

fn awaited(story: &World) -> Option<i64> {
    story.state.expansions.get(&volume_key()).map(|awaited| awaited.required_bytes)
}

#[test]
fn a_volume_that_has_grown_is_to_be_expanded_until_a_node_that_has_it_has_done_so() {
    let mut story = story(SINGLE, false);
    assert!(grown(&mut story, 7).events.is_empty(), "servers of earlier releases do not know of it");
    story.submit(Command::RaiseEpoch { epoch: EPOCH }).unwrap();
    grown(&mut story, 7);
    assert!(grown(&mut story, 7).events.is_empty(), "nothing changed");
    let refused = expanded(&mut story, 1, 7).unwrap_err().to_string();
    assert_eq!(refused, "invalid volume: NodeID: expected a node that has the volume");
    claim(&mut story, "web[0]", 1).unwrap();
    // It grows again while the node is at work.
    grown(&mut story, 9);
    assert!(expanded(&mut story, 1, 7).unwrap().events.is_empty());
    assert_eq!(awaited(&story), Some(9));
    expanded(&mut story, 1, 9).unwrap();
    assert!(expanded(&mut story, 1, 9).unwrap().events.is_empty());
    assert_eq!(awaited(&story), None);
    let other = VolumeKey::new(VolumeKind::Csi, "default", "other");
    let unknown = Command::AwaitCsiExpansion { volume: other, required_bytes: 7, limit_bytes: 0 };
    assert!(matches!(story.submit(unknown), Err(Rejection::VolumeUnknown(_))));
    story.check_replay();
}

#[test]
fn nobody_expands_a_volume_that_is_forgotten_or_is_another_one() {
    let mut story = story(SINGLE, false);
    story.submit(Command::RaiseEpoch { epoch: EPOCH }).unwrap();
    story.report(1, &[("web[0]", "complete")]).unwrap();
    story.report(2, &[("web[1]", "complete")]).unwrap();
    grown(&mut story, 7);
    let volume = story.state.volumes.csi("default", "data").unwrap().clone();
    let moved = CSIVolume { external_id: "vol-2".into(), ..volume.clone() };
    story.submit(Command::RegisterCsiVolume { volume: Box::new(moved) }).unwrap();
    assert_eq!(awaited(&story), None);
    grown(&mut story, 7);
    story.submit(Command::DeregisterVolume { volume: volume_key(), force: false }).unwrap();
    assert_eq!(awaited(&story), None);
    story.check_replay();
}
