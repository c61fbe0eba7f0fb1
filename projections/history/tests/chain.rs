//! What led to a fact, and what followed from it, read from a log.

use std::sync::Arc;
use std::time::Duration;

use base::{Duration as Span, Index};
use history::{
    CHAIN_DEPTH_MAX, CHAIN_FACTS_MAX, Chain, Direction, Fact, History, HistoryError, Position, Root, Scope,
    Start,
};
use journal::{Journal, encode};
use model::command::{DrainWish, EvalEnd, Plan, RegisterJob, Settlement};
use model::document::{AllocDeploymentStatus, Allocation};
use model::event::{AllocsPlaced, DeploymentCreated, DeploymentGoal, DeploymentStatusChanged, EvalOutcome};
use model::{Actor, Caller, Command, DeploymentId, DeploymentStatus, Event, NodeStatus, RequestId, Trigger};
use test_world::{World, job_document, key, node_id};

use crate::life::{over, settle};

const PATIENCE: Duration = Duration::from_secs(120);
const DEPLOYMENT: DeploymentId = DeploymentId(base::Uuid([9; 16]));

fn controller(name: &str) -> Actor {
    Actor::Server(name.to_string())
}

/// A job is registered by somebody, placed by the scheduler with a deployment, started and found healthy by its node; the
/// deployment is advanced, and the scheduler ends it.
fn deployed() -> World {
    let mut world = World::new();
    world.register_node(1, "a").unwrap();
    world.submit(Command::UpdateNodeStatus { node: node_id(1), claimed: NodeStatus::Ready }).unwrap();
    let register = RegisterJob::new(job_document("web", "service", Span::from_secs(3_600)));
    let ada = Caller {
        accessor: "a1".into(),
        name: "ada".into(),
        address: Some([10, 0, 0, 7].into()),
        ..Caller::default()
    };
    world.submit_as(Actor::Caller(ada), Command::RegisterJob(Box::new(register))).unwrap();
    let registered = world.log.len() - 1;
    let placed = AllocsPlaced { deployment: Some(DEPLOYMENT), ..world.placement("web", 0, 1, None) };
    let goal = DeploymentGoal { group: "g".into(), desired_total: 1, ..DeploymentGoal::default() };
    let deployment = DeploymentCreated {
        deployment: DEPLOYMENT,
        key: key("web"),
        version: 0,
        priority: 50,
        is_multiregion: false,
        status: DeploymentStatus::Running,
        description: String::new(),
        groups: vec![goal],
    };
    let plan = Plan { placed: vec![placed], deployment: Some(deployment), ..world.plan() };
    end(&mut world, plan);
    world.report(1, &[("web[0]", "running")]).unwrap();
    healthy(&mut world);
    let advance = Command::AdvanceDeployment { deployment: DEPLOYMENT };
    world.submit_as(controller("deployments"), advance).unwrap();
    let over = DeploymentStatusChanged {
        deployment: DEPLOYMENT,
        status: DeploymentStatus::Successful,
        description: String::new(),
    };
    let plan = Plan { deployment_statuses: vec![over], ..world.plan() };
    end(&mut world, plan);
    world.check_replay();
    // The state remembers names of requests, and nothing else depends on them.
    world.log[registered].commands[0].request = RequestId(base::Uuid([7; 16]));
    world
}

/// The scheduler settles the evaluation that waits.
fn end(world: &mut World, plan: Plan) {
    let eval = world.waiting_eval("web").expect("an evaluation waits");
    let end = Some(EvalEnd::complete(EvalOutcome::default()));
    let settlement = Settlement { eval, plan, end };
    world.submit_as(controller("worker"), Command::SettleEval(Box::new(settlement))).unwrap();
}

fn healthy(world: &mut World) {
    let status = AllocDeploymentStatus { healthy: Some(true), ..AllocDeploymentStatus::default() };
    let update = Allocation {
        id: world.alloc("web[0]").to_string(),
        node_id: node_id(1).to_string(),
        client_status: "running".to_string(),
        deployment_status: Some(status),
        ..Allocation::default()
    };
    let command = Command::UpdateAllocs { node: node_id(1), updates: vec![update] };
    world.submit_as(Actor::Node(node_id(1)), command).unwrap();
}

/// The place of the first fact of a kind that holds something.
fn find(world: &World, is_wanted: impl Fn(&Event) -> bool) -> Position {
    let batches = world.log.iter().flat_map(|batch| {
        batch.events.iter().enumerate().map(|(ordinal, logged)| (batch.index, ordinal, &logged.event))
    });
    let mut found = batches.filter(|(_, _, event)| is_wanted(event));
    let (index, ordinal, _) = found.next().unwrap_or_else(|| panic!("it happened: {:#?}", world.log));
    Position { index, ordinal: ordinal as u16 }
}

fn walk(history: &History, world: &World, start: Start, direction: Direction) -> Chain {
    history.chain(start, direction, world.state.index, PATIENCE, |_| true).unwrap()
}

fn names(chain: &Chain) -> Vec<&'static str> {
    chain.facts.iter().map(|fact| fact.line.event).collect()
}

/// `fact <- cause (how)`, for the nearest cause of each.
fn links(chain: &Chain) -> Vec<String> {
    let name = |at: Position| chain.facts.iter().find(|fact| fact.at() == at).map_or("?", |f| f.line.event);
    let link = |fact: &Fact| match fact.causes.first() {
        Some(link) => format!("{} <- {} ({})", fact.line.event, name(link.from), link.how.word()),
        None => format!("{} <- {}", fact.line.event, fact.root.unwrap().word()),
    };
    chain.facts.iter().map(link).collect()
}

#[test]
fn a_chain_leads_from_the_end_of_a_deployment_to_who_registered_the_job() {
    let world = deployed();
    let history = over(&world, None);
    let ended = find(&world, |event| matches!(event, Event::DeploymentStatusChanged(_)));
    let chain = walk(&history, &world, Start::Fact(ended), Direction::Causes);
    assert_eq!(
        links(&chain),
        [
            "DeploymentStatusChanged <- PlanCommitted (plan)",
            "PlanCommitted <- EvalCreated (evaluation)",
            "EvalCreated <- AllocReported (health)",
            "AllocReported <- AllocsPlaced (allocation)",
            "AllocsPlaced <- PlanCommitted (plan)",
            "AllocReported <- AllocsPlaced (allocation)",
            "PlanCommitted <- EvalCreated (evaluation)",
            "EvalCreated <- JobRegistered (command)",
            "JobRegistered <- request",
        ]
    );
    let first = chain.facts.last().unwrap();
    assert_eq!(first.line.requester().unwrap().name, "ada");
    assert_eq!(first.request, RequestId(base::Uuid([7; 16])));
    assert!(!chain.cut_short && !chain.gone && chain.hidden == 0, "{chain:?}");
}

#[test]
fn everything_that_followed_from_a_request_is_found() {
    let world = deployed();
    let history = over(&world, None);
    let request = Start::Request(RequestId(base::Uuid([7; 16])));
    let chain = walk(&history, &world, request, Direction::Effects);
    for wanted in [
        "JobRegistered",
        "EvalCreated",
        "PlanCommitted",
        "DeploymentCreated",
        "AllocsPlaced",
        "AllocReported",
        "DeploymentStatusChanged",
        "EvalUpdated",
        "EvalAcked",
        "JobStabilityChanged",
    ] {
        assert!(names(&chain).contains(&wanted), "{wanted}: {:?}", names(&chain));
    }
    assert!(!names(&chain).contains(&"NodeRegistered"), "it was there before: {:?}", names(&chain));
    assert_eq!(names(&chain).iter().filter(|name| **name == "EvalCreated").count(), 2);
    let nothing = walk(&history, &world, Start::Request(RequestId(base::Uuid([8; 16]))), Direction::Effects);
    assert_eq!(nothing, Chain::default());
}

/// Each link that is followed in one direction is followed in the other.
#[test]
fn causes_and_effects_are_the_same_links() {
    let world = deployed();
    let history = over(&world, None);
    let mut looked_at = 0;
    for batch in &world.log {
        for ordinal in 0..batch.events.len() {
            let at = Position { index: batch.index, ordinal: ordinal as u16 };
            let chain = walk(&history, &world, Start::Fact(at), Direction::Causes);
            for link in &chain.facts[0].causes {
                let effects = walk(&history, &world, Start::Fact(link.from), Direction::Effects);
                let is_there = effects.facts.iter().any(|fact| fact.depth == 1 && fact.at() == at);
                assert!(is_there, "{:?} followed from {link:?}", chain.facts[0].line);
                looked_at += 1;
            }
        }
    }
    assert!(looked_at > 10, "{looked_at}");
}

#[test]
fn a_missed_heartbeat_ends_at_a_deadline_and_a_drain_at_who_asked() {
    let mut world = World::new();
    for node in [1, 2] {
        world.register_node(node, "a").unwrap();
        world.submit(Command::UpdateNodeStatus { node: node_id(node), claimed: NodeStatus::Ready }).unwrap();
    }
    world.register_job("web", "service", Span::from_secs(3_600)).unwrap();
    let placed = world.placement("web", 0, 1, None);
    settle(&mut world, |plan| plan.placed.push(placed));
    world.report(1, &[("web[0]", "running")]).unwrap();
    let drain = DrainWish { deadline: Span(-1), ignore_system_jobs: false };
    let command = Command::SetNodeDrain {
        node: node_id(1),
        drain: Some(drain),
        mark_eligible: false,
        meta: Default::default(),
    };
    world.submit(command).unwrap();
    world.submit_as(controller("drains"), Command::AdvanceDrain { node: node_id(1) }).unwrap();
    world.submit_as(controller("heartbeats"), Command::MissHeartbeat { node: node_id(1) }).unwrap();
    let history = over(&world, None);

    let moved =
        find(&world, |event| matches!(event, Event::EvalCreated(e) if e.eval.trigger == Trigger::NodeDrain));
    let chain = walk(&history, &world, Start::Fact(moved), Direction::Causes);
    assert_eq!(
        links(&chain),
        [
            "EvalCreated <- AllocTransitionRequested (command)",
            "AllocTransitionRequested <- NodeDrainStarted (drain)",
            "NodeDrainStarted <- request",
        ]
    );
    let drain = find(&world, |event| matches!(event, Event::NodeDrainStarted(_)));
    let effects = walk(&history, &world, Start::Fact(drain), Direction::Effects);
    assert!(names(&effects).contains(&"AllocTransitionRequested"), "{:?}", names(&effects));

    let missed =
        |event: &Event| matches!(event, Event::NodeStatusChanged(e) if e.to == NodeStatus::Disconnected);
    let chain = walk(&history, &world, Start::Fact(find(&world, missed)), Direction::Causes);
    assert_eq!(chain.facts.len(), 1);
    assert_eq!(chain.facts[0].root, Some(Root::Deadline));
}

#[test]
fn what_a_reader_may_not_see_is_neither_shown_nor_followed() {
    let world = deployed();
    let history = over(&world, None);
    let ended = Start::Fact(find(&world, |event| matches!(event, Event::DeploymentStatusChanged(_))));
    let chain = |may_see: fn(&Scope) -> bool| {
        history.chain(ended, Direction::Causes, world.state.index, PATIENCE, may_see).unwrap()
    };
    let nothing = chain(|scope| !matches!(scope, Scope::Job(_)));
    assert_eq!((nothing.facts.len(), nothing.hidden), (0, 1));
    let joined = Start::Fact(find(&world, |event| matches!(event, Event::NodeRegistered(_))));
    let at = world.state.index;
    let own = |scope: &Scope| *scope == Scope::Job(key("web"));
    let of_node = history.chain(joined, Direction::Causes, at, PATIENCE, own).unwrap();
    assert_eq!((of_node.facts.len(), of_node.hidden), (0, 1));
    assert_eq!(chain(own).facts.len(), 9);
}

/// A task that is restarted again and again: each report follows from the one before.
#[test]
fn a_chain_is_bounded_and_says_so() {
    let mut world = World::new();
    world.register_node(1, "a").unwrap();
    world.submit(Command::UpdateNodeStatus { node: node_id(1), claimed: NodeStatus::Ready }).unwrap();
    world.register_job("web", "service", Span::from_secs(3_600)).unwrap();
    let placed = world.placement("web", 0, 1, None);
    settle(&mut world, |plan| plan.placed.push(placed));
    for restarts in 0..2 * CHAIN_FACTS_MAX {
        world.report(1, &[("web[0]", &format!("running/{restarts}"))]).unwrap();
    }
    let history = over(&world, None);
    let last = Position { index: world.state.index, ordinal: 0 };
    let causes = walk(&history, &world, Start::Fact(last), Direction::Causes);
    assert!(causes.cut_short);
    assert!(causes.facts.iter().all(|fact| fact.depth <= CHAIN_DEPTH_MAX));
    let job = find(&world, |event| matches!(event, Event::JobRegistered(_)));
    let effects = walk(&history, &world, Start::Fact(job), Direction::Effects);
    assert!(effects.cut_short && effects.facts.len() <= CHAIN_FACTS_MAX, "{}", effects.facts.len());
}

#[test]
fn below_what_is_kept_a_chain_says_so() {
    let world = deployed();
    let placed = find(&world, |event| matches!(event, Event::AllocsPlaced(_)));
    let journal = crate::life::journal(world.log.iter().map(encode).collect());
    let history = History::open(None, journal.clone(), crate::life::Nothing, history::MEMORY).unwrap();
    // It is indexed while all of it is there.
    let ended = Start::Fact(find(&world, |event| matches!(event, Event::DeploymentStatusChanged(_))));
    assert_eq!(walk(&history, &world, ended, Direction::Causes).facts.len(), 9);
    journal.forget_before(placed.index);
    assert_eq!(journal.horizon(), placed.index);
    let chain = walk(&history, &world, ended, Direction::Causes);
    assert!(chain.gone);
    let oldest = chain.facts.iter().find(|fact| fact.at() < placed).expect("the plan is in the same batch");
    assert_eq!(oldest.root, Some(Root::Gone), "{:?}", links(&chain));
    let first = Start::Fact(Position { index: Index(1), ordinal: 0 });
    let at = world.state.index;
    let error = history.chain(first, Direction::Effects, at, PATIENCE, |_| true).unwrap_err();
    assert!(matches!(error, HistoryError::Gone { oldest } if oldest == placed.index), "{error}");
}

#[test]
fn a_fact_that_never_was_has_no_chain() {
    let world = deployed();
    let history: Arc<History> = over(&world, None);
    let nowhere = Start::Fact(Position { index: world.state.index, ordinal: 999 });
    assert_eq!(walk(&history, &world, nowhere, Direction::Causes), Chain::default());
}
