use api::{AllocationTransition, EventChain, HistoryLine};
use sdk::Client;
use serde::Serialize;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, JSON, Outcome, Run, VERBOSE};
use crate::command::blame::is_about;
use crate::layout;
use crate::output::{json, write_out};
use crate::past::Object;
use crate::past::object::Kind;
use crate::resolve;

pub(super) static COMMAND: Command = Command {
    name: "audit who",
    aliases: &[],
    arguments: "<object>",
    summary: "Show who and what made an object, and what brought it into its present state.",
    details: "An object is job/NAME, node/ID, alloc/ID, eval/ID or deployment/ID. Under each fact stands what it followed\n\
              from, back to a request or to a deadline. How links are derived is in the documentation.\n\
              Example: audit who alloc/3f2a",
    flags: &[&[&JSON, &VERBOSE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

/// The two chains, as `-json` prints them.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Origins {
    created: EventChain,
    present: EventChain,
    /// The log may reach back further than what was read of it: the first fact may not be the creation.
    cut_short: bool,
}

async fn run(call: Call) -> Outcome {
    let object: Object = call.one_argument()?.parse().map_err(|why: String| call.usage(&why))?;
    let client = call.client()?;
    let ((created, present), cut_short) = ends(&call, &client, object).await?;
    let created = client.event_causes(&created).await.doing("querying causes")?;
    let present = client.event_causes(&present).await.doing("querying causes")?;
    if call.args.switch(&JSON) {
        write_out(json(&Origins { created, present, cut_short }));
        return Ok(0);
    }
    let style = call.style();
    let first = if cut_short { "The oldest that was read" } else { "Created" };
    write_out(format!("{first}\n{}", layout::causes::causes(&style, &created)));
    if created.id == present.id {
        write_out("\nNothing has changed it since.\n");
    } else {
        write_out(format!("\nPresent state\n{}", layout::causes::causes(&style, &present)));
    }
    Ok(0)
}

/// The facts that made it, and that brought it into its present state; and whether there are older ones.
async fn ends(call: &Call, client: &Client, object: Object) -> Result<((String, String), bool), Failure> {
    let style = call.style();
    match object.kind {
        Kind::Alloc => {
            let id = resolve::known_allocation(client, &style, &object.name).await?;
            let history = client.allocation_history(&id).await.doing("querying allocation history")?.value;
            Ok((of_alloc(&history.transitions).ok_or_else(|| unknown(&object))?, history.cut_short))
        }
        Kind::Job | Kind::Node | Kind::Eval | Kind::Deployment => {
            let object = object.resolved(client, &style).await?;
            let history = object.history(client).await?;
            let own: Vec<&HistoryLine> =
                history.lines.iter().filter(|line| is_about(line, &object)).collect();
            let ends = own.first().zip(own.last()).ok_or_else(|| unknown(&object))?;
            let name = |line: &HistoryLine| format!("{}:{}", line.index, line.ordinal);
            Ok(((name(ends.0), name(ends.1)), history.cut_short))
        }
        _ => {
            let why = format!("{object}: expected alloc/ID, job/NAME, node/ID, eval/ID or deployment/ID");
            Err(call.usage(&why))
        }
    }
}

/// What changes neither what is wanted of it nor what is known of it says nothing of its state.
fn of_alloc(transitions: &[AllocationTransition]) -> Option<(String, String)> {
    let name = |one: &AllocationTransition| format!("{}:{}", one.index, one.ordinal);
    let changes =
        |one: &&AllocationTransition| one.old_desired != one.new_desired || one.old_client != one.new_client;
    let (first, last) = (transitions.first()?, transitions.last()?);
    Some((name(first), name(transitions.iter().rfind(changes).unwrap_or(last))))
}

fn unknown(object: &Object) -> Failure {
    anyhow::anyhow!("Nothing is known of {object}: it is gone, or the log does not reach back to it").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_present_state_is_that_of_the_last_change() {
        let one = |index: u64, old: &str, new: &str| AllocationTransition {
            index,
            old_client: old.into(),
            new_client: new.into(),
            ..AllocationTransition::default()
        };
        let all = [one(4, "", "pending"), one(6, "pending", "running"), one(9, "running", "running")];
        assert_eq!(of_alloc(&all), Some(("4:0".into(), "6:0".into())));
        assert_eq!(of_alloc(&[]), None);
    }
}
