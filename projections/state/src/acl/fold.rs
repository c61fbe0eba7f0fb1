use std::collections::BTreeSet;

use base::{Index, Uuid};
use model::event::{
    AclTokenCreated, AclTokenIssuedByLogin, AclTokenUpdated, AclTokensDeleted, OneTimeTokenCreated,
    OneTimeTokenExchanged, OneTimeTokensExpired,
};
use model::{Doc, TokenSecret};

use super::state::{Acl, OneTimeToken, Token};
use crate::moment::Moment;

impl Acl {
    pub(crate) fn token_created(&mut self, at: Moment, event: &AclTokenCreated) {
        if event.bootstrap {
            self.change().bootstrapped = at.index;
        }
        self.token_made(at, event.accessor, &event.document, &event.secret);
    }

    pub(crate) fn token_issued(&mut self, at: Moment, event: &AclTokenIssuedByLogin) {
        self.token_made(at, event.accessor, &event.document, &event.secret);
    }

    fn token_made(&mut self, at: Moment, accessor: Uuid, document: &Doc, secret: &TokenSecret) {
        let content = self.change();
        content.changed = at.index;
        let token = Token {
            document: document.read(),
            secret: secret.clone(),
            created: at.index,
            modified: at.index,
        };
        assert!(!content.tokens.contains_key(&accessor), "an accessor is of one token");
        content.set(accessor, Some(token));
    }

    pub(crate) fn token_updated(&mut self, at: Moment, event: &AclTokenUpdated) {
        let content = self.change();
        content.changed = at.index;
        let before = content.tokens.get(&event.accessor).expect("the event names a token that is there");
        let token = Token { document: event.document.read(), modified: at.index, ..Token::clone(before) };
        content.set(event.accessor, Some(token));
    }

    pub(crate) fn tokens_deleted(&mut self, at: Moment, event: &AclTokensDeleted) {
        let content = self.change();
        content.changed = at.index;
        for accessor in &event.accessors {
            assert!(content.tokens.contains_key(accessor), "the event names tokens that are there");
            content.set(*accessor, None);
            content.one_time.remove(accessor);
        }
    }

    pub(crate) fn one_time_created(&mut self, at: Moment, event: &OneTimeTokenCreated) {
        let content = self.change();
        content.changed = at.index;
        let token = OneTimeToken { digest: event.digest, expires: event.expires, created: at.index };
        content.one_time.insert(event.accessor, token);
    }

    pub(crate) fn one_time_exchanged(&mut self, at: Moment, event: &OneTimeTokenExchanged) {
        let content = self.change();
        content.changed = at.index;
        content.one_time.remove(&event.accessor).expect("the event names one that is there");
    }

    pub(crate) fn one_time_expired(&mut self, at: Moment, event: &OneTimeTokensExpired) {
        let content = self.change();
        content.changed = at.index;
        for accessor in &event.accessors {
            content.one_time.remove(accessor).expect("the event names some that are there");
        }
    }

    /// What has a secret under one of these keys, which nobody can open, is not there: it was forgotten.
    pub(crate) fn given_up(&mut self, at: Moment, keys: &BTreeSet<Uuid>) {
        let lost: Vec<Uuid> = self
            .tokens()
            .filter(|(_, token)| keys.contains(&token.secret.sealed.key))
            .map(|(accessor, _)| accessor)
            .collect();
        if !lost.is_empty() {
            self.tokens_deleted(at, &AclTokensDeleted { accessors: lost, expired: false });
        }
        let is_lost = |name: &str| {
            let document = self.methods.get(name).map(|set| &set.document);
            let secrets = document.into_iter().flat_map(|own| [&own.client_secret, &own.private_key]);
            secrets.flatten().any(|sealed| keys.contains(&sealed.key))
        };
        let names = self.methods.names();
        let lost: Vec<String> = names.into_iter().filter(|name| is_lost(name)).map(str::to_string).collect();
        lost.iter().for_each(|name| self.methods.deleted(at, name));
    }

    /// Everything is as in the state that was restored. A cluster without access control keeps its digest.
    pub(crate) fn restored(&mut self, now: Index, before: &Acl) {
        if self.logins_changed().max(before.logins_changed()) != Index::ZERO {
            self.methods.restored(now);
            self.rules.restored(now);
        }
        if self.changed().max(before.changed()) == Index::ZERO {
            return;
        }
        self.policies.restored(now);
        self.roles.restored(now);
        self.change().changed = now;
    }

    /// Nothing was created or changed after `limit`.
    pub(crate) fn bring_back_to(&mut self, limit: Index) {
        if self.logins_changed() != Index::ZERO {
            self.methods.bring_back_to(limit);
            self.rules.bring_back_to(limit);
        }
        if self.changed() == Index::ZERO {
            return;
        }
        self.policies.bring_back_to(limit);
        self.roles.bring_back_to(limit);
        let content = self.change();
        content.changed = content.changed.min(limit);
        content.bootstrapped = content.bootstrapped.min(limit);
        let accessors: Vec<_> = content.tokens.keys().copied().collect();
        for accessor in accessors {
            let mut token = Token::clone(&content.tokens[&accessor]);
            (token.created, token.modified) = (token.created.min(limit), token.modified.min(limit));
            content.set(accessor, Some(token));
        }
        content.one_time.values_mut().for_each(|token| token.created = token.created.min(limit));
    }
}
