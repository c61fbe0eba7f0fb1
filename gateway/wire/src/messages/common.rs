use serde::{Deserialize, Serialize};

use model::document::Duration;

/// Embedded in every read.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct QueryOptions {
    pub region: String,
    pub namespace: String,
    /// Answer once the result is newer than this; 0 answers at once.
    pub min_query_index: u64,
    /// How long to wait for that; 0 is the server's default.
    pub max_query_time: Duration,
    /// Any server may answer, not only the leader.
    pub allow_stale: bool,
    pub prefix: String,
    pub auth_token: String,
    pub filter: String,
    pub per_page: i32,
    pub next_token: String,
    pub reverse: bool,
    /// A server has passed this on: the connection is not the asker's own.
    pub forwarded: bool,
}

/// Embedded in every write.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct WriteRequest {
    pub region: String,
    pub namespace: String,
    pub auth_token: String,
    pub idempotency_token: String,
    /// A server has passed this on: the connection is not the asker's own.
    pub forwarded: bool,
}

/// Embedded in the answer to every read.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct QueryMeta {
    /// Never 0 in an answer to a read that may be repeated as a waiting one.
    pub index: u64,
    pub last_contact: Duration,
    pub known_leader: bool,
    pub next_token: String,
}

/// Embedded in the answer to every write.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct WriteMeta {
    /// Of the entry written; 0 when there was nothing to write.
    pub index: u64,
}

/// A request or answer that says nothing, such as those of `Status.Ping`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Empty {}

/// The plain answer to a write.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GenericResponse {
    #[serde(flatten)]
    pub meta: WriteMeta,
}
