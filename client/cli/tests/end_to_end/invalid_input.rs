//! Invalid input is rejected with a reason and changes nothing.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::end_to_end::support::http::{self, Answer};
use crate::end_to_end::support::{Agent, AgentConfig, eventually, job, text};

/// Above the gateway's limit.
const TOO_MANY_BYTES: usize = 17 << 20;

/// Deep enough to overflow the stack of a recursive parser without a limit.
const TOO_DEEP: usize = 100_000;

#[test]
fn invalid_requests_are_rejected_and_change_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let server = AgentConfig::server(directory.path(), "server").start();
    let address = server.config.http;
    server.register(&job("good", json!({"command": "/bin/true"})));
    let evals = || server.get("/v1/job/good/evaluations");
    eventually("the job is evaluated", || {
        evals()[0]["Status"].as_str().filter(|s| *s == "complete").map(|_| ())
    });
    let before = index(address);

    let deep = |open: &str, close: &str| open.repeat(TOO_DEEP) + &close.repeat(TOO_DEEP);
    let nested = format!("{{\"Job\": {}}}", deep("[", "]"));
    let unknown_types = r#"{"Job": {"ID": "x", "Priority": "high"}}"#;
    let hcl = |text: &str| json!({ "JobHCL": text }).to_string();
    let cases: &[(&str, &str, &str, u16, &str)] = &[
        ("PUT", "/v1/jobs", "{", 400, "EOF"),
        ("PUT", "/v1/jobs", "", 400, ""),
        ("PUT", "/v1/jobs", "{}", 400, "Job must be specified"),
        ("PUT", "/v1/jobs", unknown_types, 400, "Priority"),
        ("PUT", "/v1/jobs", r#"{"Job": {"ID": "x"}}"#, 400, "the job has no groups"),
        ("PUT", "/v1/jobs", &nested, 400, ""),
        ("PUT", "/v1/jobs/parse", &hcl("job \"x\" {"), 400, ""),
        ("PUT", "/v1/jobs/parse", &hcl("job \"x\" { gruop \"y\" {} }"), 400, "gruop"),
        ("PUT", "/v1/jobs/parse", &hcl(&format!("x = {}", deep("[", "]"))), 400, ""),
        (
            "PUT",
            "/v1/jobs/parse",
            &hcl(&format!("x = {}1{}", "(".repeat(TOO_DEEP), ")".repeat(TOO_DEEP))),
            400,
            "",
        ),
        ("PUT", "/v1/jobs/parse", &hcl(&format!("x = {}1", "-".repeat(TOO_DEEP))), 400, ""),
        ("PUT", "/v1/jobs/parse", &hcl(&deep("b {\n", "}\n")), 400, ""),
        ("GET", "/v1/job/nope", "", 404, "job not found"),
        ("DELETE", "/v1/jobs", "", 405, ""),
        ("GET", "/v1/nope", "", 404, ""),
        ("GET", "/v1/jobs?index=minus", "", 400, "index"),
        ("GET", "/v1/jobs?index=-1", "", 400, "index"),
        ("GET", "/v1/jobs?index=1&wait=soon", "", 400, "wait"),
        ("GET", "/v1/jobs?filter=%28", "", 400, "filter"),
        ("GET", "/v1/allocation/not-an-id", "", 404, ""),
        ("GET", "/v1/node/00000000-0000-4000-8000-000000000000", "", 404, "node not found"),
        ("GET", "/v1/event/stream?index=minus", "", 400, "index"),
        ("GET", "/v1/event/stream?topic=Job:a:b", "", 400, "Invalid topic query"),
        ("GET", "/v1/jobs?as_of=9999999", "", 400, "as_of: that is still to come"),
    ];
    for (method, path, body, status, reason) in cases {
        let answer = http::call(address, method, path, body.as_bytes()).unwrap();
        let case = format!("{method} {path} {}", body.get(..60).unwrap_or(body));
        assert_eq!(answer.status, *status, "{case}: {}", answer.body);
        assert!(answer.body.contains(reason) && answer.body.len() < 4096, "{case}: {}", answer.body);
    }
    assert_eq!(oversized(address).map(|answer| answer.status), Some(413));
    assert_eq!(index(address), before, "nothing was written");
}

/// A rejection that is sent while the body is still being received may be lost with the connection; a retry gets it.
fn oversized(address: SocketAddr) -> Option<Answer> {
    let body = vec![b' '; TOO_MANY_BYTES];
    Some(eventually("the refusal arrives", || http::call(address, "PUT", "/v1/jobs", &body).ok()))
}

fn index(address: SocketAddr) -> u64 {
    let answer = http::get(address, "/v1/jobs").unwrap();
    let indexes = ["/v1/evaluations", "/v1/allocations", "/v1/nodes"]
        .map(|path| http::get(address, path).unwrap().index);
    indexes.into_iter().chain([answer.index]).max().flatten().unwrap()
}

#[test]
fn errors_in_files_and_arguments_show_their_position() {
    let directory = tempfile::tempdir().unwrap();
    let server = AgentConfig::server(directory.path(), "server").start();
    let cases = [
        ("broken", "job \"x\" {\n", "broken.nomad.hcl:"),
        ("unknown", "job \"x\" {\n  gruop \"y\" {}\n}\n", "unknown.nomad.hcl:2:3: "),
        ("wrong-type", "job \"x\" {\n  priority = \"high\"\n}\n", "wrong-type.nomad.hcl:2:"),
        ("empty", "", "empty.nomad.hcl"),
    ];
    for (name, text, reason) in cases {
        let path = directory.path().join(format!("{name}.nomad.hcl"));
        std::fs::write(&path, text).unwrap();
        for command in ["run", "validate"] {
            let refused = server.run(&["job", command, path.to_str().unwrap()]).expect_failure();
            assert!(refused.contains(reason), "{command} {name}: {refused}");
        }
    }
    let words: [(&[&str], &str); 7] = [
        (&["job", "run", "/nowhere.hcl"], "cannot read /nowhere.hcl: No such file or directory"),
        (&["job", "run"], "This command takes one argument"),
        (&["job", "run", "-frob", "x"], "flag provided but not defined: -frob"),
        (&["job", "status", "nope"], "No job(s) with prefix or ID \"nope\" found"),
        (&["job", "stop", "nope"], "No job(s) with prefix or ID \"nope\" found"),
        (&["alloc", "status", "abcd"], "No allocation(s) with prefix or id \"abcd\" found"),
        (&["node", "status", "abcd"], "No node(s) with prefix or id \"abcd\" found"),
    ];
    for (words, reason) in words {
        let refused = server.run(words).expect_failure();
        assert!(refused.contains(reason), "{words:?}: {refused}");
    }
    assert!(server.get("/v1/jobs").as_array().unwrap().is_empty(), "nothing was registered");
}

#[test]
fn a_job_that_no_node_can_run_is_explained() {
    let directory = tempfile::tempdir().unwrap();
    let agent = AgentConfig::development(directory.path(), "dev").start();
    agent.wait_for_a_ready_node();
    // A service would have a deployment, and the command would wait for its end.
    let mut unknown = job("unknown-driver", json!({}));
    unknown["Type"] = json!("batch");
    unknown["TaskGroups"][0]["Tasks"][0]["Driver"] = json!("teleport");
    let path = directory.path().join("job.json");
    std::fs::write(&path, unknown.to_string()).unwrap();
    let run = agent.run(&["job", "run", "-json", path.to_str().unwrap()]);
    assert_eq!(run.code, 2, "{}{}", run.stdout, run.stderr);
    assert!(
        run.stdout.contains("Constraint \"missing drivers\": 1 node excluded by filter"),
        "{}",
        run.stdout
    );

    register_wrong_config(&agent);
}

/// The driver is known, but its configuration is invalid: the task fails with the reason.
fn register_wrong_config(agent: &Agent) {
    let mut wrong = job("wrong-config", json!({"comand": "/bin/true"}));
    wrong["TaskGroups"][0]["RestartPolicy"] = json!({"Attempts": 0, "Mode": "fail"});
    wrong["TaskGroups"][0]["ReschedulePolicy"] = json!({"Attempts": 0, "Unlimited": false});
    agent.register(&wrong);
    let failed = eventually("the task fails", || {
        agent.allocs("wrong-config").into_iter().find(|alloc| alloc["ClientStatus"] == "failed")
    });
    let alloc = agent.get(&format!("/v1/allocation/{}", text(&failed["ID"])));
    let events: Vec<Value> = serde_json::from_value(alloc["TaskStates"]["main"]["Events"].clone()).unwrap();
    let said = |event: &Value| {
        event["DisplayMessage"].as_str().is_some_and(|text| text == "config key \"command\" is required")
    };
    assert!(events.iter().any(said), "{events:?}");
}
