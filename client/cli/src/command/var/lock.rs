use std::io::IsTerminal;
use std::process::ExitStatus;
use std::time::Duration;

use api::{Variable, VariableLock};
use rustix::process::{Pid, Signal as Kill, kill_process};
use sdk::{Client, VariableChange};
use tokio::process::{Child, Command as Program};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, Outcome, Run, VERBOSE};
use crate::flags::Flag;
use crate::output::write_err;

use super::Out;

const TTL: Flag<String> =
    Flag::value("ttl", "DURATION", "How long the lock holds without being renewed. Default: 15s.");
const DELAY: Flag<String> = Flag::value(
    "delay",
    "DURATION",
    "How long nobody else gets the lock after it was lost without being released. Default: 15s.",
);
const SHELL: Flag<String> =
    Flag::value("shell", "BOOL", "Run the command in a shell (SHELL, else /bin/sh). Default: true.");
const EARLY_RETURN: Flag<bool> =
    Flag::switch("early-return", "End at once, with exit code 1, if somebody else has the lock.");
const MAX_RETRY: Flag<u32> = Flag::number(
    "max-retry",
    "N",
    "How often to try again when the servers cannot be asked for the lock. Default: 5.",
);
const BACKOFF: Flag<String> = Flag::value(
    "backoff",
    "DURATION",
    "How long to wait before the first of these, and twice as long before each later one. Default: 1s.",
);
const OUT: Flag<String> = Flag::value(
    "out",
    "FORMAT",
    "How to print the locked variable: none, table, hcl or json. Default: none.",
);

pub(super) static COMMAND: Command = Command {
    name: "var lock",
    aliases: &[],
    arguments: "<path> <command> [args]",
    summary: "Run a command while holding the lock of a variable.",
    details: "Waits until nobody else has the lock, renews it while the command runs, and releases it when the command\n\
              has ended. If it is lost meanwhile the command is stopped. The variable is made if there is none. The\n\
              exit code is that of the command.",
    flags: &[&[&TTL, &DELAY, &SHELL, &EARLY_RETURN, &MAX_RETRY, &BACKOFF, &OUT, &VERBOSE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(lock(call))),
};

/// How long to wait while somebody else has the lock, before asking again.
const WAIT: Duration = Duration::from_secs(1);
/// How long a command may take to end after the lock was lost, before it is killed.
const GRACE: Duration = Duration::from_secs(5);

async fn lock(call: Call) -> Outcome {
    let [path, words @ ..] = call.args.words.as_slice() else {
        return Err(call.usage("This command takes at least two arguments: <path> <command>"));
    };
    if words.is_empty() {
        return Err(call.usage("This command takes at least two arguments: <path> <command>"));
    }
    let out = Out::of(call.args.value(&OUT).unwrap_or("none"), None)?;
    let lock = VariableLock {
        id: String::new(),
        ttl: model::document::Duration(span(&call, &TTL, "15s")?),
        lock_delay: model::document::Duration(span(&call, &DELAY, "15s")?),
    };
    let in_shell = call.args.boolean(&SHELL)?.unwrap_or(true);
    let client = call.client()?;
    let wanted = Variable { path: path.clone(), lock: Some(lock), ..Variable::default() };
    let verbose = call.args.switch(&VERBOSE);
    let say = |text: &str| {
        if verbose {
            write_err(text);
        }
    };
    say(&format!("Acquiring the lock of \"{path}\""));
    let held = acquire(&call, &client, &wanted).await?;
    say(&format!("Holding the lock of \"{path}\""));
    out.print(&call.style(), &held)?;
    let own = Variable { path: path.clone(), lock: held.lock.clone(), ..Variable::default() };
    let ended = match spawned(words, in_shell) {
        Ok(child) => while_held(&client, &own, child).await,
        Err(error) => Err(error),
    };
    // Lost, there is nothing left to release.
    match client.release_variable_lock(&own).await {
        Ok(VariableChange::Done(_)) => say(&format!("Released the lock of \"{path}\"")),
        Ok(VariableChange::Conflict(_)) => say(&format!("The lock of \"{path}\" was lost before")),
        Err(error) => write_err(format_args!("The lock of \"{path}\" is not released: {error}")),
    }
    // A command that a signal has ended has no exit code.
    Ok(ended?.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// Waits for whoever has it.
async fn acquire(call: &Call, client: &Client, wanted: &Variable) -> Result<Variable, Failure> {
    let mut tries_left = call.args.parsed(&MAX_RETRY)?.unwrap_or(5);
    let mut backoff = span(call, &BACKOFF, "1s")?.to_std();
    loop {
        match client.acquire_variable_lock(wanted).await {
            Ok(VariableChange::Done(held)) => return Ok(held),
            Ok(VariableChange::Conflict(_)) if call.args.switch(&EARLY_RETURN) => {
                return Err(anyhow::anyhow!("somebody else has the lock of \"{}\"", wanted.path).into());
            }
            Ok(VariableChange::Conflict(_)) => sleep(WAIT).await,
            Err(error) if error.is_transient() && tries_left > 0 => {
                write_err(format_args!("The lock cannot be acquired yet: {error}"));
                tries_left -= 1;
                sleep(backoff).await;
                backoff = backoff.saturating_mul(2);
            }
            Err(error) => return Err(error).doing("acquiring lock"),
        }
    }
}

fn spawned(words: &[String], in_shell: bool) -> Result<Child, Failure> {
    let mut program = if in_shell {
        let shell = std::env::var("SHELL").ok().filter(|shell| !shell.is_empty());
        let mut program = Program::new(shell.unwrap_or_else(|| "/bin/sh".to_string()));
        program.arg("-c").arg(words.join(" "));
        program
    } else {
        let mut program = Program::new(&words[0]);
        program.args(&words[1..]);
        program
    };
    let child = program.kill_on_drop(true).spawn();
    child.map_err(|error| anyhow::anyhow!("the command cannot be started: {error}").into())
}

/// Renews the lock until the command has ended. Signals are passed on to it.
async fn while_held(client: &Client, own: &Variable, mut child: Child) -> Result<ExitStatus, Failure> {
    let listen = |kind| signal(kind).map_err(|error| anyhow::anyhow!("cannot listen for signals: {error}"));
    let (mut interrupt, mut quit) = (listen(SignalKind::interrupt())?, listen(SignalKind::quit())?);
    let (mut terminate, mut hangup) = (listen(SignalKind::terminate())?, listen(SignalKind::hangup())?);
    // What is typed there reaches the command by itself.
    let typed = std::io::stdin().is_terminal();
    let ttl = own.lock.as_ref().map(|lock| lock.ttl.0.to_std()).unwrap_or_default();
    let mut renewed = Instant::now();
    let mut due = renewed + ttl / 2;
    loop {
        tokio::select! {
            ended = child.wait() => return Ok(ended.map_err(anyhow::Error::from)?),
            Some(()) = received(&mut interrupt) => pass_on(&child, Kill::INT, !typed),
            Some(()) = received(&mut quit) => pass_on(&child, Kill::QUIT, !typed),
            Some(()) = received(&mut terminate) => pass_on(&child, Kill::TERM, true),
            Some(()) = received(&mut hangup) => pass_on(&child, Kill::HUP, true),
            () = sleep_until(due) => {
                // Begun before: it may be counted from there on.
                let began = Instant::now();
                match client.renew_variable_lock(own).await {
                    Ok(_) => (renewed, due) = (began, began + ttl / 2),
                    // The servers wait for twice the time, so there is some left.
                    Err(error) if error.is_transient() && renewed.elapsed() < ttl => {
                        write_err(format_args!("The lock is not renewed yet: {error}"));
                        due = Instant::now() + WAIT.min(ttl / 8);
                    }
                    Err(error) => {
                        stop(&mut child).await;
                        return Err(anyhow::anyhow!("the lock was lost, the command is stopped: {error}").into());
                    }
                }
            }
        }
    }
}

async fn received(signal: &mut Signal) -> Option<()> {
    signal.recv().await
}

fn pass_on(child: &Child, kind: Kill, wanted: bool) {
    let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    if let (Some(id), true) = (id, wanted) {
        // It may have ended this moment.
        let _gone = kill_process(id, kind);
    }
}

async fn stop(child: &mut Child) {
    pass_on(child, Kill::TERM, true);
    if timeout(GRACE, child.wait()).await.is_err() {
        let _gone = child.kill().await;
    }
}

fn span(call: &Call, flag: &Flag<String>, default: &str) -> Result<base::Duration, Failure> {
    let text = call.args.value(flag).filter(|text| !text.is_empty()).unwrap_or(default);
    text.parse()
        .map_err(|_| call.usage(&format!("-{} \"{text}\": expected a duration like 15s", flag.name())))
}
