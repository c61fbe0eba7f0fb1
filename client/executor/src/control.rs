//! The socket of an executor: one request a connection, one thread a connection.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::sys::wait::waitpid;
use nix::unistd::Pid;

use crate::Exit;
use crate::exec::{self, EXECS_MAX};
use crate::process;
use crate::spec::{ExecutorRequest, ExecutorResponse, ExecutorSpec};

/// Most connections answered at once; more are closed at once, and their callers try again.
const CONNECTIONS_MAX: usize = 64;

/// Longest request; the rest of a longer one is not read. The system takes no longer arguments for a command.
const REQUEST_BYTES_MAX: u64 = 2 * 1024 * 1024;

/// The task as all threads of the executor see it.
#[derive(Debug)]
pub struct TaskControl {
    /// Of the executor.
    pub directory: PathBuf,
    pid: i32,
    inner: Mutex<ControlState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct ControlState {
    /// The first process is gone: its number must not be signalled any more.
    reaped: bool,
    /// The task has ended altogether and its exit is on disk.
    exit: Option<Exit>,
    connections: usize,
    /// Commands beside the task by process, and the exits that no caller has taken yet.
    execs: HashMap<i32, Option<Exit>>,
}

impl ControlState {
    fn takes_exec(&self) -> io::Result<()> {
        if self.reaped {
            return Err(io::Error::other("the task has ended"));
        }
        if self.execs.len() >= EXECS_MAX {
            return Err(io::Error::other(format!("{EXECS_MAX} commands run in this task already")));
        }
        Ok(())
    }
}

impl TaskControl {
    pub fn new(directory: &Path, pid: i32) -> TaskControl {
        TaskControl {
            directory: directory.to_path_buf(),
            pid,
            inner: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, ControlState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `reap` while nobody can signal the process, and marks it as gone.
    pub fn reaped(&self, reap: impl FnOnce()) {
        let mut inner = self.lock();
        reap();
        inner.reaped = true;
        self.changed.notify_all();
    }

    /// Starts a command beside the task, as long as that runs.
    ///
    /// # Errors
    /// The reason why there is none.
    pub fn start_exec(&self, spawn: impl FnOnce() -> io::Result<i32>) -> io::Result<i32> {
        // Held while it is started: an end is written down only under the lock, so none is missed.
        let mut inner = self.lock();
        inner.takes_exec()?;
        let pid = spawn()?;
        inner.execs.insert(pid, None);
        Ok(pid)
    }

    /// # Errors
    /// Why no command can be started now.
    pub fn takes_exec(&self) -> io::Result<()> {
        self.lock().takes_exec()
    }

    /// Reaps a process other than the task's first.
    pub fn reap(&self, pid: i32, exit: Exit) {
        let mut inner = self.lock();
        let _ = waitpid(Pid::from_raw(pid), None);
        if let Some(ended) = inner.execs.get_mut(&pid) {
            *ended = Some(exit);
            self.changed.notify_all();
        }
    }

    /// Waits for the exit of a command beside the task, and takes it.
    pub fn exec_ended(&self, pid: i32) -> Exit {
        let runs = |inner: &mut ControlState| inner.execs.get(&pid).is_some_and(Option::is_none);
        let inner = self.changed.wait_while(self.lock(), runs);
        let mut inner = inner.unwrap_or_else(PoisonError::into_inner);
        let ended = inner.execs.remove(&pid).flatten();
        ended.unwrap_or_else(|| Exit::lost("the command's end was not seen".to_string()))
    }

    /// Does it while the number of a command is its own.
    pub fn unless_reaped(&self, pid: i32, act: impl FnOnce()) {
        let inner = self.lock();
        if inner.execs.get(&pid).is_some_and(Option::is_none) {
            act();
        }
    }

    /// Gives the exit to all waiting callers, and waits at most `timeout` until they have received it.
    pub fn finish(&self, exit: Exit, timeout: Duration) {
        let mut inner = self.lock();
        inner.exit = Some(exit);
        self.changed.notify_all();
        let waited = self.changed.wait_timeout_while(inner, timeout, |inner| inner.connections > 0);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// A connection was answered, or could not be.
    fn disconnected(&self) {
        self.lock().connections -= 1;
        self.changed.notify_all();
    }

    fn signal(&self, signal: Signal) -> Result<(), String> {
        let inner = self.lock();
        if inner.reaped {
            return Err("the task has ended".to_string());
        }
        process::signal(self.pid, signal).map_err(|errno| errno.to_string())
    }

    /// True when the first process ended within `timeout`.
    fn ended_within(&self, timeout: Duration) -> bool {
        let guard = self.lock();
        let waited = self.changed.wait_timeout_while(guard, timeout, |inner| !inner.reaped);
        waited.unwrap_or_else(PoisonError::into_inner).0.reaped
    }

    fn wait(&self) -> Exit {
        let guard = self.lock();
        let inner = self.changed.wait_while(guard, |inner| inner.exit.is_none());
        let inner = inner.unwrap_or_else(PoisonError::into_inner);
        inner.exit.clone().expect("waited until there is an exit")
    }
}

/// Answers requests until the process exits.
pub fn serve(listener: &UnixListener, spec: &Arc<ExecutorSpec>, task: &Arc<TaskControl>) {
    for connection in listener.incoming() {
        let Ok(connection) = connection else { continue };
        let mut inner = task.lock();
        if inner.connections >= CONNECTIONS_MAX {
            continue;
        }
        inner.connections += 1;
        drop(inner);
        let answering = {
            let (spec, task) = (Arc::clone(spec), Arc::clone(task));
            move || {
                answer(connection, &spec, &task);
                task.disconnected();
            }
        };
        // Without a thread the connection ends, and its caller tries again or goes by the process.
        if std::thread::Builder::new().spawn(answering).is_err() {
            task.disconnected();
        }
    }
}

fn answer(mut connection: UnixStream, spec: &ExecutorSpec, task: &Arc<TaskControl>) {
    let mut line = String::new();
    // A caller that sends nothing must not hold a thread for ever.
    connection.set_read_timeout(Some(Duration::from_secs(5))).ok();
    if BufReader::new((&connection).take(REQUEST_BYTES_MAX)).read_line(&mut line).is_err() {
        return;
    }
    let answer = match serde_json::from_str(&line) {
        Ok(ExecutorRequest::Exec(wanted)) => return exec::serve(connection, &wanted, spec, task),
        Ok(request) => perform(request, task),
        Err(error) => ExecutorResponse::Failed(format!("not a request: {error}")),
    };
    let mut bytes = serde_json::to_vec(&answer).unwrap_or_default();
    bytes.push(b'\n');
    connection.write_all(&bytes).ok();
}

fn perform(request: ExecutorRequest, task: &TaskControl) -> ExecutorResponse {
    match request {
        ExecutorRequest::Exec(_) => unreachable!("taken by the caller: it needs the connection"),
        ExecutorRequest::Wait => ExecutorResponse::Exited(task.wait()),
        ExecutorRequest::Signal { number } => match parse(number).and_then(|signal| task.signal(signal)) {
            Ok(()) => ExecutorResponse::Done,
            Err(error) => ExecutorResponse::Failed(error),
        },
        ExecutorRequest::Stop { number, grace_ms } => match parse(number) {
            Ok(signal) => ExecutorResponse::Exited(stop(signal, Duration::from_millis(grace_ms), task)),
            Err(error) => ExecutorResponse::Failed(error),
        },
    }
}

fn parse(number: i32) -> Result<Signal, String> {
    Signal::try_from(number).map_err(|_| format!("there is no signal {number}"))
}

/// Sends the signal, waits, then kills. That the process ends in between is no error.
fn stop(signal: Signal, grace: Duration, task: &TaskControl) -> Exit {
    let asked = Instant::now();
    if !grace.is_zero() {
        task.signal(signal).ok();
    }
    if !task.ended_within(grace.saturating_sub(asked.elapsed())) {
        task.signal(Signal::SIGKILL).ok();
    }
    task.wait()
}
