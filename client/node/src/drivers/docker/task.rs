//! A container that runs, or has run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bollard::errors::Error;
use bollard::models::{ContainerState, ContainerStatsResponse};
use bollard::query_parameters::{
    KillContainerOptions, StatsOptions, StopContainerOptions, WaitContainerOptions,
};
use executor::Exit;
use executor::cgroup::GroupUsage;
use executor::process::TICKS_PER_SECOND;
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{self, BoxStream, StreamExt};
use nix::sys::signal::Signal;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::engine::{self, Engine};
use super::exec;
use super::images::ImageUse;
use super::logs::Follower;
use super::shared::{Shared, Tracked};
use crate::driver::{
    DriverError, Exec, ExecConfig, ExecError, Logs, Outcome, RunningTask, TaskStatus, Usage, outcome_of,
};

/// Before an engine that did not answer is asked again.
const RETRY_EVERY: Duration = Duration::from_millis(500);

/// How long the output of a container that has ended may take to be written.
const LAST_OUTPUT: Duration = Duration::from_secs(10);

/// How long, beyond the grace, the engine may take to stop a container and to say so.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub struct DockerTask {
    shared: Arc<Shared>,
    id: String,
    outcome: watch::Receiver<Option<Outcome>>,
    /// Held as long as the task is.
    _image: Option<ImageUse>,
    _tracked: Tracked,
}

/// What a task is made of.
#[derive(Debug)]
pub struct Parts {
    pub shared: Arc<Shared>,
    pub id: String,
    pub image: Option<ImageUse>,
    pub tracked: Tracked,
    pub logs: Option<Logs>,
}

impl DockerTask {
    /// Watches the container for as long as the task is held.
    pub fn attach(parts: Parts) -> DockerTask {
        let Parts { shared, id, image, tracked, logs } = parts;
        let (result, outcome) = watch::channel(None);
        let (engine, container) = (Arc::clone(&shared.engine), id.clone());
        let follower = logs.map(|logs| Follower {
            engine: Arc::clone(&engine),
            container: container.clone(),
            logs,
            note: shared.note(&id),
        });
        tokio::spawn(async move {
            let watched = watch_container(&engine, &container, follower);
            tokio::select! {
                exit = watched => drop(result.send_replace(Some(Outcome::Exited(exit)))),
                () = result.closed() => {}
            }
        });
        DockerTask { shared, id, outcome, _image: image, _tracked: tracked }
    }

    fn has_ended(&self) -> bool {
        self.outcome.borrow().is_some()
    }

    async fn kill(&self, signal: Signal) -> Result<(), Error> {
        let options = KillContainerOptions { signal: signal.as_str().to_string() };
        self.shared.engine.client().await?.kill_container(&self.id, Some(options)).await
    }

    /// The engine sends the signal that the image names, and SIGKILL after the grace.
    async fn stop_by_engine(&self, grace: Duration) -> Result<(), Error> {
        let client = self.shared.engine.client().await?.with_timeout(grace + STOP_TIMEOUT);
        let seconds = i32::try_from(grace.as_millis().div_ceil(1000)).unwrap_or(i32::MAX);
        let options = StopContainerOptions { t: Some(seconds), signal: None };
        client.stop_container(&self.id, Some(options)).await
    }
}

/// It was stopped already, or has gone.
fn is_over(error: &Error) -> bool {
    engine::is_missing(error) || engine::is_conflict(error)
}

fn unless_over(result: Result<(), Error>) -> Result<(), DriverError> {
    match result {
        Err(error) if !is_over(&error) => Err(DriverError::Failed(engine::text(&error))),
        _ => Ok(()),
    }
}

impl RunningTask for DockerTask {
    fn wait(&self) -> BoxFuture<'_, Outcome> {
        Box::pin(outcome_of(self.outcome.clone()))
    }

    fn stop(&self, signal: Option<Signal>, grace: Duration) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(async move {
            if self.has_ended() {
                return Ok(());
            }
            match signal {
                None => unless_over(self.stop_by_engine(grace).await)?,
                Some(signal) => {
                    unless_over(self.kill(signal).await)?;
                    if timeout(grace, self.wait()).await.is_err() {
                        unless_over(self.stop_by_engine(Duration::ZERO).await)?;
                    }
                }
            }
            let late = |_| DriverError::failed("the engine does not say that the container has ended");
            timeout(STOP_TIMEOUT, self.wait()).await.map(drop).map_err(late)
        })
    }

    fn signal(&self, signal: Signal) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(async move {
            if self.has_ended() {
                return Err(DriverError::failed("the container does not run"));
            }
            self.kill(signal).await.map_err(|error| DriverError::Failed(engine::text(&error)))
        })
    }

    fn inspect(&self) -> BoxFuture<'_, TaskStatus> {
        Box::pin(async move {
            let mut attributes = BTreeMap::from([("container_id".to_string(), self.id.clone())]);
            if let Ok(found) = self.shared.engine.inspect(&self.id).await {
                let state = found.state.unwrap_or_default();
                attributes.extend(found.image.map(|image| ("image_id".to_string(), image)));
                attributes.extend(state.pid.map(|pid| ("pid".to_string(), pid.to_string())));
                attributes.extend(state.status.map(|status| ("status".to_string(), status.to_string())));
            }
            TaskStatus { outcome: self.outcome.borrow().clone(), attributes }
        })
    }

    fn stats(&self, interval: Duration) -> BoxStream<'static, Usage> {
        let (engine, id, outcome) = (Arc::clone(&self.shared.engine), self.id.clone(), self.outcome.clone());
        let next = move |wait: Duration| {
            let (engine, id, outcome) = (Arc::clone(&engine), id.clone(), outcome.clone());
            async move {
                sleep(wait).await;
                loop {
                    if outcome.borrow().is_some() {
                        return None;
                    }
                    match reading(&engine, &id).await {
                        Ok(Some(usage)) => return Some((usage, interval)),
                        Ok(None) => return None,
                        Err(error) if engine::is_missing(&error) => return None,
                        Err(_) => sleep(RETRY_EVERY).await,
                    }
                }
            }
        };
        stream::unfold(Duration::ZERO, next).boxed()
    }

    fn exec(&self, config: ExecConfig) -> BoxFuture<'_, Result<Exec, ExecError>> {
        Box::pin(exec::exec(&self.shared.engine, &self.id, config))
    }
}

/// Returns when the engine says that the container has ended, and its output is written.
async fn watch_container(engine: &Engine, id: &str, follower: Option<Follower>) -> Exit {
    let output = async {
        if let Some(follower) = follower {
            follower.run().await;
        }
    };
    let mut output = std::pin::pin!(output.fuse());
    let mut exit = std::pin::pin!(watch_exit(engine, id).fuse());
    let exit = tokio::select! {
        exit = &mut exit => exit,
        () = &mut output => return exit.await,
    };
    if timeout(LAST_OUTPUT, output).await.is_err() {
        tracing::warn!(container = id, "the last output of a task was not written in time");
    }
    exit
}

/// An engine that does not answer says nothing about the container: it is asked until it does.
async fn watch_exit(engine: &Engine, id: &str) -> Exit {
    loop {
        match engine.inspect(id).await {
            Ok(found) => {
                if let Some(exit) = exit(&found.state.unwrap_or_default()) {
                    return exit;
                }
                if let Ok(client) = engine.client().await {
                    let options = WaitContainerOptions { condition: "not-running".to_string() };
                    let answer = client.wait_container(id, Some(options)).next().await;
                    if matches!(answer, Some(Ok(_) | Err(Error::DockerContainerWaitError { .. }))) {
                        continue;
                    }
                }
            }
            Err(error) if engine::is_missing(&error) => {
                return Exit::lost("the container was removed by somebody else".to_string());
            }
            Err(error) => tracing::debug!(container = id, %error, "the engine does not answer"),
        }
        sleep(RETRY_EVERY).await;
    }
}

/// None while it runs.
fn exit(state: &ContainerState) -> Option<Exit> {
    if state.running == Some(true) || state.restarting == Some(true) {
        return None;
    }
    let code = state.exit_code.unwrap_or(-1);
    let oom_killed = state.oom_killed == Some(true);
    let error = match code {
        _ if oom_killed => Some("OOM Killed".to_string()),
        0 => None,
        code => Some(format!("Docker container exited with non-zero exit code: {code}")),
    };
    Some(Exit { code, signal: 0, oom_killed, error })
}

/// None when the container does not run any more.
async fn reading(engine: &Engine, id: &str) -> Result<Option<Usage>, Error> {
    let options = StatsOptions { stream: false, one_shot: true };
    let read = engine.client().await?.stats(id, Some(options)).next().await;
    Ok(read.transpose()?.and_then(|stats| usage(&stats)))
}

fn usage(stats: &ContainerStatsResponse) -> Option<Usage> {
    let cpu = stats.cpu_stats.as_ref()?;
    let spent = cpu.cpu_usage.as_ref()?;
    let memory = stats.memory_stats.as_ref()?;
    let details = memory.stats.as_ref();
    let detail = |names: [&str; 2]| names.iter().find_map(|name| details?.get(*name).copied());
    let ticks = |nanos: Option<u64>| nanos.unwrap_or(0) / (1_000_000_000 / TICKS_PER_SECOND);
    let throttling = cpu.throttling_data.as_ref();
    // What control groups of version 1 call it, then those of version 2.
    let resident = detail(["rss", "anon"]).or(memory.usage)?;
    Some(Usage {
        user_ticks: ticks(spent.usage_in_usermode),
        system_ticks: ticks(spent.usage_in_kernelmode),
        resident_bytes: resident,
        processes: stats.pids_stats.as_ref().and_then(|pids| pids.current).unwrap_or(0),
        group: GroupUsage {
            cache_bytes: detail(["cache", "file"]),
            mapped_bytes: detail(["mapped_file", "file_mapped"]),
            swap_bytes: detail(["swap", "swap"]),
            kernel_bytes: detail(["kernel", "kernel"]),
            memory_max_bytes: memory.max_usage,
            throttled_periods: throttling.and_then(|throttling| throttling.throttled_periods),
            throttled_ns: throttling.and_then(|throttling| throttling.throttled_time),
        },
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_exit_says_what_the_engine_says() {
        let read = |state: serde_json::Value| exit(&serde_json::from_value(state).unwrap());
        assert_eq!(read(json!({"Running": true, "ExitCode": 0})), None);
        assert_eq!(read(json!({"Running": false, "ExitCode": 0})), Some(Exit::default()));
        let killed = read(json!({"Status": "exited", "ExitCode": 137, "OOMKilled": true})).unwrap();
        assert_eq!(
            (killed.code, killed.oom_killed, killed.error.as_deref()),
            (137, true, Some("OOM Killed"))
        );
        let failed = read(json!({"ExitCode": 3})).unwrap();
        assert_eq!(failed.error.as_deref(), Some("Docker container exited with non-zero exit code: 3"));
    }

    #[test]
    fn usage_is_read_from_both_versions_of_control_groups() {
        let read = |memory: serde_json::Value| {
            let stats = json!({
                "cpu_stats": {"cpu_usage": {"usage_in_usermode": 20_000_000, "usage_in_kernelmode": 10_000_000},
                    "throttling_data": {"throttled_periods": 2, "throttled_time": 5}},
                "memory_stats": memory, "pids_stats": {"current": 3}
            });
            usage(&serde_json::from_value(stats).unwrap()).unwrap()
        };
        let old = read(json!({"usage": 9000, "max_usage": 9500, "stats": {"rss": 4096, "cache": 100}}));
        assert_eq!((old.user_ticks, old.system_ticks, old.processes), (2, 1, 3));
        assert_eq!(
            (old.resident_bytes, old.group.cache_bytes, old.group.throttled_ns),
            (4096, Some(100), Some(5))
        );
        let new = read(json!({"usage": 9000, "stats": {"anon": 4000, "file": 50, "file_mapped": 7}}));
        assert_eq!(
            (new.resident_bytes, new.group.cache_bytes, new.group.mapped_bytes),
            (4000, Some(50), Some(7))
        );
    }
}
