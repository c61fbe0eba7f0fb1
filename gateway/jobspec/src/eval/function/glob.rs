//! Patterns of paths for `fileset`.

use crate::eval::ValueError;

/// Most alternatives that the braces of a pattern make.
const ALTERNATIVES_MAX: usize = 256;

/// Patterns without braces that together mean the same.
///
/// # Errors
/// When a brace is never closed, or there are too many alternatives.
pub(super) fn alternatives(pattern: &str) -> Result<Vec<String>, ValueError> {
    let mut open = vec![pattern.to_string()];
    let mut flat = Vec::new();
    while let Some(pattern) = open.pop() {
        let Some(start) = pattern.find('{') else {
            flat.push(pattern);
            continue;
        };
        let (choices, end) = choices(&pattern[start + 1..]).ok_or("a { in the pattern is never closed")?;
        let rest = &pattern[start + 1 + end..];
        open.extend(choices.iter().map(|choice| format!("{}{choice}{rest}", &pattern[..start])));
        if open.len() + flat.len() > ALTERNATIVES_MAX {
            return Err(format!("the pattern has more than {ALTERNATIVES_MAX} alternatives").into());
        }
    }
    Ok(flat)
}

/// The choices up to the closing brace, and where the text goes on.
fn choices(text: &str) -> Option<(Vec<&str>, usize)> {
    let mut found = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                found.push(&text[start..at]);
                return Some((found, at + 1));
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    None
}

/// Whether a path fits: `*` and `?` within one part of it, `**` over any number of parts, `[a-z]` one character.
pub(super) fn fits(pattern: &str, path: &str) -> bool {
    let (pattern, path): (Vec<&str>, Vec<&str>) = (pattern.split('/').collect(), path.split('/').collect());
    // Row by row of a table: which beginnings of the path fit the pattern so far.
    let mut reach = vec![false; path.len() + 1];
    reach[0] = true;
    for part in pattern {
        let mut next = vec![false; path.len() + 1];
        let any = part == "**";
        for at in 0..=path.len() {
            next[at] = match any {
                true => reach[at] || (at > 0 && next[at - 1]),
                false => at > 0 && reach[at - 1] && fits_part(part, path[at - 1]),
            };
        }
        reach = next;
    }
    reach[path.len()]
}

fn fits_part(pattern: &str, name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    let mut reach = vec![false; name.len() + 1];
    reach[0] = true;
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        let (step, length) = one(rest, first);
        let mut next = vec![false; name.len() + 1];
        for at in 0..=name.len() {
            next[at] = match step {
                None => reach[at] || (at > 0 && next[at - 1]),
                Some(class) => at > 0 && reach[at - 1] && is_of(class, name[at - 1]),
            };
        }
        reach = next;
        rest = &rest[length..];
    }
    reach[name.len()]
}

/// The next thing a pattern asks for, `None` for any text, and its length.
fn one(rest: &str, first: char) -> (Option<&str>, usize) {
    match first {
        '*' => (None, 1),
        '[' => match rest[1..].find(']').filter(|end| *end > 0) {
            Some(end) => (Some(&rest[..end + 2]), end + 2),
            None => (Some("["), 1),
        },
        '\\' if rest.len() > 1 => {
            let escaped = rest[1..].chars().next().map_or(0, char::len_utf8);
            (Some(&rest[..1 + escaped]), 1 + escaped)
        }
        other => (Some(&rest[..other.len_utf8()]), other.len_utf8()),
    }
}

fn is_of(class: &str, c: char) -> bool {
    if class == "?" {
        return true;
    }
    if let Some(escaped) = class.strip_prefix('\\').filter(|rest| !rest.is_empty()) {
        return escaped.starts_with(c);
    }
    let Some(inner) = class.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else {
        return class.starts_with(c);
    };
    let (negated, inner) = match inner.strip_prefix(['^', '!']) {
        Some(inner) => (true, inner),
        None => (false, inner),
    };
    let all: Vec<char> = inner.chars().collect();
    let mut at = 0;
    let mut found = false;
    while at < all.len() {
        let range = all.get(at + 1) == Some(&'-') && at + 2 < all.len();
        let last = if range { all[at + 2] } else { all[at] };
        found |= (all[at]..=last).contains(&c);
        at += if range { 3 } else { 1 };
    }
    found != negated
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_as_they_do_in_shells() {
        for (pattern, path) in [
            ("*.hcl", "a.hcl"),
            ("**", "a/b/c"),
            ("**/*.hcl", "a.hcl"),
            ("**/*.hcl", "x/y/a.hcl"),
            ("a/**/z", "a/z"),
            ("conf-?.d", "conf-1.d"),
            ("[a-c]x[!0-9]", "bxz"),
            ("*a*b*", "xxaxxbxx"),
            ("\\*", "*"),
            ("[", "["),
            ("é?", "éü"),
        ] {
            assert!(fits(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("*.hcl", "x/a.hcl"),
            ("*", "a/b"),
            ("?", ""),
            ("[a-c]", "d"),
            ("[^a]", "a"),
            ("a/**", "b/c"),
            ("\\*", "x"),
        ] {
            assert!(!fits(pattern, path), "{pattern} {path}");
        }
    }

    #[test]
    fn braces_make_alternatives() {
        let mut all = alternatives("{a,b{1,2}}.{x,y}").unwrap();
        all.sort();
        assert_eq!(all, ["a.x", "a.y", "b1.x", "b1.y", "b2.x", "b2.y"]);
        assert!(alternatives("{a,b").is_err());
        assert!(alternatives(&"{a,b}".repeat(20)).is_err());
    }
}
