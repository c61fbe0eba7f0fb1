//! What a batch looks like in the stream: which rows are listed, under which type, in which order.
//!
//! The position in that list is part of an event's id, which consumers store: what exists never moves.

use std::collections::{BTreeSet, HashSet};

use api::{ServiceRegistration, VariableMetadata};
use base::Index;
use model::document::NodePool;
use model::{
    AllocId, Batch, CommandKind, DeploymentId, EvalId, Event, JobKey, NodeId, Service, Subject, VariableKey,
};
use state::alloc::AllocRow;
use state::deployment::DeploymentRow;
use state::eval::EvalRow;
use state::job::JobRow;
use state::node::NodeRow;
use state::variable::Variable;
use state::{FoldError, State};

use crate::access::{Access, AccessDocument};
use crate::gap::{self, GapDocument};
use crate::pool;
use crate::service::registration;
use crate::storage::{self, StorageDocument};

/// An event of the stream without its payload: all that filters look at.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub topic: &'static str,
    /// Names the command that caused it.
    pub kind: &'static str,
    pub key: String,
    /// Empty for what has none.
    pub namespace: String,
    /// What it can be found by besides its key.
    pub filter_keys: Vec<String>,
    pub object: Object,
    /// The position of the command that it followed from in its batch.
    pub command: u16,
    /// The position of the fact in its batch that it is listed for.
    pub fact: u16,
}

/// What an entry is about. There may be none of it any more after the batch.
#[derive(Clone, Debug, PartialEq)]
pub enum Object {
    Row(Row),
    Variable(Box<VariableMetadata>),
    /// An instance of a service.
    Service(Box<ServiceRegistration>),
    Access(AccessDocument),
    /// What was not seen of another cluster.
    Gap(Box<GapDocument>),
    /// A volume or a plugin; as it was before, if the batch removes it.
    Storage(Option<Box<StorageDocument>>),
    /// A pool of nodes; as it was before, if the batch removes it.
    Pool(Box<NodePool>),
}

/// The row whose state after the batch is the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Row {
    Node(NodeRow),
    Job(JobRow),
    Eval(EvalRow),
    Alloc(AllocRow),
    Deployment(DeploymentRow),
}

pub const NODE: &str = api::TOPICS[4];
pub const JOB: &str = api::TOPICS[3];
pub const EVALUATION: &str = api::TOPICS[2];
pub const ALLOCATION: &str = api::TOPICS[0];
pub const DEPLOYMENT: &str = api::TOPICS[1];
pub const VARIABLE: &str = api::TOPICS[10];
pub const SERVICE: &str = api::TOPICS[11];
pub const RECORDING: &str = api::TOPICS[12];
pub(crate) const NODE_POOL: &str = api::TOPICS[16];

/// Folds a batch and lists its entries.
///
/// # Errors
/// The batch does not follow on `state`.
pub fn list(state: &mut State, batch: &Batch) -> Result<Vec<Entry>, FoldError> {
    let before = state.clone();
    state.apply(batch)?;
    Ok(between(&before, state, batch))
}

/// The entries of a batch that led from one state to the other.
pub(crate) fn between(before: &State, after: &State, batch: &Batch) -> Vec<Entry> {
    let (removed, access) = (Removed::of(before, batch), Access::of(before, batch));
    let mut listing = Listing {
        state: after,
        at: batch.index,
        registered: BTreeSet::new(),
        removed,
        listed: HashSet::new(),
        variables: Vec::new(),
        command: 0,
        fact: 0,
        entries: Vec::new(),
    };
    listing.registered = batch.events.iter().filter_map(|logged| listing.registers(&logged.event)).collect();
    for (fact, logged) in batch.events.iter().enumerate() {
        let record = &batch.commands[usize::from(logged.command)];
        if let Some(kind) = kind(record.kind, &logged.event) {
            (listing.command, listing.fact) = (logged.command, fact as u16);
            listing.list(kind, &logged.event);
        }
    }
    let mut entries = listing.entries;
    entries.extend(access.entries(after));
    // Behind everything else: ids that readers have stored stay what they were.
    entries.extend(gap::entries(batch));
    entries.extend(storage::entries(before, after, batch));
    entries.extend(pool::entries(before, after, batch));
    entries
}

/// The type an event is listed under; `None` for what is not listed.
///
/// Source: Nomad's event stream. There, a plan and the end of its evaluation are two messages, and so are a node's
/// change and the evaluations it asks for: each keeps its type here.
pub fn kind(command: u16, event: &Event) -> Option<&'static str> {
    let command = CommandKind::from_number(command);
    match event {
        Event::NodeRegistered(_) | Event::NodeUpdated(_) => Some("NodeRegistration"),
        Event::NodeStatusChanged(_) | Event::NodeMessagesEmitted(_) => Some("NodeStreamEvent"),
        Event::NodeEligibilityChanged(_) => Some("NodeEligibility"),
        Event::NodeDrainStarted(_) | Event::NodeDrainUpdated(_) | Event::NodeDrainEnded(_) => {
            Some("NodeDrain")
        }
        Event::NodeDeregistered(_) => Some("NodeDeregistration"),
        Event::NodeAllocsReported(_) | Event::AllocReported(_) => Some("AllocationUpdated"),
        Event::JobRegistered(_) => Some("JobRegistered"),
        Event::JobPurged(_)
            if matches!(command, Some(CommandKind::CollectGarbage | CommandKind::CollectDue)) =>
        {
            Some("JobBatchDeregistered")
        }
        Event::JobStopped(_) | Event::JobPurged(_) => Some("JobDeregistered"),
        Event::AllocsStopped(_) if command == Some(CommandKind::DeregisterJob) => Some("JobDeregistered"),
        Event::PlanCommitted(_)
        | Event::AllocsPlaced(_)
        | Event::AllocsUpdatedInPlace(_)
        | Event::AllocsStopped(_)
        | Event::AllocsPreempted(_)
        | Event::AllocsMarkedUnknown(_)
        | Event::AllocsReconnected(_)
        | Event::DeploymentCreated(_)
        | Event::DeploymentGoalsChanged(_) => Some("PlanResult"),
        Event::DeploymentStatusChanged(_) => Some(match command {
            Some(CommandKind::SettleEval) => "PlanResult",
            Some(CommandKind::PromoteDeployment) => "DeploymentPromotion",
            Some(CommandKind::SetAllocHealth) => "DeploymentAllocHealth",
            _ => "DeploymentStatusUpdate",
        }),
        Event::DeploymentProgressObserved(_) => Some("DeploymentAllocHealth"),
        Event::DeploymentPromoted(_) => Some("DeploymentPromotion"),
        Event::AllocHealthSet(_) => Some("DeploymentAllocHealth"),
        Event::EvalCreated(_)
        | Event::EvalUpdated(_)
        | Event::EvalsCanceled(_)
        | Event::AllocTransitionRequested(_) => Some(match command {
            Some(CommandKind::UpdateAllocs) => "AllocationUpdated",
            Some(CommandKind::RegisterJob) => "JobRegistered",
            Some(CommandKind::DeregisterJob) => "JobDeregistered",
            Some(CommandKind::StopAlloc | CommandKind::AdvanceDrain) => "AllocationUpdateDesiredStatus",
            Some(CommandKind::PromoteDeployment) => "DeploymentPromotion",
            Some(
                CommandKind::FailDeployment | CommandKind::PauseDeployment | CommandKind::ResumeDeployment,
            ) => "DeploymentStatusUpdate",
            Some(CommandKind::SetAllocHealth) => "DeploymentAllocHealth",
            _ => "EvaluationUpdated",
        }),
        Event::VariableSet(_)
        | Event::VariableDeleted(_)
        | Event::VariableForgotten(_)
        | Event::VariableLockAcquired(_)
        | Event::VariableLockReleased(_) => Some("VariableUpdated"),
        Event::ServicesRegistered(_) => Some("ServiceRegistration"),
        Event::ServicesDeregistered(_) => Some("ServiceDeregistration"),
        // Nomad's stream has nothing of the kind, or `access`, `gap`, `storage` or `pool` lists it.
        _ => None,
    }
}

/// Rows that a batch removes. What came and went within one batch was never seen by anybody.
struct Removed {
    nodes: Vec<(NodeId, NodeRow)>,
    jobs: Vec<(JobKey, JobRow)>,
    /// As they were before.
    variables: Vec<VariableMetadata>,
    services: Vec<ServiceRegistration>,
}

impl Removed {
    fn of(state: &State, batch: &Batch) -> Removed {
        let mut removed =
            Removed { nodes: Vec::new(), jobs: Vec::new(), variables: Vec::new(), services: Vec::new() };
        for logged in &batch.events {
            match &logged.event {
                Event::NodeDeregistered(e) => {
                    removed.nodes.extend(state.nodes.find(e.node).map(|row| (e.node, row)));
                }
                Event::JobPurged(e) => {
                    removed.jobs.extend(state.jobs.find(&e.key).map(|row| (e.key.clone(), row)));
                }
                Event::ServicesDeregistered(e) => {
                    let own = state.services.of_alloc(e.alloc).iter();
                    let own = own.filter(|row| e.services.contains(&row.service.id));
                    removed.services.extend(own.map(registration));
                }
                Event::VariableDeleted(e) => {
                    removed.variables.extend(state.variables.get(&e.key).map(|row| metadata(&e.key, row)));
                }
                Event::VariableForgotten(e) => {
                    removed.variables.extend(state.variables.get(&e.key).map(|row| metadata(&e.key, row)));
                }
                _ => {}
            }
        }
        removed
    }

    fn node(&self, id: NodeId) -> Option<NodeRow> {
        self.nodes.iter().find(|(known, _)| *known == id).map(|(_, row)| *row)
    }

    fn job(&self, key: &JobKey) -> Option<JobRow> {
        self.jobs.iter().find(|(known, _)| known == key).map(|(_, row)| *row)
    }
}

struct Listing<'a> {
    /// After the batch.
    state: &'a State,
    at: Index,
    /// Jobs that the batch itself names; of others only a changed status is listed.
    registered: BTreeSet<JobRow>,
    removed: Removed,
    listed: HashSet<(&'static str, Row)>,
    /// Those that the batch names.
    variables: Vec<VariableKey>,
    /// Whose events are listed, and which of them.
    command: u16,
    fact: u16,
    entries: Vec<Entry>,
}

impl Listing<'_> {
    fn list(&mut self, kind: &'static str, event: &Event) {
        match event {
            Event::NodeDeregistered(e) => {
                let row = self.removed.node(e.node);
                row.into_iter().for_each(|row| self.add(kind, Row::Node(row)));
            }
            Event::JobPurged(e) => self.purged(kind, &e.key),
            Event::AllocsPlaced(e) => {
                self.allocs(kind, &e.ids);
                // The replaced ones now name their successors.
                self.allocs(kind, &e.previous);
            }
            Event::AllocReported(e) => {
                self.allocs(kind, &[e.alloc]);
                // The node shows when it last reported its allocations.
                self.node(kind, e.node);
            }
            Event::DeploymentPromoted(e) => {
                self.deployment(kind, e.deployment);
                self.canaries(kind, e.deployment, &e.groups);
            }
            Event::AllocHealthSet(e) => {
                self.deployment(kind, e.deployment);
                self.allocs(kind, &e.allocs);
            }
            Event::VariableSet(e) => self.variable(kind, &e.key),
            Event::VariableDeleted(e) => self.variable(kind, &e.key),
            Event::VariableForgotten(e) => self.variable(kind, &e.key),
            Event::VariableLockAcquired(e) => self.variable(kind, &e.key),
            Event::VariableLockReleased(e) => self.variable(kind, &e.key),
            Event::ServicesRegistered(e) => self.registered(kind, e.alloc, &e.services),
            Event::ServicesDeregistered(e) => self.deregistered(kind, &e.services),
            _ => self.subject(kind, event.subject()),
        }
    }

    fn subject(&mut self, kind: &'static str, subject: Subject<'_>) {
        match subject {
            Subject::Cluster => {}
            Subject::Node(id) => self.node(kind, id),
            Subject::Job(key) => self.job(kind, key),
            Subject::Evals(ids) => ids.iter().for_each(|id| self.eval(kind, *id)),
            Subject::Allocs(ids) => self.allocs(kind, ids),
            Subject::Deployment(id) => self.deployment(kind, id),
        }
    }

    fn registers(&self, event: &Event) -> Option<JobRow> {
        match event {
            Event::JobRegistered(e) => self.job_row(&e.key),
            Event::JobStopped(e) => self.job_row(&e.key),
            Event::JobPurged(e) => self.removed.job(&e.key),
            _ => None,
        }
    }

    fn node(&mut self, kind: &'static str, id: NodeId) {
        if let Some(row) = self.state.nodes.find(id).or_else(|| self.removed.node(id)) {
            self.add(kind, Row::Node(row));
        }
    }

    fn job(&mut self, kind: &'static str, key: &JobKey) {
        if let Some(row) = self.job_row(key) {
            self.add(kind, Row::Job(row));
        }
    }

    fn job_row(&self, key: &JobKey) -> Option<JobRow> {
        self.state.jobs.find(key).or_else(|| self.removed.job(key))
    }

    /// The job and the evaluations that ended with it. Allocations that are collected are not listed, as in Nomad.
    fn purged(&mut self, kind: &'static str, key: &JobKey) {
        let Some(row) = self.removed.job(key) else { return };
        self.add(kind, Row::Job(row));
        for eval in self.state.jobs.get(row).evals.clone().iter() {
            if self.state.evals.get(*eval).modified == self.at {
                self.add(kind, Row::Eval(*eval));
            }
        }
    }

    fn eval(&mut self, kind: &'static str, id: EvalId) {
        if let Some(row) = self.state.evals.find(id) {
            self.add(kind, Row::Eval(row));
            self.status_of(kind, self.state.evals.get(row).job);
        }
    }

    fn allocs(&mut self, kind: &'static str, ids: &[AllocId]) {
        for row in ids.iter().filter_map(|id| self.state.allocs.find(*id)) {
            self.add(kind, Row::Alloc(row));
            let alloc = self.state.allocs.get(row);
            // Its deployment counts what became of it.
            let counts =
                |id| self.state.deployments.lookup(id).is_some_and(|known| known.modified == self.at);
            let counting = alloc.deployment.filter(|id| counts(*id));
            self.status_of(kind, alloc.job);
            counting.into_iter().for_each(|id| self.deployment(kind, id));
        }
    }

    fn deployment(&mut self, kind: &'static str, id: DeploymentId) {
        if let Some(row) = self.state.deployments.find(id) {
            self.add(kind, Row::Deployment(row));
            self.status_of(kind, self.state.deployments.get(row).job);
        }
    }

    /// What came and went within the batch was never seen by anybody.
    fn variable(&mut self, kind: &'static str, key: &VariableKey) {
        let after = self.state.variables.get(key).map(|row| metadata(key, row));
        let before = || {
            self.removed
                .variables
                .iter()
                .find(|known| known.path == key.path && known.namespace == key.namespace)
        };
        let Some(shown) = after.or_else(|| before().cloned()) else { return };
        if self.variables.contains(key) {
            return;
        }
        self.variables.push(key.clone());
        self.entries.push(Entry {
            topic: VARIABLE,
            kind,
            key: key.path.clone(),
            namespace: key.namespace.clone(),
            filter_keys: Vec::new(),
            object: Object::Variable(Box::new(shown)),
            command: self.command,
            fact: self.fact,
        });
    }

    /// What came and went within the batch was never seen by anybody.
    fn registered(&mut self, kind: &'static str, alloc: AllocId, services: &[Service]) {
        let is_named = |id: &String| services.iter().any(|service| service.id == *id);
        let known = self.state.services.of_alloc(alloc).iter();
        let shown: Vec<ServiceRegistration> =
            known.filter(|row| is_named(&row.service.id)).map(registration).collect();
        shown.into_iter().for_each(|one| self.service(kind, one));
    }

    /// As they were before.
    fn deregistered(&mut self, kind: &'static str, ids: &[String]) {
        let known = self.removed.services.iter();
        let shown: Vec<ServiceRegistration> = known.filter(|one| ids.contains(&one.id)).cloned().collect();
        shown.into_iter().for_each(|one| self.service(kind, one));
    }

    fn service(&mut self, kind: &'static str, shown: ServiceRegistration) {
        self.entries.push(Entry {
            topic: SERVICE,
            kind,
            key: shown.id.clone(),
            namespace: shown.namespace.clone(),
            filter_keys: vec![shown.job_id.clone(), shown.service_name.clone()],
            object: Object::Service(Box::new(shown)),
            command: self.command,
            fact: self.fact,
        });
    }

    /// They are members like the others from here on.
    fn canaries(&mut self, kind: &'static str, id: DeploymentId, groups: &[String]) {
        let known = self.state.deployments.lookup(id);
        let promoted =
            known.into_iter().flat_map(|known| &known.groups).filter(|(name, _)| groups.contains(name));
        let canaries: Vec<AllocId> =
            promoted.flat_map(|(_, group)| &group.placed_canaries).copied().collect();
        self.allocs(kind, &canaries);
    }

    /// A job whose status followed from what happened to its evaluations and allocations is listed once.
    fn status_of(&mut self, kind: &'static str, row: JobRow) {
        let job = self.state.jobs.get(row);
        let came_and_went = job.purged && self.removed.jobs.iter().all(|(_, known)| *known != row);
        if job.modified == self.at && !came_and_went && self.registered.insert(row) {
            self.add(kind, Row::Job(row));
        }
    }

    fn add(&mut self, kind: &'static str, row: Row) {
        if self.listed.insert((kind, row)) {
            let (command, fact) = (self.command, self.fact);
            self.entries.push(Entry { command, fact, ..entry(self.state, kind, row) });
        }
    }
}

fn entry(state: &State, kind: &'static str, row: Row) -> Entry {
    let (topic, key, namespace, filter_keys) = match row {
        Row::Node(row) => (NODE, state.nodes.cold(row).id.to_string(), String::new(), Vec::new()),
        Row::Job(row) => {
            let JobKey { namespace, id } = state.jobs.get(row).key.clone();
            (JOB, id, namespace, Vec::new())
        }
        Row::Eval(row) => {
            let facts = &state.evals.get(row).facts;
            let deployment = state.evals.get(row).outcome.deployment;
            (EVALUATION, facts.id.to_string(), facts.key.namespace.clone(), of_job(&facts.key, deployment))
        }
        Row::Alloc(row) => {
            let alloc = state.allocs.get(row);
            let key = &state.jobs.get(alloc.job).key;
            (ALLOCATION, alloc.id.to_string(), key.namespace.clone(), of_job(key, alloc.deployment))
        }
        Row::Deployment(row) => {
            let deployment = state.deployments.get(row);
            let JobKey { namespace, id } = state.jobs.get(deployment.job).key.clone();
            (DEPLOYMENT, deployment.id.to_string(), namespace, vec![id])
        }
    };
    Entry { topic, kind, key, namespace, filter_keys, object: Object::Row(row), command: 0, fact: 0 }
}

/// A variable without its items, and without its lock: who knows the id of a lock holds it.
pub fn metadata(key: &VariableKey, row: &Variable) -> VariableMetadata {
    VariableMetadata {
        namespace: key.namespace.clone(),
        path: key.path.clone(),
        create_index: row.created.0,
        modify_index: row.modified.0,
        create_time: row.created_at.0,
        modify_time: row.modified_at.0,
        lock: None,
    }
}

/// Job and deployment; the latter is empty for what belongs to none.
fn of_job(key: &JobKey, deployment: Option<DeploymentId>) -> Vec<String> {
    vec![key.id.clone(), deployment.map(|id| id.to_string()).unwrap_or_default()]
}
