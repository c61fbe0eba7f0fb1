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
        let cluster = self.cluster.map(|cluster| cluster.to_string()).unwrap_or_default();
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
    let Some(logged) = batch.events.get(&span.at.ordinal) else { return false };
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

#[cfg(test)]
mod tests {
    use api::EventId;
    use history::Position;
    use model::{
        Actor, Batch, CommandKind, CommandRecord, EvalStatus, JobKey, LoggedEvent, RequestId, event,
    };

    use super::*;

    fn of_job() -> Span {
        Span {
            at: Position { index: Index(3), ordinal: 0 },
            of: Traced::Job(JobKey::new("default", "web")),
            trace: history::TraceId::of_request("7b1d0c55-8d1f-4f0e-9a54-0d9f2b6d1c11".parse().unwrap()),
            id: history::SpanId::of_text("3:0@9f3c2a71"),
            parent: None,
            links: Vec::new(),
            name: "job.register".into(),
            is_call: true,
            began: Time(5),
            ended: Time(7),
            failed: None,
            attributes: vec![("sojourn.job.id", Value::Text("web".into()))],
        }
    }

    /// Of one command, that registered a job and ended an evaluation.
    fn batch() -> Batch {
        let record = CommandRecord {
            request: RequestId::default(),
            kind: CommandKind::RegisterJob as u16,
            actor: Actor::ANONYMOUS,
        };
        let stopped = event::JobStopped { key: JobKey::new("default", "web"), version: 1 };
        let ended = event::EvalUpdated {
            eval: model::EvalId(7.into()),
            status: EvalStatus::Complete,
            description: String::new(),
            outcome: event::EvalOutcome::default(),
            desired: model::Doc::default(),
        };
        let logged = |event| LoggedEvent { command: 0, event };
        Batch {
            commands: vec![record],
            events: vec![logged(stopped.into()), logged(ended.into())],
            ..state::State::default().next_batch(Time(7), base::Uuid::NIL)
        }
    }

    fn event(topic: &'static str, kind: &'static str) -> StreamEvent {
        let id = EventId { index: Index(3), ordinal: 0 };
        StreamEvent { id, time: Time(7), topic, kind, fact: 0, body: Bytes::new() }
    }

    #[test]
    fn a_span_comes_with_the_event_of_its_fact_and_its_object_and_no_other() {
        let traces = Traces { batch: Some(Arc::new(batch().into())), spans: Vec::new() };
        let about = |namespace: &str, key: &str| About { namespace: namespace.into(), key: key.into() };
        let of_job = of_job();
        let comes = |topic, kind, namespace, key| {
            is_brought(&traces, &of_job, &event(topic, kind), &about(namespace, key))
        };
        assert!(comes(JOB, "JobDeregistered", "default", "web"));
        assert!(!comes(JOB, "JobRegistered", "default", "web"), "another kind of fact");
        assert!(!comes(JOB, "JobDeregistered", "other", "web"), "a job of that name elsewhere");
        assert!(!comes(JOB, "JobDeregistered", "default", "api"));
        assert!(!comes(EVALUATION, "JobDeregistered", "default", "web"));
        let at = Position { index: Index(3), ordinal: 1 };
        let id = model::EvalId(7.into());
        let of_eval = Span { at, of: Traced::Eval(id), ..self::of_job() };
        let ended = event(EVALUATION, "JobRegistered");
        assert!(is_brought(&traces, &of_eval, &ended, &about("default", &id.to_string())));
    }

    #[test]
    fn a_span_is_written_as_collectors_read_it() {
        let link = (of_job().trace, history::SpanId::of_text("a"));
        let failed = Span {
            parent: Some(history::SpanId::of_text("b")),
            links: vec![link],
            is_call: false,
            failed: Some("no room".into()),
            attributes: vec![
                ("sojourn.eval.priority", Value::Number(50)),
                ("sojourn.eval.failed_groups", Value::Texts(vec!["g".into()])),
            ],
            ..of_job()
        };
        assert_eq!(
            shown(&of_job(), "3.0@9f3c2a71"),
            json!({
                "traceId": "7b1d0c558d1f4f0e9a540d9f2b6d1c11", "spanId": of_job().id.to_string(),
                "name": "job.register", "kind": 2, "startTimeUnixNano": "5", "endTimeUnixNano": "7",
                "attributes": [
                    {"key": "sojourn.job.id", "value": {"stringValue": "web"}},
                    {"key": "cloudevents.event_id", "value": {"stringValue": "3.0@9f3c2a71"}},
                ],
            })
        );
        let failed = shown(&failed, "3.0@9f3c2a71");
        assert_eq!(failed["status"], json!({"code": 2, "message": "no room"}));
        assert_eq!(failed["links"][0]["spanId"], link.1.to_string());
        assert_eq!(
            (failed["kind"].as_u64(), failed["parentSpanId"].as_str().map(str::len)),
            (Some(1), Some(16))
        );
        assert_eq!(failed["attributes"][0]["value"], json!({"intValue": "50"}));
        assert_eq!(
            failed["attributes"][1]["value"],
            json!({"arrayValue": {"values": [{"stringValue": "g"}]}})
        );
    }
}
