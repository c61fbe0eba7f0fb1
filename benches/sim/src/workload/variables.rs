//! Variables that clients set and lock, and mostly forget to release.

use base::{Duration, Rng, Uuid};
use model::command::{AcquireVariableLock, ActivateRootKey, SetVariable};
use model::{Command, SealedData, SealedItems, SealedKey, VariableKey, VariableLock};
use state::State;

/// The server whose key the root key is sealed for: nothing is opened here.
const SERVER: u128 = 0x5e17e;

/// Sets, locks, releases or deletes a variable; before that, makes the key that seals it.
pub fn command(seen: &State, rng: &mut Rng) -> Command {
    let Some((root, _)) = seen.keyring.active() else { return first_key(seen, rng) };
    let key = VariableKey::new("default", &format!("lock/{}", rng.below(3)));
    let known = seen.variables.get(&key);
    let lock = known.and_then(|known| known.lock).map(|lock| lock.id);
    // Who names a lock that it does not hold is refused.
    let own = if rng.below(4) == 0 { Some(rng.uuid()) } else { lock };
    let only_at = known.filter(|_| rng.below(3) == 0).map(|known| known.modified);
    match rng.below(10) {
        0..4 => {
            let span = |rng: &mut Rng, least: u64| Duration::from_secs((least + rng.below(30)) as i64);
            let lock = VariableLock { id: rng.uuid(), ttl: span(rng, 10), delay: span(rng, 0) };
            let wanted =
                AcquireVariableLock { key, items: items(root, rng), keep_items: rng.below(2) == 0, lock };
            Command::AcquireVariableLock(Box::new(wanted))
        }
        4 => Command::ReleaseVariableLock { key, lock: own.unwrap_or(Uuid::NIL) },
        5 => Command::DeleteVariable { key, only_at, lock: own },
        _ => {
            let wanted = SetVariable { key, items: items(root, rng), only_at, lock: own };
            Command::SetVariable(Box::new(wanted))
        }
    }
}

fn first_key(seen: &State, rng: &mut Rng) -> Command {
    let server = Uuid::from(SERVER);
    if !seen.keyring.servers().contains_key(&server) {
        return Command::AnnounceServerKey { server, public: [1; 32] };
    }
    let sealed = vec![SealedKey { server, bytes: vec![1] }];
    let (modulus, exponent, key) = (vec![1], vec![1], rng.uuid());
    let only_after = Some(Uuid::NIL);
    Command::ActivateRootKey(Box::new(ActivateRootKey {
        key,
        modulus,
        exponent,
        sealed,
        only_after,
        full: false,
    }))
}

fn items(root: Uuid, rng: &mut Rng) -> SealedItems {
    let (number, seal) = (rng.below(4) as u8, rng.below(256) as u8);
    SealedItems { sealed: SealedData { key: root, bytes: vec![number, seal] }, digest: [number; 32] }
}
