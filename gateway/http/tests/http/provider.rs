//! An OpenID Connect provider on loopback. It checks what real ones do: the client's secret or assertion, PKCE, that a code is
//! used once and by who it was made for. The end-to-end tests have it too.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256};
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

pub const CLIENT: &str = "sojourn";
pub const CLIENT_SECRET: &str = "s3cr3t/with+signs";

/// A key with an id.
pub struct TestKey {
    pair: KeyPair,
    pub kid: String,
}

impl TestKey {
    pub fn new(kid: &str) -> TestKey {
        TestKey { pair: KeyPair::generate(KeySize::Rsa2048).unwrap(), kid: kid.to_string() }
    }

    pub fn sign(&self, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let content = format!("{}.{}", part(&json!({"alg": "RS256", "kid": self.kid})), part(claims));
        let mut signature = vec![0; self.pair.public_modulus_len()];
        self.pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), content.as_bytes(), &mut signature).unwrap();
        format!("{content}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    pub fn public_pem(&self) -> String {
        let der: PublicKeyX509Der<'_> = self.pair.public_key().as_der().unwrap();
        format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", STANDARD.encode(der.as_ref()))
    }

    fn jwk(&self) -> Value {
        let public = self.pair.public_key();
        json!({
            "kty": "RSA", "use": "sig", "kid": self.kid,
            "n": URL_SAFE_NO_PAD.encode(public.modulus().big_endian_without_leading_zero()),
            "e": URL_SAFE_NO_PAD.encode(public.exponent().big_endian_without_leading_zero()),
        })
    }
}

pub fn seconds() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64
}

/// What the provider says, and what it demands.
pub struct Behaviour {
    pub keys: Vec<TestKey>,
    /// Put over the claims of id tokens.
    pub claims: Value,
    /// What it says of them when asked.
    pub info: Value,
    /// Of those whose assertions are believed instead of a secret.
    pub assertions: Option<Vec<u8>>,
}

pub struct Provider {
    pub url: String,
    pub behaviour: Mutex<Behaviour>,
    codes: Mutex<BTreeMap<String, BTreeMap<String, String>>>,
    pub key_fetches: AtomicUsize,
    made: AtomicUsize,
}

type Shared = State<Arc<Provider>>;

impl Provider {
    pub async fn start() -> Arc<Provider> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let behaviour = Behaviour {
            keys: vec![TestKey::new("k1")],
            claims: json!({}),
            info: json!({"sub": "alice", "groups": ["dev", "ops"], "iss": "somebody else"}),
            assertions: None,
        };
        let provider = Arc::new(Provider {
            url,
            behaviour: Mutex::new(behaviour),
            codes: Mutex::default(),
            key_fetches: AtomicUsize::new(0),
            made: AtomicUsize::new(0),
        });
        let routes = Router::new()
            .route("/.well-known/openid-configuration", get(discovery))
            .route("/keys", get(keys))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .route("/userinfo", get(userinfo))
            .with_state(Arc::clone(&provider));
        tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        provider
    }

    /// Logs somebody in who follows the URL: what their browser is sent back with.
    pub fn consent(&self, auth_url: &str) -> BTreeMap<String, String> {
        let uri: Uri = auth_url.parse().unwrap();
        let Query(asked) = Query::<BTreeMap<String, String>>::try_from_uri(&uri).unwrap();
        assert!(auth_url.starts_with(&format!("{}/authorize?", self.url)), "{auth_url}");
        let field = |name: &str| asked[name].clone();
        assert_eq!((field("response_type"), field("client_id")), ("code".into(), CLIENT.into()));
        assert!(field("scope").split(' ').any(|scope| scope == "openid"));
        let code = format!("code {}", self.made.fetch_add(1, Ordering::Relaxed));
        let state = field("state");
        self.codes.lock().unwrap().insert(code.clone(), asked);
        [("code", code), ("state", state), ("iss", self.url.clone())]
            .into_iter()
            .map(|(name, value)| (name.to_string(), value))
            .collect()
    }

    /// With the claims of anybody who logs in, and these.
    pub fn sign(&self, claims: &Value) -> String {
        let mut all = json!({
            "iss": self.url, "aud": CLIENT, "sub": "alice", "iat": seconds(), "exp": seconds() + 300,
        });
        let behaviour = self.behaviour.lock().unwrap();
        for (name, value) in claims.as_object().into_iter().chain(behaviour.claims.as_object()).flatten() {
            all[name] = value.clone();
        }
        behaviour.keys.last().unwrap().sign(&all)
    }

    fn is_client(&self, headers: &HeaderMap, form: &BTreeMap<String, String>) -> bool {
        if let Some(modulus) = &self.behaviour.lock().unwrap().assertions {
            return form.get("client_assertion").is_some_and(|assertion| self.believes(assertion, modulus));
        }
        let escaped = CLIENT_SECRET.replace('/', "%2F").replace('+', "%2B");
        let basic = format!("Basic {}", STANDARD.encode(format!("{CLIENT}:{escaped}")));
        headers.get(header::AUTHORIZATION).is_some_and(|value| value == &basic)
    }

    fn believes(&self, assertion: &str, modulus: &[u8]) -> bool {
        let (content, signature) = assertion.rsplit_once('.').unwrap();
        let said = URL_SAFE_NO_PAD.decode(content.split_once('.').unwrap().1).unwrap();
        let said: Value = serde_json::from_slice(&said).unwrap();
        let public = aws_lc_rs::rsa::PublicKeyComponents { n: modulus, e: &[1, 0, 1] };
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        said["iss"] == CLIENT
            && said["sub"] == CLIENT
            && said["aud"] == json!(format!("{}/token", self.url))
            && public.verify(&RSA_PKCS1_2048_8192_SHA256, content.as_bytes(), &signature).is_ok()
    }
}

async fn discovery(State(provider): Shared) -> Json<Value> {
    let at = |path: &str| format!("{}/{path}", provider.url);
    Json(json!({
        "issuer": provider.url, "jwks_uri": at("keys"), "authorization_endpoint": at("authorize"),
        "token_endpoint": at("token"), "userinfo_endpoint": at("userinfo"),
    }))
}

async fn keys(State(provider): Shared) -> Json<Value> {
    provider.key_fetches.fetch_add(1, Ordering::Relaxed);
    let behaviour = provider.behaviour.lock().unwrap();
    Json(json!({"keys": behaviour.keys.iter().map(TestKey::jwk).collect::<Vec<_>>()}))
}

/// Nobody is asked: whoever comes is sent back.
async fn authorize(State(provider): Shared, uri: Uri) -> Response {
    let back = provider.consent(&format!("{}{uri}", provider.url));
    let to = provider.codes.lock().unwrap()[&back["code"]]["redirect_uri"].clone();
    let query: Vec<String> = back
        .iter()
        .map(|(name, value)| format!("{name}={}", value.replace(' ', "%20").replace(':', "%3A")))
        .collect();
    (StatusCode::FOUND, [(header::LOCATION, format!("{to}?{}", query.join("&")))]).into_response()
}

fn refused(why: &str) -> Response {
    (StatusCode::BAD_REQUEST, Json(json!({"error": "invalid_grant", "error_description": why})))
        .into_response()
}

async fn token(State(provider): Shared, headers: HeaderMap, body: String) -> Response {
    let uri: Uri = format!("/?{body}").parse().unwrap();
    let Query(form) = Query::<BTreeMap<String, String>>::try_from_uri(&uri).unwrap();
    if !provider.is_client(&headers, &form) {
        return refused("not the client");
    }
    // A code is good once.
    let Some(asked) = provider.codes.lock().unwrap().remove(&form["code"]) else {
        return refused("not a code");
    };
    if form["redirect_uri"] != asked["redirect_uri"] {
        return refused("another redirect URI");
    }
    if let Some(challenge) = asked.get("code_challenge") {
        let verifier = form.get("code_verifier").cloned().unwrap_or_default();
        if URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes())) != *challenge {
            return refused("another verifier");
        }
    }
    let id_token = provider.sign(&json!({"nonce": asked["nonce"]}));
    Json(json!({"id_token": id_token, "access_token": "for userinfo", "token_type": "Bearer"}))
        .into_response()
}

async fn userinfo(State(provider): Shared, headers: HeaderMap) -> Response {
    if headers.get(header::AUTHORIZATION).is_none_or(|value| value != "Bearer for userinfo") {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    Json(provider.behaviour.lock().unwrap().info.clone()).into_response()
}
