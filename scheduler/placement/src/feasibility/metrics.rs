//! Counts of infeasible nodes by reason, and the placement metrics made of them.

use std::collections::BTreeMap;

use model::document::{AllocationMetric, Resources, TaskGroup};
use state::State;
use state::node::NodeRow;

use crate::feasibility::static_checks::{ReasonId, ReasonTable};

/// Most scores that are shown.
pub const SCORES_SHOWN: usize = 5;

/// Infeasible nodes by reason.
#[derive(Clone, Debug, Default)]
pub struct ReasonTally {
    by_reason: Vec<u32>,
    by_class: BTreeMap<u32, ClassTally>,
}

#[derive(Clone, Copy, Debug, Default)]
struct ClassTally {
    filtered: u32,
    exhausted: u32,
    /// Those of the exhausted that were found only when they were about to be chosen.
    late: u32,
}

impl ReasonTally {
    /// `change` more (or fewer) nodes of a class are infeasible for this reason.
    pub fn count(&mut self, reasons: &ReasonTable, reason: ReasonId, class: u32, change: i32) {
        if self.by_reason.len() <= usize::from(reason) {
            self.by_reason.resize(reasons.len(), 0);
        }
        let add = |sum: &mut u32| *sum = sum.saturating_add_signed(change);
        add(&mut self.by_reason[usize::from(reason)]);
        let class = self.by_class.entry(class).or_default();
        let reason = reasons.get(reason);
        if reason.exhausted {
            add(&mut class.exhausted);
            if reason.late {
                add(&mut class.late);
            }
        } else {
            add(&mut class.filtered);
        }
    }

    pub fn has_exhausted(&self) -> bool {
        self.by_class.values().any(|class| class.exhausted > 0)
    }

    pub fn filtered(&self) -> u32 {
        self.by_class.values().map(|class| class.filtered).sum()
    }

    /// As Nomad's API shows it. `example` returns a node of a class. Reasons found late depend on how many nodes were
    /// tried, so they are shown only with `everything`.
    pub fn metric(
        &self,
        state: &State,
        reasons: &ReasonTable,
        example: impl Fn(u32) -> NodeRow,
        everything: bool,
    ) -> AllocationMetric {
        let mut metric = AllocationMetric::default();
        let shown = |reason: &ReasonId| everything || !reasons.get(*reason).late;
        for reason in (0..self.by_reason.len() as ReasonId).filter(shown) {
            let count = self.by_reason[usize::from(reason)];
            let reason = reasons.get(reason);
            let (sum, by_text) = if reason.exhausted {
                (&mut metric.nodes_exhausted, &mut metric.dimension_exhausted)
            } else {
                (&mut metric.nodes_filtered, &mut metric.constraint_filtered)
            };
            *sum += i64::from(count);
            if count > 0 {
                by_text.insert(reason.text.clone(), i64::from(count));
            }
        }
        for (class, counts) in &self.by_class {
            let exhausted = counts.exhausted - if everything { 0 } else { counts.late };
            if counts.filtered == 0 && exhausted == 0 {
                continue;
            }
            let class = &state.nodes.cold(example(*class)).document.node_class;
            for (count, by_name) in
                [(counts.filtered, &mut metric.class_filtered), (exhausted, &mut metric.class_exhausted)]
            {
                if count > 0 && !class.is_empty() {
                    *by_name.entry(class.clone()).or_default() += i64::from(count);
                }
            }
        }
        metric
    }
}

/// Adds the counts of the nodes in scope.
pub fn with_pool<'n>(
    metric: AllocationMetric,
    available: impl Iterator<Item = (&'n str, i64)>,
    pool: Option<&str>,
) -> AllocationMetric {
    let available: BTreeMap<String, i64> = available.map(|(name, nodes)| (name.to_string(), nodes)).collect();
    let nodes = available.values().sum();
    AllocationMetric {
        nodes_evaluated: nodes,
        nodes_in_pool: nodes,
        node_pool: pool.unwrap_or_default().to_string(),
        nodes_available: available.into(),
        ..metric
    }
}

/// One more allocation of the group could not be placed: adds its requests for the resources that were exhausted.
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
