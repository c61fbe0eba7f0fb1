//! An entry before a request is carried out, and one after it: see the crate `audit`.

use std::io;

use audit::{Audit, Auth, Entry, NodeMeta, RequestMeta, Response as Outcome, Subject};
use axum::extract::{Request, State as With};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base::Uuid;
use model::document::Timestamp;
use wire::CallerAddress;

use crate::access::{Who, presented};
use crate::answer::INDEX;
use crate::app_state::{AppState, now};
use crate::error::Failure;
use crate::request::random;

/// Why a request failed, beside its answer.
#[derive(Clone)]
pub(crate) struct FailureText(pub String);

pub(crate) async fn record(With(server): With<AppState>, request: Request, next: Next) -> Response {
    let Some(audit) = server.audit.clone() else { return next.run(request).await };
    let (auth, about) = (server.named_by(request.headers()), described(&server, &request));
    let is_write = !matches!(about.operation.as_str(), "GET" | "HEAD" | "OPTIONS");
    let entry =
        |outcome| Entry::new(id(), Timestamp::from(now()).to_string(), auth.clone(), about.clone(), outcome);
    if let Err(refused) = written(&audit, &entry(None)) {
        return refused.into_response();
    }
    let response = next.run(request).await;
    let error = response.extensions().get::<FailureText>().map(|text| text.0.clone());
    let index = response.headers().get(INDEX).filter(|_| is_write && response.status().is_success());
    let outcome = Outcome {
        status_code: response.status().as_u16(),
        error: error.unwrap_or_default(),
        index: index.and_then(|index| index.to_str().ok()?.parse().ok()),
    };
    match written(&audit, &entry(Some(outcome))) {
        Ok(()) => response,
        Err(refused) => refused.into_response(),
    }
}

/// # Errors
/// 500 where requests depend on their entries.
fn written(audit: &Audit, entry: &Entry) -> Result<(), Failure> {
    let Err(error) = audit.record(entry) else { return Ok(()) };
    tracing::error!(%error, "an audit entry cannot be written");
    let refused = |error: io::Error| Failure::internal(format!("the audit log cannot be written: {error}"));
    if audit.is_enforced() { Err(refused(error)) } else { Ok(()) }
}

fn described(server: &AppState, request: &Request) -> audit::Request {
    let text = |name| {
        let value = request.headers().get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_string()
    };
    let address = request.extensions().get::<CallerAddress>().and_then(|caller| caller.0);
    let query = request.uri().query().unwrap_or_default();
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let namespace = pairs.filter(|(key, _)| *key == "namespace").map(|(_, value)| value).next();
    audit::Request {
        id: id(),
        operation: request.method().to_string(),
        endpoint: request.uri().path().to_string(),
        namespace: Subject { id: namespace.unwrap_or("default").to_string() },
        request_meta: RequestMeta {
            remote_address: address.map(|ip| ip.to_string()).unwrap_or_default(),
            user_agent: text(header::USER_AGENT),
        },
        node_meta: NodeMeta { ip: server.agent.http_addr.clone() },
    }
}

fn id() -> String {
    Uuid::from_random(random()).to_string()
}

impl AppState {
    /// Whose token came with a request; nobody's if it is worth nothing.
    fn named_by(&self, headers: &HeaderMap) -> Auth {
        let access = presented(headers).and_then(|token| self.access_now(&token));
        match access.map(|access| access.who) {
            Ok(who @ (Who::Token { .. } | Who::Node(_) | Who::Workload(_))) => {
                let caller = who.caller();
                Auth { accessor_id: caller.accessor, name: caller.name }
            }
            Ok(Who::Everybody | Who::Anonymous) | Err(_) => Auth::default(),
        }
    }
}
