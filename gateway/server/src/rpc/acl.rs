//! What agents ask to find out what a caller of theirs may do. Only agents of the cluster are answered: policies of somebody
//! are for nobody else.

use wire::messages::{
    PolicySetRequest, PolicySetResponse, QueryOptions, ResolveTokenRequest, ResolveTokenResponse,
    RolesByIdRequest, RolesByIdResponse,
};
use wire::{Connection, RemoteError};

use super::{Rpc, denied};

pub(super) async fn resolve_token(
    rpc: &Rpc,
    connection: &Connection,
    request: ResolveTokenRequest,
) -> Result<ResolveTokenResponse, RemoteError> {
    rpc.check_agent(connection)?;
    // One that is not known is no error here.
    let token = rpc.gate.token(&request.secret_id).await.ok().flatten();
    Ok(ResolveTokenResponse { token: token.map(Into::into), meta: meta(rpc) })
}

pub(super) async fn get_policies(
    rpc: &Rpc,
    connection: &Connection,
    request: PolicySetRequest,
) -> Result<PolicySetResponse, RemoteError> {
    rpc.check_agent(connection)?;
    policies(rpc, &request.query, Some(&request.names)).await
}

/// Those of the task whose identity is presented.
pub(super) async fn get_claim_policies(
    rpc: &Rpc,
    connection: &Connection,
    query: QueryOptions,
) -> Result<PolicySetResponse, RemoteError> {
    rpc.check_agent(connection)?;
    policies(rpc, &query, None).await
}

pub(super) async fn get_roles_by_id(
    rpc: &Rpc,
    connection: &Connection,
    request: RolesByIdRequest,
) -> Result<RolesByIdResponse, RemoteError> {
    rpc.check_agent(connection)?;
    let roles = rpc.gate.roles(&request.query.auth_token, &request.role_ids).await.map_err(denied)?;
    let roles = roles.into_iter().map(|role| (role.id.clone(), role)).collect();
    Ok(RolesByIdResponse { roles, meta: meta(rpc) })
}

async fn policies(
    rpc: &Rpc,
    query: &QueryOptions,
    names: Option<&[String]>,
) -> Result<PolicySetResponse, RemoteError> {
    let policies = rpc.gate.policies(&query.auth_token, names).await.map_err(denied)?;
    let policies = policies.into_iter().map(|policy| (policy.name.clone(), policy)).collect();
    Ok(PolicySetResponse { policies, meta: meta(rpc) })
}

fn meta(rpc: &Rpc) -> wire::messages::QueryMeta {
    rpc.query_meta(rpc.state().acl.changed().0)
}
