//! Jobs of several regions: the region that gets one registers it in all that it names, and stops it in all of them. Each of them
//! decides for itself whether the caller may do that.

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use model::JobKey;
use model::document::Job;
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde::de::IgnoredAny;

use api::JobRegisterRequest;

use crate::app_state::AppState;
use crate::error::Failure;
use crate::request::{document, params_of, whole_body};
use crate::routes::{Checked, checked_job, error_text};

/// Stands on a request that is about one region's part of a job: it goes no further.
const PART: HeaderName = HeaderName::from_static("x-sojourn-part");

/// Most of an answer that is looked at. Those of jobs have a few hundred bytes.
const ANSWER_MAX: usize = 1 << 20;

/// What a request asks of several regions.
pub(super) enum Asked {
    Register(Box<JobRegisterRequest>),
    /// The job stops in these.
    Stop(Vec<String>),
}

/// What a request asks of several regions, if it does.
///
/// # Errors
/// Its body does not come, or is no job.
pub(super) async fn asked(server: &AppState, request: Request) -> Result<(Option<Asked>, Request), Failure> {
    let Some(id) = of_job(request.uri().path()).filter(|_| !request.headers().contains_key(PART)) else {
        return Ok((None, request));
    };
    match *request.method() {
        Method::PUT | Method::POST => {
            let (request, body) = whole_body(request, server).await?;
            // What cannot be read is refused where the rest of it is read.
            let names: NamesRegions = serde_json::from_slice(&body).unwrap_or_default();
            if names.job.and_then(|job| job.multiregion).is_none() {
                return Ok((None, request));
            }
            Ok((Some(Asked::Register(Box::new(document(&body)?))), request))
        }
        Method::DELETE => {
            let params = params_of(request.uri())?;
            let namespace = params.get("namespace").filter(|name| !name.is_empty()).unwrap_or("default");
            let regions = match params.boolean("global")? {
                true => regions_of(server, &JobKey::new(namespace, &id)),
                false => Vec::new(),
            };
            let stops = (!regions.is_empty()).then_some(Asked::Stop(regions));
            Ok((stops, request))
        }
        _ => Ok((None, request)),
    }
}

/// The id in a path that is about a job itself; empty where its body has it.
fn of_job(path: &str) -> Option<String> {
    if path == "/v1/jobs" {
        return Some(String::new());
    }
    let id = path.strip_prefix("/v1/job/").filter(|id| !id.is_empty() && !id.contains('/'))?;
    Some(percent_decode_str(id).decode_utf8().ok()?.into_owned())
}

fn regions_of(server: &AppState, key: &JobKey) -> Vec<String> {
    let state = server.control.state();
    let names = state.jobs.lookup(key).and_then(|job| {
        let block = job.current().job.rollout()?;
        Some(block.regions.iter().map(|region| region.name.clone()).collect())
    });
    names.unwrap_or_default()
}

/// The answer of this region if it is one of them, else that of the first.
///
/// # Errors
/// As the first region answers that does not do it, with the names of those that have done it.
pub(super) async fn answer(
    server: &AppState,
    asked: Asked,
    request: Request,
    next: Next,
) -> Result<Response, Failure> {
    let (parts, _) = request.into_parts();
    let to = Regions { server, parts: elsewhere(parts)?, next: Some(next) };
    match asked {
        Asked::Register(wanted) => register(to, *wanted).await,
        Asked::Stop(regions) => stop(to, regions).await,
    }
}

async fn register(mut to: Regions<'_>, wanted: JobRegisterRequest) -> Result<Response, Failure> {
    if wanted.enforce_index {
        return Err(Failure::invalid(
            "EnforceIndex: expected none for a job of several regions, because each has indexes of its own",
        ));
    }
    let job = whole(&to, &wanted)?;
    let names: Vec<String> = job
        .multiregion
        .iter()
        .flat_map(|block| block.regions.iter().map(|region| region.name.clone()))
        .collect();
    let mut chosen: Option<Response> = None;
    let mut done: Vec<String> = Vec::new();
    for name in names {
        let part = JobRegisterRequest {
            job: jobspec::in_region(&job, &name),
            region: String::new(),
            ..wanted.clone()
        };
        let body = serde_json::to_vec(&part).map_err(|error| Failure::internal(error.to_string()))?;
        let answer = to.send(&name, Method::PUT, Bytes::from(body)).await;
        if !answer.status().is_success() {
            let status = answer.status();
            let mut text = format!("region {name}: {}", text_of(answer).await);
            if !done.is_empty() {
                text.push_str(&format!(" (registered in {})", done.join(", ")));
            }
            return Err(Failure::new(status, text));
        }
        if chosen.is_none() || name == to.server.agent.region {
            chosen = Some(answer);
        }
        done.push(name);
    }
    chosen.ok_or_else(|| Failure::invalid("a job of several regions names at least one"))
}

/// The job as it was meant for all regions, which is judged before any of them gets its part.
fn whole(to: &Regions<'_>, wanted: &JobRegisterRequest) -> Result<Job, Failure> {
    let mut job = wanted.job.clone().unwrap_or_default();
    job.region = None;
    if let Some(block) = &mut job.multiregion {
        block.rollout = String::new();
    }
    let asked = JobRegisterRequest { job: Some(job.clone()), region: String::new(), ..wanted.clone() };
    let Checked { errors, .. } = checked_job(to.server, &params_of(&to.parts.uri)?, asked)?;
    if !errors.is_empty() {
        return Err(Failure::invalid(error_text(&errors)));
    }
    let text = serde_json::to_vec(&job).map_err(|error| Failure::internal(error.to_string()))?;
    if let Some(block) = &mut job.multiregion {
        block.rollout = blake3::hash(&text).to_hex()[..32].to_string();
    }
    Ok(job)
}

/// Those that cannot be reached do not keep the others from it.
async fn stop(mut to: Regions<'_>, regions: Vec<String>) -> Result<Response, Failure> {
    let (mut chosen, mut wrong): (Option<Response>, Vec<String>) = (None, Vec::new());
    for name in &regions {
        let answer = to.send(name, Method::DELETE, Bytes::new()).await;
        if !answer.status().is_success() {
            wrong.push(format!("region {name}: {}", text_of(answer).await));
        } else if chosen.is_none() || *name == to.server.agent.region {
            chosen = Some(answer);
        }
    }
    match chosen {
        Some(answer) if wrong.is_empty() => Ok(answer),
        _ => Err(Failure::internal(format!("not stopped everywhere: {}", wrong.join("; ")))),
    }
}

/// The way of one request to several regions.
struct Regions<'a> {
    server: &'a AppState,
    /// What the requests have in common.
    parts: Parts,
    /// The way into this region, once.
    next: Option<Next>,
}

impl Regions<'_> {
    async fn send(&mut self, region: &str, method: Method, body: Bytes) -> Response {
        let mut request = Request::from_parts(self.parts.clone(), Body::from(body));
        *request.method_mut() = method;
        request.headers_mut().insert(PART, HeaderValue::from_static("here"));
        if region != self.server.agent.region {
            // Its server reads them of its own, not of what this one has found out.
            request.extensions_mut().clear();
            return match self.server.regions.forward(region, request).await {
                Ok(answer) => answer,
                Err(error) => Failure::from(error).into_response(),
            };
        }
        match self.next.take() {
            Some(next) => next.run(request).await,
            None => Failure::invalid(format!("region {region:?} is named twice")).into_response(),
        }
    }
}

/// The head of a request, for any region.
fn elsewhere(mut parts: Parts) -> Result<Parts, Failure> {
    let kept = |pair: &&str| {
        let name = pair.split('=').next().unwrap_or_default();
        !pair.is_empty() && !matches!(name, "region" | "global")
    };
    let query: Vec<&str> = parts.uri.query().unwrap_or_default().split('&').filter(kept).collect();
    let mark = if query.is_empty() { "" } else { "?" };
    let uri: Result<Uri, _> = format!("{}{mark}{}", parts.uri.path(), query.join("&")).parse();
    parts.uri = uri.map_err(|error| Failure::invalid(error.to_string()))?;
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.remove(TRANSFER_ENCODING);
    parts.headers.remove(super::REGION);
    Ok(parts)
}

async fn text_of(answer: Response) -> String {
    let body = to_bytes(answer.into_body(), ANSWER_MAX).await.unwrap_or_default();
    String::from_utf8_lossy(&body).trim().to_string()
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct NamesRegions {
    #[serde(alias = "job")]
    job: Option<RegionsOfJob>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct RegionsOfJob {
    #[serde(alias = "multiregion")]
    multiregion: Option<IgnoredAny>,
}
