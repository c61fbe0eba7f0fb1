use std::time::Duration;

use api::Event;
use sdk::{EventQuery, Message, Subscription};

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, Outcome, Run};
use crate::flags::Flag;
use crate::output::{write_err, write_out};

const TOPIC: Flag<Vec<String>> =
    Flag::values("topic", "TOPIC[:KEY]", "Only this topic, like Job or Allocation:ID; may be repeated.");
const INDEX: Flag<u64> = Flag::number("index", "N", "Start at this index; 0 is the oldest available event.");
const AFTER: Flag<api::StreamPosition> = Flag::parsed(
    "after",
    "ID",
    "an event id, like 42.0, or an index",
    "Start after this event, like 42.0, or after this index.",
);
const JSON: Flag<bool> = Flag::switch("json", "Print each event as a line of JSON.");

pub(super) static COMMAND: Command = Command {
    name: "events",
    aliases: &[],
    arguments: "",
    summary: "Follow the events of the cluster.",
    details: "Prints one line per event: its id, topic, type, key and namespace. When the connection is lost, the\n\
              stream resumes after the last event, without gaps or repetitions.",
    flags: &[&[&TOPIC, &INDEX, &AFTER, &JSON], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

/// Pauses between attempts to reach a server again.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(15);

async fn run(call: Call) -> Outcome {
    call.no_arguments()?;
    let client = call.client()?;
    let query = EventQuery {
        topics: call.args.values(&TOPIC).to_vec(),
        index: call.args.parsed(&INDEX)?.unwrap_or(0),
        namespace: String::new(),
    };
    let after = call.args.parsed(&AFTER)?;
    let after = after.map(|id| id.to_string()).unwrap_or_default();
    let subscription = client.subscribe(query, &after);
    tokio::select! {
        ended = follow(subscription, call.args.switch(&JSON)) => ended.map(|never| match never {}),
        _ = tokio::signal::ctrl_c() => Ok(0),
    }
}

async fn follow(mut subscription: Subscription, json: bool) -> Result<std::convert::Infallible, Failure> {
    let mut pause = RETRY_FIRST;
    let mut connected = false;
    loop {
        match subscription.next().await {
            Ok(message) => {
                write_out(line(&message, json)?);
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

fn line(message: &Message, json: bool) -> Result<String, Failure> {
    if json {
        return Ok(format!("{}\n", message.data.replace('\n', " ")));
    }
    let event: Event = model::document::input::from_slice(message.data.as_bytes())
        .map_err(|error| anyhow::anyhow!("event {} cannot be understood: {error}", message.id))?;
    let id = message.id.split('@').next().unwrap_or_default();
    let key = if event.key.is_empty() { "-" } else { &event.key };
    let text = format!("{id:<10}  {:<12}  {:<28}  {key}  {}", event.topic, event.kind, event.namespace);
    Ok(format!("{}\n", text.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_either_way() {
        let data = "{\"Topic\":\"Job\",\n\"Type\":\"JobRegistered\",\"Key\":\"web\",\"Namespace\":\"default\",\"FilterKeys\":null}";
        let message = Message { id: "7.1@5d16e7fe".into(), event: "Job".into(), data: data.into() };
        assert_eq!(
            line(&message, false).ok().as_deref(),
            Some("7.1         Job           JobRegistered                 web  default\n")
        );
        assert_eq!(line(&message, true).ok().map(|line| line.matches('\n').count()), Some(1));
        let broken = Message { data: "7".into(), ..message };
        assert!(line(&broken, false).is_err());
    }
}
