use base::Index;
use sdk::Query;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Outcome, Run, VERBOSE};
use crate::confirm::{YES, confirmed};
use crate::flags::Flag;
use crate::layout;
use crate::output::{write_err, write_out};
use crate::past::{Moment, undo};

const DRY_RUN: Flag<bool> = Flag::switch("dry-run", "Show what would be written, and write nothing.");

pub(super) static COMMAND: Command = Command {
    name: "undo",
    aliases: &[],
    arguments: "<index>",
    summary: "Take back what was written at an index, by writing what was there before.",
    details: "It shows what it would write, asks, and writes: jobs as they were registered (one that was new is stopped),\n\
              eligibility and drains of nodes, variables, namespaces, node pools, policies, and the scheduler's configuration.\n\
              What was changed since is refused, and so is what cannot be taken back: whatever was deleted with a secret that\n\
              nobody has, reports of nodes, and what followed from something else. It needs a management token where access\n\
              control is on. Examples: undo 48213; undo -dry-run 48213",
    flags: &[&[&YES, &DRY_RUN, &VERBOSE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    let given = call.one_argument()?;
    let index: u64 = given.parse().map_err(|_| call.usage(&format!("\"{given}\" is not an index")))?;
    let index = Index(index);
    let moment = Moment::at(&call, index)?;
    let page = moment.client.log(Query::new().with("since", index)).await.doing("querying the log")?;
    let facts = page.value.lines.0;
    if facts.is_empty() {
        return Err(anyhow::anyhow!("The log has no facts of index {index}").into());
    }
    let style = call.style();
    let steps = undo::steps(&call, index, &facts).await?;
    if steps.is_empty() {
        write_out(format!("Everything is as it was before {index} already\n"));
        return Ok(0);
    }
    for step in &steps {
        write_out(style.section(&step.words(), &layout::past::changes(&style, &step.changes, false)));
    }
    if call.args.switch(&DRY_RUN) {
        return Ok(0);
    }
    if !call.args.switch(&YES) && !confirmed("Write this?", "undo", "Nothing was written")? {
        return Ok(0);
    }
    for step in &steps {
        step.apply(&call.client_at(&step.namespace, "")?).await?;
        write_err(format!("Done: {}", step.words()));
    }
    Ok(0)
}
