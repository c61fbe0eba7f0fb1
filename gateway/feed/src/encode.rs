//! The two encodings of the stream. Pages come in any size, so both remember what they have begun.

use api::{ClusterTag, EventId, StreamPosition};
use base::Index;

use super::page::{Cursor, Page};

/// Batches without a matching event after which a reader gets a checkpoint, so that it resumes there.
const CHECKPOINT_BATCHES: u64 = 256;
/// What browsers wait before they connect again, in milliseconds.
const RETRY_MS: u32 = 1_000;

pub enum Encoder {
    NdJson(NdJson),
    /// An event a line.
    Lines,
    ServerSentEvents(ServerSentEvents),
}

/// A JSON object a line: the matching events of one index. As Nomad does it.
#[derive(Default)]
pub struct NdJson {
    /// The index whose line is not ended.
    open: Option<Index>,
}

/// Server-sent events: one message an event.
pub struct ServerSentEvents {
    /// The index the reader knows an id of.
    known: Index,
    /// What was read since and did not match.
    passed: Option<EventId>,
    /// Where the stream begins, for a reader that left that to the server: its first id.
    announced: Option<EventId>,
    /// From where to where the reader misses something that is no longer kept.
    gap: Option<(Index, Index)>,
}

impl Encoder {
    pub fn lines() -> Encoder {
        Encoder::NdJson(NdJson::default())
    }

    pub fn messages(start: Cursor) -> Encoder {
        let (passed, announced, gap) = (None, None, None);
        Encoder::ServerSentEvents(ServerSentEvents { known: start.index, passed, announced, gap })
    }

    /// Begins with a message about what the reader asked for and is no longer kept. Lines have no room for one.
    pub fn after_gap(mut self, wanted: Index, oldest: Index) -> Encoder {
        if let Encoder::ServerSentEvents(messages) = &mut self {
            messages.gap = Some((wanted, oldest));
        }
        self
    }

    /// As [`Encoder::messages`], for a reader that left it to the server where to begin: a connection that is lost before
    /// the first event must not begin anew somewhere else.
    pub fn announced_messages(start: Cursor) -> Encoder {
        let before = Index(start.index.0.saturating_sub(1));
        let announced = (before > Index::ZERO).then_some(EventId { index: before, ordinal: u32::MAX });
        let (passed, gap) = (None, None);
        Encoder::ServerSentEvents(ServerSentEvents { known: start.index, passed, announced, gap })
    }

    /// What a stream begins with, so that its reader knows at once that it is open.
    pub fn opening(&self, cluster: Option<ClusterTag>) -> Vec<u8> {
        match self {
            Encoder::NdJson(_) => b"{}\n".to_vec(),
            Encoder::Lines => b"\n".to_vec(),
            Encoder::ServerSentEvents(messages) => {
                let id =
                    messages.announced.map(|after| format!("id: {}\n", StreamPosition { after, cluster }));
                let gap = messages.gap.map(|(wanted, oldest)| {
                    format!("event: gap\ndata: {{\"From\":{wanted},\"Oldest\":{oldest}}}\n\n")
                });
                let (id, gap) = (id.unwrap_or_default(), gap.unwrap_or_default());
                format!("{id}retry: {RETRY_MS}\n\n{gap}").into_bytes()
            }
        }
    }

    /// Nothing when there is nothing to send. Positions name the cluster, unless it is not known yet.
    pub fn page(&mut self, page: &Page, cluster: Option<ClusterTag>) -> Vec<u8> {
        match self {
            Encoder::NdJson(lines) => lines.page(page),
            Encoder::Lines => {
                page.events.iter().flat_map(|event| [&event.body[..], b"\n"].concat()).collect()
            }
            Encoder::ServerSentEvents(messages) => messages.page(page, cluster),
        }
    }

    /// Nothing more comes: everything before `cursor` was read.
    pub fn end(&mut self, cursor: Cursor, cluster: Option<ClusterTag>) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Encoder::NdJson(lines) => lines.end(&mut out),
            Encoder::Lines => {}
            Encoder::ServerSentEvents(_) => {
                let read =
                    cursor.ordinal.checked_sub(1).map(|ordinal| EventId { index: cursor.index, ordinal });
                let before = EventId { index: Index(cursor.index.0.saturating_sub(1)), ordinal: u32::MAX };
                let after = read.unwrap_or(before);
                let id = StreamPosition { after, cluster };
                let message = format!("id: {id}\nevent: end\ndata: {{\"Index\":{}}}\n\n", after.index);
                out.extend_from_slice(message.as_bytes());
            }
        }
        out
    }

    /// Shows that the stream lives.
    pub fn heartbeat(&mut self, cluster: Option<ClusterTag>) -> Vec<u8> {
        match self {
            // Blanks within a line change nothing for its reader.
            Encoder::NdJson(NdJson { open: Some(_) }) => b" ".to_vec(),
            Encoder::NdJson(NdJson { open: None }) => b"{}\n".to_vec(),
            Encoder::Lines => b"\n".to_vec(),
            Encoder::ServerSentEvents(messages) => {
                let mut out = b": heartbeat\n\n".to_vec();
                messages.checkpoint(&mut out, cluster);
                out
            }
        }
    }
}

impl NdJson {
    fn page(&mut self, page: &Page) -> Vec<u8> {
        let mut out = Vec::new();
        for event in &page.events {
            if self.open == Some(event.id.index) {
                out.push(b',');
            } else {
                self.end(&mut out);
                let begin = format!("{{\"Index\":{},\"Events\":[", event.id.index);
                out.extend_from_slice(begin.as_bytes());
                self.open = Some(event.id.index);
            }
            out.extend_from_slice(&event.body);
        }
        if self.open.is_some_and(|open| open < page.next.index) {
            self.end(&mut out);
        }
        out
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        if self.open.take().is_some() {
            out.extend_from_slice(b"]}\n");
        }
    }
}

impl ServerSentEvents {
    fn page(&mut self, page: &Page, cluster: Option<ClusterTag>) -> Vec<u8> {
        let mut out = Vec::new();
        for event in &page.events {
            let id = StreamPosition { after: event.id, cluster };
            // Readers of server-sent events ignore fields that they do not know.
            let head = format!("id: {id}\nevent: {}\ntime: {}\ndata: ", event.topic, event.time.0);
            out.extend_from_slice(head.as_bytes());
            out.extend_from_slice(&event.body);
            out.extend_from_slice(b"\n\n");
        }
        let last = page.events.last().map(|event| event.id);
        self.known = last.map_or(self.known, |id| id.index);
        if page.seen.is_some() {
            self.passed = page.seen.filter(|seen| Some(*seen) != last);
        }
        if self.passed.is_some_and(|passed| passed.index.0.saturating_sub(self.known.0) >= CHECKPOINT_BATCHES)
        {
            self.checkpoint(&mut out, cluster);
        }
        out
    }

    fn checkpoint(&mut self, out: &mut Vec<u8>, cluster: Option<ClusterTag>) {
        let Some(passed) = self.passed.take() else { return };
        let id = StreamPosition { after: passed, cluster };
        let message = format!("id: {id}\nevent: checkpoint\ndata: {{\"Index\":{}}}\n\n", passed.index);
        out.extend_from_slice(message.as_bytes());
        self.known = passed.index;
    }
}
