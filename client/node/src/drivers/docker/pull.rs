//! How the engine comes to images: it pulls them, or takes them over from an archive.

use std::collections::HashMap;
use std::time::Duration;

use bollard::models::CreateImageInfo;
use bollard::query_parameters::{CreateImageOptions, ImportImageOptions};
use bollard::{Docker, errors::Error};
use futures_util::stream::{Stream, StreamExt};
use tokio::sync::watch;
use tokio::time::timeout;

use super::super::containers::images::{ImageName, Wanted, is_absent};
use super::engine;
use crate::driver::StartError;

pub async fn pull(client: &Docker, wanted: &Wanted, said: &watch::Sender<String>) -> Result<(), StartError> {
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

pub async fn load(client: &Docker, archive: &std::path::Path, patience: Duration) -> Result<(), StartError> {
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
    match timeout(patience, read).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(failed(&engine::text(&error))),
        Err(_) => Err(failed(&"not done in time (image_pull_timeout)")),
    }
}

#[cfg(test)]
mod tests {
    use bollard::models::ProgressDetail;
    use futures_util::stream;

    use std::sync::Arc;

    use super::super::engine::Engine;
    use super::*;
    use crate::drivers::containers::images::Images;

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
        assert_eq!(images.users("i"), 1);
        drop(second);
        assert_eq!(images.users("i"), 0);
    }
}
