//! Variables that clients set and lock, and mostly forget to release; some are forgotten with all that they held.

use base::{Duration, Rng, Uuid};
use model::command::{AcquireVariableLock, ActivateRootKey, SetVariable};
use model::{Command, KeyTreeCommand, SealedData, SealedItems, SealedKey, VariableKey, VariableLock};
use state::State;

/// The server whose key the root key is sealed for: nothing is opened here.
const SERVER: u128 = 0x5e17e;

/// Keeps chance of forgetting apart from the other.
const FORGETTING: u64 = 0x666f_7267_6574;

/// Sets, locks, releases, deletes or forgets a variable; before that, makes the keys that seal it.
pub fn command(seen: &State, rng: &mut Rng) -> Command {
    let command = of_one(seen, rng);
    // Chance of its own, so that what else happens stays as it was.
    let own = &mut Rng::new(seen.index.0 ^ FORGETTING);
    forgetting(seen, own).unwrap_or(command)
}

/// What is forgotten, and what servers do about it.
fn forgetting(seen: &State, rng: &mut Rng) -> Option<Command> {
    seen.keyring.active()?;
    let (server, key_tree) = (Uuid::from(SERVER), |wanted| Some(Command::KeyTree(Box::new(wanted))));
    let Some(tree) = seen.erasure.tree() else {
        let sealed = vec![SealedKey { server, bytes: vec![1] }];
        return match rng.below(3) {
            0 if seen.erasure.holders().contains_key(&server) => key_tree(KeyTreeCommand::Found {
                tree: Uuid::from(u128::from(1 + rng.below(1 << 40))),
                sealed,
                after: None,
            }),
            0 => key_tree(KeyTreeCommand::Request { server, public: [1; 32] }),
            _ => None,
        };
    };
    match rng.below(8) {
        0 => {
            let key = variable(rng);
            let lock = seen.variables.get(&key).and_then(|known| known.lock).map(|lock| lock.id);
            Some(Command::ForgetVariable { key, lock })
        }
        1 => key_tree(KeyTreeCommand::ReportErased { server, tree, up_to: seen.index }),
        // Whoever was slow encrypted it before it was forgotten.
        2 => {
            let (forgotten, given_up) = (seen.erasure.forgotten(), seen.erasure.given_up());
            let nth = rng.below(given_up.len().max(1) as u64) as usize;
            let ((key, _), of) = (given_up.get(nth)?, forgotten.get(nth)?);
            let lock = seen.variables.get(&of.key).and_then(|known| known.lock).map(|lock| lock.id);
            let items = items(*key, rng);
            Some(Command::SetVariable(Box::new(SetVariable {
                key: of.key.clone(),
                items,
                only_at: None,
                lock,
            })))
        }
        _ => None,
    }
}

fn variable(rng: &mut Rng) -> VariableKey {
    VariableKey::new("default", &format!("lock/{}", rng.below(3)))
}

fn of_one(seen: &State, rng: &mut Rng) -> Command {
    let Some((root, _)) = seen.keyring.active() else { return first_key(seen, rng) };
    let key = variable(rng);
    // Of a server that is behind: the one that was given up meanwhile.
    let sealing = if seen.erasure.tree().is_some() { seen.erasure.key_of(&key) } else { root };
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
                AcquireVariableLock { key, items: items(sealing, rng), keep_items: rng.below(2) == 0, lock };
            Command::AcquireVariableLock(Box::new(wanted))
        }
        4 => Command::ReleaseVariableLock { key, lock: own.unwrap_or(Uuid::NIL) },
        5 => Command::DeleteVariable { key, only_at, lock: own },
        _ => {
            let wanted = SetVariable { key, items: items(sealing, rng), only_at, lock: own };
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

fn items(own: Uuid, rng: &mut Rng) -> SealedItems {
    let (number, seal) = (rng.below(4) as u8, rng.below(256) as u8);
    SealedItems { sealed: SealedData { key: own, bytes: vec![number, seal] }, digest: [number; 32] }
}
