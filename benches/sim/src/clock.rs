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
