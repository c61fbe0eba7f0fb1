//! Requests that are about another region: they go to a server there as they came, and its answer comes back as it is.
//!
//! It answers by its own state and its own access control: a token has to be good there. Nothing is passed on twice.

use axum::extract::{Request, State as With};
use axum::http::header::UPGRADE;
use axum::http::{HeaderName, HeaderValue, Method, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use serde::Deserialize;

use crate::app_state::AppState;
use crate::error::Failure;
use crate::request::whole_body;

mod several;
mod shared;

/// Names the region in which a request is to be answered. A server that gets one for another region than its own refuses it:
/// an address has changed hands, and requests must not run in circles.
pub const REGION: HeaderName = HeaderName::from_static("x-sojourn-region");

/// Stands on a request that is where it is because that region decides for all: it goes no further, whatever the servers there
/// are configured with.
const DECIDED: HeaderName = HeaderName::from_static("x-sojourn-decided");

/// The way to the servers of other regions.
pub trait Regions: Send + Sync + 'static {
    /// Other regions are known than this one.
    fn are_several(&self) -> bool;

    /// Some server of this other region is alive.
    fn has_path(&self, region: &str) -> bool;

    /// Has a server of another region answer a request, which then has the header [`REGION`].
    ///
    /// # Errors
    /// [`RegionError`].
    fn forward<'a>(
        &'a self,
        region: &'a str,
        request: Request,
    ) -> BoxFuture<'a, Result<Response, RegionError>>;

    /// Has another server of this region answer a request, by its RPC address.
    ///
    /// # Errors
    /// [`RegionError`].
    fn forward_to<'a>(
        &'a self,
        server: &'a str,
        request: Request,
    ) -> BoxFuture<'a, Result<Response, RegionError>>;
}

/// Why there is no answer of another region.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegionError {
    /// No server of it is known to be alive.
    #[error("No path to region")]
    Unknown,
    /// None could be asked: nothing was sent.
    #[error("No path to region: {0}")]
    Unreachable(String),
    /// One was asked, and whether it did anything is not known.
    #[error("the server of the region did not answer: {0}")]
    NoAnswer(String),
    #[error("too many requests to other servers at the same time: {0} are on their way")]
    Busy(usize),
}

impl From<RegionError> for Failure {
    fn from(error: RegionError) -> Failure {
        match error {
            RegionError::Busy(_) => Failure::too_many(error.to_string()),
            _ => Failure::internal(error.to_string()),
        }
    }
}

/// Around the routes: sends away what is about another region.
pub(crate) async fn forward(With(server): With<AppState>, request: Request, next: Next) -> Response {
    if is_about_this_agent(request.uri().path()) {
        return next.run(request).await;
    }
    let (asked, request) = match asked(&server, request).await {
        Ok(asked) => asked,
        Err(failure) => return failure.into_response(),
    };
    let own = &server.agent.region;
    let is_own = asked.as_ref().is_none_or(|region| region == own);
    match (asked, request.headers().get(REGION)) {
        // Sent here by a server of another region.
        (_, Some(meant)) if is_own && meant.as_bytes() == own.as_bytes() => here(server, request, next).await,
        (_, Some(_)) => Failure::from(RegionError::Unknown).into_response(),
        // Who speaks over a socket reads there what is wrong.
        (Some(region), None)
            if !is_own && request.headers().contains_key(UPGRADE) && !server.regions.has_path(&region) =>
        {
            next.run(request).await
        }
        (Some(region), None) if !is_own => away(&server, &region, request).await,
        (_, None) => here(server, request, next).await,
    }
}

async fn away(server: &AppState, region: &str, request: Request) -> Response {
    match server.regions.forward(region, request).await {
        Ok(response) => response,
        Err(error) => Failure::from(error).into_response(),
    }
}

/// It is about this region, for which another one may decide, or about a job of several.
async fn here(server: AppState, request: Request, next: Next) -> Response {
    let request = match several::asked(&server, request).await {
        Ok((None, request)) => request,
        Ok((Some(asked), request)) => {
            let answer = several::answer(&server, asked, request, next).await;
            return answer.unwrap_or_else(IntoResponse::into_response);
        }
        Err(failure) => return failure.into_response(),
    };
    let decides = &server.agent.authoritative_region;
    if decides.is_empty() || request.headers().contains_key(DECIDED) {
        return next.run(request).await;
    }
    match shared::is_decided_for_all(&server, request).await {
        Ok((true, mut request)) => {
            request.headers_mut().insert(DECIDED, HeaderValue::from_static("here"));
            away(&server, decides, request).await
        }
        Ok((false, request)) => next.run(request).await,
        Err(failure) => failure.into_response(),
    }
}

/// What an agent answers about itself, whatever region is named. So Nomad's does.
fn is_about_this_agent(path: &str) -> bool {
    const OF_REGION: [&str; 5] = [
        "/v1/agent/members",
        "/v1/agent/monitor",
        "/v1/agent/monitor/export",
        "/v1/agent/host",
        "/v1/agent/pprof",
    ];
    let is_of_agent = path.starts_with("/v1/agent/") && !OF_REGION.contains(&path);
    is_of_agent || !path.starts_with("/v1/") || path == "/v1/regions" || path == "/v1/metrics"
}

/// The region that a request is about, if it says so: in its query, or in the job that it carries.
async fn asked(server: &AppState, request: Request) -> Result<(Option<String>, Request), Failure> {
    if let Some(region) = in_query(request.uri())? {
        return Ok((Some(region), request));
    }
    if !carries_job(&request) || !server.regions.are_several() {
        return Ok((None, request));
    }
    let (request, body) = whole_body(request, server).await?;
    // What cannot be read is refused where the rest of it is read.
    let body: RegionOfJob = serde_json::from_slice(&body).unwrap_or_default();
    let of_job = body.job.and_then(|job| job.region);
    let named = [body.region, of_job].into_iter().flatten().find(|region| !region.is_empty());
    // The region that jobs are in unless their files name another one: it means the one of the agent.
    Ok((named.filter(|region| region != "global"), request))
}

fn in_query(uri: &Uri) -> Result<Option<String>, Failure> {
    // Most requests name none, and are not taken apart a second time.
    if !uri.query().is_some_and(|query| query.contains("region")) {
        return Ok(None);
    }
    let params = crate::request::params_of(uri)?;
    Ok(params.get("region").filter(|region| !region.is_empty()).map(str::to_string))
}

fn carries_job(request: &Request) -> bool {
    let path = request.uri().path();
    let of_one = path.strip_prefix("/v1/job/").is_some_and(|rest| {
        let (_, verb) = rest.split_once('/').unwrap_or((rest, ""));
        matches!(verb, "" | "plan")
    });
    let is_write = matches!(*request.method(), Method::PUT | Method::POST);
    is_write && (of_one || path == "/v1/jobs" || path == "/v1/validate/job")
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct RegionOfJob {
    #[serde(alias = "region")]
    region: Option<String>,
    #[serde(alias = "job")]
    job: Option<JobRegion>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct JobRegion {
    #[serde(alias = "region")]
    region: Option<String>,
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    #[test]
    fn what_an_agent_says_of_itself_stays() {
        for own in ["/", "/ui/jobs", "/v1/agent/self", "/v1/agent/force-leave", "/v1/regions", "/v1/metrics"]
        {
            assert!(is_about_this_agent(own), "{own}");
        }
        for other in
            ["/v1/jobs", "/v1/agent/members", "/v1/agent/monitor", "/v1/status/leader", "/v1/event/stream"]
        {
            assert!(!is_about_this_agent(other), "{other}");
        }
    }

    #[test]
    fn the_region_stands_in_the_query_once_it_is_decoded() {
        let asked = |uri: &'static str| in_query(&Uri::from_static(uri)).unwrap();
        assert_eq!(asked("/v1/jobs?region=eu-1"), Some("eu-1".to_string()));
        assert_eq!(asked("/v1/jobs?a=b&region=eu%2D1"), Some("eu-1".to_string()));
        assert_eq!(asked("/v1/jobs?region="), None);
        assert_eq!(asked("/v1/jobs?prefix=region"), None);
    }

    #[test]
    fn only_writes_of_jobs_are_looked_into() {
        let carries = |method: Method, path: &str| {
            carries_job(&Request::builder().method(method).uri(path).body(Body::empty()).unwrap())
        };
        for path in ["/v1/jobs", "/v1/job/web", "/v1/job/web/plan", "/v1/validate/job"] {
            assert!(carries(Method::PUT, path) && carries(Method::POST, path), "{path}");
            assert!(!carries(Method::GET, path), "{path}");
        }
        for path in ["/v1/job/web/scale", "/v1/job/web/evaluate", "/v1/nodes", "/v1/var/a"] {
            assert!(!carries(Method::PUT, path), "{path}");
        }
    }
}
