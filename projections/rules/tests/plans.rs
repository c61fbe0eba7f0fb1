//! Plans against a state that moved on: what of them is committed, and what of them is given to nodes.

use base::{Duration, Index};
use model::command::{EvalEnd, Plan, Settlement, Verdict};
use model::document::AllocatedDeviceResource;
use model::event::{AllocsPlaced, AllocsPreempted, AllocsUpdatedInPlace, DeploymentCreated, DeploymentGoal};
use model::{
    AllocId, ClientStatus, Command, DeploymentId, DeploymentStatus, Desired, Doc, Eligibility, EvalStatus,
    Event, Given, GivenToTask, NodeStatus, Rejection, Template, Trigger,
};
use state::alloc::Alloc;
use test_world::{World, key, node_id, preempt, stop, unknown};

const READY: NodeStatus = NodeStatus::Ready;

/// A world with as many ready nodes of 1,000 MHz, and a job whose evaluation waits.
fn world(nodes: u128, job: &str) -> World {
    let mut story = World::new();
    for number in 1..=nodes {
        story.register_node(number, "r1").unwrap();
        claim(&mut story, number, READY);
    }
    story.register_job(job, "service", Duration::from_secs(60)).unwrap();
    story
}

fn claim(story: &mut World, node: u128, claimed: NodeStatus) {
    story.submit(Command::UpdateNodeStatus { node: node_id(node), claimed }).unwrap();
}

fn evaluate(story: &mut World, job: &str) {
    story.submit(Command::EvaluateJob { key: key(job), force_reschedule: false }).unwrap();
}

/// Places one allocation by a plan of its own; the job's next evaluation waits then.
fn placed(story: &mut World, job: &str, node: u128) -> AllocId {
    let placement = story.placement(job, 0, node, None);
    let id = placement.ids[0];
    let plan = Plan { placed: vec![placement], ..story.plan() };
    assert!(story.settle(job, plan).unwrap().full);
    evaluate(story, job);
    id
}

fn get(story: &World, id: AllocId) -> &Alloc {
    story.state.allocs.lookup(id).expect("it was placed")
}

fn updated(story: &World, allocs: Vec<AllocId>, cpu_mhz: u32) -> AllocsUpdatedInPlace {
    let template = Doc::of(&Template { cpu_mhz, memory_mib: 64, ..Template::default() });
    let eval = story.waiting_eval("web").unwrap();
    AllocsUpdatedInPlace { eval, version: 0, template, allocs, deployment: None }
}

fn rejected(verdict: &Verdict) -> Vec<(u128, &str)> {
    let nodes = verdict.rejected.iter();
    nodes.map(|node| (node.node.0.as_u128() & 0xffff, node.reason.as_str())).collect()
}

fn given(cores: &[u16], gpus: &[&str]) -> Given {
    let device = AllocatedDeviceResource {
        vendor: "nvidia".into(),
        kind: "gpu".into(),
        name: "t4".into(),
        device_ids: gpus.iter().map(ToString::to_string).collect(),
    };
    let task = GivenToTask {
        cores: cores.to_vec().into(),
        cpu_mhz: 100 * cores.len() as u32,
        devices: (!gpus.is_empty()).then_some(device).into_iter().collect(),
    };
    Given { tasks: [("t".to_string(), task)].into_iter().collect(), ..Given::default() }
}

fn with(placement: AllocsPlaced, given: &Given) -> AllocsPlaced {
    AllocsPlaced { given: vec![Doc::of(given)], ..placement }
}

/// Settles a plan that was made before the node's load last changed.
fn settle_late(story: &mut World, plan: Plan) -> Verdict {
    story.end_planned("web");
    if story.waiting_eval("web").is_none() {
        evaluate(story, "web");
    }
    let row = story.state.nodes.find(node_id(1)).unwrap();
    let changed = story.state.nodes.hot(row).load_changed;
    let snapshot = base::Index(changed.0 - 1);
    story.settle("web", Plan { snapshot, ..plan }).unwrap()
}

/// K01.
#[test]
fn placements_on_a_node_that_went_down_are_dropped_and_the_others_committed() {
    let mut story = world(2, "web");
    let plan = Plan {
        placed: vec![story.placement("web", 0, 1, None), story.placement("web", 1, 2, None)],
        ..story.plan()
    };
    claim(&mut story, 1, NodeStatus::Down);
    let verdict = story.settle("web", plan).unwrap();
    assert_eq!(rejected(&verdict), [(1, "node is not ready for placements")]);
    assert_eq!((verdict.full, verdict.placed), (false, 1));
    let last = story.log.last().unwrap();
    let refresh = last.events.iter().find_map(|logged| match &logged.event {
        Event::PlanCommitted(plan) => Some(plan.refresh),
        _ => None,
    });
    assert_eq!(refresh, Some(last.previous), "the worker is told which state to look at");
    assert!(story.waiting_eval("web").is_some(), "the evaluation goes on");
    assert_eq!(story.state.allocs.len(), 1);
    story.check_replay();
}

/// K02.
#[test]
fn a_plan_that_is_accepted_all_at_once_or_not_at_all_leaves_nothing() {
    let mut story = world(3, "web");
    let old = placed(&mut story, "web", 3);
    let plan = Plan {
        all_at_once: true,
        placed: vec![story.placement("web", 0, 1, None), story.placement("web", 1, 2, None)],
        stopped: vec![stop(vec![old], None)],
        ..story.plan()
    };
    claim(&mut story, 2, NodeStatus::Down);
    let verdict = story.settle("web", plan).unwrap();
    assert_eq!(verdict.placed, 0);
    assert_eq!(
        rejected(&verdict),
        [(1, "the plan is accepted all at once or not at all"), (2, "node is not ready for placements")]
    );
    assert_eq!((story.state.allocs.len(), get(&story, old).desired), (1, Desired::Run));
    story.check_replay();
}

/// K03.
#[test]
fn an_ineligible_node_takes_updates_and_nothing_new() {
    let mut story = world(1, "web");
    let old = placed(&mut story, "web", 1);
    let to = Eligibility::Ineligible;
    story.submit(Command::SetNodeEligibility { node: node_id(1), to }).unwrap();
    let plan = Plan { updated: vec![updated(&story, vec![old], 200)], ..story.plan() };
    assert!(story.settle("web", plan).unwrap().full);
    assert_eq!(get(&story, old).amount().cpu_mhz, 200);
    evaluate(&mut story, "web");
    let plan = Plan { placed: vec![story.placement("web", 1, 1, None)], ..story.plan() };
    assert_eq!(rejected(&story.settle("web", plan).unwrap()), [(1, "node is not eligible")]);
    story.check_replay();
}

#[test]
fn an_update_needs_room_for_what_it_adds() {
    let mut story = world(1, "web");
    let old = placed(&mut story, "web", 1);
    let plan = Plan { updated: vec![updated(&story, vec![old], 1100)], ..story.plan() };
    assert_eq!(rejected(&settle_late(&mut story, plan)), [(1, "cpu exhausted")]);
    let plan = Plan { updated: vec![updated(&story, vec![old], 1000)], ..story.plan() };
    assert!(settle_late(&mut story, plan).full);
    story.check_replay();
}

/// K04.
#[test]
fn a_node_that_is_cut_off_takes_only_what_says_so() {
    let mut story = world(1, "web");
    let old = placed(&mut story, "web", 1);
    story.report(1, &[("web[0]", "running")]).unwrap();
    story.submit(Command::MissHeartbeat { node: node_id(1) }).unwrap();
    let plan = Plan { updated: vec![updated(&story, vec![old], 100)], ..story.plan() };
    let verdict = story.settle("web", plan).unwrap();
    assert_eq!(rejected(&verdict), [(1, "node is disconnected and does not take updates")]);
    let plan = Plan { placed: vec![story.placement("web", 1, 1, None)], ..story.plan() };
    let verdict = story.settle("web", plan).unwrap();
    assert_eq!(rejected(&verdict), [(1, "node is not ready for placements")]);
    let plan = Plan { unknown: vec![unknown(vec![old])], ..story.plan() };
    assert!(story.settle("web", plan).unwrap().full);
    assert_eq!(get(&story, old).client, ClientStatus::Unknown);
    evaluate(&mut story, "web");
    let plan = Plan { updated: vec![updated(&story, vec![old], 100)], ..story.plan() };
    assert!(story.settle("web", plan).unwrap().full, "what is unknown may be updated");
    story.check_replay();
}

/// K05.
#[test]
fn a_node_takes_stops_whatever_it_is() {
    let mut story = world(1, "web");
    let old = placed(&mut story, "web", 1);
    let plan = Plan { stopped: vec![stop(vec![old], None)], ..story.plan() };
    claim(&mut story, 1, NodeStatus::Down);
    assert!(story.settle("web", plan).unwrap().full);
    assert_eq!(get(&story, old).desired, Desired::Stop);
    story.check_replay();
}

/// K06.
#[test]
fn a_canary_that_is_not_placed_is_none() {
    let mut story = world(2, "web");
    let deployment = DeploymentId(base::Uuid::from(0xd1));
    let goal = DeploymentGoal { group: "g".into(), desired_canaries: 2, ..DeploymentGoal::default() };
    let created = DeploymentCreated {
        deployment,
        key: key("web"),
        version: 0,
        priority: 50,
        is_multiregion: false,
        status: DeploymentStatus::Running,
        description: String::new(),
        groups: vec![goal],
    };
    let [first, second] = [1, 2].map(|node| story.placement("web", 0, node, None));
    let canaries = AllocsPlaced {
        ids: [first.ids.clone(), second.ids].concat(),
        nodes: [first.nodes.clone(), second.nodes].concat(),
        names: vec![0, 1],
        deployment: Some(deployment),
        canary: true,
        ..first
    };
    let kept = canaries.ids[0];
    let plan = Plan { deployment: Some(created), placed: vec![canaries], ..story.plan() };
    claim(&mut story, 2, NodeStatus::Down);
    assert_eq!(rejected(&story.settle("web", plan).unwrap()), [(2, "node is not ready for placements")]);
    let group = &story.state.deployments.lookup(deployment).unwrap().groups["g"];
    assert_eq!((&group.placed_canaries[..], group.placed), (&[kept][..], 1));
    story.check_replay();
}

/// A26.
#[test]
fn of_a_plan_that_changes_nothing_nothing_is_written() {
    let mut story = world(1, "batch");
    let victim = placed(&mut story, "batch", 1);
    story.register_job("web", "service", Duration::ZERO).unwrap();
    let nobody = AllocsPreempted { allocs: vec![victim], by: AllocId::default() };
    let plan = Plan { all_at_once: true, preempted: vec![nobody], ..story.plan() };
    story.settle("web", plan).unwrap();
    let written = story.log.last().unwrap().events.iter().map(|logged| logged.event.name());
    assert_eq!(written.collect::<Vec<_>>(), ["EvalUpdated", "EvalAcked"]);
    story.check_replay();
}

/// K07.
#[test]
fn a_job_that_was_stopped_meanwhile_gets_nothing_new_and_its_stops() {
    let mut story = world(2, "web");
    let old = placed(&mut story, "web", 1);
    let plan = Plan {
        placed: vec![story.placement("web", 1, 2, None)],
        stopped: vec![stop(vec![old], None)],
        ..story.plan()
    };
    let stopped = Command::DeregisterJob {
        key: key("web"),
        purge: false,
        eval_priority: None,
        no_shutdown_delay: false,
    };
    story.submit(stopped).unwrap();
    let verdict = story.settle("web", plan).unwrap();
    assert_eq!((verdict.full, verdict.placed), (true, 0), "dropped without a word");
    assert_eq!((story.state.allocs.len(), get(&story, old).desired), (1, Desired::Stop));
    story.check_replay();
}

/// K08.
#[test]
fn a_plan_for_an_evaluation_that_ended_is_refused() {
    let mut story = world(1, "web");
    let eval = story.waiting_eval("web").unwrap();
    let plan = story.plan();
    story.settle("web", plan).unwrap();
    let plan = Plan { placed: vec![story.placement("web", 0, 1, None)], ..story.plan() };
    let settlement = Settlement { eval, plan, end: None };
    let late = story.submit(Command::SettleEval(Box::new(settlement)));
    assert_eq!(late.unwrap_err(), Rejection::EvalNotOutstanding(eval));
    assert!(story.state.allocs.is_empty());
    story.check_replay();
}

#[test]
fn a_plan_from_before_its_evaluation_was_blocked_is_refused() {
    let mut story = world(2, "web");
    let eval = story.waiting_eval("web").unwrap();
    let settle = |story: &mut World, node: u128, snapshot: Index| {
        let plan = Plan { placed: vec![story.placement("web", 0, node, None)], snapshot, ..story.plan() };
        let end = EvalEnd { status: EvalStatus::Blocked, ..EvalEnd::complete(Default::default()) };
        let settlement = Settlement { eval, plan, end: Some(end) };
        story.submit(Command::SettleEval(Box::new(settlement)))
    };
    let before = story.state.index;
    settle(&mut story, 1, before).unwrap();
    let late = settle(&mut story, 2, before);
    assert_eq!(late.unwrap_err(), Rejection::EvalNotOutstanding(eval), "another worker was sooner");
    let now = story.state.index;
    settle(&mut story, 2, now).unwrap();
    story.check_replay();
}

/// Of a worker that lost the evaluation and came sooner than the one that has it.
#[test]
fn a_plan_from_before_another_of_its_evaluation_is_made_again() {
    let mut story = world(2, "web");
    let eval = story.waiting_eval("web").unwrap();
    let settle = |story: &mut World, node: u128, snapshot: Index, end: Option<EvalEnd>| {
        let plan = Plan { placed: vec![story.placement("web", 0, node, None)], snapshot, ..story.plan() };
        let settlement = Settlement { eval, plan, end };
        let decision = story.submit(Command::SettleEval(Box::new(settlement))).unwrap();
        (decision.events.len(), decision.verdict.unwrap().full)
    };
    let before = story.state.index;
    assert!(settle(&mut story, 1, before, None).1);
    let complete = || Some(EvalEnd::complete(Default::default()));
    assert_eq!(settle(&mut story, 2, before, complete()), (0, false));
    let now = story.state.index;
    assert!(settle(&mut story, 2, now, complete()).1);
    assert_eq!(story.state.allocs.len(), 2);
    story.check_replay();
}

/// K09.
#[test]
fn only_what_is_given_up_changes_its_status_on_the_node() {
    let mut story = world(1, "web");
    let (plain, lost) = (placed(&mut story, "web", 1), placed(&mut story, "web", 1));
    let stopped = vec![stop(vec![plain], None), stop(vec![lost], Some(ClientStatus::Lost))];
    let plan = Plan { stopped, ..story.plan() };
    assert!(story.settle("web", plan).unwrap().full);
    let states = [plain, lost].map(|id| (get(&story, id).desired, get(&story, id).client));
    assert_eq!(states, [(Desired::Stop, ClientStatus::Pending), (Desired::Stop, ClientStatus::Lost)]);
    story.check_replay();
}

/// K10.
#[test]
fn a_replacement_and_its_predecessor_name_each_other_from_one_batch_on() {
    let mut story = world(2, "web");
    let old = placed(&mut story, "web", 1);
    let replacement = story.placement("web", 0, 2, Some(old));
    let new = replacement.ids[0];
    let plan = Plan { placed: vec![replacement], stopped: vec![stop(vec![old], None)], ..story.plan() };
    story.settle("web", plan).unwrap();
    assert_eq!((get(&story, old).next, get(&story, new).previous), (Some(new), Some(old)));
    assert_eq!(get(&story, old).modified, get(&story, new).created);
    story.check_replay();
}

/// I63.
#[test]
fn who_makes_room_is_evicted_and_its_job_evaluated() {
    let mut story = world(1, "batch");
    let victim = placed(&mut story, "batch", 1);
    story.register_job("web", "service", Duration::ZERO).unwrap();
    let mut plan = Plan { placed: vec![story.placement("web", 0, 1, None)], ..story.plan() };
    plan.preempted.push(preempt(victim, &plan));
    let by = plan.placed[0].ids[0];
    assert!(story.settle("web", plan).unwrap().full);
    let evicted = state::alloc::document(&story.state, get(&story, victim));
    assert_eq!(evicted.desired_status, "evict");
    assert_eq!(evicted.desired_description, format!("Preempted by alloc ID {by}"));
    assert_eq!(evicted.preempted_by_allocation, by.to_string());
    let winner = state::alloc::document(&story.state, get(&story, by));
    assert_eq!(winner.preempted_allocations.0, [victim.to_string()]);
    let evals = story.state.jobs.lookup(&key("batch")).unwrap().live_evals.iter();
    let evals: Vec<_> = evals.map(|row| &story.state.evals.get(*row).facts).collect();
    let preemption: Vec<u32> =
        evals.iter().filter(|eval| eval.trigger == Trigger::Preemption).map(|eval| eval.priority).collect();
    assert_eq!(preemption, [50], "one evaluation, with the priority of the job that lost");
    story.check_replay();
}

/// I64.
#[test]
fn who_ended_before_makes_no_room_again() {
    let mut story = world(1, "batch");
    let victim = placed(&mut story, "batch", 1);
    story.register_job("web", "service", Duration::ZERO).unwrap();
    let mut plan = Plan { placed: vec![story.placement("web", 0, 1, None)], ..story.plan() };
    plan.preempted.push(preempt(victim, &plan));
    let by = plan.placed[0].ids[0];
    story.report(1, &[("batch[0]", "complete")]).unwrap();
    assert!(story.settle("web", plan).unwrap().full);
    assert_eq!((get(&story, victim).desired, get(&story, victim).preempted_by), (Desired::Run, None));
    assert!(get(&story, by).preempted.is_empty());
    story.check_replay();
}

#[test]
fn nobody_makes_room_for_what_is_not_placed() {
    let mut story = world(2, "batch");
    let victim = placed(&mut story, "batch", 1);
    story.register_job("web", "service", Duration::ZERO).unwrap();
    let mut plan = Plan { placed: vec![story.placement("web", 0, 2, None)], ..story.plan() };
    plan.preempted.push(preempt(victim, &plan));
    claim(&mut story, 2, NodeStatus::Down);
    assert!(!story.settle("web", plan).unwrap().full);
    assert_eq!(get(&story, victim).desired, Desired::Run);
    story.check_replay();
}

#[test]
fn room_that_others_make_counts_where_the_node_changed() {
    let mut story = world(1, "web");
    for _ in 0..10 {
        placed(&mut story, "web", 1);
    }
    let victim = story.alloc("web[0]");
    let plan = Plan { placed: vec![story.placement("web", 1, 1, None)], ..story.plan() };
    assert_eq!(rejected(&settle_late(&mut story, plan.clone())), [(1, "cpu exhausted")]);
    let mut plan = plan;
    plan.preempted.push(preempt(victim, &plan));
    assert!(settle_late(&mut story, plan).full);
    story.check_replay();
}

/// J22.
#[test]
fn an_update_in_place_keeps_cores_and_devices() {
    let mut story = world(1, "web");
    let placement = with(story.placement("web", 0, 1, None), &given(&[2, 3], &["gpu-0"]));
    let id = placement.ids[0];
    let plan = Plan { placed: vec![placement], ..story.plan() };
    assert!(story.settle("web", plan).unwrap().full);
    assert_eq!(get(&story, id).amount().cpu_mhz, 300, "the cores come on top");
    evaluate(&mut story, "web");
    let plan = Plan { updated: vec![updated(&story, vec![id], 200)], ..story.plan() };
    assert!(story.settle("web", plan).unwrap().full);
    let alloc = get(&story, id);
    assert_eq!(alloc.amount().cpu_mhz, 400);
    let shown = state::alloc::allocated_resources(&story.state, alloc);
    let task = &shown.tasks["t"];
    assert_eq!((task.cpu.reserved_cores.as_slice(), task.cpu.cpu_shares), (&[2, 3][..], 200));
    assert_eq!(task.devices[0].device_ids.0, ["gpu-0"]);
    story.check_replay();
}

#[test]
fn a_core_and_a_device_belong_to_one_allocation_until_it_ends() {
    let mut story = world(1, "web");
    let first = with(story.placement("web", 0, 1, None), &given(&[0], &["gpu-0"]));
    let plan = Plan { placed: vec![first], ..story.plan() };
    assert!(story.settle("web", plan).unwrap().full);
    for (cores, gpus, expected) in [
        (&[0, 1][..], &[][..], Some("cores exhausted")),
        (&[], &["gpu-0"], Some("device oversubscribed")),
        (&[1], &["gpu-1"], None),
    ] {
        evaluate(&mut story, "web");
        let second = with(story.placement("web", 1, 1, None), &given(cores, gpus));
        let plan = Plan { placed: vec![second], ..story.plan() };
        let verdict = settle_late(&mut story, plan);
        assert_eq!(rejected(&verdict).first().map(|(_, why)| *why), expected);
    }
    story.report(1, &[("web[0]", "complete")]).unwrap();
    evaluate(&mut story, "web");
    let again = with(story.placement("web", 2, 1, None), &given(&[0], &["gpu-0"]));
    let plan = Plan { placed: vec![again], ..story.plan() };
    assert!(settle_late(&mut story, plan).full, "what ended gave everything back");
    story.check_replay();
}

/// J16.
#[test]
fn a_port_inside_that_is_not_given_is_the_one_outside() {
    let mut story = world(1, "web");
    let ports = [("a", -1), ("b", 80), ("c", 0)].map(|(label, to)| model::document::PortMapping {
        label: label.into(),
        to,
        ..Default::default()
    });
    let template = Template { ports: ports.to_vec().into(), cpu_mhz: 10, ..Template::default() };
    let placement = story.placement("web", 0, 1, None);
    let id = placement.ids[0];
    let placement =
        AllocsPlaced { template: Doc::of(&template), ports: vec![20_000, 20_001, 20_002], ..placement };
    let plan = Plan { placed: vec![placement], ..story.plan() };
    assert!(story.settle("web", plan).unwrap().full);
    let shown = state::alloc::allocated_resources(&story.state, get(&story, id));
    let inside: Vec<(i64, i64)> = shown.shared.ports.iter().map(|port| (port.value, port.to)).collect();
    assert_eq!(inside, [(20_000, 20_000), (20_001, 80), (20_002, 0)]);
    story.check_replay();
}

#[test]
fn a_port_is_taken_on_its_address_only() {
    let mut story = world(1, "web");
    let port = |story: &mut World, index, address: &str| {
        let placement = story.placement("web", index, 1, None);
        let label = model::document::PortMapping { label: "http".into(), ..Default::default() };
        let template = Template { ports: vec![label].into(), cpu_mhz: 10, ..Template::default() };
        let given = Given { addresses: vec![address.to_string()].into(), ..Given::default() };
        with(AllocsPlaced { template: Doc::of(&template), ports: vec![8080], ..placement }, &given)
    };
    let plan = Plan { placed: vec![port(&mut story, 0, "10.0.0.1")], ..story.plan() };
    assert!(story.settle("web", plan).unwrap().full);
    for (address, expected) in [("10.0.0.1", Some("port 8080 is taken")), ("10.0.0.2", None)] {
        evaluate(&mut story, "web");
        let plan = Plan { placed: vec![port(&mut story, 1, address)], ..story.plan() };
        let verdict = settle_late(&mut story, plan);
        assert_eq!(rejected(&verdict).first().map(|(_, why)| *why), expected);
    }
    let shown = get(&story, story.alloc("web[0]"));
    let shown = state::alloc::allocated_resources(&story.state, shown);
    assert_eq!(shown.shared.ports[0].host_ip, "10.0.0.1");
    story.check_replay();
}
