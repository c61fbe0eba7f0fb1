use base::{Duration, Rng, Uuid};
use model::event::*;
use model::{SealedData, SealedItems, VariableKey, VariableLock};
use state::State;

use super::draw::one;

/// What may happen to variables, and to keys because of them.
pub fn events(state: &State, rng: &mut Rng) -> Option<Vec<Event>> {
    let key = VariableKey::new("default", &format!("app/{}", rng.below(3)));
    let known = state.variables.get(&key);
    let former: Vec<Uuid> = {
        let active = state.keyring.active().map(|(key, _)| key);
        state.keyring.keys().keys().copied().filter(|key| Some(*key) != active).collect()
    };
    let rekeying: Vec<Uuid> = state.keyring.rekeying().iter().copied().collect();
    // What needs something to be there comes first, so that a short history has all of it.
    let event = match (rng.below(10), known) {
        (0 | 1, _) if !rekeying.is_empty() => RootKeysRekeyed { keys: vec![one(&rekeying, rng)?] }.into(),
        (0 | 1, _) => RootKeysRekeying { keys: vec![one(&former, rng)?] }.into(),
        (2, Some(_)) => VariableDeleted { key }.into(),
        (3, Some(known)) => {
            let version = one(&known.versions.iter().map(|version| version.number).collect::<Vec<_>>(), rng)?;
            VariablesResealed { versions: vec![ResealedVersion { key, version, items: items(rng) }] }.into()
        }
        (4..6, Some(known)) => match known.lock {
            Some(lock) => VariableLockReleased { key, lock: lock.id, expired: rng.below(2) == 0 }.into(),
            None => VariableLockAcquired { key, lock: lock(rng), items: None }.into(),
        },
        (4, None) => VariableLockAcquired { key, lock: lock(rng), items: Some(items(rng)) }.into(),
        _ => VariableSet { key, items: items(rng) }.into(),
    };
    Some(vec![event])
}

pub fn items(rng: &mut Rng) -> SealedItems {
    let bytes = vec![rng.below(256) as u8; rng.below(9) as usize];
    let sealed = SealedData { key: Uuid::from(u128::from(rng.below(3))), bytes };
    SealedItems { sealed, digest: [rng.below(256) as u8; 32] }
}

fn lock(rng: &mut Rng) -> VariableLock {
    let span = |rng: &mut Rng| Duration::from_secs(rng.below(99) as i64);
    VariableLock { id: rng.uuid(), ttl: span(rng), delay: span(rng) }
}
