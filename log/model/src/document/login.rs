//! Logging in: who may prove elsewhere who they are, and which rights follow from that.

use serde::{Deserialize, Serialize};

use super::shape::{Bytes, Duration, List, Map, Timestamp, duration_or_empty};
use crate::codec::compiled_once;
use crate::keyring::SealedData;

compiled_once! { ACLAuthMethod ACLBindingRule AuthMethodRecord }

/// `ACLAuthMethod` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase", remote = "Self")]
pub struct ACLAuthMethod {
    pub name: String,
    /// `JWT` or `OIDC`.
    #[serde(rename = "Type")]
    pub kind: String,
    /// `local` or `global`.
    pub token_locality: String,
    /// A text with `${auth_method_type}`, `${auth_method_name}` and `${value.NAME}` in it.
    pub token_name_format: String,
    #[serde(rename = "MaxTokenTTL", deserialize_with = "duration_or_empty", serialize_with = "as_text")]
    pub max_token_ttl: Duration,
    pub default: bool,
    pub config: Option<ACLAuthMethodConfig>,
    pub create_time: Timestamp,
    pub modify_time: Timestamp,
    pub create_index: u64,
    pub modify_index: u64,
    pub hash: Bytes,
}

/// `ACLAuthMethodConfig` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ACLAuthMethodConfig {
    /// PEM.
    #[serde(rename = "JWTValidationPubKeys")]
    pub jwt_validation_pub_keys: List<String>,
    #[serde(rename = "JWKSURL")]
    pub jwks_url: String,
    #[serde(rename = "OIDCDiscoveryURL")]
    pub oidc_discovery_url: String,
    #[serde(rename = "OIDCClientID")]
    pub oidc_client_id: String,
    /// Empty in the log and in the state: see [`AuthMethodRecord`].
    #[serde(rename = "OIDCClientSecret")]
    pub oidc_client_secret: String,
    #[serde(rename = "OIDCClientAssertion")]
    pub oidc_client_assertion: Option<OIDCClientAssertion>,
    #[serde(rename = "OIDCEnablePKCE")]
    pub oidc_enable_pkce: bool,
    #[serde(rename = "OIDCDisableUserInfo")]
    pub oidc_disable_user_info: bool,
    #[serde(rename = "OIDCScopes")]
    pub oidc_scopes: List<String>,
    pub bound_audiences: List<String>,
    pub bound_issuer: List<String>,
    #[serde(rename = "AllowedRedirectURIs")]
    pub allowed_redirect_uris: List<String>,
    /// PEM: the authorities of the provider.
    pub discovery_ca_pem: List<String>,
    /// PEM: the authority of the server that has the keys.
    #[serde(rename = "JWKSCACert")]
    pub jwks_ca_cert: String,
    pub signing_algs: List<String>,
    #[serde(deserialize_with = "duration_or_empty", serialize_with = "as_text")]
    pub expiration_leeway: Duration,
    #[serde(deserialize_with = "duration_or_empty", serialize_with = "as_text")]
    pub not_before_leeway: Duration,
    #[serde(deserialize_with = "duration_or_empty", serialize_with = "as_text")]
    pub clock_skew_leeway: Duration,
    pub claim_mappings: Map<String, String>,
    pub list_claim_mappings: Map<String, String>,
    pub verbose_logging: bool,
}

/// `OIDCClientAssertion` of Nomad's API: what the cluster proves itself with to the provider, instead of a secret.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct OIDCClientAssertion {
    pub audience: List<String>,
    /// `nomad`, `private_key` or `client_secret`.
    pub key_source: String,
    pub key_algorithm: String,
    pub private_key: Option<OIDCClientAssertionKey>,
    pub extra_headers: Map<String, String>,
    /// That of the method: always empty here.
    pub client_secret: String,
}

/// `OIDCClientAssertionKey` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct OIDCClientAssertionKey {
    /// Empty in the log and in the state: see [`AuthMethodRecord`].
    pub pem_key: String,
    pub pem_key_file: String,
    #[serde(rename = "KeyIDHeader")]
    pub key_id_header: String,
    #[serde(rename = "KeyID")]
    pub key_id: String,
    pub pem_cert: String,
    pub pem_cert_file: String,
}

/// `ACLBindingRule` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase", remote = "Self")]
pub struct ACLBindingRule {
    #[serde(rename = "ID")]
    pub id: String,
    pub description: String,
    pub auth_method: String,
    /// An expression over `value.NAME` and `list.NAME`; empty means everybody.
    pub selector: String,
    /// `role`, `policy` or `management`.
    pub bind_type: String,
    /// A name, in which `${value.NAME}` stands for a claim.
    pub bind_name: String,
    pub create_time: Timestamp,
    pub modify_time: Timestamp,
    pub create_index: u64,
    pub modify_index: u64,
    pub hash: Bytes,
}

/// An auth method as the log and the state have it. Nothing of Nomad's.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, remote = "Self")]
pub struct AuthMethodRecord {
    /// Without its secrets.
    pub method: ACLAuthMethod,
    pub client_secret: Option<SealedData>,
    /// Of the client assertion.
    pub private_key: Option<SealedData>,
}

impl ACLAuthMethod {
    pub const JWT: &str = "JWT";
    pub const OIDC: &str = "OIDC";
    pub const LOCAL: &str = "local";
    pub const GLOBAL: &str = "global";
    /// The name format of tokens where none is given.
    pub const NAME_FORMAT: &str = "${auth_method_type}-${auth_method_name}";
}

impl ACLAuthMethodConfig {
    /// What tokens may be signed with. Nothing symmetric is among them.
    pub const SIGNING_ALGS: [&str; 10] =
        ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"];
}

impl OIDCClientAssertion {
    pub const NOMAD: &str = "nomad";
    pub const PRIVATE_KEY: &str = "private_key";
    pub const CLIENT_SECRET: &str = "client_secret";
}

impl ACLBindingRule {
    pub const ROLE: &str = "role";
    pub const POLICY: &str = "policy";
    pub const MANAGEMENT: &str = "management";
}

/// Text like `1h30m`: that is how clients read it.
fn as_text<S: serde::Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&duration.0)
}
