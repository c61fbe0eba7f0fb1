//! Three servers in one process, over real connections and real disks: what they send each other, and what becomes
//! of one whose log or state is not what it should be.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::{Index, Time, Uuid};
use control::Receipt;
use control::broker::BrokerSettings;
use control::heartbeats::HeartbeatSettings;
use http_gateway::ClusterAdmin;
use journal::Freshness;
use journal::store::{Directory, Driving, ImageMeta, RETENTION, Store};
use keyring::{ServerSecret, SigningKey};
use model::command::RegisterJob;
use model::document::{Job, TaskGroup};
use model::{Actor, Autopilot, Command, JobKey, Request, RequestId};
use monitor::{FOLLOWERS_MAX, Follow, FollowError, Monitor};
use raft::{TAIL, Tail};
use server::cluster::Joins;
use server::{ClusterSettings, Server, Settings};
use state::{Imager, State};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufStream};
use tokio::net::TcpStream;
use tracing::level_filters::LevelFilter;

/// How long anything may take. Met only by what never happens.
const PATIENCE: Duration = Duration::from_secs(120);

/// Small, so that the log soon has segments that are sealed.
const SEGMENT_BYTES: u64 = 64 << 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_at_one_server_is_read_at_every_other() {
    let cluster = Cluster::start().await;
    for nth in 0..3 {
        let id = RequestId(Uuid::from_random([nth as u8 + 1; 16]));
        let name = format!("job-{nth}");
        let receipt = cluster.register_as(nth, id, &name).await;
        let other = (nth + 1) % 3;
        assert_eq!(cluster.register_as(other, id, &name).await.index, receipt.index, "it takes effect once");
        let control = &cluster.server(other).control;
        control.reach(receipt.index).await.expect("a reader who names an index waits for it");
        assert!(cluster.knows(other, &name));
        for freshness in [Freshness::Lease, Freshness::Confirmed] {
            let last = (nth + 2) % 3;
            cluster.server(last).control.catch_up(freshness).await.expect("somebody leads");
            assert!(cluster.knows(last, &name), "{freshness:?}");
        }
    }
    cluster.shutdown().await;
}

/// Three clients write each job at once, each at another server, and each goes on from what it was answered: whoever was not
/// the last must find out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_racing_writers_only_one_goes_on_from_each_index() {
    const RACES: usize = 400;
    const AT_ONCE: usize = 40;
    let cluster = Arc::new(Cluster::start().await);
    cluster.register(0, "begins").await;
    let race = async |cluster: Arc<Cluster>, name: String| {
        let write = async |nth: usize, text: &str, index: Option<u64>| {
            let job = serde_json::json!({"ID": name, "Name": name, "Type": "service", "Datacenters": ["dc1"],
                "Meta": {"writer": format!("{nth} {text}")},
                "TaskGroups": [{"Name": "g", "Tasks": [{"Name": "t", "Driver": "mock"}]}]});
            let body = serde_json::json!({"Job": job, "EnforceIndex": index.is_some(), "JobModifyIndex": index.unwrap_or(0)});
            cluster.put_once(nth, "/v1/jobs", &body).await
        };
        let (a, b, c) =
            tokio::join!(write(0, "first", None), write(1, "first", None), write(2, "first", None));
        let index = |(status, answer): (u16, String)| {
            assert_eq!(status, 200, "{answer}");
            let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
            answer["JobModifyIndex"].as_u64().unwrap()
        };
        let first = [a, b, c].map(index);
        let again = |nth: usize| write(nth, "second", Some(first[nth]));
        let (a, b, c) = tokio::join!(again(0), again(1), again(2));
        let won = [a, b, c].map(|(status, _)| status == 200);
        let last = first.iter().max().unwrap();
        first.map(|index| index == *last) == won && won.iter().filter(|won| **won).count() == 1
    };
    let mut wrong = 0;
    for from in (0..RACES).step_by(AT_ONCE) {
        let races = (from..from + AT_ONCE).map(|nth| race(cluster.clone(), format!("race-{nth}")));
        let races = tokio::time::timeout(PATIENCE, futures_util::future::join_all(races)).await;
        wrong += races.expect("all outcomes are known").iter().filter(|sound| !**sound).count();
    }
    assert_eq!(wrong, 0, "of {RACES} races");
    Arc::into_inner(cluster).expect("all races are over").shutdown().await;
}

/// Only the leader counts how long a lock holds, whichever server is asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_is_renewed_through_every_server() {
    let cluster = Cluster::start().await;
    for nth in 0..3 {
        cluster.signing(nth).await;
    }
    let acquire = serde_json::json!({"Items": {"owner": "me"}, "Lock": {"TTL": "30s"}});
    let (status, held) = cluster.put(0, "/v1/var/lock?lock-acquire=true", &acquire).await;
    assert_eq!(status, 200, "{held}");
    let held: serde_json::Value = serde_json::from_str(&held).unwrap();
    let own = serde_json::json!({"Lock": held["Lock"]});
    let other = serde_json::json!({"Lock": {"ID": "00000000-0000-0000-0000-000000000001"}});
    for nth in 0..3 {
        let (status, answer) = cluster.put(nth, "/v1/var/lock?lock-renew=true", &own).await;
        assert_eq!(status, 200, "{answer}");
        let (status, answer) = cluster.put(nth, "/v1/var/lock?lock-renew=true", &other).await;
        assert_eq!((status, answer.as_str()), (409, "attempting to modify locked variable"));
        let (status, answer) = cluster.put(nth, "/v1/var/lock?cas=0", &acquire).await;
        assert!(status == 409 && answer.contains("\"owner\":\"me\""), "every server opens it: {answer}");
    }
    cluster.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_of_a_server_is_followed_through_another() {
    let cluster = Cluster::start().await;
    let of_one = |nth: usize| cluster.get(nth, "/v1/agent/monitor?server_id=server-1&plain=true");
    assert_eq!(of_one(0).await, "HTTP/1.1 200 OK");
    let wanted = Follow { level: LevelFilter::INFO, json: false, location: false, plain: true };
    // A server whose connection slots are all taken says so to its callers.
    let mut taken = Vec::new();
    while taken.len() < FOLLOWERS_MAX {
        match cluster.logs[1].follow(&wanted) {
            Ok(lines) => taken.push(lines),
            // The one who asked just now is about to leave.
            Err(FollowError::Full) => tokio::task::yield_now().await,
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(of_one(0).await, "HTTP/1.1 429 Too Many Requests");
    assert_eq!(of_one(1).await, "HTTP/1.1 429 Too Many Requests");
    drop(taken);
    assert_eq!(of_one(2).await, "HTTP/1.1 200 OK");
    cluster.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_whose_digest_differs_gets_the_clusters_state() {
    let mut cluster = Cluster::start().await;
    cluster.register(0, "before").await;
    let odd = cluster.follower().await;
    cluster.agree().await;
    cluster.server(odd).control.keep_image().expect("the disk takes it");
    cluster.register(0, "after").await;
    cluster.agree().await;
    cluster.stop(odd).await;
    put_in_another_state(&cluster.log(odd));
    cluster.begin(odd).await;
    let mut diverged = cluster.server(odd).control.diverged();
    cluster.register((odd + 1) % 3, "what shows it").await;
    let seen = async {
        // Another batch may have shown it before anybody looked here: then it is over once all are alike.
        tokio::select! {
            why = diverged.wait_for(Option::is_some) => {
                let why = why.unwrap().clone().unwrap();
                assert!(why.contains("cluster"), "it names the table: {why}");
            }
            () = cluster.agree() => {}
        }
        diverged.wait_for(Option::is_none).await.unwrap();
    };
    tokio::time::timeout(PATIENCE, seen).await.expect("it differs, and then it does not");
    cluster.agree().await;
    // It is a server as any other again, also after a restart.
    cluster.stop(odd).await;
    cluster.begin(odd).await;
    cluster.register(odd, "later").await;
    cluster.agree().await;
    assert_eq!(*cluster.server(odd).control.diverged().borrow(), None);
    cluster.shutdown().await;
}

/// Two of three servers are lost. What the third one has is what there is, and another one joins it again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_goes_on_from_one_server_if_its_operator_says_so() {
    let mut cluster = Cluster::start().await;
    cluster.register(0, "before").await;
    cluster.agree().await;
    for nth in 0..3 {
        cluster.stop(nth).await;
    }
    let ends = [0, 1, 2].map(|nth| raft::log_end(&cluster.log(nth)).unwrap().unwrap());
    let newest = (0..3).max_by_key(|nth| (ends[*nth].term, ends[*nth].entry)).unwrap();
    let other = (newest + 1) % 3;
    let id = std::fs::read_to_string(cluster.home(newest).join("server/server-id")).unwrap();
    let peers = serde_json::json!([{"id": id.trim(), "address": cluster.rpc[newest].to_string()}]);
    let file = cluster.home(newest).join("server/raft/peers.json");
    std::fs::create_dir(file.parent().unwrap()).unwrap();
    std::fs::write(&file, peers.to_string()).unwrap();

    cluster.begin(newest).await;
    assert!(!file.exists(), "it is followed once");
    cluster.register(newest, "alone").await;
    assert!(cluster.knows(newest, "before"));
    assert_eq!(cluster.voters(newest).len(), 1);

    cluster.begin(other).await;
    let joined = async {
        while cluster.voters(newest).len() < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, joined).await.expect("it is a voter again");
    cluster.register(other, "together").await;
    cluster.agree().await;
    assert!(cluster.knows(other, "alone"));
    cluster.stop(other).await;
    cluster.stop(newest).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_with_a_damaged_log_begins_anew_as_another_member() {
    let mut cluster = Cluster::start().await;
    for nth in 0..60 {
        cluster.register(0, &format!("job-{nth}")).await;
    }
    let damaged = cluster.follower().await;
    cluster.agree().await;
    let number = cluster.number(damaged);
    cluster.stop(damaged).await;
    let sealed = flip_a_byte(&cluster.log(damaged));
    cluster.begin(damaged).await;
    cluster.agree().await;
    assert_ne!(cluster.number(damaged), number);
    let aside = cluster.home(damaged).join("server/log.damaged-1");
    assert!(aside.join(sealed).exists(), "what is left is kept for whoever wants to look at it");
    let whole = async {
        // Who is known goes by its own id, a number that nobody answers for by itself.
        while cluster.voters(damaged).len() != 3 || cluster.voters(damaged).contains(&number.to_string()) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let whole = tokio::time::timeout(PATIENCE, whole).await;
    assert!(whole.is_ok(), "it votes in place of {number}: {:?}", cluster.voters(damaged));
    cluster.register(damaged, "after").await;
    cluster.agree().await;
    cluster.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_server_can_sign_also_one_that_lost_its_disk() {
    let mut cluster = Cluster::start().await;
    let founded = cluster.signing(0).await;
    cluster.agree().await;
    for nth in 0..3 {
        let key = cluster.signing(nth).await;
        assert_eq!((key.id(), key.public()), (founded.id(), founded.public()), "server {nth}");
    }
    let lost = cluster.follower().await;
    cluster.stop(lost).await;
    std::fs::remove_dir_all(cluster.home(lost)).unwrap();
    cluster.begin(lost).await;
    let key = cluster.signing(lost).await;
    assert_eq!(key.sign(b"claims").unwrap(), founded.sign(b"claims").unwrap());
    cluster.shutdown().await;
}

/// A server that joins gets the state of now and nothing of what was before it: another one answers that for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_before_a_server_joined_is_read_from_another_one() {
    let mut cluster = Cluster::keeping(Tail { entries: 5, bytes: 1 << 20 }).await;
    for nth in 0..30 {
        cluster.register(0, &format!("job-{nth}")).await;
    }
    cluster.agree().await;
    let lost = cluster.follower().await;
    cluster.stop(lost).await;
    std::fs::remove_dir_all(cluster.home(lost)).unwrap();
    let others = [(lost + 1) % 3, (lost + 2) % 3];
    // Of two moments: then nobody sends the log from its beginning.
    for nth in 0..2 {
        cluster.register(others[0], &format!("more-{nth}")).await;
        for other in others {
            let control = cluster.server(other).control.clone();
            tokio::task::spawn_blocking(move || control.keep_image()).await.unwrap().unwrap();
        }
    }
    cluster.begin(lost).await;
    cluster.register(lost, "after").await;
    cluster.agree().await;
    // Without the lengths of the pieces that it came in, and what keeps a stream alive.
    let body = |read: &str| -> String {
        assert!(read.starts_with("HTTP/1.1 200"), "{read}");
        let pieces = read.split_once("\r\n\r\n").unwrap().1.split("\r\n");
        let whole: String = pieces.filter(|piece| u64::from_str_radix(piece, 16).is_err()).collect();
        whole.replace("{}\n", "")
    };
    for path in ["/v1/jobs?as_of=3", "/v1/event/stream?from=1&to=4&follow=false"] {
        let read = cluster.whole(lost, path).await;
        let at = read.lines().find_map(|line| line.strip_prefix("x-sojourn-history-at: "));
        let at = at.unwrap_or_else(|| panic!("{read}"));
        let there = others.into_iter().find(|other| cluster.server(*other).http.to_string() == at);
        let there = there.unwrap_or_else(|| panic!("{at} is one of the others"));
        let known = body(&cluster.whole(there, path).await);
        assert!(!known.is_empty() && body(&read) == known, "{path}: {read}");
    }
    cluster.shutdown().await;
}

pub(crate) struct Cluster {
    directory: tempfile::TempDir,
    rpc: Vec<SocketAddr>,
    servers: Vec<Option<Server>>,
    logs: [Monitor; 3],
    /// What of the log is kept for those who are a little behind.
    tail: Tail,
}

impl Cluster {
    pub(crate) async fn start() -> Cluster {
        Cluster::keeping(TAIL).await
    }

    async fn keeping(tail: Tail) -> Cluster {
        // Held until all are chosen, so that no two are the same.
        let held: Vec<_> =
            (0..3).map(|_| std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()).collect();
        let rpc = held.iter().map(|port| port.local_addr().unwrap()).collect();
        drop(held);
        let directory = tempfile::tempdir().unwrap();
        let mut cluster =
            Cluster { directory, rpc, servers: vec![None, None, None], logs: Default::default(), tail };
        for nth in 0..3 {
            cluster.begin(nth).await;
        }
        cluster
    }

    async fn begin(&mut self, nth: usize) {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let peers = self.rpc.iter().filter(|rpc| **rpc != self.rpc[nth]).map(SocketAddr::to_string).collect();
        let settings = Settings {
            name: format!("server-{nth}"),
            region: "global".to_string(),
            datacenter: "dc1".to_string(),
            data_dir: self.home(nth),
            http: any,
            rpc: self.rpc[nth],
            advertise_http: None,
            advertise_rpc: None,
            node: None,
            garbage: Default::default(),
            introduction: Default::default(),
            access: Default::default(),
            root_keys: Default::default(),
            oidc_issuer: None,
            scheduler: Default::default(),
            heartbeats: HeartbeatSettings {
                min_ttl: base::Duration::from_secs(10),
                grace: base::Duration::from_secs(10),
                failover_ttl: base::Duration::from_secs(300),
            },
            broker: BrokerSettings::default(),
            job_count_max: 50_000,
            identities: Default::default(),
            workers: 0,
            segment_bytes: SEGMENT_BYTES,
            scrub_every: None,
            history: server::HistorySettings { tail: self.tail, ..Default::default() },
            tls: None,
            federation: Default::default(),
            cluster: ClusterSettings {
                bootstrap_expect: 3,
                gossip: None,
                joins: Joins::default(),
                peers,
                autopilot: Autopilot { server_stabilization_ns: 1, ..Autopilot::default() },
                raise_epoch: true,
                timings: raft::Timings::default(),
            },
            version: "1".to_string(),
            config: Arc::new(serde_json::Map::new()),
            log: self.logs[nth].clone(),
            audit: None,
            limits: Default::default(),
            debug: false,
            prometheus: true,
            metrics_host: false,
            ui: true,
            ui_folder: None,
            node_figures: Default::default(),
            node_routes: Default::default(),
            sink_addresses: Default::default(),
            response_headers: Default::default(),
        };
        self.servers[nth] = Some(Server::start(settings).await.expect("a server starts"));
    }

    async fn stop(&mut self, nth: usize) {
        self.servers[nth].take().expect("it runs").shutdown().await;
    }

    pub(crate) async fn shutdown(mut self) {
        for nth in 0..3 {
            self.stop(nth).await;
        }
    }

    pub(crate) fn server(&self, nth: usize) -> &Server {
        self.servers[nth].as_ref().expect("it runs")
    }

    /// The first line of an answer.
    async fn get(&self, nth: usize, path: &str) -> String {
        let mut stream = BufStream::new(TcpStream::connect(self.server(nth).http).await.unwrap());
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        line.trim_end().to_string()
    }

    /// The head and the body of an answer.
    async fn whole(&self, nth: usize, path: &str) -> String {
        let mut stream = TcpStream::connect(self.server(nth).http).await.unwrap();
        let asked = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(asked.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    /// Status and body of an answer.
    async fn put(&self, nth: usize, path: &str, body: &serde_json::Value) -> (u16, String) {
        self.put_with(nth, path, "", &body.to_string()).await
    }

    /// Repeats a write by its name until its outcome is known: a busy host loses leaders, and the answers say so.
    async fn put_once(&self, nth: usize, path: &str, body: &serde_json::Value) -> (u16, String) {
        let body = body.to_string();
        let name = Uuid::from_random(*blake3::hash(body.as_bytes()).as_bytes().first_chunk().unwrap());
        let named = format!("X-Sojourn-Request-Id: {name}\r\n");
        loop {
            let (status, answer) = self.put_with(nth, path, &named, &body).await;
            if status == 200 || answer.contains("Enforcing job modify index") {
                return (status, answer);
            }
        }
    }

    async fn put_with(&self, nth: usize, path: &str, headers: &str, body: &str) -> (u16, String) {
        let head = format!("PUT {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}");
        let mut stream = TcpStream::connect(self.server(nth).http).await.unwrap();
        let rest = format!("Content-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all((head + &rest).as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer has a head");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        (status.expect("an answer has a status"), body.to_string())
    }

    fn home(&self, nth: usize) -> PathBuf {
        self.directory.path().join(format!("server-{nth}"))
    }

    fn log(&self, nth: usize) -> PathBuf {
        self.home(nth).join("server/log")
    }

    fn number(&self, nth: usize) -> u64 {
        std::fs::read_to_string(self.home(nth).join("server/raft-number")).unwrap().trim().parse().unwrap()
    }

    /// The cluster's key, opened with what this server has on its disk.
    async fn signing(&self, nth: usize) -> SigningKey {
        let read = |name| std::fs::read_to_string(self.home(nth).join("server").join(name)).unwrap();
        let (id, digits) = (read("server-id"), read("server-key"));
        let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
        let private: Vec<u8> = (0..64).step_by(2).map(byte).collect();
        let secret = ServerSecret::new(id.trim().parse().unwrap(), &private.try_into().unwrap()).unwrap();
        let sealed = async {
            loop {
                let state = self.server(nth).control.state();
                let active = state.keyring.active();
                if let Some((id, bytes)) =
                    active.and_then(|(id, key)| Some((id, key.sealed.get(&secret.server())?)))
                {
                    return secret.open(id, bytes).expect("what is sealed for a server opens there");
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, sealed).await.expect("every server gets a copy")
    }

    /// Some server that does not lead.
    async fn follower(&self) -> usize {
        let (nth, mut leadership) = (0, self.server(0).control.leadership());
        let known = leadership.wait_for(|now| *now != control::Leadership::Unknown).await.unwrap();
        if *known == control::Leadership::Mine { nth + 1 } else { nth }
    }

    async fn register(&self, at: usize, name: &str) -> Receipt {
        self.register_as(at, RequestId::default(), name).await
    }

    async fn register_as(&self, at: usize, id: RequestId, name: &str) -> Receipt {
        let mut job = Job {
            id: Some(name.to_string()),
            name: Some(name.to_string()),
            meta: BTreeMap::from([("text".to_string(), "x".repeat(4_000))]).into(),
            task_groups: vec![TaskGroup { name: Some("group".to_string()), ..TaskGroup::default() }].into(),
            ..Job::default()
        };
        jobspec::canonicalize(&mut job);
        let register = RegisterJob::new(job);
        let command = Command::RegisterJob(Box::new(register));
        let submitted = async {
            loop {
                let request = Request::named(id, Actor::ANONYMOUS, command.clone());
                match self.server(at).control.submit(request).await {
                    Ok(receipt) => return receipt,
                    // While the cluster is founded, or another leader is elected.
                    Err(control::SubmitError::NotLeading) => {}
                    Err(error) => panic!("{name} at server {at}: {error}"),
                }
            }
        };
        tokio::time::timeout(PATIENCE, submitted).await.expect("somebody takes it")
    }

    fn knows(&self, nth: usize, name: &str) -> bool {
        self.server(nth).control.state().jobs.find(&JobKey::new("default", name)).is_some()
    }

    /// Everybody comes to have the same state, which is then that of its digest.
    async fn agree(&self) {
        let states =
            || self.servers.iter().flatten().map(|server| server.control.state()).collect::<Vec<_>>();
        let agreed = async {
            loop {
                let states = states();
                if states.iter().all(|state| state.index == states[0].index) {
                    return states;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let states = tokio::time::timeout(PATIENCE, agreed).await.expect("everybody catches up");
        for state in &states {
            assert!(**state == *states[0]);
            assert_eq!(state.digest(), state.recomputed_digest());
        }
    }

    fn voters(&self, nth: usize) -> Vec<String> {
        let servers = self.server(nth).cluster.raft_configuration().servers;
        servers.iter().filter(|server| server.voter).map(|server| server.id.clone()).collect()
    }
}

/// Keeps an image of a state that nobody decided on: the newest, but for its time.
fn put_in_another_state(log: &Path) {
    let files = Arc::new(Directory::open(log).unwrap());
    let settings = journal::store::Settings {
        segment_bytes: SEGMENT_BYTES,
        retention: RETENTION,
        archive: None,
        keep: None,
        driving: Driving::Threads,
    };
    let store = Store::open(files, settings, Arc::new(|why| panic!("{why}"))).unwrap();
    let (meta, image) = store.read_image().unwrap().expect("an image was kept");
    let mut state: State = state::restore(&image).unwrap();
    let batches = store.batches(state.index.next(), Index(u64::MAX), usize::MAX).unwrap();
    let (newest, earlier) = batches.split_last().expect("something was written after the image");
    for batch in earlier {
        state.apply(&batch.decode().unwrap()).unwrap();
    }
    let mut other = newest.decode().unwrap();
    other.time = Time(other.time.0 + 1);
    state.apply(&other).unwrap();
    let last = store.entry_of(state.index).unwrap();
    let image = Imager::default().image(&state);
    store.keep(ImageMeta { last, index: state.index, ..meta }, image.chunks, Time(0)).unwrap();
    store.close();
}

/// Changes a byte in the middle of the oldest segment, and names that.
fn flip_a_byte(log: &Path) -> String {
    let names =
        std::fs::read_dir(log).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut segments: Vec<String> = names.filter(|name| name.ends_with(".seg")).collect();
    segments.sort();
    assert!(segments.len() > 2, "some are sealed: {segments:?}");
    let path = log.join(&segments[0]);
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    segments.remove(0)
}
