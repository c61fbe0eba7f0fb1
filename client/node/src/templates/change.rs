//! Follows what templates read while their task lives, and does what the job wants when a text has changed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::Rng;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until};

use super::Wait;
use super::render::{Attempt, Renderer};
use super::spec::{Change, Script, Spec};
use crate::clock::jitter;
use crate::driver::exec::run_once;
use crate::task::events;
use crate::task::hooks::TaskContext;
use crate::task::parts::TaskParts;
use crate::task::requests::TaskRequest;
use crate::task::runner::NOT_RUNNING;

/// Variables of the environment that templates make; the next start of the task takes them.
pub type SharedEnv = Arc<Mutex<BTreeMap<String, String>>>;

/// Runs until it is dropped, or a template fails.
#[derive(Debug)]
pub struct Follower {
    pub renderer: Renderer,
    pub task: TaskContext,
    pub env: SharedEnv,
}

/// When a template is rendered again.
#[derive(Clone, Copy, Debug)]
struct Due {
    first: Instant,
    last: Instant,
}

impl Due {
    /// When nothing has changed for a while, or changes have gone on for too long.
    fn at(self, wait: Wait) -> Instant {
        (self.last + wait.min).min(self.first + wait.max)
    }
}

impl Follower {
    /// `at_once`: render everything again first, for texts that an earlier agent has written.
    pub async fn run(mut self, at_once: bool) {
        let seed = self.task.context.seed;
        let stream = format!("{}/{}/template", self.task.alloc().id, self.task.name);
        let mut rng = Rng::stream(seed, &stream);
        if let Err(why) = self.follow(&mut rng, at_once).await {
            tracing::warn!(task = self.task.name, why, "a template failed");
            let Some(requests) = self.task.requests.upgrade() else { return };
            requests.send(TaskRequest::Fail { reason: format!("Template failed: {why}") }).await.ok();
        }
    }

    /// Returns only when something failed.
    async fn follow(&mut self, rng: &mut Rng, at_once: bool) -> Result<(), String> {
        let mut due: BTreeMap<usize, Due> = BTreeMap::new();
        if at_once {
            let all = (0..self.renderer.specs.len()).filter(|at| !self.renderer.specs[*at].once).collect();
            self.render(all, rng).await?;
        }
        loop {
            let next = due.iter().map(|(at, due)| due.at(self.renderer.specs[*at].wait)).min();
            let timer = sleep_until(next.unwrap_or_else(Instant::now));
            tokio::select! {
                dependency = self.renderer.changed() => {
                    let now = Instant::now();
                    for at in self.renderer.readers_of(&dependency) {
                        due.entry(at).and_modify(|due| due.last = now).or_insert(Due { first: now, last: now });
                    }
                }
                () = timer, if next.is_some() => {
                    let now = Instant::now();
                    let specs = &self.renderer.specs;
                    let ready: Vec<usize> =
                        due.iter().filter(|(at, due)| due.at(specs[**at].wait) <= now).map(|(at, _)| *at).collect();
                    due.retain(|at, _| !ready.contains(at));
                    self.render(ready, rng).await?;
                }
            }
        }
    }

    /// Renders these, and acts on those whose text differs. One that misses something stays what it was.
    async fn render(&mut self, ready: Vec<usize>, rng: &mut Rng) -> Result<(), String> {
        let mut changed = Vec::new();
        for at in ready {
            if let Attempt::Done(bytes) = self.renderer.attempt(at)?
                && self.renderer.write(at, bytes)?
            {
                changed.push(self.renderer.specs[at].clone());
            }
        }
        self.renderer.tidy();
        *self.env.lock().unwrap_or_else(PoisonError::into_inner) = self.renderer.env()?;
        self.act(&changed, rng).await
    }

    /// A restart does everything that a signal or a script would.
    async fn act(&self, changed: &[Spec], rng: &mut Rng) -> Result<(), String> {
        let active: Vec<&Spec> = changed.iter().filter(|spec| spec.change != Change::Nothing).collect();
        let Some(splay) = active.iter().map(|spec| spec.splay).max() else { return Ok(()) };
        sleep(jitter(rng, splay)).await;
        if active.iter().any(|spec| spec.change == Change::Restart) {
            self.restart().await;
            return Ok(());
        }
        let mut sent = Vec::new();
        for spec in active {
            match &spec.change {
                Change::Signal(signal, name) if !sent.contains(signal) => {
                    sent.push(*signal);
                    self.signal(*signal, name).await?;
                }
                Change::Script(script) => run_script(&self.task, script).await?,
                Change::Nothing | Change::Restart | Change::Signal(..) => {}
            }
        }
        Ok(())
    }

    /// What is not running starts with the new texts anyway.
    async fn restart(&self) {
        let Some(requests) = self.task.requests.upgrade() else { return };
        let reason = "Template with change_mode restart re-rendered".to_string();
        let (reply, _) = oneshot::channel();
        requests.send(TaskRequest::Restart { reason, revive: false, unhealthy: false, reply }).await.ok();
    }

    async fn signal(&self, signal: nix::sys::signal::Signal, name: &str) -> Result<(), String> {
        let Some(requests) = self.task.requests.upgrade() else { return Ok(()) };
        let (reply, answer) = oneshot::channel();
        let request = TaskRequest::Signal { signal, name: name.to_string(), reply };
        requests.send(request).await.ok();
        match answer.await {
            Ok(Err(why)) if why == NOT_RUNNING => {
                let text = format!("Template re-rendered, but the task was not running: {name} was not sent");
                self.task.tasks.add_event(&self.task.name, events::hook_message(&text));
                Ok(())
            }
            Ok(Err(why)) => Err(format!("failed to send signals to the task: {why}")),
            // The task ends.
            Ok(Ok(())) | Err(_) => Ok(()),
        }
    }
}

/// Runs the script inside of the task, and says how that went.
///
/// # Errors
/// When it failed, and the job wants the task to fail then.
pub async fn run_script(task: &TaskContext, script: &Script) -> Result<(), String> {
    let shown = format!("script {} with arguments: [{}]", script.command, script.args.join(" "));
    let outcome = match exit_code(task, script).await {
        Ok(0) => Ok(format!("Template successfully ran {shown}. Exit code: 0")),
        Ok(code) => Err(format!("Template ran {shown} on change but it exited with code: {code}")),
        Err(why) => Err(format!("Template failed to run {shown} on change: {why}")),
    };
    let text = outcome.as_ref().unwrap_or_else(|why| why);
    task.tasks.add_event(&task.name, events::hook_message(text));
    match outcome {
        Err(why) if script.fail_on_error => Err(why),
        _ => Ok(()),
    }
}

async fn exit_code(task: &TaskContext, script: &Script) -> Result<i64, String> {
    let alloc = task.alloc();
    let driver = TaskParts::find(&alloc, &task.name).map_or("", |parts| parts.task.driver.as_str());
    task.context.drivers.check_exec(driver).map_err(|error| error.to_string())?;
    let running = task.tasks.running(&task.name).ok_or("the task is not running")?;
    let command = std::iter::once(&script.command).chain(&script.args).cloned().collect();
    let timeout: Duration = script.timeout;
    let output = run_once(&*running, command, timeout).await.map_err(|error| error.to_string())?;
    Ok(output.exit.code)
}
