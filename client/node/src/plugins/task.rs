//! A task of a driver that is a plugin.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use executor::Exit;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use nix::sys::signal::Signal;
use plugin::proto::base::Empty;
use plugin::proto::driver as proto;
use plugin::supervisor::Instance;
use plugin::{CallError, Caller};
use prost::Message;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::driver::quick;
use super::exec;
use super::host::Hosted;
use super::usage::Meter;
use crate::driver::{
    DriverError, Exec, ExecConfig, ExecError, Outcome, RunningTask, TaskStatus, Usage, outcome_of,
};

/// How long a plugin that has died may take to run again before its task counts as lost.
const RECOVER_PATIENCE: Duration = Duration::from_secs(60);

/// For what can be asked of a task only while the plugin runs.
const ASK_PATIENCE: Duration = Duration::from_secs(10);

/// Beyond the grace that a task has to end.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);

/// How often a call is made again because the plugin died of it or during it.
const TRIES: u32 = 3;

/// What is stored of a task. Fields are only ever added.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskRecord {
    /// The key of its driver.
    pub driver: String,
    pub task_id: String,
    /// The directory of its output.
    pub outputs: PathBuf,
    /// What the plugin finds it by: a message of the protocol, in base 64.
    pub handle: String,
}

impl TaskRecord {
    /// # Errors
    /// When the state is none.
    pub fn read(state: &Value) -> Result<TaskRecord, DriverError> {
        let read = TaskRecord::deserialize(state).map_err(|error| error.to_string());
        let read = read.and_then(|read| match read.task_id.is_empty() {
            true => Err("it names no task".to_string()),
            false => Ok(read),
        });
        read.map_err(DriverError::Handle)
    }

    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).expect("paths below the state directory are text")
    }

    pub fn with_handle(self, handle: &proto::TaskHandle) -> TaskRecord {
        TaskRecord { handle: BASE64_STANDARD.encode(handle.encode_to_vec()), ..self }
    }

    fn handle(&self) -> Result<proto::TaskHandle, DriverError> {
        let bytes = BASE64_STANDARD.decode(&self.handle).map_err(|error| error.to_string());
        let handle =
            bytes.and_then(|bytes| proto::TaskHandle::decode(&*bytes).map_err(|error| error.to_string()));
        handle.map_err(DriverError::Handle)
    }
}

/// Watches the task for as long as it is held.
#[derive(Debug)]
pub struct PluginTask {
    hosted: Arc<Hosted>,
    /// In which life of the plugin it is watched.
    instance: Instance,
    record: TaskRecord,
    outcome: Arc<watch::Sender<Option<Outcome>>>,
    watcher: JoinHandle<()>,
    meter: Meter,
}

impl Drop for PluginTask {
    fn drop(&mut self) {
        self.watcher.abort();
    }
}

/// Has the plugin find a task again.
///
/// # Errors
/// When it does not, or does not run.
pub async fn recover(hosted: Arc<Hosted>, record: TaskRecord) -> Result<PluginTask, DriverError> {
    let mut tried = 0;
    loop {
        let instance = hosted.instance(RECOVER_PATIENCE).await.map_err(DriverError::failed)?;
        tried += 1;
        match find(&instance.running.caller, &record).await {
            Ok(()) => return Ok(PluginTask::new(hosted, instance, record)),
            Err(Lost::Gone) if tried < TRIES => next_life(&hosted, instance.number).await,
            Err(Lost::Gone) => {
                return Err(DriverError::failed("the plugin dies when it is asked for the task"));
            }
            Err(Lost::For(error)) => return Err(error),
        }
    }
}

/// Why a task was not found again.
enum Lost {
    /// The plugin has died.
    Gone,
    For(DriverError),
}

async fn find(caller: &Caller, record: &TaskRecord) -> Result<(), Lost> {
    let handle = record.handle().map_err(Lost::For)?;
    let request = proto::RecoverTaskRequest { task_id: record.task_id.clone(), handle: Some(handle) };
    let found: Result<Empty, CallError> = quick(caller, "RecoverTask", request).await;
    match found {
        Ok(_) => Ok(()),
        Err(error) if error.is_gone() => Err(Lost::Gone),
        Err(error) => Err(Lost::For(DriverError::failed(error))),
    }
}

/// A call can fail a moment before the plugin is known to have died.
async fn next_life(hosted: &Hosted, number: u64) {
    let mut current = hosted.watch();
    let changed = current.wait_for(|now| now.as_ref().map(|now| now.number) != Some(number));
    tokio::time::timeout(ASK_PATIENCE, changed).await.ok();
}

impl PluginTask {
    pub fn new(hosted: Arc<Hosted>, instance: Instance, record: TaskRecord) -> PluginTask {
        let outcome = Arc::new(watch::Sender::new(None));
        let (result, caller) = (Arc::clone(&outcome), instance.running.caller.clone());
        let (plugin, number, task_id) = (Arc::clone(&hosted), instance.number, record.task_id.clone());
        let watcher = tokio::spawn(async move {
            let ended = ended(&caller, &task_id).await;
            if ended == Outcome::DriverLost {
                // Whoever waits for the outcome asks the next one.
                next_life(&plugin, number).await;
            }
            result.send_replace(Some(ended));
        });
        let meter = Meter::new(instance.running.caller.clone(), record.task_id.clone());
        PluginTask { hosted, instance, record, outcome, watcher, meter }
    }

    async fn stop_task(&self, signal: Option<Signal>, grace: Duration) -> Result<(), DriverError> {
        for _ in 0..TRIES {
            let instance = self.hosted.instance(RECOVER_PATIENCE).await.map_err(DriverError::failed)?;
            let (caller, is_next) = (&instance.running.caller, instance.number != self.instance.number);
            let stopped = async {
                if is_next {
                    find(caller, &self.record).await?;
                }
                stop(caller, &self.record.task_id, signal, grace).await
            };
            match stopped.await {
                Ok(()) if is_next => {
                    let outcome = ended(caller, &self.record.task_id).await;
                    self.outcome.send_replace(Some(outcome));
                    return Ok(());
                }
                Ok(()) => {
                    let late = |_| DriverError::failed("the task was stopped, and its end did not come");
                    tokio::time::timeout(STOP_TIMEOUT, self.wait()).await.map_err(late)?;
                    return Ok(());
                }
                Err(Lost::Gone) => next_life(&self.hosted, instance.number).await,
                Err(Lost::For(error)) => return Err(error),
            }
        }
        Err(DriverError::failed("the plugin dies when it is asked to stop the task"))
    }

    fn caller(&self) -> &Caller {
        &self.instance.running.caller
    }

    async fn send_signal(&self, signal: Signal) -> Result<(), DriverError> {
        let (task_id, signal) = (self.record.task_id.clone(), signal.as_str().to_string());
        let request = proto::SignalTaskRequest { task_id, signal };
        let sent: Result<Empty, CallError> = quick(self.caller(), "SignalTask", request).await;
        sent.map(drop).map_err(DriverError::failed)
    }

    async fn status(&self) -> TaskStatus {
        let request = proto::TaskId { task_id: self.record.task_id.clone() };
        let asked = quick::<_, proto::InspectTaskResponse>(self.caller(), "InspectTask", request).await;
        let attributes = asked.ok().and_then(|answer| answer.driver).map(|driver| driver.attributes);
        TaskStatus { outcome: self.outcome.borrow().clone(), attributes: attributes.unwrap_or_default() }
    }
}

/// How a task has ended, waited for.
async fn ended(caller: &Caller, task_id: &str) -> Outcome {
    let request = proto::TaskId { task_id: task_id.to_string() };
    match caller.call_for_long::<_, proto::WaitTaskResponse>(proto::SERVICE, "WaitTask", request).await {
        Ok(answer) => Outcome::Exited(exit(answer)),
        Err(error) if error.is_gone() => Outcome::DriverLost,
        Err(error) => {
            Outcome::Exited(Exit::lost(format!("the driver does not say how the task ended: {error}")))
        }
    }
}

fn exit(answer: proto::WaitTaskResponse) -> Exit {
    let result = answer.result.unwrap_or_default();
    Exit {
        code: i64::from(result.exit_code),
        signal: i64::from(result.signal),
        oom_killed: result.oom_killed,
        error: Some(answer.err).filter(|error| !error.is_empty()),
    }
}

async fn stop(caller: &Caller, task_id: &str, signal: Option<Signal>, grace: Duration) -> Result<(), Lost> {
    let request = proto::StopTaskRequest {
        task_id: task_id.to_string(),
        timeout: Some(grace.into()),
        signal: signal.map_or("", Signal::as_str).to_string(),
    };
    let patience = grace.saturating_add(STOP_TIMEOUT);
    let stopped: Result<Empty, CallError> = caller.call(proto::SERVICE, "StopTask", request, patience).await;
    match stopped {
        // One that is not there any more does not run.
        Ok(_) | Err(CallError::NotFound(_)) => Ok(()),
        Err(error) if error.is_gone() => Err(Lost::Gone),
        Err(error) => Err(Lost::For(DriverError::failed(error))),
    }
}

impl RunningTask for PluginTask {
    fn wait(&self) -> BoxFuture<'_, Outcome> {
        Box::pin(outcome_of(self.outcome.subscribe()))
    }

    fn stop(&self, signal: Option<Signal>, grace: Duration) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(self.stop_task(signal, grace))
    }

    fn signal(&self, signal: Signal) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(self.send_signal(signal))
    }

    fn inspect(&self) -> BoxFuture<'_, TaskStatus> {
        Box::pin(self.status())
    }

    fn stats(&self, interval: Duration) -> BoxStream<'static, Usage> {
        self.meter.readings(interval, self.outcome.subscribe())
    }

    fn exec(&self, config: ExecConfig) -> BoxFuture<'_, Result<Exec, ExecError>> {
        Box::pin(exec::exec(self.caller(), &self.record.task_id, config))
    }
}
