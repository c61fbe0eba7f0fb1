//! Drives the tasks of one allocation: opens their gates, stops them in order, and reports the whole.
//!
//! One loop owns everything. After each thing that happens it looks at the states of the tasks and does what follows
//! (`settle`); nothing is remembered that they do not say, except orders given. What is done before, after and
//! besides is in the list of [`hooks`], whose slow steps run beside the loop.

mod commands;
mod report;
mod stopping;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use base::Time;
use model::document::Allocation;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

use super::handle::{AllocCommand, AllocHandle, AllocStatus, COMMANDS_MAX};
use super::hooks::{AllocContext, AllocHooks, Predecessors, group_of};
use super::status;
use crate::clock;
use crate::context::Context;
use crate::hook::HookError;
use crate::layout::AllocDir;
use crate::store::StoredAlloc;
use crate::task::events::{self, KillReason, PENDING};
use crate::task::hooks::{TaskContext, TaskHooks};
use crate::task::lifecycle::{self, Coordinator, Role, Roles};
use crate::task::requests::{Kill, TaskRequest};
use crate::task::runner::TaskRunner;
use crate::task::states::TaskStates;
use commands::Restart;
use stopping::Stopping;

/// Requests that one task has not answered yet; more are rejected.
const REQUESTS_MAX: usize = 16;

/// The allocation's ends of the channels to one task.
#[derive(Debug)]
struct TaskChannels {
    gate: watch::Sender<bool>,
    kill: watch::Sender<Option<Kill>>,
    requests: mpsc::Sender<TaskRequest>,
}

/// A step of the hooks that has come to its end.
#[derive(Debug)]
enum Step {
    Prerun(Result<(), HookError>),
    Update,
    Prerestart(Restart),
    Postrestart,
    Prekill,
    Postrun,
}

#[derive(Debug)]
pub struct AllocRunner {
    alloc: Arc<AllocContext>,
    hooks: Arc<AllocHooks>,
    /// Steps of hooks that run.
    steps: JoinSet<Step>,
    versions: watch::Sender<Arc<Allocation>>,
    coordinator: Coordinator,
    channels: BTreeMap<String, TaskChannels>,
    loops: JoinSet<()>,
    commands: mpsc::Receiver<AllocCommand>,
    status: watch::Sender<AllocStatus>,
    stopping: Option<Stopping>,
    stop_orders: watch::Sender<Option<Kill>>,
    /// The client status and description once all tasks are dead, instead of what their states say.
    final_status: Option<(&'static str, &'static str)>,
    reported: Option<Allocation>,
    /// `prerun` is over and the loops of the tasks were started.
    started: bool,
    /// A newer version came during `prerun`.
    changed_early: bool,
    /// `postrun` was begun.
    finished: bool,
}

impl AllocRunner {
    /// Starts to run `stored`: a new allocation, or one that an earlier agent left.
    ///
    /// # Errors
    /// When the allocation is not one that could run: a broken id, or a group that its job does not have.
    pub fn spawn(
        context: &Arc<Context>,
        stored: StoredAlloc,
        predecessors: Predecessors,
    ) -> Result<AllocHandle, String> {
        let dir = AllocDir::new(&context.settings.alloc_dir, &stored.alloc.id).map_err(|e| e.to_string())?;
        let roles = roles(&stored.alloc)?;
        let coordinator =
            if stored.tasks.is_empty() { Coordinator::fresh() } else { Coordinator::restored() };
        let tasks = Arc::new(TaskStates::new(&stored.alloc.id, context.store.clone(), stored.tasks));
        for name in roles.keys().filter(|name| tasks.state(name).is_none()) {
            tasks.change(name, |task| {
                events::enter(&mut task.state, PENDING, clock::now());
                events::append(&mut task.state, events::received(), clock::now());
            });
        }
        let (commands, inbox) = mpsc::channel(COMMANDS_MAX);
        let deployment_status = stored.deployment.or_else(|| stored.alloc.deployment_status.clone());
        let (versions, newest) = watch::channel(Arc::new(stored.alloc));
        let (stop_orders, stopping) = watch::channel(None);
        let (status, seen) = watch::channel(AllocStatus::default());
        let handle = AllocHandle {
            commands,
            status: seen,
            alloc: newest.clone(),
            tasks: Arc::clone(&tasks),
            dir: dir.clone(),
            current_hook: Arc::default(),
        };
        let alloc = AllocContext {
            id: handle.alloc.borrow().id.clone(),
            context: Arc::clone(context),
            dir,
            tasks,
            roles,
            versions: newest,
            stopping,
            commands: handle.commands.downgrade(),
            predecessors,
            current_hook: Arc::clone(&handle.current_hook),
            deployment_status: Mutex::new(deployment_status),
        };
        let runner = AllocRunner {
            alloc: Arc::new(alloc),
            hooks: Arc::new(AllocHooks::listed()),
            steps: JoinSet::new(),
            versions,
            coordinator,
            channels: BTreeMap::new(),
            loops: JoinSet::new(),
            commands: inbox,
            status,
            stopping: None,
            stop_orders,
            final_status: None,
            reported: None,
            started: false,
            changed_early: false,
            finished: false,
        };
        context.tasks.spawn(runner.run());
        Ok(handle)
    }

    async fn run(mut self) {
        let shutdown = self.alloc.context.shutdown.clone();
        let mut changed = self.alloc.tasks.subscribe();
        self.run_step(|hooks, alloc| async move { Step::Prerun(hooks.prerun(&alloc).await) });
        loop {
            let deadline = self.settle();
            tokio::select! {
                () = shutdown.cancelled() => return self.leave().await,
                _ = changed.changed() => {}
                Some(ended) = self.loops.join_next() => self.log_broken(ended.err()),
                Some(step) = self.steps.join_next() => match step {
                    Ok(step) => self.after_step(step),
                    Err(error) => self.after_broken_step(error),
                },
                () = until(deadline) => {}
                command = self.commands.recv() => match command {
                    Some(AllocCommand::Destroy { done }) => return self.destroy(done).await,
                    Some(command) => self.obey(command),
                    None => return self.leave().await,
                },
            }
        }
    }

    /// Runs a step of the hooks beside the loop.
    fn run_step<F: Future<Output = Step> + Send + 'static>(
        &mut self,
        step: impl FnOnce(Arc<AllocHooks>, Arc<AllocContext>) -> F,
    ) {
        self.steps.spawn(step(Arc::clone(&self.hooks), Arc::clone(&self.alloc)));
    }

    fn after_step(&mut self, step: Step) {
        match step {
            Step::Prerun(result) => self.start_tasks(result),
            Step::Update | Step::Postrestart => {}
            Step::Prerestart(restart) => self.restart_prepared(restart),
            Step::Prekill => self.stopping.iter_mut().for_each(|stopping| stopping.prekill_done = true),
            Step::Postrun => {
                self.status.send_modify(|status| {
                    status.done = true;
                    status.done_at = clock::now().0;
                });
                self.alloc.context.alloc_ended.notify_one();
            }
        }
    }

    fn log_broken(&self, error: Option<tokio::task::JoinError>) {
        if let Some(error) = error {
            tracing::error!(alloc = self.alloc.id, %error, "the loop of a task panicked");
        }
    }

    /// A hook has panicked. Whatever waits for the step must not wait for ever.
    fn after_broken_step(&mut self, error: tokio::task::JoinError) {
        tracing::error!(alloc = self.alloc.id, %error, "a hook panicked");
        if !self.started {
            self.start_tasks(Err(HookError::fatal("prerun", "a hook panicked")));
        }
        self.after_step(Step::Prekill);
        if self.finished {
            self.after_step(Step::Postrun);
        }
    }

    /// Starts the loops of all tasks, which wait for their turn. If the allocation could not be set up, all fail.
    fn start_tasks(&mut self, prerun: Result<(), HookError>) {
        self.started = true;
        if let Err(HookError { hook, message, .. }) = prerun {
            let text = format!("failed to setup alloc: pre-run hook \"{hook}\" failed: {message}");
            self.stop(KillReason::Setup(text), true);
            self.stop_poststop_too();
        } else if self.changed_early {
            self.run_update();
        }
        if status::is_stopped(&self.alloc.alloc().desired_status) {
            self.stop(KillReason::Stopped, false);
        }
        for (name, role) in self.alloc.roles.clone() {
            self.spawn_task(name, role);
        }
    }

    fn spawn_task(&mut self, name: String, role: Role) {
        let (gate, kill) = (watch::Sender::new(false), watch::Sender::new(None));
        let (requests, inbox) = mpsc::channel(REQUESTS_MAX);
        let task = TaskContext {
            context: Arc::clone(&self.alloc.context),
            alloc_dir: self.alloc.dir.clone(),
            tasks: Arc::clone(&self.alloc.tasks),
            name: name.clone(),
            role,
            alloc: self.versions.subscribe(),
            kill: kill.subscribe(),
            requests: requests.downgrade(),
        };
        let hooks = TaskHooks::load(&task);
        self.loops.spawn(
            TaskRunner { task, hooks, gate: gate.subscribe(), requests: inbox, restarting: Vec::new() }.run(),
        );
        self.channels.insert(name, TaskChannels { gate, kill, requests });
    }

    /// Does what follows from the states of the tasks; returns when to look again even if nothing happens.
    fn settle(&mut self) -> Option<Time> {
        if !self.started {
            self.report();
            return None;
        }
        let now = clock::now();
        let states = self.alloc.tasks.states();
        if self.stopping.is_none()
            && let Some(reason) = lifecycle::must_stop(&self.alloc.roles, &states)
        {
            self.stop(reason, false);
        }
        let again_at = self.check_hooks(now);
        self.order_stops();
        self.coordinator.advance(&self.alloc.roles, &states);
        self.move_gates();
        self.release();
        self.report();
        again_at.filter(|at| *at > now)
    }

    fn check_hooks(&mut self, now: Time) -> Option<Time> {
        let (orders, again_at) = self.hooks.check(&self.alloc, now);
        if let Some(order) = orders.into_iter().next().filter(|_| self.final_status.is_none()) {
            self.final_status = Some(order.status);
            self.stop(order.reason, false);
            self.stop_poststop_too();
        }
        again_at
    }

    fn move_gates(&self) {
        for (name, channels) in &self.channels {
            let open = self.alloc.roles.get(name).is_some_and(|role| self.coordinator.is_open(*role));
            channels.gate.send_if_modified(|gate| std::mem::replace(gate, open) != open);
        }
    }

    /// Lets the loops of dead tasks end when no task can run any more; runs the last hooks when they have.
    fn release(&mut self) {
        if self.alloc.tasks.states().values().all(lifecycle::is_dead) {
            for name in self.channels.keys() {
                self.order_kill(name, &Kill::default());
            }
        }
        if self.loops.is_empty() && !self.finished {
            self.finished = true;
            self.run_step(|hooks, alloc| async move {
                hooks.postrun(&alloc).await;
                Step::Postrun
            });
        }
    }

    /// The agent stops and the tasks go on: their loops end without touching them, and hooks are dropped.
    async fn leave(mut self) {
        while self.loops.join_next().await.is_some() {}
    }

    /// Ends everything at once, poststop tasks included, and removes what is left.
    async fn destroy(mut self, done: oneshot::Sender<()>) {
        self.stop(KillReason::Stopped, true);
        let runs = self.started && !self.status.borrow().done;
        if runs {
            self.report();
        }
        for (name, channels) in &self.channels {
            self.order_kill(name, &Kill { at_once: true, ..Kill::default() });
            channels.gate.send_replace(false);
        }
        while self.loops.join_next().await.is_some() {}
        self.steps.shutdown().await;
        if runs {
            self.hooks.postrun(&self.alloc).await;
        }
        self.hooks.destroy(&self.alloc).await;
        // What waits to be sent stays: the servers may not know yet how it ended.
        self.alloc.context.store.forget(&self.alloc.id);
        self.status.send_modify(|status| status.done = true);
        done.send(()).ok();
    }
}

/// The tasks of the allocation's group and their parts.
fn roles(alloc: &Allocation) -> Result<Roles, String> {
    let group =
        group_of(alloc).ok_or_else(|| format!("the job has no task group \"{}\"", alloc.task_group))?;
    Ok(group.tasks.iter().map(|task| (task.name.clone(), Role::of(task))).collect())
}

/// Sleeps until `at`, or for ever.
async fn until(at: Option<Time>) {
    match at {
        Some(at) => tokio::time::sleep(at.since(clock::now()).to_std()).await,
        None => std::future::pending().await,
    }
}
