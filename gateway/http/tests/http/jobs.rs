use axum::body::Body;
use axum::http::Method;
use serde_json::json;

use crate::support::{Cluster, assert_holds, job_json, request};

#[tokio::test]
async fn a_registered_job_can_be_read_with_its_defaults() {
    let cluster = Cluster::start().await;
    let registered = cluster.put("/v1/jobs", &json!({"Job": job_json("web")})).await;
    let answer = registered.json();
    let index = registered.index();
    assert_holds(&answer, &json!({"EvalCreateIndex": index, "JobModifyIndex": index, "Index": index}));
    assert_eq!(answer["EvalID"].as_str().unwrap().len(), 36);
    assert_eq!(registered.header("x-nomad-knownleader"), "", "writes have only the index header");

    let read = cluster.get("/v1/job/web").await;
    let expected = json!({
        "ID": "web", "Name": "web", "Namespace": "default", "Region": "global", "Type": "service",
        "Priority": 50, "Datacenters": ["*"], "NodePool": "default", "Stop": false, "Version": 0,
        "Status": "pending", "JobModifyIndex": index, "CreateIndex": index, "Constraints": null,
        "TaskGroups": [{"Name": "web", "Count": 2, "Tasks": [{"Name": "server", "Driver": "raw_exec"}]}],
    });
    assert_holds(&read.json(), &expected);
    assert_eq!(read.json()["ModifyIndex"], read.index());
    assert_eq!((read.header("x-nomad-knownleader"), read.header("x-nomad-lastcontact")), ("true", "0"));
}

#[tokio::test]
async fn a_registration_keeps_what_it_is_told_to() {
    let cluster = Cluster::start().await;
    cluster.put("/v1/jobs", &json!({"Job": job_json("web")})).await.json();
    let mut changed = job_json("web");
    changed["TaskGroups"][0]["Count"] = json!(5);
    changed["TaskGroups"][0]["Tasks"][0]["Resources"] = json!({"CPU": 50, "MemoryMB": 128});
    let mut other = changed["TaskGroups"][0].clone();
    other["Name"] = json!("other");
    changed["TaskGroups"].as_array_mut().unwrap().push(other);
    let cases = [
        (json!({"PreserveResources": true}), 5, 100, 300),
        (json!({"PreserveCounts": true}), 5, 50, 128),
        (json!({}), 5, 50, 128),
    ];
    for (how, count, cpu, memory) in cases {
        let mut body = how.clone();
        body["Job"] = changed.clone();
        cluster.put("/v1/jobs", &body).await.json();
        let group = |cpu: u32, memory: u32| json!({"Count": count, "Tasks": [{"Resources": {"CPU": cpu, "MemoryMB": memory}}]});
        let expected = json!({"TaskGroups": [group(cpu, memory), group(50, 128)]});
        assert_holds(&cluster.get("/v1/job/web").await.json(), &expected);
    }
}

#[tokio::test]
async fn a_line_of_the_list_has_what_clients_rely_on() {
    let cluster = Cluster::start().await;
    let mut job = job_json("web");
    job["Meta"] = json!({"team": "blue"});
    cluster.put("/v1/jobs", &json!({"Job": job})).await.json();
    let list = cluster.get("/v1/jobs").await.json();
    let expected = json!([{
        "ID": "web", "ParentID": "", "Name": "web", "Namespace": "default", "Type": "service",
        "Periodic": false, "ParameterizedJob": false, "Stop": false, "StatusDescription": "",
        "JobSummary": {"JobID": "web", "Namespace": "default", "Summary": {"web": {"Queued": 0, "Running": 0}}},
    }]);
    assert_holds(&list, &expected);
    assert_eq!(list[0].get("Meta"), None);
    let with_meta = cluster.get("/v1/jobs?meta=true").await.json();
    assert_eq!(with_meta[0]["Meta"], json!({"team": "blue"}));
    cluster.get("/v1/jobs?meta=perhaps").await.refused(400, "\"perhaps\" is not true or false, for `meta`");
}

#[tokio::test]
async fn lists_are_sorted_narrowed_and_paged() {
    let cluster = Cluster::start().await;
    for id in ["web-b", "api", "web-a"] {
        cluster.job(id).await;
    }
    let ids = async |query: &str| {
        let got = cluster.get(&format!("/v1/jobs{query}")).await;
        let ids: Vec<String> = got
            .json()
            .as_array()
            .unwrap()
            .iter()
            .map(|job| job["ID"].as_str().unwrap().to_string())
            .collect();
        (ids.join(" "), got.header("x-nomad-nexttoken").to_string())
    };
    let whole = |ids: &str| (ids.to_string(), String::new());
    assert_eq!(ids("").await, whole("api web-a web-b"));
    assert_eq!(ids("?reverse=true").await, whole("web-b web-a api"));
    assert_eq!(ids("?prefix=web").await, whole("web-a web-b"));
    assert_eq!(ids("?namespace=*").await, whole("api web-a web-b"));
    assert_eq!(ids("?namespace=other").await, whole(""));
    assert_eq!(ids("?per_page=2").await, ("api web-a".to_string(), "default.web-b".to_string()));
    assert_eq!(ids("?per_page=2&next_token=default.web-b").await, whole("web-b"));
    assert_eq!(ids("?per_page=1&next_token=default.b").await.0, "web-a");
}

#[tokio::test]
async fn a_job_id_may_have_slashes() {
    let cluster = Cluster::start().await;
    cluster.put("/v1/jobs", &json!({"Job": job_json("batch/one/summary")})).await.json();
    for path in ["/v1/job/batch%2Fone%2Fsummary/summary", "/v1/job/batch/one/summary/summary"] {
        assert_eq!(cluster.get(path).await.json()["JobID"], "batch/one/summary", "{path}");
    }
    // What ends like a verb is one, and an id that does cannot be said without one.
    cluster.delete("/v1/job/batch%2Fone%2Fsummary").await.refused(405, "Invalid method");
    assert_eq!(cluster.get("/v1/job/batch/one/summary/versions").await.status, 200);
}

#[tokio::test]
async fn a_job_that_is_not_there_is_not_found_as_of_an_index() {
    let cluster = Cluster::start().await;
    cluster.job("web").await;
    let missing = cluster.get("/v1/job/other").await;
    missing.refused(404, "job not found");
    assert_eq!(missing.index(), cluster.control.state().tables.jobs.0);
    cluster.get("/v1/job/other/summary").await.refused(404, "job not found");
    cluster.get("/v1/job/other/versions").await.refused(404, "job versions not found");
    cluster.get("/v1/job/other/submission?version=0").await.refused(404, "job source not found");
    for list in ["allocations", "evaluations", "deployments"] {
        assert_eq!(cluster.get(&format!("/v1/job/other/{list}")).await.json(), json!([]));
    }
    cluster.put("/v1/job/other/evaluate", &json!({})).await.refused(404, "job not found");
}

#[tokio::test]
async fn what_is_wrong_with_a_job_is_said_all_at_once() {
    let cluster = Cluster::start().await;
    cluster.put("/v1/jobs", &json!({})).await.refused(400, "Job must be specified");
    cluster.put("/v1/jobs", &json!({"Job": {}})).await.refused(400, "Job ID hasn't been provided");
    let mut job = job_json("web");
    job["Priority"] = json!(1000);
    job["TaskGroups"][0]["Tasks"][0]["Driver"] = json!("");
    let wrong = cluster.put("/v1/jobs", &json!({"Job": job})).await;
    assert_eq!(wrong.status, 400);
    assert!(wrong.text().starts_with("2 errors occurred:"), "{}", wrong.text());
    assert!(wrong.text().contains("riority") && wrong.text().contains("river"), "{}", wrong.text());

    let judged = cluster.put("/v1/validate/job", &json!({"Job": job})).await.json();
    assert_eq!(judged["ValidationErrors"].as_array().unwrap().len(), 2);
    assert_eq!((&judged["DriverConfigValidated"], &judged["Warnings"]), (&json!(true), &json!("")));
    assert_eq!(cluster.get("/v1/jobs").await.json(), json!([]));
}

#[tokio::test]
async fn where_a_job_belongs_is_checked() {
    let cluster = Cluster::start().await;
    let mut job = job_json("web");
    job["Namespace"] = json!("other");
    cluster
        .put("/v1/jobs", &json!({"Job": job}))
        .await
        .refused(400, "job \"web\" is in nonexistent namespace \"other\"");
    // The query string wins.
    assert_eq!(cluster.put("/v1/jobs?namespace=default", &json!({"Job": job})).await.status, 200);
    job["Region"] = json!("elsewhere");
    cluster.put("/v1/jobs?namespace=default", &json!({"Job": job})).await.refused(500, "No path to region");
    let named = cluster.put("/v1/job/another", &json!({"Job": job_json("web")})).await;
    named.refused(400, "Job ID does not match name");
}

#[tokio::test]
async fn registering_the_same_again_changes_nothing_but_evaluates() {
    let cluster = Cluster::start().await;
    let first = cluster.put("/v1/jobs", &json!({"Job": job_json("web")})).await.json();
    let again = cluster.put("/v1/jobs", &json!({"Job": job_json("web")})).await.json();
    assert_eq!(again["JobModifyIndex"], first["JobModifyIndex"]);
    assert_ne!(again["EvalID"], first["EvalID"]);
    assert_eq!(cluster.get("/v1/job/web").await.json()["Version"], 0);
}

#[tokio::test]
async fn an_enforced_index_protects_from_overwriting() {
    let cluster = Cluster::start().await;
    let ask = |index: u64| json!({"Job": job_json("web"), "EnforceIndex": true, "JobModifyIndex": index});
    let first = cluster.put("/v1/jobs", &ask(0)).await.json();
    let conflict = cluster.put("/v1/jobs", &ask(0)).await;
    conflict.refused(409, "Enforcing job modify index 0: job already exists");
    assert_eq!(cluster.put("/v1/jobs", &ask(first["JobModifyIndex"].as_u64().unwrap())).await.status, 200);
}

#[tokio::test]
async fn a_repeated_request_takes_effect_once() {
    let cluster = Cluster::start().await;
    let id = "7b1b6f4c-6f0e-4d3c-9c58-3b6b6b0f4e11";
    let send = || {
        let body = Body::from(json!({"Job": job_json("web")}).to_string());
        let mut request = request(Method::POST, "/v1/jobs", body);
        request.headers_mut().insert("x-sojourn-request-id", id.parse().unwrap());
        request
    };
    let first = cluster.send(send()).await.json();
    assert_eq!(cluster.send(send()).await.json(), first);
    assert_eq!(cluster.get("/v1/job/web/evaluations").await.json().as_array().unwrap().len(), 1);
    let body = Body::from(json!({"Job": job_json("web")}).to_string());
    let mut odd = request(Method::POST, "/v1/jobs", body);
    odd.headers_mut().insert("x-sojourn-request-id", "again".parse().unwrap());
    cluster.send(odd).await.refused(400, "invalid request id: \"again\" is not a UUID");
}

#[tokio::test]
async fn a_request_id_stands_for_one_request() {
    let cluster = Cluster::start().await;
    cluster.job("old").await;
    let named = |id: u128, method: Method, path: &str, body: serde_json::Value| {
        let mut request = request(method, path, Body::from(body.to_string()));
        let id = base::Uuid::from(id).to_string();
        request.headers_mut().insert("x-sojourn-request-id", id.parse().unwrap());
        request
    };
    let (register, web) = (|job: &str| json!({"Job": job_json(job)}), "/v1/jobs");
    let first = cluster.send(named(1, Method::POST, web, register("web"))).await.json();
    // The same again, whatever happened since.
    let mut changed = register("web");
    changed["Job"]["Meta"] = json!({"k": "v"});
    cluster.put(web, &changed).await;
    assert_eq!(cluster.send(named(1, Method::POST, web, register("web"))).await.json(), first);
    let reused = "request id 00000000-0000-0000-0000-000000000001 was used for another request already";
    for (method, path, body) in [
        (Method::POST, web, register("other")),
        (Method::PUT, web, register("web")),
        (Method::POST, "/v1/jobs?namespace=default", register("web")),
        (Method::DELETE, "/v1/job/old", serde_json::Value::Null),
    ] {
        cluster.send(named(1, method, path, body)).await.refused(409, reused);
    }
    assert_eq!(cluster.get("/v1/job/old").await.json()["Stop"], false);
    assert_eq!(cluster.get("/v1/job/other").await.status, 404);
    cluster.send(named(2, Method::DELETE, "/v1/job/old", serde_json::Value::Null)).await.json();
}

#[tokio::test]
async fn a_stopped_job_stays_until_it_is_purged() {
    let cluster = Cluster::start().await;
    cluster.job("web").await;
    let stopped = cluster.delete("/v1/job/web").await;
    assert_holds(&stopped.json(), &json!({"EvalCreateIndex": stopped.index(), "VolumeEvalID": ""}));
    assert_eq!(cluster.get("/v1/job/web").await.json()["Stop"], true);
    cluster.delete("/v1/job/web").await;
    let versions = cluster.get("/v1/job/web/versions").await.json()["Versions"].clone();
    let stops: Vec<_> = versions.as_array().unwrap().iter().map(|version| &version["Stop"]).collect();
    assert_eq!(stops, [true, true, false], "what was a stop stays one");
    cluster
        .delete("/v1/job/web?eval_priority=101")
        .await
        .refused(400, "eval priority must be between 1 and 100, but is 101");
    cluster
        .delete("/v1/job/web?purge=maybe")
        .await
        .refused(400, "\"maybe\" is not true or false, for `purge`");
    assert_eq!(cluster.delete("/v1/job/web?purge=true").await.status, 200);
    cluster.get("/v1/job/web").await.refused(404, "job not found");
    let unknown = cluster.delete("/v1/job/never").await.json();
    assert_holds(&unknown, &json!({"EvalID": "", "EvalCreateIndex": 0, "JobModifyIndex": 0}));
}

#[tokio::test]
async fn a_jobs_own_lists_hold_its_allocations_and_evaluations() {
    let cluster = Cluster::start().await;
    let node = cluster.node(1).await;
    let eval = cluster.job("web").await;
    let alloc = cluster.place(eval, "web", node, 7).await;
    let allocs = cluster.get("/v1/job/web/allocations").await;
    assert_holds(&allocs.json(), &json!([{"ID": alloc.to_string(), "JobID": "web", "TaskGroup": "web"}]));
    assert_eq!(allocs.index(), cluster.control.state().tables.allocs.0);
    let evals = cluster.get("/v1/job/web/evaluations").await.json();
    assert_holds(&evals, &json!([{"ID": eval.to_string(), "Status": "complete", "JobID": "web"}]));
    let summary = cluster.get("/v1/job/web/summary").await.json();
    assert_holds(&summary, &json!({"JobID": "web", "Summary": {"web": {"Starting": 1, "Failed": 0}}}));
    assert_eq!(cluster.get("/v1/job/web/deployment").await.json(), json!(null));
}

#[tokio::test]
async fn the_source_of_a_version_is_kept_with_it() {
    let cluster = Cluster::start().await;
    let ask = json!({"Job": job_json("web"), "Submission": {"Source": "job \"web\" {}", "Format": "hcl2"}});
    let index = cluster.put("/v1/jobs", &ask).await.json()["JobModifyIndex"].clone();
    let source = cluster.get("/v1/job/web/submission?version=0").await;
    let expected = json!({
        "Source": "job \"web\" {}", "Format": "hcl2", "JobID": "web", "Namespace": "default", "Version": 0,
        "JobModifyIndex": index, "VariableFlags": null, "Variables": "",
    });
    assert_eq!(source.json(), expected);
    assert_eq!(json!(source.index()), index);
    let unreadable = cluster.get("/v1/job/web/submission").await;
    unreadable.refused(400, "Unable to parse job submission version parameter");

    let huge = json!({"Job": job_json("big"), "Submission": {"Source": "x".repeat(1_000_001)}});
    let warned = cluster.put("/v1/jobs", &huge).await.json();
    assert!(warned["Warnings"].as_str().unwrap().contains("is not kept"), "{warned}");
    cluster.get("/v1/job/big/submission?version=0").await.refused(404, "job source not found");
}

#[tokio::test]
async fn a_job_file_is_parsed_without_being_registered() {
    let cluster = Cluster::start().await;
    let hcl = r#"
        variable "count" { type = number }
        job "web" { group "g" { count = var.count
          task "t" { driver = "raw_exec" } } }"#;
    let ask = json!({"JobHCL": hcl, "Variables": "count = 3", "Canonicalize": true});
    let job = cluster.put("/v1/jobs/parse", &ask).await.json();
    assert_holds(&job, &json!({"ID": "web", "Priority": 50, "TaskGroups": [{"Count": 3}]}));
    // Chance is the server's to give, its disk is not.
    let file = |meta: &str| json!({"JobHCL": format!("job \"a\" {{\n meta {{\n  k = {meta}\n }}\n}}")});
    let drawn = cluster.put("/v1/jobs/parse", &file("uuidv4()")).await.json();
    assert_eq!(drawn["Meta"]["k"].as_str().unwrap().len(), 36, "{drawn}");
    let read = cluster.put("/v1/jobs/parse", &file("file(\"/etc/hostname\")")).await;
    assert_eq!(read.status, 400, "{}", read.text());
    cluster.put("/v1/jobs/parse", &json!({"JobHCL": " "})).await.refused(400, "Job spec is empty");
    let wrong = cluster.put("/v1/jobs/parse", &json!({"JobHCL": "job {"})).await;
    assert_eq!(wrong.status, 400);
    assert!(wrong.text().starts_with("Failed to parse job: "), "{}", wrong.text());
    assert_eq!(cluster.get("/v1/jobs").await.json(), json!([]));
}

#[tokio::test]
async fn an_evaluation_can_be_asked_for() {
    let cluster = Cluster::start().await;
    cluster.job("web").await;
    let asked = cluster.put("/v1/job/web/evaluate", &json!({"JobID": "web"})).await;
    assert_eq!(asked.json()["EvalCreateIndex"], asked.index());
    let other = cluster.put("/v1/job/web/evaluate", &json!({"JobID": "api"})).await;
    other.refused(400, "JobID not same as job name");
    let force = json!({"JobID": "web", "EvalOptions": {"ForceReschedule": true}});
    assert!(cluster.put("/v1/job/web/evaluate", &force).await.json()["EvalID"].as_str().unwrap().len() == 36);
}

#[tokio::test]
async fn what_a_job_asks_for_in_vain_is_said_by_name() {
    let cluster = Cluster::start().await;
    let mut job = job_json("web");
    job["TaskGroups"][0]["Consul"] = json!({"Partition": "elsewhere"});
    let registered = cluster.put("/v1/jobs", &json!({"Job": job})).await.json();
    assert_eq!(
        registered["Warnings"],
        "1 warning:\n\n* group \"web\": consul: ignored, the job runs without it\n"
    );
    let mut kept = job_json("api");
    kept["TaskGroups"][0]["EphemeralDisk"] = json!({"Migrate": true, "Sticky": true, "SizeMB": 300});
    for job in [kept, job_json("plain")] {
        assert_eq!(cluster.put("/v1/jobs", &json!({"Job": job})).await.json()["Warnings"], "");
    }
}

#[tokio::test]
async fn what_is_sure_to_fail_is_refused() {
    let cluster = Cluster::start().await;
    let mut job = job_json("web");
    job["TaskGroups"][0]["Tasks"][0]["Artifacts"] = json!([{"GetterSource": "file:///etc/passwd"}]);
    let text = "artifact: the task would fail: files of the node itself are no artifacts";
    for (path, body) in [("/v1/jobs", json!({"Job": job})), ("/v1/job/web/plan", json!({"Job": job}))] {
        let refused = cluster.put(path, &body).await;
        assert_eq!(refused.status, 400, "{path}");
        assert!(refused.text().contains(text), "{path}: {}", refused.text());
    }
    let validated = cluster.put("/v1/validate/job", &json!({"Job": job})).await.json();
    assert!(validated["ValidationErrors"][0].as_str().unwrap().contains(text), "{validated}");

    let mut misspelt = job_json("api");
    misspelt["TaskGroups"][0]["Tasks"][0]["Driver"] = json!("rawexec");
    let refused = cluster.put("/v1/jobs", &json!({"Job": misspelt})).await;
    assert!(refused.text().contains("driver \"rawexec\": the task would fail"), "{}", refused.text());
    assert!(refused.text().contains("did you mean \"raw_exec\"?"), "{}", refused.text());

    let found = cluster.put("/v1/jobs/doctor", &json!({"Job": job})).await.json();
    assert_eq!(found["Findings"][0]["What"], "artifact");
    assert_eq!(found["Findings"][0]["Effect"], "fails");
    assert_eq!(found["Errors"], json!(null), "{found}");
    assert!(cluster.get("/v1/jobs").await.json().as_array().unwrap().is_empty(), "nothing was registered");
}

#[tokio::test]
async fn a_job_that_is_validated_is_told_that_its_pool_is_unknown() {
    let cluster = Cluster::start().await;
    let mut job = job_json("web");
    job["NodePool"] = json!("gpu");
    let found = cluster.put("/v1/validate/job", &json!({"Job": job})).await.json();
    assert_eq!(found["ValidationErrors"], json!(["job \"web\" is in nonexistent node pool \"gpu\""]));
}

#[tokio::test]
async fn a_duration_as_text_is_refused_by_the_name_of_its_field() {
    let cluster = Cluster::start().await;
    let mut job = job_json("web");
    job["TaskGroups"][0]["Tasks"][0]["KillTimeout"] = json!("5s");
    let refused = cluster.put("/v1/jobs", &json!({"Job": job})).await;
    let why =
        "Job.TaskGroups[0].Tasks[0].KillTimeout: expected a duration in whole nanoseconds, found a string";
    refused.refused(400, why);
}

#[tokio::test]
async fn a_plan_that_would_change_the_type_is_refused() {
    let cluster = Cluster::start().await;
    cluster.job("web").await;
    let mut job = job_json("web");
    job["Type"] = json!("batch");
    let refused = cluster.put("/v1/job/web/plan", &json!({"Job": job, "Diff": true})).await;
    assert_eq!(
        (refused.status.as_u16(), refused.text()),
        (400, "cannot update job type: stop and purge the job first")
    );
}

#[tokio::test]
async fn going_back_to_a_stopped_version_leaves_the_job_stopped() {
    let cluster = Cluster::start().await;
    cluster.job("web").await;
    assert_eq!(cluster.delete("/v1/job/web").await.status, 200);
    let mut changed = job_json("web");
    changed["Meta"] = json!({"v": "2"});
    assert_eq!(cluster.put("/v1/jobs", &json!({"Job": changed})).await.status, 200);
    let revert = |version: u64| json!({"JobID": "web", "JobVersion": version});
    assert_eq!(cluster.put("/v1/job/web/revert", &revert(1)).await.status, 200);
    let job = cluster.get("/v1/job/web").await.json();
    assert_holds(&job, &json!({"Version": 3, "Stop": true, "Meta": null}));
    assert_eq!(cluster.put("/v1/job/web/revert", &revert(0)).await.status, 200);
    assert_holds(&cluster.get("/v1/job/web").await.json(), &json!({"Version": 4, "Stop": false}));
    cluster.put("/v1/job/web/revert", &revert(3)).await;
    assert_holds(&cluster.get("/v1/job/web").await.json(), &json!({"Version": 5, "Stop": true}));
}

#[tokio::test]
async fn older_versions_keep_the_status_they_had() {
    let cluster = Cluster::start().await;
    cluster.job("web").await;
    cluster.delete("/v1/job/web?purge=false").await;
    let versions = cluster.get("/v1/job/web/versions").await.json();
    let before = versions["Versions"][1]["Status"].clone();
    let evals = cluster.get("/v1/job/web/evaluations").await.json();
    for eval in evals.as_array().unwrap().iter().filter(|eval| eval["Status"] == "pending") {
        cluster.settle(eval["ID"].as_str().unwrap().parse().unwrap()).await;
    }
    let versions = cluster.get("/v1/job/web/versions").await.json();
    assert_eq!(versions["Versions"][0]["Status"], "dead");
    assert_eq!(versions["Versions"][1]["Status"], before);
    assert_ne!(before, "dead");
}

#[tokio::test]
async fn services_of_nomads_own_ask_for_nodes_that_register_them_where_there_are_some() {
    let cluster = Cluster::start().await;
    cluster.node(1).await;
    let mut job = job_json("web");
    job["TaskGroups"][0]["Services"] = json!([{"Name": "www", "Provider": "nomad"}]);
    assert_eq!(cluster.put("/v1/jobs", &json!({"Job": job})).await.status, 200);
    let group = |job: serde_json::Value| job["TaskGroups"][0]["Constraints"].clone();
    let implied = json!({"LTarget": "${attr.nomad.service_discovery}", "Operand": "=", "RTarget": "true"});
    assert_eq!(group(cluster.get("/v1/job/web").await.json()), json!(null), "no node could run it");
    let mut document = crate::support::node_document(crate::support::node_id(2), 2);
    document.attributes.insert("nomad.service_discovery".to_string(), "true".to_string());
    cluster.submit(model::Command::RegisterNode { document: Box::new(document) }).await;
    assert_eq!(cluster.put("/v1/jobs", &json!({"Job": job})).await.status, 200);
    assert_eq!(group(cluster.get("/v1/job/web").await.json()), json!([implied]));
}
