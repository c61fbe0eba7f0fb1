//! What would happen: changes on a fork of the state, which nobody else sees; and forks that are kept, to be read and to go
//! on from.

mod changes;

use std::sync::Arc;
use std::time::{Duration, Instant};

use api::{ForkAdvanceRequest, ForkChangesRequest, ForkRequest, Params};
use axum::Router;
use axum::extract::{Path, State as With};
use axum::routing::{get, post};
use base::Index;
use control::whatif::{DURATION_MAX, KeptFork, Question, Refused, Until};
use model::document::{ForkResult, input};
use serde_json::Value;
use state::State;
use tokio::sync::OwnedSemaphorePermit;

use super::write;
use crate::access::{Access, ReadJob, ReadNodes};
use crate::answer::{self, Answer};
use crate::app_state::{AppState, now};
use crate::blocking::FORKS_MAX;
use crate::error::Failure;
use crate::forks::{TTL_MAX, Turn};
use crate::request::{Json, Read, ReadNow, Reading};
use changes::Asking;

/// The longest time that a fork may take. The answer then says how far it came.
const TIME_MAX: Duration = Duration::from_secs(20);

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/v1/fork", write(fork))
        .route("/v1/forks", get(list))
        .route("/v1/fork/{id}", get(report).delete(remove))
        .route("/v1/fork/{id}/changes", post(change).put(change))
        .route("/v1/fork/{id}/advance", post(advance).put(advance))
}

async fn fork(With(server): With<AppState>, read: Read<ReadNodes>, Json(body): Json<Value>) -> Answer {
    changes::check_names(&body, &["as_of", "changes", "until", "ttl"])?;
    let request: ForkRequest = input::from_request(body)?;
    let mut read = Reading::from(read);
    if read.options.fork.is_some() {
        let text = "further changes of a kept fork are for POST /v1/fork/:id/changes: `fork` is not expected";
        return Err(Failure::invalid(text));
    }
    begin_at(&mut read, &request.as_of)?;
    let until = until(&request.until)?;
    let ttl = ttl(&request.ttl)?;
    // Before its state is opened: that takes memory too.
    let turn = turn(&server)?;
    let (state, _) = server.moment(&read).await?;
    may_see_all(&read.access, &state)?;
    let asking = Asking { server: &server, params: &read.params, access: &read.access, state: &state };
    let changes = asking.changes(request.changes.0)?;
    let room = ttl.map(|ttl| server.kept_forks.begin(&read.access, ttl)).transpose()?;
    let now = if read.options.as_of.is_some() { state.time } else { now() };
    let question = Question { changes, until, now, job_count_max: server.job_count_max };
    let index = state.index;
    let (fork, result) = computed(turn, move |go_on| KeptFork::open(&state, &question, go_on)).await?;
    answered(&server, index, room, fork, result)
}

/// The kept forks that the caller may read.
async fn list(With(server): With<AppState>, read: ReadNow<ReadNodes>) -> Answer {
    read.0.without_filter()?;
    Ok(answer::json(&server.kept_forks.list(&read.0.access)))
}

async fn report(
    With(server): With<AppState>,
    Path(id): Path<String>,
    ReadNow(read): ReadNow<ReadNodes>,
) -> Answer {
    let (fork, kept) = server.kept_forks.find_with_account(&read.access, &id)?;
    may_see_all(&read.access, fork.state())?;
    let rendering = server.renders.clone().acquire_owned().await.expect("nobody closes the semaphore");
    let index = fork.state().index;
    let compared = tokio::task::spawn_blocking(move || {
        let _turn = rendering;
        fork.result()
    });
    let result = ForkResult { kept: Some(kept), ..compared.await? };
    Ok(shown(&server, index, &result))
}

async fn remove(
    With(server): With<AppState>,
    Path(id): Path<String>,
    ReadNow(read): ReadNow<ReadNodes>,
) -> Answer {
    server.kept_forks.remove(&read.access, &id)?;
    Ok(answer::json(&serde_json::json!({})))
}

async fn change(
    With(server): With<AppState>,
    Path(id): Path<String>,
    ReadNow(read): ReadNow<ReadNodes>,
    Json(body): Json<Value>,
) -> Answer {
    changes::check_names(&body, &["changes", "until"])?;
    let request: ForkChangesRequest = input::from_request(body)?;
    let until = until(&request.until)?;
    further(&server, &read, &id, request.changes.0, until).await
}

/// Lets time pass on a kept fork.
async fn advance(
    With(server): With<AppState>,
    Path(id): Path<String>,
    ReadNow(read): ReadNow<ReadNodes>,
    Json(body): Json<Value>,
) -> Answer {
    changes::expect("", &body, &["by"])?;
    let request: ForkAdvanceRequest = input::from_request(body)?;
    let wrong = || {
        Failure::invalid(format!("by: {:?}: expected a time like \"1h\" up to {DURATION_MAX}", request.by))
    };
    let span = request.by.parse::<base::Duration>().ok().filter(|span| span.0 > 0 && *span <= DURATION_MAX);
    further(&server, &read, &id, Vec::new(), Until::Passed(span.ok_or_else(wrong)?)).await
}

/// Takes a kept fork further.
async fn further(
    server: &AppState,
    read: &Reading,
    id: &str,
    wanted: Vec<api::ForkChange>,
    until: Until,
) -> Answer {
    let turn = turn(server)?;
    let (room, fork) = server.kept_forks.change(&read.access, id)?;
    may_see_all(&read.access, fork.state())?;
    if let Until::Passed(span) = until
        && span > fork.time_left()
    {
        let left = fork.time_left();
        return Err(Failure::invalid(format!(
            "{span} is more than may pass: of {DURATION_MAX} on the clock of a fork, {left} are left"
        )));
    }
    let asking = Asking { server, params: &read.params, access: &read.access, state: fork.state() };
    let changes = asking.changes(wanted)?;
    let (fork, result) = computed(turn, move |go_on| fork.changed(&changes, until, go_on)).await?;
    let index = fork.state().index;
    answered(server, index, Some(room), fork, result)
}

fn turn(server: &AppState) -> Result<OwnedSemaphorePermit, Failure> {
    server.forks.clone().try_acquire_owned().map_err(|_| {
        Failure::too_many(format!("{FORKS_MAX} forks are being computed already: try again in a second"))
    })
}

/// Runs a fork where that is nobody's way, until whoever asked goes away.
async fn computed(
    turn: OwnedSemaphorePermit,
    run: impl FnOnce(&dyn Fn() -> bool) -> Result<KeptFork, Refused> + Send + 'static,
) -> Result<(KeptFork, ForkResult), Failure> {
    // Dropped when nobody waits for the answer any more.
    let caller = Arc::new(());
    let waiting = Arc::downgrade(&caller);
    let computed = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        let began = Instant::now();
        let fork = run(&|| waiting.strong_count() > 0 && began.elapsed() < TIME_MAX)?;
        let result = fork.result();
        Ok::<_, Refused>((fork, result))
    });
    let computed = computed.await??;
    drop(caller);
    Ok(computed)
}

/// The result of a fork, which is kept if there is room for it.
fn answered(
    server: &AppState,
    index: Index,
    room: Option<Turn>,
    fork: KeptFork,
    result: ForkResult,
) -> Answer {
    let kept = room.map(|room| room.finish(fork, &result)).transpose()?;
    Ok(shown(server, index, &ForkResult { kept, ..result }))
}

fn shown(server: &AppState, index: Index, result: &ForkResult) -> axum::response::Response {
    let meta = answer::Meta { index, known_leader: server.known_leader(), next_token: None };
    answer::with_meta(answer::json(result), &meta)
}

/// The moment may stand in the body, or where reads have it.
fn begin_at(read: &mut Reading, as_of: &str) -> Result<(), Failure> {
    let given = Params::new(vec![("as_of".to_string(), as_of.to_string())]).moment("as_of")?;
    match (given, read.options.as_of) {
        (Some(given), Some(other)) if given != other => {
            Err(Failure::invalid("`as_of` of the body and of the request: expected one moment, not two"))
        }
        (Some(_), _) => {
            read.options.as_of = given;
            Ok(())
        }
        (None, _) => Ok(()),
    }
}

fn until(text: &str) -> Result<Until, Failure> {
    if matches!(text, "" | "quiet") {
        return Ok(Until::Quiet);
    }
    let span = text.parse::<base::Duration>().ok();
    let fits = span.filter(|span| span.0 > 0 && *span <= DURATION_MAX);
    fits.map(Until::Passed).ok_or_else(|| {
        Failure::invalid(format!(
            "until: {text:?}: expected \"quiet\", or a time like \"1h\" up to {DURATION_MAX}"
        ))
    })
}

/// None for a fork that is not kept.
fn ttl(text: &str) -> Result<Option<base::Duration>, Failure> {
    if text.is_empty() {
        return Ok(None);
    }
    let span = text.parse::<base::Duration>().ok().filter(|span| span.0 > 0 && *span <= TTL_MAX);
    let wrong = || Failure::invalid(format!("ttl: {text:?}: expected a time like \"1h\" up to {TTL_MAX}"));
    span.map(Some).ok_or_else(wrong)
}

/// What a fork says is about all jobs and nodes: what is moved is anybody's.
fn may_see_all(access: &Access, state: &State) -> Result<(), Failure> {
    state.namespaces.names().into_iter().try_for_each(|namespace| access.require::<ReadJob>(namespace))
}
