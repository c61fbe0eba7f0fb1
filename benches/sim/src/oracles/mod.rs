//! What clients and readers received, against what is true.

mod jobs;
mod stream;

pub use stream::TRUTH;

use crate::fact::Check;

/// All of them, before anything is received.
pub fn all() -> Vec<Box<dyn Check>> {
    vec![Box::<jobs::Writes>::default(), Box::<stream::Streams>::default()]
}
