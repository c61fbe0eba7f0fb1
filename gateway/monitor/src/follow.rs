//! One reader of the log, from the moment it asks until it leaves.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use api::StreamFrame;
use jiff::Timestamp;
use model::document::shape::Bytes;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tracing_subscriber::filter::LevelFilter;
use wire::messages::{AgentMonitorRequest, QueryOptions, StreamFrameWrapper};
use wire::{FrameReceiver, FrameSender, Opening, RpcError};

use crate::{FOLLOWERS_MAX, LINES_WAITING_MAX, Monitor, line};

/// A reader gets something at least this often, so that it knows that the stream lives.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// Which lines a follower wants, and in which form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Follow {
    pub level: LevelFilter,
    /// One object a line.
    pub json: bool,
    /// With the place in the program.
    pub location: bool,
    /// The lines alone; else in frames, with heartbeats.
    pub plain: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FollowError {
    UnknownLevel(String),
    /// [`FOLLOWERS_MAX`] are there.
    Full,
}

impl std::fmt::Display for FollowError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FollowError::UnknownLevel(level) => write!(f, "Unknown log level: {level}"),
            FollowError::Full => write!(f, "{FOLLOWERS_MAX} follow the log of this agent: try again later"),
        }
    }
}

impl FollowError {
    /// The HTTP status for it.
    pub fn code(&self) -> u16 {
        match self {
            FollowError::UnknownLevel(_) => 400,
            FollowError::Full => 429,
        }
    }
}

impl TryFrom<&AgentMonitorRequest> for Follow {
    type Error = FollowError;

    /// Levels are known by their names, in any case; none means info.
    fn try_from(request: &AgentMonitorRequest) -> Result<Follow, FollowError> {
        let level = match request.log_level.to_ascii_lowercase().as_str() {
            "trace" => LevelFilter::TRACE,
            "debug" => LevelFilter::DEBUG,
            "" | "info" => LevelFilter::INFO,
            "warn" => LevelFilter::WARN,
            "error" => LevelFilter::ERROR,
            "off" => LevelFilter::OFF,
            _ => return Err(FollowError::UnknownLevel(request.log_level.clone())),
        };
        let (json, location, plain) = (request.log_json, request.log_include_location, request.plain_text);
        Ok(Follow { level, json, location, plain })
    }
}

/// The end of a reader's queue that events go into.
#[derive(Debug)]
pub(crate) struct Follower {
    pub(crate) level: LevelFilter,
    pub(crate) json: bool,
    pub(crate) location: bool,
    lines: mpsc::Sender<String>,
    dropped: AtomicU64,
}

impl Follower {
    /// Never waits: the log of an agent does not stop for who reads it.
    pub(crate) fn take(&self, line: String) {
        if self.lines.try_send(line).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// What a reader gets. Dropping it ends the reading.
#[derive(Debug)]
pub struct Lines {
    monitor: Monitor,
    follower: Arc<Follower>,
    lines: mpsc::Receiver<String>,
    plain: bool,
}

impl Monitor {
    /// Follows the log from here on.
    ///
    /// # Errors
    /// [`FollowError::Full`].
    pub fn follow(&self, wanted: &Follow) -> Result<Lines, FollowError> {
        let (sender, lines) = mpsc::channel(LINES_WAITING_MAX);
        let follower = Arc::new(Follower {
            level: wanted.level,
            json: wanted.json,
            location: wanted.location,
            lines: sender,
            dropped: AtomicU64::new(0),
        });
        let before = self.followers.rcu(|followers| {
            let mut more = Vec::clone(followers);
            if more.len() < FOLLOWERS_MAX {
                more.push(follower.clone());
            }
            more
        });
        if before.len() >= FOLLOWERS_MAX {
            return Err(FollowError::Full);
        }
        tracing::callsite::rebuild_interest_cache();
        Ok(Lines { monitor: self.clone(), follower, lines, plain: wanted.plain })
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        let is_other = |follower: &&Arc<Follower>| !Arc::ptr_eq(follower, &self.follower);
        self.monitor
            .followers
            .rcu(|followers| followers.iter().filter(is_other).cloned().collect::<Vec<_>>());
        tracing::callsite::rebuild_interest_cache();
    }
}

impl Lines {
    /// The next piece for the reader: lines, or a frame of them, or a heartbeat.
    pub async fn next(&mut self) -> Vec<u8> {
        let heartbeat = async {
            match self.plain {
                true => std::future::pending().await,
                false => tokio::time::sleep(HEARTBEAT).await,
            }
        };
        let line = tokio::select! {
            line = self.lines.recv() => line,
            () = heartbeat => None,
        };
        let lines = self.with_what_waits(line);
        if self.plain {
            return lines.into_bytes();
        }
        let frame = StreamFrame { data: Bytes(lines.into_bytes()), ..StreamFrame::default() };
        serde_json::to_vec(&frame).expect("a frame has no failing parts")
    }

    /// Also what came meanwhile, and what did not.
    fn with_what_waits(&mut self, first: Option<String>) -> String {
        let mut lines = first.unwrap_or_default();
        while let Ok(line) = self.lines.try_recv() {
            lines.push_str(&line);
        }
        match self.follower.dropped.swap(0, Ordering::Relaxed) {
            0 => {}
            count => lines.push_str(&line::dropped(Timestamp::now(), count, self.follower.json)),
        }
        lines
    }
}

/// Answers `Agent.Monitor`: until the reader leaves.
///
/// `allow` says whether who presents this token may, and otherwise with which code and text it is refused.
///
/// # Errors
/// The connection's.
pub async fn serve(
    monitor: &Monitor,
    opening: Opening,
    allow: impl AsyncFnOnce(String) -> Result<(), (u16, String)>,
) -> Result<(), RpcError> {
    let Some(MonitorCall { request, mut to, mut from }) =
        opened::<AgentMonitorRequest>(opening, |request| &request.query, allow).await?
    else {
        return Ok(());
    };
    let followed = Follow::try_from(&request).and_then(|wanted| monitor.follow(&wanted));
    let mut lines = match followed {
        Ok(lines) => lines,
        Err(error) => {
            to.send(&StreamFrameWrapper::failure(error.code().into(), error.to_string())).await?;
            return to.finish().await;
        }
    };
    // The call is open: the reader can see that before anything was logged.
    to.send(&StreamFrameWrapper::default()).await?;
    loop {
        tokio::select! {
            piece = lines.next() => to.send(&StreamFrameWrapper::content(piece)).await?,
            // A reader sends nothing more: what is received is the end of its connection.
            _ = from.receive_raw() => return Ok(()),
        }
    }
}

/// A call for the log, by somebody who may read it.
pub(crate) struct MonitorCall<R> {
    pub(crate) request: R,
    pub(crate) to: FrameSender,
    pub(crate) from: FrameReceiver,
}

/// A caller without the right gets an error.
pub(crate) async fn opened<R: DeserializeOwned>(
    opening: Opening,
    options: impl FnOnce(&R) -> &QueryOptions,
    allow: impl AsyncFnOnce(String) -> Result<(), (u16, String)>,
) -> Result<Option<MonitorCall<R>>, RpcError> {
    let mut frames = opening.accept().await?;
    let Some(request) = frames.receive::<R>().await? else { return Ok(None) };
    let (mut to, from) = frames.split();
    if let Err((code, why)) = allow(options(&request).auth_token.clone()).await {
        to.send(&StreamFrameWrapper::failure(code.into(), why)).await?;
        to.finish().await?;
        return Ok(None);
    }
    Ok(Some(MonitorCall { request, to, from }))
}
