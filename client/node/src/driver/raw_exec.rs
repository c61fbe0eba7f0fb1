//! Tasks as plain processes of the host, each under an executor of its own.
//!
//! Nothing isolates them. They end together with whatever they started: the executor is the reaper of all
//! orphans of its task and kills them, also where the host gives us no control groups. Memory and CPU limits
//! need control groups of version 2, writable at the usual place; without, a task has no limits.

mod exec;

use std::collections::BTreeMap;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::unistd::{Group, User};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::time::timeout;

use super::config::Reader;
use super::{Control, Exit, Limits, Outcome, Running, StartError, Started, TaskConfig, Usage};
use executor::cgroup;
use executor::process::{self, ProcessIdentity};
use executor::spec::{self, Answer, CgroupSpec, Greeting, Request, Spec, State, UserIds};

pub use exec::exec;

/// How long an executor may take to start its task.
const START_PATIENCE: Duration = Duration::from_secs(30);

/// How long an executor may take to answer what it can answer at once.
const ANSWER_PATIENCE: Duration = Duration::from_secs(5);

/// How long, beyond the grace, a stopped task may take to disappear: SIGKILL, leftovers, output.
const STOP_PATIENCE: Duration = Duration::from_secs(30);

/// Between two attempts to reach an executor that lives and does not answer.
const RETRY_EVERY: Duration = Duration::from_millis(200);

/// What the agent's configuration says about this driver.
#[derive(Clone, Debug, Default)]
pub struct RawExecSettings {
    pub enabled: bool,
    /// Ranges of user and group numbers that no task may run as, like `0,10-15`.
    pub denied_host_uids: String,
    pub denied_host_gids: String,
    /// Patterns (`*` for anything) of variables that no task gets.
    pub denied_envvars: Vec<String>,
}

#[derive(Debug)]
pub struct RawExec {
    pub settings: RawExecSettings,
    /// Where executors keep their files; 0700.
    pub directory: PathBuf,
    /// The program that becomes an executor, and what comes before the directory in its arguments.
    pub program: PathBuf,
    /// As [`crate::Settings::task_open_files`].
    pub open_files: Option<u64>,
    /// Parent of the tasks' control groups, where there are any.
    pub cgroup_parent: Option<PathBuf>,
}

/// Where the executor of a task keeps its files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Handle {
    pub directory: PathBuf,
}

/// The way to an executor.
#[derive(Debug)]
pub struct Link {
    directory: PathBuf,
    executor: ProcessIdentity,
}

impl RawExec {
    pub async fn start(&self, config: TaskConfig) -> Result<Started, StartError> {
        if !self.settings.enabled {
            return Err(StartError::fatal("raw_exec is disabled"));
        }
        let directory = self.directory.join(format!("{}-{}", short(&config.alloc_id), config.instance));
        let spec = self.spec(config)?;
        let write = || -> std::io::Result<()> {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
            spec::write(&directory, spec::SPEC_FILE, &spec)
        };
        write().map_err(StartError::transient)?;
        match self.launch(&directory).await {
            Ok(state) => {
                let running = attach(directory.clone(), state);
                let handle = super::Handle::RawExec(Handle { directory });
                Ok(Started { handle, running, network: None })
            }
            Err(error) => {
                destroy(&Handle { directory });
                Err(error)
            }
        }
    }

    async fn launch(&self, directory: &Path) -> Result<State, StartError> {
        let output =
            std::fs::File::create(directory.join(spec::OUTPUT_FILE)).map_err(StartError::transient)?;
        let mut command = tokio::process::Command::new(&self.program);
        command.arg(spec::SUBCOMMAND).arg(directory).current_dir("/").env_clear();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(output);
        let mut child = command
            .spawn()
            .map_err(|error| StartError::transient(format!("failed to launch the executor: {error}")))?;
        let stdout = child.stdout.take().expect("the executor's stdout is a pipe");
        let mut line = String::new();
        let heard = timeout(START_PATIENCE, BufReader::new(stdout).read_line(&mut line)).await;
        // Nobody waits for the executor here: it must outlive us. While we live, the runtime reaps it.
        drop(child);
        match heard {
            Err(_) => Err(StartError::transient("the executor did not start the task in time")),
            Ok(Err(error)) => Err(StartError::transient(error)),
            Ok(Ok(_)) => match serde_json::from_str(&line) {
                Ok(Greeting::Started(state)) => Ok(state),
                Ok(Greeting::Failed(text)) => {
                    Err(StartError::fatal(format!("failed to launch command with executor: {text}")))
                }
                Err(_) => Err(StartError::transient("the executor ended without a word")),
            },
        }
    }

    fn spec(&self, config: TaskConfig) -> Result<Spec, StartError> {
        let mut keys = Reader::new("raw_exec", config.config);
        let command = keys.text("command")?.filter(|text| !text.is_empty());
        let command =
            command.ok_or_else(|| StartError::Invalid("config key \"command\" is required".into()))?;
        let args = keys.texts("args")?;
        let work_dir = keys.text("work_dir")?.filter(|text| !text.is_empty()).map(PathBuf::from);
        let oom_score_adj = keys.number("oom_score_adj")?;
        let denied = keys.texts("denied_envvars")?;
        let cgroup = keys.text("cgroup_v2_override")?.filter(|text| !text.is_empty());
        keys.refuse("cgroup_v1_override", "this node uses control groups of version 2 only")?;
        keys.finish()?;
        if work_dir.as_ref().is_some_and(|path| !path.is_absolute()) {
            return Err(StartError::Invalid("work_dir must be an absolute path".into()));
        }
        if oom_score_adj.is_some_and(|score| !(0..=1000).contains(&score)) {
            return Err(StartError::Invalid("oom_score_adj must be between 0 and 1000".into()));
        }
        let mut env = config.env;
        let patterns: Vec<&String> = self.settings.denied_envvars.iter().chain(&denied).collect();
        env.retain(|name, _| !patterns.iter().any(|pattern| base::matches_glob(pattern, name)));
        let user = self.user(&config.user, &mut env)?;
        let stem = format!("{}.{}", config.alloc_id, config.task);
        Ok(Spec {
            command: find_command(&command, &config.dir.root, env.get("PATH").map(String::as_str))?,
            args,
            work_dir: work_dir.unwrap_or(config.dir.root),
            user,
            stdout: config.logs.as_ref().map(|logs| logs.stdout.clone()),
            stderr: config.logs.map(|logs| logs.stderr),
            oom_score_adj: oom_score_adj.map(|score| score as i32),
            open_files: self.open_files,
            cgroup: self.cgroup(cgroup, &stem, config.limits),
            env,
        })
    }

    /// Who the task runs as: an empty name keeps the agent's own user.
    fn user(&self, name: &str, env: &mut BTreeMap<String, String>) -> Result<Option<UserIds>, StartError> {
        let current = nix::unistd::getuid();
        let found = match name.parse::<u32>() {
            _ if name.is_empty() => User::from_uid(current),
            Ok(uid) => User::from_uid(nix::unistd::Uid::from_raw(uid)),
            Err(_) => User::from_name(name),
        };
        let user = match found {
            Ok(Some(user)) => user,
            _ if name.is_empty() => return Ok(None),
            _ => return Err(StartError::fatal(format!("failed to find user \"{name}\""))),
        };
        let groups = groups_of(&user);
        if in_ranges(&self.settings.denied_host_uids, user.uid.as_raw())
            || groups.iter().any(|gid| in_ranges(&self.settings.denied_host_gids, *gid))
        {
            return Err(StartError::fatal(format!("running as user \"{}\" is not allowed", user.name)));
        }
        if name.is_empty() {
            return Ok(None);
        }
        env.insert("USER".into(), user.name.clone());
        env.insert("LOGNAME".into(), user.name);
        env.insert("HOME".into(), user.dir.display().to_string());
        // Only the first group: the standard library drops the others when it changes the user.
        Ok(Some(UserIds { uid: user.uid.as_raw(), gid: user.gid.as_raw() }))
    }

    fn cgroup(&self, given: Option<String>, stem: &str, limits: Limits) -> Option<CgroupSpec> {
        if let Some(path) = given {
            let path = Path::new(cgroup::ROOT).join(path);
            return Some(CgroupSpec { path, managed: false, ..CgroupSpec::default() });
        }
        let path = self.cgroup_parent.as_ref()?.join(format!("{stem}.scope"));
        let bytes = |mb: i64| (mb > 0).then_some(mb as u64 * 1024 * 1024);
        let (memory_max_bytes, memory_low_bytes) = match limits.memory_max_mb {
            0 => (bytes(limits.memory_mb), None),
            max => (bytes(max), bytes(limits.memory_mb)),
        };
        let shares = limits.cpu_mhz.clamp(2, 262_144) as u64;
        let cpu_weight = Some(1 + (shares - 2) * 9999 / 262_142);
        Some(CgroupSpec { path, managed: true, memory_max_bytes, memory_low_bytes, cpu_weight })
    }

    /// Ends and removes every executor that no handle of `known` names: an agent died after it started them
    /// and before it wrote that down.
    pub async fn sweep(&self, known: &[PathBuf]) {
        let Ok(entries) = std::fs::read_dir(&self.directory) else { return };
        for directory in entries.flatten().map(|entry| entry.path()) {
            if known.contains(&directory) {
                continue;
            }
            tracing::warn!(directory = %directory.display(), "ending a task that nobody remembers");
            let stop = Request::Stop { number: Signal::SIGKILL as i32, grace_ms: 0 };
            ask(&directory, &stop, STOP_PATIENCE).await.ok();
            destroy(&Handle { directory });
        }
    }
}

/// The first 8 characters of an id.
fn short(id: &str) -> String {
    id.chars().take(8).collect()
}

fn groups_of(user: &User) -> Vec<u32> {
    let mut groups = vec![user.gid.as_raw()];
    if let Ok(name) = std::ffi::CString::new(user.name.clone())
        && let Ok(all) = nix::unistd::getgrouplist(&name, user.gid)
    {
        groups.extend(all.iter().map(|gid| gid.as_raw()));
    }
    groups.retain(|gid| Group::from_gid(nix::unistd::Gid::from_raw(*gid)).is_ok());
    groups
}

/// True when `number` lies in one of the ranges of a text like `0,10-15`.
fn in_ranges(ranges: &str, number: u32) -> bool {
    ranges.split(',').any(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        match (first.trim().parse::<u32>(), last.trim().parse::<u32>()) {
            (Ok(first), Ok(last)) => (first..=last).contains(&number),
            _ => false,
        }
    })
}

/// The program that `name` means: in the task's own directories, then as an absolute path, then in PATH.
fn find_command(name: &str, task_dir: &Path, path: Option<&str>) -> Result<PathBuf, StartError> {
    let own = [task_dir.join("local").join(name), task_dir.join(name)];
    let named = Path::new(name);
    let absolute = named.is_absolute().then(|| named.to_path_buf());
    let searched = path.filter(|_| !name.contains('/')).unwrap_or_default();
    let in_path = std::env::split_paths(searched).filter(|dir| dir.is_absolute()).map(|dir| dir.join(name));
    let found = own.into_iter().chain(absolute).chain(in_path).find(|path| path.is_file());
    let found = found.ok_or_else(|| StartError::fatal(format!("binary \"{name}\" could not be found")))?;
    let mode = found.metadata().map_err(StartError::fatal)?.permissions().mode();
    if mode & 0o555 != 0o555 {
        let runnable = std::fs::Permissions::from_mode(mode | 0o555);
        std::fs::set_permissions(&found, runnable).map_err(StartError::fatal)?;
    }
    Ok(found)
}

/// Finds a task again: it runs, or its executor has written down how it ended.
pub fn recover(handle: &Handle) -> Result<Running, String> {
    let directory = &handle.directory;
    let state: Option<State> =
        spec::read(directory, spec::STATE_FILE).map_err(|error| format!("executor state: {error}"))?;
    let state = state.ok_or("the executor left no state")?;
    if !state.executor.is_alive() && !directory.join(spec::EXIT_FILE).exists() {
        process::kill_orphans(&state.executor);
        return Err("the executor is gone".to_string());
    }
    Ok(attach(directory.clone(), state))
}

/// Removes the executor's files, after making sure that nothing runs on.
pub fn destroy(handle: &Handle) {
    if let Ok(Some(state)) = spec::read::<State>(&handle.directory, spec::STATE_FILE) {
        process::kill_orphans(&state.executor);
    }
    std::fs::remove_dir_all(&handle.directory).ok();
}

/// The executor of a task, while it lives.
pub fn executor_pid(handle: &Handle) -> Option<i32> {
    let state: State = spec::read(&handle.directory, spec::STATE_FILE).ok()??;
    state.executor.is_alive().then_some(state.executor.pid)
}

/// CPU and memory of all that the executor's task consists of.
pub fn usage(executor: i32) -> Usage {
    let page = rustix::param::page_size() as u64;
    process::descendants(executor).iter().fold(Usage::default(), |sum, stat| Usage {
        user_ticks: sum.user_ticks + stat.user_ticks,
        system_ticks: sum.system_ticks + stat.system_ticks,
        resident_bytes: sum.resident_bytes + stat.resident_pages * page,
        processes: sum.processes + 1,
    })
}

fn attach(directory: PathBuf, state: State) -> Running {
    let (result, outcome) = watch::channel(None);
    let link = Link { directory: directory.clone(), executor: state.executor.clone() };
    tokio::spawn(async move {
        tokio::select! {
            exit = watch_exit(&directory, &state.executor) => {
                result.send_replace(Some(Outcome::Exited(exit)));
            }
            () = result.closed() => {}
        }
    });
    Running { outcome, control: Control::RawExec(link) }
}

/// The exit: from the executor while it lives, from its file afterwards.
async fn watch_exit(directory: &Path, executor: &ProcessIdentity) -> Exit {
    loop {
        // The file is looked at last: an executor writes it before it dies.
        let alive = executor.is_alive();
        match spec::read(directory, spec::EXIT_FILE) {
            Ok(Some(exit)) => return exit,
            Err(error) => return Exit::lost(format!("the exit cannot be read: {error}")),
            Ok(None) if !alive => {
                process::kill_orphans(executor);
                return Exit::lost("the executor died".to_string());
            }
            Ok(None) => {}
        }
        if let Ok(Answer::Exited(exit)) = ask(directory, &Request::Wait, Duration::MAX).await {
            return exit;
        }
        tokio::time::sleep(RETRY_EVERY).await;
    }
}

impl Link {
    pub async fn signal(&self, signal: Signal) -> Result<(), String> {
        match ask(&self.directory, &Request::Signal { number: signal as i32 }, ANSWER_PATIENCE).await? {
            Answer::Done | Answer::Ready | Answer::Exited(_) => Ok(()),
            Answer::Failed(text) => Err(text),
        }
    }

    /// Returns when the executor says that the task has ended, or is itself gone.
    pub async fn stop(&self, signal: Signal, grace: Duration) -> Result<(), String> {
        let request = Request::Stop { number: signal as i32, grace_ms: grace.as_millis() as u64 };
        match ask(&self.directory, &request, grace + STOP_PATIENCE).await {
            Ok(Answer::Failed(text)) => Err(text),
            Ok(_) => Ok(()),
            Err(_) if !self.executor.is_alive() => Ok(()),
            Err(text) => Err(text),
        }
    }
}

/// One request, one answer.
async fn ask(directory: &Path, request: &Request, patience: Duration) -> Result<Answer, String> {
    let exchange = async {
        let (_handle, path) = spec::socket_path(directory)?;
        let mut stream = UnixStream::connect(path).await?;
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        stream.write_all(&line).await?;
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).await?;
        std::io::Result::Ok(serde_json::from_str(&answer)?)
    };
    match timeout(patience, exchange).await {
        Ok(answer) => answer.map_err(|error| format!("the executor cannot be reached: {error}")),
        Err(_) => Err("the executor does not answer".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_and_ranges_match_what_they_say() {
        for (pattern, text, expected) in [
            ("AWS_*", "AWS_KEY", true),
            ("*KEY", "AWS_KEY", true),
            ("A*S*Y", "AWS_KEY", true),
            ("AWS", "AWS_KEY", false),
            ("*", "", true),
        ] {
            assert_eq!(base::matches_glob(pattern, text), expected, "{pattern} {text}");
        }
        for (number, expected) in [(0, true), (9, false), (10, true), (15, true), (16, false)] {
            assert_eq!(in_ranges("0,10-15", number), expected, "{number}");
        }
        assert!(!in_ranges("", 0));
    }

    #[test]
    fn a_command_of_the_task_comes_before_one_of_the_host() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("local")).unwrap();
        let find = |name: &str| find_command(name, dir.path(), Some("/usr/bin:/bin"));
        assert!(find("sh").unwrap().ends_with("bin/sh"));
        assert_eq!(find("/bin/sh").unwrap(), Path::new("/bin/sh"));
        let own = dir.path().join("local/sh");
        std::fs::write(&own, "").unwrap();
        assert_eq!(find("sh").unwrap(), own);
        assert_eq!(own.metadata().unwrap().permissions().mode() & 0o555, 0o555, "made runnable");
        assert_eq!(find("no-such").unwrap_err().to_string(), "binary \"no-such\" could not be found");
    }
}
