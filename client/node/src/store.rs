//! What the agent stores to survive its own death: its allocations, where their tasks run, and what the
//! servers know of them.
//!
//! Everything here can be lost without harm to the cluster: the servers send us our allocations again, and
//! tasks that no stored handle names are ended. So writes reach the operating system at once, which is enough to
//! survive a kill of the agent, and are not forced to the disk.
//!
//! A disk may be full for a while. What it does not take waits here, and [`mend`] tries again; meanwhile the agent
//! starts nothing, because of [`Store::failing`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use executor::Exit;
use fjall::{Database, Keyspace, KeyspaceCreateOptions};
use model::document::{AllocDeploymentStatus, Allocation, TaskState};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use wire::messages::ClientHostVolumeRequest;

use crate::driver::{DriverNetwork, TaskHandle};
use crate::hook::HookState;
use crate::identity::Registration;
use crate::meta::Dynamic;
use crate::returned::ReturnedToken;
use crate::services::{AllocChecks, Registered};

const META: &str = "meta";
const REGISTRATION: &str = "registration";

/// How long a disk that took nothing is left alone.
const RETRY_EVERY: Duration = Duration::from_secs(5);

/// What is stored of one task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoredTask {
    pub state: TaskState,
    /// Set from the start of the task until its end was seen.
    pub handle: Option<TaskHandle>,
    /// An end by itself, until what follows from it is decided: set with its event, so that an agent that dies in between
    /// does not have the next one start the task again.
    pub undecided: Option<Exit>,
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
/// Keys: `a/<alloc>`, `d/<alloc>` (deployment status), `k/<alloc>` (acknowledged), `s/<alloc>` (ids of services),
/// `c/<alloc>` (results of checks), `t/<alloc>/<task>`,
/// `h/<alloc>/<task, or nothing>/<hook>`, `v/<volume>`, `r/<whose>/<digest>` (tokens that are to be given back), `meta`, and `registration`.
/// Values are JSON: self-describing, so that older and newer agents can read each other's.
#[derive(Clone)]
pub struct Store(Option<Arc<OnDisk>>);

/// One that does not keep the database open.
#[derive(Clone, Default)]
pub struct WeakStore(Weak<OnDisk>);

impl WeakStore {
    /// `None` once nobody has it open, and for one that stores nothing.
    pub fn upgrade(&self) -> Option<Store> {
        Some(Store(Some(self.0.upgrade()?)))
    }
}

impl std::fmt::Debug for WeakStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WeakStore")
    }
}

struct OnDisk {
    path: PathBuf,
    content: Mutex<Content>,
    /// Why something could not be written; `None` once everything is.
    failure: watch::Sender<Option<String>>,
}

struct Content {
    /// `None` when it could not be opened again. The database is held so that its background work goes on.
    open: Option<(Keyspace, Database)>,
    /// What the disk has not taken, by key; without a value it is to be removed. One entry a key, so at most what
    /// is stored of the allocations of this node.
    unwritten: BTreeMap<String, Option<Vec<u8>>>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Store({})", if self.0.is_some() { "on disk" } else { "disabled" })
    }
}

/// Tries again whenever something could not be written. Runs until it is dropped.
pub async fn mend(store: Store) {
    let mut failure = store.failure();
    while failure.wait_for(Option::is_some).await.is_ok() {
        tokio::time::sleep(RETRY_EVERY).await;
        let store = store.clone();
        if let Err(error) = tokio::task::spawn_blocking(move || store.retry()).await {
            tracing::error!(%error, "local state was not opened again");
        }
    }
}

fn open(path: &Path) -> Result<(Keyspace, Database), fjall::Error> {
    let database = Database::builder(path).worker_threads(1).cache_size(1024 * 1024).open()?;
    Ok((database.keyspace("node", KeyspaceCreateOptions::default)?, database))
}

impl OnDisk {
    fn lock(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, error: &fjall::Error) {
        let why = error.to_string();
        tracing::error!(why, "local state cannot be written: this node starts no tasks until it can");
        // Later reasons follow from the first: the database takes nothing more.
        self.failure.send_if_modified(|failure| failure.is_none() && failure.replace(why).is_none());
    }
}

impl Content {
    fn try_write(&self, key: &str, value: Option<&[u8]>) -> Result<(), fjall::Error> {
        let (keyspace, _) = self.open.as_ref().ok_or(fjall::Error::Poisoned)?;
        match value {
            Some(value) => keyspace.insert(key.as_bytes(), value),
            None => keyspace.remove(key.as_bytes()),
        }
    }
}

impl Store {
    /// # Errors
    /// When the database cannot be opened, for example because another agent holds it.
    pub fn open(path: &Path) -> Result<Store, StoreError> {
        let content = Content { open: Some(open(path)?), unwritten: BTreeMap::new() };
        let (path, content, failure) = (path.to_path_buf(), Mutex::new(content), watch::Sender::new(None));
        Ok(Store(Some(Arc::new(OnDisk { path, content, failure }))))
    }

    pub fn disabled() -> Store {
        Store(None)
    }

    /// Why something could not be written, as long as it is not. Never anything where nothing is stored.
    pub fn failure(&self) -> watch::Receiver<Option<String>> {
        self.0.as_ref().map_or_else(|| watch::channel(None).1, |disk| disk.failure.subscribe())
    }

    /// As [`Store::failure`], at this moment.
    pub fn failing(&self) -> Option<String> {
        self.0.as_ref()?.failure.borrow().clone()
    }

    /// Opens the database again, because one that has failed takes nothing more, and writes what waits.
    pub fn downgrade(&self) -> WeakStore {
        WeakStore(self.0.as_ref().map(Arc::downgrade).unwrap_or_default())
    }

    fn retry(&self) {
        let Some(disk) = &self.0 else { return };
        let mut content = disk.lock();
        content.open = None;
        match open(&disk.path) {
            Ok(opened) => content.open = Some(opened),
            Err(error) => return disk.failed(&error),
        }
        while let Some((key, value)) = content.unwritten.first_key_value() {
            if let Err(error) = content.try_write(key, value.as_deref()) {
                return disk.failed(&error);
            }
            content.unwritten.pop_first();
        }
        disk.failure.send_replace(None);
        tracing::info!("local state can be written again");
    }

    /// The keyspace to read from.
    fn keyspace(&self) -> Option<Keyspace> {
        Some(self.0.as_ref()?.lock().open.as_ref()?.0.clone())
    }

    /// A failed write ends no task.
    fn write(&self, key: String, value: Option<Vec<u8>>) {
        let Some(disk) = &self.0 else { return };
        let mut content = disk.lock();
        if content.unwritten.is_empty() {
            match content.try_write(&key, value.as_deref()) {
                Ok(()) => return,
                Err(error) => disk.failed(&error),
            }
        }
        content.unwritten.insert(key, value);
    }

    /// What stands under a key, also if it is not written yet.
    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(disk) = &self.0 else { return Ok(None) };
        let content = disk.lock();
        if let Some(unwritten) = content.unwritten.get(key) {
            return Ok(unwritten.clone());
        }
        let Some((keyspace, _)) = &content.open else { return Ok(None) };
        Ok(keyspace.get(key)?.map(|bytes| bytes.to_vec()))
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
        self.load_or_nothing(&hook_key(alloc_id, task, hook))
    }

    fn load_or_nothing<T: DeserializeOwned + Default>(&self, key: &str) -> T {
        let found = self.get(key).and_then(|bytes| parse_some(key, bytes.as_deref()));
        let found = found.unwrap_or_else(|error| {
            tracing::error!(key, %error, "an entry of the local state cannot be read");
            None
        });
        found.unwrap_or_default()
    }

    pub fn put_services(&self, alloc_id: &str, registered: &Registered) {
        self.put(format!("s/{alloc_id}"), registered);
    }

    /// The services that an earlier agent has registered. What cannot be read counts as nothing: servers forget the
    /// services of an allocation with it.
    pub fn load_services(&self, alloc_id: &str) -> Registered {
        self.load_or_nothing(&format!("s/{alloc_id}"))
    }

    pub fn put_checks(&self, alloc_id: &str, checks: &AllocChecks) {
        self.put(format!("c/{alloc_id}"), checks);
    }

    /// How checks went for an earlier agent. What cannot be read counts as nothing: they run again.
    pub fn load_checks(&self, alloc_id: &str) -> AllocChecks {
        self.load_or_nothing(&format!("c/{alloc_id}"))
    }

    pub fn put_meta(&self, dynamic: &Dynamic) {
        self.put(META.to_string(), dynamic);
    }

    /// # Errors
    /// When it cannot be read.
    pub fn load_meta(&self) -> Result<Dynamic, StoreError> {
        Ok(parse_some(META, self.get(META)?.as_deref())?.unwrap_or_default())
    }

    pub fn put_registration(&self, registration: &Registration) {
        self.put(REGISTRATION.to_string(), registration);
    }

    /// # Errors
    /// When it cannot be read.
    pub fn load_registration(&self) -> Result<Registration, StoreError> {
        Ok(parse_some(REGISTRATION, self.get(REGISTRATION)?.as_deref())?.unwrap_or_default())
    }

    pub fn put_volume(&self, volume: &ClientHostVolumeRequest) {
        self.put(format!("v/{}", volume.id), volume);
    }

    pub fn forget_volume(&self, id: &str) {
        self.write(format!("v/{id}"), None);
    }

    /// The volumes that an earlier agent has made. What cannot be read is reported, and not offered.
    pub fn load_volumes(&self) -> Vec<ClientHostVolumeRequest> {
        let Some(keyspace) = self.keyspace() else { return Vec::new() };
        let found = read_all(&keyspace, "v/").unwrap_or_else(|error| {
            tracing::error!(%error, "the volumes of the local state cannot be read");
            Vec::new()
        });
        found.into_iter().map(|(_, volume)| volume).collect()
    }

    /// `key` names whose token it is.
    pub(crate) fn put_returned(&self, key: &str, token: &ReturnedToken) {
        self.put(format!("r/{key}"), token);
    }

    pub(crate) fn forget_returned(&self, key: &str) {
        self.write(format!("r/{key}"), None);
    }

    /// Tokens that an earlier agent has not given back, by key. What cannot be read is reported, and left to expire.
    pub(crate) fn load_returned(&self, of: &str) -> BTreeMap<String, ReturnedToken> {
        let Some(keyspace) = self.keyspace() else { return BTreeMap::new() };
        let prefix = format!("r/{of}/");
        let found = read_all(&keyspace, &prefix).unwrap_or_else(|error| {
            tracing::error!(%error, "the tokens of the local state cannot be read");
            Vec::new()
        });
        found.into_iter().map(|(digest, token)| (format!("{of}/{digest}"), token)).collect()
    }

    fn put(&self, key: String, value: &impl Serialize) {
        let bytes = serde_json::to_vec(value).expect("documents have string keys and no failing parts");
        self.write(key, Some(bytes));
    }

    pub fn forget(&self, alloc_id: &str) {
        let mut keys: Vec<String> =
            ["a", "d", "k", "s", "c"].iter().map(|kind| format!("{kind}/{alloc_id}")).collect();
        let prefixes = ["t", "h"].map(|kind| format!("{kind}/{alloc_id}/"));
        if let Some(keyspace) = self.keyspace() {
            let stored = prefixes.iter().flat_map(|prefix| keyspace.prefix(prefix));
            let stored = stored.filter_map(|entry| entry.key().ok());
            keys.extend(stored.map(|key| String::from_utf8_lossy(&key).into_owned()));
        }
        if let Some(disk) = &self.0 {
            let content = disk.lock();
            let waiting = content.unwritten.keys().filter(|key| prefixes.iter().any(|p| key.starts_with(p)));
            keys.extend(waiting.cloned());
        }
        for key in keys {
            self.write(key, None);
        }
    }

    /// Of the hooks of an allocation and its tasks, as `<task, or nothing>/<hook>`, whether they are done.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn load_hooks_done(&self, alloc_id: &str) -> Result<BTreeMap<String, bool>, StoreError> {
        let Some(keyspace) = self.keyspace() else { return Ok(BTreeMap::new()) };
        let found = read_all::<HookState>(&keyspace, &format!("h/{alloc_id}/"))?;
        Ok(found.into_iter().map(|(hook, state)| (hook, state.done)).collect())
    }

    /// All allocations an earlier agent left.
    pub fn load(&self) -> Result<Vec<StoredAlloc>, StoreError> {
        let Some(keyspace) = &self.keyspace() else { return Ok(Vec::new()) };
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
    use std::process::Command;

    use rustix::process::{Resource, Rlimit, setrlimit};

    use super::*;

    /// Names the directory of the store in the process started below.
    const FULL_DISK: &str = "NODE_TEST_FULL_DISK";

    /// Not a test of its own: what [`a_full_disk_delays_what_is_stored_and_loses_nothing`] runs where it harms nobody.
    #[test]
    fn on_a_full_disk() {
        let Ok(dir) = std::env::var(FULL_DISK) else { return };
        let store = Store::open(Path::new(&dir)).unwrap();
        let alloc = |id: &str| Allocation { id: id.into(), ..Allocation::default() };
        let room = |current| setrlimit(Resource::Fsize, Rlimit { current, maximum: None }).unwrap();
        let state = HookState { done: true, ..HookState::default() };
        store.put_alloc(&alloc("before"));
        store.put_alloc(&alloc("forgotten"));
        let mut failure = store.failure();
        assert_eq!(*failure.borrow_and_update(), None);

        room(Some(0));
        store.put_alloc(&alloc("while"));
        store.put_hook("while", Some("t"), "h", &state);
        store.forget("forgotten");
        assert!(failure.borrow_and_update().is_some(), "somebody notices");
        assert_eq!(store.load_hook("while", Some("t"), "h"), state, "it is there, if not on the disk");
        store.retry();
        assert!(failure.borrow_and_update().is_some(), "the disk is still full");

        room(None);
        store.retry();
        assert_eq!(*failure.borrow_and_update(), None);
        store.put_alloc(&alloc("after"));
        store.put_alloc(&alloc("gone"));
        store.forget("gone");
    }

    #[test]
    fn a_full_disk_delays_what_is_stored_and_loses_nothing() {
        let dir = tempfile::tempdir().unwrap();
        // A file that must not grow is an error then, and no signal.
        let child = Command::new("/bin/sh")
            .args(["-c", "trap '' XFSZ; exec \"$0\" --exact store::tests::on_a_full_disk --nocapture"])
            .arg(std::env::current_exe().unwrap())
            .env(FULL_DISK, dir.path())
            .output()
            .unwrap();
        assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));
        let store = Store::open(dir.path()).unwrap();
        let mut found: Vec<String> =
            store.load().unwrap().into_iter().map(|stored| stored.alloc.id).collect();
        found.sort();
        assert_eq!(found, ["after", "before", "while"]);
        assert!(store.load_hook("while", Some("t"), "h").done);
    }

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
