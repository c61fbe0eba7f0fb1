use api::{JobPlanRequest, JobPlanResponse};

use crate::call::{CLIENT_FLAGS, Call, Command, Failure, Outcome, Run, TEMPLATE, VERBOSE};
use crate::flags::Flag;
use crate::job_file::{self, HCL2_STRICT, JOB_FILE_FLAGS, VAR, VAR_FILE};
use crate::layout;
use crate::output::write_out;

const DIFF: Flag<bool> = Flag::switch("diff", "Show the difference to the stored job. Default: true.");
const POLICY_OVERRIDE: Flag<bool> = Flag::switch("policy-override", "Nomad Enterprise only.");
const JSON_OUTPUT: Flag<bool> = Flag::switch("json-output", "Print the answer as JSON.");
const VAULT_NAMESPACE: Flag<String> = Flag::value("vault-namespace", "NAME", "Nomad Enterprise only.");

pub(super) static COMMAND: Command = Command {
    name: "job plan",
    aliases: &["plan"],
    arguments: "<path>",
    summary: "Show what registering a job would change; nothing is registered.",
    details: "The path is a job file, or - for standard input. The exit code is 0 when no allocations would be created or destroyed, \
        1 when some would, 255 on errors.",
    flags: &[
        &[&DIFF, &POLICY_OVERRIDE, &JSON_OUTPUT, &VAULT_NAMESPACE, &TEMPLATE],
        JOB_FILE_FLAGS,
        &[&VERBOSE],
        CLIENT_FLAGS,
    ],
    run: Run::Task(|call| Box::pin(run(call))),
};

/// The exit code when the plan could not be made.
const FAILED: u8 = 255;

async fn run(call: Call) -> Outcome {
    plan(&call).await.map_err(|failure| match failure {
        Failure::Failed(error) => Failure::Code(FAILED, format!("{error:#}")),
        Failure::Code(_, text) => Failure::Code(FAILED, text),
        usage @ (Failure::Usage(_) | Failure::Flag(_)) => usage,
    })
}

async fn plan(call: &Call) -> Outcome {
    call.reject_enterprise(&VAULT_NAMESPACE)?;
    let format = call.object_format_by(&JSON_OUTPUT)?;
    let style = call.style();
    let path = call.one_argument()?;
    let job = job_file::load(call, path).await?.parsed.job;
    let id = job.id.clone().unwrap_or_default();
    let client = call.client_in(&call.namespace_of(&job))?;
    let request = JobPlanRequest {
        job: Some(job.clone()),
        diff: call.args.given_switch(&DIFF).unwrap_or(true),
        policy_override: call.args.switch(&POLICY_OVERRIDE),
    };
    let answer = client.plan(&id, &request).await;
    let answer = answer.map_err(|error| anyhow::anyhow!("Error during plan: {error}"))?;
    if let Some(format) = format {
        format.print(&answer)?;
    } else {
        let again = again(call, path, answer.job_modify_index);
        write_out(layout::plan::whole(&style, &job, &answer, &again));
    }
    Ok(u8::from(moves_allocations(&answer)))
}

fn moves_allocations(answer: &JobPlanResponse) -> bool {
    let desired = answer.annotations.iter().flat_map(|annotations| annotations.desired_tg_updates.values());
    desired
        .map(|group| group.stop + group.place + group.migrate + group.destructive_update + group.canary)
        .sum::<u64>()
        > 0
}

/// The command that registers exactly this plan.
fn again(call: &Call, path: &str, index: u64) -> String {
    let mut flags = format!("-check-index {index}");
    for flag in [&VAR, &VAR_FILE] {
        flags.extend(call.args.values(flag).iter().map(|given| format!(" -{}={given}", flag.name())));
    }
    if !call.namespace().is_empty() {
        flags.push_str(&format!(" -namespace={}", call.namespace()));
    }
    if call.args.given_switch(&HCL2_STRICT) == Some(false) {
        flags.push_str(" -hcl2-strict=false");
    }
    format!("{} job run {flags} {path}", call.program)
}
