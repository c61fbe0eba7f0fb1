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
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Probe {
    Tcp { address: String },
    Http(Box<HttpProbe>),
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
pub(super) fn refused(check: &ServiceCheck) -> Result<(), String> {
    let no = |why: String| Err(format!("check {:?}: {why}", check.name));
    if !matches!(check.kind.as_str(), "tcp" | "http") {
        return no(format!("type {:?}: expected http or tcp with the provider nomad", check.kind));
    }
    if matches!(check.address_mode.as_str(), "alloc" | "alloc_ipv6") {
        let mode = &check.address_mode;
        return no(format!(
            "address_mode {mode:?}: the allocation has the network of the host; use \"host\""
        ));
    }
    for (key, given) in [("interval", check.interval), ("timeout", check.timeout)] {
        if given.0.0 <= 0 {
            return no(format!("{key}: expected a time"));
        }
    }
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
        let (ip, port) = addresses.find(mode, &env.replace(&service.address), &label).map_err(no)?;
        if port == 0 {
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
                _ => Probe::Http(Box::new(http(check, &host, env))),
            },
            restart: restart.and_then(restart_of),
        })
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
