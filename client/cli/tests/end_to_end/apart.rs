//! A server and a node in processes of their own: each may go and come back.

use serde_json::{Value, json};

use crate::support::{Agent, Place, Process, staying, text, until};

#[test]
fn tasks_go_on_while_servers_and_nodes_come_back() {
    let directory = tempfile::tempdir().unwrap();
    let server_place = Place::server(directory.path(), "server");
    let client_place = Place::client(directory.path(), "client", &server_place);
    let server = server_place.start();
    let client = client_place.start();
    server.wait_for_a_ready_node();
    server.register(&staying("first"));
    let alloc = server.running("first");
    let process = server.process_of(&alloc);

    server.kill();
    let server = server_place.start();
    // Only a node that has come back can start it.
    server.register(&staying("second"));
    let second = server.running("second");
    let second = (second.clone(), server.process_of(&second));
    assert_untouched(&server, "first", &alloc, process);

    client.kill();
    assert!(process.lives() && second.1.lives(), "tasks outlive their agent");
    let client = client_place.start();
    server.register(&staying("third"));
    server.running("third");
    assert_untouched(&server, "first", &alloc, process);
    assert_untouched(&server, "second", &second.0, second.1);
    assert_eq!(server.process_of(&alloc), process, "the node knows the task again");

    for job in ["first", "second", "third"] {
        server.run(&["job", "stop", "-detach", job]).good();
    }
    until("the tasks end", || !process.lives() && !second.1.lives());
    drop(client);
}

#[test]
fn the_log_of_each_agent_can_be_followed_from_anywhere() {
    let directory = tempfile::tempdir().unwrap();
    let server_place = Place::server(directory.path(), "server");
    let client_place = Place::client(directory.path(), "client", &server_place);
    let server = server_place.start();
    let client = client_place.start();
    server.wait_for_a_ready_node();
    let node = text(&server.get("/v1/nodes")[0]["ID"]);

    let mut asked = 0;
    let mut own = server.follow(&["monitor", "-log-level=debug", "-server-id=leader"]);
    own.until("path=/v1/jobs", || {
        asked += 1;
        server.get(&format!("/v1/jobs?prefix=nothing-{asked}"));
    });

    let mut of_node = server.follow(&["monitor", "-json", "-node-id", &node[..8]]);
    of_node.until("\"kind\":\"Started\"", || {
        asked += 1;
        server.register(&staying(&format!("job-{asked}")));
    });
    server.run(&["monitor", "-log-level=loud"]).bad();
    drop((own, of_node, client));
}

/// The job has this allocation alone, and its task was never started again.
fn assert_untouched(server: &Agent, job: &str, alloc: &str, process: Process) {
    assert!(process.lives(), "{job}");
    let ids: Vec<Value> = server.allocs(job).iter().map(|alloc| alloc["ID"].clone()).collect();
    assert_eq!(ids, [json!(alloc)], "{job}");
    let alloc = server.get(&format!("/v1/allocation/{alloc}"));
    let task = &alloc["TaskStates"]["main"];
    assert_eq!((&alloc["ClientStatus"], &task["Restarts"]), (&json!("running"), &json!(0)), "{task}");
}
