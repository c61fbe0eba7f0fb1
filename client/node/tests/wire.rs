//! An agent and its servers over the real wire: calls in both directions.

mod support;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::{AllocFileInfo, AllocResourceUsage, HostStats, StreamFrame};
use bytes::Bytes;
use node::server::{Server, ServerError};
use node::{Agent, WireServers};
use serde::Serialize;
use serde_json::json;
use support::*;
use wire::messages::{
    AllocRestartRequest, AllocSpecificRequest, AllocStatsRequest, AllocStatsResponse, AllocUpdateRequest,
    AllocsGetRequest, AllocsGetResponse, ClientStatsResponse, Empty, FsListResponse, FsLogsRequest,
    FsPathRequest, FsStreamRequest, GenericResponse, NodeClientAllocsResponse, NodeRegisterRequest,
    NodeSpecificRequest, NodeUpdateResponse, NodeUpdateStatusRequest, PlacedAlloc, QueryMeta,
    StreamFrameWrapper, method,
};
use wire::{Connection, Handler, Limits, Opening, RpcError};

const SOON: Duration = Duration::from_secs(10);

/// The servers of [`support`], behind a socket.
struct Listening {
    servers: Arc<FakeServers>,
    /// The connection a node was last heard on.
    node: Mutex<Option<Connection>>,
    /// The secrets with which calls came.
    tokens: Mutex<Vec<String>>,
}

fn text(error: ServerError) -> String {
    match error {
        ServerError::NodeUnknown(text) => text,
        other => other.to_string(),
    }
}

fn encode(answer: &impl Serialize) -> Result<Vec<u8>, String> {
    msgpack::to_vec(answer).map_err(|error| error.to_string())
}

impl Listening {
    fn lease(&self, connection: &Connection, lease: node::server::Lease) -> Result<Vec<u8>, String> {
        *self.node.lock().unwrap() = Some(connection.clone());
        let heartbeat_ttl = base::Duration::from(lease.ttl).into();
        encode(&NodeUpdateResponse { heartbeat_ttl, ..NodeUpdateResponse::default() })
    }
}

impl Handler for Listening {
    async fn call(&self, connection: &Connection, method: &str, body: Bytes) -> Result<Vec<u8>, String> {
        let servers = &self.servers;
        match method {
            method::NODE_REGISTER => {
                let request: NodeRegisterRequest = msgpack::from_slice(&body).unwrap();
                self.tokens.lock().unwrap().push(request.write.auth_token);
                self.lease(connection, servers.register(&request.node).await.map_err(text)?)
            }
            method::NODE_UPDATE_STATUS => {
                let request: NodeUpdateStatusRequest = msgpack::from_slice(&body).unwrap();
                assert_eq!(request.status, "ready");
                self.tokens.lock().unwrap().push(request.write.auth_token);
                self.lease(connection, servers.update_status(&request.node_id).await.map_err(text)?)
            }
            method::NODE_GET_CLIENT_ALLOCS => {
                let request: NodeSpecificRequest = msgpack::from_slice(&body).unwrap();
                let (min, stale) = (request.query.min_query_index, request.query.allow_stale);
                let found = servers.client_allocs(&Default::default(), min, stale).await.map_err(text)?;
                encode(&NodeClientAllocsResponse {
                    allocs: found.allocs.into(),
                    meta: QueryMeta { index: found.index, ..QueryMeta::default() },
                    ..NodeClientAllocsResponse::default()
                })
            }
            method::ALLOC_GET_ALLOCS => {
                let request: AllocsGetRequest = msgpack::from_slice(&body).unwrap();
                let (allocs, index) = servers.allocs(request.alloc_ids.0, 0).await.map_err(text)?;
                let placed = |alloc| PlacedAlloc { alloc, ..PlacedAlloc::default() };
                encode(&AllocsGetResponse {
                    allocs: allocs.into_iter().map(placed).collect(),
                    meta: QueryMeta { index, ..QueryMeta::default() },
                })
            }
            method::NODE_UPDATE_ALLOC => {
                let request: AllocUpdateRequest = msgpack::from_slice(&body).unwrap();
                servers.update_allocs(request.alloc.0).await.map_err(text)?;
                encode(&GenericResponse::default())
            }
            other => Err(format!("rpc: can't find method {other}")),
        }
    }

    async fn stream(&self, _: &Connection, _: &str, opening: Opening) -> Result<(), RpcError> {
        opening.refuse("no streams here").await
    }
}

struct Running {
    base: Base,
    servers: Arc<FakeServers>,
    listening: Arc<Listening>,
    agent: Agent,
}

/// An agent that knows its servers by one address that nobody listens on and one that is right.
async fn running() -> Running {
    let (base, servers) = (Base::new(), FakeServers::new());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    let listening =
        Arc::new(Listening { servers: servers.clone(), node: Mutex::default(), tokens: Mutex::default() });
    tokio::spawn(wire::serve(listener, listening.clone(), Limits::SERVER));
    let addresses = vec!["127.0.0.1:1".to_string(), address.to_string()];
    let agent =
        Agent::start(settings(base.path()), |local| WireServers::new(local, addresses)).await.unwrap();
    Running { base, servers, listening, agent }
}

impl Running {
    async fn connection(&self) -> Connection {
        eventually("a connection", || self.listening.node.lock().unwrap().clone())
    }

    /// The payloads of a streaming call until it ends, and its error.
    async fn payloads<T: Serialize>(
        &self,
        method: &str,
        request: &T,
    ) -> (Vec<Vec<u8>>, Option<(i64, String)>) {
        let mut frames = self.connection().await.open_stream(method, SOON).await.unwrap();
        frames.send(request).await.unwrap();
        let (mut payloads, mut failure) = (Vec::new(), None);
        while let Some(wrapper) = frames.receive::<StreamFrameWrapper>().await.unwrap() {
            match wrapper.error {
                Some(error) => failure = Some((error.code.unwrap(), error.message)),
                None => payloads.push(wrapper.payload.0),
            }
        }
        (payloads, failure)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_allocation_runs_over_the_wire_and_its_files_are_served() {
    let running = running().await;
    running.servers.assign(alloc(
        1,
        "batch",
        json!([shell("web", "echo hello; echo 12345 > $NOMAD_TASK_DIR/f")]),
    ));
    running.servers.await_status(&alloc_id(1), "complete");
    let connection = running.connection().await;

    let list = FsPathRequest { alloc_id: alloc_id(1), path: "/alloc/logs".into(), ..Default::default() };
    let listed: FsListResponse<AllocFileInfo> =
        connection.call(method::FILE_SYSTEM_LIST, &list, SOON).await.unwrap();
    let names: Vec<&str> = listed.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["web.stderr.0", "web.stdout.0"]);

    let logs = FsLogsRequest {
        alloc_id: alloc_id(1),
        task: "web".into(),
        log_type: "stdout".into(),
        ..Default::default()
    };
    let (payloads, failure) = running.payloads(method::FILE_SYSTEM_LOGS, &logs).await;
    assert_eq!(failure, None);
    let frame: StreamFrame = serde_json::from_slice(&payloads[0]).unwrap();
    assert_eq!((frame.data.0.as_slice(), frame.file.as_str()), (&b"hello\n"[..], "alloc/logs/web.stdout.0"));

    let file = FsStreamRequest {
        alloc_id: alloc_id(1),
        path: "web/local/f".into(),
        offset: 2,
        limit: 3,
        plain_text: true,
        ..Default::default()
    };
    assert_eq!(running.payloads(method::FILE_SYSTEM_STREAM, &file).await, (vec![b"345".to_vec()], None));
    running.agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_carry_their_status() {
    let running = running().await;
    running.servers.assign(alloc(1, "batch", json!([shell("web", "true")])));
    running.servers.await_status(&alloc_id(1), "complete");
    let connection = running.connection().await;
    let list = FsPathRequest { alloc_id: alloc_id(1), path: "../x".into(), ..Default::default() };
    let escaped =
        connection.call::<_, FsListResponse<AllocFileInfo>>(method::FILE_SYSTEM_LIST, &list, SOON).await;
    assert_eq!(escaped.unwrap_err().to_string(), "RPC Error:: 400,Path escapes the alloc directory");
    let unknown = AllocSpecificRequest { alloc_id: alloc_id(9), ..Default::default() };
    let gone =
        connection.call::<_, GenericResponse>(method::ALLOCATIONS_GARBAGE_COLLECT, &unknown, SOON).await;
    assert_eq!(gone.unwrap_err().to_string(), format!("Unknown allocation \"{}\"", alloc_id(9)));
    let logs = |task: &str| FsLogsRequest {
        alloc_id: alloc_id(1),
        task: task.into(),
        log_type: "stdout".into(),
        ..Default::default()
    };
    let (_, failure) = running.payloads(method::FILE_SYSTEM_LOGS, &logs("db")).await;
    assert_eq!(failure, Some((400, "unknown task name \"db\"".to_string())));
    let exec = connection.open_stream(method::ALLOCATIONS_EXEC, SOON).await.err().unwrap();
    assert!(exec.to_string().contains("unknown rpc method"));
    running.agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_followed_log_grows_and_beats_until_the_reader_leaves() {
    let running = running().await;
    let script = "echo one; while [ ! -e go ]; do sleep 0.05; done; echo two; sleep 1000";
    running.servers.assign(alloc(1, "service", json!([shell("web", script)])));
    running.servers.await_status(&alloc_id(1), "running");
    let logs = FsLogsRequest {
        alloc_id: alloc_id(1),
        task: "web".into(),
        log_type: "stdout".into(),
        follow: true,
        ..Default::default()
    };
    let mut frames = running.connection().await.open_stream(method::FILE_SYSTEM_LOGS, SOON).await.unwrap();
    frames.send(&logs).await.unwrap();
    let mut seen = Vec::new();
    let mut beats = 0;
    while !seen.ends_with(b"two\n") {
        let wrapper: StreamFrameWrapper = frames.receive().await.unwrap().unwrap();
        let frame: StreamFrame = serde_json::from_slice(&wrapper.payload.0).unwrap();
        if frame == StreamFrame::default() {
            beats += 1;
            std::fs::write(running.base.path().join("alloc").join(alloc_id(1)).join("web/go"), "").unwrap();
        }
        seen.extend(frame.data.0);
    }
    assert_eq!(seen, b"one\ntwo\n");
    assert!(beats >= 1);
    drop(frames);
    running.servers.stop(&alloc_id(1));
    running.servers.await_status(&alloc_id(1), "complete");
    running.agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_are_restarted_and_measured_and_collected_on_request() {
    let running = running().await;
    running.servers.assign(alloc(1, "service", json!([shell("web", "while :; do :; done")])));
    running.servers.await_status(&alloc_id(1), "running");
    let connection = running.connection().await;

    let ask = AllocStatsRequest { alloc_id: alloc_id(1), ..Default::default() };
    let stats: AllocStatsResponse<AllocResourceUsage> =
        connection.call(method::ALLOCATIONS_STATS, &ask, SOON).await.unwrap();
    let usage = stats.stats.unwrap().tasks["web"].resource_usage.clone().unwrap();
    assert!(usage.cpu_stats.unwrap().percent > 1.0, "it is busy");
    assert!(usage.memory_stats.unwrap().rss > 0);
    let host: ClientStatsResponse<HostStats> =
        connection.call(method::CLIENT_STATS, &Empty {}, SOON).await.unwrap();
    assert!(host.host_stats.unwrap().memory.unwrap().total > 0);

    let restart = AllocRestartRequest { alloc_id: alloc_id(1), ..Default::default() };
    let _: GenericResponse = connection.call(method::ALLOCATIONS_RESTART, &restart, SOON).await.unwrap();
    running.servers.await_task(&alloc_id(1), "web", |task| task.restarts == 1 && task.state == "running");

    let collect = AllocSpecificRequest { alloc_id: alloc_id(1), ..Default::default() };
    let busy =
        connection.call::<_, GenericResponse>(method::ALLOCATIONS_GARBAGE_COLLECT, &collect, SOON).await;
    assert!(busy.unwrap_err().to_string().contains("still running"));
    running.servers.stop(&alloc_id(1));
    running.servers.await_status(&alloc_id(1), "complete");
    let local = running.agent.local();
    eventually("the end", || local.allocs.get(&alloc_id(1)).unwrap().is_done().then_some(()));
    let _: GenericResponse =
        connection.call(method::ALLOCATIONS_GARBAGE_COLLECT, &collect, SOON).await.unwrap();
    assert!(!running.base.path().join("alloc").join(alloc_id(1)).exists());
    running.agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_secret_is_shown_only_to_servers_that_know_the_node() {
    let running = running().await;
    eventually("a heartbeat", || (running.listening.tokens.lock().unwrap().len() >= 2).then_some(()));
    let tokens = running.listening.tokens.lock().unwrap().clone();
    let secret = running.agent.local().context.node().secret_id.clone();
    assert_eq!((tokens[0].as_str(), &tokens[1]), ("", &secret));
    running.agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_connection_is_made_again() {
    let running = running().await;
    running.servers.assign(alloc(1, "service", json!([mock("t", json!({"run_for": "1h"}))])));
    running.servers.await_status(&alloc_id(1), "running");
    running.connection().await.close();
    running.servers.stop(&alloc_id(1));
    running.servers.await_status(&alloc_id(1), "complete");
    running.agent.shutdown().await;
}
