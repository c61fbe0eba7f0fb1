//! The container that has the network of a group: it does nothing but be there, and the tasks join it.
//!
//! It is made without a network; the agent connects its namespace as it does with its own.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use bollard::models::{ContainerCreateBody, ContainerInspectResponse, HostConfig};
use bollard::query_parameters::{RemoveContainerOptions, StartContainerOptions};

use super::super::containers::auth;
use super::super::containers::images::{ImageName, ImageUse, Platform, Wanted};
use super::super::containers::parts::{ALLOC_LABEL, NETWORK_LABEL, NODE_LABEL};
use super::engine::{self, Engine};
use super::{Shared, start};
use crate::driver::{DriverError, DriverEvent, StartError};
use crate::task::hooks::short_hostname;

/// The name of the container of an allocation.
pub fn name(alloc_id: &str) -> String {
    format!("sojourn_init_{alloc_id}")
}

fn failed(error: &bollard::errors::Error) -> DriverError {
    DriverError::Failed(format!("container of the network: {}", engine::text(error)))
}

/// Makes the container unless it is there, and has it run; returns the path of its namespace.
///
/// What the engine was asked for is waited for to the end even if the allocation is removed meanwhile: else it would come to
/// be after [`destroy`] has found nothing.
///
/// # Errors
/// When it does not run, or not on this host.
pub async fn create(
    shared: &Arc<Shared>,
    alloc_id: &str,
    hostname: Option<&str>,
) -> Result<PathBuf, DriverError> {
    if !shared.settings.endpoint.starts_with("unix://") {
        let why = "networks of groups need an engine on this host, reached by a unix socket";
        return Err(DriverError::Failed(why.to_string()));
    }
    let (shared, alloc_id, hostname) =
        (Arc::clone(shared), alloc_id.to_string(), hostname.map(str::to_string));
    shared.hold_network(&name(&alloc_id));
    let making = tokio::spawn(async move {
        let made = make(&shared, &alloc_id, hostname.as_deref()).await;
        if !shared.is_tracked(&name(&alloc_id))
            && let Err(error) = destroy(&shared, &alloc_id).await
        {
            tracing::warn!(alloc = alloc_id, %error, "the container of a network is left");
        }
        made
    });
    making
        .await
        .unwrap_or_else(|error| Err(DriverError::Failed(format!("container of the network: {error}"))))
}

async fn make(shared: &Arc<Shared>, alloc_id: &str, hostname: Option<&str>) -> Result<PathBuf, DriverError> {
    let name = name(alloc_id);
    match shared.engine.inspect(&name).await {
        Ok(found) if super::is_running(&found) && is_own(shared, &found) => return namespace(&found),
        Ok(_) => {}
        Err(error) if engine::is_missing(&error) => {}
        Err(error) => return Err(failed(&error)),
    }
    let client = shared.engine.client().await.map_err(|error| failed(&error))?;
    let image = image(shared, alloc_id).await?;
    let labels = [(ALLOC_LABEL, alloc_id), (NODE_LABEL, shared.node_id.as_str()), (NETWORK_LABEL, "true")];
    let labels: HashMap<String, String> =
        labels.into_iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let host = HostConfig { network_mode: Some("none".to_string()), ..HostConfig::default() };
    let body = ContainerCreateBody {
        image: Some(image.id.clone()),
        hostname: Some(hostname.map_or_else(|| short_hostname(alloc_id), str::to_string)),
        labels: Some(labels),
        host_config: Some(host),
        ..ContainerCreateBody::default()
    };
    // One that does not run is of an engine that was restarted: it is replaced.
    let attempts = shared.settings.container_exists_attempts;
    let made = start::create(&client, &name, &shared.node_id, body, attempts).await;
    let id = made.map_err(|error| DriverError::Failed(text(&error)))?;
    let ran = client.start_container(&id, None::<StartContainerOptions>).await;
    ran.map_err(|error| failed(&error))?;
    namespace(&shared.engine.inspect(&id).await.map_err(|error| failed(&error))?)
}

fn text(error: &StartError) -> String {
    format!("container of the network: {error}")
}

async fn image(shared: &Arc<Shared>, alloc_id: &str) -> Result<ImageUse<Engine>, DriverError> {
    let name = ImageName::read(&shared.settings.infra_image).map_err(DriverError::Failed)?;
    let credentials = auth::find(&name.repository, None, &shared.settings.auth).await.ok().flatten();
    let wanted = Wanted {
        force_pull: name.version == "latest",
        name,
        credentials,
        timeout: shared.settings.infra_image_pull_timeout,
        activity_timeout: shared.settings.pull_activity_timeout,
        archive: None,
        platform: Platform::default(),
        tls_verify: None,
    };
    let say = |message| {
        shared.say(DriverEvent { alloc_id: alloc_id.to_string(), task: String::new(), message });
    };
    let image = shared.images.obtain(wanted, say).await;
    image.map_err(|error| DriverError::Failed(format!("infra_image: {error}")))
}

fn is_own(shared: &Shared, found: &ContainerInspectResponse) -> bool {
    let labels = found.config.as_ref().and_then(|config| config.labels.as_ref());
    labels.and_then(|labels| labels.get(NODE_LABEL)) == Some(&shared.node_id)
}

fn namespace(found: &ContainerInspectResponse) -> Result<PathBuf, DriverError> {
    let pid = found.state.as_ref().and_then(|state| state.pid).filter(|pid| *pid > 0);
    let ended = || DriverError::Failed("the container of the network has ended".to_string());
    Ok(PathBuf::from(format!("/proc/{}/ns/net", pid.ok_or_else(ended)?)))
}

/// # Errors
/// When the engine does not remove it.
pub async fn destroy(shared: &Shared, alloc_id: &str) -> Result<(), DriverError> {
    let name = name(alloc_id);
    shared.release_network(&name);
    match shared.engine.inspect(&name).await {
        Ok(found) if is_own(shared, &found) => {}
        Ok(_) => return Ok(()),
        Err(error) if engine::is_missing(&error) => return Ok(()),
        Err(error) => return Err(failed(&error)),
    }
    let client = shared.engine.client().await.map_err(|error| failed(&error))?;
    let options = RemoveContainerOptions { force: true, v: true, ..RemoveContainerOptions::default() };
    match client.remove_container(&name, Some(options)).await {
        Err(error) if !engine::is_missing(&error) && !engine::is_conflict(&error) => Err(failed(&error)),
        _ => Ok(()),
    }
}
