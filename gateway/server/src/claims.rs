//! Releases claims of volumes whose allocations have ended: the leader has them unmounted, detached and forgotten.
//!
//! What is done next follows from the state alone ([`next`]), so a new leader goes on where the last one was. Every call may be
//! made twice: the interface of storage plugins demands that.

use std::collections::BTreeMap;
use std::time::Duration;

use control::Control;
use http_gateway::Storage;
use model::{Actor, AllocId, Command, CsiClaim, NodeStatus, Request, VolumeKey};
use state::State;
use state::volume::Claimed;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// How often claims are looked at, besides whenever something was written.
const POLL: Duration = Duration::from_secs(5);
/// A node that is alive gives its volumes back itself. After so long it is asked to.
const GRACE: Duration = Duration::from_secs(90);
/// Before what failed is tried again; twice as long each time after that, up to the second.
const AGAIN: Duration = Duration::from_secs(1);
const AGAIN_MAX: Duration = Duration::from_secs(60);
/// Claims that are worked on at the same time. The others wait; a plugin takes two minutes for a call at most.
const AT_WORK_MAX: usize = 16;

type Key = (VolumeKey, AllocId);

/// What a claim needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The node is to unmount what is left.
    Unmount,
    /// There is nobody who could: the node is down, or known no more.
    GiveUpNode,
    /// A controller is to detach the volume from the node.
    Detach,
    /// Nothing more.
    Release,
}

/// `None` as long as the allocation lives.
fn next(state: &State, (volume, alloc): (&VolumeKey, AllocId), claimed: &Claimed) -> Option<Step> {
    if claimed.detached {
        let stays = state.claims.is_taken_on(volume, claimed.claim.node, alloc);
        return Some(if claimed.claim.attached && !stays { Step::Detach } else { Step::Release });
    }
    if state.allocs.lookup(alloc).is_some_and(|alloc| alloc.takes_room()) {
        return None;
    }
    let is_up = state.nodes.find(claimed.claim.node).is_some_and(|row| {
        let hot = state.nodes.hot(row);
        !hot.gone && hot.status != NodeStatus::Down
    });
    Some(if is_up { Step::Unmount } else { Step::GiveUpNode })
}

/// When a claim may be worked on.
struct Pending {
    step: Step,
    not_before: Instant,
    pause: Duration,
    at_work: bool,
}

/// Goes on for as long as the server runs.
pub(crate) async fn keep(control: Control, storage: Storage) {
    let mut pending: BTreeMap<Key, Pending> = BTreeMap::new();
    let mut work: JoinSet<(Key, Result<(), String>)> = JoinSet::new();
    let mut news = control.watch();
    loop {
        news.borrow_and_update();
        let mut until = Instant::now() + POLL;
        if control.leads() {
            let state = control.state();
            refresh(&state, &mut pending);
            if let Some(earlier) = begin(&state, &mut pending, &mut work, (&control, &storage)) {
                until = until.min(earlier);
            }
        } else {
            pending.clear();
            work.abort_all();
        }
        tokio::select! {
            Some(done) = work.join_next() => {
                if let Ok((key, result)) = done {
                    finish(&mut pending, key, result);
                }
            }
            changed = news.changed() => if changed.is_err() { return },
            () = sleep(until.saturating_duration_since(Instant::now())) => {}
        }
    }
}

/// What the claims need now. Those that need nothing any more are forgotten.
fn refresh(state: &State, pending: &mut BTreeMap<Key, Pending>) {
    let mut due: BTreeMap<Key, Step> = BTreeMap::new();
    for (volume, alloc, claimed) in state.claims.iter() {
        if let Some(step) = next(state, (volume, alloc), claimed) {
            due.insert((volume.clone(), alloc), step);
        }
    }
    pending.retain(|key, known| known.at_work || due.get(key) == Some(&known.step));
    for (key, step) in due {
        pending.entry(key).or_insert_with(|| {
            let wait = if step == Step::Unmount { GRACE } else { Duration::ZERO };
            Pending { step, not_before: Instant::now() + wait, pause: AGAIN, at_work: false }
        });
    }
}

/// Begins with what may be done, and returns when there is more.
fn begin(
    state: &State,
    pending: &mut BTreeMap<Key, Pending>,
    work: &mut JoinSet<(Key, Result<(), String>)>,
    (control, storage): (&Control, &Storage),
) -> Option<Instant> {
    let now = Instant::now();
    for (key, known) in pending.iter_mut().filter(|(_, known)| !known.at_work && known.not_before <= now) {
        if work.len() >= AT_WORK_MAX {
            break;
        }
        let Some(claimed) = state.claims.get(&key.0, key.1) else { continue };
        known.at_work = true;
        let (control, storage, claim) = (control.clone(), storage.clone(), claimed.claim.clone());
        let (key, step) = (key.clone(), known.step);
        work.spawn(async move {
            let done = take(&control, &storage, &key, &claim, step).await;
            (key, done)
        });
    }
    pending.values().filter(|known| !known.at_work).map(|known| known.not_before).min()
}

fn finish(pending: &mut BTreeMap<Key, Pending>, key: Key, result: Result<(), String>) {
    let Err(error) = result else {
        pending.remove(&key);
        return;
    };
    tracing::warn!(volume = %key.0, alloc = %key.1, error, "a claim of a volume is not released yet");
    if let Some(known) = pending.get_mut(&key) {
        known.at_work = false;
        known.not_before = Instant::now() + known.pause;
        known.pause = (known.pause * 2).min(AGAIN_MAX);
    }
}

async fn take(
    control: &Control,
    storage: &Storage,
    (volume, alloc): &Key,
    claim: &CsiClaim,
    step: Step,
) -> Result<(), String> {
    match step {
        Step::Unmount => storage.unmount(volume, *alloc, claim).await.map_err(|failure| failure.text)?,
        Step::Detach => storage.detach(volume, claim).await.map_err(|failure| failure.text)?,
        Step::GiveUpNode | Step::Release => {}
    }
    let (volume, alloc) = (volume.clone(), *alloc);
    let command = match step {
        Step::Unmount | Step::GiveUpNode => Command::DetachCsiClaim { volume, alloc, node: None },
        Step::Detach | Step::Release => Command::ReleaseCsiClaim { volume, alloc },
    };
    let request = Request::unnamed(Actor::Server("volumes".to_string()), command);
    control.submit(request).await.map(drop).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
