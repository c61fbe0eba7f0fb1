//! The authorization code flow of OpenID Connect, with PKCE.

use aws_lc_rs::digest::{SHA256, digest};
use base::Time;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use model::document::ACLAuthMethodConfig;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Url;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use serde::Deserialize;
use serde_json::Value;

use crate::assertion::{self, ClusterKey, Signing};
use crate::claims::{self, Demands};
use crate::http::{self, failed};
use crate::jwt::Token;
use crate::provider::{Discovery, Source};
use crate::{Attempt, LoginError, Providers, unproven};

const OPENID: &str = "openid";
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// What only servers know of an auth method.
#[derive(Default)]
pub struct Secrets<'a> {
    pub client_secret: Option<String>,
    pub private_key: Option<String>,
    /// The id of the cluster's key, and what signs with it.
    pub cluster_key: Option<ClusterKey<'a>>,
}

/// What came back from the provider.
pub struct Returned<'a> {
    pub code: &'a str,
    /// Who it says it is (RFC 9207); may be empty.
    pub issuer: &'a str,
}

#[derive(Deserialize)]
struct TokenResponse {
    #[serde(default)]
    id_token: String,
    #[serde(default)]
    access_token: String,
}

/// Where somebody logs in.
///
/// # Errors
/// [`LoginError::Provider`].
pub async fn auth_url(
    providers: &Providers,
    config: &ACLAuthMethodConfig,
    attempt: &Attempt,
    state: &str,
) -> Result<String, LoginError> {
    let found = providers.discovery(config).await?;
    let mut url = Url::parse(&found.authorization_endpoint)
        .map_err(|error| failed("authorization_endpoint of the provider", error))?;
    let scopes = config.oidc_scopes.iter().map(String::as_str).filter(|scope| *scope != OPENID);
    let scopes: Vec<&str> = std::iter::once(OPENID).chain(scopes).collect();
    let mut query = url.query_pairs_mut();
    query
        .append_pair("response_type", "code")
        .append_pair("client_id", &config.oidc_client_id)
        .append_pair("redirect_uri", &attempt.redirect_uri)
        .append_pair("scope", &scopes.join(" "))
        .append_pair("state", state)
        .append_pair("nonce", &attempt.nonce);
    if let Some(verifier) = &attempt.verifier {
        let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()));
        query.append_pair("code_challenge", &challenge).append_pair("code_challenge_method", "S256");
    }
    drop(query);
    Ok(url.into())
}

/// What the provider says of who has logged in there.
///
/// # Errors
/// [`LoginError`].
pub async fn complete(
    providers: &Providers,
    config: &ACLAuthMethodConfig,
    secrets: &Secrets<'_>,
    attempt: &Attempt,
    returned: &Returned<'_>,
    now: Time,
) -> Result<Value, LoginError> {
    let found = providers.discovery(config).await?;
    if !returned.issuer.is_empty() && returned.issuer != found.issuer {
        return unproven(format!(
            "the answer is of issuer {:?}: expected {:?}",
            returned.issuer, found.issuer
        ));
    }
    let tokens = exchange(providers, config, secrets, &found, attempt, returned.code, now).await?;
    if tokens.id_token.is_empty() {
        return Err(failed("the token endpoint of the provider", "there is no id_token in its answer"));
    }
    let token = Token::parse(&tokens.id_token)?;
    let algorithm = token.algorithm(&config.signing_algs)?;
    let source = Source { url: &found.jwks_uri, authorities: &config.discovery_ca_pem };
    let said = providers.verified(&source, &token, algorithm).await?;
    check_id_token(config, &found, attempt, &said, now)?;
    let info = match config.oidc_disable_user_info || found.userinfo_endpoint.is_empty() {
        true => Value::Null,
        false => user_info(providers, config, &found, &tokens.access_token).await?,
    };
    with_info(said, info)
}

fn check_id_token(
    config: &ACLAuthMethodConfig,
    found: &Discovery,
    attempt: &Attempt,
    said: &Value,
    now: Time,
) -> Result<(), LoginError> {
    let client = &config.oidc_client_id;
    claims::check(said, &Demands::of(config, vec![found.issuer.clone()], vec![client.clone()]), now)?;
    if !config.bound_issuer.is_empty() {
        claims::check(said, &Demands::of(config, config.bound_issuer.0.clone(), Vec::new()), now)?;
    }
    if !config.bound_audiences.is_empty() {
        claims::check(said, &Demands::of(config, Vec::new(), config.bound_audiences.0.clone()), now)?;
    }
    if said["exp"].is_null() {
        return unproven("the id token does not say when it ends");
    }
    // A token for several says for which of them it was made.
    let party = said["azp"].as_str();
    let is_shared = claims::audiences(said).len() > 1;
    if party.is_some_and(|party| party != client) || (is_shared && party.is_none()) {
        return unproven("the id token was made for another client");
    }
    if said["nonce"].as_str() != Some(&attempt.nonce) {
        return unproven("the id token has another nonce: it belongs to another login");
    }
    match said["sub"].as_str() {
        Some(subject) if !subject.is_empty() => Ok(()),
        _ => unproven("the id token does not say of whom it speaks"),
    }
}

async fn exchange(
    providers: &Providers,
    config: &ACLAuthMethodConfig,
    secrets: &Secrets<'_>,
    found: &Discovery,
    attempt: &Attempt,
    code: &str,
    now: Time,
) -> Result<TokenResponse, LoginError> {
    let what = "the token endpoint of the provider";
    let client = config.oidc_client_id.as_str();
    let mut form =
        vec![("grant_type", "authorization_code"), ("code", code), ("redirect_uri", &attempt.redirect_uri)];
    form.extend(attempt.verifier.as_deref().map(|verifier| ("code_verifier", verifier)));
    let source = Source { url: &found.token_endpoint, authorities: &config.discovery_ca_pem };
    let mut request = providers.client(&source)?.post(&found.token_endpoint);
    let signed;
    match (&config.oidc_client_assertion, &secrets.client_secret) {
        (Some(assertion), _) => {
            let signing = Signing {
                client_secret: secrets.client_secret.as_deref(),
                private_key: secrets.private_key.as_deref(),
                cluster_key: secrets.cluster_key,
            };
            signed = assertion::signed(assertion, client, &found.token_endpoint, &signing, now)?;
            form.extend([
                ("client_id", client),
                ("client_assertion_type", ASSERTION_TYPE),
                ("client_assertion", &signed),
            ]);
        }
        (None, Some(secret)) if found.takes_secret_in_header() => {
            let pair = STANDARD.encode(format!("{}:{}", escaped(client), escaped(secret)));
            request = request.header(AUTHORIZATION, format!("Basic {pair}"));
        }
        (None, Some(secret)) => form.extend([("client_id", client), ("client_secret", secret)]),
        (None, None) => form.push(("client_id", client)),
    }
    let body: Vec<String> = form.iter().map(|(name, value)| format!("{name}={}", escaped(value))).collect();
    let request = request
        .header(ACCEPT, "application/json")
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(body.join("&"));
    let bytes = http::body(what, request).await?;
    serde_json::from_slice(&bytes).map_err(|error| failed(what, error))
}

impl Discovery {
    /// That is what a provider takes that says nothing.
    fn takes_secret_in_header(&self) -> bool {
        let known = &self.token_endpoint_auth_methods_supported;
        known.is_empty() || known.iter().any(|method| method == "client_secret_basic")
    }
}

fn escaped(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

async fn user_info(
    providers: &Providers,
    config: &ACLAuthMethodConfig,
    found: &Discovery,
    access_token: &str,
) -> Result<Value, LoginError> {
    let what = "the userinfo endpoint of the provider";
    if access_token.is_empty() {
        return Err(failed(what, "there is no access token to ask it with"));
    }
    let url = found.userinfo_endpoint.as_str();
    let client = providers.client(&Source { url, authorities: &config.discovery_ca_pem })?;
    let request = client.get(url).bearer_auth(access_token).header(ACCEPT, "application/json");
    let bytes = http::body(what, request).await?;
    serde_json::from_slice(&bytes).map_err(|error| failed(what, error))
}

/// All claims. Of whom they are, and who says so, is for the signed ones to say.
fn with_info(mut said: Value, info: Value) -> Result<Value, LoginError> {
    let Value::Object(info) = info else { return Ok(said) };
    if info.get("sub") != said.get("sub") {
        return unproven("the userinfo of the provider is about somebody else");
    }
    if let Value::Object(claims) = &mut said {
        claims.extend(info.into_iter().filter(|(name, _)| name != "iss" && name != "sub"));
    }
    Ok(said)
}
