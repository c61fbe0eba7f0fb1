//! What a collector of OpenTelemetry is sent: many records together.

use serde_json::Value;

use super::event_sinks::{Received, Receiver, apply, register, status, until_it_leads};
use super::support::{AgentConfig, until};

#[test]
fn events_that_wait_go_together_and_the_one_that_is_refused_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let config = AgentConfig::server(directory.path(), "one");
    let agent = config.start();
    until_it_leads(&config);
    for name in ["a", "b", "unwanted", "c", "d", "e"] {
        register(&agent, name);
    }
    let receiver = Receiver::start("127.0.0.1:0".parse().unwrap(), 200);
    receiver.refuse("unwanted");
    let text = format!(
        "sink \"logs\" {{\n  kind = \"otlp\"\n  url = \"http://{}/v1/logs\"\n  from = \"oldest\"\n  \
         topics = [\"Job\"]\n  filter = \"Type == JobRegistered\"\n}}\n",
        receiver.address
    );
    apply(&agent, directory.path(), &text);
    until("it is parked", || status(&agent, "logs")["Status"] == "parked");
    assert_eq!(status(&agent, "logs")["ParkedAttempts"], 1, "a refusal is not tried again");
    assert_eq!(together(&receiver.received()), [["a"], ["b"]], "what came before it, one by one");
    agent.run(&["sink", "skip", "logs"]).expect_success();
    let all: [&[&str]; 3] = [&["a"], &["b"], &["c", "d", "e"]];
    until("the others arrive", || together(&receiver.received()) == all);
}

/// The jobs of each request.
fn together(received: &[Received]) -> Vec<Vec<String>> {
    let jobs = |request: &Received| {
        let records = &request.event["resourceLogs"][0]["scopeLogs"][0]["logRecords"];
        let events = records.as_array().unwrap().iter().map(|record| record["body"]["stringValue"].as_str());
        let events = events.map(|event| serde_json::from_str::<Value>(event.unwrap()).unwrap());
        events.map(|event| event["data"]["Key"].as_str().unwrap().to_string()).collect()
    };
    received.iter().map(jobs).collect()
}
