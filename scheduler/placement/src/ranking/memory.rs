//! What is worth keeping from one evaluation to the next. It makes decisions quicker and changes none.

use state::State;

use crate::feasibility::requirements::Requirements;
use crate::ranking::node_columns::NodeColumns;
use crate::ranking::node_ranking::NodeRanking;

/// Boards that are kept; the one that was not asked for longest goes first. A board of 100,000 nodes takes about 2 MB.
const RANKINGS_KEPT: usize = 16;

/// The columns of the cluster and boards of the shapes that were asked for lately.
///
/// Whatever it remembers, and of whatever state, a decision is the same: what is out of date is brought up to the
/// state that is asked about, or built anew.
#[derive(Debug, Default)]
pub struct Memory {
    node_columns: Option<NodeColumns>,
    /// Newest first.
    rankings: Vec<NodeRanking>,
    /// A zero for each node.
    marks: Vec<u32>,
}

/// A board and what belongs to it.
#[derive(Debug)]
pub struct CachedRanking<'m> {
    pub node_columns: &'m NodeColumns,
    pub ranking: &'m mut NodeRanking,
    pub marks: &'m mut [u32],
}

impl Memory {
    /// Brings the columns up to the state: once per evaluation.
    pub fn follow(&mut self, state: &State) {
        if !self.node_columns.as_mut().is_some_and(|node_columns| node_columns.follow(state)) {
            let node_columns = NodeColumns::new(state);
            self.rankings.clear();
            self.marks = vec![0; node_columns.len()];
            self.node_columns = Some(node_columns);
        }
    }

    /// The board of a shape, as things stand in the state that was followed last.
    pub fn ranking(&mut self, state: &State, requirements: &Requirements) -> CachedRanking<'_> {
        let node_columns = self.node_columns.get_or_insert_with(|| NodeColumns::new(state));
        let known = self.rankings.iter().position(|ranking| ranking.requirements == *requirements);
        let known = known.map(|at| self.rankings.remove(at));
        // Volumes change without any node changing: such a board is not taken up again.
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
