use std::cmp::Ordering;

use model::document::sizes::PATTERN_BYTES_MAX;
use regex::{Regex, RegexBuilder};

use super::version;

/// Bytes of a compiled regular expression; validation allows no more either.
const COMPILED_BYTES_MAX: usize = 1 << 20;

/// The operand of a constraint: what has to be true of the two sides.
#[derive(Clone, Debug)]
pub enum Operand {
    Equal,
    NotEqual,
    Order(fn(Ordering) -> bool),
    IsSet,
    IsNotSet,
    Version,
    Semver,
    Regexp(Pattern),
    ContainsAll,
    ContainsAny,
    /// Checked elsewhere: `distinct_hosts` and `distinct_property`.
    Elsewhere,
    /// An unknown operand.
    Never,
}

/// A regular expression: compiled once where it is a literal.
#[derive(Clone, Debug)]
pub enum Pattern {
    Fixed(Regex),
    Invalid,
    PerNode,
}

impl Operand {
    /// `right` is the right side if it is the same for every node.
    pub fn of(operand: &str, right: Option<&str>) -> Operand {
        match operand {
            "=" | "==" | "is" => Operand::Equal,
            "!=" | "not" => Operand::NotEqual,
            "<" => Operand::Order(Ordering::is_lt),
            "<=" => Operand::Order(Ordering::is_le),
            ">" => Operand::Order(Ordering::is_gt),
            ">=" => Operand::Order(Ordering::is_ge),
            "is_set" => Operand::IsSet,
            "is_not_set" => Operand::IsNotSet,
            "version" => Operand::Version,
            "semver" => Operand::Semver,
            "regexp" => Operand::Regexp(Pattern::of(right)),
            "set_contains" | "set_contains_all" => Operand::ContainsAll,
            "set_contains_any" => Operand::ContainsAny,
            "distinct_hosts" | "distinct_property" => Operand::Elsewhere,
            _ => Operand::Never,
        }
    }

    pub fn holds(&self, left: Option<&str>, right: Option<&str>) -> bool {
        match self {
            Operand::NotEqual => return left.unwrap_or_default() != right.unwrap_or_default(),
            Operand::IsSet => return left.is_some(),
            Operand::IsNotSet => return left.is_none(),
            Operand::Elsewhere => return true,
            Operand::Never => return false,
            _ => {}
        }
        let (Some(left), Some(right)) = (left, right) else { return false };
        match self {
            Operand::Equal => left == right,
            Operand::Order(accepts) => compare(left, right).is_some_and(accepts),
            Operand::Version => version::satisfies(left, right),
            Operand::Semver => version::satisfies_semver(left, right),
            Operand::Regexp(pattern) => pattern.is_match(left, right),
            Operand::ContainsAll => elements(right).all(|wanted| elements(left).any(|held| held == wanted)),
            Operand::ContainsAny => elements(right).any(|wanted| elements(left).any(|held| held == wanted)),
            Operand::NotEqual | Operand::IsSet | Operand::IsNotSet | Operand::Elsewhere | Operand::Never => {
                unreachable!("answered above, where a side may be missing")
            }
        }
    }
}

impl Pattern {
    fn of(right: Option<&str>) -> Pattern {
        match right.map(compiled) {
            Some(Some(regex)) => Pattern::Fixed(regex),
            Some(None) => Pattern::Invalid,
            None => Pattern::PerNode,
        }
    }

    fn is_match(&self, left: &str, right: &str) -> bool {
        match self {
            Pattern::Fixed(regex) => regex.is_match(left),
            Pattern::Invalid => false,
            Pattern::PerNode => compiled(right).is_some_and(|regex| regex.is_match(left)),
        }
    }
}

/// `None` for what is no pattern, or too large a one: a log may hold jobs from before patterns were bounded.
fn compiled(pattern: &str) -> Option<Regex> {
    let fits = pattern.len() <= PATTERN_BYTES_MAX;
    fits.then(|| RegexBuilder::new(pattern).size_limit(COMPILED_BYTES_MAX).build().ok())?
}

/// As integers if both are, else as floats if both are, else byte by byte.
fn compare(left: &str, right: &str) -> Option<Ordering> {
    if let (Ok(left), Ok(right)) = (left.parse::<i64>(), right.parse::<i64>()) {
        return Some(left.cmp(&right));
    }
    if let (Ok(left), Ok(right)) = (left.parse::<f64>(), right.parse::<f64>()) {
        return left.partial_cmp(&right);
    }
    Some(left.cmp(right))
}

/// Parses a boolean as Nomad does.
pub fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

fn elements(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(left: &str, operand: &str, right: &str) -> bool {
        Operand::of(operand, Some(right)).holds(Some(left), Some(right))
    }

    /// H07-H10.
    #[test]
    fn order_is_by_integer_then_float_then_text() {
        for (left, operand, right, expected) in [
            ("foo", "<", "bar", false),
            ("2", "<", "10", true),
            ("2.5", ">", "10", false),
            ("1e3", ">=", "999", true),
            ("10", "<", "9a", true),
            ("-1", "<", "1", true),
            ("1", "<=", "1", true),
            ("1", ">=", "1", true),
            ("9223372036854775808", ">", "1", true),
            ("NaN", "<", "1", false),
        ] {
            assert_eq!(holds(left, operand, right), expected, "{left} {operand} {right}");
        }
    }

    /// H18-H21.
    #[test]
    fn patterns_sets_and_unknown_operands() {
        for (left, operand, right, expected) in [
            ("foobar", "regexp", "bar", true),
            ("barfoo", "regexp", "^foo", false),
            ("x", "regexp", "(", false),
            ("x", "regexp", &"x?".repeat(2_048), true),
            ("x", "regexp", &"x?".repeat(2_049), false),
            ("a,b,c", "set_contains", "a, b", true),
            ("a,b,c", "set_contains_all", "a,d", false),
            ("a,b,c", "set_contains_any", "x, b", true),
            ("a,b,c", "set_contains_any", "x", false),
            ("a", "is", "a", true),
            ("a", "==", "a", true),
            ("a", "not", "a", false),
            ("a", "~=", "a", false),
            ("a", "distinct_hosts", "true", true),
        ] {
            assert_eq!(holds(left, operand, right), expected, "{left} {operand} {right}");
        }
    }

    #[test]
    fn a_missing_side_fails_everything_that_compares() {
        for operand in ["=", "<", ">=", "version", "semver", "regexp", "set_contains", "set_contains_any"] {
            assert!(!Operand::of(operand, None).holds(None, Some("1")), "{operand}");
            assert!(!Operand::of(operand, None).holds(Some("1"), None), "{operand}");
        }
        assert!(Operand::of("regexp", None).holds(Some("abc"), Some("b")));
    }
}
