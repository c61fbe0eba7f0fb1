use crate::call::{
    CLIENT_FLAGS, Call, Command, Doing, OBJECT_FLAGS, OUTPUT, Outcome, PAGE_FLAGS, Run, UI, VERBOSE,
};
use crate::flags::{Completion, Flag};
use crate::output::write_out;
use crate::watch::{self, WATCH, Waits};
use crate::{hint, layout};

const JOB: Flag<String> =
    Flag::value("job", "NAME", "List only those of this job.").completed_by(Completion::Ids("jobs"));
const STATUS: Flag<String> =
    Flag::value("status", "STATUS", "List only those with this status, like blocked.");

pub(super) static COMMAND: Command = Command {
    name: "eval list",
    aliases: &[],
    arguments: "",
    summary: "List evaluations.",
    details: "",
    flags: &[&[&JOB, &STATUS], PAGE_FLAGS, &[&VERBOSE, &WATCH, &OUTPUT], OBJECT_FLAGS, &[&UI], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(watch::run(call, Waits::ForChanges, list))),
};

async fn list(call: &Call) -> Outcome {
    call.no_arguments()?;
    let (client, style, format) = (call.client()?, call.style(), call.object_format()?);
    let text = |flag| call.args.value(flag).unwrap_or_default();
    let query = call.page()?.with("job", text(&JOB)).with("status", text(&STATUS));
    let answer = client.evaluations(query).await.doing("querying evaluations")?;
    if let Some(format) = format {
        return format.print(&answer.value);
    }
    if answer.value.is_empty() {
        write_out("No evals found\n");
        return Ok(0);
    }
    let next = call.next_page(answer.next_token.as_deref());
    write_out(layout::eval::table(&style, &answer.value) + &next);
    hint::show(call, &style, "evaluations", "evaluations").await;
    Ok(0)
}
