use base::Index;
use model::event::{
    VariableDeleted, VariableLockAcquired, VariableLockReleased, VariableSet, VariablesResealed,
};
use model::{Actor, SealedItems, VariableKey};

use super::state::{VERSIONS_MAX, Variable, Variables, Version};
use crate::Delta;
use crate::moment::Moment;

impl Variables {
    pub(crate) fn was_set(&mut self, at: Moment, by: &Actor, event: &VariableSet, delta: &mut Delta) {
        let content = self.change();
        content.changed = at.index;
        let variable = with_items(content.copy(&event.key), at, by, event.items.clone());
        content.set(&event.key, Some(variable));
        delta.variables.push(event.key.clone());
    }

    pub(crate) fn deleted(&mut self, at: Moment, event: &VariableDeleted, delta: &mut Delta) {
        self.removed(at, &event.key, delta);
    }

    pub(crate) fn removed(&mut self, at: Moment, key: &VariableKey, delta: &mut Delta) {
        let content = self.change();
        content.changed = at.index;
        assert!(content.copy(key).is_some(), "the event names a variable that is there");
        content.set(key, None);
        delta.variables.push(key.clone());
    }

    pub(crate) fn lock_acquired(
        &mut self,
        at: Moment,
        by: &Actor,
        event: &VariableLockAcquired,
        delta: &mut Delta,
    ) {
        let content = self.change();
        content.changed = at.index;
        let before = content.copy(&event.key);
        assert!(before.as_ref().is_none_or(|before| before.lock.is_none()), "a variable has one lock");
        let mut variable = match &event.items {
            Some(items) => with_items(before, at, by, items.clone()),
            None => before.expect("a variable that keeps its items is there"),
        };
        variable.lock = Some(event.lock);
        (variable.modified, variable.modified_at) = (at.index, at.time);
        content.set(&event.key, Some(variable));
        delta.variables.push(event.key.clone());
    }

    pub(crate) fn lock_released(&mut self, at: Moment, event: &VariableLockReleased, delta: &mut Delta) {
        let content = self.change();
        content.changed = at.index;
        let mut variable = content.copy(&event.key).expect("the event names a variable that is there");
        let lock = variable.lock.take().expect("the event names a lock that is there");
        assert_eq!(lock.id, event.lock, "the lock that is given back is the one that is held");
        (variable.modified, variable.modified_at) = (at.index, at.time);
        content.set(&event.key, Some(variable));
        delta.variables.push(event.key.clone());
    }

    /// Nobody who reads them sees a difference, so their indexes stay.
    pub(crate) fn resealed(&mut self, event: &VariablesResealed) {
        let content = self.change();
        for resealed in &event.versions {
            let variable = content.copy(&resealed.key);
            let mut variable = variable.expect("the event names variables that are there");
            let mut versions = variable.versions.iter_mut();
            let version = versions.find(|version| version.number == resealed.version);
            version.expect("the event names versions that are there").items = resealed.items.clone();
            content.set(&resealed.key, Some(variable));
        }
    }

    /// Everything is as in the state that was restored. A cluster without variables keeps its digest.
    pub(crate) fn restored(&mut self, now: Index, before: &Variables) {
        if self.changed().max(before.changed()) > Index::ZERO {
            self.change().changed = now;
        }
    }

    /// Nothing was created or changed after `limit`.
    pub(crate) fn bring_back_to(&mut self, limit: Index) {
        if self.changed() == Index::ZERO {
            return;
        }
        let content = self.change();
        content.changed = content.changed.min(limit);
        let keys: Vec<VariableKey> = self.iter().map(|(key, _)| key.clone()).collect();
        for key in keys {
            let content = self.change();
            let mut variable = content.copy(&key).expect("its key was just read");
            variable.created = variable.created.min(limit);
            variable.modified = variable.modified.min(limit);
            variable.versions.iter_mut().for_each(|version| version.index = version.index.min(limit));
            content.set(&key, Some(variable));
        }
    }
}

/// The variable with other items, as its next version; a new one if there was none.
fn with_items(before: Option<Variable>, at: Moment, by: &Actor, items: SealedItems) -> Variable {
    let number = before.as_ref().map_or(0, |before| before.current().number + 1);
    let (accessor, author) = match by {
        Actor::Caller(caller) => (caller.accessor.clone(), caller.name.clone()),
        Actor::Node(node) => (node.to_string(), "node".to_string()),
        Actor::Server(name) => (String::new(), name.clone()),
    };
    let version = Version { number, items, index: at.index, at: at.time, accessor, author };
    let mut variable = before.unwrap_or(Variable {
        created: at.index,
        created_at: at.time,
        modified: at.index,
        modified_at: at.time,
        lock: None,
        versions: Vec::new(),
    });
    variable.versions.push(version);
    if variable.versions.len() > VERSIONS_MAX {
        variable.versions.remove(0);
    }
    (variable.modified, variable.modified_at) = (at.index, at.time);
    variable
}
