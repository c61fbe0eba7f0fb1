use sdk::Query;

use crate::call::{CLIENT_FLAGS, Call, Command, DETACH, Doing, Outcome, Run, VERBOSE};
use crate::flags::Flag;
use crate::output::write_out;
use crate::{eval_monitor, resolve};

const FORCE_RESCHEDULE: Flag<bool> =
    Flag::switch("force-reschedule", "Reschedule failed allocations, including those that are not due.");

pub(super) static COMMAND: Command = Command {
    name: "job eval",
    aliases: &[],
    arguments: "<job_id>",
    summary: "Create an evaluation of a job.",
    details: "",
    flags: &[&[&FORCE_RESCHEDULE, &DETACH, &VERBOSE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    let (client, style) = (call.client()?, call.style());
    let (namespace, id) = resolve::job(&client, &style, call.one_argument()?).await?;
    let (force, query) = (call.args.switch(&FORCE_RESCHEDULE), Query::new().namespace(&namespace));
    let answer = client.evaluate_job(&id, force, query).await.doing("evaluating job")?;
    if call.args.switch(&DETACH) {
        // Scripts that parse Nomad's output expect the blank at the end.
        write_out(format!("Created eval ID: \"{}\" \n", style.id(&answer.eval_id)));
        return Ok(0);
    }
    eval_monitor::evaluation(&client, &style, &answer.eval_id).await
}
