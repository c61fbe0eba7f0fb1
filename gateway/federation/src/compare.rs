//! What a list of the authoritative region asks of this one.

use std::collections::{BTreeMap, BTreeSet};

use api::{ACLPolicyListStub, ACLTokenListStub};
use base::{Index, Time, Uuid};
use model::Command;
use model::document::{ACLRole, ACLToken, Namespace, NodePool};
use state::State;

/// A list that shows in full what it is about, or what it takes to see whether it differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    Policies,
    Roles,
    Tokens,
    Namespaces,
    Pools,
}

/// What is to be done, deletions first: names become free.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub changes: Vec<Change>,
    /// What cannot be done before something else is here.
    pub waits: Option<String>,
}

#[derive(Debug)]
pub(crate) enum Change {
    Command(Box<Command>),
    /// The policy of this name is to be read, and set here.
    Policy(String),
    /// The same of a token, whose secret is not in lists. It is to have these links.
    Token(Box<ACLTokenListStub>),
    /// Roles name policies that are not here.
    MissingPolicies(Vec<Missing>),
    /// Tokens name roles that are not here.
    MissingRoles(Vec<Missing>),
}

/// What is named there and is not here. It may be on its way, or not be there either.
#[derive(Debug)]
pub(crate) struct Missing {
    why: String,
    names: Vec<String>,
    /// What is to be done if nothing of it is on its way.
    otherwise: Option<Command>,
}

impl List {
    pub const ALL: [List; 5] = [List::Policies, List::Roles, List::Tokens, List::Namespaces, List::Pools];

    pub fn path(self) -> &'static str {
        match self {
            List::Policies => "/v1/acl/policies",
            List::Roles => "/v1/acl/roles",
            List::Tokens => "/v1/acl/tokens",
            List::Namespaces => "/v1/namespaces",
            List::Pools => "/v1/node/pools",
        }
    }

    /// What it shows, for people.
    pub(crate) fn name(self) -> &'static str {
        match self {
            List::Policies => "policies",
            List::Roles => "roles",
            List::Tokens => "tokens",
            List::Namespaces => "namespaces",
            List::Pools => "node pools",
        }
    }

    /// How new it is in a region that has this state. Whoever waits for something newer misses nothing that it shows.
    pub fn changed(self, state: &State) -> Index {
        let changed = match self {
            List::Policies => state.acl.policies.changed,
            List::Roles => state.acl.changed(),
            // A role comes once one of its policies does, and a token with it.
            List::Tokens => state.acl.changed(),
            List::Namespaces => state.namespaces.changed,
            List::Pools => state.pools.changed,
        };
        changed.max(Index(1))
    }

    /// # Errors
    /// The list is something else.
    pub(crate) fn compare(self, state: &State, list: &[u8], now: Time) -> Result<Changes, serde_json::Error> {
        Ok(match self {
            List::Policies => policies(state, serde_json::from_slice(list)?),
            List::Roles => roles(state, serde_json::from_slice(list)?),
            List::Tokens => tokens(state, serde_json::from_slice(list)?, now),
            List::Namespaces => namespaces(state, serde_json::from_slice(list)?),
            List::Pools => pools(state, serde_json::from_slice(list)?),
        })
    }
}

impl Changes {
    pub(crate) fn command(&mut self, command: Command) {
        self.changes.push(Change::Command(Box::new(command)));
    }

    pub(crate) fn wait(&mut self, why: String) {
        self.waits.get_or_insert(why);
    }
}

impl Missing {
    /// A role comes with its policies: what is missing of it are those. One that is not there does not come.
    pub(crate) fn of_roles(self, there: &[ACLRole]) -> Missing {
        let roles = there.iter().filter(|role| self.names.contains(&role.id));
        let policies = roles.flat_map(|role| role.policies.iter().map(|link| link.name.clone()));
        Missing { names: policies.collect(), ..self }
    }
}

/// What follows once it is known which policies there are: what is on its way is waited for, and what is not needs no second look
/// before the list changes.
pub(crate) fn resolve(missing: Vec<Missing>, there: &[ACLPolicyListStub]) -> Changes {
    let there: BTreeSet<&str> = there.iter().map(|policy| policy.name.as_str()).collect();
    let mut changes = Changes::default();
    for one in missing {
        let comes = one.names.iter().any(|name| there.contains(name.as_str()));
        match one.otherwise {
            _ if comes => changes.wait(one.why),
            Some(command) => changes.command(command),
            None => {}
        }
    }
    changes
}

fn policies(state: &State, there: Vec<ACLPolicyListStub>) -> Changes {
    let mut changes = Changes::default();
    let names: BTreeSet<&str> = there.iter().map(|policy| policy.name.as_str()).collect();
    for name in state.acl.policies.names().into_iter().filter(|name| !names.contains(name)) {
        changes.command(Command::DeleteAclPolicy { name: name.to_string() });
    }
    for policy in there {
        let own = state::acl::policy(&state.acl, &policy.name);
        if own.is_none_or(|own| own.hash != policy.hash) {
            changes.changes.push(Change::Policy(policy.name));
        }
    }
    changes
}

fn roles(state: &State, mut there: Vec<ACLRole>) -> Changes {
    let mut changes = Changes::default();
    let ids: BTreeSet<&str> = there.iter().map(|role| role.id.as_str()).collect();
    for id in state.acl.roles.names().into_iter().filter(|id| !ids.contains(id)) {
        if let Ok(role) = id.parse() {
            changes.command(Command::DeleteAclRole { role });
        }
    }
    let mut missing: Vec<Missing> = Vec::new();
    for role in &mut there {
        // A policy that is not here gives nothing, and may be on its way.
        let (here, not): (Vec<_>, Vec<_>) = std::mem::take(&mut role.policies.0)
            .into_iter()
            .partition(|link| state.acl.policies.exists(&link.name));
        let gives_nothing = here.is_empty() && state.acl.roles.exists(&role.id);
        let otherwise = role.id.parse().ok().filter(|_| gives_nothing);
        let otherwise = otherwise.map(|role| Command::DeleteAclRole { role });
        if otherwise.is_some() || !not.is_empty() {
            let names: Vec<String> = not.into_iter().map(|link| link.name).collect();
            let why = format!("role {}: policies {} are not here", role.id, names.join(", "));
            missing.push(Missing { why, names, otherwise });
        }
        role.policies = here.into();
        role.policies.sort();
        role.policies.dedup();
    }
    make_room(state, &there, &mut changes);
    for role in there {
        let own = state.acl.roles.get(&role.id).map(|own| &own.document);
        let is_same = |own: &ACLRole| {
            (&own.name, &own.description, &own.policies) == (&role.name, &role.description, &role.policies)
        };
        match own {
            _ if role.policies.is_empty() => {}
            None => changes.command(Command::CreateAclRole(Box::new(role))),
            Some(own) if !is_same(own) => changes.command(Command::UpdateAclRole(Box::new(role))),
            Some(_) => {}
        }
    }
    if !missing.is_empty() {
        changes.changes.push(Change::MissingPolicies(missing));
    }
    changes
}

/// A name can be taken once its holder has another one. Two may have taken each other's, so a holder that is to have another name
/// is called by its id until its turn comes.
fn make_room(state: &State, there: &[ACLRole], changes: &mut Changes) {
    let names: BTreeMap<&str, &str> =
        there.iter().map(|role| (role.name.as_str(), role.id.as_str())).collect();
    for id in state.acl.roles.names() {
        let Some(own) = state.acl.roles.get(id).map(|own| &own.document) else { continue };
        let stays = there.iter().any(|role| role.id == id);
        let is_taken = names.get(own.name.as_str()).is_some_and(|by| *by != id);
        if !stays || !is_taken {
            continue;
        }
        let mut moved = ACLRole { name: id.to_string(), ..own.clone() };
        moved.policies.retain(|link| state.acl.policies.exists(&link.name));
        match id.parse() {
            Ok(role) if moved.policies.is_empty() => changes.command(Command::DeleteAclRole { role }),
            _ => changes.command(Command::UpdateAclRole(Box::new(moved))),
        }
    }
}

/// Those of one region alone are its own business.
fn tokens(state: &State, there: Vec<ACLTokenListStub>, now: Time) -> Changes {
    let mut changes = Changes::default();
    let there: Vec<ACLTokenListStub> = there.into_iter().filter(|token| token.global).collect();
    let ids: BTreeSet<&str> = there.iter().map(|token| token.accessor_id.as_str()).collect();
    let global = state.acl.tokens().filter(|(_, token)| token.document.global);
    let gone: Vec<Uuid> = global
        .map(|(accessor, _)| accessor)
        .filter(|accessor| !ids.contains(accessor.to_string().as_str()))
        .collect();
    if !gone.is_empty() {
        changes.command(Command::DeleteAclTokens { accessors: gone });
    }
    let mut missing: Vec<Missing> = Vec::new();
    for mut token in there {
        let Ok(accessor) = token.accessor_id.parse::<Uuid>() else { continue };
        let has_ended = token.expiration_time.as_ref().and_then(|at| at.0).is_some_and(|at| at <= now);
        if has_ended {
            continue;
        }
        let (here, not): (Vec<_>, Vec<_>) =
            std::mem::take(&mut token.roles.0).into_iter().partition(|link| state.acl.roles.exists(&link.id));
        token.roles = here.into();
        let gives_nothing =
            token.kind == ACLToken::CLIENT && token.policies.is_empty() && token.roles.is_empty();
        let own = state::acl::token(&state.acl, accessor);
        // Whatever it gave here is not what it gives there.
        let ends = gives_nothing && own.as_ref().is_some_and(|own| own.global);
        let otherwise = ends.then(|| Command::DeleteAclTokens { accessors: vec![accessor] });
        if otherwise.is_some() || !not.is_empty() {
            let names: Vec<String> = not.into_iter().map(|link| link.id).collect();
            let why = format!("token {accessor}: roles {} are not here", names.join(", "));
            missing.push(Missing { why, names, otherwise });
        }
        match own {
            _ if gives_nothing => {}
            None => changes.changes.push(Change::Token(Box::new(token))),
            Some(own) if own.global && !has_same_links(&own, &token) => {
                let wanted =
                    ACLToken { name: token.name, policies: token.policies, roles: token.roles, ..own };
                changes.command(Command::UpdateAclToken(Box::new(wanted)));
            }
            Some(_) => {}
        }
    }
    if !missing.is_empty() {
        changes.changes.push(Change::MissingRoles(missing));
    }
    changes
}

/// What of a token may change.
fn has_same_links(own: &ACLToken, token: &ACLTokenListStub) -> bool {
    let sorted = |words: Vec<&String>| words.into_iter().cloned().collect::<BTreeSet<String>>();
    own.name == token.name
        && sorted(own.policies.iter().collect()) == sorted(token.policies.iter().collect())
        && sorted(own.roles.iter().map(|link| &link.id).collect())
            == sorted(token.roles.iter().map(|link| &link.id).collect())
}

fn namespaces(state: &State, there: Vec<Namespace>) -> Changes {
    let mut changes = Changes::default();
    let names: BTreeSet<&str> = there.iter().map(|namespace| namespace.name.as_str()).collect();
    for name in state.namespaces.names().into_iter().filter(|name| !names.contains(name)) {
        changes.command(Command::DeleteNamespace { name: name.to_string() });
    }
    for namespace in there {
        let own = state::namespace::document(&state.namespaces, &namespace.name);
        if own.is_none_or(|own| own.hash != namespace.hash) {
            changes.command(Command::UpsertNamespace(Box::new(namespace)));
        }
    }
    changes
}

/// Those that came with the cluster are never touched, nor one that a node of this region has made by being in it.
fn pools(state: &State, there: Vec<NodePool>) -> Changes {
    let mut changes = Changes::default();
    let is_built_in = |name: &str| name == state::pool::DEFAULT || name == state::pool::ALL;
    let names: BTreeSet<&str> = there.iter().map(|pool| pool.name.as_str()).collect();
    let mut nodes = state.nodes.rows().map(|row| &state.nodes.cold(row).document.node_pool);
    let used: BTreeSet<&String> = nodes.by_ref().collect();
    let gone = state.pools.names().into_iter().filter(|name| !names.contains(name) && !is_built_in(name));
    for name in gone.filter(|name| !used.contains(&(*name).to_string())) {
        changes.command(Command::DeleteNodePool { name: name.to_string() });
    }
    for pool in there.into_iter().filter(|pool| !is_built_in(&pool.name)) {
        let own = state::pool::document(&state.pools, &pool.name);
        if own.is_none_or(|own| own.hash != pool.hash) {
            changes.command(Command::UpsertNodePool(Box::new(pool)));
        }
    }
    changes
}
