//! How one logs in for a token of all regions: auth methods whose tokens are global, and their binding rules.
//!
//! Lists show neither in full, so each is read by itself, once for each hash that a list has shown for it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use api::{ACLAuthMethodListStub, ACLBindingRuleListStub};
use base::Index;
use model::Command;
use model::document::{ACLAuthMethod, ACLBindingRule, Bytes};
use state::State;

use crate::compare::Changes;
use crate::follower::{Answer, Failure, parsed, waiting, why};

/// Shows too how new auth methods are, so that waiting for rules is waiting for both.
const RULES: &str = "/v1/acl/binding-rules";
const METHODS: &str = "/v1/acl/auth-methods";

/// What was read of the authoritative region, by name. Never more than its lists show: what is gone there is forgotten. A hash
/// stands for its document, so nothing in it can be wrong: to lose it costs the time to read it again.
#[derive(Debug, Default)]
pub(crate) struct Logins {
    methods: BTreeMap<String, (Bytes, ACLAuthMethod)>,
    rules: BTreeMap<String, (Bytes, ACLBindingRule)>,
    /// How new the list of rules is, and what it showed.
    index: u64,
    listed: Vec<ACLBindingRuleListStub>,
    reads: Reads,
    /// What is to be read in this turn.
    left: VecDeque<(String, Bytes)>,
}

/// What is being read.
#[derive(Debug, Default)]
enum Reads {
    #[default]
    Rules,
    Methods,
    Method,
    Rule,
    Nothing,
}

/// How new the list of rules is in a region that has this state, and that of methods with it.
pub fn changed(state: &State) -> Index {
    state.acl.logins_changed().max(Index(1))
}

impl Logins {
    /// What is read first: rules or methods that are newer than this.
    pub(crate) fn begin(&mut self, index: u64) -> String {
        self.reads = Reads::Rules;
        self.left.clear();
        waiting(RULES, index)
    }

    /// The answer to what was read last.
    ///
    /// # Errors
    /// It cannot be used.
    pub(crate) fn take(&mut self, answer: Result<Answer, Failure>) -> Result<(), String> {
        match self.reads {
            Reads::Rules => {
                let answer = answer.map_err(why)?;
                (self.index, self.listed) = (answer.index, parsed(RULES, &answer)?);
                self.reads = Reads::Methods;
            }
            Reads::Methods => {
                let methods: Vec<ACLAuthMethodListStub> = parsed(METHODS, &answer.map_err(why)?)?;
                self.methods.retain(|name, _| methods.iter().any(|method| method.name == *name));
                let unknown = methods.into_iter().filter(|method| {
                    self.methods.get(&method.name).is_none_or(|(known, _)| *known != method.hash)
                });
                self.left = unknown.map(|method| (method.name, method.hash)).collect();
                self.reads = Reads::Method;
                self.rules_if_all_methods_are_read();
            }
            Reads::Method => {
                if let (Some((name, hash)), Some(method)) =
                    (self.left.pop_front(), found("an auth method", answer)?)
                {
                    self.methods.insert(name, (hash, method));
                }
                self.rules_if_all_methods_are_read();
            }
            Reads::Rule => {
                if let (Some((id, hash)), Some(rule)) =
                    (self.left.pop_front(), found("a binding rule", answer)?)
                {
                    self.rules.insert(id, (hash, rule));
                }
            }
            Reads::Nothing => unreachable!("nothing was asked"),
        }
        Ok(())
    }

    fn rules_if_all_methods_are_read(&mut self) {
        if !self.left.is_empty() {
            return;
        }
        let listed = std::mem::take(&mut self.listed);
        let ids: BTreeSet<&str> = listed.iter().map(|rule| rule.id.as_str()).collect();
        self.rules.retain(|id, _| ids.contains(id.as_str()));
        let unknown = listed.into_iter().filter(|rule| {
            let is_shared = self.methods.get(&rule.auth_method).is_some_and(|(_, method)| is_global(method));
            is_shared && self.rules.get(&rule.id).is_none_or(|(known, _)| *known != rule.hash)
        });
        self.left = unknown.map(|rule| (rule.id, rule.hash)).collect();
        self.reads = Reads::Rule;
    }

    /// What is read next; nothing, once all is here.
    pub(crate) fn next(&mut self) -> Option<String> {
        let first = self.left.front().map(|(name, _)| name.as_str());
        match (&self.reads, first) {
            (Reads::Methods, _) => Some(METHODS.to_string()),
            (Reads::Method, Some(name)) => Some(format!("/v1/acl/auth-method/{name}")),
            (Reads::Rule, Some(id)) => Some(format!("/v1/acl/binding-rule/{id}")),
            _ => {
                self.reads = Reads::Nothing;
                None
            }
        }
    }

    pub(crate) fn index(&self) -> u64 {
        self.index
    }

    pub(crate) fn compare(&self, state: &State) -> Changes {
        let methods = self.methods.values().map(|(_, method)| method);
        let rules = self.rules.values().map(|(_, rule)| rule);
        compare(state, methods, rules)
    }
}

/// Nothing, if it is gone meanwhile.
fn found<T: serde::de::DeserializeOwned>(
    what: &str,
    answer: Result<Answer, Failure>,
) -> Result<Option<T>, String> {
    match answer {
        Ok(answer) => parsed(what, &answer).map(Some),
        Err(Failure::Gone(_)) => Ok(None),
        Err(failure) => Err(why(failure)),
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
