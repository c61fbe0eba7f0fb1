//! What a node says of itself, and its heartbeat.

use std::collections::BTreeMap;
use std::time::Duration;

use base::Uuid;
use model::document::{
    DriverInfo, Map, Node, NodeCpuResources, NodeDiskResources, NodeMemoryResources, NodeResources,
};
use serde::Deserialize;
use wire::RpcError;
use wire::messages::{NodeRegisterRequest, NodeUpdateStatusRequest, WriteRequest, method};

use super::Shared;
use crate::job::RACKS;
use crate::options::ClusterOptions;

/// The time before the next heartbeat has to have come.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Ttl {
    #[serde(rename = "HeartbeatTTL")]
    nanoseconds: i64,
}

/// A heartbeat, encoded once.
#[derive(Debug)]
pub(super) struct Heartbeat(Vec<u8>);

impl Heartbeat {
    pub(super) fn new(id: &str, secret: &str, region: &str) -> Result<Heartbeat, msgpack::Error> {
        let request = NodeUpdateStatusRequest {
            node_id: id.to_string(),
            status: "ready".to_string(),
            write: credentials(secret, region),
            ..NodeUpdateStatusRequest::default()
        };
        Ok(Heartbeat(msgpack::to_vec(&request)?))
    }

    pub(super) async fn send(&self, shared: &Shared, number: u32) -> Result<Duration, RpcError> {
        let reply = shared.call_raw(number, method::NODE_UPDATE_STATUS, &self.0).await?;
        let ttl: Ttl = msgpack::from_slice(&reply)?;
        // A server that grants nothing is asked again soon, but not at once.
        Ok(Duration::from_nanos(ttl.nanoseconds.max(0) as u64).max(Duration::from_secs(1)))
    }
}

pub(super) fn credentials(secret: &str, region: &str) -> WriteRequest {
    WriteRequest { auth_token: secret.to_string(), region: region.to_string(), ..WriteRequest::default() }
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
