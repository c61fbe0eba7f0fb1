use std::sync::Arc;

use base::{Index, Uuid};
use bytes::Bytes;
use model::{Autopilot, Chunk, Image, SchedulerRules};
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

/// The pieces so far. Empty when nothing is being restored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Restoring {
    pub restore: Uuid,
    pub pieces: Arc<Vec<Bytes>>,
    pub bytes: u64,
    /// When the last piece came.
    pub last: Index,
}

impl Restoring {
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The pieces put together, as a state that was saved at `index`.
    pub fn image(&self, index: Index) -> Image {
        Image { index, chunks: self.pieces.iter().cloned().map(Chunk::new).collect() }
    }
}
