//! A token of Consul for a task with an identity for that: got by logging in with it, given to the task, and given back.

use std::time::Duration;

use model::document::{Allocation, WorkloadIdentity};
use tokio::time::{sleep, timeout};

use super::identities::{self, Reader, Refusal};
use super::{StartRequest, TaskContext, TaskHook, parts};
use crate::hook::{HookError, HookFuture, HookState, ready};
use crate::task::events;

const NAME: &str = "consul_task";

/// The identity of a task that is for the default Consul.
const IDENTITY: &str = "consul_default";

const FILE: &str = "consul_token";
const TOKEN: &str = "token";

/// How long a start waits for its token, and between two tries.
const WITHIN: Duration = Duration::from_secs(60);
const TRY_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub struct ConsulToken(Option<String>);

impl TaskHook for ConsulToken {
    fn name(&self) -> &'static str {
        NAME
    }

    /// Never done: the file may be gone. The token is kept from the first start on.
    fn prestart<'a>(
        &'a mut self,
        task: &'a TaskContext,
        start: &'a mut StartRequest,
        state: &'a mut HookState,
    ) -> HookFuture<'a> {
        Box::pin(async move {
            let alloc = start.alloc.clone();
            let parts = parts(&alloc, task, NAME)?;
            let Some(identity) = parts.task.identities.iter().find(|own| own.name == IDENTITY) else {
                return Ok(());
            };
            if task.context.settings.consul.is_none() && parts.task.consul.is_none() {
                // Servers add the identity to every task with a template, and this one may need no Consul.
                let text = format!("{NAME}: this node has no Consul: identity {IDENTITY:?} is not used");
                task.tasks.add_event(&task.name, events::hook_message(&text));
                return Ok(());
            }
            let token = match state.values.get(TOKEN).cloned().or_else(|| self.0.take()) {
                Some(token) => token,
                None => {
                    let logging_in = timeout(WITHIN, login(task, &alloc, identity));
                    logging_in.await.unwrap_or_else(|_| {
                        Err(HookError::recoverable(NAME, "there was no token of Consul within a minute"))
                    })?
                }
            };
            state.values.insert(TOKEN.to_string(), token.clone());
            let variables = ["CONSUL_TOKEN", "CONSUL_HTTP_TOKEN"];
            state.env = variables.map(|name| (name.to_string(), token.clone())).into();
            let inside =
                start.dir.secrets.strip_prefix(&start.dir.root).expect("it is the task's").join(FILE);
            let written = Reader::of(task, parts.task, start).write(&start.dir.root, &inside, &token, 0o640);
            written.map_err(|error| HookError::fatal(NAME, error))?;
            self.keep(task, token);
            Ok(())
        })
    }

    fn restored<'a>(&'a mut self, task: &'a TaskContext, state: &'a mut HookState) -> HookFuture<'a> {
        if let Some(token) = state.values.get(TOKEN) {
            self.keep(task, token.clone());
        }
        ready(Ok(()))
    }

    fn stop<'a>(&'a mut self, task: &'a TaskContext) -> HookFuture<'a> {
        if let (Some(token), Some(consul)) = (self.0.take(), &task.context.settings.consul) {
            consul.give_back(&task.alloc.borrow().id, &task.name, token);
        }
        ready(Ok(()))
    }
}

impl ConsulToken {
    fn keep(&mut self, task: &TaskContext, token: String) {
        if let Some(consul) = &task.context.settings.consul {
            consul.put_token(&task.alloc.borrow().id, &task.name, token.clone());
        }
        self.0 = Some(token);
    }
}

/// Tries again while the servers or Consul are not reached.
async fn login(
    task: &TaskContext,
    alloc: &Allocation,
    identity: &WorkloadIdentity,
) -> Result<String, HookError> {
    let Some(consul) = &task.context.settings.consul else {
        return Err(HookError::fatal(NAME, format!("identity {IDENTITY:?}: this node has no Consul")));
    };
    loop {
        let why = match identities::ask(task, alloc, &[identity]).await {
            Ok(signed) => match consul.login(&signed[IDENTITY], &alloc.id, &task.name).await {
                Ok(token) => return Ok(token),
                Err(Refusal::Rejected(why)) => return Err(HookError::recoverable(NAME, why)),
                Err(Refusal::Unanswered(why)) => why,
            },
            Err(Refusal::Rejected(why)) => return Err(HookError::recoverable(NAME, why)),
            Err(Refusal::Unanswered(why)) => why,
        };
        tracing::warn!(alloc = alloc.id, task = task.name, why, "no token of Consul; asking again");
        sleep(TRY_EVERY).await;
    }
}
