//! Tasks that are processes below an executor: what all drivers of such tasks share.
//!
//! [`Executors`] starts executors and finds them again; [`ExecutorTask`] is the task of one. Nothing here knows how a
//! driver isolates its tasks: that is in the [`ExecutorSpec`] which it passes on.

mod cgroup;
mod command;
mod exec;
mod user;

use std::collections::BTreeMap;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use executor::Exit;
use executor::cgroup::GroupUsage;
use executor::process::{self, ProcessIdentity, Processes};
use executor::spec::{
    self, CgroupSpec, ExecutorProcesses, ExecutorRequest, ExecutorResponse, ExecutorSpec, StartReport,
};
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::time::timeout;

use super::{
    DriverError, Exec, ExecConfig, ExecError, Outcome, RunningTask, StartError, Started, TaskConfig,
    TaskHandle, TaskStatus, Usage, outcome_of, sampled,
};

pub use cgroup::{CgroupParent, inherit_cores};
pub use command::find_command;
pub use user::{TaskUser, dynamic_user, find_user, in_ranges};

/// How long an executor may take to start its task.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// How long an executor may take to answer what it can answer at once.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// How long, beyond the grace, a stopped task may take to disappear: SIGKILL, leftovers, output.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// How long an executor that did not end its task may take to notice that we have.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// How often is looked whether a process that nobody reports about is gone.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Between two attempts to reach an executor that lives and does not answer.
const RETRY_EVERY: Duration = Duration::from_millis(200);

/// The signal that asks a task to end when the job names none.
const STOP_SIGNAL: Signal = Signal::SIGINT;

/// How executors are started on this node.
#[derive(Clone, Debug)]
pub struct Executors {
    /// Where executors keep their files, one directory each; 0700.
    pub directory: PathBuf,
    /// The program that becomes an executor.
    pub program: PathBuf,
    /// As [`crate::NodeSettings::task_open_files`].
    pub open_files: Option<u64>,
    /// Parent of the tasks' control groups, where there are any.
    pub cgroup_parent: Option<CgroupParent>,
}

/// The state in the handle of a task with an executor: where that keeps its files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExecutorState {
    pub directory: PathBuf,
}

impl ExecutorState {
    /// # Errors
    /// When it is not such a state.
    pub fn read(state: &serde_json::Value) -> Result<ExecutorState, DriverError> {
        ExecutorState::deserialize(state).map_err(|error| DriverError::Handle(error.to_string()))
    }

    pub fn to_value(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("a path below the state directory is text")
    }
}

impl Executors {
    /// Starts a task, and returns when it runs.
    ///
    /// # Errors
    /// When it does not run.
    pub async fn start(
        &self,
        alloc_id: &str,
        instance: &str,
        spec: &ExecutorSpec,
    ) -> Result<Started, StartError> {
        let directory = self.directory.join(format!("{}-{instance}", short(alloc_id)));
        let write = || -> std::io::Result<()> {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
            spec::write(&directory, spec::SPEC_FILE, spec)
        };
        write().map_err(StartError::transient)?;
        let launched = self.launch(&directory).await;
        let state = ExecutorState { directory };
        match launched {
            Ok(process) => Ok(Started {
                state: state.to_value(),
                task: Arc::new(ExecutorTask::attach(state.directory, process)),
                network: None,
            }),
            Err(error) => {
                remove(&state);
                Err(error)
            }
        }
    }

    async fn launch(&self, directory: &Path) -> Result<ExecutorProcesses, StartError> {
        let output =
            std::fs::File::create(directory.join(spec::OUTPUT_FILE)).map_err(StartError::transient)?;
        let mut command = tokio::process::Command::new(&self.program);
        command.arg(spec::SUBCOMMAND).arg(directory).current_dir("/").env_clear();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(output);
        let mut child = command
            .spawn()
            .map_err(|error| StartError::transient(format!("failed to launch the executor: {error}")))?;
        let pid = child.id().map(|pid| pid as i32);
        let stdout = child.stdout.take().expect("the executor's stdout is a pipe");
        let mut line = String::new();
        let answered = timeout(START_TIMEOUT, BufReader::new(stdout).read_line(&mut line)).await;
        if answered.is_err() {
            // It must not start the task after we have given up.
            end_session(pid.and_then(|pid| ProcessIdentity::of(pid).ok()), None);
        }
        // Nobody waits for the executor here: it must outlive us. While we live, the runtime reaps it.
        drop(child);
        match answered {
            Err(_) => Err(StartError::transient("the executor did not start the task in time")),
            Ok(Err(error)) => Err(StartError::transient(error)),
            Ok(Ok(_)) => match serde_json::from_str(&line) {
                Ok(StartReport::Started(state)) => Ok(state),
                Ok(StartReport::Failed(text)) => {
                    Err(StartError::fatal(format!("failed to launch command with executor: {text}")))
                }
                Err(_) => Err(StartError::transient("the executor ended without an answer")),
            },
        }
    }

    /// A control group with the limits of the task; `None` where this node has no control groups.
    pub fn cgroup(&self, config: &TaskConfig) -> Option<CgroupSpec> {
        Some(self.cgroup_parent.as_ref()?.group(config))
    }

    /// Ends and removes every executor that no handle names.
    pub async fn end_unknown(&self, known: &[TaskHandle]) {
        let known: Vec<PathBuf> = known
            .iter()
            .filter_map(|handle| ExecutorState::read(&handle.state).ok())
            .map(|s| s.directory)
            .collect();
        let Ok(entries) = std::fs::read_dir(&self.directory) else { return };
        for directory in entries.flatten().map(|entry| entry.path()) {
            if known.contains(&directory) {
                continue;
            }
            tracing::warn!(directory = %directory.display(), "ending a task that no handle names");
            if let Ok(Some(processes)) = spec::read::<ExecutorProcesses>(&directory, spec::STATE_FILE) {
                stop(&directory, &processes, Signal::SIGKILL, Duration::ZERO).await;
            }
            remove(&ExecutorState { directory });
        }
    }
}

/// The first 8 characters of an id.
fn short(id: &str) -> String {
    id.chars().take(8).collect()
}

/// Finds a task again: it runs, or its executor has written its exit.
///
/// # Errors
/// When there is neither.
pub fn recover(state: &serde_json::Value) -> Result<Arc<dyn RunningTask>, DriverError> {
    let directory = &ExecutorState::read(state)?.directory;
    let state: Option<ExecutorProcesses> = spec::read(directory, spec::STATE_FILE)
        .map_err(|error| DriverError::Failed(format!("executor state: {error}")))?;
    let state = state.ok_or_else(|| DriverError::failed("the executor left no state"))?;
    if !state.executor.is_alive() && !directory.join(spec::EXIT_FILE).exists() {
        kill_orphans(directory, &state.executor);
        return Err(DriverError::failed("the executor is gone"));
    }
    Ok(Arc::new(ExecutorTask::attach(directory.clone(), state)))
}

/// Removes the files of an executor, and what is left of its task.
///
/// # Errors
/// [`DriverError::StillRunning`] while it runs, without `force`.
pub async fn destroy(state: &serde_json::Value, force: bool) -> Result<(), DriverError> {
    let state = ExecutorState::read(state)?;
    if let Some(processes) = running(&state.directory) {
        if !force {
            return Err(DriverError::StillRunning);
        }
        stop(&state.directory, &processes, Signal::SIGKILL, Duration::ZERO).await;
    }
    remove(&state);
    Ok(())
}

/// The processes, while the executor lives and has not written an exit.
fn running(directory: &Path) -> Option<ExecutorProcesses> {
    let processes = spec::read::<ExecutorProcesses>(directory, spec::STATE_FILE).ok().flatten()?;
    let runs = processes.executor.is_alive() && !directory.join(spec::EXIT_FILE).exists();
    runs.then_some(processes)
}

/// Ends a task: its executor does, and if that does not, whatever the reason, we do by its process and control group.
async fn stop(directory: &Path, processes: &ExecutorProcesses, signal: Signal, grace: Duration) {
    let message = ExecutorRequest::Stop { number: signal as i32, grace_ms: grace.as_millis() as u64 };
    let asked = Instant::now();
    let why = match request(directory, &message, grace + STOP_TIMEOUT).await {
        Ok(ExecutorResponse::Failed(why)) | Err(why) => why,
        Ok(_) => return,
    };
    if !processes.executor.is_alive() {
        return;
    }
    tracing::warn!(directory = %directory.display(), why, "a task is ended without its executor");
    let left = grace.saturating_sub(asked.elapsed());
    if !left.is_zero() && processes.task.is_alive() {
        process::signal(processes.task.pid, signal).ok();
        gone_within(&processes.task, left).await;
    }
    if processes.task.is_alive() {
        process::signal(processes.task.pid, Signal::SIGKILL).ok();
    }
    // An executor that works after all ends with its task, and writes down how that ended.
    if !gone_within(&processes.executor, LAST_WORDS).await {
        end_session(Some(processes.executor.clone()), own_group(directory));
    }
}

/// True when the process ended within `patience`.
async fn gone_within(process: &ProcessIdentity, patience: Duration) -> bool {
    let gone = async {
        while process.is_alive() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    timeout(patience, gone).await.is_ok()
}

/// Kills an executor and everything that it has started.
fn end_session(executor: Option<ProcessIdentity>, group: Option<CgroupSpec>) {
    if let Some(executor) = executor.filter(ProcessIdentity::is_alive) {
        process::kill_session(executor.pid);
    }
    if let Some(group) = group {
        executor::cgroup::kill(&group);
    }
}

/// Kills what an executor has left behind that is gone: also what has left its session, where there is a group, which goes
/// then.
fn kill_orphans(directory: &Path, executor: &ProcessIdentity) {
    process::kill_orphans(executor);
    if !executor.is_alive()
        && let Some(group) = own_group(directory)
    {
        executor::cgroup::destroy(&group);
    }
}

fn remove(state: &ExecutorState) {
    if let Ok(Some(processes)) = spec::read::<ExecutorProcesses>(&state.directory, spec::STATE_FILE) {
        kill_orphans(&state.directory, &processes.executor);
    }
    std::fs::remove_dir_all(&state.directory).ok();
}

/// The group that the executor has made for the task alone.
fn own_group(directory: &Path) -> Option<CgroupSpec> {
    let spec = spec::read::<ExecutorSpec>(directory, spec::SPEC_FILE).ok().flatten()?;
    spec.cgroup.filter(|group| group.managed)
}

/// CPU and memory of everything below the executor; `None` when that is gone.
fn usage(executor: &ProcessIdentity, group: Option<&CgroupSpec>) -> Option<Usage> {
    if !executor.is_alive() {
        return None;
    }
    let page = rustix::param::page_size() as u64;
    let processes = recent_processes().descendants(executor.pid);
    let group = group.map(GroupUsage::read).unwrap_or_default();
    Some(processes.iter().fold(Usage { group, ..Usage::default() }, |sum, stat| Usage {
        group,
        user_ticks: sum.user_ticks + stat.user_ticks,
        system_ticks: sum.system_ticks + stat.system_ticks,
        resident_bytes: sum.resident_bytes + stat.resident_pages * page,
        processes: sum.processes + 1,
    }))
}

/// How old the table of processes may be that a reading is taken from: the tasks that are read together share one.
const TABLE_AGE_MAX: Duration = Duration::from_millis(100);

fn recent_processes() -> Arc<Processes> {
    static TABLE: Mutex<Option<(Instant, Arc<Processes>)>> = Mutex::new(None);
    let mut table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    match &*table {
        Some((read, processes)) if read.elapsed() < TABLE_AGE_MAX => Arc::clone(processes),
        _ => {
            let processes = Arc::new(Processes::read());
            *table = Some((Instant::now(), Arc::clone(&processes)));
            processes
        }
    }
}

/// A task with an executor.
#[derive(Debug)]
pub struct ExecutorTask {
    directory: PathBuf,
    processes: ExecutorProcesses,
    /// The group that the executor has made for the task alone.
    group: Option<CgroupSpec>,
    outcome: watch::Receiver<Option<Outcome>>,
}

impl ExecutorTask {
    /// Watches the executor for as long as the task is held.
    fn attach(directory: PathBuf, processes: ExecutorProcesses) -> ExecutorTask {
        let (result, outcome) = watch::channel(None);
        let (watched, executor) = (directory.clone(), processes.executor.clone());
        tokio::spawn(async move {
            tokio::select! {
                exit = watch_exit(&watched, &executor) => {
                    result.send_replace(Some(Outcome::Exited(exit)));
                }
                () = result.closed() => {}
            }
        });
        let group = own_group(&directory);
        ExecutorTask { directory, processes, group, outcome }
    }

    async fn send_signal(&self, signal: Signal) -> Result<(), DriverError> {
        let message = ExecutorRequest::Signal { number: signal as i32 };
        match request(&self.directory, &message, ANSWER_TIMEOUT).await {
            Ok(ExecutorResponse::Done | ExecutorResponse::Ready | ExecutorResponse::Exited(_)) => Ok(()),
            Ok(ExecutorResponse::Failed(text)) => Err(DriverError::Failed(text)),
            // The executor cannot be asked, but the process is known.
            Err(text) if !self.processes.task.is_alive() => Err(DriverError::Failed(text)),
            Err(_) => process::signal(self.processes.task.pid, signal)
                .map_err(|errno| DriverError::Failed(errno.to_string())),
        }
    }
}

impl RunningTask for ExecutorTask {
    fn wait(&self) -> BoxFuture<'_, Outcome> {
        Box::pin(outcome_of(self.outcome.clone()))
    }

    fn stop(&self, signal: Option<Signal>, grace: Duration) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(async move {
            stop(&self.directory, &self.processes, signal.unwrap_or(STOP_SIGNAL), grace).await;
            self.wait().await;
            Ok(())
        })
    }

    fn signal(&self, signal: Signal) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(self.send_signal(signal))
    }

    fn inspect(&self) -> BoxFuture<'_, TaskStatus> {
        let attributes = BTreeMap::from([("pid".to_string(), self.processes.task.pid.to_string())]);
        let outcome = self.outcome.borrow().clone();
        Box::pin(std::future::ready(TaskStatus { outcome, attributes }))
    }

    fn stats(&self, interval: Duration) -> BoxStream<'static, Usage> {
        let (executor, group) = (self.processes.executor.clone(), self.group.clone());
        sampled(interval, move || usage(&executor, group.as_ref()))
    }

    fn exec(&self, config: ExecConfig) -> BoxFuture<'_, Result<Exec, ExecError>> {
        Box::pin(exec::exec(&self.directory, config))
    }
}

/// The exit: from the executor while it lives, from its file afterwards.
async fn watch_exit(directory: &Path, executor: &ProcessIdentity) -> Exit {
    loop {
        // The file is looked at last: an executor writes it before it dies.
        let alive = executor.is_alive();
        match spec::read(directory, spec::EXIT_FILE) {
            Ok(Some(exit)) => return exit,
            Err(error) => return Exit::lost(format!("the exit cannot be read: {error}")),
            Ok(None) if !alive => {
                kill_orphans(directory, executor);
                return Exit::lost("the executor died".to_string());
            }
            Ok(None) => {}
        }
        if let Ok(ExecutorResponse::Exited(exit)) =
            request(directory, &ExecutorRequest::Wait, Duration::MAX).await
        {
            return exit;
        }
        tokio::time::sleep(RETRY_EVERY).await;
    }
}

/// Sends one request and returns the response.
async fn request(
    directory: &Path,
    request: &ExecutorRequest,
    patience: Duration,
) -> Result<ExecutorResponse, String> {
    let exchange = async {
        let (_handle, path) = spec::socket_path(directory)?;
        let mut stream = UnixStream::connect(path).await?;
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        stream.write_all(&line).await?;
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).await?;
        std::io::Result::Ok(serde_json::from_str(&answer)?)
    };
    match timeout(patience, exchange).await {
        Ok(answer) => answer.map_err(|error| format!("the executor cannot be reached: {error}")),
        Err(_) => Err("the executor does not answer".to_string()),
    }
}
