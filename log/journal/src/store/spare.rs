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

/// The writer's side: at most one request at a time, each answered once.
pub(super) struct Spares {
    requests: SyncSender<u64>,
    ready: Receiver<u64>,
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

/// The log is closing, and there is no space for another segment.
#[derive(Debug)]
pub(super) struct NoMore;

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
    Ok((Maker { shared, thread: Mutex::new(Some(thread)) }, Spares { requests, ready }))
}

fn found(files: &dyn Files) -> io::Result<Option<u64>> {
    if !files.list()?.iter().any(|name| name == SPARE) {
        return Ok(None);
    }
    let file = files.open(SPARE)?;
    segment::capacity(&*file)?.map(|_| file.size()).transpose()
}

impl Spares {
    /// Waits until there is a spare that takes a record of `need` bytes; the caller renames it and then calls
    /// [`Spares::order`].
    pub fn take(&self, need: u64) -> Result<(), NoMore> {
        let bytes = self.ready.recv().map_err(|_| NoMore)?;
        if bytes >= segment::len_for(need) {
            return Ok(());
        }
        self.order(segment::len_for(need))?;
        self.ready.recv().map(|_| ()).map_err(|_| NoMore)
    }

    pub fn order(&self, bytes: u64) -> Result<(), NoMore> {
        self.requests.send(bytes).map_err(|_| NoMore)
    }
}

impl Maker {
    /// There is no space for the next segment: the one in use still takes some.
    pub fn is_full(&self) -> bool {
        self.shared.full.load(Ordering::Relaxed)
    }

    /// Gives up on a full disk. Whoever waits for a spare gets [`NoMore`].
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
                    self.shared.full.store(false, Ordering::Relaxed);
                    return true;
                }
                Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                    if !self.shared.full.swap(true, Ordering::Relaxed) {
                        tracing::error!(%error, bytes, "no space for the log's next segment: new writes are refused");
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
