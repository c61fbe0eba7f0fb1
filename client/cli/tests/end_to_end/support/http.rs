//! A plain HTTP client: tests control every byte that is sent.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// The read timeout. Streams send heartbeats more often.
const SILENCE_MAX: Duration = Duration::from_secs(120);

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// `X-Nomad-Index`.
    pub index: Option<u64>,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

pub fn get(address: SocketAddr, path: &str) -> io::Result<Answer> {
    call(address, "GET", path, b"")
}

pub fn put(address: SocketAddr, path: &str, body: &Value) -> io::Result<Answer> {
    call(address, "PUT", path, body.to_string().as_bytes())
}

/// As [`put`], with an idempotency token and a timeout.
pub fn put_named(
    address: SocketAddr,
    path: &str,
    body: &Value,
    name: &str,
    patience: Duration,
) -> io::Result<Answer> {
    let body = body.to_string();
    let head = format!(
        "PUT {path} HTTP/1.0\r\nHost: test\r\nUser-Agent: test/1.0\r\nX-Sojourn-Request-Id: {name}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut socket = TcpStream::connect_timeout(&address, patience)?;
    socket.set_read_timeout(Some(patience))?;
    socket.write_all(head.as_bytes())?;
    socket.write_all(body.as_bytes())?;
    read_answer(socket)
}

pub fn delete(address: SocketAddr, path: &str) -> io::Result<Answer> {
    call(address, "DELETE", path, b"")
}

/// # Errors
/// When the connection breaks before the answer is whole.
pub fn call(address: SocketAddr, method: &str, path: &str, body: &[u8]) -> io::Result<Answer> {
    let head = format!("{method} {path} HTTP/1.0\r\nHost: test\r\nContent-Length: {}\r\n\r\n", body.len());
    let mut socket = open(address, &head)?;
    // A server that rejects a large body may stop reading it.
    socket.write_all(body).or_else(|error| if body.len() > 1 << 20 { Ok(()) } else { Err(error) })?;
    read_answer(socket)
}

fn read_answer(socket: TcpStream) -> io::Result<Answer> {
    let mut reader = BufReader::new(socket);
    let head = read_head(&mut reader)?;
    let mut body = Vec::new();
    reader.read_to_end(&mut body)?;
    if head.length.is_some_and(|length| length != body.len()) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let body = String::from_utf8(body).map_err(io::Error::other)?;
    Ok(Answer { status: head.status, index: head.index, body })
}

/// An event as the stream shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Index and ordinal.
    pub id: (u64, u64),
    pub topic: String,
    pub data: String,
}

/// The event stream of a cluster, without heartbeats.
pub struct Events(BufReader<TcpStream>);

impl Events {
    /// Begins after an event, or at the first one there is.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn open(address: SocketAddr, after: Option<(u64, u64)>) -> io::Result<Events> {
        let (path, resume) = match after {
            Some((index, ordinal)) => ("", format!("Last-Event-ID: {index}.{ordinal}\r\n")),
            None => ("?index=1", String::new()),
        };
        let head = format!(
            "GET /v1/event/stream{path} HTTP/1.0\r\nHost: test\r\nAccept: text/event-stream\r\n{resume}\r\n"
        );
        let mut reader = BufReader::new(open(address, &head)?);
        let head = read_head(&mut reader)?;
        assert_eq!(head.status, 200, "the stream is open");
        Ok(Events(reader))
    }

    /// The next event, as far as the connection holds.
    pub fn next(&mut self) -> io::Result<Event> {
        let mut event = Event { id: (0, 0), topic: String::new(), data: String::new() };
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line)?;
            if !line.ends_with('\n') {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            match line.trim_end().split_once(": ") {
                Some(("id", id)) => event.id = id_of(id),
                Some(("event", topic)) => event.topic = topic.to_string(),
                Some(("data", data)) => event.data = data.to_string(),
                Some(_) => {}
                None if event.topic.is_empty() || event.topic == "checkpoint" => {}
                None => return Ok(event),
            }
        }
    }
}

fn id_of(text: &str) -> (u64, u64) {
    let (id, _cluster) = text.split_once('@').unwrap_or_else(|| panic!("{text} names no cluster"));
    let (index, ordinal) = id.split_once('.').unwrap_or_else(|| panic!("{text} is no event id"));
    (index.parse().unwrap(), ordinal.parse().unwrap())
}

fn open(address: SocketAddr, head: &str) -> io::Result<TcpStream> {
    let mut socket = TcpStream::connect(address)?;
    socket.set_read_timeout(Some(SILENCE_MAX))?;
    socket.write_all(head.as_bytes())?;
    Ok(socket)
}

#[derive(Default)]
struct Head {
    status: u16,
    index: Option<u64>,
    length: Option<usize>,
}

fn read_head(reader: &mut impl BufRead) -> io::Result<Head> {
    let mut head = Head::default();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end().to_ascii_lowercase();
        match line.split_once(": ") {
            _ if line.is_empty() => return Ok(head),
            Some(("x-nomad-index", index)) => head.index = index.parse().ok(),
            Some(("content-length", length)) => head.length = length.parse().ok(),
            Some(_) => {}
            None => head.status = line.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0),
        }
    }
}
