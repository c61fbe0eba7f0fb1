//! Several servers in one process, each in a directory of its own.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base::{Index, Term};
use fake_network::{Conditions, FakeNetwork};
use journal::{EncodedBatch, Journal, ProposeError};
use raft::{Found, Member, RaftJournal, Settings, Status, TAIL, Tail};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use super::{Heard, PATIENCE, Server, batch, settings};

pub struct Cluster {
    pub network: Arc<FakeNetwork>,
    pub servers: BTreeMap<u64, Server>,
    pub tail: Tail,
    dirs: BTreeMap<u64, TempDir>,
}

pub fn member(node: u64) -> Member {
    Member { node, address: settings(Path::new(""), node, Found::Wait).address, voter: true }
}

impl Cluster {
    pub fn empty() -> Cluster {
        let network = FakeNetwork::new(1, Conditions::default());
        Cluster { network, servers: BTreeMap::new(), tail: TAIL, dirs: BTreeMap::new() }
    }

    /// A founded cluster of the servers 1 to `count`.
    pub async fn founded(count: u64) -> Cluster {
        let mut cluster = Cluster::empty();
        for node in 1..=count {
            cluster.start(node).await;
        }
        let members: Vec<Member> = (1..=count).map(member).collect();
        cluster.servers[&1].journal.bootstrap(&members).await.unwrap();
        cluster
    }

    /// Starts a server where it stood before, or anew.
    pub async fn start(&mut self, node: u64) {
        let dir = self.dirs.entry(node).or_insert_with(|| tempfile::tempdir().unwrap());
        let settings = Settings { tail: self.tail, ..settings(dir.path(), node, Found::Wait) };
        let server = Server::start(settings, self.network.links(node, &Arc::default())).await.unwrap();
        self.network.join(node, &server.journal, &Arc::default());
        self.servers.insert(node, server);
    }

    pub async fn stop(&mut self, node: u64) {
        self.network.leave(node);
        let server = self.servers.remove(&node).expect("it runs");
        server.journal.shutdown().await;
    }

    pub async fn stop_all(mut self) {
        for node in self.servers.keys().copied().collect::<Vec<_>>() {
            self.stop(node).await;
        }
    }

    pub fn server(&mut self, node: u64) -> &mut Server {
        self.servers.get_mut(&node).expect("it runs")
    }

    pub fn status(&self, node: u64) -> Status {
        self.servers[&node].journal.status()
    }

    /// Who leads, as soon as one of `among` does and may propose.
    pub async fn leader(&self, among: &[u64]) -> (u64, Term) {
        until(|| {
            among.iter().find_map(|node| {
                let status = self.status(*node);
                let ready = status.leader == Some(*node) && takes(&self.servers[node].journal, status.term);
                ready.then_some((*node, status.term))
            })
        })
        .await
    }

    /// Proposes on `node` and waits until it has committed them.
    pub async fn commit(&mut self, node: u64, term: Term, indexes: RangeInclusive<u64>) {
        for index in indexes {
            self.servers[&node].journal.propose(term, batch(index, 30)).unwrap();
            self.committed(node, index).await;
        }
    }

    /// Waits until `node` has committed batch `index`.
    pub async fn committed(&self, node: u64, index: u64) {
        let journal = &self.servers[&node].journal;
        until(|| (journal.committed() >= Index(index)).then_some(())).await;
    }

    /// Checks that every server that runs has the same batches up to `last`, and returns them by server.
    pub async fn same_logs(&self, last: u64) -> BTreeMap<u64, Vec<EncodedBatch>> {
        let mut logs = BTreeMap::new();
        for (node, server) in &self.servers {
            self.committed(*node, last).await;
            let mut log = server.journal.read(Index(1), usize::MAX).unwrap();
            assert!(log.len() as u64 >= last);
            log.truncate(last as usize);
            logs.insert(*node, log);
        }
        let first = logs.first_key_value().expect("a server runs").1;
        assert!(logs.values().all(|log| log == first), "servers have different batches");
        logs
    }

    /// Also checks that every server is notified of each of them, once and in order, since it was started.
    pub async fn agree(&mut self, last: u64) {
        for (node, log) in self.same_logs(last).await {
            let mut heard = Vec::new();
            while (heard.len() as u64) < last {
                if let Heard::Committed(batch) = self.server(node).heard().await {
                    heard.push(batch);
                }
            }
            assert!(heard == log, "server {node} heard something else than it has");
        }
    }
}

/// The server leads under `term` and would take what comes next.
pub fn takes(journal: &RaftJournal, term: Term) -> bool {
    journal.propose(term, batch(u64::MAX, 0)) != Err(ProposeError::NotLeading { term })
}

/// Looks until there is something to see.
pub async fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < deadline, "it does not come about");
        sleep(Duration::from_millis(2)).await;
    }
}
