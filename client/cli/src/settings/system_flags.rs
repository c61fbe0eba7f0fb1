//! Flags of `agent` that are about Consul and Vault. One that is given stands for the block.

use base::Duration;
use jobspec::ImpliedIdentity;
use node::vault::DEFAULT;

use super::AgentSettings;
use super::consul::ConsulConfig;
use super::vault::VaultConfig;
use crate::flags::{Args, Flag, FlagList};

const fn text(name: &'static str, what: &'static str, help: &'static str) -> Flag<String> {
    Flag::value(name, what, help)
}

const CONSUL_ADDRESS: Flag<String> = text("consul-address", "HOST:PORT", "The Consul agent beside this one.");
const CONSUL_TOKEN: Flag<String> = text("consul-token", "SECRET", "The token of this agent in Consul.");
const CONSUL_AUTH: Flag<String> = text("consul-auth", "USER:PASSWORD", "For a proxy in front of Consul.");
const CONSUL_SSL: Flag<bool> = Flag::switch("consul-ssl", "Consul is reached over HTTPS.");
const CONSUL_VERIFY_SSL: Flag<bool> =
    Flag::switch("consul-verify-ssl", "Consul's certificate has to be right. Default: true.");
const CONSUL_CA_FILE: Flag<String> = text("consul-ca-file", "PATH", "The authority of Consul's certificate.");
const CONSUL_CERT_FILE: Flag<String> = text("consul-cert-file", "PATH", "The certificate to show to Consul.");
const CONSUL_KEY_FILE: Flag<String> = text("consul-key-file", "PATH", "Its key.");
const CONSUL_AUTO_ADVERTISE: Flag<bool> =
    Flag::switch("consul-auto-advertise", "The agent registers itself in Consul. Default: true.");
const CONSUL_CLIENT_SERVICE_NAME: Flag<String> =
    text("consul-client-service-name", "NAME", "What nodes are called in Consul. Default: nomad-client.");
const CONSUL_CLIENT_HTTP_CHECK_NAME: Flag<String> =
    text("consul-client-http-check-name", "NAME", "The name of the check of a node's HTTP API in Consul.");
const CONSUL_CLIENT_FAILURES_BEFORE_CRITICAL: Flag<u32> = Flag::number(
    "consul-client-failures-before-critical",
    "N",
    "How often checks of a node fail before Consul calls them critical.",
);
const CONSUL_CLIENT_FAILURES_BEFORE_WARNING: Flag<u32> = Flag::number(
    "consul-client-failures-before-warning",
    "N",
    "How often checks of a node fail before Consul warns.",
);
const CONSUL_SERVER_SERVICE_NAME: Flag<String> =
    text("consul-server-service-name", "NAME", "What servers are called in Consul. Default: nomad.");
const CONSUL_SERVER_HTTP_CHECK_NAME: Flag<String> =
    text("consul-server-http-check-name", "NAME", "The name of the check of a server's HTTP API in Consul.");
const CONSUL_SERVER_RPC_CHECK_NAME: Flag<String> =
    text("consul-server-rpc-check-name", "NAME", "The name of the check of a server's RPC in Consul.");
const CONSUL_SERVER_SERF_CHECK_NAME: Flag<String> =
    text("consul-server-serf-check-name", "NAME", "The name of the check of a server's gossip in Consul.");
const CONSUL_SERVER_FAILURES_BEFORE_CRITICAL: Flag<u32> = Flag::number(
    "consul-server-failures-before-critical",
    "N",
    "How often checks of a server fail before Consul calls them critical.",
);
const CONSUL_SERVER_FAILURES_BEFORE_WARNING: Flag<u32> = Flag::number(
    "consul-server-failures-before-warning",
    "N",
    "How often checks of a server fail before Consul warns.",
);
const VAULT_ENABLED: Flag<bool> = Flag::switch("vault-enabled", "Tasks log in to Vault.");
const VAULT_ADDRESS: Flag<String> = text("vault-address", "URL", "Where Vault is.");
const VAULT_NAMESPACE: Flag<String> = text("vault-namespace", "NAME", "The namespace in Vault.");
const VAULT_CREATE_FROM_ROLE: Flag<String> =
    text("vault-create-from-role", "NAME", "The role in Vault of tasks that name none.");
const VAULT_CA_FILE: Flag<String> = text("vault-ca-file", "PATH", "The authority of Vault's certificate.");
const VAULT_CA_PATH: Flag<String> = text("vault-ca-path", "PATH", "The same, in a directory.");
const VAULT_CERT_FILE: Flag<String> = text("vault-cert-file", "PATH", "The certificate to show to Vault.");
const VAULT_KEY_FILE: Flag<String> = text("vault-key-file", "PATH", "Its key.");
const VAULT_TLS_SERVER_NAME: Flag<String> =
    text("vault-tls-server-name", "NAME", "The name in Vault's certificate.");
const VAULT_TLS_SKIP_VERIFY: Flag<bool> =
    Flag::switch("vault-tls-skip-verify", "Any certificate of Vault will do.");

pub(crate) const SYSTEM_FLAGS: FlagList = &[
    &CONSUL_ADDRESS,
    &CONSUL_TOKEN,
    &CONSUL_AUTH,
    &CONSUL_SSL,
    &CONSUL_VERIFY_SSL,
    &CONSUL_CA_FILE,
    &CONSUL_CERT_FILE,
    &CONSUL_KEY_FILE,
    &CONSUL_AUTO_ADVERTISE,
    &CONSUL_CLIENT_SERVICE_NAME,
    &CONSUL_CLIENT_HTTP_CHECK_NAME,
    &CONSUL_CLIENT_FAILURES_BEFORE_CRITICAL,
    &CONSUL_CLIENT_FAILURES_BEFORE_WARNING,
    &CONSUL_SERVER_SERVICE_NAME,
    &CONSUL_SERVER_HTTP_CHECK_NAME,
    &CONSUL_SERVER_RPC_CHECK_NAME,
    &CONSUL_SERVER_SERF_CHECK_NAME,
    &CONSUL_SERVER_FAILURES_BEFORE_CRITICAL,
    &CONSUL_SERVER_FAILURES_BEFORE_WARNING,
    &VAULT_ENABLED,
    &VAULT_ADDRESS,
    &VAULT_NAMESPACE,
    &VAULT_CREATE_FROM_ROLE,
    &VAULT_CA_FILE,
    &VAULT_CA_PATH,
    &VAULT_CERT_FILE,
    &VAULT_KEY_FILE,
    &VAULT_TLS_SERVER_NAME,
    &VAULT_TLS_SKIP_VERIFY,
];

/// Merges what is given over what files say.
///
/// # Errors
/// A value that is none.
pub(super) fn merge(settings: &mut AgentSettings, args: &Args) -> anyhow::Result<()> {
    let given = |prefix: &str| {
        let mut own = SYSTEM_FLAGS.iter().filter(|flag| flag.spec().name.starts_with(prefix));
        own.any(|flag| args.last(*flag).is_some())
    };
    if given("consul-") {
        consul(settings.consul.get_or_insert_with(|| settings.consul_usual.clone()), args)?;
    }
    if given("vault-") {
        vault(settings.vaults.entry(DEFAULT.to_string()).or_insert_with(VaultConfig::usual), args);
    }
    Ok(())
}

fn consul(consul: &mut ConsulConfig, args: &Args) -> anyhow::Result<()> {
    texts(
        args,
        [
            (&CONSUL_ADDRESS, &mut consul.address),
            (&CONSUL_TOKEN, &mut consul.token),
            (&CONSUL_AUTH, &mut consul.auth),
            (&CONSUL_CLIENT_SERVICE_NAME, &mut consul.client_service_name),
            (&CONSUL_CLIENT_HTTP_CHECK_NAME, &mut consul.client_http_check_name),
            (&CONSUL_SERVER_SERVICE_NAME, &mut consul.server_service_name),
            (&CONSUL_SERVER_HTTP_CHECK_NAME, &mut consul.server_http_check_name),
            (&CONSUL_SERVER_RPC_CHECK_NAME, &mut consul.server_rpc_check_name),
            (&CONSUL_SERVER_SERF_CHECK_NAME, &mut consul.server_serf_check_name),
        ],
    );
    texts(
        args,
        [
            (&CONSUL_CA_FILE, &mut consul.ca_file),
            (&CONSUL_CERT_FILE, &mut consul.cert_file),
            (&CONSUL_KEY_FILE, &mut consul.key_file),
        ],
    );
    switches(
        args,
        [
            (&CONSUL_SSL, &mut consul.ssl),
            (&CONSUL_VERIFY_SSL, &mut consul.verify_ssl),
            (&CONSUL_AUTO_ADVERTISE, &mut consul.auto_advertise),
        ],
    );
    for (flag, field) in [
        (&CONSUL_CLIENT_FAILURES_BEFORE_WARNING, &mut consul.client_failures.before_warning),
        (&CONSUL_CLIENT_FAILURES_BEFORE_CRITICAL, &mut consul.client_failures.before_critical),
        (&CONSUL_SERVER_FAILURES_BEFORE_WARNING, &mut consul.server_failures.before_warning),
        (&CONSUL_SERVER_FAILURES_BEFORE_CRITICAL, &mut consul.server_failures.before_critical),
    ] {
        *field = args.parsed(flag)?.unwrap_or(*field);
    }
    Ok(())
}

fn vault(vault: &mut VaultConfig, args: &Args) {
    texts(
        args,
        [
            (&VAULT_ADDRESS, &mut vault.address),
            (&VAULT_NAMESPACE, &mut vault.namespace),
            (&VAULT_CREATE_FROM_ROLE, &mut vault.create_from_role),
            (&VAULT_TLS_SERVER_NAME, &mut vault.tls_server_name),
        ],
    );
    texts(
        args,
        [
            (&VAULT_CA_FILE, &mut vault.ca_file),
            (&VAULT_CA_PATH, &mut vault.ca_path),
            (&VAULT_CERT_FILE, &mut vault.cert_file),
            (&VAULT_KEY_FILE, &mut vault.key_file),
        ],
    );
    switches(
        args,
        [(&VAULT_ENABLED, &mut vault.enabled), (&VAULT_TLS_SKIP_VERIFY, &mut vault.tls_skip_verify)],
    );
}

/// Texts and paths that are given take the place of those that are there.
fn texts<const N: usize, T: for<'a> From<&'a str>>(args: &Args, fields: [(&Flag<String>, &mut T); N]) {
    for (flag, field) in fields {
        if let Some(given) = args.value(flag) {
            *field = given.into();
        }
    }
}

fn switches<const N: usize>(args: &Args, fields: [(&Flag<bool>, &mut bool); N]) {
    for (flag, field) in fields {
        *field = args.given_switch(flag).unwrap_or(*field);
    }
}

/// What `-dev-consul` means: a Consul in development beside this agent.
pub(super) fn dev_consul(usual: &ConsulConfig) -> ConsulConfig {
    let identity = dev_identity("consul.io");
    ConsulConfig { service_identity: Some(identity.clone()), task_identity: Some(identity), ..usual.clone() }
}

/// What `-dev-vault` means: a Vault in development beside this agent.
pub(super) fn dev_vault() -> VaultConfig {
    VaultConfig {
        enabled: true,
        address: "http://localhost:8200".to_string(),
        default_identity: Some(dev_identity("vault.io")),
        ..VaultConfig::usual()
    }
}

fn dev_identity(audience: &str) -> ImpliedIdentity {
    let ttl = Duration::from_secs(60 * 60);
    ImpliedIdentity { audience: vec![audience.to_string()], ttl, ..ImpliedIdentity::default() }
}
