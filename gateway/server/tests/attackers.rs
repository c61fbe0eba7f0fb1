//! Whoever reaches the port of a server and is none: calls that only servers may make, sent by others.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use control::{LeaderAnswer, LeaderCall};
use model::command::RegisterJob;
use model::document::Job;
use model::{Actor, Command, Request};
use serde::Serialize;
use serde_json::json;
use server::server_connections::{method, wrapped};
use server::{ClusterSettings, GossipSettings, Server, Settings};
use tls::{AgentTls, TlsSettings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use wire::{Connection, Limits, RpcError, RpcSecurity};

use crate::certificates::Certificates;
use crate::identities::{NoRequests, TestNode};
use crate::scrub;

const PATIENCE: Duration = Duration::from_secs(120);
const NOT_PROVED: &str = "only servers may call this, and this connection is not one of a server";
const FOREIGN: &str =
    "only servers of this region may call this, and this connection is one of another region";
const KEY: [u8; 32] = [7; 32];

async fn keyed(home: &Path) -> Server {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let key = server::gossip::Key::parse("BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=").unwrap();
    let gossip = GossipSettings { address: any, advertise: any, key: Some(key) };
    let cluster = ClusterSettings { gossip: Some(gossip), ..ClusterSettings::alone() };
    start(Settings { cluster, ..scrub::settings(home) }).await
}

async fn certified(home: &Path, certificates: &Certificates) -> Server {
    let tls = rpc(certificates.of("server"), true);
    start(Settings { tls: Some(tls), ..scrub::settings(home) }).await
}

fn rpc(settings: TlsSettings, is_server: bool) -> Arc<AgentTls> {
    let settings = TlsSettings { rpc: true, ..settings };
    Arc::new(AgentTls::load(&settings, "global", is_server).unwrap())
}

async fn start(settings: Settings) -> Server {
    let server = Server::start(Settings { scrub_every: None, ..settings }).await.unwrap();
    let mut leadership = server.control.leadership();
    let leads = leadership.wait_for(|now| *now == control::Leadership::Mine);
    tokio::time::timeout(PATIENCE, leads).await.expect("it leads alone").unwrap();
    server
}

async fn dial(server: &Server, security: &RpcSecurity) -> Result<Connection, RpcError> {
    wire::dial(server.rpc, security, Arc::new(NoRequests), Limits::NODE, PATIENCE).await
}

fn with_key(key: [u8; 32]) -> RpcSecurity {
    let security = RpcSecurity::new(None, "global");
    security.keys().replace([&key[..]]);
    security
}

/// An empty append of a leader in the last term there can be, as raft sends it: no election could follow.
fn last_append(home: &Path) -> Vec<u8> {
    let number = std::fs::read_to_string(home.join("server/raft-number")).unwrap();
    let mut rest = Vec::new();
    rest.extend_from_slice(&99_u64.to_le_bytes());
    rest.extend_from_slice(&number.trim().parse::<u64>().unwrap().to_le_bytes());
    rest.extend_from_slice(&u64::MAX.to_le_bytes());
    rest.extend_from_slice(&99_u64.to_le_bytes());
    rest.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0]);
    let mut message = vec![1, 1, 0, 0];
    message.extend_from_slice(&crc32c::crc32c(&rest).to_le_bytes());
    message.extend_from_slice(&rest);
    message
}

/// A command under the name of whoever the caller likes.
fn forged() -> LeaderCall {
    let mut job = Job { id: Some("forged".to_string()), ..Job::default() };
    jobspec::canonicalize(&mut job);
    let command = Command::RegisterJob(Box::new(RegisterJob::new(job)));
    LeaderCall::Submit(Box::new(Request::unnamed(Actor::ANONYMOUS, command)))
}

/// Every call of servers; each is refused in the same words, and so is each stream.
async fn refuses_all(connection: &Connection, home: &Path, why: &str) {
    let calls: [(&str, Vec<u8>); 6] = [
        (method::RAFT, wrapped(&last_append(home))),
        (method::LEADER, encoded(&forged())),
        (method::HAS_NODE, encoded(&"x")),
        (method::PEER_INFO, encoded(&json!({}))),
        (method::ADMIN, encoded(&json!({}))),
        (&format!("{}0/ClientStats.Stats", method::PASS), encoded(&json!({}))),
    ];
    for (method, body) in calls {
        let refused = connection.call_raw(method, &body, PATIENCE).await.unwrap_err();
        assert_eq!(refused.to_string(), why, "{method}");
    }
    let pass = format!("{}0/FileSystem.Logs", method::PASS);
    let refused = connection.open_stream(&pass, PATIENCE).await.err().unwrap();
    assert_eq!(refused.to_string(), why);
}

fn encoded(value: &impl Serialize) -> Vec<u8> {
    msgpack::to_vec(value).unwrap()
}

/// It still leads, and takes writes: its own, and not the forged one.
async fn is_unharmed(server: &Server) {
    assert!(server.control.leads());
    let answer = request(server, "PUT", "/v1/jobs", &job("later"), "").await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let answer = request(server, "GET", "/v1/job/forged", "", "").await;
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
}

fn job(name: &str) -> String {
    let task = json!({"Name": "task", "Driver": "raw_exec", "Config": {"command": "/bin/true"}});
    json!({"Job": {"ID": name, "TaskGroups": [{"Name": "group", "Tasks": [task]}]}}).to_string()
}

fn head(method: &str, path: &str, body: &str, more: &str) -> String {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{more}Content-Length: {length}\r\n\r\n{body}"
    )
}

async fn request(server: &Server, method: &str, path: &str, body: &str, more: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(server.http).await.unwrap();
    stream.write_all(head(method, path, body, more).as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn a_stranger_cannot_pass_for_a_server_that_has_a_key() {
    let home = tempfile::tempdir().unwrap();
    let server = keyed(home.path()).await;
    // From this very host, and over everything that multiplexes or not.
    let stranger = dial(&server, &RpcSecurity::default()).await.unwrap();
    refuses_all(&stranger, home.path(), NOT_PROVED).await;
    let mut raw = tokio::net::TcpStream::connect(server.rpc).await.unwrap();
    let header = json!({"ServiceMethod": method::RAFT, "Seq": 1});
    raw.write_all(&[&[1][..], &encoded(&header), &wrapped(&last_append(home.path()))].concat())
        .await
        .unwrap();
    let mut answer = vec![0; 256];
    let length = raw.read(&mut answer).await.unwrap();
    assert!(String::from_utf8_lossy(&answer[..length]).contains(NOT_PROVED));
    assert!(dial(&server, &with_key([8; 32])).await.is_err(), "another key");
    is_unharmed(&server).await;
    // Who has the key is a server.
    let peer = dial(&server, &with_key(KEY)).await.unwrap();
    let has: bool = peer.call(method::HAS_NODE, &base::Uuid::from(1).to_string(), PATIENCE).await.unwrap();
    assert!(!has);
    server.shutdown().await;
}

#[tokio::test]
async fn a_certificate_of_a_node_is_not_one_of_a_server() {
    let (home, certificates) = (tempfile::tempdir().unwrap(), Certificates::make());
    let server = certified(home.path(), &certificates).await;
    for role in ["client", "cli"] {
        let node = RpcSecurity::new(Some(rpc(certificates.of(role), false)), "global");
        refuses_all(&dial(&server, &node).await.unwrap(), home.path(), NOT_PROVED).await;
    }
    let plain = dial(&server, &RpcSecurity::default()).await.unwrap();
    let ended = plain.call_raw(method::HAS_NODE, &encoded(&"x"), PATIENCE).await.unwrap_err();
    assert!(matches!(ended, RpcError::Io(_)), "{ended}");
    let others = RpcSecurity::new(Some(rpc(Certificates::make().of("server"), true)), "global");
    assert!(dial(&server, &others).await.is_err(), "another authority");
    is_unharmed(&server).await;
    let peer = RpcSecurity::new(Some(rpc(certificates.of("server"), true)), "global");
    let peer = dial(&server, &peer).await.unwrap();
    let answer: LeaderAnswer =
        peer.call(method::LEADER, &LeaderCall::ReadIndex { confirmed: true }, PATIENCE).await.unwrap();
    assert!(matches!(answer, LeaderAnswer::ReadIndex(Some(_))), "{answer:?}");
    server.shutdown().await;
}

#[tokio::test]
async fn a_server_of_another_region_only_passes_requests_on() {
    let home = tempfile::tempdir().unwrap();
    let server = keyed(home.path()).await;
    let foreign = RpcSecurity::new(None, "eu");
    foreign.keys().replace([&KEY[..]]);
    assert!(dial(&server, &foreign).await.is_err(), "it takes this one for one of its own region");
    assert!(dial(&server, &foreign.towards("asia")).await.is_err(), "it means a third region");
    let foreign = dial(&server, &foreign.towards("global")).await.unwrap();
    refuses_all(&foreign, home.path(), FOREIGN).await;
    let whose = json!({"SecretID": "x"});
    let refused = foreign.call_raw("ACL.ResolveToken", &encoded(&whose), PATIENCE).await.unwrap_err();
    assert!(refused.to_string().contains("Permission denied"), "{refused}");
    let answer = through(&server, &foreign, "job").await;
    assert!(answer.contains("10.9.9.9"), "it is believed where requests come from: {answer}");
    is_unharmed(&server).await;
    server.shutdown().await;

    let (home, certificates) = (tempfile::tempdir().unwrap(), Certificates::make());
    let server = certified(home.path(), &certificates).await;
    let settings = TlsSettings { rpc: true, ..certificates.of("server.eu") };
    let of_eu = Arc::new(AgentTls::load(&settings, "eu", true).unwrap());
    let foreign = RpcSecurity::new(Some(of_eu), "eu");
    assert!(dial(&server, &foreign).await.is_err(), "it takes this one for one of its own region");
    assert!(dial(&server, &foreign.towards("asia")).await.is_err(), "it means a third region");
    let foreign = dial(&server, &foreign.towards("global")).await.unwrap();
    refuses_all(&foreign, home.path(), FOREIGN).await;
    is_unharmed(&server).await;
    server.shutdown().await;
}

/// Registers a job with a request that claims to come from elsewhere, and returns what is known of that afterwards.
async fn through(server: &Server, connection: &Connection, name: &str) -> String {
    let mut stream = connection.open_stream(wire::messages::method::HTTP, PATIENCE).await.unwrap().into_io();
    let forwarded = format!("{}: 10.9.9.9\r\n", wire::FORWARDED_FOR);
    stream.write_all(head("PUT", "/v1/jobs", &job(name), &forwarded).as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    request(server, "GET", &format!("/v1/job/{name}/history"), "", "").await
}

#[tokio::test]
async fn a_stranger_is_not_believed_where_a_request_came_from() {
    let home = tempfile::tempdir().unwrap();
    let server = keyed(home.path()).await;
    let stranger = dial(&server, &RpcSecurity::default()).await.unwrap();
    let said = through(&server, &stranger, "one").await;
    assert!(said.contains("127.0.0.1") && !said.contains("10.9.9.9"), "{said}");
    let node = TestNode::new(&server, 5, "default").await;
    node.register("").await.unwrap();
    let said = through(&server, node.connection(), "two").await;
    assert!(said.contains("10.9.9.9"), "{said}");
    server.shutdown().await;
}
