//! Streams of nodes and other servers, passed on to readers.

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream::Fuse;
use futures_util::{StreamExt, stream};
use wire::RemoteError;
use wire::messages::StreamFrameWrapper;

use crate::error::Failure;
use crate::node_rpc::FrameStream;

/// A stream that has begun well.
pub(crate) struct Frames {
    /// Empty when the stream ended without content.
    first: Bytes,
    /// Fused: readers poll it again after its end.
    rest: Fuse<FrameStream>,
}

impl Frames {
    /// Waits for the first message: after that, the status is sent. A reader that follows gets its status before there is
    /// any content: the other end then sends an empty message first.
    ///
    /// # Errors
    /// The other end's own, with its code.
    pub(crate) async fn begin(rest: FrameStream, follow: bool) -> Result<Frames, Failure> {
        let mut rest = rest.fuse();
        loop {
            let Some(message) = rest.next().await else { return Ok(Frames { first: Bytes::new(), rest }) };
            let first = payload(&message?)?;
            if follow || !first.is_empty() {
                return Ok(Frames { first, rest });
            }
        }
    }

    pub(crate) fn first(&self) -> &[u8] {
        &self.first
    }

    /// The whole stream. An error in it ends the connection: its status was sent before.
    pub(crate) fn into_body(self) -> Body {
        let rest = self.rest.map(|message| payload(&message?));
        let rest = rest.map(|piece| piece.map_err(|failure| std::io::Error::other(failure.text)));
        Body::from_stream(stream::once(async { Ok(self.first) }).chain(rest))
    }
}

/// The content of one message: it is on the wire what readers get, framed or plain as they asked for.
fn payload(message: &[u8]) -> Result<Bytes, Failure> {
    let frame: StreamFrameWrapper =
        msgpack::from_slice(message).map_err(|e| Failure::internal(format!("a frame of the node: {e}")))?;
    match frame.error {
        Some(error) => Err(RemoteError::from(error).into()),
        None => Ok(Bytes::from(frame.payload.0)),
    }
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use futures_util::stream::poll_fn;

    use super::*;

    /// As streams are that are made of a future.
    #[tokio::test]
    async fn an_ended_stream_is_not_polled_again() {
        let mut ended = false;
        let nothing = poll_fn(move |_| {
            assert!(!ended, "it was polled after its end");
            ended = true;
            std::task::Poll::Ready(None)
        });
        let frames = Frames::begin(nothing.boxed(), false).await.unwrap();
        assert!(to_bytes(frames.into_body(), 1).await.unwrap().is_empty());
    }
}
