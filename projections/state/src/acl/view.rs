use base::Uuid;
use model::Doc;
use model::document::{ACLAuthMethod, ACLBindingRule, ACLPolicy, ACLRole, ACLToken, Bytes};

use super::state::Acl;

/// A policy as Nomad's API shows it.
pub fn policy(acl: &Acl, name: &str) -> Option<ACLPolicy> {
    let set = acl.policies.get(name)?;
    let hash = Bytes(blake3::hash(&Doc::of(&set.document).0).as_bytes().to_vec());
    Some(ACLPolicy {
        create_index: set.created.0,
        modify_index: set.modified.0,
        hash,
        ..set.document.clone()
    })
}

/// A role as Nomad's API shows it.
pub fn role(acl: &Acl, id: Uuid) -> Option<ACLRole> {
    let set = acl.roles.get(&id.to_string())?;
    let hash = Bytes(blake3::hash(&Doc::of(&set.document).0).as_bytes().to_vec());
    Some(ACLRole { create_index: set.created.0, modify_index: set.modified.0, hash, ..set.document.clone() })
}

/// A token as Nomad's API shows it, without its secret. Roles that were deleted are left out, the others have the names
/// they have now.
pub fn token(acl: &Acl, accessor: Uuid) -> Option<ACLToken> {
    let token = acl.token(accessor)?;
    let hash = Bytes(blake3::hash(&Doc::of(&token.document).0).as_bytes().to_vec());
    let mut shown = ACLToken {
        create_index: token.created.0,
        modify_index: token.modified.0,
        hash,
        ..token.document.clone()
    };
    shown.roles.retain_mut(|link| match acl.roles.get(&link.id) {
        Some(role) => {
            link.name.clone_from(&role.document.name);
            true
        }
        None => false,
    });
    Some(shown)
}

/// An auth method as Nomad's API shows it, without its secrets.
pub fn auth_method(acl: &Acl, name: &str) -> Option<ACLAuthMethod> {
    let set = acl.methods.get(name)?;
    let hash = Bytes(blake3::hash(&Doc::of(&set.document).0).as_bytes().to_vec());
    let method = set.document.method.clone();
    Some(ACLAuthMethod { create_index: set.created.0, modify_index: set.modified.0, hash, ..method })
}

/// A binding rule as Nomad's API shows it.
pub fn binding_rule(acl: &Acl, id: &str) -> Option<ACLBindingRule> {
    let set = acl.rules.get(id)?;
    let hash = Bytes(blake3::hash(&Doc::of(&set.document).0).as_bytes().to_vec());
    let rule = set.document.clone();
    Some(ACLBindingRule { create_index: set.created.0, modify_index: set.modified.0, hash, ..rule })
}

/// The token has this policy, by itself or by one of its roles.
pub fn is_held(acl: &Acl, token: &ACLToken, policy: &str) -> bool {
    let by_role = |id: &str| {
        let role = acl.roles.get(id);
        role.is_some_and(|role| role.document.policies.iter().any(|link| link.name == policy))
    };
    token.policies.iter().any(|name| name == policy) || token.roles.iter().any(|link| by_role(&link.id))
}
