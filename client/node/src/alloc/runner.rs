//! Drives the tasks of one allocation: opens their gates, stops them in order, judges the whole, reports it.
//!
//! One loop owns everything. After each thing that happens it looks at the board and does what follows
//! (`settle`); nothing is remembered that the tasks does not say, except orders given.

mod report;

use std::collections::BTreeMap;
use std::sync::Arc;

use base::Time;
use model::document::{AllocDeploymentStatus, Allocation};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

use super::handle::{AllocHandle, COMMANDS_MAX, Command, Facts, Reply};
use super::health::Watch;
use super::{migrate, status};
use crate::clock;
use crate::context::Context;
use crate::layout::AllocDir;
use crate::store::StoredAlloc;
use crate::task::events::{self, KillReason, PENDING, RUNNING};
use crate::task::lifecycle::{self, Coordinator, Role, Roles, Stage};
use crate::task::runner::{Kill, Request, TaskRunner};
use crate::task::states::TaskStates;

/// What waits for one task at most.
const REQUESTS_MAX: usize = 16;

const RUN_TOO_LONG: &str = "allocation exceeded max_run_duration";

/// The ends of the wires to one task.
#[derive(Debug)]
struct Wires {
    gate: watch::Sender<bool>,
    kill: watch::Sender<Option<Kill>>,
    requests: mpsc::Sender<Request>,
}

/// The order to stop all tasks.
#[derive(Debug)]
struct Stopping {
    kill: Kill,
    /// Group services were gone for long enough from here on.
    from: Time,
    /// Poststop tasks are stopped too, or never start.
    all: bool,
}

#[derive(Debug)]
pub struct AllocRunner {
    context: Arc<Context>,
    dir: AllocDir,
    tasks: Arc<TaskStates>,
    alloc: watch::Sender<Arc<Allocation>>,
    roles: Roles,
    coordinator: Coordinator,
    wires: BTreeMap<String, Wires>,
    loops: JoinSet<()>,
    commands: mpsc::Receiver<Command>,
    facts: watch::Sender<Facts>,
    stopping: Option<Stopping>,
    health: Option<Watch>,
    deployment: Option<AllocDeploymentStatus>,
    /// Stands in for what the tasks say.
    verdict: Option<(&'static str, &'static str)>,
    reported: Option<Allocation>,
    started: bool,
}

/// The allocation that this one replaces, when it was on this node.
#[derive(Debug)]
pub struct Previous {
    pub facts: watch::Receiver<Facts>,
    pub dir: AllocDir,
}

impl AllocRunner {
    /// Starts to run `stored`: a new allocation, or one that an earlier agent left.
    ///
    /// # Errors
    /// When the allocation is not one that could run: a broken id, or a group that its job does not have.
    pub fn spawn(
        context: &Arc<Context>,
        stored: StoredAlloc,
        previous: Option<Previous>,
    ) -> Result<AllocHandle, String> {
        let dir = AllocDir::new(&context.settings.alloc_dir, &stored.alloc.id).map_err(|e| e.to_string())?;
        let roles = roles(&stored.alloc)?;
        let restored = !stored.tasks.is_empty();
        let tasks = Arc::new(TaskStates::new(&stored.alloc.id, context.store.clone(), stored.tasks));
        for name in roles.keys().filter(|name| tasks.state(name).is_none()) {
            tasks.change(name, |task| {
                events::enter(&mut task.state, PENDING, clock::now());
                events::append(&mut task.state, events::received(), clock::now());
            });
        }
        let (commands, inbox) = mpsc::channel(COMMANDS_MAX);
        let deployment = stored.deployment.or_else(|| stored.alloc.deployment_status.clone());
        let runner = AllocRunner {
            context: Arc::clone(context),
            dir: dir.clone(),
            tasks: Arc::clone(&tasks),
            alloc: watch::Sender::new(Arc::new(stored.alloc)),
            roles,
            coordinator: if restored { Coordinator::restored() } else { Coordinator::fresh() },
            wires: BTreeMap::new(),
            loops: JoinSet::new(),
            commands: inbox,
            facts: watch::Sender::default(),
            stopping: None,
            health: None,
            deployment,
            verdict: None,
            reported: None,
            started: false,
        };
        let (facts, alloc) = (runner.facts.subscribe(), runner.alloc.subscribe());
        context.tasks.spawn(runner.run(previous));
        Ok(AllocHandle { commands, facts, alloc, tasks, dir })
    }

    async fn run(mut self, previous: Option<Previous>) {
        let mut previous = previous;
        let shutdown = self.context.shutdown.clone();
        loop {
            if let Some(before) = previous.take_if(|before| self.may_follow(before)) {
                self.prerun(Some(before.dir));
            } else if previous.is_none() && !self.started {
                self.prerun(None);
            }
            let deadline = self.settle();
            tokio::select! {
                () = shutdown.cancelled() => return self.leave().await,
                () = self.tasks.changed() => {}
                Some(ended) = self.loops.join_next() => if let Err(error) = ended {
                    tracing::error!(alloc = self.alloc.borrow().id, %error, "the loop of a task broke");
                },
                () = until(deadline) => {}
                () = ended(&mut previous) => {}
                command = self.commands.recv() => match command {
                    Some(Command::Destroy { done }) => return self.destroy(done).await,
                    Some(command) => self.obey(command),
                    None => return self.leave().await,
                },
            }
        }
    }

    /// True when the predecessor no longer stands in the way, or nothing would run anyway.
    fn may_follow(&self, before: &Previous) -> bool {
        before.facts.borrow().done || status::is_stopped(&self.alloc.borrow().desired_status)
    }

    /// What comes before the first task: directories, and the refusal of what this node cannot give.
    fn prerun(&mut self, predecessor: Option<AllocDir>) {
        self.started = true;
        let alloc = Arc::clone(&self.alloc.borrow());
        if let Err(error) = self.set_up(&alloc, predecessor) {
            self.stop(KillReason::Setup(format!("failed to setup alloc: {error}")), true);
            self.stopping.iter_mut().for_each(|stopping| stopping.all = true);
        } else {
            self.health = Watch::of(&self.with_deployment(&alloc), clock::now());
        }
        if status::is_stopped(&alloc.desired_status) {
            self.stop(KillReason::Stopped, false);
        }
        for (name, role) in self.roles.clone() {
            self.spawn_task(name, role);
        }
    }

    fn set_up(&self, alloc: &Allocation, predecessor: Option<AllocDir>) -> Result<(), String> {
        if status::is_stopped(&alloc.desired_status) {
            return Ok(());
        }
        let hook =
            |name: &str, error: &dyn std::fmt::Display| format!("pre-run hook \"{name}\" failed: {error}");
        self.dir.build().map_err(|error| hook("alloc_dir", &error))?;
        let group = group(alloc).ok_or("the job lacks the task group")?;
        let mode = group.networks.first().map_or("", |network| network.mode.as_str());
        if !matches!(mode, "" | "host") {
            return Err(hook("network", &format!("this node has no networking mode \"{mode}\"")));
        }
        let sticky = group.ephemeral_disk.as_ref().is_some_and(|disk| disk.sticky == Some(true));
        if let Some(from) = predecessor.filter(|_| sticky)
            && let Err(error) = migrate::take_over(&from, &self.dir, self.roles.keys())
        {
            // A successor without its data is better than none; that is the contract.
            tracing::warn!(alloc = alloc.id, %error, "data of the previous allocation was not taken over");
        }
        Ok(())
    }

    fn spawn_task(&mut self, name: String, role: Role) {
        let (gate, kill) = (watch::Sender::new(false), watch::Sender::new(None));
        let (requests, inbox) = mpsc::channel(REQUESTS_MAX);
        let runner = TaskRunner {
            context: Arc::clone(&self.context),
            alloc_dir: self.dir.clone(),
            tasks: Arc::clone(&self.tasks),
            name: name.clone(),
            role,
            alloc: self.alloc.subscribe(),
            gate: gate.subscribe(),
            kill: kill.subscribe(),
            requests: inbox,
        };
        self.loops.spawn(runner.run());
        self.wires.insert(name, Wires { gate, kill, requests });
    }

    /// Does what follows from the states of the tasks; returns when to look again even if nothing happens.
    fn settle(&mut self) -> Option<Time> {
        if !self.started {
            self.report();
            return None;
        }
        let now = clock::now();
        let states = self.tasks.states();
        if self.stopping.is_none()
            && let Some(reason) = lifecycle::must_stop(&self.roles, &states)
        {
            self.stop(reason, false);
        }
        let run_out = self.check_run_time(now);
        let stop_at = self.order_stops(now);
        self.coordinator.advance(&self.roles, &states);
        self.move_gates();
        self.release();
        let judged_at = self.judge(now);
        self.report();
        [run_out, stop_at, judged_at].into_iter().flatten().filter(|at| *at > now).min()
    }

    /// Orders the end of all tasks, once: the first reason stands. A later order may still hurry it.
    fn stop(&mut self, reason: KillReason, at_once: bool) {
        let alloc = Arc::clone(&self.alloc.borrow());
        let at_once = at_once || alloc.desired_transition.no_shutdown_delay == Some(true);
        let now = clock::now();
        if let Some(stopping) = &mut self.stopping {
            if at_once && !stopping.kill.at_once {
                stopping.kill.at_once = true;
                stopping.from = now;
                for wires in self.wires.values() {
                    wires.kill.send_if_modified(|kill| match kill {
                        Some(kill) => !std::mem::replace(&mut kill.at_once, true),
                        None => false,
                    });
                }
            }
            return;
        }
        let delay = group(&alloc).and_then(|group| group.shutdown_delay).filter(|_| !at_once);
        let from = now.plus(delay.map_or(base::Duration::ZERO, |delay| delay.0));
        self.stopping = Some(Stopping { kill: Kill { reason, at_once }, from, all: false });
    }

    /// Tells the next tasks in line to end, once the group's delay has passed; until then returns its end.
    fn order_stops(&mut self, now: Time) -> Option<Time> {
        let stopping = self.stopping.as_ref()?;
        let states = self.tasks.states();
        if now < stopping.from && states.values().any(|state| state.state == RUNNING) {
            return Some(stopping.from);
        }
        let mut names = lifecycle::next_to_stop(&self.roles, &states);
        if stopping.all {
            names.extend(self.of_stage(Stage::Poststop));
        }
        for name in names {
            self.order_kill(&name, &stopping.kill);
        }
        None
    }

    fn of_stage(&self, stage: Stage) -> impl Iterator<Item = String> {
        self.roles.iter().filter(move |(_, role)| role.stage == stage).map(|(name, _)| name.clone())
    }

    fn order_kill(&self, name: &str, kill: &Kill) {
        if let Some(wires) = self.wires.get(name) {
            wires.kill.send_if_modified(|order| {
                let first = order.is_none();
                if first {
                    *order = Some(kill.clone());
                }
                first
            });
        }
    }

    /// Ends an allocation that has run for as long as it may; until then returns when that will be.
    fn check_run_time(&mut self, now: Time) -> Option<Time> {
        let alloc = Arc::clone(&self.alloc.borrow());
        let longest = group(&alloc)?.max_run_duration.filter(|longest| longest.0.0 > 0)?;
        let end = Time(alloc.create_time).plus(longest.0);
        if self.verdict.is_some() || self.tasks.states().values().all(lifecycle::is_dead) {
            return None;
        }
        if now < end {
            return Some(end);
        }
        self.verdict = Some(("complete", RUN_TOO_LONG));
        self.stop(KillReason::Because(RUN_TOO_LONG.to_string()), false);
        self.stopping.iter_mut().for_each(|stopping| stopping.all = true);
        None
    }

    fn move_gates(&self) {
        for (name, wires) in &self.wires {
            let open = self.roles.get(name).is_some_and(|role| self.coordinator.is_open(*role));
            wires.gate.send_if_modified(|gate| std::mem::replace(gate, open) != open);
        }
    }

    /// Lets the loops of dead tasks end when no task can run any more.
    fn release(&mut self) {
        if self.tasks.states().values().all(lifecycle::is_dead) {
            for name in self.wires.keys() {
                self.order_kill(name, &Kill::default());
            }
        }
        if self.loops.is_empty() && !self.facts.borrow().done {
            self.facts.send_modify(|facts| {
                facts.done = true;
                facts.done_at = clock::now().0;
            });
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Update(alloc) => self.change_version(alloc),
            Command::Restart { task, revive, reply } => self.restart(task, revive, reply),
            Command::Signal { task, signal, name, reply } => {
                let requests = |reply| Request::Signal { signal, name: name.clone(), reply };
                self.ask_tasks(task, false, requests, reply);
            }
            Command::Destroy { .. } => unreachable!("taken by the loop"),
        }
    }

    /// A newer version of the allocation: the same tasks go on, or all stop.
    fn change_version(&mut self, mut alloc: Arc<Allocation>) {
        let old = Arc::clone(&self.alloc.borrow());
        let stopped = status::is_stopped(&alloc.desired_status);
        let back = alloc.client_status == "unknown" && alloc.alloc_modify_index > old.alloc_modify_index;
        if alloc.job.is_none() {
            // Servers may leave the job out when it has not changed.
            Arc::make_mut(&mut alloc).job = old.job.clone();
        }
        if alloc.deployment_id != old.deployment_id {
            self.deployment = alloc.deployment_status.clone();
        }
        self.context.store.put_alloc(&alloc);
        self.alloc.send_replace(Arc::clone(&alloc));
        if alloc.deployment_id != old.deployment_id && self.started && self.stopping.is_none() {
            self.health = Watch::of(&self.with_deployment(&alloc), clock::now());
        }
        if stopped {
            self.stop(KillReason::Stopped, false);
        } else if back {
            self.reconnect();
        }
        if !back && alloc.client_status != self.update().client_status {
            self.say_again();
        }
        self.kill_missing(&alloc);
    }

    /// The servers had lost sight of this node and see it again: they hear at once how things are.
    fn reconnect(&mut self) {
        for name in self.roles.keys() {
            self.tasks.add_event(name, events::reconnected());
        }
        self.say_again();
    }

    /// The servers may have forgotten what they were told: an earlier state of theirs was put back.
    fn say_again(&mut self) {
        let update = self.update();
        self.context.updates.put_again(update.clone());
        self.reported = Some(update);
    }

    /// Tasks that a newer version no longer has cannot go on.
    fn kill_missing(&self, alloc: &Allocation) {
        let Ok(roles) = roles(alloc) else { return };
        let reason = KillReason::Setup("update missing task".to_string());
        for name in self.roles.keys().filter(|name| !roles.contains_key(*name)) {
            self.order_kill(name, &Kill { reason: reason.clone(), at_once: false });
        }
    }

    fn restart(&mut self, task: Option<String>, revive: bool, reply: Reply) {
        if self.stopping.is_some() {
            reply.send(Err("the allocation is stopping".to_string())).ok();
            return;
        }
        let everything = task.is_none() && revive;
        let request = |reply| Request::Restart { reason: "User requested restart".into(), revive, reply };
        self.ask_tasks(task, everything, request, reply);
        if everything {
            self.coordinator.start_over();
            self.move_gates();
        }
    }

    /// Passes a request to one task, to all that run, or to all; answers when all have answered.
    fn ask_tasks(
        &self,
        task: Option<String>,
        dead_too: bool,
        request: impl Fn(oneshot::Sender<Result<(), String>>) -> Request,
        reply: Reply,
    ) {
        let states = self.tasks.states();
        let wanted = |name: &String| match &task {
            Some(task) => name == task,
            None => dead_too || states.get(name).is_some_and(|state| state.state == RUNNING),
        };
        let names: Vec<&String> = self.wires.keys().filter(|name| wanted(name)).collect();
        if names.is_empty() {
            let text = match task {
                Some(task) if !self.roles.contains_key(&task) => format!("Could not find task {task}"),
                _ => "Task not running".to_string(),
            };
            reply.send(Err(text)).ok();
            return;
        }
        let mut answers = Vec::new();
        for name in names {
            let (answer, answered) = oneshot::channel();
            if self.wires[name].requests.try_send(request(answer)).is_ok() {
                answers.push(answered);
            } else {
                reply.send(Err(format!("task \"{name}\" is busy or gone"))).ok();
                return;
            }
        }
        tokio::spawn(async move {
            let mut first_error = Ok(());
            for answer in answers {
                let answer = answer.await.unwrap_or_else(|_| Err("Task not running".to_string()));
                first_error = first_error.and(answer);
            }
            reply.send(first_error).ok();
        });
    }

    /// The agent stops and the tasks go on: their loops end without touching them.
    async fn leave(mut self) {
        while self.loops.join_next().await.is_some() {}
    }

    /// Ends everything at once, poststop tasks included, and removes what is left.
    async fn destroy(mut self, done: oneshot::Sender<()>) {
        self.stop(KillReason::Stopped, true);
        if !self.facts.borrow().done && self.started {
            self.report();
        }
        for (name, wires) in &self.wires {
            self.order_kill(name, &Kill { at_once: true, ..Kill::default() });
            wires.gate.send_replace(false);
        }
        while self.loops.join_next().await.is_some() {}
        let id = self.alloc.borrow().id.clone();
        let dir = self.dir.clone();
        // Away from the runtime: a large directory takes its time.
        let removed = tokio::task::spawn_blocking(move || dir.destroy()).await;
        if let Err(error) = removed.unwrap_or_else(|error| Err(error.into())) {
            tracing::warn!(alloc = id, %error, "the directory of an allocation was not removed");
        }
        self.context.store.forget(&id);
        self.context.updates.forget(&id);
        self.facts.send_modify(|facts| facts.done = true);
        done.send(()).ok();
    }
}

fn group(alloc: &Allocation) -> Option<&model::document::TaskGroup> {
    alloc.job.as_ref()?.task_groups.iter().find(|group| group.name.as_ref() == Some(&alloc.task_group))
}

/// The tasks of the allocation's group and their parts.
fn roles(alloc: &Allocation) -> Result<Roles, String> {
    let group = group(alloc).ok_or_else(|| format!("the job has no task group \"{}\"", alloc.task_group))?;
    Ok(group.tasks.iter().map(|task| (task.name.clone(), Role::of(task))).collect())
}

/// Sleeps until `at`, or for ever.
async fn until(at: Option<Time>) {
    match at {
        Some(at) => tokio::time::sleep(at.since(clock::now()).to_std()).await,
        None => std::future::pending().await,
    }
}

/// Returns when the predecessor has ended, or vanished, which is the same; never without one.
async fn ended(previous: &mut Option<Previous>) {
    let Some(before) = previous else { return std::future::pending().await };
    if before.facts.wait_for(|facts| facts.done).await.is_err() {
        *previous = None;
    }
}
