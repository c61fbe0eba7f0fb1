//! Access control.

use model::document::{ACLPolicy, ACLToken, ACLTokenRoleLink, Bytes, JobACL, List, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `ACLPolicy` of Nomad's API, with its rules read.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AclPolicyRead {
    #[serde(flatten)]
    pub policy: ACLPolicy,
    #[serde(rename = "RulesJSON", skip_serializing_if = "Option::is_none")]
    pub rules_json: Option<Value>,
}

/// `ACLPolicyListStub` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ACLPolicyListStub {
    pub name: String,
    pub description: String,
    #[serde(rename = "JobACL")]
    pub job_acl: Option<JobACL>,
    pub create_index: u64,
    pub modify_index: u64,
    pub hash: Bytes,
}

impl From<ACLPolicy> for ACLPolicyListStub {
    fn from(policy: ACLPolicy) -> ACLPolicyListStub {
        let ACLPolicy { name, description, job_acl, create_index, modify_index, hash, .. } = policy;
        ACLPolicyListStub { name, description, job_acl, create_index, modify_index, hash }
    }
}

/// `ACLTokenListStub` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ACLTokenListStub {
    #[serde(rename = "AccessorID")]
    pub accessor_id: String,
    pub name: String,
    #[serde(rename = "Type")]
    pub kind: String,
    pub policies: List<String>,
    pub roles: List<ACLTokenRoleLink>,
    pub global: bool,
    pub create_time: Timestamp,
    pub expiration_time: Option<Timestamp>,
    pub create_index: u64,
    pub modify_index: u64,
    pub hash: Bytes,
}

impl From<ACLToken> for ACLTokenListStub {
    fn from(token: ACLToken) -> ACLTokenListStub {
        ACLTokenListStub {
            accessor_id: token.accessor_id,
            name: token.name,
            kind: token.kind,
            policies: token.policies,
            roles: token.roles,
            global: token.global,
            create_time: token.create_time,
            expiration_time: token.expiration_time,
            create_index: token.create_index,
            modify_index: token.modify_index,
            hash: token.hash,
        }
    }
}

/// What a caller may do, in coarse words: `write`, `read` or nothing. Ours alone.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AclAccess {
    /// The accessor of the token, or what is known instead.
    #[serde(rename = "AccessorID")]
    pub accessor_id: String,
    pub name: String,
    pub management: bool,
    /// By name: what gives these rights.
    pub policies: List<String>,
    pub agent: String,
    pub node: String,
    pub operator: String,
}

/// `BootstrapRequest` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AclBootstrapRequest {
    /// Empty has one drawn.
    pub bootstrap_secret: String,
}

/// `OneTimeToken` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct OneTimeToken {
    #[serde(rename = "OneTimeSecretID")]
    pub one_time_secret_id: String,
    #[serde(rename = "AccessorID")]
    pub accessor_id: String,
    pub expires_at: Timestamp,
    pub create_index: u64,
    pub modify_index: u64,
}

/// `OneTimeTokenUpsertResponse` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct OneTimeTokenResponse {
    pub one_time_token: Option<OneTimeToken>,
    pub index: u64,
}

/// `OneTimeTokenExchangeRequest` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct OneTimeTokenExchangeRequest {
    #[serde(rename = "OneTimeSecretID")]
    pub one_time_secret_id: String,
}

/// `OneTimeTokenExchangeResponse` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct OneTimeTokenExchangeResponse {
    pub token: Option<ACLToken>,
    pub index: u64,
}
