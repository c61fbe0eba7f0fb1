//! When jobs of an open loop are meant to be sent, whatever became of those before.

use std::time::Duration;

use base::Rng;

/// Arrivals of a Poisson process: independent of each other, so many a second on average.
#[derive(Debug)]
pub(crate) struct Arrivals {
    rng: Rng,
    mean: f64,
    next: f64,
}

impl Arrivals {
    pub(crate) fn new(seed: u64, rate: f64) -> Arrivals {
        Arrivals { rng: Rng::stream(seed, "arrivals"), mean: 1.0 / rate, next: 0.0 }
    }
}

impl Iterator for Arrivals {
    type Item = Duration;

    /// Since the beginning.
    fn next(&mut self) -> Option<Duration> {
        let uniform = (self.rng.below(1 << 32) as f64 + 1.0) / (1u64 << 32) as f64;
        self.next += -uniform.ln() * self.mean;
        Some(Duration::from_secs_f64(self.next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_come_at_the_rate_and_the_same_for_a_seed() {
        let times = |seed| Arrivals::new(seed, 500.0).take(10_000).collect::<Vec<_>>();
        let (first, again, other) = (times(1), times(1), times(2));
        assert_eq!(first, again);
        assert_ne!(first, other);
        assert!(first.is_sorted());
        let spent = first.last().unwrap().as_secs_f64();
        assert!((19.0..21.0).contains(&spent), "{spent}");
    }
}
