use model::Doc;
use model::document::{Bytes, Duration, NodePool};

use super::state::{ALL, DEFAULT, Pools};

/// How long a node's identity holds where the pool does not say.
const IDENTITY_TTL: Duration = Duration::from_secs(24 * 3600);

/// A pool as Nomad's API shows it; `None` if there is none of that name.
pub fn document(pools: &Pools, name: &str) -> Option<NodePool> {
    let built_in = match name {
        ALL => Some("Node pool with all nodes in the cluster."),
        DEFAULT => Some("Default node pool."),
        _ => None,
    };
    let shown = match built_in {
        Some(description) => NodePool {
            name: name.to_string(),
            description: description.to_string(),
            create_index: 1,
            modify_index: 1,
            ..NodePool::default()
        },
        None => {
            let pool = pools.get(name)?;
            let (create_index, modify_index) = (pool.created.0, pool.modified.0);
            NodePool { create_index, modify_index, ..pool.document.clone() }
        }
    };
    let unset = shown.node_identity_ttl == Duration::default();
    let shown =
        NodePool { node_identity_ttl: if unset { IDENTITY_TTL } else { shown.node_identity_ttl }, ..shown };
    let set = NodePool { create_index: 0, modify_index: 0, ..shown.clone() };
    let hash = blake3::hash(&Doc::of(&set).0).as_bytes().to_vec();
    Some(NodePool { hash: Bytes(hash), ..shown })
}
