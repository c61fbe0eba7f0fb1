use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use tokio::io::DuplexStream;
use tokio::time::Instant;

use super::frame::{ACK, FIN, FrameKind, RST, SYN};
use super::*;

/// Larger than any window, so that flow control must turn over several times.
const LARGE: usize = 3 * WINDOW as usize + 12_345;

/// Counts how often somebody is woken.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Woken {
    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Woken>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn counter() -> (Arc<Woken>, Waker) {
    let woken = Arc::new(Woken::default());
    (Arc::clone(&woken), Waker::from(woken))
}

#[tokio::test]
async fn both_ends_open_and_accept_on_one_connection() {
    let ((client, mut at_client), (server, mut at_server)) = pair();
    let mut up = client.open().unwrap();
    up.write_all(b"up").await.unwrap();
    let mut down = server.open().unwrap();
    down.write_all(b"down").await.unwrap();
    assert_eq!(read_some(&mut at_server.accept().await.unwrap()).await, b"up");
    assert_eq!(read_some(&mut at_client.accept().await.unwrap()).await, b"down");
    assert_eq!((up.id, down.id), (1, 2));
}

#[tokio::test]
async fn more_than_a_window_passes_both_ways_at_once() {
    let ((client, _at_client), (_server, mut at_server)) = pair();
    let stream = client.open().unwrap();
    let echo = tokio::spawn(async move {
        let (mut reader, mut writer) = tokio::io::split(at_server.accept().await.unwrap());
        tokio::io::copy(&mut reader, &mut writer).await.unwrap();
        writer.shutdown().await.unwrap();
    });
    let sent: Vec<u8> = (0..LARGE).map(|n| n as u8 ^ (n >> 8) as u8).collect();
    let (mut reader, mut writer) = tokio::io::split(stream);
    let back = tokio::spawn(async move {
        let mut back = Vec::new();
        reader.read_to_end(&mut back).await.unwrap();
        back
    });
    writer.write_all(&sent).await.unwrap();
    writer.shutdown().await.unwrap();
    assert!(back.await.unwrap() == sent, "every byte came back in order");
    echo.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_writer_stops_at_the_window_until_the_reader_reads() {
    let ((client, _at_client), (_server, mut at_server)) = pair();
    let mut stream = client.open().unwrap();
    let writing = tokio::spawn(async move {
        stream.write_all(&vec![7; LARGE]).await.unwrap();
        stream
    });
    let mut reader = at_server.accept().await.unwrap();
    // Virtual time passes only when all tasks wait.
    sleep(Duration::from_secs(1)).await;
    assert!(!writing.is_finished());
    assert_eq!(reader.shared.state.lock().unread(reader.id), WINDOW as usize);
    let mut back = vec![0; LARGE];
    reader.read_exact(&mut back).await.unwrap();
    writing.await.unwrap();
}

#[tokio::test]
async fn many_streams_do_not_mix() {
    let ((client, _at_client), (_server, mut at_server)) = pair();
    tokio::spawn(async move {
        while let Some(stream) = at_server.accept().await {
            tokio::spawn(async move {
                let (mut reader, mut writer) = tokio::io::split(stream);
                tokio::io::copy(&mut reader, &mut writer).await.unwrap();
                writer.shutdown().await.unwrap();
            });
        }
    });
    let calls: Vec<_> = (0..200_u8)
        .map(|n| {
            let mut stream = client.open().unwrap();
            tokio::spawn(async move {
                stream.write_all(&[n; 5_000]).await.unwrap();
                stream.shutdown().await.unwrap();
                let mut back = Vec::new();
                stream.read_to_end(&mut back).await.unwrap();
                back == [n; 5_000]
            })
        })
        .collect();
    for call in calls {
        assert!(call.await.unwrap());
    }
    assert_eq!(client.0.state.lock().live(), 0, "dropped streams leave nothing behind");
}

/// Hundreds of nodes' questions may wait on one connection: what passes on it must cost none of them anything.
#[test]
fn nobody_is_woken_for_what_another_waits_for() {
    let mut state = State::new(Role::Client);
    let [busy, waiting] = [0; 2].map(|_| state.open().unwrap());
    let (woken, waker) = counter();
    let cx = Context::from_waker(&waker);
    assert!(state.poll_read(waiting, &cx, 1).is_pending());
    assert!(state.poll_gone(waiting, &cx).is_pending());

    // The first time the socket is full, the second time the window of the peer.
    let (busy_woken, waker) = counter();
    let busy_cx = Context::from_waker(&waker);
    for _ in 0..2 {
        while state.poll_write(busy, &busy_cx, &[0; 1024]).is_ready() {}
        state.take_out();
        state.drained();
    }
    assert_eq!(busy_woken.count(), 1, "what the socket takes makes no window larger");
    let window = Header { kind: FrameKind::WindowUpdate, flags: ACK, stream: busy, length: WINDOW };
    state.receive(window, &[]).unwrap();
    assert_eq!(busy_woken.count(), 2);
    assert_eq!(woken.count(), 0, "nothing came for the other one");

    let data = Header { kind: FrameKind::Data, flags: ACK, stream: waiting, length: 1 };
    state.receive(data, &[7]).unwrap();
    assert_eq!(woken.count(), 1, "its reader, and not who waits for its end");
    state.receive(Header { flags: FIN, length: 0, ..data }, &[]).unwrap();
    assert_eq!(woken.count(), 2);
}

#[test]
fn writers_that_wait_for_the_socket_are_woken_once_it_has_taken_something() {
    let mut state = State::new(Role::Client);
    let (woken, waker) = counter();
    let cx = Context::from_waker(&waker);
    // Two windows are more than may wait for the socket.
    let streams = [0; 2].map(|_| state.open().unwrap());
    let chunk = [0; 1024];
    for stream in streams {
        while state.poll_write(stream, &cx, &chunk).is_ready() {}
        assert!(state.poll_write(stream, &cx, &chunk).is_pending(), "and waits once all the same");
    }
    state.take_out();
    state.drained();
    assert_eq!(woken.count(), 2);
    assert!(state.poll_write(streams[1], &cx, &chunk).is_ready());
}

#[tokio::test]
async fn a_finished_direction_leaves_the_other_open() {
    let ((client, _at_client), (_server, mut at_server)) = pair();
    let mut asking = client.open().unwrap();
    asking.write_all(b"question").await.unwrap();
    asking.shutdown().await.unwrap();
    let mut answering = at_server.accept().await.unwrap();
    let mut question = Vec::new();
    answering.read_to_end(&mut question).await.unwrap();
    answering.write_all(b"answer").await.unwrap();
    drop(answering);
    let mut answer = Vec::new();
    asking.read_to_end(&mut answer).await.unwrap();
    assert_eq!((question, answer), (b"question".to_vec(), b"answer".to_vec()));
    assert!(asking.write_all(b"more").await.is_err());
}

#[tokio::test]
async fn a_vanished_peer_wakes_every_reader_and_writer() {
    let ((client, _at_client), io) = one_end(Role::Client);
    let waiting: Vec<_> = (0..50)
        .map(|n| {
            let mut stream = client.open().unwrap();
            tokio::spawn(async move {
                match n % 2 {
                    0 => stream.read_u8().await.map(drop),
                    _ => stream.write_all(&vec![0; LARGE]).await,
                }
            })
        })
        .collect();
    tokio::task::yield_now().await;
    drop(io);
    for wait in waiting {
        assert!(wait.await.unwrap().is_err());
    }
    client.closed().await;
    assert!(client.ended().is_some());
    assert!(client.open().is_err());
}

#[tokio::test]
async fn closing_sends_go_away_after_what_was_written() {
    let ((client, _at_client), (server, mut at_server)) = pair();
    let mut stream = client.open().unwrap();
    stream.write_all(b"last words").await.unwrap();
    client.close();
    let mut reader = at_server.accept().await.unwrap();
    assert_eq!(read_some(&mut reader).await, b"last words");
    server.closed().await;
    client.closed().await;
    assert_eq!(client.ended(), Some(MuxError::Closed));
    assert!(at_server.accept().await.is_none());
}

#[tokio::test]
async fn a_reader_that_leaves_early_resets_the_writer() {
    let ((client, _at_client), (_server, mut at_server)) = pair();
    let mut stream = client.open().unwrap();
    let writing = tokio::spawn(async move { stream.write_all(&vec![0; LARGE]).await });
    let mut reader = at_server.accept().await.unwrap();
    reader.read_u8().await.unwrap();
    drop(reader);
    assert_eq!(writing.await.unwrap().unwrap_err().kind(), io::ErrorKind::ConnectionReset);
}

#[tokio::test(start_paused = true)]
async fn a_silent_peer_is_given_up_after_a_ping() {
    let ((client, _at_client), _io) = one_end(Role::Client);
    let start = Instant::now();
    client.closed().await;
    assert_eq!(client.ended(), Some(MuxError::Silent));
    assert_eq!(start.elapsed().as_secs(), (PING_EVERY + WRITE_TIMEOUT).as_secs());
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_stays_up() {
    let ((client, _at_client), (server, _at_server)) = pair();
    sleep(Duration::from_secs(3_600)).await;
    assert_eq!((client.ended(), server.ended()), (None, None));
}

#[tokio::test]
async fn a_window_update_with_syn_opens_a_stream_and_is_acknowledged() {
    let ((_server, mut at_server), mut io) = one_end(Role::Server);
    send(&mut io, FrameKind::WindowUpdate, SYN, 1, 1_000, b"").await;
    send(&mut io, FrameKind::Data, FIN, 1, 2, b"hi").await;
    let mut stream = at_server.accept().await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "hi");
    let ack = Header { kind: FrameKind::WindowUpdate, flags: ACK, stream: 1, length: 0 };
    assert_eq!(next(&mut io).await, ack);
    send(&mut io, FrameKind::Ping, SYN, 0, 99, b"").await;
    assert_eq!(next(&mut io).await, Header { kind: FrameKind::Ping, flags: ACK, stream: 0, length: 99 });
}

#[tokio::test]
async fn a_peer_that_breaks_the_protocol_gets_a_go_away() {
    let beyond = WINDOW + 1;
    let cases: [(FrameKind, u16, u32, u32); 4] = [
        (FrameKind::Data, SYN, 1, beyond),
        (FrameKind::WindowUpdate, SYN, 2, 0),
        (FrameKind::WindowUpdate, SYN, 0, 0),
        (FrameKind::WindowUpdate, SYN, 1, u32::MAX),
    ];
    for (kind, flags, stream, length) in cases {
        let ((server, _at_server), mut io) = one_end(Role::Server);
        send(&mut io, kind, flags, stream, length, b"").await;
        let goodbye = next(&mut io).await;
        assert_eq!((goodbye.kind, goodbye.length), (FrameKind::GoAway, 1));
        server.closed().await;
        assert!(matches!(server.ended(), Some(MuxError::Protocol(_))));
    }
}

#[tokio::test]
async fn streams_beyond_the_backlog_are_reset() {
    let ((_server, _at_server), mut io) = one_end(Role::Server);
    for n in 0..=BACKLOG_MAX as u32 {
        send(&mut io, FrameKind::WindowUpdate, SYN, 2 * n + 1, 0, b"").await;
    }
    let last = 2 * BACKLOG_MAX as u32 + 1;
    assert_eq!(
        next(&mut io).await,
        Header { kind: FrameKind::WindowUpdate, flags: RST, stream: last, length: 0 }
    );
}

#[tokio::test]
async fn an_opener_does_not_exceed_the_peers_backlog() {
    let ((client, _at_client), _io) = one_end(Role::Client);
    let streams: Vec<_> = (0..BACKLOG_MAX).map(|_| client.open().unwrap()).collect();
    assert_eq!(client.open().map(|stream| stream.id), Err(MuxError::Busy));
    drop(streams);
    assert!(client.open().is_ok());
}

type End = (Mux, Incoming);

fn pair() -> (End, End) {
    let (near, far) = tokio::io::duplex(8 * 1024);
    (Mux::start(near, Role::Client), Mux::start(far, Role::Server))
}

/// One end, and the bare wire to it.
fn one_end(role: Role) -> (End, DuplexStream) {
    let (near, far) = tokio::io::duplex(1024 * 1024);
    (Mux::start(near, role), far)
}

async fn send(io: &mut DuplexStream, kind: FrameKind, flags: u16, stream: u32, length: u32, body: &[u8]) {
    io.write_all(&Header { kind, flags, stream, length }.encode()).await.unwrap();
    io.write_all(body).await.unwrap();
}

async fn next(io: &mut DuplexStream) -> Header {
    let mut header = [0; HEADER_LEN];
    io.read_exact(&mut header).await.unwrap();
    Header::decode(header).unwrap()
}

async fn read_some(stream: &mut Stream) -> Vec<u8> {
    let mut buffer = vec![0; 64];
    let length = stream.read(&mut buffer).await.unwrap();
    buffer.truncate(length);
    buffer
}
