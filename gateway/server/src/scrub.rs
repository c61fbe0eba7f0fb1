//! Reads the log again in the background, a little at a time: damage is found while another server still has what is
//! damaged, and not when it is needed.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use journal::store::StoreError;
use raft::RaftJournal;
use tokio::sync::watch;

/// One part in so many of the time goes into reading: the disk stays with those who wait for it.
const SHARE: u32 = 20;

/// A thread that reads, until it finds damage or is stopped.
pub(crate) struct Scrub {
    stop: Sender<()>,
    thread: JoinHandle<()>,
    found: watch::Receiver<Option<String>>,
}

impl Scrub {
    /// Begins a pass over the whole log now, and another one each time that `every` has gone by since the last began.
    ///
    /// `report` is called with the damage that was found, and returns what to report. It ends the reading: a server
    /// does not go on with a damaged log.
    ///
    /// # Errors
    /// The system has no thread.
    pub(crate) fn start(
        log: Arc<RaftJournal>,
        every: Duration,
        report: impl FnOnce(StoreError) -> String + Send + 'static,
    ) -> io::Result<Scrub> {
        let ((stop, stopped), (report_damage, found)) = (channel(), watch::channel(None));
        let work = move || {
            if let Some(damage) = read_until_damaged(|| log.scrub(), every, &stopped) {
                report_damage.send_replace(Some(report(damage)));
            }
        };
        let thread = std::thread::Builder::new().name("log-scrub".into()).spawn(work)?;
        Ok(Scrub { stop, thread, found })
    }

    /// Waits for damage, and returns what was reported of it.
    pub(crate) async fn damage(&self) -> String {
        let mut found = self.found.clone();
        match found.wait_for(Option::is_some).await {
            Ok(why) => why.clone().unwrap_or_default(),
            Err(_) => std::future::pending().await,
        }
    }

    /// Blocks until the file that is being read is at its end.
    pub(crate) fn stop(self) {
        drop(self.stop);
        if self.thread.join().is_err() {
            tracing::error!("reading the log again panicked");
        }
    }
}

/// `None` when it was stopped.
fn read_until_damaged(
    mut read_one: impl FnMut() -> Result<Option<String>, StoreError>,
    every: Duration,
    stopped: &Receiver<()>,
) -> Option<StoreError> {
    loop {
        let begun = Instant::now();
        loop {
            let start = Instant::now();
            match read_one() {
                Ok(Some(file)) => tracing::debug!(file, "read again"),
                Ok(None) => break,
                Err(damage @ StoreError::Damaged { .. }) => return Some(damage),
                // A disk that fails now and then: the next pass tries again.
                Err(error) => tracing::warn!(%error, "a part of the log could not be read again"),
            }
            if !rest(stopped, start.elapsed() * (SHARE - 1)) {
                return None;
            }
        }
        if !rest(stopped, every.saturating_sub(begun.elapsed())) {
            return None;
        }
    }
}

/// False when it is over.
fn rest(stopped: &Receiver<()>, time: Duration) -> bool {
    stopped.recv_timeout(time) == Err(RecvTimeoutError::Timeout)
}
