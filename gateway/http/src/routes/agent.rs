use axum::Router;
use axum::extract::State as With;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::get;
use control::{WorkerPool, WorkerStatus};
use model::JobType;
use model::document::{List, Map, Timestamp};
use serde_json::{Value, json};

use api::{
    AgentHealth, AgentHealthResponse, AgentMember, AgentSchedulerWorkerConfigRequest,
    AgentSchedulerWorkerConfigResponse, AgentSelf, ServerMembers,
};

use super::write;
use crate::access::{Anyone, ReadAgent, ReadNodes, WriteAgent};
use crate::answer::{self, Answer};
use crate::app_state::{AgentInfo, AppState, NOMAD_VERSION, now};
use crate::error::Failure;
use crate::request::{Call, Json, ReadNow};

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/v1/agent/self", get(own))
        .route("/v1/agent/members", get(members))
        .route("/v1/agent/join", write(join))
        .route("/v1/agent/force-leave", write(force_leave))
        .route("/v1/agent/servers", get(servers).merge(write(change_servers)))
        .route("/v1/agent/reload", write(reload))
        .route("/v1/agent/health", get(health))
        .route("/v1/agent/schedulers", get(schedulers))
        .route("/v1/agent/schedulers/config", get(worker_pool).merge(write(set_worker_pool)))
}

async fn own(With(server): With<AppState>, _: Call<ReadAgent>) -> Answer {
    let mut config = server.agent.config.shown();
    for (name, value) in shown_config(&server.agent) {
        config.entry(name).or_insert(value);
    }
    let config = config.into_iter().collect();
    Ok(answer::json(&AgentSelf { config, member: member(&server), stats: stats(&server) }))
}

async fn members(With(server): With<AppState>, _: ReadNow<ReadNodes>) -> Answer {
    let agent = &server.agent;
    Ok(answer::json(&ServerMembers {
        server_name: agent.name.clone(),
        server_region: agent.region.clone(),
        server_dc: agent.datacenter.clone(),
        members: server.cluster.members().into(),
    }))
}

/// Also 200 when no server could be joined: the answer says why.
async fn join(With(server): With<AppState>, call: Call<WriteAgent>) -> Answer {
    let addresses: Vec<String> = call.params.all("address").map(str::to_string).collect();
    if addresses.is_empty() {
        return Err(Failure::invalid("missing address to join"));
    }
    Ok(answer::json(&server.cluster.join(addresses).await))
}

async fn force_leave(With(server): With<AppState>, call: Call<WriteAgent>) -> Result<(), Failure> {
    let name = call.params.get("node").filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| Failure::invalid("missing node to force leave"))?;
    let prune = call.params.boolean("prune").map_err(|_| Failure::invalid("invalid prune value"))?;
    Ok(server.cluster.force_leave(name.to_string(), prune).await?)
}

/// The servers that the node of this agent can turn to.
async fn servers(With(server): With<AppState>, _: Call<ReadAgent>) -> Answer {
    if server.agent.node.is_none() {
        return Err(Failure::new(StatusCode::NOT_IMPLEMENTED, "Invalid method"));
    }
    Ok(answer::json(&server.cluster.peers()))
}

/// Where the node looks for servers until the next answer to its heartbeat, which names those there are. A node beside a
/// server has that answer already: there is nothing left for the list to do, and it is only looked at.
async fn change_servers(With(server): With<AppState>, call: Call<WriteAgent>) -> Result<(), Failure> {
    if server.agent.node.is_none() {
        return Err(Failure::new(StatusCode::NOT_IMPLEMENTED, "Invalid method"));
    }
    call.params.server_addresses()?;
    Ok(())
}

/// Reads the configuration again, as SIGHUP does.
async fn reload(With(server): With<AppState>, _: Call<WriteAgent>) -> Answer {
    let config = server.agent.config.clone();
    let reloaded = tokio::task::spawn_blocking(move || config.reload()).await?.map_err(Failure::internal)?;
    Ok(answer::json(&json!({"Applied": reloaded.applied, "NeedsRestart": reloaded.needs_restart})))
}

/// Without a type: both, as far as this agent is both. A part that is asked for and not there is not healthy.
async fn health(With(server): With<AppState>, ReadNow(read): ReadNow<Anyone>) -> Answer {
    let asked: Vec<&str> = read.params.all("type").collect();
    let wants = |kind: &str| asked.is_empty() || asked.contains(&kind);
    let has_client = server.agent.node.is_some();
    let response = AgentHealthResponse {
        client: ((has_client && wants("client")) || asked.contains(&"client"))
            .then(|| client_health(&server)),
        server: wants("server").then(|| server_health(&server)),
    };
    if response.client.iter().chain(&response.server).all(|part| part.ok) {
        return Ok(answer::json(&response));
    }
    let text = serde_json::to_string(&response).expect("types of the HTTP API have a JSON form");
    Ok(Failure::internal(text).into_response())
}

/// Scheduler threads that a server may have: more than any machine has cores for.
const WORKERS_MAX: usize = 1_024;
/// Nomad's word for the evaluations that clean up: every server does that, whatever else it schedules.
const CORE: &str = "_core";

async fn worker_pool(With(server): With<AppState>, _: Call<ReadAgent>) -> Answer {
    Ok(answer::json(&pool_view(&server)))
}

/// How this server schedules, until it starts again. Without workers it leaves that to the others.
async fn set_worker_pool(
    With(server): With<AppState>,
    _: Call<WriteAgent>,
    Json(wanted): Json<AgentSchedulerWorkerConfigRequest>,
) -> Answer {
    let pool = wanted_pool(&wanted).map_err(|why| {
        tracing::warn!(why, "the configuration of scheduler workers is refused");
        // Nomad's own clients look for this text, and no other.
        Failure::invalid("Invalid request")
    })?;
    server.control.set_worker_pool(pool);
    Ok(answer::json(&pool_view(&server)))
}

fn wanted_pool(wanted: &AgentSchedulerWorkerConfigRequest) -> Result<WorkerPool, String> {
    let workers = usize::try_from(wanted.num_schedulers).ok().filter(|count| *count <= WORKERS_MAX);
    let workers = workers
        .ok_or_else(|| format!("num_schedulers {}: expected 0 to {WORKERS_MAX}", wanted.num_schedulers))?;
    let (core, words): (Vec<&String>, Vec<_>) =
        wanted.enabled_schedulers.iter().partition(|word| *word == CORE);
    if core.is_empty() {
        return Err(format!("enabled_schedulers: {CORE} is missing"));
    }
    let mut types = Vec::new();
    for word in words {
        let kind = JobType::from_word(word)
            .ok_or_else(|| format!("enabled_schedulers {word:?}: expected a job type or {CORE}"))?;
        if !types.contains(&kind) {
            types.push(kind);
        }
    }
    Ok(WorkerPool { workers, types })
}

fn pool_view(server: &AppState) -> AgentSchedulerWorkerConfigResponse {
    let pool = server.control.worker_pool();
    AgentSchedulerWorkerConfigResponse {
        server_id: server.agent.server.to_string(),
        num_schedulers: pool.workers as i64,
        enabled_schedulers: words(&pool),
    }
}

fn words(pool: &WorkerPool) -> List<String> {
    pool.types.iter().map(|kind| kind.word()).chain([CORE]).map(str::to_string).collect::<Vec<_>>().into()
}

async fn schedulers(With(server): With<AppState>, _: Call<ReadAgent>) -> Answer {
    let types = words(&server.control.worker_pool());
    let started = Timestamp::from(server.agent.started).to_string();
    let line = |worker: control::WorkerInfo| {
        json!({
            "id": worker.id.to_string(),
            "enabled_schedulers": types,
            "started": started,
            "status": if worker.status == WorkerStatus::Stopped { "Stopped" } else { "Started" },
            "workload_status": workload(worker.status),
        })
    };
    let lines: Vec<Value> = server.control.workers().into_iter().map(line).collect();
    Ok(answer::json(&json!({"server_id": server.agent.server.to_string(), "schedulers": lines})))
}

fn workload(status: WorkerStatus) -> &'static str {
    match status {
        WorkerStatus::WaitingToDequeue => "WaitingToDequeue",
        WorkerStatus::WaitingForState => "WaitingForRaft",
        WorkerStatus::Scheduling => "Scheduling",
        WorkerStatus::Submitting => "SubmittingPlan",
        WorkerStatus::Stopped => "Stopped",
    }
}

fn server_health(server: &AppState) -> AgentHealth {
    let why = server.control.halted().borrow().clone();
    let why = why.or_else(|| (!server.known_leader()).then(|| "No cluster leader".to_string()));
    AgentHealth { ok: why.is_none(), message: why.unwrap_or_else(|| "ok".to_string()) }
}

/// What the servers know of the node this agent runs.
fn client_health(server: &AppState) -> AgentHealth {
    let Some(node) = server.agent.node else {
        return AgentHealth { ok: false, message: "client not enabled".to_string() };
    };
    let state = server.control.state();
    match state.nodes.find(node) {
        Some(row) if !state.nodes.hot(row).status.is_silent() => {
            AgentHealth { ok: true, message: "ok".to_string() }
        }
        Some(_) => AgentHealth { ok: false, message: "no recent heartbeat".to_string() },
        None => AgentHealth { ok: false, message: "not registered".to_string() },
    }
}

/// What clients read from the configuration, where the agent's own does not say it.
fn shown_config(agent: &AgentInfo) -> [(String, Value); 8] {
    let version = json!({
        "Version": NOMAD_VERSION,
        "VersionPrerelease": "",
        "VersionMetadata": "",
        "Revision": agent.version,
    });
    [
        ("Name", json!(agent.name)),
        ("Region", json!(agent.region)),
        ("Datacenter", json!(agent.datacenter)),
        ("ACL", json!({"Enabled": agent.access.enabled})),
        ("Server", json!({"Enabled": true})),
        ("Client", json!({"Enabled": agent.node.is_some()})),
        ("UI", json!({"Enabled": agent.ui})),
        ("Version", version),
    ]
    .map(|(name, value)| (name.to_string(), value))
}

/// This server, as the others see it.
fn member(server: &AppState) -> AgentMember {
    let id = server.agent.server.to_string();
    let is_own = |member: &AgentMember| member.tags.get("id") == Some(&id);
    server.cluster.members().into_iter().find(is_own).unwrap_or_default()
}

fn stats(server: &AppState) -> Map<String, Map<String, String>> {
    let (agent, control) = (&server.agent, &server.control);
    let state = control.state();
    let nomad = [
        ("server", "true".to_string()),
        ("leader", control.leads().to_string()),
        ("leader_addr", server.cluster.leader().unwrap_or_default()),
        ("bootstrap", "true".to_string()),
        ("known_regions", server.cluster.regions().len().to_string()),
    ];
    let log = [
        ("state", if control.leads() { "Leader" } else { "Follower" }.to_string()),
        ("last_log_index", control.journal().committed().to_string()),
        ("commit_index", control.journal().committed().to_string()),
        ("applied_index", state.index.to_string()),
        ("oldest_index", control.journal().horizon().to_string()),
    ];
    let sojourn = [
        ("version", agent.version.clone()),
        ("cluster", state.cluster.to_string()),
        ("uptime", now().since(agent.started).to_string()),
    ];
    let client = agent.node.map(|node| ("client", vec![("node_id", node.to_string())]));
    let groups = [("nomad", nomad.to_vec()), ("raft", log.to_vec()), ("sojourn", sojourn.to_vec())];
    let group = |entries: Vec<(&str, String)>| {
        entries.into_iter().map(|(name, value)| (name.to_string(), value)).collect::<Map<_, _>>()
    };
    groups.into_iter().chain(client).map(|(name, entries)| (name.to_string(), group(entries))).collect()
}
