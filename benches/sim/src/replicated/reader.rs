//! Readers of the event stream: they follow, lose their connection, resume anywhere, and get the answer that what they ask for
//! is no longer kept.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration as Span;

use api::EventId;
use base::{Index, Rng};
use fake_network::Gone;
use feed::{FeedError, Reader};
use parking_lot::Mutex;
use tokio::time::sleep;

use super::world::World;
use crate::bookmark::Bookmark;
use crate::fact::Fact;
use crate::oracles::TRUTH;
use crate::planted::Bug;
use crate::shown::{Shelf, Shown};

/// Between two looks, at most, in milliseconds.
const PAUSE_MAX: u64 = 1_000;

/// Pages read at one time.
const PAGES: usize = 4;

/// One connection in so many breaks at each look.
const BREAKS: u64 = 20;

pub struct SimReader {
    world: Rc<World>,
    number: usize,
    rng: Rng,
    bookmark: Bookmark,
    stream: Option<Stream>,
}

struct Stream {
    place: usize,
    /// The process it is connected with.
    gone: Arc<Gone>,
    reader: Reader,
}

impl SimReader {
    pub fn new(world: Rc<World>, number: usize) -> SimReader {
        let rng = Rng::stream(world.seed ^ number as u64, "reader");
        SimReader { world, number, rng, bookmark: Bookmark::default(), stream: None }
    }

    pub async fn run(mut self) {
        loop {
            sleep(Span::from_millis(1 + self.rng.below(PAUSE_MAX))).await;
            let broken = self.stream.as_ref().is_none_or(|stream| stream.gone.is());
            if broken || (self.rng.below(BREAKS) == 0 && !self.world.calm.get()) {
                self.connect();
            }
            (0..PAGES).try_for_each(|_| self.read());
        }
    }

    fn connect(&mut self) {
        let place = self.rng.below(self.world.servers.len() as u64) as usize;
        let after = self.bookmark.resume_at(&mut self.rng);
        self.open(place, after);
    }

    fn open(&mut self, place: usize, after: Option<EventId>) {
        self.stream = None;
        let process = self.world.servers[place].process.borrow();
        let Some(process) = process.as_ref() else { return };
        let asked = match (after, self.world.bug) {
            (Some(id), Some(Bug::CursorOffByOne)) => Some(EventId { ordinal: id.ordinal + 1, ..id }),
            (after, _) => after,
        };
        let reader = Reader::after(&process.feed, asked);
        let after = after.unwrap_or_else(|| {
            // Whoever asks for everything is given what there is.
            let oldest = process.feed.oldest();
            self.world.told[self.number].set(oldest);
            EventId { index: Index(oldest.0 - 1), ordinal: u32::MAX }
        });
        self.stream = Some(Stream { place, gone: process.gone.clone(), reader });
        self.world.tell(format_args!("reader {} asks server {place} for what follows {after}", self.number));
        self.world.see(&Fact::StreamOpened { reader: self.number, after: Some(after) });
    }

    /// One page; `None` when there is no more, or the stream cannot go on.
    fn read(&mut self) -> Option<()> {
        let Stream { place, reader, .. } = self.stream.as_mut()?;
        let (place, number) = (*place, self.number);
        match reader.poll() {
            Ok(segment) => {
                let segment = segment?;
                self.bookmark.note(&segment, &mut self.rng);
                let (count, below) = (segment.events.len(), segment.read_before);
                self.world.tell(format_args!("reader {number} is told {count} events, all below {below}"));
                self.world.see(&Fact::Streamed { reader: number, segment: &segment });
                self.world.told[number].set(below);
                Some(())
            }
            Err(FeedError::Gone) => {
                self.world.tell(format_args!("what reader {number} asks for is gone on server {place}"));
                self.open(place, None);
                None
            }
            Err(error) => {
                self.stream = None;
                if !self.world.servers[place].flipped.get() {
                    let how = format!("reader {number} on server {place}: {error}");
                    self.world.violated("I6 the stream can be read", how);
                }
                None
            }
        }
    }
}

impl World {
    /// In the end somebody reads all that ever was in one go.
    pub fn read_everything(&self) {
        let committed = self.scene.borrow().checks.witness.batches.clone();
        let state = Arc::new(self.scene.borrow().checks.witness.state.clone());
        let shown = Arc::new(Shown::new(Arc::new(Shelf(Arc::new(Mutex::new(committed))))));
        shown.publish(&state);
        self.see(&Fact::StreamOpened { reader: TRUTH, after: None });
        let mut stream = Reader::after(&shown.feed(), None);
        loop {
            match stream.poll() {
                Ok(Some(segment)) => self.see(&Fact::Streamed { reader: TRUTH, segment: &segment }),
                Ok(None) => return,
                Err(error) => return self.violated("I6 the stream can be read", error.to_string()),
            }
        }
    }
}
