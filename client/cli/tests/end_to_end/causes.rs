//! What led to what, followed both ways on an agent that runs tasks.

use serde_json::{Value, json};

use crate::end_to_end::support::{http, *};

const SECOND: u64 = 1_000_000_000;
const REQUEST: &str = "11111111-2222-3333-4444-555555555555";

fn printed(agent: &Agent, arguments: &[&str]) -> Value {
    serde_json::from_str(&agent.run(arguments).expect_success()).unwrap()
}

fn facts(chain: &Value) -> Vec<&Value> {
    chain["Facts"].as_array().unwrap_or_else(|| panic!("{chain}")).iter().collect()
}

fn find<'a>(chain: &'a Value, event: &str, says: &str) -> &'a Value {
    let is_wanted = |fact: &&Value| fact["Event"] == event && text(&fact["Description"]).contains(says);
    facts(chain).into_iter().find(is_wanted).unwrap_or_else(|| panic!("no {event} {says:?} in {chain:#}"))
}

/// From one fact over its causes to those of these kinds, one after the other.
fn follow<'a>(chain: &'a Value, from: &'a Value, kinds: &[&str]) -> &'a Value {
    kinds.iter().fold(from, |fact, kind| {
        let causes = fact["Causes"].as_array().unwrap_or_else(|| panic!("{fact} followed from nothing"));
        let known = |id: &Value| facts(chain).into_iter().find(|fact| fact["ID"] == *id);
        let mut found = causes.iter().filter_map(|cause| known(&cause["ID"]));
        found
            .find(|fact| fact["Event"] == *kind)
            .unwrap_or_else(|| panic!("no {kind} before {fact} in {chain:#}"))
    })
}

/// register, evaluation, plan, allocation, task, health, deployment: the way back, the way forth, and after a kill of the
/// agent.
#[test]
fn the_end_of_a_deployment_is_followed_to_its_request_and_back() {
    let directory = tempfile::tempdir().unwrap();
    let agent = AgentConfig::lasting_development(directory.path(), "dev").start();
    agent.wait_for_a_ready_node();
    let mut web = job("web", json!({"command": "/bin/sleep", "args": ["3600"]}));
    web["TaskGroups"][0]["Update"] = json!({
        "MaxParallel": 1, "MinHealthyTime": SECOND / 10,
        "HealthyDeadline": 60 * SECOND, "ProgressDeadline": 120 * SECOND,
    });
    let body = json!({ "Job": web });
    let patience = std::time::Duration::from_secs(60);
    let registered = http::put_named(agent.config.http, "/v1/jobs", &body, REQUEST, patience).unwrap();
    assert_eq!(registered.status, 200, "{}", registered.body);
    let alloc = agent.running("web");
    let deployment = eventually("the version is deployed", || {
        let latest = agent.get("/v1/job/web/deployment");
        (latest["Status"] == "successful").then(|| text(&latest["ID"]))
    });

    let who = printed(&agent, &["audit", "who", "-json", &format!("deployment/{}", &deployment[..8])]);
    let present = &who["Present"];
    let ended = find(present, "DeploymentStatusChanged", "is successful");
    let way = [
        "PlanCommitted",
        "EvalCreated",
        "AllocReported",
        "AllocsPlaced",
        "PlanCommitted",
        "EvalCreated",
        "JobRegistered",
    ];
    let registered = follow(present, ended, &way);
    assert_eq!((&registered["RequestID"], &registered["Root"]), (&REQUEST.into(), &"request".into()));
    assert_eq!(registered["Requester"]["Address"], "127.0.0.1");
    assert_eq!(registered["Requester"]["Agent"], "test/1.0");
    let healthy = follow(present, ended, &way[..3]);
    assert!(text(&healthy["Description"]).contains("healthy"), "{healthy}");
    assert!(text(&healthy["Actor"]).starts_with("node:"), "{healthy}");

    let effects = printed(&agent, &["audit", "effects", "-json", REQUEST]);
    let last = find(&effects, "DeploymentStatusChanged", "is successful");
    assert_eq!(follow(&effects, last, &way)["ID"], registered["ID"]);
    assert_eq!(last["ID"], ended["ID"]);

    let shown = agent.run(&["audit", "who", &format!("alloc/{}", &alloc[..8])]).expect_success();
    assert!(shown.starts_with("Created\n") && shown.contains("\nPresent state\n"), "{shown}");
    assert!(shown.contains("JobRegistered job/default/web by anonymous at 127.0.0.1"), "{shown}");
    assert!(shown.contains(&format!("(request {REQUEST})")), "{shown}");
    let tree = agent.run(&["audit", "effects", REQUEST]).expect_success();
    assert!(tree.lines().next().unwrap().contains(" JobRegistered job/default/web "), "{tree}");
    assert!(
        tree.lines().any(|line| line.starts_with("  command: ") && line.contains("EvalCreated")),
        "{tree}"
    );

    let agent = agent.kill().start();
    agent.wait_for_a_ready_node();
    let again = printed(&agent, &["audit", "effects", "-json", REQUEST]);
    assert_eq!(find(&again, "DeploymentStatusChanged", "is successful")["ID"], ended["ID"]);
    let nothing = agent.run(&["audit", "effects", "somewhere"]).expect_failure();
    assert!(nothing.contains("id: \"somewhere\" is not the id of an event (42.0)"), "{nothing}");
    let var = agent.run(&["audit", "who", "var/a"]).expect_failure();
    assert!(var.contains("var/a: expected alloc/ID, job/NAME"), "{var}");
}
