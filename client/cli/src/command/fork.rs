//! Forks that `whatif -keep` has made.

use model::document::ForkResult;

use super::whatif::{VIOLATED, is_fine};
use crate::call::{CLIENT_FLAGS, Call, Command, Doing, JSON, OBJECT_FLAGS, Outcome, Run, VERBOSE};
use crate::layout;
use crate::output::{json as printed, write_out};

pub(super) const COMMANDS: &[&Command] = &[&LIST, &STATUS, &ADVANCE, &DELETE];

static LIST: Command = Command {
    name: "fork list",
    aliases: &[],
    arguments: "",
    summary: "List the forks that are kept.",
    details: "Those that were made with the same token; all of them for a management token.",
    flags: &[OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(list(call))),
};

static STATUS: Command = Command {
    name: "fork status",
    aliases: &[],
    arguments: "<fork>",
    summary: "Show how a kept fork differs from what it began with.",
    details: "The fork is named by its id, or the beginning of it. The exit code is that of whatif.",
    flags: &[&[&JSON, &VERBOSE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(status(call))),
};

static ADVANCE: Command = Command {
    name: "fork advance",
    aliases: &[],
    arguments: "<fork> <time>",
    summary: "Let time pass on the clock of a kept fork.",
    details: "Such as 1h; a week may pass in all. The exit code is that of whatif. Further changes are made with\n\
              whatif -fork <id> <change>.",
    flags: &[&[&JSON, &VERBOSE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(advance(call))),
};

static DELETE: Command = Command {
    name: "fork delete",
    aliases: &[],
    arguments: "<fork>",
    summary: "Forget a kept fork before its time is over.",
    details: "",
    flags: &[CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(delete(call))),
};

async fn list(call: Call) -> Outcome {
    call.no_arguments()?;
    let format = call.object_format()?;
    let forks = call.client()?.forks().await.doing("retrieving forks")?;
    if let Some(format) = format {
        return format.print(&forks);
    }
    write_out(match forks.as_slice() {
        [] => "No forks are kept\n".to_string(),
        forks => layout::fork::table(forks),
    });
    Ok(0)
}

async fn status(call: Call) -> Outcome {
    let id = found(&call, call.one_argument()?).await?;
    let result = call.client()?.kept_fork(&id).await.doing("retrieving fork")?;
    Ok(show(&call, &result))
}

async fn advance(call: Call) -> Outcome {
    let (id, by) = call.two_arguments()?;
    let id = found(&call, id).await?;
    let result = call.client()?.advance_fork(&id, by).await.doing("letting time pass")?;
    Ok(show(&call, &result))
}

async fn delete(call: Call) -> Outcome {
    let id = found(&call, call.one_argument()?).await?;
    call.client()?.delete_fork(&id).await.doing("deleting fork")?;
    write_out(format!("Fork {id} is deleted\n"));
    Ok(0)
}

/// The id that a text begins. One that is not in the list is left to the server to refuse.
async fn found(call: &Call, text: &str) -> Result<String, crate::call::Failure> {
    let forks = call.client()?.forks().await.doing("retrieving forks")?;
    let mut begun = forks.iter().filter(|fork| fork.id.starts_with(text));
    match (begun.next(), begun.next()) {
        (Some(one), None) => Ok(one.id.clone()),
        (Some(_), Some(_)) => Err(call.usage(&format!("Several forks have ids that begin with {text}"))),
        (None, _) => Ok(text.to_string()),
    }
}

fn show(call: &Call, result: &ForkResult) -> u8 {
    write_out(if call.args.switch(&JSON) {
        printed(result)
    } else {
        layout::whatif::whole(&call.style(), result)
    });
    if is_fine(result) { 0 } else { VIOLATED }
}
