use std::time::Duration;

use anyhow::anyhow;
use api::JobSummary;
use base::Index;
use model::document::{Job, TaskGroup};
use sdk::{Client, Query};
use tokio::time::{Instant, timeout_at};

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, Outcome, Run};
use crate::flags::Flag;
use crate::output::write_out;
use crate::resolve;

const FOR: Flag<String> =
    Flag::value("for", "WHAT", "What to wait for: running, healthy or complete. Default: complete.");
const TIMEOUT: Flag<base::Duration> =
    Flag::parsed("timeout", "DURATION", "a duration, like 5m", "Give up after this time. Default: never.");

pub(super) static COMMAND: Command = Command {
    name: "job wait",
    aliases: &[],
    arguments: "<job>",
    summary: "Wait until a job runs, is healthy, or has ended.",
    details: "running: every group has as many running allocations as it wants. healthy: the deployment of the newest version is\n\
              successful. complete: the job has ended, and none of its allocations failed or was lost. Exits with 0 when that is so,\n\
              with 1 when it cannot come about any more or something failed, and with 2 after -timeout.",
    flags: &[&[&FOR, &TIMEOUT], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

/// The exit code after `-timeout`.
const TIMED_OUT: u8 = 2;

/// How long one read blocks: a change of something else than what is read is seen after that at the latest.
const BLOCK: Duration = Duration::from_secs(5);

/// Longer than anybody waits, and no overflow of the clock.
const NEVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Goal {
    Running,
    Healthy,
    Complete,
}

/// What one look shows.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Reached,
    NotYet,
    /// It cannot be reached any more.
    Never(String),
}

async fn run(call: Call) -> Outcome {
    let given = call.one_argument()?;
    let goal = match call.args.value(&FOR).unwrap_or("complete") {
        "running" => Goal::Running,
        "healthy" => Goal::Healthy,
        "complete" => Goal::Complete,
        other => return Err(call.usage(&format!("-for is running, healthy or complete, not \"{other}\""))),
    };
    let most = call.args.parsed(&TIMEOUT)?.map_or(NEVER, base::Duration::to_std);
    let (client, style) = (call.client()?, call.style());
    let (namespace, id) = resolve::job(&client, &style, given).await?;
    let end = Instant::now() + most;
    match reached(&client, &namespace, &id, goal, end).await? {
        Seen::Reached => {
            write_out(format!("Job \"{id}\" is {}\n", call.args.value(&FOR).unwrap_or("complete")));
            Ok(0)
        }
        Seen::NotYet => {
            Err(Failure::Code(TIMED_OUT, format!("Job \"{id}\" is not yet what was waited for: timed out")))
        }
        Seen::Never(why) => Err(anyhow!("Job \"{id}\" {why}").into()),
    }
}

/// Looks until there is nothing more to wait for, or until `end`: once at least, however short the time and slow the server.
async fn reached(
    client: &Client,
    namespace: &str,
    id: &str,
    goal: Goal,
    end: Instant,
) -> Result<Seen, Failure> {
    let (mut seen, mut index) = look(client, namespace, id, goal, Index(0)).await?;
    while seen == Seen::NotYet {
        let next = async {
            if index == Index(0) {
                // Nothing to block on: an answer without an index.
                tokio::time::sleep(BLOCK).await;
            }
            look(client, namespace, id, goal, index).await
        };
        match timeout_at(end, next).await {
            Ok(looked) => (seen, index) = looked?,
            Err(_) => break,
        }
    }
    Ok(seen)
}

/// One look, at what is newer than `after` if there was one before; and its index.
async fn look(
    client: &Client,
    namespace: &str,
    id: &str,
    goal: Goal,
    after: Index,
) -> Result<(Seen, Index), Failure> {
    let query = || Query::new().namespace(namespace);
    let blocking = match after {
        Index(0) => query(),
        after => query().newer_than(after, base::Duration::from(BLOCK)),
    };
    if goal == Goal::Healthy {
        let answer = client.job_deployment(id, blocking).await.doing("querying deployment")?;
        let job = client.job(id, query()).await.doing("querying job")?.value;
        let deployment = answer.value;
        let deployment = deployment.map(|found| (found.job_version, found.status, found.status_description));
        return Ok((healthy(&job, deployment), answer.index));
    }
    let answer = client.job_summary(id, blocking).await.doing("querying job summary")?;
    let job = client.job(id, query()).await.doing("querying job")?.value;
    let seen =
        if goal == Goal::Running { running(&job, &answer.value) } else { complete(&job, &answer.value) };
    Ok((seen, answer.index))
}

fn is_dead(job: &Job) -> bool {
    job.status.as_deref() == Some("dead")
}

fn running(job: &Job, summary: &JobSummary) -> Seen {
    if is_dead(job) {
        return Seen::Never("has ended".to_string());
    }
    // A system job wants as many as there are nodes for it: what is queued and starts says how many more.
    let per_node = matches!(job.kind.as_deref(), Some("system" | "sysbatch"));
    let is_whole = |group: &TaskGroup| {
        let found = summary.summary.get(group.name.as_deref().unwrap_or_default());
        let wanted = if per_node { 1 } else { group.count.unwrap_or(1) };
        found.is_some_and(|found| found.queued + found.starting == 0 && found.running >= wanted)
    };
    if job.task_groups.iter().all(is_whole) { Seen::Reached } else { Seen::NotYet }
}

fn complete(job: &Job, summary: &JobSummary) -> Seen {
    if !is_dead(job) {
        return Seen::NotYet;
    }
    match summary.summary.values().map(|group| group.failed + group.lost).sum::<i64>() {
        0 => Seen::Reached,
        failed => Seen::Never(format!("has ended, and {failed} of its allocations failed or were lost")),
    }
}

fn healthy(job: &Job, deployment: Option<(u64, String, String)>) -> Seen {
    if is_dead(job) {
        return Seen::Never("has ended".to_string());
    }
    let Some((version, status, why)) = deployment else {
        return match job.update.is_some() || job.task_groups.iter().any(|group| group.update.is_some()) {
            // The evaluation that makes it is still to come.
            true => Seen::NotYet,
            false => Seen::Never("has no deployments: wait for running instead".to_string()),
        };
    };
    match status.as_str() {
        _ if version < job.version.unwrap_or(0) => Seen::NotYet,
        "successful" => Seen::Reached,
        "failed" | "cancelled" => Seen::Never(format!("has a deployment that is {status}: {why}")),
        _ => Seen::NotYet,
    }
}
