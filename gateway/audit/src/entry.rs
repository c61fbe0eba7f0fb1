//! What an entry says, under the names that Nomad Enterprise gives it.

use serde::Serialize;

/// When an entry was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Stage {
    /// Before anything was done.
    OperationReceived,
    /// When the answer was known.
    OperationComplete,
}

impl Stage {
    pub fn name(self) -> &'static str {
        match self {
            Stage::OperationReceived => "OperationReceived",
            Stage::OperationComplete => "OperationComplete",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    pub created_at: String,
    pub event_type: &'static str,
    pub payload: Payload,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Payload {
    /// Of this entry alone.
    pub id: String,
    pub stage: Stage,
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub timestamp: String,
    pub version: u8,
    pub auth: Auth,
    pub request: Request,
    /// Once the answer is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<Response>,
}

/// The token that came with the request, without its secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Auth {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub accessor_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Request {
    /// The same in both entries of a request.
    pub id: String,
    /// The method.
    pub operation: String,
    /// The path, without its query.
    pub endpoint: String,
    pub namespace: Subject,
    pub request_meta: RequestMeta,
    pub node_meta: NodeMeta,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Subject {
    pub id: String,
}

/// Where the request came from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RequestMeta {
    pub remote_address: String,
    pub user_agent: String,
}

/// The agent that answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NodeMeta {
    pub ip: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Response {
    pub status_code: u16,
    /// Why the request was refused.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// The index of what the request changed in the log. Ours: Nomad Enterprise does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<u64>,
}

impl Entry {
    /// `id` is of this entry, `at` in RFC 3339.
    pub fn new(id: String, at: String, auth: Auth, request: Request, response: Option<Response>) -> Entry {
        let stage = if response.is_some() { Stage::OperationComplete } else { Stage::OperationReceived };
        let payload =
            Payload { id, stage, kind: "audit", timestamp: at.clone(), version: 1, auth, request, response };
        Entry { created_at: at, event_type: "audit", payload }
    }
}
