//! What can be taken from one cluster to another.

use api::{Namespace, SchedulerConfiguration, Variable};
use model::document::{ACLPolicy, ACLRole, Job, JobSubmission, NodePool};
use serde::Serialize;
use serde_json::Value;

use crate::compare::without;
use crate::names::shown;

/// Kinds of objects, in the order in which they have to be written: jobs need what stands before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Namespace,
    NodePool,
    Policy,
    Role,
    Variable,
    Scheduler,
    Job,
}

impl Kind {
    /// As reports call it.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Namespace => "namespace",
            Kind::NodePool => "node pool",
            Kind::Policy => "ACL policy",
            Kind::Role => "ACL role",
            Kind::Variable => "variable",
            Kind::Scheduler => "scheduler configuration",
            Kind::Job => "job",
        }
    }
}

/// One object, as a server answered.
#[derive(Clone, Debug)]
pub enum Object {
    Namespace(Box<Namespace>),
    NodePool(NodePool),
    Policy(ACLPolicy),
    Role(ACLRole),
    Variable(Variable),
    Scheduler(SchedulerConfiguration),
    Job(Box<JobCopy>),
}

/// A job, and what it was registered with.
#[derive(Clone, Debug)]
pub struct JobCopy {
    pub job: Job,
    /// Its source, if the servers still have it.
    pub submission: Option<JobSubmission>,
    /// Fields of the answer that are not known here, by their paths.
    pub unknown: Vec<String>,
}

/// What servers write into most objects.
const OF_SERVERS: [&str; 5] = ["CreateIndex", "ModifyIndex", "CreateTime", "ModifyTime", "Hash"];

/// What servers, or what happened, wrote into a job. The region is that of the cluster. `Stop` is looked at apart.
const JOB_OF_SERVERS: [&str; 16] = [
    "CreateIndex",
    "DispatchIdempotencyToken",
    "Dispatched",
    "JobModifyIndex",
    "ModifyIndex",
    "NomadTokenID",
    "ParentID",
    "Payload",
    "Region",
    "Stable",
    "Status",
    "StatusDescription",
    "Stop",
    "SubmitTime",
    "Version",
    "VersionTag",
];

/// Switches that are thrown for a while, and in a move perhaps because of it: they are no configuration.
const SWITCHES: [&str; 2] = ["RejectJobRegistration", "PauseEvalBroker"];

impl Object {
    pub fn kind(&self) -> Kind {
        match self {
            Object::Namespace(_) => Kind::Namespace,
            Object::NodePool(_) => Kind::NodePool,
            Object::Policy(_) => Kind::Policy,
            Object::Role(_) => Kind::Role,
            Object::Variable(_) => Kind::Variable,
            Object::Scheduler(_) => Kind::Scheduler,
            Object::Job(_) => Kind::Job,
        }
    }

    /// The namespace it is in; empty for what is in none.
    pub fn namespace(&self) -> &str {
        match self {
            Object::Variable(variable) => &variable.namespace,
            Object::Job(copy) => copy.job.namespace.as_deref().unwrap_or_default(),
            Object::Namespace(_)
            | Object::NodePool(_)
            | Object::Policy(_)
            | Object::Role(_)
            | Object::Scheduler(_) => "",
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Object::Namespace(namespace) => &namespace.name,
            Object::NodePool(pool) => &pool.name,
            Object::Policy(policy) => &policy.name,
            Object::Role(role) => &role.name,
            Object::Variable(variable) => &variable.path,
            Object::Scheduler(_) => "",
            Object::Job(copy) => copy.job.id.as_deref().unwrap_or_default(),
        }
    }

    /// `job default/web`, on one line whatever its name is.
    pub fn label(&self) -> String {
        label(self.kind(), self.namespace(), self.name())
    }

    /// What people wrote of it: as it can be written to another cluster, and compared with what is there.
    pub fn content(&self) -> Value {
        match self {
            Object::Namespace(namespace) => document(namespace, &OF_SERVERS),
            Object::NodePool(pool) => document(pool, &OF_SERVERS),
            Object::Policy(policy) => document(policy, &OF_SERVERS),
            Object::Role(role) => without(document(role, &OF_SERVERS), &["ID"]),
            Object::Variable(variable) => without(document(variable, &OF_SERVERS), &["Lock"]),
            Object::Scheduler(scheduler) => without(document(scheduler, &OF_SERVERS), &SWITCHES),
            Object::Job(copy) => document(&copy.job, &JOB_OF_SERVERS),
        }
    }
}

pub(crate) fn label(kind: Kind, namespace: &str, name: &str) -> String {
    match (namespace, name) {
        (_, "") => kind.word().to_string(),
        ("", name) => format!("{} {}", kind.word(), shown(name)),
        (namespace, name) => format!("{} {}/{}", kind.word(), shown(namespace), shown(name)),
    }
}

fn document(object: &impl Serialize, of_servers: &[&str]) -> Value {
    let document = serde_json::to_value(object).expect("documents of the API are JSON");
    without(document, of_servers)
}

impl JobCopy {
    pub(crate) fn is_stopped(&self) -> bool {
        self.job.stop == Some(true)
    }

    /// The job as one that was never registered.
    pub(crate) fn unregistered(&self) -> Job {
        Job {
            region: None,
            stop: None,
            parent_id: None,
            dispatched: false,
            dispatch_idempotency_token: None,
            payload: Default::default(),
            nomad_token_id: None,
            status: None,
            status_description: None,
            stable: None,
            version: None,
            submit_time: None,
            create_index: None,
            modify_index: None,
            job_modify_index: None,
            version_tag: None,
            ..self.job.clone()
        }
    }
}
