use model::document::Allocation;
use sdk::{Client, LogRequest, LogSource, Query};

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, Outcome, Run, VERBOSE};
use crate::flags::Flag;
use crate::output::{OutputStyle, write_out};
use crate::resolve;
use crate::tail::{self, BYTES, LINES, StartAt, TAIL};
use crate::task_log::{follow, pass_on};

const FOLLOW: Flag<bool> = Flag::switch("f", "Follow the log until interrupted.");
const STDERR: Flag<bool> = Flag::switch("stderr", "Print the error stream.");
const STDOUT: Flag<bool> = Flag::switch("stdout", "Print the output stream; the default.");
const TASK: Flag<String> = Flag::value("task", "NAME", "The task.");
pub(super) const JOB: Flag<bool> =
    Flag::switch("job", "The argument is a job: use its newest running allocation.");
pub(super) const GROUP: Flag<String> =
    Flag::value("group", "NAME", "With -job: only allocations of this task group.");

pub(super) static COMMAND: Command = Command {
    name: "alloc logs",
    aliases: &["logs"],
    arguments: "<allocation> [<task>]",
    summary: "Print the output of a task.",
    details: "The task may be left out when the allocation has only one. With -f both streams are followed\n\
              unless -stderr or -stdout is given.",
    flags: &[
        &[&FOLLOW, &TAIL, &LINES, &BYTES, &STDERR, &STDOUT, &TASK, &JOB, &GROUP, &VERBOSE],
        CLIENT_FLAGS,
    ],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    let (client, style) = (call.client()?, call.style());
    let (id, task) = match call.args.words.as_slice() {
        [id] => (id, call.args.value(&TASK)),
        [id, task] => (id, Some(task.as_str())),
        _ => return Err(call.usage("This command takes one or two arguments: <allocation> [<task>]")),
    };
    let named = match call.args.switch(&JOB) {
        true => &newest_running(&call, &client, &style, id).await?,
        false => id,
    };
    let stub = resolve::allocation(&client, &style, named).await?;
    let query = Query::new().namespace(&stub.namespace);
    let alloc = client.allocation(&stub.id, query).await.doing("querying allocation")?.value;
    let task = choose_task(&alloc, task)?;
    let printing = print(&call, &client, &alloc.id, &task);
    tokio::select! {
        printed = printing => printed,
        _ = tokio::signal::ctrl_c() => Ok(0),
    }
}

pub(super) async fn newest_running(
    call: &Call,
    client: &Client,
    style: &OutputStyle,
    job: &str,
) -> Result<String, Failure> {
    let (namespace, job) = resolve::job(client, style, job).await?;
    let query = Query::new().namespace(&namespace);
    let mut allocs = client.job_allocations(&job, query).await.doing("querying allocations")?.value;
    let group = call.args.value(&GROUP);
    allocs.retain(|alloc| {
        alloc.client_status == "running" && group.is_none_or(|group| alloc.task_group == group)
    });
    let newest = allocs.into_iter().max_by_key(|alloc| alloc.create_index);
    let none = || anyhow::anyhow!("No running allocations of job \"{job}\" found");
    Ok(newest.ok_or_else(none)?.id)
}

/// The given task, or the only one.
pub(super) fn choose_task(alloc: &Allocation, given: Option<&str>) -> Result<String, Failure> {
    let group = alloc.job.iter().flat_map(|job| &job.task_groups);
    let group = group.into_iter().find(|group| group.name.as_deref() == Some(&alloc.task_group));
    let tasks: Vec<&str> =
        group.iter().flat_map(|group| &group.tasks).map(|task| task.name.as_str()).collect();
    match (given, tasks.as_slice()) {
        (Some(given), tasks) if tasks.is_empty() || tasks.contains(&given) => Ok(given.to_string()),
        (Some(given), tasks) => {
            Err(anyhow::anyhow!("Could not find task named \"{given}\": there are {}", tasks.join(", "))
                .into())
        }
        (None, [task]) => Ok((*task).to_string()),
        (None, tasks) => {
            let tasks = tasks.join(", ");
            Err(anyhow::anyhow!("Please specify the task: the allocation runs {tasks}").into())
        }
    }
}

async fn print(call: &Call, client: &Client, id: &str, task: &str) -> Outcome {
    let follow = call.args.switch(&FOLLOW);
    let both = follow && !call.args.switch(&STDERR) && !call.args.switch(&STDOUT);
    let source = if call.args.switch(&STDERR) { LogSource::Stderr } else { LogSource::Stdout };
    let request = |source| LogRequest { task: task.to_string(), source, follow, offset: 0, from_end: false };
    if both {
        let (out, err) = (request(LogSource::Stdout), request(LogSource::Stderr));
        tokio::try_join!(
            stream(call, client, id, out, |bytes| write_out(bytes)),
            stream(call, client, id, err, pass_on)
        )?;
    } else {
        stream(call, client, id, request(source), |bytes| write_out(bytes)).await?;
    }
    Ok(0)
}

async fn stream(
    call: &Call,
    client: &Client,
    id: &str,
    mut request: LogRequest,
    print: fn(&[u8]),
) -> Result<(), Failure> {
    let last = async |window| {
        let request = LogRequest { follow: false, from_end: true, offset: window, ..request.clone() };
        let (mut end, mut frames) = (Vec::new(), client.logs(id, &request).await.doing("reading logs")?);
        while let Some(frame) = frames.next().await.doing("reading logs")? {
            end.extend(frame.data.0);
        }
        Ok(end)
    };
    if let StartAt::End(offset) = tail::start(call, last).await? {
        request.from_end = true;
        request.offset = offset;
    }
    let mut frames = client.logs(id, &request).await.doing("reading logs")?;
    if request.follow {
        return follow(client, id, &request.task, frames, print).await.doing("reading logs");
    }
    while let Some(frame) = frames.next().await.doing("reading logs")? {
        print(&frame.data.0);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use model::document::{Job, Task, TaskGroup};

    use super::*;

    #[test]
    fn a_task_is_chosen_only_when_it_is_unique() {
        let alloc = |tasks: &[&str]| {
            let task = |name: &&str| Task { name: name.to_string(), ..Task::default() };
            let tasks = tasks.iter().map(task).collect::<Vec<_>>().into();
            let group = TaskGroup { name: Some("api".into()), tasks, ..TaskGroup::default() };
            let job = Job { task_groups: vec![group].into(), ..Job::default() };
            Allocation { task_group: "api".into(), job: Some(job), ..Allocation::default() }
        };
        assert_eq!(choose_task(&alloc(&["main"]), None).ok().as_deref(), Some("main"));
        assert_eq!(choose_task(&alloc(&["a", "b"]), Some("b")).ok().as_deref(), Some("b"));
        assert!(choose_task(&alloc(&["a", "b"]), None).is_err());
        assert!(choose_task(&alloc(&["a"]), Some("x")).is_err());
    }
}
