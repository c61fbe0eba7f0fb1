use base::Index;
use model::Autopilot;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operator {
    /// `None` before the first leader wrote down what it was configured with.
    pub autopilot: Option<Configured>,
}

/// A configuration and when it was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configured {
    pub rules: Autopilot,
    pub created: Index,
    pub modified: Index,
}
