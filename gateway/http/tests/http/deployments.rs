use base::Uuid;
use model::command::{EvalEnd, Plan, Settlement};
use model::document::AllocDeploymentStatus;
use model::document::Allocation;
use model::event::{AllocsPlaced, DeploymentCreated, DeploymentGoal, EvalOutcome};
use model::{Actor, AllocId, Command, DeploymentId, DeploymentStatus, Doc, JobKey, NodeId, Template};
use serde_json::json;

use crate::support::{Cluster, assert_holds};

const DEPLOYMENT: DeploymentId = DeploymentId(Uuid([0xde; 16]));
const ALLOC: AllocId = AllocId(Uuid([0xa1; 16]));

fn goal() -> DeploymentGoal {
    DeploymentGoal { group: "web".into(), desired_canaries: 1, desired_total: 2, ..DeploymentGoal::default() }
}

/// A job whose deployment has placed one canary.
async fn deploying(cluster: &Cluster) -> NodeId {
    let node = cluster.node(1).await;
    let eval = cluster.job("web").await;
    let key = JobKey::new("default", "web");
    let placed = AllocsPlaced {
        eval,
        key: key.clone(),
        version: 0,
        group: "web".into(),
        template: Doc::of(&Template::default()),
        metrics: Doc::default(),
        ids: vec![ALLOC],
        nodes: vec![node],
        names: vec![0],
        previous: vec![],
        deployment: Some(DEPLOYMENT),
        canary: true,
        ports: vec![],
        given: Vec::new(),
    };
    let created = DeploymentCreated {
        deployment: DEPLOYMENT,
        key,
        version: 0,
        priority: 50,
        is_multiregion: false,
        status: DeploymentStatus::Running,
        description: "Deployment is running but requires manual promotion".into(),
        groups: vec![goal()],
    };
    let snapshot = cluster.control.state().index;
    let plan = Plan { snapshot, deployment: Some(created), placed: vec![placed], ..Plan::default() };
    let outcome = EvalOutcome { deployment: Some(DEPLOYMENT), ..EvalOutcome::default() };
    let end = EvalEnd::complete(outcome);
    cluster.submit(Command::SettleEval(Box::new(Settlement { eval, plan, end: Some(end) }))).await;
    let read = cluster.get(&format!("/v1/evaluation/{eval}")).await.json();
    assert_eq!(read["DeploymentID"], DEPLOYMENT.to_string());
    node
}

async fn judge(cluster: &Cluster, node: NodeId, healthy: bool) {
    let update = Allocation {
        id: ALLOC.to_string(),
        client_status: "running".into(),
        deployment_status: Some(AllocDeploymentStatus { healthy: Some(healthy), ..Default::default() }),
        ..Allocation::default()
    };
    let command = Command::UpdateAllocs { node, updates: vec![update] };
    let request = model::Request::unnamed(Actor::Node(node), command);
    cluster.control.submit(request).await.unwrap();
}

#[tokio::test]
async fn deployments_are_listed_and_read() {
    let cluster = Cluster::start().await;
    assert_eq!(cluster.get("/v1/deployments").await.json(), json!([]));
    deploying(&cluster).await;
    let shown = json!({
        "ID": DEPLOYMENT.to_string(), "JobID": "web", "Namespace": "default", "JobVersion": 0, "Status": "running",
        "StatusDescription": "Deployment is running but requires manual promotion", "EvalPriority": 50,
        "TaskGroups": {"web": {
            "DesiredCanaries": 1, "DesiredTotal": 2, "PlacedAllocs": 1, "HealthyAllocs": 0, "Promoted": false,
            "PlacedCanaries": [ALLOC.to_string()], "RequireProgressBy": "0001-01-01T00:00:00Z"
        }}
    });
    let list = cluster.get("/v1/deployments").await;
    assert_holds(&list.json(), &json!([shown]));
    assert_eq!(list.index(), cluster.control.state().tables.deployments.0);
    assert_holds(&cluster.get("/v1/deployments?prefix=dede").await.json(), &json!([shown]));
    assert_eq!(cluster.get("/v1/deployments?prefix=aa").await.json(), json!([]));
    assert_holds(&cluster.get(&format!("/v1/deployment/{DEPLOYMENT}")).await.json(), &shown);
    assert_holds(&cluster.get("/v1/job/web/deployment").await.json(), &shown);
    assert_holds(&cluster.get("/v1/job/web/deployments").await.json(), &json!([shown]));
    let allocs = cluster.get(&format!("/v1/deployment/allocations/{DEPLOYMENT}")).await.json();
    assert_holds(
        &allocs,
        &json!([{"ID": ALLOC.to_string(), "DeploymentStatus": {"Canary": true, "Healthy": null}}]),
    );
    let alloc = cluster.get(&format!("/v1/allocation/{ALLOC}")).await.json();
    assert_eq!(alloc["DeploymentID"], DEPLOYMENT.to_string());
    cluster.get(&format!("/v1/deployment/{ALLOC}")).await.refused(404, "deployment not found");
    let found = cluster.put("/v1/search", &json!({"Prefix": "dede", "Context": "deployment"})).await.json();
    assert_holds(&found, &json!({"Matches": {"deployment": [DEPLOYMENT.to_string()]}}));
}

#[tokio::test]
async fn deployments_are_promoted_paused_and_failed() {
    let cluster = Cluster::start().await;
    let node = deploying(&cluster).await;
    let id = DEPLOYMENT.to_string();
    let path = |verb: &str| format!("/v1/deployment/{verb}/{id}");
    let body = |more: serde_json::Value| {
        let mut body = json!({"DeploymentID": id});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    cluster.put(&path("promote"), &json!({"All": true})).await.refused(400, "DeploymentID must be specified");
    let other = json!({"DeploymentID": ALLOC.to_string(), "All": true});
    cluster.put(&path("promote"), &other).await.refused(400, "Deployment ID does not match");
    let unproven = cluster.put(&path("promote"), &body(json!({"All": true}))).await;
    unproven.refused(500, "Task group \"web\" has 0/1 healthy allocations");
    judge(&cluster, node, true).await;
    let promoted = cluster.put(&path("promote"), &body(json!({"Groups": ["web"]}))).await.json();
    let index = cluster.get(&format!("/v1/deployment/{id}")).await.json()["ModifyIndex"].clone();
    assert_holds(&promoted, &json!({"DeploymentModifyIndex": index, "RevertedJobVersion": null}));
    assert!(promoted["EvalCreateIndex"].as_u64().unwrap() > 0);
    cluster.put(&path("promote"), &body(json!({"All": true}))).await.refused(500, "no canaries to promote");

    cluster.put(&path("pause"), &body(json!({"Pause": true}))).await.json();
    let status = async || cluster.get("/v1/job/web/deployment").await.json()["Status"].clone();
    assert_eq!(status().await, "paused");
    cluster.put(&path("pause"), &body(json!({"Pause": false}))).await.json();
    assert_eq!(status().await, "running");
    let nobody = cluster.put(&path("allocation-health"), &body(json!({}))).await;
    nobody.refused(500, "must specify at least one healthy/unhealthy allocation ID");
    let no_id = cluster.put(&path("allocation-health"), &body(json!({"HealthyAllocationIDs": ["x"]}))).await;
    no_id.refused(400, "HealthyAllocationIDs: expected UUIDs, found \"x\"");
    let healthy = body(json!({"HealthyAllocationIDs": [ALLOC.to_string()]}));
    let set = cluster.put(&path("allocation-health"), &healthy).await.json();
    assert!(set["EvalID"].as_str().unwrap().len() == 36);
    cluster.put(&path("fail"), &json!({})).await.json();
    assert_eq!(status().await, "failed");
    cluster.put(&path("fail"), &json!({})).await.refused(500, "can't fail terminal deployment");
    let unblock = cluster.put(&path("unblock"), &json!({"DeploymentID": DEPLOYMENT.to_string()})).await;
    unblock.refused(500, "can't unblock a deployment of a job in one region");
    let unknown = "3a8d3ab6-7f1f-4f3a-8d0e-0f2ad3a1b2c3";
    let none = json!({"DeploymentID": unknown});
    let got = cluster.put(&format!("/v1/deployment/unblock/{unknown}"), &none).await;
    got.refused(500, "deployment not found");
    cluster.put(&path("unblock"), &json!({})).await.refused(400, "DeploymentID must be specified");
}

/// Nobody asks: the leader's watcher does.
#[tokio::test]
async fn the_leader_fails_a_deployment_by_itself() {
    let cluster = Cluster::start().await;
    let node = deploying(&cluster).await;
    judge(&cluster, node, false).await;
    let mut published = cluster.control.watch();
    let failed = |cluster: &Cluster| {
        cluster.control.state().deployments.lookup(DEPLOYMENT).unwrap().status == DeploymentStatus::Failed
    };
    while !failed(&cluster) {
        published.changed().await.unwrap();
    }
    let read = cluster.get(&format!("/v1/deployment/{DEPLOYMENT}")).await.json();
    assert_eq!(read["StatusDescription"], "Failed due to unhealthy allocations");
}

#[tokio::test]
async fn a_job_goes_back_to_an_earlier_version() {
    let cluster = Cluster::start().await;
    deploying(&cluster).await;
    let stable = json!({"JobID": "web", "JobVersion": 0, "Stable": true});
    cluster.put("/v1/job/web/stable", &stable).await.json();
    assert_eq!(cluster.get("/v1/job/web").await.json()["Stable"], true);
    let to = |version: u64| json!({"JobID": "web", "JobVersion": version});
    cluster.put("/v1/job/web/revert", &to(0)).await.refused(500, "can't revert to current version: 0");
    cluster.put("/v1/job/other/revert", &to(0)).await.refused(400, "Job ID does not match");
    cluster.delete("/v1/job/web").await.json();
    let reverted = cluster.put("/v1/job/web/revert", &to(0)).await.json();
    assert!(reverted["EvalID"].as_str().unwrap().len() == 36);
    assert_holds(
        &cluster.get("/v1/job/web").await.json(),
        &json!({"Version": 2, "Stop": false, "Stable": false}),
    );
}

#[tokio::test]
async fn a_deployment_is_explained_with_what_it_waits_for() {
    let cluster = Cluster::start().await;
    let node = deploying(&cluster).await;
    let path = format!("/v1/deployment/{DEPLOYMENT}/explain");
    let waits = |what: &str| json!({"WaitsFor": [{"What": format!("deployment {DEPLOYMENT}: {what}")}]});
    let why = cluster.get(&path).await.json();
    assert_holds(&why, &waits("0 of 1 canaries of \"web\" are healthy"));
    let group = json!({"DesiredCanaries": 1, "DesiredTotal": 2, "Promoted": false, "AutoPromote": false});
    assert_holds(&why, &json!({"JobID": "web", "Status": "running", "Groups": {"web": group}}));
    judge(&cluster, node, true).await;
    assert_holds(&cluster.get(&path).await.json(), &waits("somebody to promote \"web\""));
    let job = cluster.get("/v1/job/web/explain").await.json();
    assert_holds(
        &job,
        &json!({"Deployment": {"ID": DEPLOYMENT.to_string(), "Groups": {"web": {"HealthyCanaries": 1}}}}),
    );
    let body = json!({"DeploymentID": DEPLOYMENT.to_string(), "Pause": true});
    cluster.put(&format!("/v1/deployment/pause/{DEPLOYMENT}"), &body).await;
    assert_holds(&cluster.get(&path).await.json(), &waits("to be resumed, it is paused"));
    cluster.put(&format!("/v1/deployment/fail/{DEPLOYMENT}"), &json!({})).await;
    let why = cluster.get(&path).await.json();
    assert_holds(&why, &json!({"Status": "failed", "StatusDescription": "Deployment marked as failed"}));
    assert!(why["WaitsFor"].as_array().is_none_or(Vec::is_empty), "{why}");
    cluster.get("/v1/deployment/none/explain").await.refused(404, "deployment not found");
}
