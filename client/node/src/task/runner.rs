//! The life of one task: wait for its turn, start, wait for its end, decide, and again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::Rng;
use executor::Exit;
use model::document::Allocation;
use nix::sys::signal::Signal;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};

use super::environment::{Environment, Sources};
use super::events::{self, DEAD, KillReason, PENDING, RUNNING};
use super::lifecycle::Role;
use super::prestart::{self, HookError, Parts};
use super::restart::{Cause, Decision, Policy, Tracker};
use crate::clock;
use crate::context::Context;
use crate::driver::{DriverError, Outcome, RunningTask, StartError, TaskConfig, Values, signal_named};
use crate::layout::AllocDir;
use crate::task::states::TaskStates;

/// How often a driver is told to stop a task that it fails to stop.
const STOP_TRIES: u32 = 5;

/// The order to end for good. It stands once it is given.
#[derive(Clone, Debug, Default)]
pub struct Kill {
    pub reason: KillReason,
    /// The task's `shutdown_delay` is not waited for.
    pub at_once: bool,
}

/// What others may ask of a running task.
#[derive(Debug)]
pub enum Request {
    /// `revive` also starts a task that has ended.
    Restart {
        reason: String,
        revive: bool,
        reply: oneshot::Sender<Result<(), String>>,
    },
    Signal {
        signal: Signal,
        name: String,
        reply: oneshot::Sender<Result<(), String>>,
    },
}

/// What one task is run with. All senders are held by the allocation.
#[derive(Debug)]
pub struct TaskRunner {
    pub context: Arc<Context>,
    pub alloc_dir: AllocDir,
    pub tasks: Arc<TaskStates>,
    pub name: String,
    pub role: Role,
    /// The newest version of the allocation.
    pub alloc: watch::Receiver<Arc<Allocation>>,
    /// True while the task may start.
    pub gate: watch::Receiver<bool>,
    pub kill: watch::Receiver<Option<Kill>>,
    pub requests: mpsc::Receiver<Request>,
}

/// Why a task stands still.
#[derive(Debug)]
enum Stop {
    Killed,
    Asked,
    StartFailed { recoverable: bool },
    Exited(Exit),
}

/// The agent stops: leave everything as it is.
struct Shutdown;

/// What happened to a running task.
enum Happened {
    Ended(Outcome),
    Killed,
    Asked(Request),
}

/// What ended a wait.
enum Waited {
    Done,
    Killed,
}

impl TaskRunner {
    /// Returns when the task will never run again, or the agent stops.
    pub async fn run(mut self) {
        // Either way all that must be remembered has been written down.
        let _ = self.live().await;
    }

    async fn live(&mut self) -> Result<(), Shutdown> {
        let rng = Rng::stream(self.context.seed, &format!("{}/{}", self.alloc.borrow().id, self.name));
        let mut tracker = Tracker::new(self.policy(), rng);
        let mut recovered = self.recover().await?;
        loop {
            if recovered.is_some() || !self.is_dead() {
                let stop = self.attempt(recovered.take()).await?;
                tracker.set_policy(self.policy());
                if self.settle(stop, &mut tracker).await? {
                    continue;
                }
                self.tasks.enter(&self.name, DEAD);
            }
            if !self.rest().await? {
                return Ok(());
            }
        }
    }

    fn policy(&self) -> Policy {
        let alloc = self.alloc.borrow();
        match Parts::find(&alloc, &self.name) {
            Some(parts) => Policy::of(parts.job, parts.group.restart_policy.as_ref(), parts.task, self.role),
            None => Policy::of(&Default::default(), None, &Default::default(), self.role),
        }
    }

    fn is_dead(&self) -> bool {
        self.tasks.state(&self.name).is_some_and(|state| state.state == DEAD)
    }

    /// Finds the task of an earlier agent. A task that cannot be found again starts anew, but not before a
    /// server was heard: it may want the task elsewhere by now.
    async fn recover(&mut self) -> Result<Option<Arc<dyn RunningTask>>, Shutdown> {
        let Some(handle) = self.tasks.task(&self.name).handle else { return Ok(None) };
        match self.context.drivers.recover(&handle).await {
            Ok(running) => {
                self.tasks.set_running(&self.name, Arc::clone(&running));
                return Ok(Some(running));
            }
            Err(error) => tracing::warn!(task = self.name, %error, "a task was not found again"),
        }
        self.tasks.change(&self.name, |stored| {
            stored.handle = None;
            events::append(&mut stored.state, events::failed_restoring(), clock::now());
            events::enter(&mut stored.state, PENDING, clock::now());
        });
        self.tasks.set_ended(&self.name);
        self.context.drivers.destroy(&handle).await;
        let mut contacted = self.context.contacted.subscribe();
        tokio::select! {
            _ = contacted.wait_for(|contacted| *contacted) => Ok(None),
            _ = self.kill.wait_for(Option::is_some) => Ok(None),
            () = self.context.shutdown.cancelled() => Err(Shutdown),
        }
    }

    /// One start to one end.
    async fn attempt(&mut self, recovered: Option<Arc<dyn RunningTask>>) -> Result<Stop, Shutdown> {
        let running = match recovered {
            Some(running) => running,
            None => {
                self.tasks.enter(&self.name, PENDING);
                if let Waited::Killed = self.wait_for_turn().await? {
                    return Ok(self.killed_while_idle());
                }
                match self.start().await {
                    Ok(running) => running,
                    Err(stop) => return Ok(stop),
                }
            }
        };
        self.supervise(running).await
    }

    async fn wait_for_turn(&mut self) -> Result<Waited, Shutdown> {
        loop {
            tokio::select! {
                biased;
                _ = self.kill.wait_for(Option::is_some) => return Ok(Waited::Killed),
                () = self.context.shutdown.cancelled() => return Err(Shutdown),
                _ = self.gate.wait_for(|open| *open) => return Ok(Waited::Done),
                Some(request) = self.requests.recv() => answer_idle(request),
            }
        }
    }

    async fn start(&mut self) -> Result<Arc<dyn RunningTask>, Stop> {
        let alloc = Arc::clone(&self.alloc.borrow());
        let Some(parts) = Parts::find(&alloc, &self.name) else {
            self.tasks.add_event(&self.name, events::setup_failure("update missing task"));
            return Err(Stop::StartFailed { recoverable: false });
        };
        let (config, block) = self.prepare(&alloc, parts).map_err(|error| {
            self.tasks.add_event(&self.name, events::hook_failed(&error.to_string()));
            Stop::StartFailed { recoverable: false }
        })?;
        let started =
            self.context.drivers.start(&parts.task.driver, config, block).await.map_err(|error| {
                let (event, recoverable) = match &error {
                    StartError::Invalid(text) => (events::failed_validation(text), false),
                    StartError::Failed { message, recoverable } => {
                        (events::driver_failure(message), *recoverable)
                    }
                };
                self.tasks.add_event(&self.name, event);
                Stop::StartFailed { recoverable }
            })?;
        self.tasks.set_running(&self.name, Arc::clone(&started.task));
        self.tasks.change(&self.name, |stored| {
            stored.handle = Some(started.handle.clone());
            stored.network = started.network.clone();
            events::append(&mut stored.state, events::started(), clock::now());
            events::enter(&mut stored.state, RUNNING, clock::now());
        });
        Ok(started.task)
    }

    /// Everything that comes before the driver.
    fn prepare(
        &self,
        alloc: &Allocation,
        parts: Parts<'_>,
    ) -> Result<(TaskConfig, BTreeMap<String, Value>), HookError> {
        prestart::unsupported(parts.task)?;
        self.tasks.add_event(&self.name, events::building_directory());
        let dir = self.alloc_dir.build_task(&self.name);
        let dir = dir.map_err(|error| HookError { hook: "task_dir", message: error.to_string() })?;
        prestart::write_payload(parts, &dir)?;
        let node = self.context.node();
        let environment = Environment::build(&Sources {
            alloc,
            job: parts.job,
            group: parts.group,
            task: parts.task,
            node: &node,
            region: &self.context.settings.region,
            alloc_dir: &self.alloc_dir,
            task_dir: &dir,
            inherited: &self.context.inherited,
        });
        let block = environment.replace_config(&parts.task.config);
        let config = TaskConfig {
            alloc_id: alloc.id.clone(),
            task: self.name.clone(),
            instance: format!("{:08x}", clock::seed() as u32),
            config: Values::default(),
            user: environment.replace(&parts.task.user),
            logs: prestart::logs(parts.task, &self.alloc_dir),
            limits: prestart::limits(alloc, &self.name),
            env: environment.variables,
            dir,
        };
        Ok((config, block))
    }

    /// Stays with a running task until it has ended.
    async fn supervise(&mut self, mut running: Arc<dyn RunningTask>) -> Result<Stop, Shutdown> {
        loop {
            let happened = tokio::select! {
                outcome = running.wait() => Happened::Ended(outcome),
                _ = self.kill.wait_for(Option::is_some) => Happened::Killed,
                Some(request) = self.requests.recv() => Happened::Asked(request),
                () = self.context.shutdown.cancelled() => return Err(Shutdown),
            };
            match happened {
                Happened::Ended(Outcome::Exited(exit)) => return Ok(self.ended(exit).await),
                Happened::Ended(Outcome::DriverLost) => match self.recover().await? {
                    Some(found) => running = found,
                    None => return Ok(Stop::Asked),
                },
                Happened::Killed => return Ok(self.end(&*running).await),
                Happened::Asked(Request::Signal { signal, name, reply }) => {
                    self.tasks.add_event(&self.name, events::signaling(&name, ""));
                    reply.send(self.send_signal(&*running, signal).await).ok();
                }
                Happened::Asked(Request::Restart { reason, reply, .. }) => {
                    self.tasks.add_event(&self.name, events::restart_signaled(&reason));
                    reply.send(Ok(())).ok();
                    self.stop(&*running).await.ok();
                    return Ok(Stop::Asked);
                }
            }
        }
    }

    async fn send_signal(&self, running: &dyn RunningTask, signal: Signal) -> Result<(), String> {
        let alloc = Arc::clone(&self.alloc.borrow());
        let driver = Parts::find(&alloc, &self.name).map_or("", |parts| parts.task.driver.as_str());
        let sent = async {
            self.context.drivers.check_signals(driver)?;
            running.signal(signal).await
        };
        sent.await.map_err(|error| error.to_string())
    }

    /// Writes down an end, and forgets the way to what has ended.
    async fn ended(&self, exit: Exit) -> Stop {
        let mut handle = None;
        self.tasks.change(&self.name, |stored| {
            handle = stored.handle.take();
            events::append(&mut stored.state, events::terminated(&exit), clock::now());
        });
        self.tasks.set_ended(&self.name);
        if let Some(handle) = handle {
            self.context.drivers.destroy(&handle).await;
        }
        Stop::Exited(exit)
    }

    fn kill_order(&self) -> Kill {
        self.kill.borrow().clone().unwrap_or_default()
    }

    /// Ends a running task because it was told to.
    async fn end(&mut self, running: &dyn RunningTask) -> Stop {
        let kill = self.kill_order();
        self.announce_end(&kill);
        let delay = self.shutdown_delay();
        if !delay.is_zero() && kill.at_once {
            self.tasks.add_event(&self.name, events::skipping_shutdown_delay(delay.into()));
        } else if !delay.is_zero() {
            self.tasks.add_event(&self.name, events::waiting_for_shutdown_delay(delay.into()));
            tokio::select! {
                () = tokio::time::sleep(delay) => {}
                _ = running.wait() => {}
                _ = self.kill.wait_for(|kill| kill.as_ref().is_some_and(|kill| kill.at_once)) => {}
            }
        }
        let error = self.stop(running).await.err().map(|error| error.to_string());
        self.tasks.add_event(&self.name, events::killed(error.as_deref()));
        Stop::Killed
    }

    fn announce_end(&self, kill: &Kill) {
        let (_, timeout) = self.kill_manner();
        if let Some(event) = events::kill_reason(&kill.reason) {
            self.tasks.add_event(&self.name, event);
        }
        self.tasks.add_event(&self.name, events::killing(&kill.reason, timeout.into()));
    }

    fn killed_while_idle(&self) -> Stop {
        self.announce_end(&self.kill_order());
        self.tasks.add_event(&self.name, events::killed(None));
        Stop::Killed
    }

    /// Stops the task and writes down its end; tries again while the driver fails.
    async fn stop(&self, running: &dyn RunningTask) -> Result<(), DriverError> {
        let (signal, grace) = self.kill_manner();
        let mut pause = Duration::from_secs(5);
        for tried in 1.. {
            match running.stop(signal, grace).await {
                Ok(()) => break,
                Err(error) if tried == STOP_TRIES => return Err(error),
                Err(error) => tracing::warn!(task = self.name, %error, "a task was not stopped"),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 4).min(Duration::from_secs(120));
        }
        match running.wait().await {
            Outcome::Exited(exit) => {
                self.ended(exit).await;
                Ok(())
            }
            Outcome::DriverLost => Err(DriverError::failed("the driver was lost")),
        }
    }

    /// The signal that asks the task to end (`None`: the driver's default), and how long it then has.
    fn kill_manner(&self) -> (Option<Signal>, Duration) {
        let alloc = self.alloc.borrow();
        let task = Parts::find(&alloc, &self.name).map(|parts| parts.task);
        let signal = task.and_then(|task| signal_named(&task.kill_signal));
        let timeout = task.and_then(|task| task.kill_timeout).map_or(Duration::from_secs(5), |t| t.to_std());
        (signal, timeout.min(self.context.settings.max_kill_timeout))
    }

    fn shutdown_delay(&self) -> Duration {
        let alloc = self.alloc.borrow();
        Parts::find(&alloc, &self.name).map_or(Duration::ZERO, |parts| parts.task.shutdown_delay.to_std())
    }

    /// Decides what follows a stop; true when the task shall start again, after the pause it takes.
    async fn settle(&mut self, stop: Stop, tracker: &mut Tracker) -> Result<bool, Shutdown> {
        let cause = match &stop {
            Stop::Killed => Cause::Killed,
            Stop::Asked => Cause::Asked,
            Stop::StartFailed { recoverable } => Cause::StartFailed { recoverable: *recoverable },
            Stop::Exited(exit) => Cause::Exited(exit),
        };
        match tracker.decide(cause, clock::now()) {
            Decision::Killed | Decision::Finished => Ok(false),
            Decision::GiveUp(reason) => {
                self.tasks.add_event(&self.name, events::not_restarting(&reason));
                Ok(false)
            }
            Decision::Restart { after, reason } => {
                self.tasks.change(&self.name, |stored| {
                    events::append(&mut stored.state, events::restarting(after, reason), clock::now());
                    events::enter(&mut stored.state, PENDING, clock::now());
                });
                match self.pause(after.to_std()).await? {
                    Waited::Done => Ok(true),
                    Waited::Killed => {
                        self.killed_while_idle();
                        Ok(false)
                    }
                }
            }
        }
    }

    async fn pause(&mut self, span: Duration) -> Result<Waited, Shutdown> {
        let until = tokio::time::Instant::now() + span;
        loop {
            tokio::select! {
                biased;
                _ = self.kill.wait_for(Option::is_some) => return Ok(Waited::Killed),
                () = self.context.shutdown.cancelled() => return Err(Shutdown),
                () = tokio::time::sleep_until(until) => return Ok(Waited::Done),
                Some(request) = self.requests.recv() => answer_idle(request),
            }
        }
    }

    /// A dead task waits to be released, or revived; true for the latter.
    async fn rest(&mut self) -> Result<bool, Shutdown> {
        loop {
            tokio::select! {
                biased;
                _ = self.kill.wait_for(Option::is_some) => return Ok(false),
                () = self.context.shutdown.cancelled() => return Err(Shutdown),
                Some(request) = self.requests.recv() => match request {
                    Request::Restart { reason, revive: true, reply } => {
                        self.tasks.change(&self.name, |stored| {
                            let now = clock::now();
                            events::append(&mut stored.state, events::restart_signaled(&reason), now);
                            events::enter(&mut stored.state, PENDING, now);
                            stored.state.finished_at = Default::default();
                            stored.state.failed = false;
                        });
                        reply.send(Ok(())).ok();
                        return Ok(true);
                    }
                    other => answer_idle(other),
                },
            }
        }
    }
}

/// A task that is not running cannot be signalled or restarted; one that is about to start is as good as
/// revived.
fn answer_idle(request: Request) {
    let not_running = || Err("Task not running".to_string());
    match request {
        Request::Restart { revive: true, reply, .. } => reply.send(Ok(())).ok(),
        Request::Restart { revive: false, reply, .. } => reply.send(not_running()).ok(),
        Request::Signal { reply, .. } => reply.send(not_running()).ok(),
    };
}
