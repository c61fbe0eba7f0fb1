//! A server and a client in processes of their own: each is restarted.

use serde_json::{Value, json};

use crate::end_to_end::support::http::{self, Events};
use crate::end_to_end::support::{Agent, AgentConfig, Process, free_port, staying, text, until};

#[test]
fn tasks_survive_restarts_of_servers_and_clients() {
    let directory = tempfile::tempdir().unwrap();
    let server_config = AgentConfig::server(directory.path(), "server");
    let client_config = AgentConfig::client(directory.path(), "client", &server_config);
    let server = server_config.start();
    let client = client_config.start();
    server.wait_for_a_ready_node();
    server.register(&staying("first"));
    let alloc = server.running("first");
    let process = server.process_of(&alloc);

    server.kill();
    let server = server_config.start();
    // Only a reconnected client can start it.
    server.register(&staying("second"));
    let second = server.running("second");
    let second = (second.clone(), server.process_of(&second));
    assert_untouched(&server, "first", &alloc, process);

    client.kill();
    assert!(process.is_alive() && second.1.is_alive(), "tasks outlive their agent");
    let client = client_config.start();
    server.register(&staying("third"));
    server.running("third");
    assert_untouched(&server, "first", &alloc, process);
    assert_untouched(&server, "second", &second.0, second.1);
    assert_eq!(server.process_of(&alloc), process, "the node knows the task again");

    for job in ["first", "second", "third"] {
        server.run(&["job", "stop", "-detach", job]).expect_success();
    }
    until("the tasks end", || !process.is_alive() && !second.1.is_alive());
    drop(client);
}

#[test]
fn the_log_of_each_agent_can_be_followed_from_anywhere() {
    let directory = tempfile::tempdir().unwrap();
    let server_config = AgentConfig::server(directory.path(), "server");
    let client_config = AgentConfig::client(directory.path(), "client", &server_config);
    let server = server_config.start();
    let client = client_config.start();
    server.wait_for_a_ready_node();
    let node = text(&server.get("/v1/nodes")[0]["ID"]);

    let mut requests = 0;
    let mut own = server.follow(&["monitor", "-log-level=debug", "-server-id=leader"]);
    own.until("path=/v1/jobs", || {
        requests += 1;
        server.get(&format!("/v1/jobs?prefix=nothing-{requests}"));
    });

    let mut of_node = server.follow(&["monitor", "-json", "-node-id", &node[..8]]);
    of_node.until("\"kind\":\"Started\"", || {
        requests += 1;
        server.register(&staying(&format!("job-{requests}")));
    });
    server.run(&["monitor", "-log-level=loud"]).expect_failure();
    drop((own, of_node, client));
}

#[test]
fn what_an_agent_has_logged_can_be_read_from_anywhere() {
    let directory = tempfile::tempdir().unwrap();
    let server_config = AgentConfig::server(directory.path(), "server");
    let client_config = AgentConfig::client(directory.path(), "client", &server_config);
    for config in [&server_config, &client_config] {
        let file = config.home.join("agent.hcl");
        let words = std::fs::read_to_string(&file).unwrap();
        let logs =
            format!("log_file = \"{}/\"\nlog_rotate_max_files = 3\n", config.home.join("logs").display());
        std::fs::write(file, logs + &words).unwrap();
    }
    let server = server_config.start();
    let client = client_config.start();
    server.wait_for_a_ready_node();
    let node = text(&server.get("/v1/nodes")[0]["ID"]);
    let written = |config: &AgentConfig| std::fs::read_to_string(config.home.join("logs/nomad.log")).unwrap();
    let first_line = |text: &str| text.lines().next().unwrap_or_default().to_string();
    let (of_server, of_client) = (first_line(&written(&server_config)), first_line(&written(&client_config)));
    assert_ne!(of_server, of_client);

    let export = |agent: &Agent, more: &[&str]| {
        let command = [&["monitor", "export", "-on-disk"], more].concat();
        first_line(&agent.run(&command).expect_success())
    };
    assert_eq!(export(&server, &[]), of_server);
    assert_eq!(export(&server, &["-node-id", &node[..8]]), of_client);
    assert_eq!(export(&client, &[]), of_client);
    assert_eq!(export(&client, &["-server-id=leader"]), of_server);
    let unit = server.run(&["monitor", "export", "-service-name=sshd"]).expect_failure();
    assert!(unit.contains("this agent does not run as that unit of systemd"), "{unit}");
}

#[test]
fn an_agent_without_a_server_passes_on_what_it_does_not_answer_itself() {
    let directory = tempfile::tempdir().unwrap();
    let server_config = AgentConfig::server(directory.path(), "server");
    let client_config = AgentConfig::client(directory.path(), "client", &server_config);
    let server = server_config.start();
    let client = client_config.start();
    server.wait_for_a_ready_node();

    // Whatever a server can be asked: writes, answers, a stream without end, a connection that changes its protocol.
    let mut events = Events::open(client.config.http, None).unwrap();
    client.register(&staying("stay"));
    let alloc = client.running("stay");
    assert_eq!(client.get("/v1/jobs"), server.get("/v1/jobs"));
    until("the stream goes through", || events.next().unwrap().topic == "Allocation");
    let ran =
        client.run(&["alloc", "exec", "-i=false", "-t=false", &alloc, "sh", "-c", "echo through; exit 3"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (3, "through\n"), "{}", ran.stderr);
    let unknown = http::get(client.config.http, "/v1/job/none").unwrap();
    assert_eq!((unknown.status, unknown.body.as_str()), (404, "job not found"));

    // What is about a node means its own.
    assert!(client.get("/v1/client/stats")["Memory"]["Total"].as_u64() > Some(0));
    let own = client.get("/v1/agent/self");
    assert_eq!(own["stats"]["client"]["node_id"], server.get("/v1/nodes")[0]["ID"]);
    assert_eq!(own["stats"]["client"]["known_servers"], server.config.rpc.to_string());
    assert_eq!(client.get("/v1/agent/servers"), json!([server.config.rpc.to_string()]));
    assert_eq!(client.get("/v1/agent/health"), json!({"client": {"ok": true, "message": "ok"}}));
    assert_eq!(http::get(client.config.http, "/v1/agent/health?type=server").unwrap().status, 500);

    let gauges = client.get("/v1/metrics")["Gauges"].as_array().unwrap().clone();
    let running = gauges.iter().find(|gauge| gauge["Name"] == "nomad.client.allocations.running");
    assert_eq!(running.map(|gauge| &gauge["Value"]), Some(&json!(1.0)), "{gauges:?}");

    // Servers that are not reached are not taken.
    let nobody = format!("/v1/agent/servers?address=127.0.0.1:{}", free_port());
    assert_eq!(http::put(client.config.http, &nobody, &Value::Null).unwrap().status, 400);
    assert_eq!(client.get("/v1/agent/servers"), json!([server.config.rpc.to_string()]));
    let again = format!("/v1/agent/servers?address={}", server.config.rpc);
    assert_eq!(http::put(client.config.http, &again, &Value::Null).unwrap().status, 200);

    server.kill();
    let alone = http::get(client.config.http, "/v1/jobs").unwrap();
    assert_eq!(alone.status, 500);
    assert!(alone.body.starts_with("No path to a server: "), "{}", alone.body);
    assert!(client.get("/v1/agent/self")["stats"]["client"]["num_allocations"] == "1");
    until("the node notices", || http::get(client.config.http, "/v1/agent/health").unwrap().status == 500);
}

/// The job has only this allocation, and its task was never restarted.
fn assert_untouched(server: &Agent, job: &str, alloc: &str, process: Process) {
    assert!(process.is_alive(), "{job}");
    let ids: Vec<Value> = server.allocs(job).iter().map(|alloc| alloc["ID"].clone()).collect();
    assert_eq!(ids, [json!(alloc)], "{job}");
    let alloc = server.get(&format!("/v1/allocation/{alloc}"));
    let task = &alloc["TaskStates"]["main"];
    assert_eq!((&alloc["ClientStatus"], &task["Restarts"]), (&json!("running"), &json!(0)), "{task}");
}
