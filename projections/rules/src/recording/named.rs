//! Namespaces and node pools.

use base::Time;
use model::Doc;
use model::document::{Namespace, NodePool};
use model::event::{NamespaceDeleted, NamespaceUpserted, NodePoolDeleted, NodePoolUpserted};
use state::names::NamedDocument;
use state::{namespace, pool};

use super::Seen;

pub(super) fn namespace(seen: &mut Seen, document: &Namespace) -> Option<(String, u64, Time)> {
    let plain = |shown: &Namespace| Namespace {
        create_index: 0,
        modify_index: 0,
        hash: Default::default(),
        ..shown.clone()
    };
    let (name, set) = (document.name.clone(), plain(document));
    if name.is_empty() {
        return None;
    }
    if namespace::document(&seen.state.namespaces, &name)
        .is_none_or(|known| Doc::of(&plain(&known)) != Doc::of(&set))
    {
        seen.add(NamespaceUpserted { name: name.clone(), document: Doc::of(&set) });
    }
    Some((format!("namespace/{name}"), document.modify_index, Time::ZERO))
}

/// The two pools that are always there cannot be changed anywhere.
pub(super) fn pool(seen: &mut Seen, document: &NodePool) -> Option<(String, u64, Time)> {
    let name = document.name.clone();
    if name.is_empty() || NodePool::BUILT_IN.contains(&name.as_str()) {
        return None;
    }
    let plain = |shown: &NodePool| NodePool {
        create_index: 0,
        modify_index: 0,
        hash: Default::default(),
        ..shown.clone()
    };
    let set = plain(document);
    if seen.state.pools.get(&name).is_none_or(|known| Doc::of(&plain(&known.document)) != Doc::of(&set)) {
        seen.add(NodePoolUpserted { name: name.clone(), document: Doc::of(&set) });
    }
    Some((format!("node-pool/{name}"), document.modify_index, Time::ZERO))
}

pub(super) fn namespace_gone(seen: &mut Seen, name: &str) -> String {
    if seen.state.namespaces.get(name).is_some() && name != namespace::DEFAULT {
        seen.add(NamespaceDeleted { name: name.to_string() });
    }
    format!("namespace/{name}")
}

pub(super) fn pool_gone(seen: &mut Seen, name: &str) -> String {
    if seen.state.pools.get(name).is_some() && name != pool::ALL {
        seen.add(NodePoolDeleted { name: name.to_string() });
    }
    format!("node-pool/{name}")
}
