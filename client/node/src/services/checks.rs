//! Runs the checks of one workload: a loop each.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::Time;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until};

use super::check::{Check, PENDING, SUCCESS};
use super::consul::Consul;
use super::unhealthy::Unhealthy;
use crate::alloc::handle::AllocCommand;
use crate::clock;
use crate::context::Context;
use crate::task::events::RUNNING;
use crate::task::requests::TaskRequest;
use crate::task::states::TaskStates;

/// Whose checks they are.
#[derive(Debug)]
pub struct Owner {
    pub context: Arc<Context>,
    pub alloc_id: String,
    /// Empty for the group.
    pub task: String,
    pub tasks: Arc<TaskStates>,
    pub restarter: Restarter,
}

/// What a check that fails for too long has restarted. Weak: loops of checks keep neither alive.
#[derive(Debug)]
pub enum Restarter {
    Task(mpsc::WeakSender<TaskRequest>),
    Alloc(mpsc::WeakSender<AllocCommand>),
}

/// The checks that run. They end when this is dropped.
#[derive(Debug, Default)]
pub struct Checks {
    running: BTreeMap<String, (Check, AbortHandle)>,
    loops: JoinSet<()>,
}

impl Checks {
    /// These checks run from now on; those that ran before go on. With `start_over` all begin anew.
    pub(super) fn plan(&mut self, owner: &Arc<Owner>, checks: Vec<Check>, start_over: bool) {
        let Owner { context, alloc_id, task, .. } = &**owner;
        let (theirs, own): (Vec<Check>, Vec<Check>) =
            checks.iter().cloned().partition(|check| check.of_consul);
        context.checks.plan(alloc_id, task, &own, start_over, clock::now());
        if let Some(consul) = &context.settings.consul {
            consul.results.plan(alloc_id, task, &theirs, start_over, clock::now());
        }
        // What was aborted before has ended by now.
        while self.loops.try_join_next().is_some() {}
        let mut before = std::mem::take(&mut self.running);
        for check in checks {
            let id = check.id.clone();
            let running = match before.remove(&id) {
                Some((own, running)) if own == check && !start_over => (own, running),
                replaced => {
                    end(replaced);
                    let looping = run(Arc::clone(owner), check.clone());
                    (check, self.loops.spawn(context.tasks.track_future(looping)))
                }
            };
            // Two checks that are the same in everything have one result.
            end(self.running.insert(id, running));
        }
        before.into_values().for_each(|gone| end(Some(gone)));
        owner.tasks.touch();
    }

    /// No check runs any more, and none has a result.
    pub(super) fn stop(&mut self, owner: &Owner) {
        self.running.clear();
        self.loops.abort_all();
        owner.context.checks.remove(&owner.alloc_id, &owner.task);
        if let Some(consul) = &owner.context.settings.consul {
            consul.results.remove(&owner.alloc_id, &owner.task);
        }
        owner.tasks.touch();
    }
}

fn end(running: Option<(Check, AbortHandle)>) {
    if let Some((_, running)) = running {
        running.abort();
    }
}

async fn run(owner: Arc<Owner>, check: Check) {
    loop {
        owner.runs().await;
        tokio::select! {
            () = run_while_up(&owner, &check) => {}
            () = owner.runs_no_more() => {}
        }
    }
}

/// Never returns.
async fn run_while_up(owner: &Owner, check: &Check) {
    let now = clock::now();
    let mut unhealthy = check.restart.map(|restart| Unhealthy::new(restart, check.interval, now));
    let observe = |unhealthy: &mut Option<Unhealthy>, status: &str| {
        // Consul may be away, or not know the check yet: that says nothing about the task.
        if check.of_consul && status == PENDING {
            return;
        }
        unhealthy.iter_mut().for_each(|watch| watch.observe(status == SUCCESS, clock::now()));
    };
    observe(&mut unhealthy, check.initial);
    loop {
        let began = Instant::now();
        let (outcome, results, every) = match &owner.context.settings.consul {
            Some(consul) if check.of_consul => {
                (consul.outcome(owner, check).await, &consul.results, Consul::interval(check))
            }
            _ => (owner.context.prober.run(check).await, &owner.context.checks, check.interval.to_std()),
        };
        let next = began + every;
        observe(&mut unhealthy, outcome.status);
        if results.put(&owner.alloc_id, &owner.task, check, outcome, clock::now()) {
            owner.tasks.touch();
        }
        let due = unhealthy.as_ref().and_then(Unhealthy::due);
        tokio::select! {
            () = sleep_until(next) => {}
            () = until(due) => {
                if let Some(watch) = unhealthy.as_mut().filter(|_| owner.restart(check)) {
                    watch.asked();
                }
                sleep_until(next).await;
            }
        }
    }
}

async fn until(due: Option<Time>) {
    match due {
        Some(due) => sleep(due.since(clock::now()).to_std()).await,
        None => std::future::pending().await,
    }
}

impl Owner {
    /// A task has checks only while it runs; nobody answers those of a group before one of its tasks does.
    fn is_up(&self) -> bool {
        let is_running = |state: &model::document::TaskState| state.state == RUNNING;
        match self.task.is_empty() {
            true => self.tasks.states().values().any(is_running),
            false => true,
        }
    }

    async fn runs(&self) {
        self.wait_until(true).await;
    }

    async fn runs_no_more(&self) {
        self.wait_until(false).await;
    }

    async fn wait_until(&self, up: bool) {
        let mut changed = self.tasks.subscribe();
        while self.is_up() != up {
            if changed.changed().await.is_err() {
                std::future::pending().await
            }
        }
    }

    /// False when it cannot take the request now.
    fn restart(&self, check: &Check) -> bool {
        let reason = format!("healthcheck: check {:?} unhealthy", check.name);
        tracing::warn!(alloc = self.alloc_id, task = self.task, reason, "restarting");
        // Nobody waits for the outcome: the task's events say it.
        let (reply, _) = oneshot::channel();
        match &self.restarter {
            Restarter::Task(task) => task.upgrade().is_some_and(|task| {
                let request = TaskRequest::Restart { reason, revive: false, unhealthy: true, reply };
                task.try_send(request).is_ok()
            }),
            Restarter::Alloc(alloc) => alloc.upgrade().is_some_and(|alloc| {
                alloc.try_send(AllocCommand::RestartUnhealthy { reason, reply }).is_ok()
            }),
        }
    }
}
