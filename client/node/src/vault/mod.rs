//! Vault, over its documented HTTP API: tasks log in with their identities, their tokens are renewed and given back, and
//! templates read secrets with them.
//!
//! `client.rs` makes the calls, `reads.rs` follows what a template reads, with its lease. The token itself is the business of the
//! task hook `vault`.

mod client;
pub mod reads;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use self::client::Client;
pub(crate) use self::client::{Auth, VaultError};
use crate::context::Context;
use crate::returned::{Returned, ReturnedToken};
use crate::store::Store;

/// Before Vault is asked again what it is, until it has answered.
const DESCRIBE_PAUSE: Duration = Duration::from_secs(1);
const DESCRIBE_PAUSE_MAX: Duration = Duration::from_secs(15);

/// The cluster of a job that names none.
pub const DEFAULT: &str = "default";

/// How one Vault is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaultSettings {
    /// By which jobs name it.
    pub name: String,
    /// `http://HOST:PORT` or `https://HOST:PORT`.
    pub address: String,
    pub namespace: String,
    /// Where tasks log in, below `auth`.
    pub auth_path: String,
    /// For jobs that name none; empty for that of the auth method.
    pub role: String,
    pub ca_file: PathBuf,
    pub ca_path: PathBuf,
    pub cert_file: PathBuf,
    pub key_file: PathBuf,
    pub server_name: String,
    pub skip_verify: bool,
}

/// Those of a node, by name.
pub type Vaults = BTreeMap<String, Arc<Vault>>;

#[derive(Debug)]
pub struct Vault {
    name: String,
    pub address: String,
    pub namespace: String,
    client: Client,
    /// The newest token of each task, by allocation and task; empty until there is one.
    tokens: Mutex<BTreeMap<(String, String), watch::Sender<String>>>,
    returned: Returned,
}

/// # Errors
/// A file of certificates, or an address, is not usable.
pub(crate) fn open(settings: &[VaultSettings], store: &Store) -> Result<Vaults, String> {
    let opened = settings.iter().map(|settings| {
        let client = Client::new(settings).map_err(|why| format!("vault \"{}\": {why}", settings.name))?;
        let vault = Vault {
            name: settings.name.clone(),
            address: settings.address.clone(),
            namespace: settings.namespace.clone(),
            client,
            tokens: Mutex::default(),
            returned: Returned::new(&format!("vault/{}", settings.name)),
        };
        vault.returned.keep_in(store);
        Ok((settings.name.clone(), Arc::new(vault)))
    });
    opened.collect()
}

impl Vault {
    /// Runs until it is dropped.
    pub(crate) async fn run(self: Arc<Vault>, context: Arc<Context>) {
        let revoke = |returned: ReturnedToken| self.revoke(returned);
        tokio::join!(self.describe(&context), self.returned.run(revoke));
    }

    /// One more try for the tokens that are to be given back, by an agent that stops. The others are kept for the next one.
    pub(crate) async fn leave(&self) {
        self.returned.leave(|returned| self.revoke(returned)).await;
    }

    async fn revoke(&self, returned: ReturnedToken) -> Result<(), String> {
        let revoked = self.client.revoke(&returned.namespace, &returned.token).await;
        revoked.map_err(|error| error.to_string())
    }

    /// Puts what Vault says of itself into the attributes of the node.
    async fn describe(&self, context: &Context) {
        let mut pause = DESCRIBE_PAUSE;
        loop {
            match self.client.seal_status().await {
                Ok(status) if status["sealed"] == false => {
                    let prefix = if self.name == DEFAULT { String::new() } else { format!("{}.", self.name) };
                    let mut found =
                        BTreeMap::from([(format!("vault.{prefix}accessible"), "true".to_string())]);
                    for key in ["version", "cluster_id", "cluster_name"] {
                        if let Some(value) = status[key].as_str() {
                            found.insert(format!("vault.{prefix}{key}"), value.to_string());
                        }
                    }
                    context.change_node(|node| node.attributes.0.extend(found));
                    context.node_changed.notify_one();
                    return;
                }
                Ok(_) => tracing::debug!(vault = self.name, "Vault is sealed"),
                Err(error) => tracing::debug!(vault = self.name, %error, "Vault does not say what it is"),
            }
            sleep(pause).await;
            pause = (pause * 2).min(DESCRIBE_PAUSE_MAX);
        }
    }

    pub(crate) async fn login(&self, namespace: &str, role: &str, jwt: &str) -> Result<Auth, VaultError> {
        self.client.login(namespace, role, jwt).await
    }

    pub(crate) async fn renew(&self, namespace: &str, token: &str) -> Result<Auth, VaultError> {
        self.client.renew(namespace, token).await
    }

    /// The namespace of a job that names none is that of the cluster.
    pub(crate) fn namespace<'a>(&'a self, given: Option<&'a str>) -> &'a str {
        given.filter(|given| !given.is_empty()).unwrap_or(&self.namespace)
    }

    /// What is read for the task is read with this from now on.
    pub(crate) fn put_token(&self, alloc_id: &str, task: &str, token: &str) {
        self.sender(alloc_id, task).send_if_modified(|known| {
            let differs = known != token;
            token.clone_into(known);
            differs
        });
    }

    pub(crate) fn token_of(&self, alloc_id: &str, task: &str) -> watch::Receiver<String> {
        self.sender(alloc_id, task).subscribe()
    }

    fn sender(&self, alloc_id: &str, task: &str) -> watch::Sender<String> {
        self.tokens().entry((alloc_id.to_string(), task.to_string())).or_default().clone()
    }

    fn tokens(&self) -> MutexGuard<'_, BTreeMap<(String, String), watch::Sender<String>>> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The task has ended for good: its token, if it has got one, is revoked as soon as Vault is reached.
    pub(crate) fn give_back(&self, alloc_id: &str, task: &str, namespace: &str, token: Option<String>) {
        self.tokens().remove(&(alloc_id.to_string(), task.to_string()));
        if let Some(token) = token {
            self.returned.add(ReturnedToken { token, namespace: namespace.to_string() });
        }
    }
}
