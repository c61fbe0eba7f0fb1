use sdk::Query;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, OBJECT_FLAGS, Outcome, Run, VERBOSE_FLAGS};
use crate::flags::switch;
use crate::output::{json, write_out};
use crate::{layout, monitor, resolve};

pub static COMMAND: Command = Command {
    name: "eval status",
    aliases: &["eval-status"],
    arguments: "<evaluation>",
    summary: "Show what an evaluation placed, and what it could not.",
    details: "",
    flags: &[
        &[switch("monitor", "Follow it until it is decided.")],
        VERBOSE_FLAGS,
        OBJECT_FLAGS,
        CLIENT_FLAGS,
    ],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    let (client, look, as_json) = (call.client()?, call.look(), call.wants_json()?);
    let found = resolve::evaluation(&client, &look, call.one_argument()?).await?;
    if call.args.switch("monitor") {
        return monitor::evaluation(&client, &look, &found.id).await;
    }
    let query = || Query::new().namespace(&found.namespace);
    let eval = client.evaluation(&found.id, query().flag("related", true)).await;
    let eval = eval.doing("querying evaluation")?.value;
    if as_json {
        write_out(json(&eval));
        return Ok(0);
    }
    let allocs = client.evaluation_allocations(&eval.id, query()).await.doing("querying allocations")?.value;
    let mut text = layout::eval::block(&look, &eval);
    text.push_str(&layout::eval::related(&look, &eval.related_evals));
    text.push_str(&layout::eval::annotations(&look, &eval));
    if !allocs.is_empty() {
        text.push_str(&look.section("Placed Allocations", &layout::alloc::table(&look, &allocs)));
    }
    text.push_str(&layout::eval::failed_placements(&look, &eval));
    if !eval.missing_non_node_resources.is_empty() {
        let missing: String =
            eval.missing_non_node_resources.iter().map(|line| format!("{line}\n")).collect();
        text.push_str(&look.section("Missing Resources", &missing));
    }
    write_out(text);
    Ok(0)
}
