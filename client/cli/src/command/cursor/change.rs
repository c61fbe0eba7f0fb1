use api::{EventCursorRequest, EventCursorResetRequest};
use base::Duration;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Outcome, Run};
use crate::flags::Flag;
use crate::layout;
use crate::output::write_out;

const FROM: Flag<String> = Flag::value(
    "from",
    "PLACE",
    "Where a new cursor begins: now (the default), oldest, an event id, an index, a span like -2h or a time.",
);
const TOPIC: Flag<Vec<String>> =
    Flag::values("topic", "TOPIC[:KEY]", "Only this topic, like Job or Allocation:ID; may be repeated.");
const FILTER: Flag<String> = Flag::value("filter", "EXPR", "Only events that meet this, as for events.");
const READER: Flag<String> =
    Flag::value("reader", "ACCESSOR", "The token that may acknowledge, besides operators.");
const TTL: Flag<Duration> = Flag::parsed(
    "ttl",
    "DURATION",
    "a time like 72h",
    "Delete the cursor when it was not used for so long. Never, without this flag.",
);
const MEMBERS: Flag<u32> = Flag::number(
    "members",
    "N",
    "Split it among so many readers, each with all events of its jobs; 1 for none. At most 64.",
);
const TO: Flag<String> = Flag::value(
    "to",
    "PLACE",
    "Where the cursor is to be: now, oldest, an event id, an index, a span like -2h or a time.",
);

pub(super) static CREATE: Command = Command {
    name: "cursor create",
    aliases: &[],
    arguments: "<cursor>",
    summary: "Create a cursor of the event stream, or change one.",
    details: "The cluster keeps how far readers of it have come. One that exists gives what the flags say from\n\
              then on, and stays where it is.",
    flags: &[&[&FROM, &TOPIC, &FILTER, &READER, &TTL, &MEMBERS], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(create(call))),
};

pub(super) static RESET: Command = Command {
    name: "cursor reset",
    aliases: &[],
    arguments: "<cursor>",
    summary: "Put a cursor of the event stream elsewhere, also back.",
    details: "With -members it is split among so many readers, who all begin there; without -to, where the cursor is.",
    flags: &[&[&TO, &MEMBERS], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(reset(call))),
};

pub(super) static DELETE: Command = Command {
    name: "cursor delete",
    aliases: &[],
    arguments: "<cursor>",
    summary: "Delete a cursor of the event stream.",
    details: "",
    flags: &[CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(delete(call))),
};

async fn create(call: Call) -> Outcome {
    let name = call.one_argument()?;
    let text = |flag| call.args.value(flag).unwrap_or_default().to_string();
    let wanted = EventCursorRequest {
        from: text(&FROM),
        topics: call.args.values(&TOPIC).to_vec().into(),
        namespace: call.namespace().to_string(),
        filter: text(&FILTER),
        reader: text(&READER),
        ttl: call.args.parsed(&TTL)?.unwrap_or_default().into(),
        members: call.args.parsed(&MEMBERS)?.unwrap_or_default(),
    };
    let cursor = call.client()?.set_event_cursor(name, &wanted).await.doing("creating cursor")?;
    write_out(layout::cursor::block(&call.style(), &cursor));
    Ok(0)
}

async fn reset(call: Call) -> Outcome {
    let name = call.one_argument()?;
    let members: Option<u32> = call.args.parsed(&MEMBERS)?;
    let to = match call.args.value(&TO) {
        None if members.is_none() => return Err(call.usage("-to is missing")),
        to => to.unwrap_or_default().to_string(),
    };
    if members == Some(0) {
        return Err(call.usage("-members is a number from 1 to 64"));
    }
    let wanted = EventCursorResetRequest { to, members: members.unwrap_or_default() };
    let moved = call.client()?.reset_event_cursor(name, &wanted).await.doing("resetting cursor")?;
    write_out(format!("Cursor \"{name}\" is after {}\n", moved.position));
    Ok(0)
}

async fn delete(call: Call) -> Outcome {
    let name = call.one_argument()?;
    call.client()?.delete_event_cursor(name).await.doing("deleting cursor")?;
    write_out(format!("Successfully deleted cursor \"{name}\"!\n"));
    Ok(0)
}
