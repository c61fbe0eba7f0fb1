//! The life of one task: wait for its turn, start, wait for its end, decide, and again.
//!
//! What is done around a start and an end is in the list of [`hooks`]; this loop only runs it, starts the driver and
//! decides what follows.

mod stopping;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::Rng;
use executor::Exit;
use model::document::{Allocation, Job, Node};
use nix::sys::signal::Signal;
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use super::environment::Environment;
use super::environment::group_ports;
use super::events::{self, DEAD, PENDING, RUNNING};
use super::hooks::{StartRequest, TaskContext, TaskHooks};
use super::parts::TaskParts;
use super::requests::{RestartReply, TaskRequest};
use super::restart::{Cause, Decision, Policy, Tracker};
use crate::clock;
use crate::driver::{
    DriverError, DynamicUser, Limits, Outcome, RunningTask, StartError, TaskConfig, TaskNames, Values,
};

/// The loop of one task. All senders of its channels are held by the allocation.
#[derive(Debug)]
pub struct TaskRunner {
    pub task: TaskContext,
    pub hooks: TaskHooks,
    /// True while the task may start.
    pub gate: watch::Receiver<bool>,
    pub requests: mpsc::Receiver<TaskRequest>,
    /// Who asked for a restart that is under way. More than one is possible: what comes while the task is stopped is the
    /// same restart.
    pub restarting: Vec<RestartReply>,
}

pub(crate) const NOT_RUNNING: &str = "Task not running";

/// Why a task does not run.
#[derive(Debug)]
enum Stop {
    Killed,
    RestartRequested,
    Unhealthy,
    StartFailed { recoverable: bool },
    Exited(Exit),
}

/// The agent stops: leave everything as it is.
struct Shutdown;

/// What an earlier agent has left of a task that is not dead.
enum Earlier {
    Running(Arc<dyn RunningTask>),
    /// It ended, and what follows from that was not decided.
    Ended(Exit),
}

/// What follows from the end of a task.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Follows {
    /// What its restart policy decides, by this agent or the next one.
    Decision,
    /// What it was stopped for.
    Order,
}

/// What happened to a running task.
enum Happened {
    Ended(Outcome),
    Killed,
    Requested(TaskRequest),
    Updated,
}

/// What ended a wait.
enum Waited {
    Done,
    Killed,
}

impl TaskRunner {
    /// Returns when the task will never run again, or the agent stops.
    pub async fn run(mut self) {
        // When the agent stops, everything that must survive is stored already, and the hooks are left as they are.
        if self.live().await.is_ok() {
            self.hooks.stop(&self.task).await;
        }
    }

    async fn live(&mut self) -> Result<(), Shutdown> {
        let stream = format!("{}/{}", self.task.alloc.borrow().id, self.task.name);
        let rng = Rng::stream(self.task.context.seed, &stream);
        let mut tracker = Tracker::new(self.policy(), rng);
        let mut earlier = self.resume().await?;
        loop {
            if earlier.is_some() || !self.is_dead() {
                let stop = match earlier.take() {
                    Some(Earlier::Running(running)) => self.supervise(running).await?,
                    Some(Earlier::Ended(exit)) => Stop::Exited(exit),
                    None => self.attempt().await?,
                };
                tracker.set_policy(self.policy());
                if self.restart_after(stop, &mut tracker).await? {
                    continue;
                }
                self.restarted(&Err(NOT_RUNNING.to_string()));
                let failed = self.task.tasks.state(&self.task.name).is_some_and(|state| state.failed);
                self.task.count(if failed {
                    "nomad.client.allocs.failed"
                } else {
                    "nomad.client.allocs.complete"
                });
                self.task.tasks.enter(&self.task.name, DEAD);
            }
            if !self.wait_for_revival().await? {
                return Ok(());
            }
        }
    }

    fn policy(&self) -> Policy {
        let alloc = self.task.alloc.borrow();
        let role = self.task.role;
        match TaskParts::find(&alloc, &self.task.name) {
            Some(parts) => Policy::of(parts.job, parts.group.restart_policy.as_ref(), parts.task, role),
            None => Policy::of(&Default::default(), None, &Default::default(), role),
        }
    }

    fn is_dead(&self) -> bool {
        self.task.tasks.state(&self.task.name).is_some_and(|state| state.state == DEAD)
    }

    async fn resume(&mut self) -> Result<Option<Earlier>, Shutdown> {
        let stored = self.task.tasks.task(&self.task.name);
        if let (Some(exit), false) = (stored.undecided, self.is_dead()) {
            self.hooks.exited(&self.task, &exit).await;
            self.contact().await?;
            return Ok(Some(Earlier::Ended(exit)));
        }
        let recovered = self.recover().await?;
        if recovered.is_some() {
            self.hooks.restored(&self.task).await;
        }
        Ok(recovered.map(Earlier::Running))
    }

    /// Finds the task of an earlier agent. A task that cannot be found again starts anew.
    async fn recover(&mut self) -> Result<Option<Arc<dyn RunningTask>>, Shutdown> {
        let (context, tasks, name) = (&self.task.context, &self.task.tasks, &self.task.name);
        let Some(handle) = tasks.task(name).handle else { return Ok(None) };
        match context.drivers.recover(&handle).await {
            Ok(running) => {
                tasks.set_running(name, Arc::clone(&running));
                return Ok(Some(running));
            }
            Err(error) => tracing::warn!(task = name, %error, "a task was not found again"),
        }
        tasks.change(name, |stored| {
            stored.handle = None;
            events::append(&mut stored.state, events::failed_restoring(), clock::now());
            events::enter(&mut stored.state, PENDING, clock::now());
        });
        tasks.set_ended(name);
        context.drivers.destroy(&handle).await;
        self.contact().await?;
        Ok(None)
    }

    /// Waits until a server was reached before a task of an earlier agent may start again: it may want the task
    /// elsewhere by now.
    async fn contact(&self) -> Result<(), Shutdown> {
        let context = &self.task.context;
        let (mut contacted, mut kill) = (context.contacted.subscribe(), self.task.kill.clone());
        tokio::select! {
            _ = contacted.wait_for(|contacted| *contacted) => Ok(()),
            _ = kill.wait_for(Option::is_some) => Ok(()),
            () = context.shutdown.cancelled() => Err(Shutdown),
        }
    }

    /// One start to one end.
    async fn attempt(&mut self) -> Result<Stop, Shutdown> {
        self.task.tasks.enter(&self.task.name, PENDING);
        if let Waited::Killed = self.wait_for_turn().await? {
            return Ok(self.killed_while_idle());
        }
        match self.start().await? {
            Ok(running) => self.supervise(running).await,
            Err(stop) => {
                self.restarted(&Err("the task was stopped, but did not start again".to_string()));
                Ok(stop)
            }
        }
    }

    async fn wait_for_turn(&mut self) -> Result<Waited, Shutdown> {
        if !*self.gate.borrow() {
            // It waits for other tasks, which may take any time.
            self.restarted(&Ok(()));
        }
        let mut kill = self.task.kill.clone();
        loop {
            tokio::select! {
                biased;
                _ = kill.wait_for(Option::is_some) => return Ok(Waited::Killed),
                () = self.task.context.shutdown.cancelled() => return Err(Shutdown),
                _ = self.gate.wait_for(|open| *open) => return Ok(Waited::Done),
                Some(request) = self.requests.recv() => answer_idle(request),
            }
        }
    }

    async fn start(&mut self) -> Result<Result<Arc<dyn RunningTask>, Stop>, Shutdown> {
        let name = self.task.name.clone();
        if let Some(why) = self.task.context.store.failing() {
            // What runs has to be found again by the next agent. The attempts of the task, then the servers, look for a way.
            let why = format!("local state cannot be written: {why}");
            self.task.tasks.add_event(&name, events::driver_failure(&why));
            return Ok(Err(Stop::StartFailed { recoverable: true }));
        }
        // Versions from here on are updates of what is started now.
        self.task.alloc.mark_unchanged();
        let alloc = self.task.alloc();
        let Some(parts) = TaskParts::find(&alloc, &name) else {
            self.task.tasks.add_event(&name, events::setup_failure("update missing task"));
            return Ok(Err(Stop::StartFailed { recoverable: false }));
        };
        match self.prepare().await? {
            Ok(start) => Ok(self.run_driver(start, parts).await),
            Err(stop) => Ok(Err(stop)),
        }
    }

    /// Runs the hooks before a start. They may wait for anything, so an order to end interrupts them.
    async fn prepare(&mut self) -> Result<Result<StartRequest, Stop>, Shutdown> {
        let prepared = {
            let TaskRunner { task, hooks, requests, .. } = self;
            let task = &*task;
            let mut kill = task.kill.clone();
            let preparing = hooks.prestart(task);
            tokio::pin!(preparing);
            loop {
                tokio::select! {
                    biased;
                    _ = kill.wait_for(Option::is_some) => break None,
                    () = task.context.shutdown.cancelled() => return Err(Shutdown),
                    prepared = &mut preparing => break Some(prepared),
                    Some(request) = requests.recv() => answer_idle(request),
                }
            }
        };
        let (tasks, name) = (&self.task.tasks, &self.task.name);
        Ok(match prepared {
            None => Err(self.killed_while_idle()),
            Some(Ok(start)) => Ok(start),
            Some(Err(error)) if error.kills => {
                tasks.add_event(name, events::killing_failed(&error.message));
                tasks.add_event(name, events::killed(None));
                Err(Stop::Killed)
            }
            Some(Err(error)) => {
                if !error.reported {
                    tasks.add_event(name, events::hook_failed(&error.to_string()));
                }
                Err(Stop::StartFailed { recoverable: error.recoverable })
            }
        })
    }

    async fn run_driver(
        &mut self,
        start: StartRequest,
        parts: TaskParts<'_>,
    ) -> Result<Arc<dyn RunningTask>, Stop> {
        let name = self.task.name.clone();
        let (config, block) = self.task_config(start, parts);
        let started = self.task.context.drivers.start(&parts.task.driver, config, block).await;
        let started = started.map_err(|error| {
            let (event, recoverable) = match &error {
                StartError::Invalid(text) => (events::failed_validation(text), false),
                StartError::Failed { message, recoverable } => {
                    (events::driver_failure(message), *recoverable)
                }
            };
            self.task.tasks.add_event(&name, event);
            Stop::StartFailed { recoverable }
        })?;
        self.task.tasks.set_running(&name, Arc::clone(&started.task));
        self.task.tasks.change(&name, |stored| {
            stored.handle = Some(started.handle.clone());
            stored.network = started.network.clone();
            events::append(&mut stored.state, events::started(), clock::now());
            events::enter(&mut stored.state, RUNNING, clock::now());
        });
        self.task.count("nomad.client.allocs.running");
        self.restarted(&Ok(()));
        self.hooks.poststart(&self.task).await;
        Ok(started.task)
    }

    /// What the driver needs, and the `config` block that it still has to check.
    fn task_config(
        &self,
        start: StartRequest,
        parts: TaskParts<'_>,
    ) -> (TaskConfig, BTreeMap<String, Value>) {
        let (environment, node) = (start.environment, self.task.context.node());
        let block = environment.replace_config(&parts.task.config);
        let config = TaskConfig {
            alloc_id: start.alloc.id.clone(),
            task: self.task.name.clone(),
            instance: format!("{:08x}", clock::seed() as u32),
            config: Values::default(),
            block: BTreeMap::new(),
            user: environment.replace(&parts.task.user),
            dynamic_user: self.dynamic_user(&start.alloc, &environment),
            logs: start.logs,
            limits: limits(&start.alloc, &node, &self.task.name),
            cores: cores(&start.alloc, &self.task.name),
            ports: group_ports(&start.alloc),
            mounts: start.mounts,
            devices: start.devices,
            device_env: start.device_env,
            network_namespace: start.network_namespace,
            hosts_file: start.hosts_file,
            resolv_conf: start.resolv_conf,
            names: names(&start.alloc, &node, parts.job),
            env: environment.variables,
            dir: start.dir,
            shared_dir: self.task.alloc_dir.shared(),
        };
        (config, block)
    }

    fn dynamic_user(&self, alloc: &Allocation, environment: &Environment) -> Option<DynamicUser> {
        let context = &self.task.context;
        let uid = context.users.of(&alloc.id, &self.task.name)?;
        let own = || environment.value("NOMAD_TASK_DIR").unwrap_or("/").into();
        Some(DynamicUser { uid, home: context.settings.dynamic_users.home_dir.clone().unwrap_or_else(own) })
    }

    /// Stays with a running task until it has ended.
    async fn supervise(&mut self, mut running: Arc<dyn RunningTask>) -> Result<Stop, Shutdown> {
        let (mut kill, mut alloc) = (self.task.kill.clone(), self.task.alloc.clone());
        loop {
            let happened = tokio::select! {
                outcome = running.wait() => Happened::Ended(outcome),
                _ = kill.wait_for(Option::is_some) => Happened::Killed,
                Some(request) = self.requests.recv() => Happened::Requested(request),
                () = self.task.context.shutdown.cancelled() => return Err(Shutdown),
                Ok(()) = alloc.changed() => Happened::Updated,
            };
            match happened {
                Happened::Ended(Outcome::Exited(exit)) => {
                    self.ended(&exit, Follows::Decision).await;
                    return Ok(Stop::Exited(exit));
                }
                Happened::Ended(Outcome::DriverLost) => match self.recover().await? {
                    Some(found) => running = found,
                    None => return Ok(Stop::RestartRequested),
                },
                Happened::Killed => return Ok(self.end(&*running).await),
                Happened::Requested(TaskRequest::Signal { signal, name, reply }) => {
                    self.task.tasks.add_event(&self.task.name, events::signaling(&name, ""));
                    reply.send(send_signal(&self.task, &*running, signal).await).ok();
                }
                Happened::Requested(TaskRequest::Fail { reason }) => {
                    self.task.tasks.add_event(&self.task.name, events::killing_failed(&reason));
                    return Ok(self.stop_for_good(&*running).await);
                }
                Happened::Requested(TaskRequest::Restart { reason, unhealthy, reply, .. }) => {
                    self.task.tasks.add_event(&self.task.name, events::restart_signaled(&reason));
                    self.restarting.push(reply);
                    self.hooks.prerestart(&self.task).await;
                    self.stop(&*running).await.ok();
                    return Ok(if unhealthy { Stop::Unhealthy } else { Stop::RestartRequested });
                }
                Happened::Updated => self.hooks.update(&self.task).await,
            }
        }
    }

    /// Answers those who wait for a restart.
    fn restarted(&mut self, outcome: &Result<(), String>) {
        for reply in self.restarting.drain(..) {
            reply.send(outcome.clone()).ok();
        }
    }

    /// Decides what follows a stop; true when the task is to be started again, after the delay of its policy.
    async fn restart_after(&mut self, stop: Stop, tracker: &mut Tracker) -> Result<bool, Shutdown> {
        let cause = match &stop {
            Stop::Killed => Cause::Killed,
            Stop::RestartRequested => Cause::Asked,
            Stop::Unhealthy => Cause::Unhealthy,
            Stop::StartFailed { recoverable } => Cause::StartFailed { recoverable: *recoverable },
            Stop::Exited(exit) => Cause::Exited(exit),
        };
        match tracker.decide(cause, clock::now()) {
            Decision::Killed | Decision::Finished => Ok(false),
            Decision::GiveUp(reason) => {
                self.task.tasks.add_event(&self.task.name, events::not_restarting(&reason));
                Ok(false)
            }
            Decision::Restart { after, reason } => {
                self.task.count("nomad.client.allocs.restart");
                self.task.tasks.change(&self.task.name, |stored| {
                    stored.undecided = None;
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
        let mut kill = self.task.kill.clone();
        loop {
            tokio::select! {
                biased;
                _ = kill.wait_for(Option::is_some) => return Ok(Waited::Killed),
                () = self.task.context.shutdown.cancelled() => return Err(Shutdown),
                () = tokio::time::sleep_until(until) => return Ok(Waited::Done),
                Some(request) = self.requests.recv() => answer_idle(request),
            }
        }
    }

    /// A dead task waits to be released, or revived; true for the latter.
    async fn wait_for_revival(&mut self) -> Result<bool, Shutdown> {
        let mut kill = self.task.kill.clone();
        loop {
            tokio::select! {
                biased;
                _ = kill.wait_for(Option::is_some) => return Ok(false),
                () = self.task.context.shutdown.cancelled() => return Err(Shutdown),
                Some(request) = self.requests.recv() => match request {
                    TaskRequest::Restart { reason, revive: true, reply, .. } => {
                        self.revive(&reason);
                        self.restarting.push(reply);
                        return Ok(true);
                    }
                    other => answer_idle(other),
                },
            }
        }
    }

    fn revive(&self, reason: &str) {
        self.task.tasks.change(&self.task.name, |stored| {
            let now = clock::now();
            stored.undecided = None;
            events::append(&mut stored.state, events::restart_signaled(reason), now);
            events::enter(&mut stored.state, PENDING, now);
            stored.state.finished_at = Default::default();
            stored.state.failed = false;
        });
    }
}

async fn send_signal(task: &TaskContext, running: &dyn RunningTask, signal: Signal) -> Result<(), String> {
    let alloc = task.alloc();
    let driver = TaskParts::find(&alloc, &task.name).map_or("", |parts| parts.task.driver.as_str());
    let sent = async {
        task.context.drivers.check_signals(driver)?;
        running.signal(signal).await
    };
    sent.await.map_err(|error: DriverError| error.to_string())
}

fn limits(alloc: &Allocation, node: &Node, task: &str) -> Limits {
    let granted = alloc.allocated_resources.as_ref().and_then(|granted| granted.tasks.get(task));
    let whole = node.node_resources.as_ref().map(|resources| &resources.cpu);
    granted.map_or(Limits::default(), |granted| Limits {
        cpu_mhz: granted.cpu.cpu_shares,
        memory_mb: granted.memory.memory_mb,
        memory_max_mb: granted.memory.memory_max_mb,
        node_cpu_mhz: whole.map_or(0, |cpu| cpu.cpu_shares),
        node_cores: whole.map_or(0, |cpu| cpu.total_cpu_cores.into()),
    })
}

fn cores(alloc: &Allocation, task: &str) -> Vec<u16> {
    let granted = alloc.allocated_resources.as_ref().and_then(|granted| granted.tasks.get(task));
    granted.map(|granted| granted.cpu.reserved_cores.to_vec()).unwrap_or_default()
}

fn names(alloc: &Allocation, node: &Node, job: &Job) -> TaskNames {
    TaskNames {
        namespace: alloc.namespace.clone(),
        job_id: alloc.job_id.clone(),
        job_name: job.name.clone().unwrap_or_default(),
        parent_job_id: job.parent_id.clone().unwrap_or_default(),
        group: alloc.task_group.clone(),
        node_id: node.id.clone(),
        node_name: node.name.clone(),
    }
}

/// A task that does not run cannot be signalled or restarted; one that is about to start is as good as
/// revived.
fn answer_idle(request: TaskRequest) {
    let not_running = || Err(NOT_RUNNING.to_string());
    match request {
        TaskRequest::Restart { revive: true, reply, .. } => reply.send(Ok(())).ok(),
        TaskRequest::Restart { revive: false, reply, .. } => reply.send(not_running()).ok(),
        TaskRequest::Signal { reply, .. } => reply.send(not_running()).ok(),
        // The hook that asks for it runs again before the next start, and fails it.
        TaskRequest::Fail { .. } => None,
    };
}
