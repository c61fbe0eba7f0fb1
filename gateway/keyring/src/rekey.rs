//! A full rotation: what former keys seal is sealed with the active one, some at a time.

use model::Command;
use model::command::{RESEALED_MAX, ResealVersion};
use state::State;

use crate::Signer;

/// Sealed bytes after which a batch is full: what it becomes is one entry of the log.
const BYTES_MAX: usize = 1 << 20;

/// What is next to be done; `None` without a rotation that is going on, and when this server can do nothing more for it.
///
/// What it cannot open, because it has no copy of the key, or a damaged one, is left: its key stays in use.
pub fn next_rekey(signer: &Signer, state: &State) -> Option<Command> {
    let rekeying = state.keyring.rekeying();
    if rekeying.is_empty() || state.keyring.active().is_none_or(|(key, _)| !signer.opens(&state.keyring, key))
    {
        return None;
    }
    let sealed = state.variables.iter().flat_map(|(key, variable)| {
        let versions = variable.versions.iter();
        versions
            .filter(|version| rekeying.contains(&version.items.sealed.key))
            .map(move |version| (key, version))
    });
    let (mut versions, mut bytes) = (Vec::new(), 0);
    for (key, version) in sealed {
        if versions.len() >= RESEALED_MAX || bytes >= BYTES_MAX {
            break;
        }
        let opened = signer.open_items(&state.keyring, key, &version.items);
        let Ok(items) = opened.and_then(|items| signer.seal_items_with_root_key(&state.keyring, key, &items))
        else {
            continue;
        };
        bytes += items.sealed.bytes.len();
        let (before, from) = (version.items.digest, version.items.sealed.key);
        versions.push(ResealVersion { key: key.clone(), version: version.number, before, from, items });
    }
    if !versions.is_empty() {
        return Some(Command::ResealVariables { versions });
    }
    let is_done = |key| !state.variables.iter().any(|(_, variable)| variable.is_sealed_with(key));
    rekeying.iter().any(|key| is_done(*key)).then_some(Command::FinishRekey)
}
