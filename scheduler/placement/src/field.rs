//! All candidates for one group, and the best of them while the plan grows.
//!
//! Scores stand in a tournament. A placement moves one score, so placing `n` on `m` nodes takes `m + n log m`
//! steps. Checks that need a node's description are made when a node is about to win, not before: most
//! never are.

use model::document::NodeScoreMeta;
use state::State;
use state::alloc::Alloc;
use state::node::NodeRow;

use crate::candidates::{Candidate, Candidates};
use crate::judge::{DISTINCT_HOSTS, Distinct, Judge, ReasonId};
use crate::metrics::{SCORES_SHOWN, Tally};
use crate::proposed::Proposed;
use crate::score::{Score, Tournament, binpack};

const OUT: f64 = f64::NEG_INFINITY;

/// What is known of a candidate beyond its class and its room.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Standing {
    Open,
    /// Passed the checks that stay as they are.
    Passed,
    Barred(ReasonId),
}

/// An allocation of the same job that takes room on a node.
#[derive(Clone, Copy, Debug)]
pub struct Sibling {
    pub row: NodeRow,
    pub same_group: bool,
    /// It is wanted to end: it still keeps others off its host, but holds no property's value.
    pub ending: bool,
}

#[derive(Debug)]
pub struct Field<'e, 'j> {
    state: &'e State,
    judge: &'j mut Judge<'e>,
    candidates: &'j Candidates,
    standing: Vec<Standing>,
    /// Allocations of the group on each candidate, and of the whole job.
    of_group: Vec<u32>,
    of_job: Vec<u32>,
    /// How many the group wants: softens the anti-affinity.
    count: u32,
    tournament: Tournament,
    penalised: Vec<u32>,
    pub tally: Tally,
}

impl<'e, 'j> Field<'e, 'j> {
    pub fn new(
        state: &'e State,
        judge: &'j mut Judge<'e>,
        candidates: &'j Candidates,
        proposed: &Proposed,
        siblings: &[Sibling],
        count: u32,
    ) -> Field<'e, 'j> {
        let len = candidates.list.len();
        let (mut of_group, mut of_job) = (vec![0; len], vec![0; len]);
        for Sibling { row, same_group, ending } in siblings.iter().copied() {
            if let Some(at) = candidates.position(row) {
                of_job[at as usize] += 1;
                of_group[at as usize] += u32::from(same_group);
            }
            let node = state.nodes.cold(row);
            let counted = judge.properties.iter_mut().filter(|p| !ending && (p.job_wide || same_group));
            counted.for_each(|property| property.add(node));
        }
        let mut field = Field {
            state,
            judge,
            candidates,
            standing: vec![Standing::Open; len],
            of_group,
            of_job,
            count,
            tournament: Tournament::new(Vec::new()),
            penalised: Vec::new(),
            tally: Tally::default(),
        };
        field.score_all(proposed);
        field
    }

    /// From here on these nodes are looked at with suspicion: predecessors failed on them.
    pub fn penalise(&mut self, rows: &[NodeRow], proposed: &Proposed) {
        self.penalised = rows.iter().filter_map(|row| self.candidates.position(*row)).collect();
        self.penalised.clone().into_iter().for_each(|at| self.refresh(at, proposed));
    }

    pub fn forgive(&mut self, proposed: &Proposed) {
        std::mem::take(&mut self.penalised).into_iter().for_each(|at| self.refresh(at, proposed));
    }

    /// The best node for one more allocation.
    pub fn best(&mut self, proposed: &Proposed) -> Option<u32> {
        loop {
            let winner = self.tournament.winner()?;
            if self.holds(winner, proposed) {
                return Some(winner);
            }
        }
    }

    /// The node itself, if it will do.
    pub fn only(&mut self, row: NodeRow, proposed: &Proposed) -> Option<u32> {
        let at = self.candidates.position(row)?;
        let holds = self.tournament.score(at) > OUT && self.holds(at, proposed);
        holds.then_some(at)
    }

    pub fn candidate(&self, at: u32) -> &'j Candidate {
        &self.candidates.list[at as usize]
    }

    /// The plan places one more of the group there.
    pub fn placed(&mut self, at: u32, proposed: &Proposed) {
        self.of_group[at as usize] += 1;
        self.of_job[at as usize] += 1;
        let node = self.state.nodes.cold(self.candidate(at).row);
        self.judge.properties.iter_mut().for_each(|property| property.add(node));
        self.refresh(at, proposed);
    }

    /// The plan takes an allocation of the group away, so that its successor may have its place.
    pub fn left(&mut self, alloc: &Alloc, proposed: &Proposed) {
        let node = self.state.nodes.cold(alloc.node);
        if !alloc.is_terminal() {
            self.judge.properties.iter_mut().for_each(|property| property.remove(node));
        }
        if let Some(at) = self.candidates.position(alloc.node) {
            if alloc.takes_room() {
                self.of_group[at as usize] -= 1;
                self.of_job[at as usize] -= 1;
            }
            self.reconsider(at, proposed);
        }
        if !self.judge.properties.is_empty() {
            (0..self.standing.len() as u32).for_each(|at| self.reconsider(at, proposed));
        }
    }

    /// It stays after all.
    pub fn stayed(&mut self, alloc: &Alloc, proposed: &Proposed) {
        let node = self.state.nodes.cold(alloc.node);
        if !alloc.is_terminal() {
            self.judge.properties.iter_mut().for_each(|property| property.add(node));
        }
        if let Some(at) = self.candidates.position(alloc.node) {
            if alloc.takes_room() {
                self.of_group[at as usize] += 1;
                self.of_job[at as usize] += 1;
            }
            self.refresh(at, proposed);
        }
    }

    /// The highest scores, best first, as the contract shows them.
    pub fn top(&mut self, proposed: &Proposed) -> Vec<NodeScoreMeta> {
        loop {
            let best = self.tournament.best(SCORES_SHOWN);
            // A node that does not hold leaves the game, and the rest is ranked again.
            if best.iter().all(|at| self.holds(*at, proposed)) {
                return best.iter().filter_map(|at| self.shown(*at, proposed)).collect();
            }
        }
    }

    /// Why each candidate will not do.
    pub fn tally_all(&mut self, proposed: &Proposed) -> Tally {
        let mut tally = Tally::default();
        for at in 0..self.standing.len() as u32 {
            if let Err(reason) = self.assess(at, proposed) {
                tally.count(&self.judge.reasons, reason, self.candidate(at));
            }
        }
        tally
    }

    pub fn judge(&self) -> &Judge<'e> {
        self.judge
    }

    fn score_all(&mut self, proposed: &Proposed) {
        let mut scores = Vec::with_capacity(self.standing.len());
        for at in 0..self.standing.len() as u32 {
            // A check that looks beyond the class is likely to rule out almost everything: waiting for
            // each node to win in vain would cost more than asking.
            if self.judge.escapes() && self.judge.class(self.candidate(at)).is_none() {
                self.examine(at);
            }
            scores.push(match self.assess(at, proposed) {
                Ok(score) => score.mean(),
                Err(reason) => {
                    self.tally.count(&self.judge.reasons, reason, self.candidate(at));
                    OUT
                }
            });
        }
        self.tournament = Tournament::new(scores);
    }

    /// The checks that were put off. What fails them leaves the game.
    fn holds(&mut self, at: u32, proposed: &Proposed) -> bool {
        if self.standing[at as usize] == Standing::Open {
            self.examine(at);
        }
        let row = self.candidate(at).row;
        let barred = match self.standing[at as usize] {
            Standing::Barred(reason) => Some(reason),
            Standing::Open | Standing::Passed => self.judge.neighbours(row, proposed),
        };
        let Some(reason) = barred else { return true };
        self.standing[at as usize] = Standing::Barred(reason);
        self.tally.count(&self.judge.reasons, reason, self.candidate(at));
        self.tournament.set(at, OUT);
        false
    }

    fn examine(&mut self, at: u32) {
        let verdict = self.judge.node(self.candidate(at).row);
        self.standing[at as usize] = verdict.map_or(Standing::Passed, Standing::Barred);
    }

    /// What barred it may have gone.
    fn reconsider(&mut self, at: u32, proposed: &Proposed) {
        if let Standing::Barred(reason) = self.standing[at as usize]
            && self.judge.reasons.get(reason).passing
        {
            self.standing[at as usize] = Standing::Passed;
        }
        self.refresh(at, proposed);
    }

    fn refresh(&mut self, at: u32, proposed: &Proposed) {
        let score = self.assess(at, proposed).map_or(OUT, |score| score.mean());
        self.tournament.set(at, score);
    }

    fn assess(&mut self, at: u32, proposed: &Proposed) -> Result<Score, ReasonId> {
        let candidate = self.candidate(at);
        if let Some(reason) = self.judge.class(candidate) {
            return Err(reason);
        }
        if let Standing::Barred(reason) = self.standing[at as usize] {
            return Err(reason);
        }
        let (of_group, of_job) = (self.of_group[at as usize], self.of_job[at as usize]);
        let hosts_one = match self.judge.distinct_hosts {
            Some(Distinct::Job) => of_job > 0,
            Some(Distinct::Group) => of_group > 0,
            None => false,
        };
        if hosts_one {
            return Err(DISTINCT_HOSTS);
        }
        let used = proposed.used(candidate.row);
        if let Some(reason) = self.judge.room(candidate, used, proposed.allocs(candidate.row)) {
            return Err(reason);
        }
        let fit = binpack(candidate.capacity, used.plus(self.judge.ask.amount));
        Ok(Score::new(fit, of_group, self.count, self.penalised.contains(&at)))
    }

    fn shown(&mut self, at: u32, proposed: &Proposed) -> Option<NodeScoreMeta> {
        let score = self.assess(at, proposed).ok()?;
        let id = self.state.nodes.cold(self.candidate(at).row).id;
        Some(score.document(id.to_string()))
    }
}
