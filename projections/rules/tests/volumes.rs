//! Volumes: what may be registered, who waits for one, and who keeps one from being forgotten.

use base::Duration;
use model::command::{EvalEnd, Plan, RegisterJob, Settlement, Verdict};
use model::document::{
    CSIInfo, CSITopology, CSIVolume, CSIVolumeCapability, HostVolume, HostVolumeCapability, HostVolumeInfo,
    Namespace, VolumeRequest,
};
use model::event::{EvalOutcome, NewEval};
use model::{Command, EvalId, EvalStatus, NodeStatus, Rejection, VolumeKey, VolumeKind};
use rules::Decision;
use state::eval::Eval;
use test_world::{World, job_document, key, node_document, node_id, stop};

fn csi(id: &str) -> CSIVolume {
    let capability = CSIVolumeCapability {
        access_mode: "single-node-writer".into(),
        attachment_mode: "file-system".into(),
    };
    CSIVolume {
        id: id.into(),
        plugin_id: "ebs".into(),
        requested_capabilities: vec![capability].into(),
        ..CSIVolume::default()
    }
}

fn host(name: &str, node: u128) -> HostVolume {
    let capability = HostVolumeCapability {
        access_mode: "single-node-writer".into(),
        attachment_mode: "file-system".into(),
    };
    HostVolume {
        name: name.into(),
        node_id: node_id(node).to_string(),
        host_path: "/srv/data".into(),
        requested_capabilities: vec![capability].into(),
        ..HostVolume::default()
    }
}

fn register_csi(world: &mut World, volume: &CSIVolume) -> Result<Decision, Rejection> {
    world.submit(Command::RegisterCsiVolume { volume: Box::new(volume.clone()) })
}

fn register_host(world: &mut World, volume: &HostVolume) -> Result<Decision, Rejection> {
    world.submit(Command::RegisterHostVolume { volume: Box::new(volume.clone()) })
}

fn csi_key(id: &str) -> VolumeKey {
    VolumeKey::new(VolumeKind::Csi, "default", id)
}

fn deregister(world: &mut World, volume: &VolumeKey, force: bool) -> Result<Decision, Rejection> {
    world.submit(Command::DeregisterVolume { volume: volume.clone(), force })
}

/// Registers a job whose group mounts the volume, and has one allocation of it placed on node 1.
fn mounted(story: &mut World, kind: &str, source: &str) {
    let (kind, source) = (kind.to_string(), source.to_string());
    mounting(story, VolumeRequest { kind, source, ..VolumeRequest::default() });
}

fn mounting(story: &mut World, request: VolumeRequest) {
    let mut job = job_document("web", "service", Duration::ZERO);
    job.task_groups[0].volumes = [("v".to_string(), request)].into_iter().collect();
    let request = RegisterJob::new(job);
    story.submit(Command::RegisterJob(Box::new(request))).unwrap();
    let placed = vec![story.placement("web", 0, 1, None)];
    let plan = Plan { placed, ..story.plan() };
    assert!(story.settle("web", plan).unwrap().full);
}

/// What becomes of a plan that has one allocation of another job with the volume on the node, and was made on the
/// first state that there was.
fn placed_late(story: &mut World, node: u128, request: VolumeRequest) -> Verdict {
    story.end_planned("db");
    let mut job = job_document("db", "service", Duration::ZERO);
    job.task_groups[0].volumes = [("v".to_string(), request)].into_iter().collect();
    story.submit(Command::RegisterJob(Box::new(RegisterJob::new(job)))).unwrap();
    let placed = vec![story.placement("db", 0, node, None)];
    story.settle("db", Plan { placed, snapshot: base::Index(1), ..Plan::default() }).unwrap()
}

fn ready_node(story: &mut World) {
    story.register_node(1, "r1").unwrap();
    let claimed = NodeStatus::Ready;
    story.submit(Command::UpdateNodeStatus { node: node_id(1), claimed }).unwrap();
}

#[test]
fn a_volume_is_registered_described_anew_and_forgotten() {
    let mut world = World::new();
    assert!(!register_csi(&mut world, &csi("data")).unwrap().events.is_empty());
    assert!(register_csi(&mut world, &csi("data")).unwrap().events.is_empty(), "nothing changed");
    let created = world.state.volumes.get(&csi_key("data")).unwrap().created;
    register_csi(&mut world, &CSIVolume { capacity: 7, ..csi("data") }).unwrap();
    let volume = world.state.volumes.get(&csi_key("data")).unwrap();
    assert_eq!((volume.created, volume.modified), (created, world.state.index));
    assert_eq!(world.state.volumes.csi("default", "data").unwrap().capacity, 7);
    assert!(world.state.volumes.csi("other", "data").is_none());
    assert!(world.state.volumes.host("default", "data").is_none(), "of one type");
    deregister(&mut world, &csi_key("data"), false).unwrap();
    assert!(world.state.volumes.is_empty());
    let unknown = deregister(&mut world, &csi_key("data"), true).unwrap_err();
    assert_eq!(unknown.to_string(), "volume not found: data");
    world.check_replay();
}

#[test]
fn what_a_plugin_said_of_a_volume_stays_where_a_new_description_does_not_speak_of_it() {
    let zone =
        |name: &str| CSITopology { segments: [("zone".to_string(), name.to_string())].into_iter().collect() };
    let made = CSIVolume {
        external_id: "vol-1".into(),
        topologies: vec![zone("a")].into(),
        context: [("fs".to_string(), "7".to_string())].into_iter().collect(),
        capacity: 9,
        ..csi("data")
    };
    let known = |world: &World| world.state.volumes.csi("default", "data").unwrap().clone();
    let mut world = World::new();
    register_csi(&mut world, &made).unwrap();
    register_csi(&mut world, &CSIVolume { name: "Data".into(), ..csi("data") }).unwrap();
    assert_eq!(known(&world), CSIVolume { name: "Data".into(), namespace: "default".into(), ..made.clone() });
    register_csi(&mut world, &CSIVolume { topologies: vec![zone("b")].into(), ..csi("data") }).unwrap();
    assert_eq!(
        (known(&world).topologies, known(&world).context),
        (vec![zone("b")].into(), made.context.clone())
    );
    // Another thing, whether by its name or because another plugin calls it the same.
    for other in [
        CSIVolume { external_id: "vol-2".into(), ..csi("data") },
        CSIVolume { external_id: "vol-1".into(), plugin_id: "efs".into(), ..csi("data") },
    ] {
        register_csi(&mut world, &made).unwrap();
        register_csi(&mut world, &other).unwrap();
        assert_eq!(known(&world), CSIVolume { namespace: "default".into(), ..other });
    }
    world.check_replay();
}

/// A volume without a name of the plugin's is called by its id there.
#[test]
fn a_volume_in_use_may_be_described_by_the_name_that_its_plugin_has_for_it() {
    let mut story = World::new();
    ready_node(&mut story);
    register_csi(&mut story, &csi("data")).unwrap();
    mounted(&mut story, "csi", "data");
    register_csi(&mut story, &CSIVolume { external_id: "data".into(), ..csi("data") }).unwrap();
    let other_plugin = CSIVolume { external_id: "data".into(), plugin_id: "efs".into(), ..csi("data") };
    assert!(matches!(register_csi(&mut story, &other_plugin), Err(Rejection::VolumeInUse(_))));
    story.check_replay();
}

#[test]
fn what_makes_no_volume_is_refused_by_its_field() {
    let mut world = World::new();
    world.register_node(1, "r1").unwrap();
    let with = |change: fn(&mut CSIVolume)| {
        let mut volume = csi("data");
        change(&mut volume);
        volume
    };
    for (volume, expected) in [
        (with(|v| v.id.clear()), "ID: expected a name"),
        (with(|v| v.plugin_id.clear()), "PluginID: expected the name of a plugin"),
        (with(|v| v.requested_capabilities.clear()), "RequestedCapabilities: expected at least one"),
        (
            with(|v| v.requested_capabilities[0].access_mode = "rw".into()),
            "RequestedCapabilities.AccessMode: expected an access mode of such volumes",
        ),
        (
            with(|v| v.requested_capabilities[0].attachment_mode = String::new()),
            "RequestedCapabilities.AttachmentMode: expected file-system or block-device",
        ),
        (
            with(|v| drop(v.secrets.0.insert("key".into(), "s3cret".into()))),
            "Secrets: expected none: they belong into the variable csi/ID of the volume's namespace",
        ),
    ] {
        let refused = register_csi(&mut world, &volume).unwrap_err();
        assert_eq!(refused.to_string(), format!("invalid volume: {expected}"));
    }
    for (volume, expected) in [
        (HostVolume { name: String::new(), ..host("data", 1) }, "Name: expected a name"),
        (HostVolume { host_path: String::new(), ..host("data", 1) }, "HostPath: expected a path on the node"),
        (host("data", 2), "NodeID: expected the id of a registered node"),
        (HostVolume { id: "x".into(), ..host("data", 1) }, "ID: expected a UUID, or none"),
    ] {
        let refused = register_host(&mut world, &volume).unwrap_err();
        assert_eq!(refused.to_string(), format!("invalid volume: {expected}"));
    }
    assert!(world.state.volumes.is_empty());
    world.check_replay();
}

#[test]
fn a_volume_on_a_node_has_one_name_there_and_is_ready_while_the_node_has_it() {
    let mut world = World::new();
    world.register_node(1, "r1").unwrap();
    register_host(&mut world, &host("data", 1)).unwrap();
    let twice = register_host(&mut world, &host("data", 1)).unwrap_err();
    assert!(twice.to_string().contains("no other volume of the namespace"), "{twice}");
    let (key, _) = world.state.volumes.iter().next().unwrap();
    let key = key.clone();
    let shown = |world: &World| {
        state::volume::host_document(&world.state, world.state.volumes.host("default", &key.id).unwrap())
            .state
    };
    assert_eq!(shown(&world), "pending", "its node has said nothing since");
    let info = HostVolumeInfo { id: key.id.clone(), name: "data".into(), ..HostVolumeInfo::default() };
    let mut document = node_document(1, "r1");
    document.host_volumes = [("data".to_string(), info)].into_iter().collect();
    world.submit(Command::RegisterNode { document: Box::new(document) }).unwrap();
    assert_eq!(shown(&world), "ready");
    world.submit(Command::RegisterNode { document: Box::new(node_document(1, "r1")) }).unwrap();
    assert_eq!(shown(&world), "unavailable", "its node does not have it any more");
    let claimed = NodeStatus::Down;
    world.submit(Command::UpdateNodeStatus { node: node_id(1), claimed }).unwrap();
    assert_eq!(shown(&world), "unavailable");
    let moved = HostVolume { id: key.id.clone(), ..host("other", 1) };
    assert!(register_host(&mut world, &moved).is_err(), "a volume keeps its name");
    world.check_replay();
}

#[test]
fn a_volume_in_use_is_forgotten_by_force_only() {
    let mut story = World::new();
    ready_node(&mut story);
    register_csi(&mut story, &csi("data")).unwrap();
    mounted(&mut story, "csi", "data");
    let users = state::volume::csi_users(&story.state, "default", "data");
    assert_eq!(
        users.iter().map(|(alloc, writes)| (alloc.id, *writes)).collect::<Vec<_>>(),
        [(story.alloc("web[0]"), true)]
    );
    let refused = deregister(&mut story, &csi_key("data"), false).unwrap_err();
    assert_eq!(refused.to_string(), "volume in use: data");
    let elsewhere = CSIVolume { plugin_id: "other".into(), ..csi("data") };
    assert!(matches!(register_csi(&mut story, &elsewhere), Err(Rejection::VolumeInUse(_))));
    deregister(&mut story, &csi_key("data"), true).unwrap();
    story.check_replay();
}

#[test]
fn a_host_volume_in_use_is_kept_until_its_allocation_ended() {
    let mut story = World::new();
    ready_node(&mut story);
    register_host(&mut story, &host("data", 1)).unwrap();
    mounted(&mut story, "host", "data");
    let key = story.state.volumes.iter().next().unwrap().0.clone();
    assert!(matches!(deregister(&mut story, &key, false), Err(Rejection::VolumeInUse(_))));
    story.report(1, &[("web[0]", "complete")]).unwrap();
    deregister(&mut story, &key, false).unwrap();
    story.check_replay();
}

#[test]
fn a_host_volume_has_one_writer_where_one_is_asked_for() {
    let mut story = World::new();
    ready_node(&mut story);
    let request = VolumeRequest {
        kind: "host".into(),
        source: "data".into(),
        access_mode: "single-node-single-writer".into(),
        ..VolumeRequest::default()
    };
    mounting(&mut story, request);
    let old = story.alloc("web[0]");
    // Made before the first one came.
    let late = |story: &mut World, stopped: Vec<model::AllocId>| {
        story.end_planned("web");
        story.submit(Command::EvaluateJob { key: key("web"), force_reschedule: false }).unwrap();
        let placed = vec![story.placement("web", 1, 1, None)];
        let stopped = (!stopped.is_empty()).then(|| stop(stopped, None)).into_iter().collect();
        let plan = Plan { placed, stopped, snapshot: base::Index(1), ..Plan::default() };
        story.settle("web", plan).unwrap()
    };
    let refused = late(&mut story, vec![]);
    assert_eq!(refused.rejected[0].reason, "conflicting claims for host volume with single-writer");
    assert!(late(&mut story, vec![old]).full, "it takes the place of the one that goes");
    story.check_replay();
}

/// Two jobs whose plans were made before either was accepted.
#[test]
fn a_csi_volume_for_one_writer_is_not_given_to_a_second_job() {
    let mut story = World::new();
    ready_node(&mut story);
    story.register_node(2, "r1").unwrap();
    let claimed = NodeStatus::Ready;
    story.submit(Command::UpdateNodeStatus { node: node_id(2), claimed }).unwrap();
    register_csi(&mut story, &csi("data")).unwrap();
    mounted(&mut story, "csi", "data");
    let request = VolumeRequest { kind: "csi".into(), source: "data".into(), ..VolumeRequest::default() };
    let refused = placed_late(&mut story, 2, request.clone());
    let reason = "CSI volume data has exhausted its available writer claims";
    assert_eq!(refused.rejected[0].reason, reason);
    let reading = VolumeRequest { read_only: true, ..request.clone() };
    assert!(placed_late(&mut story, 2, reading).full, "readers are not in the way");
    story.report(1, &[("web[0]", "complete")]).unwrap();
    assert!(placed_late(&mut story, 2, request).full, "who ended has no claim");
    story.check_replay();
}

#[test]
fn a_plan_for_a_volume_that_was_forgotten_since_is_rejected() {
    let mut story = World::new();
    ready_node(&mut story);
    let late = |story: &mut World, kind: &str, source: &str| {
        let request = VolumeRequest { kind: kind.into(), source: source.into(), ..VolumeRequest::default() };
        placed_late(story, 1, request)
    };
    let refused = late(&mut story, "csi", "data");
    assert_eq!(refused.rejected[0].reason, "volume data is not registered");
    register_host(&mut story, &host("data", 1)).unwrap();
    let key = story.state.volumes.iter().next().unwrap().0.clone();
    let info = HostVolumeInfo { id: key.id.clone(), name: "data".into(), ..HostVolumeInfo::default() };
    let mut document = node_document(1, "r1");
    document.host_volumes = [("data".to_string(), info)].into_iter().collect();
    story.submit(Command::RegisterNode { document: Box::new(document) }).unwrap();
    deregister(&mut story, &key, false).unwrap();
    let refused = late(&mut story, "host", "data");
    assert_eq!(refused.rejected[0].reason, format!("volume {} is not registered", key.id));
    assert!(late(&mut story, "host", "config").full, "one of the node's configuration is registered nowhere");
    story.check_replay();
}

#[test]
fn a_csi_volume_is_schedulable_while_its_plugin_runs() {
    let mut world = World::new();
    let is_schedulable = |world: &World| state::volume::is_csi_schedulable(&world.state, &csi("data"));
    let plugin = |healthy| CSIInfo { healthy, requires_controller_plugin: true, ..CSIInfo::default() };
    let register = |world: &mut World, node_plugin, controller| {
        let mut document = node_document(1, "r1");
        document.csi_node_plugins = [("ebs".to_string(), plugin(node_plugin))].into_iter().collect();
        document.csi_controller_plugins = [("ebs".to_string(), plugin(controller))].into_iter().collect();
        world.submit(Command::RegisterNode { document: Box::new(document) }).unwrap();
    };
    assert!(!is_schedulable(&world));
    for (node_plugin, controller) in [(true, true), (false, true), (true, false)] {
        register(&mut world, node_plugin, controller);
        assert_eq!(is_schedulable(&world), node_plugin && controller);
    }
    world.check_replay();
}

/// H61: what wakes the evaluation; that a pass has it wait is tested with whole passes.
#[test]
fn an_evaluation_that_missed_a_volume_may_run_when_it_comes() {
    let mut story = World::new();
    story.register_job("web", "service", Duration::ZERO).unwrap();
    let eval = story.waiting_eval("web").unwrap();
    let outcome = EvalOutcome {
        snapshot: story.state.index,
        missing: vec![csi_key("data").resource()],
        ..EvalOutcome::default()
    };
    let created = &story.state.evals.lookup(eval).unwrap().facts;
    let blocked = EvalId(base::Uuid::from(77));
    let new = NewEval { id: blocked, status: EvalStatus::Blocked, outcome, ..(**created).clone() };
    let end = EvalEnd { blocked: Some(new), ..EvalEnd::complete(EvalOutcome::default()) };
    let settlement = Settlement { eval, plan: story.plan(), end: Some(end) };
    story.submit(Command::SettleEval(Box::new(settlement))).unwrap();
    let may_run = |story: &World| {
        let waiting: &Eval = story.state.evals.lookup(blocked).unwrap();
        waiting.may_be_unblocked(&story.state)
    };
    let shown = state::eval::document(&story.state, story.state.evals.lookup(blocked).unwrap());
    assert_eq!(shown.missing_non_node_resources.0, ["csi-volume:default:data"]);
    assert!(!may_run(&story));
    register_csi(&mut story, &csi("other")).unwrap();
    let elsewhere = CSIVolume { namespace: "other".into(), ..csi("data") };
    let unknown = Err(Rejection::NamespaceUnknown("other".into()));
    assert_eq!(register_csi(&mut story, &elsewhere), unknown);
    let other = Namespace { name: "other".into(), ..Namespace::default() };
    story.submit(Command::UpsertNamespace(Box::new(other))).unwrap();
    register_csi(&mut story, &elsewhere).unwrap();
    assert!(!may_run(&story), "another one is of no use");
    register_csi(&mut story, &csi("data")).unwrap();
    assert!(may_run(&story));
    assert!(story.state.jobs.lookup(&key("web")).is_some());
    story.check_replay();
}
