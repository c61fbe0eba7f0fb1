//! The output of a container on its way into the log files of the task.
//!
//! The engine keeps the output too, with the time of each line. So nothing is lost while no agent runs, as long as the
//! engine keeps it: the next agent asks for what came since. What was written is noted now and then; what was written
//! after the last note follows from the sizes of the files, so that no byte is written twice.

use std::collections::BTreeMap;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use executor::rotate::{self, Rotator};
use executor::spec::LogSpec;
use model::document::Timestamp;
use serde::{Deserialize, Serialize};

use crate::driver::Logs;

/// How much is written between two notes at most, and for how long.
const NOTE_BYTES: u64 = 256 * 1024;
const NOTE_EVERY: Duration = Duration::from_secs(1);

/// Of a time as the engine writes it before each line: all have nine digits behind the point, and are of UTC.
const TIME_BYTES: usize = "2026-11-25T06:50:34.494397390Z".len();

/// Of those bytes, what says the second.
const SECOND_BYTES: usize = "2026-11-25T06:50:34".len();

/// Seconds of which it is known how many pieces were taken. The engine writes the times of a clock that may be set
/// back, by some milliseconds again and again under load: so the last time alone does not say what was taken.
const SECONDS_MAX: usize = 16;

/// So far may the clock go back between two pieces without that the later one is not asked for.
const SET_BACK_SECONDS: i64 = 2;

/// How far one stream has been written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Position {
    /// Of the last piece; empty before the first.
    time: String,
    /// Pieces of that time that were taken; for older releases.
    pieces: u64,
    /// Pieces that were taken of each of the latest seconds. What is of an earlier one was taken too.
    seconds: BTreeMap<String, u64>,
    /// The file that was written, and its size then.
    file: u64,
    bytes: u64,
}

/// Notes, before a container starts, where its output begins in the files: those of earlier runs of the task stay.
///
/// # Errors
/// When it cannot be noted; the output would be taken for written.
pub fn begin(note: &Path, logs: &Logs) -> std::io::Result<()> {
    let begun = Note { stdout: start_position(&logs.stdout), stderr: start_position(&logs.stderr) };
    if let Some(directory) = note.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    std::fs::write(note, serde_json::to_vec(&begun)?)
}

fn start_position(to: &LogSpec) -> Position {
    match Rotator::open(to.clone()).map(|rotator| rotator.position()) {
        Ok((file, bytes)) => Position { file, bytes, ..Position::default() },
        Err(_) => Position::default(),
    }
}

/// What is noted of both streams. Stored: fields are only ever added.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Note {
    stdout: Position,
    stderr: Position,
}

/// Both streams of a container, and where it is noted how far they are written.
#[derive(Debug)]
pub struct Output {
    pub stdout: Stream,
    pub stderr: Stream,
    note: PathBuf,
    noted: Instant,
}

impl Output {
    /// # Errors
    /// When the files cannot be written.
    pub fn open(logs: &Logs, note: &Path) -> std::io::Result<Output> {
        let noted = read_note(note);
        Ok(Output {
            stdout: Stream::open(&logs.stdout, noted.stdout)?,
            stderr: Stream::open(&logs.stderr, noted.stderr)?,
            note: note.to_path_buf(),
            noted: Instant::now(),
        })
    }

    /// From here on what was taken may come again.
    pub fn begin_again(&mut self) {
        self.stdout.begin_again();
        self.stderr.begin_again();
    }

    /// The second from which on there may be something new; 0 for all.
    pub fn since(&self) -> i32 {
        since(&self.stdout.at.time, &self.stderr.at.time)
    }

    /// Notes how far the files are written, if that is due.
    pub fn note_now_and_then(&mut self) {
        let unnoted = self.stdout.unnoted + self.stderr.unnoted;
        if unnoted >= NOTE_BYTES || (unnoted > 0 && self.noted.elapsed() >= NOTE_EVERY) {
            self.write_note();
        }
    }

    pub fn write_note(&mut self) {
        self.noted = Instant::now();
        let note = Note { stdout: self.stdout.noted(), stderr: self.stderr.noted() };
        let draft = self.note.with_extension("new");
        let written = serde_json::to_vec(&note)
            .map_err(std::io::Error::from)
            .and_then(|bytes| std::fs::write(&draft, bytes))
            .and_then(|()| std::fs::rename(&draft, &self.note));
        if let Err(error) = written {
            tracing::debug!(%error, "it was not noted how far the output of a task is written");
        }
    }
}

fn read_note(path: &Path) -> Note {
    std::fs::read(path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

/// The second from which on there may be something new; 0 for all.
fn since(stdout: &str, stderr: &str) -> i32 {
    let seconds = |time: &str| time.parse::<Timestamp>().ok()?.0.map(|time| time.0 / 1_000_000_000);
    let first = match (seconds(stdout), seconds(stderr)) {
        (Some(stdout), Some(stderr)) => stdout.min(stderr),
        // One that has never said anything may have said something since the other did, but nothing before that was
        // read: both are read together. Yet their order is not certain to the second.
        (Some(one), None) | (None, Some(one)) => one - 1,
        (None, None) => 0,
    };
    i32::try_from((first - SET_BACK_SECONDS).max(0)).unwrap_or(0)
}

/// One stream of the output.
#[derive(Debug)]
pub struct Stream {
    to: Rotator,
    at: Position,
    /// As it was noted last.
    noted: Position,
    /// Pieces of the seconds of `at` that have not come again yet; None when all that comes is new.
    expected: Option<BTreeMap<String, u64>>,
    /// Bytes that come again although they were written, by an agent that did not note it any more.
    written_before: u64,
    /// Bytes that were written since the last note.
    unnoted: u64,
}

impl Stream {
    fn open(to: &LogSpec, at: Position) -> std::io::Result<Stream> {
        let written_before = written_since(to, &at);
        let noted = at.clone();
        Ok(Stream { to: Rotator::open(to.clone())?, at, noted, expected: None, written_before, unnoted: 0 })
    }

    /// From here on what was taken may come again.
    fn begin_again(&mut self) {
        self.expected = (!self.at.time.is_empty()).then(|| self.at.seconds.clone());
    }

    /// A line, or a piece of one, with its time before it.
    pub fn take(&mut self, message: &[u8]) {
        match split_time(message) {
            Some((time, text)) => self.take_at(time, text),
            None => self.write(message),
        }
    }

    /// A line, or a piece of one, of a time; all times are written in the same form, and of the same zone.
    pub fn take_at(&mut self, time: &str, text: &[u8]) {
        if self.comes_again(time) {
            return;
        }
        // What comes again comes first, in the order in which it came.
        self.expected = None;
        if time != self.at.time {
            self.at.time = time.to_string();
            self.at.pieces = 0;
        }
        self.at.pieces += 1;
        self.count(second(time));
        self.write(text);
    }

    /// Whether this piece was taken before.
    fn comes_again(&mut self, time: &str) -> bool {
        let Some(expected) = &mut self.expected else { return false };
        if expected.is_empty() {
            // Noted by an older release, which knew of the last time only.
            let taken = time <= self.at.time.as_str();
            if taken {
                self.count(second(time));
            }
            return taken;
        }
        if self.at.seconds.first_key_value().is_some_and(|(first, _)| second(time) < first.as_str()) {
            return true;
        }
        match expected.get_mut(second(time)) {
            Some(left) if *left > 0 => {
                *left -= 1;
                true
            }
            Some(_) | None => false,
        }
    }

    fn count(&mut self, second: &str) {
        if let Some(count) = self.at.seconds.get_mut(second) {
            *count += 1;
            return;
        }
        self.at.seconds.insert(second.to_string(), 1);
        if self.at.seconds.len() > SECONDS_MAX {
            self.at.seconds.pop_first();
        }
    }

    fn write(&mut self, text: &[u8]) {
        let again = (text.len() as u64).min(self.written_before);
        self.written_before -= again;
        self.unnoted += text.len() as u64;
        if let Err(error) = self.to.write(&text[again as usize..]) {
            tracing::debug!(%error, "output of a task was not written");
        }
    }

    fn noted(&mut self) -> Position {
        self.unnoted = 0;
        // What was written before comes first: until all of it has come again, the files are ahead.
        if self.written_before == 0 {
            (self.at.file, self.at.bytes) = self.to.position();
            self.noted = self.at.clone();
        }
        self.noted.clone()
    }
}

fn second(time: &str) -> &str {
    time.get(..SECOND_BYTES).unwrap_or(time)
}

/// The time before a line, and the line.
fn split_time(message: &[u8]) -> Option<(&str, &[u8])> {
    let (time, rest) = message.split_at_checked(TIME_BYTES)?;
    let text = rest.strip_prefix(b" ")?;
    let time = std::str::from_utf8(time).ok()?;
    (time.as_bytes()[10] == b'T' && time.ends_with('Z')).then_some((time, text))
}

/// Bytes in the files of a stream behind a position.
fn written_since(to: &LogSpec, at: &Position) -> u64 {
    let sizes: BTreeMap<u64, u64> = rotate::indexes(&to.directory, &to.name)
        .unwrap_or_default()
        .into_iter()
        .filter_map(|index| {
            let path = to.directory.join(format!("{}.{index}", to.name));
            Some((index, std::fs::symlink_metadata(path).ok()?.len()))
        })
        .collect();
    let here = sizes.get(&at.file).copied().unwrap_or(0).saturating_sub(at.bytes);
    here + sizes.range(at.file + 1..).map(|(_, size)| size).sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: &str = "2026-11-25T12:00:00.000000001Z";
    const LATER: &str = "2026-11-25T12:00:07.000000000Z";

    fn spec(directory: &Path) -> LogSpec {
        LogSpec { directory: directory.into(), name: "t.stdout".into(), files_max: 9, file_bytes_max: 20 }
    }

    fn pieces() -> Vec<Vec<u8>> {
        [(NOON, "one\n"), (NOON, "two, which is long\n"), (LATER, "three\n"), (LATER, "four\n")]
            .map(|(time, text)| format!("{time} {text}").into_bytes())
            .to_vec()
    }

    fn written(directory: &Path) -> String {
        let indexes = rotate::indexes(directory, "t.stdout").unwrap();
        let read = |n: u64| std::fs::read_to_string(directory.join(format!("t.stdout.{n}"))).unwrap();
        indexes.into_iter().map(read).collect()
    }

    /// An agent writes `taken` pieces, notes it after `noted` of them, and dies. The next one gets all of them again.
    #[test]
    fn whenever_an_agent_dies_no_line_is_lost_or_written_twice() {
        for taken in 0..=4 {
            for noted in 0..=taken {
                let dir = tempfile::tempdir().unwrap();
                let mut stream = Stream::open(&spec(dir.path()), Position::default()).unwrap();
                let mut position = Position::default();
                for (n, piece) in pieces().iter().take(taken).enumerate() {
                    if n == noted {
                        position = stream.noted();
                    }
                    stream.take(piece);
                }
                if noted == taken {
                    position = stream.noted();
                }
                drop(stream);
                let mut stream = Stream::open(&spec(dir.path()), position).unwrap();
                stream.begin_again();
                pieces().iter().for_each(|piece| stream.take(piece));
                let text = written(dir.path());
                assert_eq!(text, "one\ntwo, which is long\nthree\nfour\n", "{taken} {noted}");
            }
        }
    }

    /// The agent lives, and the engine has gone and come back.
    #[test]
    fn a_connection_that_begins_anew_repeats_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let mut stream = Stream::open(&spec(dir.path()), Position::default()).unwrap();
        pieces().iter().take(3).for_each(|piece| stream.take(piece));
        stream.begin_again();
        pieces().iter().for_each(|piece| stream.take(piece));
        assert_eq!(written(dir.path()), "one\ntwo, which is long\nthree\nfour\n");
    }

    /// The clock of the host is set back between lines, by less than a second and by more.
    #[test]
    fn lines_whose_times_go_back_are_written_once() {
        let times = ["00.000000005", "00.000000004", "02.1", "01.9", "01.9", "02.2"];
        let pieces: Vec<String> =
            times.iter().zip(1..).map(|(time, n)| format!("2026-11-25T12:00:{time:0<12}Z {n}\n")).collect();
        for taken in 1..=pieces.len() {
            let dir = tempfile::tempdir().unwrap();
            let mut stream = Stream::open(&spec(dir.path()), Position::default()).unwrap();
            pieces[..taken].iter().for_each(|piece| stream.take(piece.as_bytes()));
            let from = since(&stream.at.time, &stream.at.time);
            let time = |piece: &str| piece.split(' ').next().unwrap_or_default().to_string();
            let second = |piece: &str| since(&time(piece), &time(piece)) + SET_BACK_SECONDS as i32;
            let sent = |piece: &&String| second(piece) >= from;
            stream.begin_again();
            pieces.iter().filter(sent).for_each(|piece| stream.take(piece.as_bytes()));
            assert_eq!(written(dir.path()), "1\n2\n3\n4\n5\n6\n", "{taken}");
        }
    }

    #[test]
    fn what_an_older_release_has_noted_is_not_written_again() {
        let dir = tempfile::tempdir().unwrap();
        let at = Position { time: NOON.into(), pieces: 2, ..Position::default() };
        let mut stream = Stream::open(&spec(dir.path()), at).unwrap();
        stream.begin_again();
        pieces().iter().for_each(|piece| stream.take(piece));
        stream.begin_again();
        pieces().iter().for_each(|piece| stream.take(piece));
        assert_eq!(written(dir.path()), "three\nfour\n");
    }

    #[test]
    fn an_earlier_run_of_the_task_is_continued() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("t.stdout.0"), "before\n").unwrap();
        let start = start_position(&spec(dir.path()));
        let mut stream = Stream::open(&spec(dir.path()), start).unwrap();
        pieces().iter().for_each(|piece| stream.take(piece));
        assert_eq!(written(dir.path()), "before\none\ntwo, which is long\nthree\nfour\n");
    }

    #[test]
    fn what_has_no_time_is_passed_on() {
        assert_eq!(split_time(b"2026-11-25T12:00:00.000000001Z text"), Some((NOON, &b"text"[..])));
        assert_eq!(split_time(b"short"), None);
        assert_eq!(split_time(&[b'x'; 64]), None);
    }

    #[test]
    fn the_engine_is_asked_for_what_came_since() {
        assert_eq!(since("", ""), 0);
        let noon = since(NOON, LATER);
        assert_eq!((since(LATER, LATER) - noon, since(NOON, "") - noon), (7, -1));
    }
}
