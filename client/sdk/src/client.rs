use std::time::Duration;

use base::Index;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use model::document::input;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, RequestBuilder, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tls::client::{self, ClientOptions};

use crate::Error;

/// A server that does not accept a connection within this time is given up.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest a call that is not a stream may take: the longest blocking read (300 s and its jitter) and slack.
const CALL_TIMEOUT: Duration = Duration::from_secs(350);

/// Most bytes of an error's text that are kept: a wrong address may answer with a whole web page.
const ERROR_TEXT_MAX: usize = 4096;

/// What may stand in one segment of a path unescaped. Job ids hold `/`, which must not split them.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A connection to one agent. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    /// Without a slash at the end.
    address: String,
    namespace: String,
    region: String,
}

/// What a [`Client`] is made from. Empty texts mean "unset".
#[derive(Clone, Default)]
pub struct Builder {
    /// `http://HOST:PORT`, `https://HOST:PORT` or `unix:///path/to/socket`.
    pub address: String,
    pub token: String,
    pub namespace: String,
    pub region: String,
    /// `user` or `user:password`, for a proxy in front of the agent.
    pub basic_auth: String,
    /// The moment that every read is of: an index, a time or a span like `-15m`. Writes are refused with it.
    pub as_of: String,
    /// The kept fork that every read is of. Writes are refused with it.
    pub fork: String,
    /// Counts for `https://` only.
    pub tls: ClientOptions,
}

/// A value and what the answer's headers say of it.
#[derive(Clone, Debug)]
pub struct Answer<T> {
    pub value: T,
    /// The index the value is valid for; 0 when the answer names none.
    pub index: Index,
    /// Asks for the next page, when there is one.
    pub next_token: Option<String>,
}

/// Query parameters of one call.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    pub fn new() -> Query {
        Query::default()
    }

    /// Adds a parameter; one with an empty value is left out.
    pub fn with(mut self, name: &str, value: impl ToString) -> Query {
        let value = value.to_string();
        if !value.is_empty() {
            self.0.push((name.to_string(), value));
        }
        self
    }

    /// Adds `name=true` if asked.
    pub fn flag(self, name: &str, on: bool) -> Query {
        if on { self.with(name, "true") } else { self }
    }

    pub fn prefix(self, prefix: &str) -> Query {
        self.with("prefix", prefix)
    }

    /// Overrides the client's namespace for this call.
    pub fn namespace(mut self, namespace: &str) -> Query {
        self.0.retain(|(name, _)| name != "namespace");
        self.with("namespace", namespace)
    }

    /// Blocks until the result is newer than `index`, or for `wait`.
    pub fn newer_than(self, index: Index, wait: base::Duration) -> Query {
        self.with("index", index).with("wait", wait)
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(given, _)| given == name)
    }
}

impl Builder {
    /// # Errors
    /// [`Error::Address`] when the address is of no supported form, [`Error::Tls`] when certificates cannot be used.
    pub fn build(self) -> Result<Client, Error> {
        let wrong = |reason: &str| Error::Address { address: self.address.clone(), reason: reason.into() };
        let mut http = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .user_agent(concat!("sojourn/", env!("CARGO_PKG_VERSION")))
            .no_proxy();
        let unfit = |what: &str| wrong(&format!("the {what} holds characters that a header cannot carry"));
        let mut headers = self.secrets().ok_or_else(|| unfit("token"))?;
        if !self.as_of.is_empty() {
            let moment = HeaderValue::from_str(&self.as_of).map_err(|_| unfit("moment"))?;
            headers.insert(AS_OF_HEADER, moment);
        }
        if !self.fork.is_empty() {
            headers.insert(FORK_HEADER, HeaderValue::from_str(&self.fork).map_err(|_| unfit("fork"))?);
        }
        http = http.default_headers(headers);
        let address = match self.address.split_once("://") {
            Some(("http" | "https", _)) => self.address.trim_end_matches('/').to_string(),
            Some(("unix", path)) => {
                http = http.unix_socket(path);
                "http://localhost".to_string()
            }
            _ => return Err(wrong("expected http://HOST:PORT, https://HOST:PORT or unix:///PATH")),
        };
        http = http.tls_backend_preconfigured(client::config_for(&address, &self.tls)?);
        let http = http.build().map_err(|e| wrong(&e.to_string()))?;
        Ok(Client { http, address, namespace: self.namespace, region: self.region })
    }
}

impl Builder {
    /// Who asks; `None` when that cannot stand in a header.
    fn secrets(&self) -> Option<HeaderMap> {
        let mut headers = HeaderMap::new();
        let mut add = |name: HeaderName, text: &str| {
            let mut value = HeaderValue::from_str(text).ok()?;
            value.set_sensitive(true);
            headers.insert(name, value);
            Some(())
        };
        if !self.token.is_empty() {
            add(TOKEN_HEADER, &self.token)?;
        }
        if !self.basic_auth.is_empty() {
            let pair = match self.basic_auth.contains(':') {
                true => self.basic_auth.clone(),
                false => format!("{}:", self.basic_auth),
            };
            add(AUTHORIZATION, &format!("Basic {}", STANDARD.encode(pair)))?;
        }
        Some(headers)
    }
}

const AS_OF_HEADER: HeaderName = HeaderName::from_static("x-sojourn-as-of");
const FORK_HEADER: HeaderName = HeaderName::from_static("x-sojourn-fork");
const TOKEN_HEADER: HeaderName = HeaderName::from_static("x-nomad-token");

impl Client {
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The namespace calls ask for unless they say otherwise; empty means the server's default.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The same connection for another region, to which the agent passes requests on.
    pub fn in_region(&self, region: &str) -> Client {
        Client { region: region.to_string(), ..self.clone() }
    }

    /// The same connection for another namespace.
    pub fn in_namespace(&self, namespace: &str) -> Client {
        Client { namespace: namespace.to_string(), ..self.clone() }
    }

    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: Query,
    ) -> Result<Answer<T>, Error> {
        self.call(self.request(Method::GET, path, query), path).await
    }

    pub(crate) async fn put<T: DeserializeOwned>(
        &self,
        path: &str,
        query: Query,
        body: &impl Serialize,
    ) -> Result<Answer<T>, Error> {
        self.call(self.request(Method::PUT, path, query).json(body), path).await
    }

    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        query: Query,
        body: &impl Serialize,
    ) -> Result<Answer<T>, Error> {
        self.call(self.request(Method::POST, path, query).json(body), path).await
    }

    pub(crate) async fn delete<T: DeserializeOwned>(
        &self,
        path: &str,
        query: Query,
    ) -> Result<Answer<T>, Error> {
        self.call(self.request(Method::DELETE, path, query), path).await
    }

    async fn call<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
        path: &str,
    ) -> Result<Answer<T>, Error> {
        let Answer { value: text, index, next_token } = self.exchange(request.timeout(CALL_TIMEOUT)).await?;
        let value =
            input::from_slice(&text).map_err(|source| Error::Answer { path: path.to_string(), source })?;
        Ok(Answer { value, index, next_token })
    }

    /// Apart from what reads the answer, so that it is compiled once and not for every kind of answer.
    async fn exchange(&self, request: RequestBuilder) -> Result<Answer<Bytes>, Error> {
        let response = self.send(request).await?;
        let index = header(&response, "x-nomad-index").and_then(|text| text.parse().ok()).unwrap_or(0);
        let next_token = header(&response, "x-nomad-nexttoken").map(str::to_string);
        let value = response.bytes().await.map_err(|e| Error::unreachable(&self.address, &e))?;
        Ok(Answer { value, index: Index(index), next_token })
    }

    /// The index of what this client reads: of its `as_of` or its `fork` if it has one.
    ///
    /// # Errors
    /// The agent cannot be reached, or there is no such moment.
    pub async fn moment(&self) -> Result<Index, Error> {
        let answer: Answer<serde::de::IgnoredAny> = self.get("/v1/namespaces", Query::new()).await?;
        Ok(answer.index)
    }

    /// Passes somebody else's call on as it is, but for who asks and for which moment, where that is this client's. `path`
    /// holds the query too.
    ///
    /// # Errors
    /// The agent cannot be reached. An answer that is no success is an answer.
    pub async fn pass_on(
        &self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<Response, Error> {
        let request = self.http.request(method, format!("{}{path}", self.address));
        let request = request.headers(headers).body(body).timeout(CALL_TIMEOUT);
        request.send().await.map_err(|e| Error::unreachable(&self.address, &e))
    }

    pub(crate) fn request(&self, method: Method, path: &str, mut query: Query) -> reqwest::RequestBuilder {
        for (name, value) in [("namespace", &self.namespace), ("region", &self.region)] {
            if !query.has(name) {
                query = query.with(name, value);
            }
        }
        self.http.request(method, format!("{}{path}", self.address)).query(&query.0)
    }

    /// Sends; an answer that is not a success becomes an error with the server's text.
    pub(crate) async fn send(&self, request: reqwest::RequestBuilder) -> Result<Response, Error> {
        let response = request.send().await.map_err(|e| Error::unreachable(&self.address, &e))?;
        self.checked(response).await
    }

    /// An answer that is not a success becomes an error with the server's text.
    pub(crate) async fn checked(&self, response: Response) -> Result<Response, Error> {
        if response.status().is_success() {
            return Ok(response);
        }
        let code = response.status().as_u16();
        let mut text = response.text().await.unwrap_or_default();
        if text.len() > ERROR_TEXT_MAX {
            text.truncate(text.floor_char_boundary(ERROR_TEXT_MAX));
        }
        Err(Error::Status { code, text: text.trim_end().to_string() })
    }
}

fn header<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}

/// An id as one segment of a path.
pub(crate) fn segment(id: &str) -> impl std::fmt::Display + '_ {
    utf8_percent_encode(id, SEGMENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: &str) -> Result<Client, Error> {
        Builder { address: address.to_string(), ..Builder::default() }.build()
    }

    #[test]
    fn an_id_with_a_slash_stays_one_segment() {
        assert_eq!(segment("batch/periodic-1 2").to_string(), "batch%2Fperiodic-1%202");
    }

    #[test]
    fn an_address_that_cannot_work_is_refused_at_once() {
        assert_eq!(at("http://127.0.0.1:4646/").unwrap().address(), "http://127.0.0.1:4646");
        assert_eq!(at("https://127.0.0.1:4646/").unwrap().address(), "https://127.0.0.1:4646");
        for address in ["", "127.0.0.1:4646", "ftp://x"] {
            let error = at(address).unwrap_err();
            assert!(matches!(error, Error::Address { .. }), "{address}: {error}");
        }
    }

    #[test]
    fn a_namespace_given_for_a_call_replaces_the_earlier_one() {
        let query = Query::new().namespace("a").with("all", "").namespace("b");
        assert_eq!(query.0, [("namespace".to_string(), "b".to_string())]);
    }
}
