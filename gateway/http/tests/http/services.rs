//! Services over HTTP: lists, instances, which of them a key chooses, and the stream.

use std::time::Duration;

use model::{AllocId, Command, NodeId, RegisterService, Service};
use serde_json::{Value, json};

use crate::support::{Cluster, assert_holds};

/// With the job `web`, and its instances 1 to `count` on one node.
async fn serving(count: u8) -> (Cluster, NodeId, Vec<AllocId>) {
    let cluster = Cluster::start().await;
    let node = cluster.node(1).await;
    let mut allocs = Vec::new();
    for number in 1..=count {
        let eval = cluster.job("web").await;
        let alloc = cluster.place(eval, "web", node, number).await;
        let services = vec![service(alloc, "web", number)];
        cluster.submit(Command::RegisterServices { node, services }).await;
        allocs.push(alloc);
    }
    (cluster, node, allocs)
}

fn service(alloc: AllocId, name: &str, number: u8) -> RegisterService {
    let id = format!("_nomad-task-{alloc}-group-web-{name}-http");
    let tags = vec!["all".to_string(), format!("n{number}")];
    let (address, port) = (format!("10.0.0.{number}"), 8000 + u16::from(number));
    RegisterService { alloc, service: Service { id, name: name.to_string(), tags, address, port } }
}

fn ids(list: &Value) -> Vec<String> {
    let ids = list.as_array().unwrap().iter().map(|one| one["ID"].as_str().unwrap().to_string());
    ids.collect()
}

#[tokio::test]
async fn instances_are_listed_by_name_job_and_allocation() {
    let (cluster, node, allocs) = serving(2).await;
    let list = cluster.get("/v1/services").await.json();
    let stub = json!({"ServiceName": "web", "Tags": ["all", "n1", "n2"]});
    assert_eq!(list, json!([{"Namespace": "default", "Services": [stub]}]));
    assert_eq!(cluster.get("/v1/services?namespace=dev").await.json(), json!([]));
    assert_eq!(cluster.get("/v1/services?namespace=*").await.json(), list);
    let got = cluster.get("/v1/service/web").await;
    assert_eq!(got.index(), cluster.control.state().services.changed().0);
    let first = json!({
        "ID": format!("_nomad-task-{}-group-web-web-http", allocs[0]), "ServiceName": "web",
        "Namespace": "default", "NodeID": node.to_string(), "Datacenter": "dc1", "JobID": "web",
        "AllocID": allocs[0].to_string(), "Tags": ["all", "n1"], "Address": "10.0.0.1", "Port": 8001,
    });
    let all = got.json();
    let found = all.as_array().unwrap().iter().find(|one| one["ID"] == first["ID"]).unwrap();
    assert_holds(found, &first);
    assert_eq!(ids(&cluster.get("/v1/job/web/services").await.json()).len(), 2);
    let of_alloc = cluster.get(&format!("/v1/allocation/{}/services", allocs[1])).await.json();
    assert_eq!(of_alloc[0]["Port"], 8002);
    assert_eq!(cluster.get("/v1/service/db").await.json(), json!([]));
    let tagged = cluster.get("/v1/service/web?filter=Tags+contains+%22n2%22").await.json();
    assert_eq!((ids(&tagged).len(), &tagged[0]["Port"]), (1, &json!(8002)));
    let page = cluster.get("/v1/service/web?per_page=1").await;
    let next = page.header("x-nomad-nexttoken").to_string();
    let rest = cluster.get(&format!("/v1/service/web?per_page=1&next_token={next}")).await.json();
    assert_eq!([ids(&page.json()), ids(&rest)].concat(), ids(&all));
}

#[tokio::test]
async fn a_key_chooses_the_same_instances_while_they_are_there() {
    let (cluster, _, _) = serving(6).await;
    let chosen =
        async |key: &str| ids(&cluster.get(&format!("/v1/service/web?choose=2%7C{key}")).await.json());
    let before = chosen("abc").await;
    assert_eq!((before.len(), chosen("abc").await), (2, before.clone()));
    let mut others = Vec::new();
    for key in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        others.extend(chosen(key).await);
    }
    others.sort();
    others.dedup();
    assert!(others.len() > 2, "keys are spread: {others:?}");
    // Another one goes: the choice stays.
    let all = ids(&cluster.get("/v1/service/web").await.json());
    let gone = all.iter().find(|id| !before.contains(id)).unwrap();
    assert_eq!(cluster.delete(&format!("/v1/service/web/{gone}")).await.status, 200);
    assert_eq!(chosen("abc").await, before);
    for wrong in ["2", "x%7Ca", "2%7C", "0%7Ca"] {
        assert_eq!(cluster.get(&format!("/v1/service/web?choose={wrong}")).await.status, 400, "{wrong}");
    }
}

#[tokio::test]
async fn one_that_is_deleted_is_gone_and_a_read_that_waits_sees_it() {
    let (cluster, _, allocs) = serving(1).await;
    let id = format!("_nomad-task-{}-group-web-web-http", allocs[0]);
    let index = cluster.get("/v1/service/web").await.index();
    let path = format!("/v1/service/web?index={index}&wait=60s");
    let waiting = cluster.get(&path);
    let deleting = async {
        cluster.delete(&format!("/v1/service/db/{id}")).await.refused(500, "service registration not found");
        assert_eq!(cluster.delete(&format!("/v1/service/web/{id}")).await.status, 200);
    };
    let both = async { tokio::join!(waiting, deleting).0 };
    let got = tokio::time::timeout(Duration::from_secs(30), both).await.unwrap();
    assert_eq!(got.json(), json!([]));
    assert!(got.index() > index);
    cluster.delete(&format!("/v1/service/web/{id}")).await.refused(500, "service registration not found");
    assert_eq!(cluster.delete("/v1/service/web/a/b").await.status, 400);
    assert_eq!(cluster.get("/v1/services").await.json(), json!([]));
}
