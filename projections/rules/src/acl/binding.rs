use base::{Time, Uuid};
use model::document::{ACLAuthMethod, ACLBindingRule, Bytes, Timestamp};
use model::event::{AclBindingRuleDeleted, AclBindingRuleUpserted};
use model::{Doc, Rejection};
use state::acl::Acl;

use super::{Decision, TEXT_MAX, invalid};

/// Binding rules at the same time.
const RULES_MAX: usize = 16_384;
/// Longest selector, and longest name with what stands for claims in it, in bytes.
const SELECTOR_MAX: usize = 8 * 1024;
const BIND_NAME_MAX: usize = 1_024;

pub(crate) fn create(acl: &Acl, now: Time, wanted: &ACLBindingRule) -> Result<Decision, Rejection> {
    let id = id_of(wanted)?;
    if acl.rules.get(&wanted.id).is_some() {
        return invalid(format!("binding rule {} exists already", wanted.id));
    }
    check_room(acl)?;
    upsert(acl, now, id, wanted.clone())
}

/// What is empty stays as it is.
pub(crate) fn update(acl: &Acl, now: Time, wanted: &ACLBindingRule) -> Result<Decision, Rejection> {
    let id = id_of(wanted)?;
    let Some(set) = acl.rules.get(&wanted.id) else {
        return invalid(format!("cannot find binding rule {id}"));
    };
    let known = set.document.clone();
    if !wanted.auth_method.is_empty() && wanted.auth_method != known.auth_method {
        return invalid("cannot update auth method for binding rule, create a new rule instead");
    }
    let or = |wanted: &String, known: String| if wanted.is_empty() { known } else { wanted.clone() };
    let bind_type = or(&wanted.bind_type, known.bind_type);
    // What it was bound to goes with the way in which it was.
    let bind_name = match bind_type == ACLBindingRule::MANAGEMENT {
        true => wanted.bind_name.clone(),
        false => or(&wanted.bind_name, known.bind_name),
    };
    let merged = ACLBindingRule {
        auth_method: known.auth_method,
        description: or(&wanted.description, known.description),
        selector: or(&wanted.selector, known.selector),
        bind_type,
        bind_name,
        ..wanted.clone()
    };
    upsert(acl, now, id, merged)
}

/// Takes over a binding rule of the authoritative region, its times too: what is equal to it is not looked at again. What is
/// empty there is empty here.
pub(crate) fn copy(acl: &Acl, wanted: &ACLBindingRule) -> Result<Decision, Rejection> {
    let rule = id_of(wanted)?;
    let known = acl.rules.get(&wanted.id).map(|set| &set.document);
    if known.is_none() {
        check_room(acl)?;
    }
    check(acl, wanted)?;
    let method = acl.methods.get(&wanted.auth_method).map(|set| &set.document.method);
    if method.is_none_or(|method| method.token_locality != ACLAuthMethod::GLOBAL) {
        return invalid(format!(
            "binding rule {rule}: expected an auth method with the token locality global"
        ));
    }
    let document =
        ACLBindingRule { create_index: 0, modify_index: 0, hash: Bytes::default(), ..wanted.clone() };
    if known == Some(&document) {
        return Ok(Decision::nothing());
    }
    Ok(AclBindingRuleUpserted { rule, document: Doc::of(&document) }.into())
}

pub(crate) fn delete(acl: &Acl, rule: Uuid) -> Result<Decision, Rejection> {
    if acl.rules.get(&rule.to_string()).is_none() {
        return Err(Rejection::BindingRuleUnknown(rule));
    }
    Ok(AclBindingRuleDeleted { rule }.into())
}

fn check_room(acl: &Acl) -> Result<(), Rejection> {
    if acl.rules.names().len() >= RULES_MAX {
        return invalid(format!("there are {RULES_MAX} binding rules already: delete one that is not used"));
    }
    Ok(())
}

/// The selector and the name were understood before: here they are text.
fn check(acl: &Acl, wanted: &ACLBindingRule) -> Result<(), Rejection> {
    if wanted.description.len() > TEXT_MAX {
        return invalid(format!("invalid binding rule description: expected at most {TEXT_MAX} bytes"));
    }
    if wanted.auth_method.is_empty() {
        return invalid("invalid binding rule: expected an auth method");
    }
    if acl.methods.get(&wanted.auth_method).is_none() {
        return invalid(format!("ACL auth method {} not found", wanted.auth_method));
    }
    if wanted.selector.len() > SELECTOR_MAX {
        return invalid(format!("invalid binding rule selector: expected at most {SELECTOR_MAX} bytes"));
    }
    if wanted.bind_name.len() > BIND_NAME_MAX {
        return invalid(format!("invalid bind name: expected at most {BIND_NAME_MAX} bytes"));
    }
    match (wanted.bind_type.as_str(), wanted.bind_name.is_empty()) {
        (ACLBindingRule::ROLE | ACLBindingRule::POLICY, true) => return invalid("bind name is missing"),
        (ACLBindingRule::MANAGEMENT, false) => {
            return invalid("bind name should be empty with bind type management");
        }
        (ACLBindingRule::ROLE | ACLBindingRule::POLICY | ACLBindingRule::MANAGEMENT, _) => {}
        (other, _) => {
            return invalid(format!("invalid bind type {other:?}: expected role, policy or management"));
        }
    }
    Ok(())
}

fn upsert(acl: &Acl, now: Time, rule: Uuid, wanted: ACLBindingRule) -> Result<Decision, Rejection> {
    check(acl, &wanted)?;
    let known = acl.rules.get(&wanted.id).map(|set| &set.document);
    let at = Timestamp(Some(now));
    let (create_time, modify_time) = known.map_or((at, at), |known| (known.create_time, known.modify_time));
    let document = ACLBindingRule {
        create_time,
        modify_time,
        create_index: 0,
        modify_index: 0,
        hash: Bytes::default(),
        ..wanted
    };
    if known == Some(&document) {
        return Ok(Decision::nothing());
    }
    let document = ACLBindingRule { modify_time: at, ..document };
    Ok(AclBindingRuleUpserted { rule, document: Doc::of(&document) }.into())
}

fn id_of(wanted: &ACLBindingRule) -> Result<Uuid, Rejection> {
    match wanted.id.parse::<Uuid>() {
        // Found by its text: another way to write it would be another rule.
        Ok(id) if id.to_string() == wanted.id => Ok(id),
        _ => invalid(format!("invalid binding rule ID {:?}: expected a UUID", wanted.id)),
    }
}
