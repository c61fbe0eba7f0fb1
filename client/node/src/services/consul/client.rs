//! Calls of Consul's HTTP API, of bounded time and size.

use std::time::Duration;

use base::reasons;
use reqwest::redirect::Policy;
use reqwest::{Method, StatusCode, Url};
use serde_json::{Map, Value, json};
use tls::client::ClientOptions;

use super::{ConsulSettings, Registration};
use crate::http_answer::{self, REFUSAL_BYTES_MAX};

#[derive(Debug, thiserror::Error)]
pub(super) enum ConsulError {
    #[error("Consul is not reached: {0}")]
    Unreached(String),
    #[error("Consul answers {status}: {text}")]
    Refused { status: u16, text: String },
    #[error("the servers did not sign: {0}")]
    Unsigned(String),
}

#[derive(Debug)]
pub(super) struct Client {
    http: reqwest::Client,
    base: Url,
    token: String,
    auth: Option<(String, String)>,
    namespace: String,
    timeout: Duration,
    pub(super) task_auth_method: String,
    pub(super) service_auth_method: String,
}

/// One request.
pub(super) struct Call<'a> {
    pub method: Method,
    /// The parts of the path behind `/v1`.
    pub path: &'a [&'a str],
    pub query: &'a [(&'a str, String)],
    pub body: Option<&'a Value>,
    /// Instead of the agent's.
    pub token: Option<&'a str>,
    /// Besides the usual time.
    pub wait: Duration,
}

impl Client {
    pub(super) fn new(settings: &ConsulSettings) -> Result<Client, String> {
        let options = ClientOptions {
            ca_cert: settings.ca_file.clone(),
            client_cert: settings.cert_file.clone(),
            client_key: settings.key_file.clone(),
            skip_verify: settings.skip_verify,
            ..ClientOptions::default()
        };
        let tls = tls::client::config_for(&settings.address, &options).map_err(|error| error.to_string())?;
        let mut builder =
            reqwest::Client::builder().no_proxy().redirect(Policy::none()).user_agent("Sojourn");
        builder = builder.tls_backend_preconfigured(tls);
        let mut base = settings.address.as_str();
        if let Some(path) = base.strip_prefix("unix://") {
            builder = builder.unix_socket(path);
            base = "http://consul";
        }
        let base = Url::parse(base).map_err(|error| format!("address \"{base}\": {error}"))?;
        let auth = settings.auth.split_once(':').unwrap_or((&settings.auth, ""));
        Ok(Client {
            http: builder.build().map_err(|error| error.to_string())?,
            base,
            token: settings.token.clone(),
            auth: (!settings.auth.is_empty()).then(|| (auth.0.to_string(), auth.1.to_string())),
            namespace: settings.namespace.clone(),
            timeout: settings.timeout,
            task_auth_method: settings.task_auth_method.clone(),
            service_auth_method: settings.service_auth_method.clone(),
        })
    }

    /// The answer, `None` for a 404 without a message, and its index.
    pub(super) async fn call(&self, call: Call<'_>) -> Result<(Option<Value>, u64), ConsulError> {
        let mut url = self.base.clone();
        let unreached = |error: reqwest::Error| reasons(&error);
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push("v1").extend(call.path);
        }
        let mut request = self.http.request(call.method, url).timeout(self.timeout + call.wait);
        request = request.query(call.query);
        if !self.namespace.is_empty() {
            request = request.query(&[("ns", &self.namespace)]);
        }
        let token = call.token.unwrap_or(&self.token);
        if !token.is_empty() {
            request = request.header("X-Consul-Token", token);
        }
        if let Some((user, password)) = &self.auth {
            request = request.basic_auth(user, Some(password));
        }
        if let Some(body) = call.body {
            request = request.json(body);
        }
        let answer = request.send().await.map_err(|error| ConsulError::Unreached(unreached(error)))?;
        let status = answer.status();
        let index =
            answer.headers().get("X-Consul-Index").and_then(|value| value.to_str().ok()?.parse().ok());
        let mut bytes = http_answer::body(answer, unreached).await.map_err(ConsulError::Unreached)?;
        if status == StatusCode::NOT_FOUND && bytes.is_empty() {
            return Ok((None, index.unwrap_or(0)));
        }
        if !status.is_success() {
            bytes.truncate(REFUSAL_BYTES_MAX);
            let text = String::from_utf8_lossy(&bytes).trim().to_string();
            return Err(ConsulError::Refused { status: status.as_u16(), text });
        }
        Ok((http_answer::json(&bytes).map_err(ConsulError::Unreached)?, index.unwrap_or(0)))
    }

    async fn get(&self, path: &[&str]) -> Result<Value, ConsulError> {
        let call =
            Call { method: Method::GET, path, query: &[], body: None, token: None, wait: Duration::ZERO };
        Ok(self.call(call).await?.0.unwrap_or_default())
    }

    async fn put(
        &self,
        path: &[&str],
        query: &[(&str, String)],
        token: Option<&str>,
        body: Option<&Value>,
    ) -> Result<(), ConsulError> {
        let call = Call { method: Method::PUT, path, query, body, token, wait: Duration::ZERO };
        self.call(call).await.map(drop)
    }

    pub(super) async fn agent(&self) -> Result<Value, ConsulError> {
        self.get(&["agent", "self"]).await
    }

    /// The services of the Consul agent by id.
    pub(super) async fn services(&self) -> Result<Map<String, Value>, ConsulError> {
        let Value::Object(found) = self.get(&["agent", "services"]).await? else { return Ok(Map::new()) };
        Ok(found)
    }

    /// Its checks by id.
    pub(super) async fn checks(&self) -> Result<Map<String, Value>, ConsulError> {
        let Value::Object(found) = self.get(&["agent", "checks"]).await? else { return Ok(Map::new()) };
        Ok(found)
    }

    /// With exactly these checks.
    pub(super) async fn register(
        &self,
        service: &Registration,
        token: Option<&str>,
    ) -> Result<(), ConsulError> {
        let query = [("replace-existing-checks", "true".to_string())];
        self.put(&["agent", "service", "register"], &query, token, Some(&service.document)).await
    }

    /// It is no error when there is no such service.
    pub(super) async fn deregister(&self, id: &str, token: Option<&str>) -> Result<(), ConsulError> {
        match self.put(&["agent", "service", "deregister", id], &[], token, None).await {
            Err(ConsulError::Refused { status: 404, .. }) => Ok(()),
            other => other,
        }
    }

    /// The secret of a token for what the bearer token stands for.
    pub(super) async fn login(&self, method: &str, bearer: &str, meta: Value) -> Result<String, ConsulError> {
        let body = json!({"AuthMethod": method, "BearerToken": bearer, "Meta": meta});
        let call = Call {
            method: Method::POST,
            path: &["acl", "login"],
            query: &[],
            body: Some(&body),
            // Of nobody: the bearer token is what counts.
            token: Some(""),
            wait: Duration::ZERO,
        };
        let answer = self.call(call).await?.0.unwrap_or_default();
        let secret = answer["SecretID"].as_str().map(str::to_string);
        secret.ok_or_else(|| ConsulError::Unreached("it answers a login without a token".to_string()))
    }

    /// It is no error when the token is worth nothing any more.
    pub(super) async fn logout(&self, token: &str) -> Result<(), ConsulError> {
        let call = Call {
            method: Method::PUT,
            path: &["acl", "logout"],
            query: &[],
            body: None,
            token: Some(token),
            wait: Duration::ZERO,
        };
        match self.call(call).await {
            Err(ConsulError::Refused { status: 401 | 403 | 404, .. }) => Ok(()),
            other => other.map(drop),
        }
    }

    pub(super) async fn update_check(
        &self,
        id: &str,
        token: Option<&str>,
        status: &str,
        output: &str,
    ) -> Result<(), ConsulError> {
        let body = json!({"Status": status, "Output": output});
        self.put(&["agent", "check", "update", id], &[], token, Some(&body)).await
    }
}
