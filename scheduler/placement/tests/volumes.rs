//! Groups with volumes, through whole passes (cases H). The checks of one node are tested beside the code.

use crate::support::*;
use model::document::{
    CSIInfo, CSIVolume, CSIVolumeCapability, HostVolume, HostVolumeCapability, HostVolumeInfo, Job, Node,
    VolumeRequest,
};
use model::{ClientStatus, Command};
use placement::Outcome;

fn mounts(kind: &str, source: &str) -> VolumeRequest {
    VolumeRequest { name: "v".into(), kind: kind.into(), source: source.into(), ..VolumeRequest::default() }
}

/// May share nodes.
fn with_volume(kind: &str, count: i64, request: VolumeRequest) -> Job {
    job(kind, count).with(|job| {
        job.constraints.clear();
        group(job).volumes = [("v".to_string(), request)].into_iter().collect();
    })
}

fn has(node: &mut Node, name: &str, id: &str) {
    let info = HostVolumeInfo { id: id.into(), path: "/srv".into(), ..HostVolumeInfo::default() };
    node.host_volumes.insert(name.to_string(), info);
}

/// A volume of the default namespace that was made on the node.
fn made(world: &mut World, n: u128, name: &str, mode: &str) {
    let id = base::Uuid::from(n).to_string();
    let capability = HostVolumeCapability { access_mode: mode.into(), attachment_mode: "file-system".into() };
    let document = HostVolume {
        id: id.clone(),
        name: name.into(),
        host_path: "/srv".into(),
        node_id: node_id(n).to_string(),
        requested_capabilities: vec![capability].into(),
        ..HostVolume::default()
    };
    world.node(n, |node| has(node, name, &id));
    world.submit(Command::RegisterHostVolume { volume: Box::new(document) });
}

fn csi(world: &mut World, id: &str, mode: &str) {
    let capability = CSIVolumeCapability { access_mode: mode.into(), attachment_mode: "file-system".into() };
    let document = CSIVolume {
        id: id.into(),
        name: id.into(),
        external_id: id.into(),
        plugin_id: "ebs".into(),
        requested_capabilities: vec![capability].into(),
        ..CSIVolume::default()
    };
    world.submit(Command::RegisterCsiVolume { volume: Box::new(document) });
}

fn run(world: &mut World, job: Job) -> Outcome {
    let eval = world.register(job);
    world.settle(eval)
}

fn reasons(outcome: &Outcome) -> Vec<(String, i64)> {
    failed(outcome).constraint_filtered.iter().map(|(text, nodes)| (text.clone(), *nodes)).collect()
}

/// H54, H67: nodes of one class differ in their volumes, and one without the volume does not rule out the others.
#[test]
fn a_volume_of_the_nodes_configuration_is_found_node_by_node() {
    let mut world = World::with_nodes(3);
    world.node(2, |node| has(node, "data", ""));
    let outcome = run(&mut world, with_volume("service", 2, mounts("host", "data")));
    assert_eq!(nodes(&outcome), [2, 2]);
    let outcome = run(&mut World::with_nodes(3), with_volume("service", 1, mounts("host", "data")));
    assert_eq!(reasons(&outcome), [("missing compatible host volumes".to_string(), 3)]);
    let end = outcome.settlement.end.unwrap();
    assert!(end.blocked.is_some_and(|eval| eval.outcome.classes.iter().all(|(_, eligible)| *eligible)));
}

/// H67, for jobs of every node.
#[test]
fn a_job_of_every_node_runs_where_its_volume_is() {
    let mut world = World::with_nodes(3);
    world.node(2, |node| has(node, "data", ""));
    let outcome = run(&mut world, with_volume("system", 1, mounts("host", "data")));
    assert_eq!(nodes(&outcome), [2]);
}

/// H58: also among the placements of one plan.
#[test]
fn a_single_writer_is_alone_on_its_node() {
    let mode = "single-node-single-writer";
    let mut world = World::with_nodes(2);
    made(&mut world, 1, "data", mode);
    made(&mut world, 2, "data", mode);
    let request = VolumeRequest { access_mode: mode.into(), ..mounts("host", "data") };
    let outcome = run(&mut world, with_volume("service", 3, request.clone()));
    assert_eq!(nodes(&outcome), [1, 2]);
    assert_eq!(reasons(&outcome), [("missing compatible host volumes".to_string(), 2)]);
    world.all_run();
    let more = with_volume("service", 3, request).with(|job| _ = job.meta.insert("a".into(), "b".into()));
    run(&mut world, more);
    assert_eq!(world.wanted().len(), 2, "both are still there: a change of the job alone stops none");
}

/// H59.
#[test]
fn each_allocation_may_ask_for_a_volume_of_its_own() {
    let mut world = World::with_nodes(3);
    world.node(1, |node| has(node, "data[1]", ""));
    world.node(3, |node| has(node, "data[0]", ""));
    let request = VolumeRequest { per_alloc: true, ..mounts("host", "data") };
    let outcome = run(&mut world, with_volume("service", 3, request));
    assert_eq!([world.node_of(world.named(0)), world.node_of(world.named(1))], [3, 1]);
    assert_eq!(placed(&outcome), [0, 1], "nobody has the third");
}

/// H60.
#[test]
fn what_sticks_comes_back_to_its_volume() {
    let mut world = World::with_nodes(3);
    for n in 1..=3 {
        made(&mut world, n, "data", "single-node-writer");
    }
    let request = VolumeRequest { sticky: true, ..mounts("host", "data") };
    let wanted = |count| with_volume("service", count, request.clone());
    let outcome = run(&mut world, wanted(1));
    let home = nodes(&outcome)[0];
    world.all_run();
    // By now the other nodes would score higher.
    world.report(world.named(0), ClientStatus::Failed);
    let eval = world.pending()[0];
    world.settle(eval);
    let later = world.skip_to(model::Trigger::RescheduleLater);
    let outcome = world.settle(later);
    assert_eq!(nodes(&outcome), [home]);
    world.all_run();
    let outcome = run(&mut world, wanted(2));
    assert_eq!(placed(&outcome), [1], "the volume is in use again: a second one may go anywhere");
}

#[test]
fn what_sticks_comes_back_to_a_volume_that_others_still_use() {
    let mut world = World::with_nodes(1);
    let mode = "single-node-multi-writer";
    made(&mut world, 1, "data", mode);
    let request = VolumeRequest { sticky: true, access_mode: mode.into(), ..mounts("host", "data") };
    let job = with_volume("service", 3, request);
    assert_eq!(nodes(&run(&mut world, job)), [1, 1, 1]);
    world.all_run();
    // Here nothing of the job runs: it would score higher.
    made(&mut world, 2, "data", mode);
    world.stop_alloc(world.named(1), false);
    let eval = world.pending()[0];
    assert_eq!(nodes(&world.settle(eval)), [1]);
}

/// The hints for the job, as it was decided.
fn hints(world: &mut World, job: Job) -> Vec<String> {
    let eval = world.register(job);
    let before = world.state.clone();
    world.settle(eval);
    let outcome = &world.eval(eval).outcome;
    let asked = before.evals.lookup(eval).unwrap();
    let reasons = placement::explain(&before, asked, outcome.seed, outcome.now, &|_| ());
    reasons.groups["web"].would_fit_if.to_vec()
}

fn runs(node: &mut Node, plugin: &str, healthy: bool) {
    node.csi_node_plugins.insert(plugin.into(), CSIInfo { healthy, ..CSIInfo::default() });
}

#[test]
fn a_volume_that_nobody_registered_is_a_hint_with_its_name() {
    let wanted = || with_volume("service", 1, mounts("csi", "vol"));
    let mut world = World::with_nodes(2);
    let found = hints(&mut world, wanted());
    let with_plugin =
        |n| format!("the CSI volume \"vol\" were registered and its CSI plugin ran on node \"n{n}\"");
    assert_eq!(found, [with_plugin(1), with_plugin(2)]);
    let mut world = World::with_nodes(2);
    world.node(2, |node| runs(node, "ebs", true));
    assert_eq!(
        hints(&mut world, wanted()),
        ["the CSI volume \"vol\" were registered with the plugin \"ebs\""]
    );
    let own = VolumeRequest { per_alloc: true, ..mounts("csi", "vol") };
    let found = hints(&mut world, with_volume("service", 2, own).with(|job| job.id = Some("own".into())));
    assert_eq!(found, ["the CSI volumes \"vol[0]\", \"vol[1]\" were registered with the plugin \"ebs\""]);
}

#[test]
fn a_volume_that_another_job_writes_to_is_a_hint_with_that_job() {
    let mut world = World::new();
    world.node(1, |node| runs(node, "ebs", true));
    csi(&mut world, "vol", "single-node-writer");
    run(&mut world, with_volume("service", 1, mounts("csi", "vol")));
    world.all_run();
    let other = with_volume("service", 1, mounts("csi", "vol")).with(|job| job.id = Some("other".into()));
    let found = hints(&mut world, other);
    assert_eq!(found, ["job \"job\", which writes to the CSI volume \"vol\", released it"]);
}

#[test]
fn a_plugin_that_is_not_healthy_is_a_hint_with_its_node() {
    let mut world = World::with_nodes(1);
    world.node(2, |node| runs(node, "ebs", false));
    csi(&mut world, "vol", "single-node-writer");
    let mut found = hints(&mut world, with_volume("service", 1, mounts("csi", "vol")));
    found.sort();
    let expected =
        ["the CSI plugin \"ebs\" ran on node \"n1\"", "the CSI plugin \"ebs\" were healthy on node \"n2\""];
    assert_eq!(found, expected);
}

/// H61.
#[test]
fn a_volume_that_nobody_registered_is_waited_for() {
    let mut world = World::with_nodes(2);
    let outcome = run(&mut world, with_volume("service", 1, mounts("csi", "vol")));
    assert_eq!(reasons(&outcome), [("missing CSI volume(s) vol".to_string(), 2)]);
    let blocked = outcome.settlement.end.unwrap().blocked.unwrap();
    assert_eq!(blocked.outcome.missing, ["csi-volume:default:vol"]);
    assert!(blocked.outcome.escaped, "it could be brought to any node");
    assert!(world.unblocked().is_empty());
    world.node(2, |node| {
        let plugin = CSIInfo { healthy: true, ..CSIInfo::default() };
        node.csi_node_plugins.insert("ebs".into(), plugin);
    });
    csi(&mut world, "vol", "single-node-writer");
    assert_eq!(world.unblocked(), [blocked.id]);
    let outcome = world.evaluate();
    assert_eq!(nodes(&outcome), [2]);
}

/// H63, H64: writers of one job share a volume, those of another wait.
#[test]
fn a_volume_has_the_writers_of_one_job() {
    let mut world = World::new();
    world.node(1, |node| {
        let plugin = CSIInfo { healthy: true, ..CSIInfo::default() };
        node.csi_node_plugins.insert("ebs".into(), plugin);
    });
    csi(&mut world, "vol", "single-node-writer");
    let outcome = run(&mut world, with_volume("service", 2, mounts("csi", "vol")));
    assert_eq!(nodes(&outcome), [1, 1]);
    world.all_run();
    let other = with_volume("service", 1, mounts("csi", "vol")).with(|job| job.id = Some("other".into()));
    let outcome = run(&mut world, other);
    let text = "CSI volume vol has exhausted its available writer claims";
    assert_eq!(reasons(&outcome), [(text.to_string(), 1)]);
}

/// H63: where the volume allows it and all writers ask for it, jobs write beside each other.
#[test]
fn jobs_share_a_volume_for_many_writers() {
    let mode = "multi-node-multi-writer";
    for (own, other) in [(mode, mode), (mode, "single-node-writer"), ("single-node-writer", mode)] {
        let mut world = World::new();
        world.node(1, |node| {
            let plugin = CSIInfo { healthy: true, ..CSIInfo::default() };
            node.csi_node_plugins.insert("ebs".into(), plugin);
        });
        csi(&mut world, "vol", own);
        let request = VolumeRequest { access_mode: other.into(), ..mounts("csi", "vol") };
        run(&mut world, with_volume("service", 1, request.clone()));
        world.all_run();
        let second = with_volume("service", 1, request).with(|job| job.id = Some("other".into()));
        let outcome = run(&mut world, second);
        let is_shared = own == mode && other == mode;
        assert_eq!(outcome.settlement.plan.placed.len(), usize::from(is_shared), "{own}, {other}");
    }
}
