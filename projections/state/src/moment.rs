use base::{Index, Time};

/// When a batch was decided: the only time a fold knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    pub index: Index,
    pub time: Time,
    /// Of the batch: it says what its events mean.
    pub epoch: u16,
}
