use model::document::{Bytes, Job, Namespace};
use model::event::{NamespaceDeleted, NamespaceUpserted};
use model::{Doc, JobStatus, Rejection};
use state::State;
use state::namespace::DEFAULT;

use crate::decision::Decision;

/// Longest description of a namespace, in bytes.
const DESCRIPTION_MAX: usize = 256;

/// # Errors
/// [`Rejection::NamespaceInvalid`].
pub fn upsert(state: &State, wanted: &Namespace) -> Result<Decision, Rejection> {
    check(wanted)?;
    let document = Namespace { create_index: 0, modify_index: 0, hash: Bytes::default(), ..wanted.clone() };
    if state.namespaces.get(&wanted.name).is_some_and(|set| set.document == document) {
        return Ok(Decision::nothing());
    }
    Ok(NamespaceUpserted { name: wanted.name.clone(), document: Doc::of(&document) }.into())
}

/// # Errors
/// [`Rejection::NamespaceInUse`] while jobs that have not ended, volumes or variables are in it, and for the default one.
pub fn delete(state: &State, name: &str) -> Result<Decision, Rejection> {
    let in_use = |why: String| Err(Rejection::NamespaceInUse(why));
    if name == DEFAULT {
        return in_use(format!("namespace {name:?} came with the cluster: it cannot be deleted"));
    }
    if state.namespaces.get(name).is_none() {
        return Err(Rejection::NamespaceUnknown(name.to_string()));
    }
    let jobs = state.jobs.iter().filter(|(_, job)| job.key.namespace == name);
    let jobs = jobs.filter(|(_, job)| job.status != JobStatus::Dead).count();
    if jobs > 0 {
        return in_use(format!("namespace {name:?} has jobs that have not ended: {jobs}"));
    }
    let volumes = state.volumes.iter().filter(|(key, _)| key.namespace == name).count();
    if volumes > 0 {
        return in_use(format!("namespace {name:?} has {volumes} volumes"));
    }
    let variables = state.variables.below(name, "").count();
    if variables > 0 {
        return in_use(format!("namespace {name:?} has {variables} variables"));
    }
    Ok(NamespaceDeleted { name: name.to_string() }.into())
}

/// Whether the job may be in its namespace.
///
/// # Errors
/// [`Rejection::JobInvalid`]: there is no such namespace, or it does not let a driver or a network mode be used.
pub(crate) fn admit(state: &State, job: &Job) -> Result<(), Rejection> {
    let name = job.namespace.as_deref().unwrap_or(DEFAULT);
    let id = job.id.as_deref().unwrap_or_default();
    if !state.namespaces.exists(name) {
        return Err(Rejection::JobInvalid(format!("job {id:?} is in nonexistent namespace {name:?}")));
    }
    let set = state.namespaces.get(name);
    let Some(rules) = set.and_then(|set| set.document.capabilities.as_ref()) else { return Ok(()) };
    let refused = |enabled: &[String], disabled: &[String], word: &str| {
        let word = word.to_string();
        disabled.contains(&word) || !enabled.is_empty() && !enabled.contains(&word)
    };
    for group in job.task_groups.iter() {
        let of = group.name.as_deref().unwrap_or_default();
        let mode = |mode: &str| if mode.is_empty() { "host".to_string() } else { mode.to_string() };
        for mode in group.networks.iter().map(|network| mode(&network.mode)) {
            if refused(&rules.enabled_network_modes, &rules.disabled_network_modes, &mode) {
                let why = format!("group {of:?}: network mode {mode:?} is not allowed in namespace {name:?}");
                return Err(Rejection::JobInvalid(why));
            }
        }
        for task in group.tasks.iter() {
            if refused(&rules.enabled_task_drivers, &rules.disabled_task_drivers, &task.driver) {
                let why = format!(
                    "group {of:?}, task {:?}: driver {:?} is not allowed in namespace {name:?}",
                    task.name, task.driver
                );
                return Err(Rejection::JobInvalid(why));
            }
        }
    }
    Ok(())
}

fn check(wanted: &Namespace) -> Result<(), Rejection> {
    let invalid = |field: &'static str, expected: &'static str| {
        Err(Rejection::NamespaceInvalid { field: field.into(), expected: expected.into() })
    };
    let is_fit = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if !(1..=128).contains(&wanted.name.len()) || !wanted.name.chars().all(is_fit) {
        // Nomad's own clients look for its words.
        let expected =
            format!("1 to 128 letters, digits and dashes, found an invalid name {:?}.", wanted.name);
        return Err(Rejection::NamespaceInvalid { field: "Name".into(), expected: expected.into() });
    }
    if wanted.description.len() > DESCRIPTION_MAX {
        return invalid("Description", "at most 256 bytes");
    }
    // Only the enterprise edition of Nomad acts on these.
    if !wanted.quota.is_empty() {
        return invalid("Quota", "none: quotas are a feature of the enterprise edition");
    }
    if wanted.node_pool_configuration.is_some() {
        return invalid("NodePoolConfiguration", "none: it is a feature of the enterprise edition");
    }
    if wanted.consul_configuration.is_some() {
        return invalid("ConsulConfiguration", "none: it is a feature of the enterprise edition");
    }
    if wanted.vault_configuration.is_some() {
        return invalid("VaultConfiguration", "none: it is a feature of the enterprise edition");
    }
    Ok(())
}
