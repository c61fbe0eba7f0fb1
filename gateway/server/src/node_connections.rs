use std::collections::BTreeMap;
use std::sync::Arc;

use model::NodeId;
use parking_lot::Mutex;
use wire::Connection;

/// Which connection reaches which node: nodes cannot be dialed, they can only be called over it.
///
/// Bounded by the nodes that are connected: a connection that ended is dropped when it is next looked at, or
/// when its node comes by another one.
#[derive(Clone, Default)]
pub struct NodeConnections {
    newest: Arc<Mutex<BTreeMap<NodeId, Connection>>>,
}

impl NodeConnections {
    /// Records that the node itself has called on this connection: the newest one counts.
    pub fn bind(&self, node: NodeId, connection: &Connection, forwarded: bool) {
        if forwarded || !connection.takes_calls() {
            return;
        }
        let mut newest = self.newest.lock();
        if !newest.get(&node).is_some_and(|bound| bound.is_same(connection)) {
            newest.insert(node, connection.clone());
        }
    }

    /// Whether a node has called on this connection, and on none since.
    pub fn is_of_a_node(&self, connection: &Connection) -> bool {
        self.newest.lock().values().any(|bound| bound.is_same(connection))
    }

    pub fn find(&self, node: NodeId) -> Option<Connection> {
        let mut newest = self.newest.lock();
        if newest.get(&node).is_some_and(Connection::is_closed) {
            newest.remove(&node);
        }
        newest.get(&node).cloned()
    }
}
