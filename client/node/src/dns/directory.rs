//! What is known of services, followed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use template::{Dependency, Place};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::answer::{Found, Instance};
use super::names::Asked;
use crate::context::Context;
use crate::server::TemplateRead;

/// Most services that are followed at the same time. One more takes the place of the one that was asked for longest ago.
pub const FOLLOWED_MAX: usize = 1024;

/// How long the first question for a service waits for the servers.
const FIRST_WITHIN: Duration = Duration::from_secs(2);

/// How long what was known last is good for while no server answers.
pub const STALE_MAX: Duration = Duration::from_secs(60 * 60);

/// How often is looked which services are gone, or are not asked for any more.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// How long a service is followed that nobody asks for.
const ASKED_WITHIN: Duration = Duration::from_secs(60 * 60);

/// Before the next call after an answer without changes: a server with a bug must not be called in a tight loop.
const NO_NEWS_PAUSE: Duration = Duration::from_millis(50);

/// Between two tries while no server answers: the first, which doubles, and the longest.
const RETRY_FIRST: Duration = Duration::from_millis(250);
const RETRY_MAX: Duration = Duration::from_secs(15);

/// A service as questions name it: its namespace and name in lowercase.
type Key = (String, String);

/// The same as the servers name it.
type Services = BTreeMap<Key, Key>;

#[derive(Debug)]
pub struct Directory {
    context: Arc<Context>,
    services: Following<Services>,
    followed: Arc<Mutex<BTreeMap<Key, Followed>>>,
    _looking: AbortOnDropHandle<()>,
}

#[derive(Debug)]
struct Followed {
    asked_at: Instant,
    /// The last look has not found it among the services.
    was_gone: bool,
    instances: Following<Vec<Instance>>,
}

/// A query that is repeated until this is dropped.
#[derive(Debug)]
struct Following<T> {
    known: watch::Receiver<Known<T>>,
    _asking: AbortOnDropHandle<()>,
}

/// The last answer; `None` before the first.
#[derive(Clone, Debug)]
struct Known<T> {
    last: Option<T>,
    failing_since: Option<Instant>,
}

impl<T: Clone> Known<T> {
    fn fresh(&self) -> Option<T> {
        let is_stale = self.failing_since.is_some_and(|since| since.elapsed() >= STALE_MAX);
        self.last.clone().filter(|_| !is_stale)
    }
}

impl Directory {
    pub fn new(context: Arc<Context>) -> Directory {
        let place = Place { namespace: Some("*".to_string()), region: None };
        let services = follow(&context, Dependency::Services { place }, services_of);
        let followed: Arc<Mutex<BTreeMap<Key, Followed>>> = Arc::default();
        let (looked_at, known) = (Arc::clone(&followed), services.known.clone());
        let looking = tokio::spawn(async move {
            loop {
                sleep(LOOK_EVERY).await;
                let mut all = looked_at.lock().unwrap_or_else(PoisonError::into_inner);
                forget(&mut all, known.borrow().fresh().as_ref());
            }
        });
        Directory { context, services, followed, _looking: AbortOnDropHandle::new(looking) }
    }

    /// What there is of what a question asks for.
    pub async fn find(&self, asked: Asked) -> Found {
        let (namespace, name, tag) = match asked {
            Asked::Service { namespace, name, tag } => (namespace, name, tag),
            Asked::Address(address) => return Found::Address(address),
            Asked::Domain | Asked::Between => return Found::Name,
            Asked::Nothing => return Found::Absent,
        };
        let Some(services) = first(self.services.known.clone()).await else { return Found::Unknown };
        let key = (namespace, name);
        let Some(service) = services.get(&key) else { return Found::Absent };
        let Some(mut instances) = first(self.followed(key, service)).await else { return Found::Unknown };
        if let Some(tag) = tag {
            instances.retain(|instance| instance.tags.contains(&tag));
        }
        if instances.is_empty() { Found::Absent } else { Found::Instances(instances) }
    }

    fn followed(&self, key: Key, service: &Key) -> watch::Receiver<Known<Vec<Instance>>> {
        let mut all = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        let asked_at = Instant::now();
        if let Some(followed) = all.get_mut(&key) {
            followed.asked_at = asked_at;
            return followed.instances.known.clone();
        }
        if all.len() >= FOLLOWED_MAX {
            let oldest = all.iter().min_by_key(|(_, followed)| followed.asked_at).map(|(key, _)| key.clone());
            oldest.map(|key| all.remove(&key));
        }
        let (namespace, name) = service.clone();
        let place = Place { namespace: Some(namespace), region: None };
        let dependency = Dependency::Service { name, choose: None, place };
        let instances = follow(&self.context, dependency, instances_of);
        let known = instances.known.clone();
        all.insert(key, Followed { asked_at, was_gone: false, instances });
        known
    }
}

/// Gives up what was gone at this look and at the last one, so that a service that is replaced is kept, and what nobody has
/// asked for. While nobody knows which services there are, none is gone.
fn forget(all: &mut BTreeMap<Key, Followed>, services: Option<&Services>) {
    all.retain(|key, followed| {
        let is_gone = services.is_some_and(|services| !services.contains_key(key));
        let was_gone = std::mem::replace(&mut followed.was_gone, is_gone);
        !(is_gone && was_gone) && followed.asked_at.elapsed() < ASKED_WITHIN
    });
}

/// What is known; what has never been known is waited for.
async fn first<T: Clone>(mut known: watch::Receiver<Known<T>>) -> Option<T> {
    let answered = timeout(FIRST_WITHIN, known.wait_for(|known| known.last.is_some())).await;
    answered.ok()?.ok()?.fresh()
}

fn follow<T: Clone + Send + Sync + 'static>(
    context: &Arc<Context>,
    dependency: Dependency,
    read: fn(Value) -> T,
) -> Following<T> {
    let (sender, known) = watch::channel(Known { last: None, failing_since: None });
    let asking = tokio::spawn(ask(Arc::clone(context), dependency, read, sender));
    Following { known, _asking: AbortOnDropHandle::new(asking) }
}

async fn ask<T>(
    context: Arc<Context>,
    dependency: Dependency,
    read: fn(Value) -> T,
    known: watch::Sender<Known<T>>,
) {
    let (mut min_index, mut retry) = (0, RETRY_FIRST);
    while let Some(servers) = context.servers.get() {
        let query = TemplateRead {
            dependency: dependency.clone(),
            namespace: "*".to_string(),
            token: None,
            min_index,
            wait: context.settings.templates.block_query_wait,
        };
        match servers.read(&query).await {
            Ok((found, index)) => {
                known
                    .send_replace(Known { last: Some(read(found.unwrap_or_default())), failing_since: None });
                if index <= min_index {
                    sleep(NO_NEWS_PAUSE).await;
                }
                // An index that went back is one of servers that were set up anew.
                (min_index, retry) = (index.max(1), RETRY_FIRST);
            }
            Err(error) => {
                tracing::debug!(%dependency, %error, "what the DNS answers was not found out");
                known.send_modify(|known| {
                    known.failing_since.get_or_insert_with(Instant::now);
                });
                // After an outage all is read anew: an answer that waits for a change would leave it failing.
                min_index = 0;
                sleep(retry).await;
                retry = (retry * 2).min(RETRY_MAX);
            }
        }
    }
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn services_of(value: Value) -> Services {
    let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_string();
    let mut services = Services::new();
    for stub in items(&value) {
        let namespace = text(stub, "Namespace");
        for service in items(&stub["Services"]) {
            let name = text(service, "ServiceName");
            let key = (namespace.to_ascii_lowercase(), name.to_ascii_lowercase());
            services.insert(key, (namespace.clone(), name));
        }
    }
    services
}

fn instances_of(value: Value) -> Vec<Instance> {
    let instance = |found: &Value| {
        let tags: BTreeSet<String> =
            items(&found["Tags"]).filter_map(Value::as_str).map(str::to_ascii_lowercase).collect();
        let port = u16::try_from(found["Port"].as_i64()?).ok()?;
        Some(Instance { address: found["Address"].as_str()?.to_string(), port, tags })
    };
    items(&value).filter_map(instance).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_was_known_last_is_good_for_an_hour() {
        let known = Known { last: Some(1), failing_since: Some(Instant::now()) };
        tokio::time::advance(STALE_MAX - Duration::from_secs(1)).await;
        assert_eq!(known.fresh(), Some(1));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(known.fresh(), None);
    }

    fn followed() -> Followed {
        let known = watch::channel(Known { last: Some(Vec::new()), failing_since: None }).1;
        let asking = AbortOnDropHandle::new(tokio::spawn(std::future::pending()));
        let instances = Following { known, _asking: asking };
        Followed { asked_at: Instant::now(), was_gone: false, instances }
    }

    #[tokio::test(start_paused = true)]
    async fn a_service_that_is_gone_or_not_asked_for_is_followed_no_longer() {
        let key = |name: &str| ("default".to_string(), name.to_string());
        let services: Services = ["there", "asked"].map(|name| (key(name), key(name))).into();
        let mut all: BTreeMap<Key, Followed> =
            ["there", "asked", "gone"].map(|name| (key(name), followed())).into();
        let names =
            |all: &BTreeMap<Key, Followed>| all.keys().map(|(_, name)| name.clone()).collect::<Vec<_>>();
        forget(&mut all, Some(&services));
        assert_eq!(names(&all), ["asked", "gone", "there"], "it may be replaced");
        forget(&mut all, None);
        forget(&mut all, Some(&services));
        assert_eq!(names(&all), ["asked", "gone", "there"], "meanwhile nobody knew");
        forget(&mut all, Some(&services));
        assert_eq!(names(&all), ["asked", "there"]);
        tokio::time::advance(ASKED_WITHIN).await;
        all.get_mut(&key("asked")).unwrap().asked_at = Instant::now();
        forget(&mut all, Some(&services));
        assert_eq!(names(&all), ["asked"]);
    }

    #[test]
    fn services_are_found_in_any_case() {
        let listed = json!([{"Namespace": "Prod", "Services": [{"ServiceName": "Web", "Tags": ["v1"]}]}]);
        let found = services_of(listed);
        assert_eq!(found[&("prod".into(), "web".into())], ("Prod".to_string(), "Web".to_string()));
        assert!(services_of(Value::Null).is_empty());
        let found = instances_of(
            json!([{"Address": "::1", "Port": 80, "Tags": ["V1"]}, {"Address": "x", "Port": -1}]),
        );
        assert_eq!(found, [Instance { address: "::1".into(), port: 80, tags: ["v1".to_string()].into() }]);
    }
}
