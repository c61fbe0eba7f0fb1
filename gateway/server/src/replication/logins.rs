//! How one logs in for a token of all regions: auth methods whose tokens are global, and their binding rules.
//!
//! Lists show neither in full, so each is read by itself, once for each hash that a list has shown for it.

use std::collections::{BTreeMap, BTreeSet};

use api::{ACLAuthMethodListStub, ACLBindingRuleListStub};
use model::Command;
use model::document::{ACLAuthMethod, ACLBindingRule, Bytes};
use state::State;

use super::compare::Changes;
use super::{Replication, ReplicationError, waiting};

/// Shows too how new auth methods are, so that waiting for rules is waiting for both.
const RULES: &str = "/v1/acl/binding-rules";

/// What was read of the authoritative region, by name. Never more than its lists show: what is gone there is forgotten. A hash
/// stands for its document, so nothing in it can be wrong: to lose it costs the time to read it again.
#[derive(Default)]
pub(super) struct Seen {
    methods: BTreeMap<String, (Bytes, ACLAuthMethod)>,
    rules: BTreeMap<String, (Bytes, ACLBindingRule)>,
}

impl Replication {
    /// Waits until rules or methods are newer than this. How new they are, and what they ask for.
    pub(super) async fn compare_logins(
        &self,
        seen: &mut Seen,
        index: u64,
    ) -> Result<(u64, Changes), ReplicationError> {
        let (newer, rules) = self.read::<Vec<ACLBindingRuleListStub>>(&waiting(RULES, index)).await?;
        let methods = self.read::<Vec<ACLAuthMethodListStub>>("/v1/acl/auth-methods").await?.1;
        seen.methods.retain(|name, _| methods.iter().any(|method| method.name == *name));
        for ACLAuthMethodListStub { name, hash, .. } in methods {
            let is_known = seen.methods.get(&name).is_some_and(|(known, _)| *known == hash);
            if !is_known && let Some(method) = self.find(&format!("/v1/acl/auth-method/{name}")).await? {
                seen.methods.insert(name, (hash, method));
            }
        }
        let ids: BTreeSet<&str> = rules.iter().map(|rule| rule.id.as_str()).collect();
        seen.rules.retain(|id, _| ids.contains(id.as_str()));
        for ACLBindingRuleListStub { id, auth_method, hash, .. } in rules {
            let is_shared = seen.methods.get(&auth_method).is_some_and(|(_, method)| is_global(method));
            let is_known = seen.rules.get(&id).is_some_and(|(known, _)| *known == hash);
            if is_shared
                && !is_known
                && let Some(rule) = self.find(&format!("/v1/acl/binding-rule/{id}")).await?
            {
                seen.rules.insert(id, (hash, rule));
            }
        }
        let methods = seen.methods.values().map(|(_, method)| method);
        let rules = seen.rules.values().map(|(_, rule)| rule);
        Ok((newer, compare(&self.control.state(), methods, rules)))
    }
}

fn is_global(method: &ACLAuthMethod) -> bool {
    method.token_locality == ACLAuthMethod::GLOBAL
}

/// What is for tokens of this region alone is its own business, on both sides.
fn compare<'a>(
    state: &State,
    methods: impl Iterator<Item = &'a ACLAuthMethod>,
    rules: impl Iterator<Item = &'a ACLBindingRule>,
) -> Changes {
    let mut changes = Changes::default();
    let mut methods: Vec<&ACLAuthMethod> = methods.filter(|method| is_global(method)).collect();
    // One is the default: the one that was it makes room.
    methods.sort_by_key(|method| method.default);
    let names: BTreeSet<&str> = methods.iter().map(|method| method.name.as_str()).collect();
    let rules: Vec<&ACLBindingRule> =
        rules.filter(|rule| names.contains(rule.auth_method.as_str())).collect();
    let ids: BTreeSet<&str> = rules.iter().map(|rule| rule.id.as_str()).collect();
    let own = |name: &str| state.acl.methods.get(name).map(|set| &set.document.method);

    for id in state.acl.rules.names().into_iter().filter(|id| !ids.contains(id)) {
        let method = state.acl.rules.get(id).and_then(|set| own(&set.document.auth_method));
        if let (true, Ok(rule)) = (method.is_some_and(is_global), id.parse()) {
            changes.command(Command::DeleteBindingRule { rule });
        }
    }
    for name in state.acl.methods.names().into_iter().filter(|name| !names.contains(name)) {
        if own(name).is_some_and(is_global) {
            changes.command(Command::DeleteAuthMethod { name: name.to_string() });
        }
    }
    for method in methods {
        match own(&method.name) {
            Some(known) if !is_global(known) => {
                let name = &method.name;
                changes.wait(format!("auth method {name}: this region has one of its own with this name"));
            }
            Some(known) if *known == without_indexes(method) => {}
            _ => changes.command(Command::CopyAuthMethod(Box::new(method.clone()))),
        }
    }
    for rule in rules.into_iter().filter(|rule| own(&rule.auth_method).is_none_or(is_global)) {
        let plain =
            ACLBindingRule { create_index: 0, modify_index: 0, hash: Bytes::default(), ..rule.clone() };
        if state.acl.rules.get(&rule.id).is_none_or(|set| set.document != plain) {
            changes.command(Command::CopyBindingRule(Box::new(plain)));
        }
    }
    changes
}

fn without_indexes(method: &ACLAuthMethod) -> ACLAuthMethod {
    ACLAuthMethod { create_index: 0, modify_index: 0, hash: Bytes::default(), ..method.clone() }
}
