#![warn(clippy::wildcard_enum_match_arm)]

use base::{Index, Uuid};
use model::event::{
    RootKeyActivated, RootKeyRemoved, RootKeySealed, RootKeysRekeyed, RootKeysRekeying, ServerKeyAnnounced,
};

use super::state::{Content, Keyring, RootKey, ServerKey};
use crate::moment::Moment;

/// Servers that keys are sealed for; one more replaces the one that was announced first. A cluster has a few, and
/// each that was set up anew is another one.
const SERVERS_MAX: usize = 64;

impl Keyring {
    pub(crate) fn server_announced(&mut self, at: Moment, event: &ServerKeyAnnounced) {
        let content = self.change();
        content.changed = at.index;
        // What was sealed for its old key is of no use to it.
        content.forget_server(event.server);
        if content.servers.len() >= SERVERS_MAX {
            let first = content.servers.iter().min_by_key(|(id, key)| (key.announced, **id));
            let first = *first.expect("there are as many as may be").0;
            content.forget_server(first);
        }
        content.servers.insert(event.server, ServerKey { public: event.public, announced: at.index });
    }

    pub(crate) fn root_key_activated(&mut self, at: Moment, event: &RootKeyActivated) {
        let content = self.change();
        content.changed = at.index;
        if let Some(before) = content.active.replace(event.key) {
            content.key(before).modified = at.index;
        }
        let key = RootKey {
            modulus: event.modulus.clone(),
            exponent: event.exponent.clone(),
            sealed: event.sealed.iter().map(|sealed| (sealed.server, sealed.bytes.clone())).collect(),
            created_at: at.time,
            created: at.index,
            modified: at.index,
        };
        content.keys.insert(event.key, key);
    }

    pub(crate) fn root_key_sealed(&mut self, at: Moment, event: &RootKeySealed) {
        let content = self.change();
        content.changed = at.index;
        let key = content.key(event.key);
        key.sealed.insert(event.sealed.server, event.sealed.bytes.clone());
        key.modified = at.index;
    }

    pub(crate) fn root_key_removed(&mut self, at: Moment, event: &RootKeyRemoved) {
        let content = self.change();
        content.changed = at.index;
        assert_ne!(content.active, Some(event.key), "the active key is not removed");
        content.keys.remove(&event.key);
        content.rekeying.remove(&event.key);
    }

    pub(crate) fn rekeying_began(&mut self, at: Moment, event: &RootKeysRekeying) {
        let content = self.change();
        content.changed = at.index;
        for key in &event.keys {
            assert_ne!(content.active, Some(*key), "only former keys are replaced");
            content.key(*key).modified = at.index;
            content.rekeying.insert(*key);
        }
    }

    pub(crate) fn rekeyed(&mut self, at: Moment, event: &RootKeysRekeyed) {
        let content = self.change();
        content.changed = at.index;
        for key in &event.keys {
            assert!(content.rekeying.remove(key), "the event names keys that are being replaced");
            content.key(*key).modified = at.index;
        }
    }

    /// After a restore: the servers and what they sign with stay; keys of the restored state still prove what they
    /// signed.
    pub(crate) fn restored(&mut self, now: Index, from: &Keyring) {
        if from.keys().keys().all(|key| self.keys().contains_key(key)) {
            return;
        }
        let content = self.change();
        content.changed = now;
        for (id, key) in from.keys() {
            let key = RootKey { created: key.created.min(now), modified: now, ..key.clone() };
            content.keys.entry(*id).or_insert(key);
        }
    }
}

impl Content {
    fn key(&mut self, key: Uuid) -> &mut RootKey {
        self.keys.get_mut(&key).expect("a key that was decided on is there")
    }

    fn forget_server(&mut self, server: Uuid) {
        if self.servers.remove(&server).is_some() {
            self.keys.values_mut().for_each(|key| _ = key.sealed.remove(&server));
        }
    }
}
