//! Places the allocations of a job that runs on every node.

use std::collections::BTreeMap;

use base::Rng;
use model::DeploymentId;
use model::document::{AllocationMetric, TaskGroup};
use state::alloc::Alloc;
use state::node::{Amount, NodeHot, NodeRow};

use crate::feasibility::candidates::Candidates;
use crate::feasibility::metrics::{ReasonTally, add_exhausted, with_pool};
use crate::feasibility::node_check::NodeCheck;
use crate::feasibility::proposed::Proposed;
use crate::pass::plan_draft::{PlacedVersion, PlacementColumns, PlanDraft};
use crate::pass::system::{NodePlacement, PerNodePlan};
use crate::preemption::Preemptor;
use crate::ranking::node_ranking::{BaseScore, fit_of};
use crate::ranking::score::NodeScore;
use crate::reconcile::PassContext;

/// Places the allocations of one group, each on its given node.
pub struct PerNodePlacer<'p, 'e> {
    pub cx: &'p PassContext<'e>,
    pub group: &'e TaskGroup,
    pub candidates: &'p Candidates,
    pub proposed: &'p mut Proposed<'e>,
    pub ports: &'p mut Rng,
    pub preemptor: Option<&'p mut Preemptor>,
    pub deployment: Option<DeploymentId>,
}

impl<'e> PerNodePlacer<'_, 'e> {
    /// Returns how many of the placements are on nodes that fail a static check.
    pub fn place(
        &mut self,
        draft: &mut PlanDraft,
        name: &str,
        node_check: &mut NodeCheck<'e>,
        mut group_plan: PerNodePlan<'e>,
    ) -> u32 {
        group_plan.placements.sort_by_key(|placement| (placement.id, placement.name_index));
        group_plan.desired.place = group_plan.placements.len() as u64;
        self.count_properties(node_check, &group_plan);
        // Canaries are events of their own.
        let mut columns = [PlacementColumns::default(), PlacementColumns::default()];
        let (mut tally, mut short) = (ReasonTally::default(), 0_u32);
        let mut examples: BTreeMap<u32, NodeRow> = BTreeMap::new();
        for placement in &group_plan.placements {
            let hot = self.cx.state.nodes.hot(placement.row);
            let columns = &mut columns[usize::from(placement.canary)];
            match node_check.infeasible_reason(placement.row, hot, placement.name_index, self.proposed) {
                None => self.fill(node_check, hot, placement, columns, &[]),
                Some(reason) => {
                    if node_check.reasons().get(reason).exhausted
                        && let Some(victims) = self.find_victims(node_check, hot, placement)
                    {
                        self.fill(node_check, hot, placement, columns, &victims);
                        continue;
                    }
                    examples.insert(hot.class.0, placement.row);
                    tally.count(node_check.reasons(), reason, hot.class.0, 1);
                    if node_check.reasons().get(reason).exhausted {
                        draft.full_node.get_or_insert(placement.id);
                        short += 1;
                        let explained = draft.groups.entry(name.to_string()).or_default();
                        explained.add_unplaced(placement.name_index, self.cx.job.current().version);
                    }
                }
            }
        }
        let filtered = tally.filtered() as usize;
        let all_filtered = !group_plan.placements.is_empty() && filtered == group_plan.placements.len();
        let stays = group_plan.desired.ignore + group_plan.desired.in_place_update > 0;
        let metric = tally.metric(self.cx.state, node_check.reasons(), |class| examples[&class], true);
        let pool = self.cx.job.current().job.node_pool.as_deref();
        let available = self.candidates.available.iter().map(|(name, nodes)| (name.as_str(), *nodes));
        let mut metric = with_pool(metric, available, pool);
        metric.nodes_evaluated = group_plan.placements.len() as i64;
        group_plan.desired.place -= filtered as u64;
        let explained = draft.groups.entry(name.to_string()).or_default();
        explained.desired = group_plan.desired;
        if tally.has_exhausted() || (all_filtered && !stays) {
            metric.coalesced_failures = i64::from(short.saturating_sub(1));
            (0..short).for_each(|_| add_exhausted(&mut metric, self.group));
            explained.failed = Some(metric.clone());
            draft.failed.insert(name.to_string(), metric.clone());
        }
        draft.queued.insert(name.to_string(), short);
        let version = self.cx.job.current().version;
        for (canary, mut columns) in [false, true].into_iter().zip(columns) {
            if let Some(first) = columns.metric.take() {
                let score_meta_data = first.score_meta_data;
                columns.metric =
                    Some(AllocationMetric { score_meta_data, coalesced_failures: 0, ..metric.clone() });
            }
            let run = PlacedVersion { version, deployment: self.deployment, canary };
            draft.place(self.cx, name, &run, &node_check.resource_request.template.clone(), columns);
        }
        filtered as u32
    }

    /// The allocations to preempt so that the node has room.
    fn find_victims(
        &self,
        node_check: &mut NodeCheck<'e>,
        hot: &NodeHot,
        placement: &NodePlacement,
    ) -> Option<Vec<&'e Alloc>> {
        let resource_request = (node_check.resource_request.amount, &node_check.resource_request.dedicated);
        let preemptor = self.preemptor.as_deref()?;
        let (victims, after) =
            preemptor.preempt_on(self.cx.state, placement.row, resource_request, self.proposed)?;
        node_check
            .infeasible_reason(placement.row, hot, placement.name_index, &after)
            .is_none()
            .then_some(victims)
    }

    fn fill(
        &mut self,
        node_check: &mut NodeCheck<'e>,
        hot: &NodeHot,
        placement: &NodePlacement<'e>,
        columns: &mut PlacementColumns,
        victims: &[&'e Alloc],
    ) {
        // Nomad computes the fit as the node is before the preemption.
        let before = self.proposed.used(placement.row);
        if let Some(preemptor) = self.preemptor.as_deref_mut() {
            preemptor.preempt(victims, self.proposed);
        }
        let granted = node_check.resource_request.dedicated.grant(
            self.cx.state,
            placement.row,
            self.proposed,
            self.ports,
        );
        let grant = granted.expect("the node was found feasible");
        self.proposed.place(placement.row, &node_check.resource_request.template, &grant);
        self.proposed.mount(placement.row, self.group, placement.name_index);
        node_check.count(placement.row);
        let given = Amount::of(&node_check.resource_request.template, &grant.given);
        columns.push(placement.id, placement.name_index, placement.previous, grant, victims);
        if columns.metric.is_none() {
            let fit = fit_of(hot.capacity, before.plus(given), node_check.requirements.algorithm);
            let node = BaseScore { fit, ..BaseScore::default() };
            let score = NodeScore::new(node, 0, 1, false).document(placement.id.to_string());
            let scores = vec![score].into();
            columns.metric =
                Some(model::document::AllocationMetric { score_meta_data: scores, ..Default::default() });
        }
    }

    fn count_properties(&self, node_check: &mut NodeCheck<'e>, group_plan: &PerNodePlan) {
        group_plan.staying.iter().chain(&group_plan.unknown).for_each(|alloc| node_check.count(alloc.node));
    }
}
