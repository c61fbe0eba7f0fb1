//! Traces that a collector of OpenTelemetry is sent: from a request down to its tasks, over repetitions and deaths of leaders.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::end_to_end::event_sinks::{Receiver, Servers, apply};
use crate::end_to_end::support::{http, *};

const SECOND: u64 = 1_000_000_000;
const REQUEST: &str = "7b1d0c55-8d1f-4f0e-9a54-0d9f2b6d1c11";

fn collector() -> (Receiver, String) {
    let receiver = Receiver::start("127.0.0.1:0".parse().unwrap(), 200);
    let url = format!("http://{}/v1/traces", receiver.address);
    (receiver, url)
}

/// All spans that came, one after the other.
fn arrived(collector: &Receiver) -> Vec<Value> {
    let spans = |request: Value| {
        let resource = &request["resourceSpans"][0];
        assert_eq!(resource["resource"]["attributes"][0]["value"]["stringValue"], "sojourn", "{request}");
        resource["scopeSpans"][0]["spans"].as_array().unwrap_or_else(|| panic!("{request}")).clone()
    };
    collector.received().into_iter().flat_map(|one| spans(one.event)).collect()
}

/// Each span once. What came twice was the same each time.
fn spans(collector: &Receiver) -> Vec<Value> {
    let mut known: BTreeMap<String, Value> = BTreeMap::new();
    for span in arrived(collector) {
        let before = known.insert(text(&span["spanId"]), span.clone());
        assert!(before.as_ref().is_none_or(|before| *before == span), "{before:?} came again as {span}");
    }
    known.into_values().collect()
}

fn attribute<'a>(span: &'a Value, key: &str) -> &'a Value {
    let all = span["attributes"].as_array().unwrap();
    let found = all.iter().find(|one| one["key"] == key).unwrap_or_else(|| panic!("no {key} in {span}"));
    &found["value"]
}

/// What the span stands under, up to the first one of its trace.
fn way<'a>(spans: &'a [Value], span: &'a Value) -> Vec<&'a str> {
    let mut names = vec![span["name"].as_str().unwrap()];
    let mut at = span;
    while let Some(parent) = at.get("parentSpanId") {
        at = spans.iter().find(|one| one["spanId"] == *parent).unwrap_or_else(|| panic!("no parent: {at}"));
        assert_eq!(at["traceId"], span["traceId"], "{at}");
        names.push(at["name"].as_str().unwrap());
    }
    names
}

fn named<'a>(spans: &'a [Value], name: &str) -> Option<&'a Value> {
    spans.iter().find(|span| span["name"] == name)
}

/// The trace of a registration has everything down to the task and the end of the deployment; from each span an event is found,
/// and from each event the trace. Sent again from the beginning by a server that was killed, all of it is the same.
#[test]
fn a_collector_gets_the_trace_of_a_request_and_a_repetition_is_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let config = AgentConfig::lasting_development(directory.path(), "dev");
    let agent = config.start();
    agent.wait_for_a_ready_node();
    let (collector, url) = collector();
    let sink = format!(
        "sink \"t\" {{\n  kind = \"otlp\"\n  url = \"{url}\"\n  signal = \"traces\"\n  \
         namespace = \"*\"\n  max_attempts = 100\n}}\n"
    );
    let shown = apply(&agent, directory.path(), &sink);
    assert!(shown.contains(&format!("Target          = {url} (traces)\n")), "{shown}");

    let mut web = job("web", json!({"command": "/bin/sleep", "args": ["3600"]}));
    web["TaskGroups"][0]["Update"] = json!({
        "MaxParallel": 1, "MinHealthyTime": SECOND / 10,
        "HealthyDeadline": 60 * SECOND, "ProgressDeadline": 120 * SECOND,
    });
    let patience = std::time::Duration::from_secs(60);
    let body = json!({ "Job": web });
    let registered = http::put_named(agent.config.http, "/v1/jobs", &body, REQUEST, patience).unwrap();
    assert_eq!(registered.status, 200, "{}", registered.body);
    let trace = REQUEST.replace('-', "");
    let of_trace = |collector: &Receiver| {
        let all = spans(collector).into_iter();
        all.filter(|span| span["traceId"] == *trace).collect::<Vec<Value>>()
    };
    until("the deployment is over", || named(&of_trace(&collector), "deployment").is_some());
    let (task, alloc) = (text(&web["TaskGroups"][0]["Tasks"][0]["Name"]), agent.running("web"));
    let task = format!("task {task}");
    let all = of_trace(&collector);
    for (name, expected) in [
        ("job.register", vec!["job.register"]),
        (&task, vec![&task, "allocation", "plan", "evaluation", "job.register"]),
        ("health", vec!["health", "allocation", "plan", "evaluation", "job.register"]),
        ("deployment", vec!["deployment", "plan", "evaluation", "job.register"]),
    ] {
        let span = named(&all, name).unwrap_or_else(|| panic!("no {name} in {all:#?}"));
        assert_eq!(way(&all, span), expected);
        let nanos = |key: &str| span[key].as_str().unwrap().parse::<u64>().unwrap();
        assert!(nanos("startTimeUnixNano") <= nanos("endTimeUnixNano"), "{span}");
        assert!(span.get("status").is_none(), "{span}");
    }
    let allocation = named(&all, "allocation").unwrap();
    assert_eq!(allocation["spanId"], alloc.replace('-', "")[..16]);
    assert_eq!(attribute(allocation, "sojourn.alloc.id")["stringValue"], *alloc);
    assert_eq!(named(&all, "job.register").unwrap()["kind"], 2, "a call from outside");

    // From the span to the event, and from there to the trace.
    let event = text(&attribute(allocation, "cloudevents.event_id")["stringValue"]);
    let causes = agent.get(&format!("/v1/event/{event}/causes"));
    assert_eq!((&causes["TraceID"], &causes["Facts"][0]["Event"]), (&json!(trace), &json!("AllocReported")));
    let who = agent.run(&["audit", "who", &format!("alloc/{alloc}")]).expect_success();
    assert!(who.contains(&format!("Trace {trace}\n")), "{who}");

    let before = arrived(&collector).len();
    let agent = agent.kill().start();
    until("its cursor is put back", || agent.run(&["cursor", "reset", "-to", "oldest", "sink.t"]).code == 0);
    until("all of it comes again", || {
        let again = arrived(&collector).split_off(before);
        let ids: BTreeSet<String> = again.iter().map(|span| text(&span["spanId"])).collect();
        all.iter().all(|span| ids.contains(&text(&span["spanId"])))
    });
    // What followed from the end of the deployment may be new.
    let again = of_trace(&collector);
    let missing: Vec<&Value> = all.iter().filter(|span| !again.contains(span)).collect();
    assert!(missing.is_empty(), "not with the same ids and the same content: {missing:#?}");
}

/// The leader is killed again and again: every registration is a trace, and what a new leader sends again is the same.
#[test]
fn a_trace_loses_nothing_when_leaders_die() {
    let directory = tempfile::tempdir().unwrap();
    let mut servers = Servers::launch(directory.path());
    let (collector, url) = collector();
    let wanted =
        json!({"Kind": "otlp", "Signal": "traces", "URL": url, "From": "oldest", "MaxAttempts": 100});
    servers.has_sink("t", &wanted);
    for _ in 0..2 {
        let before = arrived(&collector).len();
        servers.register_some();
        until("some arrive", || arrived(&collector).len() > before);
        servers.lose_leader();
    }
    let registered = servers.registered;
    let jobs = |spans: &[Value], name: &str| {
        let of_name = spans.iter().filter(|span| span["name"] == name);
        let job = |span: &Value| text(&attribute(span, "sojourn.job.id")["stringValue"]);
        of_name.map(job).collect::<BTreeSet<String>>().len()
    };
    until("all arrive", || {
        let all = spans(&collector);
        jobs(&all, "job.register") == registered && jobs(&all, "evaluation") == registered
    });
    let all = spans(&collector);
    for span in all.iter().filter(|span| span["name"] == "evaluation") {
        assert_eq!(way(&all, span).last(), Some(&"job.register"), "{span}");
    }
}
