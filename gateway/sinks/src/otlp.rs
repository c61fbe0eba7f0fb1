//! A log record of OpenTelemetry for each event, or its spans, over HTTP, in JSON.

use base::{Time, reasons};
use delivery::AddressRules;
use delivery::otlp::{self, Answered};
use keyring::Items;
use model::OtlpSignal;
use reqwest::Response;
use serde_json::{Value, json};

use crate::http::Http;
use crate::target::{Outgoing, Undelivered, only};

/// Items of the sink's variable: those that begin with this are headers, of that name.
const HEADER: &str = "header_";
const AUTHORIZATION: &str = "authorization";
/// What is read of an answer: a collector says a sentence.
const ANSWER_MAX: usize = 64 << 10;

pub(crate) struct Otlp {
    http: Http,
    signal: OtlpSignal,
}

impl Otlp {
    pub(crate) fn new(url: &str, signal: OtlpSignal, rules: &AddressRules) -> Result<Otlp, String> {
        Ok(Otlp { http: Http::new(url, rules)?, signal })
    }

    /// What brings spans is a whole request.
    pub(crate) fn takes_many(&self) -> bool {
        self.signal == OtlpSignal::Logs
    }

    pub(crate) async fn deliver(&mut self, events: &[Outgoing], secret: &Items) -> Result<(), Undelivered> {
        let request = self.http.post(secret).map_err(Undelivered::Later)?;
        let mut request = match self.signal {
            OtlpSignal::Logs => {
                let records = events.iter().map(record).collect();
                request.json(&otlp::request(&[("service.name", "sojourn")], records))
            }
            OtlpSignal::Traces => {
                request.header("content-type", "application/json").body(only(events).body.clone())
            }
        };
        for (item, value) in secret {
            let name = if item == AUTHORIZATION { Some(AUTHORIZATION) } else { item.strip_prefix(HEADER) };
            if let Some(name) = name {
                request = request.header(name, value);
            }
        }
        let later = |error: reqwest::Error| Undelivered::Later(reasons(&error.without_url()));
        let answer = request.send().await.map_err(later)?;
        let status = answer.status().as_u16();
        let after = answer.headers().get("retry-after").and_then(|value| value.to_str().ok());
        let after = after.map(ToString::to_string);
        let body = read(answer).await.map_err(later)?;
        match otlp::judge(status, after.as_deref(), &body) {
            Answered::Taken => Ok(()),
            Answered::Later(why, None) => Err(Undelivered::Later(why)),
            Answered::Later(why, Some(after)) => Err(Undelivered::Busy(why, after)),
            Answered::Refused(why) => Err(Undelivered::Rejected(why)),
        }
    }
}

/// What is longer is not what a collector answers, and is not read on.
async fn read(mut answer: Response) -> Result<Vec<u8>, reqwest::Error> {
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await? {
        body.extend_from_slice(&chunk);
        if body.len() > ANSWER_MAX {
            break;
        }
    }
    Ok(body)
}

/// The same whenever and by whomever it is sent: it was observed when it happened.
fn record(event: &Outgoing) -> Value {
    let Time(nanos) = event.time;
    let (time, kind) = (nanos.to_string(), format!("sojourn.{}.{}", event.topic, event.kind));
    let (severity, severity_text) = otlp::INFO;
    let attributes = [
        ("cloudevents.event_id", event.id.as_str()),
        ("cloudevents.event_spec_version", "1.0"),
        ("cloudevents.event_type", &kind),
        ("sojourn.topic", event.topic),
        ("sojourn.type", event.kind),
    ];
    let attributes = attributes.map(|(key, value)| otlp::attribute(key, value));
    json!({
        "timeUnixNano": time, "observedTimeUnixNano": time, "eventName": kind, "severityNumber": severity,
        "severityText": severity_text, "body": {"stringValue": String::from_utf8_lossy(&event.body)},
        "attributes": attributes,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// A collector that gives these answers, a connection each, and what it was sent.
    async fn collector(answers: &'static [&'static str]) -> (String, tokio::task::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1/logs", listener.local_addr().unwrap());
        let task = tokio::spawn(async move {
            let mut received = Vec::new();
            for answer in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut text = String::new();
                let mut bytes = [0; 4096];
                while !is_whole(&text) {
                    let read = stream.read(&mut bytes).await.unwrap();
                    assert!(read > 0, "{text}");
                    text.push_str(&String::from_utf8_lossy(&bytes[..read]));
                }
                stream.write_all(answer.as_bytes()).await.unwrap();
                received.push(text);
            }
            received
        });
        (url, task)
    }

    /// A request with all of its body.
    fn is_whole(request: &str) -> bool {
        let Some((head, body)) = request.split_once("\r\n\r\n") else { return false };
        let head = head.to_ascii_lowercase();
        let (_, length) = head.split_once("content-length: ").expect("a record has a length");
        body.len() == length.lines().next().unwrap().parse::<usize>().unwrap()
    }

    fn event() -> Outgoing {
        let (id, body) = ("13.0@9f3c2a71".into(), "{\"id\":1}".into());
        Outgoing { id, body, time: Time(7), topic: "Job", kind: "JobRegistered", ..Outgoing::default() }
    }

    #[tokio::test]
    async fn events_that_go_together_are_records_of_one_request() {
        let (url, task) =
            collector(&["HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}"]).await;
        let mut sink = Otlp::new(&url, OtlpSignal::Logs, &AddressRules::default()).unwrap();
        let second = Outgoing { body: "{\"id\":2}".into(), ..event() };
        assert_eq!(sink.deliver(&[event(), second], &Items::new()).await, Ok(()));
        let received = task.await.unwrap();
        let sent: Value = serde_json::from_str(received[0].split_once("\r\n\r\n").unwrap().1).unwrap();
        let records = sent["resourceLogs"][0]["scopeLogs"][0]["logRecords"].as_array().unwrap();
        let bodies: Vec<&Value> = records.iter().map(|record| &record["body"]["stringValue"]).collect();
        assert_eq!(bodies, ["{\"id\":1}", "{\"id\":2}"]);
    }

    #[tokio::test]
    async fn a_record_has_arrived_when_the_collector_has_not_refused_it() {
        let answers = &[
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}",
            "HTTP/1.1 503 Busy\r\nretry-after: 3\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 49\r\nconnection: close\r\n\r\n\
             {\"partialSuccess\":{\"rejectedLogRecords\":\"1\"}}    ",
        ];
        let (url, task) = collector(answers).await;
        let mut sink = Otlp::new(&url, OtlpSignal::Logs, &AddressRules::default()).unwrap();
        let items = [("header_x-key", "k"), ("authorization", "Bearer t"), ("other", "hidden")];
        let secret: Items = items.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        assert_eq!(sink.deliver(&[event()], &secret).await, Ok(()));
        let busy = sink.deliver(&[event()], &secret).await;
        assert_eq!(busy, Err(Undelivered::Busy("it answered 503".into(), Duration::from_secs(3))));
        let refused = sink.deliver(&[event()], &secret).await;
        assert!(
            matches!(&refused, Err(Undelivered::Rejected(why)) if why.contains("rejected it")),
            "{refused:?}"
        );
        let received = task.await.unwrap();
        let body = |text: &String| text.split_once("\r\n\r\n").unwrap().1.to_string();
        assert_eq!(body(&received[0]), body(&received[2]), "a repetition is the same");
        let headers = received[0].to_ascii_lowercase();
        assert!(
            headers.contains("x-key: k\r\n") && headers.contains("authorization: bearer t\r\n"),
            "{headers}"
        );
        assert!(!headers.contains("hidden"), "{headers}");
        let sent: Value = serde_json::from_str(&body(&received[0])).unwrap();
        let record = &sent["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0];
        assert_eq!(
            (&record["timeUnixNano"], &record["eventName"]),
            (&json!("7"), &json!("sojourn.Job.JobRegistered"))
        );
        assert_eq!(record["body"]["stringValue"], "{\"id\":1}");
    }
}
