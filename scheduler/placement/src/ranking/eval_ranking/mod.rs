//! The node ranking as one evaluation sees it: with the job's own allocations, the changes of the plan in progress, and
//! the nodes where predecessors failed.
//!
//! It writes to the shared [`NodeRanking`] and restores every changed node when it is dropped.

mod preempting;

use std::cmp::Ordering;

use base::Rng;
use model::document::{Job, NodeScoreMeta, TaskGroup};
use state::State;
use state::alloc::Alloc;
use state::node::NodeRow;

use crate::feasibility::distinct_property::DistinctProperty;
use crate::feasibility::metrics::{ReasonTally, SCORES_SHOWN};
use crate::feasibility::node_check::Distinct;
use crate::feasibility::proposed::Proposed;
use crate::feasibility::static_checks::{DISTINCT_HOSTS, ReasonId};
use crate::ranking::eval_ranking::preempting::{PreemptionResult, PreemptionResults};
use crate::ranking::memory::CachedRanking;
use crate::ranking::node_columns::NodeColumns;
use crate::ranking::node_ranking::{BaseScore, Feasibility, NodeRanking, SavedNode};
use crate::ranking::sampling::{Sample, Sampler};
use crate::ranking::score::NodeScore;
use crate::ranking::spread::Spreads;
use crate::ranking::spread_groups::GroupBest;

/// An allocation of the same job that takes room on a node.
#[derive(Clone, Copy, Debug)]
pub struct Sibling {
    pub row: NodeRow,
    pub same_group: bool,
    /// It is being stopped: it still counts for `distinct_hosts`, but not for `distinct_property`.
    pub ending: bool,
}

#[derive(Debug)]
pub struct EvalRanking<'f> {
    state: &'f State,
    node_columns: &'f NodeColumns,
    ranking: &'f mut NodeRanking,
    /// By position: the index in `changed_nodes`, plus one. All zero while no node is changed.
    marks: &'f mut [u32],
    changed_nodes: Vec<ChangedNode>,
    /// The count of the group, by which the anti-affinity is divided.
    count: u32,
    distinct_hosts: Option<Distinct>,
    properties: Vec<DistinctProperty>,
    spreads: Spreads,
    penalised: Vec<u32>,
    /// By spread group.
    group_states: Vec<GroupState>,
    limit: Option<usize>,
    /// What the last selection visited, where nodes are sampled.
    sample: Option<Sample>,
    preemptions: PreemptionResults<'f>,
}

/// A spread group as the plan so far leaves it.
#[derive(Clone, Copy, Debug, Default)]
struct GroupState {
    spread: f64,
    /// A `distinct_property` value that its nodes share is used up.
    closed: bool,
    /// Its best node, until something about the group changes. The inner `None`: it has no feasible node.
    best: Option<Option<RankedNode>>,
}

/// A node with its total score. Ordered by the mean, then by the sum, then by the lower id.
#[derive(Clone, Copy, Debug)]
struct RankedNode {
    mean: f64,
    sum: f64,
    position: u32,
}

/// A node that this evaluation sees differently from the shared ranking.
#[derive(Debug)]
struct ChangedNode {
    position: u32,
    saved: SavedNode,
    /// Allocations of the group there, and of the whole job.
    of_group: u32,
    of_job: u32,
    penalised: bool,
}

/// The group that is placed.
#[derive(Clone, Copy, Debug)]
pub struct RankedGroup<'f> {
    pub job: &'f Job,
    pub group: &'f TaskGroup,
    pub distinct_hosts: Option<Distinct>,
    /// How many nodes are considered for each placement; `None`: all.
    pub limit: Option<usize>,
}

impl<'f> EvalRanking<'f> {
    pub fn new(
        state: &'f State,
        kept: CachedRanking<'f>,
        of: RankedGroup,
        siblings: &[Sibling],
        proposed: &Proposed,
    ) -> EvalRanking<'f> {
        let CachedRanking { node_columns, ranking, marks } = kept;
        let spreads = Spreads::new(of.job, of.group, ranking.values());
        let mut eval_ranking = EvalRanking {
            state,
            node_columns,
            ranking,
            marks,
            changed_nodes: Vec::new(),
            count: of.group.count.unwrap_or(1).max(0) as u32,
            distinct_hosts: of.distinct_hosts,
            properties: DistinctProperty::of(of.job, of.group),
            spreads,
            penalised: Vec::new(),
            group_states: Vec::new(),
            limit: of.limit,
            sample: None,
            preemptions: PreemptionResults::new(),
        };
        for sibling in siblings {
            if let Some(position) = node_columns.position(sibling.row) {
                let node = eval_ranking.touch(position);
                node.of_job += 1;
                node.of_group += u32::from(sibling.same_group);
            }
            if !sibling.ending {
                eval_ranking.count(sibling.row, sibling.same_group, 1);
            }
        }
        let changed = proposed.rows().filter_map(|row| node_columns.position(row));
        changed.for_each(|position| _ = eval_ranking.touch(position));
        for at in 0..eval_ranking.changed_nodes.len() {
            eval_ranking.refresh(eval_ranking.changed_nodes[at].position, proposed);
        }
        eval_ranking.group_states =
            vec![GroupState::default(); eval_ranking.ranking.spread_groups.iter().count()];
        eval_ranking.refresh_groups();
        eval_ranking
    }

    /// Gives these nodes the reschedule penalty: predecessors failed on them.
    pub fn penalise(&mut self, rows: &[NodeRow], proposed: &Proposed) {
        self.penalised = rows.iter().filter_map(|row| self.node_columns.position(*row)).collect();
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

    /// The best node for one more allocation, of all nodes or of those that are sampled.
    pub fn best(&mut self, proposed: &Proposed, sampler: &mut Option<Sampler>, seed: u64) -> Option<u32> {
        let Some(limit) = self.limit else { return self.best_of_all(proposed) };
        let sampler = self.sampler(sampler, seed);
        let sample = sampler.select(limit, |position| self.mean_of(position, proposed));
        self.sample.insert(sample).best()
    }

    fn sampler<'a>(&self, known: &'a mut Option<Sampler>, seed: u64) -> &'a mut Sampler {
        let nodes = || {
            (0..self.node_columns.len() as u32).filter(|node| !self.ranking.is_out_of_scope(*node)).collect()
        };
        known.get_or_insert_with(|| Sampler::new(nodes(), seed))
    }

    /// The mean score of a node, if it is feasible.
    fn mean_of(&mut self, position: u32, proposed: &Proposed) -> Option<f64> {
        let GroupState { spread, closed, .. } = *self.group_state(position);
        if closed || !self.ranking.is_feasible(position) || !self.has_free_ports(position, proposed) {
            return None;
        }
        let score = self.assess(position, proposed).ok()?;
        Some(score.score_sum().and(spread).mean())
    }

    fn best_of_all(&mut self, proposed: &Proposed) -> Option<u32> {
        loop {
            let best = self.winner()?;
            if self.has_free_ports(best, proposed) {
                return Some(best);
            }
        }
    }

    fn winner(&mut self) -> Option<u32> {
        let spread_groups = &self.ranking.spread_groups;
        let mut winner: Option<&RankedNode> = None;
        for (group_state, spread_group) in self
            .group_states
            .iter_mut()
            .zip(spread_groups.iter())
            .filter(|(group_state, _)| !group_state.closed)
        {
            let spread = group_state.spread;
            let best = group_state.best.get_or_insert_with(|| {
                let bests = spread_groups.bests(spread_group).map(|head| RankedNode::of(head, spread));
                bests.reduce(|one, other| if other.beats(&one) { other } else { one })
            });
            winner = best.as_ref().filter(|best| winner.is_none_or(|other| best.beats(other))).or(winner);
        }
        winner.map(|best| best.position)
    }

    /// The highest scores, best first, as Nomad's API shows them.
    pub fn top(&mut self, proposed: &Proposed) -> Vec<NodeScoreMeta> {
        if let Some(sample) = &self.sample {
            let mut considered = sample.considered.clone();
            considered.sort_by(|one, other| other.1.total_cmp(&one.1));
            let best = considered.into_iter().take(SCORES_SHOWN);
            return best.filter_map(|(position, _)| self.shown(position, proposed)).collect();
        }
        loop {
            let best = self.ranked(SCORES_SHOWN);
            // A node without free ports becomes infeasible, and the rest is ranked again.
            if best.iter().all(|position| self.has_free_ports(*position, proposed)) {
                return best.iter().filter_map(|position| self.shown(*position, proposed)).collect();
            }
        }
    }

    fn ranked(&self, count: usize) -> Vec<u32> {
        let spread_groups = self
            .ranking
            .spread_groups
            .iter()
            .zip(&self.group_states)
            .filter(|(_, group_state)| !group_state.closed);
        let bests = spread_groups.flat_map(|(spread_group, group_state)| {
            self.ranking
                .spread_groups
                .best(spread_group, count)
                .map(|head| RankedNode::of(head, group_state.spread))
        });
        let mut best: Vec<RankedNode> = bests.collect();
        best.sort_by(RankedNode::order);
        best.into_iter().take(count).map(|best| best.position).collect()
    }

    /// The position of this node, if it is feasible.
    pub fn only(&mut self, row: NodeRow, proposed: &Proposed) -> Option<u32> {
        let position = self.node_columns.position(row)?;
        let open = self.ranking.is_feasible(position) && !self.group_state(position).closed;
        (open && self.has_free_ports(position, proposed)).then_some(position)
    }

    pub fn row(&self, position: u32) -> NodeRow {
        self.node_columns.rows[position as usize]
    }

    /// The plan places one more of the group there.
    pub fn placed(&mut self, position: u32, proposed: &Proposed) {
        let node = self.touch(position);
        node.of_group += 1;
        node.of_job += 1;
        self.count(self.row(position), true, 1);
        self.refresh_groups();
        self.refresh(position, proposed);
    }

    /// The plan stops an allocation of the group, so that its successor may be placed there.
    pub fn left(&mut self, alloc: &Alloc, proposed: &Proposed) {
        self.moved(alloc, -1, proposed);
    }

    /// The plan does not stop it after all.
    pub fn stayed(&mut self, alloc: &Alloc, proposed: &Proposed) {
        self.moved(alloc, 1, proposed);
    }

    fn moved(&mut self, alloc: &Alloc, change: i32, proposed: &Proposed) {
        if !alloc.is_terminal() {
            self.count(alloc.node, true, change);
            self.refresh_groups();
        }
        if let Some(position) = self.node_columns.position(alloc.node) {
            let node = self.touch(position);
            if alloc.takes_room() {
                node.of_group = node.of_group.saturating_add_signed(change);
                node.of_job = node.of_job.saturating_add_signed(change);
            }
            self.refresh(position, proposed);
        }
    }

    /// The counts of the ranking, and the nodes that `distinct_property` rules out.
    pub fn metric(&mut self, everything: bool) -> model::document::AllocationMetric {
        let tally = self.tally();
        let example = |class| self.node_columns.example(class);
        tally.metric(self.state, &self.ranking.static_checks.reasons, example, everything)
    }

    fn tally(&mut self) -> ReasonTally {
        let mut tally = self.ranking.tally.clone();
        if self.group_states.iter().any(|group_state| group_state.closed) {
            for position in 0..self.node_columns.len() as u32 {
                if !self.ranking.is_feasible(position) {
                    continue;
                }
                if let Some(reason) = self.property_violation(position) {
                    tally.count(
                        &self.ranking.static_checks.reasons,
                        reason,
                        self.node_columns.class[position as usize],
                        1,
                    );
                }
            }
        }
        tally
    }

    /// How many nodes the last selection visited; `None`: all.
    pub fn visited(&self) -> Option<usize> {
        self.sample.as_ref().map(|sample| sample.visited)
    }

    pub fn node_ranking(&self) -> &NodeRanking {
        self.ranking
    }

    fn property_violation(&mut self, position: u32) -> Option<ReasonId> {
        let node = self.state.nodes.cold(self.row(position));
        let values = &self.ranking.values()[self.spreads.len()..];
        let text = self
            .properties
            .iter()
            .zip(values)
            .find_map(|(property, values)| property.violation(node, values))?;
        Some(self.ranking.static_checks.reasons.filter(&text))
    }

    fn group_state(&mut self, position: u32) -> &mut GroupState {
        &mut self.group_states[self.ranking.spread_groups.number(position) as usize]
    }

    /// Computes the spread groups again after counts have changed.
    fn refresh_groups(&mut self) {
        self.spreads.settle();
        for (number, spread_group) in self.ranking.spread_groups.iter().enumerate() {
            let (spread, closed) =
                (self.spreads.score(&spread_group.values), self.is_used_up(&spread_group.values));
            let group_state = &mut self.group_states[number];
            if (group_state.spread, group_state.closed) != (spread, closed) {
                *group_state = GroupState { spread, closed, best: None };
            }
        }
    }

    fn is_used_up(&self, spread_group: &[u32]) -> bool {
        let of_properties = spread_group.get(self.spreads.len()..).unwrap_or_default();
        self.properties.iter().zip(of_properties).any(|(property, value)| property.is_used_up(*value))
    }

    /// One more or one less of the job's allocations counts for the values of its node.
    fn count(&mut self, row: NodeRow, same_group: bool, change: i32) {
        if self.properties.is_empty() && self.spreads.is_empty() {
            return;
        }
        let Some(position) = self.node_columns.position(row) else { return };
        let (of_spreads, of_properties) =
            self.ranking.spread_groups.values(position).split_at(self.spreads.len());
        for (property, value) in self.properties.iter_mut().zip(of_properties) {
            if property.job_wide || same_group {
                property.count(*value, change);
            }
        }
        if same_group {
            self.spreads.count(of_spreads, change);
        }
    }

    /// Ports are checked only on the node that is about to be chosen. Without free ones it becomes infeasible.
    fn has_free_ports(&mut self, position: u32, proposed: &Proposed) -> bool {
        if self.ranking.requirements.dedicated.addresses.is_empty() {
            return true;
        }
        // Whether there are free ports does not depend on where the search begins.
        let mut anywhere = Rng::new(0);
        let assign_ports = self.ranking.requirements.dedicated.assign_ports(
            self.state,
            self.row(position),
            proposed,
            &mut anywhere,
        );
        let Err(failed) = assign_ports else { return true };
        let reason = self.ranking.static_checks.reasons.exhausted_late(&failed);
        self.put(position, Feasibility::Infeasible(reason));
        false
    }

    fn touch(&mut self, position: u32) -> &mut ChangedNode {
        let mark = &mut self.marks[position as usize];
        if *mark == 0 {
            let saved = self.ranking.save(position);
            self.changed_nodes.push(ChangedNode {
                position,
                saved,
                of_group: 0,
                of_job: 0,
                penalised: false,
            });
            *mark = self.changed_nodes.len() as u32;
        }
        &mut self.changed_nodes[*mark as usize - 1]
    }

    fn refresh(&mut self, position: u32, proposed: &Proposed) {
        let feasibility = match self.assess(position, proposed) {
            Ok(score) => Feasibility::Feasible(score.score_sum()),
            Err(feasibility) => feasibility,
        };
        self.put(position, feasibility);
    }

    fn put(&mut self, position: u32, feasibility: Feasibility) {
        if let Some(preemptions) = self.preemptions.get_mut(position as usize) {
            *preemptions = PreemptionResult::NotTried;
        }
        self.ranking.put(self.state, self.node_columns, position, feasibility);
        if let Some(group_state) =
            self.group_states.get_mut(self.ranking.spread_groups.number(position) as usize)
        {
            group_state.best = None;
        }
    }

    /// The full score of a node as things stand.
    ///
    /// # Errors
    /// Its feasibility, if it is not feasible.
    fn assess(&mut self, position: u32, proposed: &Proposed) -> Result<NodeScore, Feasibility> {
        let scored = self.ranking.score_node(self.state, self.node_columns, position, proposed);
        let (of_group, of_job) =
            self.changed_node(position).map_or((0, 0), |node| (node.of_group, node.of_job));
        let shared = match self.distinct_hosts {
            Some(Distinct::Job) => of_job > 0,
            Some(Distinct::Group) => of_group > 0,
            None => false,
        };
        match scored {
            Ok(_) if shared => Err(Feasibility::Infeasible(DISTINCT_HOSTS)),
            Err(Feasibility::Infeasible(reason))
                if shared && self.ranking.static_checks.reasons.get(reason).exhausted =>
            {
                Err(Feasibility::Infeasible(DISTINCT_HOSTS))
            }
            Ok(base_score) => Ok(self.score(position, base_score)),
            Err(feasibility) => Err(feasibility),
        }
    }

    fn changed_node(&self, position: u32) -> Option<&ChangedNode> {
        let mark = self.marks[position as usize] as usize;
        mark.checked_sub(1).map(|at| &self.changed_nodes[at])
    }

    fn score(&self, position: u32, base_score: BaseScore) -> NodeScore {
        let (of_group, penalised) =
            self.changed_node(position).map_or((0, false), |node| (node.of_group, node.penalised));
        NodeScore::new(base_score, of_group, self.count, penalised)
    }

    fn shown(&mut self, position: u32, proposed: &Proposed) -> Option<NodeScoreMeta> {
        let score = self.assess(position, proposed).ok()?;
        let spread = self.group_state(position).spread;
        let id = self.state.nodes.cold(self.row(position)).id;
        Some(NodeScore { spread, ..score }.document(id.to_string()))
    }
}

impl RankedNode {
    fn of(head: GroupBest, spread: f64) -> RankedNode {
        let score_sum = head.score_sum.and(spread);
        RankedNode { mean: score_sum.mean(), sum: score_sum.sum, position: head.position }
    }

    fn order(one: &RankedNode, other: &RankedNode) -> Ordering {
        if one.beats(other) { Ordering::Less } else { Ordering::Greater }
    }

    fn beats(&self, other: &RankedNode) -> bool {
        if self.mean != other.mean {
            return self.mean > other.mean;
        }
        if self.sum != other.sum {
            return self.sum > other.sum;
        }
        self.position < other.position
    }
}

impl Drop for EvalRanking<'_> {
    fn drop(&mut self) {
        for ChangedNode { position, saved, .. } in self.changed_nodes.drain(..) {
            self.marks[position as usize] = 0;
            self.ranking.restore(self.state, self.node_columns, position, saved);
        }
    }
}
