//! Receives the events of this process from `tracing`.

use std::sync::Arc;

use jiff::Timestamp;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Context, Filter, Layer};
use tracing_subscriber::registry::LookupSpan;

use crate::follow::Follower;
use crate::line::{LogRecord, json, text};
use crate::{Monitor, worthwhile};

impl Monitor {
    /// Receives the log lines of the whole process.
    pub fn layer<S: Subscriber + for<'span> LookupSpan<'span>>(&self) -> impl Layer<S> + use<S> {
        MonitorLayer(self.clone()).with_filter(MonitorLayer(self.clone()))
    }

    /// The most detailed level that a follower wants.
    pub(crate) fn level(&self) -> LevelFilter {
        self.followers.load().iter().map(|follower| follower.level).max().unwrap_or(LevelFilter::OFF)
    }
}

struct MonitorLayer(Monitor);

impl MonitorLayer {
    fn wants(&self, meta: &Metadata<'_>) -> bool {
        wanted(self.0.level(), meta)
    }
}

fn wanted(level: LevelFilter, meta: &Metadata<'_>) -> bool {
    *meta.level() <= level && worthwhile(level).would_enable(meta.target(), meta.level())
}

/// Asked once for each place that logs, and again whenever followers come or go.
impl<S> Filter<S> for MonitorLayer {
    fn enabled(&self, meta: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        self.wants(meta)
    }

    fn callsite_enabled(&self, meta: &'static Metadata<'static>) -> Interest {
        if self.wants(meta) { Interest::always() } else { Interest::never() }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.0.level())
    }
}

impl<S: Subscriber + for<'span> LookupSpan<'span>> Layer<S> for MonitorLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut record = LogRecord::default();
        attributes.record(&mut record);
        span.extensions_mut().insert(record);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(record) = span.extensions_mut().get_mut::<LogRecord>() {
            values.record(record);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let (meta, at) = (event.metadata(), Timestamp::now());
        let followers = self.0.followers.load();
        let concerned = |follower: &&Arc<Follower>| wanted(follower.level, meta);
        if !followers.iter().any(|follower| concerned(&follower)) {
            return;
        }
        let mut record = LogRecord::default();
        event.record(&mut record);
        for span in context.event_scope(event).into_iter().flatten() {
            if let Some(outer) = span.extensions().get::<LogRecord>() {
                record.within(outer);
            }
        }
        for follower in followers.iter().filter(concerned) {
            let form = if follower.json { json } else { text };
            follower.take(form(at, meta, &record, follower.location));
        }
    }
}
