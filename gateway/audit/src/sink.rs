//! Where entries go.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use monitor::{LogFile, LogFileSettings};
use parking_lot::Mutex;

use crate::chain::{LINE_MAX, Link, links};
use crate::entry::Entry;
use crate::filter::Filter;

/// Facility `authpriv`, severity `notice`.
const PRIORITY: u8 = (10 << 3) | 5;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditSettings {
    pub sink: Sink,
    /// A request whose entry cannot be written is not carried out, or its answer not given.
    pub is_enforced: bool,
    pub filters: Vec<Filter>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sink {
    File(LogFileSettings),
    /// The socket of the system's logger.
    Syslog(PathBuf),
}

/// Takes entries, one after the other.
#[derive(Debug)]
pub struct Audit {
    chained: Mutex<Chained>,
    is_enforced: bool,
    filters: Vec<Filter>,
}

#[derive(Debug)]
struct Chained {
    out: Out,
    last: Link,
}

#[derive(Debug)]
enum Out {
    File(LogFile),
    Syslog(UnixDatagram),
}

impl Audit {
    /// Goes on with the chain of a file that is there.
    ///
    /// # Errors
    /// The file cannot be opened, or its last line is none of ours; the logger cannot be reached.
    pub fn open(settings: AuditSettings) -> io::Result<Audit> {
        let chained = match settings.sink {
            Sink::File(file) => {
                let last = last_link(&file.file())?;
                Chained { out: Out::File(LogFile::open(file)?), last }
            }
            Sink::Syslog(path) => {
                let socket = UnixDatagram::unbound()?;
                socket.connect(path)?;
                // A logger that does not keep up must not hold up the cluster.
                socket.set_nonblocking(true)?;
                Chained { out: Out::Syslog(socket), last: Link::first() }
            }
        };
        let (chained, filters) = (Mutex::new(chained), settings.filters);
        Ok(Audit { chained, is_enforced: settings.is_enforced, filters })
    }

    /// Whether requests depend on their entries.
    pub fn is_enforced(&self) -> bool {
        self.is_enforced
    }

    /// Writes the entry, unless a filter leaves it out. What is written is the file system's then; it is not waited until it
    /// is on the disk.
    ///
    /// # Errors
    /// It was not written; the next one follows the last that was.
    pub fn record(&self, entry: &Entry) -> io::Result<()> {
        if self.filters.iter().any(|filter| filter.matches(entry)) {
            return Ok(());
        }
        let mut chained = self.chained.lock();
        let (line, link) = chained.last.line(entry);
        match &mut chained.out {
            Out::File(file) => file.write_all(line.as_bytes())?,
            Out::Syslog(socket) => {
                let message = format!("<{PRIORITY}>sojourn-audit: {}", line.trim_end());
                socket.send(message.as_bytes()).map(drop)?;
            }
        }
        chained.last = link;
        Ok(())
    }
}

/// Of the last whole line. One that was being written when the agent was killed is cut off: what it was about was not
/// carried out, or not answered.
fn last_link(path: &Path) -> io::Result<Link> {
    let file = match File::options().read(true).write(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Link::first()),
        Err(error) => return Err(error),
    };
    let length = file.metadata()?.len();
    let from = length.saturating_sub(2 * LINE_MAX as u64);
    (&file).seek(SeekFrom::Start(from))?;
    let mut tail = Vec::new();
    (&file).take(length - from).read_to_end(&mut tail)?;
    let end = tail.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    if end < tail.len() {
        file.set_len(from + end as u64)?;
    }
    let Some(lines) = end.checked_sub(1) else { return Ok(Link::first()) };
    let begin = tail[..lines].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let last = std::str::from_utf8(&tail[begin..lines]).ok().and_then(links);
    let broken =
        || io::Error::other("its last line is no entry, or was changed: move the file away to begin another");
    last.map(|(_, own)| own).ok_or_else(broken)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::chain::verify;
    use crate::entry::{Auth, Request, Response};

    use super::*;

    fn entry(number: u32) -> Entry {
        let request = Request { endpoint: format!("/v1/{number}"), ..Request::default() };
        let response = Some(Response { status_code: 200, ..Response::default() });
        Entry::new(number.to_string(), "2026-01-01T00:00:00Z".into(), Auth::default(), request, response)
    }

    fn file(path: PathBuf, rotate_bytes: u64) -> AuditSettings {
        let rotate_after = Duration::from_secs(3600);
        let file = LogFileSettings { path, rotate_bytes, rotate_after, keep: 0, mode: 0o600 };
        AuditSettings { sink: Sink::File(file), is_enforced: true, filters: Vec::new() }
    }

    #[test]
    fn the_chain_goes_on_over_restarts_torn_lines_and_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        for (number, torn) in [(0, ""), (1, "{\"created_at\":\"20"), (2, "")] {
            Audit::open(file(path.clone(), 0)).unwrap().record(&entry(number)).unwrap();
            File::options().append(true).open(&path).unwrap().write_all(torn.as_bytes()).unwrap();
        }
        let before = verify(&std::fs::read(&path).unwrap()[..], Some(&Link::first())).unwrap();
        assert_eq!(before.entries, 3);
        // The next line is one too many for the file.
        Audit::open(file(path.clone(), 1)).unwrap().record(&entry(3)).unwrap();
        let text = std::fs::read(&path).unwrap();
        assert_eq!(verify(&text[..], Some(&before.last)).unwrap().entries, 1);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);

        std::fs::write(&path, "a line of somebody else\n").unwrap();
        assert!(Audit::open(file(path, 0)).is_err());
    }

    #[test]
    fn filters_leave_entries_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let filters = vec![Filter { endpoints: vec!["/v1/1".to_string()], ..Filter::default() }];
        let audit = Audit::open(AuditSettings { filters, ..file(path.clone(), 0) }).unwrap();
        (0..3).for_each(|number| audit.record(&entry(number)).unwrap());
        let text = std::fs::read_to_string(path).unwrap();
        assert_eq!(verify(text.as_bytes(), None).unwrap().entries, 2);
        assert!(!text.contains("/v1/1"));
    }

    #[test]
    fn the_systems_logger_gets_the_same_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let logger = UnixDatagram::bind(&path).unwrap();
        let settings = AuditSettings { sink: Sink::Syslog(path), ..file(PathBuf::new(), 0) };
        Audit::open(settings).unwrap().record(&entry(0)).unwrap();
        let mut bytes = [0; 4096];
        let length = logger.recv(&mut bytes).unwrap();
        let message = std::str::from_utf8(&bytes[..length]).unwrap();
        let line = message.strip_prefix("<85>sojourn-audit: ").unwrap();
        assert_eq!(verify(format!("{line}\n").as_bytes(), Some(&Link::first())).unwrap().entries, 1);
    }

    #[test]
    fn what_cannot_be_written_is_an_error_and_the_chain_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let logger = UnixDatagram::bind(&path).unwrap();
        let settings = AuditSettings { sink: Sink::Syslog(path), ..file(PathBuf::new(), 0) };
        let audit = Audit::open(settings).unwrap();
        drop(logger);
        assert!(audit.record(&entry(0)).is_err());
        assert_eq!(audit.chained.lock().last, Link::first());
    }
}
