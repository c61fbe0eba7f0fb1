//! Logging in.

use model::document::{ACLAuthMethod, ACLBindingRule, Bytes};
use serde::{Deserialize, Serialize};

/// `ACLAuthMethodListStub` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ACLAuthMethodListStub {
    pub name: String,
    #[serde(rename = "Type")]
    pub kind: String,
    pub default: bool,
    pub create_index: u64,
    pub modify_index: u64,
    pub hash: Bytes,
}

impl From<ACLAuthMethod> for ACLAuthMethodListStub {
    fn from(method: ACLAuthMethod) -> ACLAuthMethodListStub {
        let ACLAuthMethod { name, kind, default, create_index, modify_index, hash, .. } = method;
        ACLAuthMethodListStub { name, kind, default, create_index, modify_index, hash }
    }
}

/// `ACLBindingRuleListStub` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ACLBindingRuleListStub {
    #[serde(rename = "ID")]
    pub id: String,
    pub description: String,
    pub auth_method: String,
    pub create_index: u64,
    pub modify_index: u64,
    pub hash: Bytes,
}

impl From<ACLBindingRule> for ACLBindingRuleListStub {
    fn from(rule: ACLBindingRule) -> ACLBindingRuleListStub {
        let ACLBindingRule { id, description, auth_method, create_index, modify_index, hash, .. } = rule;
        ACLBindingRuleListStub { id, description, auth_method, create_index, modify_index, hash }
    }
}

/// `ACLOIDCAuthURLRequest` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ACLOIDCAuthURLRequest {
    pub auth_method_name: String,
    #[serde(rename = "RedirectURI")]
    pub redirect_uri: String,
    pub client_nonce: String,
}

/// `ACLOIDCAuthURLResponse` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ACLOIDCAuthURLResponse {
    #[serde(rename = "AuthURL")]
    pub auth_url: String,
}

/// `ACLOIDCCompleteAuthRequest` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ACLOIDCCompleteAuthRequest {
    pub auth_method_name: String,
    pub client_nonce: String,
    pub state: String,
    pub code: String,
    pub iss: String,
    #[serde(rename = "RedirectURI")]
    pub redirect_uri: String,
}

/// `ACLLoginRequest` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ACLLoginRequest {
    pub auth_method_name: String,
    pub login_token: String,
}
