//! Reads of the past: the same routes, the state of then.

use axum::body::Body;
use axum::http::{HeaderValue, Method};
use base::Index;
use http_gateway::OtherHistory;
use model::document::Timestamp;
use model::{Command, JobKey};
use serde_json::json;

use crate::guarded::{Guarded, NOBODY};
use crate::support::{Cluster, Got, job_json, node_id, request};

fn names(got: &Got) -> Vec<String> {
    assert_eq!(got.status, 200, "{}", got.text());
    got.json().as_array().unwrap().iter().map(|job| job["ID"].as_str().unwrap().to_string()).collect()
}

/// A cluster with jobs that came and went; the index after each step.
async fn history() -> (Cluster, Vec<u64>) {
    let cluster = Cluster::start().await;
    let mut indexes = Vec::new();
    for job in ["a", "b", "c"] {
        cluster.job(job).await;
        indexes.push(cluster.control.state().index.0);
    }
    let purge = Command::DeregisterJob {
        key: JobKey::new("default", "a"),
        purge: true,
        eval_priority: None,
        no_shutdown_delay: false,
    };
    cluster.submit(purge).await;
    indexes.push(cluster.control.state().index.0);
    (cluster, indexes)
}

#[tokio::test]
async fn lists_and_objects_are_what_they_were() {
    let (cluster, at) = history().await;
    for (index, expected) in
        [(1, vec![]), (at[0], vec!["a"]), (at[1], vec!["a", "b"]), (at[3], vec!["b", "c"])]
    {
        let then = cluster.get(&format!("/v1/jobs?as_of={index}")).await;
        let mut found = names(&then);
        found.sort();
        assert_eq!(found, expected);
        assert_eq!(then.index(), index, "the whole answer is of that index");
    }
    let purged = format!("/v1/job/a?as_of={}", at[2]);
    assert_eq!(cluster.get(&purged).await.json()["ID"], "a");
    cluster.get("/v1/job/a").await.refused(404, "job not found");
    cluster.get(&format!("/v1/job/c?as_of={}", at[1])).await.refused(404, "job not found");
    let evals = cluster.get(&format!("/v1/job/a/evaluations?as_of={}", at[0])).await.json();
    assert_eq!(evals.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_page_goes_on_in_the_same_moment() {
    let (cluster, at) = history().await;
    let first = cluster.get(&format!("/v1/jobs?per_page=2&as_of={}", at[2])).await;
    let token = first.header("x-nomad-nexttoken").to_string();
    let second = cluster.get(&format!("/v1/jobs?per_page=2&next_token={token}&as_of={}", at[2])).await;
    let mut all = [names(&first), names(&second)].concat();
    all.sort();
    assert_eq!(all, ["a", "b", "c"]);
}

#[tokio::test]
async fn a_moment_can_be_a_time_and_a_header() {
    let (cluster, at) = history().await;
    let time = cluster.history.state_at(Index(at[1])).unwrap().time;
    let time = Timestamp::from(time).to_string();
    let by_time = cluster.get(&format!("/v1/jobs?as_of={time}")).await;
    assert!(by_time.index() >= at[1] && names(&by_time).contains(&"b".to_string()));
    let header = |value: String, path: &str| {
        let mut request = request(Method::GET, path, Body::empty());
        request.headers_mut().insert("x-sojourn-as-of", HeaderValue::from_str(&value).unwrap());
        request
    };
    let by_header = cluster.send(header(at[0].to_string(), "/v1/jobs")).await;
    assert_eq!(names(&by_header), ["a"]);
    let both = cluster.send(header(at[0].to_string(), "/v1/jobs?as_of=-1m")).await;
    both.refused(400, "`as_of` and X-Sojourn-As-Of: expected one moment, not two");
    // Before there was anything.
    assert_eq!(names(&cluster.get("/v1/jobs?as_of=-9999h").await), Vec::<String>::new());
}

#[tokio::test]
async fn who_waits_for_the_past_to_change_waits_as_long_as_it_wants_to() {
    let (cluster, at) = history().await;
    let path = format!("/v1/jobs?as_of={}&index={}&wait=1ms", at[0], at[0]);
    assert_eq!(names(&cluster.get(&path).await), ["a"]);
}

#[tokio::test]
async fn writes_and_what_only_the_present_has_refuse_the_past() {
    let (cluster, _) = history().await;
    let refused = "this route is of the present alone: `as_of` is not expected";
    for path in [
        "/v1/agent/self",
        "/v1/agent/members",
        "/v1/agent/health",
        "/v1/status/leader",
        "/v1/status/peers",
        "/v1/metrics",
        "/v1/operator/autopilot/health",
        "/v1/operator/raft/configuration",
        "/v1/operator/upgrade",
        "/v1/operator/snapshot",
        "/v1/event/stream",
        "/v1/client/stats",
    ] {
        cluster.get(&format!("{path}?as_of=2")).await.refused(400, refused);
    }
    let before = cluster.control.state().index;
    cluster.put("/v1/jobs?as_of=2", &json!({"Job": job_json("d")})).await.refused(400, refused);
    cluster.delete("/v1/job/b?as_of=2").await.refused(400, refused);
    assert_eq!(cluster.control.state().index, before);
}

#[tokio::test]
async fn every_list_travels() {
    let (cluster, at) = history().await;
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
        "/v1/job/a",
        "/v1/job/a/versions",
        "/v1/job/a/summary",
        "/v1/job/a/explain",
        "/v1/job/a/history",
        "/v1/job/a/submission?version=0",
        "/v1/job/a/allocations",
        "/v1/job/a/evaluations",
        "/v1/job/a/deployments",
        "/v1/job/a/scale",
        "/v1/namespace/default",
        "/v1/node/pool/default",
        "/v1/node/pool/default/nodes",
        "/v1/jobs?filter=ID==a",
        "/v1/evaluations?filter=JobID==a",
    ] {
        let separator = if path.contains('?') { '&' } else { '?' };
        let got = cluster.get(&format!("{path}{separator}as_of={}", at[1])).await;
        let is_there = got.status == 200 || (path.contains("submission") && got.status == 404);
        assert!(is_there, "{path}: {} {}", got.status, got.text());
        assert_eq!(got.index(), at[1], "{path}");
    }
}

/// Whatever happened since, and in whatever order it is asked for.
#[tokio::test]
async fn what_was_answered_live_is_answered_again_of_its_moment() {
    const PATHS: [&str; 10] = [
        "/v1/jobs",
        "/v1/jobs/statuses",
        "/v1/nodes",
        "/v1/allocations",
        "/v1/evaluations",
        "/v1/deployments",
        "/v1/job/a",
        "/v1/job/a/summary",
        "/v1/job/b/allocations",
        "/v1/job/c/evaluations",
    ];
    let cluster = Cluster::start().await;
    let mut answered = Vec::new();
    for number in 1..=24_u8 {
        match number % 6 {
            1 => _ = cluster.node(number).await,
            5 => {
                let (key, purge) = (JobKey::new("default", "a"), number > 12);
                let stop =
                    Command::DeregisterJob { key, purge, eval_priority: None, no_shutdown_delay: false };
                cluster.submit(stop).await;
            }
            which => {
                let job = ["a", "b", "c", "a"][usize::from(which) % 4];
                let eval = cluster.job(job).await;
                cluster.try_place(eval, job, node_id(1), number).await;
            }
        }
        for path in PATHS {
            let got = cluster.get(path).await;
            answered.push((path, cluster.control.state().index, got.status, got.body));
        }
    }
    // Back and forth: what is held of the past helps with some, and not with others.
    for nth in 0..answered.len() {
        let (path, index, status, body) = &answered[nth * 7 % answered.len()];
        let then = cluster.get(&format!("{path}?as_of={index}")).await;
        assert_eq!((then.status, &then.body), (*status, body), "{path} of {index}");
    }
}

/// What was allowed then does not matter.
#[tokio::test]
async fn the_past_is_read_with_the_rights_of_today() {
    let guarded = Guarded::start().await;
    guarded.cluster.job("a").await;
    let before = guarded.cluster.control.state().index;
    let reader = guarded.caller("reader", r#"namespace "default" { policy = "read" }"#).await;
    let with_it = guarded.cluster.control.state().index;
    for then in [before, with_it] {
        let path = format!("/v1/jobs?as_of={then}");
        assert_eq!(names(&guarded.get(&reader, &path).await), ["a"]);
        guarded.get(NOBODY, &path).await.refused(403, "Permission denied");
    }
    guarded.delete(&guarded.root, "/v1/acl/policy/reader").await;
    for then in [before, with_it] {
        guarded.get(&reader, &format!("/v1/jobs?as_of={then}")).await.refused(403, "Permission denied");
    }
}

#[tokio::test]
async fn the_log_is_read_in_words_and_in_pages() {
    let (cluster, at) = history().await;
    let (mut query, mut lines, mut pages) =
        (format!("since={}&per_page=2&as_of={}", at[0], at[2]), Vec::new(), 0);
    loop {
        let page = cluster.get(&format!("/v1/history?{query}")).await;
        assert_eq!(page.status, 200, "{}", page.text());
        lines.extend(page.json()["Lines"].as_array().unwrap().clone());
        pages += 1;
        let Some(next) = page.headers.get("x-nomad-nexttoken") else { break };
        query = format!("next_token={}&per_page=2&as_of={}", next.to_str().unwrap(), at[2]);
    }
    assert!(pages > 1);
    let of = |object: &str| lines.iter().filter(|line| line["Object"] == object).count();
    assert_eq!((of("job/default/a"), of("job/default/b"), of("job/default/c")), (1, 1, 1), "{lines:?}");
    assert!(lines.iter().all(|line| (at[0]..=at[2]).contains(&line["Index"].as_u64().unwrap())));
    let recent = cluster.get("/v1/history?since=-1h").await.json();
    assert!(recent["Lines"].as_array().unwrap().len() > lines.len());
    cluster.get("/v1/history?since=soon").await.refused(
        400,
        "\"soon\" is not an index, a time like 2026-01-02T15:04:05Z or a span like -15m, for `since`",
    );
    cluster
        .get("/v1/history?filter=Index==1")
        .await
        .refused(400, "this list cannot be filtered: `filter` is not expected");
}

#[tokio::test]
async fn the_log_is_folded_again_and_compared() {
    let (cluster, at) = history().await;
    let newest = cluster.control.state().index.0;
    let whole = cluster.get("/v1/history/verify").await.json();
    assert_eq!(
        (whole["From"].as_u64(), whole["To"].as_u64(), whole["Newest"].as_u64()),
        (Some(0), Some(newest), Some(newest))
    );
    assert_eq!(whole["Batches"], newest);
    let part = cluster.get(&format!("/v1/history/verify?since={}", at[1])).await.json();
    assert_eq!(part["Digests"], whole["Digests"]);
    assert!(part["Events"].as_u64() < whole["Events"].as_u64());
    let ahead = format!("since: that is still to come: the newest index is {newest}");
    cluster.get("/v1/history/verify?since=999999").await.refused(400, &ahead);
    let past = "this route is of the present alone: `as_of` is not expected";
    cluster.get("/v1/history/verify?as_of=2").await.refused(400, past);
}

#[tokio::test]
async fn a_history_ends_where_it_was_looked_at() {
    let (cluster, at) = history().await;
    let lines = async |query: String| {
        let got = cluster.get(&format!("/v1/job/a/history{query}")).await.json();
        got["Lines"].as_array().unwrap().len()
    };
    let (then, now) = (lines(format!("?as_of={}", at[0])).await, lines(String::new()).await);
    assert!(0 < then && then < now, "{then} of {now}");
}

#[tokio::test]
async fn what_is_no_longer_kept_is_gone_and_the_oldest_index_is_named() {
    let (cluster, at) = history().await;
    let restarted = cluster.restarted().await;
    assert_eq!(names(&restarted.get(&format!("/v1/jobs?as_of={}", at[0])).await), ["a"]);
    restarted.journal.forget_before(Index(at[2]));
    let gone = restarted.get(&format!("/v1/jobs?as_of={}", at[0])).await;
    assert_eq!(gone.status, 410);
    assert!(gone.text().contains("the oldest index is"), "{}", gone.text());
}

/// Each server keeps as much as its own settings say: the one that goes back the farthest answers, and where it cannot, the
/// answer names it.
#[tokio::test]
async fn what_this_server_no_longer_has_is_read_elsewhere() {
    let cluster = history().await.0.restarted().await;
    cluster.journal.forget_before(Index(4));
    let stream = "/v1/event/stream?from=1&follow=false";
    for path in ["/v1/jobs?as_of=1", stream] {
        let alone = cluster.get(path).await;
        assert_eq!((alone.status.as_u16(), alone.header("x-sojourn-oldest-index").is_empty()), (410, false));
        assert!(!alone.text().contains("has it"), "{}", alone.text());
    }
    let other = |http: &str, oldest: u64| OtherHistory {
        rpc: http.replace("4646", "4647"),
        http: http.to_string(),
        oldest: Index(oldest),
    };
    let known = vec![other("10.0.0.7:4646", 3), other("10.0.0.8:4646", 1), other("10.0.0.9:4646", 99)];
    *cluster.servers.histories.lock() = known;
    for path in ["/v1/jobs?as_of=1", stream] {
        let gone = cluster.get(path).await;
        assert_eq!((gone.status.as_u16(), gone.header("x-sojourn-history-at")), (410, "10.0.0.8:4646"));
        assert!(gone.text().ends_with("; 10.0.0.8:4646 has it from index 1 on"), "{}", gone.text());
    }
    let as_of = cluster.get("/v1/jobs?as_of=1").await;
    let asked = std::mem::take(&mut *cluster.elsewhere.asked.lock());
    assert_eq!(asked, ["10.0.0.8:4647"; 3], "it was asked, in vain");
    let oldest: u64 = as_of.header("x-sojourn-oldest-index").parse().unwrap();
    let begins = format!("as_of: what was then is no longer kept: the oldest index is {oldest}; ");
    assert!(as_of.text().starts_with(&begins), "{}", as_of.text());
    // What it answers is the answer, as it is.
    let whole = history().await.0;
    *cluster.elsewhere.answers.lock() = Some(whole.app.clone());
    for path in ["/v1/jobs?as_of=1&pretty", "/v1/jobs?as_of=3&prefix=b", "/v1/job/nobody?as_of=2", stream] {
        let (here, there) = (cluster.get(path).await, whole.get(path).await);
        assert_eq!(here.header("x-sojourn-history-at"), "10.0.0.8:4646", "{path}");
        assert_eq!((here.status, here.text()), (there.status, there.text()), "{path}");
        assert_eq!(here.header("x-nomad-index"), there.header("x-nomad-index"), "{path}");
    }
    // Once: who was asked by another server asks nobody, and what one server alone has is no other one's.
    cluster.elsewhere.asked.lock().clear();
    for (name, value) in [("x-sojourn-history-passed", "1"), ("x-sojourn-fork", "nobody")] {
        let header = HeaderValue::from_static(value);
        let mut passed = request(Method::GET, "/v1/jobs?as_of=1", Body::empty());
        passed.headers_mut().insert(name, header);
        assert!(cluster.send(passed).await.status.is_client_error());
    }
    assert!(cluster.elsewhere.asked.lock().is_empty());
    // It does not go back far enough either.
    let whole = whole.restarted().await;
    whole.journal.forget_before(Index(4));
    *cluster.elsewhere.answers.lock() = Some(whole.app.clone());
    let neither = cluster.get("/v1/jobs?as_of=1").await;
    assert_eq!(
        (neither.status.as_u16(), neither.header("x-sojourn-oldest-index")),
        (410, oldest.to_string().as_str())
    );
    assert!(neither.text().ends_with("has it from index 1 on"), "{}", neither.text());
    // Nobody goes back farther.
    *cluster.servers.histories.lock() = vec![other("10.0.0.9:4646", oldest)];
    assert_eq!(cluster.get("/v1/jobs?as_of=1").await.header("x-sojourn-history-at"), "");
}
