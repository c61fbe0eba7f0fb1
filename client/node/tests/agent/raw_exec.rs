//! Real processes: how they run, how they are ended, and how they outlive the agent.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::support::*;
use executor::process::{self, descendants, stat};
use executor::spec::{
    ExecutorProcesses, ExecutorRequest, ExecutorResponse, SOCKET_FILE, STATE_FILE, read, socket_path,
};
use model::document::Allocation;
use nix::sys::signal::Signal;
use node::settings::NodeSettings;
use node::task::events::DEAD;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn a_process_runs_and_its_output_and_exit_code_are_kept() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let script = "echo out $NOMAD_TASK_NAME $NOMAD_META_who; echo err >&2; pwd; exit 7";
    let mut task = shell("web", script);
    task["Meta"] = json!({"who": "${node.unique.name}"});
    servers.assign(alloc(1, "batch", json!([task])));
    let agent = start(settings(base.path()), &servers).await;
    let update = servers.await_status(&alloc_id(1), "failed");
    let events = &update.task_states["web"].events;
    assert!(events.iter().any(|event| event.display_message == "Exit Code: 7"), "{events:?}");
    let dir = base.path().canonicalize().unwrap().join("alloc").join(alloc_id(1)).join("web");
    assert_eq!(log(base.path(), 1, "web.stdout.0"), format!("out web alpha\n{}\n", dir.display()));
    assert_eq!(log(base.path(), 1, "web.stderr.0"), "err\n");
    let left = std::fs::read_dir(base.path().join("client/executors")).unwrap().count();
    assert_eq!(left, 0, "executors leave nothing behind");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_may_open_as_many_files_as_configured() {
    // The agent of these tests says 777, whatever it has itself.
    let (base, servers) = (Base::new(), FakeServers::new());
    servers.assign(alloc(1, "batch", json!([shell("web", "ulimit -Sn")])));
    let agent = start(settings(base.path()), &servers).await;
    servers.await_status(&alloc_id(1), "complete");
    assert_eq!(log(base.path(), 1, "web.stdout.0"), "777\n");
    agent.shutdown().await;
}

/// As an agent has it that a shell began beside itself, or `nohup`.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_ignores_no_signal_that_its_agent_ignores() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let own = settings(base.path());
    let program = base.path().join("ignoring");
    let script =
        format!("#!/bin/sh\ntrap '' HUP INT QUIT TERM\nexec {} \"$@\"\n", own.executor_program.display());
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    servers.assign(alloc(1, "batch", json!([shell("t", "grep SigIgn /proc/self/status")])));
    let agent = start(NodeSettings { executor_program: program, ..own }, &servers).await;
    servers.await_status(&alloc_id(1), "complete");
    let line = log(base.path(), 1, "t.stdout.0");
    let ignored = u64::from_str_radix(line.trim_start_matches("SigIgn:").trim(), 16).expect(&line);
    // Above the first 31 are those of the C library, which programs neither send nor change.
    assert_eq!(ignored & 0x7fff_ffff, 0, "{line}");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_are_rotated() {
    let (base, servers) = (Base::new(), FakeServers::new());
    // 3 MiB of lines into files of 1 MiB, of which 2 are kept.
    let mut task = shell("t", "yes 0123456789012345678901234567890 | head -c 3145728");
    task["LogConfig"] = json!({"MaxFiles": 2, "MaxFileSizeMB": 1});
    servers.assign(alloc(1, "batch", json!([task])));
    let agent = start(settings(base.path()), &servers).await;
    servers.await_status(&alloc_id(1), "complete");
    let logs = base.path().join("alloc").join(alloc_id(1)).join("alloc/logs");
    let found = executor::rotate::indexes(&logs, "t.stdout").unwrap();
    assert!(found.len() == 2 && found[0] > 0, "{found:?}");
    assert!(log(base.path(), 1, &format!("t.stdout.{}", found[0])).ends_with("0\n"), "no line is torn");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_ignores_signals_is_killed_after_its_timeout_with_all_it_started() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let script = "trap '' TERM; setsid sleep 1000 & echo $! > child; echo up; while :; do sleep 0.05; done";
    let mut task = shell("t", script);
    task["KillSignal"] = json!("SIGTERM");
    task["KillTimeout"] = json!("300ms");
    servers.assign(alloc(1, "service", json!([task])));
    let agent = start(settings(base.path()), &servers).await;
    eventually("output", || log(base.path(), 1, "t.stdout.0").starts_with("up").then_some(()));
    let child = base.path().join("alloc").join(alloc_id(1)).join("t/child");
    let child: i32 = std::fs::read_to_string(child).unwrap().trim().parse().unwrap();
    assert!(stat(child).is_some());
    let asked = Instant::now();
    servers.stop(&alloc_id(1));
    let task = servers.await_task(&alloc_id(1), "t", |task| task.state == DEAD);
    assert!(asked.elapsed() >= Duration::from_millis(300));
    let exit = task.events.iter().find(|event| event.kind == "Terminated").unwrap();
    assert_eq!((exit.exit_code, exit.signal), (137, 9));
    assert!(stat(child).is_none(), "not even a session of its own saves a child");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_ends_by_the_kill_signal_of_its_job() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let script = "trap 'echo bye; exit 3' USR1; echo up; while :; do sleep 0.05; done";
    let mut task = shell("t", script);
    task["KillSignal"] = json!("SIGUSR1");
    task["KillTimeout"] = json!("20s");
    servers.assign(alloc(1, "service", json!([task])));
    let agent = start(settings(base.path()), &servers).await;
    eventually("output", || log(base.path(), 1, "t.stdout.0").starts_with("up").then_some(()));
    servers.stop(&alloc_id(1));
    let task = servers.await_task(&alloc_id(1), "t", |task| task.state == DEAD);
    assert!(task.events.iter().any(|event| event.kind == "Terminated" && event.exit_code == 3));
    assert_eq!(log(base.path(), 1, "t.stdout.0"), "up\nbye\n");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn configuration_mistakes_and_missing_programs_are_named() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let task = |config| json!([{"Name": "t", "Driver": "raw_exec", "Config": config}]);
    let cases = [
        (json!({"command": "/bin/true", "comand": "x"}), "driver raw_exec has no config key \"comand\""),
        (json!({"args": []}), "config key \"command\" is required"),
        (json!({"command": "no-such"}), "binary \"no-such\" could not be found"),
        (json!({"command": "/bin/true", "work_dir": "here"}), "work_dir must be an absolute path"),
        (json!({"command": "/bin/true", "work_dir": "/no/such"}), "failed to launch command with executor"),
    ];
    for (id, (config, _)) in (1..).zip(&cases) {
        servers.assign(alloc(id, "batch", task(config.clone())));
    }
    let agent = start(settings(base.path()), &servers).await;
    for (id, (_, text)) in (1..).zip(&cases) {
        let update = servers.await_status(&alloc_id(id), "failed");
        let events = &update.task_states["t"].events;
        assert!(events.iter().any(|event| event.display_message.starts_with(text)), "{text}: {events:?}");
    }
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_on_request_is_a_new_process_and_a_signal_reaches_the_old() {
    let (base, servers) = (Base::new(), FakeServers::new());
    servers.assign(alloc(
        1,
        "service",
        json!([shell("t", "trap 'echo usr' USR1; echo up; while :; do sleep 0.05; done")]),
    ));
    let agent = start(settings(base.path()), &servers).await;
    eventually("output", || log(base.path(), 1, "t.stdout.0").starts_with("up").then_some(()));
    servers.await_status(&alloc_id(1), "running");
    let handle = agent.local().allocs.get(&alloc_id(1)).unwrap();
    use node::alloc::handle::AllocCommand;
    let signal = node::driver::signal_named("usr1").unwrap();
    let ask = |reply| AllocCommand::Signal { task: None, signal, name: "SIGUSR1".into(), reply };
    handle.ask(ask).await.unwrap();
    eventually("the trap", || log(base.path(), 1, "t.stdout.0").contains("usr").then_some(()));
    handle.ask(|reply| AllocCommand::Restart { task: Some("t".into()), revive: false, reply }).await.unwrap();
    eventually("a second start", || {
        (log(base.path(), 1, "t.stdout.0").matches("up").count() == 2).then_some(())
    });
    let other =
        handle.ask(|reply| AllocCommand::Restart { task: Some("x".into()), revive: false, reply }).await;
    assert_eq!(other.unwrap_err(), "Could not find task x");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_returns_with_the_new_process_and_signals_do_not_wait_for_it() {
    use node::alloc::handle::AllocCommand;
    let (base, servers) = (Base::new(), FakeServers::new());
    // Asked to end, it waits until it may: so does the restart.
    let script = "trap 'echo asked; until [ -e $NOMAD_ALLOC_DIR/go ]; do sleep 0.05; done; rm $NOMAD_ALLOC_DIR/go; exit 0' INT TERM; \
                  echo up; while :; do sleep 0.05; done";
    let mut task = shell("t", script);
    task["KillTimeout"] = json!("1h");
    servers.assign(alloc(1, "service", json!([task])));
    let agent = start(
        NodeSettings { max_kill_timeout: Duration::from_secs(3600), ..settings(base.path()) },
        &servers,
    )
    .await;
    eventually("output", || log(base.path(), 1, "t.stdout.0").starts_with("up").then_some(()));
    servers.await_status(&alloc_id(1), "running");
    let handle = agent.local().allocs.get(&alloc_id(1)).unwrap();
    let restart =
        async { handle.ask(|reply| AllocCommand::Restart { task: None, revive: false, reply }).await };
    let signal = async {
        while !log(base.path(), 1, "t.stdout.0").contains("asked") {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let signal = node::driver::signal_named("cont").unwrap();
        let ask = |reply| AllocCommand::Signal { task: None, signal, name: "SIGCONT".into(), reply };
        handle.ask(ask).await
    };
    let mut restart = std::pin::pin!(restart);
    tokio::select! {
        restarted = &mut restart => panic!("the restart did not wait for the end: {restarted:?}"),
        signalled = signal => assert!(signalled.is_ok(), "{signalled:?}"),
    }
    std::fs::write(base.path().join("alloc").join(alloc_id(1)).join("alloc/go"), "").unwrap();
    let restarted = restart.await;
    assert!(restarted.is_ok(), "{restarted:?}");
    eventually("the new process", || {
        (log(base.path(), 1, "t.stdout.0").matches("up").count() == 2).then_some(())
    });
    std::fs::write(base.path().join("alloc").join(alloc_id(1)).join("alloc/go"), "").unwrap();
    agent.shutdown().await;
}

/// An allocation of one service task that runs until it is stopped.
fn long_lived() -> Allocation {
    alloc(
        1,
        "service",
        json!([shell("t", "echo up; while [ ! -e end ]; do sleep 0.05; done; echo end; exit 5")]),
    )
}

fn executors(base: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(base.join("client/executors")).into_iter().flatten();
    entries.flatten().map(|entry| entry.path()).collect()
}

fn state(base: &Path) -> Option<ExecutorProcesses> {
    read(executors(base).first()?, STATE_FILE).ok()?
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_are_found_again_after_the_agent_stopped() {
    let base = Base::new();
    let first = FakeServers::new();
    first.assign(long_lived());
    let agent = start(settings(base.path()), &first).await;
    first.await_status(&alloc_id(1), "running");
    let before = state(base.path()).unwrap();
    agent.shutdown().await;
    assert!(before.task.is_alive() && before.executor.is_alive());

    let agent = start(settings(base.path()), &first).await;
    let local = agent.local();
    let handle = local.allocs.get(&alloc_id(1)).expect("restored from local state");
    assert_eq!(handle.tasks.state("t").unwrap().state, "running");
    assert_eq!(state(base.path()).unwrap(), before, "the same process");
    let dir = base.path().join("alloc").join(alloc_id(1)).join("t");
    std::fs::write(dir.join("end"), "").unwrap();
    let update = first.await_status(&alloc_id(1), "failed");
    let starts = kinds(&update.task_states["t"]).iter().filter(|kind| **kind == "Started").count();
    assert_eq!(starts, 1);
    assert_eq!(log(base.path(), 1, "t.stdout.0"), "up\nend\n", "no output was lost");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exit_while_the_agent_was_away_is_found() {
    let base = Base::new();
    let servers = FakeServers::new();
    servers.assign(long_lived());
    let agent = start(settings(base.path()), &servers).await;
    servers.await_status(&alloc_id(1), "running");
    let before = state(base.path()).unwrap();
    agent.shutdown().await;
    std::fs::write(base.path().join("alloc").join(alloc_id(1)).join("t/end"), "").unwrap();
    eventually("the end of the executor", || (!before.executor.is_alive()).then_some(()));

    let agent = start(settings(base.path()), &servers).await;
    let update = servers.await_status(&alloc_id(1), "failed");
    let events = &update.task_states["t"].events;
    assert!(events.iter().any(|event| event.kind == "Terminated" && event.exit_code == 5), "{events:?}");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_whose_executor_was_killed_is_ended_and_starts_anew() {
    let base = Base::new();
    let servers = FakeServers::new();
    servers.assign(long_lived());
    let agent = start(settings(base.path()), &servers).await;
    servers.await_status(&alloc_id(1), "running");
    let before = state(base.path()).unwrap();
    agent.shutdown().await;
    kill(before.executor.pid);
    eventually("the end of the executor", || (!before.executor.is_alive()).then_some(()));
    assert!(before.task.is_alive(), "an orphan");

    let agent = start(settings(base.path()), &servers).await;
    let task = servers.await_task(&alloc_id(1), "t", |task| {
        kinds(task).contains(&"Failed Restoring Task") && task.state == "running"
    });
    assert_eq!(kinds(&task).last(), Some(&"Started"));
    eventually("the end of the orphan", || (!before.task.is_alive()).then_some(()));
    servers.stop(&alloc_id(1));
    servers.await_status(&alloc_id(1), "complete");
    agent.shutdown().await;
}

/// As if the executor answered nobody any more.
fn cut_off(base: &Path) {
    std::fs::remove_file(executors(base)[0].join(SOCKET_FILE)).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_ends_although_its_executor_cannot_be_reached() {
    for restarted in [false, true] {
        let (base, servers) = (Base::new(), FakeServers::new());
        let mut task = shell("t", "trap 'echo asked; exit 3' TERM; echo up; while :; do sleep 0.05; done");
        task["KillSignal"] = json!("SIGTERM");
        servers.assign(alloc(1, "service", json!([task])));
        let mut agent = start(settings(base.path()), &servers).await;
        eventually("output", || log(base.path(), 1, "t.stdout.0").starts_with("up").then_some(()));
        servers.await_status(&alloc_id(1), "running");
        let before = state(base.path()).unwrap();
        cut_off(base.path());
        if restarted {
            agent.shutdown().await;
            agent = start(settings(base.path()), &servers).await;
        }
        servers.stop(&alloc_id(1));
        let task = servers.await_task(&alloc_id(1), "t", |task| task.state == DEAD);
        let asked = task.events.iter().any(|event| event.kind == "Terminated" && event.exit_code == 3);
        assert!(asked, "its executor wrote down how it ended: {:?}", task.events);
        assert_eq!(log(base.path(), 1, "t.stdout.0"), "up\nasked\n");
        assert!(!before.task.is_alive() && !before.executor.is_alive());
        agent.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_ends_although_its_executor_does_nothing_any_more() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let mut task = shell("t", "setsid sleep 1000 & echo $! > child; echo up; wait");
    task["KillTimeout"] = json!("100ms");
    servers.assign(alloc(1, "service", json!([task])));
    let agent = start(settings(base.path()), &servers).await;
    eventually("output", || log(base.path(), 1, "t.stdout.0").starts_with("up").then_some(()));
    let child = base.path().join("alloc").join(alloc_id(1)).join("t/child");
    let child: i32 = std::fs::read_to_string(child).unwrap().trim().parse().unwrap();
    servers.await_status(&alloc_id(1), "running");
    let before = state(base.path()).unwrap();
    cut_off(base.path());
    process::signal(before.executor.pid, Signal::SIGSTOP).unwrap();
    servers.stop(&alloc_id(1));
    servers.await_task(&alloc_id(1), "t", |task| task.state == DEAD);
    assert!(!before.task.is_alive() && !before.executor.is_alive());
    let gone = || stat(child).is_none_or(|stat| stat.state == 'Z');
    eventually("the end of what had a session of its own", || gone().then_some(()));
    agent.shutdown().await;
}

/// One request to the executor; `None` when it ends the connection without an answer.
fn ask_executor(base: &Path, request: &ExecutorRequest) -> Option<ExecutorResponse> {
    let (_handle, path) = socket_path(&executors(base)[0]).unwrap();
    let mut stream = UnixStream::connect(path).unwrap();
    let mut line = serde_json::to_string(request).unwrap() + "\n";
    // The end of the connection may reach us as an error, of either.
    stream.write_all(line.as_bytes()).ok()?;
    line.clear();
    BufReader::new(stream).read_line(&mut line).ok()?;
    serde_json::from_str(&line).ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_executor_survives_that_the_system_gives_it_no_thread() {
    let (base, servers) = (Base::new(), FakeServers::new());
    servers.assign(long_lived());
    let agent = start(settings(base.path()), &servers).await;
    servers.await_status(&alloc_id(1), "running");
    let processes = state(base.path()).unwrap();
    let executor = Pid::from_raw(processes.executor.pid);
    // A thread needs a stack, and there is no more memory for one.
    let nothing_more = |current: Option<u64>| {
        let given = prlimit(executor, Resource::As, Rlimit { current, maximum: None }).unwrap();
        assert_eq!(given.maximum, None);
    };
    let harmless = ExecutorRequest::Signal { number: Signal::SIGCONT as i32 };
    // No thread has ended yet that would leave its stack.
    nothing_more(Some(0));
    for _ in 0..3 {
        assert_eq!(ask_executor(base.path(), &harmless), None);
    }
    nothing_more(None);
    assert_eq!(ask_executor(base.path(), &harmless), Some(ExecutorResponse::Done));
    assert!(processes.task.is_alive() && processes.executor.is_alive());
    servers.stop(&alloc_id(1));
    servers.await_status(&alloc_id(1), "complete");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_without_a_stored_handle_is_ended() {
    let (base, servers) = (Base::new(), FakeServers::new());
    servers.assign(long_lived());
    let agent = start(settings(base.path()), &servers).await;
    servers.await_status(&alloc_id(1), "running");
    let before = state(base.path()).unwrap();
    agent.shutdown().await;
    std::fs::remove_dir_all(base.path().join("client/state.db")).unwrap();
    let agent = start(settings(base.path()), &FakeServers::new()).await;
    assert!(!before.task.is_alive() && !before.executor.is_alive());
    assert!(executors(base.path()).is_empty());
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_runs_as_its_user_and_without_logs_if_it_wants_none() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let (base, servers) = (Base::new(), FakeServers::new());
    // Others must be able to enter the directory, which is made for its owner alone.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(base.path(), open).unwrap();
    let mut task = shell("t", "echo $(id -u) $USER > local/who; echo noise");
    task["User"] = json!("nobody");
    task["LogConfig"] = json!({"Disabled": true});
    servers.assign(alloc(1, "batch", json!([task])));
    let agent = start(settings(base.path()), &servers).await;
    servers.await_status(&alloc_id(1), "complete");
    let dir = base.path().join("alloc").join(alloc_id(1));
    assert_eq!(std::fs::read_to_string(dir.join("t/local/who")).unwrap(), "65534 nobody\n");
    assert_eq!(std::fs::read_dir(dir.join("alloc/logs")).unwrap().count(), 0);
    agent.shutdown().await;
}

/// A user of the host, for as long as a test needs it.
struct HostUser(&'static str);

impl HostUser {
    fn new(name: &'static str, groups: &str) -> HostUser {
        let made = std::process::Command::new("useradd").args(["-M", "-N", "-G", groups, name]).status();
        // Another run may have left it.
        assert!([Some(0), Some(9)].contains(&made.unwrap().code()));
        HostUser(name)
    }
}

impl Drop for HostUser {
    fn drop(&mut self) {
        std::process::Command::new("userdel").arg(self.0).status().ok();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_in_all_groups_of_its_user() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let user = HostUser::new("sojourn-test", "daemon,adm");
    let expected = std::process::Command::new("id").args(["-G", user.0]).output().unwrap().stdout;
    let expected = String::from_utf8(expected).unwrap();
    assert!(expected.split(' ').count() == 3, "{expected}");
    let groups = |text: &str| {
        let mut groups: Vec<u32> = text.split_whitespace().map(|gid| gid.parse().unwrap()).collect();
        groups.sort();
        groups
    };
    let mut task = shell("web", "id -un; id -G; grep CapEff /proc/self/status; exec tail -f /dev/null");
    task["User"] = json!(user.0);
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    let running = crate::support::listening::running().await;
    std::fs::set_permissions(running.base.path(), open).unwrap();
    running.servers.assign(alloc(1, "service", json!([task])));
    running.servers.await_task(&alloc_id(1), "web", |task| task.state == "running");
    let said = eventually("what it is", || {
        let text = log(running.base.path(), 1, "web.stdout.0");
        (text.lines().count() == 3).then_some(text)
    });
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!((lines[0], groups(lines[1])), (user.0, groups(&expected)));
    assert_eq!(lines[2], "CapEff:\t0000000000000000");
    let beside = running.exec_in("web", &["id", "-G"], false).await.rest().await;
    assert_eq!(
        groups(std::str::from_utf8(&beside.stdout).unwrap()),
        groups(&expected),
        "a command beside it too"
    );
    running.agent.shutdown().await;
}

fn kill(pid: i32) {
    let killed = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
    assert!(killed.success());
}

/// Names the directory in which the process started below is an agent.
const VICTIM: &str = "NODE_TEST_VICTIM";

/// Not a test of its own: the agent that [`tasks_survive_a_kill_of_the_agent`] kills.
#[tokio::test(flavor = "multi_thread")]
async fn victim() {
    let Ok(base) = std::env::var(VICTIM) else { return };
    let servers = FakeServers::new();
    servers.assign(long_lived());
    let _agent = start(settings(Path::new(&base)), &servers).await;
    servers.await_status(&alloc_id(1), "running");
    std::fs::write(Path::new(&base).join("running"), "").unwrap();
    std::future::pending::<()>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_survive_a_kill_of_the_agent() {
    let base = Base::new();
    let mut victim = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "raw_exec::victim", "--nocapture"])
        .env(VICTIM, base.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    eventually("a running task", || base.path().join("running").exists().then_some(()));
    let before = state(base.path()).unwrap();
    assert!(descendants(victim.id() as i32).iter().any(|child| child.pid == before.task.pid));
    victim.kill().unwrap();
    victim.wait().unwrap();
    assert!(before.task.is_alive() && before.executor.is_alive(), "SIGKILL of the agent spares the task");

    let servers = FakeServers::new();
    servers.assign(long_lived());
    let agent = start(settings(base.path()), &servers).await;
    let task = agent.local().allocs.get(&alloc_id(1)).unwrap().tasks.state("t").unwrap();
    let starts = kinds(&task).iter().filter(|kind| **kind == "Started").count();
    assert_eq!((task.state.as_str(), starts, task.restarts), ("running", 1, 0));
    assert_eq!(state(base.path()).unwrap(), before, "the same process");
    servers.stop(&alloc_id(1));
    servers.await_status(&alloc_id(1), "complete");
    eventually("the end of the task", || (!before.task.is_alive()).then_some(()));
    agent.shutdown().await;
}
