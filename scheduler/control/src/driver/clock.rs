//! The only look at the clock, and the only source of entropy.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use base::{Duration, Time};

pub fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

/// The clock that shows the time, beside one that only runs: when somebody sets the first, or a machine sleeps, the two
/// are not as far apart any more.
#[derive(Debug)]
pub struct Clock {
    started: Instant,
    apart: Apart,
}

impl Clock {
    pub fn start() -> Clock {
        Clock { started: Instant::now(), apart: Apart(now()) }
    }

    /// What it shows, and by how much it was set since the last look, if it was.
    pub fn look(&mut self) -> (Time, Option<Duration>) {
        let now = now();
        (now, self.apart.moved(now, self.started.elapsed().into()))
    }
}

/// What counts as set: less is how a time service keeps a clock right, and how far apart two looks are.
const STEP_MIN: Duration = Duration::from_millis(500);

/// What the clock showed when the other one began, as it seems now.
#[derive(Debug)]
struct Apart(Time);

impl Apart {
    fn moved(&mut self, shown: Time, running: Duration) -> Option<Duration> {
        let began = Time(shown.0 - running.0);
        let by = Duration(began.0 - self.0.0);
        if by.0.abs() < STEP_MIN.0 {
            return None;
        }
        self.0 = began;
        Some(by)
    }
}

pub fn entropy() -> u64 {
    u64::from_le_bytes(entropy_bytes()[..8].try_into().expect("16 bytes hold 8"))
}

pub fn entropy_bytes() -> [u8; 16] {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system has entropy");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_the_clock_is_seen_once_and_running_is_none() {
        let secs = Duration::from_secs;
        let mut apart = Apart(Time::from_secs(1_000));
        assert_eq!(apart.moved(Time::from_secs(1_030), secs(30)), None);
        assert_eq!(apart.moved(Time::from_secs(4_640), secs(40)), Some(secs(3_600)));
        assert_eq!(apart.moved(Time::from_secs(4_650), secs(50)), None);
        assert_eq!(apart.moved(Time::from_secs(1_060), secs(60)), Some(Duration(-secs(3_600).0)));
    }

    #[test]
    fn a_clock_that_is_put_right_little_by_little_is_followed() {
        let mut apart = Apart(Time::from_secs(1_000));
        let at = |ms: i64| Time(Time::from_secs(1_000).0 + ms * 1_000_000);
        assert_eq!(apart.moved(at(10_300), Duration::from_millis(10_000)), None);
        assert_eq!(apart.moved(at(20_600), Duration::from_millis(20_000)), Some(Duration::from_millis(600)));
        assert_eq!(apart.moved(at(30_900), Duration::from_millis(30_000)), None);
    }
}
