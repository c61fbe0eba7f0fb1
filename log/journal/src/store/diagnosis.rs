//! What is damaged in a log that is not open, and how much of it can be kept.
//!
//! A log is a chain: what lies behind damage is lost, unless an image holds its outcome. So there are three ways out.
//! Damage in segments that an image covers costs their history: the log begins behind it. Other damage costs what
//! comes after: the log ends before it. If it would then end before the newest image does, nothing of the log is
//! kept, and it begins anew after the image.

use super::files::Files;
use super::images::{self, Images};
use super::position::{Begin, Notes, Position};
use super::record::{HEADER, Header, Kind, Spot};
use super::recovery::end_or_damage;
use super::repair::Damage;
use super::scan::{self, End, Scanned};
use super::{LogId, StoreError, segment};

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Remedy {
    /// Segments to put aside from the front, where to cut, and what is to be put aside behind that.
    Cut { front: Vec<u64>, end: Option<Cut>, behind: Vec<u64> },
    /// Everything is put aside, and the log begins anew: after an image, or from nothing.
    Anew { segments: Vec<u64>, begin: Option<Begin> },
}

/// A segment that is kept up to a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub number: u64,
    /// Bytes of it to keep; it goes when this is 0.
    pub good: u64,
    /// What its seal will take at most.
    pub seal: u64,
}

pub(super) struct Diagnosis {
    pub damage: Vec<Damage>,
    /// Damaged images that none refers to.
    pub images: Vec<u64>,
    pub remedy: Remedy,
    /// The last batch whose outcome is kept.
    pub keeps: u64,
    /// The last batch of which a trace was found.
    pub seen: u64,
    /// The oldest batch that can be read afterwards.
    pub horizon: u64,
}

/// The newest image that can be used.
#[derive(Clone, Copy)]
struct Kept {
    last: LogId,
    position: Position,
    installed: bool,
}

/// A segment as far as it can be read.
struct Part {
    number: u64,
    scanned: Option<Scanned>,
    /// Where the good records end.
    good: u64,
    damage: Option<Damage>,
    /// The last batch of which a trace was found.
    seen: u64,
}

pub(super) fn diagnose(files: &dyn Files) -> Result<Diagnosis, StoreError> {
    let names = files.list().map_err(StoreError::io("list the log's segments"))?;
    let (images, mut damage, broken) = good_images(files, &names)?;
    let kept = images.newest().map(|image| Kept {
        last: image.meta.last,
        position: image.position(),
        installed: image.installed,
    });
    let parts = parts(files, &segment::numbers(&names))?;
    damage.extend(parts.iter().filter_map(|part| part.damage.clone()));
    let seen = parts.iter().map(|part| part.seen).max().unwrap_or(0);
    let (remedy, keeps, horizon) = remedy(&parts, kept, &mut damage);
    Ok(Diagnosis { damage, images: broken, remedy, keeps, seen, horizon })
}

/// The images that can be read whole; what is wrong with newer ones.
fn good_images(files: &dyn Files, names: &[String]) -> Result<(Images, Vec<Damage>, Vec<u64>), StoreError> {
    let (mut names, mut damage, mut broken) = (names.to_vec(), Vec::new(), Vec::new());
    loop {
        let mut wrong = Vec::new();
        let images = images::load_with(files, &names, |number, error| wrong.push((number, error)))?;
        let newest = images.newest();
        wrong.retain(|(number, _)| newest.is_none_or(|image| *number > image.number));
        if let Some(image) = newest
            && let Err(error) = images.verify(image)
        {
            wrong.push((image.number, error));
        }
        if wrong.is_empty() {
            return Ok((images, damage, broken));
        }
        for (number, error) in wrong {
            damage.push(Damage::of(error)?);
            names.retain(|name| *name != images::name(number));
            broken.push(number);
        }
    }
}

/// Every segment since the last image that was installed.
fn parts(files: &dyn Files, numbers: &[u64]) -> Result<Vec<Part>, StoreError> {
    let mut parts: Vec<Part> = Vec::new();
    for (nth, number) in numbers.iter().enumerate() {
        let part = part(files, *number, nth + 1 == numbers.len())?;
        if part.scanned.as_ref().is_some_and(|scanned| scanned.reset) {
            parts.clear();
        }
        parts.push(part);
    }
    for at in 0..parts.len() {
        let (before, rest) = parts.split_at_mut(at);
        join(before.last_mut(), &mut rest[0]);
    }
    Ok(parts)
}

/// Holds a segment to the one before it.
fn join(before: Option<&mut Part>, part: &mut Part) {
    let begin = part.scanned.as_ref().map(|scanned| scanned.begin.position);
    let (number, reset) = (part.number, part.is_reset());
    let mut wrong = |why: &str| {
        part.damage.get_or_insert_with(|| Damage::segment(number, 0, why));
        (part.good, part.scanned) = (0, None);
    };
    match (before, begin) {
        (Some(before), _) if number != before.number + 1 => {
            let missing = Damage::segment(before.number + 1, 0, "the segment is missing");
            before.damage.get_or_insert(missing);
        }
        (Some(before), Some(begin)) if before.end().is_some_and(|end| end != begin) => {
            wrong("the segment does not continue the one before it");
        }
        (None, Some(begin)) if number == 1 && !reset && begin.next > 0 => {
            wrong("the first segment does not begin the log");
        }
        (None, None) if number != 1 => wrong("the record is bad, and it was the log's first"),
        _ => {}
    }
}

fn part(files: &dyn Files, number: u64, last: bool) -> Result<Part, StoreError> {
    let (bytes, mut damage) = bytes(files, number)?;
    let scanned = match scan::scan(number, &bytes) {
        Err(Err(error)) => {
            let found = Damage::of(error)?;
            let good = found.offset as usize;
            damage.get_or_insert(found);
            // What came before it is as good as it was.
            scan::scan(number, &bytes[..good])
        }
        scanned => scanned,
    };
    let (end, scanned) = match scanned {
        Ok(scanned) => (scanned.end, Some(scanned)),
        Err(Ok(bad)) => (End::Bad(0, bad), None),
        Err(Err(error)) => return Err(error),
    };
    let mut seen = scanned.as_ref().map_or(0, |scanned| scanned.summary.end.batch);
    let good = match end {
        End::Sealed(at) => at,
        End::Bad(at, bad) => {
            if let Err(error) = end_or_damage(number, &bytes, at, bad, last) {
                damage.get_or_insert(Damage::of(error)?);
            }
            seen = seen.max(traces(number, &bytes, at));
            at
        }
    };
    Ok(Part { number, scanned, good, damage, seen })
}

/// The bytes of a segment as far as they are there, and whether they are not.
fn bytes(files: &dyn Files, number: u64) -> Result<(Vec<u8>, Option<Damage>), StoreError> {
    let segment = scan::open(files, number)?;
    let damage = match scan::read(&segment) {
        Ok(bytes) => return Ok((bytes, None)),
        Err(error) => Damage::of(error)?,
    };
    let len = segment.file.size().map_err(StoreError::io("measure a segment"))?;
    let mut bytes = vec![0; len as usize];
    segment.file.read_at(&mut bytes, 0).map_err(StoreError::io("read a segment"))?;
    Ok((bytes, Some(damage)))
}

/// The last batch whose header can be read behind `at`.
fn traces(number: u64, bytes: &[u8], at: u64) -> u64 {
    let later = (at..bytes.len() as u64).step_by(super::record::ALIGN);
    let header = |offset: u64| {
        let here = bytes.get(offset as usize..offset as usize + HEADER)?;
        Header::read(here, Spot { segment: number, offset }).ok()
    };
    let batches = later.filter_map(header).filter(|header| header.kind == Kind::Batch);
    batches.map(|header| header.index).max().unwrap_or(0)
}

impl Part {
    fn is_reset(&self) -> bool {
        self.scanned.as_ref().is_some_and(|scanned| scanned.reset)
    }

    fn cut(&self) -> Cut {
        let seal = self.scanned.as_ref().map_or(0, |scanned| scanned.summary.seal_after_next());
        Cut { number: self.number, good: self.good, seal }
    }

    /// Where the log stands after it, if that is known.
    fn end(&self) -> Option<Position> {
        self.scanned.as_ref().filter(|_| self.damage.is_none()).map(|scanned| scanned.summary.end)
    }
}

/// What to do, the last batch that is kept then, and the oldest that can be read. Adds what is wrong between the log
/// and the image.
fn remedy(parts: &[Part], kept: Option<Kept>, damage: &mut Vec<Damage>) -> (Remedy, u64, u64) {
    let covered = |part: &Part| {
        let begin = part.scanned.as_ref().map(|scanned| scanned.begin.position);
        begin.zip(kept).is_some_and(|(begin, kept)| begin.next <= kept.position.next)
    };
    // The first segment behind the last damage that an image makes up for.
    let behind = parts.windows(2).rposition(|two| two[0].damage.is_some() && covered(&two[1]));
    let (front, rest) = parts.split_at(behind.map_or(0, |at| at + 1));
    let cut = rest.iter().position(|part| part.damage.is_some());
    let (good, behind) = rest.split_at(cut.map_or(rest.len(), |at| at + 1));
    // What is left of the log: where it begins and where it ends.
    let mut left = good.iter().filter_map(|part| part.scanned.as_ref()).peekable();
    let begin = left.peek().map(|first| first.begin.position);
    let end = left.last().map(|last| last.summary.end);
    let span = begin.zip(end);
    let fits = fits(span, kept);
    if !fits && damage.is_empty() {
        let (number, at) = parts.last().map_or((1, 0), |part| (part.number, part.good));
        damage.push(Damage::segment(number, at, "the log and the images beside it do not meet"));
    }
    let numbers = |parts: &[Part]| parts.iter().map(|part| part.number).collect();
    match span {
        Some((begin, end)) if fits => {
            let end_at = cut.map(|at| rest[at].cut());
            let remedy = Remedy::Cut { front: numbers(front), end: end_at, behind: numbers(behind) };
            let keeps = kept.map_or(end.batch, |kept| kept.position.batch.max(end.batch));
            (remedy, keeps, begin.batch + 1)
        }
        _ => {
            let begin = kept.map(|kept| begin_after(kept, parts));
            let batch = begin.as_ref().map_or(0, |begin| begin.position.batch);
            (Remedy::Anew { segments: numbers(parts), begin }, batch, batch + 1)
        }
    }
}

/// A start would take the log and the image together.
fn fits(span: Option<(Position, Position)>, kept: Option<Kept>) -> bool {
    match (span, kept) {
        (Some((begin, _)), None) => begin.next == 0,
        // One that came from the leader may lie ahead of the log, which is void then.
        (Some((begin, end)), Some(kept)) => {
            begin.next <= kept.position.next && (kept.position.next <= end.next || kept.installed)
        }
        (None, None) => true,
        (None, Some(kept)) => kept.installed,
    }
}

/// A log that begins after an image, with the last vote that can be read.
fn begin_after(kept: Kept, parts: &[Part]) -> Begin {
    let vote = parts.iter().rev().find_map(|part| part.scanned.as_ref()?.notes.vote.clone());
    let notes = Notes { vote, committed: Some(kept.last), purged: Some(kept.last) };
    Begin { position: kept.position, notes, previous_seal: 0 }
}
