//! Access control: policies, the roles that bundle them, and the tokens that hold them.

use serde::{Deserialize, Serialize};

use super::shape::{Bytes, Duration, List, Timestamp, duration_or_empty};
use crate::codec::compiled_once;

compiled_once! { ACLPolicy ACLRole ACLToken }

/// `ACLPolicy` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase", remote = "Self")]
pub struct ACLPolicy {
    pub name: String,
    pub description: String,
    /// HCL or JSON, as it was written.
    pub rules: String,
    /// Whose tasks it holds for without a token.
    #[serde(rename = "JobACL")]
    pub job_acl: Option<JobACL>,
    pub create_index: u64,
    pub modify_index: u64,
    pub hash: Bytes,
}

/// `JobACL` of Nomad's API: the tasks of a namespace, a job, a group, or one task.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct JobACL {
    pub namespace: String,
    #[serde(rename = "JobID")]
    pub job_id: String,
    pub group: String,
    pub task: String,
}

/// `ACLRole` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase", remote = "Self")]
pub struct ACLRole {
    #[serde(rename = "ID")]
    pub id: String,
    pub name: String,
    pub description: String,
    pub policies: List<ACLRolePolicyLink>,
    pub create_index: u64,
    pub modify_index: u64,
    pub hash: Bytes,
}

/// `ACLRolePolicyLink` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ACLRolePolicyLink {
    pub name: String,
}

/// `ACLToken` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase", remote = "Self")]
pub struct ACLToken {
    #[serde(rename = "AccessorID")]
    pub accessor_id: String,
    /// Empty in the log and in the state: see [`crate::TokenSecret`].
    #[serde(rename = "SecretID")]
    pub secret_id: String,
    pub name: String,
    /// `client` or `management`.
    #[serde(rename = "Type")]
    pub kind: String,
    pub policies: List<String>,
    pub roles: List<ACLTokenRoleLink>,
    pub global: bool,
    pub create_time: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiration_time: Option<Timestamp>,
    #[serde(rename = "ExpirationTTL", deserialize_with = "duration_or_empty", serialize_with = "as_text")]
    pub expiration_ttl: Duration,
    pub create_index: u64,
    pub modify_index: u64,
    pub hash: Bytes,
}

/// `ACLTokenRoleLink` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ACLTokenRoleLink {
    #[serde(rename = "ID")]
    pub id: String,
    pub name: String,
}

impl ACLToken {
    /// `Type` of a token that policies and roles give its rights.
    pub const CLIENT: &str = "client";
    /// `Type` of a token that may do everything.
    pub const MANAGEMENT: &str = "management";

    pub fn is_management(&self) -> bool {
        self.kind == ACLToken::MANAGEMENT
    }

    /// When it is worth nothing any more.
    pub fn expires(&self) -> Option<base::Time> {
        self.expiration_time.and_then(|at| at.0)
    }
}

/// Text like `1h30m`, empty for none: that is how clients read it.
fn as_text<S: serde::Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    match duration.0 {
        base::Duration::ZERO => to.serialize_str(""),
        set => to.collect_str(&set),
    }
}
