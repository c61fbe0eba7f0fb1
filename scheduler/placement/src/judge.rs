//! Whether one node will do for a group, check by check, in the documented order.

use base::Rng;
use model::document::{Constraint, TaskGroup};
use state::State;
use state::alloc::Alloc;
use state::job::{JobState, JobVersion};
use state::node::{Amount, NodeHot, NodeRow};

use crate::ask::Ask;
use crate::board::short_of;
use crate::fleet::Room;
use crate::lanes::Values;
use crate::property::Property;
use crate::proposed::Proposed;
use crate::rules::{ReasonId, Reasons, Rules, Verdict, boolean};
use crate::settings::Settings;
use crate::shape::Shape;

/// What a group of a job asks for, and every check of it.
#[derive(Debug)]
pub struct Judge<'e> {
    state: &'e State,
    job: &'e JobState,
    group: &'e TaskGroup,
    pub ask: Ask,
    pub shape: Shape,
    pub distinct_hosts: Option<Distinct>,
    /// Ready once they are asked for: most evaluations only look at boards.
    rules: Option<Rules>,
    properties: Vec<(Property, Values)>,
    asked: Vec<bool>,
}

/// How far `distinct_hosts` reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distinct {
    Job,
    Group,
}

impl<'e> Judge<'e> {
    pub fn new(
        state: &'e State,
        job: &'e JobState,
        version: &JobVersion,
        group: &'e TaskGroup,
        settings: &Settings,
    ) -> Judge<'e> {
        let ask = Ask::of(group, settings.memory_oversubscription);
        let shape = Shape::of(&version.job, group, &ask, settings.algorithm);
        let properties = Property::of(&version.job, group).into_iter();
        Judge {
            state,
            job,
            group,
            distinct_hosts: distinct_hosts(&shape.of_job, &shape.of_group),
            properties: properties.map(|property| (property, Values::new())).collect(),
            rules: None,
            asked: Vec::new(),
            ask,
            shape,
        }
    }

    fn rules(&mut self) -> &mut Rules {
        self.rules.get_or_insert_with(|| Rules::of(&self.shape))
    }

    pub fn reasons(&mut self) -> &Reasons {
        &self.rules().reasons
    }

    /// Some check looks beyond the class, so that any new room may matter.
    pub fn escapes(&self) -> bool {
        self.shape.escapes()
    }

    /// Classes whose nodes were asked, and whether they will do.
    pub fn classes(&self) -> Vec<(usize, bool)> {
        let Some(rules) = &self.rules else { return Vec::new() };
        let asked = (0..self.asked.len()).filter(|class| self.asked[*class]);
        asked.filter_map(|class| Some((class, rules.known(class as u32)? == Verdict::Fine))).collect()
    }

    fn by_nature(&mut self, row: NodeRow, hot: &NodeHot) -> Option<ReasonId> {
        let (state, class) = (self.state, hot.class.0);
        if self.asked.len() <= class as usize {
            self.asked.resize(class as usize + 1, false);
        }
        self.asked[class as usize] = true;
        match self.rules().class(state, class, row) {
            Verdict::Broken(reason) => Some(reason),
            // Whoever asks knows already that the node belongs to the job.
            Verdict::Fine | Verdict::Outside => self.rules().node(state, row),
        }
    }

    /// What depends on the node's other allocations beyond their amounts: properties and ports.
    fn neighbours(&mut self, row: NodeRow, proposed: &Proposed) -> Option<ReasonId> {
        let node = self.state.nodes.cold(row);
        if let Some(text) =
            self.properties.iter().find_map(|(property, values)| property.refuses(node, values))
        {
            return Some(self.rules().reasons.filter(&text));
        }
        let offer = self.ask.fixtures.offer(self.state, row, proposed, &mut Rng::new(0));
        let failed = offer.err()?;
        Some(self.rules().reasons.exhausted(&failed))
    }

    /// Whether an allocation may run on where it is, with what the group asks by now. It holds its ports and
    /// its room already: only more than that has to be free.
    pub fn in_place(&mut self, alloc: &Alloc, hot: &NodeHot, proposed: &Proposed<'e>) -> bool {
        let row = alloc.node;
        let asked = Amount::of(&self.ask.template, &alloc.given);
        let grows = alloc.amount().exceeded_by(asked).is_some();
        self.by_nature(row, hot).is_none()
            && self.mounts_still(alloc, proposed)
            && !(grows && {
                let others = proposed.used(row).minus(alloc.amount());
                let allocs = proposed.allocs(row) - u32::from(alloc.takes_room());
                self.short(hot, others, allocs, asked).is_some()
            })
    }

    /// What it holds itself is free for it.
    fn mounts_still(&mut self, alloc: &Alloc, proposed: &Proposed<'e>) -> bool {
        self.shape.volumes.is_empty() || {
            let mut without = proposed.alone(alloc.node);
            without.stop(alloc);
            self.volumes(alloc.node, alloc.name_index, &without).is_none()
        }
    }

    fn volumes(&mut self, row: NodeRow, name_index: u32, proposed: &Proposed) -> Option<ReasonId> {
        let volumes = &mut self.shape.volumes;
        volumes.resolve(self.state, self.job, self.group, name_index, proposed);
        let text = volumes.refused(self.state, row, proposed)?;
        Some(self.rules().reasons.filter(&text))
    }

    /// Every check on one node alone, for the allocation with this number in its name.
    pub fn alone(
        &mut self,
        row: NodeRow,
        hot: &NodeHot,
        name_index: u32,
        proposed: &Proposed,
    ) -> Option<ReasonId> {
        self.by_nature(row, hot)
            .or_else(|| self.volumes(row, name_index, proposed))
            .or_else(|| self.room(row, hot, proposed))
            .or_else(|| self.neighbours(row, proposed))
    }

    fn room(&mut self, row: NodeRow, hot: &NodeHot, proposed: &Proposed) -> Option<ReasonId> {
        let mut asked = self.ask.amount;
        if self.ask.fixtures.equips() {
            let node = &self.state.nodes.cold(row).document;
            match self.ask.fixtures.equip(node, &proposed.taken(row)) {
                Ok(equipment) => asked.cpu_mhz = asked.cpu_mhz.saturating_add(equipment.cpu_mhz),
                Err(dimension) => return Some(self.rules().reasons.exhausted(&dimension)),
            }
        }
        self.short(hot, proposed.used(row), proposed.allocs(row), asked)
    }

    fn short(&self, hot: &NodeHot, used: Amount, allocs: u32, asked: Amount) -> Option<ReasonId> {
        let room = Room { capacity: hot.capacity, allocs_max: hot.allocs_max };
        short_of(room, used, allocs, asked)
    }

    /// One more allocation holds the node's values of distinct properties.
    pub fn count(&mut self, row: NodeRow) {
        let node = self.state.nodes.cold(row);
        for (property, values) in &mut self.properties {
            let value = property.learn(node, values);
            property.count(value, 1);
        }
    }
}

/// On unless its value says otherwise; the first one of a level counts, the job's before the group's.
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
