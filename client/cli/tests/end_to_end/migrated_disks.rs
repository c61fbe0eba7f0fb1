//! Sticky disks that go from node to node.

use serde_json::{Value, json};

use crate::end_to_end::support::{AgentConfig, eventually, http, job, text, until};

/// A job that writes who began it where its successors find it.
fn sticky(id: &str) -> Value {
    let script = "test -e $NOMAD_ALLOC_DIR/data/first || echo $NOMAD_ALLOC_ID > $NOMAD_ALLOC_DIR/data/first; \
                  test -e $NOMAD_TASK_DIR/own || echo $NOMAD_ALLOC_ID > $NOMAD_TASK_DIR/own; \
                  exec tail -f /dev/null";
    let mut job = job(id, json!({"command": "/bin/sh", "args": ["-c", script]}));
    job["TaskGroups"][0]["EphemeralDisk"] = json!({"Sticky": true, "Migrate": true, "SizeMB": 300});
    job
}

#[test]
fn the_data_of_a_sticky_group_follows_it_from_a_drained_node() {
    let directory = tempfile::tempdir().unwrap();
    // One node shares its process with the server, the other one has its own.
    let server_config = AgentConfig::server_and_client(directory.path(), "server");
    let server = server_config.start();
    let client = AgentConfig::client(directory.path(), "client", &server_config).start();
    until("both nodes are ready", || {
        let nodes = server.get("/v1/nodes");
        nodes.as_array().unwrap().iter().filter(|node| node["Status"] == "ready").count() == 2
    });
    server.register(&sticky("keeps"));
    let first = server.running("keeps");
    let read = |alloc: &str, path: &str| server.run(&["alloc", "fs", alloc, path]).stdout.trim().to_string();
    until("the task has written", || read(&first, "main/local/own") == first);

    // There and back: each agent gives and takes once.
    let mut alloc = first.clone();
    for _ in 0..2 {
        let node = text(&server.get(&format!("/v1/allocation/{alloc}"))["NodeID"]);
        server.run(&["node", "drain", "-enable", "-detach", "-force", &node]).expect_success();
        let next = eventually("it is replaced", || {
            let runs =
                |other: &&Value| other["ClientStatus"] == "running" && other["NodeID"] != node.as_str();
            server.allocs("keeps").iter().find(runs).map(|other| text(&other["ID"]))
        });
        let events =
            server.get(&format!("/v1/allocation/{next}"))["TaskStates"]["main"]["Events"].to_string();
        assert_eq!(read(&next, "alloc/data/first"), first, "{events}");
        assert_eq!(read(&next, "main/local/own"), first, "{events}");
        assert!(!events.contains("ephemeral_disk"), "{events}");
        until("the drain is over", || server.get(&format!("/v1/node/{node}"))["Drain"] == false);
        server.run(&["node", "eligibility", "-enable", &node]).expect_success();
        alloc = next;
    }

    // Whoever has no token gets nothing, whichever agent is asked.
    for agent in [&server, &client] {
        let answer =
            http::get(agent.config.http, &format!("/v1/client/allocation/{alloc}/snapshot")).unwrap();
        assert_eq!((answer.status, answer.body.as_str()), (403, "Permission denied"));
    }

    // What a task has left is not trusted: a link out of the directory is not made elsewhere. The replacement starts without it, and says so.
    let node = text(&server.get(&format!("/v1/allocation/{alloc}"))["NodeID"]);
    let home = [&server, &client].map(|agent| agent.config.home.join("data/alloc").join(&alloc));
    let data = home.iter().find(|home| home.is_dir()).unwrap().join("alloc/data");
    std::os::unix::fs::symlink("/etc/passwd", data.join("passwd")).unwrap();
    server.run(&["node", "drain", "-enable", "-detach", "-force", &node]).expect_success();
    let last = eventually("it is replaced", || {
        let runs = |other: &&Value| other["ClientStatus"] == "running" && other["NodeID"] != node.as_str();
        server.allocs("keeps").iter().find(runs).map(|other| text(&other["ID"]))
    });
    let events = server.get(&format!("/v1/allocation/{last}"))["TaskStates"]["main"]["Events"].to_string();
    assert!(events.contains("a link leads out"), "{events}");
    until("it begins anew", || read(&last, "alloc/data/first") == last);
    server.run(&["job", "stop", "-detach", "keeps"]).expect_success();
}
