use model::VariableKey;

use crate::row::{AllocRow, DeploymentRow, EvalRow, JobRow, NodeRow};

/// What a batch touched, for those who act after the commit. A row may stand in it more than once.
#[derive(Clone, Debug, Default)]
pub struct Delta {
    pub nodes: Vec<NodeRow>,
    pub jobs: Vec<JobRow>,
    pub evals: Vec<EvalRow>,
    pub allocs: Vec<AllocRow>,
    pub deployments: Vec<DeploymentRow>,
    pub variables: Vec<VariableKey>,
    /// Some node class gained free resources: blocked evaluations may have become runnable.
    pub capacity: bool,
    /// Everything may be another: a snapshot was restored, and row numbers stand for other objects than before.
    pub restored: bool,
}

/// Most rows of batches that are put together: above, it is only known that anything may have changed.
const TOGETHER_MAX: usize = 65_536;

impl Delta {
    /// What is known when another state takes the place of the one before.
    pub fn everything() -> Delta {
        Delta { capacity: true, restored: true, ..Delta::default() }
    }

    /// Adds what a later batch touched.
    pub fn add(&mut self, later: Delta) {
        let Delta { nodes, jobs, evals, allocs, deployments, variables, capacity, restored } = later;
        self.nodes.extend(nodes);
        self.jobs.extend(jobs);
        self.evals.extend(evals);
        self.allocs.extend(allocs);
        self.deployments.extend(deployments);
        self.variables.extend(variables);
        self.capacity |= capacity;
        self.restored |= restored;
        if self.restored || self.rows() > TOGETHER_MAX {
            *self = Delta::everything();
        }
    }

    /// Rows that it names, some perhaps more than once.
    pub fn rows(&self) -> usize {
        let objects = self.nodes.len() + self.jobs.len() + self.evals.len() + self.allocs.len();
        objects + self.deployments.len() + self.variables.len()
    }

    pub(crate) fn node_may_have_room(&mut self, node: NodeRow) {
        self.nodes.push(node);
        self.capacity = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_batches_only_that_there_were_some_is_kept() {
        let one = || Delta { jobs: vec![JobRow(1)], ..Delta::default() };
        let mut together = one();
        together.add(Delta { nodes: vec![NodeRow(2)], capacity: true, ..Delta::default() });
        assert_eq!((together.jobs.len(), together.nodes.len()), (1, 1));
        assert!(together.capacity && !together.restored);
        (0..TOGETHER_MAX).for_each(|_| together.add(one()));
        assert!(together.restored && together.jobs.len() <= 1, "{} rows", together.jobs.len());
    }
}
