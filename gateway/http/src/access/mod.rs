//! Who calls, and what they may do.
//!
//! A route cannot read anything without naming a right: the extractors of [`crate::request`] have it in their type
//! and answer 403 without it. What a write needs follows from its command, in `commands`. Routes that look at single
//! objects of several namespaces ask for each of them.

mod attempts;
mod commands;
mod resolve;
mod rights;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use acl::Acl;
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderName};
use base::{Duration, Uuid};
use model::{AllocId, Caller, NodeId};

use crate::error::Failure;

pub(crate) use attempts::{Attempts, of_caller};
pub(crate) use commands::{check, names_unknown};
pub(crate) use resolve::{Resolver, own_policies};
pub(crate) use rights::*;

pub(crate) const TOKEN: HeaderName = HeaderName::from_static("x-nomad-token");

/// How access control is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessSettings {
    pub enabled: bool,
    /// Holds the index of the first token when it is to be made again.
    pub reset_file: Option<PathBuf>,
    /// Shortest and longest time that a token with an end may be good for.
    pub ttl_min: Duration,
    pub ttl_max: Duration,
}

impl Default for AccessSettings {
    fn default() -> AccessSettings {
        let (ttl_min, ttl_max) = (Duration::from_secs(60), Duration::from_secs(24 * 3600));
        AccessSettings { enabled: false, reset_file: None, ttl_min, ttl_max }
    }
}

/// A secret or signed token, as a caller presents it. It is shown nowhere.
#[derive(Clone, Default)]
pub(crate) struct Presented(Arc<str>);

impl Presented {
    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Presented {
    fn from(text: &str) -> Presented {
        Presented(text.into())
    }
}

impl fmt::Debug for Presented {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "nothing" } else { "a token" })
    }
}

/// A caller. A clone copies pointers.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub acl: Arc<Acl>,
    pub who: Who,
    pub presented: Presented,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// Access control is off.
    Everybody,
    /// Without a token.
    Anonymous,
    Token {
        accessor: Uuid,
        name: String,
    },
    Node(NodeId),
    /// A task or a service of this allocation.
    Workload(AllocId),
}

impl Who {
    /// As the log names who asked. What is known of the call beside that is not there.
    pub(crate) fn caller(&self) -> Caller {
        let (accessor, name) = match self {
            Who::Everybody | Who::Anonymous => (String::new(), String::new()),
            Who::Token { accessor, name } => (accessor.to_string(), name.clone()),
            Who::Node(node) => (node.to_string(), "node".to_string()),
            Who::Workload(alloc) => (alloc.to_string(), "workload".to_string()),
        };
        Caller { accessor, name, ..Caller::default() }
    }
}

impl Access {
    fn new(acl: Acl, who: Who) -> Access {
        Access { acl: Arc::new(acl), who, presented: Presented::default() }
    }

    /// Access control is off: whoever presents whatever.
    pub(crate) fn everybody() -> Access {
        static EVERYTHING: LazyLock<Access> =
            LazyLock::new(|| Access::new(Acl::management(), Who::Everybody));
        EVERYTHING.clone()
    }

    /// As the log names who asked. What is known of the call beside that is not there.
    pub(crate) fn caller(&self) -> Caller {
        self.who.caller()
    }

    /// The accessor of its token.
    pub(crate) fn accessor(&self) -> Option<Uuid> {
        match self.who {
            Who::Token { accessor, .. } => Some(accessor),
            _ => None,
        }
    }

    /// # Errors
    /// 403 without the right in the namespace.
    pub(crate) fn require<R: Right>(&self, namespace: &str) -> Result<(), Failure> {
        if R::opens(&self.acl, namespace) { Ok(()) } else { Err(denied()) }
    }

    /// For an object of this namespace that a caller has named: who may know of nothing of its kind is refused, and who
    /// may know of others does not see that it is there.
    ///
    /// # Errors
    /// 403, or `unknown`.
    pub(crate) fn find<R: Right>(&self, namespace: &str, unknown: Failure) -> Result<(), Failure> {
        match (R::holds(&self.acl, namespace), R::holds(&self.acl, "*")) {
            (true, _) => Ok(()),
            (false, true) => Err(unknown),
            (false, false) => Err(denied()),
        }
    }
}

pub(crate) fn denied() -> Failure {
    Failure::forbidden("Permission denied")
}

/// What the caller presents: the header of Nomad's clients, or a bearer token.
///
/// # Errors
/// 403 if both are there and differ: one would be checked, and the other one be meant.
pub(crate) fn presented(headers: &HeaderMap) -> Result<String, Failure> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default().trim().to_string());
    let own = text(TOKEN).filter(|token| !token.is_empty());
    let bearer = text(AUTHORIZATION).and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        let token = token.split_whitespace().next()?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.to_string())
    });
    match (own, bearer) {
        (Some(own), Some(bearer)) if own != bearer => {
            Err(Failure::forbidden("the tokens in X-Nomad-Token and Authorization differ"))
        }
        (own, bearer) => Ok(own.or(bearer).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_comes_in_either_header_and_two_must_not_differ() {
        let given = |own: &str, bearer: &str| {
            let mut headers = HeaderMap::new();
            for (name, value) in [(TOKEN, own), (AUTHORIZATION, bearer)] {
                if !value.is_empty() {
                    headers.insert(name, value.parse().unwrap());
                }
            }
            presented(&headers).map_err(|failure| failure.status.as_u16())
        };
        assert_eq!(given("", ""), Ok(String::new()));
        assert_eq!(given("  a ", ""), Ok("a".to_string()));
        assert_eq!(given("", "bEaReR a b"), Ok("a".to_string()));
        assert_eq!(given("", "Basic a"), Ok(String::new()));
        assert_eq!(given("a", "Bearer a"), Ok("a".to_string()));
        assert_eq!(given("a", "Bearer b"), Err(403));
    }
}
