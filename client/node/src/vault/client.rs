//! Calls of Vault's HTTP API, of bounded time and size.

use std::time::Duration;

use base::reasons;
use reqwest::redirect::Policy;
use reqwest::{Method, StatusCode, Url};
use serde_json::{Value, json};
use tls::client::ClientOptions;

use super::VaultSettings;
use crate::http_answer::{self, REFUSAL_BYTES_MAX};

const TIMEOUT: Duration = Duration::from_secs(30);

/// A standby sends its callers to the active server, which may have changed meanwhile.
const REDIRECTS_MAX: usize = 2;

#[derive(Debug, thiserror::Error)]
pub(crate) enum VaultError {
    /// Not now: it is away, sealed, or not ready.
    #[error("Vault is not reached: {0}")]
    Unreached(String),
    #[error("Vault answers {status}: {text}")]
    Refused { status: u16, text: String },
}

/// A token, as Vault gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Auth {
    pub token: String,
    /// Zero for one that lives for ever.
    pub lease: Duration,
    pub renewable: bool,
}

#[derive(Debug)]
pub(super) struct Client {
    http: reqwest::Client,
    base: Url,
    auth_path: String,
    role: String,
}

/// One request.
pub(super) struct Call<'a> {
    pub method: Method,
    /// Behind `/v1/`.
    pub path: &'a str,
    pub query: &'a [(String, String)],
    pub body: Option<&'a Value>,
    pub namespace: &'a str,
    /// Empty for nobody's.
    pub token: &'a str,
}

impl Client {
    pub(super) fn new(settings: &VaultSettings) -> Result<Client, String> {
        let options = ClientOptions {
            ca_cert: settings.ca_file.clone(),
            ca_path: settings.ca_path.clone(),
            client_cert: settings.cert_file.clone(),
            client_key: settings.key_file.clone(),
            server_name: settings.server_name.clone(),
            skip_verify: settings.skip_verify,
        };
        let tls = tls::client::config_for(&settings.address, &options).map_err(|error| error.to_string())?;
        let builder = reqwest::Client::builder()
            .no_proxy()
            .redirect(Policy::limited(REDIRECTS_MAX))
            .user_agent("Sojourn")
            .timeout(TIMEOUT)
            .tls_backend_preconfigured(tls);
        let address = &settings.address;
        let base = Url::parse(address).map_err(|error| format!("address \"{address}\": {error}"))?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(format!("address \"{address}\": expected http:// or https://"));
        }
        Ok(Client {
            http: builder.build().map_err(|error| error.to_string())?,
            base,
            auth_path: settings.auth_path.trim_matches('/').to_string(),
            role: settings.role.clone(),
        })
    }

    /// The answer; `None` where there is nothing.
    pub(super) async fn call(&self, call: Call<'_>) -> Result<Option<Value>, VaultError> {
        let mut url = self.base.clone();
        let unreached = |error: reqwest::Error| reasons(&error.without_url());
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push("v1").extend(call.path.split('/'));
        }
        let mut request = self.http.request(call.method, url).header("X-Vault-Request", "true");
        if !call.query.is_empty() {
            request = request.query(call.query);
        }
        if !call.namespace.is_empty() {
            request = request.header("X-Vault-Namespace", call.namespace);
        }
        if !call.token.is_empty() {
            request = request.header("X-Vault-Token", call.token);
        }
        if let Some(body) = call.body {
            request = request.json(body);
        }
        let answer = request.send().await.map_err(|error| VaultError::Unreached(unreached(error)))?;
        let status = answer.status();
        let bytes = http_answer::body(answer, unreached).await.map_err(VaultError::Unreached)?;
        match status {
            StatusCode::NOT_FOUND => return Ok(None),
            status if status.is_success() => {}
            status => return Err(refusal(status, &bytes)),
        }
        http_answer::json(&bytes).map_err(VaultError::Unreached)
    }

    pub(super) async fn seal_status(&self) -> Result<Value, VaultError> {
        let path = "sys/seal-status";
        let call = Call { method: Method::GET, path, query: &[], body: None, namespace: "", token: "" };
        Ok(self.call(call).await?.unwrap_or_default())
    }

    async fn put(&self, path: &str, namespace: &str, token: &str, body: &Value) -> Result<Value, VaultError> {
        let call = Call { method: Method::PUT, path, query: &[], body: Some(body), namespace, token };
        let missing = || VaultError::Refused { status: 404, text: format!("there is no {path}") };
        self.call(call).await?.ok_or_else(missing)
    }

    pub(super) async fn login(&self, namespace: &str, role: &str, jwt: &str) -> Result<Auth, VaultError> {
        let mut body = json!({"jwt": jwt});
        let role = if role.is_empty() { &self.role } else { role };
        if !role.is_empty() {
            body["role"] = role.into();
        }
        let path = format!("auth/{}/login", self.auth_path);
        auth(&self.put(&path, namespace, "", &body).await?)
    }

    pub(super) async fn renew(&self, namespace: &str, token: &str) -> Result<Auth, VaultError> {
        auth(&self.put("auth/token/renew-self", namespace, token, &json!({})).await?)
    }

    /// How long the lease lasts from now on.
    pub(super) async fn renew_lease(
        &self,
        namespace: &str,
        token: &str,
        lease_id: &str,
        increment: Duration,
    ) -> Result<Duration, VaultError> {
        let body = json!({"lease_id": lease_id, "increment": increment.as_secs()});
        let answer = self.put("sys/leases/renew", namespace, token, &body).await?;
        Ok(Duration::from_secs(answer["lease_duration"].as_u64().unwrap_or(0)))
    }

    /// It is no error when the token is worth nothing any more.
    pub(super) async fn revoke(&self, namespace: &str, token: &str) -> Result<(), VaultError> {
        let (path, body) = ("auth/token/revoke-self", json!({}));
        let call = Call { method: Method::PUT, path, query: &[], body: Some(&body), namespace, token };
        match self.call(call).await {
            Err(VaultError::Refused { .. }) | Ok(_) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Vault's own reason, for one line. What may be otherwise in a moment is no refusal.
fn refusal(status: StatusCode, bytes: &[u8]) -> VaultError {
    let said: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let mut text = match said["errors"].as_array() {
        Some(errors) => errors.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("; "),
        None => String::from_utf8_lossy(bytes).into_owned(),
    };
    text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.truncate(text.floor_char_boundary(REFUSAL_BYTES_MAX));
    let status = status.as_u16();
    // 412: a standby that has not caught up; 429 and 472, 473: limits and standbys.
    if matches!(status, 412 | 429 | 472 | 473 | 500..) {
        return VaultError::Unreached(format!("it answers {status}: {text}"));
    }
    VaultError::Refused { status, text }
}

fn auth(answer: &Value) -> Result<Auth, VaultError> {
    let auth = &answer["auth"];
    let token = auth["client_token"].as_str().filter(|token| !token.is_empty());
    let token =
        token.ok_or_else(|| VaultError::Unreached("it answers a login without a token".to_string()))?;
    Ok(Auth {
        token: token.to_string(),
        lease: Duration::from_secs(auth["lease_duration"].as_u64().unwrap_or(0)),
        renewable: auth["renewable"] == true,
    })
}
