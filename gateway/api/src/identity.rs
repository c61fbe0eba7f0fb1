//! What nodes prove themselves with.

use model::document::{Duration, Map};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `NodeIdentityGetResponse` of Nomad's API: what the token says that a node holds.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodeIdentity {
    pub claims: Map<String, Value>,
}

/// `NodeIdentityRenewRequest` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeIdentityRenewRequest {
    #[serde(rename = "NodeID")]
    pub node_id: String,
}

/// `ACLIdentityClientIntroductionTokenRequest` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct IntroductionTokenRequest {
    /// Zero asks for the server's default.
    #[serde(rename = "TTL")]
    pub ttl: Duration,
    /// Empty for a node of any name.
    pub node_name: String,
    /// Empty for the default pool.
    pub node_pool: String,
}

/// `ACLIdentityClientIntroductionTokenResponse` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct IntroductionToken {
    #[serde(rename = "JWT")]
    pub jwt: String,
}
