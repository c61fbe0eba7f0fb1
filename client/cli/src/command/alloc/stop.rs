use sdk::Query;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Outcome, Run, VERBOSE_FLAGS};
use crate::flags::switch;
use crate::output::write_out;
use crate::{monitor, resolve};

pub static COMMAND: Command = Command {
    name: "alloc stop",
    aliases: &[],
    arguments: "<allocation>",
    summary: "Stop an allocation and place it again.",
    details: "",
    flags: &[
        &[
            switch("detach", "Return at once, with the id of the evaluation."),
            switch("no-shutdown-delay", "Do not wait before the tasks are told to end."),
        ],
        VERBOSE_FLAGS,
        CLIENT_FLAGS,
    ],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    let (client, look) = (call.client()?, call.look());
    let alloc = resolve::allocation(&client, &look, call.one_argument()?).await?;
    let query = Query::new()
        .namespace(&alloc.namespace)
        .flag("no_shutdown_delay", call.args.switch("no-shutdown-delay"));
    let stopped = client.stop_allocation(&alloc.id, query).await.doing("stopping allocation")?;
    if call.args.switch("detach") {
        write_out(format!("{}\n", stopped.eval_id));
        return Ok(0);
    }
    monitor::evaluation(&client, &look, &stopped.eval_id).await
}
