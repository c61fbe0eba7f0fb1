//! Commands inside tasks, as a WebSocket client of somebody else sees them; the node is the test.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{WebSocketStream, client_async};
use wire::Frames;
use wire::messages::{AllocExecRequest, ExecInputFrame, ExecTtySize, StreamFrameWrapper};

use crate::support::{Cluster, node_id};

const PATIENCE: Duration = Duration::from_secs(120);

struct Server {
    cluster: Cluster,
    alloc: String,
    address: SocketAddr,
}

type Socket = WebSocketStream<TcpStream>;

impl Server {
    async fn start() -> Server {
        let cluster = Cluster::start().await;
        let node = cluster.node(1).await;
        let eval = cluster.job("web").await;
        let alloc = cluster.place(eval, "web", node, 7).await.to_string();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = cluster.app.clone();
        tokio::spawn(async move { axum::serve(listener, app).await });
        Server { cluster, alloc, address }
    }

    async fn dial(&self, query: &str, token: Option<&str>) -> Socket {
        let path = format!("ws://{}/v1/client/allocation/{}/exec?{query}", self.address, self.alloc);
        let mut request = path.into_client_request().unwrap();
        if let Some(token) = token {
            request.headers_mut().insert("x-nomad-token", token.parse().unwrap());
        }
        let socket = TcpStream::connect(self.address).await.unwrap();
        client_async(request, socket).await.unwrap().0
    }

    /// A session that has begun, and the node's end of it.
    async fn begun(&self, query: &str) -> (Socket, Frames, AllocExecRequest) {
        let mut node = self.cluster.nodes.expects_call();
        let socket = self.dial(query, None).await;
        let request = receive(&mut node).await;
        (socket, node, request)
    }
}

const ECHO: &str = "task=server&command=%5B%22echo%22%2C%22a%20b%22%5D";

async fn receive<T: serde::de::DeserializeOwned>(node: &mut Frames) -> T {
    timeout(PATIENCE, node.receive()).await.expect("something comes").unwrap().expect("the call goes on")
}

async fn answer(node: &mut Frames, output: Value) {
    node.send(&StreamFrameWrapper::content(output.to_string().into_bytes())).await.unwrap();
}

/// What the caller sees next: a text, or the code and reason of the end.
async fn seen(socket: &mut Socket) -> Result<Value, (u16, String)> {
    loop {
        match timeout(PATIENCE, socket.next()).await.expect("something comes") {
            Some(Ok(Message::Text(text))) => return Ok(serde_json::from_str(&text).unwrap()),
            Some(Ok(Message::Close(Some(frame)))) => {
                return Err((frame.code.into(), frame.reason.to_string()));
            }
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            other => panic!("{other:?}"),
        }
    }
}

async fn say(socket: &mut Socket, text: &str) {
    socket.send(Message::text(text)).await.unwrap();
}

#[tokio::test]
async fn a_session_is_passed_on_both_ways_until_the_command_has_ended() {
    let server = Server::start().await;
    let (mut socket, mut node, request) = server.begun(&format!("{ECHO}&tty=true")).await;
    assert_eq!(
        (request.alloc_id.as_str(), request.task.as_str(), request.tty),
        (&*server.alloc, "server", true)
    );
    assert_eq!(request.cmd.0, ["echo", "a b"]);
    say(&mut socket, "{}").await;
    say(&mut socket, r#"{"tty_size":{"height":4,"width":5}}"#).await;
    let passed: ExecInputFrame = receive(&mut node).await;
    assert_eq!(passed.tty_size, Some(ExecTtySize { height: 4, width: 5 }), "heartbeats stay here");
    answer(&mut node, json!({"stdout": {"data": "YQ=="}})).await;
    assert_eq!(seen(&mut socket).await, Ok(json!({"stdout": {"data": "YQ=="}})));
    answer(&mut node, json!({"exited": true, "result": {"exit_code": 3}})).await;
    drop(node);
    assert_eq!(seen(&mut socket).await, Ok(json!({"exited": true, "result": {"exit_code": 3}})));
    assert_eq!(seen(&mut socket).await, Err((1000, String::new())));
}

/// Frames of a stock node agent: a map of an error and a payload, which is JSON in the form of protocol buffers.
fn from_stock_node(payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    let mut bytes = b"\x82\xa5Error\xc0\xa7Payload".to_vec();
    bytes.extend(if length < 32 { vec![0xa0 | length] } else { vec![0xda, 0, length] });
    bytes.extend(payload);
    bytes
}

#[tokio::test]
async fn a_stock_node_agent_reads_the_input_and_is_read() {
    let server = Server::start().await;
    let (mut socket, node, _) = server.begun(&format!("{ECHO}&tty=true")).await;
    let (mut to_server, mut from_server) = node.split();
    let cases: [(&str, &[u8]); 4] = [
        (
            r#"{"tty_size":{"height":40,"width":300}}"#,
            b"\x82\xa5Stdin\xc0\xa7TtySize\x82\xa6Height\x28\xa5Width\xcd\x01\x2c",
        ),
        (
            r#"{"stdin":{"data":"aGkA/w=="}}"#,
            b"\x82\xa5Stdin\x82\xa4Data\xa4hi\x00\xff\xa5Close\xc2\xa7TtySize\xc0",
        ),
        (
            r#"{"stdin":{"data":"eA==","close":true}}"#,
            b"\x82\xa5Stdin\x82\xa4Data\xa1x\xa5Close\xc3\xa7TtySize\xc0",
        ),
        (r#"{"stdin":{"close":true}}"#, b"\x82\xa5Stdin\x82\xa4Data\xc0\xa5Close\xc3\xa7TtySize\xc0"),
    ];
    for (said, bytes) in cases {
        say(&mut socket, said).await;
        let got = timeout(PATIENCE, from_server.receive_raw()).await.unwrap().unwrap().unwrap();
        assert_eq!(got, bytes, "{said}");
    }
    let outputs: [&[u8]; 3] = [
        br#"{"stdout":{"data":"aGkK"}}"#,
        br#"{"stdout":{"close":true}}"#,
        br#"{"exited":true,"result":{"exit_code":7}}"#,
    ];
    for output in outputs {
        to_server.send_raw(&from_stock_node(output)).await.unwrap();
        assert_eq!(seen(&mut socket).await, Ok(serde_json::from_slice(output).unwrap()));
    }
    to_server.finish().await.unwrap();
    assert_eq!(seen(&mut socket).await, Err((1000, String::new())));
}

#[tokio::test]
async fn input_that_is_no_json_ends_the_session_with_that_reason() {
    let server = Server::start().await;
    let (mut socket, _node, _) = server.begun(ECHO).await;
    say(&mut socket, "ls").await;
    let text = "malformed input for a command: not JSON: expected value at line 1 column 1";
    assert_eq!(seen(&mut socket).await, Err((1008, text.to_string())));
}

#[tokio::test]
async fn what_goes_wrong_is_the_reason_of_the_end() {
    let mut server = Server::start().await;
    let no_path = format!("No path to node \"{}\"", node_id(1));
    let cases = [
        (ECHO, 1008, no_path.as_str()),
        (
            "task=server&command=ls",
            1008,
            "command is not a JSON array of texts: expected value at line 1 column 1",
        ),
        ("task=server&command=%5B%5D", 1008, "command is not present"),
        ("command=%5B%22ls%22%5D", 1008, "task name is not present"),
        ("task=server&region=far", 1011, "No path to region"),
    ];
    for (query, code, reason) in cases {
        let mut socket = server.dial(query, None).await;
        assert_eq!(seen(&mut socket).await, Err((code, reason.to_string())), "{query}");
    }
    for (status, code) in [(404, 1008), (500, 1011)] {
        let (mut socket, mut node, _) = server.begun(ECHO).await;
        let text = "task \"server\" is not running.";
        node.send(&StreamFrameWrapper::failure(status, text)).await.unwrap();
        assert_eq!(seen(&mut socket).await, Err((code, text.to_string())));
    }
    let (mut socket, node, _) = server.begun(ECHO).await;
    drop(node);
    assert_eq!(seen(&mut socket).await, Err((1011, "the node ended the session".to_string())));
    server.alloc = "7b1b6f4c-1111-2222-3333-444444444444".to_string();
    let mut socket = server.dial(ECHO, None).await;
    assert_eq!(seen(&mut socket).await, Err((1008, format!("Unknown allocation {:?}", server.alloc))));
}

#[tokio::test]
async fn a_handshake_comes_first_where_it_was_announced() {
    let server = Server::start().await;
    let query = format!("{ECHO}&ws_handshake=true");
    let mut node = server.cluster.nodes.expects_call();
    let mut socket = server.dial(&query, Some("secret")).await;
    say(&mut socket, r#"{"version":1,"auth_token":"secret"}"#).await;
    let _: AllocExecRequest = receive(&mut node).await;
    let cases = [
        (r#"{"version":1,"auth_token":"other"}"#, "the tokens of header and handshake differ"),
        (r#"{"version":2}"#, "unsupported handshake version 2"),
        ("[", "malformed handshake: EOF while parsing a list at line 1 column 1"),
    ];
    for (first, reason) in cases {
        let mut socket = server.dial(&query, Some("secret")).await;
        say(&mut socket, first).await;
        assert_eq!(seen(&mut socket).await, Err((1008, reason.to_string())));
    }
}

#[tokio::test]
async fn a_caller_that_leaves_ends_the_call_to_the_node() {
    let server = Server::start().await;
    let (mut socket, mut node, _) = server.begun(ECHO).await;
    socket.close(None).await.unwrap();
    let end = timeout(PATIENCE, node.receive::<StreamFrameWrapper>()).await.unwrap();
    assert!(matches!(end, Ok(None)), "{end:?}");
    let (socket, mut node, _) = server.begun(ECHO).await;
    drop(socket);
    let end = timeout(PATIENCE, node.receive::<StreamFrameWrapper>()).await.unwrap();
    assert!(matches!(end, Ok(None)), "without a word: {end:?}");
}

#[tokio::test]
async fn a_message_without_bound_is_not_taken() {
    let server = Server::start().await;
    let (mut socket, _node, _) = server.begun(ECHO).await;
    let long = format!(r#"{{"stdin":{{"data":"{}"}}}}"#, "A".repeat(2 << 20));
    // The server may stop reading half-way.
    let _ = socket.send(Message::text(long)).await;
    let end = timeout(PATIENCE, socket.next()).await.unwrap();
    assert!(!matches!(end, Some(Ok(Message::Text(_)))), "{end:?}");
}

#[tokio::test]
async fn without_an_upgrade_there_is_no_session() {
    let server = Server::start().await;
    let got = server.cluster.get(&format!("/v1/client/allocation/{}/exec?{ECHO}", server.alloc)).await;
    assert_eq!(got.status.as_u16(), 400, "{}", got.text());
}

#[tokio::test]
async fn a_server_that_stops_sends_that_reason() {
    let server = Server::start().await;
    let (mut socket, _node, _) = server.begun(ECHO).await;
    server.cluster.events.close();
    assert_eq!(seen(&mut socket).await, Err((1001, "the server is shutting down".to_string())));
}

#[tokio::test]
async fn an_action_runs_the_command_that_its_task_has() {
    let server = Server::start().await;
    let mut job = crate::support::job_json("acting");
    job["TaskGroups"][0]["Tasks"][0]["Actions"] =
        json!([{"Name": "greet", "Command": "/bin/echo", "Args": ["a b"]}]);
    let eval = server.cluster.put("/v1/jobs", &json!({"Job": job})).await.json();
    assert!(!eval["Warnings"].as_str().unwrap().contains("action"), "actions are run: {eval}");
    let eval = eval["EvalID"].as_str().unwrap().parse().unwrap();
    let alloc = server.cluster.place(eval, "acting", node_id(1), 8).await.to_string();

    let dial = async |job: &str, query: String| {
        let path = format!("ws://{}/v1/job/{job}/action?{query}", server.address);
        let socket = TcpStream::connect(server.address).await.unwrap();
        client_async(path.into_client_request().unwrap(), socket).await.unwrap().0
    };
    let mut node = server.cluster.nodes.expects_call();
    let mut socket =
        dial("acting", format!("allocID={alloc}&group=web&task=server&action=greet&tty=true")).await;
    let request: AllocExecRequest = receive(&mut node).await;
    assert_eq!((request.alloc_id, request.task.as_str(), request.tty), (alloc.clone(), "server", true));
    assert_eq!(request.cmd.0, ["/bin/echo", "a b"]);
    answer(&mut node, json!({"exited": true, "result": {}})).await;
    drop(node);
    assert_eq!(seen(&mut socket).await, Ok(json!({"exited": true, "result": {}})));

    let end = async |job, query: String| seen(&mut dial(job, query).await).await.unwrap_err();
    let missing = end("acting", "task=server&action=greet".into()).await;
    assert_eq!(missing, (1011, "Unknown allocation \"\"".to_string()));
    let other = end("web", format!("allocID={alloc}&task=server&action=greet")).await;
    assert_eq!(other, (1008, format!("allocation {alloc} does not belong to job \"web\"")));
    let unknown = end("acting", format!("allocID={alloc}&task=server&action=x")).await;
    assert_eq!(unknown, (1008, "action \"x\" not found in task \"server\"".to_string()));
    let unknown = end("acting", format!("allocID={alloc}&task=y&action=greet")).await;
    assert_eq!(unknown, (1008, "unknown task name \"y\"".to_string()));
}
