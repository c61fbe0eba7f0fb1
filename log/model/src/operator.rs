use base::Duration;
use rkyv::{Archive, Deserialize, Serialize};

use crate::object::{Algorithm, JobType};

/// How the leader looks after the servers of its cluster.
#[derive(
    Clone, Debug, PartialEq, Eq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize,
)]
pub struct Autopilot {
    /// Servers that failed are removed by themselves, as far as that is safe.
    pub cleanup_dead_servers: bool,
    /// How long ago the leader's last contact with a healthy server may be.
    pub last_contact_threshold_ns: i64,
    /// Entries that a healthy server may be behind the leader.
    pub max_trailing_logs: u64,
    /// Voters that are left at least when servers are removed by themselves; 0 means that a majority is enough.
    pub min_quorum: u32,
    /// How long a new server has to live before it may vote.
    pub server_stabilization_ns: i64,
}

impl Default for Autopilot {
    fn default() -> Autopilot {
        Autopilot {
            cleanup_dead_servers: true,
            last_contact_threshold_ns: Duration::from_millis(200).0,
            max_trailing_logs: 250,
            min_quorum: 0,
            server_stabilization_ns: Duration::from_secs(10).0,
        }
    }
}

impl Autopilot {
    pub fn last_contact_threshold(&self) -> Duration {
        Duration(self.last_contact_threshold_ns)
    }

    pub fn server_stabilization_time(&self) -> Duration {
        Duration(self.server_stabilization_ns)
    }

    /// The first field that makes no sense, and what was expected of it.
    pub fn unfit(&self) -> Option<(&'static str, &'static str)> {
        if self.last_contact_threshold_ns <= 0 {
            return Some(("LastContactThreshold", "a duration above zero"));
        }
        if self.server_stabilization_ns < 0 {
            return Some(("ServerStabilizationTime", "a duration that is not negative"));
        }
        (self.min_quorum > 99).then_some(("MinQuorum", "a number of servers, at most 99"))
    }
}

/// How the scheduler works in the whole cluster. A node pool may differ in the first two.
#[derive(
    Clone, Debug, PartialEq, Eq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize,
)]
pub struct SchedulerRules {
    pub algorithm: Algorithm,
    /// A task's `memory_max` holds; else its `memory` is all it gets.
    pub memory_oversubscription: bool,
    pub preempting: Preempting,
    /// Registering, dispatching and scaling jobs is rejected.
    pub reject_job_registration: bool,
    /// Evaluations are taken in and wait: no worker gets one.
    pub pause_eval_broker: bool,
    /// Nodes with affinities or spreads that are scored at most, where nodes are sampled; 0 means 100.
    pub node_limit: u32,
    /// Not in Nomad's API: nodes are sampled, as Nomad does. Otherwise all of them are looked at, and `node_limit` does nothing.
    pub sampled: bool,
}

/// Types of jobs that may take the place of others.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize,
)]
pub struct Preempting {
    pub service: bool,
    pub batch: bool,
    pub system: bool,
    pub sysbatch: bool,
}

impl Preempting {
    pub const fn by(self, kind: JobType) -> bool {
        match kind {
            JobType::Service => self.service,
            JobType::Batch => self.batch,
            JobType::System => self.system,
            JobType::Sysbatch => self.sysbatch,
        }
    }
}

/// What a new cluster begins with.
impl Default for SchedulerRules {
    fn default() -> SchedulerRules {
        SchedulerRules {
            algorithm: Algorithm::Binpack,
            memory_oversubscription: false,
            preempting: Preempting { service: false, batch: false, system: true, sysbatch: false },
            reject_job_registration: false,
            pause_eval_broker: false,
            node_limit: 0,
            sampled: false,
        }
    }
}
