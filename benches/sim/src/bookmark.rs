//! Where a reader of the event stream has been, and where it goes on.

use api::EventId;
use base::Rng;
use feed::Segment;

/// Places a reader remembers to resume from.
const REMEMBERED: usize = 64;

#[derive(Debug, Default)]
pub struct Bookmark {
    last: Option<EventId>,
    seen: Vec<EventId>,
}

impl Bookmark {
    /// Where the next stream is opened: mostly where the last one ended, sometimes anywhere it has been.
    pub fn resume_at(&mut self, chance: &mut Rng) -> Option<EventId> {
        if !self.seen.is_empty() && chance.below(8) == 0 {
            let at = chance.below(self.seen.len() as u64) as usize;
            self.last = Some(self.seen[at]);
        }
        self.last
    }

    pub fn note(&mut self, segment: &Segment, chance: &mut Rng) {
        let Some((id, _)) = segment.events.last() else { return };
        self.last = Some(*id);
        if self.seen.len() < REMEMBERED || chance.below(16) == 0 {
            self.seen.truncate(REMEMBERED - 1);
            self.seen.push(*id);
        }
    }
}
