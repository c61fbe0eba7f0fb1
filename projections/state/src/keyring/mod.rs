//! The keys that the cluster signs with, and the servers that can.

mod fold;
mod state;

pub(crate) use state::Content;
pub use state::{Keyring, RootKey, ServerKey};
