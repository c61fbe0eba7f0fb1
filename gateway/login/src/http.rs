//! Requests to providers: of bounded size and time, and without a way to somewhere else.

use std::time::Duration;

use base::reasons;
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Response};

use crate::LoginError;

/// How long a provider may take for one answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Largest answer.
const ANSWER_MAX: usize = 1024 * 1024;
/// How much of a failure is shown.
const SHOWN_MAX: usize = 256;

pub(crate) fn failed(what: &str, why: impl std::fmt::Display) -> LoginError {
    LoginError::Provider(format!("{what}: {why}"))
}

/// Trusts these authorities, or those of the host if there are none. A provider's documents are where it says they are, so no
/// redirect is followed.
pub(crate) fn client(authorities: &[String]) -> Result<Client, LoginError> {
    let tls = tls::client::config_trusting(authorities).map_err(|error| failed("certificates", error))?;
    let builder = Client::builder().timeout(TIMEOUT).connect_timeout(TIMEOUT).no_proxy();
    let client = builder.redirect(Policy::none()).tls_backend_preconfigured(tls).build();
    client.map_err(|error| failed("HTTP client", error))
}

/// # Errors
/// They cannot be read.
pub fn check_authorities(authorities: &[String]) -> Result<(), String> {
    tls::client::config_trusting(authorities).map(drop).map_err(|error| error.to_string())
}

/// The body of a good answer.
pub(crate) async fn body(what: &str, request: RequestBuilder) -> Result<Vec<u8>, LoginError> {
    let response = request.send().await.map_err(|error| failed(what, reasons(&error)))?;
    let status = response.status();
    let bytes = read(what, response).await?;
    if status.is_success() {
        return Ok(bytes);
    }
    let shown: String = String::from_utf8_lossy(&bytes).chars().take(SHOWN_MAX).collect();
    Err(failed(what, format!("HTTP status {status}: {}", shown.trim())))
}

async fn read(what: &str, mut response: Response) -> Result<Vec<u8>, LoginError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| failed(what, reasons(&error)))? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > ANSWER_MAX {
            return Err(failed(what, format!("the answer is longer than {ANSWER_MAX} bytes")));
        }
    }
    Ok(bytes)
}
