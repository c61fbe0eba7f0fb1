//! Containers of this node that no task is.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde::Deserialize;
use tokio::time::timeout;

use super::{Engine, Fault, Listed, Shared, State};
use crate::clock;
use crate::driver::Known;

/// How long the engine may take at the start of the agent, which waits for it.
const PATIENCE: Duration = Duration::from_secs(15);

/// The waits before the first looks: what the engine was busy with as the last agent died comes to be a moment later. The last
/// of them is over when nothing can come any more.
const FIRST_LOOKS: [Duration; 4] = [
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_secs(LATE_SECONDS as u64),
];

/// How soon is looked again after the engine has not answered.
const RETRY_EVERY: Duration = Duration::from_secs(30);

/// How long after the start of this agent the engine may still make what an earlier one has asked for. Nobody but an
/// agent of this node asks for containers with its label, and what this one asks for is tracked before.
const LATE_SECONDS: i64 = 60;

/// What earlier agents have stored.
#[derive(Debug, Default)]
pub struct Earlier {
    /// The containers of their tasks.
    containers: BTreeSet<String>,
    allocs: BTreeSet<String>,
}

/// Removes what an agent has left that died between a start and the storing of its handle. If the engine does not answer
/// now, or is still busy with it, [`begin`] does it later.
pub async fn end_unknown<E: Engine>(shared: &Arc<Shared<E>>, handle_key: &str, known: &Known) {
    let containers: BTreeSet<String> = known
        .handles
        .iter()
        .filter(|handle| handle.key == handle_key)
        .filter_map(|handle| State::deserialize(&handle.state).ok())
        .map(|state| state.container_id)
        .collect();
    let sweep = async {
        // Those that have networks of groups are removed with these.
        for container in shared.engine.own_containers(&shared.node_id).await? {
            if !container.has_network && !containers.contains(&container.id) {
                tracing::warn!(container = container.id, "ending a container that no handle names");
                shared.engine.remove(&container.id).await?;
            }
        }
        Ok::<_, Fault>(())
    };
    if let Ok(Err(error)) = timeout(PATIENCE, sweep).await {
        tracing::debug!(%error, "containers that no handle names were not looked for");
    }
    forget_notes(shared, &containers);
    begin(shared, Earlier { containers, allocs: known.allocs.clone() });
}

/// Removes notes about the output of containers that nobody will ask for.
fn forget_notes<E: Engine>(shared: &Shared<E>, known: &BTreeSet<String>) {
    for entry in std::fs::read_dir(&shared.directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_known = path.file_stem().and_then(|id| id.to_str()).is_some_and(|id| known.contains(id));
        if !is_known {
            std::fs::remove_file(path).ok();
        }
    }
}

/// Looks again and again, for as long as there is a driver.
fn begin<E: Engine>(shared: &Arc<Shared<E>>, earlier: Earlier) {
    let dangling = shared.gc.dangling;
    if !dangling.enabled || shared.sweeping.swap(true, Ordering::Relaxed) {
        return;
    }
    let began = now();
    let shared = Arc::downgrade(shared);
    tokio::spawn(async move {
        let mut first = FIRST_LOOKS.into_iter();
        let mut wait = first.next();
        loop {
            tokio::time::sleep(wait.unwrap_or(dangling.period)).await;
            let Some(shared) = shared.upgrade() else { return };
            wait = first.next().map(|wait| wait.min(dangling.period));
            if let Err(error) = sweep(&shared, &earlier, began).await {
                tracing::debug!(%error, "containers that no task is were not looked for");
                wait = wait.or(Some(RETRY_EVERY.min(dangling.period)));
            }
        }
    });
}

/// In seconds.
fn now() -> i64 {
    clock::now().0 / 1_000_000_000
}

async fn sweep<E: Engine>(shared: &Shared<E>, earlier: &Earlier, began: i64) -> Result<(), Fault> {
    let limits = Limits {
        is_left_before: began + LATE_SECONDS,
        is_old_before: now() - shared.gc.dangling.creation_grace.as_secs() as i64,
        also_ended: shared.gc.container,
    };
    for container in shared.engine.own_containers(&shared.node_id).await? {
        if !is_dangling(&container, |key| shared.is_tracked(key), earlier, limits) {
            continue;
        }
        if shared.gc.dangling.dry_run {
            tracing::info!(container = container.id, "a container that no task is would be removed");
        } else {
            tracing::warn!(container = container.id, "removing a container that no task is");
            shared.engine.remove(&container.id).await?;
        }
    }
    Ok(())
}

/// In seconds of the host's clock.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// What was made before, and is neither tracked nor stored, was left by an earlier agent.
    is_left_before: i64,
    is_old_before: i64,
    /// False where containers stay that have ended.
    also_ended: bool,
}

fn is_dangling(
    container: &Listed,
    is_tracked: impl Fn(&str) -> bool,
    earlier: &Earlier,
    limits: Limits,
) -> bool {
    let is_known = is_tracked(&container.id) || container.names.iter().any(|name| is_tracked(name));
    if is_known || !(limits.also_ended || container.is_running) {
        return false;
    }
    let Some(created) = container.created else { return false };
    // A network of a group that is set up again may not be tracked yet.
    let is_stored = match container.has_network {
        true => container.alloc.as_ref().is_some_and(|alloc| earlier.allocs.contains(alloc)),
        false => earlier.containers.contains(&container.id),
    };
    created < limits.is_old_before || (!is_stored && created < limits.is_left_before)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container() -> Listed {
        Listed {
            id: "c1".into(),
            names: vec!["web-1".into()],
            created: Some(100),
            is_running: true,
            ..Listed::default()
        }
    }

    #[test]
    fn only_old_containers_that_nobody_tracks_are_dangling() {
        let (running, exited) = (container(), Listed { is_running: false, ..container() });
        let of = |container: &Listed, tracked: &str, before: i64, also_ended: bool| {
            let limits = Limits { is_left_before: 0, is_old_before: before, also_ended };
            is_dangling(container, |key| key == tracked, &Earlier::default(), limits)
        };
        assert!(of(&running, "", 101, true));
        assert!(!of(&running, "", 100, true), "too young");
        assert!(!of(&running, "web-1", 101, true), "its start is under way");
        assert!(!of(&running, "c1", 101, true));
        assert!(of(&exited, "", 101, true));
        assert!(!of(&exited, "", 101, false), "containers are to stay");
    }

    #[test]
    fn what_an_earlier_agent_left_needs_no_grace_unless_it_is_stored() {
        let limits = Limits { is_left_before: 101, is_old_before: 0, also_ended: true };
        let of = |container: &Listed, earlier: &Earlier| is_dangling(container, |_| false, earlier, limits);
        let nothing = Earlier::default();
        assert!(of(&container(), &nothing));
        assert!(!of(&Listed { created: Some(101), ..container() }, &nothing), "of this agent");
        let stored = Earlier { containers: ["c1".to_string()].into(), ..Earlier::default() };
        assert!(!of(&container(), &stored), "its task is being restored");
        let network = Listed { has_network: true, alloc: Some("a".into()), ..container() };
        assert!(of(&network, &stored));
        let stored = Earlier { allocs: ["a".to_string()].into(), ..Earlier::default() };
        assert!(!of(&network, &stored), "its group is being restored");
    }
}
