//! Logs and traces of OpenTelemetry over HTTP, in JSON.

use std::time::Duration;

use serde_json::{Value, json};

/// Severities, as OpenTelemetry counts.
pub const INFO: (u8, &str) = (9, "INFO");
pub const ERROR: (u8, &str) = (17, "ERROR");

/// A text under a name.
pub fn attribute(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

/// A request with records of one resource.
pub fn request(resource: &[(&str, &str)], records: Vec<Value>) -> Value {
    let resource: Vec<Value> = resource.iter().map(|(key, value)| attribute(key, value)).collect();
    json!({"resourceLogs": [{
        "resource": {"attributes": resource},
        "scopeLogs": [{"scope": {"name": "sojourn"}, "logRecords": records}],
    }]})
}

/// The same with spans.
pub fn request_of_spans(resource: &[(&str, &str)], spans: Vec<Value>) -> Value {
    let resource: Vec<Value> = resource.iter().map(|(key, value)| attribute(key, value)).collect();
    json!({"resourceSpans": [{
        "resource": {"attributes": resource},
        "scopeSpans": [{"scope": {"name": "sojourn"}, "spans": spans}],
    }]})
}

/// What an answer says of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answered {
    Taken,
    /// The same request may be sent again, after this long at the earliest.
    Later(String, Option<Duration>),
    /// It must not be sent again: all of it was refused, or some.
    Refused(String),
}

/// As the specification of OTLP over HTTP has it: what was refused in part is not sent again, and of failures only four are.
pub fn judge(status: u16, retry_after: Option<&str>, body: &[u8]) -> Answered {
    match status {
        200..=299 => refused(body),
        429 | 502 | 503 | 504 => {
            let after = retry_after.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
            Answered::Later(format!("it answered {status}"), after)
        }
        _ => Answered::Refused(format!("it answered {status}")),
    }
}

/// A collector that answers in another form, or nothing, has taken it.
fn refused(body: &[u8]) -> Answered {
    let said: Value = serde_json::from_slice(body).unwrap_or_default();
    let partial = &said["partialSuccess"];
    // Numbers of 64 bits are texts in the JSON of protobuf.
    let count = |name: &str| {
        let count = &partial[name];
        count.as_u64().or_else(|| count.as_str()?.parse().ok()).unwrap_or(0)
    };
    if count("rejectedLogRecords") == 0 && count("rejectedSpans") == 0 {
        return Answered::Taken;
    }
    let why = partial["errorMessage"].as_str().filter(|why| !why.is_empty()).unwrap_or("it does not say why");
    Answered::Refused(format!("the collector has rejected it: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_understood_as_the_specification_has_them() {
        let of = |status| judge(status, None, b"");
        assert_eq!((of(200), of(204)), (Answered::Taken, Answered::Taken));
        for status in [429, 502, 503, 504] {
            assert!(matches!(of(status), Answered::Later(_, None)), "{status}");
        }
        for status in [301, 400, 401, 404, 408, 413, 500, 501] {
            assert!(matches!(of(status), Answered::Refused(_)), "{status}");
        }
        let busy = Answered::Later("it answered 503".into(), Some(Duration::from_secs(7)));
        assert_eq!(judge(503, Some(" 7"), b""), busy);
    }

    #[test]
    fn a_record_that_is_rejected_in_an_answer_of_200_is_refused() {
        let of = |body: &str| judge(200, None, body.as_bytes());
        let refused = Answered::Refused("the collector has rejected it: too old".into());
        assert_eq!(of(r#"{"partialSuccess":{"rejectedLogRecords":"1","errorMessage":"too old"}}"#), refused);
        assert_eq!(of(r#"{"partialSuccess":{"rejectedLogRecords":1,"errorMessage":"too old"}}"#), refused);
        assert_eq!(of(r#"{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too old"}}"#), refused);
        assert_eq!(of(r#"{"partialSuccess":{"errorMessage":"deprecated"}}"#), Answered::Taken, "a warning");
        assert_eq!(of("{}"), Answered::Taken);
    }
}
