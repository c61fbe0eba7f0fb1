use keyring::{Holder, is_expired};
use wire::RemoteError;
use wire::messages::{
    AclTokenIdentity, AuthenticatedIdentity, Empty, QueryOptions, WhoAmIResponse, WorkloadClaims,
};

use super::{Rpc, denied, identity};

pub(super) async fn ping(_: Empty) -> Result<Empty, RemoteError> {
    Ok(Empty {})
}

/// The leader's address; empty while there is none.
pub(super) async fn leader(rpc: &Rpc, _: QueryOptions) -> Result<String, RemoteError> {
    Ok(rpc.addresses().0)
}

pub(super) async fn peers(rpc: &Rpc, _: QueryOptions) -> Result<Vec<String>, RemoteError> {
    Ok(rpc.addresses().1)
}

/// A node, a workload that has not ended, or nobody in particular.
pub(super) async fn who_am_i(rpc: &Rpc, query: QueryOptions) -> Result<WhoAmIResponse, RemoteError> {
    let state = rpc.state();
    let mut identity = AuthenticatedIdentity::default();
    let signed = keyring::verify(&state.keyring, &query.auth_token, identity::now());
    let signed = signed.ok().filter(|claims| !is_expired(claims, identity::now()));
    match signed.map(|claims| claims.holder) {
        Some(Holder::Workload(of)) => {
            let alloc = state.allocs.lookup(model::AllocId(of.alloc));
            if alloc.is_none_or(|alloc| alloc.client.is_terminal()) {
                return Err(RemoteError::permission_denied());
            }
            identity.claims = Some(WorkloadClaims {
                namespace: of.namespace,
                job_id: of.job,
                allocation_id: of.alloc.to_string(),
                task_name: of.task,
                service_name: of.service,
            });
        }
        _ if let Some(token) = rpc.gate.token(&query.auth_token).await.map_err(denied)? => {
            identity.acl_token = Some(token.into());
        }
        _ => match rpc.caller(&state, &query.auth_token, None) {
            Ok(node) => identity.client_id = node.to_string(),
            Err(_) => {
                let text = str::to_string;
                identity.acl_token = Some(AclTokenIdentity {
                    accessor_id: text("anonymous"),
                    name: text("Anonymous Token"),
                    kind: text("client"),
                    policies: vec![text("anonymous")].into(),
                    ..AclTokenIdentity::default()
                });
            }
        },
    }
    Ok(WhoAmIResponse { identity, meta: rpc.query_meta(state.index.0) })
}
