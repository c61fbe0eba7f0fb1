//! A cursor that is split among several readers.

use std::collections::{BTreeMap, BTreeSet};

use axum::body::Body;
use axum::http::Request;
use base::Rng;
use serde_json::{Value, json};

use crate::support::{Cluster, Got, assert_holds};

const CURSOR: &str = "/v1/event/cursor/billing";
/// What a reader is sent: the event's id, and the job that it belongs to or else what it is about.
type Told = (String, String);

/// What a stream sends that ends, and the id that it ends with.
async fn read(cluster: &Cluster, query: &str, after: &str) -> (Vec<Told>, String) {
    let path = format!("/v1/event/stream{query}&follow=false");
    let request = Request::get(path).header("accept", "text/event-stream").header("last-event-id", after);
    let got = cluster.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!(got.status, 200, "{}", got.text());
    let (mut told, mut id) = (Vec::new(), after);
    for line in got.text().lines() {
        id = line.strip_prefix("id: ").unwrap_or(id);
        let data = line.strip_prefix("data: ").and_then(|data| serde_json::from_str::<Value>(data).ok());
        if let Some(data) = data.filter(|data| data["Topic"].is_string()) {
            told.push((id.to_string(), about(&data)));
        }
    }
    (told, id.to_string())
}

fn about(event: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let job = match text(&event["Topic"]).as_str() {
        "Job" => text(&event["Key"]),
        "Evaluation" | "Allocation" | "Deployment" => text(&event["FilterKeys"][0]),
        topic => return format!("{topic}/{}", text(&event["Key"])),
    };
    format!("job/{job}")
}

async fn acknowledge(cluster: &Cluster, member: usize, id: &str) -> Got {
    cluster.put(&format!("{CURSOR}/ack"), &json!({"ID": id, "Member": member})).await
}

/// Readers of one cursor that die, lose connections and come back, while servers restart. What each has done with at the end is
/// its part of the stream, once and in order; all parts together are the stream.
#[tokio::test]
async fn all_readers_together_have_each_event_once_and_in_the_order_of_its_job() {
    for seed in 0..6 {
        let mut chance = Rng::stream(seed, "members");
        let mut cluster = Cluster::start().await;
        let members = 2 + chance.below(4) as usize;
        let wanted = json!({"From": "oldest", "Namespace": "*", "Members": members});
        cluster.put(CURSOR, &wanted).await.json();
        let node = cluster.node(1).await;
        let mut done: Vec<Vec<Told>> = vec![Vec::new(); members];
        let mut placed = 0;
        for _ in 0..60 {
            match chance.below(6) {
                0 | 1 => {
                    let job = format!("job-{}", chance.below(9));
                    let eval = cluster.job(&job).await;
                    if chance.below(2) == 0 && placed < 200 {
                        placed += 1;
                        cluster.try_place(eval, &job, node, placed).await;
                    } else {
                        cluster.settle(eval).await;
                    }
                }
                2 if chance.below(4) == 0 => cluster = cluster.restarted().await,
                _ => {
                    let member = chance.below(members as u64) as usize;
                    session(&cluster, member, &mut done[member], &mut chance).await;
                }
            }
        }
        for (member, done) in done.iter_mut().enumerate() {
            let (rest, end) = read(&cluster, &format!("?cursor=billing&member={member}"), "").await;
            done.extend(rest);
            if !end.is_empty() {
                acknowledge(&cluster, member, &end).await.json();
            }
        }
        check(&cluster, &done, seed).await;
    }
}

/// A reader reads, maybe with a break in the middle, does with some of it, and acknowledges; or it dies before that, and nobody
/// knows what it had done with.
async fn session(cluster: &Cluster, member: usize, done: &mut Vec<Told>, chance: &mut Rng) {
    let query = format!("?cursor=billing&member={member}");
    let (mut told, mut end) = read(cluster, &query, "").await;
    if !told.is_empty() && chance.below(3) == 0 {
        told.truncate(1 + chance.below(told.len() as u64) as usize);
        let (rest, ends) = read(cluster, &query, &told.last().unwrap().0.clone()).await;
        told.extend(rest);
        end = ends;
    }
    match chance.below(4) {
        0 => {}
        // A part of it. What is acknowledged is never sent again, and all else is.
        1 if !told.is_empty() => {
            told.truncate(1 + chance.below(told.len() as u64) as usize);
            acknowledge(cluster, member, &told.last().unwrap().0).await.json();
            done.extend(told);
        }
        // All of it: the end stands also for what was for others.
        _ if !end.is_empty() => {
            acknowledge(cluster, member, &end).await.json();
            done.extend(told);
        }
        _ => {}
    }
}

async fn check(cluster: &Cluster, done: &[Vec<Told>], seed: u64) {
    let (all, _) = read(cluster, "?from=oldest&namespace=*", "").await;
    assert!(all.len() > 30, "seed {seed}: {} events are too few to say something", all.len());
    let place: BTreeMap<&str, usize> = all.iter().zip(0..).map(|((id, _), at)| (id.as_str(), at)).collect();
    let mut owner: BTreeMap<&str, usize> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for (member, told) in done.iter().enumerate() {
        let places: Vec<usize> = told.iter().map(|(id, _)| place[id.as_str()]).collect();
        assert!(places.is_sorted_by(|a, b| a < b), "seed {seed}: member {member} has {told:?}");
        for (id, about) in told {
            assert!(seen.insert(id), "seed {seed}: {id} is for two members");
            let first = *owner.entry(about).or_insert(member);
            assert_eq!(first, member, "seed {seed}: {about} is for two members");
        }
    }
    assert_eq!(seen.len(), all.len(), "seed {seed}: nothing is missing");
    let busy = done.iter().filter(|told| !told.is_empty()).count();
    assert!(busy > 1, "seed {seed}: one member has all of it");
}

#[tokio::test]
async fn the_cursor_is_where_the_last_of_its_members_is() {
    let cluster = Cluster::start().await;
    cluster.put(CURSOR, &json!({"From": "oldest", "Namespace": "*", "Members": 2})).await.json();
    for number in 0..8 {
        cluster.job(&format!("job-{number}")).await;
    }
    let (all, _) = read(&cluster, "?from=oldest&namespace=*", "").await;
    let shown = cluster.get(CURSOR).await.json();
    assert_holds(&shown, &json!({"Members": 2, "Shares": [{"Member": 0}, {"Member": 1}]}));
    let lag = shown["LagBatches"].as_u64().unwrap();
    assert!(lag >= 8, "{shown}");
    let (own, end) = read(&cluster, "?cursor=billing&member=1", "").await;
    assert!(!own.is_empty() && own.len() < all.len(), "{own:?}");
    let moved = acknowledge(&cluster, 1, &end).await.json();
    assert_eq!(moved["Position"], end, "where the member is");
    let shown = cluster.get(CURSOR).await.json();
    assert_eq!(shown["LagBatches"], lag, "the other one has done with nothing");
    let shares = json!([
        {"Member": 0, "LagBatches": lag, "AckedAt": null, "AckedBy": ""},
        {"Member": 1, "LagBatches": 0, "LagSeconds": 0, "Position": end, "AckedBy": "anonymous", "Gap": false},
    ]);
    assert_holds(&shown["Shares"], &shares);
    let (other, end) = read(&cluster, "?cursor=billing&member=0", "").await;
    assert_eq!(own.len() + other.len(), all.len());
    acknowledge(&cluster, 0, &end).await.json();
    assert_eq!(cluster.get("/v1/event/cursors").await.json()[0]["LagBatches"], 0);
    // Another number of them: all begin at one place, and some of it comes again.
    let split = cluster.put(&format!("{CURSOR}/reset"), &json!({"To": "oldest", "Members": 3})).await;
    assert_eq!(split.status, 200, "{}", split.text());
    let mut read_by_three = 0;
    for member in 0..3 {
        read_by_three += read(&cluster, &format!("?cursor=billing&member={member}"), "").await.0.len();
    }
    assert_eq!(read_by_three, all.len());
    // Without a place it stays where it is, and one reader has all of it again.
    let joined = cluster.put(&format!("{CURSOR}/reset"), &json!({"Members": 1})).await;
    assert_eq!(joined.status, 200, "{}", joined.text());
    assert_holds(&cluster.get(CURSOR).await.json(), &json!({"Members": 0, "Shares": null}));
    assert_eq!(read(&cluster, "?cursor=billing", "").await.0, all);
    let restarted = cluster.restarted().await;
    assert_eq!(restarted.control.state().cursors, cluster.control.state().cursors);
}

#[tokio::test]
async fn a_member_that_a_cursor_does_not_have_is_refused_by_its_field() {
    let cluster = Cluster::start().await;
    cluster.job("web").await;
    let newest = cluster.control.state().index.to_string();
    cluster.put("/v1/event/cursor/whole", &json!({"From": "oldest"})).await.json();
    cluster.put(CURSOR, &json!({"From": "oldest", "Members": 3})).await.json();
    let split = "cursor \"billing\" is split among 3 readers";
    let number = |field: &str| format!("{field}: expected a number from 0 to 2: {split}");
    for (query, why) in [
        ("?cursor=billing", number("member")),
        ("?cursor=billing&member=", number("member")),
        ("?cursor=billing&member=3", number("member")),
        ("?cursor=billing&member=-1", number("member")),
        ("?cursor=billing&member=first", number("member")),
        ("?cursor=whole&member=0", "member: cursor \"whole\" is not split: leave member out".into()),
        ("?member=0", "member: expected together with a cursor that is split".into()),
    ] {
        cluster.get(&format!("/v1/event/stream{query}")).await.refused(400, &why);
    }
    let before = cluster.journal.batches().len();
    for (name, body, why) in [
        ("billing", json!({"ID": newest}), number("Member")),
        ("billing", json!({"ID": newest, "Member": 3}), number("Member")),
        (
            "whole",
            json!({"ID": newest, "Member": 0}),
            "Member: cursor \"whole\" is not split: leave Member out".into(),
        ),
    ] {
        cluster.put(&format!("/v1/event/cursor/{name}/ack"), &body).await.refused(400, &why);
    }
    let number = "invalid event cursor: Members: expected a number from 1 to 64";
    cluster.put("/v1/event/cursor/other", &json!({"Members": 65})).await.refused(400, number);
    cluster.put(&format!("{CURSOR}/reset"), &json!({"Members": 65})).await.refused(400, number);
    let other = cluster.put(CURSOR, &json!({"Members": 2})).await;
    other.refused(
        409,
        "event cursor \"billing\" has 3 members, not 2: leave Members out, or reset the cursor with it",
    );
    assert_eq!(cluster.journal.batches().len(), before, "nothing was changed");
}
