//! Makes the next segment ahead of need, on its own thread: writing 64 MiB of zeros takes longer than any append
//! should wait.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::Fatal;
use super::files::Files;
use super::segment::{self, SPARE};

/// How often a full disk is tried again.
const SPACE_RETRY: Duration = Duration::from_millis(100);

/// The writer's side.
pub(super) enum Spares {
    /// At most one request at a time, each answered once.
    Asked { requests: SyncSender<u64>, ready: Receiver<u64> },
    /// Made by the writer.
    Inline(Inline),
}

pub(super) struct Inline {
    files: Arc<dyn Files>,
    /// The length of the spare, if there is one.
    ready: Option<u64>,
    /// The length of one that found no space.
    wanted: Option<u64>,
    full: Arc<AtomicBool>,
}

/// The store's side.
pub(super) struct Maker {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared {
    full: AtomicBool,
    closing: Mutex<bool>,
    closed: Condvar,
}

/// Why there is no other segment.
#[derive(Debug)]
pub(super) enum NoSpare {
    /// The log is closing, and there is no space for one.
    Closing,
    /// There is no space for one; ask again.
    Full,
    Failed(io::Error),
}

/// Spares that are made by the writer. The flag says that there was no space for one.
pub(super) fn inline(files: Arc<dyn Files>, bytes: u64) -> io::Result<(Spares, Arc<AtomicBool>)> {
    let ready = found(&*files)?;
    let full = Arc::new(AtomicBool::new(false));
    let wanted = ready.is_none().then_some(bytes);
    Ok((Spares::Inline(Inline { files, ready, wanted, full: full.clone() }), full))
}

/// Takes a usable spare that was left behind, else asks for one.
pub(super) fn start(files: Arc<dyn Files>, bytes: u64, fatal: Fatal) -> io::Result<(Maker, Spares)> {
    let found = found(&*files)?;
    let shared = Arc::new(Shared::default());
    let (requests, asked) = sync_channel(1);
    let (made, ready) = sync_channel(1);
    match found {
        Some(bytes) => made.send(bytes).expect("the channel holds one"),
        None => requests.send(bytes).expect("the channel holds one"),
    }
    let worker = Worker { files, shared: shared.clone(), fatal };
    let thread =
        std::thread::Builder::new().name("log-spare".into()).spawn(move || worker.run(&asked, &made))?;
    Ok((Maker { shared, thread: Mutex::new(Some(thread)) }, Spares::Asked { requests, ready }))
}

fn found(files: &dyn Files) -> io::Result<Option<u64>> {
    if !files.list()?.iter().any(|name| name == SPARE) {
        return Ok(None);
    }
    let file = files.open(SPARE)?;
    segment::capacity(&*file)?.map(|_| file.size()).transpose()
}

impl Spares {
    /// Sees that there is a spare of `bytes`, and waits for it where another thread makes it. The caller renames it
    /// and then calls [`Spares::order`].
    pub fn take(&mut self, bytes: u64) -> Result<(), NoSpare> {
        let (requests, ready) = match self {
            Spares::Asked { requests, ready } => (requests, ready),
            Spares::Inline(inline) => return inline.take(bytes),
        };
        if ready.recv().map_err(|_| NoSpare::Closing)? >= bytes {
            return Ok(());
        }
        requests.send(bytes).map_err(|_| NoSpare::Closing)?;
        ready.recv().map(|_| ()).map_err(|_| NoSpare::Closing)
    }

    /// Asks for the next one.
    pub fn order(&mut self, bytes: u64) -> Result<(), NoSpare> {
        match self {
            Spares::Asked { requests, .. } => requests.send(bytes).map_err(|_| NoSpare::Closing),
            Spares::Inline(inline) => {
                inline.wanted = Some(bytes);
                inline.retry()
            }
        }
    }

    /// Tries again where there was no space.
    pub fn retry(&mut self) -> Result<(), NoSpare> {
        match self {
            Spares::Asked { .. } => Ok(()),
            Spares::Inline(inline) => inline.retry(),
        }
    }
}

impl Inline {
    fn take(&mut self, bytes: u64) -> Result<(), NoSpare> {
        if self.ready.is_none_or(|ready| ready < bytes) {
            self.wanted = Some(self.wanted.unwrap_or(0).max(bytes));
            self.retry()?;
        }
        // The one that is ready may still be too short.
        self.ready.take_if(|ready| *ready >= bytes).map(|_| ()).ok_or(NoSpare::Full)
    }

    fn retry(&mut self) -> Result<(), NoSpare> {
        let Some(bytes) = self.wanted else { return Ok(()) };
        match segment::make_spare(&*self.files, bytes) {
            Ok(()) => (self.ready, self.wanted) = (Some(bytes), None),
            Err(error) if is_full(&error) => {}
            Err(error) => return Err(NoSpare::Failed(error)),
        }
        if self.full.swap(self.wanted.is_some(), Ordering::Relaxed) != self.wanted.is_some() {
            tell_full(self.wanted);
        }
        Ok(())
    }
}

fn is_full(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::StorageFull
}

fn tell_full(wanted: Option<u64>) {
    match wanted {
        Some(bytes) => {
            tracing::error!(bytes, "no space for the log's next segment: new writes are refused");
        }
        None => tracing::info!("there is space for the log's next segment again"),
    }
}

impl Maker {
    /// There is no space for the next segment: the one in use still takes some.
    pub fn is_full(&self) -> bool {
        self.shared.full.load(Ordering::Relaxed)
    }

    /// Gives up on a full disk. A waiting caller gets [`NoSpare::Closing`].
    pub fn close(&self) {
        *self.shared.closing.lock() = true;
        self.shared.closed.notify_all();
    }

    /// Waits for the thread; the [`Spares`] must be gone by now.
    pub fn join(&self) {
        if let Some(thread) = self.thread.lock().take() {
            // Its panic was reported where it happened; there is nobody to pass it on to.
            let _ = thread.join();
        }
    }
}

struct Worker {
    files: Arc<dyn Files>,
    shared: Arc<Shared>,
    fatal: Fatal,
}

impl Worker {
    fn run(&self, asked: &Receiver<u64>, made: &SyncSender<u64>) {
        for bytes in asked {
            if !self.make(bytes) || made.send(bytes).is_err() {
                return;
            }
        }
    }

    /// Tries until there is space. False when the log closes first.
    fn make(&self, bytes: u64) -> bool {
        loop {
            match segment::make_spare(&*self.files, bytes) {
                Ok(()) => {
                    if self.shared.full.swap(false, Ordering::Relaxed) {
                        tell_full(None);
                    }
                    return true;
                }
                Err(error) if is_full(&error) => {
                    if !self.shared.full.swap(true, Ordering::Relaxed) {
                        tell_full(Some(bytes));
                    }
                }
                Err(error) => {
                    (self.fatal)(&format!("make the log's next segment: {error}"));
                    return false;
                }
            }
            let mut closing = self.shared.closing.lock();
            if !*closing {
                self.shared.closed.wait_for(&mut closing, SPACE_RETRY);
            }
            if *closing {
                return false;
            }
        }
    }
}
