//! What tasks and the host used at the last looks, a second apart: whoever asks for usage is answered from them at once.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::driver::Usage;

/// Ticks of each core, by its name.
pub type CpuTimes = BTreeMap<String, [u64; 3]>;

/// Two readings, and the time between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair<T> {
    pub before: T,
    pub now: T,
    pub apart: Duration,
}

/// The last reading of something, and the one before it.
#[derive(Clone, Debug)]
struct Readings<T> {
    at: Instant,
    last: T,
    pair: Option<Pair<T>>,
}

impl<T: Clone> Readings<T> {
    fn next(before: Option<&Readings<T>>, at: Instant, last: T) -> Readings<T> {
        let pair = before.map(|before| Pair {
            before: before.last.clone(),
            now: last.clone(),
            apart: at.saturating_duration_since(before.at),
        });
        Readings { at, last, pair: pair.filter(|pair| !pair.apart.is_zero()) }
    }
}

/// An allocation's id and a task's name.
pub type TaskKey = (String, String);

#[derive(Debug, Default)]
pub struct Samples {
    tasks: Mutex<BTreeMap<TaskKey, Readings<Usage>>>,
    host: Mutex<Option<Readings<CpuTimes>>>,
}

impl Samples {
    /// `None` for a task that has been looked at once at most.
    pub fn task(&self, alloc: &str, task: &str) -> Option<Pair<Usage>> {
        locked(&self.tasks).get(&(alloc.to_string(), task.to_string()))?.pair.clone()
    }

    pub fn host(&self) -> Option<Pair<CpuTimes>> {
        locked(&self.host).as_ref()?.pair.clone()
    }

    /// Tasks that were not read are forgotten.
    pub fn take_in(&self, at: Instant, tasks: Vec<(TaskKey, Usage)>, host: CpuTimes) {
        let mut known = locked(&self.tasks);
        let next = tasks.into_iter().map(|(key, usage)| {
            let readings = Readings::next(known.get(&key), at, usage);
            (key, readings)
        });
        *known = next.collect();
        let mut known = locked(&self.host);
        *known = Some(Readings::next(known.as_ref(), at, host));
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_secs(1);

    #[test]
    fn usage_is_what_lies_between_the_last_two_looks() {
        let (samples, start) = (Samples::default(), Instant::now());
        let key = |task: &str| ("a".to_string(), task.to_string());
        let usage = |ticks| Usage { user_ticks: ticks, ..Usage::default() };
        let look = |second: u64, tasks: Vec<(TaskKey, Usage)>| {
            samples.take_in(start + Duration::from_secs(second), tasks, CpuTimes::default());
        };
        look(0, vec![(key("web"), usage(10)), (key("old"), usage(1))]);
        assert_eq!(samples.task("a", "web"), None, "there is nothing to compare with");
        look(1, vec![(key("web"), usage(30))]);
        let pair = samples.task("a", "web").unwrap();
        assert_eq!((pair.before.user_ticks, pair.now.user_ticks, pair.apart), (10, 30, EVERY));
        look(3, vec![(key("web"), usage(70)), (key("old"), usage(2))]);
        assert_eq!(samples.task("a", "web").unwrap().apart, Duration::from_secs(2));
        assert_eq!(samples.task("a", "old"), None, "it was forgotten meanwhile");
        assert_eq!(samples.host().unwrap().apart, Duration::from_secs(2));
    }
}
