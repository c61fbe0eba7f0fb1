//! How a container comes to be: its image, then itself, then it is started.

use std::sync::Arc;
use std::time::Duration;

use bollard::Docker;
use bollard::errors::Error;
use bollard::models::{ContainerCreateBody, ContainerInspectResponse, EndpointSettings};
use bollard::query_parameters::{CreateContainerOptions, RemoveContainerOptions, StartContainerOptions};
use model::document::DNSConfig;

use super::super::containers::images::{ImageName, ImageUse, Platform, Wanted};
use super::super::containers::logs;
use super::super::containers::parts::{self, NODE_LABEL};
use super::super::containers::task::{Follow, Parts};
use super::engine::{self, Engine};
use super::logs::Follower;
use super::{Shared, container, pause};
use crate::driver::{DriverEvent, DriverNetwork, Logs, StartError, Started, TaskConfig};
use crate::network::hosts;

/// How often a request is made that the engine has not decided, and the pause before the second time; each further one
/// is twice as long.
const TRIES: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(50);

pub async fn start(shared: &Arc<Shared>, config: TaskConfig) -> Result<Started, StartError> {
    let client = shared.engine.client().await.map_err(|error| StartError::transient(engine::text(&error)))?;
    // What is wrong is said before anything is downloaded.
    container::body(&shared.settings, &config, "").map_err(StartError::Invalid)?;
    name_files(&config).map_err(StartError::fatal)?;
    await_network(shared, &config).await?;
    let image = image(shared, &config).await?;
    let body = container::body(&shared.settings, &config, &image.id).map_err(StartError::Invalid)?;
    let name = parts::name(&config);
    let mut tracked = shared.track(&name);
    let attempts = config.config.number("container_exists_attempts").and_then(|n| u32::try_from(n).ok());
    let attempts = attempts.unwrap_or(shared.settings.container_exists_attempts);
    let id = create(&client, &name, &shared.node_id, body, attempts).await?;
    tracked.add(&id);
    let logs = config.logs.clone().filter(|_| !shared.settings.disable_log_collection);
    let ran = run(shared, &client, &id, logs.as_ref()).await;
    let found = match ran {
        Ok(found) => found,
        Err(error) => {
            remove(&client, &id).await;
            return Err(error);
        }
    };
    let network = network(&config, &found);
    let follower = logs.clone().map(|logs| follow(shared, &id, logs));
    let parts = Parts { shared: Arc::clone(shared), id, image: Some(image), tracked, follower };
    parts.started(name, logs, String::new(), network)
}

/// An engine that was restarted may have ended the container that has the network of the group, and the network with it: no
/// task can join it any more, so the allocation fails and is placed anew, with another network.
async fn await_network(shared: &Shared, config: &TaskConfig) -> Result<(), StartError> {
    if !container::shared_network(config).map_err(StartError::Invalid)? {
        return Ok(());
    }
    match shared.engine.inspect(&pause::name(&config.alloc_id)).await {
        Ok(found) if super::is_running(&found) => Ok(()),
        Err(error) if !engine::is_missing(&error) => Err(StartError::transient(engine::text(&error))),
        Ok(_) | Err(_) => Err(StartError::fatal("the network of the group has ended with its engine")),
    }
}

/// Writes the output of a container.
pub fn follow(shared: &Shared, container: &str, logs: Logs) -> Follow {
    let (engine, note) = (Arc::clone(&shared.engine), shared.note(container));
    let container = container.to_string();
    // The engine itself ends what it sends of a container that has ended.
    Box::new(move |_| Box::pin(Follower { engine, container, logs, note }.run()))
}

/// What the task says of names goes into the files that it gets in the network of its group.
fn name_files(config: &TaskConfig) -> Result<(), String> {
    let keys = &config.config;
    if !container::shared_network(config)? {
        return Ok(());
    }
    let write = |path: &std::path::Path, text: &str| hosts::write(path, text).map_err(|e| e.to_string());
    let read = |path: &std::path::Path| std::fs::read_to_string(path).map_err(|error| error.to_string());
    if let Some(path) = config.hosts_file.as_ref().filter(|_| !keys.texts("extra_hosts").is_empty()) {
        write(path, &(read(path)? + &hosts::extra(keys.texts("extra_hosts"))?))?;
    }
    let texts = |key: &str| keys.texts(key).to_vec().into();
    let wanted = DNSConfig {
        servers: texts("dns_servers"),
        searches: texts("dns_search_domains"),
        options: texts("dns_options"),
    };
    match &config.resolv_conf {
        Some(path) if wanted != DNSConfig::default() => {
            write(path, &hosts::resolv_conf(Some(&wanted), &read(path)?))
        }
        _ => Ok(()),
    }
}

async fn image(shared: &Arc<Shared>, config: &TaskConfig) -> Result<ImageUse<Engine>, StartError> {
    let keys = &config.config;
    let text = keys.text("image").expect("the schema requires an image");
    let name = ImageName::read(text).map_err(StartError::Invalid)?;
    let archive = keys.text("load").map(|file| config.dir.local.join(file));
    let credentials = match &archive {
        Some(_) => None,
        None => Wanted::credentials::<Engine>(keys, &name.repository, &shared.settings.auth).await?,
    };
    let timeout = Wanted::patience(keys, shared.settings.image_pull_timeout)?;
    let wanted = Wanted {
        // What `latest` means may have changed.
        force_pull: keys.boolean("force_pull") || name.version == "latest",
        name,
        credentials,
        timeout,
        activity_timeout: shared.settings.pull_activity_timeout,
        archive,
        platform: Platform::default(),
        tls_verify: None,
    };
    let (alloc_id, task) = (&config.alloc_id, &config.task);
    let say = |message| shared.say(DriverEvent { alloc_id: alloc_id.clone(), task: task.clone(), message });
    shared.images.obtain(wanted, say).await
}

/// Makes the container; returns its id. One of the same name is of an earlier start whose handle was never stored, or
/// that could not be removed: it goes.
pub(super) async fn create(
    client: &Docker,
    name: &str,
    node_id: &str,
    body: ContainerCreateBody,
    attempts: u32,
) -> Result<String, StartError> {
    let mut pause = FIRST_PAUSE;
    let (mut tries, mut conflicts) = (0, 0);
    loop {
        let options = CreateContainerOptions { name: Some(name.to_string()), ..Default::default() };
        let error = match client.create_container(Some(options), body.clone()).await {
            Ok(created) => return Ok(created.id),
            Err(error) => error,
        };
        let failed = || format!("Failed to create container: {}", engine::text(&error));
        if engine::is_conflict(&error) {
            conflicts += 1;
            if conflicts > attempts {
                return Err(StartError::transient(failed()));
            }
            make_room(client, name, node_id).await?;
        } else if engine::is_transient(&error) {
            tries += 1;
            if tries >= TRIES {
                return Err(StartError::transient(failed()));
            }
        } else {
            return Err(StartError::fatal(failed()));
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
}

/// Removes the container that has our name, if it is of this node.
async fn make_room(client: &Docker, name: &str, node_id: &str) -> Result<(), StartError> {
    let Ok(found) = client.inspect_container(name, None).await else { return Ok(()) };
    let labels = found.config.and_then(|config| config.labels).unwrap_or_default();
    if labels.get(NODE_LABEL).is_none_or(|label| label != node_id) {
        let text = format!("Failed to create container: somebody else has a container named \"{name}\"");
        return Err(StartError::transient(text));
    }
    tracing::warn!(container = name, "a container is replaced that an earlier start has left");
    remove(client, name).await;
    Ok(())
}

pub(super) async fn remove(client: &Docker, container: &str) {
    let options = RemoveContainerOptions { force: true, v: true, ..RemoveContainerOptions::default() };
    if let Err(error) = client.remove_container(container, Some(options)).await
        && !engine::is_missing(&error)
    {
        tracing::warn!(container, %error, "a container was not removed");
    }
}

/// Starts the container, and looks at it.
async fn run(
    shared: &Shared,
    client: &Docker,
    id: &str,
    logs: Option<&Logs>,
) -> Result<ContainerInspectResponse, StartError> {
    if let Some(logs) = logs {
        logs::begin(&shared.note(id), logs).map_err(StartError::transient)?;
    }
    let mut pause = FIRST_PAUSE;
    for tried in 1.. {
        match client.start_container(id, None::<StartContainerOptions>).await {
            Ok(()) => break,
            Err(error) if tried < TRIES && engine::is_transient(&error) => {}
            Err(error) => {
                let message = format!("Failed to start container {id}: {}", engine::text(&error));
                return Err(StartError::Failed { message, recoverable: is_recoverable(&error) });
            }
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
    let found = client.inspect_container(id, None).await;
    found.map_err(|error| {
        StartError::transient(format!("Failed to inspect container: {}", engine::text(&error)))
    })
}

/// What is missing in the image will be missing the next time.
fn is_recoverable(error: &Error) -> bool {
    let text = engine::text(error);
    let absent = ["no such file or directory", "executable file not found", "permission denied"];
    engine::is_transient(error) || !absent.iter().any(|sign| text.contains(sign))
}

/// Where the container can be reached, if it has an address of its own.
fn network(config: &TaskConfig, found: &ContainerInspectResponse) -> Option<DriverNetwork> {
    let networks = found.network_settings.as_ref()?.networks.as_ref()?;
    let mut names: Vec<&String> = networks.keys().collect();
    names.sort_unstable();
    let address = |network: &EndpointSettings| network.ip_address.clone().filter(|ip| !ip.is_empty());
    let (name, ip) = names.into_iter().find_map(|name| Some((name, address(&networks[name])?)))?;
    let v6 = networks[name].global_ipv6_address.clone().filter(|ip| !ip.is_empty());
    let v6 = v6.filter(|_| config.config.boolean("advertise_ipv6_address"));
    let auto_advertise = v6.is_some() || name != "bridge";
    Some(DriverNetwork { ip: v6.unwrap_or(ip), port_map: parts::port_map(config), auto_advertise })
}
