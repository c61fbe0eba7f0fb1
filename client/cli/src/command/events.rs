use std::time::Duration;

use api::Event;
use sdk::stream::CHECKPOINT;
use sdk::{EventQuery, Message, Subscription};
use tokio::sync::watch;

use crate::acknowledging;
use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, Outcome, Run};
use crate::flags::Flag;
use crate::layout;
use crate::output::{OutputStyle, write_err, write_out};

const TOPIC: Flag<Vec<String>> =
    Flag::values("topic", "TOPIC[:KEY]", "Only this topic, like Job or Allocation:ID; may be repeated.");
const SINCE: Flag<String> = Flag::value("since", "SPAN", "Start this long ago, like 10m, or at a time.");
const FROM: Flag<String> =
    Flag::value("from", "PLACE", "start: the oldest available event. now: what comes next, the default.");
const INDEX: Flag<u64> = Flag::number("index", "N", "Start at this index; 0 is the oldest available event.");
const AFTER: Flag<api::StreamPosition> = Flag::parsed(
    "after",
    "ID",
    "an event id, like 42.0, or an index",
    "Start after this event, like 42.0, or after this index.",
);
const TO: Flag<String> = Flag::value(
    "to",
    "PLACE",
    "Stop there: an event id, an index, a span like 10m before now, a time, or now.",
);
const FILTER: Flag<String> = Flag::value(
    "filter",
    "EXPR",
    "Only events that meet this, like Actor contains \"token\" or Payload.Job.ID == web.",
);
const CURSOR: Flag<String> =
    Flag::value("cursor", "NAME", "Begin where this cursor is, with its topics, namespace and filter.");
const MEMBER: Flag<u32> =
    Flag::number("member", "N", "Which reader of the cursor this is, from 0: of one that is split.");
const ACK: Flag<bool> = Flag::switch("ack", "Move the cursor on after what was printed.");
const JSON: Flag<bool> = Flag::switch("json", "Print each event as a line of JSON.");

pub(super) static COMMAND: Command = Command {
    name: "events",
    aliases: &[],
    arguments: "",
    summary: "Follow the events of the cluster.",
    details: "Prints one line per event: its id, its time, its topic, and what happened. Without a flag it begins with\n\
              what comes next. When the connection is lost, the stream resumes after the last event, without gaps or\n\
              repetitions. Topics: Allocation, Deployment, Evaluation, Job, Node, ACLToken and\n\
              others of access control, or * for all.\n\n\
              With -cursor and -ack the cluster keeps how far this command has come: whoever reads the cursor next\n\
              goes on there.",
    flags: &[
        &[&TOPIC, &SINCE, &FROM, &INDEX, &AFTER, &TO, &FILTER, &CURSOR, &MEMBER, &ACK, &JSON],
        CLIENT_FLAGS,
    ],
    run: Run::Task(|call| Box::pin(run(call))),
};

/// Pauses between attempts to reach a server again.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(15);

async fn run(call: Call) -> Outcome {
    call.no_arguments()?;
    let (query, after) = asked(&call)?;
    let (cursor, member) = (query.cursor.clone(), query.member);
    // What the environment names is not meant for a cursor, which has a namespace of its own.
    let client = if cursor.is_empty() { call.client()? } else { call.client_in("")? };
    let (style, json, ack) = (call.style(), call.args.switch(&JSON), call.args.switch(&ACK));
    let (done, places) = watch::channel(String::new());
    let mut acknowledging = std::pin::pin!(acknowledging::run(&client, (&cursor, member), places));
    let subscription = client.subscribe(query, &after);
    let ended = tokio::select! {
        ended = follow(subscription, &style, json, &done) => ended,
        refused = &mut acknowledging, if ack => return refused.doing("acknowledging events").map(|()| 0),
        _ = tokio::signal::ctrl_c() => Ok(()),
    };
    drop(done);
    if ack {
        acknowledging.await.doing("acknowledging events")?;
    }
    ended.map(|()| 0)
}

/// What is to be read, and after which event.
fn asked(call: &Call) -> Result<(EventQuery, String), Failure> {
    let topics = call.args.values(&TOPIC).to_vec();
    if let Some(wrong) = topics.iter().find_map(|topic| unknown_topic(topic)) {
        return Err(call.usage(&wrong));
    }
    let index: Option<u64> = call.args.parsed(&INDEX)?;
    let after = call.args.parsed(&AFTER)?;
    let (since, from) = (call.args.value(&SINCE), call.args.value(&FROM));
    let given = [since.is_some(), from.is_some(), index.is_some(), after.is_some()];
    if given.iter().filter(|given| **given).count() > 1 {
        return Err(call.usage("Only one of -since, -from, -index and -after can be given"));
    }
    let text = |flag| call.args.value(flag).unwrap_or_default().to_string();
    let (cursor, to, filter) = (text(&CURSOR), text(&TO), text(&FILTER));
    if cursor.is_empty() && call.args.switch(&ACK) {
        return Err(call.usage("-ack needs -cursor: it is the cursor that moves on"));
    }
    let member = call.args.parsed(&MEMBER)?;
    if cursor.is_empty() && member.is_some() {
        return Err(call.usage("-member needs -cursor: it is the cursor that is split"));
    }
    if !cursor.is_empty() {
        let own = ["topic", "since", "from", "index", "after", "filter", "namespace"];
        if let Some((flag, _)) = call.args.given().find(|(name, _)| own.contains(name)) {
            return Err(call.usage(&format!("-cursor and -{flag} exclude each other: the cursor says that")));
        }
        let checkpoints = call.args.switch(&ACK);
        return Ok((EventQuery { cursor, member, to, checkpoints, ..EventQuery::default() }, String::new()));
    }
    let from = match (since, from, index) {
        (Some(since), ..) => since,
        (None, Some(place @ ("start" | "now")), _) => place,
        (None, Some(_), _) => return Err(call.usage("-from is start or now")),
        (None, None, Some(_)) => "start",
        (None, None, None) => "now",
    };
    let from = from.to_string();
    let query = EventQuery { topics, index: index.unwrap_or(0), from, to, filter, ..EventQuery::default() };
    Ok((query, after.map(|id| id.to_string()).unwrap_or_default()))
}

/// What is wrong with a topic; `None` for one that events have. One that none has would be waited for for ever.
fn unknown_topic(asked: &str) -> Option<String> {
    let topic = asked.split(':').next().unwrap_or_default();
    if topic == "*" || api::TOPICS.contains(&topic) {
        return None;
    }
    let hint = api::TOPICS.iter().find(|known| known.eq_ignore_ascii_case(topic)).copied();
    let hint = hint.or_else(|| jobspec::nearest(topic, api::TOPICS));
    let hint = hint.map(|known| format!(" (did you mean {known}?)")).unwrap_or_default();
    Some(format!("No event has the topic {topic:?}{hint}; topics are {}", api::TOPICS.join(", ")))
}

async fn follow(
    mut subscription: Subscription,
    style: &OutputStyle,
    json: bool,
    done: &watch::Sender<String>,
) -> Result<(), Failure> {
    let mut pause = RETRY_FIRST;
    let mut connected = false;
    loop {
        match subscription.next().await {
            Ok(message) if message.event == "end" => {
                done.send_replace(message.id);
                return Ok(());
            }
            Ok(message) => {
                if message.event != CHECKPOINT {
                    write_out(line(style, &message, json)?);
                }
                if !message.id.is_empty() {
                    done.send_replace(message.id);
                }
                (pause, connected) = (RETRY_FIRST, true);
            }
            // The first connection failing is a wrong address more often than a server that restarts.
            Err(error) if connected && error.is_transient() => {
                write_err(format!("{error}: trying again in {} s", pause.as_secs()));
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(RETRY_MAX);
            }
            Err(error) => return Err(error).doing("reading events"),
        }
    }
}

fn line(style: &OutputStyle, message: &Message, json: bool) -> Result<String, Failure> {
    if json {
        return Ok(format!("{}\n", message.data.replace('\n', " ")));
    }
    let event: Event = model::document::input::from_slice(message.data.as_bytes())
        .map_err(|error| anyhow::anyhow!("event {} cannot be understood: {error}", message.id))?;
    Ok(layout::events::line(style, &message.id, message.time, &event))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_either_way() {
        let data = "{\"Topic\":\"Job\",\n\"Type\":\"JobRegistered\",\"Key\":\"web\",\"Namespace\":\"default\",\"FilterKeys\":null}";
        let style = OutputStyle::for_tests();
        let message =
            Message { id: "7.1@5d16e7fe".into(), event: "Job".into(), data: data.into(), time: style.now.0 };
        assert_eq!(
            line(&style, &message, false).ok().as_deref(),
            Some("7.1         2026-01-02T03:04:05Z  Job         web JobRegistered\n")
        );
        assert_eq!(line(&style, &message, true).ok().map(|line| line.matches('\n').count()), Some(1));
        let broken = Message { data: "7".into(), ..message };
        assert!(line(&style, &broken, false).is_err());
    }

    #[test]
    fn a_topic_that_no_event_has_is_refused() {
        assert_eq!(unknown_topic("Job:web").or(unknown_topic("*")), None);
        let wrong = unknown_topic("Jobs:web").unwrap();
        assert!(
            wrong.starts_with("No event has the topic \"Jobs\" (did you mean Job?); topics are Alloc"),
            "{wrong}"
        );
        assert!(unknown_topic("allocation").unwrap().contains("(did you mean Allocation?)"));
    }
}
