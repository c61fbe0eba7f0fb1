use std::sync::{Arc, OnceLock};

use axum::Router;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};
use model::NodeId;
use wire::{FrameReceiver, FrameSender, Frames, RemoteError, RemoteErrorKind, RpcError};

/// Encoded messages of a streaming call, as they come from a node.
pub type FrameStream = BoxStream<'static, Result<Bytes, RpcError>>;

/// Calls to nodes, over the connections that they made to some server, and to servers.
///
/// Implementations bound how long a node may take to answer, and answer [`RpcError::Timeout`] then.
pub trait NodeRpc: Send + Sync + 'static {
    /// Makes one call; both bodies are msgpack.
    ///
    /// # Errors
    /// [`NodeRpcError`].
    fn call<'a>(
        &'a self,
        node: NodeId,
        method: &'a str,
        body: Vec<u8>,
    ) -> BoxFuture<'a, Result<Bytes, NodeRpcError>>;

    /// Opens a streaming call and sends its first message. Dropping the stream ends the call.
    ///
    /// # Errors
    /// [`NodeRpcError`].
    fn stream<'a>(
        &'a self,
        node: NodeId,
        method: &'a str,
        first: Vec<u8>,
    ) -> BoxFuture<'a, Result<FrameStream, NodeRpcError>>;

    /// Opens a streaming call in which both ends send. Dropping both halves ends it.
    ///
    /// # Errors
    /// [`NodeRpcError`].
    fn open<'a>(&'a self, node: NodeId, method: &'a str) -> BoxFuture<'a, Result<Frames, NodeRpcError>>;

    /// As [`NodeRpc::call`], to the server with this RPC address.
    ///
    /// # Errors
    /// The connection's, or what the server answered instead.
    fn call_server<'a>(
        &'a self,
        address: &'a str,
        method: &'a str,
        body: Vec<u8>,
    ) -> BoxFuture<'a, Result<Bytes, RpcError>>;

    /// As [`NodeRpc::stream`], to the server with this RPC address.
    ///
    /// # Errors
    /// The connection's.
    fn stream_of_server<'a>(
        &'a self,
        address: &'a str,
        method: &'a str,
        first: Vec<u8>,
    ) -> BoxFuture<'a, Result<FrameStream, RpcError>>;
}

/// Why a node could not be asked, or what it answered instead.
#[derive(Debug, thiserror::Error)]
pub enum NodeRpcError {
    /// The node is not connected.
    #[error("No path to node \"{0}\"")]
    NoPath(NodeId),
    #[error(transparent)]
    Rpc(#[from] RpcError),
}

/// For a server that called on behalf of another one.
impl From<NodeRpcError> for RemoteError {
    fn from(error: NodeRpcError) -> RemoteError {
        match error {
            NodeRpcError::NoPath(_) => RemoteError::new(RemoteErrorKind::NotFound, error),
            NodeRpcError::Rpc(error) => error.into(),
        }
    }
}

/// What a peer sends in a streaming call. The sending half is kept as long: letting it go would end the call.
pub fn frames(sender: FrameSender, receiver: FrameReceiver) -> FrameStream {
    stream::unfold(Some((sender, receiver)), |halves| async {
        let (sender, mut receiver) = halves?;
        match receiver.receive_raw().await {
            Ok(Some(message)) => Some((Ok(message), Some((sender, receiver)))),
            Ok(None) => None,
            Err(error) => Some((Err(error), None)),
        }
    })
    .boxed()
}

/// What the node in the same process answers itself. A server is there before its node is.
#[derive(Clone, Debug, Default)]
pub struct NodeRoutes(Arc<OnceLock<Router>>);

impl NodeRoutes {
    /// Takes effect once: an agent has one node.
    pub fn set(&self, routes: Router) {
        let _one_node = self.0.set(routes);
    }

    pub(crate) fn get(&self) -> Option<&Router> {
        self.0.get()
    }
}
