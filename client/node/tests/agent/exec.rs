//! Commands inside tasks: what they get, how they end, and that nothing of them stays behind.

use std::time::Duration;

use crate::support::listening::{Running, SOON, running, running_with};
use crate::support::*;
use api::ExecOutput;
use executor::process::{descendants, stat};
use model::document::Bytes;
use serde_json::{Value, json};
use wire::messages::{AllocExecRequest, ExecInputFrame, ExecStdin, ExecTtySize, StreamFrameWrapper, method};
use wire::{FrameReceiver, Frames};

/// How long a message may take.
const PATIENCE: Duration = Duration::from_secs(120);

const STAYS: &str = "exec tail -f /dev/null";

/// A session as a server has it.
pub struct Session(Frames);

/// All that a command said, and how it ended.
#[derive(Debug, Default, PartialEq)]
pub struct ExecResult {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub code: Option<i64>,
}

impl Running {
    pub async fn with_task(task: Value) -> Running {
        let running = running().await;
        running.servers.assign(alloc(1, "service", json!([task])));
        running.servers.await_status(&alloc_id(1), "running");
        running
    }

    pub async fn exec_in(&self, task: &str, command: &[&str], tty: bool) -> Session {
        let mut frames = self.connection().await.open_stream(method::ALLOCATIONS_EXEC, SOON).await.unwrap();
        let cmd: Vec<String> = command.iter().map(|word| word.to_string()).collect();
        let request = AllocExecRequest {
            alloc_id: alloc_id(1),
            task: task.to_string(),
            tty,
            cmd: cmd.into(),
            ..Default::default()
        };
        frames.send(&request).await.unwrap();
        Session(frames)
    }

    /// One whose command has begun. Those that were ended before it count until they are cleared away.
    async fn session_that_stays(&self) -> Session {
        eventually_async(async || {
            let mut session = self.terminal("echo up; exec sleep 1000").await;
            session.next().await.unwrap().is_ok().then_some(session)
        })
        .await
    }

    async fn shell(&self, script: &str) -> Session {
        self.exec_in("web", &["/bin/sh", "-c", script], false).await
    }

    async fn terminal(&self, script: &str) -> Session {
        self.exec_in("web", &["sh", "-c", script], true).await
    }
}

impl Session {
    async fn say(&mut self, input: &ExecInputFrame) {
        self.0.send(input).await.unwrap();
    }

    pub async fn stdin(&mut self, text: &str) {
        let stdin = ExecStdin { data: Bytes(text.into()), close: false };
        self.say(&ExecInputFrame { stdin: Some(stdin), ..Default::default() }).await;
    }

    async fn end_stdin(&mut self) {
        let stdin = ExecStdin { close: true, ..Default::default() };
        self.say(&ExecInputFrame { stdin: Some(stdin), ..Default::default() }).await;
    }

    pub async fn resize(&mut self, height: i64, width: i64) {
        self.say(&ExecInputFrame { tty_size: Some(ExecTtySize { height, width }), ..Default::default() })
            .await;
    }

    async fn next(&mut self) -> Option<Result<ExecOutput, (i64, String)>> {
        let next = tokio::time::timeout(PATIENCE, self.0.receive::<StreamFrameWrapper>()).await;
        let wrapper = next.expect("something comes").unwrap()?;
        Some(match wrapper.error {
            Some(error) => Err((error.code.unwrap(), error.message)),
            None => Ok(serde_json::from_slice(&wrapper.payload.0).unwrap()),
        })
    }

    /// Reads on until the command has said this.
    pub async fn until(&mut self, wanted: &str) -> String {
        let mut said = String::new();
        while !said.contains(wanted) {
            let output = self.next().await.unwrap_or_else(|| panic!("only {said:?}")).unwrap();
            let pieces = [output.stdout, output.stderr].into_iter().flatten();
            pieces.for_each(|piece| said.push_str(std::str::from_utf8(&piece.data.0).unwrap()));
        }
        said
    }

    /// Reads to the end.
    pub async fn rest(&mut self) -> ExecResult {
        let mut said = ExecResult::default();
        let (mut ends, mut exited) = (0, false);
        while let Some(output) = self.next().await {
            assert!(!exited, "nothing follows on the exit");
            let output = output.unwrap();
            for (piece, to) in [(output.stdout, &mut said.stdout), (output.stderr, &mut said.stderr)] {
                let Some(piece) = piece else { continue };
                to.extend(piece.data.0);
                ends += usize::from(piece.close);
            }
            if output.exited {
                (exited, said.code) = (true, output.result.map(|result| result.exit_code));
            }
        }
        assert!(exited && ends >= 1, "{said:?}");
        said
    }

    async fn failure(&mut self) -> (i64, String) {
        let refusal = self.next().await.unwrap().unwrap_err();
        assert!(self.next().await.is_none());
        refusal
    }
}

pub fn result(stdout: &str, stderr: &str, code: i64) -> ExecResult {
    ExecResult { stdout: stdout.into(), stderr: stderr.into(), code: Some(code) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_has_the_tasks_environment_and_directory_and_ends_with_its_code() {
    let mut task = shell("web", STAYS);
    task["Env"] = json!({"WHO": "web-${NOMAD_ALLOC_INDEX}"});
    let running = Running::with_task(task).await;
    let mut session = running.shell("echo $WHO $NOMAD_TASK_NAME; pwd; echo no >&2; exit 7").await;
    let dir = running.base.path().canonicalize().unwrap().join("alloc").join(alloc_id(1)).join("web");
    assert_eq!(session.rest().await, result(&format!("web-0 web\n{}\n", dir.display()), "no\n", 7));
    assert_eq!(running.shell("kill -KILL $$").await.rest().await, result("", "", 137));
    let word = running.exec_in("web", &["true"], false).await.rest().await;
    assert_eq!(word, result("", "", 0), "found in the task's path");
    running.agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_may_run_no_commands_of_others() {
    let running = running_with(|settings| settings.disable_remote_exec = true).await;
    running.servers.assign(alloc(1, "service", json!([shell("web", STAYS)])));
    running.servers.await_status(&alloc_id(1), "running");
    let (code, text) = running.exec_in("web", &["true"], false).await.failure().await;
    assert_eq!(code, 403);
    assert!(text.contains("client.disable_remote_exec is set"), "{text}");
    running.agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn input_reaches_a_command_until_its_end() {
    let running = Running::with_task(shell("web", STAYS)).await;
    let mut session = running.exec_in("web", &["cat"], false).await;
    session.stdin("one ").await;
    assert_eq!(session.until("one").await, "one ");
    session.say(&ExecInputFrame::default()).await;
    session.stdin("two").await;
    session.end_stdin().await;
    assert_eq!(session.rest().await, result("two", "", 0));
    let mut deaf = running.shell("exec 0<&-; echo deaf; read x").await;
    deaf.until("deaf").await;
    deaf.stdin("nobody reads this").await;
    assert_ne!(deaf.rest().await.code, Some(0));
    running.agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_is_the_commands_own_and_has_the_size_of_its_caller() {
    let running = Running::with_task(shell("web", STAYS)).await;
    let script = "trap 'stty size' WINCH; test -t 0 && test -t 1 && test -t 2 && test -c /dev/tty && echo term > /dev/tty; \
                  while :; do read line && echo got $line; done";
    let mut session = running.terminal(script).await;
    session.until("term").await;
    session.resize(40, 123).await;
    session.until("40 123").await;
    session.stdin("hello\r").await;
    // The terminal itself says it back first.
    session.until("got hello").await;
    // What a user types to interrupt reaches the command as a signal.
    session.stdin("\u{3}").await;
    assert_eq!(session.rest().await.code, Some(130));

    let mut cat = running.exec_in("web", &["cat"], true).await;
    cat.stdin("abc").await;
    cat.end_stdin().await;
    let said = cat.rest().await;
    assert_eq!(said.code, Some(0));
    assert!(String::from_utf8(said.stdout).unwrap().ends_with("abc"), "the line was sent off, then the end");
    running.agent.shutdown().await;
}

/// Input as a stock server writes it: bare maps with all keys of its structs, and numbers as they are shortest.
mod stock_server {
    pub const RESIZE: &[u8] = b"\x86\xa5Setup\xc0\xa5Stdin\xc0\xa7TtySize\x85\xa6Height\x28\xa5Width\xcc\xc8\
        \xb4XXX_NoUnkeyedLiteral\x80\xadXXX_sizecache\x00\xb0XXX_unrecognized\xc0\
        \xb4XXX_NoUnkeyedLiteral\x80\xadXXX_sizecache\x00\xb0XXX_unrecognized\xc0";
    pub const SAY_HI: &[u8] = b"\x86\xa5Setup\xc0\xa5Stdin\x85\xa5Close\xc2\xa4Data\xa3hi\n\
        \xb4XXX_NoUnkeyedLiteral\x80\xadXXX_sizecache\x00\xb0XXX_unrecognized\xc0\xa7TtySize\xc0\
        \xb4XXX_NoUnkeyedLiteral\x80\xadXXX_sizecache\x00\xb0XXX_unrecognized\xc0";
    pub const CLOSE: &[u8] = b"\x86\xa5Setup\xc0\xa5Stdin\x85\xa5Close\xc3\xa4Data\xc0\
        \xb4XXX_NoUnkeyedLiteral\x80\xadXXX_sizecache\x00\xb0XXX_unrecognized\xc0\xa7TtySize\xc0\
        \xb4XXX_NoUnkeyedLiteral\x80\xadXXX_sizecache\x00\xb0XXX_unrecognized\xc0";
    /// Sent to keep the connection alive.
    pub const NOTHING: &[u8] = b"\x86\xa5Setup\xc0\xa5Stdin\xc0\xa7TtySize\xc0\
        \xb4XXX_NoUnkeyedLiteral\xc0\xadXXX_sizecache\x00\xb0XXX_unrecognized\xc0";
}

#[tokio::test(flavor = "multi_thread")]
async fn the_input_of_a_stock_server_reaches_the_command() {
    let running = Running::with_task(shell("web", STAYS)).await;
    // A command that sees the size, reads a line, and ends with the end of its input.
    let script =
        "trap 'stty size' WINCH; echo up; while :; do read line && break; done; echo got $line; cat; exit 7";
    let session = running.terminal(script).await;
    let (mut to, from) = session.0.split();
    let mut output = Output(from, String::new());
    output.until("up").await;
    to.send_raw(stock_server::NOTHING).await.unwrap();
    to.send_raw(stock_server::RESIZE).await.unwrap();
    output.until("40 200").await;
    to.send_raw(stock_server::SAY_HI).await.unwrap();
    output.until("got hi").await;
    to.send_raw(stock_server::CLOSE).await.unwrap();
    assert!(output.until("\"exited\":true").await.ends_with(r#"{"exited":true,"result":{"exit_code":7}}"#));

    let session = running.exec_in("web", &["cat"], false).await;
    let (mut to, from) = session.0.split();
    to.send_raw(stock_server::SAY_HI).await.unwrap();
    to.send_raw(stock_server::CLOSE).await.unwrap();
    let said = Output(from, String::new()).until("\"exited\":true").await;
    assert!(said.starts_with(r#"{"stdout":{"data":"aGkK"}}"#), "{said}");
    assert!(said.ends_with(r#"{"exited":true,"result":{}}"#), "{said}");
    running.agent.shutdown().await;
}

/// What a stock server reads of a command: maps of an error and a payload of JSON, here with the texts in it decoded.
struct Output(FrameReceiver, String);

impl Output {
    /// Reads on until this was said; all that was said so far.
    async fn until(&mut self, wanted: &str) -> String {
        while !self.1.contains(wanted) && !self.texts().contains(wanted) {
            let next = tokio::time::timeout(PATIENCE, self.0.receive::<Value>()).await;
            let frame =
                next.expect("something comes").unwrap().unwrap_or_else(|| panic!("only {:?}", self.1));
            assert_eq!(frame["Error"], Value::Null);
            self.1.push_str(frame["Payload"].as_str().expect("JSON"));
        }
        self.1.clone()
    }

    /// The output in the messages.
    fn texts(&self) -> String {
        let messages = serde_json::Deserializer::from_str(&self.1).into_iter::<ExecOutput>();
        let data = messages.flat_map(|output| output.unwrap().stdout).flat_map(|piece| piece.data.0);
        String::from_utf8(data.collect()).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_run_is_rejected_with_a_reason() {
    let running = running().await;
    let tasks = json!([shell("web", STAYS), mock("idle", json!({"run_for": "1h"})), shell("over", "true")]);
    let mut group = alloc(1, "batch", tasks);
    group.job.as_mut().unwrap().task_groups[0].tasks[2].lifecycle =
        serde_json::from_value(json!({"Hook": "prestart"})).unwrap();
    running.servers.assign(group);
    running.servers.await_status(&alloc_id(1), "running");
    running.servers.await_task(&alloc_id(1), "web", |task| task.state == "running");
    running.servers.await_task(&alloc_id(1), "idle", |task| task.state == "running");
    let cases: [(&str, &[&str], i64, &str); 7] = [
        ("db", &["true"], 400, "unknown task name \"db\""),
        ("", &["true"], 400, "task name is not present"),
        ("web", &[], 400, "command is not present"),
        ("web", &[""], 400, "command is not present"),
        ("over", &["true"], 404, "task \"over\" is not running."),
        ("web", &["no-such"], 400, "binary \"no-such\" could not be found"),
        ("idle", &["true"], 400, "the task has no exec_command"),
    ];
    for (task, command, code, text) in cases {
        let refusal = running.exec_in(task, command, false).await.failure().await;
        assert_eq!(refusal, (code, text.to_string()));
    }
    running.agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mock_driver_plays_its_command() {
    let config = json!({"run_for": "1h", "exec_command": {
        "run_for": "1ms", "exit_code": 3, "stdout_string": "ha", "stdout_repeat": 2, "stderr_string": "no"}});
    let running = Running::with_task(mock("web", config)).await;
    assert_eq!(running.shell("anything").await.rest().await, result("hahaha", "no", 3));
    running.agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_reader_slows_the_command_down_and_loses_nothing() {
    let running = Running::with_task(shell("web", STAYS)).await;
    const BYTES: usize = 8 * 1024 * 1024;
    let script = format!("yes 0123456 | head -c {BYTES}; touch local/done");
    let mut session = running.shell(&script).await;
    session.until("0123456").await;
    let done = running.base.path().join("alloc").join(alloc_id(1)).join("web/local/done");
    // Nobody reads: what waits between here and there is bounded, so most of it cannot have been written.
    let yes = descendants_named(&running, "head");
    assert!(!done.exists() && yes > 0);
    let rest = session.rest().await;
    assert!(rest.stdout.len() > BYTES - 64 * 1024 && rest.stdout.ends_with(b"0123456\n"));
    assert_eq!(rest.code, Some(0));
    assert!(done.exists());
    running.agent.shutdown().await;
}

/// Processes of this agent's tasks with this name.
fn descendants_named(running: &Running, name: &str) -> usize {
    pids(running).into_iter().filter(|pid| comm(*pid) == name).count()
}

fn comm(pid: i32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_string()
}

/// The processes below the executors of this agent.
fn pids(running: &Running) -> Vec<i32> {
    use executor::spec::{ExecutorProcesses, STATE_FILE, read};
    let executors = std::fs::read_dir(running.base.path().join("client/executors")).unwrap().flatten();
    let states = executors.filter_map(|entry| read::<ExecutorProcesses>(&entry.path(), STATE_FILE).ok()?);
    states.flat_map(|state| descendants(state.executor.pid)).map(|stat| stat.pid).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_whose_caller_leaves_is_ended_with_all_it_started() {
    let running = Running::with_task(shell("web", STAYS)).await;
    for tty in [false, true] {
        let script = "trap '' HUP TERM INT; sleep 1000 & echo $! up; while :; do sleep 1000; done";
        let mut session = running.exec_in("web", &["/bin/sh", "-c", script], tty).await;
        let child: i32 = session.until("up").await.split(' ').next().unwrap().parse().unwrap();
        assert!(stat(child).is_some());
        drop(session);
        eventually("the end of the command", || stat(child).is_none().then_some(()));
        eventually("the end of all", || (pids(&running).len() == 1).then_some(()));
    }
    assert_eq!(running.servers.update(&alloc_id(1)).unwrap().client_status, "running");
    running.agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_leaves_is_noticed_while_the_command_does_not_read() {
    let running = Running::with_task(shell("web", STAYS)).await;
    let mut session = running.exec_in("web", &["sleep", "1000"], false).await;
    let piece = "x".repeat(64 * 1024);
    // More than the command's pipe, the pieces that wait and the window of the stream take: all is full now.
    let full = async {
        loop {
            session.stdin(&piece).await;
        }
    };
    let stuck = tokio::time::timeout(Duration::from_secs(1), full).await;
    assert!(stuck.is_err());
    assert_eq!(descendants_named(&running, "sleep"), 1);
    drop(session);
    eventually("the end of the command", || (descendants_named(&running, "sleep") == 0).then_some(()));
    running.agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_ends_with_its_task_and_with_its_agent() {
    let running = Running::with_task(shell("web", STAYS)).await;
    let mut session = running.shell("echo up; exec sleep 1000").await;
    session.until("up").await;
    running.servers.stop(&alloc_id(1));
    assert_eq!(session.rest().await.code, Some(137));
    running.servers.await_status(&alloc_id(1), "complete");
    let refusal = running.shell("true").await.failure().await;
    assert_eq!(refusal, (404, "task \"web\" is not running.".to_string()));
    running.agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_leaves_running_does_not_hold_up_its_end() {
    let running = Running::with_task(shell("web", STAYS)).await;
    let mut session = running.shell("sleep 1000 & echo started").await;
    assert_eq!(session.rest().await, result("started\n", "", 0));
    assert_eq!(descendants_named(&running, "sleep"), 1, "it belongs to the task now");
    running.servers.stop(&alloc_id(1));
    running.servers.await_status(&alloc_id(1), "complete");
    eventually("its end", || pids(&running).is_empty().then_some(()));
    running.agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_beside_one_task_have_a_bound_and_leave_nothing_behind() {
    let running = Running::with_task(shell("web", STAYS)).await;
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    running.shell("true").await.rest().await;
    let before = descriptors();
    for round in 0..4 {
        let mut sessions = Vec::new();
        for _ in 0..24 {
            sessions.push(running.session_that_stays().await);
        }
        if round == 0 {
            let refusal = running.shell("true").await.failure().await;
            assert_eq!(refusal, (400, "24 commands run in this task already".to_string()));
            assert!(descriptors() > before + 24);
        }
        drop(sessions);
        eventually("the end of all", || (pids(&running).len() == 1).then_some(()));
    }
    // Other tests of this program come and go, each with a few of its own.
    eventually("the end of their descriptors", || (descriptors() < before + 24).then_some(()));
    running.agent.shutdown().await;
}
