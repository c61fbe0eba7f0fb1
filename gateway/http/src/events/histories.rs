//! What was: the life of an allocation, and the stories of other objects.

use std::sync::Arc;
use std::time::Duration;

use api::{
    AllocationHistory, AllocationTransition, AsOf, HistoryLine, HistoryVerified, KeptDocument, ObjectHistory,
};
use axum::Router;
use axum::extract::{Path, State as With};
use axum::http::StatusCode;
use axum::routing::get;
use base::Index;
use feed::requester;
use history::{History, HistoryError, Life, Line, LogPage, Object, Placement, Transition, Verified};
use journal::store::KeptSpan;
use model::{Algorithm, AllocId, DeploymentId, EvalId, JobKey};
use state::State;

use crate::access::{Access, Management, ReadJob, ReadNodes, Right, Somewhere};
use crate::answer::{self, Answer, Meta};
use crate::app_state::AppState;
use crate::blocking::{ago, index_of, past};
use crate::error::Failure;
use crate::request::{Read, ReadNow, Reading};
use crate::routes::kept_part;
use crate::view::decisions::{Past, Regression, regression};
use crate::view::why::reconnects;

/// How long a reader of a history waits until it has what the state shows already.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// Fewest characters of an id that is looked up: fewer match one allocation in sixteen.
const PREFIX_MIN: usize = 2;

/// Replacements of an allocation whose lives are read with its own: the newest.
const SUCCESSORS_MAX: usize = 8;

/// Facts of one page of the log, unless another number is asked for, and at most. A batch is not divided.
const LOG_PAGE: usize = 100;
const LOG_PAGE_MAX: usize = 1000;

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/v1/history", get(log))
        .route("/v1/history/verify", get(verify))
        .route("/v1/history/decisions", get(decisions))
        .route("/v1/allocation/{id}/history", get(allocation))
        .route("/v1/job/{id}/history", get(job))
        .route("/v1/node/{id}/history", get(node))
        .route("/v1/evaluation/{id}/history", get(evaluation))
        .route("/v1/deployment/{id}/history", get(deployment))
}

/// The log in words, from `since` to `as_of`, in pages.
async fn log(With(server): With<AppState>, read: Read<Management>) -> Answer {
    read.without_filter()?;
    let since = read.params.moment("since")?;
    let from = match read.options.next_token.as_str() {
        "" => None,
        token => Some(token.parse().map(Index).map_err(|_| Failure::invalid("invalid `next_token`"))?),
    };
    let most = read.options.per_page.map_or(LOG_PAGE, |most| (most as usize).min(LOG_PAGE_MAX));
    let until = end(&server, &read).await?;
    let history = server.history.clone();
    let page = blocking(move || {
        let from = match (from, since) {
            (Some(from), _) => from,
            (None, None) => Index::ZERO,
            (None, Some(AsOf::Index(index))) => index,
            // What came after the newest index of then.
            (None, Some(moment)) => match index_of(&history, moment) {
                Ok(index) => index.next(),
                // Of what is older there may be facts that are kept.
                Err(HistoryError::Gone { .. }) => kept_after(&history, moment)?,
                Err(error) => return Err(past("since", &error, &history)),
            },
        };
        let page = history.log(from, until, most).map_err(|error| failed(&error))?;
        Ok((page, history.kept()))
    });
    let (LogPage { lines, next, cut_short }, kept) = page.await?;
    let lines = lines.iter().map(line).collect::<Vec<_>>().into();
    let next_token = next.map(|next| next.to_string());
    let meta = Meta { index: until, known_leader: server.known_leader(), next_token };
    let all = ObjectHistory { lines, cut_short, ..within(kept) };
    Ok(answer::with_meta(answer::json(&all), &meta))
}

/// The first index after a moment that lies below the log.
fn kept_after(history: &History, moment: AsOf) -> Result<Index, Failure> {
    let time = match moment {
        AsOf::Index(index) => return Ok(index),
        AsOf::Time(time) => time,
        AsOf::Ago(span) => ago(span),
    };
    history.kept_after(time).map_err(|error| failed(&error))
}

/// A history without a line, which says what is there of older facts.
fn within((whole_from, kept): (Index, Vec<KeptSpan>)) -> ObjectHistory {
    let kept = kept.iter().map(kept_part).collect::<Vec<_>>().into();
    ObjectHistory { whole_from: whole_from.0, kept, ..ObjectHistory::default() }
}

/// A part of the log folded again: from `since`, the oldest there is without it.
async fn verify(With(server): With<AppState>, read: ReadNow<Management>) -> Answer {
    let since = read.0.params.moment("since")?;
    let _turn = server.openings.clone().acquire_owned().await.expect("nobody closes the semaphore");
    let history = server.history.clone();
    let folded = blocking(move || {
        let from = match since {
            Some(moment) => index_of(&history, moment),
            None => history.oldest(),
        };
        let verified = from.and_then(|from| Ok((from, history.verify(from)?)));
        verified.map_err(|error| past("since", &error, &history))
    });
    let (from, verified) = folded.await?;
    let tables = verified.digest.tables();
    let digests =
        tables.iter().map(|(table, digest)| (table.to_string(), format!("{digest:016x}"))).collect();
    let Verified { to, newest, batches, events, bytes, .. } = verified;
    let (from, to, newest) = (from.0, to.0, newest.0);
    answered(&server, verified.to, &HistoryVerified { from, to, newest, batches, events, bytes, digests })
}

/// The decisions of a part of the log, made again: from `since`, the oldest state there is without it.
async fn decisions(With(server): With<AppState>, read: ReadNow<Management>) -> Answer {
    read.0.without_filter()?;
    let since = read.0.params.moment("since")?;
    let algorithm =
        match read.0.params.get("algorithm") {
            None | Some("") => None,
            Some(name) => Some(Algorithm::from_word(name).ok_or_else(|| {
                Failure::invalid(format!("algorithm: {name:?}: expected binpack or spread"))
            })?),
        };
    let _turn = server.openings.clone().acquire_owned().await.expect("nobody closes the semaphore");
    let history = server.history.clone();
    let made = blocking(move || {
        let from = begin(&history, since);
        let made = from.and_then(|from| regression(&history, from, Regression { algorithm }));
        made.map_err(|error| past("since", &error, &history))
    });
    let made = made.await?;
    answered(&server, Index(made.to), &made)
}

/// After which index decisions are made again. A time that lies before all that is kept means all of it.
fn begin(history: &History, since: Option<AsOf>) -> Result<Index, HistoryError> {
    let (oldest, newest) = (history.oldest()?, history.newest());
    match since {
        None => Ok(oldest),
        Some(AsOf::Index(index)) if index < oldest => Err(HistoryError::Gone { oldest }),
        Some(AsOf::Index(index)) if index > newest => Err(HistoryError::Ahead { newest }),
        Some(AsOf::Index(index)) => Ok(index),
        Some(moment) => match index_of(history, moment) {
            Err(HistoryError::Gone { .. }) => Ok(oldest),
            found => found,
        },
    }
}

async fn allocation(
    With(server): With<AppState>,
    Path(id): Path<String>,
    read: Read<Somewhere<ReadJob>>,
) -> Answer {
    let state = moment(&server, &read).await?;
    let (index, history) = (state.index, server.history.clone());
    let find = move || {
        let alloc = find_alloc(&state, &history, index, &id)?;
        let life = history.life(alloc, index, PATIENCE).map_err(|error| failed(&error))?;
        if !may_see(&state, &read.access, alloc, life.placement.as_ref()) {
            return Err(unknown_alloc());
        }
        let life = life.until(index);
        let transitions = with_choices(&history, alloc, &life, index)?;
        Ok(AllocationHistory {
            id: alloc.to_string(),
            transitions: transitions.into(),
            cut_short: life.cut_short,
        })
    };
    let shown = blocking(find).await?;
    if shown.transitions.is_empty() {
        return Err(unknown_alloc());
    }
    answered(&server, index, &shown)
}

/// With what was chosen between it and its replacements when its node came back. Where that stopped a replacement, the fact is about
/// that one alone, and a line of its own here.
fn with_choices(
    history: &History,
    alloc: AllocId,
    life: &Life,
    index: Index,
) -> Result<Vec<AllocationTransition>, Failure> {
    let past = Past { history, fork_of: None };
    let mut choices = reconnects(past, alloc, &life.transitions);
    let with_choice = |one: &Transition| {
        let reconnect = one.eval.and_then(|_| choices.remove(&one.index));
        AllocationTransition { reconnect, ..transition(one) }
    };
    let mut shown: Vec<AllocationTransition> = life.transitions.iter().map(with_choice).collect();
    let is_new = |shown: &[AllocationTransition], at: Index| {
        !shown.iter().any(|one| one.index == at.0 && one.reconnect.is_some())
    };
    for successor in life.successors.iter().rev().take(SUCCESSORS_MAX) {
        let of_it = history.life(*successor, index, PATIENCE).map_err(|error| failed(&error))?.until(index);
        for (at, choice) in reconnects(past, *successor, &of_it.transitions) {
            let fact = of_it.transitions.iter().find(|one| one.index == at && one.eval.is_some());
            let Some(fact) = fact.filter(|_| choice.original == alloc.to_string() && is_new(&shown, at))
            else {
                continue;
            };
            let before = life.transitions.iter().rev().find(|one| one.index <= at);
            let view = before.map(|one| one.new).unwrap_or_default();
            let description = format!("its replacement {successor}: {}", fact.description);
            let line = Transition { old: view, new: view, description, ..fact.clone() };
            shown.push(AllocationTransition { reconnect: Some(choice), ..transition(&line) });
        }
    }
    shown.sort_by_key(|one| (one.index, one.ordinal));
    Ok(shown)
}

async fn job(With(server): With<AppState>, Path(id): Path<String>, read: Read<ReadJob>) -> Answer {
    let key = JobKey::new(read.params.namespace(), &id);
    let documents = read.params.boolean("documents")?;
    let until = end(&server, &read).await?;
    let mut shown = story_of(&server, until, id, Some(Object::Job(key.clone())), "job not found").await?;
    if documents {
        let history = server.history.clone();
        let found = blocking(move || history.job_documents(&key).map_err(|error| failed(&error))).await?;
        let found = found.into_iter().filter(|(index, _)| *index <= until);
        let found = found.map(|(index, document)| KeptDocument { index: index.0, document });
        shown.documents = found.collect::<Vec<_>>().into();
    }
    answered(&server, until, &shown)
}

async fn node(With(server): With<AppState>, Path(id): Path<String>, read: Read<ReadNodes>) -> Answer {
    let object = id.parse().ok().map(Object::Node);
    let until = end(&server, &read).await?;
    story(&server, until, id, object, "node not found").await
}

async fn evaluation(
    With(server): With<AppState>,
    Path(id): Path<String>,
    read: Read<Somewhere<ReadJob>>,
) -> Answer {
    let eval: Option<EvalId> = id.parse().ok();
    let state = moment(&server, &read).await?;
    let known = eval.and_then(|id| state.evals.lookup(id)).map(|eval| eval.facts.key.namespace.as_str());
    let object = eval.filter(|_| of_namespace(&read.access, known)).map(Object::Eval);
    story(&server, state.index, id, object, "eval not found").await
}

async fn deployment(
    With(server): With<AppState>,
    Path(id): Path<String>,
    read: Read<Somewhere<ReadJob>>,
) -> Answer {
    let deployment: Option<DeploymentId> = id.parse().ok();
    let state = moment(&server, &read).await?;
    let known = deployment.and_then(|id| state.deployments.lookup(id));
    let known = known.map(|known| state.jobs.get(known.job).key.namespace.as_str());
    let object = deployment.filter(|_| of_namespace(&read.access, known)).map(Object::Deployment);
    story(&server, state.index, id, object, "deployment not found").await
}

/// Up to where a history is wanted. Without `as_of` it is read also while nobody leads: that is when it is needed.
///
/// # Errors
/// As for the moment; and a fork has no history, because nothing of it is written.
pub(super) async fn moment(server: &AppState, read: &Reading) -> Result<Arc<State>, Failure> {
    if read.options.fork.is_some() {
        return Err(Failure::invalid(
            "this route reads the log, and nothing of a fork is written there: `fork` is not expected",
        ));
    }
    match read.options.as_of {
        None => Ok(server.control.state()),
        Some(_) => Ok(server.moment(read).await?.0),
    }
}

/// The index of [`moment`], for what is read of the log alone: the state of then need not be there.
///
/// # Errors
/// As there; 410 below the log.
async fn end(server: &AppState, read: &Reading) -> Result<Index, Failure> {
    let Some(as_of) = read.options.as_of.filter(|_| read.options.fork.is_none()) else {
        return Ok(moment(server, read).await?.index);
    };
    server.fresh(read.options.consistency, read.options.min_index).await?;
    let history = server.history.clone();
    let find = move || {
        let (oldest, newest) = (history.kept().0, history.newest());
        let found = match index_of(&history, as_of) {
            Ok(index) if index < oldest => Err(HistoryError::Gone { oldest }),
            Ok(index) if index > newest => Err(HistoryError::Ahead { newest }),
            found => found,
        };
        found.map_err(|error| past("as_of", &error, &history))
    };
    blocking(find).await
}

/// The caller may see what stood in this namespace. What was forgotten with its namespace is for who may see everything.
fn of_namespace(access: &Access, namespace: Option<&str>) -> bool {
    match namespace {
        Some(namespace) => ReadJob::holds(&access.acl, namespace),
        None => access.acl.is_management(),
    }
}

/// The caller may see the allocation, which may have been forgotten but for its placement.
pub(crate) fn may_see(state: &State, access: &Access, id: AllocId, placed: Option<&Placement>) -> bool {
    let job = state.allocs.lookup(id).map(|alloc| &state.jobs.get(alloc.job).key);
    let job = job.or(placed.map(|placed| &placed.event.key));
    of_namespace(access, job.map(|key| key.namespace.as_str()))
}

async fn story(
    server: &AppState,
    index: Index,
    id: String,
    object: Option<Object>,
    unknown: &'static str,
) -> Answer {
    let shown = story_of(server, index, id, object, unknown).await?;
    answered(server, index, &shown)
}

async fn story_of(
    server: &AppState,
    index: Index,
    id: String,
    object: Option<Object>,
    unknown: &'static str,
) -> Result<ObjectHistory, Failure> {
    let object = object.ok_or_else(|| Failure::not_found(unknown))?;
    let history = server.history.clone();
    let read = move || {
        let story = history.story(&object, index, PATIENCE).map_err(|error| failed(&error))?;
        Ok((story, history.kept()))
    };
    let (story, kept) = blocking(read).await?;
    let lines: Vec<_> = story.lines.iter().filter(|one| one.index <= index).map(line).collect();
    if lines.is_empty() {
        return Err(Failure::not_found(unknown));
    }
    Ok(ObjectHistory { id, lines: lines.into(), cut_short: story.cut_short, ..within(kept) })
}

/// The allocation with this id, or the only one whose id begins so: also one that has been forgotten.
///
/// The log is looked at up to `until`.
///
/// # Errors
/// 404, or 400 where there are several.
pub(crate) fn find_alloc(
    state: &State,
    history: &History,
    until: Index,
    text: &str,
) -> Result<AllocId, Failure> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let digits = text.chars().filter(|c| *c != '-').count();
    if digits < PREFIX_MIN {
        return Err(unknown_alloc());
    }
    let known = state.allocs.with_prefix(text).map(|row| state.allocs.get(row).id).take(2);
    let forgotten = history.allocs_with_prefix(text, 2, until, PATIENCE);
    let mut found: Vec<AllocId> = known.chain(forgotten.map_err(|error| failed(&error))?).collect();
    found.sort_unstable();
    found.dedup();
    match found.as_slice() {
        [] => Err(unknown_alloc()),
        [one] => Ok(*one),
        _ => Err(Failure::invalid(format!("several allocations have ids that begin with {text:?}"))),
    }
}

pub(crate) fn unknown_alloc() -> Failure {
    Failure::not_found("alloc not found")
}

pub(super) fn failed(error: &HistoryError) -> Failure {
    match error {
        HistoryError::Behind { .. } => Failure::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
        error => Failure::internal(error.to_string()),
    }
}

/// History reads the disk: not on the threads that serve everybody.
pub(super) async fn blocking<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(read).await;
    done.map_err(|panic| Failure::internal(panic.to_string()))?
}

pub(super) fn answered<T: serde::Serialize>(server: &AppState, index: Index, view: &T) -> Answer {
    let meta = Meta { index, known_leader: server.known_leader(), next_token: None };
    Ok(answer::with_meta(answer::json(view), &meta))
}

/// As the API shows it.
pub fn line(of: &Line) -> HistoryLine {
    HistoryLine {
        index: of.index.0,
        ordinal: u32::from(of.ordinal),
        time: of.time.into(),
        event: of.event.to_string(),
        object: of.object.clone(),
        actor: of.actor.to_string(),
        requester: of.requester().map(requester),
        description: of.description.clone(),
    }
}

/// As the API shows it.
pub(crate) fn transition(of: &Transition) -> AllocationTransition {
    let desired = |view: &history::View| view.desired.map(|d| d.to_string()).unwrap_or_default();
    let client = |view: &history::View| view.client.map(|c| c.to_string()).unwrap_or_default();
    AllocationTransition {
        index: of.index.0,
        ordinal: u32::from(of.ordinal),
        time: of.time.into(),
        old_desired: desired(&of.old),
        new_desired: desired(&of.new),
        old_client: client(&of.old),
        new_client: client(&of.new),
        actor: of.actor.to_string(),
        requester: of.requester.as_ref().map(requester),
        cause: of.cause.clone(),
        description: of.description.clone(),
        reconnect: None,
    }
}
