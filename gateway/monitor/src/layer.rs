//! Where events come in.

use std::sync::Arc;

use jiff::Timestamp;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Context, Filter, Layer};
use tracing_subscriber::registry::LookupSpan;

use crate::follow::Follower;
use crate::line::{Said, json, text};
use crate::{Monitor, worthwhile};

impl Monitor {
    /// Receives the log lines of the whole process.
    pub fn layer<S: Subscriber + for<'span> LookupSpan<'span>>(&self) -> impl Layer<S> + use<S> {
        Listening(self.clone()).with_filter(Listening(self.clone()))
    }

    /// What the most curious follower wants to hear of.
    pub(crate) fn level(&self) -> LevelFilter {
        self.0.load().iter().map(|follower| follower.level).max().unwrap_or(LevelFilter::OFF)
    }
}

struct Listening(Monitor);

impl Listening {
    fn wants(&self, meta: &Metadata<'_>) -> bool {
        wanted(self.0.level(), meta)
    }
}

fn wanted(level: LevelFilter, meta: &Metadata<'_>) -> bool {
    *meta.level() <= level && worthwhile(level).would_enable(meta.target(), meta.level())
}

/// Asked once for each place that logs, and again whenever followers come or go.
impl<S> Filter<S> for Listening {
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

impl<S: Subscriber + for<'span> LookupSpan<'span>> Layer<S> for Listening {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut said = Said::default();
        attributes.record(&mut said);
        span.extensions_mut().insert(said);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(said) = span.extensions_mut().get_mut::<Said>() {
            values.record(said);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let (meta, at) = (event.metadata(), Timestamp::now());
        let followers = self.0.0.load();
        let concerned = |follower: &&Arc<Follower>| wanted(follower.level, meta);
        if !followers.iter().any(|follower| concerned(&follower)) {
            return;
        }
        let mut said = Said::default();
        event.record(&mut said);
        for span in context.event_scope(event).into_iter().flatten() {
            if let Some(outer) = span.extensions().get::<Said>() {
                said.within(outer);
            }
        }
        for follower in followers.iter().filter(concerned) {
            let form = if follower.json { json } else { text };
            follower.take(form(at, meta, &said, follower.location));
        }
    }
}
