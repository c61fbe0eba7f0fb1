//! Canaries and reverts from the command line.

use serde_json::{Value, json};

use crate::end_to_end::support::*;

const SECOND: u64 = 1_000_000_000;

/// A service with one canary; `round` differs between its versions.
fn web(round: u64) -> Value {
    let mut job = job("web", json!({"command": "/bin/sleep", "args": ["3600"]}));
    job["TaskGroups"][0]["Update"] = json!({
        "Canary": 1, "MaxParallel": 1, "MinHealthyTime": SECOND / 10,
        "HealthyDeadline": 60 * SECOND, "ProgressDeadline": 120 * SECOND,
    });
    job["TaskGroups"][0]["Tasks"][0]["Env"] = json!({"ROUND": round.to_string()});
    job
}

/// The latest deployment, once this holds.
fn deployment(agent: &Agent, what: &str, holds: impl Fn(&Value) -> bool) -> String {
    let found = eventually(what, || {
        let latest = agent.get("/v1/job/web/deployment");
        (latest.is_object() && holds(&latest)).then_some(latest)
    });
    text(&found["ID"])
}

fn status(agent: &Agent, id: &str) -> String {
    text(&agent.get(&format!("/v1/deployment/{id}"))["Status"])
}

#[test]
fn canaries_are_promoted_and_versions_come_back() {
    let directory = tempfile::tempdir().unwrap();
    let agent = AgentConfig::development(directory.path(), "dev").start();
    agent.wait_for_a_ready_node();
    agent.register(&web(0));
    deployment(&agent, "the first version is deployed", |latest| latest["Status"] == "successful");

    agent.register(&web(1));
    let healthy = |version: u64| {
        move |latest: &Value| {
            let group = &latest["TaskGroups"]["group"];
            latest["JobVersion"] == version && group["DesiredCanaries"] == 1 && group["HealthyAllocs"] == 1
        }
    };
    let tried = deployment(&agent, "the canary is healthy", healthy(1));
    let paused = agent.run(&["deployment", "pause", &tried[..8]]).expect_success();
    assert_eq!(paused, format!("Deployment \"{tried}\" paused\n"));
    assert_eq!(status(&agent, &tried), "paused");
    let resumed = agent.run(&["deployment", "resume", "-detach", &tried]).expect_success();
    assert!(resumed.starts_with(&format!("Deployment \"{tried}\" resumed\nEvaluation ID: ")), "{resumed}");
    let promoted = agent.run(&["job", "promote", "web"]).expect_success();
    assert!(promoted.contains("Monitoring deployment"), "{promoted}");
    assert_eq!(status(&agent, &tried), "successful");

    let reverted = agent.run(&["job", "revert", "-detach", "web", "0"]).expect_success();
    assert!(reverted.starts_with("Evaluation ID: "), "{reverted}");
    let back = deployment(&agent, "the first version is tried out again", healthy(2));
    let failed = agent.run(&["deployment", "fail", "-detach", &back]).expect_success();
    assert!(failed.starts_with(&format!("Deployment \"{back}\" failed\n\nEvaluation ID: ")), "{failed}");
    assert_eq!(status(&agent, &back), "failed");

    let unknown = agent.run(&["job", "revert", "web", "golden"]);
    assert_eq!(unknown.code, 1);
    assert!(unknown.stderr.contains("no version \"golden\""), "{}", unknown.stderr);
    let over = agent.run(&["deployment", "promote", "-group", "group", &back]);
    assert_eq!((over.code, over.stdout.as_str()), (1, ""), "{}", over.stderr);
}
