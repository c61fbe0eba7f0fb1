//! What was decided earlier is decided again by this program. Each recording in `tests/decisions` is the log of a server, as its
//! data directory had it, with every file compressed.
//!
//! A recording is never changed. Where a decision comes out differently, what upgraded clusters do changes with it: the test names it. If
//! that is wanted, say so in the change, and replace the recordings by new ones:
//!
//! ```sh
//! NEW_RECORDING=1 cargo test -p server --test all decisions
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use base::Time;
use model::command::DrainWish;
use model::document::Allocation;
use model::{Actor, AllocId, ClientStatus, Command, EvalStatus, NodeStatus, Request};
use serde_json::{Value, json};
use server::{Server, Settings};
use test_world::{node_document, node_id};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::identities::until;
use crate::scrub::{leads, settings};

const NODES: u128 = 8;
/// Fewer would say little.
const DECISIONS_MIN: u64 = 60;
const LEVEL: i32 = 19;
const COMPRESSED: &str = ".zst";

#[tokio::test(flavor = "multi_thread")]
async fn what_was_decided_earlier_is_decided_again() {
    if std::env::var_os("NEW_RECORDING").is_some() {
        record().await;
    }
    let all: Vec<PathBuf> = entries(&folder());
    assert!(!all.is_empty(), "the recordings are where they belong");
    for recording in all {
        let home = tempfile::tempdir().unwrap();
        copy(&recording, &home.path().join("server"), &|name, bytes| {
            (name.trim_end_matches(COMPRESSED).to_string(), zstd::decode_all(bytes).unwrap())
        });
        let server = Server::start(quiet(home.path())).await.unwrap();
        leads(&server).await;
        let newest = server.control.state().index.0;
        let (mut from, mut same) = (0, 0);
        while from < newest {
            let part = get(&server, &format!("/v1/history/decisions?since={from}")).await;
            assert_eq!(
                (&part["Differing"], &part["NotMade"]),
                (&json!(0), &json!(0)),
                "{recording:?}: {part}"
            );
            same += part["Same"].as_u64().unwrap();
            from = part["To"].as_u64().unwrap();
        }
        assert!(same >= DECISIONS_MIN, "{recording:?}: only {same} decisions");
        // It would be seen.
        let spread = get(&server, "/v1/history/decisions?since=0&algorithm=spread").await;
        assert!(spread["Differing"].as_u64() > Some(0), "{recording:?}: {spread}");
        server.shutdown().await;
    }
}

/// Jobs of every kind come, change and go, and nodes fail, come back and are drained.
async fn record() {
    let home = tempfile::tempdir().unwrap();
    let server = Server::start(quiet(home.path())).await.unwrap();
    leads(&server).await;
    for number in 1..=NODES {
        let document = node_document(number, ["r1", "r2", "r3"][number as usize % 3]);
        submit(&server, Actor::ANONYMOUS, Command::RegisterNode { document: Box::new(document) }).await;
        claim(&server, number, NodeStatus::Ready).await;
    }
    for round in 0..3 {
        for (number, kind) in ["service", "batch", "system", "sysbatch"].into_iter().enumerate() {
            for twin in 0..3 {
                run(&server, &job(&format!("{kind}-{twin}"), kind, round * 3 + twin + number)).await;
            }
        }
        settled(&server).await;
        report(&server, |_| Some("running")).await;
        report(&server, |id| (id.0.as_u128() % 5 == 0).then_some("failed")).await;
        settled(&server).await;
        claim(&server, 1 + round as u128, NodeStatus::Down).await;
        settled(&server).await;
        let drain = DrainWish { deadline: base::Duration::from_secs(60), ignore_system_jobs: false };
        let node = node_id(5 + round as u128);
        let empty = Command::SetNodeDrain { node, drain: Some(drain), mark_eligible: false, meta: [].into() };
        submit(&server, Actor::ANONYMOUS, empty).await;
        settled(&server).await;
        report(&server, |_| Some("running")).await;
        claim(&server, 1 + round as u128, NodeStatus::Ready).await;
        let stopped = send(&server, "DELETE", &format!("/v1/job/service-{round}"), &Value::Null).await;
        assert_eq!(stopped.0, 200, "{}", stopped.1);
        settled(&server).await;
    }
    server.shutdown().await;
    let place = folder().join(format!("{:03}", entries(&folder()).len() + 1));
    // It can be made again, and is large.
    fs::remove_dir_all(home.path().join("server/history")).ok();
    copy(&home.path().join("server"), &place, &|name, bytes| {
        (format!("{name}{COMPRESSED}"), zstd::encode_all(bytes, LEVEL).unwrap())
    });
}

/// A file by another name, with other bytes.
type Change<'c> = &'c dyn Fn(&str, &[u8]) -> (String, Vec<u8>);

/// All files of a directory and below it, changed on the way.
fn copy(from: &Path, to: &Path, change: Change) {
    fs::create_dir_all(to).unwrap();
    for path in entries(from) {
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            copy(&path, &to.join(name), change);
        } else {
            let (name, bytes) = change(name, &fs::read(&path).unwrap());
            fs::write(to.join(name), bytes).unwrap();
        }
    }
}

/// Everything of a job that a scheduler looks at, in turns.
fn job(id: &str, kind: &str, turn: usize) -> Value {
    let resources = json!({"CPU": 50 + turn * 15, "MemoryMB": 40 + turn * 10});
    let mut group = json!({
        "Name": "g", "Count": if kind.starts_with("sys") { 1 } else { 1 + turn % 4 },
        "EphemeralDisk": {"SizeMB": 150},
        "Tasks": [{"Name": "t", "Driver": "none", "Resources": resources}],
    });
    match turn % 5 {
        0 => group["Constraints"] = json!([{"LTarget": "${meta.rack}", "RTarget": "r1", "Operand": "!="}]),
        1 if !kind.starts_with("sys") => {
            group["Affinities"] =
                json!([{"LTarget": "${meta.rack}", "RTarget": "r2", "Operand": "=", "Weight": 50}]);
        }
        2 if !kind.starts_with("sys") => {
            group["Spreads"] = json!([{"Attribute": "${meta.rack}", "Weight": 100}])
        }
        3 if !kind.starts_with("sys") => {
            group["Constraints"] = json!([{"Operand": "distinct_hosts", "RTarget": "true"}]);
        }
        _ if kind == "service" => {
            group["Update"] = json!({"MaxParallel": 1, "Canary": 1, "MinHealthyTime": 1})
        }
        _ => {}
    }
    json!({"ID": id, "Type": kind, "Priority": 40 + turn * 5, "Datacenters": ["*"], "TaskGroups": [group]})
}

/// Nothing but what a test does happens there.
fn quiet(home: &Path) -> Settings {
    Settings { scrub_every: None, segment_bytes: 1 << 20, ..settings(home) }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/decisions")
}

/// What is in a directory, by name; nothing where there is none.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Every evaluation is decided, but for those that wait for a time.
async fn settled(server: &Server) {
    until(server, |state| {
        let mut evals = state.evals.iter().map(|(_, eval)| eval);
        evals.all(|eval| eval.status != EvalStatus::Pending || eval.facts.wait_until != Time::ZERO)
    })
    .await;
}

async fn claim(server: &Server, number: u128, claimed: NodeStatus) {
    let command = Command::UpdateNodeStatus { node: node_id(number), claimed };
    submit(server, Actor::Node(node_id(number)), command).await;
}

/// Nodes report what is said of their allocations that have not ended.
async fn report(server: &Server, says: impl Fn(AllocId) -> Option<&'static str>) {
    let state = server.control.state();
    let is_ready = |number: &u128| {
        let row = state.nodes.find(node_id(*number)).expect("it is registered");
        state.nodes.hot(row).status == NodeStatus::Ready
    };
    for number in (1..=NODES).filter(is_ready) {
        let of_node = |alloc: &&state::alloc::Alloc| {
            let lives = matches!(alloc.client, ClientStatus::Pending | ClientStatus::Running);
            alloc.node_id == node_id(number) && lives && !alloc.is_stopping()
        };
        let update = |alloc: &state::alloc::Alloc| {
            Some(Allocation {
                id: alloc.id.to_string(),
                node_id: node_id(number).to_string(),
                client_status: says(alloc.id)?.to_string(),
                ..Allocation::default()
            })
        };
        let all = state.allocs.iter().map(|(_, alloc)| alloc);
        let updates: Vec<Allocation> = all.filter(of_node).filter_map(update).collect();
        let node = node_id(number);
        if !updates.is_empty() {
            submit(server, Actor::Node(node), Command::UpdateAllocs { node, updates }).await;
        }
    }
}

async fn submit(server: &Server, actor: Actor, command: Command) {
    server.control.submit(Request::unnamed(actor, command)).await.unwrap();
}

async fn run(server: &Server, job: &Value) {
    let (status, answer) = send(server, "PUT", "/v1/jobs", &json!({"Job": job})).await;
    assert_eq!(status, 200, "{answer}");
}

async fn get(server: &Server, path: &str) -> Value {
    let (status, answer) = send(server, "GET", path, &Value::Null).await;
    assert_eq!(status, 200, "{answer}");
    serde_json::from_str(&answer).unwrap()
}

/// Status and body. HTTP/1.0 has no chunks.
async fn send(server: &Server, method: &str, path: &str, body: &Value) -> (u16, String) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let mut stream = TcpStream::connect(server.http).await.unwrap();
    let head = format!("{method} {path} HTTP/1.0\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all((head + &body).as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer has a head");
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("an answer has a status");
    (status, body.to_string())
}
