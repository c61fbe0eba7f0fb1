use std::fmt;

use rkyv::{Archive, Deserialize, Serialize};

/// The dense number of a batch in the log, +1 each: the public index of everything.
///
/// 0 means "unset"; the first batch is 1.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Archive,
    Serialize,
    Deserialize,
    serde::Serialize,
    serde::Deserialize,
)]
pub struct Index(pub u64);

impl Index {
    pub const ZERO: Index = Index(0);

    pub fn next(self) -> Index {
        Index(self.0 + 1)
    }
}

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// One leadership: appends are conditional on it.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Debug,
    Archive,
    Serialize,
    Deserialize,
    serde::Serialize,
    serde::Deserialize,
)]
pub struct Term(pub u64);

/// A moment, in nanoseconds since the Unix epoch. 0 means "unset".
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Debug,
    Archive,
    Serialize,
    Deserialize,
    serde::Serialize,
    serde::Deserialize,
)]
pub struct Time(pub i64);

impl Time {
    pub const ZERO: Time = Time(0);

    pub const fn from_secs(secs: i64) -> Time {
        Time(secs * 1_000_000_000)
    }

    pub fn secs(self) -> i64 {
        self.0.div_euclid(1_000_000_000)
    }

    pub fn plus(self, duration: crate::Duration) -> Time {
        Time(self.0.saturating_add(duration.0))
    }

    /// How long after `earlier` this is; negative if it lies before.
    pub fn since(self, earlier: Time) -> crate::Duration {
        crate::Duration(self.0.saturating_sub(earlier.0))
    }
}
