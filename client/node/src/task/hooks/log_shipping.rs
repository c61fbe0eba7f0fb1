//! Sends the output of the task to a sink of the operator's, if its job names one.

use std::sync::Arc;

use super::{StartRequest, TaskContext, TaskHook, environment, parts};
use crate::hook::{HookError, HookFuture, HookState, ready};
use crate::log_shipping::sink::{Origin, Sender, SinkAddress};
use crate::log_shipping::{Shipper, Shipping};
use crate::task::environment::Environment;

const NAME: &str = "log_shipping";

/// The variable of the metadata `log_sink`, of the job, the group or the task.
const SINK: &str = "NOMAD_META_log_sink";

/// Without a state of its own: how far the output was sent is stored by the shipper.
#[derive(Debug, Default)]
pub struct LogShipping {
    wanted: Option<(String, SinkAddress)>,
    running: Option<Shipping>,
}

impl TaskHook for LogShipping {
    fn name(&self) -> &'static str {
        NAME
    }

    fn prestart<'a>(
        &'a mut self,
        task: &'a TaskContext,
        start: &'a mut StartRequest,
        _: &'a mut HookState,
    ) -> HookFuture<'a> {
        let wanted = find(task, &start.environment).and_then(|wanted| match (&wanted, &start.logs) {
            (Some((name, _)), None) => {
                let text = format!("log_sink \"{name}\": the task keeps no logs that could be sent");
                Err(HookError::fatal(NAME, text))
            }
            _ => Ok(wanted),
        });
        ready(wanted.map(|wanted| self.wanted = wanted))
    }

    fn restored<'a>(&'a mut self, task: &'a TaskContext, _: &'a mut HookState) -> HookFuture<'a> {
        let alloc = Arc::clone(&task.alloc());
        let wanted = parts(&alloc, task, NAME).and_then(|parts| {
            let environment = environment::of_task(&task.context, &task.alloc_dir, &alloc, parts);
            find(task, &environment)
        });
        ready(wanted.map(|wanted| {
            self.wanted = wanted;
            self.begin(task);
        }))
    }

    fn poststart<'a>(&'a mut self, task: &'a TaskContext) -> HookFuture<'a> {
        self.begin(task);
        ready(Ok(()))
    }

    fn stop<'a>(&'a mut self, _: &'a TaskContext) -> HookFuture<'a> {
        if let Some(running) = self.running.take() {
            running.end();
        }
        ready(Ok(()))
    }
}

impl LogShipping {
    /// One goes on over restarts of the task, which writes to the same files.
    fn begin(&mut self, task: &TaskContext) {
        if let (Some((name, address)), None) = (&self.wanted, &self.running) {
            let alloc = task.alloc();
            let origin = Origin {
                node: task.context.node().name.clone(),
                namespace: alloc.namespace.clone(),
                job: alloc.job_id.clone(),
                group: alloc.task_group.clone(),
                task: task.name.clone(),
                alloc_id: alloc.id.clone(),
            };
            let shipper = Shipper::new(task, name, Sender::new(address.clone()), origin);
            self.running = Some(Shipping::start(shipper));
        }
    }
}

fn find(task: &TaskContext, environment: &Environment) -> Result<Option<(String, SinkAddress)>, HookError> {
    let Some(name) = environment.value(SINK).filter(|name| !name.is_empty()) else { return Ok(None) };
    let sinks = &task.context.settings.log_sinks;
    match sinks.get(name) {
        Some(address) => Ok(Some((name.to_string(), address.clone()))),
        None => {
            let known: Vec<&str> = sinks.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "none".to_string() } else { known.join(", ") };
            let text = format!("log_sink \"{name}\" is none of this node's, which are: {known}");
            Err(HookError::fatal(NAME, text))
        }
    }
}
