//! Calls of a plugin's services.

use std::time::Duration;

use prost::Message;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{Code, Request, Status, Streaming};
use tonic_prost::ProstCodec;

use crate::proto::structs::{self, RecoverableError};

/// Why a call has failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The plugin has died, or its connection has ended: whether the call was carried out is not known.
    #[error("the plugin is gone: {0}")]
    Gone(String),
    /// The plugin does not know the task.
    #[error("{0}")]
    NotFound(String),
    /// The plugin has no such call.
    #[error("{0}")]
    Unimplemented(String),
    #[error("{message}")]
    Failed { message: String, recoverable: bool },
    #[error("the plugin did not answer within {} s", .0.as_secs())]
    Late(Duration),
}

impl CallError {
    pub fn is_gone(&self) -> bool {
        matches!(self, CallError::Gone(_))
    }
}

/// How plugins say that they do not know a task: most send it as an unknown error.
const UNKNOWN_TASK: &str = "task not found for given id";

impl From<Status> for CallError {
    fn from(status: Status) -> CallError {
        let message = status.message().to_string();
        match status.code() {
            Code::Unavailable => CallError::Gone(message),
            // A connection that ends in the middle of a call.
            Code::Unknown if std::error::Error::source(&status).is_some() => CallError::Gone(message),
            Code::Cancelled if std::error::Error::source(&status).is_some() => CallError::Gone(message),
            Code::NotFound => CallError::NotFound(message),
            Code::Unimplemented => CallError::Unimplemented(message),
            _ if message.contains(UNKNOWN_TASK) => CallError::NotFound(message),
            _ => CallError::Failed { recoverable: is_recoverable(status.details()), message },
        }
    }
}

fn is_recoverable(details: &[u8]) -> bool {
    let Ok(status) = structs::Status::decode(details) else { return false };
    status.details.iter().any(|detail| {
        detail.type_url.ends_with("shared.structs.RecoverableError")
            && RecoverableError::decode(detail.value.as_slice()).is_ok_and(|error| error.recoverable)
    })
}

/// A connection to a plugin.
#[derive(Clone, Debug)]
pub struct Caller(Channel);

impl Caller {
    pub fn new(channel: Channel) -> Caller {
        Caller(channel)
    }

    /// One request, one answer.
    ///
    /// # Errors
    /// Also when there is no answer within `patience`.
    pub async fn call<Q, A>(
        &self,
        service: &str,
        method: &str,
        request: Q,
        patience: Duration,
    ) -> Result<A, CallError>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let answer = tokio::time::timeout(patience, self.call_for_long(service, method, request)).await;
        answer.unwrap_or(Err(CallError::Late(patience)))
    }

    /// The same for a call that is answered when something happens.
    ///
    /// # Errors
    /// Those of the plugin.
    pub async fn call_for_long<Q, A>(&self, service: &str, method: &str, request: Q) -> Result<A, CallError>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let mut grpc = self.grpc().await?;
        let answer = grpc.unary(Request::new(request), path(service, method), ProstCodec::default()).await?;
        Ok(answer.into_inner())
    }

    /// One request, many answers.
    ///
    /// # Errors
    /// When the stream does not begin.
    pub async fn stream<Q, A>(
        &self,
        service: &str,
        method: &str,
        request: Q,
    ) -> Result<Streaming<A>, CallError>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let mut grpc = self.grpc().await?;
        let codec = ProstCodec::default();
        let answers = grpc.server_streaming(Request::new(request), path(service, method), codec).await?;
        Ok(answers.into_inner())
    }

    /// Many requests, many answers.
    ///
    /// # Errors
    /// When the stream does not begin.
    pub async fn exchange<Q, A>(
        &self,
        service: &str,
        method: &str,
        requests: impl futures_util::Stream<Item = Q> + Send + 'static,
    ) -> Result<Streaming<A>, CallError>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let mut grpc = self.grpc().await?;
        let codec = ProstCodec::default();
        let answers = grpc.streaming(Request::new(requests), path(service, method), codec).await?;
        Ok(answers.into_inner())
    }

    async fn grpc(&self) -> Result<Grpc<Channel>, CallError> {
        let mut grpc = Grpc::new(self.0.clone()).max_decoding_message_size(grpc::MAX_MESSAGE);
        grpc.ready().await.map_err(|error| CallError::Gone(error.to_string()))?;
        Ok(grpc)
    }
}

fn path(service: &str, method: &str) -> PathAndQuery {
    format!("/{service}/{method}").parse().expect("names of services and methods are paths")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_a_plugin_say_what_follows() {
        let of = |code, message: &str| CallError::from(Status::new(code, message));
        assert!(of(Code::Unavailable, "x").is_gone());
        assert_eq!(of(Code::NotFound, "x"), CallError::NotFound("x".into()));
        let unknown = "rpc error: task not found for given id";
        assert_eq!(of(Code::Unknown, unknown), CallError::NotFound(unknown.into()));
        assert_eq!(of(Code::Internal, "x"), CallError::Failed { message: "x".into(), recoverable: false });
    }

    #[test]
    fn a_detail_says_that_an_error_is_recoverable() {
        let detail = |recoverable| structs::Any {
            type_url: "type.googleapis.com/hashicorp.nomad.plugins.shared.structs.RecoverableError".into(),
            value: RecoverableError { recoverable }.encode_to_vec(),
        };
        for recoverable in [true, false] {
            let details = structs::Status { details: vec![detail(recoverable)], ..Default::default() };
            let bytes = details.encode_to_vec().into();
            let error = CallError::from(Status::with_details(Code::Unknown, "busy", bytes));
            assert_eq!(error, CallError::Failed { message: "busy".into(), recoverable });
        }
    }
}
