use std::collections::BTreeMap;

use base::matches_glob;

/// Rules by names and globs. A name of its own wins; then the glob that leaves the fewest characters to its stars.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Globs<T>(BTreeMap<String, T>);

impl<T: Copy + Default> Globs<T> {
    pub(crate) fn change(&mut self, glob: &str, change: impl FnOnce(&mut T)) {
        match self.0.get_mut(glob) {
            Some(value) => change(value),
            None => change(self.0.entry(glob.to_string()).or_default()),
        }
    }

    /// The rule for this name alone.
    pub(crate) fn exact(&self, name: &str) -> Option<T> {
        self.0.get(name).copied()
    }

    pub(crate) fn get(&self, name: &str) -> Option<T> {
        if let Some(value) = self.0.get(name) {
            return Some(*value);
        }
        let globs = self.0.iter().filter(|(glob, _)| glob.contains('*') && matches_glob(glob, name));
        // Of two that fit alike, the one that is first in the order of text: always the same one.
        globs.min_by_key(|(glob, _)| distance(glob, name)).map(|(_, value)| *value)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = T> {
        self.0.values().copied()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, T)> {
        self.0.iter().map(|(glob, value)| (glob.as_str(), *value))
    }
}

fn distance(glob: &str, name: &str) -> isize {
    name.len() as isize - glob.len() as isize + glob.matches('*').count() as isize
}
