//! A check as a job asks for it.

use base::Duration;
use model::document::{CheckRestart, Service, ServiceCheck};
use sha2::{Digest, Sha256};

use super::address::Addresses;
use crate::task::environment::Environment;

/// A check as it is run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Check {
    pub id: String,
    pub name: String,
    /// The name of the allocation, as Nomad shows it.
    pub group: String,
    /// Empty for a service of the group.
    pub task: String,
    pub service: String,
    /// Its failure does no harm to a deployment.
    pub is_readiness: bool,
    pub interval: Duration,
    pub timeout: Duration,
    /// Before it has run for the first time.
    pub initial: &'static str,
    pub probe: Probe,
    pub restart: Option<Restart>,
    /// Of a service of provider consul.
    pub of_consul: bool,
    /// One that warns counts as one that passes.
    pub ignores_warnings: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Probe {
    Tcp {
        address: String,
    },
    Http(Box<HttpProbe>),
    /// `HOST:PORT/SERVICE`; Consul runs it.
    Grpc {
        target: String,
    },
    /// Run inside of a task, for Consul.
    Script(Script),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Script {
    pub task: String,
    pub command: String,
    pub args: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct HttpProbe {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
    pub skips_verification: bool,
}

/// When a check that fails has its task restarted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Restart {
    pub limit: u32,
    pub grace: Duration,
}

pub(super) const SUCCESS: &str = "success";
pub(super) const FAILURE: &str = "failure";
pub(super) const PENDING: &str = "pending";

/// # Errors
/// What of a check this node cannot do, whatever its addresses are.
pub(super) fn refused(check: &ServiceCheck, of_consul: bool) -> Result<(), String> {
    let no = |why: String| Err(format!("check {:?}: {why}", check.name));
    if of_consul {
        return refused_of_consul(check).or_else(no);
    }
    if !matches!(check.kind.as_str(), "tcp" | "http") {
        return no(format!("type {:?}: expected http or tcp with the provider nomad", check.kind));
    }
    if matches!(check.address_mode.as_str(), "alloc" | "alloc_ipv6") {
        let mode = &check.address_mode;
        return no(format!(
            "address_mode {mode:?}: the allocation has the network of the host; use \"host\""
        ));
    }
    times(check).or_else(no)?;
    for (key, given) in [
        ("success_before_passing", check.success_before_passing != 0),
        ("failures_before_critical", check.failures_before_critical != 0),
        ("failures_before_warning", check.failures_before_warning != 0),
        ("expose", check.expose),
        ("tls_server_name", !check.tls_server_name.is_empty()),
    ] {
        if given {
            return no(format!("{key}: the provider nomad has none"));
        }
    }
    Ok(())
}

fn times(check: &ServiceCheck) -> Result<(), String> {
    for (key, given) in [("interval", check.interval), ("timeout", check.timeout)] {
        if given.0.0 <= 0 {
            return Err(format!("{key}: expected a time"));
        }
    }
    Ok(())
}

fn refused_of_consul(check: &ServiceCheck) -> Result<(), String> {
    if !matches!(check.kind.as_str(), "tcp" | "http" | "grpc" | "script") {
        return Err(format!("type {:?}: expected http, tcp, grpc or script", check.kind));
    }
    if check.kind == "script" && check.command.is_empty() {
        return Err("command: a script check needs one".to_string());
    }
    if check.expose {
        return Err("expose: this node runs no proxies of Consul".to_string());
    }
    times(check)
}

impl Check {
    /// `service_name` has its variables filled in.
    pub(super) fn make(
        check: &ServiceCheck,
        service: &Service,
        service_name: &str,
        addresses: &Addresses<'_>,
        env: &Environment,
    ) -> Result<Check, String> {
        let no = |why: String| format!("check {:?}: {why}", check.name);
        let alloc = addresses.alloc;
        let label = if check.port_label.is_empty() { &service.port_label } else { &check.port_label };
        let label = env.replace(label);
        let mode = match (check.address_mode.as_str(), service.address.is_empty()) {
            ("", true) => "host",
            ("", false) => "auto",
            (given, _) => given,
        };
        let of_consul = service.provider != "nomad";
        let is_script = check.kind == "script";
        let (ip, port) = match is_script {
            true => (String::new(), 0),
            false => addresses.find(mode, &env.replace(&service.address), &label).map_err(no)?,
        };
        if port == 0 && !is_script {
            return Err(no("port: neither it nor its service has one".to_string()));
        }
        let ip = if ip.is_empty() { "127.0.0.1" } else { ip.as_str() };
        let host = if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") };
        let name = match env.replace(&check.name) {
            name if name.is_empty() => format!("service: {service_name:?} check"),
            name => name,
        };
        let on_update = if check.on_update.is_empty() { &service.on_update } else { &check.on_update };
        let restart = check.check_restart.as_ref().or(service.check_restart.as_ref());
        Ok(Check {
            id: id(check, &[&alloc.id, &alloc.task_group, addresses.task, service_name, &name, &label]),
            name,
            group: alloc.name.clone(),
            task: addresses.task.to_string(),
            service: service_name.to_string(),
            is_readiness: on_update == "ignore",
            interval: check.interval.0,
            timeout: check.timeout.0,
            initial: match check.initial_status.as_str() {
                "passing" => SUCCESS,
                "warning" | "critical" => FAILURE,
                _ => PENDING,
            },
            probe: match check.kind.as_str() {
                "tcp" => Probe::Tcp { address: host },
                "grpc" => Probe::Grpc { target: format!("{host}/{}", env.replace(&check.grpc_service)) },
                "script" => Probe::Script(script(check, service, addresses.task, env)),
                _ => Probe::Http(Box::new(http(check, &host, env))),
            },
            restart: restart.and_then(restart_of),
            of_consul,
            ignores_warnings: on_update == "ignore_warnings"
                || restart.is_some_and(|restart| restart.ignore_warnings),
        })
    }
}

/// In the task that the check names, or its service, or that the service belongs to.
fn script(check: &ServiceCheck, service: &Service, task: &str, env: &Environment) -> Script {
    let named = [check.task_name.as_str(), service.task_name.as_str(), task];
    Script {
        task: named.into_iter().find(|name| !name.is_empty()).unwrap_or_default().to_string(),
        command: env.replace(&check.command),
        args: check.args.iter().map(|text| env.replace(text)).collect(),
    }
}

fn http(check: &ServiceCheck, host: &str, env: &Environment) -> HttpProbe {
    let protocol = if check.protocol.is_empty() { "http" } else { &check.protocol };
    let path = env.replace(&check.path);
    let headers = check
        .header
        .iter()
        .flat_map(|(name, values)| values.iter().map(|value| (env.replace(name), env.replace(value))));
    HttpProbe {
        method: if check.method.is_empty() { "GET".to_string() } else { env.replace(&check.method) },
        url: format!("{protocol}://{host}/{}", path.trim_start_matches('/')),
        headers: headers.collect(),
        body: env.replace(&check.body),
        skips_verification: check.tls_skip_verify,
    }
}

/// The same for the same check, whichever agent runs it.
fn id(check: &ServiceCheck, whose: &[&str]) -> String {
    let (interval, timeout) = (check.interval.0.to_string(), check.timeout.0.to_string());
    let own = [
        &check.kind,
        &check.on_update,
        &check.address_mode,
        &interval,
        &timeout,
        &check.protocol,
        &check.path,
        &check.method,
    ];
    let mut hash = Sha256::new();
    for part in whose.iter().copied().chain(own.into_iter().map(String::as_str)) {
        // With its length, so that no two lists of parts are the same bytes.
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.update([u8::from(check.tls_skip_verify)]);
    format!("{:x}", hash.finalize())
}

fn restart_of(restart: &CheckRestart) -> Option<Restart> {
    let limit = u32::try_from(restart.limit).ok().filter(|limit| *limit > 0)?;
    Some(Restart { limit, grace: restart.grace.map_or(Duration::from_secs(1), |grace| grace.0) })
}
