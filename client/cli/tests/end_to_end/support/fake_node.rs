//! Fake nodes that speak the node RPC: the test decides what they report, and when.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use base::Uuid;
use model::document::{
    Allocation, DriverInfo, Node, NodeCpuResources, NodeDiskResources, NodeMemoryResources, NodeResources,
};
use tokio::task::JoinHandle;
use wire::messages::{
    AllocUpdateRequest, GenericResponse, NodeClientAllocsResponse, NodeRegisterRequest, NodeSpecificRequest,
    NodeUpdateResponse, NodeUpdateStatusRequest, QueryOptions, WriteRequest, method,
};
use wire::{Bytes, Connection, Handler, Limits, Opening, RemoteError, RpcError, RpcSecurity};

const CALL_MAX: Duration = Duration::from_secs(60);

/// Far below the shortest time a server grants.
const HEARTBEAT_EVERY: Duration = Duration::from_millis(200);

/// Servers do not call fake nodes.
struct NoRequests;

impl Handler for NoRequests {
    async fn call(&self, _: &Connection, method: &str, _: Bytes) -> Result<Vec<u8>, RemoteError> {
        Err(format!("{method} was not expected").into())
    }

    async fn stream(&self, _: &Connection, method: &str, opening: Opening) -> Result<(), RpcError> {
        opening.refuse(format!("{method} was not expected")).await
    }
}

/// A node that reports what a test wants it to.
#[derive(Clone)]
pub struct FakeNode {
    node: Node,
    connection: Connection,
}

impl FakeNode {
    /// Connects without registering.
    pub async fn connect(rpc: SocketAddr, datacenter: &str) -> FakeNode {
        let connection =
            wire::dial(rpc, &RpcSecurity::default(), Arc::new(NoRequests), Limits::NODE, CALL_MAX)
                .await
                .unwrap();
        FakeNode { node: description(datacenter), connection }
    }

    pub fn id(&self) -> &str {
        &self.node.id
    }

    pub async fn register(&self) -> Result<NodeUpdateResponse, RpcError> {
        let request =
            NodeRegisterRequest { node: self.node.clone(), write: self.credentials(), ..Default::default() };
        self.connection.call(method::NODE_REGISTER, &request, CALL_MAX).await
    }

    pub async fn heartbeat(&self) -> Result<NodeUpdateResponse, RpcError> {
        let request = NodeUpdateStatusRequest {
            node_id: self.node.id.clone(),
            status: "ready".to_string(),
            write: self.credentials(),
            ..Default::default()
        };
        self.connection.call(method::NODE_UPDATE_STATUS, &request, CALL_MAX).await
    }

    /// Sends heartbeats until the result is dropped.
    pub fn keep_sending_heartbeats(&self) -> Heartbeats {
        let node = self.clone();
        Heartbeats(tokio::spawn(async move {
            loop {
                node.heartbeat().await.unwrap();
                tokio::time::sleep(HEARTBEAT_EVERY).await;
            }
        }))
    }

    /// The allocations assigned to it.
    pub async fn assigned(&self) -> BTreeMap<String, u64> {
        self.assigned_after(0, Duration::ZERO).await.1
    }

    /// The index of the answer, and its allocations, once there is news, or after that time.
    pub async fn assigned_after(&self, index: u64, time: Duration) -> (u64, BTreeMap<String, u64>) {
        let query = QueryOptions {
            min_query_index: index,
            max_query_time: base::Duration::from_millis(time.as_millis() as i64).into(),
            ..Default::default()
        };
        let request = NodeSpecificRequest {
            node_id: self.node.id.clone(),
            secret_id: self.node.secret_id.clone(),
            query,
        };
        let answer: NodeClientAllocsResponse =
            self.connection.call(method::NODE_GET_CLIENT_ALLOCS, &request, CALL_MAX).await.unwrap();
        (answer.meta.index, answer.allocs.0)
    }

    pub async fn report(&self, alloc: &str, status: &str) -> Result<GenericResponse, RpcError> {
        let update = Allocation {
            id: alloc.to_string(),
            node_id: self.node.id.clone(),
            client_status: status.to_string(),
            ..Default::default()
        };
        let request = AllocUpdateRequest {
            alloc: vec![update].into(),
            evals: Default::default(),
            write: self.credentials(),
        };
        self.connection.call(method::NODE_UPDATE_ALLOC, &request, CALL_MAX).await
    }

    fn credentials(&self) -> WriteRequest {
        WriteRequest { auth_token: self.node.secret_id.clone(), ..Default::default() }
    }
}

/// Heartbeats stop when it is dropped.
pub struct Heartbeats(JoinHandle<()>);

impl Drop for Heartbeats {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn description(datacenter: &str) -> Node {
    static COUNT: AtomicU8 = AtomicU8::new(1);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let attributes = [("kernel.name", "linux"), ("driver.raw_exec", "1"), ("nomad.version", "2.0.0")];
    let attributes: BTreeMap<_, _> =
        attributes.map(|(key, value)| (key.to_string(), value.to_string())).into();
    let driver = DriverInfo { detected: true, healthy: true, ..Default::default() };
    let resources = NodeResources {
        cpu: NodeCpuResources { cpu_shares: 4000, ..Default::default() },
        memory: NodeMemoryResources { memory_mb: 4096 },
        disk: NodeDiskResources { disk_mb: 10_000 },
        ..Default::default()
    };
    Node {
        id: Uuid::from_random([number; 16]).to_string(),
        secret_id: Uuid::from_random([number | 0x80; 16]).to_string(),
        name: format!("fake-{number}"),
        datacenter: datacenter.to_string(),
        node_pool: "default".to_string(),
        attributes: model::document::Map(attributes),
        drivers: model::document::Map([("raw_exec".to_string(), driver)].into()),
        node_resources: Some(resources),
        scheduling_eligibility: "eligible".to_string(),
        status: "initializing".to_string(),
        ..Default::default()
    }
}
