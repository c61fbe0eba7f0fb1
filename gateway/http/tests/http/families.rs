//! Children of jobs, scaling, tags, statuses, namespaces and what is searched for.

use axum::body::Body;
use axum::http::Method;
use serde_json::{Value, json};

use crate::support::{Cluster, assert_holds, job_json, request};

async fn registered(cluster: &Cluster, id: &str, change: impl FnOnce(&mut Value)) {
    let mut job = job_json(id);
    change(&mut job);
    let got = cluster.put("/v1/jobs", &json!({"Job": job})).await;
    assert_eq!(got.status, 200, "{}", got.text());
}

async fn parameterized(cluster: &Cluster) {
    let takes = json!({"Payload": "optional", "MetaRequired": ["who"], "MetaOptional": null});
    registered(cluster, "mail", |job| {
        job["Type"] = json!("batch");
        job["ParameterizedJob"] = takes;
    })
    .await;
}

#[tokio::test]
async fn a_dispatch_answers_with_its_child_and_the_same_token_with_the_same() {
    let cluster = Cluster::start().await;
    parameterized(&cluster).await;
    let body = json!({"JobID": "mail", "Payload": "aGVsbG8=", "Meta": {"who": "ann"}});
    let path = "/v1/job/mail/dispatch?idempotency_token=once";
    let first = cluster.put(path, &body).await.json();
    let child = first["DispatchedJobID"].as_str().unwrap().to_string();
    assert!(child.starts_with("mail/dispatch-"), "{child}");
    assert_ne!(first["EvalID"], "");
    let again = cluster.put(path, &body).await.json();
    assert_holds(&again, &json!({"DispatchedJobID": child, "EvalID": "", "EvalCreateIndex": 0}));
    let job = cluster.get(&format!("/v1/job/{child}")).await.json();
    assert_holds(
        &job,
        &json!({"ParentID": "mail", "Dispatched": true, "Payload": "aGVsbG8=", "Meta": {"who": "ann"}}),
    );
    let summary = cluster.get("/v1/job/mail/summary").await.json();
    assert_eq!(summary["Children"], json!({"Pending": 1, "Running": 0, "Dead": 0}));
    let listed = cluster.get("/v1/jobs?prefix=mail/dispatch").await.json();
    assert_eq!(listed.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_dispatch_that_does_not_fit_is_refused() {
    let cluster = Cluster::start().await;
    parameterized(&cluster).await;
    let got = cluster.put("/v1/job/mail/dispatch", &json!({})).await;
    got.refused(500, "Dispatch did not provide required meta keys: [who]");
    let got = cluster.put("/v1/job/mail/dispatch", &json!({"JobID": "other"})).await;
    got.refused(400, "Job ID does not match");
    cluster.put("/v1/job/none/dispatch", &json!({})).await.refused(404, "parameterized job not found");
    let payload = request(Method::POST, "/v1/job/mail/dispatch/payload", Body::from("raw bytes"));
    cluster.send(payload).await.refused(500, "Dispatch did not provide required meta keys: [who]");
}

#[tokio::test]
async fn a_periodic_job_is_launched_by_hand() {
    let cluster = Cluster::start().await;
    registered(&cluster, "tick", |job| {
        job["Type"] = json!("batch");
        job["Periodic"] = json!({"Enabled": true, "Spec": "@yearly", "SpecType": "cron"});
    })
    .await;
    let got = cluster.put("/v1/job/tick/periodic/force", &json!({})).await.json();
    assert_ne!(got["EvalID"], "");
    let children = cluster.get("/v1/jobs?prefix=tick/periodic-").await.json();
    assert_eq!(children[0]["ParentID"], "tick");
    registered(&cluster, "web", |_| ()).await;
    let got = cluster.put("/v1/job/web/periodic/force", &json!({})).await;
    got.refused(500, "can't force run non-tracked job \"web\" (default): it is not periodic");
    cluster.put("/v1/job/none/periodic/force", &json!({})).await.refused(500, "job not found");
}

#[tokio::test]
async fn a_group_is_scaled_and_shows_its_status() {
    let cluster = Cluster::start().await;
    registered(&cluster, "web", |job| {
        job["TaskGroups"][0]["Scaling"] = json!({"Min": 1, "Max": 4, "Enabled": true});
    })
    .await;
    let scale = |count: i64| json!({"Count": count, "Target": {"Group": "web"}, "Message": "busy"});
    let got = cluster.put("/v1/job/web/scale", &scale(3)).await.json();
    assert_ne!(got["EvalID"], "");
    let status = cluster.get("/v1/job/web/scale").await.json();
    assert_holds(&status, &json!({"JobID": "web", "JobStopped": false}));
    let group = &status["TaskGroups"]["web"];
    assert_holds(group, &json!({"Desired": 3, "Placed": 0, "Running": 0}));
    assert_holds(
        &group["Events"][0],
        &json!({"Count": 3, "PreviousCount": 2, "Message": "busy", "EvalID": got["EvalID"]}),
    );
    let got = cluster.put("/v1/job/web/scale", &scale(5)).await;
    got.refused(400, "group count was greater than scaling policy maximum: 5 > 4");
    cluster
        .put("/v1/job/web/scale", &json!({"Count": 1}))
        .await
        .refused(400, "missing task group name for scaling action");
    cluster.put("/v1/job/none/scale", &scale(1)).await.refused(404, "job \"none\" not found");
    cluster.get("/v1/job/none/scale").await.refused(404, "job not found");
    let policies = cluster.get("/v1/scaling/policies?job=web").await.json();
    assert_holds(&policies[0], &json!({"Enabled": true, "Type": "horizontal"}));
    assert_holds(&policies[0]["Target"], &json!({"Namespace": "default", "Job": "web", "Group": "web"}));
    let id = policies[0]["ID"].as_str().unwrap();
    let policy = cluster.get(&format!("/v1/scaling/policy/{id}")).await.json();
    assert_holds(&policy, &json!({"Min": 1, "Max": 4}));
    cluster.get("/v1/scaling/policy/none").await.refused(404, "policy not found");
}

#[tokio::test]
async fn a_version_is_tagged_compared_and_untagged() {
    let cluster = Cluster::start().await;
    for priority in [10, 20, 30] {
        registered(&cluster, "web", |job| job["Priority"] = json!(priority)).await;
    }
    let body = json!({"Version": 0, "Description": "the first"});
    let tag = cluster.put("/v1/job/web/versions/golden/tag", &body).await.json();
    assert_holds(&tag, &json!({"Name": "golden", "Description": "the first"}));
    let versions = cluster.get("/v1/job/web/versions?diffs=true").await.json();
    assert_eq!(versions["Versions"][2]["VersionTag"]["Name"], "golden");
    let changed = |diff: &Value| (diff["Fields"][0]["Old"].clone(), diff["Fields"][0]["New"].clone());
    assert_eq!(versions["Diffs"].as_array().unwrap().len(), 2);
    assert_eq!(changed(&versions["Diffs"][0]), (json!("20"), json!("30")));
    let against = cluster.get("/v1/job/web/versions?diffs=true&diff_tag=golden").await.json();
    assert_eq!(changed(&against["Diffs"][0]), (json!("10"), json!("30")));
    cluster
        .get("/v1/job/web/versions?diffs=true&diff_version=9")
        .await
        .refused(500, "version \"9\" to compare with not found");
    assert_eq!(cluster.get("/v1/job/web/versions").await.json()["Diffs"], Value::Null);
    let taken = cluster.put("/v1/job/web/versions/golden/tag", &json!({"Version": 1})).await;
    taken.refused(500, "tag \"golden\" already exists on a different version of job \"web\"");
    assert_eq!(cluster.delete("/v1/job/web/versions/golden/tag").await.status, 200);
    let gone = cluster.delete("/v1/job/web/versions/golden/tag").await;
    gone.refused(500, "tag \"golden\" not found for job \"web\"");
}

#[tokio::test]
async fn the_job_table_shows_what_was_asked_for_newest_first() {
    let cluster = Cluster::start().await;
    parameterized(&cluster).await;
    registered(&cluster, "web", |_| ()).await;
    cluster.put("/v1/job/mail/dispatch", &json!({"Meta": {"who": "ann"}})).await.json();
    let ids = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|job| job["ID"].as_str().unwrap().to_string()).collect()
    };
    let list = cluster.get("/v1/jobs/statuses").await.json();
    assert_eq!(ids(&list), ["mail", "web"], "its child changed last");
    assert_holds(&list[0], &json!({"ChildStatuses": ["pending"], "Type": "batch", "Stop": false}));
    assert_holds(&list[1], &json!({"ChildStatuses": null, "GroupCountSum": 2, "LatestDeployment": null}));
    assert_eq!(ids(&cluster.get("/v1/jobs/statuses?reverse=true").await.json()), ["web", "mail"]);
    assert_eq!(
        cluster.get("/v1/jobs/statuses?include_children=true").await.json().as_array().unwrap().len(),
        3
    );
    let named = request(
        Method::POST,
        "/v1/jobs/statuses",
        Body::from(json!({"jobs": [{"id": "web", "namespace": "default"}, {"id": "none"}]}).to_string()),
    );
    assert_eq!(ids(&cluster.send(named).await.json()), ["web"]);
    let empty = request(Method::POST, "/v1/jobs/statuses", Body::from("{}"));
    cluster.send(empty).await.refused(400, "no jobs in request");
    let page = cluster.get("/v1/jobs/statuses?per_page=1").await;
    let token = page.header("x-nomad-nexttoken").to_string();
    assert_eq!(
        ids(&cluster.get(&format!("/v1/jobs/statuses?per_page=1&next_token={token}")).await.json()),
        ["web"]
    );
}

#[tokio::test]
async fn lists_are_filtered_by_the_whole_object() {
    let cluster = Cluster::start().await;
    registered(&cluster, "web", |job| job["Meta"] = json!({"team": "a"})).await;
    registered(&cluster, "db", |job| job["Priority"] = json!(70)).await;
    parameterized(&cluster).await;
    let found = async |filter: &str| {
        let encoded: String = filter.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let list = cluster.get(&format!("/v1/jobs?filter={encoded}")).await.json();
        list.as_array().unwrap().iter().map(|job| job["ID"].as_str().unwrap().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(found("Priority == 70").await, ["db"]);
    assert_eq!(found("Meta.team == \"a\"").await, ["web"]);
    assert_eq!(found("Type == batch and ParameterizedJob is not nil").await, ["mail"]);
    assert_eq!(found("any TaskGroups as g { g.Count == 2 }").await.len(), 3);
    let wrong = cluster.get("/v1/jobs?filter=Colour==red").await;
    assert!(
        wrong.status == 400 && wrong.text().starts_with("failed to read result page: "),
        "{}",
        wrong.text()
    );
    let wrong = cluster.get("/v1/jobs?filter=Type%20is").await;
    let context = "failed to create result paginator: failed to read filter expression: ";
    assert!(wrong.status == 400 && wrong.text().starts_with(context), "{}", wrong.text());
    let both = cluster.get("/v1/evaluations?job=web&filter=Status==complete").await;
    both.refused(400, "Filter expression cannot be used with other filter parameters");
    let sublist = cluster.get("/v1/job/web/evaluations?filter=Status==complete").await;
    sublist.refused(400, "this list cannot be filtered: `filter` is not expected");
}

#[tokio::test]
async fn namespaces_hold_jobs_apart() {
    let cluster = Cluster::start().await;
    let other = cluster.put("/v1/jobs?namespace=dev", &json!({"Job": job_json("web")})).await;
    other.refused(400, "job \"web\" is in nonexistent namespace \"dev\"");
    let made = cluster.put("/v1/namespace", &json!({"Name": "dev", "Description": "for trying"})).await;
    assert_eq!((made.status.as_u16(), made.text()), (200, ""));
    assert_eq!(made.index(), cluster.get("/v1/namespaces").await.index());
    assert_holds(
        &cluster.get("/v1/namespace/dev").await.json(),
        &json!({"Name": "dev", "Description": "for trying"}),
    );
    assert_eq!(cluster.get("/v1/namespaces").await.json().as_array().unwrap().len(), 2);
    registered(&cluster, "web", |_| ()).await;
    cluster.put("/v1/jobs?namespace=dev", &json!({"Job": job_json("web")})).await.json();
    let count = async |namespace: &str| {
        cluster.get(&format!("/v1/jobs?namespace={namespace}")).await.json().as_array().unwrap().len()
    };
    assert_eq!((count("dev").await, count("default").await, count("*").await), (1, 1, 2));
    let kept = cluster.delete("/v1/namespace/dev").await;
    kept.refused(500, "namespace \"dev\" has jobs that have not ended: 1");
    cluster
        .put("/v1/namespace/dev", &json!({"Name": "x"}))
        .await
        .refused(400, "Namespace name does not match request path");
    cluster.delete("/v1/namespace/none").await.refused(500, "namespace \"none\" not found");
    cluster.get("/v1/namespace/none").await.refused(404, "Namespace not found");
}

#[tokio::test]
async fn a_part_of_a_name_finds_it_and_its_scope() {
    let cluster = Cluster::start().await;
    registered(&cluster, "frontweb", |_| ()).await;
    registered(&cluster, "web", |_| ()).await;
    let got = cluster.put("/v1/search/fuzzy", &json!({"Text": "WEB", "Context": "all"})).await.json();
    assert_eq!(got["Matches"]["jobs"][0], json!({"ID": "web", "Scope": ["default", "web"]}));
    assert_eq!(got["Matches"]["jobs"][1]["ID"], "frontweb");
    assert_eq!(got["Matches"]["groups"][0], json!({"ID": "web", "Scope": ["default", "frontweb"]}));
    assert_eq!(got["Truncations"]["jobs"], false);
    let short = cluster.put("/v1/search/fuzzy", &json!({"Text": "w"})).await;
    short.refused(500, "fuzzy search query must be at least 2 characters, got 1");
}

#[tokio::test]
async fn lists_of_services_are_empty() {
    let cluster = Cluster::start().await;
    registered(&cluster, "web", |_| ()).await;
    for path in ["/v1/services", "/v1/service/web", "/v1/job/web/services"] {
        assert_eq!(cluster.get(path).await.json(), json!([]), "{path}");
    }
    cluster.get("/v1/job/none/services").await.refused(404, "job not found");
    cluster.get("/v1/allocation/none/services").await.refused(404, "allocation not found");
    cluster.delete("/v1/service/web/id").await.refused(500, "service registration not found");
}

#[tokio::test]
async fn what_ended_for_good_is_collected() {
    let cluster = Cluster::start().await;
    registered(&cluster, "web", |_| ()).await;
    registered(&cluster, "db", |_| ()).await;
    cluster.delete("/v1/job/web").await.json();
    let ids = async || -> Vec<Value> {
        let list = cluster.get("/v1/jobs").await.json();
        list.as_array().unwrap().iter().map(|job| job["ID"].clone()).collect()
    };
    assert_eq!(cluster.put("/v1/system/gc", &json!({})).await.status, 200);
    assert_eq!(ids().await.len(), 2, "its evaluation has not ended");
    let evals = cluster.get("/v1/job/web/evaluations").await.json();
    for eval in evals.as_array().unwrap() {
        cluster.settle(eval["ID"].as_str().unwrap().parse().unwrap()).await;
    }
    assert_eq!(cluster.put("/v1/system/gc", &json!({})).await.status, 200);
    assert_eq!(ids().await, ["db"]);
    let evals = cluster.get("/v1/evaluations").await.json();
    let of: Vec<&Value> = evals.as_array().unwrap().iter().map(|eval| &eval["JobID"]).collect();
    assert_eq!(of, ["db"], "evaluations of the purged job are forgotten too");
    assert_eq!(cluster.put("/v1/system/reconcile/summaries", &json!({})).await.status, 200);
}
