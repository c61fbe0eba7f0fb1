//! What of an event a reader is shown, beyond the form that Nomad gives it.

use std::fmt::Write;

use api::{ClusterTag, EventId, Requester, StreamPosition};
use base::Time;
use bytes::Bytes;
use model::document::Timestamp;
use model::{Caller, CommandKind, CommandRecord};
use serde::Serialize;
use serde_json::Value;
use state::State;

use crate::body;
use crate::cause::Cause;
use crate::entries::Entry;

/// How much of an event is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    /// As Nomad shows it.
    #[default]
    Nomad,
    /// With its id, its time, and who asked for what led to it.
    Full,
    /// As full, without the payload.
    Key,
    /// As full, with a merge patch (RFC 7396) in place of the payload: from the payload before the batch to this one.
    Diff,
    /// As full, in the envelope of CloudEvents 1.0.
    CloudEvents,
}

/// Where an event is, and where it came from.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Origin<'a> {
    #[serde(rename = "ID")]
    id: String,
    time: String,
    actor: String,
    requester: Option<Requester>,
    #[serde(rename = "RequestID")]
    request: String,
    /// Empty for one that a newer release added.
    command: &'static str,
    /// The fact in the log, as histories number it.
    fact: String,
    cause: &'a Cause,
}

/// Somebody who asked, as events and histories show it.
pub fn requester(caller: &Caller) -> Requester {
    Requester {
        accessor_id: caller.accessor.clone(),
        name: caller.name.clone(),
        address: caller.address.map(|address| address.to_string()).unwrap_or_default(),
        agent: caller.agent.clone(),
    }
}

impl Origin<'_> {
    pub(crate) fn of<'a>(
        id: EventId,
        fact: u16,
        command: &CommandRecord,
        cause: &'a Cause,
        time: Time,
    ) -> Origin<'a> {
        Origin {
            id: id.to_string(),
            time: Timestamp::from(time).to_string(),
            actor: command.actor.to_string(),
            requester: command.actor.caller().map(requester),
            request: command.request.to_string(),
            command: CommandKind::from_number(command.kind).map_or("", CommandKind::name),
            fact: format!("{}:{fact}", id.index),
            cause,
        }
    }
}

#[derive(Serialize)]
struct CloudEvent<'a> {
    specversion: &'static str,
    id: String,
    source: String,
    r#type: String,
    subject: String,
    time: &'a str,
    datacontenttype: &'static str,
    actor: &'a str,
    requestid: &'a str,
    cause: &'a str,
    causeid: &'a str,
}

/// An event in Nomad's form, with its origin.
pub(crate) fn full(body: &[u8], origin: &Origin<'_>) -> Bytes {
    joined(body.to_vec(), &json(origin))
}

pub(crate) fn key(entry: &Entry, id: EventId, origin: &Origin<'_>) -> Bytes {
    joined(body::render_key(id.index, entry), &json(origin))
}

/// Without a payload before the batch, the patch makes it of an empty one.
pub(crate) fn diff(before: &State, after: &State, entry: &Entry, id: EventId, origin: &Origin<'_>) -> Bytes {
    joined(body::render_diff(before, after, id.index, entry), &json(origin))
}

/// `full` in an envelope.
pub(crate) fn cloud_event(
    entry: &Entry,
    id: EventId,
    cluster: Option<ClusterTag>,
    origin: &Origin<'_>,
    full: &[u8],
) -> Bytes {
    let mut subject = entry.topic.to_string();
    for part in [&entry.namespace, &entry.key].into_iter().filter(|part| !part.is_empty()) {
        let _ = write!(subject, "/{part}");
    }
    let tag = cluster.map(|cluster| format!("/{cluster}"));
    let envelope = CloudEvent {
        specversion: "1.0",
        id: StreamPosition { after: id, cluster }.to_string(),
        source: format!("/sojourn{}", tag.unwrap_or_default()),
        r#type: format!("sojourn.{}.{}", entry.topic, entry.kind),
        subject,
        time: &origin.time,
        datacontenttype: "application/json",
        actor: &origin.actor,
        requestid: &origin.request,
        cause: origin.cause.kind,
        causeid: &origin.cause.id,
    };
    let data = [b"{\"data\":", full, b"}"].concat();
    joined(json(&envelope), &data)
}

/// An event as conditions look at it.
pub(crate) fn document(full: &[u8]) -> Value {
    serde_json::from_slice(full).expect("it was rendered as JSON")
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("it has a JSON form")
}

/// Two objects with members as one.
fn joined(mut first: Vec<u8>, second: &[u8]) -> Bytes {
    assert!(first.ends_with(b"}") && second.starts_with(b"{\""), "objects that are not empty");
    first.pop();
    first.push(b',');
    first.extend_from_slice(&second[1..]);
    first.into()
}
