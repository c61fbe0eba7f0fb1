//! The two forms of the stream. Pages come in any size, so both know what they have begun.

use api::EventId;
use base::Index;

use super::page::{Cursor, Page};

/// Batches without a wanted event after which a reader is told where it stands, so that it resumes there.
const CHECKPOINT_BATCHES: u64 = 256;
/// What browsers wait before they connect again, in milliseconds.
const RETRY_MS: u32 = 1_000;

pub(super) enum Encoder {
    Lines(Lines),
    Messages(Messages),
}

/// A JSON object a line: the wanted events of one index. As the reference.
#[derive(Default)]
pub(super) struct Lines {
    /// The index whose line is not ended.
    open: Option<Index>,
}

/// Server-sent events: one message an event.
pub(super) struct Messages {
    /// The index the reader knows an id of.
    told: Index,
    /// What was looked at since and not wanted.
    passed: Option<EventId>,
}

impl Encoder {
    pub fn lines() -> Encoder {
        Encoder::Lines(Lines::default())
    }

    pub fn messages(start: Cursor) -> Encoder {
        Encoder::Messages(Messages { told: start.index, passed: None })
    }

    /// What a stream begins with, so that its reader knows at once that it is there.
    pub fn hello(&self) -> Vec<u8> {
        match self {
            Encoder::Lines(_) => b"{}\n".to_vec(),
            Encoder::Messages(_) => format!("retry: {RETRY_MS}\n\n").into_bytes(),
        }
    }

    /// Nothing when the page brought nothing worth saying.
    pub fn page(&mut self, page: &Page) -> Vec<u8> {
        match self {
            Encoder::Lines(lines) => lines.page(page),
            Encoder::Messages(messages) => messages.page(page),
        }
    }

    /// Shows that the stream lives.
    pub fn heartbeat(&mut self) -> Vec<u8> {
        match self {
            // Blanks within a line change nothing for whoever reads it.
            Encoder::Lines(Lines { open: Some(_) }) => b" ".to_vec(),
            Encoder::Lines(Lines { open: None }) => b"{}\n".to_vec(),
            Encoder::Messages(messages) => {
                let mut out = b": heartbeat\n\n".to_vec();
                messages.checkpoint(&mut out);
                out
            }
        }
    }
}

impl Lines {
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

impl Messages {
    fn page(&mut self, page: &Page) -> Vec<u8> {
        let mut out = Vec::new();
        for event in &page.events {
            let head = format!("id: {}\nevent: {}\ndata: ", event.id, event.topic);
            out.extend_from_slice(head.as_bytes());
            out.extend_from_slice(&event.body);
            out.extend_from_slice(b"\n\n");
        }
        let last = page.events.last().map(|event| event.id);
        self.told = last.map_or(self.told, |id| id.index);
        if page.seen.is_some() {
            self.passed = page.seen.filter(|seen| Some(*seen) != last);
        }
        if self.passed.is_some_and(|passed| passed.index.0.saturating_sub(self.told.0) >= CHECKPOINT_BATCHES)
        {
            self.checkpoint(&mut out);
        }
        out
    }

    fn checkpoint(&mut self, out: &mut Vec<u8>) {
        let Some(passed) = self.passed.take() else { return };
        let message = format!("id: {passed}\nevent: checkpoint\ndata: {{\"Index\":{}}}\n\n", passed.index);
        out.extend_from_slice(message.as_bytes());
        self.told = passed.index;
    }
}
