//! Services of the allocations of a node.

use model::{Command, NodeId, RegisterService, Service, ServiceKey};
use wire::RemoteError;
use wire::messages::{
    GenericResponse, NodeServicesDeleteRequest, ServiceDeleteRequest, ServiceRegistration,
    ServiceUpsertRequest, WriteMeta,
};

use super::Rpc;

/// A node registers services of its own allocations, and of no others.
pub(super) async fn upsert(rpc: &Rpc, request: ServiceUpsertRequest) -> Result<GenericResponse, RemoteError> {
    let services = request.services.iter().map(wanted).collect::<Result<Vec<RegisterService>, _>>()?;
    let first = services.first().map(|service| service.alloc);
    let node = rpc.caller(&rpc.state(), &request.write.auth_token, first)?;
    let own = node.to_string();
    if request.services.iter().any(|service| service.node_id != own) {
        return Err(RemoteError::permission_denied());
    }
    let receipt = rpc.submit(node, Command::RegisterServices { node, services }).await?;
    Ok(GenericResponse { meta: WriteMeta { index: receipt.index.0 } })
}

/// `None` if it is no node that asks: then it is a route.
pub(super) async fn delete(rpc: &Rpc, body: &[u8]) -> Option<Result<Vec<u8>, RemoteError>> {
    let request: ServiceDeleteRequest = match msgpack::from_slice(body) {
        Ok(request) => request,
        Err(error) => return Some(Err(format!("cannot decode the request: {error}").into())),
    };
    let node = rpc.caller(&rpc.state(), &request.write.auth_token, Service::alloc_of(&request.id)).ok()?;
    Some(super::answer(body, |request| delete_own(rpc, node, request)).await)
}

async fn delete_own(
    rpc: &Rpc,
    node: NodeId,
    request: ServiceDeleteRequest,
) -> Result<GenericResponse, RemoteError> {
    let namespace = match request.write.namespace.as_str() {
        "" => "default",
        namespace => namespace,
    };
    let key = ServiceKey::new(namespace, &request.id);
    let command = Command::DeregisterService { key, name: None, node: Some(node) };
    let receipt = rpc.submit(node, command).await?;
    Ok(GenericResponse { meta: WriteMeta { index: receipt.index.0 } })
}

pub(super) async fn delete_of_node(
    rpc: &Rpc,
    request: NodeServicesDeleteRequest,
) -> Result<GenericResponse, RemoteError> {
    let (node, _) = rpc.authenticate(&rpc.state(), &request.node_id, &request.write.auth_token)?;
    let receipt = rpc.submit(node, Command::DeregisterServicesOfNode { node }).await?;
    Ok(GenericResponse { meta: WriteMeta { index: receipt.index.0 } })
}

fn wanted(given: &ServiceRegistration) -> Result<RegisterService, RemoteError> {
    let invalid = |field: &str, expected: &str| {
        format!("invalid service registration {}: {field}: expected {expected}", given.id)
    };
    let alloc = given.alloc_id.parse().map_err(|_| invalid("AllocID", "the UUID of an allocation"))?;
    let port = given.port.try_into().map_err(|_| invalid("Port", "0 to 65535"))?;
    let service = Service {
        id: given.id.clone(),
        name: given.service_name.clone(),
        tags: given.tags.0.clone(),
        address: given.address.clone(),
        port,
    };
    Ok(RegisterService { alloc, service })
}
