//! Registers the services of the group, and runs their checks.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{AllocContext, AllocHook, group_of};
use crate::hook::{HookError, HookFuture, HookState, ready};
use crate::services::{self, Checks, Owner, Restarter, Workload};
use crate::task::hooks::environment;
use crate::task::lifecycle::is_dead;

/// Without a state of its own: what is registered is stored by the registry.
#[derive(Debug, Default)]
pub struct GroupServices(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    checks: Checks,
    /// Restarts of the allocation that are under way: nothing is registered meanwhile.
    restarts: u32,
    /// The allocation ends.
    closed: bool,
}

impl GroupServices {
    fn lock(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn register(&self, alloc: &AllocContext, held: &mut Held, start_over: bool) -> Result<(), HookError> {
        if held.closed || held.restarts > 0 {
            return Ok(());
        }
        let newest = alloc.alloc();
        let Some((job, group)) = newest.job.as_ref().zip(group_of(&newest)) else { return Ok(()) };
        let env = environment::of_group(&alloc.context, &alloc.dir, &newest, job, group);
        let inside = alloc.context.networks.find(&alloc.id).map(|network| network.status);
        let wanted = services::of_group(
            &newest,
            group,
            inside.as_ref(),
            &env,
            services::Providers::of(&alloc.context.settings),
        );
        let wanted = wanted.map_err(|error| HookError::fatal(self.name(), error))?;
        let of = Workload { alloc_id: &alloc.id, namespace: &newest.namespace, task: "" };
        alloc.context.services.set(of, &owner(alloc), &mut held.checks, wanted, start_over);
        Ok(())
    }

    fn remove(&self, alloc: &AllocContext, held: &mut Held) {
        let newest = alloc.alloc();
        let of = Workload { alloc_id: &alloc.id, namespace: &newest.namespace, task: "" };
        alloc.context.services.remove(of, &owner(alloc), &mut held.checks);
    }

    fn close(&self, alloc: &AllocContext) -> Result<(), HookError> {
        let mut held = self.lock();
        held.closed = true;
        self.remove(alloc, &mut held);
        Ok(())
    }
}

fn owner(alloc: &AllocContext) -> Arc<Owner> {
    Arc::new(Owner {
        context: Arc::clone(&alloc.context),
        alloc_id: alloc.id.clone(),
        task: String::new(),
        tasks: Arc::clone(&alloc.tasks),
        restarter: Restarter::Alloc(alloc.commands.clone()),
    })
}

impl AllocHook for GroupServices {
    fn name(&self) -> &'static str {
        "group_services"
    }

    fn prerun<'a>(&'a self, alloc: &'a AllocContext, _: &'a mut HookState) -> HookFuture<'a> {
        let states = alloc.tasks.states();
        if !states.is_empty() && states.values().all(is_dead) {
            // An earlier agent saw it end.
            return ready(self.close(alloc));
        }
        ready(self.register(alloc, &mut self.lock(), false))
    }

    fn update<'a>(&'a self, alloc: &'a AllocContext) -> HookFuture<'a> {
        ready(self.register(alloc, &mut self.lock(), false))
    }

    fn prerestart<'a>(&'a self, alloc: &'a AllocContext) -> HookFuture<'a> {
        let mut held = self.lock();
        held.restarts += 1;
        self.remove(alloc, &mut held);
        ready(Ok(()))
    }

    fn postrestart<'a>(&'a self, alloc: &'a AllocContext) -> HookFuture<'a> {
        let mut held = self.lock();
        held.restarts = held.restarts.saturating_sub(1);
        ready(self.register(alloc, &mut held, true))
    }

    fn prekill<'a>(&'a self, alloc: &'a AllocContext) -> HookFuture<'a> {
        ready(self.close(alloc))
    }

    fn postrun<'a>(&'a self, alloc: &'a AllocContext) -> HookFuture<'a> {
        ready(self.close(alloc))
    }

    fn destroy<'a>(&'a self, alloc: &'a AllocContext) -> HookFuture<'a> {
        alloc.context.services.forget(&alloc.id);
        alloc.context.checks.forget(&alloc.id);
        if let Some(consul) = &alloc.context.settings.consul {
            consul.forget(&alloc.id);
        }
        ready(Ok(()))
    }
}
