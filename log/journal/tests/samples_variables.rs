//! Samples of events about variables and about the keys that seal them.

use base::{Duration, Uuid};
use model::event::*;
use model::*;

use crate::samples::id;

pub fn samples(name: &str) -> Vec<Event> {
    let none = VariableKey::default;
    let key = || VariableKey::new("default", "nomad/jobs/ünïcode");
    let empty = || SealedItems { sealed: SealedData { key: Uuid::NIL, bytes: vec![] }, digest: [0; 32] };
    let items =
        || SealedItems { sealed: SealedData { key: id(8), bytes: vec![1, 2, 3] }, digest: [0xfe; 32] };
    let no_lock = VariableLock { id: Uuid::NIL, ttl: Duration::ZERO, delay: Duration::ZERO };
    let lock = VariableLock { id: id(7), ttl: Duration::from_secs(15), delay: Duration::from_secs(86_400) };
    match name {
        "VariableSet" => vec![
            VariableSet { key: none(), items: empty() }.into(),
            VariableSet { key: key(), items: items() }.into(),
        ],
        "VariableDeleted" => {
            vec![VariableDeleted { key: none() }.into(), VariableDeleted { key: key() }.into()]
        }
        "VariableLockAcquired" => vec![
            VariableLockAcquired { key: none(), lock: no_lock, items: None }.into(),
            VariableLockAcquired { key: key(), lock, items: Some(items()) }.into(),
        ],
        "VariableLockReleased" => vec![
            VariableLockReleased { key: none(), lock: Uuid::NIL, expired: false }.into(),
            VariableLockReleased { key: key(), lock: id(7), expired: true }.into(),
        ],
        "VariablesResealed" => vec![
            VariablesResealed { versions: vec![] }.into(),
            VariablesResealed {
                versions: vec![
                    ResealedVersion { key: none(), version: 0, items: empty() },
                    ResealedVersion { key: key(), version: u64::MAX, items: items() },
                ],
            }
            .into(),
        ],
        "RootKeysRekeying" => vec![
            RootKeysRekeying { keys: vec![] }.into(),
            RootKeysRekeying { keys: vec![id(8), id(9)] }.into(),
        ],
        "RootKeysRekeyed" => {
            vec![RootKeysRekeyed { keys: vec![] }.into(), RootKeysRekeyed { keys: vec![id(8), id(9)] }.into()]
        }
        other => crate::samples_logins::samples(other),
    }
}
