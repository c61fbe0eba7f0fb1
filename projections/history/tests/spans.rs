//! What took how long, and under what, read from a log.

use std::collections::BTreeSet;
use std::time::Duration;

use base::{Duration as Interval, Index, Time, Uuid};
use history::{History, Position, Span, Start, TraceId, Traced, Value};
use journal::encode;
use model::command::{DrainWish, EvalEnd, Plan, RegisterJob, Settlement};
use model::document::{AllocDeploymentStatus, Allocation, ReschedulePolicy, TaskEvent, TaskState};
use model::event::{
    AllocsPlaced, DeploymentCreated, DeploymentGoal, DeploymentStatusChanged, EvalOutcome, FailedGroups,
    NewEval,
};
use model::{
    Actor, Caller, ClientStatus, Command, DeploymentId, DeploymentStatus, Doc, EvalId, EvalStatus, Event,
    NodeStatus, Request, RequestId, Trigger,
};
use test_world::{World, job_document, key, node_id, stop};

use crate::life::{Nothing, journal, over};

const PATIENCE: Duration = Duration::from_secs(120);
const DEPLOYMENT: DeploymentId = DeploymentId(Uuid([0xd9; 16]));
const REQUEST: RequestId = RequestId(Uuid([0x77; 16]));
/// When stories begin, in seconds.
const BEGIN: i64 = 1_000_000;

fn later(time: Time, ms: i64) -> Time {
    Time(time.0 + ms * 1_000_000)
}

/// A second later.
fn tick(world: &mut World) {
    world.now = later(world.now, 1_000);
}

fn begun(nodes: u128) -> World {
    let mut world = World::new();
    for node in 1..=nodes {
        world.register_node(node, "a").unwrap();
        world.submit(Command::UpdateNodeStatus { node: node_id(node), claimed: NodeStatus::Ready }).unwrap();
    }
    tick(&mut world);
    let ada = Caller {
        accessor: "a1".into(),
        name: "ada".into(),
        address: Some([10, 0, 0, 7].into()),
        agent: "tests/1.0".into(),
    };
    let mut job = job_document("web", "service", Interval::ZERO);
    job.task_groups.0[0].reschedule_policy = Some(ReschedulePolicy {
        delay: Some(Interval::from_secs(5).into()),
        delay_function: Some("constant".into()),
        unlimited: Some(true),
        ..ReschedulePolicy::default()
    });
    let register = Command::RegisterJob(Box::new(RegisterJob::new(job)));
    world.submit_request(Request::named(REQUEST, Actor::Caller(ada), register)).unwrap();
    tick(&mut world);
    world
}

/// The scheduler, which looked at the job half a second ago, settles the evaluation that waits.
fn end(world: &mut World, mut plan: Plan, end: Option<EvalEnd>) {
    plan.now = later(world.now, -500);
    let eval = world.waiting_eval("web").expect("an evaluation waits");
    let end = end.or_else(|| Some(EvalEnd::complete(EvalOutcome::default())));
    let settlement = Settlement { eval, plan, end };
    let worker = Actor::Server("worker".to_string());
    world.submit_as(worker, Command::SettleEval(Box::new(settlement))).unwrap();
    tick(world);
}

fn place(world: &mut World, name: u32, node: u128, deployment: Option<DeploymentId>) -> AllocsPlaced {
    AllocsPlaced { deployment, ..world.placement("web", name, node, None) }
}

/// The node's clock is a tenth of a second ahead. The task was received half a second ago.
fn report(world: &mut World, alloc: &str, node: u128, status: &str, change: impl Fn(&mut Allocation)) {
    let ahead = later(world.now, 100);
    let received = TaskEvent { kind: "Received".into(), time: later(ahead, -500).0, ..TaskEvent::default() };
    let task = TaskState {
        state: status.to_string(),
        started_at: later(ahead, -200).into(),
        events: vec![received].into(),
        ..TaskState::default()
    };
    let mut update = Allocation {
        id: world.alloc(alloc).to_string(),
        node_id: node_id(node).to_string(),
        client_status: status.to_string(),
        task_states: [("t".to_string(), task)].into_iter().collect(),
        ..Allocation::default()
    };
    change(&mut update);
    let command = Command::UpdateAllocs { node: node_id(node), updates: vec![update] };
    world.submit_as(Actor::Node(node_id(node)), command).unwrap();
    tick(world);
}

/// Registered, placed with a deployment, started, found healthy, and deployed.
fn deployed() -> World {
    let mut world = begun(1);
    let placed = place(&mut world, 0, 1, Some(DEPLOYMENT));
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
    end(&mut world, plan, None);
    let started = world.now;
    report(&mut world, "web[0]", 1, "running", |_| ());
    let healthy = world.now;
    report(&mut world, "web[0]", 1, "running", |update| {
        let task = update.task_states.get_mut("t").unwrap();
        task.started_at = later(started, -100).into();
        let timestamp = healthy.into();
        let status = AllocDeploymentStatus { healthy: Some(true), timestamp, ..Default::default() };
        update.deployment_status = Some(status);
    });
    let advance = Command::AdvanceDeployment { deployment: DEPLOYMENT };
    world.submit_as(Actor::Server("deployments".into()), advance).unwrap();
    tick(&mut world);
    let over = DeploymentStatusChanged {
        deployment: DEPLOYMENT,
        status: DeploymentStatus::Successful,
        description: String::new(),
    };
    let plan = Plan { deployment_statuses: vec![over], ..world.plan() };
    end(&mut world, plan, None);
    world.check_replay();
    world
}

fn all(history: &History, world: &World) -> Vec<Span> {
    let spans = |batch: &model::Batch| history.spans(batch.index, PATIENCE).unwrap().spans;
    world.log.iter().flat_map(spans).collect()
}

/// Each span with the one above it, when it began and ended (in milliseconds of the story), and why it failed; the first ones
/// of a trace with it.
fn shown(spans: &[Span]) -> Vec<String> {
    let name = |id| spans.iter().find(|span| span.id == id).map_or("?", |span| span.name.as_str());
    let line = |span: &Span| {
        let parent = match span.parent {
            Some(parent) => format!("under {}", name(parent)),
            None => "begins a trace".to_string(),
        };
        let ms = |time: Time| time.0 / 1_000_000 - BEGIN * 1_000;
        let failed = span.failed.as_ref().map(|why| format!(", failed: {why}")).unwrap_or_default();
        format!("{} {parent}, {}-{}{failed}", span.name, ms(span.began), ms(span.ended))
    };
    spans.iter().map(line).collect()
}

fn attributes(span: &Span) -> Vec<String> {
    let value = |value: &Value| match value {
        Value::Text(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Texts(texts) => texts.join(","),
    };
    span.attributes.iter().map(|(key, it)| format!("{key}={}", value(it))).collect()
}

fn of_name<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("no {name} in {spans:#?}"))
}

fn traces(spans: &[Span]) -> BTreeSet<TraceId> {
    spans.iter().map(|span| span.trace).collect()
}

#[test]
fn a_request_is_one_trace_down_to_the_task_and_the_end_of_the_deployment() {
    let world = deployed();
    let history = over(&world, None);
    let spans = all(&history, &world);
    assert_eq!(
        shown(&spans),
        [
            "job.register begins a trace, 1000-1000",
            "plan under evaluation, 1500-2000",
            "evaluation under job.register, 1000-2000",
            "allocation under plan, 2000-3000",
            "task t under allocation, 2600-2900",
            "health under allocation, 2900-4000",
            "plan under evaluation, 5500-6000",
            "deployment under plan, 2000-6000",
            "evaluation under deployment, 5000-6000",
        ]
    );
    assert_eq!(traces(&spans).len(), 1);
    let register = of_name(&spans, "job.register");
    assert_eq!(register.trace.to_string(), "77".repeat(16), "the name of the request");
    assert!(register.is_call && spans.iter().filter(|span| span.is_call).count() == 1);
    assert_eq!(
        attributes(register),
        [
            "sojourn.command=RegisterJob",
            "sojourn.actor=token:a1",
            "sojourn.request.id=77777777-7777-7777-7777-777777777777",
            "user.id=a1",
            "user.name=ada",
            "user_agent.original=tests/1.0",
            "client.address=10.0.0.7",
            "sojourn.namespace=default",
            "sojourn.job.id=web",
            "sojourn.fact=3:0",
        ]
    );
    let (alloc, node) = (world.alloc("web[0]"), node_id(1));
    let allocation = of_name(&spans, "allocation");
    assert_eq!(
        (&allocation.of, allocation.id.to_string().as_str()),
        (&Traced::Alloc(alloc), "00000000000a110c")
    );
    let evaluation = of_name(&spans, "evaluation");
    let Traced::Eval(eval) = evaluation.of else { panic!("{evaluation:?}") };
    assert_eq!(evaluation.id.to_string(), eval.to_string().replace('-', "")[..16]);
    assert_eq!(
        attributes(allocation),
        [
            format!("sojourn.alloc.id={alloc}"),
            "sojourn.namespace=default".into(),
            "sojourn.job.id=web".into(),
            "sojourn.job.version=0".into(),
            "sojourn.group=g".into(),
            format!("sojourn.eval.id={eval}"),
            format!("sojourn.deployment.id={DEPLOYMENT}"),
            "sojourn.alloc.name=web.g[0]".into(),
            format!("host.id={node}"),
            "sojourn.alloc.client_status=running".into(),
            "sojourn.fact=5:0".into(),
        ]
    );
    assert_eq!(of_name(&spans, "deployment").id.to_string(), "d9".repeat(8));
    let ids: BTreeSet<_> = spans.iter().map(|span| span.id).collect();
    assert_eq!(ids.len(), spans.len(), "each has its own id");
}

/// Another server, whose index is its own, derives the same; and so does the one that was asked before.
#[test]
fn a_repetition_has_the_same_spans() {
    let world = deployed();
    let (one, other) = (over(&world, None), over(&world, None));
    let spans = all(&one, &world);
    assert_eq!(spans, all(&one, &world));
    assert_eq!(spans, all(&other, &world));
    // Before the rest of the log was there, they were the same.
    let half: Vec<_> = world.log.iter().take(5).map(encode).collect();
    let early = History::open(None, journal(half), Nothing, history::MEMORY).unwrap();
    let of_half: Vec<Span> =
        world.log[..5].iter().flat_map(|b| early.spans(b.index, PATIENCE).unwrap().spans).collect();
    assert_eq!(of_half, spans[..of_half.len()]);
    assert!(of_half.len() >= 5, "{of_half:?}");
}

/// What finds no room waits, in an evaluation of its own under the one that found none.
#[test]
fn a_blocked_evaluation_stands_in_the_trace_of_its_request_for_as_long_as_it_waits() {
    let mut world = begun(1);
    let first = world.waiting_eval("web").unwrap();
    let created = world.state.evals.lookup(first).unwrap().facts.clone();
    let blocked = NewEval {
        id: EvalId((0xb10c << 64).into()),
        trigger: Trigger::QueuedAllocs,
        status: EvalStatus::Blocked,
        previous: Some(first),
        ..(*created).clone()
    };
    let failed = FailedGroups::from([("g".to_string(), Default::default())]);
    let outcome = EvalOutcome {
        queued: vec![("g".to_string(), 1)],
        failed_groups: Doc::of(&failed),
        blocked: Some(blocked.id),
        ..EvalOutcome::default()
    };
    let plan = world.plan();
    end(
        &mut world,
        plan,
        Some(EvalEnd { blocked: Some(blocked.clone()), ..EvalEnd::complete(outcome.clone()) }),
    );
    // It looks again, and there still is no room: it goes on to wait.
    let again = EvalEnd { status: EvalStatus::Blocked, ..EvalEnd::complete(outcome) };
    let plan = world.plan();
    end(&mut world, plan, Some(again));
    let placed = place(&mut world, 0, 1, None);
    let plan = Plan { placed: vec![placed], ..world.plan() };
    end(&mut world, plan, None);
    world.check_replay();
    let history = over(&world, None);
    let spans = all(&history, &world);
    assert_eq!(
        shown(&spans),
        [
            "job.register begins a trace, 1000-1000",
            "evaluation under job.register, 1000-2000",
            "plan under evaluation, 3500-4000",
            "evaluation under evaluation, 2000-4000",
        ]
    );
    assert_eq!(traces(&spans).len(), 1);
    let said = attributes(of_name(&spans, "evaluation"));
    for expected in [
        "sojourn.eval.status=complete".to_string(),
        "sojourn.eval.triggered_by=job-register".into(),
        "sojourn.eval.priority=50".into(),
        "sojourn.eval.queued=g=1".into(),
        "sojourn.eval.failed_groups=g".into(),
        format!("sojourn.eval.blocked={}", blocked.id),
    ] {
        assert!(said.contains(&expected), "{expected} in {said:?}");
    }
    let waited = spans.last().unwrap();
    assert_eq!((&waited.of, waited.parent), (&Traced::Eval(blocked.id), Some(spans[1].id)));
}

/// Nobody asked for it: the trace begins with the deadline, and its id is a hash of that fact.
#[test]
fn what_replaces_a_lost_node_is_a_trace_of_its_own() {
    let mut world = begun(2);
    let placed = place(&mut world, 0, 1, None);
    let plan = Plan { placed: vec![placed], ..world.plan() };
    end(&mut world, plan, None);
    let heartbeats = Actor::Server("heartbeats".into());
    world.submit_as(heartbeats, Command::MissHeartbeat { node: node_id(1) }).unwrap();
    let missed = world.state.index;
    tick(&mut world);
    let lost = world.alloc("web[0]");
    let placed = world.placement("web", 0, 2, Some(lost));
    let stopped = stop(vec![lost], Some(ClientStatus::Lost));
    let plan = Plan { placed: vec![placed], stopped: vec![stopped], ..world.plan() };
    end(&mut world, plan, None);
    report(&mut world, "web[0]'", 2, "running", |_| ());
    world.check_replay();
    let history = over(&world, None);
    let spans = all(&history, &world);
    assert_eq!(
        shown(&spans),
        [
            "job.register begins a trace, 1000-1000",
            "plan under evaluation, 1500-2000",
            "evaluation under job.register, 1000-2000",
            "heartbeat.miss begins a trace, 3000-3000",
            "plan under evaluation, 3500-4000",
            "allocation under plan, 2000-4000, failed: by the story",
            "evaluation under heartbeat.miss, 3000-4000",
            "allocation under plan, 4000-5000",
            "task t under allocation, 4600-4900",
        ]
    );
    let trace = of_name(&spans, "heartbeat.miss").trace;
    let own: Vec<bool> = spans.iter().map(|span| span.trace == trace).collect();
    assert_eq!(own, [false, false, false, true, true, false, true, true, true]);
    assert_eq!(traces(&spans).len(), 2);
    assert_eq!(of_name(&spans, "heartbeat.miss").of, Traced::Node(node_id(1)));
    // printf INDEX:ORDINAL@00000000 | sha256sum, as this log is of no cluster.
    let first = Start::Fact(Position { index: missed, ordinal: 0 });
    assert_eq!(history.trace(first, world.state.index, PATIENCE).unwrap(), Some(trace));
    assert_eq!(trace.to_string()[..16], of_name(&spans, "heartbeat.miss").id.to_string());
}

/// A task that cannot be started fails its allocation; what replaces it follows from what its node said, under a trace of its
/// own which leads back.
#[test]
fn a_failure_is_an_error_and_its_replacement_leads_back_to_it() {
    let mut world = begun(1);
    let placed = place(&mut world, 0, 1, None);
    let plan = Plan { placed: vec![placed], ..world.plan() };
    end(&mut world, plan, None);
    report(&mut world, "web[0]", 1, "failed", |update| {
        update.client_description = "Failed tasks".to_string();
        let task = update.task_states.get_mut("t").unwrap();
        (task.state, task.failed, task.started_at) = ("dead".to_string(), true, Time::ZERO.into());
        let said = |display_message: &str, driver_error: &str, fails_task| TaskEvent {
            display_message: display_message.into(),
            driver_error: driver_error.into(),
            fails_task,
            ..TaskEvent::default()
        };
        task.events.0.push(said("no such image", "404", false));
        task.events.0.push(said("Policy allows no restarts", "", true));
    });
    let replaced = world.alloc("web[0]");
    let placed = world.placement("web", 0, 1, Some(replaced));
    let plan = Plan { placed: vec![placed], ..world.plan() };
    end(&mut world, plan, None);
    world.check_replay();
    let history = over(&world, None);
    let spans = all(&history, &world);
    assert_eq!(
        shown(&spans)[3..],
        [
            "allocs.update begins a trace, 3000-3000",
            "allocation under plan, 2000-3000, failed: Failed tasks",
            "task t under allocation, 2600-3000, failed: no such image",
            "plan under evaluation, 3500-4000",
            "evaluation under allocs.update, 3000-4000",
        ]
    );
    let allocation = of_name(&spans, "allocation");
    assert_eq!(spans[3].links, [(allocation.trace, allocation.id)]);
    assert_ne!(spans[3].trace, allocation.trace);
    assert_eq!(traces(&spans).len(), 2);
}

/// A node is emptied by somebody: what the leader makes of it stands under that, down to the replacement. A task that ran, and
/// is started again, has no second beginning.
#[test]
fn what_a_drain_moves_stands_under_who_asked_for_it() {
    let mut world = begun(2);
    let placed = place(&mut world, 0, 1, None);
    let plan = Plan { placed: vec![placed], ..world.plan() };
    end(&mut world, plan, None);
    report(&mut world, "web[0]", 1, "running", |_| ());
    report(&mut world, "web[0]", 1, "running", |update| {
        update.task_states.get_mut("t").unwrap().restarts = 1
    });
    let drain = DrainWish { deadline: Interval(-1), ignore_system_jobs: false };
    let command = Command::SetNodeDrain {
        node: node_id(1),
        drain: Some(drain),
        mark_eligible: false,
        meta: Default::default(),
    };
    world.submit(command).unwrap();
    tick(&mut world);
    world.submit_as(Actor::Server("drains".into()), Command::AdvanceDrain { node: node_id(1) }).unwrap();
    tick(&mut world);
    let moved = world.alloc("web[0]");
    let placed = world.placement("web", 0, 2, Some(moved));
    let plan = Plan { placed: vec![placed], stopped: vec![stop(vec![moved], None)], ..world.plan() };
    end(&mut world, plan, None);
    report(&mut world, "web[0]'", 2, "running", |_| ());
    world.check_replay();
    let history = over(&world, None);
    let spans = all(&history, &world);
    assert_eq!(
        shown(&spans)[3..],
        [
            "allocation under plan, 2000-3000",
            "task t under allocation, 2600-2900",
            "node_drain.set begins a trace, 5000-5000",
            "drain.advance under node_drain.set, 6000-6000",
            "plan under evaluation, 6500-7000",
            "evaluation under drain.advance, 6000-7000",
            "allocation under plan, 7000-8000",
            "task t under allocation, 7600-7900",
        ]
    );
    let trace = of_name(&spans, "node_drain.set").trace;
    assert!(
        spans[5..].iter().all(|span| span.trace == trace)
            && spans[..5].iter().all(|span| span.trace != trace)
    );
}

#[test]
fn every_fact_of_a_story_names_the_trace_it_is_in() {
    let world = deployed();
    let history = over(&world, None);
    let trace = of_name(&all(&history, &world), "deployment").trace;
    for batch in world.log.iter().filter(|batch| batch.index >= Index(3)) {
        for ordinal in 0..batch.events.len() as u16 {
            let start = Start::Fact(Position { index: batch.index, ordinal });
            let found = history.trace(start, world.state.index, PATIENCE).unwrap();
            assert_eq!(found, Some(trace), "{:?}", batch.events[usize::from(ordinal)]);
        }
    }
    let by_name = history.trace(Start::Request(REQUEST), world.state.index, PATIENCE).unwrap();
    assert_eq!(by_name, Some(trace));
    let nowhere = Start::Fact(Position { index: Index(3), ordinal: 99 });
    assert_eq!(history.trace(nowhere, world.state.index, PATIENCE).unwrap(), None);
}

/// Where the beginning is no longer kept, a span has no length and says so.
#[test]
fn what_the_log_no_longer_has_is_said() {
    let world = deployed();
    let all_of_it = world.log.iter().map(encode).collect();
    let journal = journal(all_of_it);
    let history = History::open(None, journal.clone(), Nothing, history::MEMORY).unwrap();
    let whole = all(&history, &world);
    let last = world.state.index;
    journal.forget_before(last);
    let spans = history.spans(last, PATIENCE).unwrap().spans;
    let deployment = of_name(&spans, "deployment");
    assert_eq!((deployment.began, deployment.parent), (deployment.ended, None));
    assert_eq!(deployment.id, of_name(&whole, "deployment").id);
    assert!(attributes(deployment).contains(&"sojourn.begin=gone".to_string()));
    assert!(matches!(world.log.last().unwrap().events[0].event, Event::PlanCommitted(_)));
}
