//! What can have happened: facts in the past tense, decided once, folded by everyone for ever.
//!
//! The table below names every event once, with what it is about: the frame of a batch, the history index and
//! the code that shows events use that. Each payload is frozen the moment it is logged: a change is a new version beside the
//! old one, with an upcast in the journal. Documents travel as [`Doc`], whose fields may grow.

mod acl;
mod alloc;
mod cluster;
mod cursor;
mod deployment;
mod doc;
mod erasure;
mod eval;
mod job;
mod keyring;
mod login;
mod node;
mod object_kind;
mod recording;
mod service;
mod sink;
mod subject;
mod variable;
mod volume;

pub use alloc::HealthVerdict;
pub use deployment::DeploymentGoal;
pub use doc::Doc;
pub use eval::{EvalOutcome, FailedGroups, NewEval, RejectedNode};
pub use node::{DrainOrder, NodeMessage};
pub use object_kind::{ObjectKind, ObjectKinds};
pub use recording::ObservedProgress;
pub use subject::{Subject, Topic};
pub use variable::ResealedVersion;

/// Declares [`Event`] over the payloads.
macro_rules! events {
    ($(($kind:literal, $version:literal $(, since $since:literal)?) $file:ident::$name:ident: $sort:ident $(($($field:ident).+))?,)+) => {
        $(pub use $file::$name;)+

        /// Something that happened.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Event { $($name($name),)+ }

        impl Event {
            /// The kind's number in the log.
            pub const fn kind(&self) -> u16 {
                match self { $(Event::$name(_) => $kind,)+ }
            }

            /// The epoch that the kind came with: it is not written before the cluster is there.
            pub const fn since(&self) -> u16 {
                match self { $(Event::$name(_) => since!($($since)?),)+ }
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

        impl ObjectKind {
            /// What an event of this number is about; `None` for a number that is not known, for the parts of a restored
            /// state, and for the mark of an observation, which goes with what was observed.
            pub const fn of(event: u16) -> Option<ObjectKind> {
                match event {
                    $($kind => object_kind!($file $name $sort),)+
                    _ => None,
                }
            }
        }

        /// Calls `$with!` with each kind, its version and its payload's name, for tables that must not miss one.
        #[macro_export]
        macro_rules! for_each_event {
            ($with:ident) => { $with! { $(($kind, $version) $name)+ } };
        }
    };
}

/// The epoch of a kind, if the table names one.
macro_rules! since {
    () => {
        $crate::FIRST_EPOCH
    };
    ($since:literal) => {
        $since
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

/// What the payloads of a file are about.
macro_rules! object_kind {
    (cluster StateChunkGiven $sort:ident) => {
        None
    };
    (cluster VolumeRegistered $sort:ident) => {
        Some(ObjectKind::Volume)
    };
    (cluster VolumeDeregistered $sort:ident) => {
        Some(ObjectKind::Volume)
    };
    (recording Observed $sort:ident) => {
        None
    };
    (recording $name:ident Job) => {
        Some(ObjectKind::Job)
    };
    (recording $name:ident Deployment) => {
        Some(ObjectKind::Deployment)
    };
    (recording $name:ident Cluster) => {
        Some(ObjectKind::Cluster)
    };
    (acl $name:ident $sort:ident) => {
        Some(ObjectKind::Acl)
    };
    (login $name:ident $sort:ident) => {
        Some(ObjectKind::Acl)
    };
    (alloc $name:ident $sort:ident) => {
        Some(ObjectKind::Alloc)
    };
    (cluster $name:ident $sort:ident) => {
        Some(ObjectKind::Cluster)
    };
    (cursor $name:ident $sort:ident) => {
        Some(ObjectKind::Stream)
    };
    (sink $name:ident $sort:ident) => {
        Some(ObjectKind::Stream)
    };
    (deployment $name:ident $sort:ident) => {
        Some(ObjectKind::Deployment)
    };
    (erasure $name:ident $sort:ident) => {
        Some(ObjectKind::Variable)
    };
    (eval $name:ident $sort:ident) => {
        Some(ObjectKind::Eval)
    };
    (job $name:ident $sort:ident) => {
        Some(ObjectKind::Job)
    };
    (keyring $name:ident $sort:ident) => {
        Some(ObjectKind::Keyring)
    };
    (node $name:ident $sort:ident) => {
        Some(ObjectKind::Node)
    };
    (service $name:ident $sort:ident) => {
        Some(ObjectKind::Service)
    };
    (variable $name:ident $sort:ident) => {
        Some(ObjectKind::Variable)
    };
    (volume $name:ident $sort:ident) => {
        Some(ObjectKind::Volume)
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

// (number, version) file::payload: what it is about (the field that says so). A number is never reused, and the version
// moves with the payload's shape. `since N`: the kind came with this epoch, which servers of an older release do not know.
events! {
    (1, 1) cluster::ClusterFounded: Cluster,
    (2, 1) cluster::EpochRaised: Cluster,
    (197, 1, since 4) cluster::HistoryDropped: Cluster,
    (10, 1) node::NodeRegistered: Node(node),
    (11, 1) node::NodeUpdated: Node(node),
    (12, 1) node::NodeStatusChanged: Node(node),
    (13, 1) node::NodeEligibilityChanged: Node(node),
    (14, 1) node::NodeMessagesEmitted: Node(node),
    (15, 1) node::NodeDeregistered: Node(node),
    (16, 1) node::NodeAllocsReported: Node(node),
    (80, 1) node::NodeDrainStarted: Node(node),
    (81, 1) node::NodeDrainUpdated: Node(node),
    (82, 1) node::NodeDrainEnded: Node(node),
    (18, 1) cluster::NodePoolUpserted: Cluster,
    (19, 1) cluster::NodePoolDeleted: Cluster,
    (20, 1) job::JobRegistered: Job(key),
    (21, 1) job::JobStopped: Job(key),
    (22, 1) job::JobPurged: Job(key),
    (23, 1) job::JobStabilityChanged: Job(key),
    (24, 1) job::JobLaunched: Job(key),
    (25, 1) job::JobScaled: Job(key),
    (26, 1) job::JobVersionTagged: Job(key),
    (27, 1) job::JobVersionUntagged: Job(key),
    (28, 1) cluster::NamespaceUpserted: Cluster,
    (29, 1) cluster::NamespaceDeleted: Cluster,
    (30, 1) eval::EvalCreated: Eval(eval.id),
    (31, 2) eval::EvalUpdated: Eval(eval),
    (32, 1) eval::EvalAcked: Eval(eval),
    (33, 1) eval::EvalsCanceled: Evals(evals),
    (34, 1) eval::EvalsDeleted: Evals(evals),
    (40, 1) eval::PlanCommitted: Plan(eval),
    (41, 1) alloc::AllocsPlaced: Allocs(ids),
    (42, 1) alloc::AllocsUpdatedInPlace: Allocs(allocs),
    (43, 1) alloc::AllocsStopped: Allocs(allocs),
    (44, 1) alloc::AllocsMarkedUnknown: Allocs(allocs),
    (45, 1) alloc::AllocsReconnected: Allocs(allocs),
    (46, 1) alloc::AllocReported: Alloc(alloc),
    (47, 1) alloc::AllocTransitionRequested: Allocs(allocs),
    (48, 1) alloc::AllocsPreempted: Allocs(allocs),
    (49, 1) alloc::AllocsCollected: Allocs(allocs),
    (70, 1) cluster::VolumeRegistered: Cluster,
    (71, 1) cluster::VolumeDeregistered: Cluster,
    (50, 1) cluster::AutopilotConfigured: Cluster,
    (53, 1) cluster::SchedulerConfigured: Cluster,
    (51, 1) cluster::StateChunkGiven: Cluster,
    (52, 1) cluster::StateRestored: Cluster,
    (60, 1) deployment::DeploymentCreated: Deployment(deployment),
    (61, 1) deployment::DeploymentGoalsChanged: Deployment(deployment),
    (62, 1) deployment::DeploymentStatusChanged: Deployment(deployment),
    (63, 1) deployment::DeploymentPromoted: Deployment(deployment),
    (64, 1) alloc::AllocHealthSet: Allocs(allocs),
    (65, 1) deployment::DeploymentCollected: Deployment(deployment),
    (90, 1) keyring::ServerKeyAnnounced: Cluster,
    (91, 1) keyring::RootKeyActivated: Cluster,
    (92, 1) keyring::RootKeySealed: Cluster,
    (93, 1) keyring::RootKeyRemoved: Cluster,
    (100, 1) acl::AclPolicyUpserted: Cluster,
    (101, 1) acl::AclPolicyDeleted: Cluster,
    (102, 1) acl::AclRoleUpserted: Cluster,
    (103, 1) acl::AclRoleDeleted: Cluster,
    (104, 1) acl::AclTokenCreated: Cluster,
    (105, 1) acl::AclTokenUpdated: Cluster,
    (106, 1) acl::AclTokensDeleted: Cluster,
    (107, 1) acl::OneTimeTokenCreated: Cluster,
    (108, 1) acl::OneTimeTokenExchanged: Cluster,
    (109, 1) acl::OneTimeTokensExpired: Cluster,
    (110, 1) variable::VariableSet: Cluster,
    (111, 1) variable::VariableDeleted: Cluster,
    (112, 1) variable::VariableLockAcquired: Cluster,
    (113, 1) variable::VariableLockReleased: Cluster,
    (114, 1) variable::VariablesResealed: Cluster,
    (115, 1) keyring::RootKeysRekeying: Cluster,
    (116, 1) keyring::RootKeysRekeyed: Cluster,
    (130, 1) service::ServicesRegistered: Alloc(alloc),
    (131, 1) service::ServicesDeregistered: Alloc(alloc),
    (150, 1) volume::CsiVolumeClaimed: Alloc(alloc),
    (151, 1) volume::CsiClaimDetached: Alloc(alloc),
    (152, 1) volume::CsiClaimReleased: Alloc(alloc),
    (192, 1, since 4) volume::CsiExpansionAwaited: Cluster,
    (193, 1, since 4) volume::CsiExpansionEnded: Cluster,
    (153, 1) cursor::EventCursorSet: Cluster,
    (154, 1) cursor::EventCursorAcked: Cluster,
    (155, 1) cursor::EventCursorReset: Cluster,
    (156, 1) cursor::EventCursorDeleted: Cluster,
    (190, 1, since 4) cursor::EventCursorMemberAcked: Cluster,
    (191, 1, since 4) cursor::EventCursorSplit: Cluster,
    (160, 1) sink::EventSinkSet: Cluster,
    (161, 1) sink::EventSinkDeleted: Cluster,
    (162, 1) sink::EventSinkPaused: Cluster,
    (163, 1) sink::EventSinkParked: Cluster,
    (164, 1) sink::EventSinkResumed: Cluster,
    (120, 1) login::AclAuthMethodUpserted: Cluster,
    (121, 1) login::AclAuthMethodDeleted: Cluster,
    (122, 1) login::AclBindingRuleUpserted: Cluster,
    (123, 1) login::AclBindingRuleDeleted: Cluster,
    (124, 1) login::AclTokenIssuedByLogin: Cluster,
    (170, 1, since 4) erasure::KeyTreeRequested: Cluster,
    (171, 1, since 4) erasure::KeyTreeFounded: Cluster,
    (172, 1, since 4) erasure::KeyTreeShared: Cluster,
    (173, 1, since 4) erasure::VariableForgotten: Cluster,
    (195, 1, since 4) erasure::SecretsForgotten: Cluster,
    (174, 1, since 4) erasure::ForgottenErased: Cluster,
    (175, 1, since 4) erasure::KeyTreeHolderRemoved: Cluster,
    (180, 1) recording::Observed: Cluster,
    (181, 1) recording::ObservationGap: Cluster,
    (182, 1) recording::DeploymentProgressObserved: Deployment(deployment),
    (183, 1) recording::JobEndObserved: Job(key),
}
