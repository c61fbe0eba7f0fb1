//! What others ask of an allocation: newer versions, restarts, signals.

use std::sync::Arc;

use model::document::Allocation;
use tokio::sync::oneshot;

use super::{AllocRunner, Step, roles};
use crate::alloc::handle::{AllocCommand, Reply};
use crate::alloc::status;
use crate::task::events::{self, KillReason, RUNNING};
use crate::task::requests::{Kill, TaskRequest};

const STOPPING: &str = "the allocation is stopping";

/// A restart of one task, of all that run, or (`revive`) of all.
#[derive(Debug)]
pub(super) struct Restart {
    task: Option<String>,
    revive: bool,
    /// It counts as a failure of the tasks.
    unhealthy: bool,
    reason: String,
    reply: Reply,
}

impl AllocRunner {
    pub(super) fn obey(&mut self, command: AllocCommand) {
        match command {
            AllocCommand::Update(alloc) => self.change_version(alloc),
            AllocCommand::Restart { task, revive, reply } => {
                let reason = "User requested restart".to_string();
                self.restart(Restart { task, revive, unhealthy: false, reason, reply });
            }
            AllocCommand::RestartUnhealthy { reason, reply } => {
                self.restart(Restart { task: None, revive: false, unhealthy: true, reason, reply });
            }
            AllocCommand::Signal { task, signal, name, reply } => {
                let request = |reply| TaskRequest::Signal { signal, name: name.clone(), reply };
                self.ask_tasks(task, false, request, reply);
            }
            AllocCommand::Destroy { .. } => unreachable!("taken by the loop"),
        }
    }

    /// A newer version of the allocation: the same tasks go on, or all stop.
    fn change_version(&mut self, mut alloc: Arc<Allocation>) {
        let old = self.alloc.alloc();
        let stopped = status::is_stopped(&alloc.desired_status);
        let back = alloc.client_status == "unknown" && alloc.alloc_modify_index > old.alloc_modify_index;
        if alloc.job.is_none() {
            // Servers may leave the job out when it has not changed.
            Arc::make_mut(&mut alloc).job = old.job.clone();
        }
        if alloc.deployment_id != old.deployment_id {
            self.alloc.set_deployment_status(alloc.deployment_status.clone());
        }
        self.alloc.context.store.put_alloc(&alloc);
        self.versions.send_replace(Arc::clone(&alloc));
        match self.started {
            true => self.run_update(),
            // Hooks whose `prerun` has seen an older version are notified after it.
            false => self.changed_early = true,
        }
        if stopped {
            self.stop(KillReason::Stopped, false);
        } else if back {
            self.reconnect();
        }
        if !back && alloc.client_status != self.update().client_status {
            self.report_again();
            self.alloc.context.services.send_again(Some(&alloc.id));
        }
        self.kill_missing(&alloc);
    }

    pub(super) fn run_update(&mut self) {
        self.run_step(|hooks, alloc| async move {
            hooks.update(&alloc).await;
            Step::Update
        });
    }

    /// The servers had lost sight of this node and see it again: they get its state at once.
    fn reconnect(&mut self) {
        for name in self.alloc.roles.keys() {
            self.alloc.tasks.add_event(name, events::reconnected());
        }
        self.report_again();
    }

    /// Tasks that a newer version no longer has cannot go on.
    fn kill_missing(&self, alloc: &Allocation) {
        let Ok(roles) = roles(alloc) else { return };
        let reason = KillReason::Setup("update missing task".to_string());
        for name in self.alloc.roles.keys().filter(|name| !roles.contains_key(*name)) {
            self.order_kill(name, &Kill { reason: reason.clone(), at_once: false });
        }
    }

    /// Several tasks are restarted after the hooks have prepared for it, one by itself.
    fn restart(&mut self, restart: Restart) {
        if self.stopping.is_some() {
            restart.reply.send(Err(STOPPING.to_string())).ok();
        } else if restart.task.is_some() || !self.started {
            self.restart_now(restart);
        } else {
            self.run_step(|hooks, alloc| async move {
                hooks.prerestart(&alloc).await;
                Step::Prerestart(restart)
            });
        }
    }

    /// The hooks are ready for it; they get to know when it is over.
    pub(super) fn restart_prepared(&mut self, mut restart: Restart) {
        let (reply, answered) = oneshot::channel();
        let asked = std::mem::replace(&mut restart.reply, reply);
        if self.stopping.is_some() {
            restart.reply.send(Err(STOPPING.to_string())).ok();
        } else {
            self.restart_now(restart);
        }
        self.run_step(|hooks, alloc| async move {
            let answer = answered.await.unwrap_or_else(|_| Err("Task not running".to_string()));
            hooks.postrestart(&alloc).await;
            asked.send(answer).ok();
            Step::Postrestart
        });
    }

    fn restart_now(&mut self, Restart { task, revive, unhealthy, reason, reply }: Restart) {
        let everything = task.is_none() && revive;
        let request = |reply| TaskRequest::Restart { reason: reason.clone(), revive, unhealthy, reply };
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
        request: impl Fn(oneshot::Sender<Result<(), String>>) -> TaskRequest,
        reply: Reply,
    ) {
        let states = self.alloc.tasks.states();
        let wanted = |name: &String| match &task {
            Some(task) => name == task,
            None => dead_too || states.get(name).is_some_and(|state| state.state == RUNNING),
        };
        let names: Vec<&String> = self.channels.keys().filter(|name| wanted(name)).collect();
        if names.is_empty() {
            let text = match task {
                Some(task) if !self.alloc.roles.contains_key(&task) => format!("Could not find task {task}"),
                _ => "Task not running".to_string(),
            };
            reply.send(Err(text)).ok();
            return;
        }
        let mut answers = Vec::new();
        for name in names {
            let (answer, answered) = oneshot::channel();
            if self.channels[name].requests.try_send(request(answer)).is_ok() {
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
}
