//! An agent with a Consul agent beside it, or what stands for one: see [`super::support::consul`].

use super::support::consul::FakeConsul;
use super::support::{AgentConfig, eventually, job};
use serde_json::{Value, json};

#[test]
fn an_agent_registers_itself_and_its_services_and_leaves() {
    let directory = tempfile::tempdir().unwrap();
    let fake = FakeConsul::start();
    let block = format!(
        "consul {{\n  address = \"{}\"\n  token = \"agent-token\"\n  tags = [\"blue\"]\n}}\n",
        fake.address
    );
    let config = AgentConfig::server_and_client(directory.path(), "one").with(&block);
    let mut agent = config.start();
    agent.wait_for_a_ready_node();
    let service = |id: &str| fake.look(|state| state.services.get(id).cloned());
    for (id, tags) in [
        ("_nomad-client-one-nomad-client-http", ["http", "blue"]),
        ("_nomad-server-one-nomad-http", ["http", "blue"]),
        ("_nomad-server-one-nomad-rpc", ["rpc", "blue"]),
        ("_nomad-server-one-nomad-serf", ["serf", "blue"]),
    ] {
        let found = eventually(id, || service(id));
        assert_eq!(found["Tags"], json!(tags));
    }
    let health = service("_nomad-client-one-nomad-client-http").unwrap()["Checks"][0]["HTTP"].clone();
    assert_eq!(health, format!("http://{}/v1/agent/health?type=client", config.http));
    eventually("the node has a Consul", || {
        let node = agent.get("/v1/nodes")[0]["ID"].as_str()?.to_string();
        let attributes = agent.get(&format!("/v1/node/{node}"))["Attributes"].clone();
        (attributes["consul.version"] == "1.20.1").then_some(())
    });

    let mut wanted = job("shop", json!({"command": "/bin/sleep", "args": ["3600"]}));
    wanted["TaskGroups"][0]["Tasks"][0]["Services"] = json!([{"Name": "shop", "PortLabel": "8080"}]);
    agent.register(&wanted);
    let alloc = agent.running("shop");
    let id = format!("_nomad-task-{alloc}-main-shop-8080");
    eventually("the service is there", || service(&id));
    agent.run(&["job", "stop", "-detach", "shop"]).expect_success();
    eventually("the service is gone", || service(&id).is_none().then_some(()));
    assert!(agent.interrupt().success());
    let left: Vec<Value> = fake.look(|state| state.services.values().cloned().collect());
    assert_eq!(left, Vec::<Value>::new());
}
