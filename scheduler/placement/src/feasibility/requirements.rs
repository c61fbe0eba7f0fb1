use model::document::{Affinity, Constraint, Job, Spread, TaskGroup};
use state::node::Amount;

use crate::feasibility::constraint::escapes;
use crate::feasibility::dedicated::DedicatedRequest;
use crate::feasibility::resource_request::ResourceRequest;
use crate::feasibility::volumes::VolumeRequests;
use model::Algorithm;

/// What a group requires of a node. Groups with equal requirements share one node ranking, whatever job they belong to.
#[derive(Clone, Debug, PartialEq)]
pub struct Requirements {
    pub amount: Amount,
    pub algorithm: Algorithm,
    pub dedicated: DedicatedRequest,
    pub pool: Option<String>,
    pub datacenters: Vec<String>,
    /// Constraints of the job, and of the group with its tasks.
    pub of_job: Vec<Constraint>,
    pub of_group: Vec<Constraint>,
    pub drivers: Vec<String>,
    pub secrets: Vec<String>,
    pub unsupported: Option<&'static str>,
    /// Of the job, the group and its tasks.
    pub affinities: Vec<Affinity>,
    /// Attributes of nodes that allocations are spread over, and attributes for `distinct_property`.
    pub spreads: Vec<String>,
    pub properties: Vec<String>,
    pub volumes: VolumeRequests,
}

impl Requirements {
    /// Feasibility depends on more than the class: a constraint on a `unique.` attribute, or a CSI volume.
    pub fn escapes(&self) -> bool {
        let mut constraints = self.of_job.iter().chain(&self.of_group);
        self.volumes.may_be_anywhere()
            || constraints.any(|constraint| escapes(&constraint.l_target) || escapes(&constraint.r_target))
    }

    pub fn of(
        job: &Job,
        group: &TaskGroup,
        resource_request: &ResourceRequest,
        algorithm: Algorithm,
    ) -> Requirements {
        let tasks = || group.tasks.iter();
        let constraints = group.constraints.iter().chain(tasks().flat_map(|task| &task.constraints));
        let affinities = job.affinities.iter().chain(&group.affinities);
        let affinities = affinities.chain(tasks().flat_map(|task| &task.affinities));
        let of_group: Vec<Constraint> = constraints.cloned().collect();
        let distinct = job.constraints.iter().chain(&of_group).filter(|c| c.operand == "distinct_property");
        Requirements {
            amount: resource_request.amount,
            algorithm,
            dedicated: resource_request.dedicated.clone(),
            pool: job.node_pool.clone(),
            datacenters: job.datacenters.to_vec(),
            of_job: job.constraints.to_vec(),
            drivers: tasks().map(|task| task.driver.clone()).collect(),
            secrets: tasks().flat_map(|task| &task.secrets).map(|secret| secret.provider.clone()).collect(),
            unsupported: resource_request.unsupported,
            affinities: affinities.cloned().collect(),
            spreads: spreads_of(job, group).into_iter().map(|spread| spread.attribute.clone()).collect(),
            properties: distinct.map(|constraint| constraint.l_target.clone()).collect(),
            of_group,
            volumes: VolumeRequests::of(group),
        }
    }
}

/// The spreads that apply to a group. Where job and group define one for the same attribute, it is the job's.
pub fn spreads_of<'j>(job: &'j Job, group: &'j TaskGroup) -> Vec<&'j Spread> {
    let mut spreads: Vec<&Spread> = Vec::new();
    for spread in job.spreads.iter().chain(&group.spreads) {
        if spreads.iter().all(|known| known.attribute != spread.attribute) {
            spreads.push(spread);
        }
    }
    spreads
}
