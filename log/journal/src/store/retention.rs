//! How much history is kept in the log: sealed segments go when they are too old or too many, the oldest first.
//!
//! Only what a restart does not need may go: what lies below the older of two images, so that a restart can do
//! without the newer one, and below what raft has purged. Each removal is synced before the next, so that a crash
//! leaves a log that begins later, but never one with a gap. With an archive a segment goes there before it is removed. Of what
//! leaves both, chosen facts may be kept, see [`super::kept_facts`].

use std::time::Duration;

use base::Time;

use super::archive::{Archive, Head, LEVEL};
use super::contents::Contents;
use super::position::Position;
use super::{Entry, LogId, Store, StoreError, segment};

/// How much history is kept in the log beyond what a restart and lagging servers need: a segment goes when it is older than
/// `age`, and the oldest go, whatever their age, when all take more than `bytes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Of all segments together.
    pub bytes: u64,
    /// Since the last batch in a segment; without it, age does not matter.
    pub age: Option<Duration>,
}

/// What is kept by default: 20 GiB, 30 days.
pub const RETENTION: Retention =
    Retention { bytes: 20 << 30, age: Some(Duration::from_secs(30 * 24 * 60 * 60)) };

/// Segments that are archived, or of which facts are kept, at once at most; the rest has its turn with the next image. Images are made at least as often
/// as a segment is filled, so this catches up.
const ARCHIVED_AT_ONCE: usize = 16;

/// While the archive fails, the log grows to so many times [`Retention::bytes`]; then its oldest segments go without.
const UNARCHIVED: u64 = 2;

/// A segment that goes.
struct Leaving {
    number: u64,
    start: Position,
    end: Position,
    last_time: i64,
    /// The segments are more than [`Retention::bytes`].
    too_many: bool,
    /// Of all segments.
    bytes: u64,
}

impl Store {
    /// Removes what need not be kept at `now`. What cannot be removed or archived is tried again the next time.
    pub(super) fn retain(&self, now: Time) {
        let kept = {
            let images = self.shared.images.lock();
            images.older().map(|image| image.meta.last)
        };
        let (Some(kept), Ok(files)) = (kept, self.files()) else { return };
        let is_read = self.archive.is_some() || self.kept.is_some();
        let most = if is_read { ARCHIVED_AT_ONCE } else { usize::MAX };
        for _ in 0..most {
            let leaving = leaving(&self.shared.contents.lock(), kept, self.retention, now);
            let Some(leaving) = leaving else { break };
            if !self.archived(&leaving, now) || !self.forget(leaving.number) {
                break;
            }
            let name = segment::name(leaving.number);
            if let Err(error) = files.remove(&name) {
                tracing::warn!(%error, name, "an old segment of the log is not removed");
                break;
            }
            if self.synced(files.sync_dir()).is_err() {
                return;
            }
        }
        self.shrink_archive(now);
        if let Some(kept) = &self.kept
            && let Err(error) = kept.shrink()
        {
            kept.failed(&error);
            tracing::warn!(%error, "kept facts take more than keep_max_bytes");
        }
    }

    /// Whether a segment may be removed now: it is archived, or there is no archive, or it cannot be waited for.
    fn archived(&self, leaving: &Leaving, now: Time) -> bool {
        let (first, last) = (leaving.start.batch + 1, leaving.end.batch);
        let is_far_too_long = leaving.bytes > self.retention.bytes.saturating_mul(UNARCHIVED);
        let Some(archive) = &self.archive else {
            if self.keep_of_segment(leaving, is_far_too_long).is_err() {
                return false;
            }
            if leaving.too_many && self.is_young(leaving.last_time, now) {
                tracing::warn!(
                    first,
                    last,
                    max_bytes = self.retention.bytes,
                    "history is removed that is younger than min_age: the log would take more than max_bytes"
                );
            }
            return true;
        };
        let put = self.pack(leaving.start, leaving.end, LEVEL).and_then(|(head, bytes)| {
            archive.put(&head, &bytes)?;
            Ok((bytes.len() as u64, head.raw))
        });
        match put {
            Ok((bytes, raw_bytes)) => {
                tracing::info!(first, last, bytes, raw_bytes, "archived a segment of the log");
                true
            }
            Err(error) => {
                archive.failed(&error);
                let lost = is_far_too_long;
                match lost {
                    true => {
                        tracing::error!(%error, first, last, "history is lost: it cannot be archived, and the log would take more than twice max_bytes")
                    }
                    false => {
                        tracing::warn!(%error, first, last, "a segment of the log is not archived: it stays in the log")
                    }
                }
                lost && self.keep_of_segment(leaving, is_far_too_long).is_ok()
            }
        }
    }

    /// Keeps what is chosen of a segment that is not archived. An error when it must not be removed yet.
    fn keep_of_segment(&self, leaving: &Leaving, is_far_too_long: bool) -> Result<(), StoreError> {
        let range = leaving.start.next..leaving.end.next;
        self.keep_of((leaving.start, leaving.end), is_far_too_long, |each| self.each_entry(range, each))
    }

    /// The same of a file that leaves the archive. Of a damaged one nothing can be kept.
    fn keep_of_archived(&self, archive: &Archive, leaving: &Head) -> Result<(), StoreError> {
        if self.kept.is_none() {
            return Ok(());
        }
        let checked = archive.opened(leaving).and_then(|file| file.verify().map(|()| file));
        let is_damaged = matches!(checked, Err(StoreError::Damaged { .. }));
        let is_lost = is_damaged || archive.is_far_too_long();
        self.keep_of((leaving.start, leaving.end), is_lost, |each| {
            let file = checked?;
            for nth in 0..file.blocks() {
                file.walk(nth, &file.block(nth)?, |_, entry| each(&entry))?;
            }
            Ok(())
        })
    }

    /// The same of any part of the log, whose entries `each` passes on. What cannot be kept is lost where `is_lost` says so.
    fn keep_of(
        &self,
        (start, end): (Position, Position),
        is_lost: bool,
        each: impl FnOnce(&mut dyn FnMut(&Entry) -> Result<(), StoreError>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let Some(kept) = &self.kept else { return Ok(()) };
        let (first, last) = (start.batch + 1, end.batch);
        match kept.keep(start, end, each) {
            Ok(bytes) => {
                if let Some(bytes) = bytes {
                    tracing::info!(first, last, bytes, "kept the chosen facts of history that leaves");
                }
                Ok(())
            }
            Err(error) => {
                kept.failed(&error);
                if is_lost {
                    tracing::error!(%error, first, last, "facts are lost: they cannot be kept, and history cannot stay for longer");
                    return Ok(());
                }
                tracing::warn!(%error, first, last, "facts cannot be kept: history stays where it is");
                Err(error)
            }
        }
    }

    fn is_young(&self, last_time: i64, now: Time) -> bool {
        self.retention.age.is_some_and(|least| !is_older(last_time, now, least))
    }

    /// False when something else has become of the log meanwhile.
    fn forget(&self, number: u64) -> bool {
        let mut contents = self.shared.contents.lock();
        let is_oldest = contents.segments.len() > 1 && contents.segments[0].file.number == number;
        if is_oldest {
            contents.forget_oldest();
        }
        is_oldest
    }

    fn shrink_archive(&self, now: Time) {
        let Some(archive) = &self.archive else { return };
        let shrunk = archive.shrink(|gone| {
            let (first, last) = (gone.first().0, gone.last().0);
            self.keep_of_archived(archive, gone)?;
            match self.is_young(gone.last_time().0, now) {
                true => tracing::warn!(first, last, "history is removed from the archive that is younger than min_age: it would take more than its max_bytes"),
                false => tracing::info!(first, last, "history is removed from the archive"),
            }
            Ok(())
        });
        if let Err(error) = shrunk {
            archive.failed(&error);
            tracing::warn!(%error, "the archive takes more than its max_bytes");
        }
    }
}

/// The oldest segment, if it has to go and may.
fn leaving(contents: &Contents, kept: LogId, retention: Retention, now: Time) -> Option<Leaving> {
    let oldest = contents.segments.front()?;
    // A restart does not need it: the next one is there to begin with.
    let next = contents.segments.get(1)?;
    let last = next.start.next.checked_sub(1)?;
    let purged = contents.notes.purged.is_some_and(|purged| purged.index >= last);
    let may_go = purged && kept.index >= last && next.file.number <= contents.begun;
    let last_time = oldest.sealed?.last_time;
    let bytes = contents.segments.iter().map(|segment| segment.bytes).sum();
    let too_many = bytes > retention.bytes;
    let must_go = too_many || retention.age.is_some_and(|most| is_older(last_time, now, most));
    let (number, start, end) = (oldest.file.number, oldest.start, next.start);
    (may_go && must_go).then_some(Leaving { number, start, end, last_time, too_many, bytes })
}

fn is_older(last_time: i64, now: Time, age: Duration) -> bool {
    let past = u64::try_from(now.0.saturating_sub(last_time)).unwrap_or(0);
    u128::from(past) > age.as_nanos()
}
