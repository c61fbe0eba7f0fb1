use api::Variable;
use sdk::VariableChange;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, OBJECT_FLAGS, Outcome, Run, VERBOSE};
use crate::layout;
use crate::output::write_out;

use super::{conflict, locked};

pub(super) static HISTORY: Command = Command {
    name: "var history",
    aliases: &[],
    arguments: "<path>",
    summary: "List the versions of a variable that are kept, and who wrote them.",
    details: "The last 20 are kept. Those of a variable that was purged are gone.",
    flags: &[&[&VERBOSE], OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(history(call))),
};

pub(super) static REVERT: Command = Command {
    name: "var revert",
    aliases: &[],
    arguments: "<path> <version>",
    summary: "Give a variable the items that it had in an earlier version.",
    details: "They become its newest version, if nobody changes it meanwhile.",
    flags: &[CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(revert(call))),
};

async fn history(call: Call) -> Outcome {
    let path = call.one_argument()?;
    let format = call.object_format()?;
    let versions = call.client()?.variable_versions(path).await.doing("retrieving versions of variable")?;
    match format {
        Some(format) => format.print(&versions),
        None => {
            write_out(layout::variable::versions(&call.style(), &versions));
            Ok(0)
        }
    }
}

async fn revert(call: Call) -> Outcome {
    let (path, version) = call.two_arguments()?;
    let number: u64 = version
        .parse()
        .map_err(|_| call.usage(&format!("<version> \"{version}\": expected a number, see var history")))?;
    let client = call.client()?;
    let now = client.variable(path).await.doing("retrieving variable")?;
    let old = client.variable_version(path, number).await.doing("retrieving version of variable")?;
    let wanted = Variable { path: path.to_string(), items: old.items, ..Variable::default() };
    match client.set_variable(&wanted, Some(now.modify_index)).await.doing("reverting variable")? {
        VariableChange::Done(done) => {
            let index = done.modify_index;
            write_out(format!("Reverted variable \"{path}\" to version {number}, modify index {index}\n"));
            Ok(0)
        }
        VariableChange::Conflict(found) if found.modify_index == now.modify_index => Err(locked(path)),
        VariableChange::Conflict(found) => Err(conflict(now.modify_index, &found)),
    }
}
