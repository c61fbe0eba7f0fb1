//! What is registered of each allocation, and what the servers do not know of it yet.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use wire::messages::ServiceRegistration;

use super::checks::{Checks, Owner};
use super::wanted::Wanted;
use crate::store::Store;

/// Instances that are to be removed and not known to be; more are dropped, the first ones first: servers remove them with
/// their allocations too.
const REMOVALS_MAX: usize = 4096;

/// Registrations sent in one call.
const BATCH_MAX: usize = 64;

/// The pause after a refusal grows from the first to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How often the removal of an instance is refused before it is given up.
const REMOVAL_TRIES: u32 = 10;

/// One task of an allocation, or its group (empty).
#[derive(Clone, Copy, Debug)]
pub struct Workload<'a> {
    pub alloc_id: &'a str,
    pub namespace: &'a str,
    pub task: &'a str,
}

/// Which ids each workload of an allocation has registered, until their removal is acknowledged. Stored, so that the next
/// agent can remove what is not wanted any more then.
pub type Registered = BTreeMap<String, BTreeSet<String>>;

/// What must be sent to the servers for an instance.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Call {
    Register(Vec<ServiceRegistration>),
    Remove { namespace: String, id: String },
}

#[derive(Debug)]
struct Instance {
    alloc_id: String,
    task: String,
    namespace: String,
    /// `None` for one that is to be removed.
    wanted: Option<ServiceRegistration>,
    is_known: bool,
    refused: u32,
    /// Not sent again before.
    not_before: Option<Instant>,
}

#[derive(Debug, Default)]
struct Content {
    instances: BTreeMap<String, Instance>,
    allocs: BTreeMap<String, Registered>,
}

/// The instances of all allocations of this node.
#[derive(Debug)]
pub struct Registry {
    store: Store,
    content: Mutex<Content>,
    /// There is something to send.
    changed: Notify,
}

impl Registry {
    pub fn new(store: Store) -> Registry {
        Registry { store, content: Mutex::default(), changed: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A workload has these instances from now on and no others, and their checks run. With `start_over` what the checks
    /// had found out before counts no more.
    pub fn set(
        &self,
        of: Workload<'_>,
        owner: &Arc<Owner>,
        checks: &mut Checks,
        wanted: Vec<Wanted>,
        start_over: bool,
    ) {
        let (mut registrations, mut planned, mut of_consul) = (Vec::new(), Vec::new(), Vec::new());
        for Wanted { registration, consul, checks } in wanted {
            match consul {
                Some(service) => of_consul.push(service),
                None => registrations.push(registration),
            }
            planned.extend(checks);
        }
        if let Some(consul) = &owner.context.settings.consul {
            consul.set(of.alloc_id, of.task, of_consul);
        }
        self.register(of, registrations);
        checks.plan(owner, planned, start_over);
    }

    /// A workload has no instances any more, and no checks.
    pub fn remove(&self, of: Workload<'_>, owner: &Owner, checks: &mut Checks) {
        self.register(of, Vec::new());
        if let Some(consul) = &owner.context.settings.consul {
            consul.set(of.alloc_id, of.task, Vec::new());
        }
        checks.stop(owner);
    }

    fn register(&self, of: Workload<'_>, registrations: Vec<ServiceRegistration>) {
        let mut content = self.lock();
        let load = || self.store.load_services(of.alloc_id);
        let registered = content.allocs.entry(of.alloc_id.to_string()).or_insert_with(load);
        let now: BTreeSet<String> =
            registrations.iter().map(|registration| registration.id.clone()).collect();
        let held = registered.entry(of.task.to_string()).or_default();
        let gone: Vec<String> = held.difference(&now).cloned().collect();
        let before = held.len();
        held.extend(now);
        if held.len() != before {
            self.store.put_services(of.alloc_id, registered);
        }
        for registration in registrations {
            content.want(registration.id.clone(), of, Some(registration));
        }
        for id in gone {
            content.want(id, of, None);
        }
        content.bound_removals(&self.store);
        drop(content);
        self.changed.notify_one();
    }

    /// The allocation is removed from this node.
    pub fn forget(&self, alloc_id: &str) {
        self.lock().allocs.remove(alloc_id);
    }

    /// The servers may have forgotten the instances of an allocation, or all.
    pub(crate) fn send_again(&self, alloc_id: Option<&str>) {
        let mut content = self.lock();
        for instance in content.instances.values_mut() {
            let of_alloc = instance.wanted.as_ref().map(|wanted| wanted.alloc_id.as_str());
            if alloc_id.is_none() || alloc_id == of_alloc {
                instance.is_known = false;
                instance.not_before = None;
            }
        }
        drop(content);
        self.changed.notify_one();
    }

    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// What to send at this time; else when there will be something, if there will.
    pub(crate) fn next_call(&self, now: Instant) -> Result<Call, Option<Instant>> {
        let content = self.lock();
        let waiting = || content.instances.iter().filter(|(_, instance)| !instance.is_known);
        let due = || waiting().filter(|(_, instance)| instance.not_before.is_none_or(|at| at <= now));
        let (alone, together): (Vec<_>, Vec<_>) = due()
            .filter_map(|(_, instance)| Some((instance.refused > 0, instance.wanted.as_ref()?)))
            .partition(|(was_refused, _)| *was_refused);
        // One that is refused must not hold up the others.
        let batch = if together.is_empty() { alone.into_iter().take(1).collect() } else { together };
        let batch: Vec<_> = batch.into_iter().take(BATCH_MAX).map(|(_, wanted)| wanted.clone()).collect();
        if !batch.is_empty() {
            return Ok(Call::Register(batch));
        }
        match due().next() {
            Some((id, instance)) => {
                Ok(Call::Remove { namespace: instance.namespace.clone(), id: id.clone() })
            }
            None => Err(waiting().filter_map(|(_, instance)| instance.not_before).min()),
        }
    }

    /// The servers have done it.
    pub(crate) fn done(&self, call: &Call) {
        let mut content = self.lock();
        match call {
            Call::Register(batch) => {
                for sent in batch {
                    if let Some(instance) = content.instances.get_mut(&sent.id)
                        && instance.wanted.as_ref() == Some(sent)
                    {
                        (instance.is_known, instance.refused, instance.not_before) = (true, 0, None);
                    }
                }
            }
            Call::Remove { id, .. } => {
                if content.instances.get(id).is_some_and(|instance| instance.wanted.is_none()) {
                    content.remove(id, &self.store);
                }
            }
        }
    }

    /// The servers have refused it: it is tried again later.
    pub(crate) fn refused(&self, call: &Call, now: Instant) {
        let mut content = self.lock();
        match call {
            Call::Register(batch) => {
                for sent in batch {
                    // In a batch any of them may be the reason: each is sent alone the next time.
                    let pause = if batch.len() > 1 { Duration::ZERO } else { FIRST_PAUSE };
                    content.postpone(&sent.id, pause, now);
                }
            }
            Call::Remove { id, .. } => {
                content.postpone(id, FIRST_PAUSE, now);
                let removal = content.instances.get(id).filter(|instance| instance.wanted.is_none());
                if removal.is_some_and(|instance| instance.refused >= REMOVAL_TRIES) {
                    tracing::warn!(id, "a service instance was not removed");
                    content.remove(id, &self.store);
                }
            }
        }
    }
}

impl Content {
    fn want(&mut self, id: String, of: Workload<'_>, wanted: Option<ServiceRegistration>) {
        if self.instances.get(&id).is_some_and(|instance| instance.wanted == wanted) {
            return;
        }
        let instance = Instance {
            alloc_id: of.alloc_id.to_string(),
            task: of.task.to_string(),
            namespace: of.namespace.to_string(),
            wanted,
            is_known: false,
            refused: 0,
            not_before: None,
        };
        self.instances.insert(id, instance);
    }

    /// There is no such instance any more, neither here nor, as far as it is known, at the servers.
    fn remove(&mut self, id: &str, store: &Store) {
        let Some(Instance { alloc_id, task, .. }) = self.instances.remove(id) else { return };
        let Some(registered) = self.allocs.get_mut(&alloc_id) else { return };
        if registered.get_mut(&task).is_some_and(|held| held.remove(id)) {
            registered.retain(|_, held| !held.is_empty());
            store.put_services(&alloc_id, registered);
        }
    }

    fn bound_removals(&mut self, store: &Store) {
        let removals = |instances: &BTreeMap<String, Instance>| -> Vec<String> {
            let removed = instances.iter().filter(|(_, instance)| instance.wanted.is_none());
            removed.map(|(id, _)| id.clone()).collect()
        };
        let all = removals(&self.instances);
        let surplus = all.len().saturating_sub(REMOVALS_MAX);
        for id in all.into_iter().take(surplus) {
            self.remove(&id, store);
        }
    }

    fn postpone(&mut self, id: &str, first: Duration, now: Instant) {
        let Some(instance) = self.instances.get_mut(id) else { return };
        let pause = first.saturating_mul(1 << instance.refused.min(5)).min(LONGEST_PAUSE);
        instance.refused += 1;
        instance.not_before = Some(now + pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instance(id: &str, port: i64) -> ServiceRegistration {
        ServiceRegistration { id: id.into(), port, ..ServiceRegistration::default() }
    }

    const WEB: Workload<'_> = Workload { alloc_id: "a1", namespace: "apps", task: "web" };

    fn remove(id: &str) -> Result<Call, Option<Instant>> {
        Ok(Call::Remove { namespace: "apps".into(), id: id.into() })
    }

    /// Sends what there is, until there is nothing.
    fn sent(registry: &Registry) -> Vec<Call> {
        let mut calls = Vec::new();
        while let Ok(call) = registry.next_call(Instant::now()) {
            registry.done(&call);
            calls.push(call);
        }
        calls
    }

    #[tokio::test]
    async fn what_differs_is_sent_once_and_all_again_when_the_servers_forgot() {
        let registry = Registry::new(Store::disabled());
        let both = vec![instance("x", 1), instance("y", 1)];
        registry.register(WEB, both.clone());
        assert_eq!(sent(&registry), [Call::Register(both.clone())]);
        registry.register(WEB, both.clone());
        assert_eq!(sent(&registry), [], "they know");
        registry.register(WEB, vec![instance("x", 2)]);
        assert_eq!(sent(&registry), [Call::Register(vec![instance("x", 2)]), remove("y").unwrap()]);
        registry.send_again(Some("other"));
        assert_eq!(sent(&registry), []);
        registry.send_again(None);
        assert_eq!(sent(&registry), [Call::Register(vec![instance("x", 2)])]);
        registry.register(WEB, vec![]);
        assert_eq!(sent(&registry), [remove("x").unwrap()]);
    }

    #[tokio::test]
    async fn what_changes_while_it_is_sent_is_sent_again() {
        let registry = Registry::new(Store::disabled());
        registry.register(WEB, vec![instance("x", 1)]);
        let first = registry.next_call(Instant::now()).unwrap();
        registry.register(WEB, vec![]);
        registry.done(&first);
        let removal = registry.next_call(Instant::now());
        assert_eq!(removal, remove("x"));
        registry.register(WEB, vec![instance("x", 3)]);
        registry.done(&removal.unwrap());
        assert_eq!(sent(&registry), [Call::Register(vec![instance("x", 3)])]);
    }

    #[tokio::test]
    async fn one_that_is_refused_holds_up_no_other_and_is_tried_again_later() {
        let registry = Registry::new(Store::disabled());
        registry.register(WEB, vec![instance("bad", 1), instance("good", 1)]);
        let now = Instant::now();
        registry.refused(&registry.next_call(now).unwrap(), now);
        let bad = registry.next_call(now).unwrap();
        assert_eq!(bad, Call::Register(vec![instance("bad", 1)]), "alone");
        registry.refused(&bad, now);
        let good = registry.next_call(now).unwrap();
        assert_eq!(good, Call::Register(vec![instance("good", 1)]));
        registry.done(&good);
        let later = registry.next_call(now).unwrap_err().unwrap();
        assert!(later > now && later <= now + LONGEST_PAUSE);
        assert_eq!(registry.next_call(later).unwrap(), bad);
        registry.register(WEB, vec![]);
        let mut now = now;
        for _ in 0..2 * REMOVAL_TRIES {
            let removal = registry.next_call(now).unwrap();
            registry.refused(&removal, now);
            now += LONGEST_PAUSE;
        }
        assert_eq!(registry.next_call(now), Err(None), "given up: they go with the allocation");
    }

    #[tokio::test]
    async fn the_next_agent_removes_what_is_wanted_no_more() {
        let dir = tempfile::tempdir().unwrap();
        {
            let registry = Registry::new(Store::open(dir.path()).unwrap());
            registry.register(WEB, vec![instance("x", 1), instance("y", 1)]);
        }
        {
            let registry = Registry::new(Store::open(dir.path()).unwrap());
            registry.register(WEB, vec![instance("x", 1)]);
            assert_eq!(sent(&registry), [Call::Register(vec![instance("x", 1)]), remove("y").unwrap()]);
            registry.register(WEB, vec![]);
            assert_eq!(registry.next_call(Instant::now()), remove("x"), "and the agent dies");
        }
        {
            let registry = Registry::new(Store::open(dir.path()).unwrap());
            registry.register(WEB, vec![]);
            assert_eq!(sent(&registry), [remove("x").unwrap()]);
        }
        let registry = Registry::new(Store::open(dir.path()).unwrap());
        registry.register(WEB, vec![]);
        assert_eq!(sent(&registry), []);
    }

    #[tokio::test]
    async fn removals_that_cannot_be_sent_are_bounded() {
        let registry = Registry::new(Store::disabled());
        let many: Vec<_> = (0..REMOVALS_MAX + 5).map(|n| instance(&format!("i{n:05}"), 1)).collect();
        registry.register(WEB, many);
        registry.register(WEB, vec![]);
        let calls = sent(&registry);
        assert_eq!(calls.len(), REMOVALS_MAX);
        assert_eq!(calls[0], remove("i00005").unwrap());
    }
}
