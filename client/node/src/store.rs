//! What the agent stores to survive its own death: its allocations, where their tasks run, and what the
//! servers know of them.
//!
//! Everything here can be lost without harm to the cluster: the servers send us our allocations again, and
//! tasks that no stored handle names are ended. So writes reach the operating system at once, which is enough to
//! survive a kill of the agent, and are not forced to the disk.

use std::path::Path;

use fjall::{Database, Keyspace, KeyspaceCreateOptions};
use model::document::{AllocDeploymentStatus, Allocation, TaskState};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::driver::{DriverNetwork, TaskHandle};
use crate::hook::HookState;
use crate::identity::Registration;
use crate::meta::Dynamic;

const META: &str = "meta";
const REGISTRATION: &str = "registration";

/// What is stored of one task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoredTask {
    pub state: TaskState,
    /// Set from the start of the task until its end was seen.
    pub handle: Option<TaskHandle>,
    pub network: Option<DriverNetwork>,
}

/// What is stored of one allocation.
#[derive(Clone, Debug)]
pub struct StoredAlloc {
    pub alloc: Allocation,
    pub tasks: std::collections::BTreeMap<String, StoredTask>,
    pub deployment: Option<AllocDeploymentStatus>,
    /// The last update of ours that a server has acknowledged.
    pub acknowledged: Option<Allocation>,
}

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("local state")]
    Database(#[from] fjall::Error),
    #[error("local state holds a damaged entry \"{key}\"")]
    Damaged { key: String, source: serde_json::Error },
}

/// The agent's local state; without a keyspace (when the directories go with the agent) nothing is stored.
///
/// Keys: `a/<alloc>`, `d/<alloc>` (deployment status), `k/<alloc>` (acknowledged), `t/<alloc>/<task>`,
/// `h/<alloc>/<task, or nothing>/<hook>`, `meta`, and `registration`.
/// Values are JSON: self-describing, so that older and newer agents can read each other's.
#[derive(Clone)]
pub struct Store {
    keyspace: Option<Keyspace>,
    /// Held so that the background work of the database goes on.
    _database: Option<Database>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Store({})", if self.keyspace.is_some() { "on disk" } else { "disabled" })
    }
}

impl Store {
    /// # Errors
    /// When the database cannot be opened, for example because another agent holds it.
    pub fn open(path: &Path) -> Result<Store, StoreError> {
        let database = Database::builder(path).worker_threads(1).cache_size(1024 * 1024).open()?;
        let keyspace = database.keyspace("node", KeyspaceCreateOptions::default)?;
        Ok(Store { keyspace: Some(keyspace), _database: Some(database) })
    }

    pub fn disabled() -> Store {
        Store { keyspace: None, _database: None }
    }

    pub fn put_alloc(&self, alloc: &Allocation) {
        self.put(format!("a/{}", alloc.id), alloc);
    }

    pub fn put_task(&self, alloc_id: &str, task: &str, stored: &StoredTask) {
        self.put(format!("t/{alloc_id}/{task}"), stored);
    }

    pub fn put_deployment(&self, alloc_id: &str, status: &AllocDeploymentStatus) {
        self.put(format!("d/{alloc_id}"), status);
    }

    pub fn put_acknowledged(&self, update: &Allocation) {
        self.put(format!("k/{}", update.id), update);
    }

    /// `task` is `None` for a hook of the allocation.
    pub fn put_hook(&self, alloc_id: &str, task: Option<&str>, hook: &str, state: &HookState) {
        self.put(hook_key(alloc_id, task, hook), state);
    }

    /// What an earlier agent has stored of a hook. What cannot be read is reported and counts as nothing: hooks can
    /// be run again.
    pub fn load_hook(&self, alloc_id: &str, task: Option<&str>, hook: &str) -> HookState {
        let Some(keyspace) = &self.keyspace else { return HookState::default() };
        let key = hook_key(alloc_id, task, hook);
        let stored = keyspace.get(&key).map_err(StoreError::from);
        let state = stored.and_then(|bytes| parse_some(&key, bytes.as_deref()));
        state
            .unwrap_or_else(|error| {
                tracing::error!(key, %error, "the state of a hook cannot be read");
                None
            })
            .unwrap_or_default()
    }

    pub fn put_meta(&self, dynamic: &Dynamic) {
        self.put(META.to_string(), dynamic);
    }

    /// # Errors
    /// When it cannot be read.
    pub fn load_meta(&self) -> Result<Dynamic, StoreError> {
        let Some(keyspace) = &self.keyspace else { return Ok(Dynamic::new()) };
        Ok(parse_some(META, keyspace.get(META)?.as_deref())?.unwrap_or_default())
    }

    pub fn put_registration(&self, registration: &Registration) {
        self.put(REGISTRATION.to_string(), registration);
    }

    /// # Errors
    /// When it cannot be read.
    pub fn load_registration(&self) -> Result<Registration, StoreError> {
        let Some(keyspace) = &self.keyspace else { return Ok(Registration::default()) };
        Ok(parse_some(REGISTRATION, keyspace.get(REGISTRATION)?.as_deref())?.unwrap_or_default())
    }

    /// A failed write ends no task; it is logged.
    fn put(&self, key: String, value: &impl Serialize) {
        let Some(keyspace) = &self.keyspace else { return };
        let bytes = serde_json::to_vec(value).expect("documents have string keys and no failing parts");
        if let Err(error) = keyspace.insert(key.as_bytes(), bytes) {
            tracing::error!(key, %error, "local state was not written");
        }
    }

    pub fn forget(&self, alloc_id: &str) {
        let Some(keyspace) = &self.keyspace else { return };
        let mut keys: Vec<Vec<u8>> =
            ["a", "d", "k"].iter().map(|kind| format!("{kind}/{alloc_id}").into_bytes()).collect();
        for kind in ["t", "h"] {
            let entries = keyspace.prefix(format!("{kind}/{alloc_id}/"));
            keys.extend(entries.filter_map(|entry| entry.key().ok()).map(|key| key.to_vec()));
        }
        for key in keys {
            if let Err(error) = keyspace.remove(key) {
                tracing::error!(alloc = alloc_id, %error, "local state was not removed");
            }
        }
    }

    /// All allocations an earlier agent left.
    pub fn load(&self) -> Result<Vec<StoredAlloc>, StoreError> {
        let Some(keyspace) = &self.keyspace else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for (_, alloc) in read_all::<Allocation>(keyspace, "a/")? {
            let prefix = format!("t/{}/", alloc.id);
            let tasks = read_all(keyspace, &prefix)?;
            let get = |kind: &str| keyspace.get(format!("{kind}/{}", alloc.id));
            found.push(StoredAlloc {
                tasks: tasks.into_iter().collect(),
                deployment: parse_some("d/", get("d")?.as_deref())?,
                acknowledged: parse_some("k/", get("k")?.as_deref())?,
                alloc,
            });
        }
        Ok(found)
    }
}

fn hook_key(alloc_id: &str, task: Option<&str>, hook: &str) -> String {
    format!("h/{alloc_id}/{}/{hook}", task.unwrap_or_default())
}

/// The entries under `prefix`, by what follows it.
fn read_all<T: DeserializeOwned>(keyspace: &Keyspace, prefix: &str) -> Result<Vec<(String, T)>, StoreError> {
    let mut found = Vec::new();
    for entry in keyspace.prefix(prefix) {
        let (key, value) = entry.into_inner()?;
        let key = String::from_utf8_lossy(&key).into_owned();
        let name = key[prefix.len()..].to_string();
        found.push((name, parse(&key, &value)?));
    }
    Ok(found)
}

fn parse_some<T: DeserializeOwned>(key: &str, bytes: Option<&[u8]>) -> Result<Option<T>, StoreError> {
    bytes.map(|bytes| parse(key, bytes)).transpose()
}

fn parse<T: DeserializeOwned>(key: &str, bytes: &[u8]) -> Result<T, StoreError> {
    serde_json::from_slice(bytes).map_err(|source| StoreError::Damaged { key: key.to_string(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_is_there_after_reopening_and_gone_when_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let alloc = |id: &str| Allocation { id: id.into(), name: format!("n-{id}"), ..Allocation::default() };
        let task = StoredTask { network: Some(DriverNetwork::default()), ..StoredTask::default() };
        let healthy = AllocDeploymentStatus { healthy: Some(true), ..AllocDeploymentStatus::default() };
        {
            let store = Store::open(dir.path()).unwrap();
            for id in ["a1", "a2"] {
                store.put_alloc(&alloc(id));
                store.put_task(id, "web", &task);
            }
            store.put_deployment("a1", &healthy);
            store.put_acknowledged(&alloc("a1"));
            store.forget("a2");
        }
        let found = Store::open(dir.path()).unwrap().load().unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].alloc, alloc("a1"));
        assert_eq!(found[0].tasks["web"], task);
        assert_eq!(found[0].deployment, Some(healthy));
        assert_eq!(found[0].acknowledged, Some(alloc("a1")));
    }
}
