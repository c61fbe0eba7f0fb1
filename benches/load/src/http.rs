//! HTTP/1.1 over one connection that is kept, with as little work for an answer as it takes.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// An answer that takes longer counts as failed.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// Largest head of an answer.
const HEAD_MAX: usize = 64 << 10;

/// Largest answer; the generator asks for nothing large.
const BODY_MAX: usize = 256 << 20;

const READ: usize = 64 << 10;

/// An agent, and what every request to it says.
#[derive(Clone, Debug)]
pub(crate) struct Agent {
    addresses: Vec<SocketAddr>,
    host: String,
    token: String,
}

impl Agent {
    /// Finds the agent at `http://HOST:PORT`.
    pub(crate) async fn find(address: &str, token: &str) -> anyhow::Result<Agent> {
        let wrong = || anyhow!("-address: expected http://HOST:PORT, not \"{address}\"; bench speaks no TLS");
        let host = address.trim_end_matches('/').strip_prefix("http://").ok_or_else(wrong)?;
        if host.is_empty() || host.contains('/') {
            return Err(wrong());
        }
        let full = if host.contains(':') { host.to_string() } else { format!("{host}:80") };
        let found = tokio::net::lookup_host(&full).await.with_context(|| format!("-address: {host}"))?;
        if !token.chars().all(|c| c.is_ascii_graphic()) {
            bail!("-token: expected a secret of visible characters");
        }
        Ok(Agent { addresses: found.collect(), host: host.to_string(), token: token.to_string() })
    }

    /// A request as it goes over the wire.
    pub(crate) fn request(&self, method: &str, path: &str, body: &[u8]) -> Vec<u8> {
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", self.host);
        if !self.token.is_empty() {
            head.push_str(&format!("X-Nomad-Token: {}\r\n", self.token));
        }
        if !body.is_empty() {
            head.push_str("Content-Type: application/json\r\n");
        }
        head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
        [head.as_bytes(), body].concat()
    }

    pub(crate) async fn connect(&self) -> io::Result<TcpStream> {
        let socket = TcpStream::connect(&self.addresses[..]).await?;
        socket.set_nodelay(true)?;
        Ok(socket)
    }

    /// One request on a connection of its own.
    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<Answer> {
        let answer = Http::new(self.clone()).send(&self.request("GET", path, &[])).await?;
        match answer.status {
            200 => Ok(answer),
            status => bail!("GET {path}: {status} {}", answer.text()),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub status: u16,
    /// Of the state that it was read from; 0 where that is not said.
    pub index: u64,
    pub body: Vec<u8>,
}

impl Answer {
    /// The beginning of its body, for messages.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body[..self.body.len().min(300)]).trim().to_string()
    }
}

/// A connection that is made when it is needed, and again when the other end has closed it.
pub(crate) struct Http {
    agent: Agent,
    socket: Option<TcpStream>,
    buffer: Vec<u8>,
}

impl Http {
    pub(crate) fn new(agent: Agent) -> Http {
        Http { agent, socket: None, buffer: Vec::with_capacity(READ) }
    }

    /// Sends a request and waits for its answer. Requests here may be repeated without harm, so one that meets a connection
    /// which the other end has just closed is sent again on a new one.
    pub(crate) async fn send(&mut self, request: &[u8]) -> io::Result<Answer> {
        let was_open = self.socket.is_some();
        match self.exchange(request).await {
            Err(error) if was_open && error.kind() != io::ErrorKind::TimedOut => self.exchange(request).await,
            done => done,
        }
    }

    async fn exchange(&mut self, request: &[u8]) -> io::Result<Answer> {
        let mut socket = match self.socket.take() {
            Some(socket) => socket,
            None => self.agent.connect().await?,
        };
        self.buffer.clear();
        let answered = async {
            socket.write_all(request).await?;
            read_answer(&mut socket, &mut self.buffer).await
        };
        let late = |_| Err(io::Error::new(io::ErrorKind::TimedOut, "no answer within 60s"));
        let (answer, keep) = tokio::time::timeout(ANSWER_MAX, answered).await.unwrap_or_else(late)?;
        self.socket = keep.then_some(socket);
        Ok(answer)
    }
}

/// The answer, and whether the connection stays open.
async fn read_answer(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<(Answer, bool)> {
    let (head, length) = read_head(socket, buffer).await?;
    let mut body = buffer.split_off(length);
    match head.body {
        Body::Length(length) => {
            body.reserve(length.saturating_sub(body.len()));
            while body.len() < length {
                more(socket, &mut body).await?;
            }
        }
        Body::Chunked => {
            let (mut chunks, mut whole) = (Chunks::default(), Vec::new());
            while !chunks.feed(&body, |piece| whole.extend_from_slice(piece))? {
                if whole.len() > BODY_MAX {
                    return Err(invalid("an answer of more than 256 MiB"));
                }
                body.clear();
                more(socket, &mut body).await?;
            }
            body = whole;
        }
    }
    Ok((Answer { status: head.status, index: head.index, body }, head.keep))
}

/// Reads up to the end of the head, which is that long in the buffer.
pub(crate) async fn read_head(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<(Head, usize)> {
    loop {
        if let Some(end) = memmem::find(buffer, b"\r\n\r\n") {
            return Ok((Head::parse(&buffer[..end])?, end + 4));
        }
        if buffer.len() > HEAD_MAX {
            return Err(invalid("a head of more than 64 KiB"));
        }
        more(socket, buffer).await?;
    }
}

/// Waits for more bytes.
pub(crate) async fn more(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<()> {
    buffer.reserve(READ);
    match socket.read_buf(buffer).await? {
        0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server has closed the connection")),
        _ => Ok(()),
    }
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[derive(Debug, PartialEq)]
pub(crate) struct Head {
    pub status: u16,
    pub body: Body,
    index: u64,
    keep: bool,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Body {
    Length(usize),
    Chunked,
}

impl Head {
    fn parse(head: &[u8]) -> io::Result<Head> {
        let text = std::str::from_utf8(head).map_err(|_| invalid("a head that is no text"))?;
        let mut lines = text.split("\r\n");
        let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.")?.get(2..5)?.parse().ok());
        let status = status.ok_or_else(|| invalid("no answer in HTTP/1"))?;
        let mut parsed = Head { status, body: Body::Length(0), index: 0, keep: true };
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") {
                let length = value.parse().ok().filter(|length| *length <= BODY_MAX);
                parsed.body = Body::Length(length.ok_or_else(|| invalid("an invalid Content-Length"))?);
            } else if name.eq_ignore_ascii_case("transfer-encoding") && value.eq_ignore_ascii_case("chunked")
            {
                parsed.body = Body::Chunked;
            } else if name.eq_ignore_ascii_case("x-nomad-index") {
                parsed.index = value.parse().map_err(|_| invalid("an invalid X-Nomad-Index"))?;
            } else if name.eq_ignore_ascii_case("connection") && value.eq_ignore_ascii_case("close") {
                parsed.keep = false;
            }
        }
        Ok(parsed)
    }
}

/// Takes the lengths out of a chunked body that arrives in pieces.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    at: At,
    /// Of the length so far, or of the chunk that is left.
    length: usize,
}

#[derive(Debug, Default, PartialEq)]
enum At {
    #[default]
    Length,
    /// In what follows the length on its line.
    Rest,
    Data,
    /// In the line end after a chunk.
    Gap,
    End,
}

impl Chunks {
    /// Gives out the content of these bytes; true once the body has ended.
    pub(crate) fn feed(&mut self, mut input: &[u8], mut out: impl FnMut(&[u8])) -> io::Result<bool> {
        while let Some((&byte, rest)) = input.split_first() {
            match self.at {
                At::Data => {
                    let (piece, rest) = input.split_at(self.length.min(input.len()));
                    out(piece);
                    (self.length, input) = (self.length - piece.len(), rest);
                    if self.length == 0 {
                        self.at = At::Gap;
                    }
                    continue;
                }
                At::Length => match (byte as char).to_digit(16) {
                    Some(digit) if self.length <= BODY_MAX => self.length = self.length * 16 + digit as usize,
                    Some(_) => return Err(invalid("a chunk of more than 256 MiB")),
                    None => self.at = At::Rest,
                },
                At::Rest | At::Gap | At::End => {}
            }
            if byte == b'\n' {
                self.at = match self.at {
                    At::Rest if self.length == 0 => At::End,
                    At::Rest => At::Data,
                    At::Gap | At::Length => At::Length,
                    At::Data | At::End => return Ok(true),
                };
            }
            input = rest;
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunked_body_is_the_same_however_it_is_cut() {
        let body = b"5\r\nhello\r\n1;x=y\r\n,\r\n006\r\n world\r\n0\r\n\r\n";
        for size in 1..body.len() {
            let (mut chunks, mut out, mut ended) = (Chunks::default(), Vec::new(), false);
            for piece in body.chunks(size) {
                ended = chunks.feed(piece, |piece| out.extend_from_slice(piece)).unwrap();
            }
            assert_eq!((out.as_slice(), ended), (&b"hello, world"[..], true), "in pieces of {size}");
        }
    }

    #[test]
    fn what_is_no_length_or_too_large_a_one_is_rejected() {
        assert!(Chunks::default().feed(b"ffffffffff\r\n", |_| ()).is_err());
        assert!(Head::parse(b"HTTP/1.1 200 OK\r\nContent-Length: -1").is_err());
        assert!(Head::parse(b"SSH-2.0").is_err());
    }

    #[test]
    fn a_head_says_how_its_body_ends_and_whether_another_request_may_follow() {
        let head =
            Head::parse(b"HTTP/1.1 500 Oh\r\ncontent-length: 7\r\nX-Nomad-Index: 42\r\nConnection: Close")
                .unwrap();
        assert_eq!(head, Head { status: 500, body: Body::Length(7), index: 42, keep: false });
        let head = Head::parse(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked").unwrap();
        assert_eq!(head, Head { status: 200, body: Body::Chunked, index: 0, keep: true });
    }
}
