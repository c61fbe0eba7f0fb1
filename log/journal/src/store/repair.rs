//! Makes a damaged log open again, at a price that is shown first: for a server that has no peers to fetch it from.

use std::io;
use std::ops::RangeInclusive;

use base::Index;

use super::diagnosis::{Cut, Diagnosis, Remedy, diagnose};
use super::files::Files;
use super::position::Begin;
use super::record::{Draft, Kind, Spot};
use super::{StoreError, images, segment};

/// A file that is being written.
pub(super) const UNFINISHED: &str = "repair.tmp";
/// Copied at once.
const CHUNK: usize = 1 << 20;

/// Something that is not what was safely written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The name of a segment or an image.
    pub file: String,
    /// In bytes.
    pub offset: u64,
    pub why: String,
}

/// What a repair costs, or has cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    pub damage: Vec<Damage>,
    /// The last batch whose outcome is kept; 0 for none.
    pub keeps: Index,
    /// The oldest batch that can be read afterwards.
    pub horizon: Index,
    /// Batches that are lost with their outcome, as far as there is a trace of them.
    pub lost: Option<RangeInclusive<Index>>,
    /// Where what was damaged or had to go is found now. Empty as long as the loss is not accepted: nothing was
    /// changed.
    pub aside: Vec<String>,
}

impl Damage {
    pub(super) fn segment(number: u64, offset: u64, why: &str) -> Damage {
        Damage { file: segment::name(number), offset, why: why.to_string() }
    }

    /// What cannot be repaired stays an error.
    pub(super) fn of(error: StoreError) -> Result<Damage, StoreError> {
        match error {
            StoreError::Damaged { file, offset, why } => Ok(Damage { file, offset, why }),
            error => Err(error),
        }
    }
}

/// Reports what is damaged in a log that is not open and what a repair would lose; with `accept_loss` does it. Reads
/// everything.
///
/// Each damaged file is copied to `<name>.damaged-<n>` first, and what is whole but has to go is renamed to
/// `<name>.aside-<n>`: nothing is removed for good. After a crash it can be done again.
///
/// # Errors
/// [`StoreError::Undamaged`] when there is nothing to repair; the faults of a disk; a log of a newer release.
pub fn repair(files: &dyn Files, accept_loss: bool) -> Result<Repair, StoreError> {
    let found = diagnose(files)?;
    if found.damage.is_empty() {
        return Err(StoreError::Undamaged);
    }
    let lost = found.keeps + 1..=found.seen;
    let mut repair = Repair {
        damage: found.damage.clone(),
        keeps: Index(found.keeps),
        horizon: Index(found.horizon),
        lost: (!lost.is_empty()).then(|| Index(*lost.start())..=Index(*lost.end())),
        aside: Vec::new(),
    };
    if accept_loss {
        let names = files.list().map_err(StoreError::io("list the log's segments"))?;
        let mut aside = Aside { files, damage: &found.damage, names, put: Vec::new() };
        apply(&mut aside, &found).map_err(StoreError::io("repair the log"))?;
        repair.aside = aside.put;
    }
    Ok(repair)
}

fn apply(aside: &mut Aside<'_>, found: &Diagnosis) -> io::Result<()> {
    let files = aside.files;
    aside.copy_damaged()?;
    match &found.remedy {
        Remedy::Cut { front, end, behind } => {
            behind.iter().rev().try_for_each(|number| aside.put(*number))?;
            match *end {
                Some(Cut { number, good: 0, .. }) => aside.put(number)?,
                Some(at) => cut(files, at)?,
                None => {}
            }
            front.iter().try_for_each(|number| aside.put(*number))?;
        }
        Remedy::Anew { segments, begin } => {
            segments.iter().rev().try_for_each(|number| aside.put(*number))?;
            if let Some(begin) = begin {
                begin_anew(files, segments.last().map_or(1, |last| last + 1), begin)?;
            }
        }
    }
    for number in &found.images {
        files.remove(&images::name(*number))?;
    }
    files.sync_dir()
}

/// Where files go that have to go.
struct Aside<'a> {
    files: &'a dyn Files,
    damage: &'a [Damage],
    /// Of all files.
    names: Vec<String>,
    put: Vec<String>,
}

impl Aside<'_> {
    fn copy_damaged(&mut self) -> io::Result<()> {
        for damage in self.damage {
            if self.names.contains(&damage.file) {
                let name = self.free_name(&damage.file, "damaged");
                copy(self.files, &damage.file, &name)?;
            }
        }
        Ok(())
    }

    fn put(&mut self, number: u64) -> io::Result<()> {
        let name = segment::name(number);
        // Of what is damaged there is a copy.
        if self.damage.iter().any(|damage| damage.file == name) {
            self.files.remove(&name)?;
        } else {
            let to = self.free_name(&name, "aside");
            self.files.rename(&name, &to)?;
        }
        // One at a time from an end: whatever a crash leaves is a log with less at that end.
        self.files.sync_dir()
    }

    /// A name that is not taken, and is from now on.
    fn free_name(&mut self, name: &str, what: &str) -> String {
        let mut numbered = (1..).map(|nth| format!("{name}.{what}-{nth}"));
        let free = numbered.find(|name| !self.names.contains(name)).expect("more numbers than files");
        self.names.push(free.clone());
        self.put.push(free.clone());
        free
    }
}

fn copy(files: &dyn Files, from: &str, to: &str) -> io::Result<()> {
    let source = files.open(from)?;
    let len = source.size()?;
    let target = files.create_sparse(UNFINISHED, len)?;
    let mut buffer = vec![0; CHUNK];
    let mut at = 0;
    while at < len {
        let some = &mut buffer[..(len - at).min(CHUNK as u64) as usize];
        source.read_at(some, at)?;
        target.write_at(some, at)?;
        at += some.len() as u64;
    }
    target.sync()?;
    files.rename(UNFINISHED, to)?;
    files.sync_dir()
}

/// Replaces a segment by one that has only its first bytes.
fn cut(files: &dyn Files, at: Cut) -> io::Result<()> {
    let source = files.open(&segment::name(at.number))?;
    let mut bytes = vec![0; at.good as usize];
    source.read_at(&mut bytes, 0)?;
    write(files, at.number, &bytes, source.size()?.max(segment::len_of(at.good + at.seal)))
}

/// A log that goes on after an image.
fn begin_anew(files: &dyn Files, number: u64, begin: &Begin) -> io::Result<()> {
    let (payload, position) = (begin.bytes(), begin.position);
    let (raft_index, term, index) = (position.next, position.term, position.batch);
    let draft = Draft { kind: Kind::Reset, raft_index, term, index, payload: &payload };
    let mut bytes = Vec::new();
    draft.write(&mut bytes, Spot { segment: number, offset: 0 }, position.chain, 0);
    write(files, number, &bytes, segment::len_for(0, bytes.len() as u64))
}

fn write(files: &dyn Files, number: u64, bytes: &[u8], len: u64) -> io::Result<()> {
    let file = files.create(UNFINISHED, len)?;
    file.write_at(bytes, 0)?;
    segment::mark_end(&*file, len)?;
    file.sync()?;
    files.rename(UNFINISHED, &segment::name(number))?;
    files.sync_dir()
}
