use std::io::{self, IsTerminal, Read, Write};
use std::time::Duration;

use api::TtySize;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use sdk::{ExecEvent, ExecReader, ExecRequest, ExecWriter, Query};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, interval_at};

use super::logs::{GROUP, JOB, choose_task, newest_running};
use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, Outcome, Run};
use crate::flags::Flag;
use crate::resolve;

pub(in crate::command) const STDIN: Flag<bool> =
    Flag::switch("i", "Pass standard input to the command. Default: true.");
pub(in crate::command) const TTY: Flag<bool> =
    Flag::switch("t", "Allocate a terminal. Default: true when this program runs on one.");
pub(in crate::command) const ESCAPE: Flag<String> =
    Flag::value("e", "CHAR", "The escape character of a terminal, or none. Default: ~.");
const TASK: Flag<String> = Flag::value("task", "NAME", "The task; required when the allocation has several.");

pub(super) static COMMAND: Command = Command {
    name: "alloc exec",
    aliases: &["exec"],
    arguments: "<allocation> <command> [<args>...]",
    summary: "Run a command inside a task.",
    details: "The command has the environment, the directory and the limits of the task, and its exit code is the\n\
              exit code of this program. On a terminal, ~. at the beginning of a line ends the session.",
    flags: &[&[&STDIN, &TTY, &ESCAPE, &TASK, &JOB, &GROUP], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

/// How often a session sends a heartbeat.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(10);

/// Most pieces of standard input that are queued; when the queue is full, reading waits.
const INPUT_MAX: usize = 4;

/// Standard input is read in pieces of this size.
const INPUT_BYTES: usize = 32 * 1024;

/// The value of `-e` for no escape character.
const NO_ESCAPE: &str = "none";

async fn run(call: Call) -> Outcome {
    let (client, style) = (call.client()?, call.style());
    let [id, command @ ..] = call.args.words.as_slice() else {
        return Err(call.usage("This command takes at least two arguments: <allocation> <command>"));
    };
    if command.is_empty() {
        return Err(call.usage("A command is required"));
    }
    let options = SessionOptions::of(&call)?;
    let id = if call.args.switch(&JOB) {
        newest_running(&call, &client, &style, id).await?
    } else {
        resolve::allocation(&client, &style, id).await?.id
    };
    let alloc = client.allocation(&id, Query::new()).await.doing("querying allocation")?.value;
    let task = choose_task(&alloc, call.args.value(&TASK))?;
    let request = ExecRequest { task, command: command.to_vec(), tty: options.tty };
    let (writer, reader) = client.exec(&id, &request).await.doing("running the command")?;
    run_session(options, writer, reader).await
}

/// The options of a session.
pub(in crate::command) struct SessionOptions {
    input: bool,
    pub(in crate::command) tty: bool,
    escape: Option<u8>,
}

impl SessionOptions {
    pub(in crate::command) fn of(call: &Call) -> Result<SessionOptions, Failure> {
        let input = call.args.given_switch(&STDIN).unwrap_or(true);
        let on_terminal = || io::stdin().is_terminal() && io::stdout().is_terminal();
        let tty = call.args.given_switch(&TTY).unwrap_or_else(|| input && on_terminal());
        if tty && !input {
            return Err(call.usage("-i must be enabled if running with tty"));
        }
        let escape = match call.args.value(&ESCAPE).unwrap_or("~") {
            NO_ESCAPE | "" => None,
            one if one.len() == 1 => one.bytes().next(),
            other => {
                return Err(call.usage(&format!("-e takes one character or {NO_ESCAPE}, not \"{other}\"")));
            }
        };
        Ok(SessionOptions { input, tty, escape: escape.filter(|_| tty) })
    }
}

/// Runs the session until the command or the user ends it.
pub(in crate::command) async fn run_session(
    options: SessionOptions,
    writer: ExecWriter,
    reader: ExecReader,
) -> Outcome {
    // Restored on every way out, including signals.
    let _raw = if options.tty { RawMode::enter()? } else { None };
    let mut hangup = subscribe(SignalKind::hangup())?;
    let mut terminate = subscribe(SignalKind::terminate())?;
    let input = async {
        match forward_input(options, writer).await {
            Ok(()) => Ok(0),
            // The reader reports the reason.
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        ended = print_output(reader) => ended,
        escaped = input => escaped,
        _ = hangup.recv() => Ok(1),
        _ = terminate.recv() => Ok(1),
    }
}

fn subscribe(kind: SignalKind) -> Result<Signal, Failure> {
    signal(kind).map_err(|error| anyhow::anyhow!("cannot listen for signals: {error}").into())
}

/// Prints the command's output; its exit code becomes ours.
async fn print_output(mut reader: ExecReader) -> Outcome {
    loop {
        match reader.next().await.doing("running the command")? {
            Some(ExecEvent::Stdout(data)) => print(io::stdout(), &data),
            Some(ExecEvent::Stderr(data)) => print(io::stderr(), &data),
            // The lowest byte, as shells do.
            Some(ExecEvent::Exited(code)) => return Ok(code as u8),
            None => return Err(anyhow::anyhow!("the session ended before the command did").into()),
        }
    }
}

/// Errors are ignored: a closed output must not end the session with a failure.
fn print(mut to: impl Write, data: &[u8]) {
    let _ = to.write_all(data).and_then(|()| to.flush());
}

/// Sends standard input to the command; returns when the user ends the session.
async fn forward_input(options: SessionOptions, mut writer: ExecWriter) -> Result<(), sdk::Error> {
    let mut beats = interval_at(Instant::now() + HEARTBEAT_EVERY, HEARTBEAT_EVERY);
    let mut resized = if options.tty { signal(SignalKind::window_change()).ok() } else { None };
    let mut pieces = if options.input { Some(read_input()) } else { None };
    let mut escape = options.escape.map(Escape::new);
    if options.tty {
        send_size(&mut writer).await?;
    }
    if pieces.is_none() {
        writer.end_stdin().await?;
    }
    loop {
        tokio::select! {
            piece = next_piece(&mut pieces) => match piece {
                None => {
                    pieces = None;
                    writer.end_stdin().await?;
                }
                Some(piece) => match escape.as_mut().map_or(Some(piece.clone()), |escape| escape.filter(&piece)) {
                    Some(rest) if rest.is_empty() => {}
                    Some(rest) => writer.stdin(&rest).await?,
                    None => return Ok(()),
                },
            },
            () = changed(&mut resized) => send_size(&mut writer).await?,
            _ = beats.tick() => writer.heartbeat().await?,
        }
    }
}

async fn send_size(writer: &mut ExecWriter) -> Result<(), sdk::Error> {
    match tcgetwinsize(io::stdin()) {
        Ok(size) => writer.resize(TtySize { height: size.ws_row, width: size.ws_col }).await,
        // With `-t` but without a terminal here, the remote terminal keeps its size.
        Err(_) => Ok(()),
    }
}

async fn changed(resized: &mut Option<Signal>) {
    let signalled = match resized {
        Some(resized) => resized.recv().await,
        None => None,
    };
    if signalled.is_none() {
        std::future::pending().await
    }
}

async fn next_piece(pieces: &mut Option<mpsc::Receiver<Vec<u8>>>) -> Option<Vec<u8>> {
    match pieces {
        Some(pieces) => pieces.recv().await,
        None => std::future::pending().await,
    }
}

/// Reads on a thread of its own: a read from a terminal cannot be cancelled, and must not keep the program alive.
fn read_input() -> mpsc::Receiver<Vec<u8>> {
    let (pieces, waiting) = mpsc::channel(INPUT_MAX);
    std::thread::spawn(move || {
        let mut buffer = vec![0; INPUT_BYTES];
        loop {
            match io::stdin().lock().read(&mut buffer) {
                Ok(length @ 1..) if pieces.blocking_send(buffer[..length].to_vec()).is_ok() => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => return,
            }
        }
    });
    waiting
}

/// A terminal in raw mode, until this is dropped.
struct RawMode(Termios);

impl RawMode {
    /// `None` without a terminal.
    fn enter() -> Result<Option<RawMode>, Failure> {
        let Ok(before) = tcgetattr(io::stdin()) else { return Ok(None) };
        let mut raw = before.clone();
        raw.make_raw();
        let set = tcsetattr(io::stdin(), OptionalActions::Drain, &raw);
        set.map_err(|error| anyhow::anyhow!("the terminal cannot be set: {error}"))?;
        Ok(Some(RawMode(before)))
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // A closed terminal needs no restoring.
        let _ = tcsetattr(io::stdin(), OptionalActions::Drain, &self.0);
    }
}

/// Finds the escape character at the beginning of a line. Followed by a dot it ends the session; typed
/// twice it is sent once.
struct Escape {
    character: u8,
    /// The next character begins a line.
    at_start: bool,
    /// The escape character was typed and not sent yet.
    held: bool,
}

impl Escape {
    fn new(character: u8) -> Escape {
        Escape { character, at_start: true, held: false }
    }

    /// The part of the input that is sent; `None` ends the session.
    fn filter(&mut self, input: &[u8]) -> Option<Vec<u8>> {
        let mut sent = Vec::with_capacity(input.len() + 1);
        for &byte in input {
            if std::mem::take(&mut self.held) {
                if byte == b'.' {
                    return None;
                }
                sent.push(self.character);
                if byte == self.character {
                    continue;
                }
            } else if self.at_start && byte == self.character {
                (self.held, self.at_start) = (true, false);
                continue;
            }
            self.at_start = matches!(byte, b'\r' | b'\n');
            sent.push(byte);
        }
        Some(sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filtered(pieces: &[&str]) -> Option<String> {
        let mut escape = Escape::new(b'~');
        let mut sent = Vec::new();
        for piece in pieces {
            sent.extend(escape.filter(piece.as_bytes())?);
        }
        Some(String::from_utf8(sent).unwrap())
    }

    #[test]
    fn the_escape_character_counts_only_at_the_beginning_of_a_line() {
        for pieces in [&["~."][..], &["ls\r~."], &["ls\n", "~", "."], &["\r~.more"]] {
            assert_eq!(filtered(pieces), None, "{pieces:?}");
        }
        for (pieces, sent) in [
            (&["cd ~/x\r"][..], "cd ~/x\r"),
            (&["a~."], "a~."),
            (&["~~."], "~."),
            (&["~", "x"], "~x"),
            (&["~\r~", "~y"], "~\r~y"),
        ] {
            assert_eq!(filtered(pieces).as_deref(), Some(sent), "{pieces:?}");
        }
        assert_eq!(filtered(&["~"]).as_deref(), Some(""), "held until it is clear what it means");
    }
}
