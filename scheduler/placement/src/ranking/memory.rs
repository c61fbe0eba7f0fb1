//! What a worker keeps from one evaluation to the next: a cache, which changes no decision.

use state::State;

use crate::feasibility::requirements::Requirements;
use crate::ranking::node_columns::NodeColumns;
use crate::ranking::node_ranking::NodeRanking;

/// Most rankings that are kept; the least recently used one is dropped first. A ranking of 100,000 nodes takes about 2
/// MB.
const RANKINGS_KEPT: usize = 16;

/// The columns of all nodes, and the rankings that were used last.
///
/// It may be of any state: what is out of date is updated or rebuilt, so that decisions are the same with and without
/// it.
#[derive(Debug, Default)]
pub struct Memory {
    node_columns: Option<NodeColumns>,
    /// Newest first.
    rankings: Vec<NodeRanking>,
    /// A zero for each node.
    marks: Vec<u32>,
}

/// A ranking with what it is used with.
#[derive(Debug)]
pub struct CachedRanking<'m> {
    pub node_columns: &'m NodeColumns,
    pub ranking: &'m mut NodeRanking,
    pub marks: &'m mut [u32],
}

impl Memory {
    /// Updates the columns to the state: once per evaluation.
    pub fn follow(&mut self, state: &State) {
        if !self.node_columns.as_mut().is_some_and(|node_columns| node_columns.follow(state)) {
            let node_columns = NodeColumns::new(state);
            self.rankings.clear();
            self.marks = vec![0; node_columns.len()];
            self.node_columns = Some(node_columns);
        }
    }

    /// The ranking for these requirements in the state that was followed last.
    pub fn ranking(&mut self, state: &State, requirements: &Requirements) -> CachedRanking<'_> {
        let node_columns = self.node_columns.get_or_insert_with(|| NodeColumns::new(state));
        let known = self.rankings.iter().position(|ranking| ranking.requirements == *requirements);
        let known = known.map(|at| self.rankings.remove(at));
        // Volumes change without any node changing, so rankings with volumes are not used again.
        let known = known.filter(|_| requirements.volumes.is_empty());
        let ranking = known.and_then(|mut ranking| ranking.follow(state, node_columns).then_some(ranking));
        self.rankings.truncate(RANKINGS_KEPT - 1);
        self.rankings.insert(
            0,
            ranking.unwrap_or_else(|| NodeRanking::new(state, node_columns, requirements.clone())),
        );
        CachedRanking { node_columns, ranking: &mut self.rankings[0], marks: &mut self.marks }
    }
}
