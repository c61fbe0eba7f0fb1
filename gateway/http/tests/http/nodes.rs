use serde_json::json;

use crate::support::{Cluster, assert_holds, node_id};

#[tokio::test]
async fn a_line_of_the_list_leaves_out_what_was_not_asked_for() {
    let cluster = Cluster::start().await;
    let node = cluster.node(1).await;
    let got = cluster.get("/v1/nodes").await;
    let expected = json!([{
        "ID": node.to_string(), "Name": "node-1", "Address": "10.0.0.1", "Datacenter": "dc1",
        "NodePool": "default", "Version": "2.0.1", "Status": "ready", "SchedulingEligibility": "eligible",
        "Drain": false, "Drivers": null, "LastDrain": null, "HostVolumes": {},
    }]);
    let list = got.json();
    assert_holds(&list, &expected);
    assert_eq!((list[0].get("Attributes"), list[0].get("NodeResources")), (None, None));
    assert_eq!(got.index(), cluster.control.state().tables.nodes.0);
    let more = cluster.get("/v1/nodes?os=true&resources=1").await.json();
    assert_holds(&more, &json!([{"NodeResources": {"Memory": {"MemoryMB": 8192}}}]));
    assert_eq!(more[0]["Attributes"], json!({"os.name": "linux"}));
    cluster.get("/v1/nodes?resources=2").await.refused(400, "\"2\" is not true or false, for `resources`");
}

#[tokio::test]
async fn nodes_are_found_by_the_start_of_their_ids_in_whole_bytes() {
    let cluster = Cluster::start().await;
    let node = cluster.node(1).await;
    cluster.node(2).await;
    let count =
        async |query: &str| cluster.get(&format!("/v1/nodes{query}")).await.json().as_array().unwrap().len();
    assert_eq!(count("").await, 2);
    assert_eq!(count("?prefix=0000").await, 2);
    assert_eq!(count(&format!("?prefix={node}")).await, 1);
    assert_eq!(count(&format!("?prefix={}", node.to_string().replace('-', ""))).await, 1);
    assert_eq!(count("?prefix=ab").await, 0);
    for odd in ["0", "000", "xy"] {
        assert_eq!(cluster.get(&format!("/v1/nodes?prefix={odd}")).await.status, 400, "{odd}");
    }
    let first = cluster.get("/v1/nodes?per_page=1").await;
    assert_eq!(first.header("x-nomad-nexttoken"), node_id(2).to_string());
}

#[tokio::test]
async fn a_node_is_shown_without_its_secret() {
    let cluster = Cluster::start().await;
    let node = cluster.node(1).await;
    let read = cluster.get(&format!("/v1/node/{node}")).await;
    let expected = json!({"ID": node.to_string(), "SecretID": "", "Status": "ready", "Drain": false});
    assert_holds(&read.json(), &expected);
    assert_eq!(read.json()["ModifyIndex"], read.index());
    for unknown in [node_id(9).to_string(), "0000".to_string(), "%2e".to_string()] {
        cluster.get(&format!("/v1/node/{unknown}")).await.refused(404, "node not found");
    }
}

#[tokio::test]
async fn a_nodes_allocations_are_whole_and_as_new_as_the_newest() {
    let cluster = Cluster::start().await;
    let node = cluster.node(1).await;
    let empty = cluster.get(&format!("/v1/node/{node}/allocations")).await;
    assert_eq!((empty.json(), empty.index()), (json!([]), 0));
    let eval = cluster.job("web").await;
    let alloc = cluster.place(eval, "web", node, 7).await;
    let got = cluster.get(&format!("/v1/node/{node}/allocations")).await;
    assert_holds(&got.json(), &json!([{"ID": alloc.to_string(), "Job": {"ID": "web"}}]));
    assert_eq!(got.json()[0]["ModifyIndex"], got.index());
}

#[tokio::test]
async fn a_node_can_be_closed_for_new_work_and_opened() {
    let cluster = Cluster::start().await;
    let node = cluster.node(1).await;
    let path = format!("/v1/node/{node}/eligibility");
    let closed = cluster.put(&path, &json!({"Eligibility": "ineligible"})).await;
    assert_holds(
        &closed.json(),
        &json!({"NodeModifyIndex": closed.index(), "EvalIDs": null, "EvalCreateIndex": 0}),
    );
    assert_eq!(cluster.get(&format!("/v1/node/{node}")).await.json()["SchedulingEligibility"], "ineligible");
    // The body may name another node than the path.
    let other = json!({"NodeID": node_id(9).to_string(), "Eligibility": "eligible"});
    cluster.put(&path, &other).await.refused(500, "node not found");
    let odd = cluster.put(&path, &json!({"Eligibility": "maybe"})).await;
    odd.refused(400, "invalid eligibility \"maybe\": expected eligible or ineligible");
}

#[tokio::test]
async fn jobs_look_again_at_a_node_that_is_evaluated_or_purged() {
    let cluster = Cluster::start().await;
    let node = cluster.node(1).await;
    let eval = cluster.job("web").await;
    cluster.place(eval, "web", node, 7).await;
    let evaluated = cluster.put(&format!("/v1/node/{node}/evaluate"), &json!({})).await;
    assert_eq!(evaluated.json()["EvalIDs"].as_array().unwrap().len(), 1);
    assert_eq!(evaluated.json()["EvalCreateIndex"], evaluated.index());
    let purged = cluster.put(&format!("/v1/node/{node}/purge"), &json!({})).await;
    assert_holds(&purged.json(), &json!({"NodeModifyIndex": purged.index(), "HeartbeatTTL": 0}));
    cluster.get(&format!("/v1/node/{node}")).await.refused(404, "node not found");
    cluster.put(&format!("/v1/node/{node}/purge"), &json!({})).await.refused(500, "node not found");
}

#[tokio::test]
async fn an_empty_node_is_drained_at_once() {
    let cluster = Cluster::start().await;
    let node = cluster.node(1).await;
    let path = format!("/v1/node/{node}/drain");
    let hour = 3_600_000_000_000_i64;
    let spec = json!({"DrainSpec": {"Deadline": hour}, "Meta": {"message": "new disks"}});
    let drain = cluster.put(&path, &spec).await;
    assert_holds(&drain.json(), &json!({"NodeModifyIndex": drain.index(), "EvalIDs": null}));
    let mut index = drain.index() - 1;
    let drained = loop {
        let got = cluster.get(&format!("/v1/node/{node}?index={index}&wait=60s")).await;
        index = got.index();
        if got.json()["LastDrain"]["Status"] == "complete" {
            break got.json();
        }
    };
    let expected = json!({
        "Drain": false, "DrainStrategy": null, "SchedulingEligibility": "ineligible",
        "LastDrain": {"Status": "complete", "AccessorID": "anonymous", "Meta": {"message": "new disks"}},
    });
    assert_holds(&drained, &expected);
    let messages = drained["Events"].as_array().unwrap();
    let texts: Vec<&str> = messages.iter().filter_map(|message| message["Message"].as_str()).collect();
    assert!(texts.ends_with(&["Node drain strategy set", "Node drain complete"]), "{texts:?}");
}

#[tokio::test]
async fn a_drain_goes_on_until_what_runs_there_may_go() {
    let cluster = Cluster::start().await;
    let node = cluster.node(1).await;
    let eval = cluster.job("web").await;
    cluster.place(eval, "web", node, 7).await;
    let path = format!("/v1/node/{node}");
    cluster.put(&format!("{path}/drain"), &json!({"DrainSpec": {"Deadline": 0}})).await;
    let draining = cluster.get(&path).await.json();
    let strategy = json!({"Deadline": 0, "IgnoreSystemJobs": false, "ForceDeadline": "0001-01-01T00:00:00Z"});
    assert_holds(&draining, &json!({"Drain": true, "DrainStrategy": strategy}));
    assert_holds(&cluster.get("/v1/nodes").await.json(), &json!([{"Drain": true}]));
    let eligible = cluster.put(&format!("{path}/eligibility"), &json!({"Eligibility": "eligible"})).await;
    eligible
        .refused(409, &format!("node {node} is draining: stop the drain before it is marked as eligible"));
    let off = cluster.put(&format!("{path}/drain"), &json!({"DrainSpec": null, "MarkEligible": true})).await;
    assert_eq!(off.json()["EvalIDs"].as_array().unwrap().len(), 1);
    let expected = json!({"SchedulingEligibility": "eligible", "LastDrain": {"Status": "canceled"}});
    assert_holds(&cluster.get(&path).await.json(), &expected);
    cluster.put("/v1/node/nobody/drain", &json!({"DrainSpec": null})).await.refused(500, "node not found");
}

#[tokio::test]
async fn two_pools_are_always_there() {
    let cluster = Cluster::start().await;
    let pools = cluster.get("/v1/node/pools").await.json();
    assert_holds(&pools, &json!([{"Name": "all"}, {"Name": "default"}]));
    assert_eq!(cluster.get("/v1/node/pool/all").await.json()["Name"], "all");
    cluster.get("/v1/node/pool/gpu").await.refused(404, "node pool not found");
}
