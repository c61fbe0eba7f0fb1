use std::sync::Arc;

use model::AllocId;

use super::columns::Fault;
use crate::service::{Registered, SHARDS, Shard, shard_of};

/// One for each part that instances are spread over.
pub(super) const CHUNKS: usize = SHARDS;

/// Its shape grows: a document instead of columns.
pub(super) fn encode(shard: &Shard) -> Vec<u8> {
    let rows: Vec<(&AllocId, &Vec<Registered>)> =
        shard.iter().map(|(alloc, rows)| (alloc, &**rows)).collect();
    rmp_serde::to_vec_named(&rows).expect("services hold only what msgpack can write")
}

pub(super) fn decode(chunk: usize, bytes: &[u8]) -> Result<Shard, Fault> {
    let mut rest = bytes;
    let rows: Vec<(AllocId, Vec<Registered>)> =
        rmp_serde::from_read(&mut rest).map_err(|_| "it is not a document of services")?;
    let is_fit = |(alloc, rows): &(AllocId, Vec<Registered>)| {
        shard_of(*alloc) == chunk && !rows.is_empty() && rows.iter().all(|row| row.alloc == *alloc)
    };
    if !rows.iter().all(is_fit) {
        return Err("a service stands with an allocation that is not its own");
    }
    let shard = rows.into_iter().map(|(alloc, rows)| (alloc, Arc::new(rows))).collect();
    if rest.is_empty() { Ok(shard) } else { Err("there is more after its document") }
}
