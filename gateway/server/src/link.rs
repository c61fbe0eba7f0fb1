use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http_gateway::{FrameStream, NodeLink, NodeLinkError};
use model::NodeId;
use wire::{Bytes, Connection};

use crate::Sessions;

/// How long a node may take to answer a call.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// Reaches nodes over the connections they made.
pub struct Link {
    pub sessions: Sessions,
}

impl Link {
    fn connection(&self, node: NodeId) -> Result<Connection, NodeLinkError> {
        self.sessions.find(node).ok_or(NodeLinkError::NoPath(node))
    }
}

impl NodeLink for Link {
    fn call<'a>(
        &'a self,
        node: NodeId,
        method: &'a str,
        body: Vec<u8>,
    ) -> BoxFuture<'a, Result<Bytes, NodeLinkError>> {
        async move { Ok(self.connection(node)?.call_raw(method, &body, ANSWER_MAX).await?) }.boxed()
    }

    fn stream<'a>(
        &'a self,
        node: NodeId,
        method: &'a str,
        first: Vec<u8>,
    ) -> BoxFuture<'a, Result<FrameStream, NodeLinkError>> {
        async move {
            let frames = self.connection(node)?.open_stream(method, ANSWER_MAX).await?;
            let (mut sender, receiver) = frames.split();
            sender.send_raw(&first).await?;
            Ok(http_gateway::frames(sender, receiver))
        }
        .boxed()
    }
}
