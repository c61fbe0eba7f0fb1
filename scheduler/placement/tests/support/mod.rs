//! A small world for tests: commands go in, evaluations are worked off, and every plan is checked.

pub mod deploy;

use std::cell::RefCell;

use base::{Duration, Time, Uuid};
use model::command::RegisterJob;
use model::document::{
    Allocation, AllocationMetric, Constraint, DesiredUpdates, DisconnectStrategy, DriverInfo, EphemeralDisk,
    Job, NetworkResource, Node, NodeReservedResources, NodeResources, ReschedulePolicy, Resources, Task,
    TaskGroup, TaskState,
};
use model::event::{AllocsPlaced, AllocsStopped, NodeStatusChanged};
use model::{
    Actor, AllocId, Batch, ClientStatus, Command, CommandRecord, Desired, Doc, Eligibility, EvalId,
    EvalStatus, Event, JobKey, LoggedEvent, NodeId, NodeStatus, RequestId, Trigger,
};
use placement::{Memory, Outcome, lint, schedule, schedule_with};
use rules::{Context, Decision, decide};
use state::State;
use state::alloc::Alloc;
use state::eval::Eval;
use state::image::{Imager, restore};

pub struct World {
    pub state: State,
    pub now: Time,
    /// What decisions before have left behind.
    pub memory: RefCell<Memory>,
}

pub const START: Time = Time::from_secs(1_000_000);

impl World {
    pub fn new() -> World {
        World { state: State::default(), now: START, memory: RefCell::default() }
    }

    /// With `count` standard nodes, 1 and up.
    pub fn with_nodes(count: u128) -> World {
        let mut world = World::new();
        (1..=count).for_each(|n| world.node(n, |_| {}));
        world
    }

    /// With `count` running allocations of the job, each on its own node, and as many spare nodes.
    pub fn running(job: Job, count: u128) -> World {
        let mut world = World::with_nodes(2 * count);
        world.register(job);
        world.work_off();
        world.all_run();
        world
    }

    pub fn command(&mut self, actor: Actor, command: Command) -> Decision {
        let index = self.state.index.next();
        let mut ctx = Context::new(index, self.now, index.0);
        let decision = decide(&self.state, &mut ctx, &actor, &command).expect("the command is accepted");
        if !decision.events.is_empty() {
            let logged = |event: &Event| LoggedEvent { command: 0, event: event.clone() };
            let record = CommandRecord { request: RequestId::default(), kind: command.kind(), actor };
            self.apply(record, decision.events.iter().map(logged).collect());
        }
        decision
    }

    fn apply(&mut self, record: CommandRecord, events: Vec<LoggedEvent>) {
        let batch = Batch { commands: vec![record], events, ..self.state.next_batch(self.now, Uuid::NIL) };
        self.state.apply(&batch).expect("the batch was decided on this state");
    }

    /// For facts that no command of this release leads to.
    pub fn event(&mut self, event: impl Into<Event>) {
        let record = CommandRecord { request: RequestId::default(), kind: 0, actor: Actor::ANONYMOUS };
        self.apply(record, vec![LoggedEvent { command: 0, event: event.into() }]);
    }

    pub fn submit(&mut self, command: Command) -> Decision {
        self.command(Actor::ANONYMOUS, command)
    }

    /// Registers a standard node and makes it ready.
    pub fn node(&mut self, n: u128, change: impl FnOnce(&mut Node)) {
        let mut document = node(n);
        change(&mut document);
        self.submit(Command::RegisterNode { document: Box::new(document) });
        self.heartbeat(n);
    }

    pub fn heartbeat(&mut self, n: u128) {
        let node = node_id(n);
        self.command(Actor::Node(node), Command::UpdateNodeStatus { node, claimed: NodeStatus::Ready });
    }

    pub fn silence(&mut self, n: u128) {
        self.submit(Command::MissHeartbeat { node: node_id(n) });
    }

    pub fn forget(&mut self, n: u128) {
        self.submit(Command::DeregisterNode { node: node_id(n) });
    }

    pub fn eligible(&mut self, n: u128, to: Eligibility) {
        self.submit(Command::SetNodeEligibility { node: node_id(n), to });
    }

    /// Registers the job and returns its evaluation.
    pub fn register(&mut self, job: Job) -> EvalId {
        let request = RegisterJob::new(job);
        self.submit(Command::RegisterJob(Box::new(request))).reply().evals[0]
    }

    pub fn deregister(&mut self, purge: bool) -> EvalId {
        let command =
            Command::DeregisterJob { key: key(), purge, eval_priority: None, no_shutdown_delay: false };
        self.submit(command).reply().evals[0]
    }

    /// An evaluation of the job, as if an operator had requested it.
    pub fn evaluate(&mut self) -> Outcome {
        let eval = self.submit(Command::EvaluateJob { key: key(), force_reschedule: false }).reply().evals[0];
        self.settle(eval)
    }

    pub fn eval(&self, id: EvalId) -> &Eval {
        self.state.evals.lookup(id).expect("the evaluation is known")
    }

    /// Schedules without submitting: checked, and the same with and without a memory, and on other pages.
    pub fn plan(&self, id: EvalId) -> Outcome {
        let eval = self.eval(id);
        let seed = self.state.index.0 ^ id.0.as_u128() as u64;
        let outcome = schedule(&self.state, eval, seed, self.now);
        let again = schedule_with(&mut self.memory.borrow_mut(), &self.state, eval, seed, self.now);
        assert_eq!(outcome.settlement, again.settlement, "what is remembered makes no difference");
        assert_eq!(outcome.explanation, again.explanation, "what is remembered makes no difference");
        let restored = restore(&Imager::default().image(&self.state)).expect("an image can be read");
        let again = schedule(&restored, restored.evals.lookup(id).unwrap(), seed, self.now);
        assert_eq!(outcome.settlement, again.settlement, "where rows are kept makes no difference");
        let found = lint::check(&self.state, &outcome.settlement.plan);
        assert!(found.is_empty(), "{found:#?}\n{}\n{:#?}", self.describe(), outcome.settlement.plan);
        outcome
    }

    /// The allocations in a few words each.
    fn describe(&self) -> String {
        let line = |alloc: &Alloc| {
            format!(
                "{} {} v{} {} {} node {} {:?} next {:?} {:?}",
                alloc.id,
                alloc.name(),
                alloc.version.version,
                alloc.desired,
                alloc.client,
                number(alloc.node_id),
                self.state.nodes.hot(alloc.node).status,
                alloc.next,
                alloc.transition
            )
        };
        let live = self.state.allocs.iter().filter(|(_, alloc)| !alloc.is_terminal());
        live.map(|(_, alloc)| line(alloc)).collect::<Vec<_>>().join("\n")
    }

    /// Schedules and submits; the whole plan is accepted.
    pub fn settle(&mut self, id: EvalId) -> Outcome {
        let outcome = self.plan(id);
        let decision = self.submit(Command::SettleEval(Box::new(outcome.settlement.clone())));
        let verdict = decision.verdict.expect("a settlement gets a verdict");
        assert!(verdict.full, "the plan is accepted: {:?}", verdict.rejected);
        outcome
    }

    /// Evaluations that may run now, oldest first.
    pub fn pending(&self) -> Vec<EvalId> {
        let due = |eval: &&Eval| eval.status == EvalStatus::Pending && eval.facts.wait_until <= self.now;
        let mut evals: Vec<&Eval> = self.state.evals.iter().map(|(_, eval)| eval).filter(due).collect();
        evals.sort_by_key(|eval| (eval.created, eval.id()));
        evals.iter().map(|eval| eval.id()).collect()
    }

    /// Blocked evaluations for which room appeared.
    pub fn unblocked(&self) -> Vec<EvalId> {
        let evals = self.state.evals.blocked().map(|(_, row)| self.state.evals.get(row));
        evals.filter(|eval| eval.may_be_unblocked(&self.state)).map(Eval::id).collect()
    }

    /// Settles what is pending, one after the other, and returns the last outcome.
    pub fn work_off(&mut self) -> Outcome {
        let mut last = None;
        for _ in 0..100 {
            let Some(next) = self.pending().first().copied() else { break };
            last = Some(self.settle(next));
        }
        assert!(self.pending().is_empty(), "evaluations do not beget evaluations without end");
        last.expect("something was pending")
    }

    /// Evaluations that wait for a later time: when, in seconds from now, and why.
    pub fn waiting(&self) -> Vec<(i64, Trigger)> {
        let waits = |eval: &&Eval| eval.status == EvalStatus::Pending && eval.facts.wait_until > self.now;
        let evals = self.state.evals.iter().map(|(_, eval)| eval).filter(waits);
        let mut waiting: Vec<(i64, Trigger)> = evals
            .map(|eval| (eval.facts.wait_until.since(self.now).as_millis() / 1000, eval.facts.trigger))
            .collect();
        waiting.sort_unstable();
        waiting
    }

    /// The one evaluation of this trigger that waits; time moves on to it.
    pub fn skip_to(&mut self, trigger: Trigger) -> EvalId {
        let evals = self.state.evals.iter().map(|(_, eval)| eval);
        let mut found =
            evals.filter(|eval| eval.status == EvalStatus::Pending && eval.facts.trigger == trigger);
        let eval = found.next().expect("such an evaluation waits");
        let (id, until) = (eval.id(), eval.facts.wait_until);
        self.now = self.now.max(until);
        id
    }

    pub fn pass(&mut self, secs: i64) {
        self.now = self.now.plus(Duration::from_secs(secs));
    }

    pub fn report(&mut self, alloc: AllocId, status: ClientStatus) {
        let update = self.update(alloc, status);
        let node = self.alloc(alloc).node_id;
        self.command(Actor::Node(node), Command::UpdateAllocs { node, updates: vec![update] });
    }

    pub fn update(&self, alloc: AllocId, status: ClientStatus) -> Allocation {
        let mut update = Allocation { id: alloc.to_string(), ..Allocation::default() };
        update.client_status = status.to_string();
        let ended = status.is_terminal();
        let task = TaskState {
            state: if ended { "dead" } else { "running" }.to_string(),
            failed: status == ClientStatus::Failed,
            started_at: self.now.into(),
            finished_at: if ended { self.now.into() } else { Default::default() },
            ..TaskState::default()
        };
        update.task_states.insert("main".into(), task);
        update
    }

    /// Every live allocation on a connected node reports that it runs.
    pub fn all_run(&mut self) {
        let live =
            |alloc: &&Alloc| !alloc.is_terminal() && !self.state.nodes.hot(alloc.node).status.is_silent();
        let allocs: Vec<AllocId> =
            self.state.allocs.iter().map(|(_, alloc)| alloc).filter(live).map(|alloc| alloc.id).collect();
        allocs.into_iter().for_each(|alloc| self.report(alloc, ClientStatus::Running));
    }

    /// One more allocation like the first that is wanted, whatever the count says. Its node has not spoken of it yet.
    pub fn add(&mut self, name: u32, node: u128, change: impl FnOnce(&mut AllocsPlaced)) -> AllocId {
        let like = self.wanted()[0].clone();
        let id = AllocId(Uuid::from(0xadd << 64 | u128::from(name) << 32 | node));
        let mut placed = AllocsPlaced {
            eval: like.eval,
            key: key(),
            version: like.version.version,
            group: "web".into(),
            template: Doc(like.template.bytes().to_vec()),
            metrics: Doc(like.metrics.bytes().to_vec()),
            ids: vec![id],
            nodes: vec![node_id(node)],
            names: vec![name],
            previous: vec![],
            deployment: like.deployment,
            canary: false,
            ports: vec![],
            given: vec![],
        };
        change(&mut placed);
        self.event(placed);
        id
    }

    /// Nodes without a wanted allocation of the job.
    pub fn free_nodes(&self) -> impl Iterator<Item = u128> + use<> {
        let used: Vec<u128> = self.wanted().iter().map(|alloc| number(alloc.node_id)).collect();
        (1..=self.state.nodes.len() as u128).filter(move |node| !used.contains(node))
    }

    /// It is to be stopped, without an evaluation.
    pub fn tell_to_end(&mut self, alloc: AllocId) {
        self.event(AllocsStopped {
            allocs: vec![alloc],
            desired: Desired::Stop,
            description: "by hand".into(),
            client: None,
            follow_up: None,
        });
    }

    /// The node is so, whatever it said.
    pub fn set_node(&mut self, n: u128, to: NodeStatus) {
        let node = node_id(n);
        let from = self.status_of(n);
        self.event(NodeStatusChanged { node, from, to, message: None });
    }

    pub fn status_of(&self, n: u128) -> NodeStatus {
        self.state.nodes.hot(self.state.nodes.find(node_id(n)).expect("the node is known")).status
    }

    pub fn stop_alloc(&mut self, alloc: AllocId, reschedule: bool) {
        self.submit(Command::StopAlloc { alloc, no_shutdown_delay: false, reschedule });
    }

    pub fn alloc(&self, id: AllocId) -> &Alloc {
        self.state.allocs.lookup(id).expect("the allocation is known")
    }

    /// Allocations that are wanted, in the order of their names.
    pub fn wanted(&self) -> Vec<&Alloc> {
        let mut wanted: Vec<&Alloc> =
            self.state.allocs.iter().map(|(_, alloc)| alloc).filter(|alloc| !alloc.is_stopping()).collect();
        wanted.sort_by_key(|alloc| (alloc.name_index, alloc.created, alloc.id));
        wanted
    }

    /// The newest wanted allocation of that name.
    pub fn named(&self, index: u32) -> AllocId {
        let wanted = self.wanted();
        let mut named = wanted.iter().filter(|alloc| alloc.name_index == index);
        named.next_back().map(|alloc| alloc.id).expect("the name is held")
    }

    pub fn node_of(&self, alloc: AllocId) -> u128 {
        number(self.alloc(alloc).node_id)
    }
}

pub fn key() -> JobKey {
    JobKey::new("default", "job")
}

pub fn node_id(n: u128) -> NodeId {
    NodeId(Uuid::from(n))
}

pub fn number(id: NodeId) -> u128 {
    id.0.as_u128()
}

/// 4000 MHz, 8192 MiB and 100 GiB, of which 100, 256 and 4 GiB are the client's own.
pub fn node(n: u128) -> Node {
    let mut resources = NodeResources::default();
    resources.cpu.cpu_shares = 4000;
    resources.memory.memory_mb = 8192;
    resources.disk.disk_mb = 100 * 1024;
    resources.networks.push(NetworkResource { mode: "host".into(), ..NetworkResource::default() });
    let mut reserved = NodeReservedResources::default();
    reserved.cpu.cpu_shares = 100;
    reserved.memory.memory_mb = 256;
    reserved.disk.disk_mb = 4 * 1024;
    let driver = DriverInfo { detected: true, healthy: true, ..DriverInfo::default() };
    Node {
        id: node_id(n).to_string(),
        secret_id: "secret".to_string(),
        name: format!("n{n}"),
        datacenter: "dc1".to_string(),
        node_pool: "default".to_string(),
        attributes: [("kernel.name".to_string(), "linux".to_string())].into_iter().collect(),
        drivers: [("exec".to_string(), driver)].into_iter().collect(),
        node_resources: Some(resources),
        reserved_resources: Some(reserved),
        ..Node::default()
    }
}

/// A job with one group `web`: 500 MHz, 256 MiB and 150 MiB of disk, one to a host.
pub fn job(kind: &str, count: i64) -> Job {
    let resources = Resources { cpu: Some(500), memory_mb: Some(256), ..Resources::default() };
    let task =
        Task { name: "main".into(), driver: "exec".into(), resources: Some(resources), ..Task::default() };
    let disk = EphemeralDisk { size_mb: Some(150), ..EphemeralDisk::default() };
    let unlimited = ReschedulePolicy {
        unlimited: Some(true),
        delay: Some(Duration::from_secs(30).into()),
        delay_function: Some("exponential".into()),
        max_delay: Some(Duration::from_secs(3600).into()),
        ..ReschedulePolicy::default()
    };
    let policy = match kind {
        "service" => Some(unlimited),
        "batch" => Some(limited(1, 24 * 3600, 5)),
        _ => None,
    };
    let group = TaskGroup {
        name: Some("web".into()),
        count: Some(count),
        tasks: vec![task].into(),
        ephemeral_disk: Some(disk),
        reschedule_policy: policy,
        ..TaskGroup::default()
    };
    let apart = matches!(kind, "service" | "batch").then(|| constraint("", "distinct_hosts", "true"));
    Job {
        id: Some("job".into()),
        name: Some("job".into()),
        namespace: Some("default".into()),
        region: Some("global".into()),
        kind: Some(kind.into()),
        priority: Some(50),
        datacenters: vec!["dc1".to_string()].into(),
        node_pool: Some("default".into()),
        constraints: apart.into_iter().collect(),
        task_groups: vec![group].into(),
        ..Job::default()
    }
}

pub fn limited(attempts: i64, interval: i64, delay: i64) -> ReschedulePolicy {
    ReschedulePolicy {
        attempts: Some(attempts),
        unlimited: Some(false),
        interval: Some(Duration::from_secs(interval).into()),
        delay: Some(Duration::from_secs(delay).into()),
        delay_function: Some("constant".into()),
        ..ReschedulePolicy::default()
    }
}

/// With other settings.
pub trait With {
    fn with(self, change: impl FnOnce(&mut Self)) -> Self;
}

impl With for Job {
    fn with(mut self, change: impl FnOnce(&mut Job)) -> Job {
        change(&mut self);
        self
    }
}

pub fn group(job: &mut Job) -> &mut TaskGroup {
    &mut job.task_groups[0]
}

pub fn task(job: &mut Job) -> &mut Task {
    &mut group(job).tasks[0]
}

/// Needs new allocations.
pub fn destructive(job: &mut Job) {
    let env = &mut task(job).env;
    let round = env.len();
    env.insert(format!("ROUND{round}"), "1".into());
}

pub fn lost_after(secs: i64) -> impl Fn(&mut Job) {
    move |job| disconnect(job).lost_after = Some(Duration::from_secs(secs).into())
}

pub fn disconnect(job: &mut Job) -> &mut DisconnectStrategy {
    group(job).disconnect.get_or_insert_default()
}

pub fn constraint(left: &str, operand: &str, right: &str) -> Constraint {
    Constraint { l_target: left.into(), operand: operand.into(), r_target: right.into() }
}

/// The counters that are not zero, in words.
pub fn counters(outcome: &Outcome) -> String {
    let updates = outcome.explanation.groups.get("web").map(|web| web.desired.clone()).unwrap_or_default();
    let DesiredUpdates {
        ignore,
        place,
        migrate,
        stop,
        in_place_update,
        destructive_update,
        canary,
        preemptions,
        disconnect,
        reconnect,
        reschedule_now,
        reschedule_later,
    } = updates;
    let all = [
        ("ignore", ignore),
        ("place", place),
        ("migrate", migrate),
        ("stop", stop),
        ("in-place", in_place_update),
        ("destructive", destructive_update),
        ("canary", canary),
        ("preemptions", preemptions),
        ("disconnect", disconnect),
        ("reconnect", reconnect),
        ("now", reschedule_now),
        ("later", reschedule_later),
    ];
    let some: Vec<String> =
        all.iter().filter(|(_, n)| *n > 0).map(|(name, n)| format!("{name} {n}")).collect();
    some.join(", ")
}

/// Names that the plan places, sorted.
pub fn placed(outcome: &Outcome) -> Vec<u32> {
    let mut names: Vec<u32> =
        outcome.settlement.plan.placed.iter().flat_map(|event| event.names.clone()).collect();
    names.sort_unstable();
    names
}

/// Nodes that the plan places on, sorted.
pub fn nodes(outcome: &Outcome) -> Vec<u128> {
    let placed = outcome.settlement.plan.placed.iter().flat_map(|event| &event.nodes);
    let mut nodes: Vec<u128> = placed.map(|id| number(*id)).collect();
    nodes.sort_unstable();
    nodes
}

/// What the plan stops: numbers in the names, with the words.
pub fn stopped(world: &World, outcome: &Outcome) -> Vec<(u32, String, Option<ClientStatus>)> {
    let mut stopped = Vec::new();
    for event in &outcome.settlement.plan.stopped {
        for id in &event.allocs {
            stopped.push((world.alloc(*id).name_index, event.description.clone(), event.client));
        }
    }
    stopped.sort();
    stopped
}

/// Only the numbers.
pub fn stopped_names(world: &World, outcome: &Outcome) -> Vec<u32> {
    stopped(world, outcome).into_iter().map(|(name, ..)| name).collect()
}

/// The metric of what could not be placed.
pub fn failed(outcome: &Outcome) -> AllocationMetric {
    let end = outcome.settlement.end.as_ref().expect("an outcome names an end");
    let failed = model::command::failed_groups(&end.outcome);
    failed.get("web").cloned().expect("the group failed")
}

pub fn is_placed_in_full(outcome: &Outcome) -> bool {
    let end = outcome.settlement.end.as_ref().expect("an outcome names an end");
    end.outcome.failed_groups.is_empty() && end.blocked.is_none()
}

pub fn queued(outcome: &Outcome) -> Vec<(String, u32)> {
    outcome.settlement.end.as_ref().expect("an outcome names an end").outcome.queued.clone()
}
