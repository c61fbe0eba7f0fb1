#![warn(clippy::wildcard_enum_match_arm)]

use std::collections::BTreeSet;

use base::{Index, Uuid};
use model::event::{
    ForgottenErased, KeyTreeFounded, KeyTreeHolderRemoved, KeyTreeRequested, KeyTreeShared, SecretsForgotten,
    VariableForgotten,
};

use super::state::{Erasure, Forgotten, Holder};
use crate::moment::Moment;
use crate::{Delta, State};

impl Erasure {
    pub(crate) fn requested(&mut self, at: Moment, event: &KeyTreeRequested) {
        self.change(at.index, |content| {
            // One that was removed, or lost its tree, may have an older one on its disk: it has to say that it erased.
            let erased = content.holders.get(&event.server).map_or(Index::ZERO, |known| known.erased);
            let holder = Holder { public: event.public, sealed: None, has: None, erased };
            content.holders.insert(event.server, holder);
        });
    }

    /// `variables`: there were some before, which root keys encrypt.
    pub(crate) fn founded(&mut self, at: Moment, event: &KeyTreeFounded, variables: bool) {
        self.change(at.index, |content| {
            if content.tree.replace(event.tree).is_none() && variables {
                content.since = at.index;
            }
            for (server, holder) in &mut content.holders {
                let own = event.sealed.iter().find(|sealed| sealed.server == *server);
                (holder.sealed, holder.has) = (own.map(|sealed| sealed.bytes.clone()), None);
            }
        });
    }

    pub(crate) fn shared(&mut self, at: Moment, event: &KeyTreeShared) {
        self.change(at.index, |content| {
            assert_eq!(
                content.tree,
                Some(event.tree),
                "the tree that variables are encrypted with is shared"
            );
            let holder = content.holders.get_mut(&event.sealed.server);
            holder.expect("a tree is shared with whom requested it").sealed =
                Some(event.sealed.bytes.clone());
        });
    }

    pub(crate) fn secrets_forgotten(&mut self, at: Moment, event: &SecretsForgotten) {
        self.change(at.index, |content| {
            content.forgotten.push(Forgotten { key: event.of.clone(), at: at.index });
        });
    }

    pub(crate) fn erased(&mut self, at: Moment, event: &ForgottenErased) {
        self.change(at.index, |content| {
            let tree = content.tree;
            let holder = content.holders.get_mut(&event.server).expect("who erased has the tree");
            assert!(holder.erased <= event.up_to, "what was erased stays erased");
            *holder = Holder { sealed: None, has: tree, erased: event.up_to, ..holder.clone() };
        });
    }

    pub(crate) fn holder_removed(&mut self, at: Moment, event: &KeyTreeHolderRemoved) {
        self.change(at.index, |content| {
            content.holders.remove(&event.server).expect("the event names a server that has the tree");
        });
    }

    /// After a restore: servers have the tree that they had, and what was forgotten since stays so. What was forgotten in
    /// the log that the restored state comes from is forgotten here from now on.
    fn restored(&mut self, now: Index, from: &Erasure) {
        let missing: Vec<Forgotten> = {
            let known = |one: &Forgotten| self.forgotten().iter().filter(|own| own.key == one.key).count();
            let mut surplus = Vec::new();
            for (nth, one) in from.forgotten().iter().enumerate() {
                let before = from.forgotten()[..nth].iter().filter(|other| other.key == one.key).count();
                if before >= known(one) {
                    surplus.push(Forgotten { key: one.key.clone(), at: now });
                }
            }
            surplus
        };
        if !missing.is_empty() || self.changed() > Index::ZERO {
            self.change(now, |content| content.forgotten.extend(missing));
        }
    }
}

impl State {
    pub(crate) fn variable_forgotten(&mut self, at: Moment, event: &VariableForgotten, delta: &mut Delta) {
        self.erasure.change(at.index, |content| {
            content.forgotten.push(Forgotten { key: event.key.clone(), at: at.index });
        });
        if self.variables.get(&event.key).is_some() {
            self.variables.removed(at, &event.key, delta);
        }
    }

    /// The state that was restored, `self`, gets what is true of key trees now. It may hold what was forgotten since.
    pub(crate) fn erasure_restored(&mut self, at: Moment, now: &Erasure, delta: &mut Delta) {
        let from = std::mem::replace(&mut self.erasure, now.clone());
        self.erasure.restored(at.index, &from);
        let given_up: BTreeSet<Uuid> = self.erasure.given_up().into_iter().map(|(id, _)| id).collect();
        if given_up.is_empty() {
            return;
        }
        let held = self.variables.iter().filter(|(_, variable)| {
            variable.versions.iter().any(|version| given_up.contains(&version.items.sealed.key))
        });
        let held: Vec<_> = held.map(|(key, _)| key.clone()).collect();
        held.iter().for_each(|key| self.variables.removed(at, key, delta));
        self.acl.given_up(at, &given_up);
    }
}
