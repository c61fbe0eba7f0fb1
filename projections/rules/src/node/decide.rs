use base::matches_glob;
use model::document::Node;
use model::event::{
    AllocsMarkedUnknown, Event, NewEval, NodeDeregistered, NodeEligibilityChanged, NodeMessage,
    NodeMessagesEmitted, NodeRegistered, NodeStatusChanged, NodeUpdated, VolumeDeregistered,
};
use model::{
    Actor, AllocId, ClientStatus, Doc, Eligibility, JobType, NodeId, NodeStatus, Rejection, Trigger,
};
use state::State;
use state::job::JobState;
use state::node::{NodeHot, NodeRow, secret_hash};
use state::pool::ALL;

use super::class::computed_class;
use crate::decision::{Context, Decision};
use crate::eval::{self, created};
use crate::pool;

/// A node registers. Whatever status it claims, a registration does not change its status.
pub fn register(state: &State, ctx: &mut Context, document: &Node) -> Result<Decision, Rejection> {
    let node = checked_id(document)?;
    let secret = secret_hash(&document.secret_id);
    let described = described(document);
    let class = computed_class(&described);
    let pool = pool::created_by_node(state, &described.node_pool).map(Event::from);
    let Some(row) = state.nodes.find(node) else {
        let document = Doc::of(&described);
        let registered = NodeRegistered { node, document, computed_class: class, secret_hash: secret };
        return Ok(Decision::of(pool.into_iter().chain([registered.into()]).collect()));
    };
    let (hot, cold) = (state.nodes.hot(row), state.nodes.cold(row));
    if cold.secret_hash != secret {
        return Err(Rejection::NodeSecretMismatch(node));
    }
    if *cold.document == described {
        return Ok(Decision::nothing());
    }
    let updated = NodeUpdated { node, document: Doc::of(&described), computed_class: class };
    let mut events: Vec<Event> = pool.into_iter().chain([updated.into()]).collect();
    if hot.status == NodeStatus::Down || constraints_may_differ(&cold.document, &described) {
        events.extend(created(node_evals(state, ctx, row, &described)));
    }
    Ok(Decision::of(events))
}

/// A heartbeat. The node becomes `ready` only after it has reported its allocations since it was last silent; a
/// heartbeat that changes no status writes nothing.
pub fn update_status(
    state: &State,
    ctx: &mut Context,
    actor: &Actor,
    node: NodeId,
    claimed: NodeStatus,
) -> Result<Decision, Rejection> {
    let row = known(state, node)?;
    if claimed == NodeStatus::Disconnected && matches!(actor, Actor::Node(_)) {
        return Err(Rejection::NodeInvalid {
            field: "Status".into(),
            expected: "initializing, ready or down".into(),
        });
    }
    let hot = state.nodes.hot(row);
    let unsettled = has_unended_allocs(state, row) && hot.allocs_reported <= hot.silent_since;
    let to = match (hot.status, claimed) {
        // A node gets no work before it has reported what it already runs.
        (NodeStatus::Disconnected, NodeStatus::Ready) => NodeStatus::Initializing,
        (NodeStatus::Initializing | NodeStatus::Down, NodeStatus::Ready) if unsettled => {
            NodeStatus::Initializing
        }
        (_, claimed) => claimed,
    };
    let back = hot.status == NodeStatus::Down && !to.is_silent();
    let message = back.then(|| NodeMessage::new("Cluster", "Node reregistered by heartbeat", ctx.time));
    let mut decision = change_status(state, ctx, row, hot, to, message);
    if hot.status.is_silent() && to == NodeStatus::Initializing {
        decision.events.extend(still_believed_running(state, row));
    }
    Ok(decision)
}

/// While the node was silent its allocations stayed `running`, and a node does not repeat a report that was
/// acknowledged. Marked `unknown` they are reported again; otherwise the node would never become ready.
fn still_believed_running(state: &State, row: NodeRow) -> Option<Event> {
    let allocs = state.nodes.load(row).allocs.iter().map(|alloc| state.allocs.get(*alloc));
    // What has not started yet is reported when it does.
    let believed = allocs.filter(|alloc| !alloc.is_stopping() && alloc.client == ClientStatus::Running);
    let allocs: Vec<AllocId> = believed.map(|alloc| alloc.id).collect();
    (!allocs.is_empty()).then(|| AllocsMarkedUnknown { allocs, follow_up: None }.into())
}

/// No heartbeat came within the TTL. The node is down, or disconnected if an allocation there may wait for its return.
pub fn miss_heartbeat(state: &State, ctx: &mut Context, node: NodeId) -> Result<Decision, Rejection> {
    let row = known(state, node)?;
    let hot = state.nodes.hot(row);
    let waits = state.nodes.load(row).allocs.iter().any(|alloc| {
        let alloc = state.allocs.get(*alloc);
        !alloc.is_stopping() && alloc.lost_after().0 > 0 && !alloc.is_expired(ctx.time)
    });
    let to = match hot.status {
        NodeStatus::Ready | NodeStatus::Disconnected if waits => NodeStatus::Disconnected,
        _ => NodeStatus::Down,
    };
    let message = NodeMessage::new("Cluster", "Node heartbeat missed", ctx.time);
    Ok(change_status(state, ctx, row, hot, to, Some(message)))
}

pub fn emit_messages(state: &State, node: NodeId, messages: &[NodeMessage]) -> Result<Decision, Rejection> {
    known(state, node)?;
    if messages.is_empty() {
        return Ok(Decision::nothing());
    }
    Ok(NodeMessagesEmitted { node, messages: messages.to_vec() }.into())
}

pub fn set_eligibility(
    state: &State,
    ctx: &mut Context,
    node: NodeId,
    to: Eligibility,
) -> Result<Decision, Rejection> {
    let row = known(state, node)?;
    if to == Eligibility::Eligible && state.nodes.cold(row).draining().is_some() {
        return Err(Rejection::NodeDraining(node));
    }
    if state.nodes.hot(row).eligibility == to {
        return Ok(Decision::nothing());
    }
    let text = format!("Node marked as {to} for scheduling");
    let message = NodeMessage::new("Cluster", &text, ctx.time);
    let mut events: Vec<Event> = vec![NodeEligibilityChanged { node, to, message }.into()];
    if to == Eligibility::Eligible {
        events.extend(created(node_evals(state, ctx, row, &state.nodes.cold(row).document)));
    }
    Ok(Decision::of(events))
}

pub fn deregister(state: &State, ctx: &mut Context, node: NodeId) -> Result<Decision, Rejection> {
    let row = known(state, node)?;
    let mut events: Vec<Event> = vec![NodeDeregistered { node }.into()];
    if state.nodes.cold(row).document.gc_volumes_on_node_gc {
        let of_node = state.volumes.iter().filter(|(_, volume)| volume.is_on(node));
        events.extend(of_node.map(|(key, _)| VolumeDeregistered { volume: key.clone() }.into()));
    }
    events.extend(created(node_evals(state, ctx, row, &state.nodes.cold(row).document)));
    Ok(Decision::of(events))
}

pub fn evaluate(state: &State, ctx: &mut Context, node: NodeId) -> Result<Decision, Rejection> {
    let row = known(state, node)?;
    Ok(Decision::of(created(node_evals(state, ctx, row, &state.nodes.cold(row).document)).collect()))
}

pub(crate) fn known(state: &State, node: NodeId) -> Result<NodeRow, Rejection> {
    state.nodes.find(node).ok_or(Rejection::NodeUnknown(node))
}

fn change_status(
    state: &State,
    ctx: &mut Context,
    row: NodeRow,
    hot: &NodeHot,
    to: NodeStatus,
    message: Option<NodeMessage>,
) -> Decision {
    let (from, cold) = (hot.status, state.nodes.cold(row));
    if from == to {
        return Decision::nothing();
    }
    let mut events: Vec<Event> = vec![NodeStatusChanged { node: cold.id, from, to, message }.into()];
    if change_needs_evals(from, to) {
        events.extend(created(node_evals(state, ctx, row, &cold.document)));
    }
    Decision::of(events)
}

/// Which changes of status need the jobs on the node to be evaluated, as in Nomad.
fn change_needs_evals(from: NodeStatus, to: NodeStatus) -> bool {
    match (from, to) {
        (_, NodeStatus::Down | NodeStatus::Disconnected) | (NodeStatus::Disconnected, _) => true,
        (NodeStatus::Initializing | NodeStatus::Down, NodeStatus::Ready) => true,
        // Not in Nomad: the way back from `down` may lead over `initializing`.
        (NodeStatus::Down, NodeStatus::Initializing) => true,
        (NodeStatus::Initializing | NodeStatus::Ready, NodeStatus::Initializing)
        | (NodeStatus::Ready, NodeStatus::Ready) => false,
    }
}

/// One evaluation for each job that the change of the node concerns.
pub(super) fn node_evals(state: &State, ctx: &mut Context, row: NodeRow, document: &Node) -> Vec<NewEval> {
    let node = state.nodes.cold(row).id;
    let mut jobs: Vec<_> = Vec::new();
    for alloc in &state.nodes.load(row).allocs {
        let alloc = state.allocs.get(*alloc);
        let concerns = match alloc.version.kind {
            JobType::Service => !(alloc.is_stopping() && alloc.client.is_terminal()),
            JobType::Batch => !alloc.client.is_terminal(),
            JobType::System | JobType::Sysbatch => false,
        };
        if concerns && !jobs.contains(&alloc.job) && !state.jobs.get(alloc.job).purged {
            jobs.push(alloc.job);
        }
    }
    let systems =
        state.jobs.iter().filter(|(_, job)| job.is_wanted() && job.current().kind == JobType::System);
    jobs.extend(systems.filter(|(_, job)| reaches(job, document)).map(|(row, _)| row));
    let index = ctx.index;
    let mut eval_for = |job: &JobState| NewEval {
        node: Some(node),
        node_modify: index,
        ..eval::for_job(ctx, job, Trigger::NodeUpdate)
    };
    jobs.into_iter().map(|job| eval_for(state.jobs.get(job))).collect()
}

/// The node is in the job's pool and in one of its datacenters.
fn reaches(job: &JobState, node: &Node) -> bool {
    let wanted = &job.current().job;
    let pool = wanted.node_pool.as_deref().unwrap_or("default");
    (pool == "all" || pool == node.node_pool)
        && wanted.datacenters.iter().any(|pattern| matches_glob(pattern, &node.datacenter))
}

fn has_unended_allocs(state: &State, row: NodeRow) -> bool {
    state.nodes.load(row).allocs.iter().any(|alloc| !state.allocs.get(*alloc).is_terminal())
}

fn constraints_may_differ(before: &Node, after: &Node) -> bool {
    let devices = |node: &Node| node.node_resources.as_ref().map(|resources| resources.devices.clone());
    before.datacenter != after.datacenter
        || before.name != after.name
        || before.node_class != after.node_class
        || before.attributes != after.attributes
        || before.meta != after.meta
        || before.drivers != after.drivers
        || before.host_volumes != after.host_volumes
        || devices(before) != devices(after)
}

fn checked_id(document: &Node) -> Result<NodeId, Rejection> {
    let invalid = |field: &'static str, expected: &'static str| {
        Err(Rejection::NodeInvalid { field: field.into(), expected: expected.into() })
    };
    let Ok(node) = document.id.parse() else { return invalid("ID", "a UUID") };
    if document.datacenter.is_empty() {
        return invalid("Datacenter", "a name");
    }
    if document.name.is_empty() {
        return invalid("Name", "a name");
    }
    if document.attributes.is_empty() {
        return invalid("Attributes", "at least one fingerprinted attribute");
    }
    if document.secret_id.is_empty() {
        return invalid("SecretID", "the node's secret");
    }
    let named = &document.node_pool;
    if !named.is_empty() && !pool::is_name(named) || named == ALL {
        return invalid("NodePool", "up to 128 letters, digits, dashes and underscores, and not \"all\"");
    }
    Ok(node)
}

/// What the node says of itself, without what only servers know and without its secret.
pub(crate) fn described(document: &Node) -> Node {
    let pool = if document.node_pool.is_empty() { "default" } else { &document.node_pool };
    Node {
        id: String::new(),
        secret_id: String::new(),
        node_pool: pool.to_string(),
        status: String::new(),
        status_description: String::new(),
        status_updated_at: 0,
        events: Default::default(),
        drain: false,
        drain_strategy: None,
        last_drain: None,
        computed_class: String::new(),
        create_index: 0,
        modify_index: 0,
        last_missed_heartbeat_index: 0,
        last_alloc_update_index: 0,
        identity_signing_key_id: String::new(),
        ..document.clone()
    }
}
