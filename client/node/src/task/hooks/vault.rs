//! A token of Vault for a task with a `vault` block: got by logging in with its identity, given to the task, renewed, replaced
//! when it cannot be renewed, and revoked when the task has ended for good.

use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::Rng;
use model::document::{Allocation, Vault as Block, WorkloadIdentity};
use nix::sys::signal::Signal;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};
use tokio_util::task::AbortOnDropHandle;

use super::identities::{self, Reader, Refusal};
use super::{StartRequest, TaskContext, TaskHook, parts};
use crate::clock::jitter;
use crate::hook::{HookError, HookFuture, HookState, ready};
use crate::task::events;
use crate::task::requests::TaskRequest;
use crate::vault::reads::cluster;
use crate::vault::{Auth, Vault, VaultError};

const NAME: &str = "vault";

const FILE: &str = "vault_token";

/// Keys of what is remembered.
const TOKEN: &str = "token";
const RENEWABLE: &str = "renewable";

/// Between two tries to log in or to renew: it doubles with each.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(180);

/// A token is not renewed more often.
const RENEW_MIN: Duration = Duration::from_millis(500);

/// A token that is held.
#[derive(Clone, Debug)]
struct Held {
    auth: Auth,
    /// When it ends unless it is renewed; none when nobody knows.
    ends: Option<Instant>,
}

impl Held {
    fn new(auth: Auth) -> Held {
        let ends = (!auth.lease.is_zero()).then(|| Instant::now() + auth.lease);
        Held { auth, ends }
    }

    fn is_good(&self) -> bool {
        self.ends.is_none_or(|ends| ends > Instant::now())
    }
}

type SharedToken = Arc<Mutex<Option<Held>>>;

fn lock(held: &SharedToken) -> MutexGuard<'_, Option<Held>> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug, Default)]
pub struct VaultToken {
    /// The renewal changes it while the task runs.
    held: SharedToken,
    renewing: Option<AbortOnDropHandle<()>>,
}

/// What a login needs to know of the job.
#[derive(Clone, Debug)]
struct Login {
    vault: Arc<Vault>,
    identity: WorkloadIdentity,
    block: Block,
}

impl Login {
    /// # Errors
    /// The node has no such Vault, or the job no identity for it.
    fn of(task: &TaskContext, alloc: &Allocation) -> Result<Option<Login>, HookError> {
        let parts = parts(alloc, task, NAME)?;
        let Some(block) = parts.task.vault.clone() else { return Ok(None) };
        let name = cluster(&block.cluster);
        let Some(vault) = task.context.vaults.get(name).cloned() else {
            return Err(HookError::fatal(NAME, format!("this node has no Vault \"{name}\"")));
        };
        let wanted = format!("vault_{name}");
        let Some(identity) = parts.task.identities.iter().find(|own| own.name == wanted).cloned() else {
            let text = format!(
                "the task has no identity \"{wanted}\": write one into the job, or vault.default_identity into the \
                 configuration of the servers"
            );
            return Err(HookError::fatal(NAME, text));
        };
        Ok(Some(Login { vault, identity, block }))
    }

    fn namespace(&self) -> &str {
        self.vault.namespace(self.block.namespace.as_deref())
    }

    /// Tries again while the servers or Vault are not reached, and says so once for each reason.
    async fn log_in(&self, task: &TaskContext, alloc: &Allocation) -> Result<Auth, HookError> {
        let mut rng = Rng::stream(task.context.seed, &format!("{}/{}/{NAME}", alloc.id, task.name));
        let (mut pause, mut said) = (PAUSE, String::new());
        loop {
            let why = match identities::ask(task, alloc, &[&self.identity]).await {
                Ok(signed) => {
                    let jwt = &signed[&self.identity.name];
                    match self.vault.login(self.namespace(), &self.block.role, jwt).await {
                        Ok(auth) => return Ok(auth),
                        Err(error @ VaultError::Refused { .. }) => {
                            let text = format!("Vault: failed to derive vault token: {error}");
                            return Err(HookError::kills(NAME, text));
                        }
                        Err(error) => error.to_string(),
                    }
                }
                Err(Refusal::Rejected(why)) => return Err(HookError::recoverable(NAME, why)),
                Err(Refusal::Unanswered(why)) => why,
            };
            if why != said {
                tracing::warn!(alloc = alloc.id, task = task.name, why, "no token of Vault; asking again");
                task.tasks.add_event(
                    &task.name,
                    events::hook_message(&format!("Vault: no token yet, asking again: {why}")),
                );
                said = why;
            }
            sleep(pause + jitter(&mut rng, pause / 4)).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    fn writes_file(&self) -> bool {
        self.block.disable_file != Some(true)
    }
}

impl TaskHook for VaultToken {
    fn name(&self) -> &'static str {
        NAME
    }

    /// Never done: the file may be gone, and the token another one. A token is kept over restarts of the task.
    fn prestart<'a>(
        &'a mut self,
        task: &'a TaskContext,
        start: &'a mut StartRequest,
        state: &'a mut HookState,
    ) -> HookFuture<'a> {
        Box::pin(async move {
            let alloc = start.alloc.clone();
            let Some(login) = Login::of(task, &alloc)? else {
                state.env.clear();
                return Ok(());
            };
            let held = lock(&self.held).clone().filter(Held::is_good).or_else(|| kept(state));
            let held = match held {
                Some(held) => held,
                None => Held::new(login.log_in(task, &alloc).await?),
            };
            let token = held.auth.token.clone();
            let parts = parts(&alloc, task, NAME)?;
            let reader = Reader::of(task, parts.task, start);
            if login.writes_file() {
                write(task, &reader, &token).map_err(|error| HookError::fatal(NAME, error))?;
            }
            remember(state, &held.auth, &reader);
            state.env.clear();
            if login.block.env != Some(false) {
                state.env.insert("VAULT_TOKEN".to_string(), token);
                if !login.namespace().is_empty() {
                    state.env.insert("VAULT_NAMESPACE".to_string(), login.namespace().to_string());
                }
                // The job may know a better way to it.
                if !start.environment.variables.contains_key("VAULT_ADDR") {
                    state.env.insert("VAULT_ADDR".to_string(), login.vault.address.clone());
                }
            }
            self.keep(task, &login, held, reader, false);
            Ok(())
        })
    }

    fn restored<'a>(&'a mut self, task: &'a TaskContext, state: &'a mut HookState) -> HookFuture<'a> {
        let login = match Login::of(task, &task.alloc()) {
            Ok(login) => login,
            Err(error) => return ready(Err(error)),
        };
        if let (Some(login), Some(held)) = (login, kept(state)) {
            self.keep(task, &login, held, Reader::read(state), true);
        }
        ready(Ok(()))
    }

    fn stop<'a>(&'a mut self, task: &'a TaskContext) -> HookFuture<'a> {
        self.renewing = None;
        let alloc = task.alloc();
        if let Ok(Some(login)) = Login::of(task, &alloc) {
            let token = lock(&self.held).take().map(|held| held.auth.token);
            login.vault.give_back(&alloc.id, &task.name, login.namespace(), token);
        }
        ready(Ok(()))
    }
}

impl VaultToken {
    fn keep(&mut self, task: &TaskContext, login: &Login, held: Held, reader: Reader, restored: bool) {
        let renews = held.auth.renewable && login.block.allow_token_expiration != Some(true);
        login.vault.put_token(&task.alloc.borrow().id, &task.name, &held.auth.token);
        *lock(&self.held) = Some(held);
        let is_renewed = self.renewing.as_ref().is_some_and(|renewing| !renewing.is_finished());
        if renews && !is_renewed {
            let renewal =
                Renewal { task: task.clone(), login: login.clone(), reader, held: Arc::clone(&self.held) };
            self.renewing = Some(AbortOnDropHandle::new(tokio::spawn(renewal.run(restored))));
        }
    }
}

/// The token that an earlier agent has got. Nobody knows how long it lasts: it is renewed at once.
fn kept(state: &HookState) -> Option<Held> {
    let token = state.values.get(TOKEN)?.clone();
    let renewable = state.values.contains_key(RENEWABLE);
    Some(Held { auth: Auth { token, lease: Duration::ZERO, renewable }, ends: None })
}

fn remember(state: &mut HookState, auth: &Auth, reader: &Reader) {
    let renewable = auth.renewable.then(|| (RENEWABLE.to_string(), "true".to_string()));
    let token = (TOKEN.to_string(), auth.token.clone());
    state.values = std::iter::once(token).chain(renewable).chain(reader.kept()).collect();
}

fn write(task: &TaskContext, reader: &Reader, token: &str) -> std::io::Result<()> {
    let dir = task.alloc_dir.task(&task.name);
    let inside = dir.secrets.strip_prefix(&dir.root).expect("it is the task's").join(FILE);
    reader.write(&dir.root, &inside, token, 0o600)
}

/// Renews a token, and replaces it when that is refused.
struct Renewal {
    task: TaskContext,
    login: Login,
    reader: Reader,
    held: SharedToken,
}

impl Renewal {
    /// Until it is aborted, or the token needs no renewal.
    async fn run(self, at_once: bool) {
        let alloc = self.task.alloc();
        let mut rng = Rng::stream(self.task.context.seed, &format!("{}/{}/renew", alloc.id, self.task.name));
        let Some(first) = lock(&self.held).clone() else { return };
        let (mut whole, mut left, mut failures) = (first.auth.lease, first.auth.lease, 0_u32);
        let mut is_known = !at_once;
        loop {
            if is_known && left.is_zero() {
                // It lives for ever.
                return;
            }
            let wait = match failures {
                0 if !is_known => Duration::ZERO,
                0 => (left / 2 + jitter(&mut rng, left / 10)).max(RENEW_MIN),
                _ => PAUSE.saturating_mul(1 << (failures - 1).min(8)).min(PAUSE_MAX),
            };
            sleep(wait).await;
            let Some(held) = lock(&self.held).clone() else { return };
            let renewed = match held.is_good() {
                true => self.login.vault.renew(self.login.namespace(), &held.auth.token).await,
                false => Err(VaultError::Refused { status: 403, text: "it has expired".to_string() }),
            };
            match renewed {
                // At the end of what may be renewed another one is got while this one is still good.
                Ok(auth) if auth.lease > whole / 10 || !is_known => {
                    (left, failures) = (auth.lease, 0);
                    whole = whole.max(left);
                    is_known = true;
                    *lock(&self.held) = Some(Held::new(Auth { token: held.auth.token, ..auth }));
                }
                Err(error @ VaultError::Unreached(_)) => {
                    failures += 1;
                    tracing::warn!(alloc = alloc.id, task = self.task.name, %error, "a token of Vault was not renewed");
                }
                Ok(_) | Err(VaultError::Refused { .. }) => {
                    let Some(auth) = self.replace(&alloc).await else { return };
                    (whole, left, failures, is_known) = (auth.lease, auth.lease, 0, true);
                    if !auth.renewable {
                        return;
                    }
                }
            }
        }
    }

    /// A new token, which is announced to the task. Without one the task fails.
    async fn replace(&self, alloc: &Allocation) -> Option<Auth> {
        let auth = match self.login.log_in(&self.task, alloc).await {
            Ok(auth) => auth,
            Err(error) => {
                let requests = self.task.requests.upgrade()?;
                requests.send(TaskRequest::Fail { reason: error.message }).await.ok();
                return None;
            }
        };
        *lock(&self.held) = Some(Held::new(auth.clone()));
        if self.login.writes_file()
            && let Err(error) = write(&self.task, &self.reader, &auth.token)
        {
            tracing::warn!(task = self.task.name, %error, "the new token of Vault was not written");
        }
        // For the next agent; the next start of the task stores it again.
        let store = &self.task.context.store;
        let mut state = store.load_hook(&alloc.id, Some(&self.task.name), NAME);
        remember(&mut state, &auth, &self.reader);
        store.put_hook(&alloc.id, Some(&self.task.name), NAME, &state);
        self.login.vault.put_token(&alloc.id, &self.task.name, &auth.token);
        self.announce().await;
        Some(auth)
    }

    async fn announce(&self) {
        let block = &self.login.block;
        let (reply, _) = oneshot::channel();
        let reason = "Vault: new Vault token acquired".to_string();
        let name = block.change_signal.clone().unwrap_or_default();
        let request = match (block.change_mode.as_deref().unwrap_or("restart"), Signal::from_str(&name)) {
            ("noop", _) => return,
            ("signal", Ok(signal)) => TaskRequest::Signal { signal, name, reply },
            _ => TaskRequest::Restart { reason, revive: false, unhealthy: false, reply },
        };
        // A task that has ended needs no word of it.
        if let Some(requests) = self.task.requests.upgrade() {
            requests.send(request).await.ok();
        }
    }
}
