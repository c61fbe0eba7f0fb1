use std::cmp::Ordering;

/// Numbers and an optional pre-release. Build metadata is ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Version {
    /// At least three.
    segments: Vec<u64>,
    /// How many were written.
    given: usize,
    pre: Vec<Identifier>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    // Numbers sort before words: the order of the variants is the order of precedence.
    Number(u64),
    Word(String),
}

/// The `version` operand: every comma-separated term of `terms` holds for `left`.
pub fn satisfies(left: &str, terms: &str) -> bool {
    let Some(left) = Version::lenient(left) else { return false };
    terms.split(',').all(|term| {
        let (operator, text) = split(term);
        Version::lenient(text).is_some_and(|wanted| lenient_term(&left, operator, &wanted))
    })
}

/// The `semver` operand: plain precedence, without a guard against pre-releases.
pub fn satisfies_semver(left: &str, terms: &str) -> bool {
    let Some(left) = Version::strict(left) else { return false };
    terms.split(',').all(|term| {
        let (operator, text) = split(term);
        Version::strict(text).is_some_and(|wanted| ordered(left.cmp(&wanted), operator))
    })
}

/// The operator, `=` where none is written, and what follows it.
fn split(term: &str) -> (&str, &str) {
    let term = term.trim();
    for operator in ["~>", "!=", ">=", "<=", "=", ">", "<"] {
        if let Some(rest) = term.strip_prefix(operator) {
            return (operator, rest.trim());
        }
    }
    ("=", term)
}

fn ordered(order: Ordering, operator: &str) -> bool {
    match operator {
        "=" => order.is_eq(),
        "!=" => order.is_ne(),
        ">" => order.is_gt(),
        ">=" => order.is_ge(),
        "<" => order.is_lt(),
        "<=" => order.is_le(),
        _ => false,
    }
}

fn lenient_term(left: &Version, operator: &str, wanted: &Version) -> bool {
    let guarded = match (left.pre.is_empty(), wanted.pre.is_empty()) {
        (true, true) => true,
        (true, false) => operator != "~>",
        (false, true) => false,
        // A pre-release answers only to terms about the very release it precedes.
        (false, false) => left.segments == wanted.segments,
    };
    match operator {
        "=" | "!=" => ordered(left.cmp(wanted), operator),
        "~>" => guarded && left >= wanted && left.agrees_but_for_the_last(wanted),
        _ => guarded && ordered(left.cmp(wanted), operator),
    }
}

impl Version {
    /// An optional `v`, numbers, then a pre-release after `-` or beginning with a letter.
    fn lenient(text: &str) -> Option<Version> {
        let text = text.trim();
        let text = text.strip_prefix('v').unwrap_or(text);
        let (text, _metadata) = text.split_once('+').unwrap_or((text, ""));
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (numbers, rest) = text.split_at(end);
        Version::of(numbers, rest.strip_prefix('-').unwrap_or(rest), rest.starts_with('-'))
    }

    fn strict(text: &str) -> Option<Version> {
        let text = text.trim();
        let text = text.strip_prefix('v').unwrap_or(text);
        let (text, _metadata) = text.split_once('+').unwrap_or((text, ""));
        let (numbers, pre) = text.split_once('-').unwrap_or((text, ""));
        Version::of(numbers, pre, text.contains('-')).filter(|version| version.segments.len() == 3)
    }

    fn of(numbers: &str, pre: &str, dashed: bool) -> Option<Version> {
        let mut segments =
            numbers.split('.').map(|number| number.parse().ok()).collect::<Option<Vec<u64>>>()?;
        let given = segments.len();
        segments.resize(given.max(3), 0);
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '~');
        if !pre.chars().all(allowed) || (dashed && pre.is_empty()) {
            return None;
        }
        let pre = if pre.is_empty() { Vec::new() } else { pre.split('.').map(Identifier::of).collect() };
        Some(Version { segments, given, pre })
    }

    /// All but the last segment that `wanted` wrote are the same.
    fn agrees_but_for_the_last(&self, wanted: &Version) -> bool {
        let fixed = wanted.given - 1;
        self.segments[..fixed.min(self.segments.len())] == wanted.segments[..fixed]
    }
}

impl Identifier {
    fn of(text: &str) -> Identifier {
        text.parse().map_or_else(|_| Identifier::Word(text.to_string()), Identifier::Number)
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Version) -> Ordering {
        let longest = self.segments.len().max(other.segments.len());
        let segment = |version: &Version, at: usize| version.segments.get(at).copied().unwrap_or(0);
        let numbers = (0..longest).map(|at| segment(self, at).cmp(&segment(other, at)));
        let order = numbers.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal);
        order.then_with(|| match (self.pre.is_empty(), other.pre.is_empty()) {
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (true, true) | (false, false) => self.pre.cmp(&other.pre),
        })
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Version) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// H11-H13, H16, H17.
    #[test]
    fn lenient_versions_are_guarded_against_pre_releases() {
        for (left, terms, expected) in [
            ("1.2.3", "~> 1.0", true),
            ("2.0.1", "~> 1.0", false),
            ("1.2.9", "~> 1.2.3", true),
            ("1.3.0", "~> 1.2.3", false),
            ("1.2.3", "~> 1", true),
            ("2.2.3", "~> 1", true),
            ("1.2.3", ">= 1.0, < 1.4", true),
            ("1.4.0", ">= 1.0, < 1.4", false),
            ("1.3.0-beta1", ">= 0.6.1", false),
            ("1.3.0-beta1", ">= 1.3.0-alpha", true),
            ("1.3.0-beta1", "= 1.3.0-beta1", true),
            ("1.3.0-beta1", "!= 1.3.0", true),
            ("1.3.0", "> 1.3.0-beta1", true),
            ("1.3.0", "~> 1.3.0-beta1", false),
            ("1.4.0-beta1", "> 1.3.0-beta1", false),
            ("foo", ">= 1.0", false),
            ("1.2.3", "foo", false),
            ("1.2.3+ent", "= 1.2.3", true),
            ("v1.2", "1.2.0", true),
            ("1.7rc2", "= 1.7.0-rc2", true),
            ("1.2.3.4", "> 1.2.3", true),
            ("", ">= 0", false),
        ] {
            assert_eq!(satisfies(left, terms), expected, "{left} against {terms}");
        }
    }

    /// H14, H15.
    #[test]
    fn semver_is_plain_precedence() {
        for (left, terms, expected) in [
            ("1.3.0-beta1", ">= 1.2.0", true),
            ("1.3.0-beta1", "< 1.3.0", true),
            ("1.3.0-alpha.1", "< 1.3.0-alpha.beta", true),
            ("1.3.0-alpha.2", "< 1.3.0-alpha.10", true),
            ("1.3.0", "~> 1.0", false),
            ("1.2", "= 1.2.0", true),
            ("1.2.3.4", ">= 1.0.0", false),
            ("1.7rc2", ">= 1.0.0", false),
            ("1.2.3+a", "= 1.2.3+b", true),
        ] {
            assert_eq!(satisfies_semver(left, terms), expected, "{left} against {terms}");
        }
    }
}
