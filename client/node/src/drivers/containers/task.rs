//! A container that runs, or has run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use executor::Exit;
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{self, BoxStream, StreamExt};
use nix::sys::signal::Signal;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::images::ImageUse;
use super::shared::Tracked;
use super::state::StoredLogs;
use super::{Engine, Fault, Shared, State, Status, Words};
use crate::driver::{
    DriverError, DriverNetwork, Exec, ExecConfig, ExecError, Logs, Outcome, RunningTask, StartError, Started,
    TaskStatus, Usage, outcome_of,
};

/// Before an engine that did not answer is asked again.
const RETRY_EVERY: Duration = Duration::from_millis(500);

/// How long the output of a container that has ended may take to be written.
const LAST_OUTPUT: Duration = Duration::from_secs(10);

/// How long, beyond the grace, the engine may take to stop a container and to say so.
pub const STOP_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub struct ContainerTask<E: Engine> {
    shared: Arc<Shared<E>>,
    id: String,
    outcome: watch::Receiver<Option<Outcome>>,
    /// Held as long as the task is.
    _image: Option<ImageUse<E>>,
    _tracked: Tracked,
}

/// Writes the output of a container, and returns when all of it is written. It is told when the engine has said that the
/// container has ended.
pub type Follow = Box<dyn FnOnce(CancellationToken) -> BoxFuture<'static, ()> + Send>;

/// What a task is made of.
pub struct Parts<E: Engine> {
    pub shared: Arc<Shared<E>>,
    pub id: String,
    pub image: Option<ImageUse<E>>,
    pub tracked: Tracked,
    pub follower: Option<Follow>,
}

impl<E: Engine> Parts<E> {
    /// Those of a task that an earlier agent has started, without what writes its output.
    ///
    /// # Errors
    /// Only when the engine says that there is no such container: one that does not answer now may have it.
    pub async fn found(shared: &Arc<Shared<E>>, state: &State) -> Result<Parts<E>, DriverError> {
        if let Err(Fault::Missing(_)) = shared.engine.status(&state.container_id).await {
            return Err(DriverError::failed("the container is gone"));
        }
        let mut tracked = shared.track(&state.container_name);
        tracked.add(&state.container_id);
        let image = Some(&state.image_id).filter(|id| !id.is_empty()).map(|id| shared.images.hold(id));
        let (shared, id) = (Arc::clone(shared), state.container_id.clone());
        Ok(Parts { shared, id, image, tracked, follower: None })
    }

    /// A task that has just begun. `engine` is empty where the driver knows only one.
    ///
    /// # Errors
    /// When what is to be stored of it has no JSON form.
    pub fn started(
        self,
        container_name: String,
        logs: Option<Logs>,
        engine: String,
        network: Option<DriverNetwork>,
    ) -> Result<Started, StartError> {
        let state = State {
            container_id: self.id.clone(),
            container_name,
            image_id: self.image.as_ref().map(|image| image.id.clone()).unwrap_or_default(),
            logs: logs.map(StoredLogs::from),
            engine,
        };
        let state = serde_json::to_value(&state).map_err(StartError::fatal)?;
        Ok(Started { task: Arc::new(ContainerTask::attach(self)), state, network })
    }
}

impl<E: Engine> ContainerTask<E> {
    /// Watches the container for as long as the task is held.
    pub fn attach(parts: Parts<E>) -> ContainerTask<E> {
        let Parts { shared, id, image, tracked, follower } = parts;
        let (result, outcome) = watch::channel(None);
        let (engine, container) = (Arc::clone(&shared.engine), id.clone());
        tokio::spawn(async move {
            let watched = watch_container(&*engine, &container, follower);
            tokio::select! {
                exit = watched => drop(result.send_replace(Some(Outcome::Exited(exit)))),
                () = result.closed() => {}
            }
        });
        ContainerTask { shared, id, outcome, _image: image, _tracked: tracked }
    }

    fn has_ended(&self) -> bool {
        self.outcome.borrow().is_some()
    }
}

/// It was stopped already, or has gone.
fn unless_over(result: Result<(), Fault>) -> Result<(), DriverError> {
    match result {
        Err(Fault::Failed(error) | Fault::Unreached(error)) => Err(DriverError::Failed(error)),
        Ok(()) | Err(Fault::Missing(_) | Fault::Conflict(_)) => Ok(()),
    }
}

impl<E: Engine> RunningTask for ContainerTask<E> {
    fn wait(&self) -> BoxFuture<'_, Outcome> {
        Box::pin(outcome_of(self.outcome.clone()))
    }

    fn stop(&self, signal: Option<Signal>, grace: Duration) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(async move {
            if self.has_ended() {
                return Ok(());
            }
            let engine = &self.shared.engine;
            match signal {
                None => unless_over(engine.stop(&self.id, grace).await)?,
                Some(signal) => {
                    unless_over(engine.kill(&self.id, signal).await)?;
                    if timeout(grace, self.wait()).await.is_err() {
                        unless_over(engine.stop(&self.id, Duration::ZERO).await)?;
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
            self.shared.engine.kill(&self.id, signal).await.map_err(DriverError::failed)
        })
    }

    fn inspect(&self) -> BoxFuture<'_, TaskStatus> {
        Box::pin(async move {
            let mut attributes = BTreeMap::from([("container_id".to_string(), self.id.clone())]);
            if let Ok(found) = self.shared.engine.status(&self.id).await {
                attributes.extend(found.image.map(|image| ("image_id".to_string(), image)));
                attributes.extend(found.pid.map(|pid| ("pid".to_string(), pid.to_string())));
                attributes.extend(found.text.map(|status| ("status".to_string(), status)));
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
                    match engine.stats(&id).await {
                        Ok(Some(usage)) => return Some((usage, interval)),
                        Ok(None) | Err(Fault::Missing(_)) => return None,
                        Err(_) => sleep(RETRY_EVERY).await,
                    }
                }
            }
        };
        stream::unfold(Duration::ZERO, next).boxed()
    }

    fn exec(&self, config: ExecConfig) -> BoxFuture<'_, Result<Exec, ExecError>> {
        Box::pin(self.shared.engine.exec(&self.id, config))
    }
}

/// Returns when the engine says that the container has ended, and its output is written.
async fn watch_container<E: Engine>(engine: &E, id: &str, follower: Option<Follow>) -> Exit {
    let ended = CancellationToken::new();
    let output = async {
        if let Some(follow) = follower {
            follow(ended.clone()).await;
        }
    };
    let mut output = std::pin::pin!(output.fuse());
    let mut exit = std::pin::pin!(watch_exit(engine, id).fuse());
    let exit = tokio::select! {
        exit = &mut exit => exit,
        () = &mut output => return exit.await,
    };
    ended.cancel();
    if timeout(LAST_OUTPUT, output).await.is_err() {
        tracing::warn!(container = id, "the last output of a task was not written in time");
    }
    exit
}

/// An engine that does not answer says nothing about the container: it is asked until it does.
async fn watch_exit<E: Engine>(engine: &E, id: &str) -> Exit {
    loop {
        match engine.status(id).await {
            Ok(status) if !status.is_running => return exit(&status, E::WORDS),
            Ok(_) if engine.await_exit(id).await.is_ok() => continue,
            Ok(_) => {}
            Err(Fault::Missing(_)) => {
                return Exit::lost("the container was removed by somebody else".to_string());
            }
            Err(error) => tracing::debug!(container = id, %error, "the engine does not answer"),
        }
        sleep(RETRY_EVERY).await;
    }
}

fn exit(status: &Status, words: Words) -> Exit {
    let Status { exit_code: code, oom_killed, .. } = *status;
    let error = match code {
        _ if oom_killed => Some(words.out_of_memory.to_string()),
        0 => None,
        code => Some(format!("{}: {code}", words.exited)),
    };
    Exit { code, signal: 0, oom_killed, error }
}

/// Removes what is left of a task.
///
/// # Errors
/// When the engine does not do it, or it runs and `force` is false.
pub async fn destroy<E: Engine>(shared: &Shared<E>, state: &State, force: bool) -> Result<(), DriverError> {
    let id = &state.container_id;
    let is_running = match shared.engine.status(id).await {
        Ok(status) => Some(status.is_running),
        Err(Fault::Missing(_)) => None,
        Err(error) => return Err(DriverError::failed(error)),
    };
    if is_running == Some(true) && !force {
        return Err(DriverError::StillRunning);
    }
    match is_running {
        None => {}
        Some(_) if shared.gc.container => unless_over(shared.engine.remove(id).await)?,
        Some(true) => unless_over(shared.engine.stop(id, Duration::ZERO).await)?,
        Some(false) => {}
    }
    std::fs::remove_file(shared.note(id)).ok();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_says_what_the_engine_says() {
        let words = Words { exited: "exited with", out_of_memory: "OOM Killed", progress: "", no_auth: "" };
        let read =
            |exit_code, oom_killed| exit(&Status { exit_code, oom_killed, ..Status::default() }, words);
        assert_eq!(read(0, false), Exit::default());
        let killed = read(137, true);
        assert_eq!(
            (killed.code, killed.oom_killed, killed.error.as_deref()),
            (137, true, Some("OOM Killed"))
        );
        assert_eq!(read(3, false).error.as_deref(), Some("exited with: 3"));
    }
}
