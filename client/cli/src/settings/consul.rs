//! `consul`: the Consul agent beside this one.

use std::path::PathBuf;

use base::Duration;
use jobspec::ImpliedIdentity;
use jobspec::config::Section;

use super::unsupported::{Refusal, Refused};
use super::vault;
use crate::environment::Environment;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ConsulConfig {
    /// `HOST:PORT`, or with a scheme.
    pub address: String,
    pub token: String,
    /// Where the token stands, when it is not given itself.
    pub token_file: PathBuf,
    pub auth: String,
    pub namespace: String,
    pub timeout: Duration,
    pub ssl: bool,
    pub verify_ssl: bool,
    pub ca_file: PathBuf,
    pub cert_file: PathBuf,
    pub key_file: PathBuf,
    /// This agent registers itself.
    pub auto_advertise: bool,
    pub tags: Vec<String>,
    /// With which tasks log in.
    pub task_auth_method: String,
    /// With which services log in.
    pub service_auth_method: String,
    /// What the servers give services and tasks that name no identity of their own.
    pub service_identity: Option<ImpliedIdentity>,
    pub task_identity: Option<ImpliedIdentity>,
    pub client_service_name: String,
    pub client_http_check_name: String,
    pub server_service_name: String,
    pub server_http_check_name: String,
    pub server_rpc_check_name: String,
    pub server_serf_check_name: String,
    /// How often checks of this agent fail before Consul warns, and before it calls them critical; 0 for Consul's own.
    pub client_failures: Failures,
    pub server_failures: Failures,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Failures {
    pub before_warning: u32,
    pub before_critical: u32,
}

/// Keys that ask for what is not there, and the values that change nothing.
const ELSEWHERE: [Refusal; 2] = [("grpc_address", "", NO_PROXIES), ("grpc_ca_file", "", NO_PROXIES)];

const NO_PROXIES: &str = "no proxies of a service mesh run here";

/// Keys without effect: agents do not look for each other in Consul, and register what they advertise anyway.
const WITHOUT_EFFECT: [&str; 5] =
    ["allow_unauthenticated", "checks_use_advertise", "client_auto_join", "server_auto_join", "share_ssl"];

impl ConsulConfig {
    pub(super) fn usual() -> ConsulConfig {
        let text = str::to_string;
        ConsulConfig {
            address: text("127.0.0.1:8500"),
            token: String::new(),
            token_file: PathBuf::new(),
            auth: String::new(),
            namespace: String::new(),
            timeout: Duration::from_secs(5),
            ssl: false,
            verify_ssl: true,
            ca_file: PathBuf::new(),
            cert_file: PathBuf::new(),
            key_file: PathBuf::new(),
            auto_advertise: true,
            tags: Vec::new(),
            task_auth_method: text("nomad-workloads"),
            service_auth_method: text("nomad-workloads"),
            service_identity: None,
            task_identity: None,
            client_service_name: text("nomad-client"),
            client_http_check_name: text("Nomad Client HTTP Check"),
            server_service_name: text("nomad"),
            server_http_check_name: text("Nomad Server HTTP Check"),
            server_rpc_check_name: text("Nomad Server RPC Check"),
            server_serf_check_name: text("Nomad Server Serf Check"),
            client_failures: Failures::default(),
            server_failures: Failures::default(),
        }
    }

    /// What a block begins with: the variables that Consul's own program reads say it, else the defaults.
    pub(crate) fn of(environment: &Environment) -> ConsulConfig {
        let given = |name: &str, unless: String| match environment.of_systems(name) {
            "" => unless,
            text => text.to_string(),
        };
        let is = |name: &str, unless: bool| api::go_bool(environment.of_systems(name)).unwrap_or(unless);
        let path = |name: &str| PathBuf::from(environment.of_systems(name));
        let usual = ConsulConfig::usual();
        ConsulConfig {
            address: given("CONSUL_HTTP_ADDR", usual.address),
            token: given("CONSUL_HTTP_TOKEN", usual.token),
            token_file: path("CONSUL_HTTP_TOKEN_FILE"),
            auth: given("CONSUL_HTTP_AUTH", usual.auth),
            namespace: given("CONSUL_NAMESPACE", usual.namespace),
            ssl: is("CONSUL_HTTP_SSL", usual.ssl),
            verify_ssl: is("CONSUL_HTTP_SSL_VERIFY", usual.verify_ssl),
            ca_file: path("CONSUL_CACERT"),
            cert_file: path("CONSUL_CLIENT_CERT"),
            key_file: path("CONSUL_CLIENT_KEY"),
            ..usual
        }
    }

    /// With what this agent proves itself to Consul; empty for nothing.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn own_token(&self) -> anyhow::Result<String> {
        if !self.token.is_empty() || self.token_file.as_os_str().is_empty() {
            return Ok(self.token.clone());
        }
        match std::fs::read_to_string(&self.token_file) {
            Ok(text) => Ok(text.trim().to_string()),
            Err(error) => {
                anyhow::bail!("Error reading CONSUL_HTTP_TOKEN_FILE {}: {error}", self.token_file.display())
            }
        }
    }

    /// With a scheme.
    pub(crate) fn url(&self) -> String {
        match self.address.contains("://") {
            true => self.address.clone(),
            false => format!("{}://{}", if self.ssl { "https" } else { "http" }, self.address),
        }
    }
}

/// A later file adds to an earlier one; `enabled = false` takes all of it back.
pub(super) fn read(
    settings: &mut Option<ConsulConfig>,
    usual: &ConsulConfig,
    mut section: Section,
    refused: &mut Refused,
) {
    if vault::name_of(&mut section, refused) != "default" {
        refused.also(Err(
            section.wrong("consul: an agent has one Consul, with the name \"default\", in this release")
        ));
        return;
    }
    let mut enabled = true;
    refused.set(&mut section, "enabled", &mut enabled);
    if !enabled {
        *settings = None;
        return;
    }
    let consul = settings.get_or_insert_with(|| usual.clone());
    for (key, field) in [
        ("address", &mut consul.address),
        ("token", &mut consul.token),
        ("auth", &mut consul.auth),
        ("namespace", &mut consul.namespace),
        ("task_auth_method", &mut consul.task_auth_method),
        ("service_auth_method", &mut consul.service_auth_method),
        ("client_service_name", &mut consul.client_service_name),
        ("client_http_check_name", &mut consul.client_http_check_name),
        ("server_service_name", &mut consul.server_service_name),
        ("server_http_check_name", &mut consul.server_http_check_name),
        ("server_rpc_check_name", &mut consul.server_rpc_check_name),
        ("server_serf_check_name", &mut consul.server_serf_check_name),
    ] {
        refused.set(&mut section, key, field);
    }
    for (key, field) in [
        ("ca_file", &mut consul.ca_file),
        ("cert_file", &mut consul.cert_file),
        ("key_file", &mut consul.key_file),
    ] {
        refused.set(&mut section, key, field);
    }
    for (key, field) in [
        ("ssl", &mut consul.ssl),
        ("verify_ssl", &mut consul.verify_ssl),
        ("auto_advertise", &mut consul.auto_advertise),
    ] {
        refused.set(&mut section, key, field);
    }
    for (key, field) in [
        ("client_failures_before_warning", &mut consul.client_failures.before_warning),
        ("client_failures_before_critical", &mut consul.client_failures.before_critical),
        ("server_failures_before_warning", &mut consul.server_failures.before_warning),
        ("server_failures_before_critical", &mut consul.server_failures.before_critical),
    ] {
        refused.set(&mut section, key, field);
    }
    refused.set(&mut section, "timeout", &mut consul.timeout);
    if consul.timeout <= Duration::ZERO {
        refused.also(Err(section.wrong(format!("timeout = {}: expected more than 0s", consul.timeout))));
    }
    refused.list(&mut section, "tags", &mut consul.tags);
    for block in refused.sections(&mut section, "service_identity") {
        consul.service_identity = Some(vault::identity(block, refused));
    }
    for block in refused.sections(&mut section, "task_identity") {
        consul.task_identity = Some(vault::identity(block, refused));
    }
    for key in WITHOUT_EFFECT {
        let mut ignored: Option<bool> = None;
        refused.set_option(&mut section, key, &mut ignored);
    }
    refused.keys(&mut section, &ELSEWHERE);
    refused.done(section);
}
