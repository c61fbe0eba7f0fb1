use std::sync::Arc;

use base::StableHash;
use model::VariableKey;

use super::columns::Fault;
use crate::domain::Domain;
use crate::variable::{Variable, VariableRow, Variables};

/// Chunks that variables are spread over by their names, so that a change of one does not have all of them written again.
pub(super) const CHUNKS: usize = 64;

/// The variables of each chunk, in the order of their names.
pub(super) fn spread(variables: &Variables) -> Vec<Vec<VariableRow>> {
    let mut chunks = vec![Vec::new(); if variables.is_empty() { 0 } else { CHUNKS }];
    for (key, variable) in variables.rows() {
        chunks[chunk_of(key)].push((key.clone(), Arc::clone(variable)));
    }
    chunks
}

/// The same rows, not only equal ones.
pub(super) fn is_same(one: &[VariableRow], other: &[VariableRow]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| Arc::ptr_eq(&one.1, &other.1))
}

/// There is little of it, and its shape grows: a document instead of columns.
pub(super) fn encode(rows: &[VariableRow]) -> Vec<u8> {
    let rows: Vec<(&VariableKey, &Variable)> = rows.iter().map(|(key, row)| (key, &**row)).collect();
    rmp_serde::to_vec_named(&rows).expect("variables hold only what msgpack can write")
}

pub(super) fn decode(bytes: &[u8]) -> Result<Vec<VariableRow>, Fault> {
    let mut rest = bytes;
    let rows: Vec<(VariableKey, Variable)> =
        rmp_serde::from_read(&mut rest).map_err(|_| "it is not a document of variables")?;
    if rows.iter().any(|(_, variable)| variable.versions.is_empty()) {
        return Err("a variable has no version");
    }
    let rows = rows.into_iter().map(|(key, variable)| (key, Arc::new(variable))).collect();
    if rest.is_empty() { Ok(rows) } else { Err("there is more after its document") }
}

/// Frozen: equal states have equal chunks on every server.
fn chunk_of(key: &VariableKey) -> usize {
    let mut hash = StableHash::new(Domain::Variables as u64);
    hash.text(&key.namespace);
    hash.text(&key.path);
    (hash.finish() % CHUNKS as u64) as usize
}
