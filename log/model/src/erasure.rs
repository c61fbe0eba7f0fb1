use base::{Index, Uuid};
use serde::{Deserialize, Serialize};

use crate::keyring::SealedKey;
use crate::variable::VariableKey;

/// The epoch that facts about key trees came with.
pub const KEY_TREE_EPOCH: u16 = 4;

/// What the key tree knows the secret of an access token by: no variable is without a namespace. Frozen: the key follows from it.
pub fn token_secrets(accessor: Uuid) -> VariableKey {
    VariableKey::new("", &format!("acl-token/{accessor}"))
}

/// The same for the secrets of an auth method.
pub fn auth_method_secrets(name: &str) -> VariableKey {
    VariableKey::new("", &format!("acl-auth-method/{name}"))
}

/// What servers ask for about the key tree that variables are encrypted with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum KeyTreeCommand {
    /// The server has no tree, and wants it sealed for this X25519 key.
    Request { server: Uuid, public: [u8; 32] },
    /// Has variables be encrypted with a new tree; only if `after` is the one that they are encrypted with now.
    Found { tree: Uuid, sealed: Vec<SealedKey>, after: Option<Uuid> },
    /// Gives a server the tree, sealed for the key with this public half.
    Share { tree: Uuid, public: [u8; 32], sealed: SealedKey },
    /// The server has the tree, and nothing on its disk opens what was forgotten up to this index.
    ReportErased { server: Uuid, tree: Uuid, up_to: Index },
    /// The server is no member of the cluster any more.
    RemoveHolder { server: Uuid },
}
