//! The tokens that a task proves itself with: they are asked for before it starts, put where the job wants them, and
//! renewed for as long as the task lives.
//!
//! The job names identities; only those that the task gets to see, in its environment or in a file, are asked for.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use artifact::below::{Below, Links};
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
use crate::driver::FsIsolation;
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
            let place = Place::new(&used, start, Reader::of(task, parts.task, start))?;
            let mut held = Kept::load(state).tokens;
            held.extend(self.tokens().clone());
            let obtaining = timeout(FIRST_WITHIN, obtain(task, &alloc, &used, held));
            let tokens = obtaining.await.unwrap_or_else(|_| {
                Err(HookError::recoverable(NAME, "the servers have signed no token within a minute"))
            })?;
            for (name, token) in &tokens {
                place.write(&start.dir.root, name, token).map_err(|error| HookError::fatal(NAME, error))?;
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

/// The token of the default identity, which came with the allocation, or is signed anew after a restart of the agent.
///
/// # Errors
/// The servers' reason why there will be none.
pub(super) async fn default_token(task: &TaskContext, alloc: &Allocation) -> Result<String, String> {
    let default = WorkloadIdentity { name: DEFAULT.to_string(), ..WorkloadIdentity::default() };
    loop {
        if let Some(token) = task.context.default_token(&alloc.id, &task.name) {
            return Ok(token);
        }
        match ask(task, alloc, &[&default]).await {
            Ok(mut signed) => {
                if let Some(token) = signed.remove(DEFAULT) {
                    return Ok(token);
                }
            }
            Err(Refusal::Rejected(why)) => return Err(why),
            Err(Refusal::Unanswered(why)) => {
                tracing::warn!(alloc = alloc.id, task = task.name, why, "no token of the task; asking again");
            }
        }
        sleep(TRY_EVERY).await;
    }
}

/// The identities of which the task sees something.
pub(super) fn used(task: &model::document::Task) -> Vec<WorkloadIdentity> {
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
pub(crate) enum Refusal {
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
    reader: Reader,
}

impl Place {
    /// # Errors
    /// A file would be outside of the directory of the task.
    fn new(used: &[WorkloadIdentity], start: &StartRequest, reader: Reader) -> Result<Place, HookError> {
        let with_file = used.iter().filter(|identity| identity.file);
        let files = with_file.map(|identity| Ok((identity.name.clone(), path(identity, start)?)));
        Ok(Place { files: files.collect::<Result<_, HookError>>()?, reader })
    }

    /// Never half of it, and never through a link: the task may write to most of the directories on the way.
    fn write(&self, root: &Path, name: &str, token: &str) -> io::Result<()> {
        let Some(path) = self.files.get(name) else { return Ok(()) };
        let inside = path.strip_prefix(root).map_err(|_| io::Error::from(io::ErrorKind::PermissionDenied))?;
        self.reader.write(root, inside, token, 0o600)
    }
}

/// Who is to read the files of a task that are nobody else's business.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reader {
    /// The user of the task, if it has one.
    user: Option<String>,
    /// The number of a user of the task's own.
    dynamic: Option<u32>,
    /// The task may be somebody whom only its image knows.
    of_image: bool,
}

/// Who an isolated task is that names no user.
const ISOLATED_USER: &str = "nobody";

impl Reader {
    const OWNER: &str = "owner";
    const DYNAMIC: &str = "dynamic-uid";
    const OF_IMAGE: &str = "of-image";

    /// As a hook has kept it for the next agent.
    pub(super) fn read(state: &HookState) -> Reader {
        Reader {
            user: state.values.get(Reader::OWNER).cloned(),
            dynamic: state.values.get(Reader::DYNAMIC).and_then(|uid| uid.parse().ok()),
            of_image: state.values.contains_key(Reader::OF_IMAGE),
        }
    }

    /// What a hook keeps of it.
    pub(super) fn kept(&self) -> impl Iterator<Item = (String, String)> {
        let user = self.user.clone().map(|user| (Reader::OWNER.to_string(), user));
        let dynamic = self.dynamic.map(|uid| (Reader::DYNAMIC.to_string(), uid.to_string()));
        let of_image = self.of_image.then(|| (Reader::OF_IMAGE.to_string(), "true".to_string()));
        user.into_iter().chain(dynamic).chain(of_image)
    }

    pub(super) fn of(task: &TaskContext, of: &model::document::Task, start: &StartRequest) -> Reader {
        let isolation = task.context.drivers.capabilities(&of.driver).map(|can| can.fs_isolation);
        let user = Some(start.environment.replace(&of.user)).filter(|user| !user.is_empty());
        let dynamic = task.context.users.of(&start.alloc.id, &task.name);
        match isolation {
            Some(FsIsolation::Image) => Reader { user, dynamic, of_image: true },
            Some(FsIsolation::Chroot) => {
                Reader { user: user.or(Some(ISOLATED_USER.to_string())), dynamic, of_image: false }
            }
            Some(FsIsolation::None) | None => Reader { user, dynamic, of_image: false },
        }
    }

    /// The user and its group, if this host knows it; else files are the agent's.
    pub(super) fn owner(&self) -> Option<(u32, u32)> {
        if let Some(uid) = self.dynamic {
            return Some((uid, uid));
        }
        let found = self.user.as_deref().and_then(find_user)?;
        Some((found.uid.as_raw(), found.gid.as_raw()))
    }

    /// Writes a file for it below `root`: never half of it, and never through a link. If nobody can say who the reader is, the
    /// file is readable for whoever reaches it, else it has this mode.
    ///
    /// # Errors
    /// When the system refuses it, or a link is in the way.
    pub(super) fn write(&self, root: &Path, inside: &Path, text: &str, mode: u32) -> io::Result<()> {
        let owner = self.owner();
        let mut draft = Below::new(root, Links::Refused)?.draft(inside, None)?;
        draft.file.write_all(text.as_bytes())?;
        if let Some((uid, gid)) = owner {
            std::os::unix::fs::fchown(&draft.file, Some(uid), Some(gid))?;
        }
        let mode = if self.of_image && owner.is_none() { 0o644 } else { mode };
        draft.file.set_permissions(std::fs::Permissions::from_mode(mode))?;
        draft.place()
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

    fn load(state: &HookState) -> Kept {
        let under = |prefix: &'static str| {
            let named =
                state.values.iter().filter_map(move |(key, value)| Some((key.strip_prefix(prefix)?, value)));
            named.map(|(name, value)| (name.to_string(), value.clone()))
        };
        let files = under(Kept::FILE).map(|(name, path)| (name, path.into())).collect();
        let reader = Reader::read(state);
        Kept { tokens: under(Kept::TOKEN).collect(), place: Place { files, reader } }
    }

    fn store(&self, state: &mut HookState) {
        let tokens =
            self.tokens.iter().map(|(name, token)| (format!("{}{name}", Kept::TOKEN), token.clone()));
        let files = self.place.files.iter();
        let files = files.map(|(name, path)| (format!("{}{name}", Kept::FILE), path.display().to_string()));
        state.values = tokens.chain(files).chain(self.place.reader.kept()).collect();
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
            let root = self.task.alloc_dir.task(&self.task.name).root;
            self.place.write(&root, &identity.name, token).map_err(|error| error.to_string())?;
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
