//! Both ends over real sockets.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use wire::messages::{
    Empty, FsLogsRequest, GenericResponse, NodeUpdateStatusRequest, StreamFrameWrapper, method,
};
use wire::yamux::{Mux, Role};
use wire::{Bytes, Connection, Handler, Limits, Opening, RemoteError, RpcError, RpcSecurity, dial, serve};

/// Long enough for a loaded machine; no test waits for it when it passes.
const WAIT: Duration = Duration::from_secs(120);

const SMALL: Limits = Limits { body_max: 1024 * 1024, ..Limits::SERVER };

#[tokio::test]
async fn a_node_calls_a_server_and_is_answered() {
    let (server, node) = connected(SMALL).await;
    let _: Empty = node.call(method::STATUS_PING, &Empty {}, WAIT).await.unwrap();
    let heartbeat = NodeUpdateStatusRequest { node_id: "n1".into(), ..Default::default() };
    let reply: GenericResponse = node.call("Echo.Index", &heartbeat, WAIT).await.unwrap();
    assert_eq!(reply.meta.index, 42);
    assert!(server.peer_of(&node).await.takes_calls());
}

#[tokio::test]
async fn the_server_calls_back_over_the_same_connection() {
    let (server, node) = connected(SMALL).await;
    let back = server.peer_of(&node).await;
    let reply: Text = back.call("Node.Name", &Empty {}, WAIT).await.unwrap();
    assert_eq!(reply.text, "node answers Node.Name");
    for _ in 0..5 {
        let _: Text = back.call("Node.Name", &Empty {}, WAIT).await.unwrap();
    }
}

#[tokio::test]
async fn calls_on_one_connection_do_not_wait_for_each_other() {
    let (_server, node) = connected(SMALL).await;
    let blocked = {
        let node = node.clone();
        tokio::spawn(async move { node.call::<_, Empty>("Block.Forever", &Empty {}, WAIT).await })
    };
    let calls = (0..40).map(|n| {
        let node = node.clone();
        tokio::spawn(async move {
            let text = Text { text: format!("{n} {}", "x".repeat(n * 1_000)) };
            let back: Text = node.call("Echo.Text", &text, WAIT).await.unwrap();
            back == text
        })
    });
    for call in calls.collect::<Vec<_>>() {
        assert!(call.await.unwrap());
    }
    assert!(!blocked.is_finished());
    node.close();
    assert!(matches!(blocked.await.unwrap(), Err(RpcError::Io(_))));
}

#[tokio::test]
async fn error_texts_arrive_unchanged_and_leave_the_stream_usable() {
    let (_server, node) = connected(SMALL).await;
    for _ in 0..3 {
        let error = node.call::<_, Empty>("No.Such", &Empty {}, WAIT).await.unwrap_err();
        assert!(matches!(&error, RpcError::Remote(e) if e.message == "rpc: can't find method No.Such"));
        let _: Empty = node.call(method::STATUS_PING, &Empty {}, WAIT).await.unwrap();
    }
}

#[tokio::test]
async fn a_call_that_panics_is_answered_and_the_next_one_too() {
    let (_server, node) = connected(SMALL).await;
    let error = node.call::<_, Empty>("Panic.Now", &Empty {}, WAIT).await.unwrap_err();
    let expected = "the server failed while it answered: its log says how";
    assert!(matches!(&error, RpcError::Remote(e) if e.message == expected), "{error:?}");
    let _: Empty = node.call(method::STATUS_PING, &Empty {}, WAIT).await.unwrap();
}

#[tokio::test]
async fn streaming_calls_go_both_ways_from_both_ends() {
    let (server, node) = connected(SMALL).await;
    let back = server.peer_of(&node).await;
    for (from, who) in [(node, "server"), (back, "node")] {
        let frames = from.open_stream(method::FILE_SYSTEM_LOGS, WAIT).await.unwrap();
        let (mut sender, mut receiver) = frames.split();
        let sending = tokio::spawn(async move {
            sender.send(&FsLogsRequest { task: "web".into(), ..Default::default() }).await?;
            for n in 0..100_u8 {
                sender.send(&StreamFrameWrapper::content(vec![n; 10_000])).await?;
            }
            sender.finish().await
        });
        let greeting: StreamFrameWrapper = receiver.receive().await.unwrap().unwrap();
        assert_eq!(greeting.payload.0, format!("{who} streams web").as_bytes());
        for n in 0..100_u8 {
            let frame: StreamFrameWrapper = receiver.receive().await.unwrap().unwrap();
            assert_eq!(frame.payload.0, vec![n; 10_000]);
        }
        sending.await.unwrap().unwrap();
        let last: StreamFrameWrapper = receiver.receive().await.unwrap().unwrap();
        assert_eq!(last.error.unwrap().code, Some(404));
        assert!(receiver.receive::<StreamFrameWrapper>().await.unwrap().is_none());
    }
}

#[tokio::test]
async fn a_rejected_stream_has_a_reason() {
    let (_server, node) = connected(SMALL).await;
    let refused = node.open_stream("No.Stream", WAIT).await.err().unwrap();
    assert_eq!(refused.to_string(), "unknown streaming method No.Stream");
}

#[tokio::test]
async fn a_peer_that_drops_mid_call_fails_the_call() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let node = dial(addr, &RpcSecurity::default(), Arc::new(Peer::quiet("node")), SMALL, WAIT).await.unwrap();
    let (socket, _) = listener.accept().await.unwrap();
    let call = tokio::spawn({
        let node = node.clone();
        async move { node.call::<_, Empty>(method::STATUS_PING, &Empty {}, WAIT).await }
    });
    socket.readable().await.unwrap();
    drop(socket);
    assert!(matches!(call.await.unwrap(), Err(RpcError::Io(_))));
    node.closed().await;
    assert!(node.is_closed() && !node.takes_calls());
}

#[tokio::test]
async fn a_call_without_answer_times_out_and_its_handler_is_dropped() {
    let (mut server, node) = connected(SMALL).await;
    let wait = Duration::from_millis(50);
    let late = node.call::<_, Empty>("Block.Forever", &Empty {}, wait).await.unwrap_err();
    assert!(matches!(late, RpcError::Timeout { .. }));
    assert_eq!(server.dropped.recv().await, Some("Block.Forever".to_string()));
    let _: Empty = node.call(method::STATUS_PING, &Empty {}, WAIT).await.unwrap();
}

#[tokio::test]
async fn an_oversized_request_is_refused_at_both_ends() {
    let limits = Limits { body_max: 10_000, ..SMALL };
    let (server, careful) = connected(limits).await;
    let large = Text { text: "x".repeat(2_000_000) };
    let kept = careful.call::<_, Text>("Echo.Text", &large, WAIT).await.unwrap_err();
    assert!(matches!(kept, RpcError::TooLarge { max: 10_000, .. }));
    let generous =
        dial(server.addr, &RpcSecurity::default(), Arc::new(Peer::quiet("node")), Limits::NODE, WAIT)
            .await
            .unwrap();
    let refused = generous.call::<_, Text>("Echo.Text", &large, WAIT).await.unwrap_err();
    assert!(matches!(&refused, RpcError::Remote(e) if e.message.contains("exceeds the limit of 10000")));
    let _: Empty = generous.call(method::STATUS_PING, &Empty {}, WAIT).await.unwrap();
}

/// A call whose body is a text of twice so many bytes, without its second half.
fn half_a_request(bytes: u32) -> Vec<u8> {
    let header = b"\x01\x82\xadServiceMethod\xa9Echo.Text\xa3Seq\x05\x81\xa4text\xdb";
    [&header[..], &(2 * bytes).to_be_bytes(), &vec![b'x'; bytes as usize]].concat()
}

#[tokio::test]
async fn a_request_that_stops_half_way_is_refused_after_a_while() {
    let server = Server::start(Limits { body_wait: Duration::from_millis(20), ..SMALL }).await;
    let mut socket = TcpStream::connect(server.addr).await.unwrap();
    socket.write_all(&half_a_request(100)).await.unwrap();
    let mut answer = Vec::new();
    tokio::time::timeout(WAIT, socket.read_to_end(&mut answer)).await.unwrap().unwrap();
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.contains("the body of the request did not come within 20ms"), "{answer}");
}

#[tokio::test]
async fn requests_that_are_never_complete_have_a_bound_together() {
    let (server, node) = connected(Limits { bodies_max: 400_000, ..SMALL }).await;
    let large = Text { text: "x".repeat(300_000) };
    let echo = async || node.call::<_, Text>("Echo.Text", &large, WAIT).await;
    assert_eq!(echo().await.unwrap(), large);
    let mut held = TcpStream::connect(server.addr).await.unwrap();
    held.write_all(&half_a_request(200_000)).await.unwrap();
    let refused = async {
        loop {
            if let Err(error) = echo().await {
                break error.to_string();
            }
        }
    };
    let refused = tokio::time::timeout(WAIT, refused).await.expect("the server holds what was sent");
    assert_eq!(refused, "too many large requests at the same time: try again");
    let _: Empty = node.call(method::STATUS_PING, &Empty {}, WAIT).await.unwrap();
    drop(held);
    let room = async { while echo().await.is_err() {} };
    tokio::time::timeout(WAIT, room).await.expect("a connection that ends gives back what it held");
}

#[tokio::test]
async fn an_address_leaves_as_much_room_as_it_takes() {
    let server = Server::start(Limits { connections_per_ip: 0, connections_max: 4, ..SMALL }).await;
    let ping = async |node: &Connection| node.call::<_, Empty>(method::STATUS_PING, &Empty {}, WAIT).await;
    let (first, second) = (server.dial().await, server.dial().await);
    ping(&first).await.unwrap();
    ping(&second).await.unwrap();
    assert!(ping(&server.dial().await).await.is_err(), "half is left for others");
}

#[tokio::test]
async fn a_connection_that_sends_nothing_is_closed() {
    let server = Server::start(Limits { handshake: Duration::from_millis(20), ..SMALL }).await;
    let mut socket = TcpStream::connect(server.addr).await.unwrap();
    assert_eq!(socket.read(&mut [0; 8]).await.unwrap(), 0);
}

#[tokio::test]
async fn tls_raft_and_unknown_first_bytes_are_closed() {
    let server = Server::start(SMALL).await;
    for first in [0x02, 0x04, 0x53, 0x00, 0x47] {
        let mut socket = TcpStream::connect(server.addr).await.unwrap();
        socket.write_u8(first).await.unwrap();
        assert_eq!(socket.read(&mut [0; 8]).await.unwrap(), 0, "{first:#x}");
    }
}

#[tokio::test]
async fn connections_beyond_the_limit_of_an_address_are_closed() {
    let server = Server::start(Limits { connections_per_ip: 2, ..SMALL }).await;
    let ping = async |node: &Connection| node.call::<_, Empty>(method::STATUS_PING, &Empty {}, WAIT).await;
    let first = server.dial().await;
    let second = server.dial().await;
    ping(&first).await.unwrap();
    ping(&second).await.unwrap();
    let third = server.dial().await;
    assert!(ping(&third).await.is_err());
    first.close();
    first.closed().await;
    let room = async {
        while ping(&server.dial().await).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(WAIT, room).await.expect("a place became free");
}

#[tokio::test]
async fn plain_connections_are_answered_byte_for_byte() {
    let server = Server::start(SMALL).await;
    let mut socket = TcpStream::connect(server.addr).await.unwrap();
    socket.write_all(b"\x01\x82\xadServiceMethod\xabStatus.Ping\xa3Seq\x05\x80").await.unwrap();
    let answer = b"\x83\xadServiceMethod\xabStatus.Ping\xa3Seq\x05\xa5Error\xa0\x80";
    let mut bytes = vec![0; answer.len()];
    socket.read_exact(&mut bytes).await.unwrap();
    assert_eq!(bytes, answer);
    socket.write_all(b"\x82\xadServiceMethod\xa1x\xa3Seq\x06\x80").await.unwrap();
    let answer = b"\x83\xadServiceMethod\xa1x\xa3Seq\x06\xa5Error\xbarpc: can't find method x\x80";
    let mut bytes = vec![0; answer.len()];
    socket.read_exact(&mut bytes).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&bytes), String::from_utf8_lossy(answer));
}

#[tokio::test]
async fn plain_streams_are_answered() {
    let server = Server::start(SMALL).await;
    let mut socket = TcpStream::connect(server.addr).await.unwrap();
    socket.write_all(b"\x05\x81\xa6Method\xafFileSystem.Logs\x81\xa4Task\xa1t").await.unwrap();
    socket.shutdown().await.unwrap();
    let mut bytes = Vec::new();
    socket.read_to_end(&mut bytes).await.unwrap();
    assert!(bytes.starts_with(b"\x81\xa5Error\xa0\x82\xa5Error\xc0\xa7Payload\xb0server streams t"));
}

#[tokio::test]
async fn old_multiplexed_connections_carry_calls_one_way() {
    let server = Server::start(SMALL).await;
    let mut socket = TcpStream::connect(server.addr).await.unwrap();
    socket.write_u8(0x03).await.unwrap();
    let (mux, _incoming) = Mux::start(socket, Role::Client);
    let mut stream = mux.open().unwrap();
    stream.write_all(b"\x82\xadServiceMethod\xabStatus.Ping\xa3Seq\x05\x80").await.unwrap();
    let mut answer = vec![0; 40];
    stream.read_exact(&mut answer).await.unwrap();
    assert!(answer.starts_with(b"\x83\xadServiceMethod\xabStatus.Ping\xa3Seq\x05"));
    let back = server.peers.lock().await.recv().await.unwrap();
    assert!(!back.takes_calls());
    assert!(matches!(back.call::<_, Empty>("x", &Empty {}, WAIT).await, Err(RpcError::OneWay)));
}

#[tokio::test]
async fn ending_the_service_ends_its_connections() {
    let (server, node) = connected(SMALL).await;
    let back = server.peer_of(&node).await;
    server.serving.abort();
    node.closed().await;
    back.closed().await;
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Text {
    text: String,
}

struct Server {
    addr: SocketAddr,
    peers: tokio::sync::Mutex<mpsc::UnboundedReceiver<Connection>>,
    dropped: mpsc::UnboundedReceiver<String>,
    serving: JoinHandle<()>,
}

impl Server {
    async fn start(limits: Limits) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let (seen, peers) = mpsc::unbounded_channel();
        let (drops, dropped) = mpsc::unbounded_channel();
        let handler = Arc::new(Peer { name: "server", seen, drops });
        let serving = tokio::spawn(serve(listener, RpcSecurity::default(), handler, limits));
        Server { addr, peers: peers.into(), dropped, serving }
    }

    async fn dial(&self) -> Connection {
        dial(self.addr, &RpcSecurity::default(), Arc::new(Peer::quiet("node")), SMALL, WAIT).await.unwrap()
    }

    /// The server's end of a node's connection.
    async fn peer_of(&self, node: &Connection) -> Connection {
        let _: Empty = node.call(method::STATUS_PING, &Empty {}, WAIT).await.unwrap();
        self.peers.lock().await.recv().await.unwrap()
    }
}

async fn connected(limits: Limits) -> (Server, Connection) {
    let server = Server::start(limits).await;
    let node = dial(server.addr, &RpcSecurity::default(), Arc::new(Peer::quiet("node")), limits, WAIT)
        .await
        .unwrap();
    (server, node)
}

struct Peer {
    name: &'static str,
    seen: mpsc::UnboundedSender<Connection>,
    drops: mpsc::UnboundedSender<String>,
}

impl Peer {
    /// One whose observations interest nobody.
    fn quiet(name: &'static str) -> Peer {
        Peer { name, seen: mpsc::unbounded_channel().0, drops: mpsc::unbounded_channel().0 }
    }
}

/// Reports that a call's future was dropped.
struct Dropped(mpsc::UnboundedSender<String>, String);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.send(self.1.clone());
    }
}

impl Handler for Peer {
    async fn call(&self, connection: &Connection, method: &str, body: Bytes) -> Result<Vec<u8>, RemoteError> {
        let _ = self.seen.send(connection.clone());
        let encoded = match method {
            "Status.Ping" => msgpack::to_vec(&Empty {}),
            "Echo.Text" => Ok(body.to_vec()),
            "Echo.Index" => {
                let request: NodeUpdateStatusRequest =
                    msgpack::from_slice(&body).map_err(RemoteError::other)?;
                let index = if request.node_id == "n1" { 42 } else { 0 };
                let meta = wire::messages::WriteMeta { index };
                msgpack::to_vec(&GenericResponse { meta })
            }
            "Node.Name" => msgpack::to_vec(&Text { text: format!("{} answers {method}", self.name) }),
            "Panic.Now" => panic!("a bug"),
            "Block.Forever" => {
                let _dropped = Dropped(self.drops.clone(), method.to_string());
                std::future::pending().await
            }
            _ => return Err(format!("rpc: can't find method {method}").into()),
        };
        encoded.map_err(RemoteError::other)
    }

    async fn stream(&self, _: &Connection, method: &str, opening: Opening) -> Result<(), RpcError> {
        if method != "FileSystem.Logs" {
            return opening.refuse(format!("unknown streaming method {method}")).await;
        }
        let mut frames = opening.accept().await?;
        let request: FsLogsRequest = frames.receive().await?.unwrap_or_default();
        let greeting = format!("{} streams {}", self.name, request.task);
        frames.send(&StreamFrameWrapper::content(greeting.into_bytes())).await?;
        while let Some(frame) = frames.receive::<StreamFrameWrapper>().await? {
            frames.send(&frame).await?;
        }
        frames.send(&StreamFrameWrapper::failure(404, "no more")).await
    }
}
