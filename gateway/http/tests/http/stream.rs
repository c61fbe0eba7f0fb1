use std::collections::BTreeMap;
use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::http::Request;
use base::Index;
use futures_util::StreamExt;
use model::document::Allocation;
use model::{AllocId, Command};
use serde_json::{Value, json};
use tokio::time::timeout;
use tower::ServiceExt;

use crate::support::{Cluster, assert_holds};

/// What tests wait at most before they fail.
const PATIENCE: Duration = Duration::from_secs(120);

#[tokio::test]
async fn the_life_of_an_allocation_is_served() {
    let cluster = Cluster::start().await;
    let node = cluster.node(1).await;
    let eval = cluster.job("web").await;
    let alloc = cluster.place(eval, "web", node, 7).await;
    let running =
        Allocation { id: alloc.to_string(), client_status: "running".to_string(), ..Allocation::default() };
    cluster.submit(Command::UpdateAllocs { node, updates: vec![running] }).await;
    let got = cluster.get(&format!("/v1/allocation/{alloc}/history")).await;
    let expected = json!({"ID": alloc.to_string(), "Transitions": [
        {"OldDesired": "", "NewDesired": "run", "OldClient": "", "NewClient": "pending",
         "Actor": "anonymous", "Cause": format!("evaluation {eval} (job-register)"),
         "Description": format!("placed on node {node}")},
        {"OldDesired": "run", "NewDesired": "run", "OldClient": "pending", "NewClient": "running",
         "Cause": format!("report of node {node}")},
    ]});
    assert_holds(&got.json(), &expected);
    assert_eq!(Index(got.index()), cluster.control.state().index);
    for id in [AllocId::default().to_string(), "5d16".to_string()] {
        cluster.get(&format!("/v1/allocation/{id}/history")).await.refused(404, "alloc not found");
    }
}

#[tokio::test]
async fn jobs_nodes_evaluations_and_deployments_have_histories() {
    let cluster = Cluster::start().await;
    let node = cluster.node(1).await;
    let eval = cluster.job("web").await;
    let alloc = cluster.place(eval, "web", node, 7).await;
    let lines = async |path: String| -> Vec<String> {
        let told = cluster.get(&path).await.json();
        let lines = told["Lines"].as_array().unwrap_or_else(|| panic!("{told}"));
        lines
            .iter()
            .map(|line| format!("{}: {}", line["Event"], line["Description"]).replace('"', ""))
            .collect()
    };
    let job = lines("/v1/job/web/history".to_string()).await;
    assert_eq!(job[0], "JobRegistered: registered as version 0");
    let placed = format!("AllocsPlaced: 1 allocation of group \\web\\ version 0 placed: {alloc} on {node}");
    assert!(job.contains(&placed), "{job:?}");
    assert!(lines(format!("/v1/evaluation/{eval}/history")).await.contains(&placed));
    let of_node = lines(format!("/v1/node/{node}/history")).await;
    assert_eq!(of_node[0], "NodeRegistered: joined");
    for (path, why) in [
        ("/v1/job/none/history", "job not found"),
        ("/v1/node/none/history", "node not found"),
        ("/v1/evaluation/none/history", "eval not found"),
        ("/v1/deployment/none/history", "deployment not found"),
    ] {
        cluster.get(path).await.refused(404, why);
    }
}

/// Its job is purged and it has ended: only the log knows of it.
#[tokio::test]
async fn a_forgotten_allocation_is_explained_from_the_log_by_the_beginning_of_its_id() {
    let cluster = Cluster::start().await;
    let node = cluster.node(1).await;
    let eval = cluster.job("web").await;
    let alloc = cluster.place(eval, "web", node, 7).await;
    let ended =
        Allocation { id: alloc.to_string(), client_status: "complete".to_string(), ..Allocation::default() };
    cluster.submit(Command::UpdateAllocs { node, updates: vec![ended] }).await;
    cluster.delete("/v1/job/web?purge=true").await;
    assert!(cluster.control.state().allocs.lookup(alloc).is_none(), "it is forgotten");
    let why = cluster.get(&format!("/v1/allocation/{}/explain", &alloc.to_string()[..8])).await.json();
    let expected = json!({"ID": alloc.to_string(), "Collected": true, "Name": "web.web[0]", "NodeName": "node-1",
        "ClientStatus": "complete", "Placed": {"NodesEvaluated": 1}});
    assert_holds(&why, &expected);
    let told = cluster.get(&format!("/v1/allocation/{}/history", &alloc.to_string()[..8])).await.json();
    assert_eq!(told["ID"], alloc.to_string());
    assert!(told["Transitions"].as_array().unwrap().len() >= 3, "{told}");
    cluster.get("/v1/allocation/ffff/explain").await.refused(404, "alloc not found");
}

#[tokio::test]
async fn the_stream_is_one_of_the_routes() {
    let cluster = Cluster::start().await;
    cluster.job("web").await;
    let mut stream = Messages::open(&cluster, "?topic=Job", None).await;
    let message = stream.next().await;
    assert_eq!((message.event.as_str(), message.id.split('@').next()), ("Job", Some("2.0")));
    assert_holds(&message.data, &json!({"Type": "JobRegistered", "Payload": {"Job": {"ID": "web"}}}));
    cluster
        .get("/v1/event/stream?index=x")
        .await
        .refused(400, "Unable to parse index: \"x\" is not a whole number");
}

#[tokio::test]
async fn a_job_that_is_collected_is_deregistered_in_a_batch() {
    let cluster = Cluster::start().await;
    let eval = cluster.job("web").await;
    cluster.settle(eval).await;
    cluster.delete("/v1/job/web").await;
    let evals = cluster.get("/v1/job/web/evaluations").await.json();
    for eval in evals.as_array().unwrap().iter().filter(|eval| eval["Status"] == "pending") {
        cluster.settle(eval["ID"].as_str().unwrap().parse().unwrap()).await;
    }
    cluster.put("/v1/system/gc", &json!({})).await;
    let mut stream = Messages::open(&cluster, "?topic=Job:web", None).await;
    let mut kinds = Vec::new();
    while kinds.last().is_none_or(|kind| *kind != "JobBatchDeregistered") {
        kinds.push(stream.next().await.data["Type"].as_str().unwrap().to_string());
    }
    assert_eq!(kinds[0], "JobRegistered");
    assert!(kinds.contains(&"JobDeregistered".to_string()), "{kinds:?}");
}

#[tokio::test]
async fn a_stream_may_begin_with_what_comes_next_or_some_time_ago() {
    let cluster = Cluster::start().await;
    cluster.job("before").await;
    let mut now = Messages::open(&cluster, "?topic=Job&from=now", None).await;
    let opened = now.position().await;
    cluster.job("after").await;
    assert_eq!(now.next().await.data["Key"], "after");
    // A connection that is lost before the first event goes on where the server began.
    let mut again = Messages::open(&cluster, "?topic=Job&from=now", Some(&opened)).await;
    assert_eq!(again.next().await.data["Key"], "after");
    for from in ["start", "1h", "2001-09-09T01:46:40Z"] {
        let first = Messages::open(&cluster, &format!("?topic=Job&from={from}"), None).await.next().await;
        assert_eq!(first.data["Key"], "before", "{from}");
        assert!(first.time > 0, "{first:?}");
    }
    let ahead = Messages::open(&cluster, "?topic=Job&from=2100-01-01T00:00:00Z", None).await.position().await;
    let newest = cluster.control.state().index;
    assert_eq!(ahead.split('@').next(), Some(newest.to_string().as_str()));
    for (query, why) in [
        (
            "?from=soon",
            "Unable to parse from: \"soon\" is not start, now, an event id, an index, a span like -10m, or a time",
        ),
        ("?from=now&index=1", "index and from exclude each other"),
    ] {
        cluster.get(&format!("/v1/event/stream{query}")).await.refused(400, why);
    }
}

/// All that a stream that ends has sent.
pub async fn whole(cluster: &Cluster, query: &str, accept: &str) -> String {
    let request =
        Request::get(format!("/v1/event/stream{query}")).header("accept", accept).body(Body::empty());
    let response = cluster.app.clone().oneshot(request.unwrap()).await.unwrap();
    assert_eq!(response.status(), 200);
    let body = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
    String::from_utf8(body.to_vec()).unwrap()
}

#[tokio::test]
async fn a_stream_may_end_and_be_chosen_from() {
    let cluster = Cluster::start().await;
    for job in ["a", "b", "c"] {
        cluster.job(job).await;
    }
    let messages = "text/event-stream";
    let keys = |text: &str| {
        let lines = text.lines().filter_map(|line| line.strip_prefix("data: "));
        let events = lines.map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        events.filter_map(|event| event["Key"].as_str().map(str::to_string)).collect::<Vec<_>>()
    };
    let all = whole(&cluster, "?topic=Job&follow=false", messages).await;
    assert_eq!(keys(&all), ["a", "b", "c"]);
    assert!(all.trim_end().lines().rev().nth(1).unwrap().starts_with("event: end"), "{all}");
    // The second registration is the second of those with an event of the topic.
    let index = cluster.get("/v1/job/b").await.json()["JobModifyIndex"].to_string();
    assert_eq!(keys(&whole(&cluster, &format!("?topic=Job&to={index}"), messages).await), ["a", "b"]);
    assert_eq!(
        keys(&whole(&cluster, &format!("?topic=Job&from={index}&to=now"), messages).await),
        ["b", "c"]
    );
    assert_eq!(keys(&whole(&cluster, &format!("?from={index}.0&to={index}.0"), messages).await).len(), 1);
    assert!(keys(&whole(&cluster, "?topic=Job&to=1h", messages).await).is_empty());
    let filter = "Payload.Job.ID%20!=%20b%20and%20Actor%20==%20anonymous";
    let chosen = whole(&cluster, &format!("?topic=Job&follow=false&filter={filter}"), messages).await;
    assert_eq!(keys(&chosen), ["a", "c"]);
    for (query, why) in [
        (
            "?to=soon",
            "Unable to parse to: \"soon\" is not now, an event id, an index, a span like -10m, or a time",
        ),
        ("?follow=perhaps", "Unable to parse follow: \"perhaps\" is not true or false"),
        ("?view=old", "Unable to parse view: \"old\" is not full, key or diff"),
        ("?format=xml", "Unable to parse format: \"xml\" is not cloudevents"),
        ("?format=cloudevents&view=key", "format=cloudevents and view=key exclude each other"),
        ("?format=cloudevents&view=diff", "format=cloudevents and view=diff exclude each other"),
        ("?on_gap=cry", "Unable to parse on_gap: \"cry\" is not fail or skip"),
        ("?to=2100-01-01T00:00:00Z", "to: that time is still to come: leave it out to follow"),
    ] {
        cluster.get(&format!("/v1/event/stream{query}")).await.refused(400, why);
    }
    let unknown = cluster.get("/v1/event/stream?filter=Nonsense==1").await;
    assert!(
        unknown.status == 400 && unknown.text().starts_with("Unable to parse filter: "),
        "{}",
        unknown.text()
    );
    let strange = cluster.get("/v1/event/stream?to=3@00000000").await;
    strange.refused(400, "the position is in the stream of another cluster: begin anew");
}

/// Lines stay what Nomad has, unless somebody asks for more.
#[tokio::test]
async fn events_say_who_asked_for_what() {
    let cluster = Cluster::start().await;
    cluster.job("a").await;
    let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let lines = "application/json";
    let plain = whole(&cluster, "?topic=Job&follow=false", lines).await;
    let plain = json(plain.lines().last().unwrap());
    assert_eq!(plain["Events"][0].get("Actor"), None);
    let full = whole(&cluster, "?topic=Job&follow=false&view=full", lines).await;
    let full = json(full.lines().last().unwrap());
    let expected = json!({"ID": "2.0", "Actor": "anonymous", "Command": "RegisterJob", "Key": "a",
        "Requester": {"AccessorID": "", "Name": ""}, "Fact": "2:0", "Cause": {"Kind": "request"}, "Payload": {"Job": {"ID": "a"}}});
    assert_holds(&full["Events"][0], &expected);
    assert!(full["Events"][0]["RequestID"].as_str().is_some_and(|id| id.len() == 36), "{full}");
    let key = whole(&cluster, "?topic=Job&follow=false&view=key", lines).await;
    let key = json(key.lines().last().unwrap());
    assert!(key["Events"][0]["Key"] == "a" && key["Events"][0].get("Payload").is_none(), "{key}");
    let cloud = whole(&cluster, "?topic=Job&follow=false&format=cloudevents", lines).await;
    let cloud: Vec<_> = cloud.lines().filter(|line| !line.is_empty()).map(json).collect();
    assert_eq!(cloud.len(), 1);
    let expected = json!({"specversion": "1.0", "type": "sojourn.Job.JobRegistered", "subject": "Job/default/a",
        "datacontenttype": "application/json", "actor": "anonymous", "cause": "request", "data": {"ID": "2.0", "Payload": {"Job": {"ID": "a"}}}});
    assert_holds(&cloud[0], &expected);
}

/// Applied one after the other, patches make of nothing what payloads are.
#[tokio::test]
async fn a_diff_is_what_changed_of_the_payload() {
    let cluster = Cluster::start().await;
    let node = cluster.node(1).await;
    let eval = cluster.job("a").await;
    let alloc = cluster.place(eval, "a", node, 7).await;
    let running =
        Allocation { id: alloc.to_string(), client_status: "running".to_string(), ..Allocation::default() };
    cluster.submit(Command::UpdateAllocs { node, updates: vec![running] }).await;
    let read = async |view: &str| -> Vec<Value> {
        let lines = whole(&cluster, &format!("?index=1&follow=false&view={view}"), "application/json").await;
        let batches = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        batches.flat_map(|batch| batch["Events"].as_array().cloned().unwrap_or_default()).collect()
    };
    let (full, diff) = (read("full").await, read("diff").await);
    assert_eq!(full.len(), diff.len());
    let mut known: BTreeMap<String, Value> = BTreeMap::new();
    let mut changed = 0;
    for (full, diff) in full.iter().zip(&diff) {
        assert_eq!((&full["ID"], diff.get("Payload")), (&diff["ID"], None));
        let object = format!("{}/{}", full["Topic"], full["Key"]);
        let is_new = diff["New"] == true;
        assert_eq!(is_new, !known.contains_key(&object), "{diff}");
        let document = known.entry(object).or_insert(json!({}));
        apply(document, &diff["Diff"]);
        assert_eq!(*document, without_nulls(&full["Payload"]), "{diff}");
        changed += usize::from(!is_new);
    }
    assert!(changed > 3, "{changed}");
    let last = diff.iter().rfind(|event| event["Topic"] == "Allocation").unwrap();
    assert_eq!(last["Diff"]["Allocation"]["ClientStatus"], "running");
    assert_eq!(last["Diff"]["Allocation"].get("ID"), None, "it stays as it is: {last}");
}

/// RFC 7396, section 2.
fn apply(document: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else { return *document = patch.clone() };
    if !document.is_object() {
        *document = json!({});
    }
    for (name, value) in patch {
        if value.is_null() {
            document.as_object_mut().unwrap().remove(name);
        } else {
            apply(&mut document[name], value);
        }
    }
}

/// A member that is null is one that is not there.
fn without_nulls(value: &Value) -> Value {
    let Value::Object(members) = value else { return value.clone() };
    let members = members.iter().filter(|(_, value)| !value.is_null());
    Value::Object(members.map(|(name, value)| (name.clone(), without_nulls(value))).collect())
}

/// It would wait for ever, and not know that it does.
#[tokio::test]
async fn a_position_that_the_log_does_not_have_is_refused() {
    let cluster = Cluster::start().await;
    cluster.job("web").await;
    let newest = cluster.get("/v1/jobs").await.index();
    let ahead = cluster.get(&format!("/v1/event/stream?index={}", newest + 1000)).await;
    ahead.refused(400, &format!("index {} is ahead of the log: the newest is {newest}", newest + 1000));
    // What comes next may be waited for.
    Messages::open(&cluster, &format!("?index={}", newest + 1), None).await;

    let mut stream = Messages::open(&cluster, "", None).await;
    let id = stream.next().await.id;
    Messages::open(&cluster, "", Some(&id)).await;
    let (position, tag) = id.split_once('@').unwrap();
    Messages::open(&cluster, "", Some(position)).await;
    let other = if tag == "00000000" { "11111111" } else { "00000000" };
    for (id, why) in [
        (format!("{position}@{other}"), "the position is in the stream of another cluster: begin anew"),
        (format!("{}.0", newest + 1000), "is ahead of the log"),
    ] {
        let request = Request::get("/v1/event/stream").header("last-event-id", id).body(Body::empty());
        let response = cluster.app.clone().oneshot(request.unwrap()).await.unwrap();
        assert_eq!(response.status(), 400);
        let body = axum::body::to_bytes(response.into_body(), 1 << 16).await.unwrap();
        assert!(String::from_utf8_lossy(&body).contains(why), "{why}");
    }
}

/// Registrations go on from several sides while the server is killed again and again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_of_registrations_survives_kills() {
    let mut cluster = Cluster::start().await;
    let (mut got, mut last) = (Vec::new(), None);
    for round in 0..4 {
        let names: Vec<String> = (0..12).map(|number| format!("job-{round}-{number}")).collect();
        let registering = futures_util::future::join_all(names.iter().map(|name| cluster.job(name)));
        let reading = async {
            let mut stream = Messages::open(&cluster, "", last.as_deref()).await;
            for _ in 0..7 {
                got.push(stream.next().await);
            }
        };
        tokio::join!(registering, reading);
        last = got.last().map(|message: &Message| message.id.clone());
        cluster = cluster.restarted().await;
    }
    // What a stream sends that was never cut off: each job and its evaluation, and then what follows.
    cluster.job("last").await;
    let mut stream = Messages::open(&cluster, "", last.as_deref()).await;
    let mut whole = Messages::open(&cluster, "", None).await;
    let mut all = Vec::new();
    while all.len() < 2 * 49 {
        all.push(whole.next().await);
    }
    while got.len() < all.len() {
        got.push(stream.next().await);
    }
    assert_eq!(got, all);
    let mut registered: BTreeMap<String, u32> = BTreeMap::new();
    for message in got.iter().filter(|message| message.event == "Job") {
        *registered.entry(message.data["Key"].as_str().unwrap().to_string()).or_default() += 1;
    }
    assert_eq!((registered.len(), registered.values().max()), (49, Some(&1)));
}

/// The first events that a caller with this token gets.
pub async fn seen_by(cluster: &Cluster, token: &str, query: &str, count: usize) -> Vec<Value> {
    let mut stream = Messages::open_with(cluster, query, Some(("x-nomad-token", token))).await;
    let mut seen = Vec::new();
    while seen.len() < count {
        seen.push(stream.next().await.data);
    }
    seen
}

#[derive(Clone, Debug, PartialEq)]
struct Message {
    id: String,
    event: String,
    time: i64,
    data: Value,
}

/// Server-sent events off a response's body.
struct Messages {
    body: BodyDataStream,
    text: String,
}

impl Messages {
    async fn open(cluster: &Cluster, query: &str, last: Option<&str>) -> Messages {
        let header = last.map(|last| ("last-event-id", last));
        Messages::open_with(cluster, query, header).await
    }

    async fn open_with(cluster: &Cluster, query: &str, header: Option<(&str, &str)>) -> Messages {
        let mut request =
            Request::get(format!("/v1/event/stream{query}")).header("accept", "text/event-stream");
        if let Some((name, value)) = header {
            request = request.header(name, value);
        }
        let response = cluster.app.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Messages { body: response.into_body().into_data_stream(), text: String::new() }
    }

    /// The position that the stream names when it opens.
    async fn position(&mut self) -> String {
        let chunk = timeout(PATIENCE, self.body.next()).await.unwrap().expect("the stream opens").unwrap();
        let text = std::str::from_utf8(&chunk).unwrap();
        text.lines().find_map(|line| line.strip_prefix("id: ")).expect("it names its position").to_string()
    }

    /// The next message with data that is no checkpoint.
    async fn next(&mut self) -> Message {
        loop {
            while let Some((block, rest)) = self.text.split_once("\n\n") {
                let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
                let field = |name: &str| field(name).unwrap_or_default().trim_start().to_string();
                let (id, event, data) = (field("id:"), field("event:"), field("data:"));
                let time = field("time:").parse().unwrap_or_default();
                self.text = rest.to_string();
                if !data.is_empty() && event != "checkpoint" {
                    return Message { id, event, time, data: serde_json::from_str(&data).unwrap() };
                }
            }
            let chunk =
                timeout(PATIENCE, self.body.next()).await.unwrap().expect("the stream goes on").unwrap();
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }
}
