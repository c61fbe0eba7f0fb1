//! Objects whose history can be read, besides allocations, and which events are about them.

use model::{DeploymentId, EvalId, Event, JobKey, NodeId, Subject};

/// A job, a node, an evaluation or a deployment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Object {
    Job(JobKey),
    Node(NodeId),
    Eval(EvalId),
    Deployment(DeploymentId),
}

impl Object {
    /// What the keys of its events begin with. No object's keys begin with another's.
    pub(crate) fn key(&self) -> Vec<u8> {
        match self {
            Object::Job(key) => [b"j", key.namespace.as_bytes(), &[0], key.id.as_bytes(), &[0]].concat(),
            Object::Node(id) => [b"n".as_slice(), &id.0.0].concat(),
            Object::Eval(id) => [b"e".as_slice(), &id.0.0].concat(),
            Object::Deployment(id) => [b"d".as_slice(), &id.0.0].concat(),
        }
    }
}

/// The objects that an event is about. `planned_by` is the evaluation whose plan led to it.
pub(crate) fn about(event: &Event, planned_by: Option<EvalId>) -> Vec<Object> {
    let mut objects: Vec<Object> = match event.subject() {
        Subject::Node(id) => vec![Object::Node(id)],
        Subject::Job(key) => vec![Object::Job(key.clone())],
        Subject::Evals(ids) => ids.iter().map(|id| Object::Eval(*id)).collect(),
        Subject::Deployment(id) => vec![Object::Deployment(id)],
        Subject::Allocs(_) | Subject::Cluster => Vec::new(),
    };
    objects.extend(planned_by.map(Object::Eval));
    match event {
        Event::EvalCreated(created) => objects.push(Object::Job(created.eval.key.clone())),
        Event::DeploymentCreated(created) => objects.push(Object::Job(created.key.clone())),
        Event::AllocsPlaced(placed) => {
            objects.extend([Object::Job(placed.key.clone()), Object::Eval(placed.eval)]);
            objects.extend(placed.deployment.map(Object::Deployment));
        }
        Event::AllocsUpdatedInPlace(updated) => {
            objects.push(Object::Eval(updated.eval));
            objects.extend(updated.deployment.map(Object::Deployment));
        }
        Event::AllocHealthSet(set) => objects.push(Object::Deployment(set.deployment)),
        _ => {}
    }
    objects
}
