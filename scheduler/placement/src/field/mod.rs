//! A board in the light of one evaluation: the job's own allocations, what the plan changes, what failed before.
//!
//! What an evaluation changes on a board it takes back when it is done, node by node.

mod evicting;

use std::cmp::Ordering;

use base::Rng;
use model::document::{Job, NodeScoreMeta, TaskGroup};
use state::State;
use state::alloc::Alloc;
use state::node::NodeRow;

use crate::board::{Board, Saved, Speaks, Standing};
use crate::field::evicting::{Made, Room};
use crate::fleet::Fleet;
use crate::judge::Distinct;
use crate::lanes::Head;
use crate::memory::Kept;
use crate::metrics::{SCORES_SHOWN, Tally};
use crate::property::Property;
use crate::proposed::Proposed;
use crate::rules::{DISTINCT_HOSTS, ReasonId};
use crate::sample::{Sample, Sampler};
use crate::score::Score;
use crate::spread::Spreads;

/// An allocation of the same job that takes room on a node.
#[derive(Clone, Copy, Debug)]
pub struct Sibling {
    pub row: NodeRow,
    pub same_group: bool,
    /// It is wanted to end: it still keeps others off its host, but holds no value of a property.
    pub ending: bool,
}

#[derive(Debug)]
pub struct Field<'f> {
    state: &'f State,
    fleet: &'f Fleet,
    board: &'f mut Board,
    /// By position: the place in `touched`, plus one. All zero when nothing is touched.
    marks: &'f mut [u32],
    touched: Vec<Touched>,
    /// How many the group wants: softens the anti-affinity.
    count: u32,
    distinct_hosts: Option<Distinct>,
    properties: Vec<Property>,
    spreads: Spreads,
    penalised: Vec<u32>,
    /// By lane.
    views: Vec<View>,
    limit: Option<usize>,
    /// What the last selection saw, where not everything is looked at.
    sample: Option<Sample>,
    made: Made<'f>,
}

/// A lane in the light of the plan so far.
#[derive(Clone, Copy, Debug, Default)]
struct View {
    spread: f64,
    /// A value that its nodes share is used up.
    closed: bool,
    /// Its best node, unless something about it changed.
    best: Option<Option<Best>>,
}

/// A node with everything that speaks for it. By the mean, then by the sum, then the lower id.
#[derive(Clone, Copy, Debug)]
struct Best {
    mean: f64,
    sum: f64,
    position: u32,
}

/// A node that is not what its board says.
#[derive(Debug)]
struct Touched {
    position: u32,
    saved: Saved,
    /// Allocations of the group there, and of the whole job.
    of_group: u32,
    of_job: u32,
    penalised: bool,
}

/// The group a field is for.
#[derive(Clone, Copy, Debug)]
pub struct For<'f> {
    pub job: &'f Job,
    pub group: &'f TaskGroup,
    pub distinct_hosts: Option<Distinct>,
    /// Only so many nodes are considered for each placement.
    pub limit: Option<usize>,
}

impl<'f> Field<'f> {
    pub fn new(
        state: &'f State,
        kept: Kept<'f>,
        of: For,
        siblings: &[Sibling],
        proposed: &Proposed,
    ) -> Field<'f> {
        let Kept { fleet, board, marks } = kept;
        let spreads = Spreads::new(of.job, of.group, board.values());
        let mut field = Field {
            state,
            fleet,
            board,
            marks,
            touched: Vec::new(),
            count: of.group.count.unwrap_or(1).max(0) as u32,
            distinct_hosts: of.distinct_hosts,
            properties: Property::of(of.job, of.group),
            spreads,
            penalised: Vec::new(),
            views: Vec::new(),
            limit: of.limit,
            sample: None,
            made: Made::new(),
        };
        for sibling in siblings {
            if let Some(position) = fleet.position(sibling.row) {
                let touched = field.touch(position);
                touched.of_job += 1;
                touched.of_group += u32::from(sibling.same_group);
            }
            if !sibling.ending {
                field.count(sibling.row, sibling.same_group, 1);
            }
        }
        let changed = proposed.rows().filter_map(|row| fleet.position(row));
        changed.for_each(|position| _ = field.touch(position));
        for at in 0..field.touched.len() {
            field.refresh(field.touched[at].position, proposed);
        }
        field.views = vec![View::default(); field.board.lanes.iter().count()];
        field.review();
        field
    }

    /// From here on these nodes are looked at with suspicion: predecessors failed on them.
    pub fn penalise(&mut self, rows: &[NodeRow], proposed: &Proposed) {
        self.penalised = rows.iter().filter_map(|row| self.fleet.position(*row)).collect();
        for position in self.penalised.clone() {
            self.touch(position).penalised = true;
            self.refresh(position, proposed);
        }
    }

    pub fn forgive(&mut self, proposed: &Proposed) {
        for position in std::mem::take(&mut self.penalised) {
            self.touch(position).penalised = false;
            self.refresh(position, proposed);
        }
    }

    /// The best node for one more allocation, of all or of those that are visited.
    pub fn best(&mut self, proposed: &Proposed, sampler: &mut Option<Sampler>, seed: u64) -> Option<u32> {
        let Some(limit) = self.limit else { return self.best_of_all(proposed) };
        let sampler = self.sampler(sampler, seed);
        let sample = sampler.select(limit, |position| self.worth_of(position, proposed));
        self.sample.insert(sample).best()
    }

    fn sampler<'a>(&self, known: &'a mut Option<Sampler>, seed: u64) -> &'a mut Sampler {
        let nodes = || (0..self.fleet.len() as u32).filter(|node| !self.board.is_outside(*node)).collect();
        known.get_or_insert_with(|| Sampler::new(nodes(), seed))
    }

    /// The mean of what speaks for a node, if it will do.
    fn worth_of(&mut self, position: u32, proposed: &Proposed) -> Option<f64> {
        let View { spread, closed, .. } = *self.view(position);
        if closed || !self.board.plays(position) || !self.holds(position, proposed) {
            return None;
        }
        let score = self.assess(position, proposed).ok()?;
        Some(score.worth().and(spread).mean())
    }

    fn best_of_all(&mut self, proposed: &Proposed) -> Option<u32> {
        loop {
            let best = self.winner()?;
            if self.holds(best, proposed) {
                return Some(best);
            }
        }
    }

    fn winner(&mut self) -> Option<u32> {
        let lanes = &self.board.lanes;
        let mut winner: Option<&Best> = None;
        for (view, lane) in self.views.iter_mut().zip(lanes.iter()).filter(|(view, _)| !view.closed) {
            let spread = view.spread;
            let best = view.best.get_or_insert_with(|| {
                let heads = lanes.heads(lane).map(|head| Best::of(head, spread));
                heads.reduce(|one, other| if other.beats(&one) { other } else { one })
            });
            winner = best.as_ref().filter(|best| winner.is_none_or(|other| best.beats(other))).or(winner);
        }
        winner.map(|best| best.position)
    }

    /// The highest scores, best first, as the contract shows them.
    pub fn top(&mut self, proposed: &Proposed) -> Vec<NodeScoreMeta> {
        if let Some(sample) = &self.sample {
            let mut considered = sample.considered.clone();
            considered.sort_by(|one, other| other.1.total_cmp(&one.1));
            let best = considered.into_iter().take(SCORES_SHOWN);
            return best.filter_map(|(position, _)| self.shown(position, proposed)).collect();
        }
        loop {
            let best = self.ranked(SCORES_SHOWN);
            // A node that does not hold leaves the game, and the rest is ranked again.
            if best.iter().all(|position| self.holds(*position, proposed)) {
                return best.iter().filter_map(|position| self.shown(*position, proposed)).collect();
            }
        }
    }

    fn ranked(&self, count: usize) -> Vec<u32> {
        let lanes = self.board.lanes.iter().zip(&self.views).filter(|(_, view)| !view.closed);
        let heads = lanes.flat_map(|(lane, view)| {
            self.board.lanes.best(lane, count).map(|head| Best::of(head, view.spread))
        });
        let mut best: Vec<Best> = heads.collect();
        best.sort_by(Best::order);
        best.into_iter().take(count).map(|best| best.position).collect()
    }

    /// The node itself, if it will do.
    pub fn only(&mut self, row: NodeRow, proposed: &Proposed) -> Option<u32> {
        let position = self.fleet.position(row)?;
        let open = self.board.plays(position) && !self.view(position).closed;
        (open && self.holds(position, proposed)).then_some(position)
    }

    pub fn row(&self, position: u32) -> NodeRow {
        self.fleet.rows[position as usize]
    }

    /// The plan places one more of the group there.
    pub fn placed(&mut self, position: u32, proposed: &Proposed) {
        let touched = self.touch(position);
        touched.of_group += 1;
        touched.of_job += 1;
        self.count(self.row(position), true, 1);
        self.review();
        self.refresh(position, proposed);
    }

    /// The plan takes an allocation of the group away, so that its successor may have its place.
    pub fn left(&mut self, alloc: &Alloc, proposed: &Proposed) {
        self.moved(alloc, -1, proposed);
    }

    /// It stays after all.
    pub fn stayed(&mut self, alloc: &Alloc, proposed: &Proposed) {
        self.moved(alloc, 1, proposed);
    }

    fn moved(&mut self, alloc: &Alloc, change: i32, proposed: &Proposed) {
        if !alloc.is_terminal() {
            self.count(alloc.node, true, change);
            self.review();
        }
        if let Some(position) = self.fleet.position(alloc.node) {
            let touched = self.touch(position);
            if alloc.takes_room() {
                touched.of_group = touched.of_group.saturating_add_signed(change);
                touched.of_job = touched.of_job.saturating_add_signed(change);
            }
            self.refresh(position, proposed);
        }
    }

    /// Nodes as the board counts them, and those that distinct properties rule out.
    pub fn metric(&mut self, everything: bool) -> model::document::AllocationMetric {
        let tally = self.tally();
        let example = |class| self.fleet.example(class);
        tally.metric(self.state, &self.board.rules.reasons, example, everything)
    }

    fn tally(&mut self) -> Tally {
        let mut tally = self.board.tally.clone();
        if self.views.iter().any(|view| view.closed) {
            for position in 0..self.fleet.len() as u32 {
                if !self.board.plays(position) {
                    continue;
                }
                if let Some(reason) = self.refused_by_property(position) {
                    tally.count(&self.board.rules.reasons, reason, self.fleet.class[position as usize], 1);
                }
            }
        }
        tally
    }

    /// How many nodes the last selection visited, if not all.
    pub fn visited(&self) -> Option<usize> {
        self.sample.as_ref().map(|sample| sample.visited)
    }

    pub fn board(&self) -> &Board {
        self.board
    }

    fn refused_by_property(&mut self, position: u32) -> Option<ReasonId> {
        let node = self.state.nodes.cold(self.row(position));
        let values = &self.board.values()[self.spreads.len()..];
        let text = self
            .properties
            .iter()
            .zip(values)
            .find_map(|(property, values)| property.refuses(node, values))?;
        Some(self.board.rules.reasons.filter(&text))
    }

    fn view(&mut self, position: u32) -> &mut View {
        &mut self.views[self.board.lanes.number(position) as usize]
    }

    /// Looks at the lanes anew, once counts have changed.
    fn review(&mut self) {
        self.spreads.settle();
        for (number, lane) in self.board.lanes.iter().enumerate() {
            let (spread, closed) = (self.spreads.score(&lane.values), self.is_used_up(&lane.values));
            let view = &mut self.views[number];
            if (view.spread, view.closed) != (spread, closed) {
                *view = View { spread, closed, best: None };
            }
        }
    }

    fn is_used_up(&self, lane: &[u32]) -> bool {
        let of_properties = lane.get(self.spreads.len()..).unwrap_or_default();
        self.properties.iter().zip(of_properties).any(|(property, value)| property.is_used_up(*value))
    }

    /// One more or less of the job's allocations holds its node's values.
    fn count(&mut self, row: NodeRow, same_group: bool, change: i32) {
        if self.properties.is_empty() && self.spreads.is_empty() {
            return;
        }
        let Some(position) = self.fleet.position(row) else { return };
        let (of_spreads, of_properties) = self.board.lanes.values(position).split_at(self.spreads.len());
        for (property, value) in self.properties.iter_mut().zip(of_properties) {
            if property.job_wide || same_group {
                property.count(*value, change);
            }
        }
        if same_group {
            self.spreads.count(of_spreads, change);
        }
    }

    /// The checks that are put off until a node is about to be chosen. What fails them leaves the game.
    fn holds(&mut self, position: u32, proposed: &Proposed) -> bool {
        if self.board.shape.fixtures.addresses.is_empty() {
            return true;
        }
        // Whether there are free ports does not depend on where the search for them begins.
        let mut anywhere = Rng::new(0);
        let offer = self.board.shape.fixtures.offer(self.state, self.row(position), proposed, &mut anywhere);
        let Err(failed) = offer else { return true };
        let reason = self.board.rules.reasons.exhausted_late(&failed);
        self.put(position, Standing::Barred(reason));
        false
    }

    fn touch(&mut self, position: u32) -> &mut Touched {
        let mark = &mut self.marks[position as usize];
        if *mark == 0 {
            let saved = self.board.save(position);
            self.touched.push(Touched { position, saved, of_group: 0, of_job: 0, penalised: false });
            *mark = self.touched.len() as u32;
        }
        &mut self.touched[*mark as usize - 1]
    }

    fn refresh(&mut self, position: u32, proposed: &Proposed) {
        let standing = match self.assess(position, proposed) {
            Ok(score) => Standing::Plays(score.worth()),
            Err(standing) => standing,
        };
        self.put(position, standing);
    }

    fn put(&mut self, position: u32, standing: Standing) {
        if let Some(made) = self.made.get_mut(position as usize) {
            *made = Room::NotAsked;
        }
        self.board.put(self.state, self.fleet, position, standing);
        if let Some(view) = self.views.get_mut(self.board.lanes.number(position) as usize) {
            view.best = None;
        }
    }

    /// What speaks for and against a node by now; what it is, if it does not play.
    fn assess(&mut self, position: u32, proposed: &Proposed) -> Result<Score, Standing> {
        let judged = self.board.judge(self.state, self.fleet, position, proposed);
        let (of_group, of_job) = self.own(position).map_or((0, 0), |own| (own.of_group, own.of_job));
        let shared = match self.distinct_hosts {
            Some(Distinct::Job) => of_job > 0,
            Some(Distinct::Group) => of_group > 0,
            None => false,
        };
        match judged {
            Ok(_) if shared => Err(Standing::Barred(DISTINCT_HOSTS)),
            Err(Standing::Barred(reason)) if shared && self.board.rules.reasons.get(reason).exhausted => {
                Err(Standing::Barred(DISTINCT_HOSTS))
            }
            Ok(speaks) => Ok(self.score(position, speaks)),
            Err(standing) => Err(standing),
        }
    }

    fn own(&self, position: u32) -> Option<&Touched> {
        let mark = self.marks[position as usize] as usize;
        mark.checked_sub(1).map(|at| &self.touched[at])
    }

    fn score(&self, position: u32, speaks: Speaks) -> Score {
        let (of_group, penalised) =
            self.own(position).map_or((0, false), |own| (own.of_group, own.penalised));
        Score::new(speaks, of_group, self.count, penalised)
    }

    fn shown(&mut self, position: u32, proposed: &Proposed) -> Option<NodeScoreMeta> {
        let score = self.assess(position, proposed).ok()?;
        let spread = self.view(position).spread;
        let id = self.state.nodes.cold(self.row(position)).id;
        Some(Score { spread, ..score }.document(id.to_string()))
    }
}

impl Best {
    fn of(head: Head, spread: f64) -> Best {
        let worth = head.worth.and(spread);
        Best { mean: worth.mean(), sum: worth.sum, position: head.position }
    }

    fn order(one: &Best, other: &Best) -> Ordering {
        if one.beats(other) { Ordering::Less } else { Ordering::Greater }
    }

    fn beats(&self, other: &Best) -> bool {
        if self.mean != other.mean {
            return self.mean > other.mean;
        }
        if self.sum != other.sum {
            return self.sum > other.sum;
        }
        self.position < other.position
    }
}

impl Drop for Field<'_> {
    fn drop(&mut self) {
        for Touched { position, saved, .. } in self.touched.drain(..) {
            self.marks[position as usize] = 0;
            self.board.restore(self.state, self.fleet, position, saved);
        }
    }
}
