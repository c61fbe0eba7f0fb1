use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Outcome, Run};
use crate::flags::Flag;
use crate::output::write_out;

use super::{conflict, locked};

const CHECK_INDEX: Flag<u64> =
    Flag::number("check-index", "INDEX", "Only if it was last modified at this index.");

pub(super) static COMMAND: Command = Command {
    name: "var purge",
    aliases: &[],
    arguments: "<path>",
    summary: "Delete a variable and its earlier versions.",
    details: "",
    flags: &[&[&CHECK_INDEX], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(purge(call))),
};

async fn purge(call: Call) -> Outcome {
    let path = call.one_argument()?;
    let only_at = call.args.parsed(&CHECK_INDEX)?;
    match (call.client()?.delete_variable(path, only_at).await.doing("purging variable")?, only_at) {
        (None, _) => {
            write_out(format!("Successfully purged variable \"{path}\"!\n"));
            Ok(0)
        }
        (Some(found), Some(given)) if found.modify_index != given => Err(conflict(given, &found)),
        (Some(_), _) => Err(locked(path)),
    }
}
