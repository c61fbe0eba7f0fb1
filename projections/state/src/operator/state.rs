use base::Index;
use model::{Autopilot, SchedulerRules};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operator {
    /// `None` before the first leader wrote down what it was configured with.
    pub autopilot: Option<Configured<Autopilot>>,
    /// `None` before the cluster was founded.
    pub scheduler: Option<Configured<SchedulerRules>>,
}

/// A configuration and when it was set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configured<R> {
    pub rules: R,
    pub created: Index,
    pub modified: Index,
}

impl<R> Configured<R> {
    /// Its modify index; zero for none.
    pub fn index(configured: Option<&Configured<R>>) -> Index {
        configured.map_or(Index::ZERO, |configured| configured.modified)
    }
}
