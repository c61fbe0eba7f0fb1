//! What those outside were told, against what is true.

mod jobs;
mod stream;

pub use stream::TRUTH;

use crate::fact::Check;

/// All of them, with nothing heard yet.
pub fn all() -> Vec<Box<dyn Check>> {
    vec![Box::<jobs::Writes>::default(), Box::<stream::Streams>::default()]
}
