//! The second look, where no node has room: at what it would take to make some.

use std::collections::BTreeMap;

use base::Rng;
use model::document::{AllocationMetric, NodeScoreMeta};
use state::State;
use state::alloc::Alloc;
use state::node::NodeRow;

use super::{Best, Field, View};
use crate::board::Standing;
use crate::evict::{Eviction, Evictor};
use crate::metrics::SCORES_SHOWN;
use crate::preempt;
use crate::proposed::Proposed;
use crate::sample::Sampler;
use crate::score::Score;

/// What it takes to make room, by node, as far as was asked; asked again once something about a node changes.
pub type Made = BTreeMap<u32, Option<(Score, Eviction)>>;

impl Field<'_> {
    /// The best node for one more once others have made room for it.
    pub fn best_evicting(
        &mut self,
        proposed: &Proposed,
        evictor: &Evictor,
        sampler: &mut Option<Sampler>,
        seed: u64,
    ) -> Option<u32> {
        let Some(limit) = self.limit else {
            (0..self.fleet.len() as u32).for_each(|position| self.make_room(position, proposed, evictor));
            return self.rank_evicting().next().map(|best| best.position);
        };
        let sampler = self.sampler(sampler, seed);
        let sample = sampler.select(limit, |position| {
            self.make_room(position, proposed, evictor);
            Some(self.evicting(position)?.mean)
        });
        self.sample.insert(sample).best()
    }

    /// The node itself, once others have made room on it.
    pub fn only_evicting(&mut self, row: NodeRow, proposed: &Proposed, evictor: &Evictor) -> Option<u32> {
        let position = self.fleet.position(row)?;
        self.make_room(position, proposed, evictor);
        self.evicting(position).map(|best| best.position)
    }

    /// Who has to go from the node that was found.
    pub fn eviction(&self, position: u32) -> Option<&Eviction> {
        Some(&self.made.get(&position)?.as_ref()?.1)
    }

    /// The highest scores of the second look, best first.
    pub fn top_evicting(&self) -> Vec<NodeScoreMeta> {
        let best: Vec<Best> = match &self.sample {
            Some(sample) => {
                let considered = sample.considered.iter();
                let mut best: Vec<Best> = considered.filter_map(|(at, _)| self.evicting(*at)).collect();
                best.sort_by(Best::order);
                best
            }
            None => self.rank_evicting().collect(),
        };
        let shown = best.iter().take(SCORES_SHOWN).filter_map(|best| {
            let (score, _) = self.made.get(&best.position)?.as_ref()?;
            let spread = self.views[self.board.lanes.number(best.position) as usize].spread;
            let id = self.state.nodes.cold(self.row(best.position)).id;
            Some(Score { spread, ..*score }.document(id.to_string()))
        });
        shown.collect()
    }

    /// As [`Field::metric`], where nodes on which room can be made are not exhausted.
    pub fn metric_evicting(&mut self) -> AllocationMetric {
        let made: Vec<u32> =
            self.made.iter().filter(|(_, made)| made.is_some()).map(|(position, _)| *position).collect();
        let mut tally = self.tally();
        for position in made {
            if let Some(reason) = self.board.barred(position) {
                tally.count(&self.board.rules.reasons, reason, self.fleet.class[position as usize], -1);
            }
        }
        tally.metric(self.state, &self.board.rules.reasons, |class| self.fleet.example(class), true)
    }

    /// One more of a group is preempted: others of it are spared from now on, wherever they are.
    pub fn spare(&mut self, state: &State, alloc: &Alloc) {
        let job = state.jobs.get(alloc.job);
        let others = job.allocs.iter().map(|row| state.allocs.get(*row));
        for other in others.filter(|other| other.group == alloc.group) {
            if let Some(position) = self.fleet.position(other.node) {
                self.made.remove(&position);
            }
        }
    }

    fn rank_evicting(&self) -> impl Iterator<Item = Best> {
        let mut best: Vec<Best> = self.made.keys().filter_map(|position| self.evicting(*position)).collect();
        best.sort_by(Best::order);
        best.into_iter()
    }

    fn evicting(&self, position: u32) -> Option<Best> {
        let (score, _) = self.made.get(&position)?.as_ref()?;
        let View { spread, closed, .. } = self.views[self.board.lanes.number(position) as usize];
        let worth = score.worth().and(spread);
        (!closed).then(|| Best { mean: worth.mean(), sum: worth.sum, position })
    }

    fn make_room(&mut self, position: u32, proposed: &Proposed, evictor: &Evictor) {
        if !self.made.contains_key(&position) {
            let made = self.try_to_make_room(position, proposed, evictor);
            self.made.insert(position, made);
        }
    }

    fn try_to_make_room(
        &mut self,
        position: u32,
        proposed: &Proposed,
        evictor: &Evictor,
    ) -> Option<(Score, Eviction)> {
        match self.assess(position, proposed) {
            Err(Standing::Outside) => return None,
            Err(Standing::Barred(reason)) if !self.board.rules.reasons.get(reason).exhausted => return None,
            // One that plays was found to lack ports when it was about to be chosen.
            _ => {}
        }
        let (state, row) = (self.state, self.row(position));
        let ask = (self.board.shape.amount, &self.board.shape.fixtures);
        let (eviction, after) = evictor.evict(state, row, ask, proposed)?;
        // The contract weighs the node as it is before anybody leaves.
        let weighed = proposed.used(row);
        let speaks = self.board.judge_as(state, self.fleet, position, &after, weighed).ok()?;
        self.board.shape.fixtures.offer(state, row, &after, &mut Rng::new(0)).ok()?;
        let preemption = Some(preempt::score(eviction.priorities.iter().copied()));
        let score = Score { preemption, ..self.score(position, speaks) };
        Some((score, eviction))
    }
}
