//! The output of tasks on its way to where an operator collects it: a file, a syslog server, or a collector of OpenTelemetry.
//!
//! The log files of a task are the buffer: a task never waits for a sink, and what is rotated away before a sink has taken it
//! is lost and counted. How far each stream has been sent is stored, so that the next agent goes on there. [`tail`] reads
//! the files, [`sink`] sends; the task hook `log_shipping` starts and ends a [`Shipper`] with its task.

pub mod sink;
mod tail;

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use self::sink::{Origin, SendError, Sender};
use self::tail::{Stream, Tail};
use crate::clock;
use crate::hook::HookState;
use crate::task::events;
use crate::task::hooks::TaskContext;

/// How often is looked for new output.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Between two attempts to send the same lines; doubled after each, up to the second.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// How long a sink may take for what a task has said last.
const LINGER: Duration = Duration::from_secs(10);

/// How often at most an event says that output was lost.
const EVENT_EVERY: Duration = Duration::from_secs(60);

/// The key of how far the streams of a task were sent, beside those of its hooks.
const POSITION: &str = "log_shipping_position";

/// Sends the output of one task.
#[derive(Debug)]
pub struct Shipper {
    task: TaskContext,
    sink: String,
    sender: Sender,
    origin: Origin,
    lost: Lost,
}

/// What no sink will ever have.
#[derive(Debug, Default)]
struct Lost {
    files: u64,
    lines: u64,
    /// When an event has said it last, and how much that was.
    told: Option<(Instant, u64, u64)>,
}

impl Shipper {
    pub fn new(task: &TaskContext, sink: &str, sender: Sender, origin: Origin) -> Shipper {
        Shipper { task: task.clone(), sink: sink.to_string(), sender, origin, lost: Lost::default() }
    }

    /// Until the task has ended and its last words are sent, or the agent stops.
    pub async fn run(mut self, ended: watch::Receiver<bool>) {
        let shutdown = self.task.context.shutdown.clone();
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = self.ship(ended) => {}
        }
    }

    async fn ship(&mut self, ended: watch::Receiver<bool>) {
        let mut state = self.stored();
        let number = |key: &str| state.values.get(key).and_then(|text| text.parse().ok()).unwrap_or(0);
        (self.lost.files, self.lost.lines) = (number("lost_files"), number("lost_lines"));
        let place = |name: &str| state.values.get(name).cloned().unwrap_or_default();
        let mut tails = ["stdout", "stderr"]
            .map(|name| Tail::new(&self.task.alloc_dir, &self.task.name, Stream::named(name), &place(name)));
        let mut deadline = None;
        loop {
            // Asked before the reading: what was written until then is read.
            let is_over = *ended.borrow();
            if is_over && deadline.is_none() {
                deadline = Some(Instant::now() + LINGER);
            }
            let mut idle = true;
            for tail in &mut tails {
                let Some(batch) = tail.read(is_over).await else { continue };
                idle = false;
                self.lost.files += batch.files_lost;
                if !batch.lines.is_empty() && !self.deliver(tail.stream, &batch.lines, deadline, &ended).await
                {
                    self.lost.lines += batch.lines.len() as u64;
                }
                tail.taken(&batch);
                state.values.insert(tail.stream.name().to_string(), batch.next.to_string());
                state.values.insert("lost_files".into(), self.lost.files.to_string());
                state.values.insert("lost_lines".into(), self.lost.lines.to_string());
                self.store(&state);
                self.tell(false);
            }
            if idle && is_over {
                self.tell(true);
                return;
            }
            if idle {
                sleep(LOOK_EVERY).await;
            }
        }
    }

    /// False when the sink will not take them: it has said so, or the task is gone and the sink was not reached in time.
    async fn deliver(
        &mut self,
        stream: Stream,
        lines: &[String],
        mut deadline: Option<Instant>,
        ended: &watch::Receiver<bool>,
    ) -> bool {
        let mut wait = RETRY.0;
        loop {
            let why = match self.sender.send(&self.origin, stream, lines, clock::now()).await {
                Ok(()) => return true,
                Err(SendError::Refused(why)) => {
                    self.say(&format!("sink \"{}\" refused {} lines: {why}", self.sink, lines.len()));
                    return false;
                }
                Err(SendError::Unreached(why)) => why,
            };
            if *ended.borrow() && deadline.is_none() {
                deadline = Some(Instant::now() + LINGER);
            }
            tracing::debug!(task = self.task.name, sink = self.sink, why, "output waits in the log files");
            let next = Instant::now() + wait;
            if deadline.is_some_and(|deadline| next > deadline) {
                self.say(&format!("sink \"{}\" was not reached: {why}", self.sink));
                return false;
            }
            let mut over = ended.clone();
            tokio::select! {
                () = sleep(wait) => {}
                // The last words are tried at once.
                _ = over.wait_for(|over| *over), if deadline.is_none() => {}
            }
            wait = (wait * 2).min(RETRY.1);
        }
    }

    fn tell(&mut self, last: bool) {
        let (files, lines) = (self.lost.files, self.lost.lines);
        let (since, news) = match self.lost.told {
            None => (None, files + lines > 0),
            Some((at, told_files, told_lines)) => (Some(at), (files, lines) != (told_files, told_lines)),
        };
        if !news || (!last && since.is_some_and(|at| at.elapsed() < EVENT_EVERY)) {
            return;
        }
        self.lost.told = Some((Instant::now(), files, lines));
        let text = format!(
            "output was lost on the way to sink \"{}\": so far {files} log files that were rotated away, and {lines} lines",
            self.sink
        );
        self.say(&text);
    }

    fn say(&self, what: &str) {
        self.task.tasks.add_event(&self.task.name, events::hook_message(&format!("log_shipping: {what}")));
    }

    fn stored(&self) -> HookState {
        self.task.context.store.load_hook(&self.origin.alloc_id, Some(&self.task.name), POSITION)
    }

    fn store(&self, state: &HookState) {
        // One that was removed meanwhile leaves nothing behind.
        if self.task.alloc_dir.root().exists() {
            let store = &self.task.context.store;
            store.put_hook(&self.origin.alloc_id, Some(&self.task.name), POSITION, state);
        }
    }
}

/// The running shipper of a task.
#[derive(Debug)]
pub struct Shipping(watch::Sender<bool>);

impl Shipping {
    pub fn start(shipper: Shipper) -> Shipping {
        let ended = watch::Sender::new(false);
        let tracker = shipper.task.context.tasks.clone();
        tracker.spawn(shipper.run(ended.subscribe()));
        Shipping(ended)
    }

    /// The task has ended for good; what it said last is still sent.
    pub fn end(self) {
        self.0.send_replace(true);
    }
}
