use std::collections::BTreeMap;
use std::sync::Arc;

use base::{Index, StableHash, Time, Uuid};
use model::document::{ACLBindingRule, ACLPolicy, ACLRole, ACLToken, AuthMethodRecord};
use model::{Doc, TokenSecret};
use serde::{Deserialize, Serialize};

use crate::domain::Domain;
use crate::names::{DocumentDomain, NamedDocument, NamedTable};

pub type Policies = NamedTable<ACLPolicy>;

/// By their ids.
pub type Roles = NamedTable<ACLRole>;

/// By their names.
pub type AuthMethods = NamedTable<AuthMethodRecord>;

/// By their ids.
pub type BindingRules = NamedTable<ACLBindingRule>;

impl NamedDocument for ACLPolicy {
    const BUILT_IN: &[&str] = &[];
    const DOMAIN: DocumentDomain = DocumentDomain(Domain::AclPolicies);
}

impl NamedDocument for ACLRole {
    const BUILT_IN: &[&str] = &[];
    const DOMAIN: DocumentDomain = DocumentDomain(Domain::AclRoles);
}

impl NamedDocument for AuthMethodRecord {
    const BUILT_IN: &[&str] = &[];
    const DOMAIN: DocumentDomain = DocumentDomain(Domain::AuthMethods);
}

impl NamedDocument for ACLBindingRule {
    const BUILT_IN: &[&str] = &[];
    const DOMAIN: DocumentDomain = DocumentDomain(Domain::BindingRules);
}

/// A clone copies pointers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Acl {
    pub policies: Policies,
    pub roles: Roles,
    /// How one can log in.
    pub methods: AuthMethods,
    /// What who logs in gets.
    pub rules: BindingRules,
    tokens: Arc<Content>,
}

/// All tokens. A change copies the maps, not the tokens, if a snapshot holds them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Content {
    pub tokens: BTreeMap<Uuid, Arc<Token>>,
    /// The secrets that were made for tokens, by the accessors of these.
    pub one_time: BTreeMap<Uuid, OneTimeToken>,
    /// When the first token was made.
    pub bootstrapped: Index,
    pub changed: Index,
    /// Accessors by the digests of the secrets.
    pub by_digest: BTreeMap<[u8; 32], Uuid>,
    /// The sum of the hashes of all tokens.
    pub sum: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Token {
    /// Without its secret.
    pub document: ACLToken,
    pub secret: TokenSecret,
    pub created: Index,
    pub modified: Index,
}

/// What can be exchanged for the secret of a token, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OneTimeToken {
    /// BLAKE3 of its secret.
    pub digest: [u8; 32],
    pub expires: Time,
    pub created: Index,
}

impl Acl {
    pub(crate) fn new(policies: Policies, roles: Roles, mut content: Content) -> Acl {
        content.by_digest = content.tokens.iter().map(|(id, token)| (token.secret.digest, *id)).collect();
        content.sum = content.recomputed_sum();
        Acl { policies, roles, tokens: Arc::new(content), ..Acl::default() }
    }

    /// By accessor.
    pub fn token(&self, accessor: Uuid) -> Option<&Token> {
        self.tokens.tokens.get(&accessor).map(|token| &**token)
    }

    /// The token whose secret this is the digest of.
    pub fn by_secret(&self, digest: &[u8; 32]) -> Option<(Uuid, &Token)> {
        let accessor = *self.tokens.by_digest.get(digest)?;
        Some((accessor, self.token(accessor)?))
    }

    /// In the order of their accessors.
    pub fn tokens(&self) -> impl Iterator<Item = (Uuid, &Token)> {
        self.tokens.tokens.iter().map(|(accessor, token)| (*accessor, &**token))
    }

    /// By the accessors of the tokens they stand for.
    pub fn one_time(&self) -> &BTreeMap<Uuid, OneTimeToken> {
        &self.tokens.one_time
    }

    /// When the first token was made; zero before.
    pub fn bootstrapped(&self) -> Index {
        self.tokens.bootstrapped
    }

    /// The last batch that changed a token.
    pub fn tokens_changed(&self) -> Index {
        self.tokens.changed
    }

    /// The last batch that changed what anybody may do.
    pub fn changed(&self) -> Index {
        self.policies.changed.max(self.roles.changed).max(self.tokens.changed)
    }

    /// The last batch that changed how one logs in, or what for.
    pub fn logins_changed(&self) -> Index {
        self.methods.changed.max(self.rules.changed)
    }

    pub(crate) fn change(&mut self) -> &mut Content {
        Arc::make_mut(&mut self.tokens)
    }

    pub(crate) fn is_same(&self, other: &Acl) -> bool {
        self.policies.is_same(&other.policies)
            && self.roles.is_same(&other.roles)
            && self.methods.is_same(&other.methods)
            && self.rules.is_same(&other.rules)
            && Arc::ptr_eq(&self.tokens, &other.tokens)
    }

    pub(crate) fn settle_digest(&mut self) {
        self.policies.settle_digest();
        self.roles.settle_digest();
        self.methods.settle_digest();
        self.rules.settle_digest();
    }

    /// Of policies, roles, tokens, auth methods and binding rules; zero for those that there never were.
    pub(crate) fn hashes(&self) -> [u64; 5] {
        let logins = [self.methods.hash(), self.rules.hash()];
        [self.policies.hash(), self.roles.hash(), self.tokens.hash(), logins[0], logins[1]]
    }
}

impl Content {
    pub fn set(&mut self, accessor: Uuid, token: Option<Token>) {
        if let Some(before) = self.tokens.remove(&accessor) {
            self.sum = self.sum.wrapping_sub(hash(accessor, &before));
            self.by_digest.remove(&before.secret.digest);
        }
        if let Some(token) = token {
            self.sum = self.sum.wrapping_add(hash(accessor, &token));
            self.by_digest.insert(token.secret.digest, accessor);
            self.tokens.insert(accessor, Arc::new(token));
        }
    }

    fn recomputed_sum(&self) -> u64 {
        self.tokens.iter().fold(0, |sum: u64, (id, token)| sum.wrapping_add(hash(*id, token)))
    }

    fn hash(&self) -> u64 {
        if self.changed == Index::ZERO {
            return 0;
        }
        let mut hash = StableHash::new(Domain::AclTokens as u64);
        hash.pair(self.changed.0, self.bootstrapped.0);
        hash.pair(self.sum, self.tokens.len() as u64);
        for (accessor, token) in &self.one_time {
            hash.id(*accessor);
            hash.bytes(&token.digest);
            hash.pair(token.expires.0 as u64, token.created.0);
        }
        hash.finish()
    }
}

fn hash(accessor: Uuid, token: &Token) -> u64 {
    let mut hash = StableHash::new(Domain::AclTokens as u64);
    hash.id(accessor);
    hash.bytes(&Doc::of(&token.document).0);
    hash.bytes(&token.secret.digest);
    hash.id(token.secret.sealed.key);
    hash.bytes(&token.secret.sealed.bytes);
    hash.pair(token.created.0, token.modified.0);
    hash.finish()
}
