use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::quantiles::{QUANTILES, Sizes};

/// How long an interval is. The newest one that is over is shown, as Nomad's agents do.
pub const INTERVAL: Duration = Duration::from_secs(10);

/// Metrics with labels that are kept: beyond that, the one goes that was added to the longest ago. Some five of each task
/// that ran on a large node lately, in a few MiB.
pub const LABELLED_MAX: usize = 4096;

/// Names and values of labels.
pub type Labels = Vec<(&'static str, String)>;

/// What was measured, by the name of the metric and its labels.
#[derive(Debug, Default)]
pub struct Samples(Mutex<BTreeMap<(&'static str, Labels), Intervals>>);

/// One metric as it is shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sampled {
    pub name: &'static str,
    pub labels: Labels,
    /// In the interval.
    pub count: u32,
    pub sum: f64,
    pub min: f64,
    pub max: f64,
    pub mean: f64,
    pub stddev: f64,
    /// A second.
    pub rate: f64,
    /// [`QUANTILES`] of the interval; `None` if nothing was measured in it.
    pub quantiles: Option<[f64; 3]>,
    /// Since the agent started.
    pub total_count: u64,
    pub total_sum: f64,
}

#[derive(Debug)]
struct Intervals {
    began: Instant,
    /// When something was added last.
    added: Instant,
    current: Tally,
    /// The newest interval that is over; `None` in the first one.
    last: Option<Tally>,
    total_count: u64,
    total_sum: f64,
}

#[derive(Clone, Debug, Default)]
struct Tally {
    count: u32,
    sum: f64,
    squares: f64,
    min: f64,
    max: f64,
    sizes: Sizes,
}

impl Samples {
    /// Shows a metric before anything of it was measured.
    pub fn announce(&self, name: &'static str, now: Instant) {
        self.0.lock().entry((name, Labels::new())).or_insert_with(|| Intervals::new(now));
    }

    /// Something took this long: milliseconds are what Nomad's timers show.
    pub fn took(&self, name: &'static str, now: Instant, took: Duration) {
        self.add(name, now, took.as_secs_f64() * 1_000.0);
    }

    /// Something happened once more.
    pub fn happened(&self, name: &'static str, now: Instant) {
        self.add(name, now, 1.0);
    }

    /// Something happened once more, to whom the labels say.
    pub fn happened_to(&self, name: &'static str, labels: Labels, now: Instant) {
        self.add_to((name, labels), now, 1.0);
    }

    /// Something took this long, to whom the labels say.
    pub fn took_with(&self, name: &'static str, labels: Labels, now: Instant, took: Duration) {
        self.add_to((name, labels), now, took.as_secs_f64() * 1_000.0);
    }

    pub fn add(&self, name: &'static str, now: Instant, value: f64) {
        self.add_to((name, Labels::new()), now, value);
    }

    fn add_to(&self, key: (&'static str, Labels), now: Instant, value: f64) {
        let mut all = self.0.lock();
        if !key.1.is_empty() && !all.contains_key(&key) {
            make_room(&mut all);
        }
        let intervals = all.entry(key).or_insert_with(|| Intervals::new(now));
        intervals.advance(now);
        intervals.added = now;
        intervals.current.add(value);
        intervals.total_count += 1;
        intervals.total_sum += value;
    }

    /// Every metric that is kept, by name and labels.
    pub fn report(&self, now: Instant) -> Vec<Sampled> {
        let mut all = self.0.lock();
        let shown = all.iter_mut().map(|((name, labels), intervals)| {
            intervals.advance(now);
            Sampled { labels: labels.clone(), ..intervals.shown(name) }
        });
        shown.collect()
    }
}

fn make_room(all: &mut BTreeMap<(&'static str, Labels), Intervals>) {
    let labelled = || all.iter().filter(|((_, labels), _)| !labels.is_empty());
    if labelled().count() >= LABELLED_MAX {
        let oldest = labelled().min_by_key(|(_, intervals)| intervals.added).map(|(key, _)| key.clone());
        oldest.and_then(|oldest| all.remove(&oldest));
    }
}

impl Intervals {
    fn new(now: Instant) -> Intervals {
        let current = Tally::default();
        Intervals { began: now, added: now, current, last: None, total_count: 0, total_sum: 0.0 }
    }

    fn advance(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.began).as_secs() / INTERVAL.as_secs();
        if passed == 0 {
            return;
        }
        let over = std::mem::take(&mut self.current);
        self.last = Some(if passed == 1 { over } else { Tally::default() });
        self.began += INTERVAL * u32::try_from(passed).unwrap_or(u32::MAX);
    }

    fn shown(&self, name: &'static str) -> Sampled {
        let tally = self.last.as_ref().unwrap_or(&self.current);
        let count = f64::from(tally.count);
        let mean = if tally.count == 0 { 0.0 } else { tally.sum / count };
        let spread = (tally.squares - tally.sum * mean).max(0.0);
        Sampled {
            name,
            labels: Labels::new(),
            count: tally.count,
            sum: tally.sum,
            min: tally.min,
            max: tally.max,
            mean,
            stddev: if tally.count < 2 { 0.0 } else { (spread / (count - 1.0)).sqrt() },
            rate: tally.sum / INTERVAL.as_secs_f64(),
            quantiles: tally.quantiles(),
            total_count: self.total_count,
            total_sum: self.total_sum,
        }
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
        self.sizes.add(value);
    }

    /// Within what was measured: a bucket is a little wider than its values.
    fn quantiles(&self) -> Option<[f64; 3]> {
        let mut all = [0.0; 3];
        for (place, part) in all.iter_mut().zip(QUANTILES) {
            *place = self.sizes.quantile(part)?.clamp(self.min, self.max);
        }
        Some(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "sojourn.http.request_time";

    #[test]
    fn an_interval_is_shown_when_it_is_over_and_the_first_one_at_once() {
        let (start, samples) = (Instant::now(), Samples::default());
        let one = |now| samples.report(now).remove(0);
        assert!(samples.report(start).is_empty());
        samples.took(NAME, start, Duration::from_millis(2));
        samples.took(NAME, start, Duration::from_millis(4));
        let first = one(start);
        assert_eq!((first.min, first.max, first.mean, first.sum, first.rate), (2.0, 4.0, 3.0, 6.0, 0.6));
        assert!((first.stddev - 2_f64.sqrt()).abs() < 1e-9);
        let [half, _, most] = first.quantiles.unwrap();
        assert!((half - 2.0).abs() < 0.1 && (most - 4.0).abs() < 0.1, "{half} {most}");
        samples.took(NAME, start + INTERVAL, Duration::from_millis(9));
        assert_eq!(one(start + INTERVAL).count, 2, "the last one that is over");
        assert_eq!(one(start + INTERVAL * 2).max, 9.0);
        let silent = one(start + INTERVAL * 9);
        assert_eq!((silent.count, silent.total_count, silent.total_sum), (0, 3, 15.0));
        assert_eq!(silent.quantiles, None);
    }

    #[test]
    fn labels_are_counted_apart_and_the_oldest_go_when_there_are_too_many() {
        let (start, samples) = (Instant::now(), Samples::default());
        let of = |task: usize| vec![("task", task.to_string())];
        samples.announce(NAME, start);
        for task in 0..LABELLED_MAX {
            samples.happened_to(NAME, of(task), start + Duration::from_millis(task as u64));
        }
        // The first one is not the oldest any more.
        let later = start + Duration::from_secs(5);
        samples.happened_to(NAME, of(0), later);
        samples.happened_to(NAME, of(LABELLED_MAX), later);
        let report = samples.report(later);
        assert_eq!(report.len(), LABELLED_MAX + 1, "what has no labels stays");
        let total = |task: usize| report.iter().find(|one| one.labels == of(task)).map(|one| one.total_count);
        assert_eq!((total(0), total(1), total(2), total(LABELLED_MAX)), (Some(2), None, Some(1), Some(1)));
    }
}
