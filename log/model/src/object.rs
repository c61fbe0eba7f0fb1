//! Names of objects and the states they can be in, with Nomad's words for them.

use std::fmt;
use std::net::IpAddr;

use rkyv::{Archive, Deserialize, Serialize};

base::id_type!(
    /// A node, by the UUID it chose for itself.
    NodeId
);
base::id_type!(
    /// One placement of a task group on a node.
    AllocId
);
base::id_type!(
    /// One request to the scheduler to look at a job.
    EvalId
);
base::id_type!(
    /// One attempt to bring a version of a job into being, watched until it has succeeded or failed.
    DeploymentId
);
base::id_type!(
    /// What a caller names a command with, so that a repetition takes effect once. Nil means "unnamed".
    RequestId
);

/// A job's name: unique within its namespace.
#[derive(
    Clone,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Archive,
    Serialize,
    Deserialize,
    serde::Serialize,
    serde::Deserialize,
)]
pub struct JobKey {
    pub namespace: String,
    pub id: String,
}

impl JobKey {
    pub fn new(namespace: &str, id: &str) -> JobKey {
        JobKey { namespace: namespace.to_string(), id: id.to_string() }
    }
}

impl fmt::Display for JobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.id)
    }
}

/// A closed set of states, each with its word and its number in the log. Numbers are never reused.
macro_rules! states {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $number:literal, $word:literal;)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Archive, Serialize, Deserialize)]
        #[derive(serde::Serialize, serde::Deserialize)]
        #[rkyv(derive(Debug))]
        #[repr(u8)]
        pub enum $name { $($(#[$variant_doc])* $variant = $number),+ }

        impl $name {
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// Nomad's word.
            pub const fn word(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }

            pub fn from_word(word: &str) -> Option<$name> {
                match word { $($word => Some($name::$variant),)+ _ => None }
            }

            pub const fn from_number(number: u8) -> Option<$name> {
                match number { $($number => Some($name::$variant),)+ _ => None }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.word())
            }
        }
    };
}

states!(NodeStatus {
    Initializing = 0, "initializing";
    Ready = 1, "ready";
    Down = 2, "down";
    Disconnected = 3, "disconnected";
});

impl NodeStatus {
    /// The servers are not in contact with the node.
    pub const fn is_silent(self) -> bool {
        matches!(self, NodeStatus::Down | NodeStatus::Disconnected)
    }
}

states!(Eligibility {
    Eligible = 0, "eligible";
    Ineligible = 1, "ineligible";
});

states!(
    /// Whether a node is being emptied, or how that ended.
    DrainStatus {
        Draining = 0, "draining";
        Complete = 1, "complete";
        Canceled = 2, "canceled";
    }
);

states!(
    /// What the servers want of an allocation.
    Desired {
        Run = 0, "run";
        Stop = 1, "stop";
        Evict = 2, "evict";
    }
);

states!(
    /// What is known of an allocation on its node.
    ClientStatus {
        Pending = 0, "pending";
        Running = 1, "running";
        Complete = 2, "complete";
        Failed = 3, "failed";
        Lost = 4, "lost";
        Unknown = 5, "unknown";
    }
);

impl ClientStatus {
    /// The node will not run it any more. `Unknown` is not terminal: the node may come back.
    pub const fn is_terminal(self) -> bool {
        matches!(self, ClientStatus::Complete | ClientStatus::Failed | ClientStatus::Lost)
    }
}

states!(EvalStatus {
    Pending = 0, "pending";
    Blocked = 1, "blocked";
    Complete = 2, "complete";
    Failed = 3, "failed";
    Canceled = 4, "canceled";
});

impl EvalStatus {
    pub const fn is_terminal(self) -> bool {
        matches!(self, EvalStatus::Complete | EvalStatus::Failed | EvalStatus::Canceled)
    }
}

states!(
    /// Why an evaluation was asked for.
    Trigger {
        JobRegister = 0, "job-register";
        JobDeregister = 1, "job-deregister";
        NodeUpdate = 2, "node-update";
        AllocStop = 3, "alloc-stop";
        AllocFailure = 4, "alloc-failure";
        Reconnect = 5, "reconnect";
        QueuedAllocs = 6, "queued-allocs";
        MaxPlanAttempts = 7, "max-plan-attempts";
        FailedFollowUp = 8, "failed-follow-up";
        MaxDisconnectTimeout = 9, "max-disconnect-timeout";
        RescheduleLater = 10, "alloc-reschedule";
        Preemption = 11, "preemption";
        NodeDrain = 12, "node-drain";
        DeploymentWatcher = 13, "deployment-watcher";
        PeriodicJob = 14, "periodic-job";
        JobScaling = 15, "job-scaling";
        Scheduled = 16, "scheduled";
        RollingUpdate = 17, "rolling-update";
    }
);

states!(JobType {
    Service = 0, "service";
    Batch = 1, "batch";
    System = 2, "system";
    Sysbatch = 3, "sysbatch";
});

impl JobType {
    /// One allocation per feasible node, instead of a count.
    pub const fn is_per_node(self) -> bool {
        matches!(self, JobType::System | JobType::Sysbatch)
    }

    /// Its allocations are meant to end.
    pub const fn is_batch(self) -> bool {
        matches!(self, JobType::Batch | JobType::Sysbatch)
    }
}

states!(
    /// What a good node is.
    Algorithm {
        /// One that is full afterwards.
        Binpack = 0, "binpack";
        /// One that is empty.
        Spread = 1, "spread";
    }
);

states!(JobStatus {
    Pending = 0, "pending";
    Running = 1, "running";
    Dead = 2, "dead";
});

states!(DeploymentStatus {
    Running = 0, "running";
    Paused = 1, "paused";
    Failed = 2, "failed";
    Successful = 3, "successful";
    Cancelled = 4, "cancelled";
    /// Of a job in several regions: not begun in this one yet.
    Initializing = 5, "initializing";
    Pending = 6, "pending";
    /// Of a job in several regions: done in this one.
    Blocked = 7, "blocked";
    Unblocking = 8, "unblocking";
});

impl DeploymentStatus {
    /// It is not over.
    pub const fn is_active(self) -> bool {
        !matches!(self, DeploymentStatus::Failed | DeploymentStatus::Successful | DeploymentStatus::Cancelled)
    }
}

states!(VolumeKind {
    Csi = 0, "csi";
    Host = 1, "host";
});

/// A volume's name: unique within its type and namespace. One that was made on a node has a UUID.
#[derive(
    Clone,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Archive,
    Serialize,
    Deserialize,
    serde::Serialize,
    serde::Deserialize,
)]
pub struct VolumeKey {
    pub kind: VolumeKind,
    pub namespace: String,
    pub id: String,
}

impl VolumeKey {
    pub fn new(kind: VolumeKind, namespace: &str, id: &str) -> VolumeKey {
        VolumeKey { kind, namespace: namespace.to_string(), id: id.to_string() }
    }

    /// What an evaluation waits for that found the volume missing, such as `csi-volume:default:data`.
    pub fn resource(&self) -> String {
        format!("{}-volume:{}:{}", self.kind, self.namespace, self.id)
    }

    pub fn of_resource(resource: &str) -> Option<VolumeKey> {
        let mut parts = resource.splitn(3, ':');
        let kind = VolumeKind::from_word(parts.next()?.strip_suffix("-volume")?)?;
        Some(VolumeKey::new(kind, parts.next()?, parts.next()?))
    }
}

impl fmt::Display for VolumeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} volume {}/{}", self.kind, self.namespace, self.id)
    }
}

/// Who asked. Secrets never stand here.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Actor {
    Caller(Caller),
    Node(NodeId),
    /// A controller on the leader, by name.
    Server(String),
}

/// Somebody who is no part of the cluster, as far as the server knew that took the call.
#[derive(Clone, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Caller {
    /// The public id of the access token; empty without one.
    pub accessor: String,
    /// The name of the token; may be empty.
    pub name: String,
    /// Where the call came from; unset where it came over no network, and in logs of earlier releases.
    pub address: Option<IpAddr>,
    /// The program, as it names itself in the header `User-Agent`, at most [`AGENT_MAX`] bytes of it; empty where it does
    /// not, and in logs of earlier releases.
    #[serde(default)]
    pub agent: String,
}

/// Bytes of what programs say of themselves that are kept with each command: enough for a name and a version.
pub const AGENT_MAX: usize = 128;

impl Actor {
    /// A caller of whom nothing is known.
    pub const ANONYMOUS: Actor = Actor::Caller(Caller {
        accessor: String::new(),
        name: String::new(),
        address: None,
        agent: String::new(),
    });

    /// `None` for a part of the cluster.
    pub fn caller(&self) -> Option<&Caller> {
        match self {
            Actor::Caller(caller) => Some(caller),
            Actor::Node(_) | Actor::Server(_) => None,
        }
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Actor::Caller(caller) if caller.accessor.is_empty() => f.write_str("anonymous"),
            Actor::Caller(caller) => write!(f, "token:{}", caller.accessor),
            Actor::Node(id) => write!(f, "node:{id}"),
            Actor::Server(name) => write!(f, "server:{name}"),
        }
    }
}

impl base::Key for JobKey {
    fn shard(&self) -> u16 {
        // FNV-1a over both parts: a key is looked up, never ranged over.
        let bytes = self.namespace.bytes().chain([0]).chain(self.id.bytes());
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        (hash >> 52) as u16
    }
}
