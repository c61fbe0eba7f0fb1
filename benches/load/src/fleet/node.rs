//! What a node says of itself, and its heartbeat.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::Uuid;
use model::document::{
    DriverInfo, Map, Node, NodeCpuResources, NodeDiskResources, NodeMemoryResources, NodeResources,
};
use serde::Deserialize;
use wire::messages::{NodeRegisterRequest, NodeUpdateStatusRequest, WriteRequest, method};
use wire::{Bytes, RpcError};

use super::Shared;
use crate::job::RACKS;
use crate::options::ClusterOptions;

/// Of the answer to a registration or a heartbeat.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct BeatAnswer {
    #[serde(rename = "HeartbeatTTL")]
    ttl_ns: i64,
    #[serde(rename = "SignedIdentity")]
    identity: Option<String>,
}

/// What a node proves itself by: its secret, and then the identity that a server has signed. A server that signs any would
/// have to sign one with each heartbeat for a node that goes on without.
#[derive(Debug)]
pub(super) struct Credential(Mutex<Held>);

#[derive(Clone, Debug)]
struct Held {
    token: Arc<str>,
    /// The heartbeat with it, encoded.
    heartbeat: Bytes,
}

impl Credential {
    pub(super) fn new(id: &str, secret: &str, region: &str) -> Result<Credential, msgpack::Error> {
        Ok(Credential(Mutex::new(Held::new(id, secret, region)?)))
    }

    pub(super) fn token(&self) -> Arc<str> {
        Arc::clone(&self.held().token)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a heartbeat: the time before the next one has to have come.
    pub(super) async fn beat(&self, shared: &Shared, number: u32, id: &str) -> Result<Duration, RpcError> {
        let body = self.held().heartbeat.clone();
        let reply = shared.call_raw(number, method::NODE_UPDATE_STATUS, &body).await?;
        let answer: BeatAnswer = msgpack::from_slice(&reply)?;
        if let Some(identity) = answer.identity.filter(|identity| !identity.is_empty()) {
            *self.held() = Held::new(id, &identity, &shared.region)?;
        }
        // A server that grants nothing is asked again soon, but not at once.
        Ok(Duration::from_nanos(answer.ttl_ns.max(0) as u64).max(Duration::from_secs(1)))
    }
}

impl Held {
    fn new(id: &str, token: &str, region: &str) -> Result<Held, msgpack::Error> {
        let request = NodeUpdateStatusRequest {
            node_id: id.to_string(),
            status: "ready".to_string(),
            write: credentials(token, region),
            ..NodeUpdateStatusRequest::default()
        };
        Ok(Held { token: token.into(), heartbeat: msgpack::to_vec(&request)?.into() })
    }
}

pub(super) fn credentials(token: &str, region: &str) -> WriteRequest {
    WriteRequest { auth_token: token.to_string(), region: region.to_string(), ..WriteRequest::default() }
}

pub(super) fn registration(node: Node, region: &str) -> NodeRegisterRequest {
    let write = credentials(&node.secret_id, region);
    NodeRegisterRequest { node, create_node_pool: true, write, ..NodeRegisterRequest::default() }
}

fn texts(pairs: &[(&str, &str)]) -> Map<String, String> {
    let pairs = pairs.iter().map(|(key, value)| (key.to_string(), value.to_string()));
    Map(pairs.collect::<BTreeMap<_, _>>())
}

/// A node of one of 25 racks and four classes.
pub(super) fn description(id: Uuid, secret: Uuid, number: u32, pool: &str, options: &ClusterOptions) -> Node {
    let driver = DriverInfo { detected: true, healthy: true, ..DriverInfo::default() };
    let resources = NodeResources {
        cpu: NodeCpuResources {
            cpu_shares: i64::from(options.node_mhz),
            total_cpu_cores: 16,
            ..NodeCpuResources::default()
        },
        memory: NodeMemoryResources { memory_mb: i64::from(options.node_mib) },
        disk: NodeDiskResources { disk_mb: 100_000_000 },
        min_dynamic_port: 20_000,
        max_dynamic_port: 32_000,
        ..NodeResources::default()
    };
    let attributes = [
        ("kernel.name", "linux"),
        ("kernel.version", "6.1.0"),
        ("cpu.arch", "amd64"),
        ("os.name", "debian"),
        ("driver.mock_driver", "1"),
        ("nomad.version", "2.0.0"),
    ];
    Node {
        id: id.to_string(),
        secret_id: secret.to_string(),
        name: format!("{pool}-{number}"),
        datacenter: "dc1".to_string(),
        node_class: format!("class-{}", number % 4),
        node_pool: pool.to_string(),
        attributes: texts(&attributes),
        meta: texts(&[("rack", &format!("r{}", number % RACKS))]),
        drivers: Map([("mock_driver".to_string(), driver)].into()),
        node_resources: Some(resources),
        scheduling_eligibility: "eligible".to_string(),
        status: "initializing".to_string(),
        ..Node::default()
    }
}
