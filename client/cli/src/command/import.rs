use std::fs::File;
use std::io::BufReader;

use anyhow::Context;
use migrate::{Change, Import, Inventory, Jobs, Line, Scope};

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, Outcome, Run};
use crate::flags::Flag;
use crate::other_cluster::{self, FROM_FLAGS};
use crate::output::write_out;

const DRY_RUN: Flag<bool> = Flag::switch("dry-run", "Show what would be written, and write nothing.");
const JOBS: Flag<Jobs> = Flag::parsed(
    "jobs",
    "none|stopped|run",
    "none, stopped or run",
    "What becomes of jobs: compare them, register new ones stopped, or run them here too. Default: none.",
);
const NO_VARIABLES: Flag<bool> = Flag::switch("no-variables", "Leave the variables out.");
pub(super) static NOMAD_API: Command = Command {
    name: "import nomad-api",
    aliases: &[],
    arguments: "<url>",
    summary: "Take over what a running Nomad has: jobs, variables, policies and more.",
    details: "Reads namespaces, node pools, ACL policies and roles, variables, the scheduler's configuration and jobs from the\n\
              server at the URL, which is never written to, and writes them to the server of -address where they are missing\n\
              or differ: a second run changes nothing. Each object has a line. Jobs are only compared unless -jobs says\n\
              otherwise, because both clusters would run them; with -jobs=stopped they wait for job start. -token is not\n\
              sent to the other cluster. The exit code is 1 when something could not be taken over. See docs/migrate.md.",
    flags: &[&[&DRY_RUN, &JOBS, &NO_VARIABLES], FROM_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(nomad_api(call))),
};

pub(super) static NOMAD_SNAPSHOT: Command = Command {
    name: "import nomad-snapshot",
    aliases: &[],
    arguments: "<file>",
    summary: "Take over what a snapshot of Nomad's servers has: jobs, variables, policies and more.",
    details: "Reads a file of nomad operator snapshot save, checks all of it, and writes what import nomad-api would write to the\n\
              server of -address. Variables are opened with the keys in the snapshot, unless these are kept elsewhere. Jobs\n\
              are only compared unless -jobs says otherwise. The exit code is 1 when something could not be taken over.\n\
              See docs/migrate.md.",
    flags: &[&[&DRY_RUN, &JOBS, &NO_VARIABLES], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(nomad_snapshot(call))),
};

async fn nomad_api(call: Call) -> Outcome {
    let from = other_cluster::client(&call, call.one_argument()?)?;
    let how = how(&call)?;
    let mut inventory = Inventory::read(&from, &how.scope).await.doing("reading the other cluster")?;
    inventory.count_left_out(&from).await.doing("reading the other cluster")?;
    write(&call, &inventory, &how).await
}

async fn nomad_snapshot(call: Call) -> Outcome {
    let path = call.one_argument()?;
    let how = how(&call)?;
    let file = File::open(path).with_context(|| format!("Error opening snapshot file {path}"))?;
    let read = Inventory::from_snapshot(BufReader::new(file), &how.scope);
    let (inventory, index) = read.with_context(|| format!("Error reading snapshot file {path}"))?;
    write_out(format!("Snapshot of index {index}\n"));
    write(&call, &inventory, &how).await
}

fn how(call: &Call) -> Result<Import, Failure> {
    let scope = Scope::of(call.namespace(), !call.args.switch(&NO_VARIABLES));
    let jobs = call.args.parsed(&JOBS)?.unwrap_or(Jobs::None);
    Ok(Import { jobs, dry_run: call.args.switch(&DRY_RUN), scope })
}

async fn write(call: &Call, inventory: &Inventory, how: &Import) -> Outcome {
    let to = call.client()?;
    let mut counts = Counts::default();
    let mut report = |line: Line| {
        write_out(shown(&line, how.dry_run));
        counts.add(&line.change);
    };
    migrate::import(inventory, &to, how, &mut report).await.doing("writing to the cluster")?;
    write_out(counts.shown(how.dry_run));
    Ok(u8::from(counts.failed > 0))
}

/// How many objects there are of each change.
#[derive(Default)]
struct Counts {
    created: usize,
    changed: usize,
    unchanged: usize,
    left_out: usize,
    failed: usize,
}

impl Counts {
    fn add(&mut self, change: &Change) {
        *match change {
            Change::Created => &mut self.created,
            Change::Changed(_) => &mut self.changed,
            Change::Unchanged => &mut self.unchanged,
            Change::LeftOut(_) => &mut self.left_out,
            Change::Failed(_) => &mut self.failed,
        } += 1;
    }

    fn shown(&self, dry_run: bool) -> String {
        let Counts { created, changed, unchanged, left_out, failed } = self;
        let end = if dry_run { "; nothing was written" } else { "" };
        format!(
            "{created} created, {changed} changed, {unchanged} unchanged, {left_out} left out, {failed} failed{end}\n"
        )
    }
}

/// `job default/web: changed (TaskGroups[0].Count)`.
fn shown(line: &Line, dry_run: bool) -> String {
    let would = if dry_run { "would be " } else { "" };
    let change = match &line.change {
        Change::Created => format!("{would}created"),
        Change::Changed(paths) => format!("{would}changed ({})", paths.join(", ")),
        Change::Unchanged => "unchanged".to_string(),
        Change::LeftOut(why) => format!("left out: {why}"),
        Change::Failed(why) => format!("failed: {}", why.trim_end().replace('\n', " ")),
    };
    let remark = if line.remark.is_empty() { String::new() } else { format!(" [{}]", line.remark) };
    format!("{}: {change}{remark}\n", line.what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_object_has_one_line() {
        let line = |change, remark: &str| Line { what: "job ops/web".into(), change, remark: remark.into() };
        let changed = line(Change::Changed(vec!["Priority".into(), "Stop".into()]), "stopped there");
        assert_eq!(shown(&changed, false), "job ops/web: changed (Priority, Stop) [stopped there]\n");
        assert_eq!(shown(&line(Change::Created, ""), true), "job ops/web: would be created\n");
        let failed = line(Change::Failed("2 errors\nand more\n".into()), "");
        assert_eq!(shown(&failed, false), "job ops/web: failed: 2 errors and more\n");
    }
}
