//! A driver that does nothing but what the task's `config` says: for tests of everything around drivers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use executor::Exit;
use executor::rotate::Rotator;
use executor::spec::LogSpec;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until};

use crate::driver::registry::{BuiltinDriver, DriverHost};
use crate::driver::{
    Capabilities, Driver, DriverError, DriverNetwork, Exec, ExecConfig, ExecError, Field, Fingerprint,
    FsIsolation, GroupNetworks, Logs, Outcome, RunningTask, Schema, StartError, Started, TaskConfig,
    TaskStatus, Usage, ValueType, Values, exec, outcome_of, sampled,
};

pub const BUILTIN: BuiltinDriver = BuiltinDriver {
    name: NAME,
    plugin_schema: Schema(&[&[Field::optional("enabled", ValueType::Boolean)]]),
    dev_config: &[("enabled", true)],
    legacy_options: &[],
    make,
};

const NAME: &str = "mock_driver";

/// The keys that a task and an `exec_command` have in common.
const COMMAND: &[Field] = &[
    Field::optional("run_for", ValueType::Duration),
    Field::optional("exit_code", ValueType::Number),
    Field::optional("exit_signal", ValueType::Number),
    Field::optional("exit_err_msg", ValueType::Text),
    Field::optional("signal_error", ValueType::Text),
    Field::optional("stdout_string", ValueType::Text),
    Field::optional("stdout_repeat", ValueType::Number),
    Field::optional("stdout_repeat_duration", ValueType::Duration),
    Field::optional("stderr_string", ValueType::Text),
    Field::optional("stderr_repeat", ValueType::Number),
    Field::optional("stderr_repeat_duration", ValueType::Duration),
];

const TASK: Schema = Schema(&[
    COMMAND,
    &[
        Field::optional("start_error", ValueType::Text),
        Field::optional("start_error_recoverable", ValueType::Boolean),
        Field::optional("start_block_for", ValueType::Duration),
        Field::optional("kill_after", ValueType::Duration),
        Field::optional("plugin_exit_after", ValueType::Duration),
        Field::optional("driver_ip", ValueType::Text),
        Field::optional("driver_advertise", ValueType::Boolean),
        Field::optional("driver_port_map", ValueType::Text),
        Field::optional("exec_command", ValueType::Block(Schema(&[COMMAND]))),
    ],
]);

/// OutputScript of a command that is held for a slow reader.
const OUTPUT_BYTES: usize = 64 * 1024;

/// The driver itself; it has no settings.
#[derive(Clone, Copy, Debug)]
struct Mock;

fn make(config: &Values, _host: &DriverHost) -> Option<Arc<dyn Driver>> {
    config.boolean("enabled").then(|| Arc::new(Mock) as Arc<dyn Driver>)
}

/// What a task or a command does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Script {
    run_for: Duration,
    kill_after: Duration,
    plugin_exit_after: Duration,
    exit: Exit,
    signal_error: String,
    stdout: OutputScript,
    stderr: OutputScript,
}

/// What is written to one stream: `text`, and again `repeat` times, `pause` apart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct OutputScript {
    text: String,
    repeat: i64,
    pause: Duration,
}

/// The state in a handle: enough to go on with the task after a restart of the agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct MockState {
    script: Script,
    /// What every command inside the task does.
    #[serde(default)]
    exec: Option<Script>,
    /// Unix nanoseconds.
    started_at: i64,
}

/// A mock task that runs.
#[derive(Debug)]
struct MockTask {
    kill: Arc<Notify>,
    outcome: watch::Receiver<Option<Outcome>>,
    signal_error: String,
    exec: Option<Script>,
}

impl Driver for Mock {
    fn name(&self) -> &str {
        NAME
    }

    fn handle_key(&self) -> &str {
        "mock"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            signals: true,
            exec: true,
            fs_isolation: FsIsolation::None,
            mounts: false,
            device_permissions: false,
        }
    }

    fn group_networks(&self) -> GroupNetworks {
        GroupNetworks::Joins
    }

    fn task_schema(&self) -> Option<Schema> {
        Some(TASK)
    }

    fn fingerprint(&self) -> BoxStream<'static, Fingerprint> {
        Fingerprint::healthy([("driver.mock_driver".to_string(), "1".to_string())]).once()
    }

    fn start(&self, config: TaskConfig) -> BoxFuture<'_, Result<Started, StartError>> {
        Box::pin(start(config))
    }

    /// The task ran on in the meantime, as a real one would have.
    fn recover<'a>(&'a self, state: &'a Value) -> BoxFuture<'a, Result<Arc<dyn RunningTask>, DriverError>> {
        Box::pin(async move {
            let state =
                MockState::deserialize(state).map_err(|error| DriverError::Handle(error.to_string()))?;
            let elapsed = crate::clock::now().since(base::Time(state.started_at)).to_std();
            let left = state.script.run_for.saturating_sub(elapsed);
            Ok(Arc::new(run(state.script, state.exec, left, Duration::ZERO)) as Arc<dyn RunningTask>)
        })
    }

    /// A mock task leaves nothing.
    fn destroy<'a>(&'a self, _: &'a Value, _: bool) -> BoxFuture<'a, Result<(), DriverError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

impl RunningTask for MockTask {
    fn wait(&self) -> BoxFuture<'_, Outcome> {
        Box::pin(outcome_of(self.outcome.clone()))
    }

    fn stop(&self, _: Option<Signal>, _: Duration) -> BoxFuture<'_, Result<(), DriverError>> {
        self.kill.notify_one();
        Box::pin(async {
            self.wait().await;
            Ok(())
        })
    }

    fn signal(&self, _: Signal) -> BoxFuture<'_, Result<(), DriverError>> {
        let result = match self.signal_error.as_str() {
            "" => Ok(()),
            error => Err(DriverError::failed(error)),
        };
        Box::pin(std::future::ready(result))
    }

    fn inspect(&self) -> BoxFuture<'_, TaskStatus> {
        let outcome = self.outcome.borrow().clone();
        Box::pin(std::future::ready(TaskStatus { outcome, attributes: BTreeMap::new() }))
    }

    fn stats(&self, interval: Duration) -> BoxStream<'static, Usage> {
        let outcome = self.outcome.clone();
        sampled(interval, move || outcome.borrow().is_none().then(Usage::default))
    }

    fn exec(&self, _: ExecConfig) -> BoxFuture<'_, Result<Exec, ExecError>> {
        Box::pin(std::future::ready(run_command(self.exec.clone())))
    }
}

async fn start(config: TaskConfig) -> Result<Started, StartError> {
    let keys = &config.config;
    let (network, script) = (network(keys)?, script(keys));
    let exec = keys.block("exec_command").map(self::script);
    sleep(keys.duration("start_block_for")).await;
    if let Some(error) = keys.text("start_error") {
        let recoverable = keys.boolean("start_error_recoverable");
        return Err(StartError::Failed { message: error.to_string(), recoverable });
    }
    let state = MockState { script: script.clone(), exec: exec.clone(), started_at: crate::clock::now().0 };
    let state = serde_json::to_value(&state).map_err(StartError::fatal)?;
    if let Some(logs) = config.logs {
        tokio::spawn(write_outputs(logs, script.stdout.clone(), script.stderr.clone()));
    }
    let (run_for, plugin_exit_after) = (script.run_for, script.plugin_exit_after);
    let task = run(script, exec, run_for, plugin_exit_after);
    Ok(Started { task: Arc::new(task), state, network })
}

fn network(keys: &Values) -> Result<Option<DriverNetwork>, StartError> {
    let (ip, port_map) = (keys.text("driver_ip"), keys.text("driver_port_map"));
    if ip.is_none() && port_map.is_none() {
        return Ok(None);
    }
    Ok(Some(DriverNetwork {
        ip: ip.unwrap_or_default().to_string(),
        port_map: ports(port_map.unwrap_or_default())?,
        auto_advertise: keys.boolean("driver_advertise"),
    }))
}

fn script(keys: &Values) -> Script {
    let text = |key: &str| keys.text(key).unwrap_or_default().to_string();
    let output = |stream: &str| OutputScript {
        text: text(&format!("{stream}_string")),
        repeat: keys.number(&format!("{stream}_repeat")).unwrap_or_default(),
        pause: keys.duration(&format!("{stream}_repeat_duration")),
    };
    Script {
        run_for: keys.duration("run_for"),
        kill_after: keys.duration("kill_after"),
        plugin_exit_after: keys.duration("plugin_exit_after"),
        exit: Exit {
            code: keys.number("exit_code").unwrap_or_default(),
            signal: keys.number("exit_signal").unwrap_or_default(),
            oom_killed: false,
            error: keys.text("exit_err_msg").map(str::to_string),
        },
        signal_error: text("signal_error"),
        stdout: output("stdout"),
        stderr: output("stderr"),
    }
}

/// `label:port`.
fn ports(text: &str) -> Result<BTreeMap<String, i64>, StartError> {
    if text.is_empty() {
        return Ok(BTreeMap::new());
    }
    let pair = text.split_once(':').and_then(|(label, port)| Some((label.to_string(), port.parse().ok()?)));
    let pair = pair.ok_or_else(|| StartError::Invalid(format!("malformed driver_port_map \"{text}\"")))?;
    Ok(BTreeMap::from([pair]))
}

fn run(script: Script, exec: Option<Script>, run_for: Duration, plugin_exit_after: Duration) -> MockTask {
    let (result, outcome) = watch::channel(None);
    let kill = Arc::new(Notify::new());
    let task = MockTask { kill: kill.clone(), outcome, signal_error: script.signal_error.clone(), exec };
    let now = Instant::now();
    tokio::spawn(async move {
        let outcome = tokio::select! {
            () = sleep_until(now + run_for) => Outcome::Exited(script.exit),
            () = sleep_until(now + plugin_exit_after), if !plugin_exit_after.is_zero() => Outcome::DriverLost,
            () = kill.notified() => {
                sleep(script.kill_after).await;
                Outcome::Exited(Exit { signal: nix::libc::SIGINT.into(), ..Exit::default() })
            }
        };
        result.send_replace(Some(outcome));
    });
    task
}

/// Runs what `exec_command` describes, whatever the command is. Its input is not read.
///
/// # Errors
/// When the task describes none.
fn run_command(script: Option<Script>) -> Result<Exec, ExecError> {
    let missing = || ExecError::Refused("the task has no exec_command".to_string());
    let script = script.ok_or_else(missing)?;
    let ((stdout, to_stdout), (stderr, to_stderr)) = (duplex(OUTPUT_BYTES), duplex(OUTPUT_BYTES));
    let exit = async move {
        // The reader may leave before everything is written.
        let _written = tokio::join!(
            print(to_stdout, &script.stdout),
            print(to_stderr, &script.stderr),
            sleep(script.run_for)
        );
        match script.exit {
            Exit { error: Some(error), .. } => Err(error),
            exit => Ok(exit),
        }
    };
    let (stdout, stderr): (exec::Output, exec::Output) = (Box::new(stdout), Box::new(stderr));
    let stdin = exec::Stdin::Discarded;
    Ok(Exec { stdin, stdout, stderr: Some(stderr), terminal: None, exit: Box::pin(exit) })
}

async fn print(mut to: DuplexStream, output: &OutputScript) -> std::io::Result<()> {
    for turn in 0..=output.repeat {
        if turn > 0 {
            sleep(output.pause).await;
        }
        to.write_all(output.text.as_bytes()).await?;
    }
    Ok(())
}

async fn write_outputs(logs: Logs, stdout: OutputScript, stderr: OutputScript) {
    tokio::join!(write_output(logs.stdout, stdout), write_output(logs.stderr, stderr));
}

async fn write_output(to: LogSpec, output: OutputScript) {
    let Ok(mut file) = Rotator::open(to) else { return };
    for turn in 0..=output.repeat {
        if turn > 0 {
            sleep(output.pause).await;
        }
        file.write(output.text.as_bytes()).ok();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::task_config;

    async fn start(config: Value) -> Result<Started, StartError> {
        let config = config.as_object().unwrap().clone().into_iter().collect();
        let config = Values::read(NAME, TASK, config).map_err(StartError::Invalid)?;
        Mock.start(TaskConfig { config, ..task_config() }).await
    }

    #[tokio::test(start_paused = true)]
    async fn it_runs_and_ends_as_configured() {
        let began = Instant::now();
        let config = json!({"run_for": "10s", "exit_code": 3, "exit_signal": 9, "exit_err_msg": "why"});
        let outcome = start(config).await.unwrap().task.wait().await;
        let exit = Exit { code: 3, signal: 9, oom_killed: false, error: Some("why".into()) };
        assert_eq!(outcome, Outcome::Exited(exit));
        assert_eq!(began.elapsed().as_secs(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn its_start_can_block_and_fail() {
        let began = Instant::now();
        let config = json!({"start_error": "no", "start_error_recoverable": true, "start_block_for": "5s"});
        let error = start(config).await.unwrap_err();
        assert_eq!(error, StartError::transient("no"));
        assert_eq!(began.elapsed().as_secs(), 5);
        assert_eq!(start(json!({"start_error": "no"})).await.unwrap_err(), StartError::fatal("no"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_kill_takes_as_long_as_configured() {
        let began = Instant::now();
        let config = json!({"run_for": "1h", "kill_after": "7s", "signal_error": "deaf"});
        let task = start(config).await.unwrap().task;
        assert_eq!(task.signal(Signal::SIGHUP).await, Err(DriverError::failed("deaf")));
        task.stop(None, Duration::ZERO).await.unwrap();
        assert_eq!(
            task.inspect().await.outcome.unwrap(),
            Outcome::Exited(Exit { signal: 2, ..Exit::default() })
        );
        assert_eq!(began.elapsed().as_secs(), 7);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_plugin_finds_its_task_again() {
        let started =
            start(json!({"run_for": "1h", "plugin_exit_after": "1s", "exit_code": 4})).await.unwrap();
        assert_eq!(started.task.wait().await, Outcome::DriverLost);
        let task = Mock.recover(&started.state).await.unwrap();
        let Outcome::Exited(exit) = task.wait().await else { panic!("lost again") };
        assert_eq!(exit.code, 4);
    }

    #[tokio::test]
    async fn it_can_have_a_network() {
        let config = json!({"driver_ip": "1.2.3.4", "driver_port_map": "http:80", "driver_advertise": true});
        let network = start(config).await.unwrap().network.unwrap();
        assert_eq!((network.ip.as_str(), network.port_map["http"]), ("1.2.3.4", 80));
        assert!(network.auto_advertise);
        assert!(start(json!({"driver_port_map": "http"})).await.is_err());
    }

    #[tokio::test]
    async fn mistakes_in_its_config_are_named() {
        for config in [json!({"run_fro": "1s"}), json!({"exec_command": {"kill_after": "1s"}})] {
            assert!(matches!(start(config).await.unwrap_err(), StartError::Invalid(_)));
        }
        start(json!({"exec_command": {"run_for": "1s", "stdout_string": "x"}})).await.unwrap();
    }
}
