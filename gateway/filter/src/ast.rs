//! What an expression consists of.

use regex::Regex;

/// Chains are flat: only parentheses, `not` and collections nest.
#[derive(Clone, Debug)]
pub(crate) enum Expr {
    Any(Vec<Expr>),
    All(Vec<Expr>),
    Not(Box<Expr>),
    Match(Match),
    Collection(Collection),
}

impl Expr {
    pub(crate) fn looks_at(&self, field: &str) -> bool {
        let begins = |selector: &Selector| selector.path.first().is_some_and(|first| first == field);
        match self {
            Expr::Any(parts) | Expr::All(parts) => parts.iter().any(|part| part.looks_at(field)),
            Expr::Not(inner) => inner.looks_at(field),
            Expr::Match(comparison) => begins(&comparison.selector),
            Expr::Collection(Collection { selector, inner, .. }) => begins(selector) || inner.looks_at(field),
        }
    }
}

/// One comparison. The negated operators are operators of their own, because a missing key answers both.
#[derive(Clone, Debug)]
pub(crate) struct Match {
    pub selector: Selector,
    pub operator: Operator,
    pub negated: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Operator {
    Equals(String),
    /// The selector holds the value: `contains`, and `in` read from the right.
    Contains(String),
    Matches(Regex),
    Empty,
    Nil,
}

/// `any Tags as tag { … }`.
#[derive(Clone, Debug)]
pub(crate) struct Collection {
    pub selector: Selector,
    /// `all` instead of `any`.
    pub every: bool,
    pub binding: Binding,
    pub inner: Box<Expr>,
}

/// The names that the elements of a collection go by; `_` leaves one out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Binding {
    /// The element of a list, the key of a map.
    One(String),
    /// Index and element of a list, key and value of a map.
    Two(Option<String>, Option<String>),
}

/// A path into the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Selector {
    /// As it was written, for messages.
    pub text: String,
    pub path: Vec<String>,
}
