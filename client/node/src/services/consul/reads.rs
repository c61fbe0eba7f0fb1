//! What templates read from Consul, with blocking queries.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use serde_json::{Value, json};
use template::{ConsulKind, ConsulRead};

use super::Consul;
use super::client::{Call, ConsulError};
use crate::server::ServerError;

impl Consul {
    /// What a template reads with its task's token, or with the agent's if that is empty, in the shape that it shows, and the index of the answer, once that is above `min_index`.
    ///
    /// # Errors
    /// Consul's, or it is not reached.
    pub(crate) async fn read(
        &self,
        read: &ConsulRead,
        token: &str,
        min_index: u64,
        wait: Duration,
    ) -> Result<(Option<Value>, u64), ServerError> {
        let mut path = match read.kind {
            ConsulKind::Key | ConsulKind::Keys => vec!["kv"],
            ConsulKind::Service => vec!["health", "service", &read.name],
            ConsulKind::Services => vec!["catalog", "services"],
            ConsulKind::Nodes => vec!["catalog", "nodes"],
            ConsulKind::Node => vec!["catalog", "node", &read.name],
        };
        if matches!(read.kind, ConsulKind::Key | ConsulKind::Keys) {
            path.extend(read.name.split('/'));
        }
        let mut query = vec![];
        let mut add = |name, value: &str| {
            if !value.is_empty() {
                query.push((name, value.to_string()));
            }
        };
        add("dc", &read.datacenter);
        add("tag", &read.tag);
        add("near", &read.near);
        add("passing", if read.kind == ConsulKind::Service && read.passing_only { "true" } else { "" });
        add("recurse", if read.kind == ConsulKind::Keys { "true" } else { "" });
        if min_index > 0 {
            add("index", &min_index.to_string());
            add("wait", &format!("{}ms", wait.as_millis()));
        }
        let token = Some(token).filter(|token| !token.is_empty());
        // Consul adds up to a sixteenth.
        let wait = if min_index > 0 { wait + wait / 16 } else { Duration::ZERO };
        let call = Call { method: Method::GET, path: &path, query: &query, body: None, token, wait };
        let (found, index) = self.client.call(call).await.map_err(|error| match error {
            ConsulError::Unreached(why) | ConsulError::Unsigned(why) => ServerError::Unreachable(why),
            ConsulError::Refused { status: 403, .. } => ServerError::Denied(error.to_string()),
            ConsulError::Refused { status: 500.., .. } => ServerError::Unreachable(error.to_string()),
            ConsulError::Refused { .. } => ServerError::Refused(error.to_string()),
        })?;
        Ok((found.and_then(|found| shaped(read.kind, found)), index))
    }
}

fn shaped(kind: ConsulKind, found: Value) -> Option<Value> {
    let list = |found: Value| match found {
        Value::Array(items) => items,
        _ => Vec::new(),
    };
    match kind {
        ConsulKind::Key => list(found).into_iter().next().map(pair),
        ConsulKind::Keys => Some(list(found).into_iter().map(pair).collect()),
        ConsulKind::Service => Some(list(found).iter().map(instance).collect()),
        ConsulKind::Services => Some(
            found
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, tags)| json!({"Name": name, "Tags": tags}))
                .collect(),
        ),
        ConsulKind::Nodes => Some(found),
        ConsulKind::Node => {
            let services: Vec<Value> = found["Services"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(_, service)| service.clone())
                .collect();
            (!found.is_null()).then(|| json!({"Node": found["Node"], "Services": services}))
        }
    }
}

/// With its value as text.
fn pair(mut pair: Value) -> Value {
    let bytes = pair["Value"].as_str().and_then(|text| STANDARD.decode(text).ok()).unwrap_or_default();
    pair["Value"] = String::from_utf8_lossy(&bytes).into_owned().into();
    pair
}

/// As consul-template shows it.
fn instance(entry: &Value) -> Value {
    let (node, service) = (&entry["Node"], &entry["Service"]);
    let address = match service["Address"].as_str() {
        Some("") | None => &node["Address"],
        Some(_) => &service["Address"],
    };
    let statuses =
        || entry["Checks"].as_array().into_iter().flatten().filter_map(|check| check["Status"].as_str());
    let status = ["maintenance", "critical", "warning"]
        .into_iter()
        .find(|status| statuses().any(|own| own == *status))
        .unwrap_or("passing");
    json!({
        "Node": node["Node"], "NodeID": node["ID"], "NodeAddress": node["Address"],
        "NodeDatacenter": node["Datacenter"], "NodeMeta": node["Meta"], "Address": address, "ID": service["ID"],
        "Name": service["Service"], "Port": service["Port"], "Tags": service["Tags"],
        "ServiceMeta": service["Meta"], "Weights": service["Weights"], "Checks": entry["Checks"], "Status": status,
    })
}
