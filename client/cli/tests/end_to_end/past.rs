//! The past, on the command line and for programs that know nothing of it.

use crate::end_to_end::support::*;

const JOB: &str = r#"job "gone" {
  group "g" {
    task "t" {
      driver = "mock_driver"
      config { run_for = "1h" }
    }
  }
}
"#;

#[test]
fn a_job_that_was_purged_is_seen_as_it_was_also_after_a_kill() {
    let directory = tempfile::tempdir().unwrap();
    let agent = AgentConfig::lasting_development(directory.path(), "dev").start();
    agent.wait_for_a_ready_node();
    let file = directory.path().join("gone.nomad.hcl");
    std::fs::write(&file, JOB).unwrap();
    agent.run(&["job", "run", file.to_str().unwrap()]).expect_success();
    let alloc = agent.running("gone");
    let then = agent.get(&format!("/v1/allocation/{alloc}"))["ModifyIndex"].to_string();
    agent.run(&["job", "stop", "-purge", "gone"]).expect_success();
    agent.run(&["job", "status", "gone"]).expect_failure();

    let agent = agent.kill().start();
    let as_of = format!("-as-of={then}");
    let status = agent.run(&["job", "status", &as_of, "gone"]).expect_success();
    assert!(status.contains("running"), "{status}");
    let shown = agent.run(&["alloc", "status", &as_of, &alloc]).expect_success();
    assert!(shown.contains("running"), "{shown}");
    let late = agent.run(&["job", "status", "-as-of=999999", "gone"]).expect_failure();
    assert!(late.contains("that is still to come: the newest index is"), "{late}");
    let stop = agent.run(&["job", "stop", &as_of, "gone"]).expect_failure();
    assert!(stop.contains("this route is of the present alone"), "{stop}");

    // Another program, which gets an address and nothing else.
    let program = sojourn();
    let program = program.to_str().unwrap();
    let inside = |words: &[&str]| agent.run(&[&["at", &then, "--", program][..], words].concat());
    assert!(inside(&["job", "status", "gone"]).expect_success().contains("running"));
    let refused = inside(&["job", "stop", "gone"]).expect_failure();
    assert!(refused.contains("this address shows the past: it only reads"), "{refused}");
    let span = agent.run(&["at", "-0s", "--", program, "job", "status", "gone"]).expect_failure();
    assert!(span.contains("No job(s) with prefix or ID \"gone\" found"), "{span}");
    assert_eq!(agent.run(&["at", &then, "--", "sh", "-c", "exit 7"]).code, 7);
    let missing = agent.run(&["at", &then, "--", "/no/such/program"]);
    assert_eq!(missing.code, 127);
    agent.run(&["at", "soon", "--", "true"]).expect_failure();

    // One elsewhere, which has an address for as long as it is wanted.
    let place: std::net::SocketAddr = ([127, 0, 0, 1], free_port()).into();
    let served = agent.follow(&["at", &then, "-serve", &place.to_string()]);
    let jobs = eventually("it listens", || http::get(place, "/v1/jobs").ok());
    assert_eq!(jobs.json()[0]["ID"], "gone", "{}", jobs.body);
    let refused = http::delete(place, "/v1/job/gone").unwrap();
    assert!(refused.body.contains("this address shows the past: it only reads"), "{}", refused.body);
    assert_eq!(served.interrupt(), 0);
}

/// The index of the first fact of this kind about the object, after an index.
fn index_of(agent: &Agent, event: &str, object: &str, after: u64) -> u64 {
    let log: serde_json::Value =
        serde_json::from_str(&agent.run(&["log", "-json"]).expect_success()).unwrap();
    let of = |line: &&serde_json::Value| {
        line["Event"] == event && line["Object"] == object && line["Index"].as_u64() > Some(after)
    };
    log.as_array().unwrap().iter().find(of).and_then(|line| line["Index"].as_u64()).unwrap()
}

#[test]
fn what_changed_and_who_did_it_is_found_and_taken_back() {
    let directory = tempfile::tempdir().unwrap();
    let agent = AgentConfig::development(directory.path(), "dev").start();
    agent.wait_for_a_ready_node();
    let file = directory.path().join("web.nomad.hcl");
    let run = |job: &str| {
        std::fs::write(&file, job).unwrap();
        agent.run(&["job", "run", "-detach", file.to_str().unwrap()]).expect_success();
    };
    let web = JOB.replace("\"gone\"", "\"web\"");
    run(&web);
    agent.running("web");
    run(&web.replace("group \"g\" {", "group \"g\" {\n count = 3"));
    until("three run", || {
        agent.allocs("web").iter().filter(|alloc| alloc["ClientStatus"] == "running").count() == 3
    });
    agent.run(&["var", "put", "db/password", "value=one"]).expect_success();
    agent.run(&["var", "put", "-force", "db/password", "value=two"]).expect_success();
    let node = agent.get("/v1/nodes")[0]["ID"].as_str().unwrap().to_string();
    agent.run(&["node", "eligibility", "-disable", &node]).expect_success();
    let first = index_of(&agent, "JobRegistered", "job/default/web", 0);
    let second = index_of(&agent, "JobRegistered", "job/default/web", first);
    let (first, second) = (first.to_string(), second.to_string());

    // What is different: of one object, and of everything.
    let job = agent.run(&["diff", &first, "now", "job/web"]).expect_success();
    assert!(job.contains("~ TaskGroups[g].Count: 1 -> 3") && job.contains("gained"), "{job}");
    let all = agent.run(&["diff", &first]).expect_success();
    assert!(all.contains("+ Variables[default/db/password]"), "{all}");
    assert!(all.contains(&format!("~ Nodes[{node}].SchedulingEligibility: eligible -> ineligible")), "{all}");
    assert!(agent.run(&["diff", "0", "job/web"]).expect_success().contains("+ job/web: running"));
    assert!(agent.run(&["diff", "now", "now"]).expect_success().contains("Nothing is different"));
    agent.run(&["diff", "0", &first, "job/none"]).expect_failure();
    agent.run(&["diff", "soon"]).expect_failure();

    // Who did it.
    let blame = agent.run(&["blame", "job/web"]).expect_success();
    let line = |field: &str| blame.lines().find(|line| line.contains(field)).unwrap().to_string();
    assert!(line("TaskGroups[g].Count").starts_with(&second), "{blame}");
    assert!(line("TaskGroups[g].Tasks[t].Driver").starts_with(&first), "{blame}");
    assert!(line("TaskGroups[g].Count").contains("anonymous at 127.0.0.1"), "{blame}");
    let log = agent.run(&["log", "-job", "web"]).expect_success();
    assert!(log.contains("JobRegistered") && !log.contains("VariableSet"), "{log}");
    agent.run(&["log", "-job", "web", "-node", "x"]).expect_failure();

    let events =
        ["events", "-from", "start", "-to", "now", "-filter", "Type == JobRegistered and Topic == Job"];
    let events = agent.run(&events).expect_success();
    assert_eq!(events.lines().count(), 2, "{events}");

    // Why nothing more of it goes there: the node, then and now.
    let now = agent.run(&["why-not", "job", "web", "node", &node[..8]]).expect_success();
    assert!(now.contains("g: 3 there, 3 everywhere") && now.contains("not eligible for scheduling"), "{now}");
    let then =
        agent.run(&["why-not", "job", &format!("-as-of={second}"), "web", "node", &node]).expect_success();
    assert!(then.contains("nothing stands in the way"), "{then}");
    agent.run(&["why-not", "job", "web", "on", &node]).expect_failure();

    // When it began.
    let condition = ["bisect", "-good", &first, "-when", "Allocations.running == 3", "job/web"];
    let found = agent.run(&condition).expect_success();
    assert!(found.contains("It holds since") && found.contains("AllocReported"), "{found}");
    let never = agent.run(&["bisect", "-good", &first, "-when", "NodesBy.down == 1"]).expect_failure();
    assert!(never.contains("does not hold"), "{never}");

    // Taken back, unless somebody has changed it since.
    let undo = |event: &str, object: &str, after: u64| {
        agent.run(&["undo", "-yes", &index_of(&agent, event, object, after).to_string()])
    };
    let json = |words: &[&str]| -> serde_json::Value {
        serde_json::from_str(&agent.run(words).expect_success())
            .unwrap_or_else(|error| panic!("{words:?}: {error}"))
    };
    let count = |of: &serde_json::Value| {
        let changes = of["Changes"].as_array().unwrap().iter();
        changes.filter(|change| change["Path"] == "TaskGroups[g].Count").count()
    };
    assert_eq!(count(&json(&["diff", "-json", &first, "now", "job/web"])), 1);
    assert!(json(&["blame", "-json", "job/web"]).as_array().is_some_and(|fields| fields.len() > 5));
    assert!(
        json(&["bisect", "-json", condition[1], condition[2], condition[3], condition[4], "job/web"])
            .is_object()
    );
    assert!(json(&["replay", "-verify", "-json"])["Verified"]["Events"].as_u64() > Some(10));
    let dry = json(&["undo", "-dry-run", "-json", &second]);
    assert_eq!((&dry["Written"], count(&dry["Steps"][0])), (&false.into(), 1), "{dry}");
    agent.run(&["undo", "-json", &second]).expect_failure();
    let shown = agent.run(&["undo", "-dry-run", &second]).expect_success();
    assert!(
        shown.contains("register job/web as it was") && shown.contains("~ TaskGroups[g].Count: 3 -> 1"),
        "{shown}"
    );
    let refused = agent.run(&["undo", "-yes", &first]).expect_failure();
    assert!(refused.contains("job/web was changed since"), "{refused}");
    agent.run(&["undo", "-yes", &second]).expect_success();
    assert_eq!(agent.get("/v1/job/web")["TaskGroups"][0]["Count"], 1);
    let again = agent.run(&["undo", "-yes", &second]).expect_success();
    assert!(again.contains("Everything is as it was"), "{again}");
    let set = index_of(&agent, "VariableSet", "var/default/db/password", 0);
    undo("VariableSet", "var/default/db/password", set).expect_success();
    assert_eq!(agent.get("/v1/var/db/password")["Items"]["value"], "one");
    undo("NodeEligibilityChanged", &format!("node/{node}"), 0).expect_success();
    assert_eq!(agent.get(&format!("/v1/node/{node}"))["SchedulingEligibility"], "eligible");
    let placed = agent.allocs("web")[0]["CreateIndex"].to_string();
    let refused = agent.run(&["undo", "-yes", &placed]).expect_failure();
    assert!(refused.contains("followed from something else"), "{refused}");
    agent.run(&["undo", "-yes", "1"]).expect_failure();

    let verified = agent.run(&["replay", "-verify"]).expect_success();
    assert!(verified.contains("as it did"), "{verified}");
    agent.run(&["replay"]).expect_failure();
}
