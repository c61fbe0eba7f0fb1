use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Outcome, Run};
use crate::output::write_out;

pub(super) static DELETE: Command = Command {
    name: "sink delete",
    aliases: &[],
    arguments: "<sink>",
    summary: "Delete a sink of the event stream, and its cursor.",
    details: "",
    flags: &[CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(delete(call))),
};

pub(super) static PAUSE: Command = Command {
    name: "sink pause",
    aliases: &[],
    arguments: "<sink>",
    summary: "Have a sink send nothing until it is resumed.",
    details: "",
    flags: &[CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(turn(call, "pause"))),
};

pub(super) static RESUME: Command = Command {
    name: "sink resume",
    aliases: &[],
    arguments: "<sink>",
    summary: "Have a paused or parked sink send again.",
    details: "It goes on with the first event that is not known to have arrived.",
    flags: &[CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(turn(call, "resume"))),
};

pub(super) static RETRY: Command = Command {
    name: "sink retry",
    aliases: &[],
    arguments: "<sink>",
    summary: "Try the event again that a sink is parked at.",
    details: "The same as sink resume.",
    flags: &[CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(turn(call, "retry"))),
};

pub(super) static SKIP: Command = Command {
    name: "sink skip",
    aliases: &[],
    arguments: "<sink>",
    summary: "Give up the event that a sink is parked at, and go on behind it.",
    details: "",
    flags: &[CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(turn(call, "skip"))),
};

async fn delete(call: Call) -> Outcome {
    let name = call.one_argument()?;
    call.client()?.delete_event_sink(name).await.doing("deleting sink")?;
    write_out(format!("Successfully deleted sink \"{name}\"!\n"));
    Ok(0)
}

async fn turn(call: Call, action: &'static str) -> Outcome {
    let name = call.one_argument()?;
    let sink = call.client()?.turn_event_sink(name, action).await.doing("changing sink")?;
    write_out(format!("Sink \"{name}\" is {}, after {}\n", sink.status, sink.position));
    Ok(0)
}
