//! Which requests need no entry.

use crate::entry::{Entry, Stage};

/// Leaves out the entries that match all three parts. A part that is empty, or `*`, matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Paths; `*` stands for any characters.
    pub endpoints: Vec<String>,
    pub stages: Vec<String>,
    /// Methods.
    pub operations: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    #[error("stages: expected \"*\", \"OperationReceived\" or \"OperationComplete\", not {0:?}")]
    Stage(String),
    #[error("operations: expected \"*\" or a method of HTTP in capitals, not {0:?}")]
    Operation(String),
    #[error("endpoints: expected a path that begins with / or *, not {0:?}")]
    Endpoint(String),
}

impl Filter {
    /// # Errors
    /// A part that could match nothing.
    pub fn check(&self) -> Result<(), FilterError> {
        let stages = ["*", Stage::OperationReceived.name(), Stage::OperationComplete.name()];
        if let Some(stage) = self.stages.iter().find(|stage| !stages.contains(&stage.as_str())) {
            return Err(FilterError::Stage(stage.clone()));
        }
        let is_method = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_uppercase());
        if let Some(operation) = self.operations.iter().find(|text| *text != "*" && !is_method(text)) {
            return Err(FilterError::Operation(operation.clone()));
        }
        if let Some(endpoint) = self.endpoints.iter().find(|path| !path.starts_with(['/', '*'])) {
            return Err(FilterError::Endpoint(endpoint.clone()));
        }
        Ok(())
    }

    pub(crate) fn matches(&self, entry: &Entry) -> bool {
        let (payload, request) = (&entry.payload, &entry.payload.request);
        let is_any = |parts: &[String], text: &str| {
            parts.is_empty() || parts.iter().any(|part| matches_glob(part.as_bytes(), text.as_bytes()))
        };
        is_any(&self.endpoints, &request.endpoint)
            && is_any(&self.stages, payload.stage.name())
            && is_any(&self.operations, &request.operation)
    }
}

/// `*` stands for any characters. Goes back to the last star only: its time is the product of both lengths at most.
fn matches_glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut from, mut star) = (0, 0, None);
    while from < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(byte) if *byte == text[from] => (at, from) = (at + 1, from + 1),
            _ => {
                let Some((back, used)) = star else { return false };
                star = Some((back, used + 1));
                (at, from) = (back + 1, used + 1);
            }
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use crate::entry::{Auth, Request, Response};

    use super::*;

    fn entry(operation: &str, endpoint: &str, is_complete: bool) -> Entry {
        let request =
            Request { operation: operation.into(), endpoint: endpoint.into(), ..Request::default() };
        let response = is_complete.then(Response::default);
        Entry::new("1".into(), "2026-01-01T00:00:00Z".into(), Auth::default(), request, response)
    }

    fn filter(endpoints: &[&str], stages: &[&str], operations: &[&str]) -> Filter {
        let texts = |parts: &[&str]| parts.iter().map(ToString::to_string).collect();
        Filter { endpoints: texts(endpoints), stages: texts(stages), operations: texts(operations) }
    }

    #[test]
    fn all_parts_have_to_match() {
        let metrics = filter(&["/v1/metrics"], &["*"], &["GET"]);
        assert!(metrics.matches(&entry("GET", "/v1/metrics", true)));
        assert!(!metrics.matches(&entry("PUT", "/v1/metrics", true)));
        assert!(!metrics.matches(&entry("GET", "/v1/metrics/x", true)));
        let received = filter(&[], &["OperationReceived"], &[]);
        assert!(received.matches(&entry("PUT", "/v1/jobs", false)));
        assert!(!received.matches(&entry("PUT", "/v1/jobs", true)));
        let jobs = filter(&["/v1/job/*/scale", "/ui/*"], &[], &[]);
        assert!(jobs.matches(&entry("PUT", "/v1/job/a/b/scale", true)));
        assert!(jobs.matches(&entry("GET", "/ui/", true)));
        assert!(!jobs.matches(&entry("PUT", "/v1/job/a/scale/x", true)));
    }

    #[test]
    fn what_could_match_nothing_is_refused() {
        assert_eq!(filter(&["/v1/*", "*"], &["*"], &["GET", "*"]).check(), Ok(()));
        for (filter, error) in [
            (filter(&["v1"], &[], &[]), FilterError::Endpoint("v1".into())),
            (filter(&[], &["Received"], &[]), FilterError::Stage("Received".into())),
            (filter(&[], &[], &["get"]), FilterError::Operation("get".into())),
        ] {
            assert_eq!(filter.check(), Err(error));
        }
    }
}
