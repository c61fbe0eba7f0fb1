//! Variables. What they hold is sealed before a command is given, and nothing here can open it: that it is the same as before
//! follows from its digest, and that it is not too large was checked by who sealed it, and is bounded here.

use base::{Duration, Index, Uuid};
use model::command::{AcquireVariableLock, RESEALED_MAX, ResealVersion, SetVariable};
use model::event::{
    ResealedVersion, RootKeysRekeyed, VariableDeleted, VariableLockAcquired, VariableLockReleased,
    VariableSet, VariablesResealed,
};
use model::{Rejection, SealedItems, VariableKey};
use state::State;
use state::variable::{Variable, Variables};

use crate::decision::Decision;

/// Longest path, in bytes.
const PATH_MAX: usize = 128;
/// Keys and values of one variable together, in bytes.
pub const ITEMS_BYTES_MAX: usize = 65_536;
/// The same sealed: each key and each value takes up to five bytes more, and has one at least between both.
const SEALED_BYTES_MAX: usize = 8 * ITEMS_BYTES_MAX;
/// Variables at the same time, and what all their versions take, sealed: they are in the memory of every server.
const VARIABLES_MAX: usize = 65_536;
const TOTAL_BYTES_MAX: u64 = 256 << 20;

pub const LOCK_TTL_MIN: Duration = Duration::from_secs(10);
pub const LOCK_TTL_MAX: Duration = Duration::from_secs(24 * 3600);
pub const LOCK_DELAY_MAX: Duration = Duration::from_secs(24 * 3600);

/// Whether a variable may be called so.
///
/// # Errors
/// [`Rejection::VariableInvalid`].
pub fn check_path(path: &str) -> Result<(), Rejection> {
    let is_fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '~' | '/');
    if !(1..=PATH_MAX).contains(&path.len()) || !path.chars().all(is_fit) {
        return invalid(format!("invalid path {path:?}: expected 1 to {PATH_MAX} of a-z A-Z 0-9 - _ ~ /"));
    }
    let parts: Vec<&str> = path.split('/').collect();
    match parts[..] {
        ["nomad", "jobs" | "sentinel", ..] => Ok(()),
        ["nomad", "job-templates", name] if !name.is_empty() => Ok(()),
        ["nomad", ..] => invalid(format!(
            "invalid path {path:?}: only nomad/jobs, paths below it, and nomad/job-templates/NAME are allowed \
             below nomad"
        )),
        _ => Ok(()),
    }
}

/// # Errors
/// [`Rejection::VariableConflict`] if it is another one than the caller saw, or is locked by somebody else.
pub(crate) fn set(state: &State, wanted: &SetVariable) -> Result<Decision, Rejection> {
    let SetVariable { key, items, only_at, lock } = wanted;
    check_name(state, key)?;
    check_items(state, key, items)?;
    let before = state.variables.get(key);
    check_unchanged(key, before, *only_at)?;
    check_holder(key, before, *lock)?;
    if before.is_some_and(|before| before.current().items.is_same(items)) {
        return Ok(Decision::nothing());
    }
    check_room(&state.variables, before, items)?;
    Ok(VariableSet { key: key.clone(), items: items.clone() }.into())
}

/// One that is not there is gone already.
///
/// # Errors
/// As [`set`].
pub(crate) fn delete(
    state: &State,
    key: &VariableKey,
    only_at: Option<Index>,
    lock: Option<Uuid>,
) -> Result<Decision, Rejection> {
    let before = state.variables.get(key);
    check_unchanged(key, before, only_at)?;
    check_holder(key, before, lock)?;
    match before {
        Some(_) => Ok(VariableDeleted { key: key.clone() }.into()),
        None => Ok(Decision::nothing()),
    }
}

/// # Errors
/// [`Rejection::VariableConflict`] while somebody else has it, and for a while after they lost it.
pub(crate) fn acquire(state: &State, wanted: &AcquireVariableLock) -> Result<Decision, Rejection> {
    let AcquireVariableLock { key, items, keep_items, lock } = wanted;
    check_name(state, key)?;
    check_items(state, key, items)?;
    if lock.id.is_nil() {
        return invalid("invalid lock ID: expected a UUID");
    }
    if lock.ttl < LOCK_TTL_MIN || lock.ttl > LOCK_TTL_MAX {
        return invalid(format!("invalid lock TTL {}: expected {LOCK_TTL_MIN} to {LOCK_TTL_MAX}", lock.ttl));
    }
    if lock.delay < Duration::ZERO || lock.delay > LOCK_DELAY_MAX {
        return invalid(format!("invalid lock delay {}: expected 0s to {LOCK_DELAY_MAX}", lock.delay));
    }
    let before = state.variables.get(key);
    if let Some(own) = before.and_then(|before| before.lock) {
        if own.id == lock.id {
            return invalid("variable already holds a lock");
        }
        return conflict(key, before);
    }
    let keeps = before.is_some_and(|before| *keep_items || before.current().items.is_same(items));
    if !keeps {
        check_room(&state.variables, before, items)?;
    }
    let items = (!keeps).then(|| items.clone());
    Ok(VariableLockAcquired { key: key.clone(), lock: *lock, items }.into())
}

/// # Errors
/// [`Rejection::VariableUnknown`]; [`Rejection::VariableConflict`] unless this lock is the one that it has.
pub(crate) fn release(state: &State, key: &VariableKey, lock: Uuid) -> Result<Decision, Rejection> {
    let before = state.variables.get(key).ok_or_else(|| Rejection::VariableUnknown(key.clone()))?;
    match before.lock {
        Some(own) if own.id == lock => {
            Ok(VariableLockReleased { key: key.clone(), lock, expired: false }.into())
        }
        _ => conflict(key, Some(before)),
    }
}

/// It may have been given back meanwhile.
pub(crate) fn expire(state: &State, key: &VariableKey, lock: Uuid) -> Decision {
    let own = state.variables.get(key).and_then(|variable| variable.lock);
    match own {
        Some(own) if own.id == lock => VariableLockReleased { key: key.clone(), lock, expired: true }.into(),
        _ => Decision::nothing(),
    }
}

/// Compares and swaps: a version that has other items meanwhile, or another seal, is left alone.
pub(crate) fn reseal(state: &State, wanted: &[ResealVersion]) -> Result<Decision, Rejection> {
    if wanted.len() > RESEALED_MAX {
        return invalid(format!("at most {RESEALED_MAX} versions are sealed anew at once"));
    }
    let active = state.keyring.active().map(|(key, _)| key);
    let mut versions: Vec<ResealedVersion> = Vec::new();
    for ResealVersion { key, version, before, from, items } in wanted {
        check_items(state, key, items)?;
        let known = state.variables.get(key).and_then(|variable| variable.version(*version));
        let is_same =
            known.is_some_and(|known| known.items.sealed.key == *from && known.items.digest == *before);
        let is_new = versions.iter().all(|other| other.key != *key || other.version != *version);
        if is_same && is_new && Some(items.sealed.key) == active && *from != items.sealed.key {
            versions.push(ResealedVersion { key: key.clone(), version: *version, items: items.clone() });
        }
    }
    if versions.is_empty() { Ok(Decision::nothing()) } else { Ok(VariablesResealed { versions }.into()) }
}

/// Keys that were to be replaced, and seal no version of a variable any more.
pub(crate) fn finish_rekey(state: &State) -> Decision {
    let seals = |key: &Uuid| state.variables.iter().any(|(_, variable)| variable.is_sealed_with(*key));
    let keys: Vec<Uuid> = state.keyring.rekeying().iter().filter(|key| !seals(key)).copied().collect();
    if keys.is_empty() { Decision::nothing() } else { RootKeysRekeyed { keys }.into() }
}

fn check_name(state: &State, key: &VariableKey) -> Result<(), Rejection> {
    check_path(&key.path)?;
    if !state.namespaces.exists(&key.namespace) {
        return Err(Rejection::NamespaceUnknown(key.namespace.clone()));
    }
    Ok(())
}

fn check_items(state: &State, key: &VariableKey, items: &SealedItems) -> Result<(), Rejection> {
    if items.sealed.bytes.is_empty() || items.sealed.bytes.len() > SEALED_BYTES_MAX {
        return invalid(format!("invalid items: expected 1 to {SEALED_BYTES_MAX} bytes, sealed"));
    }
    let is_own = || state.erasure.tree().is_some() && items.sealed.key == state.erasure.key_of(key);
    if !state.keyring.keys().contains_key(&items.sealed.key) && !is_own() {
        return invalid(
            "the items are encrypted with a root key that was removed meanwhile, or the variable was forgotten \
             meanwhile: try again",
        );
    }
    Ok(())
}

fn check_room(
    variables: &Variables,
    before: Option<&Variable>,
    items: &SealedItems,
) -> Result<(), Rejection> {
    if before.is_none() && variables.len() >= VARIABLES_MAX {
        return invalid(format!("there are {VARIABLES_MAX} variables already: purge some"));
    }
    if variables.bytes() + items.sealed.bytes.len() as u64 > TOTAL_BYTES_MAX {
        return invalid(format!(
            "all variables and the versions before them take {TOTAL_BYTES_MAX} bytes at most: purge some"
        ));
    }
    Ok(())
}

fn check_unchanged(
    key: &VariableKey,
    before: Option<&Variable>,
    only_at: Option<Index>,
) -> Result<(), Rejection> {
    let at = before.map_or(Index::ZERO, |before| before.modified);
    if only_at.is_some_and(|only_at| only_at != at) { conflict(key, before) } else { Ok(()) }
}

/// Who names a lock that the variable has no more has lost it, and somebody else may have had it since.
pub(crate) fn check_holder(
    key: &VariableKey,
    before: Option<&Variable>,
    lock: Option<Uuid>,
) -> Result<(), Rejection> {
    let own = before.and_then(|before| before.lock).map(|lock| lock.id);
    if own == lock { Ok(()) } else { conflict(key, before) }
}

fn conflict<T>(key: &VariableKey, before: Option<&Variable>) -> Result<T, Rejection> {
    let at = before.map_or(Index::ZERO, |before| before.modified);
    Err(Rejection::VariableConflict { key: key.clone(), at })
}

pub(crate) fn invalid<T>(why: impl Into<String>) -> Result<T, Rejection> {
    Err(Rejection::VariableInvalid(why.into()))
}
