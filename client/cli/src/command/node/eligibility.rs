use super::drain::{SELF, chosen};
use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Outcome, Run, VERBOSE};
use crate::confirm::YES;
use crate::flags::Flag;
use crate::output::write_out;

const ENABLE: Flag<bool> = Flag::switch("enable", "Make the node eligible.");
const DISABLE: Flag<bool> = Flag::switch("disable", "Make the node ineligible; running allocations stay.");

pub(super) static COMMAND: Command = Command {
    name: "node eligibility",
    aliases: &[],
    arguments: "<node>",
    summary: "Set whether a node is eligible for new allocations.",
    details: "",
    flags: &[&[&ENABLE, &DISABLE, &SELF, &YES, &VERBOSE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(eligibility(call))),
};

async fn eligibility(call: Call) -> Outcome {
    let on = |flag| call.args.switch(flag);
    if on(&ENABLE) == on(&DISABLE) {
        return Err(call.usage("Either the '-enable' or '-disable' flag must be set"));
    }
    let (client, style) = (call.client()?, call.style());
    let eligible = on(&ENABLE);
    let (word, question) = match eligible {
        true => ("eligible", "mark as eligible"),
        false => ("ineligible", "mark as ineligible"),
    };
    let canceled = "Canceling scheduling eligibility toggle";
    let Some(id) = chosen(&call, &client, &style, Some(question), "change", canceled).await? else {
        return Ok(0);
    };
    client.set_eligibility(&id, word).await.doing("updating scheduling eligibility")?;
    write_out(format!("Node \"{id}\" scheduling eligibility set: {word} for scheduling\n"));
    Ok(0)
}
