//! Containers of this node that no task is.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bollard::errors::Error;
use bollard::models::{ContainerSummary, ContainerSummaryStateEnum};
use bollard::query_parameters::{ListContainersOptions, RemoveContainerOptions};
use serde::Deserialize;
use tokio::time::timeout;

use super::container::NODE_LABEL;
use super::engine;
use super::pause;
use super::shared::Shared;
use super::start::State;
use crate::clock;
use crate::driver::TaskHandle;

/// How long the engine may take at the start of the agent, which waits for it.
const PATIENCE: Duration = Duration::from_secs(15);

/// Removes what an agent has left that died between a start and the storing of its handle. If the engine does not answer
/// now, [`run`] does it later.
pub async fn end_unknown(shared: &Shared, handle_key: &str, known: &[TaskHandle]) {
    let known: BTreeSet<String> = known
        .iter()
        .filter(|handle| handle.key == handle_key)
        .filter_map(|handle| State::deserialize(&handle.state).ok())
        .map(|state| state.container_id)
        .collect();
    let sweep = async {
        let mut own = own(shared).await?;
        // Those that have networks of groups are removed with these.
        own.retain(|container| {
            container.labels.as_ref().is_none_or(|labels| !labels.contains_key(pause::LABEL))
        });
        for container in own {
            let Some(id) = container.id.filter(|id| !known.contains(id)) else { continue };
            tracing::warn!(container = id, "ending a container that no handle names");
            remove(shared, &id).await?;
        }
        Ok::<_, Error>(())
    };
    if let Ok(Err(error)) = timeout(PATIENCE, sweep).await {
        tracing::debug!(%error, "containers that no handle names were not looked for");
    }
    forget_notes(shared, &known);
}

/// Removes notes about the output of containers that nobody will ask for.
fn forget_notes(shared: &Shared, known: &BTreeSet<String>) {
    for entry in std::fs::read_dir(&shared.directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_known = path.file_stem().and_then(|id| id.to_str()).is_some_and(|id| known.contains(id));
        if !is_known {
            std::fs::remove_file(path).ok();
        }
    }
}

/// Looks again and again, for as long as there is a driver.
pub fn begin(shared: &Arc<Shared>) {
    let dangling = shared.settings.gc.dangling;
    if !dangling.enabled || shared.sweeping.swap(true, Ordering::Relaxed) {
        return;
    }
    let shared = Arc::downgrade(shared);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(dangling.period).await;
            let Some(shared) = shared.upgrade() else { return };
            if let Err(error) = sweep(&shared).await {
                tracing::debug!(%error, "containers that no task is were not looked for");
            }
        }
    });
}

async fn sweep(shared: &Shared) -> Result<(), Error> {
    let now = clock::now().0 / 1_000_000_000;
    let grace = shared.settings.gc.dangling.creation_grace.as_secs() as i64;
    for container in own(shared).await? {
        if !is_dangling(&container, |key| shared.is_tracked(key), now - grace, shared.settings.gc.container) {
            continue;
        }
        let id = container.id.unwrap_or_default();
        if shared.settings.gc.dangling.dry_run {
            tracing::info!(container = id, "a container that no task is would be removed");
        } else {
            tracing::warn!(container = id, "removing a container that no task is");
            remove(shared, &id).await?;
        }
    }
    Ok(())
}

/// `all` is false where containers stay that have ended.
fn is_dangling(
    container: &ContainerSummary,
    is_tracked: impl Fn(&str) -> bool,
    before: i64,
    all: bool,
) -> bool {
    let Some(id) = &container.id else { return false };
    let names = container.names.iter().flatten().map(|name| name.trim_start_matches('/'));
    let is_known = is_tracked(id) || names.into_iter().any(is_tracked);
    let is_running = container.state == Some(ContainerSummaryStateEnum::RUNNING);
    !is_known && container.created.is_some_and(|created| created < before) && (all || is_running)
}

/// Containers that this node has made. Those of other agents on the host, Nomad's too, are theirs.
async fn own(shared: &Shared) -> Result<Vec<ContainerSummary>, Error> {
    let label = format!("{NODE_LABEL}={}", shared.node_id);
    let options = ListContainersOptions {
        all: true,
        filters: Some(HashMap::from([("label".to_string(), vec![label])])),
        ..ListContainersOptions::default()
    };
    shared.engine.client().await?.list_containers(Some(options)).await
}

async fn remove(shared: &Shared, id: &str) -> Result<(), Error> {
    let options = RemoveContainerOptions { force: true, v: true, ..RemoveContainerOptions::default() };
    match shared.engine.client().await?.remove_container(id, Some(options)).await {
        Err(error) if !engine::is_missing(&error) && !engine::is_conflict(&error) => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_old_containers_that_nobody_tracks_are_dangling() {
        let container = |state: &str| -> ContainerSummary {
            let summary = json!({"Id": "c1", "Names": ["/web-1"], "Created": 100, "State": state});
            serde_json::from_value(summary).unwrap()
        };
        let (running, exited) = (container("running"), container("exited"));
        assert!(is_dangling(&running, |_| false, 101, true));
        assert!(!is_dangling(&running, |_| false, 100, true), "too young");
        assert!(!is_dangling(&running, |key| key == "web-1", 101, true), "its start is under way");
        assert!(!is_dangling(&running, |key| key == "c1", 101, true));
        assert!(is_dangling(&exited, |_| false, 101, true));
        assert!(!is_dangling(&exited, |_| false, 101, false), "containers are to stay");
    }
}
