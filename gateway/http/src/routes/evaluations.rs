use axum::Router;
use axum::extract::{Path, State as With};
use axum::routing::{delete, get};
use control::Subject;
use model::{Command, EvalId, RequestId};
use state::State;
use state::alloc::AllocRow;
use state::eval::{Eval, EvalRow, document};

use api::{EvalCountResponse, EvalDeleteRequest, EvalDeleteResponse};
use filter::{Filter, Schema};

use crate::access::{ReadJob, Somewhere};
use crate::answer::{self, Answer};
use crate::app_state::AppState;
use crate::blocking::Changing;
use crate::error::Failure;
use crate::page::{Creation, Page, id_prefix};
use crate::request::{Json, Read, Reading, Write, as_json};
use crate::view::eval::with_related;

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/v1/evaluations", get(list).merge(delete(remove)))
        .route("/v1/evaluations/count", get(count))
        .route("/v1/evaluation/{id}", get(read))
        .route("/v1/evaluation/{id}/allocations", get(allocations))
}

async fn list(With(server): With<AppState>, read: Read<ReadJob>) -> Answer {
    let view = |state: &State, row: &EvalRow| document(state, state.evals.get(*row));
    server.list_each(read, |state: &State| state.tables.evals, evaluations, view).await
}

/// Evaluations that one command deletes.
const DELETED_AT_ONCE: usize = 512;
/// Evaluations that may be named by their ids.
const NAMED_MAX: usize = 7_281;

/// By their ids all of them, or none; by a filter what is safe to delete.
async fn remove(
    With(server): With<AppState>,
    write: Write,
    Json(request): Json<EvalDeleteRequest>,
) -> Answer {
    let wanted = match (request.eval_ids.is_empty(), request.filter.is_empty()) {
        (false, true) => named(&request.eval_ids)?,
        (true, false) => {
            let filter =
                Filter::parse(&request.filter).map_err(|error| Failure::invalid(error.to_string()))?;
            safe_matches(&server.control.state(), write.params.namespace(), &filter)?
        }
        (true, true) => return Err(Failure::invalid("evals must be deleted by either ID or filter")),
        (false, false) => return Err(Failure::invalid("evals cannot be deleted by both ID and filter")),
    };
    let size = if request.filter.is_empty() { NAMED_MAX } else { DELETED_AT_ONCE };
    let mut parts = wanted.chunks(size).map(|part| Command::DeleteEvals { evals: part.to_vec() });
    // The first part has the caller's name, and is sent also when nothing matches: it may be refused.
    let first = parts.next().unwrap_or(Command::DeleteEvals { evals: Vec::new() });
    let mut index = server.submit(&write, first).await?.index;
    for command in parts {
        let unnamed = Write { request: RequestId::default(), said: RequestId::default(), ..write.clone() };
        index = server.submit(&unnamed, command).await?.index;
    }
    let answer = EvalDeleteResponse { count: wanted.len() as i64, index: index.0 };
    answer::written(index, &answer)
}

fn named(ids: &[String]) -> Result<Vec<EvalId>, Failure> {
    if ids.len() > NAMED_MAX {
        let text = format!("{} evaluations are named: expected at most {NAMED_MAX}", ids.len());
        return Err(Failure::invalid(text));
    }
    let parse = |id: &String| {
        id.to_lowercase().parse().map_err(|error: base::IdError| Failure::invalid(error.to_string()))
    };
    ids.iter().map(parse).collect()
}

/// What the filter matches in the namespace and nothing needs any more.
fn safe_matches(state: &State, namespace: &str, filter: &Filter) -> Result<Vec<EvalId>, Failure> {
    let shown = |eval: &&Eval| namespace == "*" || eval.facts.key.namespace == namespace;
    let evals = state.evals.iter().map(|(_, eval)| eval).filter(shown);
    let safe = evals.filter(|eval| state::eval::why_kept(state, eval).is_none());
    let matched =
        |eval: &Eval| match filter.matches(Schema::nomad(), "Evaluation", &as_json(&document(state, eval))) {
            Ok(matches) => matches.then(|| Ok(eval.id())),
            Err(why) => Some(Err(Failure::invalid(why.to_string()))),
        };
    safe.filter_map(matched).collect()
}

async fn count(With(server): With<AppState>, read: Read<ReadJob>) -> Answer {
    id_prefix(&read.options.prefix)?;
    let known_leader = server.known_leader();
    let view = |state: &State| {
        let mut every = read.clone();
        every.options.per_page = None;
        Ok(EvalCountResponse {
            count: evaluations(state, &every)?.items.len() as i64,
            index: state.tables.evals.0,
            known_leader,
            ..EvalCountResponse::default()
        })
    };
    server.read(&read, |state: &State| state.tables.evals, view).await
}

async fn read(
    With(server): With<AppState>,
    Path(id): Path<String>,
    read: Read<Somewhere<ReadJob>>,
) -> Answer {
    let related = read.params.boolean("related")?;
    let index = |state: &State| match find(state, &id) {
        Some(row) => state.evals.get(row).modified,
        None => state.tables.evals,
    };
    let view = |state: &State| {
        let eval = read.eval(state, &id).ok_or_else(|| Failure::not_found("eval not found"))?;
        Ok(if related { with_related(state, eval) } else { document(state, eval) })
    };
    let subject = |state: &State| find(state, &id).map(Subject::Eval);
    server.read(&read, Changing { subject, index }, view).await
}

async fn allocations(
    With(server): With<AppState>,
    Path(id): Path<String>,
    read: Read<Somewhere<ReadJob>>,
) -> Answer {
    read.without_filter()?;
    let find = move |state: &State, read: &Reading| {
        let of_job = read.eval(state, &id).into_iter().flat_map(|eval| {
            let placed = |row: &AllocRow| {
                let alloc = state.allocs.get(*row);
                alloc.eval == eval.id() && !alloc.gone
            };
            state.jobs.get(eval.job).allocs.iter().copied().filter(placed)
        });
        Ok(Page::whole(of_job))
    };
    server.list_each(read, |state: &State| state.tables.allocs, find, super::allocations::stub).await
}

fn find(state: &State, id: &str) -> Option<EvalRow> {
    state.evals.find(id.parse::<EvalId>().ok()?)
}

fn evaluations(state: &State, read: &Reading) -> Result<Page<EvalRow>, Failure> {
    let prefix = id_prefix(&read.options.prefix)?;
    let given = |name| read.params.get(name).filter(|value| !value.is_empty());
    let (status, job) = (given("status"), given("job"));
    read.filter_alone(status.is_some() || job.is_some())?;
    let eval = |row: &EvalRow| state.evals.get(*row);
    let shown = |row: &EvalRow| {
        let eval = eval(row);
        read.shows(&eval.facts.key.namespace)
            && status.is_none_or(|status| eval.status.word() == status)
            && job.is_none_or(|job| eval.facts.key.id == job)
    };
    let json = |row: &EvalRow| as_json(&document(state, eval(row)));
    if prefix.is_empty() {
        let rows = state.evals.iter().map(|(row, _)| row).filter(shown);
        let rows = rows.map(|row| (Creation(eval(&row).created, eval(&row).id().0), row));
        return read.page("Evaluation", rows, json);
    }
    let rows = state.evals.with_prefix(&prefix).filter(shown);
    read.page("Evaluation", rows.map(|row| (eval(&row).id().0, row)), json)
}
