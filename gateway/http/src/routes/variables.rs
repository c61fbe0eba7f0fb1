//! Variables: what they hold is sealed before it becomes a command, and opened only for who may read it.

use std::collections::BTreeMap;

use api::{Params, Variable, VariableMetadata};
use axum::Router;
use axum::extract::{Path, State as With};
use axum::http::{HeaderValue, StatusCode};
use axum::response::IntoResponse;
use axum::routing::{any, get};
use base::{Duration, Index, Uuid};
use control::{NotRenewed, Subject, SubmitError};
use keyring::{Items, KeyError};
use model::command::{AcquireVariableLock, SetVariable};
use model::document::input;
use model::{Command, JobKey, Rejection, SealedItems, VariableKey, VariableLock};
use rules::variable::ITEMS_BYTES_MAX;
use serde_json::Value;
use state::State;
use state::variable::Variable as Row;

use ::acl::VariableCapability as V;
use api::Consistency;

use super::{acl::new_id, write};
use crate::access::{Access, SeeVariables, denied};
use crate::answer::{self, Answer, INDEX};
use crate::app_state::AppState;
use crate::blocking::{Changing, Watched};
use crate::error::Failure;
use crate::page::page;
use crate::request::{Call, Json, Read, Reading, Write, as_json};
use crate::sealing::once_keyed;
use crate::view::variable as view;

const NOT_FOUND: &str = "variable not found";

/// How long a lock holds, and for how long nobody else gets it, unless it says otherwise.
const LOCK_DEFAULT: Duration = Duration::from_secs(15);

pub(super) fn router() -> Router<AppState> {
    let invalid = async || Failure::invalid("Invalid method");
    let nameless = async |_: Call<SeeVariables>| Failure::invalid("missing variable path");
    Router::new()
        .route("/v1/vars", get(list))
        .route("/v1/var", any(nameless))
        .route("/v1/var/", any(nameless))
        .route("/v1/var/{*path}", get(read).merge(write(change)).delete(remove).fallback(invalid))
}

async fn list(With(server): With<AppState>, read: Read<SeeVariables>) -> Answer {
    let view = |state: &State, read: &Reading| {
        let (asked, prefix) = (read.options.namespace.as_str(), read.options.prefix.as_str());
        let everywhere = (asked == "*").then(|| state.variables.iter()).into_iter().flatten();
        let here = (asked != "*").then(|| state.variables.below(asked, prefix)).into_iter().flatten();
        let shown = everywhere
            .chain(here)
            .filter(|(key, _)| key.path.starts_with(prefix) && allows(&read.access, key, V::List));
        let document = |(key, row): &(&VariableKey, &Row)| view::metadata(&read.access, key, row);
        let kept = read.filtered("VariableMetadata", shown, |one| as_json(&document(one)))?;
        let keyed = kept.into_iter().map(|one| (JobKey::new(&one.0.namespace, &one.0.path), one));
        Ok(page(keyed, &read.options)?.map(|one| document(&one)))
    };
    server.list(read, watched(changed), view).await
}

/// `versions` lists those that are kept, `version` shows what one of them held. Both are ours.
async fn read(With(server): With<AppState>, Path(path): Path<String>, read: Read<SeeVariables>) -> Answer {
    read.without_filter()?;
    let key = key(&read.options.namespace, &path)?;
    if read.params.get("forgotten").is_some() {
        return erasures(&server, &read, &key).await;
    }
    if !allows(&read.access, &key, V::Read) {
        return Err(denied());
    }
    let index =
        watched(|state: &State| state.variables.get(&key).map_or_else(|| changed(state), |row| row.modified));
    let found = |state: &State| -> Result<Row, Failure> {
        state.variables.get(&key).cloned().ok_or_else(|| match state.erasure.last_of(&key) {
            Some(at) => Failure::not_found(format!("{NOT_FOUND}: it was forgotten at index {at}")),
            None => Failure::not_found(NOT_FOUND),
        })
    };
    if read.params.get("versions").is_some() {
        return server.read(&read, index, |state| Ok(view::versions(&found(state)?))).await;
    }
    let number = read.params.number("version")?;
    let view = |state: &State| {
        let row = found(state)?;
        let Some(number) = number else {
            let items = opened(&server, state, &key, &row.current().items)?;
            return Ok(view::variable(&read.access, &key, &row, items));
        };
        let kept = u64::try_from(number).ok().and_then(|number| row.version(number));
        let kept = kept.ok_or_else(|| {
            Failure::not_found(format!("version {number} of the variable is not kept, or never was"))
        })?;
        Ok(view::version(&key, &row, kept, opened(&server, state, &key, &kept.items)?))
    };
    server.read(&read, index, view).await
}

/// How far it is with the erasure of what was forgotten under this name. Ours.
async fn erasures(server: &AppState, read: &Reading, key: &VariableKey) -> Answer {
    if !allows(&read.access, key, V::List) {
        return Err(denied());
    }
    let names = server_names(server);
    let view = |state: &State| Ok(view::erasures(&state.erasure, key, &names));
    server.read(read, |state: &State| state.erasure.changed().max(Index(1)), view).await
}

/// Of the servers that this one knows, by their ids.
pub(super) fn server_names(server: &AppState) -> BTreeMap<String, String> {
    let members = server.cluster.members().into_iter();
    members.filter_map(|member| Some((member.tags.get("id")?.clone(), member.name))).collect()
}

/// What a change does besides, or instead of, setting the items.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Set,
    Acquire,
    Release,
    Renew,
}

impl Operation {
    /// # Errors
    /// 400 for more than one.
    fn of(params: &Params) -> Result<Operation, Failure> {
        let known = [
            ("lock-acquire", Operation::Acquire),
            ("lock-release", Operation::Release),
            ("lock-renew", Operation::Renew),
        ];
        let mut asked = known.iter().filter(|(name, _)| params.get(name).is_some());
        match (asked.next(), asked.next()) {
            (_, Some(_)) => Err(Failure::invalid("multiple lock operations")),
            (Some(_), None) if params.get("cas").is_some() => {
                Err(Failure::invalid("CAS can't be used with lock operations"))
            }
            (Some((_, operation)), None) => Ok(*operation),
            (None, None) => Ok(Operation::Set),
        }
    }
}

async fn change(
    With(server): With<AppState>,
    Path(path): Path<String>,
    write: Write,
    Json(body): Json<Value>,
) -> Answer {
    let operation = Operation::of(&write.params)?;
    let wanted = document(body)?;
    let key = key_of(&write.params, &path, &wanted)?;
    // Before anything is said about a variable that may or may not be there.
    if !allows(&write.access, &key, V::Write) {
        return Err(denied());
    }
    match operation {
        Operation::Set => set(&server, &write, key, wanted).await,
        Operation::Acquire => acquire(&server, &write, key, wanted).await,
        Operation::Release => release(&server, &write, key, wanted).await,
        Operation::Renew => renew(&server, &write, key, wanted).await,
    }
}

async fn set(server: &AppState, write: &Write, key: VariableKey, wanted: Variable) -> Answer {
    if wanted.items.is_empty() {
        return Err(Failure::invalid("variable missing required Items object"));
    }
    let lock = wanted.lock.as_ref().map(|lock| lock.id.as_str()).filter(|id| !id.is_empty());
    let lock = lock.map(lock_id).transpose()?;
    let (only_at, items) = (only_at(&write.params)?, wanted.items.0);
    let sealed = sealed(server, &key, &items).await?;
    let command = SetVariable { key: key.clone(), items: sealed, only_at, lock };
    submit(server, write, &key, Command::SetVariable(Box::new(command)), Some(items), lock.is_some()).await
}

/// Without items a variable that is there keeps those that it has; without a lock the default one is acquired, as
/// Nomad's SDK for Go expects.
async fn acquire(server: &AppState, write: &Write, key: VariableKey, wanted: Variable) -> Answer {
    let lock = wanted.lock.unwrap_or_default();
    let or_default = |span: Duration| if span == Duration::ZERO { LOCK_DEFAULT } else { span };
    let lock = VariableLock {
        id: if lock.id.is_empty() { new_id() } else { lock_id(&lock.id)? },
        ttl: or_default(lock.ttl.0),
        delay: or_default(lock.lock_delay.0),
    };
    let items = wanted.items.0;
    let (sealed, keep_items) = (sealed(server, &key, &items).await?, items.is_empty());
    let command = AcquireVariableLock { key: key.clone(), items: sealed, keep_items, lock };
    let items = (!keep_items).then_some(items);
    submit(server, write, &key, Command::AcquireVariableLock(Box::new(command)), items, true).await
}

async fn release(server: &AppState, write: &Write, key: VariableKey, wanted: Variable) -> Answer {
    let command = Command::ReleaseVariableLock { key: key.clone(), lock: own_lock(&wanted)? };
    // Nothing was set, so nothing is shown, as in Nomad.
    submit(server, write, &key, command, Some(Items::new()), false).await
}

/// Nothing is written: the leader alone counts how long a lock holds.
async fn renew(server: &AppState, write: &Write, key: VariableKey, wanted: Variable) -> Answer {
    let renewed = server.control.renew_lock(&key, own_lock(&wanted)?).await;
    let renewed = renewed.ok_or_else(|| Failure::internal("No cluster leader"))?;
    renewed.map_err(|why| {
        let status = match why {
            NotRenewed::Unknown => StatusCode::NOT_FOUND,
            NotRenewed::Unlocked | NotRenewed::Foreign => StatusCode::CONFLICT,
        };
        Failure::new(status, why.to_string())
    })?;
    server.fresh(Consistency::Leased, Index::ZERO).await?;
    let state = server.control.state();
    let row = state.variables.get(&key).ok_or_else(|| Failure::not_found(NotRenewed::Unknown.to_string()))?;
    // Who renews knows the lock.
    Ok(answer::json(&VariableMetadata { lock: view::lock(row), ..view::metadata(&write.access, &key, row) }))
}

async fn remove(With(server): With<AppState>, Path(path): Path<String>, write: Write) -> Answer {
    let key = key(write.params.namespace(), &path)?;
    if !allows(&write.access, &key, V::Destroy) {
        return Err(denied());
    }
    if write.params.get("forget").is_some() {
        return forget(&server, &write, key).await;
    }
    let command = Command::DeleteVariable { key: key.clone(), only_at: only_at(&write.params)?, lock: None };
    match server.submitted(&write, command).await? {
        Ok(receipt) => {
            Ok((StatusCode::NO_CONTENT, [(INDEX, HeaderValue::from(receipt.index.0))]).into_response())
        }
        Err(error) => refused(&server, &write.access, &key, error).await,
    }
}

/// Deletes it, and has every server erase the key of all that it ever held. Ours.
async fn forget(server: &AppState, write: &Write, key: VariableKey) -> Answer {
    if write.params.get("cas").is_some() {
        return Err(Failure::invalid("`cas` can't be used with `forget`"));
    }
    let command = Command::ForgetVariable { key: key.clone(), lock: None };
    match server.submitted(write, command).await? {
        Ok(receipt) => {
            let state = server.after(&receipt).await?;
            let mut erasures = view::erasures(&state.erasure, &key, &server_names(server));
            erasures.retain(|erasure| erasure.forgotten_at == receipt.index.0);
            let erasure = erasures.into_iter().next();
            answer::written(receipt.index, &erasure.ok_or_else(|| Failure::internal("it is not forgotten"))?)
        }
        Err(error) => refused(server, &write.access, &key, error).await,
    }
}

/// Has it done, and answers with what came of it. `items`: what was set, if something was; `shows_lock`: to who holds it.
async fn submit(
    server: &AppState,
    write: &Write,
    key: &VariableKey,
    command: Command,
    items: Option<Items>,
    shows_lock: bool,
) -> Answer {
    let receipt = match server.submitted(write, command).await? {
        Ok(receipt) => receipt,
        Err(error) => return refused(server, &write.access, key, error).await,
    };
    let state = server.after(&receipt).await?;
    let row =
        state.variables.get(key).ok_or_else(|| Failure::not_found("the variable was purged meanwhile"))?;
    // Somebody may have changed it since: the caller compares with what it has written itself.
    let is_own = row.modified <= receipt.index;
    let items = match items {
        Some(items) => items,
        None if allows(&write.access, key, V::Read) => opened(server, &state, key, &row.current().items)?,
        None => Items::new(),
    };
    let mut shown = view::variable(&write.access, key, row, items);
    if !is_own {
        let version = row.versions.iter().find(|version| version.index == receipt.index);
        shown.modify_index = receipt.index.0;
        shown.modify_time = version.map_or(shown.modify_time, |version| version.at.0);
    }
    if shows_lock && is_own {
        shown.lock = view::lock(row);
    }
    answer::written(receipt.index, &shown)
}

/// A conflict is answered with what is there, as far as the caller may read it; a variable of index 0 where there is none.
async fn refused(server: &AppState, access: &Access, key: &VariableKey, error: SubmitError) -> Answer {
    let SubmitError::Rejected(Rejection::VariableConflict { at, .. }) = &error else {
        return Err(error.into());
    };
    let reached = server.control.reach(*at).await;
    reached.map_err(|_| Failure::internal("No cluster leader"))?;
    let state = server.control.state();
    let Some(row) = state.variables.get(key) else {
        let nothing =
            Variable { namespace: key.namespace.clone(), path: key.path.clone(), ..Variable::default() };
        return Ok((StatusCode::CONFLICT, answer::json(&nothing)).into_response());
    };
    let items = match allows(access, key, V::Read) {
        true => opened(server, &state, key, &row.current().items)?,
        false => Items::new(),
    };
    Ok((StatusCode::CONFLICT, answer::json(&view::variable(access, key, row, items))).into_response())
}

/// # Errors
/// 400: a single variable is in one namespace, and its path is well formed.
fn key(namespace: &str, path: &str) -> Result<VariableKey, Failure> {
    if namespace == "*" {
        return Err(Failure::invalid("a variable is in one namespace: `namespace` cannot be *"));
    }
    rules::variable::check_path(path)?;
    Ok(VariableKey::new(namespace, path))
}

/// The namespace may stand in the variable instead of the parameters.
fn key_of(params: &Params, path: &str, wanted: &Variable) -> Result<VariableKey, Failure> {
    if !wanted.path.is_empty() && wanted.path != path {
        return Err(Failure::invalid("variable path does not match the path of the request"));
    }
    let asked = params.get("namespace").filter(|name| !name.is_empty());
    match (asked, wanted.namespace.as_str()) {
        (Some(asked), given) if !given.is_empty() && asked != given => {
            Err(Failure::invalid("variable namespace does not match the namespace of the request"))
        }
        (None, given) if !given.is_empty() => key(given, path),
        _ => key(params.namespace(), path),
    }
}

/// What is wrong with it is said without any of its values: errors are recorded, and secrets are not.
fn document(body: Value) -> Result<Variable, Failure> {
    input::from_request(body).map_err(|error: input::InputError| {
        Failure::invalid(format!("invalid variable: {}: expected a value of another type", error.path))
    })
}

fn only_at(params: &Params) -> Result<Option<Index>, Failure> {
    let Some(text) = params.get("cas") else { return Ok(None) };
    let index =
        text.parse().map_err(|_| Failure::invalid(format!("invalid `cas` {text:?}: expected an index")));
    Ok(Some(Index(index?)))
}

fn own_lock(wanted: &Variable) -> Result<Uuid, Failure> {
    let lock = wanted.lock.as_ref().filter(|lock| !lock.id.is_empty());
    lock_id(&lock.ok_or_else(|| Failure::invalid("variable missing required Lock.ID"))?.id)
}

fn lock_id(text: &str) -> Result<Uuid, Failure> {
    text.parse().map_err(|_| Failure::invalid("invalid Lock.ID: expected a UUID"))
}

fn allows(access: &Access, key: &VariableKey, capability: V) -> bool {
    access.acl.allows_variable(&key.namespace, &key.path, capability)
}

/// # Errors
/// 400 if there is too much of it, 500 while there is no key.
pub(super) async fn sealed(
    server: &AppState,
    key: &VariableKey,
    items: &Items,
) -> Result<SealedItems, Failure> {
    let size: usize = items.iter().map(|(name, value)| name.len() + value.len()).sum();
    if size > ITEMS_BYTES_MAX {
        return Err(Failure::invalid(format!(
            "variables are limited to {} KiB of keys and values together, these have {size} bytes",
            ITEMS_BYTES_MAX / 1024
        )));
    }
    if items.keys().any(String::is_empty) {
        return Err(Failure::invalid("invalid Items: expected keys that are not empty"));
    }
    once_keyed(server, "variables", |state| server.signer.seal_items(state, key, items)).await
}

fn opened(
    server: &AppState,
    state: &State,
    key: &VariableKey,
    items: &SealedItems,
) -> Result<Items, Failure> {
    // What may be of the past is asked of what is true now.
    let now = server.control.state();
    let forgotten = now.erasure.forgotten_at(key, items.sealed.key);
    let gone = |since: String| {
        Failure::new(StatusCode::GONE, format!("{key} was forgotten{since}: what it held is erased"))
    };
    if let Some(at) = forgotten {
        return Err(gone(format!(" at index {at}")));
    }
    let opened = server.signer.open_items(&state.keyring, key, items);
    opened.map_err(|error| match error {
        // This log does not say so: it is older than the key tree on this server's disk.
        KeyError::Erased => gone(String::new()),
        error => Failure::internal(format!("{key} cannot be opened: {error}")),
    })
}

fn watched(index: impl Fn(&State) -> Index) -> impl Watched {
    Changing { subject: |_: &State| Some(Subject::Variables), index }
}

fn changed(state: &State) -> Index {
    state.variables.changed().max(Index(1))
}
