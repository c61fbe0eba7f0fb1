//! Counting what was considered and ruled out, and showing it.

use std::collections::BTreeMap;

use model::document::{AllocationMetric, Resources, TaskGroup};
use state::State;
use state::node::NodeRow;

use crate::candidates::{Candidate, Candidates};
use crate::judge::{ReasonId, Reasons};

/// Best scores that are shown.
pub const SCORES_SHOWN: usize = 5;

/// Nodes by the reason they were ruled out.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    by_reason: Vec<u32>,
    /// By class: an example node, how many were filtered, how many exhausted.
    by_class: BTreeMap<u32, (NodeRow, u32, u32)>,
}

impl Tally {
    pub fn count(&mut self, reasons: &Reasons, reason: ReasonId, candidate: &Candidate) {
        self.by_reason.resize(reasons.len().max(self.by_reason.len()), 0);
        self.by_reason[usize::from(reason)] += 1;
        let class = self.by_class.entry(candidate.class.0).or_insert((candidate.row, 0, 0));
        if reasons.get(reason).exhausted {
            class.2 += 1;
        } else {
            class.1 += 1;
        }
    }

    pub fn has_exhausted(&self) -> bool {
        self.by_class.values().any(|(_, _, exhausted)| *exhausted > 0)
    }

    pub fn filtered(&self) -> u32 {
        self.by_class.values().map(|(_, filtered, _)| filtered).sum()
    }

    /// As the contract shows it. `evaluated` nodes were looked at.
    pub fn metric(&self, state: &State, reasons: &Reasons, evaluated: usize) -> AllocationMetric {
        let mut metric =
            AllocationMetric { nodes_evaluated: evaluated as i64, ..AllocationMetric::default() };
        for (id, count) in self.by_reason.iter().enumerate().filter(|(_, count)| **count > 0) {
            let reason = reasons.get(id as ReasonId);
            let (sum, by_text) = if reason.exhausted {
                (&mut metric.nodes_exhausted, &mut metric.dimension_exhausted)
            } else {
                (&mut metric.nodes_filtered, &mut metric.constraint_filtered)
            };
            *sum += i64::from(*count);
            by_text.insert(reason.text.clone(), i64::from(*count));
        }
        for (example, filtered, exhausted) in self.by_class.values() {
            let class = &state.nodes.cold(*example).document.node_class;
            for (count, by_name) in
                [(*filtered, &mut metric.class_filtered), (*exhausted, &mut metric.class_exhausted)]
            {
                if count > 0 && !class.is_empty() {
                    *by_name.entry(class.clone()).or_default() += i64::from(count);
                }
            }
        }
        metric
    }
}

/// What an evaluation knows of its candidates before it looks at any.
pub fn with_pool(metric: AllocationMetric, candidates: &Candidates, pool: Option<&str>) -> AllocationMetric {
    AllocationMetric {
        nodes_in_pool: candidates.list.len() as i64,
        node_pool: pool.unwrap_or_default().to_string(),
        nodes_available: candidates.available.clone().into(),
        ..metric
    }
}

/// One more allocation of the group found no place: its tasks' asks are added where they were short.
pub fn add_exhausted(metric: &mut AllocationMetric, group: &TaskGroup) {
    let short_of = |dimension: &str| metric.dimension_exhausted.contains_key(dimension);
    let (cpu, memory) = (short_of("cpu"), short_of("memory"));
    if !cpu && !memory {
        return;
    }
    for task in &group.tasks {
        let Some(asked) = &task.resources else { continue };
        let sum: &mut Resources = metric.resources_exhausted.entry(task.name.clone()).or_default();
        if let Some(asked) = asked.cpu.filter(|_| cpu) {
            *sum.cpu.get_or_insert(0) += asked;
        }
        if let Some(asked) = asked.memory_mb.filter(|_| memory) {
            *sum.memory_mb.get_or_insert(0) += asked;
        }
    }
}
