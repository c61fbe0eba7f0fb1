use std::collections::BTreeMap;

/// What Prometheus' own libraries show of a summary that Nomad's agents keep.
pub const QUANTILES: [f64; 3] = [0.5, 0.9, 0.99];

/// Each bucket reaches from its lower bound to this much of it, so that a quantile is wrong by two percent at most.
const GROWTH: f64 = 1.04;

/// How many values there were of each size. What lasted from a nanosecond to a day, in milliseconds, falls into 820
/// buckets; those that are empty take no memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sizes(BTreeMap<i16, u32>);

impl Sizes {
    pub(crate) fn add(&mut self, value: f64) {
        let count = self.0.entry(bucket(value)).or_default();
        *count = count.saturating_add(1);
    }

    /// The smallest value that this part of all values does not exceed; `None` if there are none.
    pub(crate) fn quantile(&self, part: f64) -> Option<f64> {
        let all: f64 = self.0.values().map(|count| f64::from(*count)).sum();
        let mut below = 0.0;
        let reaches = |(_, count): &(&i16, &u32)| {
            below += f64::from(**count);
            below >= part * all
        };
        self.0.iter().find(reaches).map(|(bucket, _)| middle(*bucket))
    }
}

/// Those that are not above zero share one.
fn bucket(value: f64) -> i16 {
    if value > 0.0 { (value.ln() / GROWTH.ln()).floor() as i16 } else { i16::MIN }
}

fn middle(bucket: i16) -> f64 {
    if bucket == i16::MIN { 0.0 } else { GROWTH.powf(f64::from(bucket) + 0.5) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = f64>) -> Sizes {
        let mut sizes = Sizes::default();
        values.into_iter().for_each(|value| sizes.add(value));
        sizes
    }

    #[test]
    fn a_quantile_is_what_that_part_of_the_values_stays_below() {
        let sizes = of((1..=1_000).map(f64::from));
        for (part, expected) in [(0.5, 500.0), (0.9, 900.0), (0.99, 990.0), (1.0, 1_000.0)] {
            let found = sizes.quantile(part).unwrap();
            assert!((found / expected - 1.0).abs() < 0.03, "{part}: {found}");
        }
        let tiny = of([1e-6, 1e-6, 86_400_000.0]);
        assert!((tiny.quantile(0.5).unwrap() / 1e-6 - 1.0).abs() < 0.03);
        assert!((tiny.quantile(0.99).unwrap() / 86_400_000.0 - 1.0).abs() < 0.03);
    }

    #[test]
    fn of_nothing_there_is_no_quantile_and_zero_stays_zero() {
        assert_eq!(of([]).quantile(0.5), None);
        assert_eq!(of([0.0, -1.0, 5.0]).quantile(0.5), Some(0.0));
    }
}
