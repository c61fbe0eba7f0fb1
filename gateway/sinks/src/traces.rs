//! Spans of an event, as a request of OpenTelemetry.
//!
//! Which ones a batch ends is history's to say. Each is sent with the event that lists its fact for the object that the span is
//! about, so that what is asked for of a sink holds for spans too, and the cursor of events is that of spans.

use std::sync::Arc;
use std::time::Duration;

use api::ClusterTag;
use base::{Index, Time};
use bytes::Bytes;
use delivery::otlp;
use feed::StreamEvent;
use feed::entries::{ALLOCATION, DEPLOYMENT, EVALUATION, JOB, NODE, kind};
use history::{History, Span, Traced, Traces, Value};
use serde::Deserialize;
use serde_json::json;

/// How long the index of history may take to come to an event that was sent already: it follows the log at its own pace.
const PATIENCE: Duration = Duration::from_secs(10);

/// Kinds of spans and codes of their status, as OpenTelemetry counts.
const INTERNAL: u8 = 1;
const SERVER: u8 = 2;
const ERROR: u8 = 2;

/// What an event is about, of its form without a payload.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct About {
    key: String,
    #[serde(default)]
    namespace: String,
}

pub(crate) struct Tracer {
    history: Arc<History>,
    cluster: Option<ClusterTag>,
    /// Those of the batch that was looked at last: its events follow each other.
    held: Option<(Index, Arc<Traces>)>,
}

impl Tracer {
    pub(crate) fn new(history: Arc<History>, cluster: Option<ClusterTag>) -> Tracer {
        Tracer { history, cluster, held: None }
    }

    /// What is sent for an event; `None` for one that ends no span.
    ///
    /// # Errors
    /// The log cannot be read, or is not indexed that far.
    pub(crate) async fn request(&mut self, event: &StreamEvent, id: &str) -> Result<Option<Bytes>, String> {
        if ![JOB, NODE, EVALUATION, ALLOCATION, DEPLOYMENT].contains(&event.topic) {
            return Ok(None);
        }
        let traces = self.traces(event.id.index).await?;
        let about: About = serde_json::from_slice(&event.body).map_err(|error| format!("{id}: {error}"))?;
        let own = traces.spans.iter().filter(|span| is_brought(&traces, span, event, &about));
        let own: Vec<serde_json::Value> = own.map(|span| shown(span, id)).collect();
        if own.is_empty() {
            return Ok(None);
        }
        let cluster = self.cluster.map(|ClusterTag(tag)| format!("{tag:08x}")).unwrap_or_default();
        let resource = [("service.name", "sojourn"), ("sojourn.cluster", cluster.as_str())];
        Ok(Some(otlp::request_of_spans(&resource, own).to_string().into()))
    }

    async fn traces(&mut self, index: Index) -> Result<Arc<Traces>, String> {
        if let Some((_, traces)) = self.held.as_ref().filter(|(held, _)| *held == index) {
            return Ok(traces.clone());
        }
        let history = self.history.clone();
        let derived = tokio::task::spawn_blocking(move || history.spans(index, PATIENCE)).await;
        let derived = derived.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        let traces = Arc::new(derived);
        self.held = Some((index, traces.clone()));
        Ok(traces)
    }
}

/// The event lists the fact that ended the span, for the object that the span is about. A batch lists an object once for all its
/// facts of a kind.
fn is_brought(traces: &Traces, span: &Span, event: &StreamEvent, about: &About) -> bool {
    let Some(batch) = &traces.batch else { return false };
    let logged = &batch.events[usize::from(span.at.ordinal)];
    let command = batch.commands[usize::from(logged.command)].kind;
    let is_of = |topic: &str, key: &str| event.topic == topic && about.key == key;
    let is_about = match &span.of {
        Traced::Job(key) => is_of(JOB, &key.id) && about.namespace == key.namespace,
        Traced::Node(id) => is_of(NODE, &id.to_string()),
        Traced::Eval(id) => is_of(EVALUATION, &id.to_string()),
        Traced::Alloc(id) => is_of(ALLOCATION, &id.to_string()),
        Traced::Deployment(id) => is_of(DEPLOYMENT, &id.to_string()),
    };
    is_about && kind(command, &logged.event) == Some(event.kind)
}

/// In the JSON of OTLP: ids are hexadecimal, and numbers of 64 bits are texts.
fn shown(span: &Span, event: &str) -> serde_json::Value {
    let Time(began) = span.began;
    let Time(ended) = span.ended;
    let mut attributes: Vec<_> = span.attributes.iter().map(|(key, value)| attribute(key, value)).collect();
    attributes.push(otlp::attribute("cloudevents.event_id", event));
    let mut shown = json!({
        "traceId": span.trace.to_string(),
        "spanId": span.id.to_string(),
        "name": span.name,
        "kind": if span.is_call { SERVER } else { INTERNAL },
        "startTimeUnixNano": began.to_string(),
        "endTimeUnixNano": ended.to_string(),
        "attributes": attributes,
    });
    if let Some(parent) = span.parent {
        shown["parentSpanId"] = parent.to_string().into();
    }
    let links = span.links.iter();
    let links: Vec<_> =
        links.map(|(trace, id)| json!({"traceId": trace.to_string(), "spanId": id.to_string()})).collect();
    if !links.is_empty() {
        shown["links"] = links.into();
    }
    if let Some(why) = &span.failed {
        shown["status"] = json!({"code": ERROR, "message": why});
    }
    shown
}

fn attribute(key: &str, value: &Value) -> serde_json::Value {
    match value {
        Value::Text(text) => otlp::attribute(key, text),
        Value::Number(number) => json!({"key": key, "value": {"intValue": number.to_string()}}),
        Value::Texts(texts) => {
            let values: Vec<_> = texts.iter().map(|text| json!({"stringValue": text})).collect();
            json!({"key": key, "value": {"arrayValue": {"values": values}}})
        }
    }
}
