//! The cluster as operators see and change it.

use std::collections::BTreeSet;
use std::time::Instant;

use api::{
    AgentMember, JoinResponse, KeyringResponse, LeadershipTransferResponse, OperatorHealthReply,
    RaftConfiguration, RaftServer, UpgradeServer,
};
use base::{Duration, Index};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all as join_each};
use http_gateway::{ClusterAdmin, ClusterError, GossipKeys, NOMAD_VERSION, OtherHistory, PeerName};
use metrics::{Figures, Gauge};

use super::admin_request::{AdminRequest, AdminResponse};
use super::join::join_all;
use super::roster::RegionServer;
use super::{Cluster, ConsensusError, Inner, PeerInfo, PeerQuery, Status};
use crate::autopilot::{Peer, ServerHealth};
use crate::gossip::{Key, KeyOperation, Member, Parting, Standing};
use crate::release::Release;

/// Servers that are asked how far back they go.
const HISTORIES_MAX: usize = 16;
/// Addresses that one call may join.
const JOINS_MAX: usize = 64;

impl ClusterAdmin for Cluster {
    fn members(&self) -> Vec<AgentMember> {
        self.0.inner.members()
    }

    fn regions(&self) -> Vec<String> {
        let inner = &self.0.inner;
        let mut regions = BTreeSet::from([inner.settings.own.region.clone()]);
        if let Some(gossip) = &inner.gossip {
            // A region whose servers failed is still one: it is cut off. One whose servers have left is gone.
            let sightings = gossip.sightings();
            let there = sightings.iter().filter(|seen| seen.standing != Standing::Left);
            regions.extend(there.map(|seen| seen.member.region.clone()));
        }
        regions.into_iter().collect()
    }

    fn leader(&self) -> Option<String> {
        let inner = &self.0.inner;
        inner.leader_of(&inner.consensus.status())
    }

    fn find(&self, server: &str) -> Option<String> {
        let inner = &self.0.inner;
        if server == "leader" {
            return self.leader();
        }
        let name = server.strip_suffix(&format!(".{}", inner.settings.own.region)).unwrap_or(server);
        let is_meant = |known: &RegionServer| known.candidate.name == name || known.id.to_string() == server;
        inner.names().into_iter().find(is_meant).map(|known| known.candidate.address)
    }

    fn peers(&self) -> Vec<String> {
        let peers = self.0.inner.consensus.status().peers.into_iter().map(|peer| peer.address);
        peers.collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn figures(&self, now: Instant) -> Figures {
        let inner = &self.0.inner;
        let dropped =
            Gauge::new("sojourn.raft.messages_dropped_total", inner.consensus.status().dropped as f64);
        Figures { gauges: vec![dropped], sampled: inner.contacts.report(now), host: None }
    }

    fn join(&self, addresses: Vec<String>) -> BoxFuture<'_, JoinResponse> {
        async move { self.0.inner.join(&addresses).await }.boxed()
    }

    fn histories(&self) -> BoxFuture<'_, Vec<OtherHistory>> {
        let others = self.0.inner.others().into_iter().filter(|known| known.standing.is_live());
        let asked = others.take(HISTORIES_MAX).map(|known| {
            let query = PeerQuery { history: true, ..PeerQuery::default() };
            let rpc = known.candidate.address.clone();
            let answer = self.0.inner.peers.query(known.candidate.address, query);
            async move { answer.await.map(|answer| (rpc, answer)) }
        });
        let asked = join_each(asked.collect::<Vec<_>>());
        async move {
            let answers = asked.await.into_iter().flatten().filter(|(_, answer)| answer.oldest > 0);
            let other = |(rpc, answer): (_, PeerInfo)| OtherHistory {
                rpc,
                http: answer.http,
                oldest: Index(answer.oldest),
            };
            answers.map(other).collect()
        }
        .boxed()
    }

    fn force_leave(&self, name: String, prune: bool) -> BoxFuture<'_, Result<(), ClusterError>> {
        async move {
            let Some(gossip) = &self.0.inner.gossip else {
                // An unknown name is no error in Nomad, and a single server has no others.
                if self.0.inner.consensus.status().peers.len() <= 1 {
                    return Ok(());
                }
                let why = "this server does not gossip: remove the peer from raft instead";
                return Err(ClusterError::Invalid(why.to_string()));
            };
            match gossip.force_leave(&name, prune).await {
                Ok(_) => Ok(()),
                Err(error) => Err(ClusterError::Failed(error.to_string())),
            }
        }
        .boxed()
    }

    fn gossip_keys(&self, operation: GossipKeys) -> BoxFuture<'_, Result<KeyringResponse, ClusterError>> {
        async move {
            let operation = key_operation(operation)?;
            let gossip = self.0.inner.gossip.as_ref();
            let gossip = gossip.ok_or_else(|| {
                ClusterError::Failed("this server does not gossip, so there are no keys".to_string())
            })?;
            let report = gossip.change_keys(operation.clone()).await.map_err(ClusterError::Failed)?;
            let is_list = operation == KeyOperation::List;
            let failures: Vec<String> =
                report.failures().map(|(server, why)| format!("{server}: {why}")).collect();
            if !is_list && !failures.is_empty() {
                let (failed, all) = (failures.len(), report.replies.len());
                let why = format!("{failed} of {all} servers did not follow: {}", failures.join("; "));
                return Err(ClusterError::Failed(why));
            }
            let counts = report.counts().into_iter().filter(|_| is_list);
            Ok(KeyringResponse {
                messages: report.failures().map(|(server, why)| (server.clone(), why.clone())).collect(),
                keys: counts.map(|(key, count)| (key.to_base64(), count as i64)).collect(),
                num_nodes: report.replies.len() as i64,
            })
        }
        .boxed()
    }

    fn raft_configuration(&self) -> RaftConfiguration {
        let inner = &self.0.inner;
        let (status, names) = (inner.consensus.status(), inner.names());
        let servers = status.peers.iter().map(|peer| raft_server(&status, &names, peer));
        RaftConfiguration { servers: servers.collect::<Vec<_>>().into(), index: status.last_entry }
    }

    fn releases(&self) -> Vec<UpgradeServer> {
        let inner = &self.0.inner;
        let (status, names) = (inner.consensus.status(), inner.names());
        status.peers.iter().map(|peer| upgrade_server(&names, peer)).collect()
    }

    fn remove_peer(&self, peer: PeerName) -> BoxFuture<'_, Result<(), ClusterError>> {
        async move { self.0.inner.admin(AdminRequest::Remove(peer)).await.map(|_| ()) }.boxed()
    }

    fn transfer(&self, to: PeerName) -> BoxFuture<'_, Result<LeadershipTransferResponse, ClusterError>> {
        async move {
            match self.0.inner.admin(AdminRequest::Transfer(to)).await? {
                AdminResponse::Transferred(how) => Ok(how),
                other => Err(unexpected(&other)),
            }
        }
        .boxed()
    }

    fn health(&self) -> BoxFuture<'_, Result<OperatorHealthReply, ClusterError>> {
        async move {
            match self.0.inner.admin(AdminRequest::Health).await? {
                AdminResponse::Health(health) => Ok(health),
                other => Err(unexpected(&other)),
            }
        }
        .boxed()
    }
}

fn key_operation(operation: GossipKeys) -> Result<KeyOperation, ClusterError> {
    let parsed = |key: &str| Key::parse(key).map_err(|error| ClusterError::Invalid(format!("Key: {error}")));
    Ok(match operation {
        GossipKeys::List => KeyOperation::List,
        GossipKeys::Install(key) => KeyOperation::Install(parsed(&key)?),
        GossipKeys::Use(key) => KeyOperation::Use(parsed(&key)?),
        GossipKeys::Remove(key) => KeyOperation::Remove(parsed(&key)?),
    })
}

/// The leader runs another release.
fn unexpected(done: &AdminResponse) -> ClusterError {
    ClusterError::Failed(format!("the leader answered what it was not asked: {done:?}"))
}

impl Inner {
    /// Its RPC address, if it is known.
    pub(super) fn leader_of(&self, status: &Status) -> Option<String> {
        let leader = status.leader?;
        status.peers.iter().find(|peer| peer.number == leader).map(|peer| peer.address.clone())
    }

    async fn join(&self, addresses: &[String]) -> JoinResponse {
        let failure = |error: String| JoinResponse { error, ..JoinResponse::default() };
        let Some(gossip) = &self.gossip else {
            return failure("this server does not gossip".to_string());
        };
        if addresses.len() > JOINS_MAX {
            return failure(format!("at most {JOINS_MAX} addresses can be joined at a time"));
        }
        let (joined, failures) = join_all(gossip, addresses, self.settings.joins.port).await;
        JoinResponse { joined, error: failures.join("; "), warning: String::new() }
    }

    fn members(&self) -> Vec<AgentMember> {
        let own = &self.settings.own;
        let Some(gossip) = &self.gossip else {
            let others = self.others().into_iter().map(|known| self.by_answer(known));
            return others.chain([agent_member(own, Standing::Alive)]).collect();
        };
        let sightings = gossip.sightings();
        let mut members: Vec<AgentMember> = sightings
            .iter()
            .filter(|seen| seen.ordered != Some(Parting::Pruned))
            .map(|seen| match seen.ordered {
                Some(_) if seen.standing.is_live() => agent_member(&seen.member, Standing::Leaving),
                _ => agent_member(&seen.member, seen.standing),
            })
            .collect();
        let gossiped = |known: &RegionServer| sightings.iter().any(|seen| seen.member.id == known.id);
        let others = self.others().into_iter().filter(|known| !gossiped(known));
        members.extend(others.map(|known| self.by_answer(known)));
        members
    }

    /// A server that is known by its RPC only.
    fn by_answer(&self, known: RegionServer) -> AgentMember {
        let member = Member {
            id: known.id,
            number: known.candidate.number,
            name: known.candidate.name,
            datacenter: known.datacenter,
            rpc: known.candidate.address,
            version: known.version,
            bootstrap_expect: known.candidate.expect,
            has_log: known.candidate.has_log,
            ..self.settings.own.clone()
        };
        let mut shown = agent_member(&member, known.standing);
        // Its gossip port is not known.
        let (host, port) = host_and_port(&member.rpc);
        (shown.addr, shown.port) = (host.to_string(), port);
        shown
    }

    /// All servers of this region, this one included.
    pub(super) fn names(&self) -> Vec<RegionServer> {
        let own = &self.settings.own;
        let own = RegionServer {
            id: own.id,
            candidate: self.own(),
            datacenter: own.datacenter.clone(),
            version: own.version.clone(),
            standing: Standing::Alive,
            for_how_long: self.now(),
        };
        self.others().into_iter().chain([own]).collect()
    }

    pub(super) fn find<'a>(&self, status: &'a Status, peer: &PeerName) -> Result<&'a Peer, ClusterError> {
        let names = self.names();
        let found = status.peers.iter().find(|found| match peer {
            PeerName::Address(address) => found.address == *address,
            PeerName::Id(id) => {
                found.number.to_string() == *id
                    || names
                        .iter()
                        .any(|known| known.candidate.number == found.number && known.id.to_string() == *id)
            }
        });
        found.ok_or_else(|| {
            let name = match peer {
                PeerName::Id(id) => format!("id \"{id}\""),
                PeerName::Address(address) => format!("address \"{address}\""),
            };
            ClusterError::Failed(format!("{name} was not found in the Raft configuration"))
        })
    }
}

pub(super) fn failed(error: ConsensusError) -> ClusterError {
    ClusterError::Failed(error.0)
}

pub(super) fn named(names: &[RegionServer], number: u64) -> Option<&RegionServer> {
    names.iter().find(|known| known.candidate.number == number)
}

/// A server that is not known is shown by its number.
pub(super) fn raft_server(status: &Status, names: &[RegionServer], peer: &Peer) -> RaftServer {
    let known = named(names, peer.number);
    RaftServer {
        id: known.map_or_else(|| peer.number.to_string(), |known| known.id.to_string()),
        node: known.map_or_else(|| "(unknown)".to_string(), |known| known.candidate.name.clone()),
        address: peer.address.clone(),
        leader: status.leader == Some(peer.number),
        voter: peer.voter,
        raft_protocol: "3".to_string(),
    }
}

/// Nothing is known of the release of a server that was never seen.
pub(super) fn upgrade_server(names: &[RegionServer], peer: &Peer) -> UpgradeServer {
    let known = named(names, peer.number);
    UpgradeServer {
        id: known.map_or_else(|| peer.number.to_string(), |known| known.id.to_string()),
        name: known.map_or_else(|| "(unknown)".to_string(), |known| known.candidate.name.clone()),
        address: peer.address.clone(),
        version: known.map(|known| known.release().number.to_string()).unwrap_or_default(),
        epoch: known.map_or(0, |known| u64::from(known.release().epoch)),
        status: known.map_or("none", |known| known.standing.word()).to_string(),
        voter: peer.voter,
    }
}

pub(super) fn server_health(
    status: &Status,
    names: &[RegionServer],
    server: &ServerHealth,
) -> api::ServerHealth {
    let known = named(names, server.number);
    let peer = status.peers.iter().find(|peer| peer.number == server.number);
    let text = |text: Option<String>| text.unwrap_or_default();
    api::ServerHealth {
        id: known.map_or_else(|| server.number.to_string(), |known| known.id.to_string()),
        name: text(known.map(|known| known.candidate.name.clone())),
        address: text(peer.map(|peer| peer.address.clone())),
        serf_status: server.standing.map_or("none", Standing::word).to_string(),
        version: text(known.map(|known| known.release().number.to_string())),
        leader: server.leader,
        // Never contacted: the longest duration there is.
        last_contact: server.last_contact.unwrap_or(Duration(i64::MAX)).to_string(),
        last_term: status.term.0,
        last_index: server.last_index,
        healthy: server.healthy,
        voter: server.voter,
        stable_since: server.stable_since.into(),
    }
}

pub(crate) fn agent_member(member: &Member, standing: Standing) -> AgentMember {
    let (host, port) = host_and_port(&member.rpc);
    let release = Release::parse(&member.version);
    let mut tags = vec![
        ("id", member.id.to_string()),
        ("role", "nomad".to_string()),
        ("region", member.region.clone()),
        ("dc", member.datacenter.clone()),
        ("build", NOMAD_VERSION.to_string()),
        ("port", port.to_string()),
        ("rpc_addr", host.to_string()),
        ("raft_vsn", "3".to_string()),
        ("vsn", "1".to_string()),
        ("sojourn", release.number.to_string()),
        ("epoch", release.epoch.to_string()),
        ("raft_number", member.number.to_string()),
    ];
    match member.bootstrap_expect {
        0 => {}
        1 => tags.push(("bootstrap", "1".to_string())),
        expect => tags.push(("expect", expect.to_string())),
    }
    AgentMember {
        name: member.full_name(),
        addr: member.serf.ip().to_string(),
        port: member.serf.port(),
        tags: tags.into_iter().map(|(name, value)| (name.to_string(), value)).collect(),
        status: standing.word().to_string(),
        protocol_min: 1,
        protocol_max: 5,
        protocol_cur: 2,
        delegate_min: 2,
        delegate_max: 5,
        delegate_cur: 4,
    }
}

/// The parts of `HOST:PORT`, without the brackets around an IPv6 address.
fn host_and_port(address: &str) -> (&str, u16) {
    let (host, port) = address.rsplit_once(':').unwrap_or((address, "0"));
    (host.trim_matches(['[', ']']), port.parse().unwrap_or(0))
}
