//! A small world for tests: commands go in by short names, are decided and folded, and the log of what they led to is
//! kept.
//!
//! Used by the tests of the rules, the leader, the history and the event stream. Never here: the scheduler. Plans are made by
//! hand; `scheduler/placement/tests/support` is the world in which they are made by it.

use std::collections::BTreeMap;

use base::{Duration, Time, Uuid};
use model::command::{EvalEnd, Plan, RegisterJob, Settlement, Verdict};
use model::document::{Allocation, DisconnectStrategy, Job, Node, TaskGroup, TaskState};
use model::event::{
    AllocsMarkedUnknown, AllocsPlaced, AllocsPreempted, AllocsReconnected, AllocsStopped, EvalOutcome,
};
use model::{
    Actor, AllocId, Batch, ClientStatus, Command, CommandRecord, Desired, Doc, EvalId, Event, JobKey,
    LoggedEvent, NodeId, Rejection, Request, Template,
};
use rules::{Context, Decision, decide};
use state::State;

pub struct World {
    pub state: State,
    pub log: Vec<Batch>,
    pub now: Time,
    allocs: BTreeMap<String, AllocId>,
    next_alloc: u128,
}

impl Default for World {
    fn default() -> World {
        World::new()
    }
}

impl World {
    pub fn new() -> World {
        World {
            state: State::default(),
            log: Vec::new(),
            now: Time::from_secs(1_000_000),
            allocs: BTreeMap::new(),
            next_alloc: 0xa110c << 64,
        }
    }

    /// Decides a command on the current state and folds what it leads to, as one batch.
    pub fn submit(&mut self, command: Command) -> Result<Decision, Rejection> {
        self.submit_as(Actor::ANONYMOUS, command)
    }

    pub fn submit_as(&mut self, actor: Actor, command: Command) -> Result<Decision, Rejection> {
        self.submit_request(Request::unnamed(actor, command))
    }

    /// The same for one that may have a name, which nothing looks up here.
    pub fn submit_request(&mut self, request: Request) -> Result<Decision, Rejection> {
        let index = self.state.index.next();
        let mut ctx = Context::new(index, self.now, index.0);
        let decision = decide(&self.state, &mut ctx, &request.actor, &request.command)?;
        if !decision.events.is_empty() {
            let record =
                CommandRecord { request: request.id, kind: request.command.kind(), actor: request.actor };
            let logged = |event: &Event| LoggedEvent { command: 0, event: event.clone() };
            let batch = Batch {
                commands: vec![record],
                events: decision.events.iter().map(logged).collect(),
                ..self.state.next_batch(self.now, Uuid::NIL)
            };
            self.state.apply(&batch).expect("the batch was decided on this state");
            assert_eq!(self.state.digest(), self.state.recomputed_digest(), "after {}", batch.index);
            self.log.push(batch);
        }
        Ok(decision)
    }

    /// Every test that owns a log ends with this.
    pub fn check_replay(&self) {
        let mut replayed = State::default();
        for batch in &self.log {
            replayed.apply(batch).expect("the log follows on itself");
        }
        assert!(replayed == self.state, "replaying the log gives another state");
        assert_eq!(replayed.digest(), self.state.digest());
    }

    pub fn register_node(&mut self, number: u128, rack: &str) -> Result<Decision, Rejection> {
        self.submit(Command::RegisterNode { document: Box::new(node_document(number, rack)) })
    }

    pub fn register_job(
        &mut self,
        name: &str,
        kind: &str,
        lost_after: Duration,
    ) -> Result<Decision, Rejection> {
        let job = job_document(name, kind, lost_after);
        let request = RegisterJob::new(job);
        self.submit(Command::RegisterJob(Box::new(request)))
    }

    /// The oldest evaluation of the job that waits.
    pub fn waiting_eval(&self, job: &str) -> Option<EvalId> {
        let job = self.state.jobs.lookup(&key(job))?;
        job.live_evals.first().map(|row| self.state.evals.get(*row).id())
    }

    /// Ends the evaluation of the job that waits if a plan for it was decided: the next one has to be of another, or newer.
    pub fn end_planned(&mut self, job: &str) {
        let waiting = self.waiting_eval(job).and_then(|id| self.state.evals.lookup(id));
        if waiting.is_some_and(|eval| eval.modified > eval.created) {
            let plan = self.plan();
            self.settle(job, plan).expect("a plan that changes nothing is accepted");
        }
    }

    pub fn alloc(&self, name: &str) -> AllocId {
        *self.allocs.get(name).unwrap_or_else(|| panic!("the story placed no {name}"))
    }

    /// A name for the allocation in output.
    pub fn alloc_name(&self, id: AllocId) -> String {
        let known = self.allocs.iter().find(|(_, known)| **known == id);
        known.map_or_else(|| id.to_string(), |(name, _)| name.clone())
    }

    /// Settles the job's oldest waiting evaluation with a plan made on `snapshot`.
    pub fn settle(&mut self, job: &str, plan: Plan) -> Result<Verdict, Rejection> {
        let eval = self.waiting_eval(job).expect("an evaluation of the job waits");
        let outcome = EvalOutcome { snapshot: self.state.index, ..EvalOutcome::default() };
        let end = EvalEnd::complete(outcome);
        let settlement = Settlement { eval, plan, end: Some(end) };
        let decision = self.submit(Command::SettleEval(Box::new(settlement)))?;
        Ok(decision.verdict.expect("a settlement is answered with a verdict"))
    }

    /// One placement, named in the story as `job[index]`.
    pub fn placement(
        &mut self,
        job: &str,
        index: u32,
        node: u128,
        previous: Option<AllocId>,
    ) -> AllocsPlaced {
        self.next_alloc += 1;
        let id = AllocId(self.next_alloc.into());
        let name = match previous {
            None => format!("{job}[{index}]"),
            Some(_) => format!("{job}[{index}]'"),
        };
        self.allocs.insert(name, id);
        let version = self.state.jobs.lookup(&key(job)).map_or(0, |job| job.current().version);
        let template = Template { cpu_mhz: 100, memory_mib: 64, ..Template::default() };
        AllocsPlaced {
            eval: self.waiting_eval(job).unwrap_or_default(),
            key: key(job),
            version,
            group: "g".to_string(),
            template: Doc::of(&template),
            metrics: Doc::of(&model::document::AllocationMetric::default()),
            ids: vec![id],
            nodes: vec![node_id(node)],
            names: vec![index],
            previous: previous.into_iter().collect(),
            deployment: None,
            canary: false,
            ports: Vec::new(),
            given: Vec::new(),
        }
    }

    pub fn plan(&self) -> Plan {
        Plan { snapshot: self.state.index, ..Plan::default() }
    }

    pub fn report(&mut self, node: u128, allocs: &[(&str, &str)]) -> Result<Decision, Rejection> {
        let (actor, command) = self.reported(node, allocs);
        self.submit_as(actor, command)
    }

    pub fn reported(&self, node: u128, allocs: &[(&str, &str)]) -> (Actor, Command) {
        // `running/1` also says that its task runs, having been started again once.
        let update = |(name, told): &(&str, &str)| {
            let (status, restarts) = told.split_once('/').unwrap_or((*told, ""));
            let task = |restarts| TaskState { state: status.to_string(), restarts, ..TaskState::default() };
            let task = restarts.parse().ok().map(|restarts| ("t".to_string(), task(restarts)));
            Allocation {
                id: self.alloc(name).to_string(),
                node_id: node_id(node).to_string(),
                client_status: status.to_string(),
                task_states: task.into_iter().collect(),
                ..Allocation::default()
            }
        };
        let updates = allocs.iter().map(update).collect();
        (Actor::Node(node_id(node)), Command::UpdateAllocs { node: node_id(node), updates })
    }
}

pub fn stop(allocs: Vec<AllocId>, client: Option<ClientStatus>) -> AllocsStopped {
    let description = "by the story".to_string();
    AllocsStopped { allocs, desired: Desired::Stop, description, client, follow_up: None }
}

/// Somebody makes room for the newest placement of the plan.
pub fn preempt(alloc: AllocId, plan: &Plan) -> AllocsPreempted {
    let by = plan.placed.last().expect("something is placed").ids[0];
    AllocsPreempted { allocs: vec![alloc], by }
}

pub fn unknown(allocs: Vec<AllocId>) -> AllocsMarkedUnknown {
    AllocsMarkedUnknown { allocs, follow_up: None }
}

pub fn reconnected(allocs: Vec<AllocId>) -> AllocsReconnected {
    AllocsReconnected { allocs }
}

pub fn key(job: &str) -> JobKey {
    JobKey::new("default", job)
}

pub fn node_id(number: u128) -> NodeId {
    NodeId((0x90de << 112 | number).into())
}

/// The node's number in the story.
pub fn node_number(id: NodeId) -> u128 {
    id.0.as_u128() & 0xffff
}

pub fn node_document(number: u128, rack: &str) -> Node {
    let resources = serde_json::json!({"Cpu": {"CpuShares": 1000}, "Memory": {"MemoryMB": 1024}, "Disk": {"DiskMB": 9999}});
    Node {
        id: node_id(number).to_string(),
        secret_id: format!("secret-{number}"),
        name: format!("n{number}"),
        datacenter: "dc1".to_string(),
        attributes: [("kernel.name", "linux"), ("driver.none", "1")]
            .map(|(k, v)| (k.to_string(), v.to_string()))
            .into_iter()
            .collect(),
        meta: [("rack".to_string(), rack.to_string())].into_iter().collect(),
        node_resources: Some(
            model::document::input::from_value(resources).expect("resources are well formed"),
        ),
        ..Node::default()
    }
}

pub fn job_document(name: &str, kind: &str, lost_after: Duration) -> Job {
    let disconnect =
        DisconnectStrategy { lost_after: Some(lost_after.into()), ..DisconnectStrategy::default() };
    let group = TaskGroup {
        name: Some("g".to_string()),
        count: Some(1),
        disconnect: (lost_after.0 > 0).then_some(disconnect),
        ..TaskGroup::default()
    };
    Job {
        namespace: Some("default".to_string()),
        id: Some(name.to_string()),
        name: Some(name.to_string()),
        kind: Some(kind.to_string()),
        priority: Some(50),
        datacenters: vec!["*".to_string()].into(),
        node_pool: Some("default".to_string()),
        task_groups: vec![group].into(),
        ..Job::default()
    }
}
