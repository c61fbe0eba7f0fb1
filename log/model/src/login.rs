use base::{Index, Uuid};
use serde::{Deserialize, Serialize};

use crate::document::ACLToken;
use crate::keyring::TokenSecret;

/// Makes a token for somebody who has proved elsewhere who they are. That this is so, and which rules hold for them, was
/// found out by the server that they logged in to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IssueLoginToken {
    pub token: CreateAclToken,
    /// The auth method that they came by.
    pub method: String,
    /// The binding rules that hold for them.
    pub rules: Vec<Uuid>,
    /// Only if no auth method and no binding rule has changed since.
    pub as_of: Index,
}

/// Makes a token. Who asks has drawn its accessor and its secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CreateAclToken {
    /// Without its secret.
    pub token: ACLToken,
    pub secret: TokenSecret,
}
