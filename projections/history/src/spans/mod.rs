//! Spans of OpenTelemetry: what the log says of how long a thing took, and of what led to it.
//!
//! Nothing is stored for them, and nothing in the program is timed: a span is derived of the fact that ends it. When it began,
//! and under which other span it stands, is read in the log by the index, as causes are. So a fact has the same spans whenever
//! and by whomever they are derived. `parents.rs` says what stands under what, `derived.rs` which spans a fact ends.

mod derived;
mod ids;
mod parents;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::{Index, Time, Uuid};
use model::{AllocId, DeploymentId, EvalId, JobKey, NodeId};

use crate::causes::{Facts, Reading, Start};
use crate::entries::Position;
use crate::history::{History, HistoryError};

pub use ids::{SpanId, TraceId};
use parents::Anchor;

/// Links of one span: a report of a node names as many allocations that have failed at most.
const LINKS_MAX: usize = 16;

/// Something that took a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// The fact that ended it.
    pub at: Position,
    /// What that is about: the event of the stream that lists the fact for this object brings the span.
    pub of: Traced,
    pub trace: TraceId,
    pub id: SpanId,
    /// The span that it followed from; `None` for the first one of a trace.
    pub parent: Option<SpanId>,
    /// Spans of other traces that it followed from.
    pub links: Vec<(TraceId, SpanId)>,
    pub name: String,
    /// Somebody called from outside.
    pub is_call: bool,
    /// By the servers' clock; of tasks and of health by the node's.
    pub began: Time,
    /// Not before it began.
    pub ended: Time,
    /// Why it failed, if it did.
    pub failed: Option<String>,
    pub attributes: Vec<(&'static str, Value)>,
}

/// What an attribute says.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Text(String),
    Number(i64),
    Texts(Vec<String>),
}

/// An object that the stream lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Traced {
    Job(JobKey),
    Node(NodeId),
    Eval(EvalId),
    Alloc(AllocId),
    Deployment(DeploymentId),
}

/// The spans that end in a batch.
#[derive(Clone, Debug, Default)]
pub struct Traces {
    pub batch: Option<Arc<Facts>>,
    pub spans: Vec<Span>,
}

impl History {
    /// The spans that end in the batch at `index`, in the order of its facts. None of what was observed in another cluster: the
    /// log does not say when that began.
    ///
    /// # Errors
    /// [`HistoryError::Behind`] when the index does not reach `index` within `patience`.
    pub fn spans(&self, index: Index, patience: Duration) -> Result<Traces, HistoryError> {
        let mut tracing = self.tracing(index, patience)?;
        let batch = tracing.reading.batch(index)?;
        let spans = match &batch {
            Some(batch) => tracing.of_batch(batch)?,
            None => Vec::new(),
        };
        Ok(Traces { batch, spans })
    }

    /// The trace that a fact, or what a request led to at once, is a part of: that of its own span, or of the one that it
    /// followed from. `None` when there is no such fact.
    ///
    /// # Errors
    /// As [`History::spans`].
    pub fn trace(
        &self,
        start: Start,
        at: Index,
        patience: Duration,
    ) -> Result<Option<TraceId>, HistoryError> {
        let mut tracing = self.tracing(at, patience)?;
        let Some(first) = tracing.reading.first(start)?.first().copied() else { return Ok(None) };
        match tracing.anchor(first)? {
            Some(anchor) => tracing.trace(&anchor).map(Some),
            None => Ok(None),
        }
    }

    fn tracing(&self, index: Index, patience: Duration) -> Result<Tracing<'_>, HistoryError> {
        let shared = self.reached(index, patience)?;
        let cluster = shared.moments.states.published().cluster;
        Ok(Tracing { reading: Reading::of(shared), cluster, known: BTreeMap::new() })
    }
}

/// Derives the spans of one batch.
struct Tracing<'a> {
    reading: Reading<'a>,
    cluster: Uuid,
    /// The traces of spans that were asked for.
    known: BTreeMap<Anchor, TraceId>,
}
