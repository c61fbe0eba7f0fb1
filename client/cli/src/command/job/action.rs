use sdk::{ActionRequest, Client, Query};

use super::super::alloc::exec::{ESCAPE, STDIN, SessionOptions, TTY, run_session};
use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, Outcome, Run};
use crate::flags::Flag;
use crate::resolve;

const JOB: Flag<String> = Flag::value("job", "ID", "The job that the action belongs to.");
const ALLOC: Flag<String> =
    Flag::value("alloc", "ID", "The allocation to run it in. Default: the newest that runs.");
const GROUP: Flag<String> = Flag::value("group", "NAME", "The task group, if several have the action.");
const TASK: Flag<String> = Flag::value("task", "NAME", "The task, if several have the action.");

pub(super) static COMMAND: Command = Command {
    name: "job action",
    aliases: &["action"],
    arguments: "<action>",
    summary: "Run an action of a job inside a task.",
    details: "The command stands in the action block of the task. Its exit code is the exit code of this program.",
    flags: &[&[&JOB, &ALLOC, &GROUP, &TASK, &STDIN, &TTY, &ESCAPE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    let (client, style) = (call.client()?, call.style());
    let action = call.one_argument()?.to_string();
    let Some(job) = call.args.value(&JOB) else { return Err(call.usage("A job ID is required")) };
    let options = SessionOptions::of(&call)?;
    let (namespace, job) = resolve::job(&client, &style, job).await?;
    let query = Query::new().namespace(&namespace);
    let alloc = match call.args.value(&ALLOC) {
        Some(id) => Some(resolve::allocation(&client, &style, id).await?),
        None => None,
    };
    let of_alloc = alloc.as_ref().map(|alloc| alloc.task_group.as_str());
    let group = call.args.value(&GROUP).or(of_alloc);
    let (group, task) = place(&client, &job, query.clone(), &action, group, call.args.value(&TASK)).await?;
    let alloc = match alloc {
        Some(alloc) => alloc.id,
        None => newest(&client, &job, query, &group).await?,
    };
    let request = ActionRequest { namespace, action, alloc, group, task, tty: options.tty };
    let (writer, reader) = client.run_action(&job, &request).await.doing("running the action")?;
    run_session(options, writer, reader).await
}

/// The group and the task that have the action.
async fn place(
    client: &Client,
    job: &str,
    query: Query,
    action: &str,
    group: Option<&str>,
    task: Option<&str>,
) -> Result<(String, String), Failure> {
    let actions = client.job_actions(job, query).await.doing("querying the job's actions")?.value;
    let is_meant = |known: &&api::JobAction| {
        known.name == action
            && group.is_none_or(|group| known.task_group_name == group)
            && task.is_none_or(|task| known.task_name == task)
    };
    let found: Vec<_> = actions.iter().filter(is_meant).collect();
    match found.as_slice() {
        [one] => Ok((one.task_group_name.clone(), one.task_name.clone())),
        [] => Err(anyhow::anyhow!("job \"{job}\" has no action \"{action}\" there").into()),
        several => {
            let names = several.iter().map(|known| format!("{}/{}", known.task_group_name, known.task_name));
            let names = names.collect::<Vec<_>>().join(", ");
            Err(anyhow::anyhow!("Please specify -group and -task: {names} have action \"{action}\"").into())
        }
    }
}

async fn newest(client: &Client, job: &str, query: Query, group: &str) -> Result<String, Failure> {
    let allocs = client.job_allocations(job, query).await.doing("querying allocations")?.value;
    let running =
        allocs.into_iter().filter(|alloc| alloc.client_status == "running" && alloc.task_group == group);
    let none = || anyhow::anyhow!("No running allocations of task group \"{group}\" of job \"{job}\" found");
    Ok(running.max_by_key(|alloc| alloc.create_index).ok_or_else(none)?.id)
}
