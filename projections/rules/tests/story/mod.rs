//! What stories say beyond commands: allocations by name, and plans made by hand.

use std::collections::BTreeMap;

use base::Duration;
use model::command::{EvalEnd, Plan, RegisterJob, Settlement, Verdict};
use model::document::{Allocation, DisconnectStrategy, Job, TaskGroup, TaskState};
use model::event::{
    AllocsMarkedUnknown, AllocsPlaced, AllocsPreempted, AllocsReconnected, AllocsStopped, EvalOutcome,
};
use model::{
    Actor, AllocId, ClientStatus, Command, Desired, Doc, EvalId, EvalStatus, NodeId, Rejection, Template,
};
use rules::Decision;

use crate::support::{World, key, node_id};

pub struct Story {
    pub world: World,
    allocs: BTreeMap<String, AllocId>,
    next_alloc: u128,
}

impl Story {
    pub fn new() -> Story {
        Story { world: World::new(), allocs: BTreeMap::new(), next_alloc: 0xa110c << 64 }
    }

    pub fn register_job(
        &mut self,
        name: &str,
        kind: &str,
        lost_after: Duration,
    ) -> Result<Decision, Rejection> {
        let job = job_document(name, kind, lost_after);
        let request = RegisterJob::new(job);
        self.world.submit(Command::RegisterJob(Box::new(request)))
    }

    /// The oldest evaluation of the job that waits.
    pub fn waiting_eval(&self, job: &str) -> Option<EvalId> {
        let job = self.world.state.jobs.lookup(&key(job))?;
        job.live_evals.first().map(|row| self.world.state.evals.get(*row).id())
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
        let outcome = EvalOutcome { snapshot: self.world.state.index, ..EvalOutcome::default() };
        let end = EvalEnd {
            status: EvalStatus::Complete,
            description: String::new(),
            outcome,
            desired: Doc::default(),
            blocked: None,
        };
        let settlement = Settlement { eval, plan, end: Some(end) };
        let decision = self.world.submit(Command::SettleEval(Box::new(settlement)))?;
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
        let version = self.world.state.jobs.lookup(&key(job)).map_or(0, |job| job.current().version);
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
        Plan { snapshot: self.world.state.index, ..Plan::default() }
    }

    pub fn report(&mut self, node: u128, allocs: &[(&str, &str)]) -> Result<Decision, Rejection> {
        let (actor, command) = self.reported(node, allocs);
        self.world.submit_as(actor, command)
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

/// The node's number in the story.
pub fn node_number(id: NodeId) -> u128 {
    id.0.as_u128() & 0xffff
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
