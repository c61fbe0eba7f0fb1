//! The only uses of the host's clock and entropy in this crate.

use base::{Rng, Time};

/// The host's time.
pub fn now() -> Time {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Time(since_epoch.map_or(0, |elapsed| i64::try_from(elapsed.as_nanos()).unwrap_or(i64::MAX)))
}

/// A seed nobody can guess.
pub fn seed() -> u64 {
    getrandom::u64().expect("the host has entropy")
}

/// A span below `bound`, evenly spread; zero for no bound.
pub fn jitter(rng: &mut Rng, bound: std::time::Duration) -> std::time::Duration {
    let nanos = u64::try_from(bound.as_nanos()).unwrap_or(u64::MAX);
    if nanos == 0 { bound } else { std::time::Duration::from_nanos(rng.below(nanos)) }
}
