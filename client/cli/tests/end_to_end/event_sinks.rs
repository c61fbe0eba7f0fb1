//! Sinks of the event stream, against receivers that fail and come back, and a server that is killed meanwhile.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use serde_json::{Value, json};

use crate::end_to_end::cluster::Host;
use crate::end_to_end::support::http;
use crate::end_to_end::support::{Agent, AgentConfig, eventually, files_with, free_port, job, until};

/// Long enough that no byte on a disk is that by chance.
const SECRET: &str = "whsec_c2lua3MtYXJlLXNpZ25lZC13aXRoLXRoaXM=";

/// What one request brought.
#[derive(Clone, Debug)]
pub(super) struct Received {
    webhook_id: String,
    signature: String,
    pub event: Value,
}

/// A receiver of webhooks. While it has no status it refuses connections.
pub(super) struct Receiver {
    pub address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
    status: Arc<AtomicU16>,
    refused: Arc<Mutex<Option<&'static str>>>,
    stopped: Arc<AtomicBool>,
}

impl Receiver {
    pub fn start(address: SocketAddr, status: u16) -> Receiver {
        let listener = TcpListener::bind(address).unwrap();
        let receiver = Receiver {
            address: listener.local_addr().unwrap(),
            received: Arc::default(),
            status: Arc::new(AtomicU16::new(status)),
            refused: Arc::default(),
            stopped: Arc::default(),
        };
        let (received, status) = (receiver.received.clone(), receiver.status.clone());
        let (refused, stopped) = (receiver.refused.clone(), receiver.stopped.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                // One at a time: each connection is closed after its answer, as a receiver may.
                let _gone = answer(stream.unwrap(), &received, |body| match *refused.lock().unwrap() {
                    Some(word) if body.contains(word) => 422,
                    _ => status.load(Ordering::SeqCst),
                });
            }
        });
        receiver
    }

    pub fn set(&self, status: u16) {
        self.status.store(status, Ordering::SeqCst);
    }

    /// Requests with this word in them.
    pub fn refuse(&self, word: &'static str) {
        *self.refused.lock().unwrap() = Some(word);
    }

    pub fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// Nothing listens there any more.
    fn stop(self) -> SocketAddr {
        self.stopped.store(true, Ordering::SeqCst);
        let _woken = TcpStream::connect(self.address);
        until("the port is free", || TcpStream::connect(self.address).is_err());
        self.address
    }
}

fn answer(
    stream: TcpStream,
    received: &Mutex<Vec<Received>>,
    status: impl Fn(&str) -> u16,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        if line.trim().is_empty() {
            break;
        }
        headers.push(line.trim().to_string());
    }
    let header = |name: &str| {
        let found = headers.iter().filter_map(|line| line.split_once(": "));
        found.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_string()).next()
    };
    let length = header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let status = status(&String::from_utf8_lossy(&body));
    if status < 300 {
        received.lock().unwrap().push(Received {
            webhook_id: header("webhook-id").unwrap_or_default(),
            signature: header("webhook-signature").unwrap_or_default(),
            event: serde_json::from_slice(&body).unwrap(),
        });
    }
    let mut stream = stream;
    write!(stream, "HTTP/1.1 {status} As Told\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
}

/// Registers a job that is placed nowhere.
pub(super) fn register(agent: &Agent, name: &str) {
    let mut job = job(name, json!({"command": "/bin/true"}));
    job["Datacenters"] = json!(["nowhere"]);
    agent.register(&job);
}

pub(super) fn until_it_leads(config: &AgentConfig) {
    let leads = || http::get(config.http, "/v1/status/leader").is_ok_and(|answer| answer.body.len() > 2);
    until("it leads", leads);
}

/// The jobs of events, in order, repetitions left out: these must have the same id and the same content.
fn jobs(received: &[Received]) -> Vec<String> {
    let mut seen: Vec<&Received> = Vec::new();
    for one in received {
        match seen.iter().find(|known| known.webhook_id == one.webhook_id) {
            Some(known) => assert_eq!(known.event, one.event),
            None => seen.push(one),
        }
    }
    seen.iter().map(|one| one.event["data"]["Key"].as_str().unwrap().to_string()).collect()
}

pub(super) fn apply(agent: &Agent, directory: &Path, text: &str) -> String {
    let file = directory.join("sink.hcl");
    std::fs::write(&file, text).unwrap();
    agent.run(&["sink", "apply", file.to_str().unwrap()]).expect_success()
}

pub(super) fn status(agent: &Agent, sink: &str) -> Value {
    agent.get(&format!("/v1/event/sink/{sink}"))
}

/// The receiver fails, is gone and comes back, and the server is killed by turns: every event arrives, in order, and what
/// arrives twice has the same id. What signs it is on no disk as it is.
#[test]
fn a_webhook_gets_every_event_in_order_whatever_fails() {
    let directory = tempfile::tempdir().unwrap();
    let config = AgentConfig::server(directory.path(), "one");
    let agent = config.start();
    until_it_leads(&config);
    let secret = format!("signing_key={SECRET}");
    until("there is a key to seal with", || {
        agent.run(&["var", "put", "-force", "sinks/a", &secret]).code == 0
    });
    let receiver = Receiver::start("127.0.0.1:0".parse().unwrap(), 200);
    let url = format!("http://{}/hook", receiver.address);
    let text = format!(
        "sink \"a\" {{\n  kind = \"webhook\"\n  url = \"{url}\"\n  secret_variable = \"sinks/a\"\n  \
         topics = [\"Job\"]\n  filter = \"Type == JobRegistered\"\n  max_attempts = 100\n}}\n"
    );
    let shown = apply(&agent, directory.path(), &text);
    assert!(shown.contains("Status          = running"), "{shown}");

    register(&agent, "a");
    until("the first arrives", || jobs(&receiver.received()) == ["a"]);
    assert!(receiver.received()[0].signature.starts_with("v1,"));
    assert_eq!(receiver.received()[0].event["specversion"], "1.0");
    receiver.set(503);
    register(&agent, "b");
    until("it is tried in vain", || agent.log().contains("it answered 503"));
    let agent = agent.kill().start();
    until_it_leads(&config);
    register(&agent, "c");
    receiver.set(200);
    until("all arrive", || jobs(&receiver.received()) == ["a", "b", "c"]);

    let before = receiver.received();
    let address = receiver.stop();
    register(&agent, "d");
    until("nobody is there", || agent.log().contains("onnection refused"));
    let receiver = Receiver::start(address, 200);
    register(&agent, "e");
    until("the rest arrives", || {
        let all = [before.clone(), receiver.received()].concat();
        jobs(&all) == ["a", "b", "c", "d", "e"]
    });
    until("it is acknowledged", || status(&agent, "a")["LagBatches"] == 0);
    let arrived = receiver.received().len();
    let agent = agent.kill().start();
    until_it_leads(&config);
    register(&agent, "f");
    until("the last arrives", || jobs(&receiver.received()).last().is_some_and(|last| last == "f"));
    assert_eq!(receiver.received().len(), arrived + 1, "what was acknowledged does not come again");

    drop(agent.kill());
    assert_eq!(files_with(&config.home, SECRET), [""; 0], "no disk has the secret");
}

#[test]
fn a_sink_that_fails_too_often_is_parked_until_somebody_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let config = AgentConfig::server(directory.path(), "one");
    let agent = config.start();
    until_it_leads(&config);
    let receiver = Receiver::start("127.0.0.1:0".parse().unwrap(), 500);
    let url = format!("http://{}/hook", receiver.address);
    let text = format!(
        "sink \"a\" {{\n  kind = \"webhook\"\n  url = \"{url}\"\n  topics = [\"Job\"]\n  \
         filter = \"Type == JobRegistered\"\n  max_attempts = 2\n}}\n"
    );
    apply(&agent, directory.path(), &text);
    register(&agent, "a");
    until("it is parked", || status(&agent, "a")["Status"] == "parked");
    let parked = status(&agent, "a");
    assert_eq!(parked["ParkedAttempts"], 2, "{parked}");
    let shown = agent.run(&["sink", "status", "a"]).expect_success();
    assert!(shown.contains("it answered 500"), "{shown}");
    receiver.set(200);
    register(&agent, "b");
    agent.run(&["sink", "retry", "a"]).expect_success();
    until("both arrive", || jobs(&receiver.received()) == ["a", "b"]);

    // What is refused for good is not tried twice, and can be given up.
    receiver.set(422);
    register(&agent, "c");
    until("it is parked again", || status(&agent, "a")["ParkedAttempts"] == 1);
    receiver.set(200);
    register(&agent, "d");
    agent.run(&["sink", "skip", "a"]).expect_success();
    until("it goes on", || jobs(&receiver.received()) == ["a", "b", "d"]);

    agent.run(&["sink", "pause", "a"]).expect_success();
    register(&agent, "e");
    let listed = agent.run(&["sink", "list"]).expect_success();
    assert!(listed.contains("paused"), "{listed}");
    let refused = agent.run(&["sink", "skip", "a"]).expect_failure();
    assert!(refused.contains("is not parked"), "{refused}");
    agent.run(&["sink", "resume", "a"]).expect_success();
    until("it goes on again", || jobs(&receiver.received()) == ["a", "b", "d", "e"]);

    // The same from the beginning, into a file.
    let text = "sink \"copy\" {\n  kind = \"file\"\n  from = \"oldest\"\n  topics = [\"Job\"]\n  \
                filter = \"Type == JobRegistered\"\n}\n";
    apply(&agent, directory.path(), text);
    let file = config.home.join("data/server/sinks/copy.ndjson");
    until("the file has all of them", || {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        events.map(|event| event["data"]["Key"].clone()).collect::<Vec<_>>() == ["a", "b", "c", "d", "e"]
    });
    agent.run(&["sink", "delete", "a"]).expect_success();
    let gone = agent.run(&["sink", "status", "a"]).expect_failure();
    assert!(gone.contains("event sink \"a\" not found"), "{gone}");
    assert!(!agent.run(&["cursor", "list"]).expect_success().contains("sink.a"));
}

/// Three servers whose leaders die.
pub(super) struct Servers {
    places: Vec<AgentConfig>,
    agents: Vec<Agent>,
    pub registered: usize,
}

impl Servers {
    pub fn launch(directory: &Path) -> Servers {
        let all: Vec<Host> = (0..3).map(|_| Host::local()).collect();
        let member = |nth: usize| AgentConfig::member(directory, &format!("server-{nth}"), &all[nth], &all);
        let places: Vec<AgentConfig> = (0..3).map(member).collect();
        let agents = places.iter().map(AgentConfig::launch).collect();
        Servers { places, agents, registered: 0 }
    }

    fn leader(&self) -> usize {
        let leads = |at: &AgentConfig| {
            let answer = http::get(at.http, "/v1/agent/self");
            answer.is_ok_and(|answer| answer.json()["stats"]["raft"]["state"] == "Leader")
        };
        eventually("a server leads", || self.places.iter().position(leads))
    }

    pub fn has_sink(&self, name: &str, wanted: &Value) {
        let at = self.places[self.leader()].http;
        until("there is a sink", || {
            let answer = http::put(at, &format!("/v1/event/sink/{name}"), wanted);
            answer.is_ok_and(|answer| answer.status == 200)
        });
    }

    /// Jobs that are placed nowhere, whoever takes them.
    pub fn register_some(&mut self) {
        for _ in 0..10 {
            let mut job = job(&format!("job-{}", self.registered), json!({"command": "/bin/true"}));
            job["Datacenters"] = json!(["nowhere"]);
            let body = json!({ "Job": job });
            until("it is registered", || {
                let two = [self.registered % 3, (self.registered + 1) % 3].map(|nth| self.places[nth].http);
                let taken = |at| http::put(at, "/v1/jobs", &body).is_ok_and(|answer| answer.status == 200);
                two.into_iter().any(taken)
            });
            self.registered += 1;
        }
    }

    pub fn lose_leader(&mut self) {
        let dying = self.leader();
        self.agents.remove(dying).kill();
        self.register_some();
        self.agents.insert(dying, self.places[dying].launch());
    }

    fn has_acknowledged(&self, sink: &str) {
        let at = self.places[self.leader()].http;
        until("it is acknowledged", || {
            let answer = http::get(at, &format!("/v1/event/sink/{sink}"));
            answer.is_ok_and(|answer| answer.status == 200 && answer.json()["LagBatches"] == 0)
        });
    }
}

/// The leader is killed again and again under load: every event of the stream arrives, in its order, and what arrives twice has
/// the same id and the same content. A stream of NATS has each of them once, because it knows their ids.
#[test]
fn a_sink_loses_nothing_when_leaders_die() {
    let directory = tempfile::tempdir().unwrap();
    let nats = JetStream::start(&directory.path().join("nats"));
    let mut servers = Servers::launch(directory.path());
    let receiver = Receiver::start("127.0.0.1:0".parse().unwrap(), 200);
    let url = format!("http://{}/hook", receiver.address);
    let wanted = json!({"Kind": "webhook", "URL": url, "Topics": ["Job"], "Filter": "Type == JobRegistered",
        "From": "oldest", "MaxAttempts": 100});
    servers.has_sink("a", &wanted);
    if let Some(nats) = &nats {
        let leader = &servers.agents[servers.leader()];
        let put = ["var", "put", "-force", "sinks/nats", "user=u", "password=hidden"];
        until("there is a key to seal with", || leader.run(&put).code == 0);
        servers.has_sink("n", &nats.as_sink());
    }
    for _ in 0..3 {
        let before = receiver.received().len();
        servers.register_some();
        until("some arrive", || receiver.received().len() > before);
        servers.lose_leader();
    }
    let names: Vec<String> = (0..servers.registered).map(|number| format!("job-{number}")).collect();
    until("all arrive", || {
        let arrived = jobs(&receiver.received());
        names.iter().all(|name| arrived.contains(name))
    });
    servers.has_acknowledged("a");
    let mut arrived = jobs(&receiver.received());
    // A request that was answered by nobody was made again, and has an event each time.
    arrived.dedup();
    assert_eq!(arrived, names, "in the order in which they were registered");
    if let Some(nats) = nats {
        servers.has_acknowledged("n");
        let events = nats.events();
        let ids: BTreeSet<String> = events.iter().map(|event| event["id"].to_string()).collect();
        assert_eq!(ids.len(), events.len(), "each is there once");
        let key = |event: &Value| event["data"]["Key"].as_str().unwrap().to_string();
        let mut arrived: Vec<String> = events.iter().map(key).collect();
        arrived.dedup();
        assert_eq!(arrived, names, "in the order in which they were registered");
    }
}

/// Messages of syslog over TCP as they come, each from behind its length.
fn syslog_server(address: SocketAddr) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind(address).unwrap();
    let (address, received) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(Vec::new())));
    let shared = received.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            loop {
                let mut length = Vec::new();
                if reader.read_until(b' ', &mut length).unwrap_or(0) == 0 {
                    break;
                }
                let length: usize = String::from_utf8(length).unwrap().trim().parse().unwrap();
                let mut message = vec![0; length];
                reader.read_exact(&mut message).unwrap();
                shared.lock().unwrap().push(String::from_utf8(message).unwrap());
            }
        }
    });
    (address, received)
}

/// Failures are seen while it is tried, a syslog server gets all events, and an address that the server's configuration refuses
/// is not connected to.
#[test]
fn a_syslog_server_gets_every_event_and_a_refused_address_none() {
    let directory = tempfile::tempdir().unwrap();
    let config = AgentConfig::server(directory.path(), "one")
        .with("server {\n  sinks {\n    deny = [\"127.0.0.9/32\"]\n  }\n}\n");
    let agent = config.start();
    until_it_leads(&config);
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let text = format!(
        "sink \"s\" {{\n  kind = \"syslog\"\n  address = \"{address}\"\n  app_name = \"prod\"\n  topics = [\"Job\"]\n  \
         filter = \"Type == JobRegistered\"\n  max_attempts = 100\n}}\n"
    );
    apply(&agent, directory.path(), &text);
    register(&agent, "a");
    until("its failures are seen", || status(&agent, "s")["FailedAttempts"].as_u64() > Some(0));
    let failing = status(&agent, "s");
    assert_eq!((&failing["Status"], &failing["Reported"]), (&json!("running"), &json!(true)), "{failing}");
    let shown = agent.run(&["sink", "status", "s"]).expect_success();
    assert!(shown.contains("Attempts So Far = ") && shown.contains("onnection refused"), "{shown}");
    let (_, received) = syslog_server(address);
    register(&agent, "b");
    until("both arrive", || received.lock().unwrap().len() == 2);
    let messages = received.lock().unwrap().clone();
    for (message, job) in messages.iter().zip(["a", "b"]) {
        assert!(
            message.starts_with("<134>1 ") && message.contains(" - prod - JobRegistered [sojourn@32473 id="),
            "{message}"
        );
        assert!(message.contains(&format!("\"Key\":\"{job}\"")), "{message}");
    }
    until("it is acknowledged", || status(&agent, "s")["LagBatches"] == 0);
    let metrics = agent.get("/v1/metrics").to_string();
    for name in ["sojourn.sinks.sent_total", "sojourn.sinks.failures_total", "sojourn.sinks.send_time"] {
        assert!(metrics.contains(name), "{name} in {metrics}");
    }

    let text = "sink \"w\" {\n  kind = \"webhook\"\n  url = \"http://127.0.0.9:1/\"\n  max_attempts = 1\n}\n";
    apply(&agent, directory.path(), text);
    register(&agent, "c");
    until("it is parked", || status(&agent, "w")["Status"] == "parked");
    let why = status(&agent, "w")["ParkedReason"].to_string();
    assert!(why.contains("127.0.0.9 is in 127.0.0.9/32, which server.sinks.deny refuses"), "{why}");
}

struct NatsServer(Child);

impl Drop for NatsServer {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// Debian's, if it is installed.
fn nats_server(directory: &Path, port: u16) -> Option<NatsServer> {
    let program = ["/usr/sbin/nats-server", "/usr/bin/nats-server", "/usr/local/bin/nats-server"];
    let program = program.into_iter().find(|path| Path::new(path).exists())?;
    let mut command = Command::new(program);
    command.args([
        "-a",
        "127.0.0.1",
        "-p",
        &port.to_string(),
        "--user",
        "u",
        "--pass",
        "hidden",
        "-js",
        "-sd",
    ]);
    let child = command.arg(directory).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    Some(NatsServer(child))
}

/// Says some lines to a NATS server, and reads on until it has said something.
fn nats(port: u16, lines: &str, wanted: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(std::time::Duration::from_secs(2))).unwrap();
    let hello =
        "CONNECT {\"verbose\":false,\"user\":\"u\",\"pass\":\"hidden\",\"headers\":true}\r\nSUB answer 1\r\n";
    write!(stream, "{hello}{lines}PING\r\n").ok()?;
    let mut said = String::new();
    let mut bytes = [0; 65536];
    while !said.contains(wanted) {
        match stream.read(&mut bytes) {
            Ok(0) | Err(_) => return None,
            Ok(read) => said.push_str(&String::from_utf8_lossy(&bytes[..read])),
        }
    }
    Some(said)
}

fn ask_nats(port: u16, subject: &str, body: &str, wanted: &str) -> Option<String> {
    nats(port, &format!("PUB {subject} answer {}\r\n{body}\r\n", body.len()), wanted)
}

/// A NATS server with a stream for events.
struct JetStream {
    port: u16,
    server: NatsServer,
}

impl JetStream {
    /// `None` where there is no such program.
    fn start(store: &Path) -> Option<JetStream> {
        let port = free_port();
        let Some(server) = nats_server(store, port) else {
            eprintln!("SKIPPED: there is no nats-server; apt-get install nats-server");
            return None;
        };
        // It knows the ids of ten minutes.
        let create = r#"{"name":"EVENTS","subjects":["sojourn.events"],"storage":"file","duplicate_window":600000000000}"#;
        until("JetStream has a stream", || {
            ask_nats(port, "$JS.API.STREAM.CREATE.EVENTS", create, "\"config\"").is_some()
        });
        Some(JetStream { port, server })
    }

    /// All registrations of jobs.
    fn as_sink(&self) -> Value {
        let address = format!("127.0.0.1:{}", self.port);
        json!({"Kind": "nats", "Address": address, "Subject": "sojourn.events", "SecretVariable": "sinks/nats",
            "Topics": ["Job"], "Filter": "Type == JobRegistered", "From": "oldest", "MaxAttempts": 100, "Timeout": "2s"})
    }

    /// What the stream has, in its order.
    fn events(&self) -> Vec<Value> {
        let event = |number: u64| {
            let asked = format!("{{\"seq\":{number}}}");
            let said = eventually("the stream answers", || {
                ask_nats(self.port, "$JS.API.STREAM.MSG.GET.EVENTS", &asked, "}}\r\n")
            });
            let (_, data) = said.split_once("\"data\":\"")?;
            let data = base64::engine::general_purpose::STANDARD.decode(data.split('"').next()?).unwrap();
            Some(serde_json::from_slice(&data).unwrap())
        };
        (1..).map_while(event).collect()
    }
}

#[test]
fn a_stream_of_nats_gets_every_event_once() {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("nats");
    let Some(JetStream { port, server }) = JetStream::start(&store) else { return };
    let config = AgentConfig::server(directory.path(), "one");
    let agent = config.start();
    until_it_leads(&config);
    let put = ["var", "put", "-force", "sinks/nats", "user=u", "password=hidden"];
    until("there is a key to seal with", || agent.run(&put).code == 0);
    let text = format!(
        "sink \"n\" {{\n  kind = \"nats\"\n  address = \"127.0.0.1:{port}\"\n  subject = \"sojourn.events\"\n  \
         secret_variable = \"sinks/nats\"\n  topics = [\"Job\"]\n  filter = \"Type == JobRegistered\"\n  \
         max_attempts = 100\n  timeout = \"2s\"\n}}\n"
    );
    apply(&agent, directory.path(), &text);
    let messages = |port, count: u64| {
        let said = ask_nats(port, "$JS.API.STREAM.INFO.EVENTS", "", "\"state\"");
        said.is_some_and(|said| said.contains(&format!("\"messages\":{count},")))
    };
    register(&agent, "a");
    register(&agent, "b");
    until("both are in the stream", || messages(port, 2));
    drop(server);
    register(&agent, "c");
    until("nobody is there", || agent.log().contains("an event did not arrive"));
    let _server = nats_server(&store, port);
    until("the third is in the stream", || messages(port, 3));
    until("it is acknowledged", || status(&agent, "n")["LagBatches"] == 0);
    // From the beginning again: JetStream knows them by their ids.
    agent.run(&["cursor", "reset", "-to", "oldest", "sink.n"]).expect_success();
    register(&agent, "d");
    until("the fourth is in the stream", || messages(port, 4));
    until("it is acknowledged", || status(&agent, "n")["LagBatches"] == 0);
    assert!(messages(port, 4), "and none of them twice");
}
