//! What is asked about single events of the stream: how far a cursor is behind, whether an event was ever given, and which
//! fact of the log it is listed for.

use std::sync::Arc;

use api::{EventId, TopicFilter};
use base::{Index, Time};
use model::CommandKind;

use super::feed::{Feed, FeedError};
use super::page::{Cursor, EventFilter, Everybody, Page};
use super::view::View;

/// Batches before the newest one in which those that only move cursors are told from others. What lies further back counts
/// as a whole.
const LOOKED_AT_MAX: u64 = 4096;
/// Bytes of log read at once.
const READ_BYTES: usize = 1 << 20;

/// How far a reader is behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lag {
    /// Batches that follow and are about something else than cursors.
    pub batches: u64,
    /// When the first of them was made.
    pub since: Option<Time>,
}

/// The recent batches that are about something else than cursors, in their order. Who knows it knows the lag of everybody.
pub struct Recent {
    /// What comes before is not looked at.
    from: Index,
    batches: Vec<(Index, Time)>,
}

impl Feed {
    /// Read on the caller's thread. `furthest` is the place of the one that is furthest behind.
    ///
    /// # Errors
    /// [`FeedError::Failed`]: the log cannot be read.
    pub fn recent(&self, furthest: Index) -> Result<Recent, FeedError> {
        let (oldest, end) = (self.oldest(), self.newest());
        let from = furthest.next().max(oldest).max(Index(end.0.saturating_sub(LOOKED_AT_MAX)));
        let mut recent = Recent { from, batches: Vec::new() };
        let mut next = from;
        while next < end {
            let read = self.read_log(next, READ_BYTES)?;
            let Some(last) = read.last().map(|batch| batch.index()) else { break };
            for batch in read.iter().filter(|batch| batch.index() < end) {
                let commands = batch.commands()?;
                if !is_of_cursors(commands.iter().map(|command| command.kind)) {
                    recent.batches.push((batch.index(), batch.time()));
                }
            }
            next = last.next();
        }
        Ok(recent)
    }

    /// How far somebody is behind who has read everything up to `index`.
    ///
    /// # Errors
    /// [`FeedError::Failed`]: the log cannot be read.
    pub fn lag(&self, recent: &Recent, index: Index) -> Result<Lag, FeedError> {
        let at = recent.batches.partition_point(|(known, _)| *known <= index);
        let looked_at = &recent.batches[at..];
        let before = recent.from.0.saturating_sub(index.next().0);
        let first = if before > 0 {
            // Of what is gone nobody knows the time any more.
            let first = self.batch(index.next().max(self.oldest()));
            first.ok().map(|batch| batch.time())
        } else {
            None
        };
        let since = first.or(looked_at.first().map(|(_, time)| *time));
        Ok(Lag { batches: before + looked_at.len() as u64, since })
    }

    /// Whether the stream ever had this event, or had this for a place in it. What is no longer kept may have been.
    ///
    /// # Errors
    /// [`FeedError`]: the log cannot be read.
    pub async fn was_given(&self, id: EventId) -> Result<bool, FeedError> {
        if id.index >= self.newest() {
            return Ok(false);
        }
        if id.ordinal == u32::MAX || id.index < self.oldest() {
            return Ok(true);
        }
        // Nothing has this topic: the events are counted, and none is rendered.
        let nothing = TopicFilter { topic: String::new(), key: String::new() };
        let filter = EventFilter::of_topics(vec![nothing], Arc::new(Everybody));
        Ok(self.page_of(id, filter).await?.seen == Some(id))
    }

    /// The position in its batch of the fact in the log that an event of the stream is listed for; `None` when there is no such
    /// event.
    ///
    /// # Errors
    /// [`FeedError::Gone`] when it is no longer kept.
    pub async fn fact(&self, id: EventId) -> Result<Option<u16>, FeedError> {
        if id.index >= self.newest() {
            return Ok(None);
        }
        if id.index < self.oldest() {
            return Err(FeedError::Gone);
        }
        let everything = EventFilter::of_topics(Vec::new(), Arc::new(Everybody));
        let page = self.page_of(id, EventFilter { view: View::Key, ..everything }).await?;
        Ok(page.events.first().filter(|event| event.id == id).map(|event| event.fact))
    }

    /// From this event to itself.
    async fn page_of(&self, id: EventId, filter: EventFilter) -> Result<Page, FeedError> {
        let filter = EventFilter { end: Some(Cursor::after(id)), ..filter };
        self.page(Cursor { index: id.index, ordinal: id.ordinal }, &Arc::new(filter)).await
    }
}

/// All of these commands are about cursors: nobody is sent anything of such a batch, and it puts nobody behind.
pub(crate) fn is_of_cursors(mut kinds: impl Iterator<Item = u16>) -> bool {
    let mut any = false;
    let all = kinds.all(|kind| {
        any = true;
        CommandKind::from_number(kind).is_some_and(CommandKind::is_of_cursors)
    });
    any && all
}
