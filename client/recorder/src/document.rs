//! What the event stream and the lists speak of.

use model::document::{Allocation, Deployment, Evaluation, input};
use model::{JobKey, NodeId, Observation, ObservedKey};
use state::State;

/// An event of the stream, as far as it matters.
#[derive(Clone, Debug)]
pub(crate) struct Hint {
    pub key: ObservedKey,
    pub index: u64,
    /// The object as the event shows it; `None` where only another read says all.
    pub document: Option<Observation>,
}

/// `None` for a topic that is not recorded, and for what has no usable name.
pub(crate) fn hint(event: &api::Event) -> Option<Hint> {
    let api::Event { topic, key, index, namespace, payload, .. } = event;
    let payload = payload.get(topic).cloned();
    let (key, document) = match topic.as_str() {
        // A job is read with its versions; one that was deregistered, or a node, may be gone.
        "Job" => (ObservedKey::Job(JobKey::new(namespace, key)), None),
        "Node" => (ObservedKey::Node(key.parse().ok()?), None),
        "Allocation" => {
            let read = payload.and_then(|value| input::from_value::<Allocation>(value).ok());
            (ObservedKey::Alloc(key.parse().ok()?), read.map(|read| Observation::Alloc(Box::new(read))))
        }
        "Evaluation" => {
            let read = payload.and_then(|value| input::from_value::<Evaluation>(value).ok());
            (ObservedKey::Eval(key.parse().ok()?), read.map(|read| Observation::Eval(Box::new(read))))
        }
        "Deployment" => {
            let read = payload.and_then(|value| input::from_value::<Deployment>(value).ok());
            let document = read.map(|read| Observation::Deployment(Box::new(read)));
            (ObservedKey::Deployment(key.parse().ok()?), document)
        }
        _ => return None,
    };
    Some(Hint { key, index: *index, document })
}

/// Tables in the order in which documents of one moment are taken over: what others name comes first. Deployments come after
/// the allocations that they count, so that what they say counts.
pub(crate) fn rank(key: &ObservedKey) -> usize {
    match key {
        ObservedKey::Namespace(_) => 0,
        ObservedKey::NodePool(_) => 1,
        ObservedKey::Node(_) => 2,
        ObservedKey::Job(_) => 3,
        ObservedKey::Eval(_) => 4,
        ObservedKey::Alloc(_) => 5,
        ObservedKey::Deployment(_) => 6,
    }
}

/// Tables that are recorded.
pub(crate) const TABLES: usize = 7;

/// Everything of one table that the state has.
pub(crate) fn recorded(state: &State, table: usize) -> Vec<ObservedKey> {
    match table {
        0 => state.namespaces.names().into_iter().map(|name| ObservedKey::Namespace(name.into())).collect(),
        1 => state.pools.names().into_iter().map(|name| ObservedKey::NodePool(name.into())).collect(),
        2 => state.nodes.rows().map(|row| ObservedKey::Node(state.nodes.cold(row).id)).collect(),
        3 => {
            let mut keys: Vec<JobKey> = state.jobs.iter().map(|(_, job)| job.key.clone()).collect();
            keys.sort();
            keys.into_iter().map(ObservedKey::Job).collect()
        }
        4 => state.evals.iter().map(|(_, eval)| ObservedKey::Eval(eval.id())).collect(),
        5 => state.allocs.iter().map(|(_, alloc)| ObservedKey::Alloc(alloc.id)).collect(),
        _ => state.deployments.iter().map(|(_, one)| ObservedKey::Deployment(one.id)).collect(),
    }
}

/// The state has it.
pub(crate) fn is_recorded(state: &State, key: &ObservedKey) -> bool {
    match key {
        ObservedKey::Namespace(name) => state.namespaces.exists(name),
        ObservedKey::NodePool(name) => state.pools.exists(name),
        ObservedKey::Node(id) => state.nodes.find(*id).is_some(),
        ObservedKey::Job(key) => state.jobs.find(key).is_some(),
        ObservedKey::Eval(id) => state.evals.find(*id).is_some(),
        ObservedKey::Alloc(id) => state.allocs.find(*id).is_some(),
        ObservedKey::Deployment(id) => state.deployments.find(*id).is_some(),
    }
}

/// What an object names that has to be in the state before it can be.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Needs {
    pub job: JobKey,
    /// Of an allocation: where it is, and the version of the job.
    pub place: Option<(NodeId, u64)>,
}

impl Needs {
    pub(crate) fn are_met(&self, state: &State) -> bool {
        let Some(job) = state.jobs.lookup(&self.job) else { return false };
        let is_there = |(node, version): (NodeId, u64)| {
            state.nodes.find(node).is_some() && job.version(version).is_some()
        };
        self.place.is_none_or(is_there)
    }
}

/// `None` for what needs nothing, and for an allocation without a usable node.
pub(crate) fn needs(document: &Observation) -> Option<Needs> {
    match document {
        Observation::Eval(eval) => {
            Some(Needs { job: JobKey::new(&eval.namespace, &eval.job_id), place: None })
        }
        Observation::Alloc(alloc) => {
            let version = alloc.job.as_ref().and_then(|job| job.version).unwrap_or_default();
            let place = Some((alloc.node_id.parse().ok()?, version));
            Some(Needs { job: JobKey::new(&alloc.namespace, &alloc.job_id), place })
        }
        Observation::Namespace(_)
        | Observation::NodePool(_)
        | Observation::Node(_)
        | Observation::Job(_)
        | Observation::Deployment(_)
        | Observation::Gone(_) => None,
    }
}
