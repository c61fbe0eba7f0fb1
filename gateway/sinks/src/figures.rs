//! How it goes with sinks, for metrics and for those who ask.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base::Time;
use delivery::{Failed, Reports};
use metrics::Samples;

/// A clone is a pointer copy.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// By the names of sinks.
    pub reports: Reports,
    pub samples: Arc<Samples>,
}

impl Figures {
    /// An attempt has ended after this long.
    pub(crate) fn took(&self, sink: &str, took: Duration) {
        self.samples.took_with("sojourn.sinks.send_time", label(sink), Instant::now(), took);
    }

    pub(crate) fn arrived(&self, sink: &str, events: usize) {
        for _ in 0..events {
            self.samples.happened_to("sojourn.sinks.sent_total", label(sink), Instant::now());
            self.reports.arrived(sink);
        }
    }

    /// `attempts` for this event, which is tried again after `pause`; `None` for never.
    pub(crate) fn failed(&self, sink: &str, event: &str, why: &str, attempts: u32, pause: Option<Duration>) {
        self.samples.happened_to("sojourn.sinks.failures_total", label(sink), Instant::now());
        let at = now();
        let failed = Failed { what: event.to_string(), why: why.to_string(), at };
        self.reports.failed(sink, failed, attempts, pause.map(|pause| at.plus(pause.into())));
    }
}

fn label(sink: &str) -> Vec<(&'static str, String)> {
    vec![("sink", sink.to_string())]
}

fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}
