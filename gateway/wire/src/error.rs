use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use crate::messages::StreamError;
use crate::yamux::MuxError;

/// Why a call or a stream did not work.
#[derive(Debug, thiserror::Error)]
pub enum RpcError {
    #[error("connect to {addr}: {source}")]
    Dial { addr: SocketAddr, source: io::Error },
    /// The connection or the stream under the call ended.
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("no answer to {method} within {after:?}")]
    Timeout { method: String, after: Duration },
    /// What the peer answered instead.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    #[error("message of at least {least} bytes exceeds the limit of {max}")]
    TooLarge { least: u64, max: usize },
    /// Requests that are not complete yet hold all the memory that there is for them.
    #[error("too many large requests at the same time: try again")]
    Busy,
    #[error("the body of the request did not come within {0:?}")]
    BodyLate(Duration),
    #[error(transparent)]
    Codec(#[from] msgpack::Error),
    #[error("peer broke the protocol: {0}")]
    Protocol(&'static str),
    #[error("peer's connection carries no calls towards it")]
    OneWay,
}

impl From<MuxError> for RpcError {
    fn from(error: MuxError) -> RpcError {
        RpcError::Io(error.into())
    }
}

/// The answer to a call that failed.
///
/// Nomad's node RPC sends errors as texts, which is what this one displays. [`RemoteError::read`] is the only place that
/// searches such a text for its meaning: everybody else goes by the kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", .kind.prefix())]
pub struct RemoteError {
    pub kind: RemoteErrorKind,
    pub message: String,
}

/// What the receiver of an error does by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteErrorKind {
    /// The HTTP caller gets this status, from 400 to 599. It is sent as `RPC Error:: STATUS,MESSAGE`.
    Status(u16),
    /// There is no such allocation, node or file.
    NotFound,
    PermissionDenied,
    /// The servers do not know the node that calls: it has to register again.
    NodeUnknown,
    /// The call may be repeated once a server is elected.
    NoLeader,
    /// There is only the message.
    Other,
}

const STATUS_PREFIX: &str = "RPC Error:: ";

/// Nomad sends these errors without a status. Its agents look for the same phrases.
const PHRASES: [(&str, RemoteErrorKind); 7] = [
    ("Unknown allocation", RemoteErrorKind::NotFound),
    ("Unknown node", RemoteErrorKind::NotFound),
    ("No path to node", RemoteErrorKind::NotFound),
    ("no such file or directory", RemoteErrorKind::NotFound),
    ("node not found", RemoteErrorKind::NodeUnknown),
    ("node secret ID does not match", RemoteErrorKind::NodeUnknown),
    ("No cluster leader", RemoteErrorKind::NoLeader),
];

const PERMISSION_DENIED: &str = "Permission denied";

impl RemoteError {
    pub fn new(kind: RemoteErrorKind, message: impl ToString) -> RemoteError {
        RemoteError { kind, message: message.to_string() }
    }

    pub fn other(message: impl ToString) -> RemoteError {
        RemoteError::new(RemoteErrorKind::Other, message)
    }

    pub fn permission_denied() -> RemoteError {
        RemoteError::new(RemoteErrorKind::PermissionDenied, PERMISSION_DENIED)
    }

    pub fn unknown_alloc(id: &str) -> RemoteError {
        RemoteError::new(RemoteErrorKind::NotFound, format!("Unknown allocation \"{id}\""))
    }

    /// Reads the text in which a peer sent an error.
    pub fn read(text: &str) -> RemoteError {
        let coded = text.split_once(STATUS_PREFIX).and_then(|(_, rest)| rest.split_once(','));
        if let Some((status, message)) = coded
            && let Some(kind) = status.trim().parse().ok().and_then(RemoteErrorKind::of_status)
        {
            return RemoteError::new(kind, message);
        }
        if text.ends_with(PERMISSION_DENIED) {
            return RemoteError::permission_denied();
        }
        let known = PHRASES.iter().find(|(phrase, _)| text.contains(phrase));
        RemoteError::new(known.map_or(RemoteErrorKind::Other, |(_, kind)| *kind), text)
    }
}

impl RemoteErrorKind {
    /// `None` when it is not the status of an error.
    fn of_status(status: i64) -> Option<RemoteErrorKind> {
        let status = u16::try_from(status).ok().filter(|status| (400..600).contains(status))?;
        Some(RemoteErrorKind::Status(status))
    }

    fn prefix(self) -> String {
        match self {
            RemoteErrorKind::Status(status) => format!("{STATUS_PREFIX}{status},"),
            _ => String::new(),
        }
    }
}

impl From<String> for RemoteError {
    fn from(message: String) -> RemoteError {
        RemoteError::other(message)
    }
}

impl From<&str> for RemoteError {
    fn from(message: &str) -> RemoteError {
        RemoteError::other(message)
    }
}

/// For passing on what went wrong with a call of one's own.
impl From<RpcError> for RemoteError {
    fn from(error: RpcError) -> RemoteError {
        match error {
            RpcError::Remote(error) => error,
            error => RemoteError::other(error),
        }
    }
}

impl From<StreamError> for RemoteError {
    fn from(error: StreamError) -> RemoteError {
        match error.code.and_then(RemoteErrorKind::of_status) {
            Some(kind) => RemoteError { kind, message: error.message },
            None => RemoteError::read(&error.message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_an_error_survives_its_text() {
        let errors = [
            RemoteError::new(RemoteErrorKind::Status(429), "full, come back"),
            RemoteError::unknown_alloc("x"),
            RemoteError::permission_denied(),
            RemoteError::new(RemoteErrorKind::NodeUnknown, "node not found"),
            RemoteError::new(RemoteErrorKind::NoLeader, "No cluster leader"),
            RemoteError::other("boom"),
        ];
        for error in errors {
            assert_eq!(RemoteError::read(&error.to_string()), error);
        }
    }

    #[test]
    fn the_text_of_another_agent_may_have_a_prefix() {
        let denied = RemoteError::read("rpc error: Permission denied");
        assert_eq!(denied, RemoteError::permission_denied());
        let coded = RemoteError::read("rpc error: RPC Error:: 404,gone");
        assert_eq!(coded, RemoteError::new(RemoteErrorKind::Status(404), "gone"));
        let no_error = RemoteError::read("RPC Error:: 200,fine");
        assert_eq!(no_error, RemoteError::other("RPC Error:: 200,fine"));
    }

    #[test]
    fn an_error_in_a_stream_keeps_its_code_only_if_it_is_one_of_an_error() {
        let read = |code| RemoteError::from(StreamError { message: "gone".to_string(), code });
        assert_eq!(read(Some(404)), RemoteError::new(RemoteErrorKind::Status(404), "gone"));
        assert_eq!(read(Some(200)), RemoteError::other("gone"));
        assert_eq!(read(None), RemoteError::other("gone"));
    }
}
