//! The tasks of the driver: shells, each in a process group of its own, which outlive the plugin.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use executor::process::{self, ProcessIdentity};
use futures_util::stream::{self, Stream, StreamExt};
use nix::sys::signal::Signal;
use plugin::launch::exited;
use plugin::proto::base::Empty;
use plugin::proto::driver as proto;
use plugin::serve::{Answers, Requests};
use prost::Message;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use tokio::sync::{broadcast, watch};
use tonic::Status;

use crate::driver::unknown_task;

#[derive(Clone)]
pub struct Tasks {
    by_id: Arc<Mutex<BTreeMap<String, Task>>>,
    events: broadcast::Sender<proto::TaskEvent>,
}

#[derive(Clone)]
struct Task {
    config: proto::TaskConfig,
    process: ProcessIdentity,
    ended: watch::Receiver<Option<proto::ExitResult>>,
}

impl Default for Tasks {
    fn default() -> Tasks {
        Tasks { by_id: Arc::default(), events: broadcast::channel(16).0 }
    }
}

/// What an agent sends as configuration.
pub fn decode<T: DeserializeOwned>(msgpack: &[u8]) -> Result<T, Status> {
    rmp_serde::from_slice(msgpack).map_err(|error| Status::invalid_argument(error.to_string()))
}

#[derive(serde::Deserialize)]
struct Config {
    command: String,
}

fn internal(error: impl std::fmt::Display) -> Status {
    Status::internal(error.to_string())
}

impl Tasks {
    pub fn start(&self, config: proto::TaskConfig) -> Result<proto::StartTaskResponse, Status> {
        let Config { command } = decode(&config.msgpack_driver_config)?;
        let refused = |result: proto::StartResult, message: &str| proto::StartTaskResponse {
            result: result.into(),
            driver_error_msg: message.to_string(),
            ..Default::default()
        };
        match command.as_str() {
            "refuse" => return Ok(refused(proto::StartResult::Fatal, "this cannot be started")),
            "retry" => return Ok(refused(proto::StartResult::Retry, "not now")),
            "die" => std::process::exit(1),
            _ => {}
        }
        let output =
            |path: &str| OpenOptions::new().write(true).open(path).map(Stdio::from).map_err(internal);
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &command]).env_clear().envs(&config.env).process_group(0).stdin(Stdio::null());
        shell.current_dir(format!("{}/{}", config.alloc_dir, config.name));
        shell.stdout(output(&config.stdout_path)?).stderr(output(&config.stderr_path)?);
        let mut child = shell.spawn().map_err(internal)?;
        let process = ProcessIdentity::of(child.id().unwrap_or_default() as i32).map_err(internal)?;
        let (result, ended) = watch::channel(None);
        tokio::spawn(async move {
            use std::os::unix::process::ExitStatusExt;
            let status = child.wait().await.unwrap_or_default();
            let signal = status.signal().unwrap_or_default();
            let exit_code = status.code().unwrap_or(128 + signal);
            result.send_replace(Some(proto::ExitResult { exit_code, signal, oom_killed: false }));
        });
        let handle = proto::TaskHandle {
            version: 1,
            driver_state: serde_json::to_vec(&process).map_err(internal)?,
            config: Some(config.clone()),
            state: proto::TaskState::Running.into(),
        };
        self.events.send(self.event(&config, "hello from the plugin")).ok();
        self.put(Task { config, process, ended });
        let result = proto::StartResult::Success.into();
        Ok(proto::StartTaskResponse { result, handle: Some(handle), ..Default::default() })
    }

    fn event(&self, config: &proto::TaskConfig, message: &str) -> proto::TaskEvent {
        proto::TaskEvent {
            task_id: config.id.clone(),
            alloc_id: config.alloc_id.clone(),
            task_name: config.name.clone(),
            message: message.to_string(),
            ..Default::default()
        }
    }

    fn put(&self, task: Task) {
        self.by_id.lock().expect("nobody panics with it").insert(task.config.id.clone(), task);
    }

    /// A task that another life of the plugin has started. It was its child, so nobody knows how it ends, only when.
    pub fn recover(&self, handle: proto::TaskHandle) -> Result<Empty, Status> {
        let config = handle.config.unwrap_or_default();
        if self.get(&config.id).is_ok() {
            return Ok(Empty {});
        }
        let process: ProcessIdentity = serde_json::from_slice(&handle.driver_state).map_err(internal)?;
        if !process.is_alive() {
            return Err(unknown_task());
        }
        let (result, ended) = watch::channel(None);
        let watched = process.clone();
        tokio::spawn(async move {
            exited(&watched).await;
            result.send_replace(Some(proto::ExitResult::default()));
        });
        self.put(Task { config, process, ended });
        Ok(Empty {})
    }

    fn get(&self, id: &str) -> Result<Task, Status> {
        self.by_id.lock().expect("nobody panics with it").get(id).cloned().ok_or_else(unknown_task)
    }

    pub async fn wait(&self, id: &str) -> Result<proto::WaitTaskResponse, Status> {
        let mut ended = self.get(id)?.ended;
        let result = ended.wait_for(Option::is_some).await.map_err(internal)?.clone();
        Ok(proto::WaitTaskResponse { result, err: String::new() })
    }

    pub async fn stop(&self, request: proto::StopTaskRequest) -> Result<Empty, Status> {
        let mut task = self.get(&request.task_id)?;
        let signal = if request.signal.is_empty() { "SIGTERM" } else { &request.signal };
        task.signal(signal)?;
        let grace = request.timeout.unwrap_or_default().to_std();
        let ended = tokio::time::timeout(grace, task.ended.wait_for(Option::is_some)).await.is_ok();
        if !ended {
            task.signal("SIGKILL")?;
            task.ended.wait_for(Option::is_some).await.map_err(internal)?;
        }
        Ok(Empty {})
    }

    pub async fn destroy(&self, id: &str, force: bool) -> Result<Empty, Status> {
        let task = self.get(id)?;
        if task.ended.borrow().is_none() {
            if !force {
                return Err(Status::failed_precondition("the task still runs"));
            }
            task.signal("SIGKILL")?;
        }
        self.by_id.lock().expect("nobody panics with it").remove(id);
        Ok(Empty {})
    }

    pub fn inspect(&self, id: &str) -> Result<proto::InspectTaskResponse, Status> {
        let task = self.get(id)?;
        let attributes = BTreeMap::from([("pid".to_string(), task.process.pid.to_string())]);
        let driver = Some(proto::TaskDriverStatus { attributes });
        Ok(proto::InspectTaskResponse { driver, ..Default::default() })
    }

    pub fn signal(&self, id: &str, signal: &str) -> Result<Empty, Status> {
        self.get(id)?.signal(signal)?;
        Ok(Empty {})
    }

    pub fn stats(&self, id: String) -> impl Stream<Item = proto::TaskStatsResponse> + use<> {
        let tasks = self.clone();
        stream::unfold(true, move |is_first| {
            let running = tasks.get(&id).is_ok_and(|task| task.ended.borrow().is_none());
            let id = id.clone();
            async move {
                if !is_first {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                let cpu = proto::CpuUsage { percent: 50.0, ..Default::default() };
                let memory = proto::MemoryUsage { rss: 4096, ..Default::default() };
                let used = proto::TaskResourceUsage { cpu: Some(cpu), memory: Some(memory) };
                let stats = proto::TaskStats { id, agg_resource_usage: Some(used), ..Default::default() };
                running.then_some((proto::TaskStatsResponse { stats: Some(stats) }, false))
            }
        })
    }

    pub fn events(&self) -> impl Stream<Item = proto::TaskEvent> + use<> {
        let events = self.events.subscribe();
        stream::unfold(events, |mut events| async move { Some((events.recv().await.ok()?, events)) })
    }

    /// Runs a command with the task's environment; without terminals.
    pub fn exec(&self, requests: Requests) -> Answers {
        let (tasks, (to, answers)) = (self.clone(), tokio::sync::mpsc::channel(16));
        tokio::spawn(async move {
            if let Err(status) = tasks.run(requests, &to).await {
                to.send(Err(status)).await.ok();
            }
        });
        stream::unfold(answers, |mut answers| async move { Some((answers.recv().await?, answers)) }).boxed()
    }

    async fn run(&self, mut requests: Requests, to: &Outgoing) -> Result<(), Status> {
        let setup = request(&mut requests).await?.and_then(|first| first.setup).unwrap_or_default();
        let task = self.get(&setup.task_id)?;
        let (program, args) = setup.command.split_first().ok_or_else(|| internal("no command"))?;
        let mut command = Command::new(program);
        command.args(args).env_clear().envs(&task.config.env).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(internal)?;
        let mut stdin = child.stdin.take();
        let feeding = async {
            while let Ok(Some(next)) = request(&mut requests).await {
                let Some(input) = next.stdin else { continue };
                if let Some(stdin) = &mut stdin {
                    stdin.write_all(&input.data).await.ok();
                }
                if input.close {
                    stdin = None;
                }
            }
            std::future::pending::<()>().await;
        };
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let running = async {
            let [out, err] = [false, true].map(|is_stderr| {
                move |io| {
                    let io = Some(io);
                    match is_stderr {
                        false => proto::ExecResponse { stdout: io, ..Default::default() },
                        true => proto::ExecResponse { stderr: io, ..Default::default() },
                    }
                }
            });
            tokio::join!(copy(stdout, to, out), copy(stderr, to, err));
            child.wait().await
        };
        let status = tokio::select! {
            status = running => status.map_err(internal)?,
            () = feeding => return Ok(()),
            () = to.closed() => return Ok(()),
        };
        let exit_code = status.code().unwrap_or(137);
        let result = Some(proto::ExitResult { exit_code, ..Default::default() });
        send(to, proto::ExecResponse { exited: true, result, ..Default::default() }).await;
        Ok(())
    }
}

type Outgoing = tokio::sync::mpsc::Sender<Result<Vec<u8>, Status>>;

async fn send(to: &Outgoing, answer: proto::ExecResponse) {
    to.send(Ok(answer.encode_to_vec())).await.ok();
}

async fn request(requests: &mut Requests) -> Result<Option<proto::ExecRequest>, Status> {
    let Some(bytes) = requests.message().await? else { return Ok(None) };
    proto::ExecRequest::decode(bytes.as_slice()).map(Some).map_err(internal)
}

async fn copy(
    from: Option<impl AsyncReadExt + Unpin>,
    to: &Outgoing,
    answer: impl Fn(proto::ExecIo) -> proto::ExecResponse,
) {
    let Some(mut from) = from else { return };
    let mut chunk = vec![0; 4096];
    while let Ok(length @ 1..) = from.read(&mut chunk).await {
        send(to, answer(proto::ExecIo { data: chunk[..length].to_vec(), close: false })).await;
    }
    send(to, answer(proto::ExecIo { data: Vec::new(), close: true })).await;
}

impl Task {
    /// To all that the task has started.
    fn signal(&self, name: &str) -> Result<(), Status> {
        let signal: Signal =
            name.parse().map_err(|_| Status::invalid_argument(format!("no signal {name}")))?;
        match self.process.is_alive() {
            true => process::signal(-self.process.pid, signal).map_err(internal),
            false => Ok(()),
        }
    }
}
