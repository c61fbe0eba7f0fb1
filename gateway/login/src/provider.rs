use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::document::ACLAuthMethodConfig;
use parking_lot::Mutex;
use reqwest::Client;
use serde::Deserialize;
use serde_json::Value;

use crate::http::{self, failed};
use crate::jwt::{Algorithm, Token};
use crate::{Key, LoginError, keys};

/// Documents that are remembered. When there are more, all are fetched anew.
const KNOWN_MAX: usize = 256;
/// How long a document is good for.
const AGE_MAX: Duration = Duration::from_secs(600);
/// How long after it was fetched a set of keys is not fetched again, whatever key a token names.
const REST: Duration = Duration::from_secs(5);

/// Where a document is, and whom to trust there.
pub(crate) struct Source<'a> {
    pub url: &'a str,
    /// PEM; none: those of the host.
    pub authorities: &'a [String],
}

/// What a provider says of itself (OpenID Connect Discovery 1.0).
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Discovery {
    pub issuer: String,
    pub jwks_uri: String,
    #[serde(default)]
    pub authorization_endpoint: String,
    #[serde(default)]
    pub token_endpoint: String,
    #[serde(default)]
    pub userinfo_endpoint: String,
    #[serde(default)]
    pub token_endpoint_auth_methods_supported: Vec<String>,
}

/// What providers have said lately.
#[derive(Default)]
pub struct Providers {
    known: Mutex<BTreeMap<String, Arc<Place>>>,
}

/// A document, fetched by one and waited for by the others.
struct Place {
    client: Client,
    content: tokio::sync::Mutex<Content>,
}

#[derive(Default)]
struct Content {
    fetched: Option<(Instant, Fetched)>,
    /// Why it could not be fetched since.
    failed: Option<(Instant, LoginError)>,
}

#[derive(Clone)]
enum Fetched {
    Keys(Arc<Vec<Key>>),
    Discovery(Arc<Discovery>),
}

impl Providers {
    /// # Errors
    /// [`LoginError::Provider`]: it cannot be reached, or is somebody else.
    pub(crate) async fn discovery(&self, config: &ACLAuthMethodConfig) -> Result<Arc<Discovery>, LoginError> {
        let base = config.oidc_discovery_url.trim_end_matches('/');
        let url = match base.ends_with("/.well-known/openid-configuration") {
            true => base.to_string(),
            false => format!("{base}/.well-known/openid-configuration"),
        };
        let issuer = base.trim_end_matches("/.well-known/openid-configuration");
        let place = self.place(&Source { url: &url, authorities: &config.discovery_ca_pem })?;
        let fetched = place
            .content(AGE_MAX, &url, |bytes| {
                let found: Discovery = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
                match found.issuer.trim_end_matches('/') == issuer {
                    true => Ok(Fetched::Discovery(Arc::new(found))),
                    false => Err(format!("it is of issuer {:?}: expected {issuer:?}", found.issuer)),
                }
            })
            .await?;
        match fetched {
            Fetched::Discovery(found) => Ok(found),
            Fetched::Keys(_) => Err(failed(&url, "it is a set of keys")),
        }
    }

    /// What a token says that a key of the set has signed.
    ///
    /// # Errors
    /// [`LoginError`].
    pub(crate) async fn verified(
        &self,
        source: &Source<'_>,
        token: &Token<'_>,
        algorithm: Algorithm,
    ) -> Result<Value, LoginError> {
        let place = self.place(source)?;
        let mut keys = place.keys(AGE_MAX, source.url).await?;
        // The provider may have begun to sign with another key a moment ago.
        if token.candidates(&keys).next().is_none() {
            keys = place.keys(REST, source.url).await?;
        }
        token.verified(algorithm, &keys)
    }

    /// A client for requests to the provider besides.
    pub(crate) fn client(&self, source: &Source<'_>) -> Result<Client, LoginError> {
        Ok(self.place(source)?.client.clone())
    }

    fn place(&self, source: &Source<'_>) -> Result<Arc<Place>, LoginError> {
        let name = format!("{} {}", source.url, blake3::hash(source.authorities.join("\n").as_bytes()));
        if let Some(place) = self.known.lock().get(&name) {
            return Ok(Arc::clone(place));
        }
        let client = http::client(source.authorities)?;
        let place = Arc::new(Place { client, content: tokio::sync::Mutex::default() });
        let mut known = self.known.lock();
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(name, Arc::clone(&place));
        Ok(place)
    }
}

impl Place {
    async fn keys(&self, age: Duration, url: &str) -> Result<Arc<Vec<Key>>, LoginError> {
        let read = |bytes: &[u8]| keys::from_jwks(bytes).map(|keys| Fetched::Keys(Arc::new(keys)));
        match self.content(age, url, read).await? {
            Fetched::Keys(keys) => Ok(keys),
            Fetched::Discovery(_) => Err(failed(url, "it is not a set of keys")),
        }
    }

    /// The document, if it is not older than that, else fetched anew; but a provider that fails is left in peace for a moment, and
    /// nobody waits for it meanwhile.
    async fn content(
        &self,
        age: Duration,
        url: &str,
        read: impl Fn(&[u8]) -> Result<Fetched, String>,
    ) -> Result<Fetched, LoginError> {
        let mut content = self.content.lock().await;
        if let Some((_, fetched)) = content.fetched.as_ref().filter(|(at, _)| at.elapsed() < age) {
            return Ok(fetched.clone());
        }
        if let Some((_, why)) = content.failed.as_ref().filter(|(at, _)| at.elapsed() < REST) {
            return Err(why.clone());
        }
        let bytes = http::body(url, self.client.get(url)).await;
        let fetched = bytes.and_then(|bytes| read(&bytes).map_err(|why| failed(url, why)));
        match &fetched {
            Ok(fetched) => {
                *content = Content { fetched: Some((Instant::now(), fetched.clone())), failed: None }
            }
            Err(why) => content.failed = Some((Instant::now(), why.clone())),
        }
        fetched
    }
}
