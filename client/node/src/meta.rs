//! Metadata of the node that is changed while it runs: kept apart from what it was configured with, and laid over it.

use std::collections::BTreeMap;

use crate::context::Context;

/// What was changed, by key; `None` where a configured key was taken away.
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

/// What an earlier agent kept: of keys that are configured no more, nothing needs to be taken away.
pub fn restored(configured: &BTreeMap<String, String>, mut dynamic: Dynamic) -> Dynamic {
    dynamic.retain(|key, value| value.is_some() || configured.contains_key(key));
    dynamic
}

/// # Errors
/// When there are no changes, or a key is not one that a job could name.
pub fn check(changes: &Dynamic) -> Result<(), String> {
    if changes.is_empty() {
        return Err("missing required Meta object".to_string());
    }
    match changes.keys().find(|key| !key.split('.').all(is_identifier)) {
        Some(key) => {
            Err(format!("metadata key \"{key}\" is invalid: each part between dots must be an identifier"))
        }
        None => Ok(()),
    }
}

fn is_identifier(part: &str) -> bool {
    let mut characters = part.chars();
    characters.next().is_some_and(|first| first.is_alphabetic() || first == '_')
        && characters.all(|next| next.is_alphanumeric() || matches!(next, '_' | '-'))
}

impl Context {
    /// Makes changes, writes them down, and lets the servers hear of them.
    ///
    /// # Errors
    /// As [`check`] says.
    pub fn change_meta(&self, changes: Dynamic) -> Result<(), String> {
        check(&changes)?;
        let configured = &self.settings.meta;
        {
            let mut dynamic = self.dynamic_meta();
            for (key, value) in changes {
                match value {
                    None if !configured.contains_key(&key) => drop(dynamic.remove(&key)),
                    value => drop(dynamic.insert(key, value)),
                }
            }
            self.store.put_meta(&dynamic);
            let meta = effective(configured, &dynamic);
            self.change_node(|node| node.meta.0 = meta);
        }
        self.node_changed.notify_one();
        Ok(())
    }
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
    fn changes_lie_over_what_was_configured() {
        let configured = texts(&[("rack", "r1"), ("zone", "a")]);
        let dynamic = changes(&[("rack", Some("r2")), ("zone", None), ("new", Some("x"))]);
        assert_eq!(effective(&configured, &dynamic), texts(&[("new", "x"), ("rack", "r2")]));
        let kept = restored(&texts(&[("rack", "r1")]), dynamic);
        assert_eq!(kept, changes(&[("new", Some("x")), ("rack", Some("r2"))]));
    }

    #[test]
    fn keys_that_no_job_could_name_are_refused() {
        for key in ["a", "a.b_c", "_x.y-z", "a1"] {
            check(&changes(&[(key, Some("v"))])).unwrap();
        }
        for key in ["", ".", "a.", "1a", "a b", "a..b", "-a"] {
            assert!(check(&changes(&[(key, None)])).is_err(), "{key}");
        }
        assert!(check(&Dynamic::new()).is_err());
    }
}
