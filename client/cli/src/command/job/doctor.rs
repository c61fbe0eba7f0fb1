use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Outcome, Run};
use crate::flags::Flag;
use crate::job_file::{self, JOB_FILE_FLAGS};
use crate::layout::doctor;
use crate::output::{json, write_out};

const JSON_OUTPUT: Flag<bool> = Flag::switch("json-output", "Print the answer as JSON.");

pub(super) static COMMAND: Command = Command {
    name: "job doctor",
    aliases: &[],
    arguments: "<path>",
    summary: "Say line by line what of a job file works on this cluster.",
    details: "Each block works, is ignored, will fail, or can never be placed on the nodes that the cluster has.\n\
              Nothing is registered. The exit code is 1 when something would not run.",
    flags: &[&[&JSON_OUTPUT], JOB_FILE_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    let style = call.style();
    let file = job_file::load(&call, call.one_argument()?).await?;
    let client = call.client_in(&call.namespace_of(&file.parsed.job))?;
    // A file in JSON has no blocks to point at.
    let parts = if file.submission.format == "json" { Vec::new() } else { file.outline() };
    let mut found = client.doctor(file.parsed.job).await.doing("examining job")?;
    found.warnings.extend(file.parsed.warnings);
    if call.args.switch(&JSON_OUTPUT) {
        write_out(json(&found));
    } else {
        write_out(doctor::whole(&style, &parts, &found));
    }
    Ok(u8::from(!doctor::runs(&found)))
}
