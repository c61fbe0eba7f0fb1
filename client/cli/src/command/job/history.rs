use model::document::Job;
use sdk::Query;

use super::inspect::versioned;
use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, JSON, OBJECT_FLAGS, Outcome, Run, TEMPLATE};
use crate::flags::{AnyFlag, Flag};
use crate::output::{OutputStyle, fields, json, write_out};
use crate::{layout, resolve};

const DIFFS: Flag<bool> = Flag::switch("p", "Show what each version changed.");
const FULL: Flag<bool> = Flag::switch("full", "Show each version in full.");
const VERSION: Flag<String> = Flag::value("version", "N", "Show only this version, by its number or tag.");
const DIFF_VERSION: Flag<u64> = Flag::number("diff-version", "N", "Show the difference to this version.");
const DIFF_TAG: Flag<String> =
    Flag::value("diff-tag", "NAME", "Show the difference to the version with this tag.");

pub(super) static COMMAND: Command = Command {
    name: "job history",
    aliases: &[],
    arguments: "<job>",
    summary: "List the versions of a job, newest first.",
    details: "",
    flags: &[&[&DIFFS, &FULL, &VERSION, &DIFF_VERSION, &DIFF_TAG], OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    let (client, style, format) = (call.client()?, call.style(), call.object_format()?);
    check(&call)?;
    let (namespace, id) = resolve::job(&client, &style, call.one_argument()?).await?;
    let (version, tag) = (call.args.parsed(&DIFF_VERSION)?, call.args.value(&DIFF_TAG));
    let differences = call.args.switch(&DIFFS) || version.is_some() || tag.is_some();
    let query = Query::new()
        .namespace(&namespace)
        .flag("diffs", differences)
        .with("diff_version", version.map(|version| version.to_string()).unwrap_or_default())
        .with("diff_tag", tag.unwrap_or_default());
    let answer = client.job_versions(&id, query).await.doing("retrieving job versions")?.value;
    let versions = answer.versions.0;
    let diffs = if differences { answer.diffs.0 } else { Vec::new() };
    if let Some(wanted) = call.args.value(&VERSION) {
        let job = versioned(&id, versions.clone(), wanted)?;
        let at = versions.iter().position(|known| known.version == job.version);
        return match format {
            Some(format) => format.print(&job),
            None => {
                write_out(block(&call, &style, &job, at.and_then(|at| diffs.get(at))));
                Ok(0)
            }
        };
    }
    if let Some(format) = format {
        return format.print(&versions);
    }
    let blocks = versions.iter().enumerate().map(|(at, job)| block(&call, &style, job, diffs.get(at)));
    write_out(blocks.collect::<Vec<_>>().join("\n"));
    Ok(0)
}

/// Rejects flags that exclude each other.
fn check(call: &Call) -> Result<(), Failure> {
    let given = |flag: &dyn AnyFlag| call.args.last(flag).is_some();
    let differences = call.args.switch(&DIFFS) || given(&DIFF_VERSION) || given(&DIFF_TAG);
    if differences && (call.args.switch(&JSON) || given(&TEMPLATE)) {
        return Err(call.usage("-json and -t are exclusive with -p, -diff-version and -diff-tag"));
    }
    if given(&DIFF_VERSION) && given(&DIFF_TAG) {
        return Err(call.usage("Either -diff-tag or -diff-version can be given, but not both"));
    }
    Ok(())
}

/// One version. The oldest has no difference to show.
fn block(call: &Call, style: &OutputStyle, job: &Job, diff: Option<&api::JobDiff>) -> String {
    let mut entries = layout::job::version(style, job);
    if let Some(diff) = diff {
        entries.push(("Diff", format!("\n{}", layout::plan::differences(style, diff).trim_end())));
    }
    if call.args.switch(&FULL) {
        entries.push(("Full", format!("\n{}", json(job).trim_end())));
    }
    fields(&entries)
}
