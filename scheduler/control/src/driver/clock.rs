//! The only look at the clock, and the only source of entropy.

use std::time::{SystemTime, UNIX_EPOCH};

use base::Time;

pub fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

pub fn entropy() -> u64 {
    u64::from_le_bytes(entropy_bytes()[..8].try_into().expect("16 bytes hold 8"))
}

pub fn entropy_bytes() -> [u8; 16] {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system has entropy");
    bytes
}
