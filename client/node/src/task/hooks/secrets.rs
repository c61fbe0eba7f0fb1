//! Fetches what the `secret` blocks of the task name, for its environment and the configuration of its driver.
//!
//! Nothing of it is stored: each start fetches anew.

use std::collections::BTreeMap;

use model::document::{Allocation, Secret};
use serde_json::Value;
use template::{Dependency, Fetched, Place, VaultKind, VaultRead};

use super::{StartRequest, TaskContext, TaskHook, identities, parts};
use crate::hook::{HookError, HookFuture, HookState};
use crate::secret_plugins::{self, Fetch};
use crate::task::environment::Environment;
use crate::task::events;
use crate::templates::watches::{Reader, Subscription, Watches};
use crate::vault::reads::Access;

const NAME: &str = "secrets";

#[derive(Debug)]
pub struct Secrets;

impl TaskHook for Secrets {
    fn name(&self) -> &'static str {
        NAME
    }

    /// Never done: secrets are not stored, and may have changed.
    fn prestart<'a>(
        &'a mut self,
        task: &'a TaskContext,
        start: &'a mut StartRequest,
        _: &'a mut HookState,
    ) -> HookFuture<'a> {
        Box::pin(async move {
            let alloc = start.alloc.clone();
            let parts = parts(&alloc, task, NAME)?;
            let mut found = BTreeMap::new();
            for secret in &parts.task.secrets {
                let named =
                    |why: String| HookError::recoverable(NAME, format!("secret {:?}: {why}", secret.name));
                let items = fetch(task, &alloc, secret, &start.environment).await.map_err(named)?;
                found.extend(
                    items.into_iter().map(|(key, value)| (format!("secret.{}.{key}", secret.name), value)),
                );
            }
            if !found.is_empty() {
                start.environment.add_secrets(found, parts.task);
            }
            Ok(())
        })
    }
}

async fn fetch(
    task: &TaskContext,
    alloc: &Allocation,
    secret: &Secret,
    env: &Environment,
) -> Result<BTreeMap<String, String>, String> {
    let path = env.replace(&secret.path);
    match secret.provider.as_str() {
        "nomad" => {
            let namespace = namespace(secret, env)?.unwrap_or_else(|| alloc.namespace.clone());
            of_variable(task, alloc, path, namespace).await
        }
        "vault" => of_vault(task, alloc, path, secret).await,
        provider => {
            let given = secret.env.iter().map(|(name, value)| (name.clone(), env.replace(value)));
            let mut all: BTreeMap<String, String> = given.collect();
            all.insert("NOMAD_NAMESPACE".to_string(), alloc.namespace.clone());
            all.insert("NOMAD_JOB_ID".to_string(), alloc.job_id.clone());
            let fetch = Fetch { provider, path: &path, env: all };
            let fetched = secret_plugins::fetch(&task.context.settings.common_plugin_dir, &fetch).await;
            fetched.map_err(|why| format!("provider {provider:?}: {why}"))
        }
    }
}

fn namespace(secret: &Secret, env: &Environment) -> Result<Option<String>, String> {
    if let Some(key) = secret.config.keys().find(|key| *key != "namespace") {
        return Err(format!("config: unexpected key {key:?}; the provider nomad has namespace"));
    }
    match secret.config.get("namespace") {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(env.replace(text)).filter(|text| !text.is_empty())),
        Some(other) => Err(format!("config: namespace = {other}: expected a text")),
    }
}

/// The items of a variable. One that does not exist yet is waited for, with the query that templates make for it.
async fn of_variable(
    task: &TaskContext,
    alloc: &Allocation,
    path: String,
    namespace: String,
) -> Result<BTreeMap<String, String>, String> {
    let dependency = Dependency::Variable { path, place: Place::default() };
    let token = identities::default_token(task, alloc).await?;
    let reader = Reader { namespace, ..Reader::of(alloc, &task.name) };
    let read = Watches::subscribe(&task.context, &reader, &dependency, &alloc.id, &token)?;
    awaited(task, &dependency, read, items).await
}

/// The pairs of a secret in one of Vault's key-value stores.
async fn of_vault(
    task: &TaskContext,
    alloc: &Allocation,
    path: String,
    secret: &Secret,
) -> Result<BTreeMap<String, String>, String> {
    if let Some(key) = secret.config.keys().find(|key| *key != "engine") {
        return Err(format!("config: unexpected key {key:?}; the provider vault has engine"));
    }
    let is_second = match secret.config.get("engine").map(|engine| engine.as_str().unwrap_or_default()) {
        None => None,
        Some("kv") => Some(false),
        Some("kv_v2") => Some(true),
        Some(_) => return Err("config: engine: expected kv or kv_v2".to_string()),
    };
    let access = Access::of(&task.context, alloc, &task.name).ok_or("the task has no vault block")?;
    let read =
        VaultRead { kind: VaultKind::Read, path: path.trim_matches('/').to_string(), data: BTreeMap::new() };
    let reader = Reader::of(alloc, &task.name);
    let subscription = Watches::subscribe_vault(&task.context, &reader, access, &read, &alloc.id)?;
    awaited(task, &Dependency::Vault(read), subscription, |found| pairs(found, is_second)).await
}

/// `is_second`: whether the store has versions; who does not say is believed what the answer looks like.
fn pairs(found: &Value, is_second: Option<bool>) -> Result<BTreeMap<String, String>, String> {
    let data = &found["Data"];
    let looks_so = data["data"].is_object() && data["metadata"].is_object();
    let pairs = if is_second.unwrap_or(looks_so) { &data["data"] } else { data };
    let pairs = pairs.as_object().ok_or("it is no secret of a key-value store, or of another engine")?;
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_string);
    Ok(pairs.iter().map(|(key, value)| (key.clone(), text(value))).collect())
}

/// What is read, once it is there.
async fn awaited(
    task: &TaskContext,
    dependency: &Dependency,
    mut read: Subscription,
    shown: impl Fn(&Value) -> Result<BTreeMap<String, String>, String>,
) -> Result<BTreeMap<String, String>, String> {
    let mut is_reported = false;
    loop {
        match &*read.answer.borrow_and_update() {
            Fetched::There(found) => return shown(found),
            Fetched::Failed(why) => return Err(format!("{dependency}: {why}")),
            Fetched::Absent if !std::mem::replace(&mut is_reported, true) => {
                task.tasks.add_event(&task.name, events::template(&format!("Missing: {dependency}")));
            }
            Fetched::Absent | Fetched::Pending => {}
        }
        read.answer.changed().await.map_err(|_| "this node has no servers")?;
    }
}

fn items(variable: &Value) -> Result<BTreeMap<String, String>, String> {
    let items = variable["Items"].as_object().ok_or("the servers sent a variable without items")?;
    let text = |value: &Value| value.as_str().map(str::to_string);
    Ok(items.iter().filter_map(|(key, value)| Some((key.clone(), text(value)?))).collect())
}
