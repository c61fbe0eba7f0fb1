use std::io::{self, IsTerminal};
use std::str::FromStr;
use std::time::Duration;

use api::AllocationRestartRequest;
use futures_util::future::join_all;
use model::document::AllocationListStub;
use sdk::{Client, Query};

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, Outcome, Run, VERBOSE};
use crate::confirm::confirmed;
use crate::flags::Flag;
use crate::output::{OutputStyle, Paint, write_err, write_out};
use crate::{eval_monitor, resolve};

const ALL_TASKS: Flag<bool> =
    Flag::switch("all-tasks", "Restart all tasks, including those that have ended.");
const BATCH_SIZE: Flag<String> =
    Flag::value("batch-size", "N|N%", "How many allocations to restart at a time. Default: 1.");
const BATCH_WAIT: Flag<BatchWait> = Flag::parsed(
    "batch-wait",
    "DURATION|ask",
    "a duration, like 10s, or ask",
    "How long to wait between two batches. Default: 0s.",
);
const ON_ERROR: Flag<String> =
    Flag::value("on-error", "ask|fail", "What to do when an allocation cannot be restarted. Default: ask.");
const GROUP: Flag<Vec<String>> =
    Flag::values("group", "NAME", "Only allocations of this group; may be given several times.");
const TASK: Flag<Vec<String>> = Flag::values("task", "NAME", "Only this task; may be given several times.");
const RESCHEDULE: Flag<bool> = Flag::switch("reschedule", "Stop the allocations and reschedule them.");
const NO_SHUTDOWN_DELAY: Flag<bool> =
    Flag::switch("no-shutdown-delay", "With -reschedule: ignore the shutdown delay of the tasks.");
const YES: Flag<bool> = Flag::switch("yes", "Ask no questions, and continue after errors.");

pub(super) static COMMAND: Command = Command {
    name: "job restart",
    aliases: &[],
    arguments: "<job>",
    summary: "Restart the allocations of a job in batches.",
    details: "Tasks are restarted in place; with -reschedule allocations are stopped and rescheduled.",
    flags: &[
        &[
            &ALL_TASKS,
            &BATCH_SIZE,
            &BATCH_WAIT,
            &ON_ERROR,
            &GROUP,
            &TASK,
            &RESCHEDULE,
            &NO_SHUTDOWN_DELAY,
            &YES,
            &VERBOSE,
        ],
        CLIENT_FLAGS,
    ],
    run: Run::Task(|call| Box::pin(run(call))),
};

/// How often the replacement is polled.
const POLL: Duration = Duration::from_secs(1);

/// The options of a restart.
struct RestartOptions {
    size: BatchSize,
    wait: BatchWait,
    /// Stop at the first batch with an error, without asking.
    stops_on_error: bool,
    yes: bool,
    groups: Vec<String>,
    tasks: Vec<String>,
    all_tasks: bool,
    reschedule: bool,
    no_shutdown_delay: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BatchSize {
    Count(usize),
    Percent(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BatchWait {
    For(base::Duration),
    Ask,
}

impl FromStr for BatchWait {
    type Err = <base::Duration as FromStr>::Err;

    fn from_str(text: &str) -> Result<BatchWait, Self::Err> {
        if text == "ask" { Ok(BatchWait::Ask) } else { text.parse().map(BatchWait::For) }
    }
}

async fn run(call: Call) -> Outcome {
    let (given, options) = (call.one_argument()?, options(&call)?);
    let (client, style) = (call.client()?, call.style());
    let (namespace, id) = resolve::job(&client, &style, given).await?;
    if id != given && !options.yes {
        let question = format!("Are you sure you want to restart job \"{id}\"?");
        if !confirmed(&question, "job restart", "Job restart canceled")? {
            return Ok(0);
        }
    }
    let query = Query::new().namespace(&namespace);
    let job = client.job(&id, query.clone()).await.doing("retrieving job")?.value;
    if options.reschedule && matches!(job.kind.as_deref(), Some("system" | "sysbatch")) {
        let kind = job.kind.unwrap_or_default();
        return Err(anyhow::anyhow!("Jobs of type \"{kind}\" are not allowed to be rescheduled.").into());
    }
    let mut allocs = client.job_allocations(&id, query).await.doing("querying allocations")?.value;
    allocs.retain(|alloc| is_selected(alloc, &options));
    if allocs.is_empty() {
        write_out(style.paint(Paint::Bold, "No allocations to restart") + "\n");
        return Ok(0);
    }
    restart(&client, &style, &options, &allocs).await
}

fn options(call: &Call) -> Result<RestartOptions, Failure> {
    let on = |flag| call.args.switch(flag);
    let yes = on(&YES);
    let stops_on_error = match call.args.value(&ON_ERROR) {
        None => !yes && !io::stdin().is_terminal(),
        Some("ask") => false,
        Some("fail") => true,
        Some(other) => {
            return Err(call.usage(&format!("Invalid -on-error option \"{other}\": expected ask or fail")));
        }
    };
    let options = RestartOptions {
        size: size(call)?,
        wait: call.args.parsed(&BATCH_WAIT)?.unwrap_or(BatchWait::For(base::Duration::ZERO)),
        stops_on_error,
        yes,
        groups: call.args.values(&GROUP).to_vec(),
        tasks: call.args.values(&TASK).to_vec(),
        all_tasks: on(&ALL_TASKS),
        reschedule: on(&RESCHEDULE),
        no_shutdown_delay: on(&NO_SHUTDOWN_DELAY),
    };
    if !options.tasks.is_empty() && (options.all_tasks || options.reschedule) {
        return Err(call.usage("The -task option cannot be used with -all-tasks or -reschedule"));
    }
    if options.all_tasks && options.reschedule {
        return Err(call.usage("The -all-tasks option cannot be used with -reschedule"));
    }
    if options.no_shutdown_delay && !options.reschedule {
        return Err(call.usage("The -no-shutdown-delay option needs -reschedule"));
    }
    Ok(options)
}

fn size(call: &Call) -> Result<BatchSize, Failure> {
    let given = call.args.value(&BATCH_SIZE).unwrap_or("1");
    let (digits, percent) = given.strip_suffix('%').map_or((given, false), |digits| (digits, true));
    match digits.parse::<usize>() {
        Ok(count) if count > 0 => {
            Ok(if percent { BatchSize::Percent(count) } else { BatchSize::Count(count) })
        }
        _ => Err(call.usage(&format!("Invalid -batch-size value \"{given}\": expected N or N%, above 0"))),
    }
}

impl BatchSize {
    fn of(self, total: usize) -> usize {
        match self {
            BatchSize::Count(count) => count,
            BatchSize::Percent(percent) => (total * percent).div_ceil(100),
        }
    }
}

fn is_selected(alloc: &AllocationListStub, options: &RestartOptions) -> bool {
    let runs = alloc.client_status == "running" && alloc.desired_status == "run";
    runs && (options.groups.is_empty() || options.groups.contains(&alloc.task_group))
}

async fn restart(
    client: &Client,
    style: &OutputStyle,
    options: &RestartOptions,
    allocs: &[AllocationListStub],
) -> Outcome {
    eval_monitor::print_headline(style, &format!("Restarting {}", allocations(allocs.len())));
    let size = options.size.of(allocs.len());
    let batches = allocs.chunks(size);
    let (last, mut failed) = (batches.len(), 0);
    for (at, batch) in batches.enumerate() {
        if size > 1 {
            eval_monitor::print_headline(
                style,
                &format!("Restarting {} batch of {}", ordinal(at + 1), allocations(batch.len())),
            );
        }
        let restarts = batch.iter().map(|alloc| restart_one(client, style, options, alloc));
        let errors: Vec<_> = join_all(restarts).await.into_iter().filter_map(Result::err).collect();
        failed += errors.len();
        errors.iter().for_each(|error| write_err(style.paint(Paint::Red, &message(error))));
        if !errors.is_empty() && !continues_after_error(options)? {
            return Err(anyhow::anyhow!("Job restart stopped: {} failed", allocations(failed)).into());
        }
        if at + 1 < last && !wait_for_next_batch(style, options).await? {
            return Ok(0);
        }
    }
    eval_monitor::print_headline(style, "Job restart finished");
    if failed > 0 {
        return Err(anyhow::anyhow!("\nJob restarted with errors: {} failed", allocations(failed)).into());
    }
    write_out(format!("\n{}\n", style.paint(Paint::Green, "Job restarted successfully!")));
    Ok(0)
}

fn message(failure: &Failure) -> String {
    match failure {
        Failure::Failed(error) => format!("{error:#}"),
        Failure::Usage(text) | Failure::Code(_, text) => text.clone(),
        Failure::Flag(error) => error.to_string(),
    }
}

/// Whether to continue after an error.
fn continues_after_error(options: &RestartOptions) -> Result<bool, Failure> {
    if options.stops_on_error {
        return Ok(false);
    }
    Ok(options.yes
        || confirmed("Do you want to go on with the next batch?", "job restart", "Job restart canceled")?)
}

/// Waits between two batches. False when the user declined.
async fn wait_for_next_batch(style: &OutputStyle, options: &RestartOptions) -> Result<bool, Failure> {
    match options.wait {
        BatchWait::For(span) if span == base::Duration::ZERO => {}
        BatchWait::For(span) => {
            eval_monitor::print_headline(style, &format!("Waiting {span} before restarting the next batch"));
            tokio::time::sleep(span.to_std()).await;
        }
        BatchWait::Ask if options.yes => {}
        BatchWait::Ask => {
            return confirmed("Proceed with the next batch?", "job restart", "Job restart canceled");
        }
    }
    Ok(true)
}

async fn restart_one(
    client: &Client,
    style: &OutputStyle,
    options: &RestartOptions,
    alloc: &AllocationListStub,
) -> Result<(), Failure> {
    let (id, group) = (style.id(&alloc.id), &alloc.task_group);
    let say = |what: String| {
        eval_monitor::print_detail(style, &format!("{what} allocation \"{id}\" for group \"{group}\""))
    };
    if options.reschedule {
        say("Rescheduling".to_string());
        return reschedule(client, style, options, alloc).await;
    }
    let restart = async |request: AllocationRestartRequest| {
        let query = Query::new().namespace(&alloc.namespace);
        let restarted = client.restart_allocation(&alloc.id, &request, query).await;
        restarted.doing(&format!("restarting allocation \"{id}\""))
    };
    if options.tasks.is_empty() {
        say(format!("Restarting {} tasks in", if options.all_tasks { "all" } else { "running" }));
        return restart(AllocationRestartRequest { all_tasks: options.all_tasks, ..Default::default() })
            .await;
    }
    for task in options.tasks.iter().filter(|task| alloc.task_states.contains_key(*task)) {
        say(format!("Restarting task \"{task}\" in"));
        restart(AllocationRestartRequest { task_name: task.clone(), all_tasks: false }).await?;
    }
    Ok(())
}

/// Stops the allocation and waits until its replacement runs.
async fn reschedule(
    client: &Client,
    style: &OutputStyle,
    options: &RestartOptions,
    alloc: &AllocationListStub,
) -> Result<(), Failure> {
    let query = || Query::new().namespace(&alloc.namespace);
    let id = style.id(&alloc.id);
    let stop = query().flag("no_shutdown_delay", options.no_shutdown_delay);
    client.stop_allocation(&alloc.id, stop).await.doing(&format!("stopping allocation \"{id}\""))?;
    loop {
        let old = client.allocation(&alloc.id, query()).await.doing("querying allocation")?.value;
        if !old.next_allocation.is_empty() {
            let new = client.allocation(&old.next_allocation, query()).await;
            let new = new.doing("querying allocation")?.value;
            let next = style.id(&new.id);
            match new.client_status.as_str() {
                "running" => {
                    eval_monitor::print_detail(style, &format!("Allocation \"{id}\" replaced by \"{next}\""));
                    return Ok(());
                }
                "failed" | "lost" => {
                    let status = new.client_status;
                    return Err(
                        anyhow::anyhow!("Allocation \"{next}\", in place of \"{id}\", is {status}").into()
                    );
                }
                _ => {}
            }
        }
        tokio::time::sleep(POLL).await;
    }
}

fn allocations(count: usize) -> String {
    format!("{count} allocation{}", if count == 1 { "" } else { "s" })
}

fn ordinal(number: usize) -> String {
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinals_have_the_right_suffix() {
        let said: Vec<_> = [1, 2, 3, 4, 11, 12, 21, 113].map(ordinal).into();
        assert_eq!(said, ["1st", "2nd", "3rd", "4th", "11th", "12th", "21st", "113th"]);
    }

    #[test]
    fn a_percentage_is_at_least_one_allocation() {
        assert_eq!(BatchSize::Percent(25).of(10), 3);
        assert_eq!(BatchSize::Percent(1).of(2), 1);
        assert_eq!(BatchSize::Count(4).of(2), 4);
    }
}
