//! Whether one node is feasible for a group: the checks in the order in which Nomad makes them.

use base::Rng;
use model::document::{Constraint, TaskGroup};
use state::State;
use state::alloc::Alloc;
use state::job::{JobState, JobVersion};
use state::node::{Amount, NodeHot, NodeRow};

use crate::feasibility::capacity::Capacity;
use crate::feasibility::constraint::boolean;
use crate::feasibility::distinct_property::DistinctProperty;
use crate::feasibility::property_values::PropertyValues;
use crate::feasibility::proposed::Proposed;
use crate::feasibility::requirements::Requirements;
use crate::feasibility::resource_request::ResourceRequest;
use crate::feasibility::static_checks::{ClassResult, ReasonId, ReasonTable, StaticChecks};
use crate::settings::SchedulerSettings;

/// Everything that a group requires of a node, with the checks.
#[derive(Debug)]
pub struct NodeCheck<'e> {
    state: &'e State,
    job: &'e JobState,
    group: &'e TaskGroup,
    pub resource_request: ResourceRequest,
    pub requirements: Requirements,
    pub distinct_hosts: Option<Distinct>,
    /// Built when first needed: most evaluations only use node rankings.
    static_checks: Option<StaticChecks>,
    properties: Vec<(DistinctProperty, PropertyValues)>,
    asked: Vec<bool>,
}

/// How far `distinct_hosts` reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distinct {
    Job,
    Group,
}

impl<'e> NodeCheck<'e> {
    pub fn new(
        state: &'e State,
        job: &'e JobState,
        version: &JobVersion,
        group: &'e TaskGroup,
        settings: &SchedulerSettings,
    ) -> NodeCheck<'e> {
        let resource_request = ResourceRequest::of(group, settings.memory_oversubscription);
        let requirements = Requirements::of(&version.job, group, &resource_request, settings.algorithm);
        let properties = DistinctProperty::of(&version.job, group).into_iter();
        NodeCheck {
            state,
            job,
            group,
            distinct_hosts: distinct_hosts(&requirements.of_job, &requirements.of_group),
            properties: properties.map(|property| (property, PropertyValues::new())).collect(),
            static_checks: None,
            asked: Vec::new(),
            resource_request,
            requirements,
        }
    }

    fn static_checks(&mut self) -> &mut StaticChecks {
        self.static_checks.get_or_insert_with(|| StaticChecks::of(&self.requirements))
    }

    pub fn reasons(&mut self) -> &ReasonTable {
        &self.static_checks().reasons
    }

    /// Some check depends on more than the class, so that free resources on any node may help.
    pub fn escapes(&self) -> bool {
        self.requirements.escapes()
    }

    /// Classes whose nodes were checked, and whether they are eligible.
    pub fn classes(&self) -> Vec<(usize, bool)> {
        let Some(static_checks) = &self.static_checks else { return Vec::new() };
        let asked = (0..self.asked.len()).filter(|class| self.asked[*class]);
        asked
            .filter_map(|class| Some((class, static_checks.known(class as u32)? == ClassResult::Eligible)))
            .collect()
    }

    fn static_failure(&mut self, row: NodeRow, hot: &NodeHot) -> Option<ReasonId> {
        let (state, class) = (self.state, hot.class.0);
        if self.asked.len() <= class as usize {
            self.asked.resize(class as usize + 1, false);
        }
        self.asked[class as usize] = true;
        match self.static_checks().class(state, class, row) {
            ClassResult::Ineligible(reason) => Some(reason),
            // Callers have checked that the node is in scope.
            ClassResult::Eligible | ClassResult::OutOfScope => self.static_checks().node(state, row),
        }
    }

    /// What depends on the node's other allocations, apart from amounts: properties and ports.
    fn neighbour_failure(&mut self, row: NodeRow, proposed: &Proposed) -> Option<ReasonId> {
        let node = self.state.nodes.cold(row);
        if let Some(text) =
            self.properties.iter().find_map(|(property, values)| property.violation(node, values))
        {
            return Some(self.static_checks().reasons.filter(&text));
        }
        let assign_ports =
            self.resource_request.dedicated.assign_ports(self.state, row, proposed, &mut Rng::new(0));
        let failed = assign_ports.err()?;
        Some(self.static_checks().reasons.exhausted(&failed))
    }

    /// Whether a running allocation may be updated in place to what the group requires now. It has its ports and its
    /// resources already: only what it needs in addition has to be free.
    pub fn fits_in_place(&mut self, alloc: &Alloc, hot: &NodeHot, proposed: &Proposed<'e>) -> bool {
        let row = alloc.node;
        let asked = Amount::of(&self.resource_request.template, &alloc.given);
        let grows = alloc.amount().exceeded_by(asked).is_some();
        self.static_failure(row, hot).is_none()
            && self.still_mounts(alloc, proposed)
            && !(grows && {
                let others = proposed.used(row).minus(alloc.amount());
                let allocs = proposed.allocs(row) - u32::from(alloc.takes_room());
                self.lacks_capacity(hot, others, allocs, asked).is_some()
            })
    }

    /// The volumes are still usable. Those that the allocation holds itself count as free.
    fn still_mounts(&mut self, alloc: &Alloc, proposed: &Proposed<'e>) -> bool {
        self.requirements.volumes.is_empty() || {
            let mut without = proposed.alone(alloc.node);
            without.stop(alloc);
            self.volume_failure(alloc.node, alloc.name_index, &without).is_none()
        }
    }

    fn volume_failure(&mut self, row: NodeRow, name_index: u32, proposed: &Proposed) -> Option<ReasonId> {
        let volumes = &mut self.requirements.volumes;
        volumes.resolve(self.state, self.job, self.group, (name_index, None), proposed);
        let text = volumes.infeasible_reason(self.state, row, proposed)?;
        Some(self.static_checks().reasons.filter(&text))
    }

    /// Why the node is infeasible for the allocation with this number in its name: all checks on one node.
    pub fn infeasible_reason(
        &mut self,
        row: NodeRow,
        hot: &NodeHot,
        name_index: u32,
        proposed: &Proposed,
    ) -> Option<ReasonId> {
        self.static_failure(row, hot)
            .or_else(|| self.volume_failure(row, name_index, proposed))
            .or_else(|| self.room_failure(row, hot, proposed))
            .or_else(|| self.neighbour_failure(row, proposed))
    }

    fn room_failure(&mut self, row: NodeRow, hot: &NodeHot, proposed: &Proposed) -> Option<ReasonId> {
        let mut asked = self.resource_request.amount;
        if self.resource_request.dedicated.wants_cores_or_devices() {
            let node = &self.state.nodes.cold(row).document;
            match self.resource_request.dedicated.assign_cores_and_devices(node, &proposed.taken(row)) {
                Ok(equipment) => asked.cpu_mhz = asked.cpu_mhz.saturating_add(equipment.cpu_mhz),
                Err(dimension) => return Some(self.static_checks().reasons.exhausted(&dimension)),
            }
        }
        self.lacks_capacity(hot, proposed.used(row), proposed.allocs(row), asked)
    }

    fn lacks_capacity(&self, hot: &NodeHot, used: Amount, allocs: u32, asked: Amount) -> Option<ReasonId> {
        let capacity = Capacity { amount: hot.capacity, allocs_max: hot.allocs_max };
        capacity.exceeded_by(used, allocs, asked)
    }

    /// Counts one more allocation for the node's values of `distinct_property`.
    pub fn count(&mut self, row: NodeRow) {
        let node = self.state.nodes.cold(row);
        for (property, values) in &mut self.properties {
            let value = property.value_number(node, values);
            property.count(value, 1);
        }
    }
}

/// On unless its value is false. The first constraint of a level counts, the job's before the group's.
fn distinct_hosts(of_job: &[Constraint], of_group: &[Constraint]) -> Option<Distinct> {
    let is_on = |constraints: &[Constraint]| {
        let first = constraints.iter().find(|constraint| constraint.operand == "distinct_hosts");
        first.is_some_and(|constraint| boolean(&constraint.r_target) != Some(false))
    };
    if is_on(of_job) {
        return Some(Distinct::Job);
    }
    is_on(of_group).then_some(Distinct::Group)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// H25.
    #[test]
    fn distinct_hosts_is_on_unless_it_says_no() {
        let constraint = |value: &str| Constraint {
            operand: "distinct_hosts".into(),
            r_target: value.into(),
            ..Constraint::default()
        };
        for (value, expected) in [("", true), ("true", true), ("maybe", true), ("false", false)] {
            let list = [constraint(value)];
            assert_eq!(distinct_hosts(&list, &[]) == Some(Distinct::Job), expected, "{value}");
            assert_eq!(distinct_hosts(&[], &list) == Some(Distinct::Group), expected, "{value}");
        }
    }
}
