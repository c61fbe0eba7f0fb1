use std::collections::BTreeMap;

use api::{JobPlanRequest, JobPlanResponse};
use futures_util::future::try_join_all;
use sdk::Client;

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
        1 when some would, 255 on errors. A job in several regions is planned in each of them, or in the one that -region names.",
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
    let regions = job.multiregion.as_ref().map_or(&[][..], |block| &block.regions);
    if !regions.is_empty() && call.region().is_empty() {
        let names = regions.iter().map(|region| region.name.as_str());
        let answers = try_join_all(names.map(|name| planned_in(&client, name, &id, &request))).await?;
        if let Some(format) = format {
            let by_region: BTreeMap<_, _> = answers.iter().map(|(name, answer)| (name, answer)).collect();
            format.print(&by_region)?;
        } else {
            write_out(layout::plan::in_regions(&style, &job, &answers, &again(call, path, None)));
        }
        return Ok(u8::from(answers.iter().any(|(_, answer)| moves_allocations(answer))));
    }
    let answer = client.plan(&id, &request).await;
    let answer = answer.map_err(|error| anyhow::anyhow!("Error during plan: {error}"))?;
    if let Some(format) = format {
        format.print(&answer)?;
    } else {
        let again = again(call, path, Some(answer.job_modify_index));
        write_out(layout::plan::whole(&style, &job, &answer, &again));
    }
    Ok(u8::from(moves_allocations(&answer)))
}

async fn planned_in(
    client: &Client,
    region: &str,
    id: &str,
    request: &JobPlanRequest,
) -> Result<(String, JobPlanResponse), Failure> {
    let answer = client.in_region(region).plan(id, request).await;
    let answer =
        answer.map_err(|error| anyhow::anyhow!("Error during plan in region {region:?}: {error}"))?;
    Ok((region.to_string(), answer))
}

fn moves_allocations(answer: &JobPlanResponse) -> bool {
    let desired = answer.annotations.iter().flat_map(|annotations| annotations.desired_tg_updates.values());
    desired
        .map(|group| group.stop + group.place + group.migrate + group.destructive_update + group.canary)
        .sum::<u64>()
        > 0
}

/// The command that registers what was planned; with an index, exactly that.
fn again(call: &Call, path: &str, index: Option<u64>) -> String {
    let mut command = format!("{} job run", call.program);
    if let Some(index) = index {
        command.push_str(&format!(" -check-index {index}"));
    }
    for flag in [&VAR, &VAR_FILE] {
        command.extend(call.args.values(flag).iter().map(|given| format!(" -{}={given}", flag.name())));
    }
    if !call.namespace().is_empty() {
        command.push_str(&format!(" -namespace={}", call.namespace()));
    }
    if call.args.given_switch(&HCL2_STRICT) == Some(false) {
        command.push_str(" -hcl2-strict=false");
    }
    format!("{command} {path}")
}
