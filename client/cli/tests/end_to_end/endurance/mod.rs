//! Kills at any moment: of the agent, of executors, of tasks and of the container engines, under tasks of all drivers.
//!
//! Each task numbers its lines, and each start of it has a name of its own. So its log alone shows whether a line was lost
//! and whether two of it ran at once. Beside those that go on for ever, others end by themselves with a code that they say.

pub mod said;
pub mod tasks;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use self::said::{Killed, ended_truthfully, not_in_engine, starts};
use self::tasks::{DRIVERS, Things, says_lines};
use crate::end_to_end::support::engine::{self, TestEngine};
use crate::end_to_end::support::podman::{self, TestPodman};
use crate::end_to_end::support::{Agent, AgentConfig, Process, eventually, processes_of, until};

/// How often something is killed, for longer runs by hand.
const KILLS: &str = "SOJOURN_KILLS";

/// What the gate has time for.
const FEW: u32 = 8;

/// For how many drivers, of those.
const FEW_DRIVERS: usize = 3;

/// How long nothing is killed, at most.
const PAUSE_MS: u64 = 1200;

const CGROUPS: &str = "sojourn-endurance";

/// As `SOJOURN_KILLS=500 cargo test -p sojourn --test all endurance -- --nocapture`.
#[test]
fn no_task_is_lost_doubled_or_orphaned_by_kills_at_any_moment() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED no_task_is_lost: isolated tasks and containers need root");
        return;
    }
    let kills = std::env::var(KILLS).ok().and_then(|text| text.parse().ok()).unwrap_or(FEW);
    let Some(mut run) = Run::begin(kills > FEW) else { return };
    let first = run.all_run();
    for number in 0..kills {
        run.begin_one_that_ends(number);
        // The moment is what is tested, so it is one of chance.
        std::thread::sleep(Duration::from_millis(chance() % PAUSE_MS));
        run.kill_something();
    }
    run.engine.await_answer();
    let kinds: BTreeMap<&str, usize> =
        run.drivers().map(|driver| (*driver, run.count(driver) as usize)).collect();
    eprintln!("{kinds:?}, killed: {:?}", run.killed);

    assert_eq!(first, run.all_run(), "they are the allocations that ran before");
    for (driver, alloc) in &first {
        let newest = || starts(run.config(), driver, alloc).pop();
        // What the last kill has ended may only now be started again.
        let mut now = newest();
        until("one more line of the newest start", || {
            let before = std::mem::replace(&mut now, newest());
            let (Some(before), Some(now)) = (before, &now) else { return false };
            now.name == before.name && now.last > before.last
        });
        if driver == "docker" {
            not_in_engine(&run.engine, alloc, &now.unwrap());
        }
    }
    // A start that its agent or its engine did not live to tell of is done again.
    let restarts: u32 = run.killed.values().sum();
    let begun: usize = first.iter().map(|(driver, alloc)| starts(run.config(), driver, alloc).len()).sum();
    assert!(begun <= first.len() + restarts as usize, "{begun} starts of {} tasks", first.len());
    run.all_that_end_have_ended();
    run.nothing_is_left();
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Victim {
    Agent,
    Executor,
    Task,
    Engine,
    /// The service of Podman.
    Podman,
}

impl Victim {
    const ALL: [Victim; 5] = [Victim::Agent, Victim::Executor, Victim::Task, Victim::Engine, Victim::Podman];
}

struct Run {
    /// None only while another one starts.
    agent: Option<Agent>,
    engine: TestEngine,
    /// In long runs only.
    podman: Option<TestPodman>,
    things: Things,
    is_long: bool,
    killed: BTreeMap<Victim, u32>,
    /// Jobs whose tasks end, with their drivers, and how often its engine was killed when it answered last.
    ending: Vec<(String, &'static str, u32)>,
    killed_of: Killed,
    _directory: tempfile::TempDir,
}

impl Run {
    fn begin(is_long: bool) -> Option<Run> {
        let engine = engine::own("no_task_is_lost", true)?;
        let podman = if is_long { Some(podman::own("no_task_is_lost")?) } else { None };
        let directory = tempfile::tempdir().unwrap();
        let drivers = if is_long { &DRIVERS[..] } else { &DRIVERS[..FEW_DRIVERS] };
        let things = Things::made(directory.path(), drivers);
        let config = AgentConfig::server_and_client(directory.path(), "one")
            .with(&configured(&engine, podman.as_ref(), CGROUPS))
            .with(&things.configuration());
        let agent = Some(config.start());
        let (killed, ending, killed_of) = (BTreeMap::new(), Vec::new(), Killed::default());
        let run =
            Run { agent, engine, podman, things, is_long, killed, ending, killed_of, _directory: directory };
        run.agent().wait_for_a_ready_node();
        for driver in run.drivers() {
            run.agent().register(&run.things.staying(driver, run.count(driver)));
        }
        Some(run)
    }

    fn agent(&self) -> &Agent {
        self.agent.as_ref().expect("it is always started again")
    }

    fn config(&self) -> &AgentConfig {
        &self.agent().config
    }

    fn drivers(&self) -> std::slice::Iter<'static, &'static str> {
        if self.is_long { DRIVERS.iter() } else { DRIVERS[..FEW_DRIVERS].iter() }
    }

    /// How many tasks go on for ever.
    fn count(&self, driver: &str) -> u32 {
        match driver {
            "qemu" => 1,
            "java" => 4,
            _ if self.is_long => 10,
            _ => 3,
        }
    }

    /// One job after the other, with the drivers in turn.
    fn begin_one_that_ends(&mut self, number: u32) {
        let driver = *self.drivers().cycle().nth(number as usize).unwrap();
        let id = format!("ends-{number}");
        let kills = self.killed_of.engines.get(driver).copied().unwrap_or_default();
        // Killed just before, it may not be back yet.
        let is_back = driver != "docker" || self.engine.answers_now();
        self.agent().register(&self.things.ending(&id, driver));
        self.ending.push((id, driver, if is_back { kills } else { kills.saturating_sub(1) }));
    }

    fn kill_something(&mut self) {
        let kinds = if self.is_long { 5 } else { 4 };
        let victim = Victim::ALL[(chance() % kinds) as usize];
        *self.killed.entry(victim).or_default() += 1;
        match victim {
            Victim::Agent => {
                let config = self.agent.take().unwrap().kill();
                self.agent = Some(config.start());
            }
            Victim::Executor => {
                let alloc = kill_one(self.config(), &executors(&self.config().home));
                self.killed_of.executors.extend(alloc);
            }
            Victim::Task => {
                let alloc = kill_one(self.config(), &tasks(self.config()));
                self.killed_of.tasks.extend(alloc);
            }
            Victim::Engine => {
                *self.killed_of.engines.entry("docker").or_default() += 1;
                self.engine.kill();
                self.engine.start();
            }
            Victim::Podman => {
                *self.killed_of.engines.entry("podman").or_default() += 1;
                let podman = self.podman.as_ref().unwrap();
                podman.kill();
                podman.start();
            }
        }
    }

    /// The allocations of all tasks that go on for ever, with their drivers, once all of them run and no other is wanted or alive.
    fn all_run(&self) -> BTreeSet<(String, String)> {
        let of = |driver: &&'static str| {
            let driver = *driver;
            let count = self.count(driver) as usize;
            eventually(&format!("all of {driver} run"), move || {
                let allocs = self.agent().allocs(driver);
                let runs = |alloc: &&Value| {
                    alloc["ClientStatus"] == "running" && alloc["TaskStates"]["main"]["State"] == "running"
                };
                let all = allocs.len() == count && allocs.iter().filter(runs).count() == count;
                let ids = || allocs.iter().map(|alloc| (driver.to_string(), id(alloc))).collect::<Vec<_>>();
                all.then(ids)
            })
        };
        self.drivers().flat_map(of).collect()
    }

    fn all_that_end_have_ended(&self) {
        let mut otherwise = Vec::new();
        for (job, driver, engine_before) in &self.ending {
            let alloc = eventually(&format!("{job} of {driver} has ended"), || {
                let allocs = self.agent().allocs(job);
                assert!(allocs.len() <= 1, "a task that ends is placed once: {allocs:?}");
                let ended =
                    |alloc: &Value| alloc["ClientStatus"] == "failed" || alloc["ClientStatus"] == "complete";
                allocs.into_iter().find(ended)
            });
            if !ended_truthfully(self.config(), driver, &alloc, &self.killed_of, *engine_before) {
                otherwise.push(*driver);
            }
        }
        let all = self.ending.len();
        eprintln!(
            "{all} tasks ended, all but {} with their own code; those were of {otherwise:?}",
            otherwise.len()
        );
    }

    fn nothing_is_left(&self) {
        for driver in self.drivers() {
            self.agent().run(&["job", "stop", "-detach", driver]).expect_success();
        }
        let left = || {
            let other = |process: &Process| process.0 != self.agent().pid() as i32;
            let processes = processes_of(&self.config().home).into_iter().filter(other).count();
            let containers = self.engine.containers("").len();
            let of_podman =
                self.podman.as_ref().map_or(0, |podman| podman.ask(&["ps", "-a", "-q"]).lines().count());
            (processes, containers, of_podman, in_cgroups())
        };
        eventually("nothing is left", || (left() == (0, 0, 0, 0)).then_some(()));
    }
}

/// The configuration of an agent: its engines, and the isolation of its tasks.
pub fn configured(engine: &TestEngine, podman: Option<&TestPodman>, cgroups: &str) -> String {
    let paths =
        ["/bin", "/etc", "/lib", "/lib64", "/usr"].map(|path| format!("    \"{path}\" = \"{path}\"\n"));
    let mut block = format!(
        "client {{\n  cgroup_parent = \"{cgroups}\"\n  gc_max_allocs = 10000\n  chroot_env {{\n{}  }}\n}}\n\
         plugin \"docker\" {{\n  config {{\n    endpoint = \"{}\"\n    gc {{\n      image = false\n    }}\n  }}\n}}\n",
        paths.concat(),
        engine.endpoint(),
    );
    if let Some(podman) = podman {
        let socket = podman.socket();
        block +=
            &format!("plugin \"podman\" {{\n  config {{\n    socket_path = \"unix://{socket}\"\n  }}\n}}\n");
    }
    block
}

fn id(alloc: &Value) -> String {
    alloc["ID"].as_str().unwrap().to_string()
}

fn executors(home: &Path) -> Vec<Process> {
    let own = |process: &Process| words(*process).get(1).is_some_and(|word| word == "executor");
    processes_of(home).into_iter().filter(own).collect()
}

/// The processes that say the lines, of this test.
fn tasks(config: &AgentConfig) -> Vec<Process> {
    tasks_of(config).into_iter().map(|(process, _)| process).collect()
}

/// The same, with their allocations.
pub fn tasks_of(config: &AgentConfig) -> Vec<(Process, String)> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let all = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).map(Process);
    let works = all.filter(|process| says_lines(&words(*process)));
    works.filter_map(|process| Some((process, alloc_of(config, process)?))).collect()
}

/// The allocation for which a process was started: it is named in its environment, or in that of an executor.
fn alloc_of(config: &AgentConfig, process: Process) -> Option<String> {
    let read = |file: &str| std::fs::read(format!("/proc/{}/{file}", process.0)).unwrap_or_default();
    let said = [read("environ"), read("cmdline")].concat();
    let said = String::from_utf8_lossy(&said);
    let known = std::fs::read_dir(config.home.join("data/alloc")).unwrap().flatten();
    let known = known.filter_map(|entry| entry.file_name().into_string().ok());
    // An executor knows the directory of its task, which begins with the first part of the id.
    let names = |alloc: &str| {
        said.contains(alloc)
            || said.contains(&format!("/executors/{}-", alloc.split('-').next().unwrap_or(alloc)))
    };
    known.into_iter().find(|alloc| names(alloc))
}

fn words(process: Process) -> Vec<String> {
    let line = std::fs::read(format!("/proc/{}/cmdline", process.0)).unwrap_or_default();
    line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// None is there while all of them are being started anew. Returns whose it was.
fn kill_one(config: &AgentConfig, among: &[Process]) -> Option<String> {
    if among.is_empty() {
        return None;
    }
    let victim = among[(chance() % among.len() as u64) as usize];
    let alloc = alloc_of(config, victim);
    let pid = rustix::process::Pid::from_raw(victim.0).unwrap();
    // It may have ended by itself.
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok();
    alloc
}

/// Processes in the control groups of the tasks.
fn in_cgroups() -> usize {
    let mut directories: Vec<PathBuf> = vec![PathBuf::from("/sys/fs/cgroup").join(CGROUPS)];
    if let Ok(controllers) = std::fs::read_dir("/sys/fs/cgroup") {
        directories.extend(controllers.flatten().map(|found| found.path().join(CGROUPS)));
    }
    let mut processes = 0;
    while let Some(directory) = directories.pop() {
        let procs = std::fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
        processes += procs.lines().count();
        let below = std::fs::read_dir(&directory).into_iter().flatten().flatten();
        directories.extend(below.map(|found| found.path()).filter(|path| path.is_dir()));
    }
    processes
}

fn chance() -> u64 {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).unwrap();
    u64::from_ne_bytes(bytes)
}
