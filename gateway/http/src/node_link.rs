use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};
use model::NodeId;
use wire::{FrameReceiver, FrameSender, Frames, RemoteError, RemoteErrorKind, RpcError};

/// Encoded messages of a streaming call, as they come from a node.
pub type FrameStream = BoxStream<'static, Result<Bytes, RpcError>>;

/// The way to nodes: each has made a connection to some server, over which it can be called. And to servers.
///
/// Implementations bound how long a node may take to answer, and answer [`RpcError::Timeout`] then.
pub trait NodeLink: Send + Sync + 'static {
    /// Makes one call; both bodies are msgpack.
    ///
    /// # Errors
    /// [`NodeLinkError`].
    fn call<'a>(
        &'a self,
        node: NodeId,
        method: &'a str,
        body: Vec<u8>,
    ) -> BoxFuture<'a, Result<Bytes, NodeLinkError>>;

    /// Opens a streaming call and sends its first message. Dropping the stream ends the call.
    ///
    /// # Errors
    /// [`NodeLinkError`].
    fn stream<'a>(
        &'a self,
        node: NodeId,
        method: &'a str,
        first: Vec<u8>,
    ) -> BoxFuture<'a, Result<FrameStream, NodeLinkError>>;

    /// Opens a streaming call that both ends speak in. Dropping both halves ends it.
    ///
    /// # Errors
    /// [`NodeLinkError`].
    fn open<'a>(&'a self, node: NodeId, method: &'a str) -> BoxFuture<'a, Result<Frames, NodeLinkError>>;

    /// As [`NodeLink::stream`], to the server with this RPC address.
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
pub enum NodeLinkError {
    /// The node is not connected.
    #[error("No path to node \"{0}\"")]
    NoPath(NodeId),
    #[error(transparent)]
    Rpc(#[from] RpcError),
}

/// For a server that called on behalf of another one.
impl From<NodeLinkError> for RemoteError {
    fn from(error: NodeLinkError) -> RemoteError {
        match error {
            NodeLinkError::NoPath(_) => RemoteError::new(RemoteErrorKind::NotFound, error),
            NodeLinkError::Rpc(error) => error.into(),
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
