//! `distinct_property`: a limit for the allocations on nodes that share a value.

use model::document::{Constraint, Job, TaskGroup};
use state::node::NodeCold;

use crate::feasibility::constraint::Target;
use crate::feasibility::property_values::{NO_VALUE, PropertyValues, value_number};

#[derive(Clone, Debug)]
pub struct DistinctProperty {
    text: String,
    target: Target,
    limit: Result<u32, String>,
    /// Allocations of all groups count.
    pub job_wide: bool,
    /// Allocations by number of the value.
    used: Vec<u32>,
}

impl DistinctProperty {
    /// All constraints of a group, the job's first.
    pub fn of(job: &Job, group: &TaskGroup) -> Vec<DistinctProperty> {
        let of_tasks = group.tasks.iter().flat_map(|task| &task.constraints);
        let of_group = group.constraints.iter().chain(of_tasks).map(|constraint| (constraint, false));
        let all = job.constraints.iter().map(|constraint| (constraint, true)).chain(of_group);
        all.filter_map(|(constraint, job_wide)| DistinctProperty::new(constraint, job_wide)).collect()
    }

    fn new(constraint: &Constraint, job_wide: bool) -> Option<DistinctProperty> {
        if constraint.operand != "distinct_property" {
            return None;
        }
        let limit = match constraint.r_target.as_str() {
            "" => Ok(1),
            text => text.parse().map_err(|_| format!("distinct_property: invalid count \"{text}\"")),
        };
        let (text, target) = (constraint.l_target.clone(), Target::parse(&constraint.l_target));
        Some(DistinctProperty { text, target, limit, job_wide, used: Vec::new() })
    }

    /// See [`value_number`].
    pub fn value_number(&self, node: &NodeCold, values: &mut PropertyValues) -> u32 {
        value_number(&self.target, node, values)
    }

    /// One more or one less allocation on a node with that value.
    pub fn count(&mut self, value: u32, change: i32) {
        if value == NO_VALUE {
            return;
        }
        let at = value as usize;
        if self.used.len() <= at {
            self.used.resize(at + 1, 0);
        }
        self.used[at] = self.used[at].saturating_add_signed(change);
    }

    /// No node with that value may get one more.
    pub fn is_used_up(&self, value: u32) -> bool {
        let used = self.used.get(value as usize).copied().unwrap_or(0);
        value == NO_VALUE || self.limit.as_ref().map_or(true, |limit| used >= *limit)
    }

    /// Why the node may not get one more.
    pub fn violation(&self, node: &NodeCold, values: &PropertyValues) -> Option<String> {
        let limit = match &self.limit {
            Ok(limit) => *limit,
            Err(why) => return Some(why.clone()),
        };
        let Some(value) = self.target.resolve(node) else {
            return Some(format!("missing property \"{}\"", self.text));
        };
        let used =
            values.get(&*value).and_then(|number| self.used.get(*number as usize)).copied().unwrap_or(0);
        (used >= limit).then(|| format!("distinct_property: {}={value} used by {used} allocs", self.text))
    }
}
