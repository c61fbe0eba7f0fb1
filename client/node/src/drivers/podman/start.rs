//! How a container comes to be: its image, then itself, then it is started.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use super::super::containers::images::{ImageName, ImageUse, Platform, Wanted};
use super::super::containers::parts::{self, NODE_LABEL};
use super::super::containers::task::{Follow, Parts};
use super::super::containers::{Engine as _, Fault, logs, mounts};
use super::api::Inspected;
use super::engine::{Call, Engine};
use super::logs::Follower;
use super::settings::Logging;
use super::{Shared, container};
use crate::driver::{DriverEvent, DriverNetwork, Logs, StartError, Started, TaskConfig};

pub async fn start(
    shared: &Arc<Shared>,
    is_rootless: bool,
    config: TaskConfig,
) -> Result<Started, StartError> {
    let (engine, settings) = (&shared.engine, &shared.settings);
    // What is wrong is said before anything is downloaded.
    container::body(settings, &config, "", is_rootless).map_err(StartError::Invalid)?;
    let image = image(shared, &config).await?;
    let body = container::body(settings, &config, &image.id, is_rootless).map_err(StartError::Invalid)?;
    let name = parts::name(&config);
    let mut tracked = shared.track(&name);
    let id = create(shared, &name, &body).await?;
    tracked.add(&id);
    let kept = container::logging(settings, &config).map_err(StartError::Invalid)? == Logging::Nomad;
    let logs = config.logs.clone().filter(|_| kept && !settings.disable_log_collection);
    let found = match run(shared, &id, logs.as_ref()).await {
        Ok(found) => found,
        Err(error) => {
            if let Err(error) = engine.remove(&id).await {
                tracing::warn!(container = id, %error, "a container was not removed");
            }
            return Err(error);
        }
    };
    let network = network(&config, &found);
    let follower = logs.clone().map(|logs| follow(shared, &id, logs));
    let parts = Parts { shared: Arc::clone(shared), id, image: Some(image), tracked, follower };
    parts.started(name, logs, settings.socket.clone(), network)
}

/// Writes the output of a container.
pub fn follow(shared: &Shared, container: &str, logs: Logs) -> Follow {
    let (engine, note) = ((*shared.engine).clone(), shared.note(container));
    let container = container.to_string();
    Box::new(move |ended| Box::pin(Follower { engine, container, logs, note, ended }.run()))
}

/// The name of an image in full, or the archive that has it.
///
/// # Errors
/// When it is neither.
fn source(text: &str) -> Result<(ImageName, Option<String>), String> {
    for transport in ["docker-archive:", "oci-archive:"] {
        if let Some(path) = text.strip_prefix(transport) {
            return Ok((
                ImageName { repository: text.to_string(), version: "archive".into() },
                Some(path.into()),
            ));
        }
    }
    let text = text.strip_prefix("docker://").unwrap_or(text);
    let mut name = ImageName::read(text)?;
    let first = name.repository.split('/').next().unwrap_or_default();
    let has_registry = name.repository.contains('/') && (first.contains(['.', ':']) || first == "localhost");
    if !has_registry {
        let library = if name.repository.contains('/') { "" } else { "library/" };
        name.repository = format!("docker.io/{library}{}", name.repository);
    }
    Ok((name, None))
}

async fn image(shared: &Arc<Shared>, config: &TaskConfig) -> Result<ImageUse<Engine>, StartError> {
    let (keys, settings) = (&config.config, &shared.settings);
    let text = keys.text("image").expect("the schema requires an image");
    let (name, archive) = source(text).map_err(StartError::Invalid)?;
    let archive = archive.map(|path| mounts::host_path(settings.volumes_enabled, config, &path, "image"));
    let archive = archive.transpose().map_err(StartError::Invalid)?.map(PathBuf::from);
    let credentials = match &archive {
        Some(_) => None,
        None => Wanted::credentials::<Engine>(keys, &name.repository, &settings.auth).await?,
    };
    let timeout = Wanted::patience(keys, settings.image_pull_timeout)?;
    let of = |key: &str| keys.text(key).unwrap_or_default().to_string();
    let wanted = Wanted {
        name,
        force_pull: keys.boolean("force_pull"),
        credentials,
        timeout,
        activity_timeout: settings.pull_activity_timeout,
        archive,
        platform: Platform { arch: of("arch"), os: of("os"), variant: of("variant") },
        tls_verify: keys.block("auth").and_then(|auth| auth.flag("tls_verify")),
    };
    let (alloc_id, task) = (&config.alloc_id, &config.task);
    let say = |message| shared.say(DriverEvent { alloc_id: alloc_id.clone(), task: task.clone(), message });
    shared.images.obtain(wanted, say).await
}

/// Makes the container; returns its id. One of the same name is of an earlier start whose handle was never stored: it
/// goes.
async fn create(shared: &Shared, name: &str, body: &Value) -> Result<String, StartError> {
    let engine = &shared.engine;
    let failed = |error: Fault| StartError::transient(format!("Failed to create container: {error}"));
    match engine.inspect(name).await {
        Err(Fault::Missing(_)) => {}
        Err(error) => return Err(failed(error)),
        Ok(found) => {
            let labels = found.config.labels.unwrap_or_default();
            if labels.get(NODE_LABEL) != Some(&shared.node_id) {
                let text = format!("somebody else has a container named \"{name}\"");
                return Err(failed(Fault::Conflict(text)));
            }
            tracing::warn!(container = name, "a container is replaced that an earlier start has left");
            engine.remove(name).await.map_err(failed)?;
        }
    }
    let made = engine.ask(Call::post("/containers/create"), Some(body)).await.map_err(failed)?;
    let made: Value = serde_json::from_slice(&made).map_err(StartError::transient)?;
    made["Id"]
        .as_str()
        .map(str::to_string)
        .ok_or_else(|| StartError::transient("the engine names no container"))
}

/// Starts the container, and looks at it.
async fn run(shared: &Shared, id: &str, logs: Option<&Logs>) -> Result<Inspected, StartError> {
    if let Some(logs) = logs {
        logs::begin(&shared.note(id), logs).map_err(StartError::transient)?;
    }
    let started = shared.engine.ask(Call::post(format!("/containers/{id}/start")), None).await;
    if let Err(error) = started {
        let message = format!("Failed to start container {id}: {error}");
        return Err(StartError::Failed { recoverable: is_recoverable(&message), message });
    }
    let found = shared.engine.inspect(id).await;
    found.map_err(|error| StartError::transient(format!("Failed to inspect container: {error}")))
}

/// What is missing in the image will be missing the next time.
fn is_recoverable(text: &str) -> bool {
    let absent = ["no such file or directory", "executable file not found", "ermission denied"];
    !absent.iter().any(|sign| text.contains(sign))
}

/// Where the container can be reached, if it has an address of its own.
fn network(config: &TaskConfig, found: &Inspected) -> Option<DriverNetwork> {
    let settings = &found.network_settings;
    let networks = settings.networks.iter().flatten().map(|(_, network)| network.ip_address.as_str());
    let ip = [settings.ip_address.as_str()].into_iter().chain(networks).find(|ip| !ip.is_empty())?;
    Some(DriverNetwork { ip: ip.to_string(), port_map: parts::port_map(config), auto_advertise: true })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_named_in_full() {
        for (text, full) in [
            ("redis", "docker.io/library/redis:latest"),
            ("docker://me/redis:7", "docker.io/me/redis:7"),
            ("localhost/a:1", "localhost/a:1"),
            ("quay.io/a/b@sha256:12", "quay.io/a/b@sha256:12"),
        ] {
            assert_eq!(source(text).unwrap().0.full(), full);
        }
        assert_eq!(source("docker-archive:local/a.tar").unwrap().1.unwrap(), "local/a.tar");
    }
}
