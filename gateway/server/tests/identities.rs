//! What servers sign for nodes and tasks, as a node gets it over the node RPC.

use std::sync::Arc;
use std::time::Duration;

use base::{Time, Uuid};
use keyring::{Claims, Enforcement, Holder};
use model::command::RegisterJob;
use model::document::{
    DriverInfo, Job, Node, NodeCpuResources, NodeDiskResources, NodeMemoryResources, NodeResources,
};
use model::{Actor, Command, JobKey, Request};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use server::{Server, Settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use wire::messages::{
    AllocIdentitiesRequest, AllocIdentitiesResponse, AllocsGetRequest, AllocsGetResponse,
    NodeRegisterRequest, NodeUpdateResponse, NodeUpdateStatusRequest, QueryOptions, WorkloadIdentityRequest,
    WriteRequest, method,
};
use wire::{Bytes, Connection, Handler, Limits, Opening, RemoteError, RpcError, RpcSecurity};

use crate::scrub;

const PATIENCE: Duration = Duration::from_secs(120);

/// A server that has a key to sign with.
pub(crate) async fn server(home: &std::path::Path, enforcement: Enforcement) -> Server {
    let settings = scrub::settings(home);
    let introduction = keyring::IntroductionSettings { enforcement, ..settings.introduction.clone() };
    let server = Server::start(Settings { scrub_every: None, introduction, ..settings }).await.unwrap();
    until(&server, |state| state.keyring.active().is_some()).await;
    server
}

pub(crate) async fn until(server: &Server, holds: impl Fn(&state::State) -> bool) {
    let mut news = server.control.watch();
    let waited = async {
        while !holds(&server.control.state()) {
            news.changed().await.unwrap();
        }
    };
    tokio::time::timeout(PATIENCE, waited).await.expect("it comes to be so");
}

pub(crate) struct TestNode {
    pub(crate) document: Node,
    connection: Connection,
}

impl TestNode {
    pub(crate) async fn new(server: &Server, number: u128, pool: &str) -> TestNode {
        let id = Uuid::from(number);
        let text = str::to_string;
        let resources = NodeResources {
            cpu: NodeCpuResources { cpu_shares: 4_000, ..Default::default() },
            memory: NodeMemoryResources { memory_mb: 4_096 },
            disk: NodeDiskResources { disk_mb: 40_960 },
            ..Default::default()
        };
        let driver = DriverInfo { detected: true, healthy: true, ..Default::default() };
        let document = Node {
            id: id.to_string(),
            secret_id: Uuid::from(u128::MAX - number).to_string(),
            name: text("n1"),
            datacenter: text("dc1"),
            node_pool: text(pool),
            attributes: [
                ("driver.raw_exec".to_string(), text("1")),
                ("nomad.version".to_string(), text("2.0.0")),
            ]
            .into_iter()
            .collect(),
            drivers: [("raw_exec".to_string(), driver)].into_iter().collect(),
            node_resources: Some(resources),
            ..Node::default()
        };
        let connection =
            wire::dial(server.rpc, &RpcSecurity::default(), Arc::new(NoRequests), Limits::NODE, PATIENCE)
                .await
                .unwrap();
        TestNode { document, connection }
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(crate) async fn call<Q: Serialize, A: DeserializeOwned>(
        &self,
        method: &str,
        request: &Q,
    ) -> Result<A, RpcError> {
        self.connection.call(method, request, PATIENCE).await
    }

    pub(crate) async fn register(&self, token: &str) -> Result<NodeUpdateResponse, RpcError> {
        let write = WriteRequest { auth_token: token.to_string(), ..Default::default() };
        let request = NodeRegisterRequest { node: self.document.clone(), write, ..Default::default() };
        self.call(method::NODE_REGISTER, &request).await
    }

    pub(crate) async fn heartbeat(&self, token: &str, renew: bool) -> Result<Option<String>, RpcError> {
        let request = NodeUpdateStatusRequest {
            node_id: self.document.id.clone(),
            status: "ready".to_string(),
            force_identity_renewal: renew,
            write: WriteRequest { auth_token: token.to_string(), ..Default::default() },
            ..Default::default()
        };
        let answer: NodeUpdateResponse = self.call(method::NODE_UPDATE_STATUS, &request).await?;
        Ok(answer.signed_identity)
    }
}

pub(crate) struct NoRequests;

impl Handler for NoRequests {
    async fn call(&self, _: &Connection, method: &str, _: Bytes) -> Result<Vec<u8>, RemoteError> {
        Err(format!("{method} was not expected").into())
    }

    async fn stream(&self, _: &Connection, method: &str, opening: Opening) -> Result<(), RpcError> {
        opening.refuse(format!("{method} was not expected")).await
    }
}

/// A token for a new node of this pool, as an operator gets it.
async fn introduction(server: &Server, pool: &str) -> String {
    let body = json!({"NodePool": pool}).to_string();
    let token = put(server, "/v1/acl/identity/client-introduction-token", &body).await;
    token["JWT"].as_str().unwrap().to_string()
}

async fn put(server: &Server, path: &str, body: &str) -> serde_json::Value {
    let mut stream = TcpStream::connect(server.http).await.unwrap();
    let head = format!("PUT {path} HTTP/1.0\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all((head + body).as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap()
}

fn verified(server: &Server, token: &str) -> Claims {
    keyring::verify(&server.control.state().keyring, token, Time(i64::MAX)).expect("the cluster signed it")
}

fn denied<T: std::fmt::Debug>(answer: Result<T, RpcError>) {
    assert_eq!(answer.unwrap_err().to_string(), "Permission denied");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_given_an_identity_and_a_new_one_when_it_needs_it() {
    let home = tempfile::tempdir().unwrap();
    let server = server(home.path(), Enforcement::Warn).await;
    let node = TestNode::new(&server, 1, "default").await;
    let first = node.register("").await.unwrap().signed_identity.expect("a node that is new gets one");
    let claims = verified(&server, &first);
    assert_eq!(claims.subject, format!("node:global:default:{}:default", node.document.id));
    assert_eq!(claims.expires.unwrap() - claims.issued, 24 * 3600);
    assert_eq!(node.heartbeat(&first, false).await.unwrap(), None, "it is still good");
    let second = node.heartbeat(&first, true).await.unwrap().expect("it was asked for");
    assert_ne!(second, first);
    assert!(node.heartbeat(&node.document.secret_id, false).await.unwrap().is_some(), "the secret works too");
    assert_eq!(node.register(&second).await.unwrap().signed_identity, None);

    let other = TestNode::new(&server, 2, "default").await;
    let of_other = other.register("").await.unwrap().signed_identity.unwrap();
    denied(node.heartbeat(&of_other, false).await);
    denied(node.heartbeat(&first.replace('.', "x."), false).await);
    denied(node.heartbeat("", false).await);
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_node_has_to_be_introduced_where_the_servers_insist() {
    let home = tempfile::tempdir().unwrap();
    let server = server(home.path(), Enforcement::Strict).await;
    let node = TestNode::new(&server, 1, "default").await;
    denied(node.register("").await);
    denied(node.register(&node.document.secret_id).await);
    denied(node.register("a.b.c").await);
    denied(node.register(&introduction(&server, "gpu").await).await);
    node.register(&introduction(&server, "default").await).await.unwrap();
    node.register("").await.expect("a node that is known proves itself by its secret");
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_get_their_tokens_with_the_allocation_and_on_request() {
    let home = tempfile::tempdir().unwrap();
    let server = server(home.path(), Enforcement::Warn).await;
    let (node, other) =
        (TestNode::new(&server, 1, "default").await, TestNode::new(&server, 2, "elsewhere").await);
    node.register("").await.unwrap();
    other.register("").await.unwrap();
    let mut job: Job = serde_json::from_value(json!({
        "ID": "web", "Name": "web", "Type": "service", "Datacenters": ["dc1"],
        "TaskGroups": [{"Name": "g", "Tasks": [
            {"Name": "silent", "Driver": "raw_exec", "Config": {"command": "x"}},
            {"Name": "speaks", "Driver": "raw_exec", "Config": {"command": "x"}, "Identity": {"Env": true},
             "Identities": [{"Name": "bank", "Audience": ["bank.io"], "TTL": 3_600_000_000_000_u64, "File": true}]},
        ]}],
    }))
    .unwrap();
    jobspec::canonicalize(&mut job);
    let register = RegisterJob::new(job);
    let command = Command::RegisterJob(Box::new(register));
    let request = Request::unnamed(Actor::ANONYMOUS, command);
    node.heartbeat(&node.document.secret_id, false).await.unwrap();
    server.control.submit(request).await.unwrap();
    let key = JobKey::new("default", "web");
    let placed = |state: &state::State| state.jobs.lookup(&key).is_some_and(|job| !job.allocs.is_empty());
    until(&server, placed).await;
    let state = server.control.state();
    let alloc = state.allocs.get(state.jobs.lookup(&key).unwrap().allocs[0]);

    let get = async |node: &TestNode, token: &str| {
        let query = QueryOptions { auth_token: token.to_string(), ..Default::default() };
        let request = AllocsGetRequest { alloc_ids: vec![alloc.id.to_string()].into(), query };
        node.call::<_, AllocsGetResponse>(method::ALLOC_GET_ALLOCS, &request).await
    };
    let fetched = get(&node, &node.document.secret_id).await.unwrap().allocs.0.remove(0);
    assert_eq!(
        fetched.signed_identities.keys().collect::<Vec<_>>(),
        ["speaks"],
        "who uses none is given none"
    );
    let token = &fetched.signed_identities["speaks"];
    let claims = verified(&server, token);
    assert_eq!(claims.subject, "global:default:web:g:speaks:default");
    assert!(matches!(&claims.holder, Holder::Workload(workload) if workload.alloc == alloc.id.0));
    assert_eq!((claims.expires, claims.issued), (None, alloc.create_time.secs()));
    let again = get(&node, &node.document.secret_id).await.unwrap().allocs.0.remove(0);
    assert_eq!(&again.signed_identities["speaks"], token, "the same at every time");
    let foreign = get(&other, &other.document.secret_id).await.unwrap().allocs.0.remove(0);
    assert!(foreign.signed_identities.is_empty(), "another node gets no tokens");
    denied(get(&node, "").await);

    let key = state.keyring.active().unwrap().0;
    let rotated = put(&server, "/v1/operator/keyring/rotate", "{}").await;
    assert_ne!(rotated["Key"]["KeyID"], key.to_string());
    until(&server, |state| state.keyring.active().is_some_and(|(active, _)| active != key)).await;
    assert!(keyring::is_used(&server.control.state(), key, Time(i64::MAX)), "the task lives");

    let sign = async |node: &TestNode, name: &str, task: &str| {
        let wanted = WorkloadIdentityRequest {
            alloc_id: alloc.id.to_string(),
            identity_name: name.to_string(),
            workload_identifier: task.to_string(),
            ..Default::default()
        };
        let query = QueryOptions { auth_token: node.document.secret_id.clone(), ..Default::default() };
        let request = AllocIdentitiesRequest { identities: vec![wanted].into(), query };
        node.call::<_, AllocIdentitiesResponse>(method::ALLOC_SIGN_IDENTITIES, &request).await.unwrap()
    };
    let signed = sign(&node, "bank", "speaks").await.signed_identities.0.remove(0);
    let claims = keyring::said(&signed.jwt).unwrap();
    assert_eq!(
        (claims.subject.as_str(), &*claims.audience),
        ("global:default:web:g:speaks:bank", &["bank.io".to_string()][..])
    );
    assert_eq!(claims.expires.unwrap() - claims.issued, 3_600);
    assert_eq!(signed.expiration.time().secs(), claims.expires.unwrap());
    let why = async |node, name, task| sign(node, name, task).await.rejections.0.remove(0).reason;
    assert_eq!(why(&node, "vault", "speaks").await, "identity not found");
    assert_eq!(why(&node, "bank", "other").await, "task not found");
    assert_eq!(why(&other, "bank", "speaks").await, "allocation not found");
    server.shutdown().await;
}
