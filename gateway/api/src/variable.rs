//! Variables.

use model::document::shape::{duration_or_empty, is_zero};
use model::document::{Duration, List, Map};
use serde::{Deserialize, Serialize, Serializer};

/// `Variable` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Variable {
    pub namespace: String,
    pub path: String,
    pub create_index: u64,
    pub modify_index: u64,
    /// Nanoseconds since 1970.
    pub create_time: i64,
    pub modify_time: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub items: Map<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock: Option<VariableLock>,
}

/// `VariableMetadata` of Nomad's API: a variable without its items.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct VariableMetadata {
    pub namespace: String,
    pub path: String,
    pub create_index: u64,
    pub modify_index: u64,
    pub create_time: i64,
    pub modify_time: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock: Option<VariableLock>,
}

/// `VariableLock` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct VariableLock {
    #[serde(rename = "ID")]
    pub id: String,
    #[serde(rename = "TTL", deserialize_with = "duration_or_empty", serialize_with = "as_text")]
    pub ttl: Duration,
    #[serde(deserialize_with = "duration_or_empty", serialize_with = "as_text")]
    pub lock_delay: Duration,
}

/// One of the versions that are kept of a variable, without its items. Ours alone.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct VariableVersion {
    /// The first one is 0.
    pub version: u64,
    pub modify_index: u64,
    pub modify_time: i64,
    /// The token of who set it: its accessor, empty without one.
    #[serde(rename = "AccessorID")]
    pub accessor_id: String,
    /// The name of that token.
    pub author: String,
}

/// How far it is with the erasure of a variable that was forgotten. Ours alone.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct VariableErasure {
    pub namespace: String,
    pub path: String,
    /// The index at which it was forgotten.
    pub forgotten_at: u64,
    /// No server can open any more what the variable held.
    pub complete: bool,
    /// Servers that have not said so yet.
    pub pending: List<ErasurePending>,
    /// What was written before this index is encrypted with a root key, which stays; zero where nothing was.
    #[serde(skip_serializing_if = "is_zero")]
    pub kept_before: u64,
}

/// A server that may still be able to open what was forgotten. Ours alone.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ErasurePending {
    #[serde(rename = "ID")]
    pub id: String,
    /// Empty while no other server knows it.
    pub name: String,
}

/// Text like `1m30s` in JSON, empty for none; in msgpack it is a number as everywhere.
fn as_text<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    match duration.0 {
        nanos if !to.is_human_readable() => to.serialize_i64(nanos.0),
        base::Duration::ZERO => to.serialize_str(""),
        set => to.collect_str(&set),
    }
}
