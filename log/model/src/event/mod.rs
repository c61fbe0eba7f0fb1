//! What can have happened: facts in the past tense, decided once, folded by everyone for ever.
//!
//! The table below names every event once, with what it is about: the frame of a batch, the index of histories and
//! whoever shows events use that. Each payload is frozen the moment it is logged: a change is a new version beside the
//! old one, with an upcast in the journal. Documents travel as [`Doc`], whose fields may grow.

mod alloc;
mod cluster;
mod deployment;
mod doc;
mod eval;
mod job;
mod node;
mod subject;

pub use alloc::*;
pub use cluster::*;
pub use deployment::*;
pub use doc::Doc;
pub use eval::*;
pub use job::*;
pub use node::*;
pub use subject::{Subject, Topic};

/// Declares [`Event`] over the payloads.
macro_rules! events {
    ($(($kind:literal, $version:literal) $name:ident: $sort:ident $(($($field:ident).+))?,)+) => {
        /// Something that happened.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Event { $($name($name),)+ }

        impl Event {
            /// The kind's number in the log.
            pub const fn kind(&self) -> u16 {
                match self { $(Event::$name(_) => $kind,)+ }
            }

            /// The kind's name, as histories show it.
            pub const fn name(&self) -> &'static str {
                match self { $(Event::$name(_) => stringify!($name),)+ }
            }

            pub fn topic(&self) -> Topic {
                match self { $(Event::$name(_) => topic!($sort),)+ }
            }

            /// What it is about.
            pub fn subject(&self) -> Subject<'_> {
                match self { $(Event::$name(_event) => subject!(_event $sort $(($($field).+))?),)+ }
            }
        }

        $(impl From<$name> for Event {
            fn from(payload: $name) -> Event {
                Event::$name(payload)
            }
        })+

        /// Calls `$with!` with each kind, its version and its payload's name, for tables that must not miss one.
        #[macro_export]
        macro_rules! for_each_event {
            ($with:ident) => { $with! { $(($kind, $version) $name)+ } };
        }
    };
}

/// The topic of each word that the table uses.
macro_rules! topic {
    (Eval) => {
        Topic::Evaluation
    };
    (Evals) => {
        Topic::Evaluation
    };
    (Alloc) => {
        Topic::Allocation
    };
    (Allocs) => {
        Topic::Allocation
    };
    ($topic:ident) => {
        Topic::$topic
    };
}

/// The subject that each word of the table stands for, read from the named field.
macro_rules! subject {
    ($event:ident Cluster) => {
        Subject::Cluster
    };
    ($event:ident Node($field:ident)) => {
        Subject::Node($event.$field)
    };
    ($event:ident Job($field:ident)) => {
        Subject::Job(&$event.$field)
    };
    ($event:ident Eval($($field:ident).+)) => {
        Subject::eval(&$event.$($field).+)
    };
    ($event:ident Plan($field:ident)) => {
        Subject::eval(&$event.$field)
    };
    ($event:ident Evals($field:ident)) => {
        Subject::Evals(&$event.$field)
    };
    ($event:ident Alloc($field:ident)) => {
        Subject::alloc(&$event.$field)
    };
    ($event:ident Allocs($field:ident)) => {
        Subject::Allocs(&$event.$field)
    };
    ($event:ident Deployment($field:ident)) => {
        Subject::Deployment($event.$field)
    };
}

// (number, version) payload: what it is about (the field that says so). A number is never reused, and the version moves
// with the payload's shape.
events! {
    (1, 1) ClusterFounded: Cluster,
    (10, 1) NodeRegistered: Node(node),
    (11, 1) NodeUpdated: Node(node),
    (12, 1) NodeStatusChanged: Node(node),
    (13, 1) NodeEligibilityChanged: Node(node),
    (14, 1) NodeMessagesEmitted: Node(node),
    (15, 1) NodeDeregistered: Node(node),
    (16, 1) NodeAllocsReported: Node(node),
    (80, 1) NodeDrainStarted: Node(node),
    (81, 1) NodeDrainUpdated: Node(node),
    (82, 1) NodeDrainEnded: Node(node),
    (18, 1) NodePoolUpserted: Cluster,
    (19, 1) NodePoolDeleted: Cluster,
    (20, 1) JobRegistered: Job(key),
    (21, 1) JobStopped: Job(key),
    (22, 1) JobPurged: Job(key),
    (23, 1) JobStabilityChanged: Job(key),
    (24, 1) JobLaunched: Job(key),
    (25, 1) JobScaled: Job(key),
    (26, 1) JobVersionTagged: Job(key),
    (27, 1) JobVersionUntagged: Job(key),
    (28, 1) NamespaceUpserted: Cluster,
    (29, 1) NamespaceDeleted: Cluster,
    (30, 1) EvalCreated: Eval(eval.id),
    (31, 1) EvalUpdated: Eval(eval),
    (32, 1) EvalAcked: Eval(eval),
    (33, 1) EvalsCanceled: Evals(evals),
    (40, 1) PlanCommitted: Plan(eval),
    (41, 1) AllocsPlaced: Allocs(ids),
    (42, 1) AllocsUpdatedInPlace: Allocs(allocs),
    (43, 1) AllocsStopped: Allocs(allocs),
    (44, 1) AllocsMarkedUnknown: Allocs(allocs),
    (45, 1) AllocsReconnected: Allocs(allocs),
    (46, 1) AllocReported: Alloc(alloc),
    (47, 1) AllocTransitionRequested: Allocs(allocs),
    (48, 1) AllocsPreempted: Allocs(allocs),
    (70, 1) VolumeRegistered: Cluster,
    (71, 1) VolumeDeregistered: Cluster,
    (50, 1) AutopilotConfigured: Cluster,
    (53, 1) SchedulerConfigured: Cluster,
    (51, 1) StateChunkGiven: Cluster,
    (52, 1) StateRestored: Cluster,
    (60, 1) DeploymentCreated: Deployment(deployment),
    (61, 1) DeploymentGoalsChanged: Deployment(deployment),
    (62, 1) DeploymentStatusChanged: Deployment(deployment),
    (63, 1) DeploymentPromoted: Deployment(deployment),
    (64, 1) AllocHealthSet: Allocs(allocs),
}
