//! `cargo bench -p sojourn --bench tasks`: what it costs a node to start tasks, and to have them.
//!
//! The built program, as one server and one node in a process, durable, on this machine:
//! * how long each driver takes to start a task, from when the node has its allocation to when the task runs, one after
//!   the other, and how long that is after the job was submitted. Images are there already;
//! * how long it takes until 1,000 tasks of `raw_exec` run that are one job;
//! * what the agent and its helpers need while 100 tasks of `raw_exec` run and nothing happens.
//!
//! The engines of containers are their own ones, with storage that copies (`vfs`) in the case of Podman.

#[path = "../tests/end_to_end"]
mod end_to_end {
    pub mod cluster {
        #[expect(dead_code, reason = "tests of clusters use all of it")]
        mod host;
        pub use host::Host;
    }
    pub mod endurance {
        #[expect(dead_code, reason = "the tests of kills use all of it")]
        pub mod tasks;
    }
    #[expect(dead_code, reason = "the tests use all of it")]
    pub mod support;
}

use std::time::{Duration, Instant};

use end_to_end::endurance::tasks::{DRIVERS, Things};
use end_to_end::support::engine::{self, TestEngine};
use end_to_end::support::podman::{self, TestPodman};
use end_to_end::support::{Agent, AgentConfig, Process, eventually, processes_of, until};
use serde_json::{Value, json};

/// How much of it is done.
struct Size {
    /// With how many of the drivers.
    drivers: usize,
    /// How many tasks each of them starts.
    starts: usize,
    at_once: usize,
    idle: usize,
    /// For how long nothing happens.
    quiet: Duration,
}

const WHOLE: Size =
    Size { drivers: DRIVERS.len(), starts: 100, at_once: 1_000, idle: 100, quiet: Duration::from_secs(60) };

/// What the gate has time for.
const TRIAL: Size = Size { drivers: 1, starts: 2, at_once: 5, idle: 3, quiet: Duration::from_millis(200) };

/// Of the clock that `/proc` counts processor time in.
const TICKS_PER_SECOND: f64 = 100.0;

fn main() {
    let size = if std::env::args().any(|word| word == "--test") { TRIAL } else { WHOLE };
    let directory = tempfile::tempdir().unwrap();
    let host = TestHost::begin(directory.path(), &size);
    for driver in &DRIVERS[..size.drivers] {
        starts(&host, driver, size.starts);
    }
    at_once(&host.agent, size.at_once);
    idle(&host.agent, size.idle, size.quiet);
}

/// An agent with what its drivers need.
struct TestHost {
    agent: Agent,
    things: Things,
    _engines: Option<(TestEngine, TestPodman)>,
}

impl TestHost {
    fn begin(directory: &std::path::Path, size: &Size) -> TestHost {
        let things = Things::made(directory, &DRIVERS[..size.drivers]);
        let mut config = AgentConfig::server_and_client(directory, "one")
            .with(&things.configuration())
            .with("client {\n  gc_max_allocs = 10000\n}\n");
        let mut engines = None;
        if size.drivers > 1 {
            let (docker, podman) = (engine::own("tasks", true), podman::own("tasks"));
            let (docker, podman) = (docker.expect("an engine"), podman.expect("an engine"));
            config = config.with(&format!(
                "plugin \"docker\" {{\n  config {{\n    endpoint = \"{}\"\n  }}\n}}\n\
                 plugin \"podman\" {{\n  config {{\n    socket_path = \"unix://{}\"\n  }}\n}}\n",
                docker.endpoint(),
                podman.socket()
            ));
            engines = Some((docker, podman));
        }
        let agent = config.start();
        agent.wait_for_a_ready_node();
        TestHost { agent, things, _engines: engines }
    }
}

/// Starts tasks one after the other.
fn starts(host: &TestHost, driver: &str, count: usize) {
    let (mut started, mut submitted) = (Vec::new(), Vec::new());
    for number in 0..count {
        let id = format!("{driver}-{number}");
        let mut job = host.things.ending(&id, driver);
        let config = &mut job["TaskGroups"][0]["Tasks"][0]["Config"];
        if config["command"] == "/bin/sh" {
            config["args"] = json!(["-c", ":"]);
        }
        host.agent.register(&job);
        let alloc = eventually("the task has ended", || {
            let ended =
                |alloc: &Value| alloc["ClientStatus"] == "complete" || alloc["ClientStatus"] == "failed";
            host.agent.allocs(&id).into_iter().find(ended)
        });
        let time = |kind: &str| {
            let events = alloc["TaskStates"]["main"]["Events"].as_array().unwrap();
            let event = events.iter().find(|event| event["Type"] == kind);
            event.unwrap_or_else(|| panic!("{driver}: {events:?}"))["Time"].as_u64().unwrap()
        };
        let submit = host.agent.get(&format!("/v1/job/{id}"))["SubmitTime"].as_u64().unwrap();
        started.push(Duration::from_nanos(time("Started") - time("Received")));
        submitted.push(Duration::from_nanos(time("Started") - submit));
    }
    let [start, whole] = [started, submitted].map(|mut times| {
        times.sort_unstable();
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
        format!("p50 {:.1?}, p99 {:.1?}", at(0.5), at(0.99))
    });
    println!("start of {driver}: {start}; from submitting its job: {whole} ({count} tasks)");
}

/// A job of `raw_exec` with so many tasks that do nothing.
fn waiting(id: &str, count: usize) -> Value {
    let task = json!({
        "Name": "main", "Driver": "raw_exec", "Config": {"command": "/bin/sleep", "args": ["100000"]},
        "KillTimeout": 100_000_000, "Resources": {"CPU": 1, "MemoryMB": 10},
        "LogConfig": {"MaxFiles": 1, "MaxFileSizeMB": 1},
    });
    let group = json!({"Name": "g", "Count": count, "EphemeralDisk": {"SizeMB": 10}, "Tasks": [task]});
    json!({"ID": id, "TaskGroups": [group]})
}

fn at_once(agent: &Agent, count: usize) {
    let began = Instant::now();
    let before = processor_time(agent);
    agent.register(&waiting("at-once", count));
    let running = || {
        let summary = agent.get("/v1/job/at-once/summary");
        summary["Summary"]["g"]["Running"].as_u64() == Some(count as u64)
    };
    until("all run", running);
    let (took, used) = (began.elapsed(), processor_time(agent) - before);
    println!(
        "{count} tasks of raw_exec at once: all run after {took:.2?}; the agent used {used:.2} s of a processor"
    );
    agent.run(&["job", "stop", "-purge", "-detach", "at-once"]).expect_success();
    until("none is left", || helpers(agent).is_empty());
}

fn idle(agent: &Agent, count: usize, quiet: Duration) {
    agent.register(&waiting("idle", count));
    until("all run", || agent.get("/v1/job/idle/summary")["Summary"]["g"]["Running"] == count);
    // Not before everything is reported.
    std::thread::sleep(quiet.min(Duration::from_secs(5)));
    let before = processor_time(agent);
    std::thread::sleep(quiet);
    let share = (processor_time(agent) - before) / quiet.as_secs_f64() * 100.0;
    let helpers = helpers(agent);
    let memory: f64 = helpers.iter().map(|helper| mebibytes(*helper)).sum();
    println!(
        "{count} tasks of raw_exec that do nothing for {quiet:.0?}: the agent uses {share:.2} % of a processor and {:.1} MiB, \
         each helper {:.2} MiB ({} helpers)",
        mebibytes(Process(agent.pid() as i32)),
        memory / helpers.len() as f64,
        helpers.len()
    );
    agent.run(&["job", "stop", "-purge", "-detach", "idle"]).expect_success();
}

/// What the agent has running beside it for its tasks, without these.
fn helpers(agent: &Agent) -> Vec<Process> {
    let executes = |process: &Process| {
        let line = std::fs::read(format!("/proc/{}/cmdline", process.0)).unwrap_or_default();
        line.split(|byte| *byte == 0).nth(1) == Some(b"executor")
    };
    processes_of(&agent.config.home).into_iter().filter(executes).collect()
}

/// Of the agent, in seconds.
fn processor_time(agent: &Agent) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", agent.pid())).unwrap();
    // The name before may have anything in it.
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks = |at: usize| fields[at].parse::<f64>().unwrap();
    (ticks(11) + ticks(12)) / TICKS_PER_SECOND
}

/// Of memory; what processes share counts in parts.
fn mebibytes(process: Process) -> f64 {
    let maps = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", process.0)).unwrap_or_default();
    let line = maps.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kibibytes.unwrap_or_default() / 1024.0
}
