//! Routes of the HTTP API as calls of the node RPC, as agents of another make use them.

use std::collections::BTreeMap;

use api::{JobListStub, JobPlanResponse, JobRegisterResponse, NodeListStub};
use model::document::{Evaluation, Job};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use wire::{RemoteErrorKind, RpcError};

use crate::identities::{TestNode, server};

type Fields = BTreeMap<String, Value>;

fn fields(value: Value) -> Fields {
    serde_json::from_value(value).unwrap()
}

/// A reply with one field besides what every reply says.
#[derive(Deserialize)]
struct Reply<T> {
    #[serde(alias = "Jobs", alias = "Job", alias = "Nodes", alias = "Evaluations")]
    value: T,
    #[serde(rename = "Index")]
    index: u64,
    #[serde(rename = "KnownLeader")]
    known_leader: bool,
}

async fn call<A: DeserializeOwned>(node: &TestNode, method: &str, request: Value) -> Result<A, RpcError> {
    node.call(method, &fields(request)).await
}

fn job() -> Value {
    json!({
        "ID": "a/b", "Name": "a/b", "Type": "batch", "Datacenters": ["dc1"], "Meta": {"k": "v"},
        "TaskGroups": [{"Name": "g", "Tasks": [{"Name": "t", "Driver": "raw_exec", "Config": {"command": "x"}}]}],
    })
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Registration {
    job: Job,
    enforce_index: bool,
    job_modify_index: u64,
    namespace: String,
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_by_a_call_is_read_by_others() {
    let home = tempfile::tempdir().unwrap();
    let server = server(home.path(), keyring::Enforcement::None).await;
    let node = TestNode::new(&server, 1, "default").await;
    node.register("").await.unwrap();
    node.heartbeat(&node.document.secret_id, false).await.unwrap();
    let registration = |enforce| Registration {
        job: serde_json::from_value(job()).unwrap(),
        enforce_index: enforce,
        job_modify_index: 7_777,
        namespace: "default".to_string(),
    };
    let conflict = node.call::<_, IgnoredAny>("Job.Register", &registration(true)).await;
    let Err(RpcError::Remote(error)) = conflict else { panic!("the index is not the job's") };
    assert_eq!(error.kind, RemoteErrorKind::Status(409), "{error}");
    let registered: JobRegisterResponse = node.call("Job.Register", &registration(false)).await.unwrap();
    assert!(registered.job_modify_index > 0 && !registered.eval_id.is_empty());

    let list: Reply<Vec<JobListStub>> = call(&node, "Job.List", json!({"Prefix": "a"})).await.unwrap();
    assert_eq!((list.value[0].id.as_str(), list.known_leader), ("a/b", true));
    assert!(list.index >= registered.job_modify_index);
    let none: Reply<Vec<JobListStub>> = call(&node, "Job.List", json!({"Prefix": "z"})).await.unwrap();
    assert!(none.value.is_empty());
    // An id with a slash.
    let found: Reply<Option<Job>> = call(&node, "Job.GetJob", json!({"JobID": "a/b"})).await.unwrap();
    assert_eq!(found.value.unwrap().meta["k"], "v");
    let missing: Reply<Option<Job>> = call(&node, "Job.GetJob", json!({"JobID": "none"})).await.unwrap();
    assert_eq!(missing.value, None, "what is not there is no error");
    let elsewhere: Reply<Option<Job>> =
        call(&node, "Job.GetJob", json!({"JobID": "a/b", "Namespace": "other"})).await.unwrap();
    assert_eq!(elsewhere.value, None);
    let evals: Reply<Vec<Evaluation>> =
        call(&node, "Job.Evaluations", json!({"JobID": "a/b"})).await.unwrap();
    assert_eq!(evals.value[0].id, registered.eval_id);
    let nodes: Reply<Vec<NodeListStub>> =
        call(&node, "Node.List", json!({"MinQueryIndex": 1})).await.unwrap();
    assert_eq!(nodes.value[0].id, node.document.id);
    let plan: JobPlanResponse = node.call("Job.Plan", &registration(false)).await.unwrap();
    assert!(plan.annotations.is_some());
    let refused = call::<IgnoredAny>(&node, "Job.Revert", json!({"JobID": "a/b", "JobVersion": 9})).await;
    assert!(refused.is_err());
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_has_its_route_and_what_is_none_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let server = server(home.path(), keyring::Enforcement::None).await;
    let node = TestNode::new(&server, 1, "default").await;
    node.register("").await.unwrap();
    let own = json!({"NodeID": node.document.id, "Name": "default", "ID": "x", "JobID": "x", "EvalID": "x",
        "DeploymentID": "5d16e7fe-8a2e-4b44-9c0a-3c7ab13b9f01", "ServiceName": "x", "Path": "x", "Prefix": "x"});
    let calls = [
        "Job.List",
        "Job.GetJob",
        "Job.GetJobVersions",
        "Job.GetJobSubmission",
        "Job.Summary",
        "Job.Allocations",
        "Job.Evaluations",
        "Job.Deployments",
        "Job.LatestDeployment",
        "Job.ScaleStatus",
        "Alloc.List",
        "Node.List",
        "Node.GetAllocs",
        "Eval.List",
        "Eval.Count",
        "Eval.GetEval",
        "Eval.Allocations",
        "Deployment.List",
        "Deployment.GetDeployment",
        "NodePool.List",
        "NodePool.GetNodePool",
        "NodePool.ListJobs",
        "NodePool.ListNodes",
        "Namespace.ListNamespaces",
        "Namespace.GetNamespace",
        "Scaling.ListPolicies",
        "Search.PrefixSearch",
        "ServiceRegistration.List",
        "ServiceRegistration.GetService",
        "Variables.List",
        "Variables.Read",
        "ACL.ListPolicies",
        "ACL.GetPolicy",
        "ACL.ListRoles",
        "ACL.GetRoleByID",
        "ACL.ListAuthMethods",
        "ACL.ListBindingRules",
        "ACL.GetBindingRule",
        "ACL.OIDCAuthURL",
        "Status.Members",
        "Operator.RaftGetConfiguration",
        "Operator.SchedulerGetConfiguration",
        "Operator.AutopilotGetConfiguration",
        "System.GarbageCollect",
        "System.ReconcileJobSummaries",
    ];
    for method in calls {
        let answer = call::<IgnoredAny>(&node, method, own.clone()).await;
        let coded = |error: &RpcError| matches!(error, RpcError::Remote(error) if matches!(error.kind, RemoteErrorKind::Status(400 | 404)));
        assert!(
            answer.as_ref().is_ok_and(|_| true) || answer.as_ref().is_err_and(coded),
            "{method}: {:?}",
            answer.err()
        );
    }
    let regions: Vec<String> = call(&node, "Region.List", json!({})).await.unwrap();
    assert_eq!(regions, ["global"]);
    let unknown = call::<IgnoredAny>(&node, "Job.Juggle", json!({})).await.unwrap_err();
    assert_eq!(unknown.to_string(), "rpc: can't find method Job.Juggle");

    let who = async |token: &str| {
        let answer =
            call::<wire::messages::WhoAmIResponse>(&node, "ACL.WhoAmI", json!({"AuthToken": token})).await;
        answer.unwrap().identity
    };
    assert_eq!(who(&node.document.secret_id).await.client_id, node.document.id);
    assert_eq!(who("").await.acl_token.unwrap().accessor_id, "anonymous");
    // What an agent asks next; without access control everybody may know everything.
    let resolve = json!({"SecretID": "8f1d8f9c-1c2e-4b1a-9a51-0d1d3f6d5f11"});
    let resolved: wire::messages::ResolveTokenResponse =
        call(&node, "ACL.ResolveToken", resolve).await.unwrap();
    assert_eq!(resolved.token, None);
    let names = json!({"Names": ["none"], "AuthToken": ""});
    let policies: wire::messages::PolicySetResponse = call(&node, "ACL.GetPolicies", names).await.unwrap();
    let claims: wire::messages::PolicySetResponse =
        call(&node, "ACL.GetClaimPolicies", json!({})).await.unwrap();
    assert!(policies.policies.is_empty() && claims.policies.is_empty());
    let ids = json!({"ACLRoleIDs": ["none"]});
    let roles: wire::messages::RolesByIdResponse = call(&node, "ACL.GetRolesByID", ids).await.unwrap();
    assert!(roles.roles.is_empty());
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_registers_services_of_its_own_allocations_alone() {
    let home = tempfile::tempdir().unwrap();
    let server = server(home.path(), keyring::Enforcement::None).await;
    let (node, other) =
        (TestNode::new(&server, 1, "default").await, TestNode::new(&server, 2, "default").await);
    node.register("").await.unwrap();
    other.register("").await.unwrap();
    let alloc = "8f1d8f9c-1c2e-4b1a-9a51-0d1d3f6d5f11";
    let id = format!("_nomad-task-{alloc}-group-web-web-http");
    let upsert = async |node_id: &str, token: &str| {
        let service =
            json!({"ID": id, "ServiceName": "web", "AllocID": alloc, "NodeID": node_id, "Port": 80});
        let request = json!({"Services": [service], "AuthToken": token});
        call::<IgnoredAny>(&node, "ServiceRegistration.Upsert", request).await.unwrap_err().to_string()
    };
    let (own, secret) = (node.document.id.as_str(), node.document.secret_id.as_str());
    assert!(upsert(&other.document.id, secret).await.contains("Permission denied"));
    assert!(upsert(own, "").await.contains("Permission denied"));
    assert!(upsert(own, secret).await.contains("alloc not found"));
    for token in [secret, ""] {
        let request = json!({"ID": id, "AuthToken": token});
        let removed = call::<IgnoredAny>(&node, "ServiceRegistration.DeleteByID", request).await;
        assert!(removed.unwrap_err().to_string().contains("service registration not found"), "{token}");
    }
    let all = json!({"NodeID": own, "AuthToken": secret});
    call::<IgnoredAny>(&node, "ServiceRegistration.DeleteByNodeID", all).await.unwrap();
    server.shutdown().await;
}
