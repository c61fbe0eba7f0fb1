//! Commands of Nomad Enterprise. They make the request that Nomad's make, and print what the server answers, which is that
//! it is of the other edition: so a script sees what a community cluster shows it.

use anyhow::{Context, anyhow};
use serde_json::json;

use crate::call::{CLIENT_FLAGS, Call, Command, DETACH, JSON, OBJECT_FLAGS, Outcome, Run, TEMPLATE, VERBOSE};
use crate::flags::{Flag, FlagList};
use crate::job_file::write_new;
use crate::output::write_out;
use crate::{hint, raw};

const POLICY_OVERRIDE: Flag<bool> = Flag::switch("policy-override", "Override soft mandatory policies.");
const JOB: Flag<String> = Flag::value("job", "JOB", "Only of this job.");
const GROUP: Flag<String> = Flag::value("group", "NAME", "Only of this group.");
const TASK: Flag<String> = Flag::value("task", "NAME", "Only of this task.");
const DESCRIPTION: Flag<String> = Flag::value("description", "TEXT", "What the policy is for.");
const SCOPE: Flag<String> = Flag::value("scope", "SCOPE", "What the policy is applied to.");
const LEVEL: Flag<String> = Flag::value("level", "LEVEL", "advisory, soft-mandatory or hard-mandatory.");
const RAW: Flag<bool> = Flag::switch("raw", "Print the policy alone.");
const TODAY_ONLY: Flag<bool> = Flag::switch("today-only", "Only what was measured today.");
const OUTPUT: Flag<String> = Flag::value("output", "FILE", "The file to write.");
const MESSAGE: Flag<String> = Flag::value("message", "TEXT", "A note for the report.");

/// A command, and the request that it makes.
struct Enterprise {
    command: Command,
    method: &'static str,
    /// `{}` is the first argument.
    path: &'static str,
    /// What an error says was being done.
    doing: &'static str,
    /// How many arguments it takes: from, to.
    arguments: (usize, usize),
}

const fn entry(
    (name, arguments, summary): (&'static str, &'static str, &'static str),
    (method, path, doing): (&'static str, &'static str, &'static str),
    count: (usize, usize),
    flags: &'static [FlagList],
) -> Enterprise {
    let details = "Nomad Enterprise only: a server without it answers so, and this one does.";
    let run = Run::Task(|call| Box::pin(run(call)));
    let command = Command { name, aliases: &[], arguments, summary, details, flags, run };
    Enterprise { command, method, path, doing, arguments: count }
}

const PLAIN: &[FlagList] = &[CLIENT_FLAGS];
const OBJECT: &[FlagList] = &[OBJECT_FLAGS, CLIENT_FLAGS];

static TABLE: [Enterprise; 15] = [
    entry(
        ("license get", "", "Show the license."),
        ("GET", "/v1/operator/license", "getting license"),
        (0, 0),
        PLAIN,
    ),
    entry(
        ("operator utilization", "", "Make a report of utilization."),
        ("POST", "/v1/operator/utilization", "creating utilization snapshot bundle"),
        (0, 0),
        &[&[&TODAY_ONLY, &OUTPUT, &MESSAGE], CLIENT_FLAGS],
    ),
    entry(
        ("quota apply", "<input>", "Create or update a quota."),
        ("PUT", "/v1/quota", "applying quota specification"),
        (1, 1),
        &[&[&JSON], CLIENT_FLAGS],
    ),
    entry(
        ("quota delete", "<quota>", "Delete a quota."),
        ("DELETE", "/v1/quota/{}", "deleting quota"),
        (1, 1),
        PLAIN,
    ),
    entry(
        ("quota inspect", "<quota>", "Show a quota as JSON."),
        ("GET", "/v1/quota/{}", "retrieving quota"),
        (1, 1),
        OBJECT,
    ),
    entry(("quota list", "", "List quotas."), ("GET", "/v1/quotas", "retrieving quotas"), (0, 0), OBJECT),
    entry(
        ("quota status", "<quota>", "Show a quota and what is used of it."),
        ("GET", "/v1/quota/{}", "retrieving quota"),
        (1, 1),
        OBJECT,
    ),
    entry(
        ("recommendation apply", "<recommendation_ids>", "Apply recommendations."),
        ("PUT", "/v1/recommendations/apply", "applying recommendations"),
        (1, usize::MAX),
        &[&[&POLICY_OVERRIDE, &DETACH, &VERBOSE], CLIENT_FLAGS],
    ),
    entry(
        ("recommendation dismiss", "<recommendation_ids>", "Dismiss recommendations."),
        ("DELETE", "/v1/recommendations", "dismissing recommendations"),
        (1, usize::MAX),
        PLAIN,
    ),
    entry(
        ("recommendation info", "<recommendation_id>", "Show a recommendation."),
        ("GET", "/v1/recommendation/{}", "reading recommendation"),
        (1, 1),
        OBJECT,
    ),
    entry(
        ("recommendation list", "", "List recommendations."),
        ("GET", "/v1/recommendations", "listing recommendations"),
        (0, 0),
        &[&[&JSON, &TEMPLATE, &JOB, &GROUP, &TASK], CLIENT_FLAGS],
    ),
    entry(
        ("sentinel apply", "<name> <file>", "Create or update a Sentinel policy."),
        ("PUT", "/v1/sentinel/policy/{}", "writing Sentinel policy"),
        (2, 2),
        &[&[&DESCRIPTION, &SCOPE, &LEVEL], CLIENT_FLAGS],
    ),
    entry(
        ("sentinel delete", "<name>", "Delete a Sentinel policy."),
        ("DELETE", "/v1/sentinel/policy/{}", "deleting Sentinel policy"),
        (1, 1),
        PLAIN,
    ),
    entry(
        ("sentinel list", "", "List Sentinel policies."),
        ("GET", "/v1/sentinel/policies", "listing Sentinel policies"),
        (0, 0),
        PLAIN,
    ),
    entry(
        ("sentinel read", "<name>", "Show a Sentinel policy."),
        ("GET", "/v1/sentinel/policy/{}", "reading Sentinel policy"),
        (1, 1),
        &[&[&RAW], CLIENT_FLAGS],
    ),
];

/// The one command that asks no server.
static QUOTA_INIT: Command = Command {
    name: "quota init",
    aliases: &[],
    arguments: "[<filename>]",
    summary: "Write an example of a quota's file.",
    details: "Quotas are of Nomad Enterprise: this cluster has none.",
    flags: &[&[&JSON]],
    run: Run::Process(init),
};

pub(super) fn commands() -> impl Iterator<Item = &'static Command> {
    TABLE.iter().map(|entry| &entry.command).chain([&QUOTA_INIT])
}

fn init(call: Call) -> Outcome {
    let (text, usual) = match call.args.switch(&JSON) {
        true => (include_str!("../examples/quota.json"), "spec.json"),
        false => (include_str!("../examples/quota.hcl"), "spec.hcl"),
    };
    let path = call.optional_argument()?.unwrap_or(usual);
    write_new(path, text)?;
    write_out(format!("Example quota specification written to {path}\n"));
    Ok(0)
}

async fn run(call: Call) -> Outcome {
    let name = call.command.name;
    let entry = TABLE.iter().find(|entry| entry.command.name == name);
    let entry = entry.context("the command stands in no table")?;
    let (least, most) = entry.arguments;
    if !(least..=most).contains(&call.args.words.len()) {
        return Err(call.usage(&match entry.command.arguments {
            "" => "This command takes no arguments".to_string(),
            arguments => format!("This command takes: {arguments}"),
        }));
    }
    let argument = call.args.words.first().map(|word| hint::segment(word)).unwrap_or_default();
    let (path, body) = (entry.path.replace("{}", &argument), json!({}));
    let body = (entry.method == "PUT").then_some(&body);
    let (status, text) = raw::answer(&call.client()?, entry.method, &path, body, entry.doing).await?;
    Err(match status {
        // What a community server says of its license.
        204 => anyhow!("Error {}: Nomad Enterprise only endpoint", entry.doing).into(),
        200..300 => {
            anyhow!("Error {}: the server is of Nomad Enterprise; use its program", entry.doing).into()
        }
        _ => raw::unexpected(entry.doing, status, &text),
    })
}
