use sdk::Query;

use crate::call::{CLIENT_FLAGS, Call, Command, DETACH, Doing, Outcome, Run, VERBOSE};
use crate::command::deployment::change::{GROUP, promoted};
use crate::resolve;

pub(super) static COMMAND: Command = Command {
    name: "job promote",
    aliases: &[],
    arguments: "<job>",
    summary: "Promote the canaries of a job's latest deployment.",
    details: "The rest of the allocations follow. Without -group all groups that have canaries are promoted.",
    flags: &[&[&DETACH, &GROUP, &VERBOSE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(promote_job(call))),
};

async fn promote_job(call: Call) -> Outcome {
    let (client, style) = (call.client()?, call.style());
    let (namespace, id) = resolve::job(&client, &style, call.one_argument()?).await?;
    let query = Query::new().namespace(&namespace);
    let latest = client.job_deployment(&id, query).await.doing("retrieving deployment")?.value;
    let Some(deployment) = latest else {
        return Err(anyhow::anyhow!("job \"{id}\" has no deployment to promote").into());
    };
    promoted(&call, &client, &style, &deployment).await
}
