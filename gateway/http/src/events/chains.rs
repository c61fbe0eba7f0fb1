//! What led to an event, and what followed from it.

use api::{ChainFact, EventChain, FactCause, StreamPosition};
use axum::Router;
use axum::extract::{Path, State as With};
use axum::routing::get;
use base::Index;
use feed::{FeedError, requester};
use history::{Chain, Direction, Fact, History, HistoryError, Position, Scope, Start, TraceId};
use model::RequestId;

use super::histories::{PATIENCE, answered, blocking, failed, moment};
use super::reader::hides_node;
use super::route::check_cluster;
use crate::access::{Each, ReadJob, Right, denied};
use crate::answer::Answer;
use crate::app_state::AppState;
use crate::error::Failure;
use crate::request::Read;

pub(super) fn router() -> Router<AppState> {
    Router::new().route("/v1/event/{id}/causes", get(causes)).route("/v1/event/{id}/effects", get(effects))
}

async fn causes(With(server): With<AppState>, Path(id): Path<String>, read: Read<Each>) -> Answer {
    chain(server, id, read, Direction::Causes).await
}

async fn effects(With(server): With<AppState>, Path(id): Path<String>, read: Read<Each>) -> Answer {
    chain(server, id, read, Direction::Effects).await
}

async fn chain(server: AppState, id: String, read: Read<Each>, direction: Direction) -> Answer {
    read.without_filter()?;
    let index = moment(&server, &read).await?.index;
    let start = start(&server, &id).await?;
    if let Start::Fact(at) = start
        && at.index > index
    {
        return Err(Failure::invalid(format!("id: {id} is still to come: the newest index is {index}")));
    }
    let (history, acl, seer) = (server.history.clone(), read.access.acl.clone(), server.clone());
    let may_see = move |scope: &Scope| {
        acl.is_management()
            || match scope {
                Scope::Job(key) => ReadJob::holds(&acl, &key.namespace),
                Scope::Node(node) => acl.reads_nodes() && !hides_node(&seer, &acl, &node.to_string()),
                Scope::Variable(key) => {
                    acl.allows_variable(&key.namespace, &key.path, acl::VariableCapability::List)
                }
                Scope::Cluster | Scope::Unknown => false,
            }
    };
    let walk = move || match walk(&history, start, direction, index, may_see) {
        Err(HistoryError::Gone { oldest }) => Err(gone(oldest)),
        walked => walked.map_err(|error| failed(&error)),
    };
    let (Chain { facts, cut_short, gone, hidden }, trace) = blocking(walk).await?;
    if facts.is_empty() {
        // Only who may see everything learns that something is not there.
        let is_unknown = hidden == 0 && read.access.acl.is_management();
        return Err(if is_unknown { unknown(start) } else { denied() });
    }
    let facts = facts.iter().map(fact).collect::<Vec<_>>().into();
    let trace_id = trace.map(|trace| trace.to_string()).unwrap_or_default();
    answered(&server, index, &EventChain { id, trace_id, facts, cut_short, gone, hidden: hidden as u64 })
}

/// The chain, and its trace if all of it may be seen: that names the request which the chain may end with.
fn walk(
    history: &History,
    start: Start,
    direction: Direction,
    index: Index,
    may_see: impl Fn(&Scope) -> bool,
) -> Result<(Chain, Option<TraceId>), HistoryError> {
    let chain = history.chain(start, direction, index, PATIENCE, &may_see)?;
    // What led to it decides, whichever way is asked for.
    let hidden = match direction {
        Direction::Causes => chain.hidden,
        Direction::Effects => history.chain(start, Direction::Causes, index, PATIENCE, may_see)?.hidden,
    };
    let trace = if hidden > 0 { None } else { history.trace(start, index, PATIENCE)? };
    Ok((chain, trace))
}

/// An event of the stream, `INDEX.ORDINAL`; a fact of the log, `INDEX:ORDINAL`; or a request by its name.
async fn start(server: &AppState, id: &str) -> Result<Start, Failure> {
    let fact = |(index, ordinal): (&str, &str)| {
        let index = index.parse().ok().map(Index)?;
        Some(Start::Fact(Position { index, ordinal: ordinal.parse().ok()? }))
    };
    if let Some(fact) = id.split_once(':').and_then(fact) {
        return Ok(fact);
    }
    if let Ok(request) = id.parse::<RequestId>() {
        return Ok(Start::Request(request));
    }
    let event = id.parse::<StreamPosition>().ok().filter(|position| position.after.ordinal != u32::MAX);
    let Some(StreamPosition { after: event, cluster }) = event else {
        let text = "is not the id of an event (42.0), of a fact in the log (42:0) or of a request";
        return Err(Failure::invalid(format!("id: {id:?} {text}")));
    };
    check_cluster(cluster, server.events.cluster())?;
    match server.events.fact(event).await {
        Ok(Some(ordinal)) => Ok(Start::Fact(Position { index: event.index, ordinal })),
        Ok(None) => Err(Failure::not_found("event not found")),
        Err(FeedError::Gone) => Err(gone(server.events.oldest())),
        Err(error) => Err(Failure::internal(error.to_string())),
    }
}

fn unknown(start: Start) -> Failure {
    Failure::not_found(match start {
        Start::Fact(_) => "event not found",
        Start::Request(_) => "request not found: it changed nothing, or its batch is no longer kept",
    })
}

fn gone(oldest: Index) -> Failure {
    Failure::gone(format!("id: that is no longer kept: the oldest index is {oldest}"), oldest)
}

fn name(at: Position) -> String {
    format!("{}:{}", at.index, at.ordinal)
}

fn fact(of: &Fact) -> ChainFact {
    let cause = |link: &history::Link| FactCause { id: name(link.from), how: link.how.word().to_string() };
    let named = Some(of.request).filter(|request| *request != RequestId::default());
    ChainFact {
        id: name(of.at()),
        index: of.line.index.0,
        ordinal: u32::from(of.line.ordinal),
        time: of.line.time.into(),
        event: of.line.event.to_string(),
        object: of.line.object.clone(),
        actor: of.line.actor.to_string(),
        requester: of.line.requester().map(requester),
        request_id: named.map(|request| request.to_string()).unwrap_or_default(),
        command: of.command.map_or("", model::CommandKind::name).to_string(),
        description: of.line.description.clone(),
        depth: of.depth,
        causes: of.causes.iter().map(cause).collect::<Vec<_>>().into(),
        root: of.root.map_or("", history::Root::word).to_string(),
    }
}
