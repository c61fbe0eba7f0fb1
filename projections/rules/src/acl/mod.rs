//! Who may make, change and lose policies, roles and tokens, and how one logs in, is decided before a command is given;
//! here is what all of that may be.

pub(crate) mod binding;
pub(crate) mod login;
pub(crate) mod method;
pub(crate) mod one_time;
pub(crate) mod policy;
pub(crate) mod role;
pub(crate) mod token;

pub use one_time::ONE_TIME_LIFETIME;
pub use token::{EXPIRED_MAX, has_expired};

use model::Rejection;

use crate::decision::Decision;

/// Longest description, and longest name of a token, in bytes.
const TEXT_MAX: usize = 256;

pub(crate) fn invalid<T>(why: impl Into<String>) -> Result<T, Rejection> {
    Err(Rejection::AclInvalid(why.into()))
}

/// Names of policies and roles.
fn check_name(what: &str, name: &str, description: &str) -> Result<(), Rejection> {
    let is_fit = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if !(1..=128).contains(&name.len()) || !name.chars().all(is_fit) {
        return invalid(format!(
            "invalid {what} name {name:?}: expected 1 to 128 letters, digits and dashes"
        ));
    }
    if description.len() > TEXT_MAX {
        return invalid(format!("invalid {what} description: expected at most {TEXT_MAX} bytes"));
    }
    Ok(())
}
