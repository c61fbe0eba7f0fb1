//! The network of the group: made before its tasks, undone after them.

use std::path::PathBuf;

use model::document::{Allocation, TaskGroup};

use super::{AllocContext, AllocHook, group_of};
use crate::driver::GroupNetworks;
use crate::hook::{HookError, HookFuture, HookState};
use crate::network::{Request, group_request};
use crate::task::hooks::environment;
use crate::task::lifecycle::is_dead;

/// Without a state of its own: what there is stands in the records of the networks.
#[derive(Debug)]
pub struct Network;

impl Network {
    async fn set_up(&self, alloc: &AllocContext) -> Result<(), HookError> {
        let fails = |error: &dyn std::fmt::Display| HookError::fatal(self.name(), error);
        let states = alloc.tasks.states();
        if !states.is_empty() && states.values().all(is_dead) {
            // An earlier agent saw it end.
            return Ok(());
        }
        let newest = alloc.alloc();
        let Some(group) = group_of(&newest) else { return Ok(()) };
        let request = request(alloc, &newest, group).map_err(|error| fails(&error))?;
        let Some(request) = request else { return Ok(()) };
        let (driver, hostname) = (request.driver.clone(), request.hostname.clone());
        if hostname.is_some() && driver.is_empty() {
            return Err(fails(&"network hostname: none of the group's drivers can set a hostname"));
        }
        let made = async {
            alloc.context.networks.begin(request).await.map_err(|error| fails(&error))?;
            let namespace: Option<PathBuf> = match driver.as_str() {
                "" => None,
                driver => {
                    let made = alloc.context.drivers.create_network(driver, &alloc.id, hostname.as_deref());
                    Some(made.await.map_err(|error| fails(&error))?)
                }
            };
            alloc.context.networks.set_up(&alloc.id, namespace).await.map_err(|error| fails(&error))
        };
        if let Err(error) = made.await {
            // A half is not left: what is asked for next may be something else.
            self.tear_down(alloc).await.ok();
            return Err(error);
        }
        // The servers get its addresses.
        alloc.tasks.touch();
        Ok(())
    }

    async fn tear_down(&self, alloc: &AllocContext) -> Result<(), HookError> {
        let driver = alloc.context.networks.driver_of(&alloc.id);
        let torn = alloc.context.networks.tear_down(&alloc.id).await;
        torn.map_err(|error| HookError::fatal(self.name(), error))?;
        if !driver.is_empty() {
            let removed = alloc.context.drivers.destroy_network(&driver, &alloc.id).await;
            removed.map_err(|error| HookError::fatal(self.name(), error))?;
            // Only now: an agent that dies in between has to know of it.
            let forgotten = alloc.context.networks.forget(&alloc.id).await;
            forgotten.map_err(|error| HookError::fatal(self.name(), error))?;
        }
        Ok(())
    }
}

impl AllocHook for Network {
    fn name(&self) -> &'static str {
        "network"
    }

    /// Never done: after a restart of the agent it is looked whether everything is there.
    fn prerun<'a>(&'a self, alloc: &'a AllocContext, _: &'a mut HookState) -> HookFuture<'a> {
        Box::pin(self.set_up(alloc))
    }

    fn postrun<'a>(&'a self, alloc: &'a AllocContext) -> HookFuture<'a> {
        Box::pin(self.tear_down(alloc))
    }

    fn destroy<'a>(&'a self, alloc: &'a AllocContext) -> HookFuture<'a> {
        Box::pin(self.tear_down(alloc))
    }
}

/// What the group asks for, with the driver that makes the namespace.
fn request(alloc: &AllocContext, newest: &Allocation, group: &TaskGroup) -> Result<Option<Request>, String> {
    let Some(job) = newest.job.as_ref() else { return Ok(None) };
    let env = environment::of_group(&alloc.context, &alloc.dir, newest, job, group);
    let settings = &alloc.context.settings;
    let bind_wildcard = settings.network.bind_wildcard;
    let request = group_request(newest, group, &env, &settings.region, bind_wildcard)?;
    let Some(mut request) = request else { return Ok(None) };
    for task in &group.tasks {
        match alloc.context.drivers.group_networks(&task.driver) {
            // The start of the task says that there is no such driver.
            None | Some(GroupNetworks::Joins) => {}
            Some(GroupNetworks::Makes) => request.driver.clone_from(&task.driver),
            Some(GroupNetworks::No) => {
                let mode = group.networks.first().map(|network| network.mode.clone()).unwrap_or_default();
                return Err(format!("task {} does not support \"{mode}\" networking mode", task.name));
            }
        }
    }
    Ok(Some(request))
}
