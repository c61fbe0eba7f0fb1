//! Whether an allocation counts as healthy: for deployments, and for migrations off draining nodes.
//!
//! Decided from the states of its tasks, and from the checks of its services where the job asks for that.

use base::{Duration, Time};
use model::document::{Allocation, TaskState};

use crate::services::{ExpectedChecks, ServiceHealth};
use crate::task::events::{DEAD, PENDING, RUNNING};
use crate::task::lifecycle::{Role, Roles, Stage, States};

/// One allocation under observation.
#[derive(Clone, Debug, PartialEq)]
pub struct HealthCheck {
    min_healthy_time: Duration,
    healthy_deadline: Duration,
    until: Time,
    by_checks: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing is certain before this moment, unless a task changes.
    Open(Time),
    Healthy,
    /// Which tasks are to blame, and why.
    Unhealthy(Vec<(String, String)>),
}

impl HealthCheck {
    /// None for an allocation whose health is known already or does not matter.
    pub fn of(alloc: &Allocation, now: Time) -> Option<HealthCheck> {
        let known = alloc.deployment_status.as_ref().is_some_and(|status| status.healthy.is_some());
        let job = alloc.job.as_ref()?;
        if known || !matches!(job.kind.as_deref(), None | Some("service" | "system")) {
            return None;
        }
        let group = job.task_groups.iter().find(|group| group.name.as_ref() == Some(&alloc.task_group))?;
        let (checked_by, min_healthy_time, deadline) = if alloc.deployment_id.is_empty() {
            let migrate = group.migrate.clone().unwrap_or_default();
            (migrate.health_check, migrate.min_healthy_time, migrate.healthy_deadline)
        } else {
            let update = group.update.clone().unwrap_or_default();
            (update.health_check, update.min_healthy_time, update.healthy_deadline)
        };
        if checked_by.as_deref() == Some("manual") {
            return None;
        }
        let healthy_deadline = deadline.map_or(Duration::from_secs(300), |span| span.0);
        Some(HealthCheck {
            min_healthy_time: min_healthy_time.map_or(Duration::from_secs(10), |span| span.0),
            healthy_deadline,
            until: now.plus(healthy_deadline),
            by_checks: matches!(checked_by.as_deref(), None | Some("" | "checks")),
        })
    }

    /// The checks that decide in this version of the allocation.
    pub fn expected_checks(&self, alloc: &Allocation, roles: &Roles, of_consul: bool) -> ExpectedChecks {
        if self.by_checks { ExpectedChecks::of(alloc, roles, of_consul) } else { ExpectedChecks::default() }
    }

    pub fn judge(&self, roles: &Roles, states: &States, services: &ServiceHealth, now: Time) -> Verdict {
        let watched = || {
            roles
                .iter()
                .filter(|(_, role)| role.stage != Stage::Poststop)
                .filter_map(|(name, role)| Some((name, *role, states.get(name)?)))
        };
        if watched().any(|(_, _, state)| state.failed) {
            return self.blame(watched(), services, now);
        }
        if watched().all(|(_, role, state)| is_well(role, state)) {
            let latest = watched().map(|(_, _, state)| state.started_at.time()).max().unwrap_or_default();
            let since = services.passing_since.map(|passing| passing.max(latest));
            let healthy_at = since.map(|since| since.plus(self.min_healthy_time));
            if healthy_at.is_some_and(|at| at <= now) {
                return Verdict::Healthy;
            }
            if now < self.until {
                return Verdict::Open(healthy_at.unwrap_or(self.until).min(self.until));
            }
        }
        if now >= self.until { self.blame(watched(), services, now) } else { Verdict::Open(self.until) }
    }

    fn blame<'a>(
        &self,
        tasks: impl Iterator<Item = (&'a String, Role, &'a TaskState)>,
        services: &ServiceHealth,
        now: Time,
    ) -> Verdict {
        let are_young = services.passing_since.is_none_or(|since| since.plus(self.min_healthy_time) > now);
        let sick = (now >= self.until && are_young && !services.services.is_empty())
            .then(|| format!("Services not healthy by deadline: {}", services.services.join(", ")));
        let reason = |role: Role, state: &TaskState| -> Option<String> {
            if state.failed {
                return Some("Unhealthy because of failed task".to_string());
            }
            if state.state == DEAD && !is_well(role, state) {
                return Some("Unhealthy because of dead task".to_string());
            }
            if state.state == PENDING {
                return Some(format!("Task not running by healthy_deadline of {}", self.healthy_deadline));
            }
            let young = state.started_at.time().plus(self.min_healthy_time) > now;
            if state.state != RUNNING {
                return None;
            }
            let text = format!(
                "Task not running for min_healthy_time of {} by healthy_deadline of {}",
                self.min_healthy_time, self.healthy_deadline
            );
            young.then_some(text).or_else(|| sick.clone())
        };
        let blamed = tasks.filter_map(|(name, role, state)| Some((name.clone(), reason(role, state)?)));
        Verdict::Unhealthy(blamed.collect())
    }
}

/// Running, or ended when ending is its nature.
fn is_well(role: Role, state: &TaskState) -> bool {
    match (role.stage, role.sidecar) {
        (Stage::Prestart, false) => state.state == DEAD && !state.failed,
        (Stage::Poststart, false) => state.state == RUNNING || (state.state == DEAD && !state.failed),
        _ => state.state == RUNNING,
    }
}

#[cfg(test)]
mod tests {
    use model::document::Timestamp;

    use super::*;

    fn at(secs: i64) -> Time {
        Time::from_secs(1_000 + secs)
    }

    fn watch() -> HealthCheck {
        let alloc: Allocation = serde_json::from_value(serde_json::json!({
            "TaskGroup": "g", "DeploymentID": "d",
            "Job": {"Type": "service", "TaskGroups": [{"Name": "g", "Update": {
                "MinHealthyTime": 10_000_000_000_i64, "HealthyDeadline": 60_000_000_000_i64
            }}]}
        }))
        .unwrap();
        HealthCheck::of(&alloc, at(0)).unwrap()
    }

    fn judge(tasks: &[(Stage, &str, bool, i64)], now: i64) -> Verdict {
        let name = |n: usize| format!("t{n}");
        let role = |stage| Role { stage, sidecar: false, leader: false };
        let roles = tasks.iter().enumerate().map(|(n, task)| (name(n), role(task.0))).collect();
        let state = |state: &str, failed, started| TaskState {
            state: state.into(),
            failed,
            started_at: Timestamp::from(at(started)),
            ..TaskState::default()
        };
        let states = tasks.iter().enumerate().map(|(n, t)| (name(n), state(t.1, t.2, t.3))).collect();
        watch().judge(&roles, &states, &ServiceHealth::without_checks(), at(now))
    }

    /// A task that runs since 0, with a service whose checks pass since then, or do not.
    fn judge_checks(passing_since: Option<i64>, now: i64) -> Verdict {
        let role = Role { stage: Stage::Main, sidecar: false, leader: false };
        let state =
            TaskState { state: RUNNING.into(), started_at: Timestamp::from(at(0)), ..TaskState::default() };
        let services = ServiceHealth { passing_since: passing_since.map(at), services: vec!["web".into()] };
        let (roles, states) = ([("t0".to_string(), role)].into(), [("t0".to_string(), state)].into());
        watch().judge(&roles, &states, &services, at(now))
    }

    fn blamed(reason: &str) -> Verdict {
        Verdict::Unhealthy(vec![("t0".into(), reason.into())])
    }

    #[test]
    fn it_must_run_for_a_while_after_the_latest_start() {
        use Stage::*;
        let tasks = [(Main, RUNNING, false, 0), (Main, RUNNING, false, 5), (Prestart, DEAD, false, 0)];
        assert_eq!(judge(&tasks, 12), Verdict::Open(at(15)));
        assert_eq!(judge(&tasks, 15), Verdict::Healthy);
    }

    #[test]
    fn checks_must_pass_for_a_while_too() {
        assert_eq!(judge_checks(None, 30), Verdict::Open(at(60)), "nothing but the deadline is certain");
        assert_eq!(judge_checks(Some(20), 25), Verdict::Open(at(30)));
        assert_eq!(judge_checks(Some(20), 30), Verdict::Healthy);
        assert_eq!(judge_checks(Some(55), 58), Verdict::Open(at(60)));
        for passing_since in [None, Some(55)] {
            assert_eq!(judge_checks(passing_since, 60), blamed("Services not healthy by deadline: web"));
        }
    }

    #[test]
    fn each_way_to_fail_has_its_text() {
        use Stage::*;
        assert_eq!(judge(&[(Main, PENDING, false, 0)], 59), Verdict::Open(at(60)));
        let cases = [
            ((Main, DEAD, true, 0), 1, "Unhealthy because of failed task"),
            ((Main, DEAD, false, 0), 60, "Unhealthy because of dead task"),
            ((Main, PENDING, false, 0), 60, "Task not running by healthy_deadline of 1m0s"),
            (
                (Main, RUNNING, false, 55),
                60,
                "Task not running for min_healthy_time of 10s by healthy_deadline of 1m0s",
            ),
        ];
        for (task, now, reason) in cases {
            assert_eq!(judge(&[task], now), blamed(reason));
        }
    }
}
