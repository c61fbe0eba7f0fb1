//! From what a caller presents to what it may do.

use std::collections::{BTreeSet, HashMap};

use acl::{Acl, Claims, Policy};
use base::{Index, Uuid};
use journal::Freshness;
use keyring::{Holder, WorkloadClaims};
use model::document::{ACLPolicy, ACLToken, JobACL};
use model::{AllocId, NodeId};
use parking_lot::Mutex;
use state::State;
use state::node::secret_hash;

use super::{Access, Who, denied};
use crate::app_state::{AppState, now};
use crate::error::Failure;

/// Callers whose rights are kept. When there are more, all are found out anew.
const KNOWN_MAX: usize = 16_384;

/// The policy that holds for who presents nothing.
const ANONYMOUS: &str = "anonymous";

/// Longest token that is looked at.
const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// The rights of tokens that were used lately, by the digests of their secrets.
///
/// They are good for as long as the token, all policies and all roles are as they were: nothing is ever out of date, so
/// nothing has to expire.
#[derive(Default)]
pub(crate) struct Resolver {
    known: Mutex<HashMap<[u8; 32], Known>>,
}

#[derive(Clone)]
struct Known {
    access: Access,
    as_of: Stamps,
}

/// What rights follow from, by its last changes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamps {
    policies: Index,
    roles: Index,
    token: Index,
}

impl AppState {
    /// Who presents this secret or signed token.
    ///
    /// # Errors
    /// 403 if it is worth nothing.
    pub(crate) async fn access(&self, presented: &str) -> Result<Access, Failure> {
        match self.access_now(presented) {
            // It may have been made a moment ago, on the server that leads.
            Err(_) if !presented.is_empty() && self.is_behind().await => self.access_now(presented),
            resolved => resolved,
        }
    }

    /// The same by what this server knows now. For what goes on for long.
    ///
    /// # Errors
    /// 403 if what is presented is worth nothing, or nothing any more.
    pub(crate) fn access_now(&self, presented: &str) -> Result<Access, Failure> {
        let access = match self.agent.access.enabled {
            false => Access::everybody(),
            true if presented.len() > TOKEN_BYTES_MAX => return Err(unknown_token()),
            true => self.resolved(presented)?,
        };
        Ok(Access { presented: presented.into(), ..access })
    }

    /// This server had not seen all that is committed; now it has.
    async fn is_behind(&self) -> bool {
        let before = self.control.state().index;
        self.control.catch_up(Freshness::Lease).await.is_ok() && self.control.state().index > before
    }

    fn resolved(&self, presented: &str) -> Result<Access, Failure> {
        let state = self.control.state();
        if presented.is_empty() {
            return self.resolver.keep(&state, secret_hash(""), Index::ZERO, || {
                let acl = merged(policy_of(&state, ANONYMOUS).into_iter())?;
                Ok(Access::new(acl, Who::Anonymous))
            });
        }
        if presented.contains('.') {
            return signed(&state, presented);
        }
        let digest = secret_hash(presented);
        if let Some((accessor, token)) = state.acl.by_secret(&digest) {
            let document = &token.document;
            if document.expires().is_some_and(|expires| expires <= now()) {
                return Err(Failure::forbidden("ACL token expired"));
            }
            return self
                .resolver
                .keep(&state, digest, token.modified, || of_token(&state, accessor, document));
        }
        let mut nodes = state.nodes.rows().map(|row| state.nodes.cold(row));
        match nodes.find(|node| node.secret_hash == digest) {
            Some(node) => Ok(of_node(node.id, &node.document.node_pool)),
            None => Err(unknown_token()),
        }
    }
}

impl Resolver {
    fn keep(
        &self,
        state: &State,
        digest: [u8; 32],
        token: Index,
        resolve: impl FnOnce() -> Result<Access, Failure>,
    ) -> Result<Access, Failure> {
        let (policies, roles) = (state.acl.policies.changed, state.acl.roles.changed);
        let as_of = Stamps { policies, roles, token };
        if let Some(known) = self.known.lock().get(&digest).filter(|known| known.as_of == as_of) {
            return Ok(known.access.clone());
        }
        let access = resolve()?;
        let mut all = self.known.lock();
        if all.len() >= KNOWN_MAX {
            all.clear();
        }
        all.insert(digest, Known { access: access.clone(), as_of });
        Ok(access)
    }
}

const UNKNOWN_TOKEN: &str = "ACL token not found";

fn unknown_token() -> Failure {
    Failure::forbidden(UNKNOWN_TOKEN)
}

pub(super) fn is_unknown_token(failure: &Failure) -> bool {
    failure.text == UNKNOWN_TOKEN
}

fn policy_of<'a>(state: &'a State, name: &str) -> Option<&'a ACLPolicy> {
    state.acl.policies.get(name).map(|set| &set.document)
}

fn of_token(state: &State, accessor: Uuid, token: &ACLToken) -> Result<Access, Failure> {
    let acl = if token.is_management() {
        Acl::management()
    } else {
        merged(policies_of(state, token).into_iter())?
    };
    let who = Who::Token { accessor, name: token.name.clone() };
    Ok(Access::new(acl, who))
}

fn of_node(id: NodeId, pool: &str) -> Access {
    Access::new(Acl::node(pool), Who::Node(id))
}

/// # Errors
/// 500 if a policy cannot be read, though it could when it was written: it may be one that denies.
fn merged<'a>(policies: impl Iterator<Item = &'a ACLPolicy>) -> Result<Acl, Failure> {
    let mut parsed = Vec::new();
    for policy in policies {
        let unreadable =
            |why| Failure::internal(format!("ACL policy {:?} cannot be read: {why}", policy.name));
        parsed.push(Policy::parse(&policy.rules).map_err(unreadable)?);
    }
    Ok(Acl::of(&parsed))
}

/// The identity of a node or of a task, signed by this cluster.
fn signed(state: &State, token: &str) -> Result<Access, Failure> {
    let claims = keyring::verify(&state.keyring, token, now()).map_err(|_| denied())?;
    if keyring::is_expired(&claims, now()) {
        return Err(Failure::forbidden("ACL token expired"));
    }
    match &claims.holder {
        Holder::Node(node) => {
            let row = state.nodes.find(NodeId(node.id)).ok_or_else(denied)?;
            Ok(of_node(NodeId(node.id), &state.nodes.cold(row).document.node_pool))
        }
        Holder::Workload(workload) => of_workload(state, workload),
        Holder::Introduction(_) => Err(denied()),
    }
}

/// A task has no token: the policies that name it are its own, and what its job keeps for it.
fn of_workload(state: &State, claims: &WorkloadClaims) -> Result<Access, Failure> {
    let id = AllocId(claims.alloc);
    let alloc = state.allocs.lookup(id).filter(|alloc| alloc.takes_room()).ok_or_else(denied)?;
    let task = Claims {
        namespace: claims.namespace.clone(),
        job: claims.job.clone(),
        group: alloc.group.to_string(),
        task: claims.task.clone(),
    };
    let acl = merged(policies_naming(state, &task).into_iter())?.with_workload(task);
    Ok(Access::new(acl, Who::Workload(id)))
}

/// The policies that say what this caller may do, once each and by name.
pub(crate) fn own_policies(state: &State, access: &Access) -> Vec<String> {
    let of_token = |accessor| state.acl.token(accessor).map(|token| policies_of(state, &token.document));
    let own = match access.who {
        Who::Token { accessor, .. } => of_token(accessor).unwrap_or_default(),
        Who::Anonymous => policy_of(state, ANONYMOUS).into_iter().collect(),
        Who::Workload(_) => {
            access.acl.workload().map(|task| policies_naming(state, task)).unwrap_or_default()
        }
        Who::Everybody | Who::Node(_) => Vec::new(),
    };
    let names: BTreeSet<&String> = own.into_iter().map(|policy| &policy.name).collect();
    names.into_iter().cloned().collect()
}

/// Those that a token names, and those that its roles do. What was deleted gives nothing.
fn policies_of<'a>(state: &'a State, token: &ACLToken) -> Vec<&'a ACLPolicy> {
    let roles = token.roles.iter().filter_map(|link| state.acl.roles.get(&link.id));
    let of_roles = roles.flat_map(|role| role.document.policies.iter().map(|link| &link.name));
    token.policies.iter().chain(of_roles).filter_map(|name| policy_of(state, name)).collect()
}

fn policies_naming<'a>(state: &'a State, task: &Claims) -> Vec<&'a ACLPolicy> {
    let all = state.acl.policies.names().into_iter().filter_map(|name| policy_of(state, name));
    all.filter(|policy| policy.job_acl.as_ref().is_some_and(|names| is_named(names, task))).collect()
}

/// What a policy leaves open names every task.
fn is_named(names: &JobACL, task: &Claims) -> bool {
    let levels = [(&names.job_id, &task.job), (&names.group, &task.group), (&names.task, &task.task)];
    names.namespace == task.namespace && levels.iter().all(|(named, own)| named.is_empty() || named == own)
}
