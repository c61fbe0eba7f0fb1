//! A consumer of events that keeps nothing itself: the cluster keeps how far it has come.

use serde_json::json;

use crate::end_to_end::support::http;
use crate::end_to_end::support::{Agent, AgentConfig, job, until};

/// Registers a job that is placed nowhere.
fn register(agent: &Agent, name: &str) -> u64 {
    let mut job = job(name, json!({"command": "/bin/true"}));
    job["Datacenters"] = json!(["nowhere"]);
    agent.register(&job)
}

fn until_it_leads(config: &AgentConfig) {
    let leads = || http::get(config.http, "/v1/status/leader").is_ok_and(|answer| answer.body.len() > 2);
    until("it leads", leads);
}

/// The jobs that lines of the stream tell of, in order.
fn jobs(lines: &str) -> Vec<String> {
    let registered = lines.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    registered.filter_map(|event| event["Key"].as_str().map(str::to_string)).collect()
}

/// The consumer and the server are killed by turns. Whatever was not acknowledged comes again, nothing is missed, and what
/// was acknowledged never comes again.
#[test]
fn a_killed_consumer_goes_on_after_what_it_has_acknowledged() {
    let directory = tempfile::tempdir().unwrap();
    let config = AgentConfig::server(directory.path(), "one");
    let agent = config.start();
    until_it_leads(&config);
    let filter = "Type == JobRegistered";
    let create = ["cursor", "create", "-topic", "Job", "-filter", filter, "-ttl", "72h", "billing"];
    let created = agent.run(&create).expect_success();
    assert!(created.contains("Topics          = Job"), "{created}");
    register(&agent, "a");
    register(&agent, "b");
    // It dies before it has acknowledged anything.
    let mut consumer = agent.follow(&["events", "-cursor", "billing", "-json"]);
    assert_eq!(jobs(&consumer.line()), ["a"]);
    drop(consumer);
    let agent = agent.kill().start();
    let read = &["events", "-cursor", "billing", "-json", "-to", "now", "-ack"];
    until_it_leads(&config);
    assert_eq!(jobs(&agent.run(read).expect_success()), ["a", "b"], "nothing is missed");
    let agent = agent.kill().start();
    until_it_leads(&config);
    register(&agent, "c");
    let last = register(&agent, "d");
    let status = agent.run(&["cursor", "status", "billing"]).expect_success();
    assert!(status.contains("Acknowledged By = anonymous"), "{status}");
    let mut consumer = agent.follow(&["events", "-cursor", "billing", "-json", "-ack"]);
    assert_eq!(jobs(&consumer.line()), ["c"], "nothing that was acknowledged comes again");
    assert_eq!(jobs(&consumer.line()), ["d"]);
    until("what was printed is acknowledged", || {
        agent.get("/v1/event/cursor/billing")["PositionIndex"].as_u64() >= Some(last)
    });
    drop(consumer);
    assert_eq!(jobs(&agent.run(read).expect_success()), [""; 0]);
    let listed = agent.run(&["cursor", "list"]).expect_success();
    assert!(listed.contains("billing"), "{listed}");
    agent.run(&["cursor", "reset", "-to", "oldest", "billing"]).expect_success();
    assert_eq!(jobs(&agent.run(read).expect_success()), ["a", "b", "c", "d"]);
    agent.run(&["cursor", "delete", "billing"]).expect_success();
    let gone = agent.run(read).expect_failure();
    assert!(gone.contains("event cursor \"billing\" not found"), "{gone}");
}

/// Two readers have a part each, and both together everything. Each goes on by itself.
#[test]
fn two_readers_share_a_cursor() {
    let directory = tempfile::tempdir().unwrap();
    let config = AgentConfig::server(directory.path(), "one");
    let agent = config.start();
    until_it_leads(&config);
    let filter = "Type == JobRegistered";
    let create = [
        "cursor", "create", "-from", "oldest", "-topic", "Job", "-filter", filter, "-members", "2", "shared",
    ];
    let created = agent.run(&create).expect_success();
    assert!(created.contains("Member  Position  Behind"), "{created}");
    let names: Vec<String> = (0..8).map(|number| format!("job-{number}")).collect();
    names.iter().for_each(|name| _ = register(&agent, name));
    let read = |member: &str| {
        let read = ["events", "-cursor", "shared", "-member", member, "-json", "-to", "now", "-ack"];
        jobs(&agent.run(&read).expect_success())
    };
    let (first, second) = (read("0"), read("1"));
    assert!(!first.is_empty() && !second.is_empty(), "{first:?} {second:?}");
    let mut all = [first.clone(), second].concat();
    all.sort();
    assert_eq!(all, names);
    assert_eq!(read("0"), [""; 0]);
    // Another version of a job goes to who has the job.
    let mut other = job(&first[0], json!({"command": "/bin/false"}));
    other["Datacenters"] = json!(["nowhere"]);
    agent.register(&other);
    assert_eq!((read("1"), read("0")), (vec![], vec![first[0].clone()]));
    let refused = agent.run(&["events", "-cursor", "shared", "-to", "now"]).expect_failure();
    assert!(refused.contains("member: expected a number from 0 to 1"), "{refused}");
    agent.run(&["cursor", "reset", "-members", "1", "shared"]).expect_success();
    let status = agent.run(&["cursor", "status", "shared"]).expect_success();
    assert!(!status.contains("Member  Position"), "{status}");
}
