//! What is worth keeping from one evaluation to the next. It makes decisions quicker and changes none.

use state::State;

use crate::board::Board;
use crate::fleet::Fleet;
use crate::shape::Shape;

/// Boards that are kept; the one that was not asked for longest goes first. A board of 100,000 nodes takes about 2 MB.
const BOARDS_KEPT: usize = 16;

/// The columns of the cluster and boards of the shapes that were asked for lately.
///
/// Whatever it remembers, and of whatever state, a decision is the same: what is out of date is brought up to the
/// state that is asked about, or built anew.
#[derive(Debug, Default)]
pub struct Memory {
    fleet: Option<Fleet>,
    /// Newest first.
    boards: Vec<Board>,
    /// A zero for each node.
    marks: Vec<u32>,
}

/// A board and what belongs to it.
#[derive(Debug)]
pub struct Kept<'m> {
    pub fleet: &'m Fleet,
    pub board: &'m mut Board,
    pub marks: &'m mut [u32],
}

impl Memory {
    /// Brings the columns up to the state: once per evaluation.
    pub fn follow(&mut self, state: &State) {
        if !self.fleet.as_mut().is_some_and(|fleet| fleet.follow(state)) {
            let fleet = Fleet::new(state);
            self.boards.clear();
            self.marks = vec![0; fleet.len()];
            self.fleet = Some(fleet);
        }
    }

    /// The board of a shape, as things stand in the state that was followed last.
    pub fn board(&mut self, state: &State, shape: &Shape) -> Kept<'_> {
        let fleet = self.fleet.get_or_insert_with(|| Fleet::new(state));
        let known = self.boards.iter().position(|board| board.shape == *shape);
        let known = known.map(|at| self.boards.remove(at));
        // Volumes change without any node changing: such a board is not taken up again.
        let known = known.filter(|_| shape.volumes.is_empty());
        let board = known.and_then(|mut board| board.follow(state, fleet).then_some(board));
        self.boards.truncate(BOARDS_KEPT - 1);
        self.boards.insert(0, board.unwrap_or_else(|| Board::new(state, fleet, shape.clone())));
        Kept { fleet, board: &mut self.boards[0], marks: &mut self.marks }
    }
}
