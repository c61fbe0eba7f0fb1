//! Three servers that are killed, paused and cut off under load, and what was acknowledged to the writers.

mod host;
mod writers;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use base::Rng;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::end_to_end::support::http::{self, Events};
use crate::end_to_end::support::{Agent, AgentConfig, eventually, until};
pub use host::{Host, Hosts};
use writers::{Acknowledged, Reader, Writers, numbered};

/// Faults of one run; `SOJOURN_CLUSTER_FAULTS` asks for more.
const FAULTS: u64 = 6;

/// Writes acknowledged before each fault and after it.
const BETWEEN_FAULTS: usize = 40;

/// How long a paused or cut-off server is gone: longer than any election.
const GONE: Duration = Duration::from_secs(4);

#[test]
fn three_servers_keep_acknowledged_writes_through_kills_pauses_and_cuts() {
    let number = |name: &str, or: u64| std::env::var(name).map_or(or, |text| text.parse().unwrap());
    let (faults, seed) = (number("SOJOURN_CLUSTER_FAULTS", FAULTS), number("SOJOURN_CLUSTER_SEED", 1));
    let directory = tempfile::tempdir().unwrap();
    let mut cluster = Cluster::start(directory.path());
    let servers = cluster.addresses();
    let readers: Vec<Reader> = (0..servers.len()).map(|first| Reader::start(&servers, first)).collect();
    let writers = Writers::start(&servers, seed);
    let mut rng = Rng::new(seed);
    for round in 0..faults {
        writers.until_more(BETWEEN_FAULTS);
        let fault = Fault::ALL[((round + rng.below(2)) % Fault::ALL.len() as u64) as usize];
        cluster.inject(fault, &writers);
    }
    writers.until_more(BETWEEN_FAULTS);
    let acknowledged = writers.end();
    let last = cluster.register("last");
    cluster.check_writes(&acknowledged, last);
    check_streams(readers, &servers, last);
}

#[test]
fn a_planned_transfer_fails_no_request() {
    let directory = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(directory.path());
    for _ in 0..4 {
        let servers = cluster.addresses();
        let leader = cluster.leader();
        let mut next = 0;
        let to = cluster.places[(leader + 1) % 3].rpc;
        let path = format!("/v1/operator/raft/transfer-leadership?address={to}");
        let address = servers[leader];
        let transferring = std::thread::spawn(move || http::put(address, &path, &Value::Null).unwrap());
        // No request is retried here.
        while !transferring.is_finished() || next < 30 {
            let at = servers[next % servers.len()];
            let body = json!({"Job": numbered("moved", next as u64)});
            let answer = http::put(at, "/v1/jobs", &body).unwrap();
            assert_eq!(answer.status, 200, "{}", answer.body);
            next += 1;
        }
        let answer = transferring.join().unwrap();
        assert_eq!(answer.status, 200, "{}", answer.body);
        until("another server leads", || cluster.leader_seen().is_some_and(|now| now != leader));
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    KillLeader,
    PauseLeader,
    CutLeader,
    KillFollower,
    CutFollower,
    KillAll,
}

impl Fault {
    const ALL: [Fault; 6] = [
        Fault::KillLeader,
        Fault::CutLeader,
        Fault::PauseLeader,
        Fault::KillFollower,
        Fault::KillAll,
        Fault::CutFollower,
    ];
}

struct Cluster {
    /// Absent where hosts cannot be cut off.
    hosts: Option<Hosts>,
    places: Vec<AgentConfig>,
    agents: Vec<Option<Agent>>,
}

impl Cluster {
    fn start(directory: &std::path::Path) -> Cluster {
        let hosts = Hosts::make(3);
        if hosts.is_none() {
            eprintln!("this machine gives no network namespaces: servers are killed and paused, not cut off");
        }
        let at = |number| hosts.as_ref().map_or_else(Host::local, |hosts| hosts.host(number));
        let all: Vec<Host> = (0..3).map(at).collect();
        let places: Vec<AgentConfig> = (0..3)
            .map(|nth| AgentConfig::member(directory, &format!("server-{nth}"), &all[nth], &all))
            .collect();
        // No server is ready before it has joined the others, so all are started before waiting.
        let agents = places.iter().map(|config| Some(config.launch())).collect();
        let cluster = Cluster { hosts, places, agents };
        cluster.until_healthy();
        cluster
    }

    fn addresses(&self) -> Vec<SocketAddr> {
        self.places.iter().map(|config| config.http).collect()
    }

    /// The server that reports itself as leader.
    fn leader_seen(&self) -> Option<usize> {
        let leads = |at: &SocketAddr| {
            let answer = http::get(*at, "/v1/agent/self").ok()?;
            (answer.json()["stats"]["raft"]["state"] == "Leader").then_some(())
        };
        self.addresses().iter().position(|at| leads(at).is_some())
    }

    fn leader(&self) -> usize {
        eventually("a server leads", || self.leader_seen())
    }

    /// All three are voters, one leads, and all are alive: autopilot may still remove a server that counts as failed.
    fn until_healthy(&self) {
        until("the cluster is whole", || {
            let alive = |at: SocketAddr| {
                let answer = http::get(at, "/v1/agent/members").ok()?;
                let members = answer.json()["Members"].as_array()?.clone();
                Some(members.iter().filter(|member| member["Status"] == "alive").count())
            };
            if !self.addresses().into_iter().all(|at| alive(at) == Some(3)) {
                return false;
            }
            let peers = self.addresses().into_iter().map(|at| {
                let answer = http::get(at, "/v1/operator/raft/configuration").ok()?;
                let servers = answer.json()["Servers"].as_array()?.clone();
                Some(servers.iter().filter(|server| server["Voter"] == true).count())
            });
            self.leader_seen().is_some() && peers.into_iter().all(|voters| voters == Some(3))
        });
    }

    fn inject(&mut self, fault: Fault, writers: &Writers) {
        let leader = self.leader();
        let follower = (leader + 1) % 3;
        let before = writers.count();
        let start = Instant::now();
        let resumed = |from: usize| until("writes go on", || writers.count() > from);
        match fault {
            Fault::KillLeader => {
                self.kill_and_restart(&[leader], || resumed(before + writers::WRITERS as usize))
            }
            Fault::KillFollower => self.kill_and_restart(&[follower], || resumed(before)),
            Fault::KillAll => self.kill_and_restart(&[0, 1, 2], || {}),
            Fault::PauseLeader => {
                self.signal(leader, Signal::STOP);
                resumed(before + writers::WRITERS as usize);
                wait_since(start, GONE);
                self.signal(leader, Signal::CONT);
            }
            Fault::CutLeader => self.cut(leader, || resumed(before + writers::WRITERS as usize), start),
            Fault::CutFollower => self.cut(follower, || resumed(before), start),
        }
        eprintln!("{fault:?}: {} writes during {:?}", writers.count() - before, start.elapsed());
        self.until_healthy();
    }

    fn kill_and_restart(&mut self, which: &[usize], meanwhile: impl Fn()) {
        for nth in which {
            self.agents[*nth].take().unwrap().kill();
        }
        meanwhile();
        for nth in which {
            self.agents[*nth] = Some(self.places[*nth].launch());
        }
    }

    fn cut(&self, nth: usize, meanwhile: impl Fn(), start: Instant) {
        let Some(hosts) = &self.hosts else { return };
        hosts.cut(nth as u8);
        meanwhile();
        wait_since(start, GONE);
        hosts.join(nth as u8);
    }

    fn signal(&self, nth: usize, signal: Signal) {
        self.agents[nth].as_ref().unwrap().signal(signal);
    }

    /// Registers a job that is not changed again, and returns its index.
    fn register(&self, id: &str) -> u64 {
        self.agents[0].as_ref().unwrap().register(&numbered(id, 1))
    }

    /// On every server, each job is as acknowledged to its writer: no write is lost or applied twice.
    fn check_writes(&self, acknowledged: &BTreeMap<String, Acknowledged>, last: u64) {
        for at in self.addresses() {
            for (id, acknowledged) in acknowledged {
                let path = format!("/v1/job/{id}?stale&min_index={last}");
                let job = http::get(at, &path).unwrap().json();
                assert_eq!(job["Meta"]["number"], acknowledged.writes.to_string(), "{id} at {at}");
                assert_eq!(job["Version"], acknowledged.writes - 1, "{id} at {at}");
                assert_eq!(job["JobModifyIndex"], acknowledged.index, "{id} at {at}");
            }
        }
    }
}

/// Waits until the fault has lasted this long.
fn wait_since(start: Instant, span: Duration) {
    std::thread::sleep(span.saturating_sub(start.elapsed()));
}

/// All readers got the same events, each once and in order, and so does a new reader at any server.
fn check_streams(readers: Vec<Reader>, servers: &[SocketAddr], last: u64) {
    let seen: Vec<_> = readers.into_iter().map(|reader| reader.end_at(last)).collect();
    let ids: Vec<_> = seen[0].iter().map(|event| event.id).collect();
    assert!(ids.is_sorted_by(|one, next| one < next), "ids rise: {ids:?}");
    for other in &seen[1..] {
        assert_eq!(other.len(), seen[0].len(), "as many events as any reader");
        assert!(other == &seen[0], "the same events as any reader");
    }
    for at in servers {
        let mut events = Events::open(*at, None).unwrap();
        let all = std::iter::from_fn(|| Some(events.next().unwrap()));
        let all: Vec<_> = all.take_while(|event| event.id.0 < last).collect();
        assert!(all == seen[0], "{at} has the same events from the start");
    }
}
