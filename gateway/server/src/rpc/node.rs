use base::Duration;
use control::Subject;
use model::command::DrainWish;
use model::document::{List, NodeEvent};
use model::event::NodeMessage;
use model::{Command, Eligibility, NodeId, NodeStatus};
use state::State;
use wire::messages::{
    AllocUpdateRequest, EmitNodeEventsRequest, GenericResponse, NodeChangeResponse, NodeClientAllocsResponse,
    NodeRegisterRequest, NodeServerInfo, NodeSpecificRequest, NodeUpdateDrainRequest,
    NodeUpdateEligibilityRequest, NodeUpdateResponse, NodeUpdateStatusRequest, QueryMeta, SingleNodeResponse,
    WriteMeta,
};
use wire::{Connection, RemoteError};

use super::Rpc;
use super::identity::Proof;

pub(super) async fn register(
    rpc: &Rpc,
    connection: &Connection,
    request: NodeRegisterRequest,
) -> Result<NodeUpdateResponse, RemoteError> {
    let node = request.node.id.parse().map_err(|_| "invalid node: ID: expected a UUID")?;
    let token = request.write.auth_token;
    let state = rpc.state();
    if state.nodes.find(node).is_none() {
        rpc.check_introduction(&state, node, &request.node, &token)?;
    }
    let receipt = rpc.submit(node, Command::RegisterNode { document: Box::new(request.node) }).await?;
    rpc.nodes.connections.bind(node, connection, request.write.forwarded);
    emit(rpc, node, request.node_event.into_iter()).await?;
    // The node's own secret was in the document. An identity that it has besides may still be good.
    let proof =
        rpc.authenticate(&rpc.state(), &node.to_string(), &token).map_or(Proof::Secret, |(_, proof)| proof);
    let ttl = ttl_after_decision(rpc, node).await;
    Ok(update_response(rpc, node, Some(&receipt), ttl, (&proof, false)).await)
}

pub(super) async fn update_status(
    rpc: &Rpc,
    connection: &Connection,
    request: NodeUpdateStatusRequest,
) -> Result<NodeUpdateResponse, RemoteError> {
    let (node, proof) = rpc.authenticate(&rpc.state(), &request.node_id, &request.write.auth_token)?;
    let claimed = NodeStatus::from_word(&request.status).ok_or_else(|| {
        format!("invalid status {:?} for node: expected initializing, ready or down", request.status)
    })?;
    let renewed = match claimed {
        NodeStatus::Ready => rpc.control.renew_heartbeat(node).await,
        _ => None,
    };
    let (receipt, ttl) = match renewed {
        Some(ttl) => (None, Some(ttl)),
        None => {
            let receipt = rpc.submit(node, Command::UpdateNodeStatus { node, claimed }).await?;
            (Some(receipt), ttl_after_decision(rpc, node).await)
        }
    };
    rpc.nodes.connections.bind(node, connection, request.write.forwarded);
    emit(rpc, node, request.node_event.into_iter()).await?;
    let proof = (&proof, request.force_identity_renewal);
    Ok(update_response(rpc, node, receipt.as_ref(), ttl, proof).await)
}

/// The allocations of a node, each with the index of the last change that concerns its agent.
pub(super) async fn client_allocs(
    rpc: &Rpc,
    connection: &Connection,
    request: NodeSpecificRequest,
) -> Result<NodeClientAllocsResponse, RemoteError> {
    let token = if request.secret_id.is_empty() { &request.query.auth_token } else { &request.secret_id };
    if let Some(node) = request.node_id.parse().ok().filter(|node| rpc.state().nodes.find(*node).is_some()) {
        rpc.authenticate(&rpc.state(), &request.node_id, token)?;
        rpc.nodes.connections.bind(node, connection, request.query.forwarded);
    }
    let node = request.node_id.parse().map_err(|_| "missing or malformed node ID")?;
    let mut known = rpc.polls.known(node, request.query.min_query_index);
    let read = |state: &State| Ok((state::node::assigned_index(state, node, &mut known), ()));
    let subject = watched(rpc, node);
    let (mut meta, ()) = rpc.wait_for_change(&request.query, subject, read).await?;
    // Perhaps there is more by now. What was collected has no index of its own, so the index must not fall.
    let state = rpc.state();
    let (index, allocs) = state::node::assigned(&state, node, &mut known);
    meta.index = meta.index.max(index);
    rpc.polls.answered(node, meta.index, allocs.0.len());
    let wanted = state::node::migrations(&state, node);
    let tokens = wanted.into_iter().filter_map(|(alloc, previous, key)| {
        Some((alloc.to_string(), wire::migrate_token(&key, &previous.to_string())?))
    });
    Ok(NodeClientAllocsResponse { allocs, migrate_tokens: tokens.collect(), meta })
}

pub(super) async fn get(rpc: &Rpc, request: NodeSpecificRequest) -> Result<SingleNodeResponse, RemoteError> {
    let node = request.node_id.parse().map_err(|_| "missing or malformed node ID")?;
    let read = |state: &State| {
        let row = state.nodes.find(node);
        let index = row.map_or(state.tables.nodes, |row| state.nodes.hot(row).modified);
        Ok((index.0, row.map(|row| state::node::document(&state.nodes, row))))
    };
    let (meta, node) = rpc.wait_for_change(&request.query, watched(rpc, node), read).await?;
    Ok(SingleNodeResponse { node, meta })
}

/// What a call about a node waits for; of one that is not registered yet, anything.
fn watched(rpc: &Rpc, node: NodeId) -> Subject {
    rpc.state().nodes.find(node).map_or(Subject::Everything, Subject::Node)
}

pub(super) async fn update_alloc(
    rpc: &Rpc,
    request: AllocUpdateRequest,
) -> Result<GenericResponse, RemoteError> {
    if !request.evals.is_empty() {
        return Err("evaluations field must not be set".into());
    }
    let first = request.alloc.first().ok_or("must update at least one allocation")?;
    let (node, _) = rpc.authenticate(&rpc.state(), &first.node_id, &request.write.auth_token)?;
    let receipt = rpc.submit(node, Command::UpdateAllocs { node, updates: request.alloc.0 }).await?;
    Ok(GenericResponse { meta: WriteMeta { index: receipt.index.0 } })
}

pub(super) async fn emit_events(
    rpc: &Rpc,
    request: EmitNodeEventsRequest,
) -> Result<GenericResponse, RemoteError> {
    let mut index = 0;
    for (node_id, events) in &request.node_events {
        let (node, _) = rpc.authenticate(&rpc.state(), node_id, &request.write.auth_token)?;
        index = emit(rpc, node, events.iter().cloned()).await?;
    }
    Ok(GenericResponse { meta: WriteMeta { index } })
}

pub(super) async fn update_eligibility(
    rpc: &Rpc,
    connection: &Connection,
    request: NodeUpdateEligibilityRequest,
) -> Result<NodeChangeResponse, RemoteError> {
    let to = Eligibility::from_word(&request.eligibility)
        .ok_or_else(|| format!("invalid scheduling eligibility {:?}", request.eligibility))?;
    let command = |node| Command::SetNodeEligibility { node, to };
    let token = &request.write.auth_token;
    Ok(changed(&rpc.submit_for(connection, &request.node_id, token, command).await?))
}

pub(super) async fn update_drain(
    rpc: &Rpc,
    connection: &Connection,
    request: NodeUpdateDrainRequest,
) -> Result<NodeChangeResponse, RemoteError> {
    if request.node_event.is_some() {
        return Err("node event must not be set".into());
    }
    let drain = request.drain_strategy.map(|wanted| DrainWish {
        deadline: wanted.deadline.0,
        ignore_system_jobs: wanted.ignore_system_jobs,
    });
    let (mark_eligible, meta) = (request.mark_eligible, request.meta.0);
    let command = |node| Command::SetNodeDrain { node, drain, mark_eligible, meta };
    let token = &request.write.auth_token;
    Ok(changed(&rpc.submit_for(connection, &request.node_id, token, command).await?))
}

/// What changed nothing has index 0.
fn changed(receipt: &control::Receipt) -> NodeChangeResponse {
    let index = if receipt.wrote { receipt.index.0 } else { 0 };
    NodeChangeResponse {
        node_modify_index: index,
        eval_ids: receipt.reply.evals.iter().map(ToString::to_string).collect(),
        eval_create_index: if receipt.reply.evals.is_empty() { 0 } else { index },
        meta: WriteMeta { index },
    }
}

/// How long a node may be silent whose report was decided. Nobody waits for a node that is down.
async fn ttl_after_decision(rpc: &Rpc, node: NodeId) -> Option<Duration> {
    let state = rpc.state();
    let row = state.nodes.find(node)?;
    match state.nodes.hot(row).status {
        NodeStatus::Down => None,
        _ => rpc.control.heartbeat(node).await,
    }
}

/// The answer to a registration or a heartbeat. A heartbeat that changed nothing has index 0.
async fn update_response(
    rpc: &Rpc,
    node: NodeId,
    receipt: Option<&control::Receipt>,
    ttl: Option<Duration>,
    (proof, renew): (&Proof, bool),
) -> NodeUpdateResponse {
    let state = rpc.state();
    let row = state.nodes.find(node);
    let index = receipt.filter(|receipt| receipt.wrote).map_or(0, |receipt| receipt.index.0);
    let evals = receipt.map(|receipt| &*receipt.reply.evals).unwrap_or_default();
    let (leader, addresses) = rpc.addresses();
    let server = |address| NodeServerInfo { rpc_advertise_addr: address, datacenter: rpc.datacenter.clone() };
    NodeUpdateResponse {
        heartbeat_ttl: ttl.unwrap_or_default().into(),
        eval_ids: evals.iter().map(ToString::to_string).collect(),
        eval_create_index: if evals.is_empty() { 0 } else { index },
        node_modify_index: index,
        leader_rpc_addr: leader,
        num_nodes: i32::try_from(state.nodes.len()).unwrap_or(i32::MAX),
        servers: List(addresses.into_iter().map(server).collect()),
        scheduling_eligibility: row
            .map(|row| state.nodes.hot(row).eligibility.to_string())
            .unwrap_or_default(),
        signed_identity: rpc.node_identity(&state, node, proof, renew).await,
        meta: QueryMeta { index, known_leader: rpc.knows_leader(), ..QueryMeta::default() },
    }
}

async fn emit(rpc: &Rpc, node: NodeId, events: impl Iterator<Item = NodeEvent>) -> Result<u64, RemoteError> {
    let message = |event: NodeEvent| NodeMessage {
        text: event.message,
        subsystem: event.subsystem,
        details: event.details.0.into_iter().collect(),
        time: event.timestamp.time(),
    };
    let messages: Vec<NodeMessage> = events.map(message).collect();
    if messages.is_empty() {
        return Ok(0);
    }
    let receipt = rpc.submit(node, Command::EmitNodeMessages { node, messages }).await?;
    Ok(receipt.index.0)
}
