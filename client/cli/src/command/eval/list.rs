use crate::call::{
    CLIENT_FLAGS, Call, Command, Doing, OBJECT_FLAGS, Outcome, PAGE_FLAGS, Run, UI_FLAGS, VERBOSE_FLAGS,
};
use crate::flags::value;
use crate::output::write_out;
use crate::{hint, layout};

pub static COMMAND: Command = Command {
    name: "eval list",
    aliases: &[],
    arguments: "",
    summary: "List evaluations.",
    details: "",
    flags: &[
        &[
            value("job", "NAME", "List only those of this job."),
            value("status", "STATUS", "List only those with this status, like blocked."),
        ],
        PAGE_FLAGS,
        VERBOSE_FLAGS,
        OBJECT_FLAGS,
        UI_FLAGS,
        CLIENT_FLAGS,
    ],
    run: Run::Task(|call| Box::pin(list(call))),
};

async fn list(call: Call) -> Outcome {
    call.no_arguments()?;
    let (client, look, objects) = (call.client()?, call.look(), call.objects()?);
    let text = |name| call.args.value(name).unwrap_or_default();
    let query = call.page()?.with("job", text("job")).with("status", text("status"));
    let answer = client.evaluations(query).await.doing("querying evaluations")?;
    if let Some(objects) = objects {
        return objects.print(&answer.value);
    }
    if answer.value.is_empty() {
        write_out("No evals found\n");
        return Ok(0);
    }
    let next = call.next_page(answer.next_token.as_deref());
    write_out(layout::eval::table(&look, &answer.value) + &next);
    hint::show(&call, &look, "evaluations", "evaluations").await;
    Ok(0)
}
