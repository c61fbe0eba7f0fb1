//! What happened to access control, as the stream lists it: without secrets, and what was deleted as it was before.

use model::document::{ACLAuthMethod, ACLBindingRule, ACLPolicy, ACLRole, ACLToken};
use model::{Batch, Event};
use serde::Serialize;
use state::State;

use crate::entries::{Entry, Object};

/// Topic, key and type of a payload stand for one object.
const TOPICS: [&str; 5] = ["ACLAuthMethod", "ACLBindingRule", "ACLPolicy", "ACLRole", "ACLToken"];

/// The payload, under the name that Nomad gives it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum AccessDocument {
    #[serde(rename = "AuthMethod")]
    Method(Box<ACLAuthMethod>),
    #[serde(rename = "ACLBindingRule")]
    Rule(Box<ACLBindingRule>),
    #[serde(rename = "ACLPolicy")]
    Policy(Box<ACLPolicy>),
    #[serde(rename = "ACLRole")]
    Role(Box<ACLRole>),
    #[serde(rename = "ACLToken")]
    Token(Box<ACLToken>),
}

/// One object that a batch names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Named {
    topic: &'static str,
    kind: &'static str,
    key: String,
}

/// The objects that a batch names, and those of them that it deletes.
pub(crate) struct Access {
    /// With the positions of their commands, and of the facts.
    named: Vec<(Named, u16, u16)>,
    deleted: Vec<(Named, AccessDocument)>,
}

impl Access {
    /// `state` is the one before the batch.
    pub(crate) fn of(state: &State, batch: &Batch) -> Access {
        let mut access = Access { named: Vec::new(), deleted: Vec::new() };
        for (fact, logged) in batch.events.iter().enumerate() {
            for named in named(&logged.event) {
                if named.kind.ends_with("Deleted")
                    && let Some(document) = document(state, &named)
                {
                    access.deleted.push((named.clone(), document));
                }
                if access.named.iter().all(|(known, ..)| *known != named) {
                    access.named.push((named, logged.command, fact as u16));
                }
            }
        }
        access
    }

    /// Entries for all of them, to stand behind everything else of the batch: ids of events that readers have stored stay what
    /// they were. What came and went within the batch was never seen by anybody.
    pub(crate) fn entries(self, state: &State) -> Vec<Entry> {
        let Access { named, deleted } = self;
        let mut entries = Vec::new();
        for (named, command, fact) in named {
            let shown = match deleted.iter().find(|(known, _)| *known == named) {
                Some((_, document)) => Some(document.clone()),
                None => document(state, &named).filter(|_| !named.kind.ends_with("Deleted")),
            };
            if let Some(document) = shown {
                entries.push(Entry { command, fact, ..entry(named, document) });
            }
        }
        entries
    }
}

fn entry(named: Named, document: AccessDocument) -> Entry {
    let filter_keys = match &document {
        AccessDocument::Role(role) => vec![role.name.clone()],
        AccessDocument::Rule(rule) => vec![rule.auth_method.clone()],
        AccessDocument::Method(_) | AccessDocument::Policy(_) | AccessDocument::Token(_) => Vec::new(),
    };
    Entry {
        topic: named.topic,
        kind: named.kind,
        key: named.key,
        namespace: String::new(),
        filter_keys,
        object: Object::Access(document),
        command: 0,
        fact: 0,
    }
}

fn named(event: &Event) -> Vec<Named> {
    let one = |topic: usize, kind: &'static str, key: String| vec![Named { topic: TOPICS[topic], kind, key }];
    match event {
        Event::AclAuthMethodUpserted(e) => one(0, "ACLAuthMethodUpserted", e.name.clone()),
        Event::AclAuthMethodDeleted(e) => one(0, "ACLAuthMethodDeleted", e.name.clone()),
        Event::AclBindingRuleUpserted(e) => one(1, "ACLBindingRuleUpserted", e.rule.to_string()),
        Event::AclBindingRuleDeleted(e) => one(1, "ACLBindingRuleDeleted", e.rule.to_string()),
        Event::AclPolicyUpserted(e) => one(2, "ACLPolicyUpserted", e.name.clone()),
        Event::AclPolicyDeleted(e) => one(2, "ACLPolicyDeleted", e.name.clone()),
        Event::AclRoleUpserted(e) => one(3, "ACLRoleUpserted", e.role.to_string()),
        Event::AclRoleDeleted(e) => one(3, "ACLRoleDeleted", e.role.to_string()),
        Event::AclTokenCreated(e) => one(4, "ACLTokenUpserted", e.accessor.to_string()),
        Event::AclTokenUpdated(e) => one(4, "ACLTokenUpserted", e.accessor.to_string()),
        Event::AclTokenIssuedByLogin(e) => one(4, "ACLTokenUpserted", e.accessor.to_string()),
        Event::AclTokensDeleted(e) => {
            let all = e.accessors.iter();
            all.flat_map(|accessor| one(4, "ACLTokenDeleted", accessor.to_string())).collect()
        }
        // The others are not of access control.
        _ => Vec::new(),
    }
}

fn document(state: &State, named: &Named) -> Option<AccessDocument> {
    current(state, named.topic, &named.key)
}

/// The object of that topic and key.
pub(crate) fn current(state: &State, topic: &str, key: &str) -> Option<AccessDocument> {
    let acl = &state.acl;
    match topic {
        "ACLAuthMethod" => {
            state::acl::auth_method(acl, key).map(|method| AccessDocument::Method(Box::new(method)))
        }
        "ACLBindingRule" => {
            state::acl::binding_rule(acl, key).map(|rule| AccessDocument::Rule(Box::new(rule)))
        }
        "ACLPolicy" => state::acl::policy(acl, key).map(|policy| AccessDocument::Policy(Box::new(policy))),
        "ACLRole" => {
            state::acl::role(acl, key.parse().ok()?).map(|role| AccessDocument::Role(Box::new(role)))
        }
        _ => state::acl::token(acl, key.parse().ok()?).map(|token| AccessDocument::Token(Box::new(token))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_can_ask_for_each_topic() {
        assert!(TOPICS.iter().all(|topic| api::TOPICS.contains(topic)));
    }
}
