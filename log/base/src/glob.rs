/// Whole-string match in which `*` stands for any run of characters and everything else for itself.
///
/// Takes each part at its first place, so the time is bounded by the lengths however many stars there are.
pub fn matches_glob(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.len() >= last.len() && rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_run_of_characters() {
        for (pattern, text) in
            [("*", ""), ("dc1", "dc1"), ("dc*", "dc"), ("*-eu-*", "a-eu-b"), ("a*a", "aa"), ("é*", "éa")]
        {
            assert!(matches_glob(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("", "a"), ("dc1", "dc10"), ("a*a", "a"), ("*b", "a"), ("a*b*c", "acb")] {
            assert!(!matches_glob(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn many_stars_take_no_longer_than_few() {
        // A matcher that tries every place for every star does not come back from this.
        assert!(!matches_glob(&"*a".repeat(64), &format!("{}b", "a".repeat(128))));
    }
}
