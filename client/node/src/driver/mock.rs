//! A driver that does nothing but what its config says: for tests of everything around drivers.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until};

use super::config::Reader;
use super::{
    Control, DriverNetwork, Exec, ExecError, Exit, Logs, Outcome, Running, StartError, Started, TaskConfig,
    exec,
};
use executor::rotate::Rotator;
use executor::spec::LogSpec;

/// What a command may have said before anybody listens.
const OUTPUT_BYTES: usize = 64 * 1024;

/// The driver itself; it has no settings.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mock;

/// All knobs but those of the start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Script {
    run_for: Duration,
    kill_after: Duration,
    plugin_exit_after: Duration,
    exit: Exit,
    signal_error: String,
    stdout: Output,
    stderr: Output,
}

/// What is written to one stream: `text`, and again `repeat` times, `pause` apart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Output {
    text: String,
    repeat: i64,
    pause: Duration,
}

/// The knobs of the start.
#[derive(Debug)]
struct Opening {
    error: String,
    recoverable: bool,
    block_for: Duration,
    network: Option<DriverNetwork>,
}

/// Enough to go on with the task after a restart of the agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Handle {
    script: Script,
    /// What every command inside the task does.
    #[serde(default)]
    exec: Option<Script>,
    /// Unix nanoseconds.
    started_at: i64,
}

/// The strings that a running mock task hangs on.
#[derive(Debug)]
pub struct Link {
    kill: std::sync::Arc<Notify>,
    signal_error: String,
}

impl Link {
    pub fn stop(&self) {
        self.kill.notify_one();
    }

    pub fn signal(&self) -> Result<(), String> {
        if self.signal_error.is_empty() { Ok(()) } else { Err(self.signal_error.clone()) }
    }
}

impl Mock {
    pub async fn start(&self, config: TaskConfig) -> Result<Started, StartError> {
        let (opening, script, exec) = read(config.config)?;
        sleep(opening.block_for).await;
        if !opening.error.is_empty() {
            return Err(StartError::Failed { message: opening.error, recoverable: opening.recoverable });
        }
        let handle = Handle { script: script.clone(), exec, started_at: crate::clock::now().0 };
        if let Some(logs) = config.logs {
            tokio::spawn(write_outputs(logs, script.stdout.clone(), script.stderr.clone()));
        }
        let running = run(script.clone(), script.run_for, script.plugin_exit_after);
        Ok(Started { handle: super::Handle::Mock(Box::new(handle)), running, network: opening.network })
    }

    /// The task ran on in the meantime, as a real one would have.
    pub fn recover(&self, handle: &Handle) -> Running {
        let elapsed = crate::clock::now().since(base::Time(handle.started_at)).to_std();
        let left = handle.script.run_for.saturating_sub(elapsed);
        run(handle.script.clone(), left, Duration::ZERO)
    }
}

fn read(
    config: BTreeMap<String, serde_json::Value>,
) -> Result<(Opening, Script, Option<Script>), StartError> {
    let mut config = Reader::new("mock_driver", config);
    let port_map = config.text("driver_port_map")?.unwrap_or_default();
    let ip = config.text("driver_ip")?.unwrap_or_default();
    let auto_advertise = config.flag("driver_advertise")?;
    let network = (!ip.is_empty() || !port_map.is_empty()).then_some(DriverNetwork {
        ip,
        port_map: ports(&port_map)?,
        auto_advertise,
    });
    let opening = Opening {
        error: config.text("start_error")?.unwrap_or_default(),
        recoverable: config.flag("start_error_recoverable")?,
        block_for: config.span("start_block_for")?,
        network,
    };
    let mut exec = None;
    if let Some(nested) = config.block("exec_command")? {
        let mut nested = Reader::new("mock_driver", nested);
        exec = Some(command(&mut nested)?);
        nested.finish()?;
    }
    let mut script = command(&mut config)?;
    script.kill_after = config.span("kill_after")?;
    script.plugin_exit_after = config.span("plugin_exit_after")?;
    config.finish()?;
    Ok((opening, script, exec))
}

/// The keys that a task and an `exec_command` have in common.
fn command(config: &mut Reader) -> Result<Script, StartError> {
    let mut output = |stream: &str| -> Result<Output, StartError> {
        Ok(Output {
            text: config.text(&format!("{stream}_string"))?.unwrap_or_default(),
            repeat: config.number(&format!("{stream}_repeat"))?.unwrap_or_default(),
            pause: config.span(&format!("{stream}_repeat_duration"))?,
        })
    };
    let (stdout, stderr) = (output("stdout")?, output("stderr")?);
    let exit = Exit {
        code: config.number("exit_code")?.unwrap_or_default(),
        signal: config.number("exit_signal")?.unwrap_or_default(),
        oom_killed: false,
        error: config.text("exit_err_msg")?.filter(|text| !text.is_empty()),
    };
    let run_for = config.span("run_for")?;
    let signal_error = config.text("signal_error")?.unwrap_or_default();
    Ok(Script { run_for, exit, signal_error, stdout, stderr, ..Script::default() })
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

fn run(script: Script, run_for: Duration, plugin_exit_after: Duration) -> Running {
    let (result, outcome) = watch::channel(None);
    let kill = std::sync::Arc::new(Notify::new());
    let link = Link { kill: kill.clone(), signal_error: script.signal_error.clone() };
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
    Running { outcome, control: Control::Mock(link) }
}

/// Runs what `exec_command` describes, whatever was asked for. What it is told is not read.
///
/// # Errors
/// When the task describes none.
pub fn run_command(handle: &Handle) -> Result<Exec, ExecError> {
    let missing = || ExecError::Refused("the task has no exec_command".to_string());
    let script = handle.exec.clone().ok_or_else(missing)?;
    let ((stdout, to_stdout), (stderr, to_stderr)) = (duplex(OUTPUT_BYTES), duplex(OUTPUT_BYTES));
    let exit = async move {
        // Whoever listens may leave before everything is said.
        let _said = tokio::join!(
            say(to_stdout, &script.stdout),
            say(to_stderr, &script.stderr),
            sleep(script.run_for)
        );
        match script.exit {
            Exit { error: Some(error), .. } => Err(error),
            exit => Ok(exit),
        }
    };
    let (stdout, stderr): (exec::Output, exec::Output) = (Box::new(stdout), Box::new(stderr));
    let stdin = exec::Stdin::Nowhere;
    Ok(Exec { stdin, stdout, stderr: Some(stderr), terminal: None, exit: Box::pin(exit) })
}

async fn say(mut to: DuplexStream, output: &Output) -> std::io::Result<()> {
    for turn in 0..=output.repeat {
        if turn > 0 {
            sleep(output.pause).await;
        }
        to.write_all(output.text.as_bytes()).await?;
    }
    Ok(())
}

async fn write_outputs(logs: Logs, stdout: Output, stderr: Output) {
    tokio::join!(write_output(logs.stdout, stdout), write_output(logs.stderr, stderr));
}

async fn write_output(to: LogSpec, output: Output) {
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
    use nix::sys::signal::Signal;
    use serde_json::{Value, json};

    use super::*;
    use crate::driver::Limits;
    use crate::layout::AllocDir;

    async fn start(config: Value) -> Result<Started, StartError> {
        let dir = AllocDir::new("/nowhere".as_ref(), "5d16e7fe-8a2e-4b44-9c0a-3c7ab13b9f01").unwrap();
        let config = TaskConfig {
            alloc_id: "a".into(),
            task: "t".into(),
            instance: "i".into(),
            config: config.as_object().unwrap().clone().into_iter().collect(),
            env: BTreeMap::new(),
            user: String::new(),
            dir: dir.task("t"),
            logs: None,
            limits: Limits::default(),
        };
        Mock.start(config).await
    }

    #[tokio::test(start_paused = true)]
    async fn it_runs_as_long_and_ends_as_it_is_told() {
        let began = Instant::now();
        let config = json!({"run_for": "10s", "exit_code": 3, "exit_signal": 9, "exit_err_msg": "why"});
        let outcome = start(config).await.unwrap().running.wait().await;
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
    async fn a_kill_takes_as_long_as_it_is_told() {
        let began = Instant::now();
        let config = json!({"run_for": "1h", "kill_after": "7s", "signal_error": "deaf"});
        let mut started = start(config).await.unwrap();
        assert_eq!(started.running.signal(Signal::SIGHUP).await, Err("deaf".to_string()));
        let outcome = started.running.stop(Signal::SIGINT, Duration::ZERO).await.unwrap();
        assert_eq!(outcome, Outcome::Exited(Exit { signal: 2, ..Exit::default() }));
        assert_eq!(began.elapsed().as_secs(), 7);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_plugin_finds_its_task_again() {
        let mut started =
            start(json!({"run_for": "1h", "plugin_exit_after": "1s", "exit_code": 4})).await.unwrap();
        assert_eq!(started.running.wait().await, Outcome::DriverLost);
        let super::super::Handle::Mock(handle) = started.handle else { panic!("another driver's handle") };
        let Outcome::Exited(exit) = Mock.recover(&handle).wait().await else { panic!("lost again") };
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
