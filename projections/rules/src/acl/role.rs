use base::Uuid;
use model::document::{ACLRole, Bytes};
use model::event::{AclRoleDeleted, AclRoleUpserted};
use model::{Doc, Rejection};
use state::acl::Acl;

use super::{Decision, check_name, invalid};

/// Roles at the same time, and policies of one.
const ROLES_MAX: usize = 16_384;
const POLICIES_MAX: usize = 1_024;

pub(crate) fn create(acl: &Acl, wanted: &ACLRole) -> Result<Decision, Rejection> {
    let id = id_of(wanted)?;
    if acl.roles.get(&wanted.id).is_some() {
        return invalid(format!("role {} exists already", wanted.id));
    }
    if acl.roles.names().len() >= ROLES_MAX {
        return invalid(format!("there are {ROLES_MAX} roles already: delete one that is not used"));
    }
    upsert(acl, id, wanted)
}

pub(crate) fn update(acl: &Acl, wanted: &ACLRole) -> Result<Decision, Rejection> {
    let id = id_of(wanted)?;
    if acl.roles.get(&wanted.id).is_none() {
        return invalid(format!("cannot find role {}", wanted.id));
    }
    upsert(acl, id, wanted)
}

/// Tokens may go on naming it: it gives them nothing.
pub(crate) fn delete(acl: &Acl, role: Uuid) -> Result<Decision, Rejection> {
    if acl.roles.get(&role.to_string()).is_none() {
        return Err(Rejection::AclRoleUnknown(role));
    }
    Ok(AclRoleDeleted { role }.into())
}

fn upsert(acl: &Acl, role: Uuid, wanted: &ACLRole) -> Result<Decision, Rejection> {
    check_name("role", &wanted.name, &wanted.description)?;
    if wanted.policies.is_empty() {
        return invalid("invalid role: expected at least one policy");
    }
    if wanted.policies.len() > POLICIES_MAX {
        return invalid(format!("invalid role: expected at most {POLICIES_MAX} policies"));
    }
    if let Some(missing) = wanted.policies.iter().find(|link| acl.policies.get(&link.name).is_none()) {
        return invalid(format!("cannot find policy {}", missing.name));
    }
    let names_it = |id: &&str| {
        acl.roles.get(id).is_some_and(|other| **id != wanted.id && other.document.name == wanted.name)
    };
    if acl.roles.names().iter().any(names_it) {
        return invalid(format!("role with name {} already exists", wanted.name));
    }
    let mut policies = wanted.policies.clone();
    policies.sort();
    policies.dedup();
    let document =
        ACLRole { policies, create_index: 0, modify_index: 0, hash: Bytes::default(), ..wanted.clone() };
    if acl.roles.get(&wanted.id).is_some_and(|set| set.document == document) {
        return Ok(Decision::nothing());
    }
    Ok(AclRoleUpserted { role, document: Doc::of(&document) }.into())
}

fn id_of(wanted: &ACLRole) -> Result<Uuid, Rejection> {
    match wanted.id.parse::<Uuid>() {
        // Found by its text: another way to write it would be another role.
        Ok(id) if id.to_string() == wanted.id => Ok(id),
        _ => invalid(format!("invalid role ID {:?}: expected a UUID", wanted.id)),
    }
}
