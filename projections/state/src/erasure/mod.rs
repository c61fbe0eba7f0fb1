//! The key tree that variables are encrypted with: which servers have it, which variables were forgotten, and who has
//! erased their keys.

mod fold;
mod state;

pub(crate) use state::Content;
pub use state::{Erasure, Forgotten, Holder};
