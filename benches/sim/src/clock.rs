//! A machine's clock: people set it, and it runs a little too fast or too slow.

use base::{Duration, Rng, Time};

const MILLION: i128 = 1_000_000;

/// The clock of one machine. What shows the time of day and what only runs hang on the same crystal: they are equally fast,
/// and only the first is set.
#[derive(Clone, Debug)]
pub struct SimClock {
    /// The true time at which the speed changed last, and what the running clock showed then.
    since: Time,
    ran: Time,
    /// By how many parts in a million it is too fast.
    fast: i64,
    /// How far the time of day is ahead of what runs.
    offset: Duration,
}

impl SimClock {
    /// One that is right.
    pub fn new(now: Time) -> SimClock {
        SimClock { since: now, ran: now, fast: 0, offset: Duration::ZERO }
    }

    /// What only runs.
    pub fn running(&self, now: Time) -> Time {
        let elapsed = i128::from(now.0 - self.since.0);
        Time(self.ran.0 + (elapsed * self.speed()).div_euclid(MILLION) as i64)
    }

    /// The time of day.
    pub fn shows(&self, now: Time) -> Time {
        self.running(now).plus(self.offset)
    }

    /// How far the time of day is ahead of the true time.
    pub fn ahead(&self, now: Time) -> Duration {
        self.shows(now).since(now)
    }

    /// Sets the time of day so far ahead of the true time. Returns by how much that moved it.
    pub fn set(&mut self, now: Time, ahead: Duration) -> Duration {
        let by = Duration(ahead.0 - self.ahead(now).0);
        self.offset.0 += by.0;
        by
    }

    /// From now on it is too fast by so many parts in a million, or too slow.
    pub fn drift(&mut self, now: Time, fast: i64) {
        (self.ran, self.since, self.fast) = (self.running(now), now, fast);
    }

    pub fn fast(&self) -> i64 {
        self.fast
    }

    /// The first true time at which it shows this time of day, or more.
    pub fn due(&self, shown: Time) -> Time {
        let left = i128::from(shown.0) - i128::from(self.offset.0) - i128::from(self.ran.0);
        Time(self.since.0 + self.true_nanos(left))
    }

    /// How long it takes in truth until so much has passed by this clock.
    pub fn takes(&self, span: Duration) -> Duration {
        Duration(self.true_nanos(i128::from(span.0)))
    }

    /// How far what runs has run away from the true time.
    pub fn astray(&self, now: Time) -> Duration {
        Duration(self.running(now).since(now).0.abs())
    }

    fn speed(&self) -> i128 {
        MILLION + i128::from(self.fast)
    }

    /// Rounded up: not a nanosecond is missing then.
    fn true_nanos(&self, own: i128) -> i64 {
        -((-own * MILLION).div_euclid(self.speed())) as i64
    }
}

/// By how many parts in a million a clock is too fast, or too slow, at most `most`.
pub fn draw_speed(rng: &mut Rng, most: i64) -> i64 {
    rng.below(2 * most as u64 + 1) as i64 - most
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_secs(1_000);
    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_fast_clock_is_early_and_a_slow_one_late_by_proportion() {
        let later = NOW.plus(Duration::from_secs(100));
        for (fast, ran, takes) in [
            (0, 100_000, 10_000),
            (20_000, 102_000, 9_804),
            (-20_000, 98_000, 10_204),
            (100_000, 110_000, 9_091),
        ] {
            let mut clock = SimClock::new(NOW);
            clock.drift(NOW, fast);
            assert_eq!(clock.shows(later).since(NOW).as_millis(), ran, "{fast}");
            let truly = clock.takes(Duration::from_secs(10));
            assert_eq!((truly.0 + 500_000) / 1_000_000, takes, "{fast}");
            assert_eq!(clock.astray(later).0, (fast * 100_000).abs());
        }
    }

    #[test]
    fn a_deadline_is_over_when_it_is_due_and_not_a_nanosecond_before() {
        for fast in [-99_999, -20_000, -7, 0, 3, 19_999, 100_000] {
            let mut clock = SimClock::new(NOW);
            clock.set(NOW, Duration::from_secs(-7));
            clock.drift(NOW.plus(SECOND), fast);
            for span in [1, 2, 999_999_999, 123_456_789_012] {
                let deadline = clock.shows(NOW.plus(SECOND)).plus(Duration(span));
                let due = clock.due(deadline);
                assert!(
                    clock.shows(due) >= deadline && clock.shows(Time(due.0 - 1)) < deadline,
                    "{fast} {span}"
                );
            }
        }
    }

    #[test]
    fn setting_a_clock_moves_the_time_of_day_and_not_what_runs() {
        let mut clock = SimClock::new(NOW);
        clock.drift(NOW, 50_000);
        let later = NOW.plus(Duration::from_secs(20));
        let ran = clock.running(later);
        assert_eq!(clock.set(later, Duration::from_secs(60)), Duration::from_secs(59));
        assert_eq!((clock.ahead(later), clock.running(later)), (Duration::from_secs(60), ran));
        clock.drift(later, -50_000);
        assert_eq!(clock.running(later), ran, "another speed is no step");
    }
}
