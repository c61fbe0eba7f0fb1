//! The whole state as JSON, table by table: for those who look at a log or a snapshot without a server.

use serde_json::{Value, json};
use state::State;
use state::volume::{Document, Registered};

use crate::request::as_json;
use crate::routes::{autopilot, keyring, scheduler};
use crate::view;

/// The rows of a table, made as they are asked for.
pub type Rows<'s> = Box<dyn Iterator<Item = Value> + 's>;

/// Every table by its name, objects in the form that the API shows them in. What is sealed is left out: items of variables,
/// secrets of tokens and of auth methods, private halves of root keys.
pub fn tables(state: &State) -> Vec<(&'static str, Rows<'_>)> {
    let mut tables = work(state);
    tables.extend(settings(state));
    tables.extend(access(state));
    tables
}

/// What runs, and where.
fn work(state: &State) -> Vec<(&'static str, Rows<'_>)> {
    let nodes = state.nodes.rows().map(|row| as_json(&state::node::document(&state.nodes, row)));
    let versions = state.jobs.iter().flat_map(|(_, job)| {
        job.versions.iter().map(move |version| as_json(&state::job::document(job, version)))
    });
    let evals = state.evals.iter().map(|(_, eval)| as_json(&state::eval::document(state, eval)));
    let deployments = state.deployments.iter();
    let deployments = deployments.map(|(_, one)| as_json(&state::deployment::document(state, one)));
    // Jobs stand in their own table.
    let allocs = state.allocs.iter().map(|(_, alloc)| as_json(&state::alloc::without_job(state, alloc)));
    let services = state.services.iter().map(|row| as_json(&feed::registration(row)));
    vec![
        ("Nodes", Box::new(nodes)),
        ("JobVersions", Box::new(versions)),
        ("Evals", Box::new(evals)),
        ("Deployments", Box::new(deployments)),
        ("Allocs", Box::new(allocs)),
        ("Services", Box::new(services)),
        ("Volumes", Box::new(volumes(state))),
    ]
}

fn volumes(state: &State) -> impl Iterator<Item = Value> {
    let plugins = view::volume::plugins(state);
    let shown = move |registered: &Registered| match &registered.document {
        Document::Csi(volume) => as_json(&view::volume::csi(state, &plugins, (registered, volume))),
        Document::Host(volume) => as_json(&view::volume::host(state, registered, volume)),
    };
    state.volumes.iter().map(move |(_, registered)| shown(registered))
}

/// What operators have set.
fn settings(state: &State) -> Vec<(&'static str, Rows<'_>)> {
    let pools = state.pools.names().into_iter();
    let pools = pools.filter_map(|name| state::pool::document(&state.pools, name));
    let namespaces = state.namespaces.names().into_iter();
    let namespaces = namespaces.filter_map(|name| state::namespace::document(&state.namespaces, name));
    let variables = state.variables.iter().map(|(key, row)| {
        let metadata = as_json(&feed::entries::metadata(key, row));
        json!({"Variable": metadata, "Versions": as_json(&view::variable::versions(row))})
    });
    let cursors = state.cursors.iter().map(|(name, cursor)| json!({"Name": name, "Cursor": as_json(cursor)}));
    let sinks = state.sinks.iter().map(|(name, sink)| json!({"Name": name, "Sink": as_json(sink)}));
    let recording = state.recording.iter().map(|recording| as_json(&**recording));
    vec![
        ("NodePools", Box::new(pools.map(|pool| as_json(&pool)))),
        ("Namespaces", Box::new(namespaces.map(|namespace| as_json(&namespace)))),
        ("Variables", Box::new(variables)),
        ("EventCursors", Box::new(cursors)),
        ("EventSinks", Box::new(sinks)),
        ("Recording", Box::new(recording)),
        ("SchedulerConfiguration", Box::new(std::iter::once_with(|| as_json(&scheduler::view(state))))),
        ("AutopilotConfiguration", Box::new(std::iter::once_with(|| as_json(&autopilot::view(state))))),
    ]
}

/// Who may do what, and what proves it.
fn access(state: &State) -> Vec<(&'static str, Rows<'_>)> {
    let acl = &state.acl;
    let policies = acl.policies.names().into_iter().filter_map(|name| state::acl::policy(acl, name));
    let ids = acl.roles.names().into_iter().filter_map(|id| id.parse().ok());
    let roles = ids.filter_map(|id| state::acl::role(acl, id));
    let tokens = acl.tokens().filter_map(|(accessor, _)| state::acl::token(acl, accessor));
    let methods = acl.methods.names().into_iter().filter_map(|name| state::acl::auth_method(acl, name));
    let rules = acl.rules.names().into_iter().filter_map(|id| state::acl::binding_rule(acl, id));
    let keys = state.keyring.keys().keys().map(|id| as_json(&keyring::listed(state, *id)));
    vec![
        ("ACLPolicies", Box::new(policies.map(|policy| as_json(&policy)))),
        ("ACLRoles", Box::new(roles.map(|role| as_json(&role)))),
        ("ACLTokens", Box::new(tokens.map(|token| as_json(&token)))),
        ("ACLAuthMethods", Box::new(methods.map(|method| as_json(&method)))),
        ("ACLBindingRules", Box::new(rules.map(|rule| as_json(&rule)))),
        ("RootKeys", Box::new(keys)),
    ]
}
