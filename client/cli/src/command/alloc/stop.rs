use sdk::Query;

use crate::call::{CLIENT_FLAGS, Call, Command, DETACH, Doing, Outcome, Run, VERBOSE};
use crate::flags::Flag;
use crate::output::write_out;
use crate::{eval_monitor, resolve};

const NO_SHUTDOWN_DELAY: Flag<bool> =
    Flag::switch("no-shutdown-delay", "Ignore the shutdown delay of the tasks.");

pub(super) static COMMAND: Command = Command {
    name: "alloc stop",
    aliases: &[],
    arguments: "<allocation>",
    summary: "Stop an allocation and reschedule it.",
    details: "",
    flags: &[&[&DETACH, &NO_SHUTDOWN_DELAY, &VERBOSE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    let (client, style) = (call.client()?, call.style());
    let alloc = resolve::allocation(&client, &style, call.one_argument()?).await?;
    let query = Query::new()
        .namespace(&alloc.namespace)
        .flag("no_shutdown_delay", call.args.switch(&NO_SHUTDOWN_DELAY));
    let stopped = client.stop_allocation(&alloc.id, query).await.doing("stopping allocation")?;
    if call.args.switch(&DETACH) {
        write_out(format!("{}\n", stopped.eval_id));
        return Ok(0);
    }
    eval_monitor::evaluation(&client, &style, &stopped.eval_id).await
}
