//! Children that fetch artifacts: started, asked, and ended.
//!
//! What a child does is the crate [`artifact`]; what a job wants of it is made a request by the task hook `artifacts`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use artifact::{Answer, Limits, Request};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};

/// Where children find their programs.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Longest answer, and longest message of a child that has none.
const ANSWER_BYTES_MAX: u64 = 64 << 10;

/// What scratch directories are called, so that the next agent can tell them.
const SCRATCH: &str = ".artifact-";

/// What the operator decides about artifacts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactSettings {
    pub limits: Limits,
    /// What children have in their environment besides `PATH` and `TMPDIR`: the home of the agent's user, and variables
    /// that the operator has named.
    pub environment: BTreeMap<String, String>,
}

impl ArtifactSettings {
    /// Those of Nomad, if the operator says nothing.
    pub fn usual() -> ArtifactSettings {
        ArtifactSettings { limits: Limits::usual(), environment: BTreeMap::new() }
    }
}

/// A directory below `tmp` that no other child uses.
pub fn scratch_below(tmp: &Path) -> PathBuf {
    let mut id = [0; 8];
    getrandom::fill(&mut id).expect("the system gives random bytes");
    tmp.join(format!("{SCRATCH}{:016x}", u64::from_ne_bytes(id)))
}

/// Removes what children of an earlier agent have left in the directory of a task.
pub fn remove_leftovers(tmp: &Path) {
    for entry in std::fs::read_dir(tmp).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(SCRATCH) {
            std::fs::remove_dir_all(entry.path()).ok();
        }
    }
}

/// Has a child fetch an artifact. Dropped before it is done, it ends the child with everything that the child started.
///
/// # Errors
/// When the child cannot be started, gives no answer, or takes longer than all of its timeouts.
pub async fn fetch(program: &Path, request: &Request, settings: &ArtifactSettings) -> Result<Answer, String> {
    let tmp = request.scratch.parent().unwrap_or(Path::new("/tmp"));
    let mut command = Command::new(program);
    command.arg(artifact::SUBCOMMAND).env_clear().envs(&settings.environment);
    command.env("PATH", PATH).env("TMPDIR", tmp).current_dir(&request.root);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A group of its own, so that it can be ended with git and what git has started.
    command.process_group(0).kill_on_drop(true);
    let child = command.spawn().map_err(|error| format!("{}: {error}", program.display()))?;
    let mut running = Running { child, scratch: request.scratch.clone(), ended: false };
    let deadline = settings.limits.deadline();
    let answer = match tokio::time::timeout(deadline, ask(&mut running.child, request)).await {
        Ok(answer) => answer,
        Err(_) => Err(format!("not done within {} s", deadline.as_secs())),
    };
    running.end().await;
    answer
}

async fn ask(child: &mut Child, request: &Request) -> Result<Answer, String> {
    let mut line = serde_json::to_string(request).expect("a request is plain data");
    line.push('\n');
    // Open until the answer is there: the child ends when it is closed.
    let mut input = child.stdin.take().ok_or("it has no input")?;
    let output = child.stdout.take().ok_or("it has no output")?;
    if let Err(error) = input.write_all(line.as_bytes()).await {
        return Err(format!("it takes no request: {error}"));
    }
    let mut answer = String::new();
    let read = BufReader::new(output.take(ANSWER_BYTES_MAX)).read_line(&mut answer).await;
    match read.ok().and_then(|_| serde_json::from_str(&answer).ok()) {
        Some(answer) => Ok(answer),
        None => Err(format!("the process that fetches ended without an answer: {}", last_words(child).await)),
    }
}

/// Also says how a child ended that was killed by the kernel.
async fn last_words(child: &mut Child) -> String {
    let mut said = Vec::new();
    if let Some(errors) = child.stderr.take() {
        errors.take(ANSWER_BYTES_MAX).read_to_end(&mut said).await.ok();
    }
    let status = child.wait().await.map_or_else(|error| error.to_string(), |status| status.to_string());
    let said = String::from_utf8_lossy(&said);
    match said.trim() {
        "" => status,
        said => format!("{status}: {said}"),
    }
}

/// A child, its process group, and what it works on.
struct Running {
    child: Child,
    scratch: PathBuf,
    ended: bool,
}

impl Running {
    fn kill(&self) {
        // Not waited for yet, so the number still means this child.
        if let Some(pid) = self.child.id().and_then(|pid| i32::try_from(pid).ok()) {
            killpg(Pid::from_raw(pid), Signal::SIGKILL).ok();
        }
    }

    async fn end(mut self) {
        self.kill();
        self.child.wait().await.ok();
        self.ended = true;
        let scratch = self.scratch.clone();
        tokio::task::spawn_blocking(move || std::fs::remove_dir_all(scratch).ok()).await.ok();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended {
            self.kill();
            // It may be large, and whoever drops us may not wait. What is left of it the next start removes.
            let scratch = self.scratch.clone();
            std::thread::spawn(move || std::fs::remove_dir_all(scratch).ok());
        }
    }
}
