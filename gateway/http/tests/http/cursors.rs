//! Durable cursors of the event stream.

use axum::http::Method;
use base::Index;
use futures_util::future::join_all;
use model::Event;
use serde_json::{Value, json};

use crate::guarded::{Guarded, NOBODY};
use crate::stream::whole;
use crate::support::{Cluster, Got, assert_holds};

const CURSOR: &str = "/v1/event/cursor/billing";

/// Ids and keys of what a stream sends that ends.
async fn read(cluster: &Cluster, query: &str) -> Vec<(String, String)> {
    let text = whole(cluster, &format!("{query}&follow=false"), "text/event-stream").await;
    let mut read = Vec::new();
    let mut id = "";
    for line in text.lines() {
        id = line.strip_prefix("id: ").unwrap_or(id);
        let data = line.strip_prefix("data: ").and_then(|data| serde_json::from_str::<Value>(data).ok());
        if let Some(key) = data.as_ref().and_then(|data| data["Key"].as_str()) {
            read.push((id.to_string(), key.to_string()));
        }
    }
    read
}

fn keys(read: &[(String, String)]) -> Vec<&str> {
    read.iter().map(|(_, key)| key.as_str()).collect()
}

async fn acknowledge(cluster: &Cluster, id: &str) -> Got {
    cluster.put(&format!("{CURSOR}/ack"), &json!({"ID": id})).await
}

/// Facts in the log about cursors.
fn facts(cluster: &Cluster) -> Vec<Event> {
    let batches = cluster.journal.batches().into_iter().map(|batch| batch.decode().unwrap());
    let events = batches.flat_map(|batch| batch.events).map(|logged| logged.event);
    events.filter(|event| event.name().starts_with("EventCursor")).collect()
}

/// A reader that dies gets again what it had not acknowledged, and nothing else; so it is after a kill of the server.
#[tokio::test]
async fn a_reader_goes_on_after_what_it_has_acknowledged() {
    let mut cluster = Cluster::start().await;
    cluster.job("before").await;
    let set = cluster.put(CURSOR, &json!({"Topics": ["Job"], "TTL": "72h"})).await.json();
    let expected = json!({"Name": "billing", "Topics": ["Job"], "Namespace": "default", "From": "now",
        "TTL": "72h0m0s", "LagBatches": 0, "LagSeconds": 0, "Gap": false, "AckedAt": null, "AckedBy": ""});
    assert_holds(&set, &expected);
    for job in ["a", "b", "c"] {
        cluster.job(job).await;
    }
    let first = read(&cluster, "?cursor=billing").await;
    assert_eq!(keys(&first), ["a", "b", "c"]);
    assert_eq!(read(&cluster, "?cursor=billing").await, first, "nothing was acknowledged");
    let moved = acknowledge(&cluster, &first[1].0).await.json();
    assert_eq!(moved["Position"], first[1].0);
    assert_eq!(keys(&read(&cluster, "?cursor=billing").await), ["c"]);
    cluster = cluster.restarted().await;
    assert_eq!(keys(&read(&cluster, "?cursor=billing").await), ["c"]);
    // Who says it twice, or late, is right and changes nothing.
    let before = facts(&cluster).len();
    for late in [&first[1].0, &first[0].0] {
        assert_eq!(acknowledge(&cluster, late).await.json()["Position"], first[1].0);
    }
    assert_eq!(facts(&cluster).len(), before);
    // A reader that lost its connection and no more says what it has read.
    cluster.job("d").await;
    let last = whole(&cluster, "?cursor=billing&from=&follow=false", "text/event-stream").await;
    assert!(last.contains("\"Key\":\"c\"") && last.contains("\"Key\":\"d\""), "{last}");
    let listed = cluster.get("/v1/event/cursors").await.json();
    let expected =
        json!([{"Name": "billing", "Position": first[1].0, "LagBatches": 2, "AckedBy": "anonymous"}]);
    assert_holds(&listed, &expected);
    let back = cluster.put(&format!("{CURSOR}/reset"), &json!({"To": "oldest"})).await;
    assert_eq!(back.status, 200, "{}", back.text());
    assert_eq!(keys(&read(&cluster, "?cursor=billing").await), ["before", "a", "b", "c", "d"]);
    cluster.put(&format!("{CURSOR}/reset"), &json!({"To": first[2].0})).await.json();
    assert_eq!(keys(&read(&cluster, "?cursor=billing").await), ["c", "d"], "as `from`: the event itself");
    let history = cluster.get("/v1/history").await.text().to_string();
    assert!(history.contains("event-cursor/billing"), "{history}");
    assert_eq!(cluster.delete(CURSOR).await.status, 200);
    cluster.get(CURSOR).await.refused(404, "event cursor \"billing\" not found");
    cluster.get("/v1/event/stream?cursor=billing").await.refused(404, "event cursor \"billing\" not found");
    assert_eq!(cluster.get("/v1/event/cursors").await.json(), json!([]));
}

/// What a reader does to its cursor is no event for it: it would never be done.
#[tokio::test]
async fn an_acknowledgement_puts_nobody_behind_and_wakes_nobody() {
    let cluster = Cluster::start().await;
    cluster.put(CURSOR, &json!({"From": "oldest", "Namespace": "*"})).await.json();
    cluster.job("web").await;
    let all = read(&cluster, "?cursor=billing").await;
    assert_eq!(
        cluster.get(CURSOR).await.json()["LagBatches"],
        2,
        "the cluster was founded, and a job registered"
    );
    acknowledge(&cluster, &all.last().unwrap().0).await.json();
    let shown = cluster.get(CURSOR).await.json();
    assert_holds(&shown, &json!({"LagBatches": 0, "LagSeconds": 0}));
    assert_eq!(keys(&read(&cluster, "?cursor=billing").await), [""; 0]);
    assert_eq!(read(&cluster, "?from=oldest&namespace=*").await, all, "cursors are not in the stream");
}

/// Two readers share a cursor and acknowledge each event: all of them get their answer once it is committed, and the log
/// holds a few facts.
#[tokio::test]
async fn acknowledgements_that_come_together_are_one_fact() {
    let cluster = Cluster::start().await;
    cluster.put(CURSOR, &json!({"Topics": ["Job"]})).await.json();
    for number in 0..20 {
        cluster.job(&format!("job-{number}")).await;
    }
    let events = read(&cluster, "?cursor=billing").await;
    let answers = join_all(events.iter().chain(&events).map(|(id, _)| acknowledge(&cluster, id))).await;
    for (got, (id, _)) in answers.iter().zip(events.iter().chain(&events)) {
        let place = |id: &Value| id.as_str().unwrap().split('.').next().unwrap().parse::<u64>().unwrap();
        let reached = got.json();
        assert!(place(&reached["Position"]) >= place(&json!(id)), "{reached} for {id}");
    }
    assert_eq!(cluster.get(CURSOR).await.json()["Position"], events.last().unwrap().0);
    let acknowledged = facts(&cluster).len() - 1;
    assert!((1..events.len()).contains(&acknowledged), "{acknowledged} facts for {} events", events.len());
    let restarted = cluster.restarted().await;
    assert_eq!(restarted.control.state().cursors, cluster.control.state().cursors);
}

#[tokio::test]
async fn what_is_no_cursor_or_no_place_is_refused_by_its_name() {
    let cluster = Cluster::start().await;
    cluster.job("web").await;
    let newest = cluster.control.state().index;
    let places = "is not start, now, an event id, an index, a span like -10m, or a time";
    for (body, why) in [
        (json!({"From": "soon"}), format!("From: \"soon\" {places}")),
        (json!({"From": "999"}), format!("index 999 is ahead of the log: the newest is {newest}")),
        (
            json!({"From": "2.77"}),
            format!("From: there is no event 2.77 in the stream: the newest index is {newest}"),
        ),
        (
            json!({"Topics": ["a:b:c"]}),
            "Topics: Invalid topic query: Invalid key value pair for topic, topic: a:b:c".into(),
        ),
        (
            json!({"Namespace": "none"}),
            "invalid event cursor: Namespace: expected a namespace that exists, or * for all".into(),
        ),
        (
            json!({"TTL": "1s"}),
            "invalid event cursor: TTL: expected 0 for no end, or a minute at least".into(),
        ),
        (
            json!({"Reader": "me"}),
            "invalid event cursor: Reader: expected the accessor of a token that exists".into(),
        ),
        (json!({"Topics": 7}), "Topics: invalid type: integer `7`, expected a sequence".into()),
    ] {
        let got = cluster.put(CURSOR, &body).await;
        assert_eq!((got.status.as_u16(), got.text()), (400, why.as_str()), "{body}");
    }
    for (body, start) in [
        (json!({"Topics": ["Jobs"]}), "Topics: no event has the topic \"Jobs\": expected *, "),
        (json!({"Filter": "Nonsense == 1"}), "Filter: "),
    ] {
        let got = cluster.put(CURSOR, &body).await;
        assert!(got.status == 400 && got.text().starts_with(start), "{}", got.text());
    }
    let name = cluster.put("/v1/event/cursor/a%20b", &json!({})).await;
    name.refused(
        400,
        "invalid event cursor: Name: expected 1 to 128 letters, digits, dashes, underscores and dots",
    );
    assert!(facts(&cluster).is_empty(), "nothing was changed");

    cluster.put(CURSOR, &json!({"From": "oldest", "Topics": ["Job"]})).await.json();
    let newest = cluster.control.state().index;
    for (id, why) in [
        ("".to_string(), "ID: \"\" is not the id of an event, like 42.0, or an index".to_string()),
        ("x".into(), "ID: \"x\" is not the id of an event, like 42.0, or an index".into()),
        ("2.77".into(), format!("ID: there is no event 2.77 in the stream: the newest index is {newest}")),
        ("999".into(), format!("ID: there is no event 999 in the stream: the newest index is {newest}")),
        ("2.0@00000000".into(), "the position is in the stream of another cluster: begin anew".into()),
    ] {
        acknowledge(&cluster, &id).await.refused(400, &why);
    }
    let to = cluster.put(&format!("{CURSOR}/reset"), &json!({})).await;
    to.refused(400, "To: expected a place in the stream, like oldest or now");
    for (query, why) in [
        ("&from=now", "cursor and from exclude each other: reset the cursor to begin elsewhere"),
        ("&index=1", "cursor and index exclude each other: reset the cursor to begin elsewhere"),
        ("&topic=Node", "cursor \"billing\" has a topic of its own, which is another one: leave topic out"),
        (
            "&namespace=*",
            "cursor \"billing\" has a namespace of its own, which is another one: leave namespace out",
        ),
        (
            "&filter=Key==web",
            "cursor \"billing\" has a filter of its own, which is another one: leave filter out",
        ),
    ] {
        cluster.get(&format!("/v1/event/stream?cursor=billing{query}")).await.refused(400, why);
    }
    // What says the same contradicts nothing.
    assert_eq!(keys(&read(&cluster, "?cursor=billing&topic=Job&namespace=default").await), ["web"]);
    let as_of = cluster.get(&format!("{CURSOR}?as_of=1")).await;
    as_of.refused(400, "this route is of the present alone: `as_of` is not expected");
    let elsewhere = cluster.put(CURSOR, &json!({"From": "now", "Topics": ["Job"]})).await;
    assert_eq!(elsewhere.status, 409, "{}", elsewhere.text());
}

/// What is gone is said, and the log is not kept for a cursor.
#[tokio::test]
async fn a_cursor_below_what_is_kept_says_so() {
    let cluster = Cluster::start().await;
    cluster.put(CURSOR, &json!({"From": "oldest", "Topics": ["Job"]})).await.json();
    for number in 0..6 {
        cluster.job(&format!("job-{number}")).await;
    }
    let horizon = Index(6);
    let cluster = {
        cluster.journal.forget_before(horizon);
        cluster
    };
    let shown = cluster.get(CURSOR).await.json();
    let oldest = shown["OldestIndex"].as_u64().unwrap();
    assert!(oldest > 1, "{shown}");
    assert_eq!(shown["Gap"], true, "{shown}");
    let gone = cluster.get("/v1/event/stream?cursor=billing").await;
    gone.refused(
        410,
        &format!(
            "index 1 is no longer kept: the oldest is {oldest}: reset the cursor \"billing\", or read it with on_gap=skip"
        ),
    );
    assert_eq!(gone.header("x-sojourn-oldest-index"), oldest.to_string());
    let skipped = whole(&cluster, "?cursor=billing&on_gap=skip&follow=false", "text/event-stream").await;
    assert!(skipped.contains(&format!("event: gap\ndata: {{\"From\":1,\"Oldest\":{oldest}}}")), "{skipped}");
    let back = cluster.put(&format!("{CURSOR}/reset"), &json!({"To": "1"})).await;
    back.refused(410, &format!("index 1 is no longer kept: the oldest is {oldest}"));
    cluster.put(&format!("{CURSOR}/reset"), &json!({"To": "oldest"})).await.json();
    assert_eq!(cluster.get(CURSOR).await.json()["Gap"], false);
}

#[tokio::test]
async fn each_may_do_with_a_cursor_what_their_token_says() {
    let guarded = Guarded::start().await;
    let operator = guarded.caller("operator", r#"operator { policy = "write" }"#).await;
    let watcher = guarded.caller("watcher", r#"operator { policy = "read" }"#).await;
    guarded.policy("jobs", r#"namespace "default" { policy = "read" }"#).await;
    let token = json!({"Name": "consumer", "Type": "client", "Policies": ["jobs"]});
    let (consumer, other) = (guarded.token(&token).await, guarded.token(&token).await);
    let secret = |token: &Value| token["SecretID"].as_str().unwrap().to_string();
    let (accessor, consumer, other) =
        (consumer["AccessorID"].as_str().unwrap().to_string(), secret(&consumer), secret(&other));
    let wanted = json!({"Topics": ["Job"], "Reader": accessor});
    for token in [NOBODY, &watcher, &consumer] {
        guarded.put(token, CURSOR, &wanted).await.refused(403, "Permission denied");
    }
    guarded.put(&operator, CURSOR, &wanted).await.json();
    guarded.cluster.job("web").await;
    let id = guarded.cluster.control.state().index.to_string();
    let acknowledge = async |token: &str| {
        guarded.send(token, Method::POST, &format!("{CURSOR}/ack"), &json!({"ID": id})).await
    };
    // The same rights, and not the token that the cursor names; the right to change it, and not to read what it gives.
    for token in [NOBODY, &other, &watcher, &operator] {
        acknowledge(token).await.refused(403, "Permission denied");
    }
    for token in [NOBODY, &other] {
        guarded.get(token, CURSOR).await.refused(403, "Permission denied");
        guarded.get(token, "/v1/event/cursor/none").await.refused(403, "Permission denied");
    }
    for token in [&watcher, &consumer, &guarded.root] {
        assert_eq!(guarded.get(token, CURSOR).await.json()["PositionIndex"].as_u64(), {
            let kept = guarded.cluster.control.state().cursors.get("billing").unwrap().position;
            Some(kept.index.0)
        });
    }
    guarded.get(&watcher, "/v1/event/cursor/none").await.refused(404, "event cursor \"none\" not found");
    guarded.get(&watcher, "/v1/event/stream?cursor=billing").await.refused(403, "Permission denied");
    guarded.get(&consumer, "/v1/event/cursors").await.refused(403, "Permission denied");
    assert_eq!(acknowledge(&consumer).await.status, 200);
    let shown = guarded.get(&watcher, CURSOR).await.json();
    assert_eq!(shown["AckedBy"], format!("token:{accessor}"));
    let reset = async |token: &str| {
        guarded.send(token, Method::POST, &format!("{CURSOR}/reset"), &json!({"To": "now"})).await.status
    };
    assert_eq!((reset(&consumer).await.as_u16(), reset(&operator).await.as_u16()), (403, 200));
    let gone =
        [guarded.delete(&consumer, CURSOR).await.status, guarded.delete(&operator, CURSOR).await.status];
    assert_eq!(gone.map(|status| status.as_u16()), [403, 200]);
}
