//! Latencies: all of them, with three digits.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// What is longer counts as this long.
const LONGEST_US: u64 = 3_600_000_000;

#[derive(Clone, Debug)]
pub(crate) struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies(
            Histogram::new_with_bounds(1, LONGEST_US, 3).expect("three digits of an hour in microseconds"),
        )
    }
}

impl Latencies {
    pub(crate) fn record(&mut self, span: Duration) {
        self.0.saturating_record((span.as_micros() as u64).clamp(1, LONGEST_US));
    }

    /// `None` when there were none.
    pub(crate) fn summary(&self) -> Option<LatencySummary> {
        let at = |share: f64| Duration::from_micros(self.0.value_at_quantile(share)).as_secs_f64() * 1_000.0;
        (!self.0.is_empty()).then(|| LatencySummary {
            count: self.0.len(),
            p50: at(0.50),
            p90: at(0.90),
            p99: at(0.99),
            p999: at(0.999),
            max: at(1.0),
        })
    }
}

/// In milliseconds.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct LatencySummary {
    pub count: u64,
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_all_that_was_recorded() {
        let mut latencies = Latencies::default();
        assert!(latencies.summary().is_none());
        for number in 1..=1_000 {
            latencies.record(Duration::from_millis(number));
        }
        latencies.record(Duration::from_secs(7_200));
        let summary = latencies.summary().unwrap();
        let near =
            |found: f64, wanted: f64| assert!((found / wanted - 1.0).abs() < 0.002, "{found} {wanted}");
        assert_eq!(summary.count, 1_001);
        near(summary.p50, 501.0);
        near(summary.p99, 991.0);
        near(summary.max, 3_600_000.0);
    }
}
