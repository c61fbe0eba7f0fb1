//! Answers that do not end: log frames, and the event stream in both of its encodings.
//!
//! [`Frames`] are JSON objects one after the other; [`Events`] is a line an index; a [`Subscription`] is the
//! server-sent form that knows where it stands and goes on from there after a break.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use model::document::input;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName};
use reqwest::{Method, Response};

use crate::Error;
use crate::client::{Client, Query};

/// Servers send a heartbeat every 15 s; a stream silent for three of them is dead.
const SILENCE_MAX: Duration = Duration::from_secs(45);

/// Longest frame of a log: 64 KiB of data in base64, and room. A longer one is not a frame.
const FRAME_MAX: usize = 1 << 20;

/// Longest line of the event stream: one index may carry a whole placement of a large job.
const LINE_MAX: usize = 256 << 20;

/// What a message is called that only says how far the stream has come.
pub const CHECKPOINT: &str = "checkpoint";

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The pieces of a log as the node reads them. Heartbeats are left out.
#[derive(Debug)]
pub struct Frames {
    body: Body,
    buffer: Vec<u8>,
    ready: VecDeque<api::StreamFrame>,
}

/// The event stream, one index at a time. Heartbeats are left out.
#[derive(Debug)]
pub struct Events {
    body: Body,
    lines: Lines,
}

/// What of the event stream is asked for.
#[derive(Clone, Debug, Default)]
pub struct EventQuery {
    /// `Topic` or `Topic:key`; none means everything.
    pub topics: Vec<String>,
    /// Begin at this index; 0 means the oldest event that is kept, or `from`.
    pub index: u64,
    /// `start`, `now`, an event's id, a span like `10m` or a time: where to begin without an index. Empty leaves it to `index`.
    pub from: String,
    /// `now`, an event's id, an index, a span or a time: where the stream ends, with a message `end`. Empty: it goes on.
    pub to: String,
    /// A condition that events have to meet.
    pub filter: String,
    /// `*` means all; empty means the client's own.
    pub namespace: String,
    /// A durable cursor: what it gives, from where it is. Without all of the above but `to`.
    pub cursor: String,
    /// Which of its readers this is, for a cursor that is split.
    pub member: Option<u32>,
    /// [`Subscription::next`] shows checkpoints too: for who acknowledges how far it has come.
    pub checkpoints: bool,
}

/// One server-sent event.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Message {
    /// `index.ordinal`: what the stream goes on after.
    pub id: String,
    /// The topic; or `end`, after which nothing more comes.
    pub event: String,
    pub data: String,
    /// The servers' time in nanoseconds; 0 from a server that does not send it.
    pub time: i64,
}

/// The event stream as server-sent events, resumable.
///
/// After a transient error the next call of [`Subscription::next`] connects again and goes on right after the
/// last message, without gap or repeat. When to try again is the caller's choice.
#[derive(Debug)]
pub struct Subscription {
    client: Client,
    query: EventQuery,
    last_id: String,
    open: Option<(Body, SseReader)>,
}

impl Client {
    /// `GET /v1/event/stream` as newline-delimited JSON.
    pub async fn events(&self, query: &EventQuery) -> Result<Events, Error> {
        let request = self.request(Method::GET, "/v1/event/stream", query.to_query());
        let response = self.send(request.header(ACCEPT, "application/json")).await?;
        Ok(Events { body: Body::new(self.address(), response), lines: Lines::default() })
    }

    /// `GET /v1/event/stream` as server-sent events; connects with the first [`Subscription::next`].
    ///
    /// `last_id` goes on after that message; empty begins at the query's index.
    pub fn subscribe(&self, query: EventQuery, last_id: &str) -> Subscription {
        Subscription { client: self.clone(), query, last_id: last_id.to_string(), open: None }
    }
}

impl EventQuery {
    fn to_query(&self) -> Query {
        let mut query = Query::new().with("namespace", &self.namespace).with("to", &self.to);
        query = query.with("filter", &self.filter).with("cursor", &self.cursor);
        if let Some(member) = self.member {
            query = query.with("member", member);
        }
        if self.index > 0 {
            query = query.with("index", self.index);
        } else if !self.from.is_empty() {
            query = query.with("from", &self.from);
        }
        self.topics.iter().fold(query, |query, topic| query.with("topic", topic))
    }
}

impl Frames {
    pub(crate) fn new(address: &str, response: Response) -> Frames {
        Frames { body: Body::new(address, response), buffer: Vec::new(), ready: VecDeque::new() }
    }

    /// The next frame with something in it; `None` when the log ends.
    ///
    /// # Errors
    /// A broken connection, a silent one, or bytes that are no frames.
    pub async fn next(&mut self) -> Result<Option<api::StreamFrame>, Error> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Ok(Some(frame));
            }
            let Some(chunk) = self.body.chunk().await? else { return Ok(None) };
            self.buffer.extend_from_slice(&chunk);
            let used = whole_frames(&self.buffer, &mut self.ready)?;
            self.buffer.drain(..used);
            if self.buffer.len() > FRAME_MAX {
                return Err(Error::Stream(format!("a frame is longer than {FRAME_MAX} bytes")));
            }
        }
    }
}

/// Moves the frames that are whole out of `buffer`; returns how many bytes they took.
fn whole_frames(buffer: &[u8], ready: &mut VecDeque<api::StreamFrame>) -> Result<usize, Error> {
    let mut frames = serde_json::Deserializer::from_slice(buffer).into_iter::<serde_json::Value>();
    let mut used = 0;
    let wrong = |error: &dyn std::fmt::Display| Error::Stream(format!("not a frame: {error}"));
    while let Some(frame) = frames.next() {
        let frame: api::StreamFrame = match frame {
            Ok(frame) => input::from_value(frame).map_err(|error| wrong(&error))?,
            Err(error) if error.is_eof() => break,
            Err(error) => return Err(wrong(&error)),
        };
        if frame != api::StreamFrame::default() {
            ready.push_back(frame);
        }
        used = frames.byte_offset();
    }
    Ok(used)
}

impl Events {
    /// The events of the next index; `None` when the server ends the stream.
    ///
    /// # Errors
    /// A broken connection, a silent one, or a line that holds no events.
    pub async fn next(&mut self) -> Result<Option<api::Events>, Error> {
        loop {
            while let Some(line) = self.lines.next() {
                let events: api::Events = input::from_slice(&line)
                    .map_err(|error| Error::Stream(format!("not a line of events: {error}")))?;
                if events != api::Events::default() {
                    return Ok(Some(events));
                }
            }
            let Some(chunk) = self.body.chunk().await? else { return Ok(None) };
            self.lines.push(&chunk)?;
        }
    }
}

impl Subscription {
    /// The id of the last message: what a later subscription resumes after.
    pub fn last_id(&self) -> &str {
        &self.last_id
    }

    /// The next message. Checkpoints only move [`Subscription::last_id`], unless they are asked for.
    ///
    /// # Errors
    /// [`Error::is_transient`] says whether calling again may help. 410 means that the events after
    /// `last_id` are no longer kept; the text names the oldest index that is.
    pub async fn next(&mut self) -> Result<Message, Error> {
        match self.read().await {
            Ok(message) => Ok(message),
            Err(error) => {
                self.open = None;
                Err(error)
            }
        }
    }

    async fn read(&mut self) -> Result<Message, Error> {
        if self.open.is_none() {
            self.open = Some((self.connect().await?, SseReader::default()));
        }
        let (body, reader) = self.open.as_mut().expect("the stream was opened just above");
        loop {
            while let Some(message) = reader.next() {
                if !message.id.is_empty() {
                    self.last_id.clone_from(&message.id);
                }
                if !message.data.is_empty() && (self.query.checkpoints || message.event != CHECKPOINT) {
                    return Ok(message);
                }
            }
            match body.chunk().await? {
                Some(chunk) => reader.push(&chunk)?,
                None => return Err(body.lost("the server ended the stream")),
            }
        }
    }

    async fn connect(&self) -> Result<Body, Error> {
        let request = self.client.request(Method::GET, "/v1/event/stream", self.query.to_query());
        let mut request = request.header(ACCEPT, "text/event-stream");
        if !self.last_id.is_empty() {
            request = request.header(LAST_EVENT_ID, &self.last_id);
        }
        let response = self.client.send(request).await?;
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if !kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
            return Err(Error::Stream("this server does not speak server-sent events".to_string()));
        }
        Ok(Body::new(self.client.address(), response))
    }
}

/// The bytes of an answer that promises heartbeats.
#[derive(Debug)]
struct Body {
    address: String,
    response: Response,
}

impl Body {
    fn new(address: &str, response: Response) -> Body {
        Body { address: address.to_string(), response }
    }

    async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        match tokio::time::timeout(SILENCE_MAX, self.response.chunk()).await {
            Ok(chunk) => chunk.map_err(|error| Error::unreachable(&self.address, &error)),
            Err(_) => Err(Error::Silent { secs: SILENCE_MAX.as_secs() }),
        }
    }

    fn lost(&self, reason: &str) -> Error {
        Error::Unreachable { address: self.address.clone(), reason: reason.to_string() }
    }
}

/// Cuts bytes into lines; ends of line may be `\n`, or `\r\n`.
#[derive(Debug, Default)]
struct Lines {
    buffer: Vec<u8>,
    /// How far the buffer is known to hold no end of line: a long line is not searched again and again.
    searched: usize,
}

impl Lines {
    fn push(&mut self, chunk: &[u8]) -> Result<(), Error> {
        if self.buffer.len() + chunk.len() > LINE_MAX {
            return Err(Error::Stream(format!("a line is longer than {LINE_MAX} bytes")));
        }
        self.buffer.extend_from_slice(chunk);
        Ok(())
    }

    /// The next whole line, without its end.
    fn next(&mut self) -> Option<Vec<u8>> {
        let Some(end) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') else {
            self.searched = self.buffer.len();
            return None;
        };
        let mut line: Vec<u8> = self.buffer.drain(..=self.searched + end).collect();
        self.searched = 0;
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Some(line)
    }
}

/// Puts server-sent events together out of their lines.
#[derive(Debug, Default)]
struct SseReader {
    lines: Lines,
    current: Message,
}

impl SseReader {
    fn push(&mut self, chunk: &[u8]) -> Result<(), Error> {
        self.lines.push(chunk)
    }

    fn next(&mut self) -> Option<Message> {
        while let Some(line) = self.lines.next() {
            let line = String::from_utf8_lossy(&line);
            if line.is_empty() {
                let message = std::mem::take(&mut self.current);
                if message != Message::default() {
                    return Some(message);
                }
                continue;
            }
            let (field, value) = line.split_once(':').unwrap_or((&line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "id" => self.current.id = value.to_string(),
                "event" => self.current.event = value.to_string(),
                "time" => self.current.time = value.parse().unwrap_or(0),
                "data" => {
                    if !self.current.data.is_empty() {
                        self.current.data.push('\n');
                    }
                    self.current.data.push_str(value);
                }
                // A comment has an empty field name; `retry` is a browser's business.
                _ => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_found_wherever_the_bytes_are_cut() {
        let text = br#"{}{"Offset":3,"Data":"YWJj"}{"FileEvent":"file deleted"}"#;
        for cut in 0..text.len() {
            let (mut buffer, mut ready) = (text[..cut].to_vec(), VecDeque::new());
            let used = whole_frames(&buffer, &mut ready).unwrap();
            buffer.drain(..used);
            buffer.extend_from_slice(&text[cut..]);
            assert_eq!(whole_frames(&buffer, &mut ready).unwrap(), buffer.len(), "cut at {cut}");
            assert_eq!(ready.len(), 2, "cut at {cut}");
            assert_eq!(ready[0].data.0, b"abc");
        }
    }

    #[test]
    fn bytes_that_are_no_frame_are_refused() {
        assert!(whole_frames(b"<html>", &mut VecDeque::new()).is_err());
    }

    #[test]
    fn messages_are_put_together_out_of_their_lines() {
        let mut reader = SseReader::default();
        reader.push(b": heartbeat\n\nretry: 1000\n\nid: 4.0\r\nevent: Job\r\ntime: 5\nda").unwrap();
        assert_eq!(reader.next(), None);
        reader.push(b"ta: {\ndata:}\n\nid: 9.0\nevent: checkpoint\n\n").unwrap();
        let message = |id: &str, event: &str, data: &str, time| {
            Some(Message { id: id.into(), event: event.into(), data: data.into(), time })
        };
        assert_eq!(reader.next(), message("4.0", "Job", "{\n}", 5));
        assert_eq!(reader.next(), message("9.0", "checkpoint", "", 0));
        assert_eq!(reader.next(), None);
    }
}
