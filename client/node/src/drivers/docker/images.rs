//! Images: pulled once for all who want them at a time, counted, and removed when nobody has used them for a while.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bollard::auth::DockerCredentials;
use bollard::models::CreateImageInfo;
use bollard::query_parameters::{CreateImageOptions, ImportImageOptions, RemoveImageOptions};
use bollard::{Docker, errors::Error};
use futures_util::future::{BoxFuture, FutureExt, Shared};
use futures_util::stream::{Stream, StreamExt};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use super::engine::{self, Engine};
use crate::driver::StartError;

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

    fn is_digest(&self) -> bool {
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
}

type Pull = Shared<BoxFuture<'static, Result<(), StartError>>>;

/// A pull that is under way, and how far it has come.
#[derive(Clone)]
struct Running {
    pull: Pull,
    progress: watch::Receiver<String>,
}

/// All images of the engine that tasks of this agent have.
pub struct Images {
    engine: Arc<Engine>,
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

impl std::fmt::Debug for Images {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Images").field("users", &self.lock().users).finish_non_exhaustive()
    }
}

/// One user of an image. Dropping it may remove the image after a while.
#[derive(Debug)]
pub struct ImageUse {
    pub id: String,
    images: Weak<Images>,
}

impl Images {
    pub fn new(engine: Arc<Engine>, keep: Option<Duration>) -> Arc<Images> {
        Arc::new(Images { engine, keep, state: Mutex::default(), gate: Default::default() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one more user.
    pub fn hold(self: &Arc<Self>, id: &str) -> ImageUse {
        *self.lock().users.entry(id.to_string()).or_default() += 1;
        ImageUse { id: id.to_string(), images: Arc::downgrade(self) }
    }

    /// Gets the image from wherever it is; `say` passes on what happens meanwhile.
    ///
    /// # Errors
    /// When it cannot be had.
    pub async fn obtain(
        self: &Arc<Self>,
        client: &Docker,
        wanted: Wanted,
        say: impl Fn(String),
    ) -> Result<ImageUse, StartError> {
        let name = wanted.name.full();
        // What `latest` means may have changed.
        let is_fixed = !wanted.force_pull && wanted.name.version != "latest";
        match &wanted.archive {
            Some(archive) => load(client, archive, &wanted).await?,
            None => {
                if is_fixed && let Some(found) = self.find(client, &name).await? {
                    return Ok(found);
                }
                self.pull(client, wanted, say).await?;
            }
        }
        let missing =
            || StartError::transient(format!("image {name} is not there after it was pulled or loaded"));
        self.find(client, &name).await?.ok_or_else(missing)
    }

    /// Looks for the image and counts its user at once: so it is not removed in between.
    async fn find(self: &Arc<Self>, client: &Docker, name: &str) -> Result<Option<ImageUse>, StartError> {
        let _gate = self.gate.lock().await;
        match client.inspect_image(name).await {
            Ok(image) => Ok(Some(self.hold(&image.id.unwrap_or_default()))),
            Err(error) if engine::is_missing(&error) => Ok(None),
            Err(error) => Err(StartError::transient(engine::text(&error))),
        }
    }

    async fn pull(
        self: &Arc<Self>,
        client: &Docker,
        wanted: Wanted,
        say: impl Fn(String),
    ) -> Result<(), StartError> {
        say("Downloading image".to_string());
        let Running { mut pull, progress } = self.join(client, wanted);
        let mut next = Instant::now() + PROGRESS_EVERY;
        loop {
            tokio::select! {
                result = &mut pull => return result,
                () = sleep_until(next) => {
                    say(format!("Docker image pull progress: {}", *progress.borrow()));
                    next += PROGRESS_EVERY;
                }
            }
        }
    }

    /// The pull of this image that is under way, or a new one.
    fn join(self: &Arc<Self>, client: &Docker, wanted: Wanted) -> Running {
        let name = wanted.name.full();
        let mut state = self.lock();
        if let Some(running) = state.pulls.get(&name).filter(|running| running.pull.peek().is_none()) {
            return running.clone();
        }
        let (said, progress) = watch::channel(String::new());
        let (images, client, key) = (Arc::downgrade(self), client.clone(), name.clone());
        let pull = async move {
            let result = pull(&client, &wanted, &said).await;
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
            let removed = async {
                self.engine.client().await?.remove_image(id, None::<RemoveImageOptions>, None).await
            };
            match removed.await {
                Ok(_) => return tracing::info!(image = id, "an image that nobody uses was removed"),
                Err(error) if engine::is_missing(&error) => return,
                // The container of its last user may just be going, or somebody else has it.
                Err(error) if tried == REMOVE_TRIES && engine::is_conflict(&error) => return,
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

impl Drop for ImageUse {
    fn drop(&mut self) {
        if let Some(images) = self.images.upgrade() {
            images.release(&self.id);
        }
    }
}

async fn pull(client: &Docker, wanted: &Wanted, said: &watch::Sender<String>) -> Result<(), StartError> {
    let ImageName { repository, version } = &wanted.name;
    let options = CreateImageOptions {
        from_image: Some(repository.clone()),
        tag: Some(version.clone()),
        ..CreateImageOptions::default()
    };
    let stream = client.create_image(Some(options), None, wanted.credentials.clone());
    let failed = |error: &str, recoverable| {
        let message = format!("Failed to pull `{}`: {error}", wanted.name.full());
        StartError::Failed { message, recoverable }
    };
    match timeout(wanted.timeout, follow(stream, wanted.activity_timeout, said)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(PullError::Inactive)) => {
            let seconds = wanted.activity_timeout.as_secs();
            Err(failed(&format!("no progress for {seconds} s (pull_activity_timeout)"), true))
        }
        Ok(Err(PullError::Failed(error))) => {
            let text = engine::text(&error);
            Err(failed(&text, !engine::is_missing(&error) && !is_absent(&text)))
        }
        Err(_) => {
            let seconds = wanted.timeout.as_secs();
            Err(failed(&format!("not done within {seconds} s (image_pull_timeout)"), true))
        }
    }
}

/// The registry knows that there is no such image, or none for us: the next try would find the same.
fn is_absent(text: &str) -> bool {
    ["manifest unknown", "not found", "pull access denied", "repository does not exist", "invalid reference"]
        .iter()
        .any(|sign| text.contains(sign))
}

#[derive(Debug)]
enum PullError {
    Inactive,
    Failed(Error),
}

async fn follow(
    stream: impl Stream<Item = Result<CreateImageInfo, Error>>,
    patience: Duration,
    said: &watch::Sender<String>,
) -> Result<(), PullError> {
    let mut stream = std::pin::pin!(stream);
    let mut layers = Layers::default();
    loop {
        match timeout(patience, stream.next()).await {
            Err(_) => return Err(PullError::Inactive),
            Ok(None) => return Ok(()),
            Ok(Some(Err(error))) => return Err(PullError::Failed(error)),
            Ok(Some(Ok(info))) => {
                layers.take(&info);
                said.send_replace(layers.to_string());
            }
        }
    }
}

/// How far each layer of an image has come.
#[derive(Debug, Default)]
struct Layers(HashMap<String, Layer>);

#[derive(Clone, Copy, Debug, Default)]
struct Layer {
    bytes: i64,
    total: i64,
    is_done: bool,
}

impl Layers {
    fn take(&mut self, info: &CreateImageInfo) {
        let (Some(id), Some(status)) = (&info.id, &info.status) else { return };
        // The first line has the tag where the others have a layer.
        if status.starts_with("Pulling from") {
            return;
        }
        let layer = self.0.entry(id.clone()).or_default();
        if let (Some(progress), "Downloading") = (&info.progress_detail, status.as_str()) {
            layer.bytes = progress.current.unwrap_or(layer.bytes);
            layer.total = progress.total.unwrap_or(layer.total);
        }
        if matches!(status.as_str(), "Pull complete" | "Already exists") {
            (layer.is_done, layer.bytes) = (true, layer.total);
        }
    }
}

impl std::fmt::Display for Layers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let done = self.0.values().filter(|layer| layer.is_done).count();
        let [bytes, total] = [|layer: &Layer| layer.bytes, |layer: &Layer| layer.total]
            .map(|of| self.0.values().map(of).sum::<i64>() / 1024);
        write!(f, "{done} of {} layers, {bytes} of {total} KiB", self.0.len())
    }
}

async fn load(client: &Docker, archive: &std::path::Path, wanted: &Wanted) -> Result<(), StartError> {
    let failed = |error: &dyn std::fmt::Display| {
        StartError::fatal(format!("Failed to load image from {}: {error}", archive.display()))
    };
    let file = tokio::fs::File::open(archive).await.map_err(|error| failed(&error))?;
    let bytes = tokio_util::io::ReaderStream::new(file);
    let mut lines = client.import_image_stream(ImportImageOptions::default(), bytes, None);
    let read = async {
        while let Some(line) = lines.next().await {
            line?;
        }
        Ok::<_, Error>(())
    };
    match timeout(wanted.timeout, read).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(failed(&engine::text(&error))),
        Err(_) => Err(failed(&"not done in time (image_pull_timeout)")),
    }
}

#[cfg(test)]
mod tests {
    use bollard::models::ProgressDetail;
    use futures_util::stream;

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

    fn line(id: &str, status: &str, progress: Option<(i64, i64)>) -> CreateImageInfo {
        let progress_detail =
            progress.map(|(current, total)| ProgressDetail { current: Some(current), total: Some(total) });
        CreateImageInfo {
            id: Some(id.into()),
            status: Some(status.into()),
            progress_detail,
            error_detail: None,
        }
    }

    #[test]
    fn progress_is_that_of_all_layers() {
        let mut layers = Layers::default();
        for info in [
            line("7", "Pulling from library/redis", None),
            line("a", "Already exists", None),
            line("b", "Downloading", Some((1024, 4096))),
            line("c", "Downloading", Some((2048, 2048))),
            line("c", "Pull complete", None),
        ] {
            layers.take(&info);
        }
        assert_eq!(layers.to_string(), "2 of 3 layers, 3 of 6 KiB");
    }

    #[tokio::test(start_paused = true)]
    async fn a_pull_without_progress_is_given_up_and_one_with_progress_is_not() {
        let (said, progress) = watch::channel(String::new());
        let patience = Duration::from_secs(60);
        let slow = stream::iter(0..5).then(|n| async move {
            tokio::time::sleep(Duration::from_secs(50)).await;
            Ok(line("a", "Downloading", Some((n, 5))))
        });
        follow(slow, patience, &said).await.unwrap();
        assert!(progress.borrow().starts_with("0 of 1 layers"));
        let stuck = stream::pending();
        assert!(matches!(follow(stuck, patience, &said).await, Err(PullError::Inactive)));
        let wrong = stream::iter([Err(Error::DockerStreamError { error: "no".into() })]);
        assert!(matches!(follow(wrong, patience, &said).await, Err(PullError::Failed(_))));
    }

    #[tokio::test(start_paused = true)]
    async fn an_image_is_free_when_its_last_user_has_gone() {
        let images = Images::new(Arc::new(Engine::new("unix:///nowhere".into())), None);
        let first = images.hold("i");
        let second = images.hold("i");
        drop(first);
        assert_eq!(images.lock().users["i"], 1);
        drop(second);
        assert!(images.lock().users.is_empty());
    }
}
