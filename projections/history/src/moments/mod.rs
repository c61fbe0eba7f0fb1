//! Any state of the past that the log leads on from: the nearest that is at hand, and the log folded onto it.
//!
//! At hand are states that were read lately, images on disk that are made on the way, and the state that the server began
//! with. Folding compares a digest before each batch: what comes out is what was published then.

mod images;
mod imaging;
mod opened;

use std::sync::Arc;

use base::{Index, Time};
use journal::{Journal, first_batch};
use model::Digest;
use parking_lot::Mutex;
use state::State;

pub use images::IMAGES_MAX;
pub(crate) use images::Images;
pub(crate) use imaging::Imaging;
use opened::{Opened, Origin};

use crate::history::HistoryError;

/// Memory that past states may take, unless configured otherwise.
pub const MEMORY: usize = 512 << 20;

/// Batches that are rather folded than an image opened: as much work as opening one of a small cluster.
const RATHER_FOLDED: u64 = 256;
/// Log read at once.
const READ_BYTES: usize = 1 << 20;

/// Log that is folded at once to verify it: what a server does in about a second.
const VERIFY_BYTES: u64 = 8 << 20;

/// A part of the log that was folded again, and led where it had led.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Verified {
    /// The last batch of it, and the newest there is.
    pub to: Index,
    pub newest: Index,
    pub batches: u64,
    pub events: u64,
    pub bytes: u64,
    /// Of the state after the last batch.
    pub digest: Digest,
}

/// The states that a running server has at hand.
pub trait States: Send + Sync + 'static {
    /// The newest published state.
    fn published(&self) -> Arc<State>;

    /// A state that the log's oldest batches follow on.
    fn origin(&self) -> Arc<State>;
}

pub(crate) struct Moments {
    pub states: Box<dyn States>,
    opened: Mutex<Opened>,
    /// What the server began with, as far as `opened` goes.
    began_with: Mutex<Arc<State>>,
}

/// What moments are made of.
#[derive(Clone, Copy)]
pub(crate) struct Log<'a> {
    pub journal: &'a dyn Journal,
    pub images: &'a Images,
    /// Images beyond may be of another log.
    pub known: Index,
}

/// Where folding begins.
struct Start {
    state: Arc<State>,
    origin: Origin,
}

impl Moments {
    pub fn new(states: impl States, memory: usize) -> Moments {
        let began_with = Mutex::new(states.origin());
        Moments { states: Box::new(states), opened: Mutex::new(Opened::new(memory)), began_with }
    }

    /// The oldest index whose state can be had.
    pub fn oldest(&self, log: Log<'_>) -> Result<Index, HistoryError> {
        let horizon = log.journal.horizon();
        if horizon <= Index(1) {
            return Ok(Index::ZERO);
        }
        let first = Index(horizon.0 - 1);
        let origin = Some(self.states.origin().index).filter(|index| *index >= first);
        let image = log.images.first(first)?.filter(|index| *index <= log.known);
        Ok(origin.into_iter().chain(image).min().unwrap_or_else(|| self.states.published().index))
    }

    /// The state after the batch at `index`, if nothing has to be read or folded for it; `None` if it does.
    pub fn at_hand(&self, log: Log<'_>, index: Index) -> Result<Option<Arc<State>>, HistoryError> {
        let published = self.states.published();
        if index > published.index {
            return Err(HistoryError::Ahead { newest: published.index });
        }
        if index == published.index {
            return Ok(Some(published));
        }
        self.take_origin();
        let nearest = self.opened.lock().nearest(index).map(|(state, _)| state);
        match nearest.filter(|state| state.index == index) {
            Some(state) if index >= self.oldest(log)? => Ok(Some(state)),
            _ => Ok(None),
        }
    }

    /// The state after the batch at `index`.
    pub fn at(&self, log: Log<'_>, index: Index) -> Result<Arc<State>, HistoryError> {
        if let Some(state) = self.at_hand(log, index)? {
            return Ok(state);
        }
        drop(self.unread());
        let gone = |oldest| HistoryError::Gone { oldest };
        let start = match self.start(log, index)? {
            Some(start) if index >= self.oldest(log)? => start,
            _ => return Err(gone(self.oldest(log)?)),
        };
        let mut state = State::clone(&start.state);
        let mut folded = 0;
        while state.index < index {
            let batches = log.journal.read(state.index.next(), READ_BYTES)?;
            if batches.is_empty() {
                return Err(HistoryError::Stopped(format!("batch {} is not in the log", state.index.next())));
            }
            for batch in batches.iter().filter(|batch| batch.index() <= index) {
                folded += batch.bytes().len();
                state.apply(&batch.decode()?)?;
            }
        }
        let state = Arc::new(state);
        self.opened.lock().insert(state.clone(), start.origin, folded);
        Ok(state)
    }

    /// Folds log onto the state after `from` again, `VERIFY_BYTES` of it and the rest of what is read at once. Each batch says what
    /// state it was decided on, and the newest is compared with what is published.
    pub fn verify(&self, log: Log<'_>, from: Index) -> Result<Verified, HistoryError> {
        let published = self.states.published();
        let mut state = State::clone(&*self.at(log, from)?);
        let mut verified = Verified { newest: published.index, ..Verified::default() };
        while state.index < published.index && verified.bytes < VERIFY_BYTES {
            let batches = log.journal.read(state.index.next(), READ_BYTES)?;
            if batches.is_empty() {
                return Err(HistoryError::Stopped(format!("batch {} is not in the log", state.index.next())));
            }
            for batch in batches.iter().filter(|batch| batch.index() <= published.index) {
                verified.batches += 1;
                verified.events += u64::from(batch.event_count());
                verified.bytes += batch.bytes().len() as u64;
                state.apply(&batch.decode()?)?;
            }
        }
        if state.index == published.index && state.digest() != published.digest() {
            return Err(HistoryError::Differs { index: state.index });
        }
        (verified.to, verified.digest) = (state.index, state.digest());
        Ok(verified)
    }

    /// The newest state at hand at `index` or before that the log leads on from.
    fn start(&self, log: Log<'_>, index: Index) -> Result<Option<Start>, HistoryError> {
        let horizon = log.journal.horizon();
        let leads_on = |from: Index| from == index || from.next() >= horizon;
        let opened = self.opened.lock().nearest(index).filter(|(state, _)| leads_on(state.index));
        let origin = self.states.origin();
        let is_known = |from: &Index| *from <= index && leads_on(*from);
        let at_hand = opened.as_ref().map(|(state, _)| state.index);
        let at_hand = at_hand.max(Some(origin.index).filter(is_known));
        let worth = at_hand.map_or(Index::ZERO, |at| Index(at.0 + RATHER_FOLDED));
        while let Some(image) =
            log.images.nearest(index.min(log.known))?.filter(|at| *at > worth && leads_on(*at))
        {
            match self.open(log, image) {
                Err(error @ (HistoryError::Image { .. } | HistoryError::Restore(_))) => {
                    tracing::warn!(%error, "an image of history is left out");
                    log.images.forget(image)?;
                }
                opened => return opened,
            }
        }
        if let Some((state, origin)) = opened.filter(|(state, _)| at_hand == Some(state.index)) {
            return Ok(Some(Start { state, origin }));
        }
        let state = match at_hand {
            Some(_) => origin,
            None if horizon <= Index(1) => Arc::default(),
            None => return Ok(None),
        };
        Ok(Some(Start { state, origin: self.opened.lock().begin(0) }))
    }

    fn open(&self, log: Log<'_>, index: Index) -> Result<Option<Start>, HistoryError> {
        let Some(image) = log.images.read(index)? else { return Ok(None) };
        let bytes =
            image.chunks.iter().filter_map(|chunk| chunk.bytes.as_ref()).map(|bytes| bytes.len()).sum();
        let state = Arc::new(state::restore(&image)?);
        // The next batch says what state it was decided on.
        let next = log.journal.read(index.next(), 1)?;
        if next.first().is_some_and(|next| next.digest() != state.digest()) {
            return Err(HistoryError::Image { index, why: "the log goes on from another state".to_string() });
        }
        let mut opened = self.opened.lock();
        let origin = opened.begin(bytes);
        opened.insert(state.clone(), origin, 0);
        Ok(Some(Start { state, origin }))
    }

    /// The last batch of that time or before; `None` when all that can be had is later.
    pub fn index_at(
        &self,
        journal: &dyn Journal,
        time: Time,
        oldest: Index,
    ) -> Result<Option<Index>, HistoryError> {
        let end = self.states.published().index.next();
        let first = first_batch(journal, oldest.max(journal.horizon()), end, |batch| batch.time() > time)?;
        let last = Index(first.0.saturating_sub(1));
        Ok(Some(last).filter(|last| *last >= oldest))
    }

    /// When the server took another state in place of its own, what was folded of the one before may be wrong.
    fn take_origin(&self) {
        let now = self.states.origin();
        let mut before = self.began_with.lock();
        if !Arc::ptr_eq(&before, &now) {
            self.opened.lock().clear();
            *before = now;
        }
    }

    /// States that nobody reads any more, for the caller to drop.
    pub fn unread(&self) -> Vec<Arc<State>> {
        self.opened.lock().unread()
    }

    /// States that are held, and what they take, about.
    pub fn held(&self) -> (usize, usize) {
        let opened = self.opened.lock();
        (opened.len(), opened.bytes())
    }

    /// What was read of another log is forgotten.
    pub fn clear(&self) {
        self.opened.lock().clear();
    }
}
