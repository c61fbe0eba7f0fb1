//! Clusters whose consensus only pretends: over real gossip on the loopback, or over questions alone.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::FutureExt;
use http_gateway::{ClusterAdmin, ClusterError, PeerName};
use model::{EPOCH, FIRST_EPOCH};
use tokio::net::UdpSocket;

use super::*;
use crate::autopilot::Peer;
use crate::gossip::{self, Parting};
use crate::release::Release;

/// Far beyond what anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// One raft for all servers: what is founded is at once everywhere, and the test chooses the leader.
#[derive(Default)]
struct World {
    raft: Mutex<Raft>,
    changed: watch::Sender<u64>,
    clusters: Mutex<BTreeMap<String, Cluster>>,
    rules: Mutex<Option<Autopilot>>,
    /// To what the epoch was raised.
    raised: Mutex<Vec<u16>>,
}

#[derive(Default)]
struct Raft {
    founded: Vec<Vec<u64>>,
    members: BTreeMap<u64, (String, bool)>,
    leader: Option<u64>,
}

impl World {
    fn change<T>(&self, change: impl FnOnce(&mut Raft) -> T) -> T {
        let outcome = change(&mut self.raft.lock());
        self.changed.send_modify(|count| *count += 1);
        outcome
    }

    async fn until(&self, what: &str, reached: impl Fn(&Raft) -> bool) {
        let mut changed = self.changed.subscribe();
        let wait = changed.wait_for(|_| reached(&self.raft.lock()));
        assert!(tokio::time::timeout(PATIENCE, wait).await.is_ok(), "never {what}");
    }

    fn voters(&self) -> Vec<u64> {
        let raft = self.raft.lock();
        raft.members.iter().filter(|(_, (_, voter))| *voter).map(|(number, _)| *number).collect()
    }
}

struct Fake {
    own: u64,
    world: Arc<World>,
}

impl Consensus for Fake {
    fn status(&self) -> Status {
        let raft = self.world.raft.lock();
        let running: Vec<String> = self.world.clusters.lock().keys().cloned().collect();
        let peer = |(number, (address, voter)): (&u64, &(String, bool))| Peer {
            number: *number,
            address: address.clone(),
            voter: *voter,
            last_contact: running.contains(address).then_some(base::Duration::from_millis(20)),
            matched: Some(100),
        };
        Status {
            own: self.own,
            term: Term(2),
            leader: raft.leader,
            has_log: raft.members.contains_key(&self.own),
            last_entry: 100,
            dropped: 0,
            peers: raft.members.iter().map(peer).collect(),
        }
    }

    fn bootstrap(&self, members: Vec<raft::Member>) -> BoxFuture<'_, Result<(), ConsensusError>> {
        self.world.change(|raft| {
            raft.founded.push(members.iter().map(|member| member.node).collect());
            raft.members = members.into_iter().map(|member| (member.node, (member.address, true))).collect();
            raft.leader = Some(self.own);
        });
        async { Ok(()) }.boxed()
    }

    fn add(&self, member: raft::Member, _: Duration) -> BoxFuture<'_, Result<(), ConsensusError>> {
        self.world.change(|raft| raft.members.insert(member.node, (member.address, true)));
        async { Ok(()) }.boxed()
    }

    fn remove(&self, number: u64) -> BoxFuture<'_, Result<(), ConsensusError>> {
        self.world.change(|raft| raft.members.remove(&number));
        async { Ok(()) }.boxed()
    }

    fn transfer(&self, to: Option<u64>) -> BoxFuture<'_, Result<u64, ConsensusError>> {
        let leader = self.world.change(|raft| {
            let other = raft.members.keys().find(|number| **number != self.own).copied();
            raft.leader = to.or(other);
            raft.leader.unwrap()
        });
        async move { Ok(leader) }.boxed()
    }
}

impl PeerClient for World {
    fn query(
        &self,
        address: String,
        query: PeerQuery,
    ) -> BoxFuture<'static, Result<PeerInfo, PeerCallError>> {
        let peer = self.clusters.lock().get(&address).cloned();
        async move {
            let peer = peer.ok_or_else(|| PeerCallError(format!("nobody listens at {address}")))?;
            Ok(peer.answer(&query))
        }
        .boxed()
    }

    fn admin(
        &self,
        address: String,
        request: AdminRequest,
    ) -> BoxFuture<'static, Result<AdminResult, PeerCallError>> {
        let peer = self.clusters.lock().get(&address).cloned();
        async move {
            let peer = peer.ok_or_else(|| PeerCallError(format!("nobody listens at {address}")))?;
            Ok(peer.execute(request).await)
        }
        .boxed()
    }
}

impl ClusterFacts for World {
    fn autopilot(&self) -> Option<Autopilot> {
        self.rules.lock().clone()
    }

    fn begin_autopilot(&self, rules: Autopilot) -> BoxFuture<'_, Result<(), SubmitError>> {
        *self.rules.lock() = Some(rules);
        async { Ok(()) }.boxed()
    }

    fn epoch(&self) -> u16 {
        self.raised.lock().last().copied().unwrap_or(FIRST_EPOCH)
    }

    fn raise_epoch(&self, epoch: u16) -> BoxFuture<'_, Result<(), SubmitError>> {
        self.raised.lock().push(epoch);
        self.change(|_| ());
        async { Ok(()) }.boxed()
    }
}

fn quick() -> Timings {
    let tick = Duration::from_millis(20);
    let catch_up = Duration::from_secs(5);
    Timings { discovery: tick, health: tick, contact: tick, step: tick, settle: tick, catch_up }
}

fn quick_gossip() -> gossip::Timings {
    gossip::Timings {
        probe: Duration::from_millis(100),
        round_trip: Duration::from_millis(40),
        suspicion: Duration::from_millis(400),
        spread: Duration::from_millis(20),
        retry: Duration::from_millis(300),
        forget: Duration::from_secs(3_600),
    }
}

/// How a test describes one server.
struct Spec {
    n: u8,
    expect: u32,
    retry: Vec<String>,
    peers: Vec<String>,
    gossip: bool,
    release: String,
}

fn spec(n: u8, expect: u32) -> Spec {
    let release = Release::own("0.2.0");
    Spec { n, expect, retry: Vec::new(), peers: Vec::new(), gossip: true, release }
}

fn rpc(n: u8) -> String {
    format!("10.0.0.{n}:4647")
}

impl World {
    async fn start(self: &Arc<World>, spec: Spec) -> (Cluster, SocketAddr) {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let serf = socket.local_addr().unwrap();
        let n = spec.n;
        let own = Member {
            id: Uuid::from(u128::from(n)),
            generation: 1,
            number: u64::from(n),
            name: format!("s{n}"),
            region: "global".to_string(),
            datacenter: "dc1".to_string(),
            serf,
            rpc: rpc(n),
            http: format!("10.0.0.{n}:4646"),
            version: spec.release,
            bootstrap_expect: spec.expect,
            has_log: false,
            parting: Parting::Staying,
        };
        let settings = gossip::Settings {
            own: own.clone(),
            keyring: None.into(),
            timings: quick_gossip(),
            seed: n.into(),
        };
        let gossip = spec.gossip.then(|| Gossip::start(settings, Box::new(|_| Ok(())), socket).unwrap());
        let joins = Joins {
            retry: spec.retry,
            retry_interval: Duration::from_millis(50),
            retry_max: 0,
            start: Vec::new(),
            port: 4648,
        };
        let stable = Duration::from_millis(200).as_nanos() as i64;
        let autopilot = Autopilot { server_stabilization_ns: stable, ..Autopilot::default() };
        let settings =
            Settings { own, joins, peers: spec.peers, autopilot, raise_epoch: true, timings: quick() };
        let consensus = Arc::new(Fake { own: n.into(), world: self.clone() });
        let cluster = Cluster::start(settings, consensus, self.clone(), self.clone(), gossip);
        self.clusters.lock().insert(rpc(n), cluster.clone());
        (cluster, serf)
    }

    /// As a kill would: nobody is notified.
    fn kill(&self, n: u8, cluster: Cluster) {
        self.clusters.lock().remove(&rpc(n));
        drop(cluster);
    }
}

#[tokio::test]
async fn three_servers_found_each_other_grow_and_shrink() {
    let world = Arc::new(World::default());
    let (one, seed) = world.start(spec(1, 3)).await;
    let join = || vec![seed.to_string()];
    let (two, _) = world.start(Spec { retry: join(), ..spec(2, 3) }).await;
    assert_eq!(world.raft.lock().founded, Vec::<Vec<u64>>::new());
    let (three, _) = world.start(Spec { retry: join(), ..spec(3, 3) }).await;
    world.until("founded", |raft| raft.founded == [[1, 2, 3]]).await;

    // A fourth one is added once it has been there for a while.
    let (_four, _) = world.start(Spec { retry: join(), ..spec(4, 3) }).await;
    world.until("four voters", |raft| raft.members.len() == 4).await;
    assert_eq!(world.raft.lock().founded.len(), 1);
    assert_eq!(one.leader(), Some(rpc(1)));
    assert_eq!(one.peers(), [rpc(1), rpc(2), rpc(3), rpc(4)]);

    // A dead one is removed, one that leaves as well.
    world.kill(3, three);
    world.until("three voters", |raft| raft.members.len() == 3).await;
    assert_eq!(world.voters(), [1, 2, 4]);
    two.leave().await;
    world.until("two voters", |raft| raft.members.len() == 2).await;
    assert_eq!(world.voters(), [1, 4]);
    let statuses: Vec<(String, String)> =
        one.members().into_iter().map(|member| (member.name, member.status)).collect();
    let expected =
        [("s1.global", "alive"), ("s2.global", "left"), ("s3.global", "failed"), ("s4.global", "alive")];
    assert_eq!(statuses, expected.map(|(name, status)| (name.to_string(), status.to_string())));
}

#[tokio::test]
async fn servers_on_a_list_need_no_gossip() {
    let world = Arc::new(World::default());
    let list: Vec<String> = [1, 2, 3].map(rpc).to_vec();
    let mut servers = Vec::new();
    for n in [3, 1, 2] {
        servers.push(world.start(Spec { gossip: false, peers: list.clone(), ..spec(n, 3) }).await.0);
    }
    world.until("founded", |raft| raft.founded == [[1, 2, 3]]).await;
    // One that is on no list makes itself known by asking.
    let (_four, _) = world.start(Spec { gossip: false, peers: list, ..spec(4, 0) }).await;
    world.until("four voters", |raft| raft.members.len() == 4).await;
    let dead = servers.pop().unwrap();
    world.kill(2, dead);
    world.until("three voters", |raft| raft.members.len() == 3).await;
    assert_eq!(world.voters(), [1, 3, 4]);
}

#[tokio::test]
async fn no_cluster_is_founded_while_the_numbers_differ() {
    let world = Arc::new(World::default());
    let (one, seed) = world.start(spec(1, 2)).await;
    let (two, _) = world.start(Spec { retry: vec![seed.to_string()], ..spec(2, 3) }).await;
    for cluster in [&one, &two] {
        let gossip = cluster.0.inner.gossip.clone().unwrap();
        gossip.watch().wait_for(|list| list.len() == 2).await.unwrap();
        let expected = vec![("s1".to_string(), 2), ("s2".to_string(), 3)];
        assert_eq!(cluster.0.inner.forming(), forming::Forming::Unequal(expected));
    }
    assert!(!two.answer(&PeerQuery { founder: 1, ..PeerQuery::default() }).agrees);
    assert!(world.raft.lock().founded.is_empty());
}

#[tokio::test]
async fn a_founder_waits_for_the_promise_of_all() {
    let world = Arc::new(World::default());
    let list: Vec<String> = [1, 2].map(rpc).to_vec();
    // The second one knows no other server, so it does not agree.
    let (_two, _) = world.start(Spec { gossip: false, ..spec(2, 2) }).await;
    let two = world.clusters.lock()[&rpc(2)].clone();
    assert!(!two.answer(&PeerQuery { founder: 1, ..PeerQuery::default() }).agrees);
    // Once the first one has asked it, it knows.
    let (one, _) = world.start(Spec { gossip: false, peers: list, ..spec(1, 2) }).await;
    world.until("founded", |raft| raft.founded == [[1, 2]]).await;
    let asked = PeerQuery { asker: Some(one.answer(&PeerQuery::default())), founder: 1, history: false };
    let answer = two.answer(&asked);
    assert!(answer.has_log && !answer.agrees, "{answer:?}");
}

#[tokio::test]
async fn one_server_that_expects_no_other_founds_alone() {
    let world = Arc::new(World::default());
    let (_one, _) = world.start(spec(7, 1)).await;
    world.until("founded", |raft| raft.founded == [[7]]).await;
}

#[tokio::test]
async fn operators_see_and_change_the_cluster() {
    let world = Arc::new(World::default());
    let (one, seed) = world.start(spec(1, 3)).await;
    let (two, _) = world.start(spec(2, 3)).await;
    let (three, _) = world.start(spec(3, 3)).await;
    for cluster in [&two, &three] {
        let joined = cluster.join(vec![seed.to_string(), "no host:1".to_string()]).await;
        assert_eq!(joined.joined, 1);
        assert!(joined.error.contains("\"no host:1\" is no HOST or HOST:PORT"), "{joined:?}");
    }
    world.until("founded", |raft| raft.founded == [[1, 2, 3]]).await;
    // Who leads answers from the first moment on.
    one.health().await.unwrap();
    let judged = async {
        while !one.health().await.is_ok_and(|health| health.healthy) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, judged).await.unwrap();
    let health = one.health().await.unwrap();
    assert!(health.healthy && health.failure_tolerance == 1, "{health:?}");
    assert_eq!(health.leader, Uuid::from(1).to_string());
    let raft = one.raft_configuration();
    assert_eq!(raft.servers[1].node, "s2");
    assert!(raft.servers[0].leader && !raft.servers[1].leader);

    // Any server may be asked: it is the leader that knows and acts.
    assert_eq!(two.health().await.unwrap().leader, health.leader);
    for asked in [&one, &two] {
        let unknown = asked.remove_peer(PeerName::Id("x".to_string())).await.unwrap_err();
        assert_eq!(unknown.to_string(), "id \"x\" was not found in the Raft configuration");
    }
    let passed_on = two.execute(AdminRequest::Health).await;
    assert_eq!(passed_on, Err(ClusterError::NotLeading { leader: Some(rpc(1)) }));
    let itself = one.transfer(PeerName::Address(rpc(1))).await.unwrap();
    assert!(itself.noop && itself.from.id == itself.to.id);
    let moved = two.transfer(PeerName::Id(Uuid::from(2).to_string())).await.unwrap();
    assert!(!moved.noop && moved.from.node == "s1" && moved.to.node == "s2" && moved.to.leader);
    assert_eq!(three.leader(), Some(rpc(2)));
    assert_eq!(one.remove_peer(PeerName::Id("3".to_string())).await, Ok(()));
    assert_eq!(world.voters(), [1, 2]);
    // It is alive, so it stays.
    assert_eq!(two.force_leave("s3".to_string(), false).await, Ok(()));
    assert_eq!(two.force_leave("nobody".to_string(), false).await, Ok(()));
    assert_eq!(two.regions(), ["global"]);
}

#[tokio::test]
async fn the_epoch_is_raised_once_every_server_knows_it() {
    let world = Arc::new(World::default());
    let list: Vec<String> = [1, 2].map(rpc).to_vec();
    let listed = |n| Spec { gossip: false, peers: list.clone(), ..spec(n, 2) };
    let (one, _) = world.start(listed(1)).await;
    let (two, _) = world.start(Spec { release: "0.1.0".to_string(), ..listed(2) }).await;
    world.until("founded", |raft| raft.founded == [[1, 2]]).await;
    let known = |cluster: &Cluster| {
        let inner = &cluster.0.inner;
        inner.known_epoch(&inner.consensus.status())
    };
    assert_eq!(known(&one), Some(FIRST_EPOCH), "the second server is of the first release");
    let releases = one.releases();
    let shown: Vec<_> =
        releases.iter().map(|server| (&*server.name, &*server.version, server.epoch)).collect();
    assert_eq!(shown, [("s1", "0.2.0", EPOCH.into()), ("s2", "0.1.0", FIRST_EPOCH.into())]);
    assert!(world.raised.lock().is_empty());

    // It is upgraded.
    world.kill(2, two);
    let (_two, _) = world.start(listed(2)).await;
    world.until("raised", |_| *world.raised.lock() == [EPOCH]).await;
    assert_eq!(known(&one), Some(EPOCH));

    // Nobody has seen a third one yet.
    world.change(|raft| raft.members.insert(3, (rpc(3), true)));
    assert_eq!(known(&one), None);
    assert_eq!(one.releases()[2].epoch, 0);
}

#[tokio::test]
async fn an_operator_may_keep_the_epoch() {
    let world = Arc::new(World::default());
    let (one, _) = world.start(spec(1, 1)).await;
    let settings = Settings { raise_epoch: false, ..one.0.inner.settings.clone() };
    let consensus = Arc::new(Fake { own: 1, world: world.clone() });
    let kept = Cluster::start(settings, consensus, world.clone(), world.clone(), None);
    lead::raise(kept.0.inner.clone()).await;
}

#[tokio::test]
async fn the_leader_measures_how_long_ago_its_followers_answered() {
    let world = Arc::new(World::default());
    let list: Vec<String> = [1, 2].map(rpc).to_vec();
    let (one, _) = world.start(Spec { gossip: false, peers: list.clone(), ..spec(1, 2) }).await;
    let (two, _) = world.start(Spec { gossip: false, peers: list, ..spec(2, 2) }).await;
    world.until("founded", |raft| raft.founded == [[1, 2]]).await;
    let measured = async {
        loop {
            let sampled = one.figures(std::time::Instant::now()).sampled;
            match sampled.into_iter().find(|one| one.total_count >= 2) {
                Some(found) => return found,
                None => tokio::task::yield_now().await,
            }
        }
    };
    let measured = tokio::time::timeout(PATIENCE, measured).await.unwrap();
    assert_eq!((measured.name, measured.min, measured.max), ("nomad.raft.leader.lastContact", 20.0, 20.0));
    assert_eq!(two.figures(std::time::Instant::now()).sampled, []);
}

#[tokio::test]
async fn looking_for_servers_may_be_given_up() {
    let world = Arc::new(World::default());
    let (one, _) = world.start(spec(1, 3)).await;
    let inner = &one.0.inner;
    let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut settings = inner.settings.clone();
    settings.joins.retry = vec![silent.local_addr().unwrap().to_string()];
    settings.joins.retry_max = 2;
    let consensus = Arc::new(Fake { own: 1, world: world.clone() });
    let alone = Cluster::start(settings, consensus, world.clone(), world.clone(), inner.gossip.clone());
    let mut given_up = alone.given_up();
    let why =
        tokio::time::timeout(PATIENCE, given_up.wait_for(Option::is_some)).await.unwrap().unwrap().clone();
    assert!(why.unwrap().starts_with("retry_join: no server could be joined in 2 rounds: no server answers"));
}

#[tokio::test]
async fn addresses_come_in_every_form() {
    let one = |ip: &str, port: u16| vec![SocketAddr::new(ip.parse().unwrap(), port)];
    assert_eq!(resolve("10.0.0.1", 4648).await.unwrap(), one("10.0.0.1", 4648));
    assert_eq!(resolve("10.0.0.1:1", 4648).await.unwrap(), one("10.0.0.1", 1));
    assert_eq!(resolve("::1", 4648).await.unwrap(), one("::1", 4648));
    assert_eq!(resolve("[::1]:2", 4648).await.unwrap(), one("::1", 2));
    assert!(resolve("localhost", 4648).await.unwrap().contains(&one("127.0.0.1", 4648)[0]));
    for wrong in ["", ":1", "host:port", "host:70000", "a b", "provider=aws tag_key=x"] {
        assert!(matches!(resolve(wrong, 1).await, Err(AddressError::Form(_))), "{wrong}");
    }
}
