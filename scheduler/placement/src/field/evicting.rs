//! The second look, where no node has room: at what it would take to make some.

use base::Rng;
use model::document::{AllocationMetric, NodeScoreMeta};
use state::alloc::Alloc;
use state::node::NodeRow;

use super::{Best, Field, View};
use crate::board::Standing;
use crate::evict::{self, Evictor};
use crate::metrics::SCORES_SHOWN;
use crate::proposed::Proposed;
use crate::sample::Sampler;
use crate::score::Score;

/// What it takes to make room, by position; asked again once something about the node changes. Empty until the first
/// second look.
pub type Made<'f> = Vec<Room<'f>>;

/// What it takes to make room on one node.
#[derive(Clone, Debug, Default)]
pub enum Room<'f> {
    #[default]
    NotAsked,
    /// It will not do whoever goes.
    None,
    Made {
        score: Score,
        victims: Vec<&'f Alloc>,
        /// The plan preempted so many when it was asked.
        counted: u32,
    },
}

impl<'f> Field<'f> {
    /// The best node for one more once others have made room for it.
    ///
    /// The more the plan preempts of a group the more it is spared, on every node. Nodes are compared as they were asked;
    /// the best of them is asked again, and stays the best or makes way.
    pub fn best_evicting(
        &mut self,
        proposed: &Proposed<'f>,
        evictor: &Evictor,
        sampler: &mut Option<Sampler>,
        seed: u64,
    ) -> Option<u32> {
        self.made.resize(self.fleet.len(), Room::NotAsked);
        if let Some(limit) = self.limit {
            let sampler = self.sampler(sampler, seed);
            let sample = sampler.select(limit, |position| {
                self.ask_again(position, proposed, evictor);
                Some(self.evicting(position)?.mean)
            });
            return self.sample.insert(sample).best();
        }
        (0..self.fleet.len() as u32).for_each(|position| self.make_room(position, proposed, evictor));
        loop {
            let bests = (0..self.fleet.len() as u32).filter_map(|position| self.evicting(position));
            let best = bests.reduce(|one, other| if other.beats(&one) { other } else { one })?;
            if !self.ask_again(best.position, proposed, evictor) {
                return Some(best.position);
            }
        }
    }

    /// The node itself, once others have made room on it.
    pub fn only_evicting(&mut self, row: NodeRow, proposed: &Proposed<'f>, evictor: &Evictor) -> Option<u32> {
        self.made.resize(self.fleet.len(), Room::NotAsked);
        let position = self.fleet.position(row)?;
        self.ask_again(position, proposed, evictor);
        self.evicting(position).map(|best| best.position)
    }

    /// Who has to go from the node that was found.
    pub fn victims(&self, position: u32) -> &[&'f Alloc] {
        match self.made.get(position as usize) {
            Some(Room::Made { victims, .. }) => victims,
            Some(Room::NotAsked | Room::None) | None => &[],
        }
    }

    /// The highest scores of the second look, best first.
    pub fn top_evicting(&self) -> Vec<NodeScoreMeta> {
        let asked: Vec<u32> = match &self.sample {
            Some(sample) => sample.considered.iter().map(|(position, _)| *position).collect(),
            None => (0..self.made.len() as u32).collect(),
        };
        let mut best: Vec<Best> = asked.into_iter().filter_map(|position| self.evicting(position)).collect();
        best.sort_by(Best::order);
        let shown = best.iter().take(SCORES_SHOWN).filter_map(|best| {
            let Room::Made { score, .. } = &self.made[best.position as usize] else { return None };
            let spread = self.views[self.board.lanes.number(best.position) as usize].spread;
            let id = self.state.nodes.cold(self.row(best.position)).id;
            Some(Score { spread, ..*score }.document(id.to_string()))
        });
        shown.collect()
    }

    /// As [`Field::metric`], where nodes on which room can be made are not exhausted.
    pub fn metric_evicting(&mut self) -> AllocationMetric {
        let mut tally = self.tally();
        for position in 0..self.made.len() {
            let reason = self.board.barred(position as u32);
            if let (Room::Made { .. }, Some(reason)) = (&self.made[position], reason) {
                tally.count(&self.board.rules.reasons, reason, self.fleet.class[position], -1);
            }
        }
        tally.metric(self.state, &self.board.rules.reasons, |class| self.fleet.example(class), true)
    }

    fn evicting(&self, position: u32) -> Option<Best> {
        let Room::Made { score, .. } = self.made.get(position as usize)? else { return None };
        let View { spread, closed, .. } = self.views[self.board.lanes.number(position) as usize];
        let worth = score.worth().and(spread);
        (!closed).then(|| Best { mean: worth.mean(), sum: worth.sum, position })
    }

    /// True if it takes something else than before.
    fn ask_again(&mut self, position: u32, proposed: &Proposed<'f>, evictor: &Evictor) -> bool {
        let before = match &self.made[position as usize] {
            Room::Made { score, counted, .. } if *counted != evictor.counted() => Some(*score),
            _ => None,
        };
        if before.is_some() {
            self.made[position as usize] = Room::NotAsked;
        }
        self.make_room(position, proposed, evictor);
        let Room::Made { score, .. } = self.made[position as usize] else { return before.is_some() };
        before.is_some_and(|before| before != score)
    }

    fn make_room(&mut self, position: u32, proposed: &Proposed<'f>, evictor: &Evictor) {
        if matches!(self.made[position as usize], Room::NotAsked) {
            let made = self.try_to_make_room(position, proposed, evictor);
            let counted = evictor.counted();
            self.made[position as usize] =
                made.map_or(Room::None, |(score, victims)| Room::Made { score, victims, counted });
        }
    }

    fn try_to_make_room(
        &mut self,
        position: u32,
        proposed: &Proposed<'f>,
        evictor: &Evictor,
    ) -> Option<(Score, Vec<&'f Alloc>)> {
        match self.assess(position, proposed) {
            Err(Standing::Outside) => return None,
            Err(Standing::Barred(reason)) if !self.board.rules.reasons.get(reason).exhausted => return None,
            // One that plays was found to lack ports when it was about to be chosen.
            _ => {}
        }
        let (state, row) = (self.state, self.row(position));
        let ask = (self.board.shape.amount, &self.board.shape.fixtures);
        let (victims, after) = evictor.evict(state, row, ask, proposed)?;
        // The contract weighs the node as it is before anybody leaves.
        let weighed = proposed.used(row);
        let speaks = self.board.judge_as(state, self.fleet, position, &after, weighed).ok()?;
        self.board.shape.fixtures.offer(state, row, &after, &mut Rng::new(0)).ok()?;
        let score = Score { preemption: Some(evict::score(&victims)), ..self.score(position, speaks) };
        Some((score, victims))
    }
}
