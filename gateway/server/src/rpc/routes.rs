//! Calls that are routes of the HTTP API: Nomad's agents turn the requests of their own HTTP API into them.
//!
//! One table says which request each call is and how the answer comes back. To add a route, add a line. Both forms have
//! the same types, so a body or an answer is read in the one form and written in the other; times and bytes differ.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;

use api::{
    ACLAuthMethodListStub, ACLBindingRuleListStub, ACLOIDCAuthURLRequest, ACLOIDCAuthURLResponse,
    ACLPolicyListStub, AutopilotConfiguration, DeploymentAllocHealthRequest, DeploymentFailRequest,
    DeploymentPauseRequest, DeploymentPromoteRequest, DeploymentUpdateResponse, EvalCountResponse,
    FuzzySearchRequest, FuzzySearchResponse, HostDataResponse, JobDeregisterResponse, JobDispatchRequest,
    JobDispatchResponse, JobEvaluateRequest, JobListStub, JobPlanRequest, JobPlanResponse,
    JobRegisterRequest, JobRegisterResponse, JobRevertRequest, JobScaleStatusResponse, JobStabilityRequest,
    JobStabilityResponse, JobSummary, JobValidateRequest, JobValidateResponse, JobVersionsResponse,
    NodeListStub, NodePurgeResponse, PeriodicForceResponse, RaftConfiguration, ScalingPolicyListStub,
    ScalingRequest, SchedulerConfigurationResponse, SearchRequest, SearchResponse, ServerMembers,
    ServiceRegistration, ServiceRegistrationListStub, Variable, VariableMetadata,
};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use model::document::{
    ACLBindingRule, ACLPolicy, ACLRole, Allocation, AllocationListStub, Deployment, Evaluation, Job,
    JobSubmission, Namespace, NodePool, ScalingPolicy,
};
use msgpack::Raw;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::{DeserializeOwned, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use tower::ServiceExt;
use wire::messages::{QueryMeta, QueryOptions};
use wire::{CallerAddress, RemoteError, RemoteErrorKind};

type Recode = fn(&[u8]) -> Result<Vec<u8>, String>;

/// A call, as the request it is.
struct Route {
    call: &'static str,
    method: &'static str,
    /// Fields of the call stand in braces.
    path: &'static str,
    /// Makes the body out of the call.
    body: Option<Recode>,
    reply: Reply,
}

/// Where the answer stands in the reply.
enum Reply {
    /// In this field.
    Field(&'static str, Recode),
    /// In this field; what is not there is nil, and no error.
    Found(&'static str, Recode),
    /// Its fields are those of the reply.
    Fields(Recode),
    /// It is the whole reply.
    Whole(Recode),
    /// There is none but the index.
    Nothing,
}

fn to_msgpack<T: DeserializeOwned + Serialize>(json: &[u8]) -> Result<Vec<u8>, String> {
    let value: T = serde_json::from_slice(json).map_err(|error| error.to_string())?;
    msgpack::to_vec(&value).map_err(|error| error.to_string())
}

fn to_json<T: DeserializeOwned + Serialize>(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let value: T = msgpack::from_slice(bytes).map_err(|error| error.to_string())?;
    serde_json::to_vec(&value).map_err(|error| error.to_string())
}

const fn get(call: &'static str, path: &'static str, reply: Reply) -> Route {
    Route { call, method: "GET", path, body: None, reply }
}

const fn put(call: &'static str, path: &'static str, body: Option<Recode>, reply: Reply) -> Route {
    Route { call, method: "PUT", path, body, reply }
}

const fn delete(call: &'static str, path: &'static str, reply: Reply) -> Route {
    Route { call, method: "DELETE", path, body: None, reply }
}

use Reply::{Field, Fields, Found, Nothing, Whole};

const ALLOCATIONS: Reply = Field("Allocations", to_msgpack::<Vec<AllocationListStub>>);
const DEPLOYMENT_CHANGED: Reply = Fields(to_msgpack::<DeploymentUpdateResponse>);
const REGISTERED: Reply = Fields(to_msgpack::<JobRegisterResponse>);

#[rustfmt::skip]
const ROUTES: &[Route] = &[
    get("Job.List", "/v1/jobs?meta={Fields.Meta}", Field("Jobs", to_msgpack::<Vec<JobListStub>>)),
    get("Job.GetJob", "/v1/job/{JobID}", Found("Job", to_msgpack::<Job>)),
    get("Job.GetJobVersions", "/v1/job/{JobID}/versions?diffs={Diffs}&diff_version={DiffVersion}&diff_tag={DiffTagName}",
        Fields(to_msgpack::<JobVersionsResponse>)),
    get("Job.GetJobSubmission", "/v1/job/{JobID}/submission?version={Version}", Found("Submission", to_msgpack::<JobSubmission>)),
    get("Job.Summary", "/v1/job/{JobID}/summary", Found("JobSummary", to_msgpack::<JobSummary>)),
    get("Job.Allocations", "/v1/job/{JobID}/allocations?all={All}", ALLOCATIONS),
    get("Job.Evaluations", "/v1/job/{JobID}/evaluations", Field("Evaluations", to_msgpack::<Vec<Evaluation>>)),
    get("Job.Deployments", "/v1/job/{JobID}/deployments?all={All}", Field("Deployments", to_msgpack::<Vec<Deployment>>)),
    get("Job.GetServiceRegistrations", "/v1/job/{JobID}/services", Field("Services", to_msgpack::<Vec<ServiceRegistration>>)),
    get("Job.LatestDeployment", "/v1/job/{JobID}/deployment", Found("Deployment", to_msgpack::<Option<Deployment>>)),
    get("Job.ScaleStatus", "/v1/job/{JobID}/scale", Found("JobScaleStatus", to_msgpack::<JobScaleStatusResponse>)),
    put("Job.Register", "/v1/jobs", Some(to_json::<JobRegisterRequest>), REGISTERED),
    delete("Job.Deregister", "/v1/job/{JobID}?purge={Purge}&eval_priority={EvalPriority}&no_shutdown_delay={NoShutdownDelay}",
        Fields(to_msgpack::<JobDeregisterResponse>)),
    put("Job.Evaluate", "/v1/job/{JobID}/evaluate", Some(to_json::<JobEvaluateRequest>), REGISTERED),
    put("Job.Plan", "/v1/job/{Job.ID}/plan", Some(to_json::<JobPlanRequest>), Fields(to_msgpack::<JobPlanResponse>)),
    put("Job.Validate", "/v1/validate/job", Some(to_json::<JobValidateRequest>), Fields(to_msgpack::<JobValidateResponse>)),
    put("Job.Revert", "/v1/job/{JobID}/revert", Some(to_json::<JobRevertRequest>), REGISTERED),
    put("Job.Stable", "/v1/job/{JobID}/stable", Some(to_json::<JobStabilityRequest>), Fields(to_msgpack::<JobStabilityResponse>)),
    put("Job.Dispatch", "/v1/job/{JobID}/dispatch", Some(to_json::<JobDispatchRequest>), Fields(to_msgpack::<JobDispatchResponse>)),
    put("Job.Scale", "/v1/job/{JobID}/scale", Some(to_json::<ScalingRequest>), REGISTERED),
    put("Periodic.Force", "/v1/job/{JobID}/periodic/force", None, Fields(to_msgpack::<PeriodicForceResponse>)),

    get("Alloc.List", "/v1/allocations?resources={Fields.Resources}&task_states={Fields.TaskStates}", ALLOCATIONS),
    put("Alloc.Stop", "/v1/allocation/{AllocID}/stop?no_shutdown_delay={NoShutdownDelay}", None,
        Fields(to_msgpack::<api::AllocStopResponse>)),
    get("Node.List", "/v1/nodes?resources={Fields.Resources}&os={Fields.OS}", Field("Nodes", to_msgpack::<Vec<NodeListStub>>)),
    get("Node.GetAllocs", "/v1/node/{NodeID}/allocations", Field("Allocs", to_msgpack::<Vec<Allocation>>)),
    put("Node.Deregister", "/v1/node/{NodeID}/purge", None, Fields(to_msgpack::<NodePurgeResponse>)),
    get("Eval.List", "/v1/evaluations?status={FilterEvalStatus}&job={FilterJobID}", Field("Evaluations", to_msgpack::<Vec<Evaluation>>)),
    get("Eval.Count", "/v1/evaluations/count", Fields(to_msgpack::<EvalCountResponse>)),
    get("Eval.GetEval", "/v1/evaluation/{EvalID}?related={IncludeRelated}", Found("Eval", to_msgpack::<Evaluation>)),
    get("Eval.Allocations", "/v1/evaluation/{EvalID}/allocations", ALLOCATIONS),

    get("Deployment.List", "/v1/deployments", Field("Deployments", to_msgpack::<Vec<Deployment>>)),
    get("Deployment.GetDeployment", "/v1/deployment/{DeploymentID}", Found("Deployment", to_msgpack::<Deployment>)),
    get("Deployment.Allocations", "/v1/deployment/allocations/{DeploymentID}", ALLOCATIONS),
    put("Deployment.Promote", "/v1/deployment/promote/{DeploymentID}", Some(to_json::<DeploymentPromoteRequest>), DEPLOYMENT_CHANGED),
    put("Deployment.Fail", "/v1/deployment/fail/{DeploymentID}", Some(to_json::<DeploymentFailRequest>), DEPLOYMENT_CHANGED),
    put("Deployment.Pause", "/v1/deployment/pause/{DeploymentID}", Some(to_json::<DeploymentPauseRequest>), DEPLOYMENT_CHANGED),
    put("Deployment.SetAllocHealth", "/v1/deployment/allocation-health/{DeploymentID}",
        Some(to_json::<DeploymentAllocHealthRequest>), DEPLOYMENT_CHANGED),

    get("NodePool.List", "/v1/node/pools", Field("NodePools", to_msgpack::<Vec<NodePool>>)),
    get("NodePool.GetNodePool", "/v1/node/pool/{Name}", Found("NodePool", to_msgpack::<NodePool>)),
    get("NodePool.ListJobs", "/v1/node/pool/{Name}/jobs", Field("Jobs", to_msgpack::<Vec<JobListStub>>)),
    get("NodePool.ListNodes", "/v1/node/pool/{Name}/nodes", Field("Nodes", to_msgpack::<Vec<NodeListStub>>)),
    get("Namespace.ListNamespaces", "/v1/namespaces", Field("Namespaces", to_msgpack::<Vec<Namespace>>)),
    get("Namespace.GetNamespace", "/v1/namespace/{Name}", Found("Namespace", to_msgpack::<Namespace>)),
    get("Scaling.ListPolicies", "/v1/scaling/policies?job={Job}&type={Type}", Field("Policies", to_msgpack::<Vec<ScalingPolicyListStub>>)),
    get("Scaling.GetPolicy", "/v1/scaling/policy/{ID}", Found("Policy", to_msgpack::<ScalingPolicy>)),
    put("Search.PrefixSearch", "/v1/search", Some(to_json::<SearchRequest>), Fields(to_msgpack::<SearchResponse>)),
    put("Search.FuzzySearch", "/v1/search/fuzzy", Some(to_json::<FuzzySearchRequest>), Fields(to_msgpack::<FuzzySearchResponse>)),
    get("ServiceRegistration.List", "/v1/services", Field("Services", to_msgpack::<Vec<ServiceRegistrationListStub>>)),
    get("ServiceRegistration.GetService", "/v1/service/{ServiceName}?choose={Choose}", Field("Services", to_msgpack::<Vec<ServiceRegistration>>)),
    delete("ServiceRegistration.DeleteByID", "/v1/service/*/{ID}", Nothing),
    get("Variables.List", "/v1/vars", Field("Data", to_msgpack::<Vec<VariableMetadata>>)),
    get("Variables.Read", "/v1/var/{Path}", Found("Data", to_msgpack::<Variable>)),

    get("ACL.ListPolicies", "/v1/acl/policies", Field("Policies", to_msgpack::<Vec<ACLPolicyListStub>>)),
    get("ACL.GetPolicy", "/v1/acl/policy/{Name}", Found("Policy", to_msgpack::<ACLPolicy>)),
    get("ACL.ListRoles", "/v1/acl/roles", Field("ACLRoles", to_msgpack::<Vec<ACLRole>>)),
    get("ACL.GetRoleByID", "/v1/acl/role/{RoleID}", Found("ACLRole", to_msgpack::<ACLRole>)),
    get("ACL.ListAuthMethods", "/v1/acl/auth-methods", Field("AuthMethods", to_msgpack::<Vec<ACLAuthMethodListStub>>)),
    get("ACL.ListBindingRules", "/v1/acl/binding-rules", Field("ACLBindingRules", to_msgpack::<Vec<ACLBindingRuleListStub>>)),
    get("ACL.GetBindingRule", "/v1/acl/binding-rule/{ACLBindingRuleID}", Found("ACLBindingRule", to_msgpack::<ACLBindingRule>)),
    put("ACL.OIDCAuthURL", "/v1/acl/oidc/auth-url", Some(to_json::<ACLOIDCAuthURLRequest>), Fields(to_msgpack::<ACLOIDCAuthURLResponse>)),

    get("Region.List", "/v1/regions", Whole(to_msgpack::<Vec<String>>)),
    get("Agent.Host", "/v1/agent/host?server_id={ServerID}&node_id={NodeID}", Fields(to_msgpack::<HostDataResponse>)),
    get("Status.Members", "/v1/agent/members", Fields(to_msgpack::<ServerMembers>)),
    get("Operator.RaftGetConfiguration", "/v1/operator/raft/configuration", Whole(to_msgpack::<RaftConfiguration>)),
    get("Operator.SchedulerGetConfiguration", "/v1/operator/scheduler/configuration", Fields(to_msgpack::<SchedulerConfigurationResponse>)),
    get("Operator.AutopilotGetConfiguration", "/v1/operator/autopilot/configuration", Whole(to_msgpack::<AutopilotConfiguration>)),
    put("System.GarbageCollect", "/v1/system/gc", None, Nothing),
    put("System.ReconcileJobSummaries", "/v1/system/reconcile/summaries", None, Nothing),
];

/// Largest answer that is put into another form; a reply has its own limit besides.
const ANSWER_MAX: usize = 64 * 1024 * 1024;

/// Answers a call if it is a route.
pub(super) async fn answer(
    http: &Router,
    peer: SocketAddr,
    call: &str,
    body: &[u8],
) -> Option<Result<Vec<u8>, RemoteError>> {
    let route = ROUTES.iter().find(|route| route.call == call)?;
    // The agent that passes the request on does not say whose it is.
    Some(route.serve(http, CallerAddress(Some(peer.ip().to_canonical())), body).await)
}

impl Route {
    async fn serve(&self, http: &Router, caller: CallerAddress, call: &[u8]) -> Result<Vec<u8>, RemoteError> {
        let malformed = |why: String| format!("cannot decode the request: {why}");
        let query: QueryOptions = msgpack::from_slice(call).map_err(|error| malformed(error.to_string()))?;
        let fields: Loose = msgpack::from_slice(call).map_err(|error| malformed(error.to_string()))?;
        let body = self.body.map_or(Ok(Vec::new()), |body| body(call)).map_err(malformed)?;
        let request = Request::builder()
            .method(self.method)
            .uri(self.uri(&fields, &query))
            .extension(caller)
            .header("content-type", "application/json")
            .header("x-nomad-token", &query.auth_token)
            .body(Body::from(body))
            .map_err(|error| malformed(error.to_string()))?;
        let response = match http.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        let (head, answer) = response.into_parts();
        let answer = to_bytes(answer, ANSWER_MAX).await.map_err(RemoteError::other)?;
        let header = |name| head.headers.get(name).and_then(|value| value.to_str().ok());
        let meta = QueryMeta {
            index: header("x-nomad-index").and_then(|index| index.parse().ok()).unwrap_or_default(),
            known_leader: header("x-nomad-knownleader") == Some("true"),
            next_token: header("x-nomad-nexttoken").unwrap_or_default().to_string(),
            ..QueryMeta::default()
        };
        self.reply(head.status, &answer, &meta)
    }

    fn uri(&self, fields: &Loose, query: &QueryOptions) -> String {
        let (path, params) = self.path.split_once('?').unwrap_or((self.path, ""));
        let mut uri = fill(path, fields);
        let wait = query.max_query_time.0.0;
        let common = [
            ("region", query.region.clone()),
            ("namespace", query.namespace.clone()),
            (
                "index",
                if query.min_query_index == 0 { String::new() } else { query.min_query_index.to_string() },
            ),
            ("wait", if wait > 0 { format!("{}ms", wait / 1_000_000) } else { String::new() }),
            ("stale", if query.allow_stale { "true".to_string() } else { String::new() }),
            ("prefix", query.prefix.clone()),
            ("filter", query.filter.clone()),
            ("per_page", if query.per_page > 0 { query.per_page.to_string() } else { String::new() }),
            ("next_token", query.next_token.clone()),
            ("reverse", if query.reverse { "true".to_string() } else { String::new() }),
        ];
        let own = params.split('&').filter_map(|param| param.split_once('='));
        let own = own.map(|(name, value)| (name, fill(value, fields)));
        let common = common.iter().map(|(name, value)| (*name, escaped(value)));
        for (name, value) in own.chain(common).filter(|(_, value)| !value.is_empty()) {
            uri.push(if uri.contains('?') { '&' } else { '?' });
            uri.push_str(&format!("{name}={value}"));
        }
        uri
    }

    fn reply(&self, status: StatusCode, answer: &[u8], meta: &QueryMeta) -> Result<Vec<u8>, RemoteError> {
        let is_missing = status == StatusCode::NOT_FOUND && matches!(self.reply, Found(..));
        if !status.is_success() && !is_missing {
            let text = String::from_utf8_lossy(answer);
            return Err(match status {
                StatusCode::INTERNAL_SERVER_ERROR => RemoteError::read(&text),
                status => RemoteError::new(RemoteErrorKind::Status(status.as_u16()), text),
            });
        }
        let recoded = |recode: Recode| {
            recode(answer)
                .map(Raw)
                .map_err(|why| format!("the answer of {} has no such form: {why}", self.path))
        };
        let field = |name: &str, value: Option<Raw>| encoded(&BTreeMap::from([(name, value)]));
        let parts = match &self.reply {
            Whole(recode) => return Ok(recoded(*recode)?.0),
            Found(name, _) if is_missing => vec![field(name, None)?, encoded(meta)?],
            Field(name, recode) | Found(name, recode) => {
                vec![field(name, Some(recoded(*recode)?))?, encoded(meta)?]
            }
            Fields(recode) => {
                let mut fields: BTreeMap<String, Raw> = decoded(&recoded(*recode)?.0)?;
                let said = decoded::<BTreeMap<String, Raw>>(&encoded(meta)?)?;
                // Answers of some writes have the index in themselves only.
                fields.extend(said.into_iter().filter(|(name, _)| name != "Index" || meta.index > 0));
                vec![encoded(&fields)?]
            }
            Nothing => vec![encoded(meta)?],
        };
        Ok(Raw::embed(&parts).map_err(RemoteError::other)?.0)
    }
}

fn encoded<T: Serialize>(value: &T) -> Result<Vec<u8>, RemoteError> {
    msgpack::to_vec(value).map_err(RemoteError::other)
}

fn decoded<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, RemoteError> {
    msgpack::from_slice(bytes).map_err(RemoteError::other)
}

fn escaped(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// Replaces `{Name}` by the field of the call.
fn fill(template: &str, fields: &Loose) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').expect("the table has whole braces");
        out.push_str(before);
        out.push_str(&escaped(&fields.text(name)));
        rest = after;
    }
    out + rest
}

/// The fields of a call, as far as they go into a path.
#[derive(Debug, Default)]
enum Loose {
    Text(String),
    Map(BTreeMap<String, Loose>),
    #[default]
    Other,
}

impl Loose {
    /// Empty for what is not there, is false, or has no place in a path. Dots lead into inner maps.
    fn text(&self, path: &str) -> String {
        match self {
            Loose::Text(text) if path.is_empty() => text.clone(),
            Loose::Map(fields) => {
                let (name, rest) = path.split_once('.').unwrap_or((path, ""));
                fields.get(name).map(|field| field.text(rest)).unwrap_or_default()
            }
            Loose::Text(_) | Loose::Other => String::new(),
        }
    }
}

impl<'de> Deserialize<'de> for Loose {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Loose, D::Error> {
        deserializer.deserialize_any(LooseVisitor)
    }
}

struct LooseVisitor;

impl<'de> Visitor<'de> for LooseVisitor {
    type Value = Loose;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Loose, E> {
        Ok(if value { Loose::Text("true".to_string()) } else { Loose::Other })
    }

    fn visit_i64<E>(self, value: i64) -> Result<Loose, E> {
        Ok(Loose::Text(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Loose, E> {
        Ok(Loose::Text(value.to_string()))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Loose, E> {
        Ok(Loose::Other)
    }

    fn visit_str<E>(self, value: &str) -> Result<Loose, E> {
        Ok(Loose::Text(value.to_string()))
    }

    fn visit_bytes<E>(self, value: &[u8]) -> Result<Loose, E> {
        Ok(std::str::from_utf8(value).map_or(Loose::Other, |text| Loose::Text(text.to_string())))
    }

    fn visit_none<E>(self) -> Result<Loose, E> {
        Ok(Loose::Other)
    }

    fn visit_unit<E>(self) -> Result<Loose, E> {
        Ok(Loose::Other)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Loose, D::Error> {
        Loose::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Loose, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Loose::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Loose, A::Error> {
        let mut fields = BTreeMap::new();
        while let Some((name, value)) = entries.next_entry()? {
            fields.insert(name, value);
        }
        Ok(Loose::Map(fields))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_variable_is_passed_on_whole() {
        let variable = json!({
            "Namespace": "default", "Path": "a/b", "CreateIndex": 1, "ModifyIndex": 2, "CreateTime": 3, "ModifyTime": 4,
            "Items": {"a key": "value"}, "Lock": {"ID": "x", "TTL": "15s", "LockDelay": ""},
        });
        let bytes = to_msgpack::<Variable>(variable.to_string().as_bytes()).unwrap();
        let read: BTreeMap<String, Value> = msgpack::from_slice(&bytes).unwrap();
        assert_eq!((&read["Path"], &read["Items"]["a key"]), (&json!("a/b"), &json!("value")));
        // Spans are numbers there.
        assert_eq!(
            (&read["Lock"]["TTL"], &read["Lock"]["LockDelay"]),
            (&json!(15_000_000_000_u64), &json!(0))
        );
        let list = to_msgpack::<Vec<VariableMetadata>>(json!([variable]).to_string().as_bytes()).unwrap();
        let list: Vec<BTreeMap<String, Value>> = msgpack::from_slice(&list).unwrap();
        assert!(!list[0].contains_key("Items") && list[0]["ModifyIndex"] == 2);
    }
}
