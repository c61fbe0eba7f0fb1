//! Images: pulled once for all who want them at a time, counted, and removed when nobody has used them for a while.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bollard::auth::DockerCredentials;
use futures_util::future::{BoxFuture, FutureExt, Shared};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::settings::AuthSettings;
use super::{Engine, Fault, auth};
use crate::driver::{StartError, Values};

/// How often is said how far a download has come.
const PROGRESS_EVERY: Duration = Duration::from_secs(30);

/// How often an image is tried to be removed that something still has.
const REMOVE_TRIES: u32 = 5;
const REMOVE_EVERY: Duration = Duration::from_secs(1);

/// The name of an image, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageName {
    pub repository: String,
    /// A tag, or a digest.
    pub version: String,
}

impl ImageName {
    /// # Errors
    /// When there is nothing before the tag or the digest.
    pub fn read(text: &str) -> Result<ImageName, String> {
        let text = text.strip_prefix("https://").unwrap_or(text);
        let (repository, version) = match text.split_once('@') {
            // With a digest the tag says nothing more.
            Some((name, digest)) => (split_tag(name).0, digest),
            None => split_tag(text),
        };
        if repository.is_empty() || version.is_empty() {
            return Err(format!("image \"{text}\" is not the name of an image"));
        }
        Ok(ImageName { repository: repository.to_string(), version: version.to_string() })
    }

    pub fn is_digest(&self) -> bool {
        self.version.contains(':')
    }

    /// What it is called by the engine.
    pub fn full(&self) -> String {
        let joint = if self.is_digest() { '@' } else { ':' };
        format!("{}{joint}{}", self.repository, self.version)
    }
}

/// A colon before the last slash belongs to the port of a registry.
fn split_tag(name: &str) -> (&str, &str) {
    match name.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => (repository, tag),
        _ => (name, "latest"),
    }
}

/// How an image is to be had.
#[derive(Debug)]
pub struct Wanted {
    pub name: ImageName,
    pub force_pull: bool,
    pub credentials: Option<DockerCredentials>,
    /// In all.
    pub timeout: Duration,
    /// Without any progress.
    pub activity_timeout: Duration,
    /// A file to load instead of pulling.
    pub archive: Option<std::path::PathBuf>,
    /// Also pulled when an image of this name is there: it may be one for another platform.
    pub platform: Platform,
    /// None leaves it to the engine.
    pub tls_verify: Option<bool>,
}

impl Wanted {
    /// The credentials for a pull, of the task or of the operator.
    ///
    /// # Errors
    /// When those that there should be cannot be had, unless the task makes do without.
    pub async fn credentials<E: Engine>(
        keys: &Values,
        repository: &str,
        auth: &AuthSettings,
    ) -> Result<Option<DockerCredentials>, StartError> {
        match auth::find(repository, keys.block("auth"), auth).await {
            Ok(found) => Ok(found),
            Err(error) if keys.boolean("auth_soft_fail") => {
                tracing::warn!(%error, "an image is pulled without credentials");
                Ok(None)
            }
            Err(error) => {
                let text = format!("{} for repo \"{repository}\": {error}", E::WORDS.no_auth);
                Err(StartError::fatal(text))
            }
        }
    }

    /// How long a pull may take.
    ///
    /// # Errors
    /// When the task gives it no time.
    pub fn patience(keys: &Values, usual: Duration) -> Result<Duration, StartError> {
        match keys.number("image_pull_timeout") {
            Some(nanos) if nanos <= 0 => {
                Err(StartError::Invalid("image_pull_timeout must be longer than nothing".to_string()))
            }
            Some(_) => Ok(keys.duration("image_pull_timeout")),
            None => Ok(usual),
        }
    }
}

/// For which machines an image is; what is empty is that of the engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Platform {
    pub arch: String,
    pub os: String,
    pub variant: String,
}

type Pull = Shared<BoxFuture<'static, Result<(), StartError>>>;

/// A pull that is under way, and how far it has come.
#[derive(Clone)]
struct Running {
    pull: Pull,
    progress: watch::Receiver<String>,
}

/// All images of the engine that tasks of this agent have.
pub struct Images<E> {
    engine: Arc<E>,
    /// How long an image stays without a user; None for ever.
    keep: Option<Duration>,
    state: Mutex<State>,
    /// Held while an image is looked for and counted, and while one is removed.
    gate: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    pulls: HashMap<String, Running>,
    users: HashMap<String, usize>,
}

impl<E: Engine> std::fmt::Debug for Images<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Images").field("users", &self.lock().users).finish_non_exhaustive()
    }
}

/// One user of an image. Dropping it may remove the image after a while.
#[derive(Debug)]
pub struct ImageUse<E: Engine> {
    pub id: String,
    images: Weak<Images<E>>,
}

impl<E: Engine> Images<E> {
    pub fn new(engine: Arc<E>, keep: Option<Duration>) -> Arc<Images<E>> {
        Arc::new(Images { engine, keep, state: Mutex::default(), gate: Default::default() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many there are of an image.
    #[cfg(test)]
    pub fn users(&self, id: &str) -> usize {
        self.lock().users.get(id).copied().unwrap_or(0)
    }

    /// Counts one more user.
    pub fn hold(self: &Arc<Self>, id: &str) -> ImageUse<E> {
        *self.lock().users.entry(id.to_string()).or_default() += 1;
        ImageUse { id: id.to_string(), images: Arc::downgrade(self) }
    }

    /// Gets the image from wherever it is; `say` passes on what happens meanwhile.
    ///
    /// # Errors
    /// When it cannot be had.
    pub async fn obtain(
        self: &Arc<Self>,
        wanted: Wanted,
        say: impl Fn(String),
    ) -> Result<ImageUse<E>, StartError> {
        let mut name = wanted.name.full();
        let is_fixed = !wanted.force_pull && wanted.platform == Platform::default();
        match &wanted.archive {
            Some(archive) => {
                if let Some(loaded) = self.engine.load(archive, wanted.timeout).await? {
                    name = loaded;
                }
            }
            None => {
                if is_fixed && let Some(found) = self.find(&name).await? {
                    return Ok(found);
                }
                self.pull(wanted, say).await?;
            }
        }
        let missing =
            || StartError::transient(format!("image {name} is not there after it was pulled or loaded"));
        self.find(&name).await?.ok_or_else(missing)
    }

    /// Looks for the image and counts its user at once: so it is not removed in between.
    async fn find(self: &Arc<Self>, name: &str) -> Result<Option<ImageUse<E>>, StartError> {
        let _gate = self.gate.lock().await;
        let found = self.engine.find_image(name).await.map_err(StartError::transient)?;
        Ok(found.map(|id| self.hold(&id)))
    }

    async fn pull(self: &Arc<Self>, wanted: Wanted, say: impl Fn(String)) -> Result<(), StartError> {
        say("Downloading image".to_string());
        let Running { mut pull, progress } = self.join(wanted);
        let mut next = Instant::now() + PROGRESS_EVERY;
        loop {
            tokio::select! {
                result = &mut pull => return result,
                () = sleep_until(next) => {
                    say(format!("{}: {}", E::WORDS.progress, *progress.borrow()));
                    next += PROGRESS_EVERY;
                }
            }
        }
    }

    /// The pull of this image that is under way, or a new one.
    fn join(self: &Arc<Self>, wanted: Wanted) -> Running {
        let Platform { arch, os, variant } = &wanted.platform;
        let name = format!("{} {arch} {os} {variant}", wanted.name.full());
        let mut state = self.lock();
        if let Some(running) = state.pulls.get(&name).filter(|running| running.pull.peek().is_none()) {
            return running.clone();
        }
        let (said, progress) = watch::channel(String::new());
        let (images, engine, key) = (Arc::downgrade(self), Arc::clone(&self.engine), name.clone());
        let pull = async move {
            let result = engine.pull(&wanted, &said).await;
            if let Some(images) = images.upgrade() {
                images.lock().pulls.remove(&key);
            }
            result
        };
        let running = Running { pull: pull.boxed().shared(), progress };
        state.pulls.insert(name, running.clone());
        running
    }

    fn release(self: &Arc<Self>, id: &str) {
        let is_last = {
            let mut state = self.lock();
            let count = state.users.get_mut(id).expect("who releases an image has held it");
            *count -= 1;
            let is_last = *count == 0;
            if is_last {
                state.users.remove(id);
            }
            is_last
        };
        let (Some(keep), true, Ok(runtime)) = (self.keep, is_last, tokio::runtime::Handle::try_current())
        else {
            return;
        };
        let (images, id) = (Arc::downgrade(self), id.to_string());
        runtime.spawn(async move {
            tokio::time::sleep(keep).await;
            if let Some(images) = images.upgrade() {
                images.remove_unused(&id).await;
            }
        });
    }

    async fn remove_unused(&self, id: &str) {
        for tried in 1..=REMOVE_TRIES {
            let gate = self.gate.lock().await;
            if self.lock().users.contains_key(id) {
                return;
            }
            match self.engine.remove_image(id).await {
                Ok(()) => return tracing::info!(image = id, "an image that nobody uses was removed"),
                Err(Fault::Missing(_)) => return,
                // The container of its last user may just be going, or somebody else has it.
                Err(Fault::Conflict(_)) if tried == REMOVE_TRIES => return,
                Err(error) if tried == REMOVE_TRIES => {
                    return tracing::warn!(image = id, %error, "an image that nobody uses was not removed");
                }
                Err(_) => {}
            }
            drop(gate);
            tokio::time::sleep(REMOVE_EVERY).await;
        }
    }
}

impl<E: Engine> Drop for ImageUse<E> {
    fn drop(&mut self) {
        if let Some(images) = self.images.upgrade() {
            images.release(&self.id);
        }
    }
}

/// The registry knows that there is no such image, or none for us: the next try would find the same.
pub fn is_absent(text: &str) -> bool {
    ["manifest unknown", "not found", "pull access denied", "repository does not exist", "invalid reference"]
        .iter()
        .any(|sign| text.contains(sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        for (text, repository, version, full) in [
            ("redis", "redis", "latest", "redis:latest"),
            ("redis:7", "redis", "7", "redis:7"),
            ("https://r.lan/a/b:1", "r.lan/a/b", "1", "r.lan/a/b:1"),
            ("127.0.0.1:5000/a", "127.0.0.1:5000/a", "latest", "127.0.0.1:5000/a:latest"),
            ("a/b:1@sha256:12", "a/b", "sha256:12", "a/b@sha256:12"),
            ("127.0.0.1:5000/a@sha256:12", "127.0.0.1:5000/a", "sha256:12", "127.0.0.1:5000/a@sha256:12"),
        ] {
            let name = ImageName::read(text).unwrap();
            assert_eq!((name.repository.as_str(), name.version.as_str()), (repository, version), "{text}");
            assert_eq!(name.full(), full);
        }
        assert!(ImageName::read(":1").is_err() && ImageName::read("a:").is_err());
    }
}
