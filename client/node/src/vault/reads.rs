//! What a template reads from Vault: read once, then again when its lease, its certificate or the token ends.

use std::sync::Arc;
use std::time::Duration;

use base::Rng;
use model::document::Allocation;
use reqwest::Method;
use serde_json::{Value, json};
use template::{Fetched, VaultKind, VaultRead};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::client::{Call, VaultError};
use super::{DEFAULT, Vault};
use crate::clock::{self, jitter};
use crate::context::Context;
use crate::task::parts::TaskParts;
use crate::templates::{Retry, TemplateSettings};

/// Between two tries while Vault is away, at most.
const UNREACHED_PAUSE_MAX: Duration = Duration::from_secs(30);

/// A lease is not renewed more often.
const RENEW_MIN: Duration = Duration::from_millis(500);

/// With what a task reads.
#[derive(Clone, Debug)]
pub struct Access {
    vault: Arc<Vault>,
    namespace: String,
    token: watch::Receiver<String>,
}

impl Access {
    /// That of a task with a `vault` block, on a node with that Vault.
    pub(crate) fn of(context: &Context, alloc: &Allocation, task: &str) -> Option<Access> {
        let parts = TaskParts::find(alloc, task)?;
        let block = parts.task.vault.as_ref()?;
        let vault = Arc::clone(context.vaults.get(cluster(&block.cluster))?);
        let namespace = vault.namespace(block.namespace.as_deref()).to_string();
        let token = vault.token_of(&alloc.id, task);
        Some(Access { vault, namespace, token })
    }
}

/// The name of a Vault, as jobs may leave it out.
pub(crate) fn cluster(given: &str) -> &str {
    if given.is_empty() { DEFAULT } else { given }
}

/// A secret, and what is known of its end.
struct Secret {
    shown: Value,
    lease_id: String,
    lease: Duration,
    renewable: bool,
    /// When it has to be read again, whatever it is.
    again: Option<Duration>,
}

/// Keeps an answer fresh.
pub(crate) struct Follower {
    access: Access,
    read: VaultRead,
    settings: TemplateSettings,
    rng: Rng,
    /// Where the path really is, once that is known.
    path: Option<String>,
}

impl Follower {
    pub(crate) fn new(access: Access, read: VaultRead, settings: TemplateSettings, seed: u64) -> Follower {
        let rng = Rng::stream(seed, &format!("{read}"));
        Follower { access, read, settings, rng, path: None }
    }

    /// Until it is aborted.
    pub(crate) async fn run(mut self, answer: watch::Sender<Fetched>) {
        let (mut refusals, mut unreached, mut absent) = (0_u32, 0_u32, 0_u32);
        let retry = self.settings.vault_retry;
        loop {
            let Some(token) = self.current().await else { return };
            match self.obtain(&token).await {
                Ok(Some(secret)) => {
                    (refusals, unreached, absent) = (0, 0, 0);
                    publish(&answer, Fetched::There(secret.shown.clone()));
                    self.hold(secret, &token).await;
                }
                Ok(None) => {
                    absent += 1;
                    publish(&answer, Fetched::Absent);
                    self.pause(doubled(retry, absent).min(retry.max_backoff)).await;
                }
                Err(error @ VaultError::Refused { .. }) => {
                    refusals += 1;
                    tracing::warn!(read = %self.read, %error, refusals, "a template was refused what it reads");
                    if retry.attempts != 0 && refusals > retry.attempts {
                        publish(&answer, Fetched::Failed(error.to_string()));
                    }
                    self.pause(doubled(retry, refusals).min(retry.max_backoff)).await;
                }
                Err(error) => {
                    unreached += 1;
                    tracing::debug!(read = %self.read, %error, "what a template reads was not found out");
                    self.pause(doubled(retry, unreached).min(UNREACHED_PAUSE_MAX)).await;
                }
            }
        }
    }

    /// The token, once there is one.
    async fn current(&mut self) -> Option<String> {
        let token = self.access.token.wait_for(|token| !token.is_empty()).await.ok()?.clone();
        self.access.token.mark_unchanged();
        Some(token)
    }

    /// A new token may read more, and what was leased by the old one ends with it.
    async fn pause(&mut self, at_most: Duration) -> bool {
        match timeout(at_most, self.access.token.changed()).await {
            Ok(Ok(())) => true,
            // The task has ended: the follower is about to be dropped.
            Ok(Err(_)) => std::future::pending().await,
            Err(_) => false,
        }
    }

    /// Returns when it has to be read again.
    async fn hold(&mut self, secret: Secret, token: &str) {
        let lease = secret.lease;
        if !secret.renewable || secret.lease_id.is_empty() {
            let known = secret.again.or_else(|| (!secret.lease_id.is_empty()).then_some(lease));
            let whole = known.unwrap_or(self.settings.vault_lease);
            // Not all of it, and not at the same time as the others.
            let wait = match secret.again.is_some() && self.read.kind != VaultKind::Certificate {
                true => whole,
                false => whole.mul_f64(0.85) + jitter(&mut self.rng, whole / 10),
            };
            self.pause(wait.max(Duration::from_millis(50))).await;
            return;
        }
        let (mut left, mut ends, mut failures) = (lease, Instant::now() + lease, 0);
        loop {
            let wait = match failures {
                0 => left.mul_f64(0.6) + jitter(&mut self.rng, left / 10),
                _ => doubled(self.settings.vault_retry, failures).min(UNREACHED_PAUSE_MAX),
            };
            if self.pause(wait.max(RENEW_MIN)).await {
                return;
            }
            let (client, namespace) = (&self.access.vault.client, &self.access.namespace);
            match client.renew_lease(namespace, token, &secret.lease_id, lease).await {
                // It is at its end: another one is read while this one is still good.
                Ok(renewed) if renewed < lease / 10 || renewed.is_zero() => return,
                Ok(renewed) => (left, ends, failures) = (renewed, Instant::now() + renewed, 0),
                Err(VaultError::Refused { status, text }) => {
                    tracing::info!(read = %self.read, status, text, "a lease is not renewed: it is read anew");
                    return;
                }
                Err(error) => {
                    failures += 1;
                    tracing::debug!(read = %self.read, %error, "a lease was not renewed yet");
                    if Instant::now() >= ends {
                        return;
                    }
                }
            }
        }
    }

    async fn obtain(&mut self, token: &str) -> Result<Option<Secret>, VaultError> {
        let (path, query) = self.place(token).await?;
        let (mut query, is_list) = (query, self.read.kind == VaultKind::List);
        if is_list {
            query.push(("list".to_string(), "true".to_string()));
        }
        let is_write = matches!(self.read.kind, VaultKind::Write | VaultKind::Certificate);
        let body = json!(self.read.data);
        let call = Call {
            method: if is_write { Method::PUT } else { Method::GET },
            path: &path,
            query: &query,
            body: is_write.then_some(&body),
            namespace: &self.access.namespace,
            token,
        };
        let found = self.access.vault.client.call(call).await?;
        Ok(found.map(|answer| secret(self.read.kind, &answer)))
    }

    /// Where a path really is, with what stands behind its question mark. Stores of version 2 have `data` and `metadata` in
    /// their paths, which templates may leave out.
    async fn place(&mut self, token: &str) -> Result<(String, Vec<(String, String)>), VaultError> {
        let (path, query) = self.read.path.split_once('?').unwrap_or((&self.read.path, ""));
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let query = pairs.map(|(key, value)| (key.to_string(), value.to_string())).collect();
        let inside = match self.read.kind {
            VaultKind::Read | VaultKind::Write => "data",
            VaultKind::List => "metadata",
            VaultKind::Certificate => return Ok((path.to_string(), query)),
        };
        if self.path.is_none() {
            let mounts = format!("sys/internal/ui/mounts/{path}");
            let call = Call {
                method: Method::GET,
                path: &mounts,
                query: &[],
                body: None,
                namespace: &self.access.namespace,
                token,
            };
            let mount = match self.access.vault.client.call(call).await {
                Ok(found) => found.unwrap_or_default()["data"].take(),
                Err(error @ VaultError::Unreached(_)) => return Err(error),
                // Whoever may not know what is there says it himself.
                Err(VaultError::Refused { .. }) => Value::Null,
            };
            self.path = Some(in_store(path, &mount, inside));
        }
        Ok((self.path.clone().unwrap_or_default(), query))
    }
}

/// The path below the mount, with what stores of version 2 want in it.
fn in_store(path: &str, mount: &Value, inside: &str) -> String {
    let at = mount["path"].as_str().unwrap_or_default().trim_matches('/');
    let is_second = mount["type"] == "kv" && mount["options"]["version"] == "2";
    let below = path.strip_prefix(at).map(|rest| rest.trim_start_matches('/'));
    match below {
        Some(rest) if is_second && !at.is_empty() => {
            let first = rest.split('/').next().unwrap_or_default();
            match first {
                "data" | "metadata" | "delete" | "undelete" | "destroy" => path.to_string(),
                _ => format!("{at}/{inside}/{rest}").trim_end_matches('/').to_string(),
            }
        }
        _ => path.to_string(),
    }
}

fn secret(kind: VaultKind, answer: &Value) -> Secret {
    let seconds = |value: &Value| {
        let text = value.as_str().and_then(|text| text.parse().ok());
        value.as_u64().or(text).map(Duration::from_secs)
    };
    let data = &answer["data"];
    let mut again = None;
    let shown = match kind {
        VaultKind::List => data["keys"].as_array().cloned().unwrap_or_default().into(),
        VaultKind::Certificate => {
            let now = u64::try_from(clock::now().secs()).unwrap_or(0);
            let ends = data["expiration"].as_u64();
            again = ends.map(|ends| Duration::from_secs(ends.saturating_sub(now)));
            certificate(data)
        }
        VaultKind::Read | VaultKind::Write => {
            // A password that Vault changes by a plan is read when it has changed.
            if !data["rotation_period"].is_null() || !data["rotation_schedule"].is_null() {
                again = seconds(&data["ttl"]).map(|ttl| ttl + Duration::from_secs(1));
            }
            json!({
                "LeaseID": answer["lease_id"].as_str().unwrap_or_default(),
                "LeaseDuration": answer["lease_duration"].as_u64().unwrap_or(0),
                "Renewable": answer["renewable"] == true,
                "Data": data,
                "Warnings": answer["warnings"],
                "Auth": auth(&answer["auth"]),
            })
        }
    };
    Secret {
        shown,
        lease_id: answer["lease_id"].as_str().unwrap_or_default().to_string(),
        lease: seconds(&answer["lease_duration"]).unwrap_or_default(),
        renewable: answer["renewable"] == true,
        again,
    }
}

/// A token that was asked for, as templates name its fields.
fn auth(auth: &Value) -> Value {
    if auth.is_null() {
        return Value::Null;
    }
    json!({
        "ClientToken": auth["client_token"], "Accessor": auth["accessor"], "Policies": auth["policies"],
        "Metadata": auth["metadata"], "LeaseDuration": auth["lease_duration"], "Renewable": auth["renewable"],
    })
}

/// As `pkiCert` shows it.
fn certificate(data: &Value) -> Value {
    let text = |name: &str| data[name].as_str().unwrap_or_default().trim().to_string();
    let chain = data["ca_chain"].as_array().cloned().unwrap_or_default();
    let mut shown = json!({
        "Cert": text("certificate"), "Key": text("private_key"), "CA": text("issuing_ca"), "CAChain": chain,
    });
    shown["Data"] = shown.clone();
    shown
}

fn publish(answer: &watch::Sender<Fetched>, fetched: Fetched) {
    answer.send_if_modified(|known| {
        let differs = *known != fetched;
        if differs {
            *known = fetched;
        }
        differs
    });
}

/// Before the next try after so many that failed.
fn doubled(retry: Retry, failures: u32) -> Duration {
    retry.backoff.saturating_mul(1 << failures.saturating_sub(1).min(16))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_of_version_2_have_more_in_their_paths() {
        let second = json!({"path": "kv/team/", "type": "kv", "options": {"version": "2"}});
        let first = json!({"path": "old/", "type": "kv", "options": {"version": "1"}});
        for (path, mount, inside, expected) in [
            ("kv/team/app", &second, "data", "kv/team/data/app"),
            ("kv/team/data/app", &second, "data", "kv/team/data/app"),
            ("kv/team", &second, "metadata", "kv/team/metadata"),
            ("old/app", &first, "data", "old/app"),
            ("old/app", &Value::Null, "data", "old/app"),
        ] {
            assert_eq!(in_store(path, mount, inside), expected, "{path}");
        }
    }

    #[test]
    fn what_vault_changes_by_a_plan_is_read_when_it_has_changed() {
        let answer = json!({"data": {"rotation_period": 60, "ttl": 7, "password": "x"}});
        assert_eq!(secret(VaultKind::Read, &answer).again, Some(Duration::from_secs(8)));
        let plain = json!({"data": {"ttl": 7}, "lease_duration": 2_764_800});
        assert_eq!(secret(VaultKind::Read, &plain).again, None);
    }
}
