//! Forks that are kept: in the memory of the server that made them, until their time is over.
//!
//! Nothing of them is written. A fork is read by who made it, and by who may do everything.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::{Duration, Time, Uuid};
use control::whatif::KeptFork;
use model::document::{ForkCounts, ForkKept, ForkResult};
use parking_lot::Mutex;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::access::{Access, Who};
use crate::app_state::now;
use crate::error::Failure;
use crate::request::random;

/// Forks that are kept at the same time; one more is answered 429. Each holds on to the state that it began with, of which the
/// cluster goes on: at most one more copy of the state each.
pub(crate) const KEPT_MAX: usize = 16;

/// The same of one caller, where callers are known: another one finds room too.
pub(crate) const KEPT_PER_CALLER_MAX: usize = 4;

/// Allocations that all kept forks together may have changed or added; what would come to more is answered 429 and not kept. At
/// some 2 KiB each, half a gigabyte.
pub(crate) const KEPT_ALLOCATIONS_MAX: usize = 250_000;

/// The longest time that a fork is kept.
pub(crate) const TTL_MAX: Duration = Duration::from_secs(24 * 3600);

/// How long a caller shall wait who finds no room: somebody has to delete one, or its time has to end.
const RETRY_AFTER: u64 = 60;

#[derive(Default)]
pub(crate) struct KeptForks(Mutex<BTreeMap<Uuid, Entry>>);

struct Entry {
    owner: Who,
    /// None while it is computed for the first time.
    fork: Option<Arc<KeptFork>>,
    counts: ForkCounts,
    created: Time,
    expires: Time,
    ends: Instant,
    /// Somebody computes what it becomes.
    busy: bool,
    /// Removes it when its time is over.
    timer: Option<AbortHandle>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        if let Some(timer) = &self.timer {
            timer.abort();
        }
    }
}

/// Somebody computes what a fork becomes. Dropped without a result, everything stays as it was.
pub(crate) struct Turn {
    forks: Arc<KeptForks>,
    id: Uuid,
    ttl: Duration,
}

impl KeptForks {
    /// Room for one more fork, before it is computed.
    ///
    /// # Errors
    /// 429: there are as many as there may be.
    pub(crate) fn begin(self: &Arc<KeptForks>, access: &Access, ttl: Duration) -> Result<Turn, Failure> {
        let mut forks = self.living();
        if forks.len() >= KEPT_MAX {
            let text = format!("{KEPT_MAX} forks are kept already: delete one, or wait until one expires");
            return Err(Failure::too_many(text).after(RETRY_AFTER));
        }
        let own = forks.values().filter(|entry| is_same(&entry.owner, &access.who)).count();
        if access.who != Who::Everybody && own >= KEPT_PER_CALLER_MAX {
            let text = format!(
                "{KEPT_PER_CALLER_MAX} forks of this caller are kept already: delete one, or wait until one expires"
            );
            return Err(Failure::too_many(text).after(RETRY_AFTER));
        }
        let (id, created) = (Uuid::from_random(random()), now());
        let entry = Entry {
            owner: access.who.clone(),
            fork: None,
            counts: ForkCounts::default(),
            created,
            expires: created.plus(ttl),
            ends: Instant::now() + ttl.to_std(),
            busy: true,
            timer: None,
        };
        forks.insert(id, entry);
        Ok(Turn { forks: self.clone(), id, ttl })
    }

    /// A fork that is to become another one, which nobody else works on meanwhile.
    ///
    /// # Errors
    /// 404, and 409 while somebody does.
    pub(crate) fn change(
        self: &Arc<KeptForks>,
        access: &Access,
        id: &str,
    ) -> Result<(Turn, Arc<KeptFork>), Failure> {
        let mut forks = self.living();
        let id = known(&forks, access, id)?;
        let entry = forks.get_mut(&id).ok_or_else(|| unknown(&id.to_string()))?;
        let fork = entry.fork.clone().filter(|_| !entry.busy);
        let fork = fork.ok_or_else(|| {
            let text = format!("fork {id}: another request is changing it: try again");
            Failure::new(axum::http::StatusCode::CONFLICT, text)
        })?;
        entry.busy = true;
        Ok((Turn { forks: self.clone(), id, ttl: Duration::ZERO }, fork))
    }

    /// # Errors
    /// 404 for one that is not there, not any more, or somebody else's.
    pub(crate) fn find(&self, access: &Access, id: &str) -> Result<Arc<KeptFork>, Failure> {
        Ok(self.find_with_account(access, id)?.0)
    }

    /// The fork, and what lists say of it.
    ///
    /// # Errors
    /// As for [`KeptForks::find`].
    pub(crate) fn find_with_account(
        &self,
        access: &Access,
        id: &str,
    ) -> Result<(Arc<KeptFork>, ForkKept), Failure> {
        let forks = self.living();
        let found = known(&forks, access, id)?;
        let entry = forks.get(&found).ok_or_else(|| unknown(id))?;
        let fork = entry.fork.clone().zip(shown(found, entry));
        fork.ok_or_else(|| unknown(id))
    }

    /// Those that the caller may read, the oldest first.
    pub(crate) fn list(&self, access: &Access) -> Vec<ForkKept> {
        let forks = self.living();
        let own = forks.iter().filter(|(_, entry)| may_read(entry, access));
        let mut shown: Vec<ForkKept> = own.filter_map(|(id, entry)| shown(*id, entry)).collect();
        shown.sort_by(|one, other| (one.created, &one.id).cmp(&(other.created, &other.id)));
        shown
    }

    /// # Errors
    /// As for [`KeptForks::find`].
    pub(crate) fn remove(&self, access: &Access, id: &str) -> Result<(), Failure> {
        let mut forks = self.living();
        let found = known(&forks, access, id)?;
        let removed = forks.remove(&found);
        // What it holds on to is freed when others can go on.
        drop(forks);
        drop(removed);
        Ok(())
    }

    fn remove_expired(&self) {
        drop(self.living());
    }

    /// Those whose time is not over; the others are gone with this.
    fn living(&self) -> parking_lot::MutexGuard<'_, BTreeMap<Uuid, Entry>> {
        let mut forks = self.0.lock();
        let now = Instant::now();
        // One that is computed for the first time begins its time afterwards.
        forks.retain(|_, entry| entry.fork.is_none() || entry.ends > now);
        forks
    }
}

impl Turn {
    /// Keeps what was computed.
    ///
    /// # Errors
    /// 429 if all of them would take too much memory, 404 if its time ended meanwhile.
    pub(crate) fn finish(self, fork: KeptFork, result: &ForkResult) -> Result<ForkKept, Failure> {
        let mut forks = self.forks.living();
        let others =
            forks.iter().filter(|(id, _)| **id != self.id).filter_map(|(_, entry)| entry.fork.as_ref());
        let allocations = others.map(|fork| fork.allocations()).sum::<usize>() + fork.allocations();
        if allocations > KEPT_ALLOCATIONS_MAX {
            let text = format!(
                "kept forks would have changed {allocations} allocations together: at most {KEPT_ALLOCATIONS_MAX} are kept: \
                 delete one, or wait until one expires"
            );
            return Err(Failure::too_many(text).after(RETRY_AFTER));
        }
        let id = self.id;
        let entry = forks.get_mut(&id).ok_or_else(|| unknown(&id.to_string()))?;
        if entry.fork.is_none() {
            entry.created = now();
            entry.expires = entry.created.plus(self.ttl);
            entry.ends = Instant::now() + self.ttl.to_std();
            entry.timer = Some(self.remove_at(entry.ends));
        }
        let before = entry.fork.replace(Arc::new(fork));
        entry.counts.clone_from(&result.counts);
        let shown = shown(id, entry).ok_or_else(|| unknown(&id.to_string()));
        drop(forks);
        drop(before);
        shown
    }

    fn remove_at(&self, ends: Instant) -> AbortHandle {
        let forks = Arc::downgrade(&self.forks);
        let remove = async move {
            tokio::time::sleep_until(ends).await;
            if let Some(forks) = forks.upgrade() {
                forks.remove_expired();
            }
        };
        tokio::spawn(remove).abort_handle()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut forks = self.forks.0.lock();
        if let Some(entry) = forks.get_mut(&self.id) {
            entry.busy = false;
            if entry.fork.is_none() {
                forks.remove(&self.id);
            }
        }
    }
}

fn known(forks: &BTreeMap<Uuid, Entry>, access: &Access, id: &str) -> Result<Uuid, Failure> {
    let found = id.parse().ok().filter(|id| forks.get(id).is_some_and(|entry| may_read(entry, access)));
    found.ok_or_else(|| unknown(id))
}

/// To who may not read it, it is not there.
fn may_read(entry: &Entry, access: &Access) -> bool {
    access.acl.is_management() || is_same(&entry.owner, &access.who)
}

fn is_same(one: &Who, other: &Who) -> bool {
    match (one, other) {
        (Who::Token { accessor: one, .. }, Who::Token { accessor: other, .. }) => one == other,
        (one, other) => one == other,
    }
}

fn unknown(id: &str) -> Failure {
    Failure::not_found(format!("fork {id:?}: this server keeps none of that id, or its time is over"))
}

fn shown(id: Uuid, entry: &Entry) -> Option<ForkKept> {
    let fork = entry.fork.as_ref()?;
    let left = entry.ends.saturating_duration_since(Instant::now());
    let begin = fork.begin();
    Some(ForkKept {
        id: id.to_string(),
        accessor_id: entry.owner.caller().accessor,
        created: entry.created.into(),
        expires: entry.expires.into(),
        remaining: Duration(i64::try_from(left.as_nanos()).unwrap_or(i64::MAX)).into(),
        index: fork.base().index.0,
        fork_index: fork.state().index.0,
        time: fork.now().into(),
        virtual_time: fork.now().since(begin).into(),
        changes: fork.changes() as u64,
        allocations: fork.allocations() as u64,
        ended_by: fork.ended_by().to_string(),
        counts: entry.counts.clone(),
    })
}
