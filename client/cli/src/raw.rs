//! Requests that one command alone makes, and that the client library has no method for.

use anyhow::{Context, anyhow};
use sdk::{ApiRequest, Client};
use serde_json::Value;

use crate::call::{Doing, Failure};

/// Makes the request and gives the body of the answer, if that is a success.
///
/// # Errors
/// That there was no answer, or another one: `Error DOING: Unexpected response code: CODE (TEXT)`.
pub(crate) async fn ask(
    client: &Client,
    method: &str,
    path: &str,
    body: Option<&Value>,
    doing: &str,
) -> Result<Vec<u8>, Failure> {
    let (status, text) = answer(client, method, path, body, doing).await?;
    match status {
        200..300 => Ok(text),
        _ => Err(unexpected(doing, status, &text)),
    }
}

/// What commands say of an answer that they have no use for.
pub(crate) fn unexpected(doing: &str, status: u16, text: &[u8]) -> Failure {
    let text = String::from_utf8_lossy(text);
    anyhow!("Error {doing}: Unexpected response code: {status} ({})", text.trim()).into()
}

/// The status and the body of the answer, whatever it is.
///
/// # Errors
/// That there was no answer.
pub(crate) async fn answer(
    client: &Client,
    method: &str,
    path: &str,
    body: Option<&Value>,
    doing: &str,
) -> Result<(u16, Vec<u8>), Failure> {
    let body = body.map(Value::to_string).unwrap_or_default();
    let response = client.call_raw(request(method, path, body)).await.doing(doing)?;
    let status = response.status().as_u16();
    let text = response.bytes().await.with_context(|| format!("Error {doing}: the answer broke off"))?;
    Ok((status, text.to_vec()))
}

/// A request without anything beside its body.
pub(crate) fn request(method: &str, path: &str, body: String) -> ApiRequest {
    ApiRequest {
        method: method.to_string(),
        path: path.to_string(),
        filter: String::new(),
        headers: Vec::new(),
        body: body.into(),
    }
}
