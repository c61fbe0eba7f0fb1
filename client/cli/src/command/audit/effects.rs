use crate::call::{CLIENT_FLAGS, Call, Command, Doing, JSON, Outcome, Run, VERBOSE};
use crate::layout;
use crate::output::{json, write_out};

pub(super) static COMMAND: Command = Command {
    name: "audit effects",
    aliases: &[],
    arguments: "<id>",
    summary: "Show what followed from a request or an event.",
    details: "An id is that of a request, of an event as the stream names it (42.0), or of a fact in the log, as audit who\n\
              shows it (42:0). Under each fact stands what followed from it, up to 16 steps and 256 facts.\n\
              Example: audit effects 42:0",
    flags: &[&[&JSON, &VERBOSE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    let (client, id) = (call.client()?, call.one_argument()?);
    let chain = client.event_effects(id).await.doing("querying effects")?;
    write_out(if call.args.switch(&JSON) {
        json(&chain)
    } else {
        layout::causes::effects(&call.style(), &chain)
    });
    Ok(0)
}
