//! Downloads over HTTP.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, Url};

use crate::FetchError;
use crate::checksum::{Checker, LIST_BYTES_MAX};
use crate::source::shown;

/// Most redirects that one download follows.
const REDIRECTS_MAX: usize = 10;

/// How long a server may take to be reached.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// What one request says, and what it may cost.
#[derive(Debug, Clone)]
pub struct Call {
    pub url: Url,
    /// For the host of `url` alone.
    pub headers: HeaderMap,
    pub insecure: bool,
    pub timeout: Duration,
    pub bytes_max: u64,
}

/// # Errors
/// A header that HTTP does not allow, by its name.
pub fn headers<'a>(
    given: impl IntoIterator<Item = (&'a String, &'a String)>,
) -> Result<HeaderMap, FetchError> {
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        let wrong =
            || FetchError::invalid(format!("headers: \"{name}\" is no header, or its value no text of one"));
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| wrong())?;
        value.set_sensitive(true);
        headers.append(key, value);
    }
    Ok(headers)
}

/// Writes what a server sends to `file`, and shows it to the checker.
///
/// # Errors
/// When no server answers in time, or not with the file, or with more than is allowed.
pub fn download(call: &Call, file: &mut File, mut checker: Option<&mut Checker>) -> Result<(), FetchError> {
    within(call, async {
        let mut response = get(call).await?;
        let too_large = || {
            let most = call.bytes_max;
            FetchError::failed(format!("{}: larger than {most} bytes (http_max_size)", shown(&call.url)))
        };
        if response.content_length().is_some_and(|length| length > call.bytes_max) {
            return Err(too_large());
        }
        let mut received = 0_u64;
        while let Some(chunk) = response.chunk().await.map_err(|error| failed(&call.url, error))? {
            received += chunk.len() as u64;
            if received > call.bytes_max {
                return Err(too_large());
            }
            file.write_all(&chunk)?;
            if let Some(checker) = &mut checker {
                checker.update(&chunk);
            }
        }
        Ok(())
    })
}

/// A short text.
///
/// # Errors
/// As for [`download`]; also when it is longer than a list of digests may be.
pub fn text(call: &Call) -> Result<String, FetchError> {
    within(call, async {
        let mut response = get(call).await?;
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| failed(&call.url, error))? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() as u64 > LIST_BYTES_MAX {
                let text = format!("{}: larger than {LIST_BYTES_MAX} bytes", shown(&call.url));
                return Err(FetchError::failed(text));
            }
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    })
}

fn within<T>(call: &Call, work: impl Future<Output = Result<T, FetchError>>) -> Result<T, FetchError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        tokio::time::timeout(call.timeout, work).await.unwrap_or_else(|_| {
            let text = format!("{}: not complete within {} s", shown(&call.url), call.timeout.as_secs());
            Err(FetchError::failed(text))
        })
    })
}

/// Follows redirects. A server that the job did not name gets nothing that is secret.
async fn get(call: &Call) -> Result<Response, FetchError> {
    let client = client(call.insecure)?;
    let mut url = call.url.clone();
    for _ in 0..=REDIRECTS_MAX {
        let mut request = client.get(url.clone());
        if is_same_server(&call.url, &url) {
            request = request.headers(call.headers.clone());
            if !call.headers.contains_key(AUTHORIZATION)
                && url.username().is_empty()
                && let Some((login, password)) = credentials(&url)
            {
                request = request.basic_auth(login, Some(password));
            }
        }
        let response = request.send().await.map_err(|error| failed(&url, error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let Some(location) = location.filter(|_| status.is_redirection()) else {
            return Err(FetchError::failed(format!(
                "{}: bad response code: {}",
                shown(&url),
                status.as_u16()
            )));
        };
        let mut next = url.join(location).map_err(|error| {
            FetchError::failed(format!("{}: redirected to no address: {error}", shown(&url)))
        })?;
        if !["http", "https"].contains(&next.scheme()) || (url.scheme() == "https" && next.scheme() == "http")
        {
            let text = format!("{}: a redirect to {}:// is not followed", shown(&url), next.scheme());
            return Err(FetchError::failed(text));
        }
        if !is_same_server(&call.url, &next) {
            // Both only fail for addresses that cannot have them.
            next.set_username("").ok();
            next.set_password(None).ok();
        }
        url = next;
    }
    Err(FetchError::failed(format!("{}: more than {REDIRECTS_MAX} redirects", shown(&call.url))))
}

/// The same host and port, or its own TLS port.
fn is_same_server(first: &Url, now: &Url) -> bool {
    let (before, after) = (first.port_or_known_default(), now.port_or_known_default());
    let secured = (first.scheme(), before, now.scheme(), after) == ("http", Some(80), "https", Some(443));
    first.host_str() == now.host_str() && ((before == after && first.scheme() == now.scheme()) || secured)
}

fn client(insecure: bool) -> Result<Client, FetchError> {
    let tls = match insecure {
        true => tls::client::config(&tls::client::ClientOptions { skip_verify: true, ..Default::default() }),
        false => tls::client::config_trusting(&[]),
    };
    let tls = tls.map_err(|error| FetchError::failed(format!("certificates of the host: {error}")))?;
    let builder = Client::builder().redirect(Policy::none()).connect_timeout(CONNECT_TIMEOUT);
    let client = builder.user_agent("Sojourn").tls_backend_preconfigured(tls).build();
    client.map_err(FetchError::failed)
}

/// An error with what it is caused by, and without the parameters of the address.
fn failed(url: &Url, error: reqwest::Error) -> FetchError {
    let error = error.without_url();
    FetchError::failed(format!("{}: {}", shown(url), base::reasons(&error)))
}

/// What the `.netrc` of the agent's user has for a host.
fn credentials(url: &Url) -> Option<(String, String)> {
    let path = match std::env::var_os("NETRC") {
        Some(path) => path.into(),
        None => Path::new(&std::env::var_os("HOME")?).join(".netrc"),
    };
    find_machine(&std::fs::read_to_string(path).ok()?, url.host_str()?)
}

/// The login and password of `machine <host>`. The entry `default` would send a password to strangers, so it is not used.
fn find_machine(netrc: &str, host: &str) -> Option<(String, String)> {
    let mut words = netrc.split_whitespace();
    let (mut here, mut login, mut password) = (false, None, None);
    while let Some(word) = words.next() {
        match word {
            "machine" | "default" if here => break,
            "machine" => here = words.next()? == host,
            "login" if here => login = words.next(),
            "password" if here => password = words.next(),
            "login" | "password" | "account" => drop(words.next()),
            // Their text goes on to an empty line, and nothing in it is for us.
            "macdef" => break,
            _ => {}
        }
    }
    Some((login?.to_string(), password.unwrap_or_default().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn netrc_is_read_for_the_host_alone() {
        let netrc = "default login any password any\nmachine a login me\n password p1\nmachine b password p2 login you\n";
        let found = |host: &str| find_machine(netrc, host);
        assert_eq!(found("a"), Some(("me".into(), "p1".into())));
        assert_eq!(found("b"), Some(("you".into(), "p2".into())));
        assert_eq!(found("c"), None);
        assert_eq!(find_machine("machine a login", "a"), None);
    }

    #[test]
    fn another_port_is_another_server() {
        let same = |a: &str, b: &str| is_same_server(&Url::parse(a).unwrap(), &Url::parse(b).unwrap());
        assert!(same("http://h/a", "http://h/b"));
        assert!(same("http://h/a", "https://h/b"), "as if it had been asked so at once");
        assert!(!same("http://h:1/a", "http://h:2/a"));
        assert!(!same("https://h/a", "https://other/a"));
        assert!(!same("http://h/a", "https://h:8443/a"));
    }

    #[test]
    fn headers_that_are_none_are_named() {
        let one = |name: &str, value: &str| {
            let (name, value) = (name.to_string(), value.to_string());
            headers([(&name, &value)]).map(|headers| headers.len()).map_err(|error| error.to_string())
        };
        assert_eq!(one("X-Token", "a b"), Ok(1));
        assert!(one("X Token", "a").unwrap_err().contains("\"X Token\""));
        assert!(one("X-Token", "a\r\nHost: b").is_err());
    }
}
