use model::document::{Affinity, Constraint, Job, TaskGroup};
use state::node::Amount;

use crate::ask::Ask;
use crate::constraint::escapes;
use crate::fixtures::Fixtures;
use crate::volumes::VolumeAsk;
use model::Algorithm;

/// What a group asks of any node, whoever it belongs to: groups of one shape see the same nodes in the same light.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    pub amount: Amount,
    pub algorithm: Algorithm,
    pub fixtures: Fixtures,
    pub pool: Option<String>,
    pub datacenters: Vec<String>,
    /// Constraints of the job, and of the group with its tasks.
    pub of_job: Vec<Constraint>,
    pub of_group: Vec<Constraint>,
    pub drivers: Vec<String>,
    pub secrets: Vec<String>,
    pub refusal: Option<&'static str>,
    /// Of the job, the group and its tasks.
    pub affinities: Vec<Affinity>,
    /// What allocations are to be spread over, and what they may not share: attributes of nodes.
    pub spreads: Vec<String>,
    pub properties: Vec<String>,
    pub volumes: VolumeAsk,
}

impl Shape {
    /// Something looks beyond the class: a constraint, or a volume that could be brought anywhere.
    pub fn escapes(&self) -> bool {
        let mut constraints = self.of_job.iter().chain(&self.of_group);
        self.volumes.roams()
            || constraints.any(|constraint| escapes(&constraint.l_target) || escapes(&constraint.r_target))
    }

    pub fn of(job: &Job, group: &TaskGroup, ask: &Ask, algorithm: Algorithm) -> Shape {
        let tasks = || group.tasks.iter();
        let constraints = group.constraints.iter().chain(tasks().flat_map(|task| &task.constraints));
        let affinities = job.affinities.iter().chain(&group.affinities);
        let affinities = affinities.chain(tasks().flat_map(|task| &task.affinities));
        let of_group: Vec<Constraint> = constraints.cloned().collect();
        let distinct = job.constraints.iter().chain(&of_group).filter(|c| c.operand == "distinct_property");
        Shape {
            amount: ask.amount,
            algorithm,
            fixtures: ask.fixtures.clone(),
            pool: job.node_pool.clone(),
            datacenters: job.datacenters.to_vec(),
            of_job: job.constraints.to_vec(),
            drivers: tasks().map(|task| task.driver.clone()).collect(),
            secrets: tasks().flat_map(|task| &task.secrets).map(|secret| secret.provider.clone()).collect(),
            refusal: ask.refusal,
            affinities: affinities.cloned().collect(),
            spreads: crate::spread::attributes(job, group),
            properties: distinct.map(|constraint| constraint.l_target.clone()).collect(),
            of_group,
            volumes: VolumeAsk::of(group),
        }
    }
}
