//! Regular expressions of constraints. To build one takes longer than all other checks of a small job together, and most
//! jobs bring the same few, so the last ones that were found valid are remembered.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use regex::RegexBuilder;

/// Largest compiled regular expression, in bytes.
const REGEX_MAX: usize = 1 << 20;

/// Patterns that are remembered; the oldest is forgotten first.
const REMEMBERED: usize = 256;

/// Longest pattern that is remembered, in bytes.
const LENGTH_MAX: usize = 256;

static VALID: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());

/// # Errors
/// Why it is no pattern, or too large a one.
pub(super) fn check(pattern: &str) -> Result<(), regex::Error> {
    if VALID.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|known| known == pattern) {
        return Ok(());
    }
    RegexBuilder::new(pattern).size_limit(REGEX_MAX).build()?;
    if pattern.len() <= LENGTH_MAX {
        let mut valid = VALID.lock().unwrap_or_else(PoisonError::into_inner);
        valid.truncate(REMEMBERED - 1);
        valid.push_front(pattern.to_string());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_patterns_are_remembered_and_not_too_many() {
        for number in 0..2 * REMEMBERED {
            assert_eq!(check(&format!("^node-{number}$")), Ok(()));
        }
        for _ in 0..2 {
            assert!(check("(").is_err());
            assert!(check(&format!("a{{{REGEX_MAX}}}")).is_err());
            assert_eq!(check("^node-7$"), Ok(()));
        }
        let valid = VALID.lock().unwrap();
        assert!(valid.len() <= REMEMBERED && !valid.contains(&"(".to_string()));
    }
}
