use base::{Time, Uuid};
use control::Subject;
use keyring::{Claims, NoIdentity, Workload};
use model::{AllocId, NodeId};
use state::State;
use wire::RemoteError;
use wire::messages::{
    AllocIdentitiesRequest, AllocIdentitiesResponse, AllocSpecificRequest, AllocsGetRequest,
    AllocsGetResponse, PlacedAlloc, SignedWorkloadIdentity, SingleAllocResponse, WorkloadIdentityRejection,
    WorkloadIdentityRequest,
};

use super::{Rpc, identity};

/// Whole allocations, with their jobs, as nodes run them, and with the tokens of their tasks for the node they are on.
pub(super) async fn get_many(rpc: &Rpc, request: AllocsGetRequest) -> Result<AllocsGetResponse, RemoteError> {
    let first = request.alloc_ids.first().and_then(|id| id.parse().ok());
    let node = rpc.caller(&rpc.state(), &request.query.auth_token, first)?;
    let ids = request.alloc_ids.iter().map(|id| id.parse::<AllocId>().map_err(RemoteError::other));
    let ids = ids.collect::<Result<Vec<_>, _>>()?;
    let read = |state: &State| {
        let (index, found) = state::alloc::requested(state, &ids);
        Ok((index, found.into_iter().map(|alloc| (alloc.id, placed(state, alloc))).collect::<Vec<_>>()))
    };
    let (meta, found) = rpc.wait_for_change(&request.query, Subject::Everything, read).await?;
    let mut tokens = rpc.default_identities(&ids, node).await;
    let with_tokens =
        |(id, alloc)| PlacedAlloc { signed_identities: tokens.remove(&id).unwrap_or_default(), ..alloc };
    Ok(AllocsGetResponse { allocs: found.into_iter().map(with_tokens).collect(), meta })
}

/// An allocation of any node: one waits for the end of another's.
pub(super) async fn get(
    rpc: &Rpc,
    request: AllocSpecificRequest,
) -> Result<SingleAllocResponse, RemoteError> {
    rpc.caller(&rpc.state(), &request.query.auth_token, None)?;
    let id: AllocId = request.alloc_id.parse().map_err(RemoteError::other)?;
    let read = |state: &State| {
        let alloc = state.allocs.lookup(id);
        let index = alloc.map_or(state.tables.allocs, |alloc| alloc.modified);
        Ok((index.0, alloc.map(|alloc| placed(state, alloc))))
    };
    let subject = rpc.state().allocs.find(id).map_or(Subject::Everything, Subject::Alloc);
    let (meta, alloc) = rpc.wait_for_change(&request.query, subject, read).await?;
    Ok(SingleAllocResponse { alloc, meta })
}

/// Tokens for identities that the jobs of allocations on the caller's node name.
pub(super) async fn sign_identities(
    rpc: &Rpc,
    request: AllocIdentitiesRequest,
) -> Result<AllocIdentitiesResponse, RemoteError> {
    let first = request.identities.first().and_then(|wanted| wanted.alloc_id.parse().ok());
    let node = rpc.caller(&rpc.state(), &request.query.auth_token, first)?;
    // The allocations may have been placed after what this server has seen.
    let read = |state: &State| {
        let ids = request.identities.iter().filter_map(|wanted| wanted.alloc_id.parse::<AllocId>().ok());
        Ok((state::alloc::requested(state, &ids.collect::<Vec<_>>()).0, ()))
    };
    let (meta, ()) = rpc.wait_for_change(&request.query, Subject::Everything, read).await?;
    let (state, now) = (rpc.state(), identity::now());
    let mut answer = AllocIdentitiesResponse { meta, ..Default::default() };
    let (mut signed, mut wanted) = (Vec::new(), Vec::new());
    let key = state.keyring.active().map_or(Uuid::NIL, |(key, _)| key);
    for request in request.identities.0 {
        match claims(rpc, &state, node, &request, now) {
            Ok(claims) => {
                let expiration = claims.expires.map_or(Time::default(), |at| Time(at * 1_000_000_000));
                signed.push(SignedWorkloadIdentity {
                    request,
                    expiration: expiration.into(),
                    ..Default::default()
                });
                wanted.push((key, claims));
            }
            Err(reason) => answer.rejections.0.push(WorkloadIdentityRejection { request, reason }),
        }
    }
    let tokens = rpc.sign_all(&state, wanted).await?;
    let with_token = |(identity, jwt)| SignedWorkloadIdentity { jwt, ..identity };
    answer.signed_identities = signed.into_iter().zip(tokens).map(with_token).collect();
    Ok(answer)
}

fn claims(
    rpc: &Rpc,
    state: &State,
    node: NodeId,
    wanted: &WorkloadIdentityRequest,
    now: Time,
) -> Result<Claims, String> {
    let alloc = wanted.alloc_id.parse::<AllocId>().ok().and_then(|id| state.allocs.lookup(id));
    let alloc = alloc.filter(|alloc| alloc.node_id == node).ok_or("allocation not found")?;
    let name = &wanted.workload_identifier;
    let workload = match wanted.workload_type {
        0 => Workload::Task(name),
        1 => Workload::Service { name, full_name: &wanted.interpolated_workload_identifier },
        _ => return Err("workload type: expected 0 for a task or 1 for a service".to_string()),
    };
    Claims::of_workload(state, &rpc.region, alloc, workload, &wanted.identity_name, now)
        .map_err(|why: NoIdentity| why.to_string())
}

fn placed(state: &State, alloc: &state::alloc::Alloc) -> PlacedAlloc {
    let mut alloc = state::alloc::document(state, alloc);
    if let Some(job) = &mut alloc.job {
        job.payload.0 = wire::payload::compress(&job.payload.0);
    }
    PlacedAlloc { alloc, ..Default::default() }
}
