//! Variables as Nomad's API shows them, and their versions.

use std::collections::BTreeMap;

use api::{ErasurePending, Variable, VariableErasure, VariableLock, VariableMetadata, VariableVersion};
use base::Index;
use keyring::Items;
use model::VariableKey;
use model::document::{Duration, Map};
use state::erasure::Erasure;
use state::variable::{Variable as Row, Version};

use crate::access::Access;

/// Who knows the id of a lock holds it: only who manages is shown those of others.
pub(crate) fn variable(access: &Access, key: &VariableKey, row: &Row, items: Items) -> Variable {
    Variable {
        namespace: key.namespace.clone(),
        path: key.path.clone(),
        create_index: row.created.0,
        modify_index: row.modified.0,
        create_time: row.created_at.0,
        modify_time: row.modified_at.0,
        items: Map(items),
        lock: lock(row).filter(|_| access.acl.is_management()),
    }
}

pub(crate) fn metadata(access: &Access, key: &VariableKey, row: &Row) -> VariableMetadata {
    let lock = lock(row).filter(|_| access.acl.is_management());
    VariableMetadata { lock, ..feed::entries::metadata(key, row) }
}

pub(crate) fn lock(row: &Row) -> Option<VariableLock> {
    let lock = row.lock?;
    Some(VariableLock { id: lock.id.to_string(), ttl: Duration(lock.ttl), lock_delay: Duration(lock.delay) })
}

/// What one version held; its indexes are those it was set at.
pub(crate) fn version(key: &VariableKey, row: &Row, version: &Version, items: Items) -> Variable {
    Variable {
        namespace: key.namespace.clone(),
        path: key.path.clone(),
        create_index: row.created.0,
        modify_index: version.index.0,
        create_time: row.created_at.0,
        modify_time: version.at.0,
        items: Map(items),
        lock: None,
    }
}

/// The newest first.
pub(crate) fn versions(row: &Row) -> Vec<VariableVersion> {
    let shown = |version: &Version| VariableVersion {
        version: version.number,
        modify_index: version.index.0,
        modify_time: version.at.0,
        accessor_id: version.accessor.clone(),
        author: version.author.clone(),
    };
    row.versions.iter().rev().map(shown).collect()
}

/// Of what was forgotten under this name, the newest first. `names` are those of the servers that are known.
pub(crate) fn erasures(
    erasure: &Erasure,
    key: &VariableKey,
    names: &BTreeMap<String, String>,
) -> Vec<VariableErasure> {
    let shown = |at: Index| {
        let pending = erasure.pending(at).map(|server| {
            let id = server.to_string();
            ErasurePending { name: names.get(&id).cloned().unwrap_or_default(), id }
        });
        let pending: Vec<_> = pending.collect();
        VariableErasure {
            namespace: key.namespace.clone(),
            path: key.path.clone(),
            forgotten_at: at.0,
            complete: pending.is_empty(),
            pending: pending.into(),
            // Tokens and auth methods under root keys are not forgotten in the first place.
            kept_before: if key.namespace.is_empty() { 0 } else { erasure.since().0 },
        }
    };
    let own = erasure.forgotten().iter().rev().filter(|one| one.key == *key);
    own.map(|one| shown(one.at)).collect()
}
