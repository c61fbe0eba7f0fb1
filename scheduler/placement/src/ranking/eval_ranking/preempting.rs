//! Preemption, tried where no node has room: which nodes could be freed, and which of them is best.

use base::Rng;
use model::document::{AllocationMetric, NodeScoreMeta};
use state::alloc::Alloc;
use state::node::NodeRow;

use super::{EvalRanking, GroupState, RankedNode};
use crate::feasibility::metrics::SCORES_SHOWN;
use crate::feasibility::proposed::Proposed;
use crate::preemption::{Preemptor, preemption_score};
use crate::ranking::node_ranking::Feasibility;
use crate::ranking::sampling::Sampler;
use crate::ranking::score::NodeScore;

/// The result of each node, by position. Empty until preemption is tried; reset when something about the node changes.
pub type PreemptionResults<'f> = Vec<PreemptionResult<'f>>;

/// Whether preemption makes room on one node.
#[derive(Clone, Debug, Default)]
pub enum PreemptionResult<'f> {
    #[default]
    NotTried,
    /// No preemption makes the node feasible.
    None,
    PreemptionResults {
        score: NodeScore,
        victims: Vec<&'f Alloc>,
        /// How many allocations the plan preempted when this was computed.
        preempted_count: u32,
    },
}

impl<'f> EvalRanking<'f> {
    /// The best node for one more allocation after preemption.
    ///
    /// Each preemption makes further ones of the same group costlier on every node. Results are not recomputed for all
    /// nodes each time: the best one is computed again, and if it changed the next best is looked for.
    pub fn best_with_preemption(
        &mut self,
        proposed: &Proposed<'f>,
        preemptor: &Preemptor,
        sampler: &mut Option<Sampler>,
        seed: u64,
    ) -> Option<u32> {
        self.preemptions.resize(self.node_columns.len(), PreemptionResult::NotTried);
        if let Some(limit) = self.limit {
            let sampler = self.sampler(sampler, seed);
            let sample = sampler.select(limit, |position| {
                self.try_again(position, proposed, preemptor);
                Some(self.preempting(position)?.mean)
            });
            return self.sample.insert(sample).best();
        }
        (0..self.node_columns.len() as u32)
            .for_each(|position| self.try_preempting(position, proposed, preemptor));
        loop {
            let bests = (0..self.node_columns.len() as u32).filter_map(|position| self.preempting(position));
            let best = bests.reduce(|one, other| if other.beats(&one) { other } else { one })?;
            if !self.try_again(best.position, proposed, preemptor) {
                return Some(best.position);
            }
        }
    }

    /// The position of this node, if preemption makes it feasible.
    pub fn only_with_preemption(
        &mut self,
        row: NodeRow,
        proposed: &Proposed<'f>,
        preemptor: &Preemptor,
    ) -> Option<u32> {
        self.preemptions.resize(self.node_columns.len(), PreemptionResult::NotTried);
        let position = self.node_columns.position(row)?;
        self.try_again(position, proposed, preemptor);
        self.preempting(position).map(|best| best.position)
    }

    /// The allocations that are preempted on the chosen node.
    pub fn victims(&self, position: u32) -> &[&'f Alloc] {
        match self.preemptions.get(position as usize) {
            Some(PreemptionResult::PreemptionResults { victims, .. }) => victims,
            Some(PreemptionResult::NotTried | PreemptionResult::None) | None => &[],
        }
    }

    /// The highest scores with preemption, best first.
    pub fn top_with_preemption(&self) -> Vec<NodeScoreMeta> {
        let asked: Vec<u32> = match &self.sample {
            Some(sample) => sample.considered.iter().map(|(position, _)| *position).collect(),
            None => (0..self.preemptions.len() as u32).collect(),
        };
        let mut best: Vec<RankedNode> =
            asked.into_iter().filter_map(|position| self.preempting(position)).collect();
        best.sort_by(RankedNode::order);
        let shown = best.iter().take(SCORES_SHOWN).filter_map(|best| {
            let PreemptionResult::PreemptionResults { score, .. } = &self.preemptions[best.position as usize]
            else {
                return None;
            };
            let spread = self.group_states[self.ranking.spread_groups.number(best.position) as usize].spread;
            let id = self.state.nodes.cold(self.row(best.position)).id;
            Some(NodeScore { spread, ..*score }.document(id.to_string()))
        });
        shown.collect()
    }

    /// As [`EvalRanking::metric`], but nodes that preemption makes feasible do not count as exhausted.
    pub fn metric_with_preemption(&mut self) -> AllocationMetric {
        let mut tally = self.tally();
        for position in 0..self.preemptions.len() {
            let reason = self.ranking.infeasible_reason(position as u32);
            if let (PreemptionResult::PreemptionResults { .. }, Some(reason)) =
                (&self.preemptions[position], reason)
            {
                tally.count(
                    &self.ranking.static_checks.reasons,
                    reason,
                    self.node_columns.class[position],
                    -1,
                );
            }
        }
        tally.metric(
            self.state,
            &self.ranking.static_checks.reasons,
            |class| self.node_columns.example(class),
            true,
        )
    }

    fn preempting(&self, position: u32) -> Option<RankedNode> {
        let PreemptionResult::PreemptionResults { score, .. } = self.preemptions.get(position as usize)?
        else {
            return None;
        };
        let GroupState { spread, closed, .. } =
            self.group_states[self.ranking.spread_groups.number(position) as usize];
        let score_sum = score.score_sum().and(spread);
        (!closed).then(|| RankedNode { mean: score_sum.mean(), sum: score_sum.sum, position })
    }

    /// Computes the result again if the plan preempted more since. True if it changed.
    fn try_again(&mut self, position: u32, proposed: &Proposed<'f>, preemptor: &Preemptor) -> bool {
        let before = match &self.preemptions[position as usize] {
            PreemptionResult::PreemptionResults { score, preempted_count, .. }
                if *preempted_count != preemptor.preempted_count() =>
            {
                Some(*score)
            }
            _ => None,
        };
        if before.is_some() {
            self.preemptions[position as usize] = PreemptionResult::NotTried;
        }
        self.try_preempting(position, proposed, preemptor);
        let PreemptionResult::PreemptionResults { score, .. } = self.preemptions[position as usize] else {
            return before.is_some();
        };
        before.is_some_and(|before| before != score)
    }

    fn try_preempting(&mut self, position: u32, proposed: &Proposed<'f>, preemptor: &Preemptor) {
        if matches!(self.preemptions[position as usize], PreemptionResult::NotTried) {
            let preemptions = self.preempt(position, proposed, preemptor);
            let preempted_count = preemptor.preempted_count();
            self.preemptions[position as usize] =
                preemptions.map_or(PreemptionResult::None, |(score, victims)| {
                    PreemptionResult::PreemptionResults { score, victims, preempted_count }
                });
        }
    }

    fn preempt(
        &mut self,
        position: u32,
        proposed: &Proposed<'f>,
        preemptor: &Preemptor,
    ) -> Option<(NodeScore, Vec<&'f Alloc>)> {
        match self.assess(position, proposed) {
            Err(Feasibility::OutOfScope) => return None,
            Err(Feasibility::Infeasible(reason))
                if !self.ranking.static_checks.reasons.get(reason).exhausted =>
            {
                return None;
            }
            // A feasible node may have turned out to lack ports when it was about to be chosen.
            _ => {}
        }
        let (state, row) = (self.state, self.row(position));
        let resource_request = (self.ranking.requirements.amount, &self.ranking.requirements.dedicated);
        let (victims, after) = preemptor.preempt_on(state, row, resource_request, proposed)?;
        // Nomad computes the fit as the node is before the preemption.
        let weighed = proposed.used(row);
        let base_score =
            self.ranking.score_node_as_if(state, self.node_columns, position, &after, weighed).ok()?;
        self.ranking.requirements.dedicated.assign_ports(state, row, &after, &mut Rng::new(0)).ok()?;
        let score =
            NodeScore { preemption: Some(preemption_score(&victims)), ..self.score(position, base_score) };
        Some((score, victims))
    }
}
