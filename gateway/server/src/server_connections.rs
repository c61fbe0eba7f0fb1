//! Connections to other servers: one to each, made when it is needed.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use control::leader_client::{Answering, CallError};
use control::{LeaderAnswer, LeaderCall, LeaderClient};
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Mutex as AsyncMutex;
use wire::{Bytes, Connection, Handler, Limits, Opening, RemoteError, RpcError, RpcSecurity};

/// What servers call at each other, besides what nodes call. None of Nomad's names.
pub mod method {
    /// What all of these names begin with. Nobody but a server may call what begins so, but for the HTTP of node agents.
    pub const OF_SERVERS: &str = "Sojourn.";
    /// [`control::LeaderCall`] to [`control::LeaderAnswer`].
    pub const LEADER: &str = "Sojourn.Leader";
    /// A message of the log's own, in bytes, answered in bytes.
    pub const RAFT: &str = "Sojourn.Raft";
    /// A node's id to whether it is connected.
    pub const HAS_NODE: &str = "Sojourn.HasNode";
    /// Followed by a node's id, a slash and a method: a call for that node, as it would arrive there.
    pub const PASS: &str = "Sojourn.Pass/";
    /// [`crate::cluster::PeerQuery`] to [`crate::cluster::PeerInfo`].
    pub const PEER_INFO: &str = "Sojourn.Who";
    /// [`federation::rollouts::RolloutQuery`] to how far the region is with the job. Servers of other regions may ask this too.
    pub const ROLLOUT: &str = "Sojourn.Rollout";
    /// [`crate::cluster::AdminRequest`] to [`crate::cluster::AdminResult`].
    pub const ADMIN: &str = "Sojourn.Order";
}

/// How long a connection may take to be made: longer than a packet that is sent a second time, and shorter than
/// an election.
const DIAL_MAX: Duration = Duration::from_secs(1);

/// The same for servers of other regions, which may be at the other end of the world: three round trips.
const DIAL_AWAY_MAX: Duration = Duration::from_secs(3);

/// Servers that are connected at once; one more is rejected. Far more than a cluster has.
const SERVERS_MAX: usize = 64;

/// Finds the address of the server with a number.
pub type AddressLookup = Box<dyn Fn(u64) -> Option<String> + Send + Sync>;

/// A clone is a handle of the same.
#[derive(Clone, Default)]
pub struct ServerConnections(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// Set once the log is open, which knows who takes part.
    lookup: OnceLock<AddressLookup>,
    security: RpcSecurity,
    /// By address. A slot is locked while its connection is made, so that there is no second one.
    slots: Mutex<BTreeMap<String, Slot>>,
}

type Slot = Arc<AsyncMutex<Option<Connection>>>;

impl ServerConnections {
    /// Connections in which this server proves itself as far as it can.
    pub fn new(security: RpcSecurity) -> ServerConnections {
        ServerConnections(Arc::new(Inner { security, ..Inner::default() }))
    }

    /// Sets how servers are found by their numbers. Only the first call counts.
    pub fn lookup_by(&self, lookup: AddressLookup) {
        let _set_before = self.0.lookup.set(lookup);
    }

    /// Calls a method with its body as it is on the wire.
    ///
    /// # Errors
    /// [`CallError::NotSent`] only if the other server cannot have acted on it.
    pub async fn call_raw(
        &self,
        address: &str,
        method: &str,
        body: &[u8],
        patience: Duration,
    ) -> Result<Bytes, CallError> {
        let dialed = tokio::time::timeout(patience, self.connection(address)).await;
        let connection = match dialed {
            Ok(Ok(connection)) => connection,
            Ok(Err(error)) => return Err(CallError::NotSent(error.to_string())),
            Err(_) => return Err(CallError::NotSent(no_connection(address))),
        };
        let answer = connection.call_raw(method, body, patience).await;
        answer.map_err(|error| CallError::NoAnswer(error.to_string()))
    }

    /// As [`ServerConnections::call_raw`], for messages that are maps by their fields' names.
    pub async fn call<Req: Serialize, Resp: DeserializeOwned>(
        &self,
        address: &str,
        method: &str,
        request: &Req,
        patience: Duration,
    ) -> Result<Resp, CallError> {
        let body = msgpack::to_vec(request).map_err(|error| CallError::NotSent(error.to_string()))?;
        let answer = self.call_raw(address, method, &body, patience).await?;
        msgpack::from_slice(&answer).map_err(|error| CallError::NoAnswer(error.to_string()))
    }

    /// As [`ServerConnections::call_raw`], for messages that are bytes.
    ///
    /// # Errors
    /// As there.
    pub async fn call_bytes(
        &self,
        address: &str,
        method: &str,
        message: &[u8],
        patience: Duration,
    ) -> Result<Bytes, CallError> {
        let answer = self.call_raw(address, method, &wrapped(message), patience).await?;
        unwrapped(&answer).map_err(|why| CallError::NoAnswer(why.to_string()))
    }

    /// The connection to a server, made within [`DIAL_MAX`].
    ///
    /// # Errors
    /// It cannot be made.
    pub async fn connection(&self, address: &str) -> Result<Connection, RpcError> {
        self.connected(self.slot(address)?, self.0.security.clone(), address, DIAL_MAX).await
    }

    /// The connection to a server of another region, made within [`DIAL_AWAY_MAX`]. It is none of the others: what the ends
    /// prove to each other is not the same.
    ///
    /// # Errors
    /// It cannot be made, or the server is one of a third region.
    pub(crate) async fn connection_to(&self, region: &str, address: &str) -> Result<Connection, RpcError> {
        let slot = self.slot(&format!("{address} of {region}"))?;
        self.connected(slot, self.0.security.towards(region), address, DIAL_AWAY_MAX).await
    }

    async fn connected(
        &self,
        slot: Slot,
        security: RpcSecurity,
        address: &str,
        within: Duration,
    ) -> Result<Connection, RpcError> {
        if let Ok(held) = slot.try_lock()
            && let Some(connection) = held.as_ref().filter(|connection| !connection.is_closed())
        {
            return Ok(connection.clone());
        }
        // In a task of its own: a caller may have less patience than a handshake takes, and the next one finds it made.
        let address = address.to_string();
        let dialing = tokio::spawn(async move {
            let late = |_| Err(io::Error::new(io::ErrorKind::TimedOut, no_connection(&address)).into());
            let connected = tokio::time::timeout(within, connect(&slot, &security, &address, within)).await;
            connected.unwrap_or_else(late)
        });
        dialing.await.map_err(io::Error::other)?
    }

    fn slot(&self, address: &str) -> Result<Slot, RpcError> {
        let mut slots = self.0.slots.lock();
        if slots.len() >= SERVERS_MAX && !slots.contains_key(address) {
            slots.retain(|_, slot| Arc::strong_count(slot) > 1);
        }
        if slots.len() >= SERVERS_MAX && !slots.contains_key(address) {
            return Err(RpcError::Protocol("connected to as many servers as allowed"));
        }
        Ok(slots.entry(address.to_string()).or_default().clone())
    }
}

async fn connect(
    slot: &Slot,
    security: &RpcSecurity,
    address: &str,
    within: Duration,
) -> Result<Connection, RpcError> {
    let mut slot = slot.lock().await;
    if let Some(connection) = slot.as_ref().filter(|connection| !connection.is_closed()) {
        return Ok(connection.clone());
    }
    let found = tokio::net::lookup_host(address).await?.next();
    let found = found.ok_or_else(|| io::Error::other(format!("{address} has no address")))?;
    let connection = wire::dial(found, security, Arc::new(NoCalls), Limits::SERVER, within).await?;
    Ok(slot.insert(connection).clone())
}

fn no_connection(address: &str) -> String {
    format!("no connection to {address} in time")
}

/// The first byte of bytes in msgpack whose length has 32 bits.
const BIN_32: u8 = 0xc6;

/// Bytes as the one value that a call carries.
pub fn wrapped(bytes: &[u8]) -> Vec<u8> {
    let mut value = Vec::with_capacity(5 + bytes.len());
    value.push(BIN_32);
    value.extend_from_slice(&u32::try_from(bytes.len()).expect("messages are far below 4 GiB").to_be_bytes());
    value.extend_from_slice(bytes);
    value
}

/// The bytes in a value made by [`wrapped`], without a copy.
///
/// # Errors
/// It is something else.
pub fn unwrapped(value: &Bytes) -> Result<Bytes, &'static str> {
    match value.split_first_chunk::<5>() {
        Some((head, rest))
            if head[0] == BIN_32
                && rest.len() == u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize =>
        {
            Ok(value.slice(5..))
        }
        _ => Err("a message between servers is not what it should be"),
    }
}

impl LeaderClient for ServerConnections {
    fn call(&self, leader: u64, call: LeaderCall, patience: base::Duration) -> Answering {
        let servers = self.clone();
        Box::pin(async move {
            let address = servers.0.lookup.get().and_then(|lookup| lookup(leader));
            let address =
                address.ok_or_else(|| CallError::NotSent(format!("server {leader} is not known")))?;
            servers.call::<_, LeaderAnswer>(&address, method::LEADER, &call, patience.to_std()).await
        })
    }
}

/// Servers call over connections they made themselves.
struct NoCalls;

impl Handler for NoCalls {
    async fn call(&self, _: &Connection, method: &str, _: Bytes) -> Result<Vec<u8>, RemoteError> {
        Err(format!("rpc: can't find method {method}").into())
    }

    async fn stream(&self, _: &Connection, method: &str, opening: Opening) -> Result<(), RpcError> {
        opening.refuse(format!("unknown rpc method: {method:?}")).await
    }
}

#[cfg(test)]
mod tests {
    use base::{Duration as Span, Index, Time, Uuid};
    use control::broker::{Delivery, NotHeld, Release};
    use control::{Receipt, SubmitError};
    use model::command::{EvalEnd, Plan, RegisterJob, Reply, Settlement, Verdict};
    use model::document::{Job, Node};
    use model::event::{AllocsPlaced, Doc, EvalOutcome, NodeMessage, RejectedNode};
    use model::{
        Actor, AllocId, Caller, Command, EvalId, JobKey, JobType, NodeId, NodeStatus, Rejection, Request,
        RequestId,
    };

    use super::*;

    #[test]
    fn calls_and_answers_arrive_as_they_were_sent() {
        let commands = [
            Command::FoundCluster { scheduler: model::SchedulerRules::default() },
            Command::RegisterNode { document: Box::new(Node { name: "n1".to_string(), ..Node::default() }) },
            Command::UpdateNodeStatus { node: NodeId(id(1)), claimed: NodeStatus::Ready },
            Command::EmitNodeMessages {
                node: NodeId(id(1)),
                messages: vec![NodeMessage::new("Driver", "healthy", Time(i64::MIN))],
            },
            Command::RegisterJob(Box::new(RegisterJob {
                job: Job { id: Some("web".to_string()), priority: Some(70), ..Job::default() },
                submission: None,
                enforce_index: Some(u64::MAX),
                eval_priority: None,
                preserve_counts: true,
                preserve_resources: true,
            })),
            Command::SettleEval(Box::new(settlement())),
        ];
        for command in commands {
            let actor = Actor::Caller(Caller {
                accessor: "accessor".to_string(),
                name: "operator".to_string(),
                address: Some([10, 0, 0, 7].into()),
                agent: "curl/8.5.0".to_string(),
            });
            same(&LeaderCall::Submit(Box::new(Request::named(RequestId(id(9)), actor, command))));
        }
        let types = vec![JobType::Service, JobType::Batch];
        same(&LeaderCall::Dequeue { types, patience: Span(5), max: 64 });
        let delivery = Delivery { eval: EvalId(id(4)), token: u64::MAX, wait_index: Index(1) };
        same(&LeaderCall::TouchAll(vec![delivery.clone()]));
        same(&LeaderCall::SubmitAll(vec![Request::unnamed(
            Actor::Server("worker".to_string()),
            Command::SettleEval(Box::new(settlement())),
        )]));
        same(&LeaderCall::Release(Release { done: vec![delivery.clone()], back: vec![delivery.clone()] }));
        same(&LeaderCall::ReadIndex { confirmed: true });
        same(&LeaderCall::KeepImage);
        same(&LeaderCall::RenewHeartbeat { node: NodeId(id(1)) });
        same(&LeaderCall::RenewLock { key: model::VariableKey::new("default", "a/b"), lock: id(10) });
        let receipt = Receipt {
            index: Index(7),
            time: Time(8),
            wrote: true,
            reply: Reply {
                evals: vec![EvalId(id(3))],
                verdict: Some(Verdict {
                    full: false,
                    progress: true,
                    placed: 2,
                    rejected: vec![RejectedNode { node: NodeId(id(1)), reason: "cpu".to_string() }],
                }),
                reverted_to: Some(4),
                child: Some("a/dispatch-1".to_string()),
                job_modified: Index(6),
            },
        };
        let invalid = Rejection::NodeInvalid { field: "Name".into(), expected: "a name".into() };
        let answers = [
            LeaderAnswer::Submitted(Ok(receipt)),
            LeaderAnswer::Submitted(Err(SubmitError::Rejected(invalid))),
            LeaderAnswer::Submitted(Err(SubmitError::Refused("the disk is full".to_string()))),
            LeaderAnswer::Dequeued(None),
            LeaderAnswer::Dequeued(Some(delivery.clone())),
            LeaderAnswer::DequeuedAll(vec![delivery]),
            LeaderAnswer::HeldAll(vec![true, false]),
            LeaderAnswer::SubmittedAll(vec![Err(SubmitError::Busy)]),
            LeaderAnswer::Released,
            LeaderAnswer::Held(Err(NotHeld::WrongToken)),
            LeaderAnswer::Heartbeat(Some(Span::from_secs(12))),
            LeaderAnswer::ReadIndex(Some(Index(3))),
            LeaderAnswer::Kept(Ok(Index(4))),
            LeaderAnswer::Kept(Err("a state is being restored".to_string())),
            LeaderAnswer::Renewed(None),
            LeaderAnswer::Renewed(Some(Ok(()))),
            LeaderAnswer::Renewed(Some(Err(control::NotRenewed::Foreign))),
        ];
        answers.iter().for_each(same);
    }

    #[test]
    fn bytes_arrive_as_they_were_sent() {
        for message in [&b""[..], b"x", &[0; 70_000]] {
            assert_eq!(unwrapped(&wrapped(message).into()).unwrap(), message);
        }
        for other in [&b""[..], b"\xc6\0\0\0", b"\xc6\0\0\0\x02x", b"\xc4\x01xxx"] {
            assert!(unwrapped(&Bytes::copy_from_slice(other)).is_err(), "{other:?}");
        }
    }

    fn settlement() -> Settlement {
        let placed = AllocsPlaced {
            eval: EvalId(id(4)),
            key: JobKey::new("default", "web"),
            version: 3,
            group: "g".to_string(),
            template: Doc(vec![0, 255]),
            metrics: Doc::default(),
            ids: vec![AllocId(id(5))],
            nodes: vec![NodeId(id(1))],
            names: vec![0],
            previous: vec![],
            deployment: None,
            canary: false,
            ports: vec![u16::MAX],
            given: vec![Doc(vec![0x80])],
        };
        let end = EvalEnd::complete(EvalOutcome {
            classes: vec![("v1:1".to_string(), true)],
            ..EvalOutcome::default()
        });
        let plan = Plan { snapshot: Index(6), placed: vec![placed], ..Plan::default() };
        Settlement { eval: EvalId(id(4)), plan, end: Some(end) }
    }

    fn same<T: Serialize + DeserializeOwned + std::fmt::Debug>(sent: &T) {
        let bytes = msgpack::to_vec(sent).unwrap();
        let came: T = msgpack::from_slice(&bytes).unwrap();
        assert_eq!(format!("{came:?}"), format!("{sent:?}"));
    }

    fn id(number: u128) -> Uuid {
        Uuid::from(number)
    }
}
