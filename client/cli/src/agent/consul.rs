//! The Consul agent beside this one, and what this agent says of itself there.

use std::net::IpAddr;
use std::sync::Arc;

use ::node::services::consul::{Consul, ConsulSettings, Registration};
use serde_json::{Value, json};

use super::advertised;
use crate::settings::{AgentSettings, ConsulConfig};

/// How long services of tasks stay in Consul that this agent does not know.
const UNKNOWN_FOR: std::time::Duration = std::time::Duration::from_secs(60);

/// # Errors
/// A certificate or the file with the token cannot be read, or an address is none.
pub(super) fn open(settings: &AgentSettings) -> anyhow::Result<Option<Arc<Consul>>> {
    let Some(config) = &settings.consul else { return Ok(None) };
    let consul = Consul::new(ConsulSettings {
        address: config.url(),
        token: config.own_token()?,
        auth: config.auth.clone(),
        namespace: config.namespace.clone(),
        timeout: config.timeout.to_std(),
        task_auth_method: config.task_auth_method.clone(),
        service_auth_method: config.service_auth_method.clone(),
        unknown_for: UNKNOWN_FOR,
        ca_file: config.ca_file.clone(),
        cert_file: config.cert_file.clone(),
        key_file: config.key_file.clone(),
        skip_verify: !config.verify_ssl,
        own: if config.auto_advertise { own(settings, config)? } else { Vec::new() },
    });
    Ok(Some(consul.map_err(|why| anyhow::anyhow!("consul.{why}"))?))
}

/// The services that this agent is.
fn own(settings: &AgentSettings, config: &ConsulConfig) -> anyhow::Result<Vec<Registration>> {
    let mut own = Vec::new();
    let mut add = |role, name: &str, tag, given: Option<&str>, ip: IpAddr, port, check: &str| {
        let address = advertised(given, ip, port)?;
        own.push(registration(settings, config, role, name, tag, &address, check));
        anyhow::Ok(())
    };
    let (advertise, ports) = (&settings.advertise, &settings.ports);
    if settings.client.enabled {
        let (name, check) = (&config.client_service_name, &config.client_http_check_name);
        add("client", name, "http", advertise.http.as_deref(), settings.http_ip(), ports.http, check)?;
    }
    if settings.server.enabled {
        let name = &config.server_service_name;
        let (http, rpc, serf) = (settings.http_ip(), settings.rpc_ip(), settings.serf_ip());
        let check = &config.server_http_check_name;
        add("server", name, "http", advertise.http.as_deref(), http, ports.http, check)?;
        let check = &config.server_rpc_check_name;
        add("server", name, "rpc", advertise.rpc.as_deref(), rpc, ports.rpc, check)?;
        let check = &config.server_serf_check_name;
        add("server", name, "serf", advertise.serf.as_deref(), serf, ports.serf, check)?;
    }
    Ok(own)
}

fn registration(
    settings: &AgentSettings,
    config: &ConsulConfig,
    role: &str,
    name: &str,
    tag: &str,
    address: &str,
    check_name: &str,
) -> Registration {
    let (host, port) = address.rsplit_once(':').unwrap_or((address, ""));
    let id = format!("_nomad-{role}-{}-{name}-{tag}", settings.name);
    let check_id = format!("{id}-check");
    let mut check = json!({"CheckID": check_id, "Name": check_name, "Interval": "10s", "Timeout": "2s"});
    let failures = if role == "client" { config.client_failures } else { config.server_failures };
    for (key, count) in [
        ("FailuresBeforeWarning", failures.before_warning),
        ("FailuresBeforeCritical", failures.before_critical),
    ] {
        if count > 0 {
            check[key] = count.into();
        }
    }
    match tag {
        "http" => {
            let scheme = if settings.tls.http { "https" } else { "http" };
            check["HTTP"] = json!(format!("{scheme}://{address}/v1/agent/health?type={role}"));
            // The certificate is of the cluster's own authority, which Consul need not know.
            check["TLSSkipVerify"] = settings.tls.http.into();
        }
        _ => check["TCP"] = json!(address),
    }
    let tags: Vec<&str> = std::iter::once(tag).chain(config.tags.iter().map(String::as_str)).collect();
    let port: Value = port.parse::<u16>().unwrap_or_default().into();
    let document = json!({
        "ID": id, "Name": name, "Tags": tags, "Address": host.trim_matches(['[', ']']), "Port": port,
        "Meta": {"external-source": "nomad"}, "EnableTagOverride": false, "Checks": [check],
    });
    Registration { id, check_ids: vec![check_id], login: None, document }
}
