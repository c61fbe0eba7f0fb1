//! The connection to the container engine, and what its errors mean.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bollard::errors::Error;
use bollard::models::ContainerInspectResponse;
use bollard::query_parameters::InspectContainerOptions;
use bollard::{API_DEFAULT_VERSION, Docker};
use tokio::time::timeout;

/// How long the engine may take to begin an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// How long it may take to say that it is there.
const GREETING_TIMEOUT: Duration = Duration::from_secs(5);

/// What is said of an engine that does not answer.
pub const NO_ENGINE: &str = "Failed to connect to docker daemon";

/// One engine; it may come and go.
#[derive(Debug)]
pub struct Engine {
    endpoint: String,
    /// Once it has answered: a client with the version of its API.
    client: Mutex<Option<Docker>>,
}

impl Engine {
    pub fn new(endpoint: String) -> Engine {
        Engine { endpoint, client: Mutex::default() }
    }

    /// A client for requests; each of them is a connection of its own.
    ///
    /// # Errors
    /// When the engine does not answer and never has.
    pub async fn client(&self) -> Result<Docker, Error> {
        if let Some(client) = self.lock().clone() {
            return Ok(client);
        }
        self.greet().await
    }

    /// Finds out which version of the API the engine speaks: it may be another one since.
    ///
    /// # Errors
    /// When the engine does not answer.
    pub async fn greet(&self) -> Result<Docker, Error> {
        let seconds = ANSWER_TIMEOUT.as_secs();
        let unnegotiated = match self.endpoint.starts_with("unix://") {
            true => Docker::connect_with_unix(&self.endpoint, seconds, API_DEFAULT_VERSION)?,
            false => Docker::connect_with_http(&self.endpoint, seconds, API_DEFAULT_VERSION)?,
        };
        let negotiated = timeout(GREETING_TIMEOUT, unnegotiated.negotiate_version()).await;
        let client = negotiated.unwrap_or(Err(Error::RequestTimeoutError))?;
        *self.lock() = Some(client.clone());
        Ok(client)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Docker>> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// # Errors
    /// When the engine does not answer, or has no such container.
    pub async fn inspect(&self, container: &str) -> Result<ContainerInspectResponse, Error> {
        self.client().await?.inspect_container(container, None::<InspectContainerOptions>).await
    }
}

/// The code of an answer that says no.
pub fn status(error: &Error) -> Option<u16> {
    match error {
        Error::DockerResponseServerError { status_code, .. } => Some(*status_code),
        _ => None,
    }
}

/// There is no such container, image or command.
pub fn is_missing(error: &Error) -> bool {
    status(error) == Some(404)
}

/// It is so already, or cannot be so now.
pub fn is_conflict(error: &Error) -> bool {
    matches!(status(error), Some(304 | 409))
}

/// The engine has not decided anything: it may well do so when it is asked again.
pub fn is_transient(error: &Error) -> bool {
    match error {
        Error::DockerResponseServerError { status_code, message } => {
            *status_code == 500
                && ["Client.Timeout", "EOF", "context deadline exceeded", "connection refused", "is locked"]
                    .iter()
                    .any(|sign| message.contains(sign))
                || *status_code == 503
        }
        Error::DockerStreamError { .. } | Error::DockerContainerWaitError { .. } => false,
        Error::JsonDataError { .. } | Error::JsonSerdeError { .. } => false,
        _ => true,
    }
}

/// For people: what the engine said, or why it said nothing.
pub fn text(error: &Error) -> String {
    match error {
        Error::DockerResponseServerError { message, .. } => message.trim().to_string(),
        Error::DockerStreamError { error } => error.clone(),
        other if is_transient(other) => format!("{NO_ENGINE}: {other}"),
        other => other.to_string(),
    }
}
