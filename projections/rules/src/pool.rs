use model::document::{Bytes, NodePool};
use model::event::{NodePoolDeleted, NodePoolUpserted};
use model::{Algorithm, Doc, JobStatus, Rejection};
use state::State;
use state::job::JobState;
use state::pool::{ALL, DEFAULT};

use crate::decision::Decision;

/// Longest description of a pool, in bytes.
const DESCRIPTION_MAX: usize = 256;

/// An operator makes a pool or changes it.
///
/// # Errors
/// [`Rejection::PoolInvalid`]; [`Rejection::PoolBuiltIn`].
pub fn upsert(state: &State, wanted: &NodePool) -> Result<Decision, Rejection> {
    check(wanted)?;
    let document = NodePool { create_index: 0, modify_index: 0, hash: Bytes::default(), ..wanted.clone() };
    if state.pools.get(&wanted.name).is_some_and(|pool| pool.document == document) {
        return Ok(Decision::nothing());
    }
    Ok(NodePoolUpserted { name: wanted.name.clone(), document: Doc::of(&document) }.into())
}

/// # Errors
/// [`Rejection::PoolInUse`] while nodes or jobs are in it.
pub fn delete(state: &State, name: &str) -> Result<Decision, Rejection> {
    if name == DEFAULT || name == ALL {
        return Err(Rejection::PoolBuiltIn(name.to_string()));
    }
    if state.pools.get(name).is_none() {
        return Err(Rejection::PoolUnknown(name.to_string()));
    }
    let nodes = state.nodes.rows().filter(|row| state.nodes.cold(*row).document.node_pool == name).count();
    if nodes > 0 {
        return Err(Rejection::PoolInUse(format!("node pool {name:?} has nodes: {nodes}")));
    }
    let pool_of = |job: &JobState| job.current().job.node_pool.clone();
    let in_it = state.jobs.iter().filter(|(_, job)| pool_of(job).as_deref() == Some(name));
    let jobs = in_it.filter(|(_, job)| job.status != JobStatus::Dead).count();
    if jobs > 0 {
        return Err(Rejection::PoolInUse(format!("node pool {name:?} has jobs that have not ended: {jobs}")));
    }
    Ok(NodePoolDeleted { name: name.to_string() }.into())
}

/// The pool that a node names, if it does not exist yet: registering the node creates it.
pub(crate) fn created_by_node(state: &State, name: &str) -> Option<NodePoolUpserted> {
    let document = NodePool { name: name.to_string(), ..NodePool::default() };
    (!state.pools.exists(name))
        .then(|| NodePoolUpserted { name: name.to_string(), document: Doc::of(&document) })
}

/// What a pool may be called.
pub(crate) fn is_name(name: &str) -> bool {
    let is_fit = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    (1..=128).contains(&name.len()) && name.chars().all(is_fit)
}

fn check(wanted: &NodePool) -> Result<(), Rejection> {
    let invalid = |field: &'static str, expected: &'static str| {
        Err(Rejection::PoolInvalid { field: field.into(), expected: expected.into() })
    };
    if !is_name(&wanted.name) {
        return invalid("Name", "1 to 128 letters, digits, dashes and underscores");
    }
    if wanted.name == DEFAULT || wanted.name == ALL {
        return Err(Rejection::PoolBuiltIn(wanted.name.clone()));
    }
    if wanted.description.len() > DESCRIPTION_MAX {
        return invalid("Description", "at most 256 bytes");
    }
    if wanted.node_identity_ttl.0.0 < 0 {
        return invalid("NodeIdentityTTL", "a duration that is not negative");
    }
    let algorithm = wanted.scheduler_configuration.as_ref().map_or("", |rules| &rules.scheduler_algorithm);
    if !algorithm.is_empty() && Algorithm::from_word(algorithm).is_none() {
        return invalid("SchedulerConfiguration.SchedulerAlgorithm", "binpack or spread");
    }
    Ok(())
}
