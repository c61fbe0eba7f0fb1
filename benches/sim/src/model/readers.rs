//! Readers of the event stream: they follow, go to another server, and resume anywhere.

use api::EventId;
use base::{Duration, Index, Rng};
use feed::{FeedError, Reader};

use super::faults::next;
use super::world::{Event, World};
use crate::bookmark::Bookmark;
use crate::fact::{Fact, Violation};
use crate::oracles::TRUTH;
use crate::planted::Bug;

/// Pages read at one time.
const PAGES: usize = 4;

pub struct SimReader {
    server: usize,
    /// The start of the server it is connected with; another means that the connection broke.
    life: u64,
    stream: Option<Reader>,
    bookmark: Bookmark,
    pub read_before: Index,
    moves_in: Option<Duration>,
    chance: Rng,
    bug: Option<Bug>,
}

impl SimReader {
    pub fn new(number: usize, seed: u64, bug: Option<Bug>) -> SimReader {
        SimReader {
            server: 0,
            life: 0,
            stream: None,
            bookmark: Bookmark::default(),
            read_before: Index(1),
            moves_in: None,
            chance: Rng::stream(seed ^ number as u64, "reader"),
            bug,
        }
    }
}

impl World {
    pub fn read(&mut self, reader: usize) -> Result<(), Violation> {
        let span = World::up_to(&mut self.readers[reader].chance, Duration::from_secs(3));
        self.agenda.after(Duration(span.0 + 100_000_000), Event::Read(reader));
        let broken = {
            let one = &self.readers[reader];
            let server = &self.servers[one.server];
            one.stream.is_none() || !server.up || server.life != one.life
        };
        if broken || self.moves_on(reader, span) {
            self.open_stream(reader)?;
        }
        for _ in 0..PAGES {
            let one = &mut self.readers[reader];
            let paused = self.servers[one.server].paused;
            let Some(stream) = one.stream.as_mut().filter(|_| !paused) else { return Ok(()) };
            let Some(segment) = stream.poll().map_err(|error| failed(reader, &error))? else { return Ok(()) };
            one.bookmark.note(&segment, &mut one.chance);
            one.read_before = segment.read_before;
            let below = segment.read_before;
            self.tell(format_args!(
                "reader {reader} is told {} events, all below {below}",
                segment.events.len()
            ));
            self.checks.see(&Fact::Streamed { reader, segment: &segment })?;
        }
        Ok(())
    }

    fn moves_on(&mut self, reader: usize, passed: Duration) -> bool {
        let Some(every) = self.options.operations.move_reader.filter(|_| !self.calm) else { return false };
        let one = &mut self.readers[reader];
        let left = one.moves_in.unwrap_or_else(|| next(&mut one.chance, every));
        let moves = left <= passed;
        one.moves_in = (!moves).then(|| Duration(left.0 - passed.0));
        moves
    }

    fn open_stream(&mut self, reader: usize) -> Result<(), Violation> {
        let one = &mut self.readers[reader];
        one.server = one.chance.below(self.servers.len() as u64) as usize;
        let server = &self.servers[one.server];
        one.stream = None;
        if !server.up {
            return Ok(());
        }
        let (number, after) = (one.server, one.bookmark.resume_at(&mut one.chance));
        let asked = match (after, one.bug) {
            (Some(id), Some(Bug::CursorOffByOne)) => Some(EventId { ordinal: id.ordinal + 1, ..id }),
            (after, _) => after,
        };
        (one.life, one.stream) = (server.life, Some(Reader::after(&server.feed, asked)));
        self.tell(format_args!("reader {reader} asks server {number} for what follows {after:?}"));
        self.checks.see(&Fact::StreamOpened { reader, after })
    }

    /// In the end somebody reads all of it from one server in one go.
    pub fn read_everything(&mut self) -> Result<(), Violation> {
        let mut stream = Reader::after(&feed::Feed::clone(&self.servers[0].feed), None);
        self.checks.see(&Fact::StreamOpened { reader: TRUTH, after: None })?;
        while let Some(segment) = stream.poll().map_err(|error| failed(TRUTH, &error))? {
            self.checks.see(&Fact::Streamed { reader: TRUTH, segment: &segment })?;
        }
        Ok(())
    }
}

fn failed(reader: usize, error: &FeedError) -> Violation {
    let sentence = "I6 the stream can be read".to_string();
    Violation { sentence, how: format!("reader {reader}: {error}") }
}
