//! The private side of the keyring: root keys are drawn, sealed for servers, opened and signed with here. The state has
//! only their public halves and the sealed ones. What is signed are the claims of nodes and workloads.

mod claims;
mod introduction;
mod items;
mod rekey;
mod sealing;
mod secret;
mod signing;
mod step;
mod token;
mod tree;
mod usage;
mod verified;

pub use claims::{
    AUDIENCE, Claims, Holder, IntroductionClaims, NoIdentity, NodeClaims, Workload, WorkloadClaims, key_of,
};
pub use introduction::{Admission, Enforcement, IntroductionSettings, Presented, admit};
pub use items::Items;
pub use rekey::next_rekey;
pub use secret::ServerSecret;
pub use signing::SigningKey;
pub use step::{OldAfter, RootKeySettings, STUCK_AFTER, Step, Viewpoint, next_step};
pub use token::{Signer, TokenError, is_expired, said, verify};
pub use tree::{KeyTree, KeyTrees};
pub use usage::{is_used, uses_identity};
pub use verified::VerifiedTokens;

/// Why a key cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("the system has no entropy")]
    Entropy,
    #[error("the key cannot be generated")]
    Generate,
    #[error("the public key of server {0} is invalid")]
    Public(base::Uuid),
    /// It was sealed for another server or as another key, or its bytes changed.
    #[error("root key {0} cannot be opened with the key of this server")]
    Open(base::Uuid),
    #[error("root key {0} is neither an RSA key nor an Ed25519 key")]
    Content(base::Uuid),
    #[error("this server does not have the key tree {0} yet, or lost it")]
    Tree(base::Uuid),
    /// Forgotten.
    #[error("the key is erased")]
    Erased,
}
