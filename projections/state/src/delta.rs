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
    /// A snapshot was restored: row numbers stand for other objects than before.
    pub restored: bool,
}

impl Delta {
    pub(crate) fn node_may_have_room(&mut self, node: NodeRow) {
        self.nodes.push(node);
        self.capacity = true;
    }
}
