use std::fmt;

/// What a recorder did: one line each.
#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    /// Everything was listed.
    Listed {
        index: u64,
        /// Objects that the lists named.
        objects: usize,
        /// Of these, what was not known as it is.
        read: usize,
        /// What is not kept, because its job, the version of it or its node is gone.
        left_out: usize,
    },
    /// The stream said what changed.
    Followed { index: u64, events: usize },
    /// What happened in between is not known.
    Gap { from: u64, to: u64, reason: String },
    /// The cluster could not be read.
    Broken { why: String, again_in_secs: u64 },
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Report::Listed { index, objects, read, left_out } => {
                write!(f, "index {index}: listed {objects} objects, read {read}")?;
                if *left_out > 0 { write!(f, ", left out {left_out}") } else { Ok(()) }
            }
            Report::Followed { index, events } => write!(f, "index {index}: followed {events} events"),
            Report::Gap { from, to, reason } => write!(f, "gap between index {from} and {to}: {reason}"),
            Report::Broken { why, again_in_secs } => write!(f, "broken: {why}; again in {again_in_secs} s"),
        }
    }
}
