use model::{EvalId, RequestId};

use super::columns::{Column, Fault, Reader, Writer};
use crate::requests::{NamedRequest, Remembered};

pub(super) fn encode(rows: &[NamedRequest]) -> Vec<u8> {
    let mut to = Writer::default();
    to.ids(rows.iter().map(|(id, _)| *id));
    to.indexes(rows.iter().map(|(_, outcome)| outcome.index));
    to.optional_ids(rows.iter().map(|(_, outcome)| outcome.eval));
    to.0
}

pub(super) fn decode(bytes: &[u8], len: usize) -> Result<Vec<NamedRequest>, Fault> {
    let mut from = Reader(bytes);
    let ids: Column<'_, 16> = from.column(len)?;
    let indexes: Column<'_, 8> = from.column(len)?;
    let evals = from.optional_ids(len, EvalId)?;
    from.end()?;
    let named = |(at, eval)| (RequestId(ids.id(at)), Remembered { index: indexes.index(at), eval });
    Ok(evals.into_iter().enumerate().map(named).collect())
}
