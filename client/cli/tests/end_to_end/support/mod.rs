//! Agents as processes of their own, and the commands users run against them.

pub mod cable;
#[path = "../../../../node/tests/agent/support/consul.rs"]
pub mod consul;
#[path = "../../../../node/tests/agent/support/engine.rs"]
#[expect(dead_code, reason = "the node's own tests use all of it")]
pub mod engine;
pub mod fake_node;
pub mod http;
#[path = "../../../../node/tests/agent/support/packages.rs"]
pub mod packages;
#[path = "../../../../node/tests/agent/support/podman.rs"]
#[expect(dead_code, reason = "the node's own tests use all of it")]
pub mod podman;
pub mod short_history;
pub mod terminal;
#[path = "../../../../node/tests/agent/support/vault.rs"]
pub mod vault;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::end_to_end::cluster::Host;

/// The deadline of every wait.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The pause between two polls.
const PAUSE: Duration = Duration::from_millis(25);

/// Polls until there is a result.
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "never happened: {what}");
        std::thread::sleep(PAUSE);
    }
}

/// Polls until the condition holds.
pub fn until(what: &str, mut look: impl FnMut() -> bool) {
    eventually(what, || look().then_some(()));
}

/// Files of a directory in which a text stands.
pub fn files_with(directory: &Path, words: &str) -> Vec<String> {
    // Files of a log are made larger than what is in them: a program that was optimized reads them.
    let found = Command::new("grep").args(["-rlaF", "--", words]).arg(directory).output().unwrap();
    assert!(matches!(found.status.code(), Some(0 | 1)), "{found:?}");
    String::from_utf8(found.stdout).unwrap().lines().map(str::to_string).collect()
}

/// Exit code and output of a run of the program.
#[derive(Debug)]
pub struct CommandOutput {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl CommandOutput {
    /// Asserts exit code 0, and returns standard output.
    #[track_caller]
    pub fn expect_success(self) -> String {
        assert_eq!(self.code, 0, "{}{}", self.stdout, self.stderr);
        self.stdout
    }

    /// Asserts exit code 1, and returns standard error.
    #[track_caller]
    pub fn expect_failure(self) -> String {
        assert_eq!(self.code, 1, "{}{}", self.stdout, self.stderr);
        self.stderr
    }
}

impl From<Output> for CommandOutput {
    fn from(output: Output) -> CommandOutput {
        CommandOutput {
            code: output.status.code().expect("the program ends by itself"),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// The program with a clean environment.
pub fn program(path: &Path) -> Command {
    let mut command = Command::new(path);
    command.env_clear().env("TZ", "UTC").env("PATH", "/usr/bin:/bin").stdin(Stdio::null());
    command
}

pub fn sojourn() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_sojourn"))
}

/// A free port, below those that the system assigns: it must still be free when an agent restarts.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 10_000 + (std::process::id() % 600) as u16 * 16;
    loop {
        let port = first + NEXT.fetch_add(1, Ordering::Relaxed);
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}

/// The configuration of an agent.
#[derive(Clone)]
pub struct AgentConfig {
    pub home: PathBuf,
    pub http: SocketAddr,
    pub rpc: SocketAddr,
    /// Flags before the configuration.
    flags: Vec<String>,
    /// The network namespace it runs in, if not ours.
    namespace: Option<String>,
    /// Where the certificates are that its users have, if it asks for them.
    certificates: Option<PathBuf>,
    /// Which copy of the program runs it.
    program: PathBuf,
}

impl AgentConfig {
    /// Agents below `directory` get a directory of their own by name.
    fn new(directory: &Path, name: &str, words: &str) -> AgentConfig {
        let home = directory.join(name);
        std::fs::create_dir_all(&home).unwrap();
        let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let (http, rpc) = (local(free_port()), local(free_port()));
        let text = format!(
            "name = \"{name}\"\nbind_addr = \"127.0.0.1\"\nports {{\n  http = {}\n  rpc = {}\n  serf = {}\n}}\n{words}",
            http.port(),
            rpc.port(),
            free_port(),
        );
        std::fs::write(home.join("agent.hcl"), text).unwrap();
        AgentConfig {
            home,
            http,
            rpc,
            flags: Vec::new(),
            namespace: None,
            certificates: None,
            program: sojourn(),
        }
    }

    /// One of several servers that find each other.
    pub fn member(directory: &Path, name: &str, host: &Host, all: &[Host]) -> AgentConfig {
        let home = directory.join(name);
        std::fs::create_dir_all(&home).unwrap();
        let others: Vec<String> =
            all.iter().map(|other| format!("\"{}\"", SocketAddr::new(other.ip, other.serf))).collect();
        let text = format!(
            "name = \"{name}\"\nbind_addr = \"{}\"\nports {{\n  http = {}\n  rpc = {}\n  serf = {}\n}}\n{}\
             server {{\n  enabled = true\n  bootstrap_expect = {}\n  num_schedulers = 1\n{}  \
             server_join {{\n    retry_join = [{}]\n    retry_interval = \"1s\"\n  }}\n}}\n",
            host.ip,
            host.http,
            host.rpc,
            host.serf,
            data_dir(directory, name),
            all.len(),
            if host.ip.is_loopback() { "" } else { ENCRYPT },
            others.join(", "),
        );
        std::fs::write(home.join("agent.hcl"), text).unwrap();
        let (http, rpc) = (host.http(), SocketAddr::new(host.ip, host.rpc));
        let namespace = host.namespace.clone();
        AgentConfig { home, http, rpc, flags: Vec::new(), namespace, certificates: None, program: sojourn() }
    }

    /// Of an agent that was not started here, and answers at a port of this host.
    pub fn elsewhere(home: &Path, port: u16) -> AgentConfig {
        let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let (home, flags) = (home.to_path_buf(), Vec::new());
        let (namespace, certificates, program) = (None, None, sojourn());
        AgentConfig { home, http: local(port), rpc: local(0), flags, namespace, certificates, program }
    }

    /// A server and a client in one process.
    pub fn server_and_client(directory: &Path, name: &str) -> AgentConfig {
        let data = data_dir(directory, name);
        AgentConfig::new(directory, name, &format!("{data}{SERVER}{}", client("")))
    }

    /// The same agent with more in its configuration file.
    pub fn with(self, block: &str) -> AgentConfig {
        let path = self.home.join("agent.hcl");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(path, text + block).unwrap();
        self
    }

    /// The same agent, run by another copy of the program.
    pub fn of_program(self, program: &Path) -> AgentConfig {
        AgentConfig { program: program.to_path_buf(), ..self }
    }

    pub fn server(directory: &Path, name: &str) -> AgentConfig {
        let data = data_dir(directory, name);
        AgentConfig::new(directory, name, &format!("{data}{SERVER}"))
    }

    pub fn client(directory: &Path, name: &str, server: &AgentConfig) -> AgentConfig {
        let data = data_dir(directory, name);
        let servers = format!("  servers = [\"{}\"]\n", server.rpc);
        AgentConfig::new(directory, name, &format!("{data}{}", client(&servers)))
    }

    pub fn development(directory: &Path, name: &str) -> AgentConfig {
        let mut config = AgentConfig::new(directory, name, "");
        config.flags = vec!["-dev".to_string()];
        config
    }

    /// A development agent that keeps its data.
    pub fn lasting_development(directory: &Path, name: &str) -> AgentConfig {
        let mut config = AgentConfig::development(directory, name);
        let data = directory.join(name).join("data");
        config.flags.extend(["-data-dir".to_string(), data.display().to_string()]);
        config
    }

    /// The same agent with the certificate of a role, out of a directory in which there is one for its users too.
    pub fn certified(mut self, certificates: &Path, role: &str) -> AgentConfig {
        let file = |name: &str| certificates.join(name).display().to_string();
        let block = format!(
            "tls {{\n  http = true\n  rpc = true\n  ca_file = \"{}\"\n  cert_file = \"{}\"\n  key_file = \"{}\"\n  \
             verify_server_hostname = true\n  verify_https_client = true\n}}\n",
            file("nomad-agent-ca.pem"),
            file(&format!("global-{role}-nomad.pem")),
            file(&format!("global-{role}-nomad-key.pem")),
        );
        let path = self.home.join("agent.hcl");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(path, text + &block).unwrap();
        self.certificates = Some(certificates.to_path_buf());
        self
    }

    /// A command for this agent.
    pub fn user(&self, path: &Path) -> Command {
        let mut command = program(path);
        match &self.certificates {
            None => command.env("NOMAD_ADDR", format!("http://{}", self.http)),
            Some(certificates) => command
                .env("NOMAD_ADDR", format!("https://{}", self.http))
                .env("NOMAD_CACERT", certificates.join("nomad-agent-ca.pem"))
                .env("NOMAD_CLIENT_CERT", certificates.join("global-cli-nomad.pem"))
                .env("NOMAD_CLIENT_KEY", certificates.join("global-cli-nomad-key.pem")),
        };
        command
    }

    /// Starts the agent and waits until it reports that it runs.
    pub fn start(&self) -> Agent {
        let mut agent = self.launch();
        until("the agent starts", || {
            assert!(agent.child.try_wait().unwrap().is_none(), "the agent ended: {}", agent.log());
            agent.log().contains("==> Sojourn agent started!")
        });
        agent
    }

    /// Starts the agent without waiting.
    pub fn launch(&self) -> Agent {
        let log = self.home.join("log");
        let file = File::create(&log).unwrap();
        let mut command = self.command();
        command.stdout(file.try_clone().unwrap()).stderr(file);
        Agent { config: self.clone(), log, child: command.spawn().unwrap() }
    }

    /// Runs an agent that cannot start, until it exits.
    pub fn fail(&self) -> CommandOutput {
        self.command().output().unwrap().into()
    }

    fn command(&self) -> Command {
        let mut command = match &self.namespace {
            None => program(&self.program),
            Some(namespace) => {
                let mut command = program(Path::new("ip"));
                command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
                command.args(["netns", "exec", namespace]).arg(sojourn());
                command
            }
        };
        command.arg("agent").args(&self.flags).arg("-config").arg(self.home.join("agent.hcl"));
        command.env("TMPDIR", &self.home);
        command
    }
}

/// Servers on other hosts have to prove themselves.
const ENCRYPT: &str = "  encrypt = \"AAECAwQFBgcICQoLDA0ODw==\"\n";

/// Short times, to keep the tests fast.
/// A node that is late is not lost here: it may only be that other tests have the processors or the disk.
const SERVER: &str = "server {\n  enabled = true\n  bootstrap_expect = 1\n  num_schedulers = 1\n  \
                      min_heartbeat_ttl = \"1s\"\n  heartbeat_grace = \"2m\"\n}\n";

/// For tests of nodes that are lost.
pub const SOON_LOST: &str = "server {\n  heartbeat_grace = \"1s\"\n}\n";

fn data_dir(directory: &Path, name: &str) -> String {
    format!("data_dir = \"{}\"\n", directory.join(name).join("data").display())
}

fn client(more: &str) -> String {
    format!(
        "client {{\n  enabled = true\n  network_interface = \"lo\"\n{more}}}\n\
         plugin \"raw_exec\" {{\n  config {{\n    enabled = true\n  }}\n}}\n"
    )
}

/// A program that prints until it is dropped.
pub struct Follower {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Follower {
    /// The next line that is printed.
    pub fn line(&mut self) -> String {
        self.lines.recv_timeout(TIMEOUT).expect("a line is printed")
    }

    /// Does something again and again until a line that holds `words` is printed.
    pub fn until(&mut self, words: &str, mut act: impl FnMut()) {
        until(words, || {
            act();
            let within = Duration::from_millis(200);
            std::iter::from_fn(|| self.lines.recv_timeout(within).ok()).any(|line| line.contains(words))
        });
    }
}

impl Follower {
    /// Interrupts it, as a user does, and gives its exit code.
    pub fn interrupt(mut self) -> i32 {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        let ended = eventually("the program ends", || self.child.try_wait().unwrap());
        ended.code().expect("it ends by itself")
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// A running agent. Ends with everything it started when it is dropped.
pub struct Agent {
    pub config: AgentConfig,
    log: PathBuf,
    child: Child,
}

impl Agent {
    /// One that ends with the process in which it is.
    pub fn elsewhere(config: AgentConfig, log: PathBuf, child: Child) -> Agent {
        Agent { config, log, child }
    }

    /// Calls the program as a user of this agent would.
    pub fn run(&self, arguments: &[&str]) -> CommandOutput {
        self.run_as(&sojourn(), arguments)
    }

    pub fn run_as(&self, path: &Path, arguments: &[&str]) -> CommandOutput {
        self.config.user(path).args(arguments).output().unwrap().into()
    }

    /// Starts the program and leaves it running.
    pub fn follow(&self, arguments: &[&str]) -> Follower {
        let mut command = self.config.user(&sojourn());
        let mut child = command.args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (to, lines) = mpsc::channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| to.send(line)));
        Follower { child, lines }
    }

    pub fn get(&self, path: &str) -> Value {
        let answer = http::get(self.config.http, path).unwrap();
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.json()
    }

    /// Registers a job and returns its `JobModifyIndex`.
    pub fn register(&self, job: &Value) -> u64 {
        let answer = http::put(self.config.http, "/v1/jobs", &json!({ "Job": job })).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.json()["JobModifyIndex"].as_u64().unwrap()
    }

    /// The allocations of a job, oldest first.
    pub fn allocs(&self, job: &str) -> Vec<Value> {
        let answer = self.get(&format!("/v1/job/{job}/allocations"));
        let mut allocs: Vec<Value> = serde_json::from_value(answer).unwrap();
        allocs.sort_by_key(|alloc| alloc["CreateIndex"].as_u64());
        allocs
    }

    /// Waits for a running allocation of a job; returns its id.
    pub fn running(&self, job: &str) -> String {
        eventually(&format!("{job} runs"), || {
            let runs = |alloc: &&Value| alloc["ClientStatus"] == "running" && alloc["DesiredStatus"] == "run";
            self.allocs(job).iter().find(runs).map(|alloc| text(&alloc["ID"]))
        })
    }

    /// The process of a task that prints its process id; see [`staying`].
    pub fn process_of(&self, alloc: &str) -> Process {
        // It is a shell that prints it, and becomes the program that is looked for then.
        let is_there = |process: &Process| !process.command_line().contains("exec tail");
        eventually("the task prints its process id", || self.process_now(alloc).filter(is_there))
    }

    /// As [`Agent::process_of`], if the id is already printed.
    pub fn process_now(&self, alloc: &str) -> Option<Process> {
        let said = self.run(&["alloc", "logs", alloc]).stdout;
        said.lines().next()?.parse().ok().map(Process)
    }

    pub fn wait_for_a_ready_node(&self) {
        until("a node is ready", || {
            self.get("/v1/nodes").as_array().unwrap().iter().any(|node| node["Status"] == "ready")
        });
    }

    /// Kills the agent and leaves its tasks running.
    pub fn kill(mut self) -> AgentConfig {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let config = self.config.clone();
        // Its tasks stay.
        std::mem::forget(self);
        config
    }

    /// As Ctrl-C does.
    pub fn interrupt(&mut self) -> ExitStatus {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::INT).unwrap();
        eventually("the agent ends", || self.child.try_wait().unwrap())
    }

    /// As a service manager does.
    pub fn terminate(&mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        eventually("the agent ends", || self.child.try_wait().unwrap())
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It may have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
        end_processes_of(&self.config.home);
        node::layout::unmount_below(&self.config.home, |_| true).ok();
        if std::thread::panicking() {
            eprintln!("---- {}\n{}", self.log.display(), self.log());
        }
    }
}

/// Kills what an agent left running: its executors name its directory, and their tasks work below it.
fn end_processes_of(home: &Path) {
    for process in processes_of(home) {
        // It may end before it is killed.
        kill_process(Pid::from_raw(process.0).unwrap(), Signal::KILL).ok();
    }
}

/// Processes that belong to the agent of this directory, itself included.
pub fn processes_of(home: &Path) -> Vec<Process> {
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.map(Process).filter(|process| process.belongs_to(home)).collect()
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Process(pub i32);

impl Process {
    /// Whether it exists and is a task of [`staying`].
    pub fn is_alive(self) -> bool {
        self.command_line().starts_with("tail")
    }

    fn command_line(self) -> String {
        let line = std::fs::read(format!("/proc/{}/cmdline", self.0)).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ")
    }

    fn belongs_to(self, home: &Path) -> bool {
        let works_in = std::fs::read_link(format!("/proc/{}/cwd", self.0)).unwrap_or_default();
        works_in.starts_with(home) || self.command_line().contains(&home.display().to_string())
    }
}

/// A job whose task prints its process id and runs until it is stopped.
pub fn staying(id: &str) -> Value {
    job(id, json!({"command": "/bin/sh", "args": ["-c", "echo $$; exec tail -f /dev/null"]}))
}

/// A job of one group with one task.
pub fn job(id: &str, config: Value) -> Value {
    let resources = json!({"CPU": 20, "MemoryMB": 16});
    let task = json!({"Name": "main", "Driver": "raw_exec", "Config": config, "Resources": resources});
    json!({"ID": id, "TaskGroups": [{"Name": "group", "Tasks": [task]}]})
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is not text")).to_string()
}
