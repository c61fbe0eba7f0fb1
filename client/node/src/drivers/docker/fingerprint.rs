//! Whether there is an engine, and what it can do.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bollard::Docker;
use bollard::errors::Error;
use bollard::models::SystemInfo;
use bollard::query_parameters::EventsOptions;
use futures_util::stream::{self, BoxStream, StreamExt};
use tokio::time::{sleep, timeout};

use super::Shared;
use super::engine::{self, NO_ENGINE};
use crate::driver::{Fingerprint, Health};

/// How often an engine is looked at that is there, and one that is not.
const LOOK_EVERY: Duration = Duration::from_secs(30);
const RETRY_EVERY: Duration = Duration::from_secs(2);

/// How long it may take to say what it is.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// The first at once, then one whenever the engine may have come, gone or changed.
pub fn fingerprints(shared: Arc<Shared>) -> BoxStream<'static, Fingerprint> {
    let next = move |last: Option<Health>| {
        let shared = Arc::clone(&shared);
        async move {
            match last {
                None => {}
                Some(Health::Healthy) => until_gone(&shared).await,
                Some(_) => sleep(RETRY_EVERY).await,
            }
            let fingerprint = fingerprint(&shared).await;
            let health = fingerprint.health;
            Some((fingerprint, Some(health)))
        }
    };
    stream::unfold(None, next).boxed()
}

/// Returns when the connection to the engine ends, or it is time to look again.
async fn until_gone(shared: &Shared) {
    let gone = async {
        let Ok(client) = shared.engine.client().await else { return };
        let mut events = client.events(None::<EventsOptions>);
        while let Some(Ok(_)) = events.next().await {}
    };
    if timeout(LOOK_EVERY, gone).await.is_ok() {
        // An engine that is ending still answers for a moment.
        sleep(Duration::from_millis(200)).await;
    }
}

async fn fingerprint(shared: &Shared) -> Fingerprint {
    let looked = timeout(ANSWER_TIMEOUT, look(shared)).await.unwrap_or(Err(Error::RequestTimeoutError));
    match looked {
        Ok(attributes) => {
            shared.seen.store(true, Ordering::Relaxed);
            Fingerprint::healthy(attributes)
        }
        Err(error) if shared.seen.load(Ordering::Relaxed) => {
            tracing::debug!(%error, "the engine does not answer");
            Fingerprint {
                health: Health::Unhealthy,
                description: NO_ENGINE.to_string(),
                attributes: BTreeMap::new(),
            }
        }
        Err(error) => Fingerprint::undetected(&engine::text(&error)),
    }
}

async fn look(shared: &Shared) -> Result<BTreeMap<String, String>, Error> {
    let client = shared.engine.greet().await?;
    let info = client.info().await?;
    let mut attributes = attributes(shared, &info);
    if let Some(gateway) = bridge_gateway(&client).await {
        attributes.insert("driver.docker.bridge_ip".to_string(), gateway);
    }
    Ok(attributes)
}

fn attributes(shared: &Shared, info: &SystemInfo) -> BTreeMap<String, String> {
    let settings = &shared.settings;
    let mut runtimes: Vec<&str> = info.runtimes.iter().flatten().map(|(name, _)| name.as_str()).collect();
    runtimes.sort_unstable();
    let on = |on: bool| on.then(|| "true".to_string());
    let known = [
        ("", Some("1".to_string())),
        (".version", info.server_version.clone()),
        (".os_type", info.os_type.clone()),
        (".runtimes", Some(runtimes.join(","))),
        (".privileged.enabled", on(settings.allow_privileged)),
        (".volumes.enabled", on(settings.volumes_enabled)),
        (".pids.limit", settings.pids_limit.map(|limit| limit.to_string())),
    ];
    known.into_iter().filter_map(|(name, value)| Some((format!("driver.docker{name}"), value?))).collect()
}

/// Where containers of the default network reach the host.
async fn bridge_gateway(client: &Docker) -> Option<String> {
    let network = client.inspect_network("bridge", None).await.ok()?;
    network.ipam?.config?.into_iter().find_map(|config| config.gateway)
}
