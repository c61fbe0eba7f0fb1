//! Servers of several regions in one process, over real connections: what they know of each other, and what they answer for
//! each other.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http_gateway::ClusterAdmin;
use model::Autopilot;
use serde_json::{Value, json};
use server::{AccessSettings, ClusterSettings, FederationSettings, GossipSettings, Server, Settings};
use tls::{AgentTls, TlsSettings};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufStream};
use tokio::net::TcpStream;

use crate::certificates::Certificates;
use crate::scrub;

/// How long anything may take. Met only by what never happens.
const PATIENCE: Duration = Duration::from_secs(120);

/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(20);

const KEY: &str = "AAECAwQFBgcICQoLDA0ODw==";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_of_other_regions_are_seen_and_never_vote() {
    let mut federation = Federation::default();
    let eu = federation.start("eu", 1, false).await;
    let us = federation.start("us", 1, false).await;
    let asia = federation.start("asia", 1, false).await;
    us.join(&eu).await;
    asia.join(&us).await;
    for place in [&eu, &us, &asia] {
        let regions = json!(["asia", "eu", "us"]);
        place.until("all regions are known", async || place.get("/v1/regions").await.json() == regions).await;
        let members = place.get("/v1/agent/members").await.json();
        let mut names: Vec<&str> = members["Members"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|member| member["Name"].as_str())
            .collect();
        names.sort_unstable();
        assert_eq!(names, ["asia-1.asia", "eu-1.eu", "us-1.us"]);
        assert_eq!(place.get("/v1/agent/self").await.json()["stats"]["nomad"]["known_regions"], "3");
    }
    // It finds its own region through another one. Once it votes, the autopilot has looked at all of them.
    let second = federation.start("eu", 0, false).await;
    second.join(&asia).await;
    eu.until("the second server of the region votes", async || eu.voters() == 2).await;
    assert_eq!(sorted(eu.cluster().peers()), sorted(vec![eu.rpc(), second.rpc()]));
    for place in [&us, &asia] {
        assert_eq!(place.cluster().peers(), [place.rpc()], "of {}", place.region);
        let health = place.get("/v1/operator/autopilot/health").await.json();
        assert_eq!(health["Servers"].as_array().unwrap().len(), 1, "{health}");
    }
    // Each has a log of its own.
    assert_ne!(eu.state().cluster, us.state().cluster);
    federation.shutdown([eu, us, asia, second]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_are_answered_by_the_region_that_they_name() {
    let mut federation = Federation::default();
    let (eu, us) = federation.pair(false).await;
    let answer = us.put("/v1/jobs?region=eu", &json!({"Job": job("web")})).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(eu.get("/v1/job/web").await.json()["Region"], "eu");
    assert_eq!(us.get("/v1/job/web").await.status, 404);
    // The job itself names the region.
    let mut other = job("db");
    other["Region"] = json!("eu");
    let answer = us.put("/v1/jobs", &json!({"Job": other})).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(eu.get("/v1/job/db").await.status, 200);
    assert_eq!(us.get("/v1/jobs").await.json(), json!([]));

    for path in ["/v1/job/web?region=eu", "/v1/jobs?region=eu&prefix=w", "/v1/job/web?region=eu&pretty"] {
        let (there, here) = (us.get(path).await, eu.get(path).await);
        assert_eq!((there.status, &there.body), (here.status, &here.body), "{path}");
        for header in ["x-nomad-index", "x-nomad-knownleader", "content-type"] {
            assert_eq!(there.header(header), here.header(header), "{header} of {path}");
        }
    }
    for path in ["/v1/job/none?region=eu", "/v1/jobs?region=eu&per_page=x", "/v1/nothing?region=eu"] {
        let (there, here) = (us.get(path).await, eu.get(path).await);
        assert!(here.status >= 400);
        assert_eq!((there.status, there.body), (here.status, here.body), "{path}");
    }
    assert_eq!(us.get("/v1/agent/members?region=eu").await.json()["ServerName"], "eu-1");
    assert_eq!(us.get("/v1/status/leader?region=eu").await.json(), json!(eu.rpc()));
    // What an agent says of itself, it says whatever region is named.
    assert_eq!(us.get("/v1/agent/self?region=eu").await.json()["config"]["Region"], "us");
    for path in ["/v1/jobs?region=mars", "/v1/event/stream?region=mars"] {
        let answer = us.get(path).await;
        assert_eq!((answer.status, answer.body.as_str()), (500, "No path to region"), "{path}");
    }
    let answer = us.put("/v1/jobs", &json!({"Region": "mars", "Job": job("web")})).await;
    assert_eq!((answer.status, answer.body.as_str()), (500, "No path to region"));
    federation.shutdown([eu, us]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waits_and_streams_go_on_through_another_region() {
    let mut federation = Federation::default();
    let (eu, us) = federation.pair(false).await;
    assert_eq!(eu.put("/v1/jobs", &json!({"Job": job("before")})).await.status, 200);
    let mut stream = us.open("/v1/event/stream?region=eu&topic=Job").await;
    let index = us.get("/v1/jobs?region=eu").await.header("x-nomad-index");
    let waiting = async {
        let mut index = index;
        loop {
            let answer = us.get(&format!("/v1/jobs?region=eu&wait=100s&index={index}")).await;
            assert_ne!(answer.header("x-nomad-index"), index, "it has waited for something newer");
            if answer.json()[1]["ID"] == "web" {
                return answer;
            }
            index = answer.header("x-nomad-index");
        }
    };
    let body = json!({"Job": job("web")});
    let writing = eu.put("/v1/jobs", &body);
    let (waited, _) = tokio::join!(waiting, writing);
    // The job goes on from there, so the list may be newer by now.
    let number = |answer: &Answer| answer.header("x-nomad-index").parse::<u64>().unwrap();
    assert!(number(&waited) <= number(&eu.get("/v1/jobs").await));
    let event = async {
        let mut line = String::new();
        while !(line.contains("JobRegistered") && line.contains("\"web\"")) {
            line.clear();
            assert!(stream.read_line(&mut line).await.unwrap() > 0, "the stream goes on");
        }
    };
    tokio::time::timeout(PATIENCE, event).await.expect("the stream shows the job");
    federation.shutdown([eu, us]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_passed_on_once() {
    let mut federation = Federation::default();
    let (eu, us) = federation.pair(false).await;
    for (meant, region, status) in
        [("us", "eu", 500), ("eu", "eu", 500), ("us", "us", 200), ("eu", "us", 500), ("eu", "", 500)]
    {
        let more = format!("X-Sojourn-Region: {meant}\r\n");
        let answer = us.send("GET", &format!("/v1/jobs?region={region}"), "", &more).await;
        assert_eq!(answer.status, status, "for {meant}, about {region:?}: {}", answer.body);
    }
    federation.shutdown([eu, us]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_has_to_be_good_where_the_request_is_answered() {
    let mut federation = Federation::default();
    let (eu, us) = federation.pair(true).await;
    let (of_eu, of_us) = (eu.bootstrap().await, us.bootstrap().await);
    let nodes = async |token: &str| {
        let more = format!("X-Nomad-Token: {token}\r\n");
        us.send("GET", "/v1/nodes?region=eu", "", &more).await.status
    };
    assert_eq!(nodes(&of_eu).await, 200);
    assert_eq!(nodes(&of_us).await, 403);
    assert_eq!(us.get("/v1/nodes?region=eu").await.status, 403);
    federation.shutdown([eu, us]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_server_of_the_region_answers_for_one_that_is_down() {
    let mut federation = Federation::default();
    let (eu, us) = federation.pair(false).await;
    let second = federation.start("eu", 0, false).await;
    second.join(&eu).await;
    eu.until("both vote", async || eu.voters() == 2).await;
    us.until("both are known", async || us.get("/v1/agent/members").await.json()["Members"][2].is_object())
        .await;
    let asked = async || {
        let answer = us.get("/v1/agent/members?region=eu").await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.json()["ServerName"].as_str().unwrap().to_string()
    };
    // Whichever is asked first is stopped: right after that it still counts as alive.
    let first = asked().await;
    let (down, up) = if first == eu.name { (eu, second) } else { (second, eu) };
    federation.shutdown([down]).await;
    assert_eq!(asked().await, up.name);
    federation.shutdown([up]).await;
    us.until("the region has no server any more", async || {
        us.get("/v1/jobs?region=eu").await.body == "No path to region"
    })
    .await;
    assert_eq!(us.get("/v1/regions").await.json(), json!(["eu", "us"]), "it is cut off, and not gone");
    assert_eq!(us.put("/v1/jobs", &json!({"Job": job("alone")})).await.status, 200);
    federation.shutdown([us]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_server_of_another_region_is_made_to_leave() {
    let mut federation = Federation::default();
    let (eu, us) = federation.pair(false).await;
    let standing = async |name: &str| {
        let members = eu.get("/v1/agent/members").await.json();
        let mut members = members["Members"].as_array().unwrap().iter();
        members
            .find(|member| member["Name"] == name)
            .map(|member| member["Status"].as_str().unwrap().to_string())
    };
    federation.shutdown([us]).await;
    eu.until("it has failed", async || standing("us-1.us").await.as_deref() == Some("failed")).await;
    // Without its region the name is one of this region.
    assert_eq!(eu.put("/v1/agent/force-leave?node=us-1", &Value::Null).await.status, 200);
    assert_eq!(standing("us-1.us").await.as_deref(), Some("failed"));
    assert_eq!(eu.put("/v1/agent/force-leave?node=us-1.us", &Value::Null).await.status, 200);
    eu.until("it has left", async || standing("us-1.us").await.as_deref() == Some("left")).await;
    eu.until("its region is gone", async || eu.get("/v1/regions").await.json() == json!(["eu"])).await;
    assert_eq!(eu.put("/v1/agent/force-leave?node=us-1.us&prune=true", &Value::Null).await.status, 200);
    eu.until("it is forgotten", async || standing("us-1.us").await.is_none()).await;
    federation.shutdown([eu]).await;
}

fn sorted(mut words: Vec<String>) -> Vec<String> {
    words.sort();
    words
}

fn job(id: &str) -> Value {
    let task = json!({"Name": "task", "Driver": "raw_exec", "Config": {"command": "/bin/true"}});
    json!({"ID": id, "TaskGroups": [{"Name": "group", "Tasks": [task]}]})
}

/// The data directories of all servers.
#[derive(Default)]
pub(crate) struct Federation {
    homes: Vec<tempfile::TempDir>,
    settings: FederationSettings,
    /// What signs the certificates of servers; without it the key of gossip is what proves who they are.
    certificates: Option<Certificates>,
}

/// A server of some region.
pub(crate) struct Place {
    pub(crate) region: String,
    pub(crate) name: String,
    home: PathBuf,
    pub(crate) server: Server,
}

/// One that does not run, and can again.
pub(crate) struct Stopped {
    region: String,
    name: String,
    home: PathBuf,
}

impl Federation {
    /// Its servers have certificates.
    pub(crate) fn certified() -> Federation {
        Federation { certificates: Some(Certificates::make()), ..Federation::default() }
    }

    /// Servers that start from now on have certificates that the others do not accept.
    pub(crate) fn change_authority(&mut self) {
        self.certificates = Some(Certificates::make());
    }

    /// Servers of two regions that know each other.
    pub(crate) async fn pair(&mut self, access: bool) -> (Place, Place) {
        let (eu, us) = (self.start("eu", 1, access).await, self.start("us", 1, access).await);
        us.join(&eu).await;
        for place in [&eu, &us] {
            let both = json!(["eu", "us"]);
            place
                .until("both regions are known", async || place.get("/v1/regions").await.json() == both)
                .await;
        }
        (eu, us)
    }

    pub(crate) async fn start(&mut self, region: &str, expect: u32, access: bool) -> Place {
        self.homes.push(tempfile::tempdir().unwrap());
        let nth = self.homes.iter().filter(|home| home.path().join(region).exists()).count() + 1;
        let home = self.homes.last().unwrap().path();
        std::fs::create_dir(home.join(region)).unwrap();
        let name = format!("{region}-{nth}");
        self.start_at(home.join(region), region, &name, expect, access).await
    }

    /// Servers that start from now on follow a region.
    pub(crate) fn follow(&mut self, region: &str, token: &str) {
        let (authoritative_region, replication_token) = (region.to_string(), token.to_string());
        self.settings = FederationSettings { authoritative_region, replication_token };
    }

    pub(crate) async fn stop(&self, place: Place) -> Stopped {
        let Place { region, name, home, server } = place;
        server.shutdown().await;
        Stopped { region, name, home }
    }

    /// It knows no other server at first.
    pub(crate) async fn resume(&self, stopped: Stopped, access: bool) -> Place {
        self.start_at(stopped.home, &stopped.region, &stopped.name, 1, access).await
    }

    async fn start_at(&self, home: PathBuf, region: &str, name: &str, expect: u32, access: bool) -> Place {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let tls = self.certificates.as_ref().map(|authority| {
            let settings = TlsSettings { rpc: true, ..authority.of(&format!("server.{region}")) };
            Arc::new(AgentTls::load(&settings, region, true).unwrap())
        });
        let key = tls.is_none().then(|| server::gossip::Key::parse(KEY).unwrap());
        let cluster = ClusterSettings {
            bootstrap_expect: expect,
            gossip: Some(GossipSettings { address: any, advertise: any, key }),
            autopilot: Autopilot { server_stabilization_ns: 1, ..Autopilot::default() },
            ..ClusterSettings::alone()
        };
        let settings = Settings {
            name: name.to_string(),
            region: region.to_string(),
            scrub_every: None,
            access: AccessSettings { enabled: access, ..AccessSettings::default() },
            federation: self.settings.clone(),
            cluster,
            tls,
            ..scrub::settings(&home)
        };
        let server = Server::start(settings).await.expect("a server starts");
        if expect == 1 {
            let mut leadership = server.control.leadership();
            let leads = leadership.wait_for(|now| *now == control::Leadership::Mine);
            tokio::time::timeout(PATIENCE, leads).await.expect("it leads alone").unwrap();
        }
        Place { region: region.to_string(), name: name.to_string(), home, server }
    }

    pub(crate) async fn shutdown(&self, places: impl IntoIterator<Item = Place>) {
        for place in places {
            place.server.shutdown().await;
        }
    }
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// Empty without it.
    fn header(&self, name: &str) -> String {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut found = lines.filter(|(header, _)| header.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.to_string()).unwrap_or_default()
    }
}

impl Place {
    fn cluster(&self) -> &dyn ClusterAdmin {
        &self.server.cluster
    }

    fn state(&self) -> Arc<state::State> {
        self.server.control.state()
    }

    fn rpc(&self) -> String {
        self.server.rpc.to_string()
    }

    fn voters(&self) -> usize {
        self.cluster().raft_configuration().servers.iter().filter(|server| server.voter).count()
    }

    pub(crate) async fn join(&self, other: &Place) {
        let members = other.cluster().members();
        let own = members.iter().find(|member| member.name == format!("{}.{}", other.name, other.region));
        let own = own.expect("a server is a member of its gossip");
        let address = format!("127.0.0.1:{}", own.port);
        // One that comes back at another address is refused until its former self has failed.
        let joins = async || self.cluster().join(vec![address.clone()]).await.joined == 1;
        self.until("it joins", joins).await;
    }

    pub(crate) async fn until(&self, what: &str, holds: impl AsyncFn() -> bool) {
        let waited = async {
            while !holds().await {
                tokio::time::sleep(PAUSE).await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, waited).await;
        assert!(waited.is_ok(), "never happened at {}: {what}", self.name);
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "", "").await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Answer {
        self.send("PUT", path, &body.to_string(), "").await
    }

    /// The secret of the first token.
    pub(crate) async fn bootstrap(&self) -> String {
        // The root key that seals secrets is drawn in the background.
        let made = async || self.send("PUT", "/v1/acl/bootstrap", "", "").await;
        let keyed = async || self.state().keyring.active().is_some();
        self.until("there is a root key", keyed).await;
        let answer = made().await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.json()["SecretID"].as_str().unwrap().to_string()
    }

    pub(crate) async fn send(&self, method: &str, path: &str, body: &str, more: &str) -> Answer {
        let (head, body) = self.exchange(method, path, body.as_bytes(), more).await;
        let body = String::from_utf8(body).expect("an answer is text");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
        let body = if is_chunked { unchunked(&body) } else { body };
        Answer { status: status.expect("an answer has a status"), head, body }
    }

    /// The head of an answer and what follows it, as it came.
    pub(crate) async fn exchange(
        &self,
        method: &str,
        path: &str,
        body: &[u8],
        more: &str,
    ) -> (String, Vec<u8>) {
        let mut stream = TcpStream::connect(self.server.http).await.unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{more}Content-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(&[head.as_bytes(), body].concat()).await.unwrap();
        let mut answer = Vec::new();
        let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
        read.unwrap_or_else(|_| panic!("{method} {path} gets an answer")).unwrap();
        let end = answer.windows(4).position(|part| part == b"\r\n\r\n").expect("an answer has a head");
        let body = answer.split_off(end + 4);
        (String::from_utf8(answer).expect("a head is text"), body)
    }

    /// The lines of an answer without end.
    async fn open(&self, path: &str) -> BufStream<TcpStream> {
        let mut stream = BufStream::new(TcpStream::connect(self.server.http).await.unwrap());
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        assert!(line.starts_with("HTTP/1.1 200 "), "{line}");
        stream
    }
}

fn unchunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((length, rest)) = body.split_once("\r\n") {
        let length = usize::from_str_radix(length.trim(), 16).unwrap_or(0);
        whole.push_str(&rest[..length]);
        body = rest[length..].strip_prefix("\r\n").unwrap_or_default();
    }
    whole
}
