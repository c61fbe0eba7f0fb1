//! Names with slashes in paths.
//!
//! Nomad takes a path as decoded text: the text between `/v1/job/` and a known last part is the job's
//! id, however many slashes it has, escaped or not. The router wants one segment a name, so paths are put into
//! that form before they are routed.

use std::borrow::Cow;

use axum::extract::Request;
use axum::http::Uri;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

const JOB: &str = "/v1/job/";

/// What is escaped within one segment of a path.
const SEGMENT: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// What may follow a job's id. A longer one stands before the one it ends with.
const JOB_VERBS: [&str; 20] = [
    "/allocations",
    "/evaluations",
    "/evaluate",
    "/periodic/force",
    "/plan",
    "/summary",
    "/dispatch/payload",
    "/dispatch",
    "/versions",
    "/revert",
    "/deployments",
    "/deployment",
    "/stable",
    "/scale",
    "/services",
    "/submission",
    "/actions",
    "/action",
    "/explain",
    "/history",
];

/// Puts the id of a job into one segment.
pub(crate) fn whole_ids(mut request: Request) -> Request {
    if let Some(uri) = one_segment(request.uri()) {
        *request.uri_mut() = uri;
    }
    request
}

fn one_segment(uri: &Uri) -> Option<Uri> {
    let rest = uri.path().strip_prefix(JOB)?;
    let decoded: Cow<str> = percent_decode_str(rest).decode_utf8().ok()?;
    let verb = JOB_VERBS.iter().find(|verb| decoded.len() > verb.len() && decoded.ends_with(**verb));
    let verb = verb.copied().unwrap_or_else(|| tag(&decoded));
    let id = utf8_percent_encode(&decoded[..decoded.len() - verb.len()], &SEGMENT);
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    format!("{JOB}{id}{verb}{query}").parse().ok()
}

/// `/versions/NAME/tag`, where the id has no slash.
fn tag(rest: &str) -> &str {
    let parts: Vec<&str> = rest.split('/').collect();
    match parts[..] {
        [id, "versions", _, "tag"] => &rest[id.len()..],
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routed(uri: &str) -> String {
        let uri: Uri = uri.parse().unwrap();
        one_segment(&uri).unwrap_or(uri).to_string()
    }

    #[test]
    fn an_id_with_slashes_becomes_one_segment_escaped_or_not() {
        for path in ["/v1/job/a/b%2Fc/summary?index=3", "/v1/job/a%2Fb/c/summary?index=3"] {
            assert_eq!(routed(path), "/v1/job/a%2Fb%2Fc/summary?index=3");
        }
        assert_eq!(routed("/v1/job/a%2Fb"), "/v1/job/a%2Fb");
        assert_eq!(routed("/v1/job/a/b/history"), "/v1/job/a%2Fb/history");
        assert_eq!(routed("/v1/job/my-job/plan"), "/v1/job/my-job/plan");
    }

    #[test]
    fn a_job_may_be_called_like_a_verb() {
        assert_eq!(routed("/v1/job/summary"), "/v1/job/summary");
        assert_eq!(routed("/v1/job/plan/plan"), "/v1/job/plan/plan");
        assert_eq!(routed("/v1/job/x/versions/v1/tag"), "/v1/job/x/versions/v1/tag");
    }

    #[test]
    fn other_paths_stay_as_they_are() {
        for path in ["/v1/jobs", "/v1/node/a%2Fb", "/", "/v1/job/%ff"] {
            assert_eq!(routed(path), path);
        }
    }
}
