//! What agents ask to find out what a caller of theirs may do.

use std::collections::BTreeMap;

use model::document::{ACLPolicy, ACLRole, List};
use serde::{Deserialize, Serialize};

use super::{AclTokenIdentity, QueryMeta, QueryOptions};

/// Request of `ACL.ResolveToken`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ResolveTokenRequest {
    #[serde(rename = "SecretID")]
    pub secret_id: String,
    #[serde(flatten)]
    pub query: QueryOptions,
}

/// Answer of `ACL.ResolveToken`: none if there is no such token.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ResolveTokenResponse {
    pub token: Option<AclTokenIdentity>,
    #[serde(flatten)]
    pub meta: QueryMeta,
}

/// Request of `ACL.GetPolicies`, in the name of who has them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct PolicySetRequest {
    pub names: List<String>,
    #[serde(flatten)]
    pub query: QueryOptions,
}

/// Answer of `ACL.GetPolicies` and `ACL.GetClaimPolicies`, by name.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct PolicySetResponse {
    pub policies: BTreeMap<String, ACLPolicy>,
    #[serde(flatten)]
    pub meta: QueryMeta,
}

/// Request of `ACL.GetRolesByID`, in the name of who has them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct RolesByIdRequest {
    #[serde(rename = "ACLRoleIDs")]
    pub role_ids: List<String>,
    #[serde(flatten)]
    pub query: QueryOptions,
}

/// Answer of `ACL.GetRolesByID`, by id.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct RolesByIdResponse {
    #[serde(rename = "ACLRoles")]
    pub roles: BTreeMap<String, ACLRole>,
    #[serde(flatten)]
    pub meta: QueryMeta,
}
