//! Metadata of the node that is changed while it runs: stored apart from the configured metadata, which it overrides.

use std::collections::BTreeMap;

/// What was changed, by key; `None` where a configured key was removed.
pub type Dynamic = BTreeMap<String, Option<String>>;

/// What a job sees.
pub fn effective(configured: &BTreeMap<String, String>, dynamic: &Dynamic) -> BTreeMap<String, String> {
    let mut meta = configured.clone();
    for (key, value) in dynamic {
        match value {
            Some(value) => drop(meta.insert(key.clone(), value.clone())),
            None => drop(meta.remove(key)),
        }
    }
    meta
}

/// What an earlier agent has stored, without removals of keys that are no longer configured.
pub fn restored(configured: &BTreeMap<String, String>, mut dynamic: Dynamic) -> Dynamic {
    dynamic.retain(|key, value| value.is_some() || configured.contains_key(key));
    dynamic
}

/// Why metadata cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetaError {
    #[error("missing required Meta object")]
    Empty,
    #[error("metadata key \"{0}\" is invalid: each part between dots must be an identifier")]
    InvalidKey(String),
}

/// # Errors
/// When there are no changes, or a job could not refer to a key.
pub fn check(changes: &Dynamic) -> Result<(), MetaError> {
    if changes.is_empty() {
        return Err(MetaError::Empty);
    }
    match changes.keys().find(|key| !key.split('.').all(is_identifier)) {
        Some(key) => Err(MetaError::InvalidKey(key.clone())),
        None => Ok(()),
    }
}

fn is_identifier(part: &str) -> bool {
    let mut characters = part.chars();
    characters.next().is_some_and(|first| first.is_alphabetic() || first == '_')
        && characters.all(|next| next.is_alphanumeric() || matches!(next, '_' | '-'))
}

/// Lays `changes` over what was changed before.
///
/// # Errors
/// As [`check`] says.
pub fn change(
    configured: &BTreeMap<String, String>,
    dynamic: &mut Dynamic,
    changes: Dynamic,
) -> Result<(), MetaError> {
    check(&changes)?;
    for (key, value) in changes {
        match value {
            None if !configured.contains_key(&key) => drop(dynamic.remove(&key)),
            value => drop(dynamic.insert(key, value)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
    }

    fn changes(pairs: &[(&str, Option<&str>)]) -> Dynamic {
        pairs.iter().map(|(key, value)| (key.to_string(), value.map(str::to_string))).collect()
    }

    #[test]
    fn changes_override_what_was_configured() {
        let configured = texts(&[("rack", "r1"), ("zone", "a")]);
        let dynamic = changes(&[("rack", Some("r2")), ("zone", None), ("new", Some("x"))]);
        assert_eq!(effective(&configured, &dynamic), texts(&[("new", "x"), ("rack", "r2")]));
        let stored = restored(&texts(&[("rack", "r1")]), dynamic);
        assert_eq!(stored, changes(&[("new", Some("x")), ("rack", Some("r2"))]));
    }

    #[test]
    fn keys_that_a_job_could_not_refer_to_are_rejected() {
        for key in ["a", "a.b_c", "_x.y-z", "a1"] {
            check(&changes(&[(key, Some("v"))])).unwrap();
        }
        for key in ["", ".", "a.", "1a", "a b", "a..b", "-a"] {
            assert!(check(&changes(&[(key, None)])).is_err(), "{key}");
        }
        assert!(check(&Dynamic::new()).is_err());
    }
}
