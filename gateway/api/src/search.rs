//! Search by prefix: `PUT /v1/search`.

use model::document::{Duration, List, Map};
use serde::{Deserialize, Serialize};

/// `SearchRequest` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct SearchRequest {
    pub prefix: String,
    pub context: String,
}

/// `SearchResponse` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct SearchResponse {
    pub matches: Map<String, List<String>>,
    pub truncations: Map<String, bool>,
    pub index: u64,
    pub last_contact: Duration,
    pub known_leader: bool,
    pub next_token: String,
}

/// `FuzzySearchRequest` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct FuzzySearchRequest {
    pub text: String,
    pub context: String,
}

/// `FuzzyMatch` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct FuzzyMatch {
    #[serde(rename = "ID")]
    pub id: String,
    /// Where it is, from the namespace inwards.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<String>,
}

/// `FuzzySearchResponse` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct FuzzySearchResponse {
    pub matches: Map<String, List<FuzzyMatch>>,
    pub truncations: Map<String, bool>,
    pub index: u64,
    pub last_contact: Duration,
    pub known_leader: bool,
    pub next_token: String,
}
