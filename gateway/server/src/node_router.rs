use std::sync::Weak;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http_gateway::{FrameStream, NodeRpc, NodeRpcError};
use model::NodeId;
use raft::RaftJournal;
use wire::{Bytes, Connection, FrameReceiver, FrameSender, Frames, Opening, RemoteError, RpcError};

use crate::NodeConnections;
use crate::server_connections::{ServerConnections, method};

/// How long a node may take to answer a call.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// The same for a call to a storage plugin, which may take two minutes itself.
const STORAGE_ANSWER_MAX: Duration = Duration::from_secs(140);

fn answer_max(method: &str) -> Duration {
    if method.starts_with("CSI.") { STORAGE_ANSWER_MAX } else { ANSWER_MAX }
}

/// How long another server may take to say whether a node is connected to it.
const FIND_MAX: Duration = Duration::from_secs(3);

/// Reaches nodes over the connections they made, here or at another server.
#[derive(Clone)]
pub struct NodeRouter {
    pub connections: NodeConnections,
    pub servers: ServerConnections,
    /// Knows the other servers.
    pub log: Weak<RaftJournal>,
}

impl NodeRouter {
    /// The connection to a node: its own, or that of the server which has it. With the method to call there.
    async fn route(&self, node: NodeId, method: &str) -> Result<(Connection, String), NodeRpcError> {
        if let Some(connection) = self.connections.find(node) {
            return Ok((connection, method.to_string()));
        }
        let Some(log) = self.log.upgrade() else { return Err(NodeRpcError::NoPath(node)) };
        let status = log.status();
        let others = status.members.into_iter().filter(|member| member.node != status.node);
        let asked = others.map(|member| self.connection_of(member.address, node));
        let found = futures_util::future::join_all(asked).await.into_iter().flatten().next();
        let server = found.ok_or(NodeRpcError::NoPath(node))?;
        Ok((server, format!("{}{node}/{method}", method::PASS)))
    }

    /// The connection to a server, if the node is connected there.
    async fn connection_of(&self, address: String, node: NodeId) -> Option<Connection> {
        let has: bool =
            self.servers.call(&address, method::HAS_NODE, &node.to_string(), FIND_MAX).await.ok()?;
        if has { self.servers.connection(&address).await.ok() } else { None }
    }

    /// Passes a call of another server on to a node that is connected here.
    ///
    /// # Errors
    /// For the other server.
    pub async fn pass(&self, rest: &str, body: &[u8]) -> Result<Vec<u8>, RemoteError> {
        let (connection, method) = self.local(rest)?;
        Ok(connection.call_raw(method, body, answer_max(method)).await?.to_vec())
    }

    /// As [`NodeRouter::pass`], for a streaming call.
    ///
    /// # Errors
    /// One of the two ends failed.
    pub async fn pass_stream(&self, rest: &str, opening: Opening) -> Result<(), RpcError> {
        let frames = match self.local(rest) {
            Ok((connection, method)) => connection.open_stream(method, ANSWER_MAX).await,
            Err(why) => return opening.refuse(why).await,
        };
        match frames {
            Err(error) => opening.refuse(error).await,
            Ok(there) => {
                let ((to_node, from_node), (mut to_server, from_server)) =
                    (there.split(), opening.accept().await?.split());
                let gone = to_server.peer_gone();
                tokio::select! {
                    // A side that ends its half may still read; one that fails ends both.
                    passed = async { tokio::try_join!(pump(from_server, to_node), pump(from_node, to_server)) } => {
                        passed.map(|_| ())
                    }
                    // A server reads until its end, and may leave while the node reads no more.
                    () = gone.wait() => Ok(()),
                }
            }
        }
    }

    fn local<'a>(&self, rest: &'a str) -> Result<(Connection, &'a str), RemoteError> {
        let (node, method) = rest.split_once('/').ok_or("a passed call names its node and its method")?;
        let node: NodeId = node.parse().map_err(RemoteError::other)?;
        let connection = self.connections.find(node).ok_or(NodeRpcError::NoPath(node))?;
        Ok((connection, method))
    }
}

async fn pump(mut from: FrameReceiver, mut to: FrameSender) -> Result<(), RpcError> {
    while let Some(message) = from.receive_raw().await? {
        to.send_raw(&message).await?;
    }
    to.finish().await
}

impl NodeRpc for NodeRouter {
    fn call<'a>(
        &'a self,
        node: NodeId,
        method: &'a str,
        body: Vec<u8>,
    ) -> BoxFuture<'a, Result<Bytes, NodeRpcError>> {
        async move {
            let within = answer_max(method);
            let (connection, method) = self.route(node, method).await?;
            Ok(connection.call_raw(&method, &body, within).await?)
        }
        .boxed()
    }

    fn stream<'a>(
        &'a self,
        node: NodeId,
        method: &'a str,
        first: Vec<u8>,
    ) -> BoxFuture<'a, Result<FrameStream, NodeRpcError>> {
        async move {
            let (mut sender, receiver) = self.open(node, method).await?.split();
            sender.send_raw(&first).await?;
            Ok(http_gateway::frames(sender, receiver))
        }
        .boxed()
    }

    fn open<'a>(&'a self, node: NodeId, method: &'a str) -> BoxFuture<'a, Result<Frames, NodeRpcError>> {
        async move {
            let (connection, method) = self.route(node, method).await?;
            Ok(connection.open_stream(&method, ANSWER_MAX).await?)
        }
        .boxed()
    }

    fn call_server<'a>(
        &'a self,
        address: &'a str,
        method: &'a str,
        body: Vec<u8>,
    ) -> BoxFuture<'a, Result<Bytes, RpcError>> {
        async move {
            let connection = self.servers.connection(address).await?;
            connection.call_raw(method, &body, ANSWER_MAX).await
        }
        .boxed()
    }

    fn stream_of_server<'a>(
        &'a self,
        address: &'a str,
        method: &'a str,
        first: Vec<u8>,
    ) -> BoxFuture<'a, Result<FrameStream, RpcError>> {
        async move {
            let connection = self.servers.connection(address).await?;
            let (mut sender, receiver) = connection.open_stream(method, ANSWER_MAX).await?.split();
            sender.send_raw(&first).await?;
            Ok(http_gateway::frames(sender, receiver))
        }
        .boxed()
    }
}
