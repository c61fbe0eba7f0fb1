//! What nodes were answered last when they asked for their allocations.
//!
//! That allocations of a node were collected leaves nothing newer behind, so a node that asks for the first time gets the
//! index of the whole table. Without a memory between its calls every call would be the first one, and would be answered
//! at once as soon as any allocation of the cluster has changed.

use std::collections::HashMap;

use model::NodeId;
use parking_lot::Mutex;

/// Nodes that are remembered. When there are more, all are forgotten, and each is answered once too often.
const POLLS_MAX: usize = 200_000;

/// By node: the index of the answer, and how many allocations it had.
#[derive(Default)]
pub(crate) struct Polls(Mutex<HashMap<NodeId, (u64, usize)>>);

impl Polls {
    /// How many allocations the node knows of, if it asks for what is newer than the answer that it got here.
    pub(crate) fn known(&self, node: NodeId, newer_than: u64) -> Option<usize> {
        let answered = self.0.lock().get(&node).copied();
        answered.filter(|(index, _)| *index == newer_than).map(|(_, count)| count)
    }

    pub(crate) fn answered(&self, node: NodeId, index: u64, count: usize) {
        let mut answers = self.0.lock();
        if answers.len() >= POLLS_MAX {
            answers.clear();
        }
        answers.insert(node, (index, count));
    }
}

#[cfg(test)]
mod tests {
    use base::Uuid;

    use super::*;

    #[test]
    fn only_the_last_answer_counts() {
        let (polls, node) = (Polls::default(), NodeId(Uuid::from(1)));
        assert_eq!(polls.known(node, 0), None);
        polls.answered(node, 7, 2);
        polls.answered(node, 9, 1);
        let known = |index| polls.known(node, index);
        assert_eq!([known(7), known(8), known(9), known(10)], [None, None, Some(1), None]);
        assert_eq!(polls.known(NodeId(Uuid::from(2)), 9), None);
    }
}
