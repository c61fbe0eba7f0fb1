use sdk::Query;

use crate::call::{CLIENT_FLAGS, Call, Command, DETACH, Doing, Outcome, Run, VERBOSE};
use crate::output::write_out;
use crate::{eval_monitor, resolve};

pub(super) static COMMAND: Command = Command {
    name: "job periodic force",
    aliases: &[],
    arguments: "<job id>",
    summary: "Launch a periodic job now.",
    details: "Its periodic launches continue unchanged.",
    flags: &[&[&DETACH, &VERBOSE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

/// A filter expression that matches periodic jobs.
const PERIODIC: &str = "Periodic is not nil";

async fn run(call: Call) -> Outcome {
    let (client, style) = (call.client()?, call.style());
    let (namespace, id) = resolve::job_that(&client, &style, call.one_argument()?, PERIODIC).await?;
    let query = Query::new().namespace(&namespace);
    let launch = client.force_periodic(&id, query).await;
    let launch = launch.doing(&format!("forcing periodic job \"{id}\""))?;
    if call.args.switch(&DETACH) {
        write_out(format!("Force periodic successful\nEvaluation ID: {}\n", launch.eval_id));
        return Ok(0);
    }
    eval_monitor::evaluation(&client, &style, &launch.eval_id).await
}
