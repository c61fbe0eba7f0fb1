//! Constraints: conditions on a node's attributes.

mod operand;
mod version;

use std::borrow::Cow;

use model::document::Constraint;
use state::node::NodeCold;

pub use operand::{Operand, boolean};
pub use version::satisfies_semver;

/// One constraint, parsed so that it can be checked on many nodes.
#[derive(Clone, Debug)]
pub struct ConstraintCheck {
    /// As the job wrote it: the reason in metrics.
    pub text: String,
    left: Target,
    right: Target,
    test: Operand,
    /// It looks at a `unique.` attribute, which nodes of one class do not share.
    pub escapes: bool,
}

impl ConstraintCheck {
    pub fn of(constraint: &Constraint) -> ConstraintCheck {
        let Constraint { l_target, r_target, operand } = constraint;
        let right = Target::parse(r_target);
        ConstraintCheck {
            text: format!("{l_target} {operand} {r_target}"),
            left: Target::parse(l_target),
            test: Operand::of(operand, right.literal()),
            right,
            escapes: escapes(l_target) || escapes(r_target),
        }
    }

    pub fn holds(&self, node: &NodeCold) -> bool {
        let (left, right) = (self.left.resolve(node), self.right.resolve(node));
        self.test.holds(left.as_deref(), right.as_deref())
    }
}

/// A side of a constraint: a literal, or something about the node.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    Literal(String),
    NodeId,
    NodeName,
    Datacenter,
    Class,
    Pool,
    Attribute(String),
    Meta(String),
    /// Not a known target: never found.
    Nothing,
}

impl Target {
    pub fn parse(text: &str) -> Target {
        let Some(inner) = text.strip_prefix("${") else { return Target::Literal(text.to_string()) };
        let Some(inner) = inner.strip_suffix('}') else { return Target::Nothing };
        match inner {
            "node.unique.id" => Target::NodeId,
            "node.unique.name" => Target::NodeName,
            "node.datacenter" => Target::Datacenter,
            "node.class" => Target::Class,
            "node.pool" => Target::Pool,
            _ => match (inner.strip_prefix("attr."), inner.strip_prefix("meta.")) {
                (Some(key), _) => Target::Attribute(key.to_string()),
                (None, Some(key)) => Target::Meta(key.to_string()),
                (None, None) => Target::Nothing,
            },
        }
    }

    pub fn resolve<'a>(&'a self, node: &'a NodeCold) -> Option<Cow<'a, str>> {
        let document = &node.document;
        match self {
            Target::Literal(text) => Some(text.into()),
            // The stored document does not repeat the id.
            Target::NodeId => Some(node.id.to_string().into()),
            Target::NodeName => Some((&document.name).into()),
            Target::Datacenter => Some((&document.datacenter).into()),
            Target::Class => Some((&document.node_class).into()),
            Target::Pool => Some((&document.node_pool).into()),
            Target::Attribute(key) => document.attributes.get(key).map(Cow::from),
            Target::Meta(key) => document.meta.get(key).map(Cow::from),
            Target::Nothing => None,
        }
    }

    fn literal(&self) -> Option<&str> {
        match self {
            Target::Literal(text) => Some(text),
            _ => None,
        }
    }
}

/// Unique keys are not part of a node's class.
pub fn escapes(target: &str) -> bool {
    ["${unique.", "${node.unique.", "${attr.unique.", "${meta.unique."]
        .iter()
        .any(|prefix| target.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use base::{Index, Time, Uuid};
    use model::NodeId;
    use model::document::Node;

    use super::*;

    fn node() -> NodeCold {
        let mut document = Node { datacenter: "dc1".into(), ..Node::default() };
        document.node_class = "gpu".to_string();
        document.attributes.insert("kernel.name".into(), "linux".into());
        document.attributes.insert("unique.hostname".into(), "a".into());
        document.meta.insert("rack".into(), "r1".into());
        document.meta.insert("empty".into(), String::new());
        NodeCold {
            id: NodeId(Uuid::from(1)),
            document: state::LazyDoc::of(&document),
            secret_hash: [0; 32],
            created: Index(1),
            status_updated: Time::ZERO,
            messages: Vec::new(),
            drain: None,
        }
    }

    fn holds(left: &str, operand: &str, right: &str) -> bool {
        let constraint =
            Constraint { l_target: left.into(), operand: operand.into(), r_target: right.into() };
        ConstraintCheck::of(&constraint).holds(&node())
    }

    /// H01-H06, H22.
    #[test]
    fn targets_name_fields_attributes_and_meta() {
        for (left, operand, right, expected) in [
            ("${attr.kernel.name}", "=", "linux", true),
            ("${attr.kernel.name}", "=", "windows", false),
            ("${meta.row}", "=", "r1", false),
            ("${meta.row}", "!=", "r1", true),
            ("${meta.a}", "!=", "${meta.b}", false),
            ("${meta.rack}", "is_set", "", true),
            ("${meta.empty}", "is_set", "", true),
            ("${meta.row}", "is_not_set", "", true),
            ("${node.class}", "=", "gpu", true),
            ("${node.unique.id}", "=", "00000000-0000-0000-0000-000000000001", true),
            ("${node.datacenter}", "=", "dc1", true),
            ("${node.pool}", "=", "", true),
            ("${node.bogus}", "=", "", false),
            ("r1", "=", "${meta.rack}", true),
        ] {
            assert_eq!(holds(left, operand, right), expected, "{left} {operand} {right}");
        }
    }

    #[test]
    fn unique_keys_escape_the_class() {
        let check = |left: &str| {
            ConstraintCheck::of(&Constraint {
                l_target: left.into(),
                operand: "=".into(),
                r_target: "a".into(),
            })
        };
        assert!(check("${attr.unique.hostname}").escapes && check("${node.unique.name}").escapes);
        assert!(!check("${attr.kernel.name}").escapes && !check("${node.datacenter}").escapes);
    }

    /// H70.
    #[test]
    fn a_star_stands_for_any_run_of_characters() {
        for (pattern, text, expected) in [
            ("dc1", "dc1", true),
            ("dc1", "dc10", false),
            ("dc*", "dc-east", true),
            ("*", "", true),
            ("*", "x", true),
            ("*-east", "dc-east", true),
            ("a*a", "a", false),
            ("a*b*c", "axbybc", true),
            ("d?1", "dc1", false),
            ("", "x", false),
        ] {
            assert_eq!(base::matches_glob(pattern, text), expected, "{pattern} {text}");
        }
    }
}
