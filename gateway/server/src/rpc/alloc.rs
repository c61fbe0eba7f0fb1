use model::AllocId;
use state::State;
use wire::RemoteError;
use wire::messages::{
    AllocIdentitiesRequest, AllocIdentitiesResponse, AllocSpecificRequest, AllocsGetRequest,
    AllocsGetResponse, PlacedAlloc, SingleAllocResponse, WorkloadIdentityRejection,
};

use super::Rpc;

/// Whole allocations, with their jobs, as nodes run them.
pub(super) async fn get_many(rpc: &Rpc, request: AllocsGetRequest) -> Result<AllocsGetResponse, RemoteError> {
    let ids = request.alloc_ids.iter().map(|id| id.parse::<AllocId>().map_err(RemoteError::other));
    let ids = ids.collect::<Result<Vec<_>, _>>()?;
    let read = |state: &State| {
        let (index, found) = state::alloc::requested(state, &ids);
        Ok((index, found.into_iter().map(|alloc| placed(state, alloc)).collect()))
    };
    let (meta, allocs) = rpc.wait_for_change(&request.query, read).await?;
    Ok(AllocsGetResponse { allocs, meta })
}

pub(super) async fn get(
    rpc: &Rpc,
    request: AllocSpecificRequest,
) -> Result<SingleAllocResponse, RemoteError> {
    let id: AllocId = request.alloc_id.parse().map_err(RemoteError::other)?;
    let read = |state: &State| {
        let alloc = state.allocs.lookup(id);
        let index = alloc.map_or(state.tables.allocs, |alloc| alloc.modified);
        Ok((index.0, alloc.map(|alloc| placed(state, alloc))))
    };
    let (meta, alloc) = rpc.wait_for_change(&request.query, read).await?;
    Ok(SingleAllocResponse { alloc, meta })
}

/// This release has no keys to sign with, and says so for each identity.
pub(super) async fn sign_identities(
    rpc: &Rpc,
    request: AllocIdentitiesRequest,
) -> Result<AllocIdentitiesResponse, RemoteError> {
    let refuse = |request: wire::messages::WorkloadIdentityRequest| WorkloadIdentityRejection {
        request,
        reason: "this server does not sign workload identities".to_string(),
    };
    let rejections = request.identities.0.into_iter().map(refuse).collect();
    let meta = rpc.query_meta(rpc.state().index.0);
    Ok(AllocIdentitiesResponse { rejections, meta, ..Default::default() })
}

fn placed(state: &State, alloc: &state::alloc::Alloc) -> PlacedAlloc {
    let mut alloc = state::alloc::document(state, alloc);
    if let Some(job) = &mut alloc.job {
        job.payload.0 = wire::payload::compress(&job.payload.0);
    }
    PlacedAlloc { alloc, ..Default::default() }
}
