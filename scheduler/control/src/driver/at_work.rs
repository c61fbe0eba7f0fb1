//! Which evaluations the workers of this process are at, in a file that outlives it.
//!
//! An evaluation can end the process: memory runs out, or a stack. Nothing in the log says so, and it would be given to a
//! worker again after the next start, and at every server in turn. So each worker notes what it begins; what stands
//! there at a start was never finished. What ended two processes is not tried again.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use base::Uuid;
use model::EvalId;
use parking_lot::Mutex;

/// What this process is at: 16 bytes for each worker, zeros while it is at nothing.
const AT_WORK: &str = "evals-at-work";
/// What earlier processes were at when they ended, newest first: an id and how often on each line.
const ENDED: &str = "evals-that-ended-servers";

const SLOT: usize = 16;

/// Evaluations that are remembered; those of longer ago are tried again.
const REMEMBERED_MAX: usize = 256;

/// Processes that an evaluation may end: one may have been killed at an unlucky moment.
const ENDED_MAX: u32 = 2;

/// The notes of all workers. Never synced: what a process wrote outlives it in the system's memory, and no more is needed.
#[derive(Debug, Default)]
pub struct AtWork {
    file: Option<File>,
    taken: Mutex<BTreeSet<usize>>,
    deadly: BTreeSet<EvalId>,
}

impl AtWork {
    /// Reads what the last process left in the directory, and begins anew.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn open(directory: &Path) -> io::Result<AtWork> {
        let (at_work, ended) = (directory.join(AT_WORK), directory.join(ENDED));
        let left = unless_missing(fs::read(&at_work))?;
        let left: Vec<EvalId> = left.chunks_exact(SLOT).filter_map(noted).collect();
        let before = unless_missing(fs::read_to_string(&ended))?;
        let before: Vec<(EvalId, u32)> = before.lines().filter_map(line).collect();
        let times =
            |eval: &EvalId| before.iter().find(|(known, _)| known == eval).map_or(0, |(_, times)| *times);
        let mut known: Vec<(EvalId, u32)> = left.iter().map(|eval| (*eval, times(eval) + 1)).collect();
        known.extend(before.iter().filter(|(eval, _)| !left.contains(eval)));
        known.truncate(REMEMBERED_MAX);
        if !left.is_empty() {
            let lines: String = known.iter().map(|(eval, times)| format!("{eval} {times}\n")).collect();
            fs::write(&ended, lines)?;
        }
        let deadly =
            known.into_iter().filter(|(_, times)| *times >= ENDED_MAX).map(|(eval, _)| eval).collect();
        Ok(AtWork { file: Some(File::create(at_work)?), taken: Mutex::default(), deadly })
    }

    pub fn deadly(&self) -> &BTreeSet<EvalId> {
        &self.deadly
    }

    /// The notes of one more worker.
    pub fn slot(self: &Arc<Self>) -> Slot {
        let mut taken = self.taken.lock();
        let free = (0..).find(|slot| !taken.contains(slot)).expect("there are fewer workers than numbers");
        taken.insert(free);
        Slot { of: self.clone(), number: free }
    }
}

/// Where one worker notes what it is at.
#[derive(Debug)]
pub struct Slot {
    of: Arc<AtWork>,
    number: usize,
}

impl Slot {
    pub fn begin(&self, eval: EvalId) {
        self.write(eval.0);
    }

    pub fn end(&self) {
        self.write(Uuid::NIL);
    }

    fn write(&self, id: Uuid) {
        let Some(file) = &self.of.file else { return };
        if let Err(error) = file.write_all_at(&id.0, (self.number * SLOT) as u64) {
            tracing::debug!(%error, "what a worker is at cannot be noted");
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.end();
        self.of.taken.lock().remove(&self.number);
    }
}

fn noted(slot: &[u8]) -> Option<EvalId> {
    let id = Uuid(slot.try_into().ok()?);
    (!id.is_nil()).then_some(EvalId(id))
}

fn line(line: &str) -> Option<(EvalId, u32)> {
    let (eval, times) = line.split_once(' ')?;
    Some((eval.parse().ok()?, times.parse().ok()?))
}

fn unless_missing<T: Default>(read: io::Result<T>) -> io::Result<T> {
    match read {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(T::default()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_processes_did_not_finish_is_not_tried_again() {
        let home = tempfile::tempdir().unwrap();
        let eval = |number: u128| EvalId(Uuid::from(number));
        // A process that ends without notice drops nothing.
        let process = |begins: &[u128], ends: &[u128]| {
            let notes = Arc::new(AtWork::open(home.path()).unwrap());
            let deadly: Vec<EvalId> = notes.deadly().iter().copied().collect();
            for number in begins {
                let slot = notes.slot();
                slot.begin(eval(*number));
                if ends.contains(number) {
                    drop(slot);
                } else {
                    std::mem::forget(slot);
                }
            }
            deadly
        };
        assert_eq!(process(&[1, 2, 3], &[2]), []);
        assert_eq!(process(&[1, 2, 4], &[4]), []);
        assert_eq!(process(&[], &[]), [eval(1)]);
        assert_eq!(process(&[2], &[]), [eval(1)], "it is remembered");
        assert_eq!(process(&[], &[]), [eval(1), eval(2)]);
    }
}
