//! The Consul agent beside this one, over its documented HTTP API: services and their checks are registered there, and
//! templates read from it.
//!
//! `wanted.rs` says what a service is in Consul's words, `sync.rs` keeps the Consul agent up to date, `client.rs` makes the
//! calls, and `reads.rs` reads for templates. Nothing is touched there but what begins with [`TASK_PREFIX`] and what this
//! agent has registered of itself.

mod client;
mod logins;
mod reads;
mod sync;
pub(super) mod wanted;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

use self::client::{Client, ConsulError};
pub use self::logins::ServiceLogin;
use super::check::{Check, FAILURE, PENDING, Probe, SUCCESS, Script};
use super::checks::Owner;
use super::probe::{OUTPUT_MAX, Outcome};
use super::results::Results;
use crate::context::Context;
use crate::driver::exec::run_once;
use crate::remote::ServerQueries;
use crate::returned::{Returned, ReturnedToken};
use crate::store::{Store, WeakStore};
use crate::task::hooks::identities::Refusal;

/// What the ids of services of allocations begin with, Nomad's own too.
pub(super) const TASK_PREFIX: &str = "_nomad-task-";

/// Removals that have not been made yet; more are dropped: what is unknown is removed at the next start.
const REMOVALS_MAX: usize = 4096;

/// Between two tries to write down how a script went, while Consul does not know its check yet.
const UPDATE_PAUSE: Duration = Duration::from_millis(500);

/// How often the statuses of checks are asked for that Consul runs.
const STATUS_EVERY: Duration = Duration::from_secs(1);

/// How Consul is reached, and what this agent says of itself there.
#[derive(Clone, Debug, PartialEq)]
pub struct ConsulSettings {
    /// `http://HOST:PORT`, `https://HOST:PORT` or `unix:///PATH`.
    pub address: String,
    pub token: String,
    /// `USER:PASSWORD` of a proxy before it; may be empty.
    pub auth: String,
    pub namespace: String,
    pub timeout: Duration,
    /// With which tasks log in.
    pub task_auth_method: String,
    /// With which services log in that have an identity.
    pub service_auth_method: String,
    /// How long services of allocations stay that nobody here knows: an agent that has just started has not found its own yet.
    pub unknown_for: Duration,
    pub ca_file: PathBuf,
    pub cert_file: PathBuf,
    pub key_file: PathBuf,
    pub skip_verify: bool,
    /// Services of the agent itself.
    pub own: Vec<Registration>,
}

/// A service as Consul is sent it.
#[derive(Clone, Debug, PartialEq)]
pub struct Registration {
    pub id: String,
    /// Of its checks, as Consul knows them.
    pub check_ids: Vec<String>,
    /// None for one that is registered with the agent's token.
    pub login: Option<ServiceLogin>,
    pub document: Value,
}

#[derive(Debug, Default)]
struct Content {
    /// By id, each with its allocation and task.
    wanted: BTreeMap<String, (String, String, Registration)>,
    /// What Consul was sent last.
    sent: BTreeMap<String, Value>,
    /// What is there no more, and may still be in Consul.
    removed: BTreeSet<String>,
    /// Tokens of tasks, by allocation and task.
    tokens: BTreeMap<(String, String), String>,
    /// Tokens of services, by id, also in the store.
    service_tokens: BTreeMap<String, String>,
    store: WeakStore,
}

/// The status of each check with its output.
type Statuses = BTreeMap<String, (String, String)>;

#[derive(Debug)]
pub struct Consul {
    client: Client,
    own: Vec<Registration>,
    unknown_for: Duration,
    servers: Mutex<Option<Weak<dyn ServerQueries>>>,
    content: Mutex<Content>,
    changed: Notify,
    returned: Returned,
    statuses: watch::Sender<Statuses>,
    attributes: watch::Sender<BTreeMap<String, String>>,
    /// How the checks went last that decide about health and restarts. Consul keeps them over a restart of this agent.
    pub(crate) results: Results,
}

impl Consul {
    /// # Errors
    /// A file of certificates, or the address, is not usable.
    pub fn new(settings: ConsulSettings) -> Result<Arc<Consul>, String> {
        Ok(Arc::new(Consul {
            client: Client::new(&settings)?,
            own: settings.own,
            unknown_for: settings.unknown_for,
            servers: Mutex::default(),
            content: Mutex::default(),
            changed: Notify::new(),
            returned: Returned::new("consul/default"),
            statuses: watch::Sender::new(Statuses::new()),
            attributes: watch::Sender::new(BTreeMap::new()),
            results: Results::new(Store::disabled()),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A workload has these services from now on, and no others.
    pub(super) fn set(&self, alloc_id: &str, task: &str, services: Vec<Registration>) {
        let mut content = self.lock();
        let now: BTreeSet<&str> = services.iter().map(|service| service.id.as_str()).collect();
        let gone: Vec<String> = content
            .wanted
            .iter()
            .filter(|(id, (alloc, of, _))| alloc == alloc_id && of == task && !now.contains(id.as_str()))
            .map(|(id, _)| id.clone())
            .collect();
        if gone.is_empty() && services.is_empty() {
            return;
        }
        for id in gone {
            content.wanted.remove(&id);
            if content.removed.len() < REMOVALS_MAX {
                content.removed.insert(id);
            }
        }
        for service in services {
            content.removed.remove(&service.id);
            content.wanted.insert(service.id.clone(), (alloc_id.to_string(), task.to_string(), service));
        }
        drop(content);
        self.changed.notify_one();
    }

    /// Logs a task in.
    pub(crate) async fn login(&self, bearer: &str, alloc_id: &str, task: &str) -> Result<String, Refusal> {
        let meta = serde_json::json!({"alloc_id": alloc_id, "task": task, "requested_by": "sojourn"});
        let method = &self.client.task_auth_method;
        self.client.login(method, bearer, meta).await.map_err(|error| match error {
            ConsulError::Refused { status: ..500, .. } => Refusal::Rejected(error.to_string()),
            ConsulError::Refused { .. } | ConsulError::Unreached(_) | ConsulError::Unsigned(_) => {
                Refusal::Unanswered(error.to_string())
            }
        })
    }

    /// With what templates of the task read from now on.
    pub(crate) fn put_token(&self, alloc_id: &str, task: &str, token: String) {
        self.lock().tokens.insert((alloc_id.to_string(), task.to_string()), token);
    }

    /// That of a task, if it has one of its own.
    pub(crate) fn token_of(&self, alloc_id: &str, task: &str) -> Option<String> {
        self.lock().tokens.get(&(alloc_id.to_string(), task.to_string())).cloned()
    }

    /// The task has ended for good: its token is logged out as soon as Consul is reached.
    pub(crate) fn give_back(&self, alloc_id: &str, task: &str, token: String) {
        self.lock().tokens.remove(&(alloc_id.to_string(), task.to_string()));
        self.returned.add(ReturnedToken { token, namespace: String::new() });
    }

    pub(crate) fn forget(&self, alloc_id: &str) {
        self.results.forget(alloc_id);
    }

    /// How often a check is looked at.
    pub(super) fn interval(check: &Check) -> Duration {
        match check.probe {
            Probe::Script(_) => check.interval.to_std(),
            Probe::Tcp { .. } | Probe::Http(_) | Probe::Grpc { .. } => STATUS_EVERY,
        }
    }

    /// How a check is: a script is run and written down, the others are Consul's to run.
    pub(super) async fn outcome(&self, owner: &Owner, check: &Check) -> Outcome {
        let (status, output) = match &check.probe {
            Probe::Script(script) => self.run_script(owner, check, script).await,
            Probe::Tcp { .. } | Probe::Http(_) | Probe::Grpc { .. } => {
                let known = self.statuses.borrow().get(&wanted::check_id(check)).cloned();
                known.unwrap_or_default()
            }
        };
        let status = match status.as_str() {
            "passing" => SUCCESS,
            "warning" if check.ignores_warnings => SUCCESS,
            "warning" | "critical" => FAILURE,
            _ => PENDING,
        };
        Outcome { status, code: 0, output }
    }

    async fn run_script(&self, owner: &Owner, check: &Check, script: &Script) -> (String, String) {
        let (status, mut output) = match ran(owner, check, script).await {
            Ok((0, output)) => ("passing", output),
            Ok((1, output)) => ("warning", output),
            Ok((_, output)) => ("critical", output),
            Err(why) => ("critical", why),
        };
        output.truncate(output.floor_char_boundary(OUTPUT_MAX));
        let id = wanted::check_id(check);
        // The check may not be registered yet.
        let written = timeout(check.interval.to_std(), async {
            while let Err(error) =
                self.client.update_check(&id, self.token_of_check(&id).as_deref(), status, &output).await
            {
                tracing::debug!(id, %error, "the result of a script check was not written down");
                sleep(UPDATE_PAUSE).await;
            }
        });
        if written.await.is_err() {
            tracing::warn!(id, "Consul does not take the result of a script check");
        }
        (status.to_string(), output)
    }
}

async fn ran(owner: &Owner, check: &Check, script: &Script) -> Result<(i64, String), String> {
    let running = owner.tasks.running(&script.task).ok_or("the task is not running")?;
    let command = std::iter::once(&script.command).chain(&script.args).cloned().collect();
    let output =
        run_once(&*running, command, check.timeout.to_std()).await.map_err(|error| error.to_string())?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    Ok((output.exit.code, text))
}

/// Puts what Consul says of itself into the attributes of the node, until it is dropped.
pub(crate) async fn describe(context: Arc<Context>) {
    let Some(consul) = context.settings.consul.clone() else { return };
    let mut attributes = consul.attributes.subscribe();
    loop {
        let found = attributes.borrow_and_update().clone();
        if !found.is_empty() {
            context.change_node(|node| node.attributes.0.extend(found));
            context.node_changed.notify_one();
        }
        if attributes.changed().await.is_err() {
            return;
        }
    }
}
