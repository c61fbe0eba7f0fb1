//! A service and its checks in the words of Consul's API.

use std::collections::BTreeMap;

use base::Duration;
use model::document::{Service, ServiceCheck};
use serde_json::{Value, json};
use wire::messages::ServiceRegistration;

use super::Registration;
use crate::services::check::{Check, Probe};
use crate::task::environment::Environment;

/// What the ids of checks begin with.
pub(super) const CHECK_PREFIX: &str = "_nomad-check-";

/// How much later than its interval a script may write down how it went.
const TTL_BUFFER: Duration = Duration::from_secs(31);

pub(super) fn check_id(check: &Check) -> String {
    format!("{CHECK_PREFIX}{}", check.id)
}

/// `known` is the same instance in the words of the servers.
pub(in crate::services) fn registration(
    service: &Service,
    known: &ServiceRegistration,
    checks: &[Check],
    is_canary: bool,
    env: &Environment,
) -> Registration {
    let given =
        if is_canary && !service.canary_meta.is_empty() { &service.canary_meta } else { &service.meta };
    let mut meta: BTreeMap<String, String> =
        given.iter().map(|(key, value)| (env.replace(key), env.replace(value))).collect();
    meta.insert("external-source".to_string(), "nomad".to_string());
    let documents: Vec<Value> =
        service.checks.iter().zip(checks).map(|(given, check)| check_document(given, check, env)).collect();
    let mut document = json!({
        "ID": known.id, "Name": known.service_name, "Tags": known.tags.0, "Address": known.address,
        "Port": known.port, "Meta": meta, "EnableTagOverride": service.enable_tag_override, "Checks": documents,
    });
    if !service.kind.is_empty() {
        document["Kind"] = json!(service.kind);
    }
    if let Some(weights) = &service.weights {
        document["Weights"] = json!({"Passing": weights.passing, "Warning": weights.warning});
    }
    if !service.tagged_addresses.is_empty() {
        let tagged = service.tagged_addresses.iter();
        document["TaggedAddresses"] = tagged
            .map(|(name, place)| (name.clone(), tagged_address(&env.replace(place), known.port)))
            .collect::<serde_json::Map<_, _>>()
            .into();
    }
    Registration {
        id: known.id.clone(),
        check_ids: checks.iter().map(check_id).collect(),
        login: None,
        document,
    }
}

/// `HOST:PORT`, or an address that has the port of the service.
fn tagged_address(place: &str, port: i64) -> Value {
    match place.parse::<std::net::SocketAddr>() {
        Ok(socket) => json!({"Address": socket.ip().to_string(), "Port": socket.port()}),
        Err(_) => json!({"Address": place, "Port": port}),
    }
}

fn check_document(given: &ServiceCheck, check: &Check, env: &Environment) -> Value {
    let mut document = json!({"CheckID": check_id(check), "Name": check.name});
    match &check.probe {
        Probe::Script(_) => {
            document["TTL"] = Duration(check.interval.0.saturating_add(TTL_BUFFER.0)).to_string().into();
        }
        Probe::Tcp { address } => document["TCP"] = json!(address),
        Probe::Grpc { target } => {
            document["GRPC"] = json!(target);
            document["GRPCUseTLS"] = given.grpc_use_tls.into();
        }
        Probe::Http(http) => {
            let mut headers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
            for (name, value) in &http.headers {
                headers.entry(name).or_default().push(value);
            }
            document["HTTP"] = json!(http.url);
            document["Method"] = json!(http.method);
            document["Header"] = json!(headers);
            if !http.body.is_empty() {
                document["Body"] = json!(http.body);
            }
        }
    }
    if !matches!(check.probe, Probe::Script(_)) {
        document["Interval"] = json!(check.interval.to_string());
        document["Timeout"] = json!(check.timeout.to_string());
    }
    for (key, value) in [
        ("Status", given.initial_status.clone()),
        ("Notes", env.replace(&given.notes)),
        ("TLSServerName", env.replace(&given.tls_server_name)),
    ] {
        if !value.is_empty() {
            document[key] = value.into();
        }
    }
    if given.tls_skip_verify {
        document["TLSSkipVerify"] = true.into();
    }
    for (key, value) in [
        ("SuccessBeforePassing", given.success_before_passing),
        ("FailuresBeforeCritical", given.failures_before_critical),
        ("FailuresBeforeWarning", given.failures_before_warning),
    ] {
        if value != 0 {
            document[key] = value.into();
        }
    }
    document
}
