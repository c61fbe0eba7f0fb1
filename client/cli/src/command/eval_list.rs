use sdk::{EvalDeleteRequest, Query};

use crate::call::{
    CLIENT_FLAGS, Call, Command, Doing, OBJECT_FLAGS, Outcome, PAGE_FLAGS, Run, UI_FLAGS, VERBOSE_FLAGS,
};
use crate::confirm::confirmed;
use crate::flags::{switch, value};
use crate::output::write_out;
use crate::{hint, layout, resolve};

pub static LIST: Command = Command {
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

pub static DELETE: Command = Command {
    name: "eval delete",
    aliases: &[],
    arguments: "[<evaluation>]",
    summary: "Delete an evaluation, or those that an expression is true of.",
    details: "Evaluations must not be handed out meanwhile:\n\
              `operator scheduler set-config -pause-eval-broker=true` holds them.",
    flags: &[
        &[
            value("filter", "EXPR", "Delete those that this expression is true of."),
            switch("yes", "Ask nothing."),
        ],
        CLIENT_FLAGS,
    ],
    run: Run::Task(|call| Box::pin(delete(call))),
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

async fn delete(call: Call) -> Outcome {
    let filter = call.args.value("filter").filter(|filter| !filter.is_empty());
    let (client, look) = (call.client()?, call.look());
    let request = match (call.optional_argument()?, filter) {
        (Some(id), None) => {
            let eval = resolve::evaluation(&client, &look, id).await?;
            EvalDeleteRequest { eval_ids: vec![eval.id], ..EvalDeleteRequest::default() }
        }
        (None, Some(filter)) => {
            EvalDeleteRequest { filter: filter.to_string(), ..EvalDeleteRequest::default() }
        }
        _ => return Err(call.usage("This command takes an evaluation or -filter, and not both")),
    };
    let count = match filter {
        None => 1,
        Some(filter) => {
            let query = Query::new().with("filter", filter);
            client.evaluations_count(query).await.doing("counting evaluations")?
        }
    };
    let question = format!("Are you sure you want to delete {count} evaluation(s)?");
    let agreed = count == 0 || call.args.switch("yes");
    if !agreed && !confirmed(&question, "eval delete", "Cancelling eval deletion")? {
        return Ok(0);
    }
    let deleted = match count {
        0 => 0,
        _ => client.delete_evaluations(&request).await.map_err(paused_first)?,
    };
    write_out(match deleted {
        0 => "No evaluations were deleted\n".to_string(),
        deleted => format!("Successfully deleted {deleted} evaluation(s)\n"),
    });
    Ok(0)
}

/// Says what to do when evaluations are handed out meanwhile.
fn paused_first(error: sdk::Error) -> anyhow::Error {
    let text = format!("Error deleting evaluations: {error}");
    if text.contains("eval broker is enabled") {
        let pause = "operator scheduler set-config -pause-eval-broker=true";
        return anyhow::anyhow!("{text}\n\nPause it first with `{pause}`, and let it go on afterwards");
    }
    anyhow::anyhow!(text)
}
