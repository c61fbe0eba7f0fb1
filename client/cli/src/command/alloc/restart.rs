use api::AllocationRestartRequest;
use model::document::{Allocation, TaskGroup};
use sdk::{Client, Query};

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, Outcome, Run, VERBOSE};
use crate::flags::Flag;
use crate::resolve;

pub(super) const TASK: Flag<String> = Flag::value("task", "NAME", "The task.");
const ALL_TASKS: Flag<bool> =
    Flag::switch("all-tasks", "Restart all tasks, including those that have ended.");

pub(super) static COMMAND: Command = Command {
    name: "alloc restart",
    aliases: &[],
    arguments: "<allocation> [<task>]",
    summary: "Restart the tasks of an allocation in place.",
    details: "Without a task all running tasks are restarted.",
    flags: &[&[&TASK, &ALL_TASKS, &VERBOSE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(restart(call))),
};

async fn restart(call: Call) -> Outcome {
    let all_tasks = call.args.switch(&ALL_TASKS);
    let (given, task) = named(&call)?;
    if all_tasks && task.is_some() {
        return Err(call.usage("The -all-tasks option is not allowed when restarting a specific task"));
    }
    let (client, alloc, query) = found(&call, given, task).await?;
    let request = AllocationRestartRequest { task_name: task.unwrap_or_default().to_string(), all_tasks };
    let restarted = client.restart_allocation(&alloc.id, &request, query).await;
    restarted.doing("restarting allocation")?;
    Ok(0)
}

/// The allocation and the task from the arguments.
pub(super) fn named(call: &Call) -> Result<(&str, Option<&str>), Failure> {
    match call.args.words.as_slice() {
        [alloc] => Ok((alloc, call.args.value(&TASK).filter(|task| !task.is_empty()))),
        [alloc, task] => Ok((alloc, Some(task))),
        _ => Err(call.usage("This command takes one or two arguments: <allocation> [<task>]")),
    }
}

pub(super) async fn found(
    call: &Call,
    given: &str,
    task: Option<&str>,
) -> Result<(Client, Allocation, Query), Failure> {
    let (client, style) = (call.client()?, call.style());
    let stub = resolve::allocation(&client, &style, given).await?;
    let query = || Query::new().namespace(&stub.namespace);
    let alloc = client.allocation(&stub.id, query()).await.doing("querying allocation")?.value;
    if let (Some(task), Some(group)) = (task, group_of(&alloc))
        && group.tasks.iter().all(|known| known.name != task)
    {
        let tasks: Vec<&str> = group.tasks.iter().map(|task| task.name.as_str()).collect();
        return Err(
            anyhow::anyhow!("Could not find task named: {task}, found:\n* {}", tasks.join("\n* ")).into()
        );
    }
    Ok((client, alloc, query()))
}

fn group_of(alloc: &Allocation) -> Option<&TaskGroup> {
    let groups = &alloc.job.as_ref()?.task_groups;
    groups.iter().find(|group| group.name.as_deref() == Some(&alloc.task_group))
}
