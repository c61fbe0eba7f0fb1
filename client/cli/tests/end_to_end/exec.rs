//! Commands inside tasks, through the program and through plain connections.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::end_to_end::support::terminal::Terminal;
use crate::end_to_end::support::{
    Agent, AgentConfig, CommandOutput, eventually, program, sojourn, staying, until,
};

/// An agent with a long-running task, and the task's allocation.
fn with_task(directory: &Path) -> (Agent, String) {
    let agent = AgentConfig::server_and_client(directory, "one").start();
    agent.wait_for_a_ready_node();
    agent.register(&staying("stay"));
    let alloc = agent.running("stay");
    (agent, alloc)
}

fn exec(agent: &Agent, arguments: &[&str]) -> Command {
    let mut command = program(&sojourn());
    command
        .env("NOMAD_ADDR", format!("http://{}", agent.config.http))
        .args(["alloc", "exec"])
        .args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs a command with this standard input.
fn run_exec(agent: &Agent, arguments: &[&str], input: &str) -> CommandOutput {
    let mut child = exec(agent, arguments).spawn().unwrap();
    let (mut stdin, input) = (child.stdin.take().unwrap(), input.to_string());
    // Written on another thread: output must be read before more input is accepted.
    let telling = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let ran = CommandOutput::from(child.wait_with_output().unwrap());
    // The command may end before it has read all of its input.
    let _ = telling.join().unwrap();
    ran
}

#[test]
fn an_action_of_a_job_runs_in_its_task() {
    let directory = tempfile::tempdir().unwrap();
    let agent = AgentConfig::server_and_client(directory.path(), "one").start();
    agent.wait_for_a_ready_node();
    let mut job = staying("stay");
    let script = "echo $NOMAD_TASK_NAME; exit 7";
    job["TaskGroups"][0]["Tasks"][0]["Actions"] =
        serde_json::json!([{"Name": "greet", "Command": "sh", "Args": ["-c", script]}]);
    agent.register(&job);
    let alloc = agent.running("stay");
    for place in [&["-job", "stay"][..], &["-job", "stay", "-alloc", &alloc[..8], "-task", "main"]] {
        let ran = agent.run(&[&["job", "action"], place, &["-i=false", "greet"]].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (7, "main\n"), "{}", ran.stderr);
    }
    let unknown = agent.run(&["job", "action", "-job", "stay", "x"]).expect_failure();
    assert_eq!(unknown, "job \"stay\" has no action \"x\" there\n");
    assert!(agent.run(&["job", "action", "greet"]).expect_failure().starts_with("A job ID is required"));
}

/// The processes of this agent that were started with this.
fn started_with(agent: &Agent, words: &str) -> usize {
    let lines = crate::end_to_end::support::processes_of(&agent.config.home);
    let line = |number: i32| std::fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
    lines
        .iter()
        .filter(|process| String::from_utf8_lossy(&line(process.0)).replace('\0', " ").contains(words))
        .count()
}

#[test]
fn a_command_runs_in_its_task_and_its_exit_code_is_ours() {
    let directory = tempfile::tempdir().unwrap();
    let (agent, alloc) = with_task(directory.path());
    let ran = run_exec(&agent, &[&alloc[..8], "sh", "-c", "echo $NOMAD_TASK_NAME; echo no >&2; exit 7"], "");
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (7, "main\n", "no\n"));
    let ran = run_exec(&agent, &["-task", "main", "-job", "stay", "cat"], "one\ntwo\n");
    assert_eq!(ran.expect_success(), "one\ntwo\n");
    let ran = run_exec(&agent, &["-i=false", &alloc, "cat"], "this is not sent");
    assert_eq!(ran.expect_success(), "");
    assert_eq!(run_exec(&agent, &[&alloc, "sh", "-c", "kill -TERM $$"], "").code, 143);

    let much = "0123456789abcdef\n".repeat(200_000);
    assert!(run_exec(&agent, &[&alloc, "cat"], &much).expect_success() == much, "3 MiB there and back");

    let missing = run_exec(&agent, &[&alloc, "no-such"], "").expect_failure();
    assert_eq!(missing, "Error running the command: binary \"no-such\" could not be found\n");
    let task = run_exec(&agent, &["-task", "x", &alloc, "true"], "").expect_failure();
    assert_eq!(task, "Could not find task named \"x\": there are main\n");
    assert!(run_exec(&agent, &[&alloc], "").expect_failure().starts_with("A command is required"));
    assert!(
        run_exec(&agent, &["-t", "-i=false", &alloc, "true"], "")
            .expect_failure()
            .starts_with("-i must be enabled")
    );
}

#[test]
fn a_terminal_is_passed_through_with_its_size_and_restored_afterwards() {
    let directory = tempfile::tempdir().unwrap();
    let (agent, alloc) = with_task(directory.path());
    let script = "trap 'stty size' WINCH; stty size; while :; do read line && echo got $line; done";
    let mut terminal = Terminal::start(exec(&agent, &[&alloc, "sh", "-c", script]), (31, 97));
    terminal.until("31 97");
    terminal.resize(40, 111);
    terminal.until("40 111");
    terminal.type_text("hello\r");
    terminal.until("got hello");
    assert!(!terminal.is_restored(), "keys are passed on as they are");
    terminal.type_text("\r~.");
    assert_eq!(terminal.ended(), 0);
    assert!(terminal.is_restored(), "as it was before");
    until("the command has ended", || started_with(&agent, "stty size") == 0);

    let mut terminal =
        Terminal::start(exec(&agent, &["-t", &alloc, "sh", "-c", "echo up; exec sleep 1000"]), (5, 5));
    terminal.until("up");
    terminal.type_text("\u{3}");
    assert_eq!(terminal.ended(), 130, "an interrupt reaches the command");
    assert!(terminal.is_restored());
}

#[test]
fn a_client_that_is_killed_takes_its_command_along() {
    let directory = tempfile::tempdir().unwrap();
    let (agent, alloc) = with_task(directory.path());
    for silent in [false, true] {
        let script =
            if silent { "exec sleep 4321" } else { "while :; do echo up; sleep 0.01; done; sleep 4321" };
        let mut child = exec(&agent, &[&alloc, "sh", "-c", script]).spawn().unwrap();
        until("the command runs", || started_with(&agent, "sleep 4321") == 1);
        child.kill().unwrap();
        child.wait().unwrap();
        until("the command has ended", || started_with(&agent, "sleep 4321") == 0);
    }
    assert_eq!(agent.running("stay"), alloc, "its task goes on");
}

#[test]
fn a_session_ends_when_its_server_does() {
    let directory = tempfile::tempdir().unwrap();
    let (mut agent, alloc) = with_task(directory.path());
    let child = exec(&agent, &[&alloc, "sleep", "4321"]).spawn().unwrap();
    until("the command runs", || started_with(&agent, "sleep 4321") == 1);
    agent.interrupt();
    let ran = CommandOutput::from(child.wait_with_output().unwrap());
    assert_eq!(ran.expect_failure(), "Error running the command: the server is shutting down\n");
    until("the command has ended", || started_with(&agent, "sleep 4321") == 0);
}

#[test]
fn many_clients_that_go_away_leave_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let (agent, alloc) = with_task(directory.path());
    let count = |what: &str| std::fs::read_dir(format!("/proc/{}/{what}", agent.pid())).unwrap().count();
    run_exec(&agent, &[&alloc, "true"], "").expect_success();
    let logs = format!("/v1/client/fs/logs/{alloc}?task=main&type=stdout&follow=true");
    let command = "command=%5B%22sleep%22%2C%224321%22%5D";
    let session = format!("/v1/client/allocation/{alloc}/exec?task=main&{command}");
    let settled = eventually("nothing is going on", || {
        let (fds, again) = (count("fd"), count("fd"));
        (fds == again).then_some(fds)
    });
    for _ in 0..10 {
        let mut clients: Vec<_> = (0..20).map(|_| Raw::open(&agent, &logs)).collect();
        // Twice as many may run in a task: that the last ones have ended is known to it a moment after they are gone.
        clients.extend((0..12).map(|_| Raw::open(&agent, &session)));
        until("all commands run", || started_with(&agent, "sleep 4321") == 12);
        assert!(count("fd") >= settled + clients.len());
        drop(clients);
        until("no command runs", || started_with(&agent, "sleep 4321") == 0);
        until("their descriptors are closed", || count("fd") <= settled + 3);
    }
}

/// A connection with a request whose response has begun.
struct Raw(#[expect(dead_code, reason = "it is only kept open")] std::net::TcpStream);

impl Raw {
    fn open(agent: &Agent, path: &str) -> Raw {
        let mut socket = std::net::TcpStream::connect(agent.config.http).unwrap();
        let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
        let upgrade = if path.contains("/exec") { upgrade } else { "" };
        write!(socket, "GET {path} HTTP/1.1\r\nHost: test\r\n{upgrade}\r\n").unwrap();
        let mut first = [0; 12];
        socket.read_exact(&mut first).unwrap();
        assert!(first.starts_with(b"HTTP/1.1 101") || first.starts_with(b"HTTP/1.1 200"), "{first:?}");
        Raw(socket)
    }
}
