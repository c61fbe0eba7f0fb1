//! Watches the health of the allocation for its deployment or migration.

use std::sync::{Mutex, PoisonError};

use base::Time;

use super::{AllocContext, AllocHook, Check};
use crate::alloc::health::{HealthCheck, Verdict};
use crate::task::events::{self, KillReason};

/// Without a state of its own: the health is stored with the allocation, and a watch that a restart of the agent
/// interrupts begins again.
#[derive(Debug, Default)]
pub struct HealthHook(Mutex<Watched>);

#[derive(Debug, Default)]
struct Watched {
    /// The deployment for which `check` was made; `None` before the first call.
    deployment_id: Option<String>,
    check: Option<HealthCheck>,
}

impl AllocHook for HealthHook {
    fn name(&self) -> &'static str {
        "alloc_health_watcher"
    }

    fn check(&self, alloc: &AllocContext, now: Time) -> Check {
        let mut watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let newest = alloc.alloc();
        let stopping = alloc.stopping.borrow().as_ref().map(|kill| kill.reason.clone());
        if stopping.is_none() && watched.deployment_id.as_ref() != Some(&newest.deployment_id) {
            watched.deployment_id = Some(newest.deployment_id.clone());
            watched.check = HealthCheck::of(&newest, now);
        }
        if alloc.is_health_known() || stopping == Some(KillReason::Stopped) {
            watched.check = None;
        }
        let Some(check) = &watched.check else { return Check::default() };
        let expected = |of_consul| check.expected_checks(&newest, &alloc.roles, of_consul);
        let mut services = alloc.context.checks.health(&alloc.id, &expected(false));
        if let Some(consul) = &alloc.context.settings.consul {
            services = services.and(consul.results.health(&alloc.id, &expected(true)));
        }
        let healthy = match check.judge(&alloc.roles, &alloc.tasks.states(), &services, now) {
            Verdict::Open(at) => return Check { again_at: Some(at), stop: None },
            Verdict::Healthy => true,
            Verdict::Unhealthy(blamed) => {
                for (task, reason) in blamed {
                    alloc.tasks.add_event(&task, events::alloc_unhealthy(&reason));
                }
                false
            }
        };
        watched.check = None;
        alloc.set_health(healthy, now);
        Check::default()
    }
}
