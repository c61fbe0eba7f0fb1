use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use api::{ClusterTag, EventId};
use base::Index;
use bytes::Bytes;
use journal::EncodedBatch;
use model::{Batch, CommandRecord};
use serde_json::Value;
use state::State;

use super::body;
use super::cause::Cause;
use super::entries::{self, Entry};
use super::feed::FeedError;
use super::lag::is_of_cursors;
use super::view::{self, Origin, View};

/// What keeping one event costs besides its JSON: the entry, the row it holds on to and its part of a page.
const HELD_BYTES: usize = 1_536;
/// What a byte of JSON becomes once it is parsed, about.
const DOCUMENT_BYTES: usize = 4;

/// One batch of the stream: its entries, and the state it led to. An event is rendered when the first reader needs it,
/// once for all.
pub struct RenderedBatch {
    pub entries: Vec<Entry>,
    state: State,
    /// The state that the batch followed on. It shares with `state` what did not change.
    before: Box<State>,
    /// Who asked for what, and what made them.
    commands: Vec<(CommandRecord, Cause)>,
    /// By ordinal.
    forms: Vec<Forms>,
    rendered: AtomicUsize,
}

/// An event in its forms, each made when somebody asks for it.
#[derive(Default)]
struct Forms {
    /// As Nomad shows it.
    body: OnceLock<Bytes>,
    /// With where it came from.
    full: OnceLock<Bytes>,
    /// For those who look into it.
    document: OnceLock<Value>,
}

impl RenderedBatch {
    /// Folds the batch that follows on `state`.
    ///
    /// # Errors
    /// [`FeedError::Failed`]: the log is not what it was, or holds what this server cannot read.
    pub fn after(mut state: State, batch: &EncodedBatch) -> Result<RenderedBatch, FeedError> {
        let (batch, before) = (batch.decode()?, state.clone());
        let entries = entries::list(&mut state, &batch)?;
        Ok(RenderedBatch::of(entries, before, state, batch))
    }

    /// The same for a batch that somebody has folded: what was decoded of that state is decoded for both, and nothing is
    /// held twice.
    ///
    /// # Errors
    /// The same.
    pub(crate) fn folded(
        before: State,
        after: &State,
        batch: &EncodedBatch,
    ) -> Result<RenderedBatch, FeedError> {
        if batch.previous() != before.index || batch.index() != after.index {
            return RenderedBatch::after(before, batch);
        }
        let batch = batch.decode()?;
        let entries = entries::between(&before, after, &batch);
        Ok(RenderedBatch::of(entries, before, after.clone(), batch))
    }

    fn of(entries: Vec<Entry>, before: State, state: State, batch: Batch) -> RenderedBatch {
        let causes: Vec<Cause> = (0..batch.commands.len()).map(|at| Cause::of(&batch, at)).collect();
        let commands = batch.commands.into_iter().zip(causes).collect();
        let forms = std::iter::repeat_with(Forms::default).take(entries.len()).collect();
        let before = Box::new(before);
        RenderedBatch { entries, state, before, commands, forms, rendered: AtomicUsize::new(0) }
    }

    pub fn index(&self) -> Index {
        self.state.index
    }

    /// It changes nothing but how far readers have come.
    pub(crate) fn is_of_cursors(&self) -> bool {
        is_of_cursors(self.commands.iter().map(|(command, _)| command.kind))
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    pub fn into_state(self) -> State {
        self.state
    }

    /// The JSON of the event at `ordinal`.
    pub fn body(&self, ordinal: usize) -> &Bytes {
        self.forms[ordinal].body.get_or_init(|| {
            let body = body::render(&self.state, self.index(), &self.entries[ordinal]);
            self.rendered.fetch_add(body.len(), Ordering::Relaxed);
            body
        })
    }

    /// The JSON of the event at `ordinal`, as a view has it. What many readers get is rendered once for all.
    pub(crate) fn shown(&self, ordinal: usize, view: View) -> Bytes {
        let (entry, id) = (&self.entries[ordinal], self.id(ordinal));
        match view {
            View::Nomad => self.body(ordinal).clone(),
            View::Full => self.full(ordinal).clone(),
            View::Key => view::key(entry, id, &self.origin(ordinal)),
            View::Diff => view::diff(&self.before, &self.state, entry, id, &self.origin(ordinal)),
            View::CloudEvents => {
                let cluster = ClusterTag::of(self.state.cluster);
                view::cloud_event(entry, id, cluster, &self.origin(ordinal), self.full(ordinal))
            }
        }
    }

    /// The event at `ordinal` as conditions look at it.
    pub(crate) fn document(&self, ordinal: usize) -> &Value {
        self.forms[ordinal].document.get_or_init(|| {
            let full = self.full(ordinal);
            self.rendered.fetch_add(full.len() * DOCUMENT_BYTES, Ordering::Relaxed);
            view::document(full)
        })
    }

    fn full(&self, ordinal: usize) -> &Bytes {
        self.forms[ordinal].full.get_or_init(|| {
            let full = view::full(self.body(ordinal), &self.origin(ordinal));
            self.rendered.fetch_add(full.len(), Ordering::Relaxed);
            full
        })
    }

    fn origin(&self, ordinal: usize) -> Origin<'_> {
        let entry = &self.entries[ordinal];
        let (command, cause) = &self.commands[usize::from(entry.command)];
        Origin::of(self.id(ordinal), entry.fact, command, cause, self.state.time)
    }

    fn id(&self, ordinal: usize) -> EventId {
        EventId { index: self.index(), ordinal: ordinal as u32 }
    }

    /// What keeping it costs, about.
    pub fn bytes(&self) -> usize {
        (self.entries.len() + 1) * HELD_BYTES + self.rendered.load(Ordering::Relaxed)
    }
}
