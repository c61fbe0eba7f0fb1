use std::io::IsTerminal;
use std::sync::Mutex;

use anyhow::Context;
use monitor::{LogFile, Monitor};
use tracing::Level;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt;

use crate::agent::{self, ConfigSources};
use crate::call::{Call, Command, Outcome, Run};
use crate::command::version;
use crate::output::{write_err, write_out};
use crate::settings::{self, AGENT_FLAGS, AgentSettings, LogSettings, SYSTEM_FLAGS, UNSUPPORTED_FLAGS};

pub(super) static COMMAND: Command = Command {
    name: "agent",
    aliases: &[],
    arguments: "",
    summary: "Run a server, a client, or both.",
    details: "To try it: sojourn agent -dev",
    flags: &[AGENT_FLAGS, SYSTEM_FLAGS, UNSUPPORTED_FLAGS[0], UNSUPPORTED_FLAGS[1]],
    run: Run::Process(run),
};

fn run(call: Call) -> Outcome {
    call.no_arguments()?;
    let Call { program, args, environment, .. } = call;
    let settings = settings::read(&args, &environment)?;
    let (log, set_log_level) = log(&settings.log)?;
    write_out(banner(&program, &settings));
    for note in &settings.notes {
        write_err(format!("Warning: {note}"));
    }
    let read = Box::new(move || settings::read(&args, &environment));
    let sources = ConfigSources { read, set_log_level };
    let started = |_: Option<&server::Server>| -> agent::Beside {
        write_out(started(&program, &settings));
        Box::pin(std::future::pending())
    };
    agent::run(&settings, sources, &log, started)?;
    Ok(0)
}

pub(in crate::command) type SetLogLevel = Box<dyn Fn(Level) + Send + Sync>;

/// Prints the log from here on, and publishes it to the subscribers of `monitor`. Also returns what changes the level of
/// what is printed.
pub(in crate::command) fn log(settings: &LogSettings) -> anyhow::Result<(Monitor, SetLogLevel)> {
    let mut monitor = Monitor::default();
    let mut file = None;
    if let Some(wanted) = settings.log_file() {
        let path = wanted.file();
        let opened = LogFile::open(wanted).with_context(|| format!("log_file {}", path.display()))?;
        file = Some(Mutex::new(opened));
        monitor = monitor.with_file(path);
    }
    let (shown, level) = reload::Layer::new(worthwhile(settings.level));
    let set_level = Box::new(move |wanted| {
        if let Err(error) = level.reload(worthwhile(wanted)) {
            tracing::error!(%error, "the log level stays as it is");
        }
    });
    let place = settings.include_location;
    let lines = tracing_subscriber::fmt::layer()
        .with_file(place)
        .with_line_number(place)
        .with_ansi(std::io::stdout().is_terminal());
    let written = file.map(|file| {
        tracing_subscriber::fmt::layer()
            .with_file(place)
            .with_line_number(place)
            .with_ansi(false)
            .with_writer(file)
    });
    let followed = tracing_subscriber::registry().with(monitor.layer());
    match settings.json {
        // The file first: the lines of both share what was made of a span, and the file wants no colours.
        true => {
            let written = written.map(|file| file.json());
            followed.with(Layer::and_then(written, lines.json()).with_filter(shown)).init();
        }
        false => followed.with(Layer::and_then(written, lines).with_filter(shown)).init(),
    }
    Ok((monitor, set_level))
}

fn worthwhile(level: Level) -> Targets {
    monitor::worthwhile(LevelFilter::from_level(level))
}

/// The configuration that is printed at the start.
fn banner(program: &str, settings: &AgentSettings) -> String {
    let names: Vec<_> = settings.files.iter().map(|file| file.display().to_string()).collect();
    let loaded = match names.as_slice() {
        [] => "==> No configuration files loaded".to_string(),
        names => format!("==> Loaded configuration from {}", names.join(", ")),
    };
    let address = |ip: std::net::IpAddr, port| std::net::SocketAddr::new(ip, port).to_string();
    let http = address(settings.http_ip(), settings.ports.http);
    let rpc = address(settings.rpc_ip(), settings.ports.rpc);
    let serf = address(settings.serf_ip(), settings.ports.serf);
    let entries = [
        ("Bind Addrs", format!("HTTP: {http}; RPC: {rpc}; Serf: {serf}")),
        ("Client", settings.client.enabled.to_string()),
        ("Data Dir", data_dir(settings)),
        ("Log Level", settings.log.level.to_string()),
        ("Region", format!("{} (DC: {})", settings.region, settings.datacenter)),
        ("Server", settings.server.enabled.to_string()),
        ("Version", version::text(program).lines().next().unwrap_or_default().to_string()),
    ];
    let width = entries.iter().map(|(key, _)| key.len()).max().unwrap_or(0);
    let block: String = entries.iter().map(|(key, value)| format!("    {key:>width$}: {value}\n")).collect();
    format!("{loaded}\n==> Starting Sojourn agent...\n==> Sojourn agent configuration:\n\n{block}\n")
}

fn data_dir(settings: &AgentSettings) -> String {
    match &settings.data_dir {
        Some(dir) => dir.display().to_string(),
        None => "(none: state is not persistent)".to_string(),
    }
}

/// Printed when the agent runs; for a development agent with commands to try.
fn started(program: &str, settings: &AgentSettings) -> String {
    let end = "==> Sojourn agent started! Log data will stream in below:\n\n";
    if !settings.dev {
        return end.to_string();
    }
    let http = std::net::SocketAddr::new(settings.http_ip(), settings.ports.http).to_string();
    let scheme = if settings.tls.http { "https" } else { "http" };
    let address = match http.as_str() {
        "127.0.0.1:4646" if !settings.tls.http => String::new(),
        http => format!("export NOMAD_ADDR={scheme}://{http}\n    "),
    };
    format!(
        "==> To try it, in another terminal:\n\n    {address}{program} run examples/hello.nomad.hcl\n    \
         {program} events\n    {program} history alloc ID\n\n{end}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_development_agent_says_what_to_try() {
        let mut settings = AgentSettings::dev();
        let text = banner("sojourn", &settings);
        assert!(
            text.starts_with("==> No configuration files loaded\n==> Starting Sojourn agent...\n"),
            "{text}"
        );
        assert!(
            text.contains(
                "\n    Bind Addrs: HTTP: 127.0.0.1:4646; RPC: 127.0.0.1:4647; Serf: 127.0.0.1:4648\n"
            ),
            "{text}"
        );
        let text = started("sojourn", &settings);
        assert!(text.contains("    sojourn run examples/hello.nomad.hcl\n    sojourn events\n"), "{text}");
        settings.ports.http = 5646;
        assert!(started("sojourn", &settings).contains("    export NOMAD_ADDR=http://127.0.0.1:5646\n"));
        settings.dev = false;
        assert!(started("sojourn", &settings).starts_with("==> Sojourn agent started!"));
    }
}
