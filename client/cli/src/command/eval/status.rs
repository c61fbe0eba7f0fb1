use sdk::Query;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, OBJECT_FLAGS, OUTPUT, Outcome, Run, UI, VERBOSE};
use crate::flags::Flag;
use crate::output::write_out;
use crate::watch::{self, WATCH, Waits};
use crate::{eval_monitor, hint, layout, resolve};

const MONITOR: Flag<bool> = Flag::switch("monitor", "Monitor it until it is complete.");

pub(crate) static COMMAND: Command = Command {
    name: "eval status",
    aliases: &["eval-status"],
    arguments: "<evaluation>",
    summary: "Show an evaluation, its placements and failures.",
    details: "",
    flags: &[&[&MONITOR, &VERBOSE, &WATCH, &OUTPUT], OBJECT_FLAGS, &[&UI], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(watch::run(call, Waits::ForChanges, run))),
};

async fn run(call: &Call) -> Outcome {
    let (client, style, format) = (call.client()?, call.style(), call.object_format()?);
    if call.args.switch(&MONITOR) && format.is_some() {
        return Err(call.usage("-monitor cannot be used with -json or -t"));
    }
    let found = resolve::evaluation(&client, &style, call.one_argument()?).await?;
    if call.args.switch(&MONITOR) {
        return eval_monitor::evaluation(&client, &style, &found.id).await;
    }
    let query = || Query::new().namespace(&found.namespace);
    let eval = client.evaluation(&found.id, query().flag("related", true)).await;
    let eval = eval.doing("querying evaluation")?.value;
    if let Some(format) = format {
        return format.print(&eval);
    }
    let allocs = client.evaluation_allocations(&eval.id, query()).await.doing("querying allocations")?.value;
    let mut text = layout::eval::block(&style, &eval);
    text.push_str(&layout::eval::related(&style, &eval.related_evals));
    text.push_str(&layout::eval::annotations(&style, &eval));
    if let Some(annotations) =
        eval.plan_annotations.as_ref().filter(|found| !found.preempted_allocs.is_empty())
    {
        let table = layout::alloc::with_jobs(&style, &annotations.preempted_allocs);
        text.push_str(&style.section("Preempted Allocations", &table));
    }
    if !allocs.is_empty() {
        text.push_str(&style.section("Placed Allocations", &layout::alloc::table(&style, &allocs)));
    }
    text.push_str(&layout::eval::failed_placements(&style, &eval));
    if !eval.missing_non_node_resources.is_empty() {
        let missing: String =
            eval.missing_non_node_resources.iter().map(|line| format!("{line}\n")).collect();
        text.push_str(&style.section("Missing Resources", &missing));
    }
    write_out(text);
    hint::show(call, &style, "this evaluation", &format!("evaluations?currentEval={}", eval.id)).await;
    Ok(0)
}
