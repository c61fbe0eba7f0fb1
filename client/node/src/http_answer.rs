//! Answers of the services beside a node, Consul and Vault: of bounded size, and JSON.

use reqwest::Response;
use serde_json::Value;

/// Longest answer.
const BYTES_MAX: usize = 16 << 20;

/// How much of a refusal is shown.
pub(crate) const REFUSAL_BYTES_MAX: usize = 512;

/// The whole body. `unreached` says why a connection broke.
///
/// # Errors
/// It broke, or the body is too long.
pub(crate) async fn body(
    mut answer: Response,
    unreached: impl Fn(reqwest::Error) -> String,
) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(&unreached)? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > BYTES_MAX {
            return Err("its answer has more than 16 MiB".to_string());
        }
    }
    Ok(bytes)
}

/// What a body says; `None` for one that says nothing.
///
/// # Errors
/// It is no JSON.
pub(crate) fn json(bytes: &[u8]) -> Result<Option<Value>, String> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    serde_json::from_slice(bytes).map(Some).map_err(|error| format!("its answer is no JSON: {error}"))
}
