//! What a crash left behind: everything that was safe, and perhaps a torn end.
//!
//! The writer syncs a group before it writes the next one, and each record says how far before it that was
//! (`lag`). So a bad record is one of two things. If a later record says that it was safe, or it lies in a sealed
//! segment, it is damage, and the server must not go on as if the record had never been. Otherwise it belongs to
//! the last group, which was never acknowledged: the log ends before it.
//!
//! Sealed segments whose outcome an image holds are passed by: what their first record and their seal say is
//! enough. Damage in them shows when they are read, or to [`super::Store::scrub`].

use super::contents::{Contents, SegmentFile};
use super::files::Files;
use super::images::{self, Images};
use super::position::{Begin, Position};
use super::record::{self, Bad, HEADER, Header, Kind, Spot};
use super::scan::{self, End, Scanned, bad_record, damaged, incomplete};
use super::segment::{self, SPARE, Summary, UNFINISHED};
use super::writer::{Active, Resume};
use super::{LogId, StoreError, repair};

/// Read at once from the front of a segment: most first records are shorter.
const FRONT: u64 = 4 << 10;

pub(super) struct Recovered {
    pub contents: Contents,
    pub images: Images,
    pub resume: Resume,
}

/// # Errors
/// See [`super::Store::open`].
pub(super) fn recover(files: &dyn Files) -> Result<Recovered, StoreError> {
    // The last process may have died before it did: what it named is only then where records may go.
    files.sync_dir().map_err(StoreError::io("sync the log's directory"))?;
    let names = files.list().map_err(StoreError::io("list the log's segments"))?;
    let Found { recovered, last, void } = look(files, &names)?;
    if let Some(active) = &recovered.resume.active {
        cut(active)?;
    }
    if let Some(last) = last {
        // Also without a cut, and also when it is sealed: the last process may have died before it synced what it
        // wrote, and readers rely on it from now on.
        last.file.sync().map_err(StoreError::io("sync the recovered log"))?;
    }
    for number in void {
        files.remove(&segment::name(number)).map_err(StoreError::io("remove a segment that is void"))?;
    }
    remove_leftovers(files, &names)?;
    Ok(recovered)
}

/// What is in the files, as they are.
pub(super) struct Found {
    pub recovered: Recovered,
    /// The last segment that has records.
    last: Option<SegmentFile>,
    /// Segments that hold nothing of the log.
    void: Vec<u64>,
}

/// Reads, and changes nothing.
///
/// # Errors
/// See [`super::Store::open`].
pub(super) fn look(files: &dyn Files, names: &[String]) -> Result<Found, StoreError> {
    let images = images::load(files, names)?;
    let found = find(files, &segment::numbers(names))?;
    let mut walk = Walk::default();
    walk.segments(&found, images.newest().map(|image| image.meta.last))?;
    let (last, blank) = (walk.last.clone(), walk.blank);
    let recovered = walk.resume(images, &found)?;
    let void = found.before.iter().copied().chain(blank).collect();
    Ok(Found { recovered, last, void })
}

/// A segment and what its first record says.
struct Front {
    segment: SegmentFile,
    begin: Result<(Begin, Kind), Bad>,
}

impl Front {
    fn is_reset(&self) -> bool {
        matches!(self.begin, Ok((_, Kind::Reset)))
    }
}

/// The segments that make up the log, without a gap.
struct Fronts {
    fronts: Vec<Front>,
    /// Segments that an installed image made void.
    before: Vec<u64>,
}

fn find(files: &dyn Files, numbers: &[u64]) -> Result<Fronts, StoreError> {
    let mut fronts = Vec::new();
    for number in numbers {
        let segment = scan::open(files, *number)?;
        let begin = front(&segment)?;
        fronts.push(Front { segment, begin });
    }
    let reset = fronts.iter().rposition(Front::is_reset);
    let before = fronts.drain(..reset.unwrap_or(0)).map(|front| front.segment.number).collect();
    let first = fronts.first().map_or(1, |front| front.segment.number);
    for (front, expected) in fronts.iter().zip(first..) {
        if front.segment.number != expected {
            return Err(damaged(expected, 0, "the segment is missing"));
        }
    }
    Ok(Fronts { fronts, before })
}

/// The first record of a segment.
fn front(segment: &SegmentFile) -> Result<Result<(Begin, Kind), Bad>, StoreError> {
    let read = |len: u64| -> Result<Vec<u8>, StoreError> {
        let len = segment.file.size().map_err(StoreError::io("measure a segment"))?.min(len);
        let mut bytes = vec![0; len as usize];
        segment.file.read_at(&mut bytes, 0).map_err(StoreError::io("read a segment"))?;
        Ok(bytes)
    };
    let mut bytes = read(FRONT)?;
    let header = Header::read(&bytes, Spot { segment: segment.number, offset: 0 });
    if let Ok(header) = header
        && header.size() > FRONT
    {
        bytes = read(header.size())?;
    }
    Ok(scan::begin(segment.number, &bytes).map(|(begin, header)| (begin, header.kind)))
}

/// What the seal at `at` says about the segment before it.
pub(super) fn seal(segment: &SegmentFile, at: u64) -> Result<Summary, StoreError> {
    let spot = Spot { segment: segment.number, offset: at };
    let read = |len: u64| -> Result<Vec<u8>, StoreError> {
        let size = segment.file.size().map_err(StoreError::io("measure a segment"))?;
        let mut bytes = vec![0; len.min(size.saturating_sub(at)) as usize];
        segment.file.read_at(&mut bytes, at.min(size)).map_err(StoreError::io("read a segment"))?;
        Ok(bytes)
    };
    let bad = |bad| incomplete(segment.number, at, bad);
    let header = Header::read(&read(HEADER as u64)?, spot).map_err(bad)?;
    let bytes = read(header.size())?;
    let (header, payload) = record::read(&bytes, spot).map_err(bad)?;
    let summary = Summary::read(payload).filter(|_| header.kind == Kind::Seal).ok_or(Bad::Chain);
    let summary = summary.map_err(bad)?;
    match header.chain == summary.end.chain.then(&header, payload) {
        true => Ok(summary),
        false => Err(bad(Bad::Chain)),
    }
}

/// A spare or an image that was not finished, or a spare that is not what it should be.
fn remove_leftovers(files: &dyn Files, names: &[String]) -> Result<(), StoreError> {
    let io = StoreError::io;
    let broken = |name: &String| -> Result<bool, StoreError> {
        let file = files.open(name).map_err(io("open the spare segment"))?;
        Ok(segment::capacity(&*file).map_err(io("measure the spare segment"))?.is_none())
    };
    for name in names {
        if [UNFINISHED, images::UNFINISHED, repair::UNFINISHED].contains(&name.as_str())
            || (name == SPARE && broken(name)?)
        {
            files.remove(name).map_err(io("remove an unfinished file"))?;
        }
    }
    Ok(())
}

/// Makes everything after the last good record zero again.
fn cut(active: &Active) -> Result<(), StoreError> {
    let mut rest = vec![0; (active.capacity - active.end) as usize];
    active.file.read_at(&mut rest, active.end).map_err(StoreError::io("read a segment"))?;
    let torn = scan::used(&rest);
    if torn > 0 {
        tracing::warn!(offset = active.end, bytes = torn, "the log's end was torn by a crash: cut");
        active.file.write_at(&vec![0; torn], active.end).map_err(StoreError::io("cut the log's torn end"))?;
    }
    Ok(())
}

#[derive(Default)]
struct Walk {
    contents: Contents,
    /// Where the last segment ended.
    end: Option<Position>,
    active: Option<Active>,
    /// Where the seal of the last segment stands, if it has one.
    seal: u64,
    /// The last segment that has records.
    last: Option<SegmentFile>,
    /// The last segment, if nothing safe is in it.
    blank: Option<u64>,
}

impl Walk {
    fn segments(&mut self, found: &Fronts, kept: Option<LogId>) -> Result<(), StoreError> {
        for (at, front) in found.fronts.iter().enumerate() {
            let next = found.fronts.get(at + 1);
            match (&front.begin, next.map(|next| &next.begin)) {
                (Ok((begin, _)), Some(Ok((next, _)))) if is_covered(next, kept) => {
                    self.pass_by(front, begin, next)?;
                }
                _ => self.scan(front, next.is_none())?,
            }
        }
        Ok(())
    }

    /// Takes a segment from its first record and its seal.
    fn pass_by(&mut self, front: &Front, begin: &Begin, next: &Begin) -> Result<(), StoreError> {
        let segment = &front.segment;
        let bytes = length(segment)?;
        let summary = seal(segment, next.previous_seal)?;
        if summary.end != next.position {
            return Err(damaged(
                segment.number,
                next.previous_seal,
                "the next segment continues another one",
            ));
        }
        self.start(segment.number, begin, front.is_reset())?;
        self.end = Some(summary.end);
        self.contents.take_segment(segment.clone(), bytes, &summary, None, true);
        self.contents.notes = next.notes.clone();
        Ok(())
    }

    /// Takes every record of a segment. If it is not sealed, it is the one in use.
    fn scan(&mut self, front: &Front, last: bool) -> Result<(), StoreError> {
        let segment = &front.segment;
        let (number, bytes) = (segment.number, scan::read(segment)?);
        let scanned = match scan::scan(number, &bytes) {
            Ok(scanned) => scanned,
            Err(Err(error)) => return Err(error),
            Err(Ok(bad)) => {
                end_or_damage(number, &bytes, 0, bad, last)?;
                // What was removed before a segment was removed because this one begins where they ended.
                if self.end.is_none() && number != 1 {
                    return Err(incomplete(number, 0, bad));
                }
                self.blank = Some(number);
                return Ok(());
            }
        };
        self.start(number, &scanned.begin, front.is_reset())?;
        self.seal = match scanned.end {
            End::Sealed(at) => at,
            End::Bad(at, bad) => end_or_damage(number, &bytes, at, bad, last)?,
        };
        self.take(segment, bytes.len() as u64, scanned);
        Ok(())
    }

    fn take(&mut self, segment: &SegmentFile, capacity: u64, scanned: Scanned) {
        let end = scanned.end;
        let bytes = segment::len_of(capacity);
        let (_, summary) = scanned.put(&mut self.contents, segment.clone(), bytes);
        self.end = Some(summary.end);
        self.contents.begun = segment.number;
        self.last = Some(segment.clone());
        if let End::Bad(at, _) = end {
            let file = segment.file.clone();
            self.active =
                Some(Active { number: segment.number, file, capacity, end: at, synced: at, summary });
        }
    }

    /// A segment begins where the one before it ended, the first one where it says.
    fn start(&mut self, number: u64, begin: &Begin, reset: bool) -> Result<(), StoreError> {
        match self.end {
            Some(end) if end == begin.position => {}
            Some(_) => return Err(damaged(number, 0, "the segment does not continue the one before it")),
            None if number == 1 && !reset && begin.position != Position::default() => {
                return Err(damaged(number, 0, "the first segment does not begin the log"));
            }
            None => self.contents.reset(begin.position),
        }
        Ok(())
    }

    /// Where to go on, once the log and the images were held to each other.
    fn resume(mut self, images: Images, found: &Fronts) -> Result<Recovered, StoreError> {
        let numbers = || found.fronts.iter().map(|front| front.segment.number);
        let mut resume = Resume {
            position: self.end.unwrap_or_default(),
            number: self.blank.map_or(numbers().last().unwrap_or(0), |blank| blank - 1),
            previous_seal: self.seal,
            reset: false,
            void: Vec::new(),
            active: None,
        };
        if !self.meets(&images, numbers().next().unwrap_or(1))? {
            let position = images.newest().expect("the log lacks something of it").position();
            self.contents.reset(position);
            (resume.position, resume.reset) = (position, true);
            resume.void = numbers().filter(|number| Some(*number) != self.blank).collect();
        }
        resume.active = self.active;
        let kept = images.newest().map(|image| image.meta.last);
        self.contents.notes.committed = self.contents.notes.committed.max(kept);
        Ok(Recovered { contents: self.contents, images, resume })
    }

    /// Whether the log goes on from the newest image. If not, the crash came between keeping one from the leader and
    /// beginning the log anew after it.
    fn meets(&self, images: &Images, first: u64) -> Result<bool, StoreError> {
        let (contents, begins) = (&self.contents, self.contents.base.next);
        let Some(image) = images.newest() else {
            let why = format!(
                "the log begins at entry {begins}, and no image beside it holds the outcome of what came before"
            );
            return if begins == 0 { Ok(true) } else { Err(damaged(first, 0, &why)) };
        };
        let last = image.meta.last;
        if contents.has(last) || image.installed && begins <= last.index + 1 {
            return Ok(contents.has(last));
        }
        let (number, at) = self.active.as_ref().map_or((first, 0), |active| (active.number, active.end));
        let why = format!(
            "the log begins at entry {begins} and ends before entry {}, but image {} beside it holds the outcome of \
             entry {} of term {}",
            contents.next,
            images::name(image.number),
            last.index,
            last.term
        );
        Err(damaged(number, at, &why))
    }
}

/// The segment before `next` is sealed, and an image holds the outcome of everything in it.
fn is_covered(next: &Begin, kept: Option<LogId>) -> bool {
    next.previous_seal > 0 && kept.is_some_and(|kept| next.position.next <= kept.index + 1)
}

/// The length of a segment's file, which is as it was made.
fn length(segment: &SegmentFile) -> Result<u64, StoreError> {
    let len = segment.file.size().map_err(StoreError::io("measure a segment"))?;
    let capacity = segment::capacity(&*segment.file).map_err(StoreError::io("measure a segment"))?;
    match capacity {
        Some(_) => Ok(len),
        None => Err(damaged(segment.number, len, "the file is not as long as it was made")),
    }
}

/// Where the log ends, given that there is no good record at `at`.
pub(super) fn end_or_damage(
    number: u64,
    bytes: &[u8],
    at: u64,
    bad: Bad,
    last: bool,
) -> Result<u64, StoreError> {
    if !last || matches!(bad, Bad::Newer { .. }) {
        return Err(incomplete(number, at, bad));
    }
    match scan::witness(number, bytes, at) {
        Some(later) => {
            Err(bad_record(number, at, bad, &format!("and the record at byte {later} says it was safe")))
        }
        None => Ok(at),
    }
}
