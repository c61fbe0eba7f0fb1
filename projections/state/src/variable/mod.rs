//! Variables: sealed items under a path, the versions before them, and who has locked them.

mod fold;
mod state;

pub(crate) use state::VariableRow;
pub use state::{VERSIONS_MAX, Variable, Variables, Version};
