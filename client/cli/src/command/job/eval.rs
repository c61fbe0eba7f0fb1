use sdk::Query;

use crate::call::{CLIENT_FLAGS, Call, Command, DETACH_FLAGS, Doing, Outcome, Run, VERBOSE_FLAGS};
use crate::flags::switch;
use crate::output::write_out;
use crate::{monitor, resolve};

pub static COMMAND: Command = Command {
    name: "job eval",
    aliases: &[],
    arguments: "<job_id>",
    summary: "Let the scheduler look at a job again.",
    details: "",
    flags: &[
        &[switch("force-reschedule", "Place failed allocations again, even those that are not due.")],
        DETACH_FLAGS,
        VERBOSE_FLAGS,
        CLIENT_FLAGS,
    ],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    let (client, look) = (call.client()?, call.look());
    let (namespace, id) = resolve::job(&client, &look, call.one_argument()?).await?;
    let (force, query) = (call.args.switch("force-reschedule"), Query::new().namespace(&namespace));
    let answer = client.evaluate_job(&id, force, query).await.doing("evaluating job")?;
    if call.args.switch("detach") {
        // The blank at the end is part of what scripts know.
        write_out(format!("Created eval ID: \"{}\" \n", look.id(&answer.eval_id)));
        return Ok(0);
    }
    monitor::evaluation(&client, &look, &answer.eval_id).await
}
