use std::time::Duration;

use crate::Error;

/// How long a text from elsewhere may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Longest text from elsewhere: job files are far shorter.
const TEXT_MAX: usize = 64 << 20;

/// The text at an address that is no agent's.
///
/// # Errors
/// When nobody answers there, it is too long, or it is no text.
pub async fn fetch(url: &str) -> Result<String, Error> {
    let tls = tls::client::config_for(url, &tls::client::ClientOptions::default())?;
    let http = reqwest::Client::builder().timeout(TIMEOUT).no_proxy().tls_backend_preconfigured(tls).build();
    let http = http.map_err(|error| Error::unreachable(url, &error))?;
    let mut response = http.get(url).send().await.map_err(|error| Error::unreachable(url, &error))?;
    let code = response.status().as_u16();
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| Error::unreachable(url, &error))? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > TEXT_MAX {
            return Err(Error::Stream(format!("{url} is longer than {TEXT_MAX} bytes")));
        }
    }
    let text = String::from_utf8(bytes).map_err(|_| Error::Stream(format!("{url} is no text")))?;
    if (200..300).contains(&code) { Ok(text) } else { Err(Error::Status { code, text }) }
}
