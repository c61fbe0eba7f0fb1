//! Which nodes may register for the first time.

use base::Duration;

use crate::claims::{Claims, Holder, NodeClaims};

/// `server.client_introduction`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntroductionSettings {
    pub enforcement: Enforcement,
    /// How long an introduction token is valid unless its request says otherwise, and at most.
    pub default_ttl: Duration,
    pub max_ttl: Duration,
}

impl Default for IntroductionSettings {
    fn default() -> IntroductionSettings {
        IntroductionSettings {
            enforcement: Enforcement::Warn,
            default_ttl: Duration::from_secs(5 * 60),
            max_ttl: Duration::from_secs(30 * 60),
        }
    }
}

/// What happens to a node without an introduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enforcement {
    None,
    Warn,
    Strict,
}

/// What a node that no server knows presents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presented {
    Nothing,
    /// Something that proves nothing: an expired token, another cluster's, the secret of no node.
    Invalid,
    Token(Box<Claims>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    Allowed,
    /// Allowed, and worth a warning.
    Unproven,
    Denied,
}

/// Whether a node that no server knows may register.
pub fn admit(enforcement: Enforcement, presented: &Presented, node: &NodeClaims, name: &str) -> Admission {
    if enforcement == Enforcement::None {
        return Admission::Allowed;
    }
    let fits = match presented {
        Presented::Invalid => return Admission::Denied,
        Presented::Nothing => false,
        Presented::Token(claims) => match &claims.holder {
            Holder::Introduction(to) => {
                if to.pool != node.pool || !(to.name.is_empty() || to.name == name) {
                    return Admission::Denied;
                }
                true
            }
            Holder::Node(known) => known.id == node.id,
            Holder::Workload(_) => false,
        },
    };
    match (fits, enforcement) {
        (true, _) => Admission::Allowed,
        (false, Enforcement::Strict) => Admission::Denied,
        (false, _) => Admission::Unproven,
    }
}

#[cfg(test)]
mod tests {
    use base::Time;

    use super::*;
    use crate::claims::IntroductionClaims;

    #[test]
    fn a_new_node_is_judged_by_what_it_presents() {
        use Admission::{Allowed, Denied, Unproven};
        let text = str::to_string;
        let node = |id: u128| NodeClaims {
            id: id.into(),
            pool: text("gpu"),
            class: String::new(),
            datacenter: text("dc1"),
        };
        let introduction = |pool: &str, name: &str| {
            let claims = IntroductionClaims { pool: text(pool), name: text(name) };
            Presented::Token(Box::new(Claims::of_introduction("global", claims, Time::ZERO, Duration::ZERO)))
        };
        let identity =
            |id| Presented::Token(Box::new(Claims::of_node("global", node(id), Time::ZERO, Duration::ZERO)));
        let cases = [
            (Presented::Nothing, Unproven, Denied),
            (Presented::Invalid, Denied, Denied),
            (introduction("gpu", ""), Allowed, Allowed),
            (introduction("gpu", "n1"), Allowed, Allowed),
            (introduction("gpu", "n2"), Denied, Denied),
            (introduction("cpu", ""), Denied, Denied),
            (identity(7), Allowed, Allowed),
            (identity(8), Unproven, Denied),
        ];
        for (presented, warn, strict) in cases {
            let of = |enforcement| admit(enforcement, &presented, &node(7), "n1");
            assert_eq!(of(Enforcement::None), Allowed);
            assert_eq!((of(Enforcement::Warn), of(Enforcement::Strict)), (warn, strict), "{presented:?}");
        }
    }
}
