//! How much history is kept: sealed segments go when they are too old or too many, the oldest first.
//!
//! Only what a restart does not need may go: what lies below the older of two images, so that a restart can do
//! without the newer one, and below what raft has purged. Each removal is synced before the next, so that a crash
//! leaves a log that begins later, but never one with a gap.

use std::time::Duration;

use base::Time;

use super::contents::Contents;
use super::{LogId, Store, segment};

/// How much history is kept beyond what a restart and lagging servers need.
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

impl Store {
    /// Removes what need not be kept at `now`. What cannot be removed is tried again the next time.
    pub(super) fn retain(&self, now: Time) {
        let kept = {
            let images = self.shared.images.lock();
            images.older().map(|image| image.meta.last)
        };
        let (Some(kept), Ok(files)) = (kept, self.files()) else { return };
        loop {
            let oldest = {
                let mut contents = self.shared.contents.lock();
                if !may_go(&contents, kept) || !must_go(&contents, self.retention, now) {
                    return;
                }
                let number = contents.segments[0].file.number;
                contents.forget_oldest();
                number
            };
            let name = segment::name(oldest);
            if let Err(error) = files.remove(&name) {
                tracing::warn!(%error, name, "an old segment of the log is not removed");
                return;
            }
            if self.synced(files.sync_dir()).is_err() {
                return;
            }
        }
    }
}

/// A restart does not need the oldest segment: the next one is there to begin with.
fn may_go(contents: &Contents, kept: LogId) -> bool {
    let Some(next) = contents.segments.get(1) else { return false };
    let Some(last) = next.start.next.checked_sub(1) else { return false };
    let purged = contents.notes.purged.is_some_and(|purged| purged.index >= last);
    purged && kept.index >= last && next.file.number <= contents.begun
}

fn must_go(contents: &Contents, retention: Retention, now: Time) -> bool {
    let bytes: u64 = contents.segments.iter().map(|segment| segment.bytes).sum();
    let Some(sealed) = contents.segments[0].sealed else { return false };
    let age = u64::try_from(now.0.saturating_sub(sealed.last_time)).unwrap_or(0);
    bytes > retention.bytes || retention.age.is_some_and(|most| u128::from(age) > most.as_nanos())
}
