//! The layers, each of which runs a seed and says how it ended.

use base::Duration;

use crate::fact::Violation;
use crate::planted::Bug;
use crate::{model, regions, replicated};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// Everything above the log, over a model of it.
    Model,
    /// The log itself: consensus and the segment store.
    Log,
    /// Several regions, each of which is a whole cluster of the first layer.
    Regions,
}

/// What to run.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub seed: u64,
    pub bug: Option<Bug>,
    /// Keep the whole story, not only its end.
    pub story: bool,
    pub steps_max: u64,
}

/// How a run ended.
#[derive(Debug)]
pub struct Verdict {
    /// What was drawn before the first step, for people.
    pub options: String,
    pub hash: blake3::Hash,
    pub steps: u64,
    pub batches: usize,
    /// The farthest that a clock which nobody set has run away from the true time.
    pub astray: Duration,
    pub violation: Option<Violation>,
    pub story: Vec<String>,
}

impl Run {
    /// A seed as it is, to its end.
    pub fn of(seed: u64) -> Run {
        Run { seed, bug: None, story: false, steps_max: u64::MAX }
    }
}

impl Layer {
    pub const ALL: [Layer; 3] = [Layer::Model, Layer::Log, Layer::Regions];

    pub fn name(self) -> &'static str {
        match self {
            Layer::Model => "model",
            Layer::Log => "log",
            Layer::Regions => "regions",
        }
    }

    /// Runs one seed to its end or to the first sentence that does not hold.
    pub fn run(self, run: Run) -> Verdict {
        match self {
            Layer::Model => model::run(run),
            Layer::Log => replicated::run(run),
            Layer::Regions => regions::run(run),
        }
    }
}
