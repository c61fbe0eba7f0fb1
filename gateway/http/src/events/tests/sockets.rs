//! Over real sockets: answers, a client of server-sent events that loses its connection, curl, and readers that do
//! not read.

use std::process::{Command, Stdio};
use std::sync::Arc;

use api::Params;
use axum::Router;
use axum::extract::{Query, State as With};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::super::query::{StreamQuery, To};
use super::support::{Log, PATIENCE, busy, everything, ids, long, read, toggle};
use crate::events::route::subscribe;
use feed::{Cursor, EventFilter, Feed, STREAMS_MAX, View};
use feed::{PARKED_MAX, TAIL_BYTES};

#[tokio::test]
async fn what_cannot_be_understood_is_named() {
    let address = serve(&Feed::new(Log::of(&busy().log))).await;
    let cases = [
        ("?index=abc", "", "400 Bad Request", "Unable to parse index: \"abc\" is not a whole number"),
        (
            "?topic=a:b:c",
            "",
            "400 Bad Request",
            "Invalid topic query: Invalid key value pair for topic, topic: a:b:c",
        ),
        (
            "",
            "Last-Event-ID: 7.\r\n",
            "400 Bad Request",
            "Unable to parse Last-Event-ID: \"7.\" is not an event id: expected an index, or index.ordinal like 42.0",
        ),
    ];
    for (query, header, status, text) in cases {
        let answer = ask(&address, query, header).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
        assert!(answer.ends_with(text), "{answer}");
    }
}

#[tokio::test]
async fn what_is_gone_is_answered_with_the_oldest_there_is() {
    let world = long(1, 40);
    let log = Log::of(&world.log);
    log.forget_before(30);
    let address = serve(&Feed::new(log)).await;
    let answer = ask(&address, "?index=5", "").await;
    assert!(answer.starts_with("HTTP/1.1 410 Gone"), "{answer}");
    assert!(answer.contains("x-sojourn-oldest-index: 41\r\n"), "{answer}");
    assert!(answer.ends_with("index 5 is no longer kept: the oldest is 41"), "{answer}");
    let answer = ask(&address, "", "Last-Event-ID: 29.0\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 410 Gone"), "{answer}");
}

/// A reader that would rather go on gets what there is, and a message about what it misses.
#[tokio::test]
async fn a_gap_may_be_skipped() {
    let world = long(1, 40);
    let log = Log::of(&world.log);
    log.forget_before(30);
    let address = serve(&Feed::new(log)).await;
    let sse = "Accept: text/event-stream\r\n";
    let answer = ask(&address, "?index=5&on_gap=skip&to=40", sse).await;
    assert!(answer.contains("x-sojourn-oldest-index: 41\r\n"), "{answer}");
    assert!(answer.contains("event: gap\ndata: {\"From\":5,\"Oldest\":41}\n"), "{answer}");
    assert!(answer.contains("event: end\n"), "{answer}");
}

#[tokio::test]
async fn one_stream_too_many_is_refused() {
    let feed = Feed::new(Log::new());
    let address = serve(&feed).await;
    let slots: Vec<_> = (0..STREAMS_MAX).map(|_| feed.slot().unwrap()).collect();
    let answer = ask(&address, "", "").await;
    assert!(answer.starts_with("HTTP/1.1 429 Too Many Requests"), "{answer}");
    assert!(answer.contains("retry-after: 1\r\n"), "{answer}");
    drop(slots);
    let stream = Sse::open(&address, None).await;
    assert_eq!(stream.kind, "text/event-stream");
}

/// Registers and reports go on while the client is cut off, again and again.
#[tokio::test]
async fn a_client_that_is_cut_off_resumes_without_gap_or_repeat() {
    let world = busy();
    let log = Log::new();
    let address = serve(&Feed::new(log.clone())).await;
    let (mut got, mut last) = (Vec::new(), None);
    for step in world.log.chunks(3) {
        log.extend(step);
        let mut stream = Sse::open(&address, last.as_deref()).await;
        // Cut off after two of them: what was on its way is lost.
        for _ in 0..2 {
            let message = stream.next().await;
            last = Some(message.0.clone());
            got.push(message);
        }
    }
    let mut stream = Sse::open(&address, last.as_deref()).await;
    let feed = Feed::new(log.clone());
    // Messages say who and when.
    let full =
        EventFilter { view: View::Full, ..EventFilter::of_topics(Vec::new(), Arc::new(feed::Everybody)) };
    let all = read(&feed, Cursor::at(base::Index(1)), log.last(), &Arc::new(full)).await;
    while got.len() < all.len() {
        got.push(stream.next().await);
    }
    let expected = all.iter().map(|event| {
        let id = api::StreamPosition { after: event.id, cluster: feed.cluster() };
        (id.to_string(), event.topic.to_string(), String::from_utf8(event.body.to_vec()).unwrap())
    });
    assert_eq!(got, expected.collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn curl_reads_lines() {
    if Command::new("curl").arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("skipped: curl is not installed");
        return;
    }
    let world = busy();
    let log = Log::of(&world.log);
    let feed = Feed::new(log.clone());
    let address = serve(&feed).await;
    let curl = tokio::process::Command::new("curl")
        .args([
            "-sSN",
            "-i",
            "--max-time",
            "30",
            &format!("http://{address}/v1/event/stream?index=4&topic=Job"),
        ])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(curl.stdout.unwrap()).lines();
    let mut head = Vec::new();
    let mut received = Vec::new();
    while received.len() < 3 {
        let line = timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().expect("the stream goes on");
        match line.starts_with("{\"Index\"") {
            true => received.push(serde_json::from_str::<api::Events>(&line).unwrap()),
            false => head.push(line.to_lowercase()),
        }
    }
    assert_eq!(received.iter().map(|events| events.index).collect::<Vec<_>>(), [4, 5, 10]);
    assert_eq!(head.last().unwrap(), "{}", "the first heartbeat comes before anything else");
    for header in ["content-type: application/json", "cache-control: no-cache", "connection: close"] {
        assert!(head.iter().any(|line| line == header), "{header} in {head:?}");
    }
}

/// Many readers that subscribe to everything and read nothing need no more memory than one, and delay no other reader.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_that_do_not_read_cost_no_memory_and_delay_no_other() {
    let mut world = long(3, 4_000);
    let log = Log::of(&world.log);
    let feed = Feed::new(log.clone());
    let address = serve(&feed).await;
    let mut stuck = Vec::new();
    for _ in 0..64 {
        let mut socket = TcpStream::connect(&address).await.unwrap();
        socket.write_all(b"GET /v1/event/stream HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        stuck.push(socket);
    }
    let mut live = Sse::open(&address, Some("3990.0")).await;
    for _ in 0..200 {
        let from = world.log.len();
        toggle(&mut world, 2);
        log.extend(&world.log[from..]);
    }
    let mut got = Vec::new();
    while got.len() < 210 {
        got.push(live.next().await.0);
    }
    let alone = Feed::new(log.clone());
    let expected = read(&alone, Cursor::at(base::Index(3_991)), log.last(), &everything()).await;
    let position = |after| api::StreamPosition { after, cluster: feed.cluster() }.to_string();
    assert_eq!(got, ids(&expected).into_iter().map(position).collect::<Vec<_>>());
    let kept = feed.held();
    assert!(kept.bytes <= TAIL_BYTES && kept.parked <= PARKED_MAX, "{kept:?}");
    // They were not cut off: one that begins to read now reads from the beginning.
    let mut first = String::new();
    let mut reader = BufReader::new(stuck.pop().unwrap());
    while !first.starts_with("{\"Index\":1,") {
        first.clear();
        assert!(timeout(PATIENCE, reader.read_line(&mut first)).await.unwrap().unwrap() > 0);
    }
}

async fn serve(feed: &Feed) -> String {
    let routes = Router::new().route("/v1/event/stream", get(handle)).with_state(feed.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
    address
}

async fn handle(
    With(feed): With<Feed>,
    Query(pairs): Query<Vec<(String, String)>>,
    headers: HeaderMap,
) -> Response {
    let query = StreamQuery::read(&Params::new(pairs), &headers, Arc::new(feed::Everybody));
    let ending = |mut query: StreamQuery| {
        // The route looks up what is no place in the log.
        if let Some(To::Before(end, _)) = query.to {
            query.filter.end = Some(end);
        }
        subscribe(&feed, query)
    };
    query.and_then(ending).unwrap_or_else(IntoResponse::into_response)
}

/// A whole answer that ends.
async fn ask(address: &str, query: &str, header: &str) -> String {
    let mut socket = TcpStream::connect(address).await.unwrap();
    let request =
        format!("GET /v1/event/stream{query} HTTP/1.1\r\nHost: x\r\n{header}Connection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(PATIENCE, socket.read_to_string(&mut answer)).await.unwrap().unwrap();
    answer
}

/// A client of server-sent events, by the letter of their specification.
struct Sse {
    kind: String,
    body: BufReader<TcpStream>,
    /// Decoded of the chunked body and not yet taken.
    text: String,
}

impl Sse {
    async fn open(address: &str, last: Option<&str>) -> Sse {
        let mut socket = TcpStream::connect(address).await.unwrap();
        let last = last.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        let request =
            format!("GET /v1/event/stream HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n{last}\r\n");
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut body = BufReader::new(socket);
        let (mut kind, mut chunked) = (String::new(), false);
        loop {
            let mut line = String::new();
            timeout(PATIENCE, body.read_line(&mut line)).await.unwrap().unwrap();
            match line.trim_end().split_once(": ") {
                Some(("content-type", value)) => kind = value.to_string(),
                Some(("transfer-encoding", "chunked")) => chunked = true,
                Some(_) => {}
                None if line.starts_with("HTTP/1.1 200") => {}
                None => break,
            }
        }
        assert!(chunked, "an answer of unknown length is chunked");
        Sse { kind, body, text: String::new() }
    }

    /// Id, event and data of the next message with data.
    async fn next(&mut self) -> (String, String, String) {
        loop {
            while let Some((message, rest)) = self.text.split_once("\n\n") {
                let field = |name: &str| {
                    let lines = message.lines().filter_map(|line| line.strip_prefix(name));
                    lines.map(|value| value.trim_start().to_string()).collect::<Vec<_>>().join("\n")
                };
                let found = (field("id:"), field("event:"), field("data:"));
                self.text = rest.to_string();
                if !found.2.is_empty() {
                    return found;
                }
            }
            timeout(PATIENCE, self.chunk()).await.unwrap();
        }
    }

    async fn chunk(&mut self) {
        let mut size = String::new();
        self.body.read_line(&mut size).await.unwrap();
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        assert!(size > 0, "the stream goes on");
        let mut chunk = vec![0; size + 2];
        self.body.read_exact(&mut chunk).await.unwrap();
        self.text.push_str(std::str::from_utf8(&chunk[..size]).unwrap());
    }
}
