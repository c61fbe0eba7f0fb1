//! How long a cluster takes no writes when its leader is killed.
//!
//! Three servers as processes of the `sojourn` program, default timings, on one machine and its disk. Four writers
//! register one job each over and over, each at a server of its own choice, and go to the next server as soon as one
//! does not answer. The leader is killed with SIGKILL, and started again once writes go on. A failover lasts from the
//! signal to the first write that was begun after it and is acknowledged, by any server.
//!
//! ```sh
//! cargo build --release && cargo bench -p plan-bench --bench failover -- 50     # failovers; 30 by default
//! ```

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use plan_bench::is_trial;

const SERVERS: usize = 3;
const WRITERS: usize = 4;
const FAILOVERS: usize = 30;

/// How long anything may take that must happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long a writer waits for one answer.
const ANSWER_MAX: Duration = Duration::from_secs(10);

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let trial = is_trial();
    let asked = words.iter().find_map(|word| word.parse().ok());
    let failovers = if trial { 1 } else { asked.unwrap_or(FAILOVERS) };
    let program = program(trial);
    let directory = tempfile::tempdir().expect("a directory for three servers");
    let mut cluster = Cluster::start(&program, directory.path());
    let writes = Writes::start(&cluster.addresses());
    let mut spans: Vec<Duration> = (0..failovers)
        .map(|nth| {
            let span = cluster.fail_over(&writes);
            println!("failover {:>3}: {:>5} ms", nth + 1, span.as_millis());
            span
        })
        .collect();
    writes.end();
    spans.sort();
    let at = |part: usize| spans[(spans.len() * part).div_ceil(100).max(1) - 1].as_millis();
    println!(
        "{failovers} failovers: p50 {} ms, p90 {} ms, p99 {} ms, longest {} ms",
        at(50),
        at(90),
        at(99),
        at(100)
    );
}

/// The program beside this one; for a trial the one that tests have built will do.
fn program(trial: bool) -> PathBuf {
    let own = std::env::current_exe().expect("the path of this program");
    let profile = own.parent().and_then(Path::parent).expect("target/<profile>/deps/<this program>");
    let debug = profile.parent().expect("target").join("debug/sojourn");
    let mut programs = vec![profile.join("sojourn")];
    programs.extend(trial.then_some(debug));
    let found = programs.iter().find(|program| program.exists());
    found.unwrap_or_else(|| panic!("no {}: run `cargo build --release` first", programs[0].display())).clone()
}

struct Place {
    home: PathBuf,
    http: SocketAddr,
    rpc: SocketAddr,
}

struct Cluster {
    program: PathBuf,
    places: Vec<Place>,
    servers: Vec<Child>,
}

impl Cluster {
    fn start(program: &Path, directory: &Path) -> Cluster {
        // Held until all are chosen, so that no two are the same.
        let held: Vec<TcpListener> =
            (0..3 * SERVERS).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()).collect();
        let ports: Vec<SocketAddr> = held.iter().map(|port| port.local_addr().unwrap()).collect();
        let gossip: Vec<String> = ports.chunks(3).map(|own| format!("\"{}\"", own[2])).collect();
        let place = |(number, own): (usize, &[SocketAddr])| {
            let home = directory.join(format!("server-{number}"));
            std::fs::create_dir_all(&home).unwrap();
            let text = format!(
                "name = \"server-{number}\"\nbind_addr = \"127.0.0.1\"\nports {{\n  http = {}\n  rpc = {}\n  serf = {}\n}}\n\
                 server {{\n  enabled = true\n  bootstrap_expect = {SERVERS}\n  num_schedulers = 1\n  \
                 server_join {{\n    retry_join = [{}]\n    retry_interval = \"1s\"\n  }}\n}}\n",
                own[0].port(),
                own[1].port(),
                own[2].port(),
                gossip.join(", ")
            );
            std::fs::write(home.join("agent.hcl"), text).unwrap();
            Place { home, http: own[0], rpc: own[1] }
        };
        let places: Vec<Place> = ports.chunks(3).enumerate().map(place).collect();
        drop(held);
        let servers = places.iter().map(|place| place.launch(program)).collect();
        let cluster = Cluster { program: program.to_path_buf(), places, servers };
        cluster.until_whole();
        cluster
    }

    fn addresses(&self) -> Vec<SocketAddr> {
        self.places.iter().map(|place| place.http).collect()
    }

    /// The server that all agree on.
    fn leader(&self) -> Option<usize> {
        let told: Vec<String> = self
            .places
            .iter()
            .map(|place| ask(place.http, "GET", "/v1/status/leader", ""))
            .collect::<Option<_>>()?;
        let leader = self.places.iter().position(|place| told[0].contains(&place.rpc.to_string()))?;
        told.iter().all(|one| *one == told[0]).then_some(leader)
    }

    /// All vote and agree on a leader.
    fn until_whole(&self) -> usize {
        let start = Instant::now();
        loop {
            let voters = |place: &Place| {
                let told = ask(place.http, "GET", "/v1/operator/raft/configuration", "")?;
                Some(told.matches("\"Voter\":true").count())
            };
            let whole = self.places.iter().all(|place| voters(place) == Some(SERVERS));
            if let (true, Some(leader)) = (whole, self.leader()) {
                return leader;
            }
            assert!(
                start.elapsed() < PATIENCE,
                "the cluster never became whole; see {}",
                self.places[0].home.display()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn fail_over(&mut self, writes: &Writes) -> Duration {
        let leader = self.until_whole();
        let killed = Instant::now();
        self.servers[leader].kill().unwrap();
        let resumed = writes.first_begun_after(killed);
        self.servers[leader].wait().unwrap();
        self.servers[leader] = self.places[leader].launch(&self.program);
        resumed - killed
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for server in &mut self.servers {
            let _gone_already = server.kill();
            let _status = server.wait();
        }
    }
}

impl Place {
    fn launch(&self, program: &Path) -> Child {
        let log = std::fs::File::create(self.home.join("agent.log")).unwrap();
        let mut command = Command::new(program);
        command.arg("agent").arg("-config").arg(self.home.join("agent.hcl"));
        command.arg("-data-dir").arg(self.home.join("data"));
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap()
    }
}

/// Writers, and when the writes that were acknowledged were begun and answered.
struct Writes {
    answered: Arc<Mutex<Vec<(Instant, Instant)>>>,
    over: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Writes {
    fn start(servers: &[SocketAddr]) -> Writes {
        let (answered, over): (Arc<Mutex<Vec<_>>>, Arc<AtomicBool>) = Default::default();
        let numbers = Arc::new(AtomicUsize::new(0));
        let writer = |writer: usize| {
            let (answered, over, numbers) = (answered.clone(), over.clone(), numbers.clone());
            let servers = servers.to_vec();
            std::thread::spawn(move || {
                let mut at = writer;
                while !over.load(Ordering::Relaxed) {
                    let begun = Instant::now();
                    let job = job(writer, numbers.fetch_add(1, Ordering::Relaxed));
                    match ask(servers[at % SERVERS], "PUT", "/v1/jobs", &job) {
                        Some(_) => answered.lock().unwrap().push((begun, Instant::now())),
                        None => at += 1,
                    }
                    // Enough to see when writes go on, and little load.
                    std::thread::sleep(Duration::from_millis(10));
                }
            })
        };
        let threads = (0..WRITERS).map(writer).collect();
        Writes { answered, over, threads }
    }

    /// When the first write that was begun after `moment` was acknowledged.
    fn first_begun_after(&self, moment: Instant) -> Instant {
        loop {
            let mut answered = self.answered.lock().unwrap();
            if let Some((_, at)) = answered.iter().find(|(begun, _)| *begun > moment) {
                let at = *at;
                answered.clear();
                return at;
            }
            drop(answered);
            assert!(moment.elapsed() < PATIENCE, "writes never went on");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn end(self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().expect("a writer ends by itself");
        }
    }
}

/// A job that finds no place: what is measured is the log.
fn job(writer: usize, number: usize) -> String {
    format!(
        "{{\"Job\":{{\"ID\":\"job-{writer}\",\"Name\":\"job-{writer}\",\"Datacenters\":[\"nowhere\"],\"Meta\":{{\"number\":\"{number}\"}},\
         \"TaskGroups\":[{{\"Name\":\"group\",\"Tasks\":[{{\"Name\":\"task\",\"Driver\":\"raw_exec\",\"Config\":{{\"command\":\"/bin/true\"}}}}]}}]}}}}"
    )
}

/// The body of a good answer; `None` for any other, and when none comes.
fn ask(at: SocketAddr, method: &str, path: &str, body: &str) -> Option<String> {
    let mut stream = TcpStream::connect_timeout(&at, ANSWER_MAX).ok()?;
    stream.set_read_timeout(Some(ANSWER_MAX)).ok()?;
    let length = body.len();
    write!(stream, "{method} {path} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    head.starts_with("HTTP/1.1 200").then(|| body.to_string())
}
