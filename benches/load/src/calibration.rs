//! A loop that is always the same: how much processor time it takes says how fast the host is just now, so that runs on
//! different hosts, or beside other work, can be compared.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Duration;

use base::Rng;
use rustix::time::{ClockId, clock_gettime};

/// The least of so many: whatever disturbs makes it longer.
const ROUNDS: usize = 5;

const ENTRIES: u64 = 20_000;

/// The processor time of one round in this thread.
pub(crate) fn measure() -> Duration {
    (0..ROUNDS).map(|_| round()).min().unwrap_or_default()
}

fn now() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec.max(0) as u32)
}

/// What servers do most: texts are made, put in order, found, copied and added up.
fn round() -> Duration {
    let began = now();
    let mut rng = Rng::new(1);
    let mut tree = BTreeMap::new();
    for number in 0..ENTRIES {
        tree.insert(rng.uuid().to_string(), number);
    }
    let mut bytes = Vec::new();
    for (text, number) in &tree {
        bytes.extend_from_slice(text.as_bytes());
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    let mut sum = 0u64;
    for _ in 0..ROUNDS {
        let copy = black_box(bytes.clone());
        sum = copy.iter().fold(sum, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
    }
    black_box(sum);
    now().saturating_sub(began)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loop_takes_time_and_not_much_of_it() {
        let spent = measure();
        assert!(spent > Duration::from_micros(100) && spent < Duration::from_secs(2), "{spent:?}");
    }
}
