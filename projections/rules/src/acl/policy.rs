use model::document::{ACLPolicy, Bytes, JobACL};
use model::event::{AclPolicyDeleted, AclPolicyUpserted};
use model::{Doc, Rejection};
use state::acl::Acl;

use super::{Decision, check_name, invalid};

/// Longest text of a policy's rules, in bytes.
const RULES_MAX: usize = 256 * 1024;
/// Policies at the same time.
const POLICIES_MAX: usize = 16_384;

/// The rules were understood before: here they are text.
pub(crate) fn upsert(acl: &Acl, wanted: &ACLPolicy) -> Result<Decision, Rejection> {
    check_name("policy", &wanted.name, &wanted.description)?;
    if wanted.rules.len() > RULES_MAX {
        return invalid(format!("invalid policy rules: expected at most {RULES_MAX} bytes"));
    }
    if let Some(tasks) = &wanted.job_acl {
        check_tasks(tasks)?;
    }
    let document = ACLPolicy { create_index: 0, modify_index: 0, hash: Bytes::default(), ..wanted.clone() };
    match acl.policies.get(&wanted.name) {
        Some(set) if set.document == document => return Ok(Decision::nothing()),
        None if acl.policies.names().len() >= POLICIES_MAX => {
            return invalid(format!(
                "there are {POLICIES_MAX} policies already: delete one that is not used"
            ));
        }
        _ => {}
    }
    Ok(AclPolicyUpserted { name: wanted.name.clone(), document: Doc::of(&document) }.into())
}

/// Tokens and roles may go on naming it: it gives them nothing.
pub(crate) fn delete(acl: &Acl, name: &str) -> Result<Decision, Rejection> {
    if acl.policies.get(name).is_none() {
        return Err(Rejection::AclPolicyUnknown(name.to_string()));
    }
    Ok(AclPolicyDeleted { name: name.to_string() }.into())
}

fn check_tasks(tasks: &JobACL) -> Result<(), Rejection> {
    let levels = [
        ("Namespace", &tasks.namespace),
        ("JobID", &tasks.job_id),
        ("Group", &tasks.group),
        ("Task", &tasks.task),
    ];
    let missing = levels.windows(2).find(|pair| pair[0].1.is_empty() && !pair[1].1.is_empty());
    match missing {
        Some(pair) => invalid(format!("invalid JobACL: {} without {}", pair[1].0, pair[0].0)),
        None if tasks.namespace.is_empty() => invalid("invalid JobACL: expected a Namespace"),
        None => Ok(()),
    }
}
