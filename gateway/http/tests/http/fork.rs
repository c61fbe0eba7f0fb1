//! Forks over the route: who may ask, what is refused, and that nothing is written.

use axum::body::Body;
use axum::http::{HeaderValue, Method};
use futures_util::future::join_all;
use model::document::{Allocation, DriverInfo, Node};
use model::{Command, EvalId, NodeId, NodeStatus};
use serde_json::{Value, json};

use crate::guarded::{Guarded, NOBODY};
use crate::support::{Cluster, Got, assert_holds, job_json, node_document, node_id, request};

/// A node with the driver of the jobs here.
pub async fn able_node(cluster: &Cluster, number: u8) -> NodeId {
    let node = node_id(number);
    let driver = DriverInfo { detected: true, healthy: true, ..DriverInfo::default() };
    let drivers = [("raw_exec".to_string(), driver)].into_iter().collect();
    let document = Node { drivers, datacenter: format!("dc{number}"), ..node_document(node, number) };
    cluster.submit(Command::RegisterNode { document: Box::new(document) }).await;
    cluster.submit(Command::UpdateNodeStatus { node, claimed: NodeStatus::Ready }).await;
    node
}

/// Two nodes in two datacenters, and a job of two allocations that run.
pub async fn begun() -> Cluster {
    let cluster = Cluster::start().await;
    for number in [1, 2] {
        able_node(&cluster, number).await;
    }
    let mut job = job_json("web");
    job["Datacenters"] = json!(["*"]);
    // Without a deployment, which would keep it from being scaled.
    job["TaskGroups"][0]["Update"] = json!({"MaxParallel": 0});
    let registered = cluster.put("/v1/jobs", &json!({"Job": job})).await;
    let eval: EvalId = registered.json()["EvalID"].as_str().unwrap().parse().unwrap();
    let state = cluster.control.state();
    let settlement = placement::schedule(&state, state.evals.lookup(eval).unwrap(), 1, state.time).settlement;
    cluster.submit(Command::SettleEval(Box::new(settlement))).await;
    let state = cluster.control.state();
    for (_, alloc) in state.allocs.iter() {
        let running = Allocation {
            id: alloc.id.to_string(),
            client_status: "running".to_string(),
            ..Allocation::default()
        };
        cluster.submit(Command::UpdateAllocs { node: alloc.node_id, updates: vec![running] }).await;
    }
    cluster
}

pub async fn ask(cluster: &Cluster, body: &Value) -> Got {
    cluster.send(request(Method::POST, "/v1/fork", Body::from(body.to_string()))).await
}

pub async fn answer(cluster: &Cluster, body: &Value) -> Value {
    let got = ask(cluster, body).await;
    assert_eq!(got.status, 200, "{}", got.text());
    got.json()
}

#[tokio::test]
async fn changes_are_tried_out_and_nothing_is_written() {
    let cluster = begun().await;
    let (state, written) = (cluster.control.state(), cluster.journal.batches().len());
    let lost = ask(&cluster, &json!({"changes": [{"down": {"datacenter": "dc1"}}]})).await;
    assert_eq!((lost.status.as_u16(), lost.index()), (200, state.index.0));
    assert_holds(
        &lost.json(),
        &json!({
            "Index": state.index.0, "Quiet": true, "EndedBy": "quiet",
            "Counts": {"Unplaced": 0, "Lost": 0},
            "FreeTotal": {"Before": {"Nodes": 2}, "After": {"Nodes": 1}},
        }),
    );
    let both = json!([{"drain": "node-1"}, {"drain": &node_id(2).to_string()}]);
    let drained = answer(&cluster, &json!({"changes": both})).await;
    assert_holds(
        &drained,
        &json!({"Counts": {"Unplaced": 2}, "Unplaced": [{"JobID": "web", "Group": "web"}]}),
    );
    let added = json!([{"drain": "node-1"}, {"add": {"like": "node-2", "count": 2}}, {"scale": {"job": "web", "group": "web", "count": 5}}]);
    let added = answer(&cluster, &json!({"changes": added, "until": "1h"})).await;
    assert_holds(
        &added,
        &json!({"Counts": {"Placed": 3, "Unplaced": 0}, "VirtualTime": 3_600_000_000_000_i64}),
    );
    let stopped = answer(&cluster, &json!({"changes": [{"stop": "web"}], "until": "quiet"})).await;
    assert_holds(&stopped, &json!({"Counts": {"Stopped": 2}}));
    let mut job = job_json("large");
    job["Datacenters"] = json!(["*"]);
    job["TaskGroups"][0]["Tasks"][0]["Resources"] = json!({"MemoryMB": 100_000});
    let large = answer(&cluster, &json!({"changes": [{"job": job}]})).await;
    assert_holds(
        &large,
        &json!({"Counts": {"Unplaced": 2}, "Unplaced": [{"JobID": "large", "Before": 0, "After": 2}]}),
    );
    let spread =
        json!({"SchedulerAlgorithm": "spread", "PreemptionConfig": {"ServiceSchedulerEnabled": true}});
    answer(&cluster, &json!({"changes": [{"scheduler": spread}]})).await;
    assert_eq!(cluster.journal.batches().len(), written);
    let now = cluster.control.state();
    assert_eq!((now.index, now.digest()), (state.index, state.digest()));
    // The same again, on the same state: the same.
    let drain = json!({"changes": [{"drain": "node-1"}], "as_of": state.index.0.to_string()});
    assert_eq!(answer(&cluster, &drain).await, answer(&cluster, &drain).await);
}

#[tokio::test]
async fn a_fork_may_begin_in_the_past() {
    let cluster = begun().await;
    let now = cluster.control.state().index.0;
    cluster.put("/v1/job/web/scale", &json!({"Count": 1, "Target": {"Group": "web"}})).await;
    let stop = json!([{"stop": "web"}]);
    let body = json!({"changes": stop, "as_of": now.to_string()});
    assert_holds(&answer(&cluster, &body).await, &json!({"Index": now, "Counts": {"Stopped": 2}}));
    let mut by_header = request(Method::POST, "/v1/fork", Body::from(json!({"changes": stop}).to_string()));
    by_header.headers_mut().insert("x-sojourn-as-of", HeaderValue::from(now));
    assert_eq!(cluster.send(by_header).await.json()["Index"], now);
    let got = cluster.send(request(Method::POST, "/v1/fork?as_of=1", Body::from(body.to_string()))).await;
    got.refused(400, "`as_of` of the body and of the request: expected one moment, not two");
    let early = ask(&cluster, &json!({"changes": stop, "as_of": "1"})).await;
    early.refused(404, "changes[0].stop: no job \"web\" in namespace \"default\"");
    let late = ask(&cluster, &json!({"as_of": "999"})).await;
    assert!(late.status == 400 && late.text().contains("as_of: that is still to come"), "{}", late.text());
    let wrong = ask(&cluster, &json!({"as_of": "soon"})).await;
    assert!(wrong.status == 400 && wrong.text().contains("as_of"), "{}", wrong.text());
}

#[tokio::test]
async fn what_cannot_be_meant_is_refused_by_its_name() {
    let cluster = begun().await;
    let kinds = "drain, down, add, job, stop, scale, scheduler";
    for (body, status, why) in [
        (json!([]), 400, "expected an object with as_of, changes, until, ttl".to_string()),
        (
            json!({"changed": []}),
            400,
            "unknown field \"changed\": expected as_of, changes, until, ttl".to_string(),
        ),
        (json!({"changes": 7}), 400, "changes: ".to_string()),
        (
            json!({"until": "1"}),
            400,
            "until: \"1\": expected \"quiet\", or a time like \"1h\" up to 168h0m0s".to_string(),
        ),
        (json!({"until": "-1h"}), 400, "until: ".to_string()),
        (json!({"until": "1000h"}), 400, "until: ".to_string()),
        (json!({"until": 7}), 400, "until: invalid type".to_string()),
        (
            json!({"changes": vec![json!({"stop": "web"}); 65]}),
            400,
            "changes: 65 are given: expected at most 64".to_string(),
        ),
        (json!({"changes": ["drain"]}), 400, format!("changes[0]: expected an object with {kinds}")),
        (json!({"changes": [{}]}), 400, format!("changes[0]: nothing is given: expected one of {kinds}")),
        (
            json!({"changes": [{"drain": null}]}),
            400,
            format!("changes[0]: nothing is given: expected one of {kinds}"),
        ),
        (
            json!({"changes": [{"explode": 1}]}),
            400,
            format!("changes[0]: unknown field \"explode\": expected {kinds}"),
        ),
        (
            json!({"changes": [{"drain": "node-1", "stop": "web"}]}),
            400,
            format!("changes[0]: drain and stop are given: expected one of {kinds}"),
        ),
        (json!({"changes": [{"drain": 7}]}), 400, "changes[0].drain: invalid type".to_string()),
        (
            json!({"changes": [{"stop": "web"}, {"drain": "n9"}]}),
            404,
            "changes[1].drain: no node has the name \"n9\", or an id that begins with it".to_string(),
        ),
        (
            json!({"changes": [{"down": {}}]}),
            400,
            "changes[0].down: expected either node or datacenter".to_string(),
        ),
        (
            json!({"changes": [{"down": {"node": "node-1", "datacenter": "dc1"}}]}),
            400,
            "changes[0].down: expected either node or datacenter".to_string(),
        ),
        (
            json!({"changes": [{"down": {"rack": "r1"}}]}),
            400,
            "changes[0].down: unknown field \"rack\": expected node, datacenter".to_string(),
        ),
        (
            json!({"changes": [{"down": "dc1"}]}),
            400,
            "changes[0].down: expected an object with node, datacenter".to_string(),
        ),
        (
            json!({"changes": [{"down": {"datacenter": "dc9"}}]}),
            404,
            "changes[0].down.datacenter: no node is in a datacenter \"dc9\"".to_string(),
        ),
        (
            json!({"changes": [{"add": {"like": "n9"}}]}),
            404,
            "changes[0].add.like: no node has the name \"n9\"".to_string(),
        ),
        (
            json!({"changes": [{"add": {"like": "node-1", "count": 0}}]}),
            400,
            "changes[0].add.count: 0: expected 1 to 1000".to_string(),
        ),
        (
            json!({"changes": [{"add": {"like": "node-1", "count": 1001}}]}),
            400,
            "changes[0].add.count: 1001: expected 1 to 1000".to_string(),
        ),
        (
            json!({"changes": [{"add": {"like": "node-1", "size": 1}}]}),
            400,
            "changes[0].add: unknown field \"size\"".to_string(),
        ),
        (
            json!({"changes": [{"stop": "nobody"}]}),
            404,
            "changes[0].stop: no job \"nobody\" in namespace \"default\"".to_string(),
        ),
        (
            json!({"changes": [{"scale": {"job": "nobody"}}]}),
            404,
            "changes[0].scale.job: no job \"nobody\"".to_string(),
        ),
        (
            json!({"changes": [{"scale": {"job": "web", "group": "x", "count": 1}}]}),
            404,
            "changes[0].scale.group: job \"web\" has no group \"x\"".to_string(),
        ),
        (
            json!({"changes": [{"scale": {"job": "web", "group": "web"}}]}),
            400,
            "changes[0].scale.count: expected a number, 0 or more".to_string(),
        ),
        (
            json!({"changes": [{"scale": {"job": "web", "group": "web", "count": -1}}]}),
            400,
            "changes[0].scale.count: ".to_string(),
        ),
        (
            json!({"changes": [{"scale": {"job": "web", "group": "web", "count": 1_000_000}}]}),
            400,
            "changes[0]: ".to_string(),
        ),
        (
            json!({"changes": [{"job": {"ID": ""}}]}),
            400,
            "changes[0].job: Job ID hasn't been provided".to_string(),
        ),
        (json!({"changes": [{"job": {"ID": "x", "Type": "odd"}}]}), 400, "changes[0].job: ".to_string()),
        (
            json!({"changes": [{"job": {"TaskGroups": [{"Count": "two"}]}}]}),
            400,
            "changes[0].job.TaskGroups[0].Count: ".to_string(),
        ),
        (
            json!({"changes": [{"scheduler": {"Algorithm": "x"}}]}),
            400,
            "changes[0].scheduler: unknown field \"Algorithm\"".to_string(),
        ),
        (
            json!({"changes": [{"scheduler": {"SchedulerAlgorithm": "x"}}]}),
            400,
            "changes[0].scheduler: invalid SchedulerAlgorithm".to_string(),
        ),
        (
            json!({"changes": [{"scheduler": {"PreemptionConfig": {"Service": true}}}]}),
            400,
            "changes[0].scheduler.PreemptionConfig: unknown field \"Service\"".to_string(),
        ),
    ] {
        let got = ask(&cluster, &body).await;
        assert!(got.status == status && got.text().contains(&why), "{body}: {} {}", got.status, got.text());
    }
    // Two nodes begin alike.
    let several = ask(&cluster, &json!({"changes": [{"drain": &node_id(1).to_string()[..4]}]})).await;
    assert!(several.status == 400 && several.text().contains("means several nodes"), "{}", several.text());
}

/// What a fork shows is about everything, so everything has to be readable; a change asks for more.
#[tokio::test]
async fn only_who_may_read_everything_and_plan_the_change_is_answered() {
    let guarded = Guarded::start().await;
    able_node(&guarded.cluster, 1).await;
    guarded.put(&guarded.root, "/v1/namespace/dev", &json!({"Name": "dev"})).await;
    guarded.put(&guarded.root, "/v1/jobs", &json!({"Job": job_json("web")})).await;
    let all =
        |more: &str| format!(r#"namespace "*" {{ policy = "read" }} node {{ policy = "read" }} {more}"#);
    let plans = r#"namespace "default" { capabilities = ["read-job", "list-jobs", "plan-job"] }"#;
    let drain = json!({"changes": [{"drain": "node-1"}]});
    let down = json!({"changes": [{"down": {"node": "node-1"}}]});
    let add = json!({"changes": [{"add": {"like": "node-1"}}]});
    let stop = json!({"changes": [{"stop": "web"}]});
    let scale = json!({"changes": [{"scale": {"job": "web", "group": "web", "count": 1}}]});
    let job = json!({"changes": [{"job": job_json("web")}]});
    let scheduler = json!({"changes": [{"scheduler": {}}]});
    let changes = [&drain, &down, &add, &stop, &scale, &job, &scheduler];
    let may = async |token: &str, body: &Value| {
        let got = guarded.put(token, "/v1/fork", body).await;
        assert!(matches!(got.status.as_u16(), 200 | 403), "{}", got.text());
        got.status == 200
    };
    let nothing = json!({});
    for (name, rules, reads, allowed) in [
        (
            "one-namespace",
            r#"namespace "default" { policy = "write" } node { policy = "write" }"#.to_string(),
            false,
            [false; 7],
        ),
        ("no-nodes", r#"namespace "*" { policy = "write" }"#.to_string(), false, [false; 7]),
        ("reader", all(""), true, [false; 7]),
        ("planner", all(plans), true, [false, false, false, true, true, true, false]),
        (
            "nodes",
            r#"namespace "*" { policy = "read" } node { policy = "write" }"#.to_string(),
            true,
            [true, true, true, false, false, false, false],
        ),
        (
            "operator",
            all(r#"operator { policy = "write" }"#),
            true,
            [false, false, false, false, false, false, true],
        ),
    ] {
        let token = guarded.caller(name, &rules).await;
        assert_eq!(may(&token, &nothing).await, reads, "{name}");
        for (change, allowed) in changes.iter().zip(allowed) {
            assert_eq!(may(&token, change).await, allowed, "{name}: {change}");
        }
    }
    for change in changes {
        assert!(may(&guarded.root, change).await);
        assert!(!may(NOBODY, change).await);
    }
}

#[tokio::test]
async fn more_than_two_at_once_are_asked_to_come_again() {
    let cluster = begun().await;
    // Enough to do that the first are not done before the last has asked.
    let changes =
        json!([{"add": {"like": "node-1", "count": 1_000}}, {"add": {"like": "node-2", "count": 1_000}}]);
    let body = json!({ "changes": changes });
    let all = join_all((0..4).map(|_| ask(&cluster, &body))).await;
    let statuses: Vec<u16> = all.iter().map(|got| got.status.as_u16()).collect();
    assert_eq!(statuses, [200, 200, 429, 429]);
    assert_eq!(all[3].text(), "2 forks are being computed already: try again in a second");
    assert_eq!(all[3].header("retry-after"), "1");
    answer(&cluster, &body).await;
}
