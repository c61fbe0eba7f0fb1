use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use control::{Control, SubmitError};
use jiff::Timestamp;
use model::{Actor, Command as LogCommand, Request};
use recorder::{Log, LogError, Recorder, Report, Settings};
use state::State;

use super::agent::run::log;
use crate::agent::{self, Beside, ConfigSources};
use crate::call::{Call, Command, Failure, Outcome, Run};
use crate::flags::{Completion, Flag};
use crate::other_cluster::{self, FROM_FLAGS};
use crate::output::write_out;
use crate::settings::{AgentSettings, Ports, RecordingSettings};

/// Beside the ports of a Nomad on the same host. The node RPC, which nothing asks, takes the next one.
const PORT: u16 = 4746;

/// How often everything is listed, in seconds.
const LIST_EVERY_SECS: u64 = 30;

/// How long to wait before a command is given again that the log did not take yet.
const AGAIN: Duration = Duration::from_millis(100);

const FROM: Flag<String> = Flag::value("from", "URL", "The cluster to record, like http://nomad:4646.");
const FROM_MOVED: Flag<bool> =
    Flag::switch("from-moved", "The cluster that the data directory records has this address now.");
const DATA_DIR: Flag<String> =
    Flag::value("data-dir", "PATH", "The directory for the recording.").completed_by(Completion::Files);
const BIND: Flag<IpAddr> = Flag::parsed(
    "bind",
    "IP",
    "an IP address",
    "The address at which the recording is read. Default: 127.0.0.1.",
);
const HTTP_PORT: Flag<u16> = Flag::number(
    "http-port",
    "PORT",
    "The port at which the recording is read; the next one is used too. Default: 4746.",
);
const LIST_EVERY: Flag<u64> =
    Flag::number("list-every", "SECONDS", "How often everything is listed, beside the stream. Default: 30.");
const LOG_LEVEL: Flag<tracing::Level> = Flag::parsed(
    "log-level",
    "LEVEL",
    "TRACE, DEBUG, INFO, WARN or ERROR",
    "TRACE, DEBUG, INFO, WARN or ERROR. Default: WARN.",
);

pub(super) static COMMAND: Command = Command {
    name: "record",
    aliases: &[],
    arguments: "",
    summary: "Record what happens in a running Nomad.",
    details: "Follows the cluster at -from, which is never written to, and keeps what happens there in a log of its own: nodes,\n\
              jobs, allocations, evaluations, deployments, namespaces and node pools. Until it is stopped the recording is\n\
              read at -bind and -http-port, by all commands that read: history, status -as-of, diff, blame, events, ui.\n\
              Each line says what was read; a gap is what could not be read any more. Started again it goes on.\n\
              The exit code is 1 when it cannot read or write. See docs/record.md.",
    flags: &[&[&FROM, &FROM_MOVED, &DATA_DIR, &BIND, &HTTP_PORT, &LIST_EVERY, &LOG_LEVEL], FROM_FLAGS],
    run: Run::Process(run),
};

fn run(call: Call) -> Outcome {
    call.no_arguments()?;
    let settings = settings(&call)?;
    let source = settings.recording.as_ref().map(|recording| recording.source.clone()).unwrap_or_default();
    let list_every = Duration::from_secs(call.args.parsed(&LIST_EVERY)?.unwrap_or(LIST_EVERY_SECS).max(1));
    let client = other_cluster::client(&call, &source)?;
    let (monitor, set_log_level) = log(&settings.log)?;
    let running = settings.clone();
    let sources = ConfigSources { read: Box::new(move || Ok(running.clone())), set_log_level };
    let started = |server: Option<&server::Server>| -> Beside {
        let Some(server) = server else { return Box::pin(std::future::pending()) };
        write_out(format!("==> Recording {source}. Read it with -address=http://{}\n", server.http));
        let log = ServerLog(server.control.clone());
        let recorder = Recorder::new(client, log, Settings { source: source.clone(), list_every }, show);
        Box::pin(async move {
            let Err(error) = recorder.run().await;
            anyhow::Error::new(error)
        })
    };
    agent::run(&settings, sources, &monitor, started)?;
    Ok(0)
}

/// One server that nobody joins and that runs nothing.
fn settings(call: &Call) -> Result<AgentSettings, Failure> {
    let required = |flag: &Flag<String>, value: Option<&str>| {
        let missing = || Failure::Usage(format!("-{} is required", flag.name()));
        value.filter(|value| !value.is_empty()).map(str::to_string).ok_or_else(missing)
    };
    let source = required(&FROM, call.args.value(&FROM))?;
    let data_dir = required(&DATA_DIR, call.args.value(&DATA_DIR))?;
    let port = call.args.parsed(&HTTP_PORT)?.unwrap_or(PORT);
    if port == 0 || port > u16::MAX - 2 {
        return Err(Failure::Usage(format!("-http-port: expected 1 to {}, got {port}", u16::MAX - 2)));
    }
    let mut settings = AgentSettings::dev();
    settings.data_dir = Some(absolute(Path::new(&data_dir))?);
    settings.name = "recorder".to_string();
    settings.bind_addr = call.args.parsed(&BIND)?.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    settings.ports = Ports { http: port, rpc: port + 1, serf: port + 2 };
    settings.log.level = call.args.parsed(&LOG_LEVEL)?.unwrap_or(tracing::Level::WARN);
    settings.client.enabled = false;
    settings.enable_debug = false;
    settings.server.num_schedulers = Some(0);
    let moved = call.args.switch(&FROM_MOVED);
    settings.recording = Some(RecordingSettings { source: source.trim_end_matches('/').to_string(), moved });
    Ok(settings)
}

fn absolute(path: &Path) -> anyhow::Result<PathBuf> {
    Ok(std::path::absolute(path)?)
}

/// `2026-01-02T15:04:05Z index 7: followed 2 events`.
fn show(report: Report) {
    let now = Timestamp::from_second(Timestamp::now().as_second()).unwrap_or_default();
    write_out(format!("{now} {report}\n"));
}

/// The log of the server in this process.
struct ServerLog(Control);

impl Log for ServerLog {
    fn state(&self) -> Arc<State> {
        self.0.state()
    }

    /// A command that may have taken effect is given again: what is known already is not recorded twice.
    async fn submit(&mut self, command: LogCommand) -> Result<(), LogError> {
        loop {
            let actor = Actor::Server("recorder".to_string());
            match self.0.submit(Request::unnamed(actor, command.clone())).await {
                Ok(_) => return Ok(()),
                Err(SubmitError::Busy | SubmitError::NotLeading | SubmitError::Unknown) => {
                    tokio::time::sleep(AGAIN).await;
                }
                Err(error @ (SubmitError::Rejected(_) | SubmitError::Refused(_))) => {
                    return Err(LogError(error.to_string()));
                }
            }
        }
    }
}
