use base::Index;
use sdk::Query;
use serde_json::json;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, JSON, Outcome, Run, VERBOSE};
use crate::confirm::{YES, confirmed};
use crate::flags::Flag;
use crate::layout;
use crate::output::{OutputStyle, json as printed, write_err, write_out};
use crate::past::Moment;
use crate::past::undo::{self, Step};

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
    flags: &[&[&YES, &DRY_RUN, &JSON, &VERBOSE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    let given = call.one_argument()?;
    let index: u64 = given.parse().map_err(|_| call.usage(&format!("\"{given}\" is not an index")))?;
    let index = Index(index);
    let asks = !call.args.switch(&YES) && !call.args.switch(&DRY_RUN);
    if asks && call.args.switch(&JSON) {
        return Err(call.usage("-json asks nothing: it takes -yes or -dry-run"));
    }
    let moment = Moment::at(&call, index)?;
    let page = moment.client.log(Query::new().with("since", index)).await.doing("querying the log")?;
    let facts = page.value.lines.0;
    if facts.is_empty() {
        return Err(anyhow::anyhow!("The log has no facts of index {index}").into());
    }
    let steps = undo::steps(&call, index, &facts).await?;
    let as_json = call.args.switch(&JSON);
    if !as_json {
        write_out(in_words(&call.style(), index, &steps));
    }
    let writes = !steps.is_empty() && !call.args.switch(&DRY_RUN);
    if writes && asks && !confirmed("Write this?", "undo", "Nothing was written")? {
        return Ok(0);
    }
    for step in steps.iter().filter(|_| writes) {
        step.apply(&call.client_at(&step.namespace, "")?).await?;
        if !as_json {
            write_err(format!("Done: {}", step.words()));
        }
    }
    if as_json {
        let steps: Vec<_> =
            steps.iter().map(|step| json!({"Step": step.words(), "Changes": step.changes})).collect();
        write_out(printed(&json!({"Index": index.0, "Steps": steps, "Written": writes})));
    }
    Ok(0)
}

fn in_words(style: &OutputStyle, index: Index, steps: &[Step]) -> String {
    if steps.is_empty() {
        return format!("Everything is as it was before {index} already\n");
    }
    let shown =
        |step: &Step| style.section(&step.words(), &layout::past::changes(style, &step.changes, false));
    steps.iter().map(shown).collect()
}
