//! Every way a call can fail, as the caller sees it. The only place that knows the status codes of rejections.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base::Index;
use control::SubmitError;
use control::whatif::Refused;
use model::RejectionKind;
use model::document::input::InputError;
use model::{AllocId, Rejection};
use tokio::task::JoinError;
use wire::{RemoteError, RemoteErrorKind, RpcError};

use crate::audit_layer::FailureText;
use crate::cluster_admin::ClusterError;
use crate::elsewhere::Gone;
use crate::node_rpc::NodeRpcError;

/// How long a rejected caller shall wait before it tries again, in seconds, if nothing else is known.
const RETRY_AFTER: u64 = 1;

/// The oldest index that can be read.
pub(crate) const OLDEST: HeaderName = HeaderName::from_static("x-sojourn-oldest-index");

/// A call that gets a text instead of what it asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub status: StatusCode,
    /// Clients look for phrases in it: Nomad's own texts stay word for word.
    pub text: String,
    /// How long a caller shall wait that came too often, in seconds.
    retry_after: u64,
    /// Of what is no longer kept: the oldest index that is.
    oldest: Option<Index>,
}

/// The status of a rejection.
pub(crate) const fn status(kind: RejectionKind) -> StatusCode {
    match kind {
        RejectionKind::NotFound => StatusCode::NOT_FOUND,
        RejectionKind::Conflict => StatusCode::CONFLICT,
        RejectionKind::Invalid => StatusCode::BAD_REQUEST,
        RejectionKind::Forbidden => StatusCode::FORBIDDEN,
    }
}

impl Failure {
    pub fn new(status: StatusCode, text: impl Into<String>) -> Failure {
        Failure { status, text: text.into(), retry_after: RETRY_AFTER, oldest: None }
    }

    pub fn invalid(text: impl Into<String>) -> Failure {
        Failure::new(StatusCode::BAD_REQUEST, text)
    }

    pub fn not_found(text: impl Into<String>) -> Failure {
        Failure::new(StatusCode::NOT_FOUND, text)
    }

    pub fn forbidden(text: impl Into<String>) -> Failure {
        Failure::new(StatusCode::FORBIDDEN, text)
    }

    pub fn internal(text: impl Into<String>) -> Failure {
        Failure::new(StatusCode::INTERNAL_SERVER_ERROR, text)
    }

    pub fn too_many(text: impl Into<String>) -> Failure {
        Failure::new(StatusCode::TOO_MANY_REQUESTS, text)
    }

    /// What was asked for lies below the oldest index that this server has.
    pub(crate) fn gone(text: impl Into<String>, oldest: Index) -> Failure {
        Failure { oldest: Some(oldest), ..Failure::new(StatusCode::GONE, text) }
    }

    /// The same, to be tried again after so many seconds.
    pub(crate) fn after(self, secs: u64) -> Failure {
        Failure { retry_after: secs, ..self }
    }

    /// The same, with the part of the request that it is about. Who may not do something is not told more.
    pub(crate) fn about(self, part: &str) -> Failure {
        match self.status {
            StatusCode::FORBIDDEN => self,
            _ => Failure { text: format!("{part}{}", self.text), ..self },
        }
    }

    /// The same text as 500: some routes of Nomad answer so to every rejection, whatever its reason.
    pub fn as_internal(self) -> Failure {
        match self.status {
            StatusCode::NOT_FOUND | StatusCode::CONFLICT | StatusCode::BAD_REQUEST => {
                Failure::internal(self.text)
            }
            _ => self,
        }
    }

    /// Refuses what Nomad has only in its other edition.
    pub fn enterprise() -> Failure {
        Failure::new(StatusCode::NOT_IMPLEMENTED, "Nomad Enterprise only endpoint")
    }

    /// Refuses a part of Nomad's API that is not built, by its name: nothing is accepted and then ignored.
    pub fn unsupported(what: impl std::fmt::Display) -> Failure {
        Failure::new(StatusCode::NOT_IMPLEMENTED, format!("{what} not supported by this release"))
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let why = FailureText(self.text.clone());
        let mut response = (self.status, self.text).into_response();
        response.extensions_mut().insert(why);
        if self.status == StatusCode::TOO_MANY_REQUESTS {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(self.retry_after));
        }
        if let Some(oldest) = self.oldest {
            response.headers_mut().insert(OLDEST, HeaderValue::from(oldest.0));
            response.extensions_mut().insert(Gone(oldest));
        }
        response
    }
}

impl From<Rejection> for Failure {
    fn from(rejection: Rejection) -> Failure {
        let status = status(rejection.kind());
        match rejection {
            // Reading one that is not there has another text in Nomad than changing it.
            Rejection::AllocUnknown(AllocId(_)) => Failure::new(status, "allocation not found"),
            // What a state machine refuses is a failure of the server in Nomad's API.
            Rejection::DeploymentRefused(why) | Rejection::JobRefused(why) => Failure::internal(why),
            other => Failure::new(status, other.to_string()),
        }
    }
}

impl From<Refused> for Failure {
    fn from(Refused { number, why }: Refused) -> Failure {
        Failure::from(why).about(&format!("changes[{number}]: "))
    }
}

impl From<SubmitError> for Failure {
    fn from(error: SubmitError) -> Failure {
        let text = error.to_string();
        match error {
            SubmitError::Rejected(rejection) => rejection.into(),
            SubmitError::Busy => Failure::too_many(text),
            SubmitError::NotLeading | SubmitError::Unknown | SubmitError::Refused(_) => {
                Failure::internal(text)
            }
        }
    }
}

impl From<api::QueryError> for Failure {
    fn from(error: api::QueryError) -> Failure {
        Failure::invalid(error.to_string())
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Failure {
        Failure::invalid(error.to_string())
    }
}

impl From<ClusterError> for Failure {
    fn from(error: ClusterError) -> Failure {
        match error {
            ClusterError::NotLeading { leader: None } => Failure::internal("No cluster leader"),
            ClusterError::Invalid(text) => Failure::invalid(text),
            ClusterError::NotLeading { .. } | ClusterError::Failed(_) => Failure::internal(error.to_string()),
        }
    }
}

/// Our own mistake: the details are for the log, not for the caller.
impl From<JoinError> for Failure {
    fn from(error: JoinError) -> Failure {
        tracing::error!(%error, "an answer could not be made");
        Failure::internal("the answer could not be made: see the server's log")
    }
}

impl From<NodeRpcError> for Failure {
    fn from(error: NodeRpcError) -> Failure {
        match error {
            NodeRpcError::NoPath(_) => Failure::not_found(error.to_string()),
            NodeRpcError::Rpc(error) => error.into(),
        }
    }
}

impl From<RpcError> for Failure {
    fn from(error: RpcError) -> Failure {
        match error {
            RpcError::Remote(error) => error.into(),
            other => Failure::internal(other.to_string()),
        }
    }
}

impl From<RemoteError> for Failure {
    fn from(RemoteError { kind, message }: RemoteError) -> Failure {
        let status = match kind {
            RemoteErrorKind::Status(status) => StatusCode::from_u16(status).ok(),
            RemoteErrorKind::NotFound => Some(StatusCode::NOT_FOUND),
            RemoteErrorKind::PermissionDenied => Some(StatusCode::FORBIDDEN),
            RemoteErrorKind::NodeUnknown | RemoteErrorKind::NoLeader | RemoteErrorKind::Other => None,
        };
        Failure::new(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_a_remote_error_decides_its_status() {
        let cases = [
            (RemoteErrorKind::Status(429), 429),
            (RemoteErrorKind::NotFound, 404),
            (RemoteErrorKind::PermissionDenied, 403),
            (RemoteErrorKind::NodeUnknown, 500),
            (RemoteErrorKind::NoLeader, 500),
            (RemoteErrorKind::Other, 500),
        ];
        for (kind, status) in cases {
            let failure = Failure::from(RemoteError::new(kind, "why"));
            assert_eq!((failure.status.as_u16(), failure.text.as_str()), (status, "why"));
        }
    }
}
