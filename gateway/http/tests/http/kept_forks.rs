//! Forks that are kept: read like a moment of the past, taken further, and forgotten.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, Method};
use serde_json::{Value, json};

use crate::fork::{able_node, answer, ask, begun};
use crate::guarded::{Guarded, NOBODY};
use crate::support::{Cluster, Got, assert_holds, job_json, node_id, request};

/// A fork on which the first node is drained, kept for an hour.
async fn drained(cluster: &Cluster) -> (String, Value) {
    let kept = answer(cluster, &json!({"changes": [{"drain": "node-1"}], "ttl": "1h"})).await;
    (kept["Kept"]["ID"].as_str().unwrap().to_string(), kept)
}

/// Names of the nodes on which something of the job runs.
async fn nodes_of_web(cluster: &Cluster, query: &str) -> Vec<String> {
    let got = cluster.get(&format!("/v1/job/web/allocations{query}")).await;
    assert_eq!(got.status, 200, "{}", got.text());
    let allocs = got.json();
    let run = allocs.as_array().unwrap().iter().filter(|alloc| alloc["ClientStatus"] == "running");
    let mut nodes: Vec<String> = run.map(|alloc| alloc["NodeName"].as_str().unwrap().to_string()).collect();
    nodes.sort();
    nodes
}

#[tokio::test]
async fn every_read_shows_the_fork_and_nobody_else_sees_it() {
    let cluster = begun().await;
    let (before, written) = (cluster.control.state(), cluster.journal.batches().len());
    let now = nodes_of_web(&cluster, "").await;
    let (id, kept) = drained(&cluster).await;
    assert_holds(
        &kept["Kept"],
        &json!({"Index": before.index.0, "Changes": 1, "EndedBy": "quiet", "AccessorID": ""}),
    );
    assert!(kept["Kept"]["Remaining"].as_i64().unwrap() > 3_590_000_000_000, "{kept}");
    let index = kept["Kept"]["ForkIndex"].as_u64().unwrap();
    assert!(index > before.index.0);
    assert_eq!(nodes_of_web(&cluster, &format!("?fork={id}")).await, ["node-2", "node-2"]);
    assert_eq!(nodes_of_web(&cluster, "").await, now);
    let node = format!("/v1/node/{}", node_id(1));
    let by_header = |path: &str| {
        let mut request = request(Method::GET, path, Body::empty());
        request.headers_mut().insert("x-sojourn-fork", HeaderValue::from_str(&id).unwrap());
        request
    };
    let then = cluster.send(by_header(&node)).await;
    assert_eq!((then.json()["SchedulingEligibility"].as_str(), then.index()), (Some("ineligible"), index));
    assert_eq!(cluster.get(&node).await.json()["SchedulingEligibility"], "eligible");
    for path in [
        "/v1/jobs",
        "/v1/jobs/statuses",
        "/v1/nodes",
        "/v1/allocations",
        "/v1/evaluations",
        "/v1/evaluations/count",
        "/v1/deployments",
        "/v1/namespaces",
        "/v1/node/pools",
        "/v1/vars",
        "/v1/services",
        "/v1/volumes?type=host",
        "/v1/volumes?type=csi",
        "/v1/plugins",
        "/v1/scaling/policies",
        "/v1/operator/keyring/keys",
        "/v1/operator/scheduler/configuration",
        "/v1/job/web",
        "/v1/job/web/versions",
        "/v1/job/web/summary",
        "/v1/job/web/deployments",
        "/v1/job/web/evaluations",
        "/v1/job/web/explain",
    ] {
        let separator = if path.contains('?') { '&' } else { '?' };
        let got = cluster.get(&format!("{path}{separator}fork={id}")).await;
        assert_eq!((got.status.as_u16(), got.index()), (200, index), "{path}: {}", got.text());
    }
    // A page goes on in it.
    let first = cluster.get(&format!("/v1/evaluations?per_page=1&fork={id}")).await;
    let token = first.header("x-nomad-nexttoken").to_string();
    let second = cluster.get(&format!("/v1/evaluations?per_page=1&next_token={token}&fork={id}")).await;
    assert_ne!(first.json()[0]["ID"], second.json()[0]["ID"]);
    let after = cluster.control.state();
    assert_eq!((after.digest(), cluster.journal.batches().len()), (before.digest(), written));
}

#[tokio::test]
async fn decisions_on_a_fork_are_not_looked_for_in_the_log_of_the_cluster() {
    let cluster = begun().await;
    let (id, _) = drained(&cluster).await;
    // Meanwhile the log comes to the same indexes with other things.
    for name in ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"] {
        cluster.job(name).await;
    }
    let why = cluster.get(&format!("/v1/job/web/explain?fork={id}")).await.json();
    assert_holds(
        &why["Evaluation"]["Decision"],
        &json!({"Recomputed": false, "AsLogged": null, "Note": "it was made on a fork, which keeps no log: only what was stored is shown"}),
    );
    let allocs = cluster.get(&format!("/v1/job/web/allocations?fork={id}")).await.json();
    let moved = allocs.as_array().unwrap().iter().filter(|alloc| alloc["ClientStatus"] == "running");
    for alloc in moved {
        let path = format!("/v1/allocation/{}/explain?fork={id}", alloc["ID"].as_str().unwrap());
        let why = cluster.get(&path).await;
        assert_eq!(why.status, 200, "{}", why.text());
        assert_eq!(why.json()["NodeName"], "node-2");
    }
}

#[tokio::test]
async fn a_kept_fork_is_taken_further_and_what_is_refused_changes_nothing() {
    let cluster = begun().await;
    let (id, _) = drained(&cluster).await;
    let put = async |path: &str, body: Value| cluster.put(&format!("/v1/fork/{id}{path}"), &body).await;
    let two = json!({"changes": [{"scale": {"job": "web", "group": "web", "count": 5}}, {"add": {"like": "node-1", "count": 1}}]});
    let scaled = put("/changes", two).await;
    assert_eq!(scaled.status, 200, "{}", scaled.text());
    assert_holds(
        &scaled.json(),
        &json!({"Counts": {"Placed": 3, "Unplaced": 0}, "Kept": {"ID": id, "Changes": 3}}),
    );
    let path = format!("?fork={id}");
    assert_eq!(nodes_of_web(&cluster, &path).await.len(), 5);
    let hour = put("/advance", json!({"by": "1h"})).await.json();
    let time = hour["VirtualTime"].as_i64().unwrap();
    assert!((3_600_000_000_000..3_800_000_000_000).contains(&time), "{time}");
    let report = cluster.get(&format!("/v1/fork/{id}")).await;
    assert_eq!(
        (&report.json()["Counts"], &report.json()["VirtualTime"]),
        (&hour["Counts"], &hour["VirtualTime"])
    );
    let refused = [
        (
            "/changes",
            json!({"changes": [{"stop": "web"}, {"drain": "n9"}]}),
            404,
            "changes[1].drain: no node",
        ),
        // The first change is possible, and not made.
        (
            "/changes",
            json!({"changes": [{"stop": "web"}, {"scale": {"job": "web", "group": "web", "count": 1_000_000}}]}),
            400,
            "changes[1]: ",
        ),
        ("/changes", json!({"ttl": "1h"}), 400, "unknown field \"ttl\": expected changes, until"),
        ("/changes", json!({"until": "soon"}), 400, "until: \"soon\": expected \"quiet\""),
        ("/changes", json!({"until": "168h"}), 400, "168h0m0s is more than may pass"),
        ("/advance", json!({}), 400, "by: \"\": expected a time like \"1h\" up to 168h0m0s"),
        ("/advance", json!({"by": "-1h"}), 400, "by: \"-1h\""),
        (
            "/advance",
            json!({"by": "168h"}),
            400,
            "168h0m0s is more than may pass: of 168h0m0s on the clock of a fork",
        ),
        ("/advance", json!({"for": "1h"}), 400, "unknown field \"for\": expected by"),
    ];
    for (path, body, status, why) in refused {
        let got = put(path, body).await;
        assert!(got.status == status && got.text().contains(why), "{why}: {} {}", got.status, got.text());
    }
    let again = cluster.get(&format!("/v1/fork/{id}")).await.json();
    assert_holds(&again["Kept"], &json!({"Changes": 3, "ForkIndex": hour["Kept"]["ForkIndex"]}));
    assert_eq!(nodes_of_web(&cluster, &path).await.len(), 5);
    let list = cluster.get("/v1/forks").await.json();
    assert_holds(&list, &json!([{"ID": id, "Changes": 3, "Counts": {"Placed": 3}}]));
    assert_eq!(cluster.delete(&format!("/v1/fork/{id}")).await.status, 200);
    assert_eq!(cluster.get("/v1/forks").await.json(), json!([]));
    let gone = format!("fork {id:?}: this server keeps none of that id, or its time is over");
    for got in [
        cluster.get(&format!("/v1/jobs?fork={id}")).await,
        cluster.get(&format!("/v1/fork/{id}")).await,
        cluster.delete(&format!("/v1/fork/{id}")).await,
        put("/changes", json!({})).await,
        put("/advance", json!({"by": "1h"})).await,
    ] {
        got.refused(404, &gone);
    }
    cluster
        .get("/v1/jobs?fork=x")
        .await
        .refused(404, "fork \"x\": this server keeps none of that id, or its time is over");
}

#[tokio::test]
async fn where_there_is_no_fork_it_is_refused_by_its_name() {
    let cluster = begun().await;
    let (id, _) = drained(&cluster).await;
    let both = |other: &str| {
        format!("`fork` and `{other}`: a fork is one state, which waits for nothing: expected one of them")
    };
    cluster.get(&format!("/v1/jobs?fork={id}&as_of=3")).await.refused(400, &both("as_of"));
    cluster.get(&format!("/v1/jobs?fork={id}&index=3")).await.refused(400, &both("index"));
    assert_eq!(cluster.get(&format!("/v1/jobs?fork={id}&index=0")).await.status, 200);
    let present = "this route is of the present alone: `fork` is not expected";
    for path in [
        "/v1/agent/self",
        "/v1/status/leader",
        "/v1/metrics",
        "/v1/event/stream",
        "/v1/history/verify",
        "/v1/forks",
    ] {
        cluster.get(&format!("{path}?fork={id}")).await.refused(400, present);
    }
    cluster.get(&format!("/v1/fork/{id}?fork={id}")).await.refused(400, present);
    cluster.put(&format!("/v1/jobs?fork={id}"), &json!({"Job": job_json("d")})).await.refused(400, present);
    cluster.delete(&format!("/v1/job/web?fork={id}")).await.refused(400, present);
    let log = "this route reads the log, and nothing of a fork is written there: `fork` is not expected";
    for path in ["/v1/history", "/v1/job/web/history", "/v1/event/1.1/causes"] {
        cluster.get(&format!("{path}?fork={id}")).await.refused(400, log);
    }
    let again = "further changes of a kept fork are for POST /v1/fork/:id/changes: `fork` is not expected";
    cluster.put(&format!("/v1/fork?fork={id}"), &json!({})).await.refused(400, again);
    for (ttl, why) in [
        (json!("0s"), "ttl: \"0s\": expected a time like \"1h\" up to 24h0m0s"),
        (json!("25h"), "ttl: \"25h\": expected a time like \"1h\" up to 24h0m0s"),
        (json!("soon"), "ttl: \"soon\": expected"),
        (json!(7), "ttl: invalid type"),
    ] {
        let got = ask(&cluster, &json!({"ttl": ttl})).await;
        assert!(got.status == 400 && got.text().contains(why), "{ttl}: {}", got.text());
    }
    let mut request = request(Method::GET, &format!("/v1/jobs?fork={id}"), Body::empty());
    request.headers_mut().insert("x-sojourn-fork", HeaderValue::from_static("other"));
    cluster.send(request).await.refused(400, "`fork` and X-Sojourn-Fork: expected one fork, not two");
}

#[tokio::test]
async fn a_fork_is_forgotten_when_its_time_is_over() {
    let cluster = begun().await;
    let state = cluster.control.state();
    let (id, _) = drained(&cluster).await;
    let held = std::sync::Arc::strong_count(&state);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(3_599)).await;
    tokio::time::resume();
    assert_eq!(cluster.get(&format!("/v1/jobs?fork={id}")).await.status, 200);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(2)).await;
    tokio::time::resume();
    // Without anybody's asking.
    for _ in 0..10_000 {
        if std::sync::Arc::strong_count(&state) < held {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert!(std::sync::Arc::strong_count(&state) < held, "its memory is free again");
    let got = cluster.get(&format!("/v1/jobs?fork={id}")).await;
    got.refused(404, &format!("fork {id:?}: this server keeps none of that id, or its time is over"));
}

#[tokio::test]
async fn as_many_are_kept_as_there_is_room_for() {
    let cluster = begun().await;
    let mut ids = Vec::new();
    for _ in 0..16 {
        ids.push(drained(&cluster).await.0);
    }
    let body = json!({"ttl": "1h"});
    let full = ask(&cluster, &body).await;
    full.refused(429, "16 forks are kept already: delete one, or wait until one expires");
    assert_eq!(full.header("retry-after"), "60");
    // Those that are not kept go on.
    answer(&cluster, &json!({})).await;
    // What was refused takes no room.
    assert_eq!(cluster.get("/v1/forks").await.json().as_array().unwrap().len(), 16);
    assert_eq!(cluster.delete(&format!("/v1/fork/{}", ids[3])).await.status, 200);
    let wrong = ask(&cluster, &json!({"ttl": "1h", "changes": [{"drain": "n9"}]})).await;
    assert_eq!(wrong.status, 404, "{}", wrong.text());
    answer(&cluster, &body).await;
}

/// Who may make a fork reads it, and so does who may do everything; to all others it is not there.
#[tokio::test]
async fn a_fork_is_for_who_made_it_and_rights_are_those_of_now() {
    let guarded = Guarded::start().await;
    able_node(&guarded.cluster, 1).await;
    guarded.put(&guarded.root, "/v1/jobs", &json!({"Job": job_json("web")})).await;
    let rules = r#"namespace "*" { policy = "read" } node { policy = "write" }"#;
    let (maker, other) = (guarded.caller("maker", rules).await, guarded.caller("other", rules).await);
    let body = json!({"changes": [{"drain": "node-1"}], "ttl": "1h"});
    let make = async |token: &str| guarded.put(token, "/v1/fork", &body).await;
    let id = make(&maker).await.json()["Kept"]["ID"].as_str().unwrap().to_string();
    let all = |token: String| {
        let (guarded, id) = (&guarded, &id);
        async move {
            let mut got: Vec<Got> = Vec::new();
            for path in [format!("/v1/jobs?fork={id}"), format!("/v1/fork/{id}")] {
                got.push(guarded.get(&token, &path).await);
            }
            got.push(guarded.put(&token, &format!("/v1/fork/{id}/advance"), &json!({"by": "1m"})).await);
            got.iter().map(|got| got.status.as_u16()).collect::<Vec<_>>()
        }
    };
    assert_eq!(all(maker.clone()).await, [200, 200, 200]);
    assert_eq!(all(guarded.root.clone()).await, [200, 200, 200]);
    assert_eq!(all(other.clone()).await, [404, 404, 404]);
    assert_eq!(guarded.delete(&other, &format!("/v1/fork/{id}")).await.status, 404);
    assert_eq!(guarded.get(&other, "/v1/forks").await.json(), json!([]));
    assert_eq!(guarded.get(&maker, "/v1/forks").await.json().as_array().unwrap().len(), 1);
    assert_eq!(all(NOBODY.to_string()).await, [403, 403, 403]);
    // What a change takes is asked for each time.
    let stop = json!({"changes": [{"stop": "web"}]});
    assert_eq!(guarded.put(&maker, &format!("/v1/fork/{id}/changes"), &stop).await.status, 403);
    for _ in 0..3 {
        assert_eq!(make(&maker).await.status, 200);
    }
    let full = make(&maker).await;
    full.refused(429, "4 forks of this caller are kept already: delete one, or wait until one expires");
    assert_eq!(make(&other).await.status, 200);
    // Once it may see less, it reads less.
    guarded.policy("maker", r#"namespace "default" { policy = "read" } node { policy = "read" }"#).await;
    guarded.put(&guarded.root, "/v1/namespace/dev", &json!({"Name": "dev"})).await;
    assert_eq!(guarded.get(&maker, &format!("/v1/job/web?fork={id}")).await.status, 200);
    guarded.policy("maker", r#"node { policy = "read" }"#).await;
    assert_eq!(guarded.get(&maker, &format!("/v1/job/web?fork={id}")).await.status, 403);
    assert_eq!(guarded.get(&maker, &format!("/v1/fork/{id}")).await.status, 403);
}
