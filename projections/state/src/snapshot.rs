use std::collections::BTreeMap;
use std::sync::Arc;

use base::{Index, Time, Uuid};
use model::{Autopilot, FIRST_EPOCH, SchedulerRules};

use crate::acl::Acl;
use crate::alloc::Allocs;
use crate::cursor::Cursors;
use crate::deployment::Deployments;
use crate::dropped_history::DroppedHistory;
use crate::erasure::Erasure;
use crate::eval::Evals;
use crate::forgotten::Forgotten;
use crate::job::Jobs;
use crate::keyring::Keyring;
use crate::namespace::Namespaces;
use crate::node::Nodes;
use crate::operator::{Operator, Restoring};
use crate::pool::Pools;
use crate::recording::Recording;
use crate::requests::Requests;
use crate::service::Services;
use crate::sink::Sinks;
use crate::variable::Variables;
use crate::volume::{Claims, Expansions, Volumes};

/// Everything that is true at one index. A clone copies pointers; what is written later is not seen by it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// The batch that was folded last.
    pub index: Index,
    /// When it was decided.
    pub time: Time,
    /// The cluster's id; nil before it was founded.
    pub cluster: Uuid,
    pub nodes: Nodes,
    pub jobs: Jobs,
    pub evals: Evals,
    pub allocs: Allocs,
    pub pools: Pools,
    pub namespaces: Namespaces,
    pub deployments: Deployments,
    pub volumes: Volumes,
    /// What allocations have of those that plugins manage.
    pub claims: Claims,
    /// Which of those have to be expanded by the next node that mounts them.
    pub expansions: Expansions,
    /// How far readers of the event stream have come.
    pub cursors: Cursors,
    /// Where the leader sends the event stream.
    pub sinks: Sinks,
    pub operator: Operator,
    pub keyring: Keyring,
    pub acl: Acl,
    pub variables: Variables,
    /// The key tree that variables are encrypted with, and what of it was given up.
    pub erasure: Erasure,
    pub services: Services,
    /// The epoch that was raised to last.
    pub raised: Option<u16>,
    /// Of servers that dropped history, by name.
    pub dropped_history: BTreeMap<String, DroppedHistory>,
    /// The other cluster that this is a recording of.
    pub recording: Option<Arc<Recording>>,
    /// The pieces of a snapshot that is being restored.
    pub restoring: Restoring,
    pub(crate) requests: Requests,
    pub(crate) forgotten: Forgotten,
    pub tables: TableIndexes,
}

impl State {
    /// The epoch of the next batch.
    pub fn epoch(&self) -> u16 {
        self.raised.unwrap_or(FIRST_EPOCH)
    }

    /// The autopilot configuration; `None` before the first leader stored it.
    pub fn autopilot(&self) -> Option<&Autopilot> {
        self.operator.autopilot.as_ref().map(|configured| &configured.rules)
    }

    /// The scheduler configuration; `None` before the cluster was founded.
    pub fn scheduler(&self) -> Option<&SchedulerRules> {
        self.operator.scheduler.as_ref().map(|configured| &configured.rules)
    }
}

/// The batch that last changed each table: what a list answers with as its index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableIndexes {
    pub nodes: Index,
    pub jobs: Index,
    pub evals: Index,
    pub allocs: Index,
    pub deployments: Index,
}
