//! Fills the places of a job that runs on every node.

use std::collections::BTreeMap;

use base::Rng;
use model::DeploymentId;
use model::document::{AllocationMetric, TaskGroup};
use state::alloc::Alloc;
use state::node::{Amount, NodeHot, NodeRow};

use crate::board::{Speaks, fit_of};
use crate::candidates::Candidates;
use crate::evict::Evictor;
use crate::judge::Judge;
use crate::metrics::{Tally, add_exhausted, with_pool};
use crate::plan::{Columns, Draft, Run};
use crate::proposed::Proposed;
use crate::reconcile::Situation;
use crate::score::Score;
use crate::system::{Spot, Todo};

/// Fills the places of one group, each on its own node.
pub struct Placer<'p, 'e> {
    pub cx: &'p Situation<'e>,
    pub group: &'e TaskGroup,
    pub candidates: &'p Candidates,
    pub proposed: &'p mut Proposed<'e>,
    pub ports: &'p mut Rng,
    pub evictor: Option<&'p mut Evictor>,
    pub deployment: Option<DeploymentId>,
}

impl<'e> Placer<'_, 'e> {
    /// Tells how many of the places are on nodes that do not suit the group.
    pub fn place(&mut self, draft: &mut Draft, name: &str, judge: &mut Judge<'e>, mut todo: Todo<'e>) -> u32 {
        todo.spots.sort_by_key(|spot| (spot.id, spot.name_index));
        todo.desired.place = todo.spots.len() as u64;
        self.count_properties(judge, &todo);
        // Canaries are told apart.
        let mut columns = [Columns::default(), Columns::default()];
        let (mut tally, mut short) = (Tally::default(), 0_u32);
        let mut examples: BTreeMap<u32, NodeRow> = BTreeMap::new();
        for spot in &todo.spots {
            let hot = self.cx.state.nodes.hot(spot.row);
            let columns = &mut columns[usize::from(spot.canary)];
            match judge.alone(spot.row, hot, spot.name_index, self.proposed) {
                None => self.fill(judge, hot, spot, columns, &[]),
                Some(reason) => {
                    if judge.reasons().get(reason).exhausted
                        && let Some(victims) = self.make_room(judge, hot, spot)
                    {
                        self.fill(judge, hot, spot, columns, &victims);
                        continue;
                    }
                    examples.insert(hot.class.0, spot.row);
                    tally.count(judge.reasons(), reason, hot.class.0, 1);
                    if judge.reasons().get(reason).exhausted {
                        draft.full_node.get_or_insert(spot.id);
                        short += 1;
                    }
                }
            }
        }
        let filtered = tally.filtered() as usize;
        let all_filtered = !todo.spots.is_empty() && filtered == todo.spots.len();
        let stays = todo.desired.ignore + todo.desired.in_place_update > 0;
        let metric = tally.metric(self.cx.state, judge.reasons(), |class| examples[&class], true);
        let pool = self.cx.job.current().job.node_pool.as_deref();
        let available = self.candidates.available.iter().map(|(name, nodes)| (name.as_str(), *nodes));
        let mut metric = with_pool(metric, available, pool);
        metric.nodes_evaluated = todo.spots.len() as i64;
        todo.desired.place -= filtered as u64;
        let explained = draft.groups.entry(name.to_string()).or_default();
        explained.desired = todo.desired;
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
            let run = Run { version, deployment: self.deployment, canary };
            draft.place(self.cx, name, &run, &judge.ask.template.clone(), columns);
        }
        filtered as u32
    }

    /// Who would have to go so that the node has room.
    fn make_room(&self, judge: &mut Judge<'e>, hot: &NodeHot, spot: &Spot) -> Option<Vec<&'e Alloc>> {
        let ask = (judge.ask.amount, &judge.ask.fixtures);
        let evictor = self.evictor.as_deref()?;
        let (victims, after) = evictor.evict(self.cx.state, spot.row, ask, self.proposed)?;
        judge.alone(spot.row, hot, spot.name_index, &after).is_none().then_some(victims)
    }

    fn fill(
        &mut self,
        judge: &mut Judge<'e>,
        hot: &NodeHot,
        spot: &Spot<'e>,
        columns: &mut Columns,
        victims: &[&'e Alloc],
    ) {
        // The contract weighs the node as it is before anybody leaves.
        let before = self.proposed.used(spot.row);
        if let Some(evictor) = self.evictor.as_deref_mut() {
            evictor.preempt(victims, self.proposed);
        }
        let granted = judge.ask.fixtures.grant(self.cx.state, spot.row, self.proposed, self.ports);
        let grant = granted.expect("the node was found to have it all");
        self.proposed.place(spot.row, &judge.ask.template, &grant);
        self.proposed.mount(spot.row, self.group, spot.name_index);
        judge.count(spot.row);
        let given = Amount::of(&judge.ask.template, &grant.given);
        columns.push(spot.id, spot.name_index, spot.previous, grant, victims);
        if columns.metric.is_none() {
            let fit = fit_of(hot.capacity, before.plus(given), judge.shape.algorithm);
            let node = Speaks { fit, ..Speaks::default() };
            let score = Score::new(node, 0, 1, false).document(spot.id.to_string());
            let scores = vec![score].into();
            columns.metric =
                Some(model::document::AllocationMetric { score_meta_data: scores, ..Default::default() });
        }
    }

    fn count_properties(&self, judge: &mut Judge<'e>, todo: &Todo) {
        todo.staying.iter().chain(&todo.unknown).for_each(|alloc| judge.count(alloc.node));
    }
}
