//! The tokens that a task proves itself with: they are asked for before it starts, put where the job wants them, and
//! renewed for as long as the task lives.
//!
//! The job names identities; only those that the task gets to see, in its environment or in a file, are asked for.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::Rng;
use model::document::{Allocation, WorkloadIdentity};
use nix::sys::signal::Signal;
use nix::unistd::User;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;
use wire::messages::WorkloadIdentityRequest;

use super::{StartRequest, TaskContext, TaskHook, parts};
use crate::clock::{self, jitter};
use crate::hook::{HookError, HookFuture, HookState, ready};
use crate::identity;
use crate::task::requests::TaskRequest;

const NAME: &str = "identities";
/// The identity of a task that the job gives no other name.
pub(super) const DEFAULT: &str = "default";

/// How long a start waits for its first tokens.
const FIRST_WITHIN: Duration = Duration::from_secs(60);
/// Between two tries at a start.
const TRY_EVERY: Duration = Duration::from_secs(1);
/// Between a token and the next one, and after a failure, at least; after many failures at most.
const RENEW_MIN: Duration = Duration::from_secs(10);
const RETRY_MAX: Duration = Duration::from_secs(3600);

pub(super) type Tokens = BTreeMap<String, String>;

#[derive(Debug, Default)]
pub struct Identities {
    /// The newest tokens by the names of their identities; the renewal changes them while the task runs.
    tokens: Arc<Mutex<Tokens>>,
    renewing: Option<AbortOnDropHandle<()>>,
}

impl TaskHook for Identities {
    fn name(&self) -> &'static str {
        NAME
    }

    /// Never done: tokens may have expired before the next start.
    fn prestart<'a>(
        &'a mut self,
        task: &'a TaskContext,
        start: &'a mut StartRequest,
        state: &'a mut HookState,
    ) -> HookFuture<'a> {
        Box::pin(async move {
            let alloc = start.alloc.clone();
            let parts = parts(&alloc, task, NAME)?;
            let used = used(parts.task);
            if used.is_empty() {
                return Ok(());
            }
            let place = Place::new(&used, start, &parts.task.user)?;
            let mut held = Kept::load(state).tokens;
            held.extend(self.tokens().clone());
            let obtaining = timeout(FIRST_WITHIN, obtain(task, &alloc, &used, held));
            let tokens = obtaining.await.unwrap_or_else(|_| {
                Err(HookError::recoverable(NAME, "the servers have signed no token within a minute"))
            })?;
            for (name, token) in &tokens {
                place.write(name, token).map_err(|error| HookError::fatal(NAME, error))?;
            }
            let seen = used.iter().filter(|identity| identity.env);
            state.env = seen.map(|own| (variable(&own.name), tokens[&own.name].clone())).collect();
            let kept = Kept { tokens, place };
            kept.store(state);
            self.keep(task, &used, kept);
            Ok(())
        })
    }

    fn restored<'a>(&'a mut self, task: &'a TaskContext, state: &'a mut HookState) -> HookFuture<'a> {
        let alloc = task.alloc();
        let parts = parts(&alloc, task, NAME);
        ready(parts.map(|parts| self.keep(task, &used(parts.task), Kept::load(state))))
    }

    fn stop<'a>(&'a mut self, _: &'a TaskContext) -> HookFuture<'a> {
        self.renewing = None;
        ready(Ok(()))
    }
}

impl Identities {
    fn tokens(&self) -> std::sync::MutexGuard<'_, Tokens> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over the tokens, and keeps those fresh that expire.
    fn keep(&mut self, task: &TaskContext, used: &[WorkloadIdentity], Kept { tokens, place }: Kept) {
        *self.tokens() = tokens;
        let expiring: Vec<WorkloadIdentity> =
            used.iter().filter(|identity| identity.ttl.0 > base::Duration::ZERO).cloned().collect();
        let renewal = Renewal { task: task.clone(), expiring, place, tokens: Arc::clone(&self.tokens) };
        self.renewing =
            (!renewal.expiring.is_empty()).then(|| AbortOnDropHandle::new(tokio::spawn(renewal.run())));
    }
}

/// The identities of which the task sees something.
fn used(task: &model::document::Task) -> Vec<WorkloadIdentity> {
    let all = task.identity.iter().chain(&*task.identities);
    all.filter(|identity| identity.env || identity.file).cloned().collect()
}

fn variable(name: &str) -> String {
    if name == DEFAULT { "NOMAD_TOKEN".to_string() } else { format!("NOMAD_TOKEN_{name}") }
}

/// A token for each identity: the one that is held while it is good, the one that came with the allocation, or a new one.
async fn obtain(
    task: &TaskContext,
    alloc: &Allocation,
    used: &[WorkloadIdentity],
    mut held: Tokens,
) -> Result<Tokens, HookError> {
    let now = clock::now().secs();
    held.retain(|_, token| expiry(token).is_none_or(|at| at > now));
    if let Some(token) = task.context.default_token(&alloc.id, &task.name) {
        held.insert(DEFAULT.to_string(), token);
    }
    held.retain(|name, _| used.iter().any(|identity| identity.name == *name));
    let missing: Vec<&WorkloadIdentity> =
        used.iter().filter(|identity| !held.contains_key(&identity.name)).collect();
    if missing.is_empty() {
        return Ok(held);
    }
    loop {
        match ask(task, alloc, &missing).await {
            Ok(signed) => {
                held.extend(signed);
                return Ok(held);
            }
            Err(Refusal::Rejected(why)) => return Err(HookError::recoverable(NAME, why)),
            Err(Refusal::Unanswered(why)) => {
                tracing::warn!(alloc = alloc.id, task = task.name, why, "no token was signed; asking again");
                sleep(TRY_EVERY).await;
            }
        }
    }
}

/// Why there is no token.
pub(super) enum Refusal {
    /// There will be none.
    Rejected(String),
    /// Not now.
    Unanswered(String),
}

pub(super) async fn ask(
    task: &TaskContext,
    alloc: &Allocation,
    wanted: &[&WorkloadIdentity],
) -> Result<Tokens, Refusal> {
    let Some(servers) = task.context.servers.get() else {
        return Err(Refusal::Unanswered("this node has no servers".to_string()));
    };
    let request = |identity: &&WorkloadIdentity| WorkloadIdentityRequest {
        alloc_id: alloc.id.clone(),
        identity_name: identity.name.clone(),
        workload_identifier: task.name.clone(),
        ..Default::default()
    };
    let requests = wanted.iter().map(request).collect();
    let answer = servers.sign_identities(requests, alloc.create_index.saturating_sub(1)).await;
    let answer = answer.map_err(|error| Refusal::Unanswered(error.to_string()))?;
    if let Some(rejected) = answer.rejections.first() {
        let name = &rejected.request.identity_name;
        return Err(Refusal::Rejected(format!("identity \"{name}\": {}", rejected.reason)));
    }
    let signed: Tokens = answer
        .signed_identities
        .0
        .into_iter()
        .map(|signed| (signed.request.identity_name, signed.jwt))
        .collect();
    match wanted.iter().find(|identity| !signed.contains_key(&identity.name)) {
        Some(identity) => Err(Refusal::Unanswered(format!("identity \"{}\" was left out", identity.name))),
        None => Ok(signed),
    }
}

/// When a token ends, in seconds since 1970.
fn expiry(token: &str) -> Option<i64> {
    identity::claims(token)?.get("exp")?.as_i64()
}

/// Where tokens are put.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Place {
    /// By the names of their identities.
    files: BTreeMap<String, PathBuf>,
    /// Whose the files are: the user of the task, if it has one that this host knows.
    owner: Option<String>,
}

impl Place {
    /// # Errors
    /// A file would be outside of the directory of the task.
    fn new(used: &[WorkloadIdentity], start: &StartRequest, user: &str) -> Result<Place, HookError> {
        let with_file = used.iter().filter(|identity| identity.file);
        let files = with_file.map(|identity| Ok((identity.name.clone(), path(identity, start)?)));
        let owner = Some(start.environment.replace(user)).filter(|user| !user.is_empty());
        Ok(Place { files: files.collect::<Result<_, HookError>>()?, owner })
    }

    /// Nobody but the task reads it, and never half of it.
    fn write(&self, name: &str, token: &str) -> io::Result<()> {
        let Some(path) = self.files.get(name) else { return Ok(()) };
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir)?;
        }
        let draft = path.with_extension("new");
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
        file.write_all(token.as_bytes())?;
        if let Some(owner) = self.owner.as_deref().and_then(find_user) {
            std::os::unix::fs::chown(&draft, Some(owner.uid.as_raw()), Some(owner.gid.as_raw()))?;
        }
        std::fs::rename(&draft, path)
    }
}

fn path(identity: &WorkloadIdentity, start: &StartRequest) -> Result<PathBuf, HookError> {
    let named = start.environment.replace(&identity.filepath);
    if named.is_empty() {
        let default = identity.name == DEFAULT;
        let file = if default { "nomad_token".to_string() } else { format!("nomad_{}.jwt", identity.name) };
        return Ok(start.dir.secrets.join(file));
    }
    let inside = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    match Path::new(&named).components().all(inside) {
        true => Ok(start.dir.root.join(named)),
        false => Err(HookError::fatal(NAME, format!("filepath \"{named}\" escapes the task directory"))),
    }
}

/// What the next agent needs to go on.
#[derive(Debug, Default)]
struct Kept {
    tokens: Tokens,
    place: Place,
}

impl Kept {
    const TOKEN: &str = "token/";
    const FILE: &str = "file/";
    const OWNER: &str = "owner";

    fn load(state: &HookState) -> Kept {
        let under = |prefix: &'static str| {
            let named =
                state.values.iter().filter_map(move |(key, value)| Some((key.strip_prefix(prefix)?, value)));
            named.map(|(name, value)| (name.to_string(), value.clone()))
        };
        let files = under(Kept::FILE).map(|(name, path)| (name, path.into())).collect();
        let owner = state.values.get(Kept::OWNER).cloned();
        Kept { tokens: under(Kept::TOKEN).collect(), place: Place { files, owner } }
    }

    fn store(&self, state: &mut HookState) {
        let tokens =
            self.tokens.iter().map(|(name, token)| (format!("{}{name}", Kept::TOKEN), token.clone()));
        let files = self.place.files.iter();
        let files = files.map(|(name, path)| (format!("{}{name}", Kept::FILE), path.display().to_string()));
        let owner = self.place.owner.iter().map(|owner| (Kept::OWNER.to_string(), owner.clone()));
        state.values = tokens.chain(files).chain(owner).collect();
    }
}

fn find_user(name: &str) -> Option<User> {
    match name.parse::<u32>() {
        Ok(uid) => User::from_uid(uid.into()).ok().flatten(),
        Err(_) => User::from_name(name).ok().flatten(),
    }
}

/// Asks for new tokens before the old ones expire.
struct Renewal {
    task: TaskContext,
    expiring: Vec<WorkloadIdentity>,
    place: Place,
    tokens: Arc<Mutex<Tokens>>,
}

impl Renewal {
    /// Until it is aborted.
    async fn run(self) {
        let alloc = self.task.alloc();
        let mut rng = Rng::stream(self.task.context.seed, &format!("{}/{}/{NAME}", alloc.id, self.task.name));
        let mut failures = 0;
        loop {
            sleep(if failures == 0 { self.wait(&mut rng) } else { backoff(failures) }).await;
            match self.renew(&alloc).await {
                Ok(()) => failures = 0,
                Err(why) => {
                    failures += 1;
                    tracing::warn!(alloc = alloc.id, task = self.task.name, why, "a token was not renewed");
                }
            }
        }
    }

    fn wait(&self, rng: &mut Rng) -> Duration {
        let now = clock::now().secs();
        let tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let left =
            self.expiring.iter().filter_map(|identity| tokens.get(&identity.name)).filter_map(|token| {
                let left = expiry(token)?.saturating_sub(now);
                Some(Duration::from_secs(u64::try_from(left).unwrap_or(0)))
            });
        renewal_wait(left.min().unwrap_or_default(), rng)
    }

    async fn renew(&self, alloc: &Allocation) -> Result<(), String> {
        let wanted: Vec<&WorkloadIdentity> = self.expiring.iter().collect();
        let signed = ask(&self.task, alloc, &wanted).await.map_err(|refusal| match refusal {
            Refusal::Rejected(why) | Refusal::Unanswered(why) => why,
        })?;
        for identity in wanted {
            let token = &signed[&identity.name];
            self.place.write(&identity.name, token).map_err(|error| error.to_string())?;
        }
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner).extend(signed);
        for identity in &self.expiring {
            self.announce(identity).await;
        }
        Ok(())
    }

    /// Tells the task in the way that the job wants.
    async fn announce(&self, identity: &WorkloadIdentity) {
        let (reply, answer) = oneshot::channel();
        let name = &identity.change_signal;
        let request = match (identity.change_mode.as_str(), Signal::from_str(name)) {
            ("restart", _) => TaskRequest::Restart {
                reason: format!("identity \"{}\" was renewed", identity.name),
                revive: false,
                unhealthy: false,
                reply,
            },
            ("signal", Ok(signal)) => TaskRequest::Signal { signal, name: name.clone(), reply },
            _ => return,
        };
        // A task that has ended needs no word of it.
        let Some(requests) = self.task.requests.upgrade() else { return };
        if requests.send(request).await.is_ok()
            && let Ok(Err(why)) = answer.await
        {
            tracing::debug!(task = self.task.name, why, "a task was not told of its new token");
        }
    }
}

/// Half of what is left, and up to a tenth more, so that tasks that started together do not ask together.
fn renewal_wait(left: Duration, rng: &mut Rng) -> Duration {
    (left / 2 + jitter(rng, left / 10)).max(RENEW_MIN)
}

fn backoff(failures: u32) -> Duration {
    RENEW_MIN.saturating_mul(1 << (failures - 1).min(9)).min(RETRY_MAX)
}

#[cfg(test)]
mod tests;
