//! How a running task is ended.

use std::time::Duration;

use executor::Exit;
use nix::sys::signal::Signal;

use super::{Follows, NOT_RUNNING, Stop, TaskRunner, send_signal};
use crate::clock;
use crate::driver::{DriverError, Outcome, RunningTask, signal_named};
use crate::task::events;
use crate::task::parts::TaskParts;
use crate::task::requests::{Kill, TaskRequest};

/// How often a driver that fails to stop a task is asked again.
const STOP_TRIES: u32 = 5;

/// The pauses between two tries grow from the first to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(120);

/// When the job does not say how long a task has between the signal and SIGKILL.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

impl TaskRunner {
    /// Stores an exit, and forgets the handle of the task.
    pub(super) async fn ended(&mut self, exit: &Exit, follows: Follows) {
        let mut handle = None;
        self.task.tasks.change(&self.task.name, |stored| {
            handle = stored.handle.take();
            stored.undecided = (follows == Follows::Decision).then(|| exit.clone());
            events::append(&mut stored.state, events::terminated(exit), clock::now());
        });
        if exit.oom_killed {
            self.task.count("nomad.client.allocs.oom_killed");
        }
        self.task.tasks.set_ended(&self.task.name);
        if let Some(handle) = handle {
            self.task.context.drivers.destroy(&handle).await;
        }
        self.hooks.exited(&self.task, exit).await;
    }

    fn kill_order(&self) -> Kill {
        self.task.kill.borrow().clone().unwrap_or_default()
    }

    /// Ends a running task because of a [`Kill`].
    pub(super) async fn end(&mut self, running: &dyn RunningTask) -> Stop {
        self.add_kill_events(&self.kill_order());
        self.stop_for_good(running).await
    }

    /// The event that says why is there already.
    pub(super) async fn stop_for_good(&mut self, running: &dyn RunningTask) -> Stop {
        self.hooks.prekill(&self.task).await;
        let error = self.stop(running).await.err().map(|error| error.to_string());
        self.task.tasks.add_event(&self.task.name, events::killed(error.as_deref()));
        Stop::Killed
    }

    fn add_kill_events(&self, kill: &Kill) {
        let (_, timeout) = self.kill_signal_and_timeout();
        if let Some(event) = events::kill_reason(&kill.reason) {
            self.task.tasks.add_event(&self.task.name, event);
        }
        self.task.tasks.add_event(&self.task.name, events::killing(&kill.reason, timeout.into()));
    }

    pub(super) fn killed_while_idle(&self) -> Stop {
        self.add_kill_events(&self.kill_order());
        self.task.tasks.add_event(&self.task.name, events::killed(None));
        Stop::Killed
    }

    /// Stops the task and stores its exit. What is asked of the task meanwhile is answered: it may take its whole
    /// `kill_timeout`.
    pub(super) async fn stop(&mut self, running: &dyn RunningTask) -> Result<(), DriverError> {
        let (signal, grace) = self.kill_signal_and_timeout();
        let TaskRunner { task, requests, restarting, .. } = self;
        let exit = {
            let stopping = stopped(&task.name, running, signal, grace);
            tokio::pin!(stopping);
            loop {
                tokio::select! {
                    exit = &mut stopping => break exit?,
                    Some(request) = requests.recv() => match request {
                        TaskRequest::Signal { signal, name, reply } => {
                            task.tasks.add_event(&task.name, events::signaling(&name, ""));
                            reply.send(send_signal(task, running, signal).await).ok();
                        }
                        // Without one under way the task is stopped for good.
                        TaskRequest::Restart { reply, .. } if restarting.is_empty() => {
                            reply.send(Err(NOT_RUNNING.to_string())).ok();
                        }
                        TaskRequest::Restart { reply, .. } => restarting.push(reply),
                        // It ends already; a restart fails in its hooks.
                        TaskRequest::Fail { .. } => {}
                    },
                }
            }
        };
        self.ended(&exit, Follows::Order).await;
        Ok(())
    }

    /// The signal that asks the task to end (`None`: the driver's default), and how long it then has.
    fn kill_signal_and_timeout(&self) -> (Option<Signal>, Duration) {
        let alloc = self.task.alloc.borrow();
        let task = TaskParts::find(&alloc, &self.task.name).map(|parts| parts.task);
        let signal = task.and_then(|task| signal_named(&task.kill_signal));
        let timeout =
            task.and_then(|task| task.kill_timeout).map_or(KILL_TIMEOUT, |timeout| timeout.to_std());
        (signal, timeout.min(self.task.context.settings.max_kill_timeout))
    }
}

/// Stops a task, and waits for its end; tries again while the driver fails.
async fn stopped(
    task: &str,
    running: &dyn RunningTask,
    signal: Option<Signal>,
    grace: Duration,
) -> Result<Exit, DriverError> {
    let mut pause = FIRST_PAUSE;
    for tried in 1.. {
        match running.stop(signal, grace).await {
            Ok(()) => break,
            Err(error) if tried == STOP_TRIES => return Err(error),
            Err(error) => tracing::warn!(task, %error, "a task was not stopped"),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 4).min(LONGEST_PAUSE);
    }
    match running.wait().await {
        Outcome::Exited(exit) => Ok(exit),
        Outcome::DriverLost => Err(DriverError::failed("the driver was lost")),
    }
}
