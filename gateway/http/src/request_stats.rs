//! How many requests there were and how long they took, in intervals of ten seconds, as Nomad's agents report it.

use std::time::{Duration, Instant};

use api::SampledValue;
use axum::extract::{Request, State as With};
use axum::middleware::Next;
use axum::response::Response;
use parking_lot::Mutex;

use crate::app_state::AppState;

const INTERVAL: Duration = Duration::from_secs(10);

/// What was measured in the newest interval, and in the one before it.
#[derive(Debug)]
pub(crate) struct RequestStats(Mutex<Intervals>);

#[derive(Debug)]
struct Intervals {
    began: Instant,
    current: Tally,
    /// The newest interval that is over; `None` in the first one.
    last: Option<Tally>,
}

/// Milliseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    count: u32,
    sum: f64,
    squares: f64,
    min: f64,
    max: f64,
}

impl RequestStats {
    pub(crate) fn new(now: Instant) -> RequestStats {
        RequestStats(Mutex::new(Intervals { began: now, current: Tally::default(), last: None }))
    }

    fn took(&self, now: Instant, took: Duration) {
        let mut intervals = self.0.lock();
        intervals.advance(now);
        intervals.current.add(took.as_secs_f64() * 1_000.0);
    }

    /// How many requests, and how long each took until its answer began.
    pub(crate) fn report(&self, now: Instant) -> (SampledValue, SampledValue) {
        let mut intervals = self.0.lock();
        intervals.advance(now);
        let tally = intervals.last.unwrap_or(intervals.current);
        (tally.ones().sampled("sojourn.http.requests"), tally.sampled("sojourn.http.request_ms"))
    }
}

impl Intervals {
    fn advance(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.began).as_secs() / INTERVAL.as_secs();
        if passed == 0 {
            return;
        }
        let over = std::mem::take(&mut self.current);
        self.last = Some(if passed == 1 { over } else { Tally::default() });
        self.began += INTERVAL * u32::try_from(passed).unwrap_or(u32::MAX);
    }
}

impl Tally {
    fn add(&mut self, value: f64) {
        (self.min, self.max) = match self.count {
            0 => (value, value),
            _ => (self.min.min(value), self.max.max(value)),
        };
        self.count = self.count.saturating_add(1);
        self.sum += value;
        self.squares += value * value;
    }

    /// As many values, each of them one.
    fn ones(&self) -> Tally {
        let mut ones = Tally { count: self.count, sum: self.count.into(), ..Tally::default() };
        if self.count > 0 {
            (ones.squares, ones.min, ones.max) = (ones.sum, 1.0, 1.0);
        }
        ones
    }

    fn sampled(&self, name: &str) -> SampledValue {
        let count = f64::from(self.count);
        let mean = if self.count == 0 { 0.0 } else { self.sum / count };
        let spread = (self.squares - self.sum * mean).max(0.0);
        SampledValue {
            name: name.to_string(),
            count: self.count.into(),
            rate: self.sum / INTERVAL.as_secs_f64(),
            sum: self.sum,
            min: self.min,
            max: self.max,
            mean,
            stddev: if self.count < 2 { 0.0 } else { (spread / (count - 1.0)).sqrt() },
            ..SampledValue::default()
        }
    }
}

/// Measures every request that comes to a route.
pub(crate) async fn measure(With(server): With<AppState>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let response = next.run(request).await;
    server.request_stats.took(Instant::now(), began.elapsed());
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn an_interval_is_reported_when_it_is_over_and_the_first_one_at_once() {
        let start = Instant::now();
        let stats = RequestStats::new(start);
        stats.took(start, ms(2));
        stats.took(start, ms(4));
        let (number, times) = stats.report(start);
        assert_eq!((number.count, number.sum, number.rate), (2, 2.0, 0.2));
        assert_eq!((times.min, times.max, times.mean, times.sum), (2.0, 4.0, 3.0, 6.0));
        assert!((times.stddev - 2_f64.sqrt()).abs() < 1e-9);
        stats.took(start + INTERVAL, ms(9));
        assert_eq!(stats.report(start + INTERVAL).1.count, 2, "the last one that is over");
        assert_eq!(stats.report(start + INTERVAL * 2).1.max, 9.0);
        assert_eq!(stats.report(start + INTERVAL * 9).1, RequestStats::new(start).report(start).1);
    }
}
