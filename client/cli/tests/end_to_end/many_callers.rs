//! Thousands of callers that wait, send slowly or disconnect, while the server works.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;

use crate::end_to_end::support::{Agent, AgentConfig, http, job, until};

const WAITING: usize = 3_000;
const SLOW: usize = 500;
const LEAVING: usize = 1_000;

/// Most memory per waiting caller: buffers, a task and a watch on an index.
const KIB_EACH: u64 = 64;

#[test]
fn thousands_of_waiting_and_slow_callers_do_not_block_the_server() {
    let given = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: given.maximum, ..given }).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let server = AgentConfig::server(directory.path(), "server").start();
    let address = server.config.http;
    // Nothing was ever in this table: a client that was answered 0 waits with 1.
    let index = http::get(address, "/v1/jobs").unwrap().index.unwrap().max(1);
    let before = resident_kib(&server);

    let slow_requests: Vec<_> =
        (0..SLOW).map(|_| open_request(address, "GET /v1/jobs HTTP/1.1\r\nHost: x\r\nX-Slow")).collect();
    let path = format!("GET /v1/jobs?index={index}&wait=120s HTTP/1.0\r\nHost: x\r\n\r\n");
    let waiting: Vec<_> = (0..WAITING).map(|_| open_request(address, &path)).collect();
    for n in 0..LEAVING {
        let what = if n % 2 == 0 {
            "/v1/event/stream".to_string()
        } else {
            format!("/v1/nodes?index={index}&wait=120s")
        };
        drop(open_request(address, &format!("GET {what} HTTP/1.1\r\nHost: x\r\n\r\n")));
    }
    until("waiting callers wait, and disconnected ones are gone", || {
        waiting_requests(&server) == WAITING as f64
    });
    let grown = resident_kib(&server).saturating_sub(before);
    let callers = (WAITING + SLOW + LEAVING) as u64;
    assert!(grown < callers * KIB_EACH, "{grown} KiB for {callers} callers");

    // A change of another table wakes no caller; a change of theirs wakes all.
    server.run(&["namespace", "apply", "other"]).expect_success();
    assert_eq!(waiting_requests(&server), WAITING as f64);
    server.register(&job("news", json!({"command": "/bin/true"})));
    for mut socket in waiting {
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.0 200 OK") && answer.contains("\"news\""), "{answer}");
    }
    until("no caller waits", || waiting_requests(&server) == 0.0);
    drop(slow_requests);
}

fn open_request(address: SocketAddr, head: &str) -> TcpStream {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    socket.write_all(head.as_bytes()).unwrap();
    socket
}

fn waiting_requests(server: &Agent) -> f64 {
    let metrics = server.get("/v1/metrics");
    let gauges = metrics["Gauges"].as_array().unwrap();
    gauges.iter().find(|gauge| gauge["Name"] == "sojourn.reads.waiting").unwrap()["Value"].as_f64().unwrap()
}

fn resident_kib(server: &Agent) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}
