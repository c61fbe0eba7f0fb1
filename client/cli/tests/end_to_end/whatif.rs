//! What would happen, asked on the command line; and then it happens.

use std::path::Path;

use crate::end_to_end::support::*;

const JOB: &str = r#"job "web" {
  group "g" {
    count = 2
    task "t" {
      driver = "mock_driver"
      config { run_for = "1h" }
    }
  }
}
"#;

/// An agent with a node of this name, and the file of a job that is not registered yet.
fn begun(directory: &Path) -> (Agent, String, String) {
    let agent = AgentConfig::development(directory, "dev").start();
    agent.wait_for_a_ready_node();
    let node = text(&agent.get("/v1/nodes")[0]["Name"]);
    let file = directory.join("web.nomad.hcl");
    std::fs::write(&file, JOB).unwrap();
    (agent, node, file.to_str().unwrap().to_string())
}

fn both_run(agent: &Agent) {
    until("both run", || {
        agent.allocs("web").iter().filter(|alloc| alloc["ClientStatus"] == "running").count() == 2
    });
}

#[test]
fn a_change_is_tried_out_and_what_is_said_comes_true() {
    let directory = tempfile::tempdir().unwrap();
    let (agent, node, file) = begun(directory.path());
    let path = file.as_str();

    // The job is not there yet.
    let new = agent.run(&["whatif", "run", path]).expect_success();
    assert!(new.starts_with("2 placed\n") && new.contains("web.g[1]"), "{new}");
    assert!(agent.allocs("web").is_empty(), "nothing was registered");
    let large = agent.run(&["whatif", "run", path, "-count", "5000"]);
    assert!(large.code == 2 && large.stdout.contains("Without a node"), "{}{}", large.stdout, large.stderr);
    agent.run(&["job", "run", path]).expect_success();
    both_run(&agent);
    let index = || agent.get("/v1/jobs")[0]["ModifyIndex"].clone();
    let before = index();

    let drained = agent.run(&["whatif", "drain", &node]);
    assert!(
        drained.code == 2 && drained.stdout.contains("default/web g: 2 allocations"),
        "{}",
        drained.stdout
    );
    let moved = agent.run(&["whatif", "add", "1", "like", &node, "and", "drain", &node]).expect_success();
    assert!(moved.starts_with("2 moved\n") && moved.contains(&format!("{node}-new-1")), "{moved}");
    let scaled = agent.run(&["whatif", "-json", "-for=1h", "scale", "web", "g", "3"]).expect_success();
    let scaled: serde_json::Value = serde_json::from_str(&scaled).unwrap();
    assert_eq!(
        (&scaled["Counts"]["Placed"], &scaled["VirtualTime"]),
        (&1.into(), &3_600_000_000_000_i64.into())
    );
    let stopped = agent.run(&["whatif", "-change", r#"{"stop": "web"}"#]).expect_success();
    assert!(stopped.starts_with("2 stopped\n"), "{stopped}");
    let early = agent.run(&["whatif", "-as-of=1", "stop", "web"]).expect_failure();
    assert!(early.contains("No job(s) with prefix or ID \"web\" found"), "{early}");
    let lost = agent.run(&["whatif", "lose", "datacenter=dc1"]);
    assert!(lost.code == 2 && lost.stdout.contains("2 without a node"), "{}", lost.stdout);
    for (words, why) in [
        (&["whatif"][..], "takes at least one change"),
        (&["whatif", "drain", "n9"], "changes[0].drain: no node has the name \"n9\""),
        (&["whatif", "drain", &node, "and"], "expected drain <node>"),
        (&["whatif", "explode"], "\"explode\": expected drain <node>"),
        (&["whatif", "lose", "rack=1"], "expected node=… or datacenter=…"),
        (&["whatif", "add", "x", "like", &node], "add x: expected a whole number"),
        (
            &["whatif", "-for=soon", "drain", &node],
            "until: \"soon\": expected \"quiet\", or a time like \"1h\"",
        ),
        (&["whatif", "-change", "{", "drain", &node], "-change {: "),
        (&["whatif", "-change", r#"{"boom": 1}"#], "changes[0]: unknown field \"boom\""),
        (&["whatif", "drain", &node, "-json"], "-json must come before the arguments"),
    ] {
        let wrong = agent.run(words).expect_failure();
        assert!(wrong.contains(why), "{words:?}: {wrong}");
    }
    assert_eq!(index(), before, "nothing was changed");

    let id = text(&agent.get("/v1/nodes")[0]["ID"]);
    agent.run(&["node", "drain", "-enable", "-yes", "-detach", "-force", &id]).expect_success();
    until("two wait for a node", || {
        let evals = agent.get("/v1/job/web/evaluations");
        evals.as_array().unwrap().iter().any(|eval| eval["QueuedAllocations"]["g"] == 2)
    });
}

/// A fork that is kept is read by every command, changed further, and forgotten; the cluster knows nothing of it.
#[test]
fn a_kept_fork_is_read_by_commands_and_by_programs_that_know_nothing_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let (agent, node, file) = begun(directory.path());
    agent.run(&["job", "run", &file]).expect_success();
    both_run(&agent);
    assert_eq!(agent.run(&["fork", "list"]).expect_success(), "No forks are kept\n");
    let kept = agent
        .run(&["whatif", "-keep", "-json", "add", "1", "like", &node, "and", "drain", &node])
        .expect_success();
    let kept: serde_json::Value = serde_json::from_str(&kept).unwrap();
    let id = text(&kept["Kept"]["ID"]);
    let new = format!("{node}-new-1");
    let fork = ["-fork", id.as_str()];
    let status = agent.run(&["job", "status", fork[0], fork[1], "-json", "web"]).expect_success();
    assert!(status.contains("web"), "{status}");
    let nodes = agent.run(&["node", "status", fork[0], fork[1]]).expect_success();
    assert!(nodes.contains(&new) && nodes.contains("ineligible"), "{nodes}");
    assert!(!agent.run(&["node", "status"]).expect_success().contains(&new));
    let list = agent.run(&["fork", "list"]).expect_success();
    assert!(list.contains(&id) && list.contains("2 moved"), "{list}");

    // Taken further, and what is refused changes nothing.
    let more = agent.run(&["whatif", fork[0], fork[1], "scale", "web", "g", "3"]).expect_success();
    assert!(more.starts_with("2 moved, 1 placed\n") && more.contains("kept as fork"), "{more}");
    let hour = agent.run(&["fork", "advance", &id[..8], "1h"]).expect_success();
    assert!(hour.contains("2 moved, 1 placed"), "{hour}");
    assert_eq!(agent.run(&["fork", "status", &id]).expect_success().lines().next(), hour.lines().next());
    let program = sojourn();
    let program = program.to_str().unwrap();
    let inside = agent.run(&["at", fork[0], fork[1], "--", program, "node", "status"]).expect_success();
    assert!(inside.contains(&new), "{inside}");
    for (words, why) in [
        (
            &["job", "stop", fork[0], fork[1], "web"][..],
            "this route is of the present alone: `fork` is not expected",
        ),
        (&["job", "status", fork[0], fork[1], "-as-of=1", "web"], "`fork` and `as_of`"),
        (&["history", "job", fork[0], fork[1], "web"], "nothing of a fork is written there"),
        (&["job", "status", "-fork", "none", "web"], "fork \"none\": this server keeps none of that id"),
        (&["whatif", "-ttl", "1h", "stop", "web"], "-ttl says how long -keep keeps a fork"),
        (&["whatif", "-keep", fork[0], fork[1], "stop", "web"], "-fork and -keep"),
        (
            &["whatif", "-keep", "-ttl", "48h", "stop", "web"],
            "ttl: \"48h\": expected a time like \"1h\" up to 24h0m0s",
        ),
        (&["fork", "advance", &id, "soon"], "by: \"soon\": expected a time"),
        (&["fork", "status", "none"], "this server keeps none of that id"),
    ] {
        let wrong = agent.run(words).expect_failure();
        assert!(wrong.contains(why), "{words:?}: {wrong}");
    }
    assert_eq!(agent.allocs("web").len(), 2, "nothing was changed");
    agent.run(&["fork", "delete", &id[..8]]).expect_success();
    assert_eq!(agent.run(&["fork", "list"]).expect_success(), "No forks are kept\n");
}

/// What this program has decided comes out the same.
#[test]
fn decisions_are_made_again_from_the_log() {
    let directory = tempfile::tempdir().unwrap();
    let (agent, _, file) = begun(directory.path());
    agent.run(&["job", "run", &file]).expect_success();
    let same = agent.run(&["replay", "-decisions", "-since", "168h"]).expect_success();
    assert!(same.contains(" the same, 0 different; "), "{same}");
    let as_json = agent.run(&["replay", "-decisions", "-json", "-since=last-week"]).expect_success();
    let as_json: serde_json::Value = serde_json::from_str(&as_json).unwrap();
    assert!(as_json["Decisions"]["Decisions"].as_u64() > Some(0), "{as_json}");
    assert_eq!(as_json["Decisions"]["Same"], as_json["Decisions"]["Decisions"]);
    for (words, why) in [
        (&["replay"][..], "needs either -verify or -decisions"),
        (&["replay", "-verify", "-since", "1h"], "-since and -algorithm are for -decisions"),
        (&["replay", "-decisions", "-since", "soon"], "for `since`"),
        (&["replay", "-decisions", "-algorithm", "best"], "algorithm: \"best\": expected binpack or spread"),
    ] {
        let wrong = agent.run(words).expect_failure();
        assert!(wrong.contains(why), "{words:?}: {wrong}");
    }
}
