//! Access control: policies, roles, tokens, and secrets that are exchanged for tokens once.

mod fold;
mod state;
mod view;

pub(crate) use state::Content;
pub use state::{Acl, OneTimeToken, Policies, Roles, Token};
pub use view::{is_held, policy, role, token};
