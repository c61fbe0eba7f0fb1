//! Metrics: their names in one table, what is sampled, and the two forms in which they are shown.
//!
//! Nomad's names, so that dashboards work; ours begin with `sojourn.`. Whoever has figures gives them as values
//! ([`Gauge`]) or samples them into a [`Samples`]; here is no clock but the one that callers pass in, no state and no
//! route. Read [`table`] first.

#![warn(unreachable_pub)]

mod quantiles;
mod render;
mod samples;
pub mod table;

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;

pub use quantiles::QUANTILES;
pub use render::{Figures, exposition, summary};
pub use samples::{INTERVAL, LABELLED_MAX, Labels, Sampled, Samples};

/// The content type of [`exposition`].
pub const EXPOSITION_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A number at the moment somebody asks for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Gauge {
    /// One of [`table::TABLE`].
    pub name: &'static str,
    pub labels: Labels,
    pub value: f64,
}

/// Of this process: `tasks` are the asynchronous ones that have not ended.
///
/// Reads `/proc`: not for a thread that others wait for. Without it memory is left out.
pub fn process(tasks: usize) -> Vec<Gauge> {
    let status = std::fs::read_to_string("/proc/self/status");
    let resident = status.ok().and_then(|text| resident_bytes(&text));
    let memory = resident.map(|bytes| Gauge::new("nomad.runtime.sys_bytes", bytes as f64));
    memory.into_iter().chain([Gauge::count("nomad.runtime.num_goroutines", tasks)]).collect()
}

fn resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}

impl Gauge {
    pub fn new(name: &'static str, value: impl Into<f64>) -> Gauge {
        Gauge { name, labels: Vec::new(), value: value.into() }
    }

    /// Counts and indexes stay exact in a double up to 2^53.
    pub fn count(name: &'static str, value: usize) -> Gauge {
        Gauge::new(name, value as f64)
    }

    pub fn with(mut self, label: &'static str, value: impl Into<String>) -> Gauge {
        self.labels.push((label, value.into()));
        self
    }
}

type Reading = BoxFuture<'static, Figures>;

/// The figures of the node in the same process. A server is there before its node is.
#[derive(Clone, Default)]
pub struct NodeFigures(Arc<OnceLock<Source>>);

struct Source {
    read: Box<dyn Fn() -> Reading + Send + Sync>,
    /// How long a reading is good.
    good_for: Duration,
    last: Mutex<Option<(Instant, Figures)>>,
}

impl NodeFigures {
    /// Takes effect once: an agent has one node.
    pub fn come_from(&self, good_for: Duration, read: impl Fn() -> Reading + Send + Sync + 'static) {
        let _one_node = self.0.set(Source { read: Box::new(read), good_for, last: Mutex::default() });
    }

    /// None before there is a node. What was read a moment ago is not read again.
    pub async fn read(&self, now: Instant) -> Figures {
        let Some(source) = self.0.get() else { return Figures::default() };
        let is_good = |at: Instant| now.saturating_duration_since(at) < source.good_for;
        if let Some((_, last)) = source.last.lock().as_ref().filter(|(at, _)| is_good(*at)) {
            return last.clone();
        }
        let figures = (source.read)().await;
        *source.last.lock() = Some((now, figures.clone()));
        figures
    }
}

impl std::fmt::Debug for NodeFigures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("NodeFigures").field(&self.0.get().is_some()).finish()
    }
}
