//! What a region has is what the authoritative one has decided, and nothing besides.

use std::collections::{BTreeMap, BTreeSet};

use model::document::{ACLAuthMethod, ACLRole, ACLToken, Bytes};
use state::State;
use state::acl::Acl;

/// How a region differs from the authoritative one in what all regions have in common.
pub(super) fn difference(there: &State, here: &State) -> Option<String> {
    let policies = |acl: &Acl| -> BTreeMap<String, String> {
        let names = acl.policies.names().into_iter();
        names.filter_map(|name| Some((name.to_string(), shown(&acl.policies.get(name)?.document)))).collect()
    };
    let namespaces = |state: &State| -> BTreeMap<String, String> {
        let names = state.namespaces.names().into_iter();
        names
            .filter_map(|name| Some((name.to_string(), shown(&state.namespaces.get(name)?.document))))
            .collect()
    };
    let pools = |state: &State| -> BTreeMap<String, String> {
        let plain = |name: &str| {
            let pool = state::pool::document(&state.pools, name)?;
            let hash = Bytes::default();
            Some(shown(&model::document::NodePool { create_index: 0, modify_index: 0, hash, ..pool }))
        };
        state.pools.names().into_iter().filter_map(|name| Some((name.to_string(), plain(name)?))).collect()
    };
    differs("policies", policies(&there.acl), policies(&here.acl))
        .or_else(|| differs("roles", roles(&there.acl), all_roles(&here.acl)))
        .or_else(|| differs("tokens", tokens(&there.acl), tokens(&here.acl)))
        .or_else(|| differs("namespaces", namespaces(there), namespaces(here)))
        .or_else(|| differs("pools", pools(there), pools(here)))
        .or_else(|| differs("auth methods", methods(&there.acl), methods(&here.acl)))
        .or_else(|| differs("binding rules", rules(&there.acl), rules(&here.acl)))
}

fn shown(document: &impl std::fmt::Debug) -> String {
    format!("{document:?}")
}

fn differs(what: &str, there: BTreeMap<String, String>, here: BTreeMap<String, String>) -> Option<String> {
    let names: BTreeSet<&String> = there.keys().chain(here.keys()).collect();
    let differing = names.into_iter().find(|name| there.get(*name) != here.get(*name))?;
    let of = |side: &BTreeMap<String, String>| side.get(differing).cloned().unwrap_or("nothing".to_string());
    Some(format!("{what}: {differing} is {} there and {} here", of(&there), of(&here)))
}

/// A policy that is not there gives nothing, and a role without one is none.
fn roles(acl: &Acl) -> BTreeMap<String, String> {
    acl.roles.names().into_iter().filter_map(|id| Some((id.to_string(), shown(&role(acl, id)?)))).collect()
}

fn role(acl: &Acl, id: &str) -> Option<ACLRole> {
    with_known_policies(acl, id).filter(|role| !role.policies.is_empty())
}

fn with_known_policies(acl: &Acl, id: &str) -> Option<ACLRole> {
    let mut role = acl.roles.get(id)?.document.clone();
    role.policies.retain(|link| acl.policies.exists(&link.name));
    Some(role)
}

/// Those that are there, whatever they give.
fn all_roles(acl: &Acl) -> BTreeMap<String, String> {
    let of = |id: &str| Some(shown(&with_known_policies(acl, id)?));
    acl.roles.names().into_iter().filter_map(|id| Some((id.to_string(), of(id)?))).collect()
}

/// Those of all regions: what they are called, and what they give.
fn tokens(acl: &Acl) -> BTreeMap<String, String> {
    let of = |token: &ACLToken| {
        let roles = token.roles.iter().map(|link| link.id.as_str());
        let roles: BTreeSet<&str> = roles.filter(|id| role(acl, id).is_some()).collect();
        let policies: BTreeSet<&String> = token.policies.iter().collect();
        (!roles.is_empty() || !policies.is_empty()).then(|| format!("{} {policies:?} {roles:?}", token.name))
    };
    let global = acl.tokens().filter(|(_, token)| token.document.global);
    let shown = global.filter_map(|(accessor, token)| {
        Some((accessor.to_string(), format!("{} {:?}", of(&token.document)?, token.secret.digest)))
    });
    shown.collect()
}

fn is_global(acl: &Acl, name: &str) -> bool {
    let method = acl.methods.get(name).map(|set| &set.document.method);
    method.is_some_and(|method| method.token_locality == ACLAuthMethod::GLOBAL)
}

fn methods(acl: &Acl) -> BTreeMap<String, String> {
    let global = acl.methods.names().into_iter().filter(|name| is_global(acl, name));
    global
        .filter_map(|name| Some((name.to_string(), shown(&acl.methods.get(name)?.document.method))))
        .collect()
}

/// Of methods that are not there they hold for nobody.
fn rules(acl: &Acl) -> BTreeMap<String, String> {
    let of = |id: &str| {
        let rule = &acl.rules.get(id)?.document;
        is_global(acl, &rule.auth_method).then(|| shown(rule))
    };
    acl.rules.names().into_iter().filter_map(|id| Some((id.to_string(), of(id)?))).collect()
}
