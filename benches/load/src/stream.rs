//! The event stream: one reader that finds out what was placed, and subscribers that only count.
//!
//! Lines are looked through for the few words that matter: to parse them would cost the generator more than they cost the
//! server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::bail;
use memchr::memmem::{self, Finder};
use tokio::net::TcpStream;

use crate::http::{Agent, Body, Chunks, more, read_head};
use crate::job::{Names, parse_id};
use crate::tracker::{Seen, SeenAlloc, Tracker};

/// Longest line: a plan of 100,000 allocations.
const LINE_MAX: usize = 1 << 30;

/// Between two attempts to subscribe again.
const PAUSE: Duration = Duration::from_millis(100);

const EVENT: &[u8] = b"{\"Topic\":\"";
const KEY: &[u8] = b"\"Key\":\"";
const NODE_ID: &[u8] = b"\"NodeID\":\"";
const CLIENT_STATUS: &[u8] = b"\"ClientStatus\":\"";

/// What a reader has to say for itself.
#[derive(Debug, Default)]
pub(crate) struct ReaderCounts {
    pub events: AtomicU64,
    pub bytes: AtomicU64,
    /// The server ended the stream, and it was subscribed to again.
    pub interruptions: AtomicU64,
}

/// Where the stream is read, and from which index on.
#[derive(Clone)]
pub(crate) struct Source {
    pub agent: Agent,
    pub path: String,
    pub index: u64,
}

/// A stream that was subscribed to.
struct Subscription {
    socket: TcpStream,
    buffer: Vec<u8>,
    chunks: Chunks,
}

impl Subscription {
    async fn open(source: &Source, topics: &str, index: u64) -> anyhow::Result<Subscription> {
        let path = format!("{}&index={index}{topics}", source.path);
        let mut socket = source.agent.connect().await?;
        let request = source.agent.request("GET", &path, &[]);
        tokio::io::AsyncWriteExt::write_all(&mut socket, &request).await?;
        let mut buffer = Vec::new();
        let (head, length) = read_head(&mut socket, &mut buffer).await?;
        let buffer = buffer.split_off(length);
        if head.status != 200 || head.body != Body::Chunked {
            bail!("GET {path}: {} {}", head.status, String::from_utf8_lossy(&buffer));
        }
        Ok(Subscription { socket, buffer, chunks: Chunks::default() })
    }

    /// Waits for some of the stream, and gives it out. True once the stream has ended.
    async fn read(&mut self, out: impl FnMut(&[u8])) -> anyhow::Result<bool> {
        // What came together with the head of the answer is there already.
        if self.buffer.is_empty() {
            more(&mut self.socket, &mut self.buffer).await?;
        }
        let ended = self.chunks.feed(&self.buffer, out)?;
        self.buffer.clear();
        Ok(ended)
    }
}

/// Reads what becomes of allocations, and of nodes if some will fail, until it is dropped. The future that comes out is the reading; the stream is open.
pub(crate) async fn watch(
    source: Source,
    names: Names,
    nodes_fail: bool,
    tracker: Tracker,
    counts: Arc<ReaderCounts>,
) -> anyhow::Result<impl Future<Output = ()>> {
    let topics = if nodes_fail { "&topic=Allocation&topic=Node" } else { "&topic=Allocation" };
    let mut subscription = Subscription::open(&source, topics, source.index).await?;
    let mut lines = Lines::new(&names, nodes_fail);
    Ok(async move {
        loop {
            let mut seen = Seen::default();
            let read = subscription.read(|piece| lines.push(piece, &mut seen)).await;
            counts.bytes.store(lines.bytes, Ordering::Relaxed);
            counts.events.store(lines.events, Ordering::Relaxed);
            tracker.seen(&seen);
            if matches!(read, Ok(false)) {
                continue;
            }
            counts.interruptions.fetch_add(1, Ordering::Relaxed);
            lines.line.clear();
            subscription = loop {
                match Subscription::open(&source, topics, lines.index.max(source.index)).await {
                    Ok(subscription) => break subscription,
                    Err(_) => tokio::time::sleep(PAUSE).await,
                }
            };
        }
    })
}

/// Lines of the stream, put together of pieces.
struct Lines {
    line: Vec<u8>,
    scan: Scan,
    index: u64,
    events: u64,
    bytes: u64,
}

impl Lines {
    fn new(names: &Names, nodes_fail: bool) -> Lines {
        Lines { line: Vec::new(), scan: Scan::new(names, nodes_fail), index: 0, events: 0, bytes: 0 }
    }

    fn push(&mut self, mut piece: &[u8], seen: &mut Seen) {
        self.bytes += piece.len() as u64;
        while let Some(end) = memchr::memchr(b'\n', piece) {
            if self.line.is_empty() {
                self.look_through(&piece[..end], seen);
            } else {
                self.line.extend_from_slice(&piece[..end]);
                let line = std::mem::take(&mut self.line);
                self.look_through(&line, seen);
                self.line = line;
                self.line.clear();
            }
            piece = &piece[end + 1..];
        }
        // What is longer than any line is no event stream.
        if self.line.len() + piece.len() <= LINE_MAX {
            self.line.extend_from_slice(piece);
        }
    }

    fn look_through(&mut self, line: &[u8], seen: &mut Seen) {
        if let Some(index) = line.strip_prefix(b"{\"Index\":").and_then(leading_number) {
            self.index = index;
        }
        self.events += self.scan.line(line, seen);
    }
}

fn leading_number(text: &[u8]) -> Option<u64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&text[..digits]).ok()?.parse().ok()
}

/// Finds the allocations of the run in a line.
struct Scan {
    event: Finder<'static>,
    key: Finder<'static>,
    job: Finder<'static>,
    job_length: usize,
    status: Finder<'static>,
    nodes_fail: bool,
    node: Finder<'static>,
    down: Finder<'static>,
}

impl Scan {
    fn new(names: &Names, nodes_fail: bool) -> Scan {
        let job = format!("\"JobID\":\"{}", names.prefix());
        Scan {
            event: Finder::new(EVENT).into_owned(),
            key: Finder::new(KEY).into_owned(),
            job: Finder::new(job.as_bytes()).into_owned(),
            job_length: job.len(),
            status: Finder::new(CLIENT_STATUS).into_owned(),
            nodes_fail,
            node: Finder::new(NODE_ID).into_owned(),
            down: Finder::new(b"\"Status\":\"down\"").into_owned(),
        }
    }

    /// How many events the line has.
    fn line(&self, line: &[u8], seen: &mut Seen) -> u64 {
        let mut starts = self.event.find_iter(line).peekable();
        let mut events = 0;
        while let Some(start) = starts.next() {
            events += 1;
            let end = starts.peek().copied().unwrap_or(line.len());
            let event = &line[start..end];
            if event[EVENT.len()..].starts_with(b"Allocation\"") {
                seen.allocs.extend(self.alloc(event));
            } else if self.nodes_fail && event[EVENT.len()..].starts_with(b"Node\"") {
                seen.down.extend(self.node_down(event));
            }
        }
        events
    }

    fn alloc(&self, event: &[u8]) -> Option<SeenAlloc> {
        let job = Names::number(after(event, &self.job, self.job_length)?)?;
        let id = parse_id(after(event, &self.key, KEY.len())?)?;
        let running = after(event, &self.status, CLIENT_STATUS.len())?.starts_with(b"running\"");
        let node = match self.nodes_fail {
            true => after(event, &self.node, NODE_ID.len()).and_then(parse_id).unwrap_or(0),
            false => 0,
        };
        Some(SeenAlloc { job, id, running, node })
    }

    fn node_down(&self, event: &[u8]) -> Option<u128> {
        self.down.find(event)?;
        parse_id(after(event, &self.key, KEY.len())?)
    }
}

/// What follows the word, which is that long.
fn after<'a>(event: &'a [u8], word: &Finder<'_>, length: usize) -> Option<&'a [u8]> {
    Some(&event[word.find(event)? + length..])
}

/// Reads all topics and counts events, until it is dropped.
pub(crate) async fn subscribe(
    source: Source,
    counts: Arc<ReaderCounts>,
) -> anyhow::Result<impl Future<Output = ()>> {
    let mut subscription = Subscription::open(&source, "&topic=*", source.index).await?;
    let mut counter = Counter::default();
    Ok(async move {
        loop {
            let mut events = 0;
            let mut bytes = 0;
            let read = subscription
                .read(|piece| {
                    bytes += piece.len() as u64;
                    events += counter.count(piece);
                })
                .await;
            counts.events.fetch_add(events, Ordering::Relaxed);
            counts.bytes.fetch_add(bytes, Ordering::Relaxed);
            if !matches!(read, Ok(false)) {
                // It begins again: that it has missed some or had some twice shows in its count.
                counts.interruptions.fetch_add(1, Ordering::Relaxed);
                (subscription, counter) = loop {
                    match Subscription::open(&source, "&topic=*", source.index).await {
                        Ok(subscription) => break (subscription, Counter::default()),
                        Err(_) => tokio::time::sleep(PAUSE).await,
                    }
                };
            }
        }
    })
}

/// Counts events in a stream that comes in pieces.
#[derive(Default)]
struct Counter {
    /// What the piece before ended with, too short to be the beginning of an event.
    tail: Vec<u8>,
}

impl Counter {
    fn count(&mut self, piece: &[u8]) -> u64 {
        let keep = EVENT.len() - 1;
        let seam = [self.tail.as_slice(), &piece[..keep.min(piece.len())]].concat();
        let across = memmem::find_iter(&seam, EVENT).filter(|at| at + EVENT.len() > self.tail.len()).count();
        let inside = memmem::find_iter(piece, EVENT).count();
        let tail = if piece.len() >= keep { piece } else { seam.as_slice() };
        self.tail = tail[tail.len() - keep.min(tail.len())..].to_vec();
        (across + inside) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";
    const TWO: &str = "6ba7b811-9dad-41d1-80b4-00c04fd430c8";

    fn event(topic: &str, id: &str, job: &str, status: &str) -> String {
        format!(
            "{{\"Topic\":\"{topic}\",\"Type\":\"PlanResult\",\"Key\":\"{id}\",\"Namespace\":\"default\",\"FilterKeys\":[\"{job}\"],\
             \"Index\":8,\"Payload\":{{\"Allocation\":{{\"ID\":\"{id}\",\"JobID\":\"{job}\",\"ClientStatus\":\"{status}\"}}}}}}"
        )
    }

    fn stream() -> String {
        let ours = [
            event("Allocation", ONE, "bench-run-00000007", "pending"),
            event("Evaluation", TWO, "bench-run-00000007", "running"),
            event("Allocation", TWO, "bench-run-00000012", "running"),
            event("Allocation", TWO, "bench-other-00000012", "running"),
        ];
        format!("{{}}\n{{\"Index\":8,\"Events\":[{}]}}\n{{}}\n", ours.join(","))
    }

    #[test]
    fn allocations_of_the_run_are_found_however_the_stream_is_cut() {
        let stream = stream();
        let id = |text: &str| parse_id(text.as_bytes()).unwrap();
        let wanted = [
            SeenAlloc { job: 7, id: id(ONE), running: false, node: 0 },
            SeenAlloc { job: 12, id: id(TWO), running: true, node: 0 },
        ];
        for size in 1..stream.len() {
            let (mut lines, mut seen) = (Lines::new(&Names::new("run"), false), Seen::default());
            for piece in stream.as_bytes().chunks(size) {
                lines.push(piece, &mut seen);
            }
            assert_eq!(seen.allocs, wanted, "in pieces of {size}");
            assert_eq!((lines.index, lines.events), (8, 4));
        }
    }

    #[test]
    fn nodes_that_are_down_are_seen_and_where_allocations_are() {
        let alloc = event("Allocation", ONE, "bench-run-00000007", &format!("pending\",\"NodeID\":\"{TWO}"));
        let node = |status: &str| {
            format!(
                "{{\"Topic\":\"Node\",\"Key\":\"{TWO}\",\"Payload\":{{\"Node\":{{\"Status\":\"{status}\"}}}}}}"
            )
        };
        let text = format!("{{\"Index\":9,\"Events\":[{alloc},{},{}]}}\n", node("ready"), node("down"));
        let (mut lines, mut seen) = (Lines::new(&Names::new("run"), true), Seen::default());
        lines.push(text.as_bytes(), &mut seen);
        assert_eq!(seen.down, [parse_id(TWO.as_bytes()).unwrap()]);
        assert_eq!(seen.allocs[0].node, seen.down[0]);
    }

    #[test]
    fn a_subscriber_counts_each_event_once_however_the_stream_is_cut() {
        let stream = stream();
        for size in 1..stream.len() {
            let mut counter = Counter::default();
            let count: u64 = stream.as_bytes().chunks(size).map(|piece| counter.count(piece)).sum();
            assert_eq!(count, 4, "in pieces of {size}");
        }
    }
}
