//! How checks went last, by allocation.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use base::Time;
use model::document::{Allocation, Service};
use serde::{Deserialize, Serialize};
use wire::messages::AllocCheckStatus;

use super::check::{Check, FAILURE, PENDING, SUCCESS};
use super::probe::Outcome;
use crate::alloc::hooks::group_of;
use crate::store::Store;
use crate::task::lifecycle::{Roles, Stage};

/// One check of an allocation. Stored, so fields are only ever added.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckState {
    pub status: AllocCheckStatus,
    /// Since when the status is this one.
    since: i64,
    /// When it first was another one than pending.
    known_since: Option<i64>,
}

/// The checks of one allocation by workload (a task, or nothing for the group) and id. A workload is in it while its checks
/// run.
pub type AllocChecks = BTreeMap<String, BTreeMap<String, CheckState>>;

/// The results of all allocations.
#[derive(Debug)]
pub struct Results {
    store: Store,
    allocs: Mutex<BTreeMap<String, AllocChecks>>,
}

/// The services whose checks decide about the health of an allocation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExpectedChecks(BTreeMap<String, Vec<String>>);

/// How the checks of an allocation are, for its health.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceHealth {
    /// Since when all of them pass; `None` while some do not.
    pub passing_since: Option<Time>,
    /// The services with checks that do not pass; all, if they do.
    pub services: Vec<String>,
}

impl ServiceHealth {
    /// Of an allocation whose health no check decides about.
    pub fn without_checks() -> ServiceHealth {
        ServiceHealth { passing_since: Some(Time::ZERO), services: Vec::new() }
    }

    /// Both must be well.
    pub fn and(self, other: ServiceHealth) -> ServiceHealth {
        let passing_since = self.passing_since.zip(other.passing_since).map(|(one, other)| one.max(other));
        let counts = |health: &ServiceHealth| passing_since.is_some() || health.passing_since.is_none();
        let named = [self, other].into_iter().filter(|health| counts(health));
        ServiceHealth { passing_since, services: named.flat_map(|health| health.services).collect() }
    }
}

impl ExpectedChecks {
    /// Of the services of one provider.
    pub fn of(alloc: &Allocation, roles: &Roles, of_consul: bool) -> ExpectedChecks {
        let Some(group) = group_of(alloc) else { return ExpectedChecks::default() };
        let stays =
            |task: &str| roles.get(task).is_some_and(|role| role.stage == Stage::Main || role.sidecar);
        let of_tasks = group.tasks.iter().filter(|task| stays(&task.name));
        let all = std::iter::once(("", &group.services.0))
            .chain(of_tasks.map(|task| (task.name.as_str(), &task.services.0)));
        let with_checks = |services: &[Service]| -> Vec<String> {
            let mut names: Vec<String> = services
                .iter()
                .filter(|service| (service.provider != "nomad") == of_consul && !service.checks.is_empty())
                .map(|service| service.name.clone())
                .collect();
            names.dedup();
            names
        };
        let named = all.map(|(workload, services)| (workload.to_string(), with_checks(services)));
        ExpectedChecks(named.filter(|(_, names)| !names.is_empty()).collect())
    }
}

impl Results {
    pub fn new(store: Store) -> Results {
        Results { store, allocs: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, AllocChecks>> {
        self.allocs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is known of an allocation, and stores it. What an earlier agent has stored counts.
    fn change<T>(&self, alloc_id: &str, change: impl FnOnce(&mut AllocChecks) -> T) -> T {
        let mut allocs = self.lock();
        let checks = allocs.entry(alloc_id.to_string()).or_insert_with(|| self.store.load_checks(alloc_id));
        let before = statuses(checks);
        let changed = change(checks);
        // Times alone are not stored: most results repeat the one before.
        if statuses(checks) != before {
            self.store.put_checks(alloc_id, checks);
        }
        changed
    }

    /// These are the checks of the workload from now on. Those that it had keep their results, unless they `start_over`.
    pub(super) fn plan(&self, alloc_id: &str, workload: &str, checks: &[Check], start_over: bool, now: Time) {
        self.change(alloc_id, |all| {
            let mut before = all.remove(workload).filter(|_| !start_over).unwrap_or_default();
            let planned = checks.iter().map(|check| {
                let state = before.remove(&check.id).unwrap_or_else(|| initial(check, now));
                (check.id.clone(), state)
            });
            let planned: BTreeMap<String, CheckState> = planned.collect();
            if !planned.is_empty() {
                all.insert(workload.to_string(), planned);
            }
        });
    }

    /// True when the status has changed. A check that is planned no more stays unknown.
    pub(super) fn put(
        &self,
        alloc_id: &str,
        workload: &str,
        check: &Check,
        outcome: Outcome,
        now: Time,
    ) -> bool {
        self.change(alloc_id, |all| {
            let state = all.get_mut(workload).and_then(|checks| checks.get_mut(&check.id));
            let Some(state) = state else { return false };
            let status = &mut state.status;
            let changed = status.status != outcome.status;
            status.status = outcome.status.to_string();
            status.status_code = outcome.code;
            status.output = outcome.output;
            status.timestamp = now.secs();
            if changed {
                state.since = now.0;
            }
            state.known_since.get_or_insert(now.0);
            changed
        })
    }

    /// The checks of the workload run no more.
    pub(super) fn remove(&self, alloc_id: &str, workload: &str) {
        self.change(alloc_id, |all| all.remove(workload));
    }

    pub fn forget(&self, alloc_id: &str) {
        self.lock().remove(alloc_id);
    }

    /// By id, as the node shows them.
    pub fn of(&self, alloc_id: &str) -> BTreeMap<String, AllocCheckStatus> {
        let allocs = self.lock();
        let all = allocs.get(alloc_id).into_iter().flat_map(BTreeMap::values).flatten();
        all.map(|(id, state)| (id.clone(), state.status.clone())).collect()
    }

    /// How the expected checks are: each must pass, but one for readiness may fail.
    pub fn health(&self, alloc_id: &str, expected: &ExpectedChecks) -> ServiceHealth {
        let allocs = self.lock();
        let nothing = AllocChecks::default();
        let all = allocs.get(alloc_id).unwrap_or(&nothing);
        let mut passing_since = Some(Time::ZERO);
        let (mut late, mut every) = (Vec::new(), Vec::new());
        for (workload, services) in &expected.0 {
            every.extend(services.iter().cloned());
            let Some(checks) = all.get(workload) else {
                passing_since = None;
                late.extend(services.iter().cloned());
                continue;
            };
            for state in checks.values() {
                let since = since(state);
                passing_since = passing_since.zip(since).map(|(all, one)| all.max(one));
                if since.is_none() {
                    late.push(state.status.service.clone());
                }
            }
        }
        late.dedup();
        ServiceHealth { passing_since, services: if passing_since.is_none() { late } else { every } }
    }
}

fn statuses(checks: &AllocChecks) -> Vec<(String, String)> {
    let all = checks.values().flatten();
    all.map(|(id, state)| (id.clone(), state.status.status.clone())).collect()
}

/// Since when the check does not stand in the way.
fn since(state: &CheckState) -> Option<Time> {
    match state.status.status.as_str() {
        _ if state.status.mode == "readiness" => state.known_since.map(Time),
        SUCCESS => Some(Time(state.since)),
        _ => None,
    }
}

fn initial(check: &Check, now: Time) -> CheckState {
    let output = match check.initial {
        PENDING => "nomad: waiting to run",
        _ => "nomad: initial_status",
    };
    CheckState {
        status: AllocCheckStatus {
            id: check.id.clone(),
            check: check.name.clone(),
            group: check.group.clone(),
            mode: if check.is_readiness { "readiness" } else { "healthiness" }.to_string(),
            output: output.to_string(),
            service: check.service.clone(),
            task: check.task.clone(),
            status: check.initial.to_string(),
            status_code: 0,
            timestamp: now.secs(),
        },
        since: now.0,
        known_since: (check.initial == SUCCESS || check.initial == FAILURE).then_some(now.0),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::task::lifecycle::Role;

    fn check(id: &str, is_readiness: bool) -> Check {
        Check {
            id: id.into(),
            name: id.into(),
            group: "job.g[0]".into(),
            task: "t".into(),
            service: format!("s-{id}"),
            is_readiness,
            interval: base::Duration::from_secs(1),
            timeout: base::Duration::from_secs(1),
            initial: PENDING,
            probe: super::super::check::Probe::Tcp { address: String::new() },
            restart: None,
            of_consul: false,
            ignores_warnings: false,
        }
    }

    fn outcome(status: &'static str) -> Outcome {
        Outcome { status, code: 0, output: status.to_string() }
    }

    fn expected() -> ExpectedChecks {
        let services = |names: [&str; 2]| {
            names.map(|name| json!({"Name": name, "Provider": "nomad", "Checks": [{"Type": "tcp"}]}))
        };
        let alloc: Allocation = serde_json::from_value(json!({"TaskGroup": "g", "Job": {"TaskGroups": [{
            "Name": "g",
            "Services": [{"Name": "plain", "Provider": "nomad"}],
            "Tasks": [{"Name": "t", "Services": services(["s-a", "s-b"])},
                      {"Name": "init", "Services": services(["i", "j"])}]
        }]}}))
        .unwrap();
        let role = |stage| Role { stage, sidecar: false, leader: false };
        let roles =
            Roles::from([("t".to_string(), role(Stage::Main)), ("init".to_string(), role(Stage::Prestart))]);
        ExpectedChecks::of(&alloc, &roles, false)
    }

    #[test]
    fn all_checks_must_pass_and_one_for_readiness_must_have_run() {
        let at = Time::from_secs;
        let (results, expected) = (Results::new(Store::disabled()), expected());
        let health = || {
            let health = results.health("a1", &expected);
            (health.passing_since.map(Time::secs), health.services.join(" "))
        };
        assert_eq!(health(), (None, "s-a s-b".into()), "nothing runs yet");
        let checks = [check("a", false), check("b", true)];
        results.plan("a1", "t", &checks, true, at(1));
        assert_eq!(health(), (None, "s-a s-b".into()), "pending");
        assert!(results.put("a1", "t", &checks[1], outcome(FAILURE), at(5)));
        assert_eq!(health(), (None, "s-a".into()));
        assert!(results.put("a1", "t", &checks[0], outcome(SUCCESS), at(3)));
        assert!(!results.put("a1", "t", &checks[0], outcome(SUCCESS), at(4)));
        assert_eq!(health(), (Some(5), "s-a s-b".into()));
        assert!(results.put("a1", "t", &checks[0], outcome(FAILURE), at(6)));
        assert!(results.put("a1", "t", &checks[0], outcome(SUCCESS), at(7)));
        assert_eq!(health(), (Some(7), "s-a s-b".into()), "it has to last");
        results.plan("a1", "t", &checks, false, at(8));
        assert_eq!(health().0, Some(7), "the same checks go on");
        results.plan("a1", "t", &checks, true, at(9));
        assert_eq!(health().0, None);
        results.remove("a1", "t");
        assert!(!results.put("a1", "t", &checks[0], outcome(SUCCESS), at(10)), "it runs no more");
        assert_eq!(results.of("a1"), BTreeMap::new());
    }

    #[test]
    fn the_next_agent_knows_the_statuses() {
        let dir = tempfile::tempdir().unwrap();
        {
            let results = Results::new(Store::open(dir.path()).unwrap());
            results.plan("a1", "t", &[check("a", false)], true, Time::from_secs(1));
            results.put("a1", "t", &check("a", false), outcome(SUCCESS), Time::from_secs(2));
        }
        let results = Results::new(Store::open(dir.path()).unwrap());
        results.plan("a1", "t", &[check("a", false)], false, Time::from_secs(3));
        let found = &results.of("a1")["a"];
        assert_eq!(
            (found.status.as_str(), found.timestamp, found.mode.as_str()),
            (SUCCESS, 2, "healthiness")
        );
        assert_eq!((found.check.as_str(), found.group.as_str()), ("a", "job.g[0]"));
    }
}
