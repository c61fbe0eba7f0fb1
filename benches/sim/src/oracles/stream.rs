//! I6: the stream is exactly the committed prefix, once, in order, the same bytes from every server, wherever a
//! reader resumes.

use std::collections::BTreeMap;

use api::EventId;

use crate::fact::{Check, Fact, Rest};
use crate::witness::Witness;

/// The number of the reader that reads everything in one go, in the end: the others must have received the same.
pub const TRUTH: usize = usize::MAX;

/// What one reader received over one connection.
#[derive(Default)]
struct Telling {
    reader: usize,
    after: Option<EventId>,
    ids: Vec<EventId>,
}

#[derive(Default)]
pub struct Streams {
    tellings: Vec<Telling>,
    current: BTreeMap<usize, usize>,
    bodies: BTreeMap<EventId, blake3::Hash>,
}

impl Check for Streams {
    fn sentence(&self) -> &'static str {
        "I6 the stream is the committed prefix, once, in order, with the same bytes from every server"
    }

    fn see(&mut self, fact: &Fact<'_>, witness: &Witness) -> Result<(), String> {
        match fact {
            Fact::StreamOpened { reader, after } => self.open(*reader, *after),
            Fact::Streamed { reader, segment } => {
                if segment.read_before > witness.head().next() {
                    return Err(format!("reader {reader} was told of {}", segment.read_before));
                }
                for (id, body) in &segment.events {
                    self.hear(*reader, *id, blake3::hash(body))?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn rest(&mut self, rest: &Rest<'_>, witness: &Witness) -> Result<(), String> {
        let head = witness.head().next();
        if let Some(at) = rest.readers.iter().position(|told| *told != head) {
            return Err(format!("reader {at} is at {} of {head}", rest.readers[at]));
        }
        let truth = self.tellings.iter().find(|telling| telling.reader == TRUTH);
        let truth = &truth.ok_or("nobody read everything")?.ids;
        for telling in &self.tellings {
            let first = telling.after.map_or(0, |after| truth.partition_point(|id| *id <= after));
            let told = truth.get(first..first + telling.ids.len());
            if told != Some(&telling.ids[..]) {
                let wrong = telling.ids.iter().zip(&truth[first..]).find(|(told, true_)| told != true_);
                return Err(format!(
                    "reader {} asked for what follows {:?}: {wrong:?} (told, true)",
                    telling.reader, telling.after
                ));
            }
        }
        let unfinished = self.current.iter().find(|(_, at)| {
            let telling = &self.tellings[**at];
            telling.ids.last().or(telling.after.as_ref()) < truth.last()
        });
        unfinished.map_or(Ok(()), |(reader, _)| Err(format!("reader {reader} was not told the end")))
    }
}

impl Streams {
    /// To go on where one stopped is one telling, whichever server goes on.
    fn open(&mut self, reader: usize, after: Option<EventId>) {
        let goes_on = self.current.get(&reader).is_some_and(|at| {
            let telling = &self.tellings[*at];
            telling.ids.last().copied().or(telling.after) == after
        });
        if !goes_on {
            self.current.insert(reader, self.tellings.len());
            self.tellings.push(Telling { reader, after, ids: Vec::new() });
        }
    }

    fn hear(&mut self, reader: usize, id: EventId, body: blake3::Hash) -> Result<(), String> {
        let telling = &mut self.tellings[self.current[&reader]];
        let last = telling.ids.last().copied().or(telling.after);
        let follows = last.is_none_or(|last| {
            let same = last.index == id.index && last.ordinal + 1 == id.ordinal;
            same || last.index < id.index && id.ordinal == 0
        });
        if !follows {
            return Err(format!("reader {reader} was told {id} after {last:?}"));
        }
        telling.ids.push(id);
        let known = *self.bodies.entry(id).or_insert(body);
        if known != body {
            return Err(format!("reader {reader} was told {id} with other bytes than somebody before"));
        }
        Ok(())
    }
}
