//! What the host of this agent looks like, for whoever has to find out why it behaves as it does.

use std::path::Path;

use axum::Router;
use axum::extract::State as With;
use axum::http::StatusCode;
use axum::routing::get;
use model::document::Map;

use api::{DiskUsage, HostData, HostDataResponse};

use crate::answer::{self, Answer};
use crate::app_state::AppState;
use crate::error::Failure;
use crate::request::Call;

/// A variable whose name holds one of these may be a secret.
const SECRET_WORDS: [&str; 6] = ["TOKEN", "SECRET", "PASSWORD", "KEY", "LICENSE", "CREDENTIAL"];

pub(super) fn router() -> Router<AppState> {
    Router::new().route("/v1/agent/host", get(host))
}

/// As in Nomad, only an agent that may be debugged tells, as long as there is no access control.
async fn host(With(server): With<AppState>, call: Call) -> Answer {
    if !server.agent.debug {
        return Err(Failure::new(StatusCode::FORBIDDEN, "Permission denied"));
    }
    let given = |name| call.params.get(name).unwrap_or_default();
    let (other_node, other_server) = (given("node_id"), given("server_id"));
    if !other_node.is_empty() && !other_server.is_empty() {
        return Err(Failure::invalid("Cannot target node and server simultaneously"));
    }
    let own_node = server.agent.node.map(|node| node.to_string()).unwrap_or_default();
    let own_server = [server.agent.name.clone(), format!("{}.{}", server.agent.name, server.agent.region)];
    let is_own = (other_node.is_empty() || other_node == own_node)
        && (other_server.is_empty() || own_server.iter().any(|own| own == other_server));
    if !is_own {
        return Err(Failure::unsupported("`agent/host` of another agent is"));
    }
    let agent_id = if own_node.is_empty() { server.agent.server.to_string() } else { own_node };
    let host_data = tokio::task::spawn_blocking(host_data).await?;
    Ok(answer::json(&HostDataResponse { agent_id, host_data: Some(host_data) }))
}

fn host_data() -> HostData {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    HostData {
        os: read("/proc/version").trim().to_string(),
        network: interfaces().into(),
        resolv_conf: read("/etc/resolv.conf"),
        hosts: read("/etc/hosts"),
        environment: std::env::vars_os()
            .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
            .map(|(name, value)| (name.clone(), shown(&name, value)))
            .collect(),
        disk: std::iter::once("/").filter_map(|at| Some((at.to_string(), usage(Path::new(at))?))).collect(),
    }
}

fn shown(name: &str, value: String) -> String {
    let name = name.to_uppercase();
    if SECRET_WORDS.iter().any(|word| name.contains(word)) { "<redacted>".to_string() } else { value }
}

/// Each network interface with what the kernel says of it.
fn interfaces() -> Vec<Map<String, String>> {
    let Ok(folder) = std::fs::read_dir("/sys/class/net") else { return Vec::new() };
    let mut names: Vec<String> =
        folder.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    let described = |name: String| {
        let fact = |fact: &str| {
            let text = std::fs::read_to_string(format!("/sys/class/net/{name}/{fact}")).unwrap_or_default();
            (fact.to_string(), text.trim().to_string())
        };
        [("name".to_string(), name.clone()), fact("address"), fact("mtu"), fact("operstate")]
            .into_iter()
            .collect()
    };
    names.into_iter().map(described).collect()
}

fn usage(at: &Path) -> Option<DiskUsage> {
    let disk = rustix::fs::statvfs(at).ok()?;
    let mib = |blocks: u64| (blocks.saturating_mul(disk.f_frsize) >> 20) as i64;
    Some(DiskUsage { disk_mb: mib(disk.f_blocks), used_mb: mib(disk.f_blocks.saturating_sub(disk.f_bfree)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_a_secret_is_not_shown() {
        for name in ["NOMAD_TOKEN", "aws_secret_access_key", "DB_PASSWORD"] {
            assert_eq!(shown(name, "x".to_string()), "<redacted>");
        }
        assert_eq!(shown("HOME", "/root".to_string()), "/root");
    }
}
