//! What is read out of a request before a route sees it.

use std::marker::PhantomData;
use std::net::IpAddr;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use acl::Acl;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{FromRequest, FromRequestParts, Query, Request, State as With};
use axum::http::header::USER_AGENT;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base::Uuid;
use filter::{Filter, Schema};
use model::document::input;
use model::{AGENT_MAX, Caller, RequestId};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use state::State;
use state::alloc::Alloc;
use state::deployment::Deployment;
use state::eval::Eval;
use wire::CallerAddress;

use api::{Params, ReadOptions};

use crate::access::{Access, Each, Newcomers, Right, denied, presented};
use crate::app_state::AppState;
use crate::error::Failure;
use crate::page::{self, Page, Token};

/// Largest body of a request. A job of ten thousand groups takes a third of it.
pub(crate) const BODY_MAX: usize = 16 * 1024 * 1024;

/// How long a body may take to come: 16 MiB at two megabits a second.
const BODY_PATIENCE: Duration = Duration::from_secs(64);

/// Names a request, so that its repetition takes effect once.
const REQUEST_ID: &str = "x-sojourn-request-id";

/// The same as the parameter `as_of`, for clients that cannot add one.
const AS_OF: &str = "x-sojourn-as-of";

/// The same as the parameter `fork`.
pub(crate) const FORK: &str = "x-sojourn-fork";

/// A read that needs a right: its parameters, checked, once the caller has it.
pub(crate) struct Read<R>(Reading, PhantomData<R>);

/// A read of what only the present has: what this server is doing, who its neighbours are.
pub(crate) struct ReadNow<R>(pub Read<R>);

/// What a read asks for, and who asks.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    pub params: Params,
    pub options: ReadOptions,
    pub access: Access,
    filter: Option<Arc<Filter>>,
    holds: fn(&Acl, &str) -> bool,
    opens: fn(&Acl, &str) -> bool,
}

impl<R> Deref for Read<R> {
    type Target = Reading;

    fn deref(&self) -> &Reading {
        &self.0
    }
}

impl<R> DerefMut for Read<R> {
    fn deref_mut(&mut self) -> &mut Reading {
        &mut self.0
    }
}

impl<R> Read<R> {
    /// The same read, once the caller has another right too.
    ///
    /// # Errors
    /// 403 without it.
    pub(crate) fn narrowed<N: Right>(self) -> Result<Read<N>, Failure> {
        self.access.require::<N>(self.params.namespace())?;
        Ok(Read(Reading { holds: N::holds, opens: N::opens, ..self.0 }, PhantomData))
    }
}

impl<R> From<Read<R>> for Reading {
    fn from(read: Read<R>) -> Reading {
        read.0
    }
}

impl Reading {
    /// Rows of this namespace are asked for, and the caller may see them.
    pub(crate) fn shows(&self, namespace: &str) -> bool {
        let asked = &self.options.namespace;
        (asked == "*" || asked == namespace) && self.may_see(namespace)
    }

    /// The allocation of this id, unless it is in a namespace that the caller may not see.
    pub(crate) fn alloc<'s>(&self, state: &'s State, id: &str) -> Option<&'s Alloc> {
        let alloc = state.allocs.get(state.allocs.find(id.parse().ok()?)?);
        self.may_see(&state.jobs.get(alloc.job).key.namespace).then_some(alloc)
    }

    /// As [`Reading::alloc`].
    pub(crate) fn eval<'s>(&self, state: &'s State, id: &str) -> Option<&'s Eval> {
        let eval = state.evals.get(state.evals.find(id.parse().ok()?)?);
        self.may_see(&eval.facts.key.namespace).then_some(eval)
    }

    /// As [`Reading::alloc`].
    pub(crate) fn deployment<'s>(&self, state: &'s State, id: &str) -> Option<&'s Deployment> {
        let known = state.deployments.lookup(id.parse().ok()?)?;
        self.may_see(&state.jobs.get(known.job).key.namespace).then_some(known)
    }

    /// After a wait, in which rights may have become other ones: what the caller presented is still good, and for the same.
    /// What is left of its rights shows with the next read.
    ///
    /// # Errors
    /// 403.
    pub(crate) fn check_again(&self, server: &AppState) -> Result<(), Failure> {
        if !server.agent.access.enabled {
            return Ok(());
        }
        let now = server.access_now(self.access.presented.text())?;
        if Arc::ptr_eq(&now.acl, &self.access.acl) || now.acl == self.access.acl {
            return Ok(());
        }
        let is_open = (self.opens)(&now.acl, self.params.namespace());
        Err(if is_open {
            Failure::forbidden("the rights of this token have changed: read again")
        } else {
            denied()
        })
    }

    /// The caller has the right of this read in the namespace.
    pub(crate) fn may_see(&self, namespace: &str) -> bool {
        (self.holds)(&self.access.acl, namespace)
    }

    /// The rows that the filter means, all of them without one: only then documents are made of them. `kind` names the
    /// document's type in Nomad's API.
    ///
    /// # Errors
    /// 400 if the filter asks for something that such documents do not have.
    pub(crate) fn filtered<R>(
        &self,
        kind: &str,
        rows: impl Iterator<Item = R>,
        document: impl Fn(&R) -> Value,
    ) -> Result<Vec<R>, Failure> {
        let Some(filter) = &self.filter else { return Ok(rows.collect()) };
        let meant = |row: R| match means(filter, kind, &document(&row)) {
            Ok(true) => Some(Ok(row)),
            Ok(false) => None,
            Err(failure) => Some(Err(failure)),
        };
        rows.filter_map(meant).collect()
    }

    /// The page that was asked for, of the rows that the filter means. Documents are made in the order of the list, until the
    /// page is full.
    ///
    /// # Errors
    /// As for [`page::page`] and [`Reading::filtered`].
    pub(crate) fn page<K: Token, R>(
        &self,
        kind: &str,
        rows: impl Iterator<Item = (K, R)>,
        document: impl Fn(&R) -> Value,
    ) -> Result<Page<R>, Failure> {
        match &self.filter {
            None => page::page(rows, &self.options),
            Some(filter) => page::page_where(rows, &self.options, |row| means(filter, kind, &document(row))),
        }
    }

    /// Whether there is a filter that looks at this field of documents.
    pub(crate) fn filters_by(&self, field: &str) -> bool {
        self.filter.as_ref().is_some_and(|filter| filter.looks_at(field))
    }

    /// # Errors
    /// 400 if there is a filter: this list does not look at one.
    pub(crate) fn without_filter(&self) -> Result<(), Failure> {
        match self.filter {
            None => Ok(()),
            Some(_) => Err(Failure::invalid("this list cannot be filtered: `filter` is not expected")),
        }
    }

    /// # Errors
    /// 400 if there is a filter besides other parameters that choose.
    pub(crate) fn filter_alone(&self, others: bool) -> Result<(), Failure> {
        if others && self.filter.is_some() {
            return Err(Failure::invalid("Filter expression cannot be used with other filter parameters"));
        }
        Ok(())
    }
}

fn means(filter: &Filter, kind: &str, document: &Value) -> Result<bool, Failure> {
    let meant = filter.matches(Schema::nomad(), kind, document);
    meant.map_err(|why| Failure::invalid(format!("failed to read result page: {why}")))
}

fn unreadable(why: filter::ParseError) -> Failure {
    let context = "failed to create result paginator: failed to read filter expression";
    Failure::invalid(format!("{context}: {why}"))
}

/// A document as filters look at it.
pub(crate) fn as_json<T: Serialize>(document: &T) -> Value {
    serde_json::to_value(document).expect("types of the HTTP API have a JSON form")
}

/// A call that neither reads this server's state nor changes it, and needs a right: its parameters, as they were given.
pub(crate) struct Call<R> {
    pub params: Params,
    pub access: Access,
    _right: PhantomData<R>,
}

/// A write: its parameters, and what it is called by. What it needs is known once it is a command.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub params: Params,
    pub request: RequestId,
    /// The same with what is asked for, where the caller gave the name.
    pub said: RequestId,
    pub caller: Caller,
    pub access: Access,
}

impl Write {
    /// One that comes with this one, of a name of its own: under the same name it would be taken for a repetition. `mask` tells apart
    /// what comes with one request, and is not zero.
    pub(crate) fn beside(&self, mask: u8) -> Write {
        let request = RequestId(Uuid::from_random(self.request.0.0.map(|byte| byte ^ mask)));
        Write { request, ..self.clone() }
    }
}

/// A write of somebody who is not known yet: whatever token comes with it, which may have expired, is not looked at.
pub(crate) struct Newcomer(pub Write);

/// A named request with all that it asks for, as a hash.
#[derive(Clone, Copy)]
struct Said(RequestId);

fn name(headers: &HeaderMap) -> Option<&str> {
    let given = headers.get(REQUEST_ID).map(|value| value.to_str().unwrap_or_default());
    given.filter(|id| !id.is_empty())
}

/// Reads what a named request asks for, so that its name cannot stand for something else later. Of a body that is streamed,
/// or that no such request has, nothing is looked at; and nothing of what a variable is to hold: the hash stands in the log,
/// where a short secret could be found out by trying.
pub(crate) async fn read_named(With(server): With<AppState>, request: Request, next: Next) -> Response {
    let Some(name) = name(request.headers()) else { return next.run(request).await };
    let mut hash = blake3::Hasher::new();
    for part in [name, request.method().as_str(), &request.uri().to_string()] {
        hash.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    }
    let is_secret = request.uri().path().starts_with("/v1/var/");
    let length = request
        .body()
        .size_hint()
        .exact()
        .filter(|_| !is_secret)
        .and_then(|length| usize::try_from(length).ok());
    let mut request = request;
    if length.is_some_and(|length| length <= BODY_MAX) {
        let (whole, bytes) = match whole_body(request, &server).await {
            Ok(read) => read,
            Err(failure) => return failure.into_response(),
        };
        hash.update(&bytes);
        request = whole;
    }
    let said: [u8; 16] = hash.finalize().as_bytes()[..16].try_into().expect("a hash has 32 bytes");
    request.extensions_mut().insert(Said(RequestId(Uuid::from_random(said))));
    next.run(request).await
}

/// A request and the whole body that it still has.
///
/// # Errors
/// As where a route reads one.
pub(crate) async fn whole_body(request: Request, server: &AppState) -> Result<(Request, Bytes), Failure> {
    let (parts, whole) = request.into_parts();
    let bytes = body(Request::from_parts(parts.clone(), whole), server).await?;
    Ok((Request::from_parts(parts, Body::from(bytes.clone())), bytes))
}

/// The document in the body.
pub(crate) struct Json<T>(pub T);

/// The document in the body; the default one without a body.
pub(crate) struct OptionalJson<T>(pub T);

/// # Errors
/// 400 where `as_of` asks for the past, which this route has none of.
fn of_now(params: &Params) -> Result<(), Failure> {
    for name in ["as_of", "fork"] {
        if params.get(name).is_some_and(|value| !value.is_empty()) {
            return Err(Failure::invalid(format!(
                "this route is of the present alone: `{name}` is not expected"
            )));
        }
    }
    Ok(())
}

impl<R: Right> FromRequestParts<AppState> for Read<R> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, server: &AppState) -> Result<Read<R>, Failure> {
        let (params, access) = called::<R>(parts, server).await?;
        let options = params.read_options()?;
        let filter = match options.filter.as_str() {
            "" => None,
            text => Some(Arc::new(Filter::parse(text).map_err(unreadable)?)),
        };
        Ok(Read(Reading { params, options, access, filter, holds: R::holds, opens: R::opens }, PhantomData))
    }
}

impl<R: Right> FromRequestParts<AppState> for Call<R> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, server: &AppState) -> Result<Call<R>, Failure> {
        let (params, access) = called::<R>(parts, server).await?;
        of_now(&params)?;
        Ok(Call { params, access, _right: PhantomData })
    }
}

impl<R: Right> FromRequestParts<AppState> for ReadNow<R> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, server: &AppState) -> Result<ReadNow<R>, Failure> {
        let read = Read::<R>::from_request_parts(parts, server).await?;
        of_now(&read.params)?;
        Ok(ReadNow(read))
    }
}

/// What every call has: its parameters, and a caller with the right to it.
async fn called<R: Right>(parts: &Parts, server: &AppState) -> Result<(Params, Access), Failure> {
    let params = params(parts)?;
    let presented = if R::ASKS_WHO { presented(&parts.headers)? } else { String::new() };
    let access = server.access_from(address(parts), &presented).await?;
    access.require::<R>(params.namespace())?;
    Ok((params, access))
}

impl FromRequestParts<AppState> for Write {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, server: &AppState) -> Result<Write, Failure> {
        let Call { params, access, .. } = Call::<Each>::from_request_parts(parts, server).await?;
        Write::of(parts, params, access)
    }
}

impl FromRequestParts<AppState> for Newcomer {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, server: &AppState) -> Result<Newcomer, Failure> {
        let Call { params, access, .. } = Call::<Newcomers>::from_request_parts(parts, server).await?;
        Ok(Newcomer(Write::of(parts, params, access)?))
    }
}

impl Write {
    fn of(parts: &Parts, params: Params, access: Access) -> Result<Write, Failure> {
        let request = match name(&parts.headers) {
            None => RequestId(Uuid::from_random(random())),
            Some(id) => id.parse().map_err(|e| Failure::invalid(format!("invalid request id: {e}")))?,
        };
        let said = parts.extensions.get::<Said>().map(|said| said.0).unwrap_or_default();
        let caller = Caller { address: address(parts), agent: agent(parts), ..access.caller() };
        Ok(Write { params, request, said, caller, access })
    }
}

/// The program that calls, as it names itself: what a log can show of it.
fn agent(parts: &Parts) -> String {
    let said = parts.headers.get(USER_AGENT).map(|said| String::from_utf8_lossy(said.as_bytes()));
    let mut agent: String = said.unwrap_or_default().chars().filter(|char| !char.is_control()).collect();
    agent.truncate(agent.floor_char_boundary(AGENT_MAX));
    agent
}

impl<T: DeserializeOwned> FromRequest<AppState> for Json<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, server: &AppState) -> Result<Json<T>, Failure> {
        let body = body(request, server).await?;
        if body.is_empty() {
            return Err(Failure::invalid("Request body is empty"));
        }
        Ok(Json(document(&body)?))
    }
}

impl<T: DeserializeOwned + Default> FromRequest<AppState> for OptionalJson<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, server: &AppState) -> Result<OptionalJson<T>, Failure> {
        let body = body(request, server).await?;
        Ok(OptionalJson(if body.is_empty() { T::default() } else { document(&body)? }))
    }
}

/// Unpredictable bytes.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the system has entropy");
    bytes
}

/// Where a request comes from.
fn address(parts: &Parts) -> Option<IpAddr> {
    parts.extensions.get::<CallerAddress>().and_then(|caller| caller.0)
}

/// What stands in the query alone.
pub(crate) fn params_of(uri: &Uri) -> Result<Params, Failure> {
    let pairs = Query::<Vec<(String, String)>>::try_from_uri(uri);
    pairs.map(|Query(pairs)| Params::new(pairs)).map_err(|e| Failure::invalid(e.body_text()))
}

pub(crate) fn params(parts: &Parts) -> Result<Params, Failure> {
    let pairs = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri);
    let Query(mut pairs) = pairs.map_err(|e| Failure::invalid(e.body_text()))?;
    let both = "`as_of` and X-Sojourn-As-Of: expected one moment, not two";
    given_in_header(parts, AS_OF, "as_of", both, &mut pairs)?;
    let both = "`fork` and X-Sojourn-Fork: expected one fork, not two";
    given_in_header(parts, FORK, "fork", both, &mut pairs)?;
    Ok(Params::new(pairs))
}

/// Adds what a header says instead of a parameter; `both` is the answer to two that differ.
fn given_in_header(
    parts: &Parts,
    header: &str,
    name: &str,
    both: &str,
    pairs: &mut Vec<(String, String)>,
) -> Result<(), Failure> {
    let Some(value) = parts.headers.get(header) else { return Ok(()) };
    let value = value.to_str().map_err(|_| Failure::invalid(format!("{header}: expected text")))?;
    if pairs.iter().any(|(given, other)| given == name && other != value) {
        return Err(Failure::invalid(both));
    }
    pairs.push((name.to_string(), value.to_string()));
    Ok(())
}

async fn body(request: Request, server: &AppState) -> Result<Bytes, Failure> {
    let read = tokio::time::timeout(BODY_PATIENCE, Bytes::from_request(request, server)).await;
    let late = |_| {
        let text = format!("the request body did not come within {} seconds", BODY_PATIENCE.as_secs());
        Failure::new(StatusCode::REQUEST_TIMEOUT, text)
    };
    read.map_err(late)?.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            Failure::new(rejection.status(), format!("request body is larger than {BODY_MAX} bytes"))
        }
        status => Failure::new(status, rejection.body_text()),
    })
}

/// The first JSON value of the body; what follows it is not looked at.
pub(crate) fn document<T: DeserializeOwned>(body: &[u8]) -> Result<T, Failure> {
    let first = serde_json::Deserializer::from_slice(body).into_iter::<Value>().next();
    let value = first.transpose().map_err(|e| Failure::invalid(format!("not JSON: {e}")))?;
    Ok(input::from_request(value.unwrap_or_default())?)
}
