//! What an agent has logged before: its log file, or what the system's journal holds of its unit.

use std::io;
use std::path::Path;
use std::process::Stdio;

use api::StreamFrame;
use base::Duration;
use model::document::shape::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use wire::messages::{AgentMonitorExportRequest, StreamFrameWrapper};
use wire::{Opening, RpcError};

use crate::follow::{MonitorCall, opened};
use crate::{EXPORTS_MAX, Monitor};

/// Bytes in one piece for the reader.
const PIECE_MAX: usize = 64 * 1024;

/// How far back the journal is read where nothing is said.
const SINCE: Duration = Duration::from_secs(72 * 60 * 60);

/// Which part of the past is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    pub source: ExportSource,
    /// The lines alone; else in frames.
    pub plain: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExportSource {
    /// The agent's own log file, as it is now.
    LogFile,
    Journal {
        unit: String,
        since: Duration,
        follow: bool,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExportError {
    /// Not exactly one of both.
    Source,
    FollowOfFile,
    Since(String),
    Unit(String),
    /// The journal of other services is not this agent's to show.
    OtherUnit(String),
    NoLogFile,
    Unreadable(String),
    /// [`EXPORTS_MAX`] are being read.
    Full,
}

impl std::fmt::Display for ExportError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ExportError::Source => write!(f, "exactly one of on_disk and service_name must be given"),
            ExportError::FollowOfFile => {
                write!(f, "follow goes with service_name: a log file is sent as it is")
            }
            ExportError::Since(text) => write!(f, "logs_since {text:?}: expected a duration, like 72h"),
            ExportError::Unit(name) => write!(
                f,
                "service_name {name:?}: expected the name of a systemd unit: letters, digits and :-_.\\@"
            ),
            ExportError::OtherUnit(name) => {
                write!(f, "service_name {name:?}: this agent does not run as that unit of systemd")
            }
            ExportError::NoLogFile => write!(f, "this agent writes no log file: log_file is not configured"),
            ExportError::Unreadable(why) => write!(f, "the log cannot be read: {why}"),
            ExportError::Full => {
                write!(f, "the log of this agent is exported {EXPORTS_MAX} times already: try again later")
            }
        }
    }
}

impl ExportError {
    /// The HTTP status for it.
    pub fn code(&self) -> u16 {
        match self {
            ExportError::Source
            | ExportError::FollowOfFile
            | ExportError::Since(_)
            | ExportError::OtherUnit(_)
            | ExportError::NoLogFile => 400,
            ExportError::Unit(_) => 422,
            ExportError::Unreadable(_) => 500,
            ExportError::Full => 429,
        }
    }
}

impl TryFrom<&AgentMonitorExportRequest> for Export {
    type Error = ExportError;

    fn try_from(request: &AgentMonitorExportRequest) -> Result<Export, ExportError> {
        let unit = request.service_name.clone();
        let source = match (request.on_disk, unit.is_empty()) {
            (true, true) if request.follow => return Err(ExportError::FollowOfFile),
            (true, true) => ExportSource::LogFile,
            (false, false) if !is_unit(&unit) => return Err(ExportError::Unit(unit)),
            (false, false) => {
                ExportSource::Journal { unit, since: since(&request.logs_since)?, follow: request.follow }
            }
            _ => return Err(ExportError::Source),
        };
        Ok(Export { source, plain: request.plain_text })
    }
}

fn since(text: &str) -> Result<Duration, ExportError> {
    if text.is_empty() {
        return Ok(SINCE);
    }
    text.parse().ok().filter(|since| *since >= Duration::ZERO).ok_or_else(|| ExportError::Since(text.into()))
}

/// As systemd names units; a name that begins with a dash could be taken for an option.
fn is_unit(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c);
    name.len() < 256 && !name.starts_with('-') && name.chars().all(is_allowed)
}

/// Whether a process with these control groups (`/proc/self/cgroup`) runs as the unit.
fn runs_as(cgroups: &str, unit: &str) -> bool {
    let full = if unit.contains('.') { unit.to_string() } else { format!("{unit}.service") };
    cgroups.lines().any(|line| line.split('/').any(|part| part == full))
}

/// Pieces for one reader. Dropping it ends the reading.
pub struct Exported {
    source: Box<dyn AsyncRead + Send + Unpin>,
    /// What reads the journal; ends with the reader.
    journal: Option<Child>,
    plain: bool,
    _seat: tokio::sync::OwnedSemaphorePermit,
}

impl Monitor {
    /// # Errors
    /// [`ExportError`]: nothing of it can be read.
    pub async fn export(&self, wanted: &Export) -> Result<Exported, ExportError> {
        let seat = self.exports.clone().try_acquire_owned().map_err(|_| ExportError::Full)?;
        let unreadable = |error: io::Error| ExportError::Unreadable(error.to_string());
        let (source, journal) = match &wanted.source {
            ExportSource::LogFile => {
                let path = self.file.as_deref().ok_or(ExportError::NoLogFile)?;
                (read_as_it_is(path).await.map_err(unreadable)?, None)
            }
            ExportSource::Journal { unit, since, follow } => {
                let groups = tokio::fs::read_to_string("/proc/self/cgroup").await.map_err(unreadable)?;
                if !runs_as(&groups, unit) {
                    return Err(ExportError::OtherUnit(unit.clone()));
                }
                let mut child = journal(unit, *since, *follow)
                    .spawn()
                    .map_err(|error| ExportError::Unreadable(format!("journalctl: {error}")))?;
                let source: Box<dyn AsyncRead + Send + Unpin> = match child.stdout.take() {
                    Some(out) => Box::new(out),
                    None => Box::new(tokio::io::empty()),
                };
                (source, Some(child))
            }
        };
        Ok(Exported { source, journal, plain: wanted.plain, _seat: seat })
    }
}

/// What is written to it later is left out: else a busy log would never end.
async fn read_as_it_is(path: &Path) -> io::Result<Box<dyn AsyncRead + Send + Unpin>> {
    let file = tokio::fs::File::open(path).await?;
    let length = file.metadata().await?.len();
    Ok(Box::new(file.take(length)))
}

fn journal(unit: &str, since: Duration, follow: bool) -> Command {
    let mut command = Command::new("journalctl");
    command.args(["--no-pager", "--quiet", "--output", "cat", "--unit", unit]);
    command.arg("--since").arg(format!("-{}s", since.to_std().as_secs()));
    if follow {
        command.arg("--follow");
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    command
}

impl Exported {
    /// The next piece: lines, or a frame of them; `None` at the end.
    ///
    /// # Errors
    /// What was read before the error is not all there is.
    pub async fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut piece = vec![0; PIECE_MAX];
        let length = self.source.read(&mut piece).await?;
        piece.truncate(length);
        if piece.is_empty() {
            return self.ended().await.map(|()| None);
        }
        if self.plain {
            return Ok(Some(piece));
        }
        let frame = StreamFrame { data: Bytes(piece), ..StreamFrame::default() };
        Ok(Some(serde_json::to_vec(&frame).expect("a frame has no failing parts")))
    }

    async fn ended(&mut self) -> io::Result<()> {
        let Some(mut journal) = self.journal.take() else { return Ok(()) };
        let status = journal.wait().await?;
        if status.success() { Ok(()) } else { Err(io::Error::other(format!("journalctl: {status}"))) }
    }
}

/// Answers `Agent.MonitorExport`; `allow` as with [`crate::serve`].
///
/// # Errors
/// The connection's.
pub async fn serve_export(
    monitor: &Monitor,
    opening: Opening,
    allow: impl AsyncFnOnce(String) -> Result<(), (u16, String)>,
) -> Result<(), RpcError> {
    let Some(MonitorCall { request, mut to, mut from }) =
        opened::<AgentMonitorExportRequest>(opening, |request| &request.query, allow).await?
    else {
        return Ok(());
    };
    let exported = match Export::try_from(&request) {
        Ok(wanted) => monitor.export(&wanted).await,
        Err(error) => Err(error),
    };
    let mut exported = match exported {
        Ok(exported) => exported,
        Err(error) => {
            to.send(&StreamFrameWrapper::failure(error.code().into(), error.to_string())).await?;
            return to.finish().await;
        }
    };
    // The call is open: who follows a quiet journal can see that.
    to.send(&StreamFrameWrapper::default()).await?;
    loop {
        let piece = tokio::select! {
            piece = exported.next() => piece,
            // A reader sends nothing more: what is received is the end of its connection.
            _ = from.receive_raw() => return Ok(()),
        };
        match piece {
            Ok(Some(piece)) => to.send(&StreamFrameWrapper::content(piece)).await?,
            Ok(None) => return to.finish().await,
            Err(error) => {
                to.send(&StreamFrameWrapper::failure(500, error.to_string())).await?;
                return to.finish().await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(on_disk: bool, unit: &str) -> AgentMonitorExportRequest {
        AgentMonitorExportRequest { on_disk, service_name: unit.to_string(), ..Default::default() }
    }

    #[test]
    fn what_is_wrong_is_refused_by_name() {
        let since = |text: &str| AgentMonitorExportRequest { logs_since: text.into(), ..request(false, "a") };
        let follow = AgentMonitorExportRequest { follow: true, ..request(true, "") };
        for (request, code, error) in [
            (request(false, ""), 400, ExportError::Source),
            (request(true, "a"), 400, ExportError::Source),
            (follow, 400, ExportError::FollowOfFile),
            (since("soon"), 400, ExportError::Since("soon".to_string())),
            (since("-1h"), 400, ExportError::Since("-1h".to_string())),
            (request(false, "-f"), 422, ExportError::Unit("-f".to_string())),
            (request(false, "../etc"), 422, ExportError::Unit("../etc".to_string())),
        ] {
            assert_eq!((Export::try_from(&request), error.code()), (Err(error), code));
        }
        let journal = ExportSource::Journal { unit: "nomad".to_string(), since: SINCE, follow: false };
        assert_eq!(Export::try_from(&request(false, "nomad")).map(|export| export.source), Ok(journal));
    }

    #[test]
    fn only_the_journal_of_its_own_unit_is_an_agents_to_show() {
        let groups = "12:pids:/system.slice/nomad.service\n0::/system.slice/nomad.service\n";
        assert!(runs_as(groups, "nomad") && runs_as(groups, "nomad.service"));
        assert!(!runs_as(groups, "sshd") && !runs_as(groups, "system") && !runs_as("0::/\n", "nomad"));
    }

    #[tokio::test]
    async fn the_log_file_is_read_to_its_end_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.log");
        let text: String = (0..20_000).map(|number| format!("line {number}\n")).collect();
        std::fs::write(&path, &text).unwrap();
        let wanted = Export { source: ExportSource::LogFile, plain: true };
        let none = Monitor::default().export(&wanted).await.err();
        assert_eq!(none, Some(ExportError::NoLogFile));

        let monitor = Monitor::default().with_file(path.clone());
        let mut exported = monitor.export(&wanted).await.unwrap();
        std::fs::write(&path, format!("{text}later\n")).unwrap();
        let mut got = Vec::new();
        while let Some(piece) = exported.next().await.unwrap() {
            assert!(piece.len() <= PIECE_MAX);
            got.extend(piece);
        }
        assert_eq!(String::from_utf8(got).unwrap(), text);
        drop(exported);

        let mut seats = Vec::new();
        for _ in 0..EXPORTS_MAX {
            seats.push(monitor.export(&wanted).await.unwrap());
        }
        assert_eq!(monitor.export(&wanted).await.err(), Some(ExportError::Full));
        drop(seats);
        let framed = Export { plain: false, ..wanted };
        let frame = monitor.export(&framed).await.unwrap().next().await.unwrap().unwrap();
        let frame: StreamFrame = serde_json::from_slice(&frame).unwrap();
        assert!(text.as_bytes().starts_with(&frame.data.0) && !frame.data.0.is_empty());
    }
}
