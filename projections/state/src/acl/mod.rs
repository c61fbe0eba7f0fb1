//! Access control: policies, roles, tokens, secrets that are exchanged for tokens once, and how one logs in.

mod fold;
mod state;
mod view;

pub(crate) use state::Content;
pub use state::{Acl, AuthMethods, BindingRules, OneTimeToken, Policies, Roles, Token};
pub use view::{auth_method, binding_rule, is_held, policy, role, token};
