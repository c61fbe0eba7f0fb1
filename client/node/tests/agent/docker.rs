//! Containers of a real engine: how they run, how they are ended, and how they outlive the agent and their engine.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use futures_util::stream::StreamExt;
use model::document::Node;
use node::NodeSettings;
use node::driver::exec::run_once;
use node::driver::{ExecConfig, Outcome};
use node::task::events::DEAD;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

use crate::support::engine::{self, IMAGE, TestEngine};
use crate::support::*;

/// Settings of a node with this engine.
fn with_engine(base: &Path, engine: &TestEngine) -> NodeSettings {
    with_plugin(base, json!({"endpoint": engine.endpoint()}))
}

pub fn with_plugin(base: &Path, plugin: Value) -> NodeSettings {
    let mut settings = settings(base);
    let plugin: BTreeMap<String, Value> = plugin.as_object().unwrap().clone().into_iter().collect();
    settings.plugins.insert("docker".to_string(), plugin);
    // Registered again at once when the node has changed.
    settings.dev = false;
    settings
}

/// A task that runs a shell script in a container.
pub fn container(name: &str, script: &str, more: Value) -> Value {
    let mut config =
        json!({"image": IMAGE, "network_mode": "none", "command": "/bin/sh", "args": ["-c", script]});
    for (key, value) in more.as_object().unwrap() {
        config[key] = value.clone();
    }
    json!({"Name": name, "Driver": "docker", "Config": config})
}

/// Tests that share an engine have allocations of their own: containers are named after them.
///
/// Says something ten times a second, and what it is asked with.
const LONG: &str =
    "trap 'echo asked; exit 3' TERM; n=0; while :; do n=$((n+1)); echo line $n; sleep 0.1; done";

fn container_id(engine: &TestEngine, alloc: u8) -> Option<String> {
    engine.containers(&alloc_id(alloc)).first()?.id.clone()
}

/// Every line is there once, in its order.
#[track_caller]
pub fn assert_whole(log: &str) {
    let numbers: Vec<usize> =
        log.lines().filter_map(|line| line.strip_prefix("line ")?.parse().ok()).collect();
    assert_eq!(numbers, (1..=numbers.len()).collect::<Vec<_>>(), "{log}");
}

fn lines(base: &Path, alloc: u8) -> usize {
    log(base, alloc, "t.stdout.0").lines().count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_runs_and_its_output_and_exit_code_are_kept() {
    let Some(engine) = engine::shared("a_container_runs") else { return };
    let (base, servers) = (Base::new(), FakeServers::new());
    let script = "echo out $NOMAD_TASK_NAME $NOMAD_ALLOC_DIR $NOMAD_TASK_DIR $NOMAD_SECRETS_DIR $NOMAD_META_who; \
                  echo err >&2; pwd; echo kept > /alloc/data/kept; echo own > /local/own; touch /secrets/s; \
                  touch /alloc/logs/x || echo read-only; env; exit 7";
    let mut task = container("t", script, json!({"work_dir": "/tmp"}));
    task["Meta"] = json!({"who": "${node.unique.name}"});
    servers.assign(alloc(11, "batch", json!([task])));
    let agent = start(with_engine(base.path(), &engine), &servers).await;
    let update = servers.await_status(&alloc_id(11), "failed");
    let events = &update.task_states["t"].events;
    let end = events.iter().find(|event| event.kind == "Terminated").unwrap();
    assert_eq!((end.exit_code, end.signal), (7, 0));
    assert_eq!(
        end.display_message,
        "Exit Code: 7, Exit Message: \"Docker container exited with non-zero exit code: 7\""
    );
    let out = log(base.path(), 11, "t.stdout.0");
    assert!(out.starts_with("out t /alloc /local /secrets alpha\n/tmp\nread-only\n"), "{out}");
    assert!(!out.contains("CARGO"), "the agent's environment stays with it: {out}");
    assert!(log(base.path(), 11, "t.stderr.0").starts_with("err\n"));
    let dir = base.path().join("alloc").join(alloc_id(11));
    assert_eq!(std::fs::read_to_string(dir.join("alloc/data/kept")).unwrap(), "kept\n");
    assert_eq!(std::fs::read_to_string(dir.join("t/local/own")).unwrap(), "own\n");
    assert!(dir.join("t/secrets/s").exists());
    assert!(engine.containers(&alloc_id(11)).is_empty(), "containers leave nothing behind");
    assert_eq!(std::fs::read_dir(base.path().join("client/docker")).unwrap().count(), 0);
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_task_asks_for_reaches_its_container() {
    let Some(engine) = engine::shared("what_a_task_asks_for") else { return };
    let (base, servers) = (Base::new(), FakeServers::new());
    let script = "hostname; ulimit -n; cat /etc/hosts; touch /x || echo rootfs is read-only; mount; id; \
                  cat /proc/self/status; cat /proc/sys/net/ipv4/ip_forward; ls /dev; sleep 1000";
    let task = container(
        "t",
        script,
        json!({
            "hostname": "inside", "ulimit": {"nofile": "100:200"}, "readonly_rootfs": true,
            "extra_hosts": ["db:10.9.8.7"], "labels": {"a": "b"}, "cap_drop": ["all"], "pids_limit": 50,
            "mount": [{"type": "tmpfs", "target": "/fast", "tmpfs_options": {"size": 1048576}}],
            "volumes": ["local/data:/data"], "shm_size": 2097152, "security_opt": ["no-new-privileges"],
            "devices": [{"host_path": "/dev/null", "container_path": "/dev/nothing"}], "init": false,
            "ports": ["http"], "group_add": ["27"], "sysctl": {"net.ipv4.ip_forward": "1"}, "ipc_mode": "private",
            "logging": {"type": "json-file", "config": {"max-size": "1m"}}
        }),
    );
    let mut alloc = alloc(21, "service", json!([task]));
    alloc.allocated_resources = serde_json::from_value(json!({
        "Tasks": {"t": {"Cpu": {"CpuShares": 500}, "Memory": {"MemoryMB": 32, "MemoryMaxMB": 48}}},
        "Shared": {"Ports": [{"Label": "http", "Value": 20100, "To": 80, "HostIP": "127.0.0.1"}]}
    }))
    .unwrap();
    alloc.job.as_mut().unwrap().task_groups[0].tasks[0].user = "1000:1000".into();
    servers.assign(alloc);
    let plugin = json!({"endpoint": engine.endpoint(), "extra_labels": ["task_*"]});
    let agent = start(with_plugin(base.path(), plugin), &servers).await;
    servers.await_status(&alloc_id(21), "running");
    let has = |text: &str| log(base.path(), 21, "t.stdout.0").contains(text).then_some(());
    eventually("devices", || has("nothing"));
    for text in [
        "inside\n",
        "100\n",
        "10.9.8.7\tdb",
        "rootfs is read-only",
        "tmpfs on /fast",
        "on /data type",
        "uid=1000 gid=1000 groups=27",
        "CapEff:\t0000000000000000",
        "NoNewPrivs:\t1",
    ] {
        eventually(text, || has(text));
    }
    let found = engine.inspect(&container_id(&engine, 21).unwrap());
    let host = found.host_config.unwrap();
    let mib = 1024 * 1024;
    assert_eq!((host.memory, host.memory_reservation), (Some(48 * mib), Some(32 * mib)));
    assert_eq!((host.cpu_shares, host.pids_limit), (Some(500), Some(50)));
    let binding = host.port_bindings.unwrap()["80/tcp"].clone().unwrap();
    assert_eq!(binding[0].host_port.as_deref(), Some("20100"));
    let labels = found.config.unwrap().labels.unwrap();
    assert_eq!((labels["a"].as_str(), labels["com.hashicorp.nomad.task_name"].as_str()), ("b", "t"));
    let task = agent.local().allocs.get(&alloc_id(21)).unwrap().tasks.running("t").unwrap();
    let status = task.inspect().await;
    assert!(status.outcome.is_none() && status.attributes["status"] == "running");
    let usage = task.stats(Duration::from_secs(60)).next().await.unwrap();
    assert!(usage.processes >= 1 && usage.resident_bytes > 0, "{usage:?}");
    servers.stop(&alloc_id(21));
    servers.await_status(&alloc_id(21), "complete");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_end_by_their_signal_or_are_killed_after_their_timeout() {
    let Some(engine) = engine::shared("tasks_end_by_their_signal") else { return };
    let (base, servers) = (Base::new(), FakeServers::new());
    let deaf = "trap '' TERM USR1; echo line 1; while :; do sleep 0.05; done";
    let asked = "trap 'echo asked; exit 3' USR1; echo line 1; while :; do sleep 0.05; done";
    let mut tasks =
        [container("t", LONG, json!({})), container("t", asked, json!({})), container("t", deaf, json!({}))];
    tasks[1]["KillSignal"] = json!("SIGUSR1");
    tasks[2]["KillSignal"] = json!("SIGUSR1");
    tasks[2]["KillTimeout"] = json!("300ms");
    for (n, task) in tasks.iter().enumerate() {
        servers.assign(alloc(30 + n as u8, "service", json!([task])));
    }
    let agent = start(with_engine(base.path(), &engine), &servers).await;
    for (n, code) in [(30, 3), (31, 3), (32, 137)] {
        eventually("output", || log(base.path(), n, "t.stdout.0").starts_with("line 1\n").then_some(()));
        servers.await_status(&alloc_id(n), "running");
        servers.stop(&alloc_id(n));
        let task = servers.await_task(&alloc_id(n), "t", |task| task.state == DEAD);
        let end = task.events.iter().find(|event| event.kind == "Terminated").unwrap();
        assert_eq!(end.exit_code, code);
        assert_eq!(
            log(base.path(), n, "t.stdout.0").ends_with("asked\n"),
            code == 3,
            "the last line is there too"
        );
        assert!(engine.containers(&alloc_id(n)).is_empty());
    }
    agent.shutdown().await;
}

/// On a busy host an engine does not learn of what happens before it listens, nor after the container has ended. So the task
/// begins late, and its first process outlives the child that the kernel kills.
const USES_UP_MEMORY: &str = "sleep 1; sh -c 'echo 1000 > /proc/self/oom_score_adj; a=x; while :; do a=$a$a; done'; \
                              end=$?; sleep 1; exit $end";

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_uses_up_its_memory_is_reported_so() {
    let Some(engine) = engine::shared("a_task_that_uses_up_its_memory") else { return };
    let (base, servers) = (Base::new(), FakeServers::new());
    let mut alloc = alloc(41, "batch", json!([container("t", USES_UP_MEMORY, json!({}))]));
    alloc.allocated_resources =
        serde_json::from_value(json!({"Tasks": {"t": {"Cpu": {}, "Memory": {"MemoryMB": 8}}}, "Shared": {}}))
            .unwrap();
    servers.assign(alloc);
    let agent = start(with_engine(base.path(), &engine), &servers).await;
    let update = servers.await_status(&alloc_id(41), "failed");
    let end = update.task_states["t"].events.iter().find(|event| event.kind == "Terminated").unwrap();
    assert_eq!(
        (end.exit_code, end.details.get("oom_killed").map(String::as_str)),
        (137, Some("true")),
        "{end:?}"
    );
    assert!(end.display_message.contains("OOM Killed"), "{}", end.display_message);
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_and_what_is_missing_are_named() {
    let Some(engine) = engine::shared("mistakes") else { return };
    let (base, servers) = (Base::new(), FakeServers::new());
    let cases = [
        (json!({"imgae": "x"}), "driver docker has no config key \"imgae\""),
        (json!({"cpuset_cpus": "0"}), "config key \"cpuset_cpus\" is not supported: "),
        (json!({"privileged": true}), "Docker privileged mode is disabled on this Nomad agent"),
        (json!({"volumes": ["/etc:/etc"]}), "volumes: volumes are not enabled on this node"),
        (json!({"command": "/no-such"}), "Failed to start container "),
        (json!({"load": "none.tar"}), "Failed to load image from "),
        (json!({"network_mode": "no-such-network"}), "network no-such-network not found"),
        (json!({"image": "127.0.0.1:1/none:1"}), "Failed to pull `127.0.0.1:1/none:1`: "),
    ];
    for (n, (more, _)) in cases.iter().enumerate() {
        servers.assign(alloc(50 + n as u8, "batch", json!([container("t", "true", more.clone())])));
    }
    let agent = start(with_engine(base.path(), &engine), &servers).await;
    for (n, (_, text)) in cases.iter().enumerate() {
        let update = servers.await_status(&alloc_id(50 + n as u8), "failed");
        let events = &update.task_states["t"].events;
        assert!(events.iter().any(|event| event.display_message.contains(text)), "{text}: {events:?}");
        assert!(engine.containers(&alloc_id(50 + n as u8)).is_empty());
    }
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_run_inside_the_container() {
    let Some(engine) = engine::shared("commands_run_inside") else { return };
    let (base, servers) = (Base::new(), FakeServers::new());
    servers.assign(alloc(61, "service", json!([container("t", LONG, json!({}))])));
    let agent = start(with_engine(base.path(), &engine), &servers).await;
    servers.await_status(&alloc_id(61), "running");
    let task = agent.local().allocs.get(&alloc_id(61)).unwrap().tasks.running("t").unwrap();
    let command = |script: &str| ["/bin/sh", "-c", script].map(String::from).to_vec();
    let output =
        run_once(&*task, command("echo $NOMAD_TASK_NAME; echo err >&2; exit 3"), Duration::from_secs(20));
    let output = output.await.unwrap();
    assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b"t\n"[..], &b"err\n"[..]));
    assert_eq!(output.exit.code, 3);

    // Input, and its end.
    let mut exec = task.exec(ExecConfig { command: command("cat; echo end"), tty: false }).await.unwrap();
    exec.stdin.write(b"hello\n").await.unwrap();
    exec.stdin.end().await.unwrap();
    let mut text = String::new();
    exec.stdout.read_to_string(&mut text).await.unwrap();
    assert_eq!((text.as_str(), exec.exit.await.unwrap().code), ("hello\nend\n", 0));

    // A terminal, its size, and the end of its input.
    let script = "trap 'stty size' WINCH; echo up; while :; do sleep 0.05; done";
    let mut exec = task.exec(ExecConfig { command: command(script), tty: true }).await.unwrap();
    assert!(exec.stderr.is_none());
    let mut seen = String::new();
    until(&mut exec.stdout, &mut seen, "up").await;
    exec.terminal.as_ref().unwrap().resize(api::TtySize { height: 33, width: 77 }).unwrap();
    until(&mut exec.stdout, &mut seen, "33 77").await;
    drop(exec);
    let mut exec = task.exec(ExecConfig { command: command("cat; exit 4"), tty: true }).await.unwrap();
    exec.stdin.write(b"word\r").await.unwrap();
    until(&mut exec.stdout, &mut String::new(), "word\r\nword").await;
    exec.stdin.end().await.unwrap();
    assert_eq!(exec.exit.await.unwrap().code, 4);

    // One that nobody waits for any more is ended with what it has started.
    let count = || {
        let found = engine.inspect(&container_id(&engine, 61).unwrap());
        let pid = found.state.unwrap().pid.unwrap();
        let namespace = std::fs::read_link(format!("/proc/{pid}/ns/pid")).unwrap();
        let pids = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        let own =
            pids.filter(|path| std::fs::read_link(path.join("ns/pid")).is_ok_and(|link| link == namespace));
        own.filter(|path| {
            std::fs::read(path.join("cmdline"))
                .is_ok_and(|line| String::from_utf8_lossy(&line).contains("4321"))
        })
        .count()
    };
    let mut exec = task
        .exec(ExecConfig { command: command("sleep 4321 & echo up; sleep 4321"), tty: false })
        .await
        .unwrap();
    until(&mut exec.stdout, &mut String::new(), "up").await;
    eventually("two more processes", || (count() >= 2).then_some(()));
    drop(exec);
    eventually("the end of the command", || (count() == 0).then_some(()));

    let missing = task.exec(ExecConfig { command: vec!["/no-such".into()], tty: false }).await;
    let code = match missing {
        Ok(exec) => exec.exit.await.unwrap().code,
        Err(_) => 127,
    };
    assert!([126, 127].contains(&code), "{code}");
    servers.stop(&alloc_id(61));
    servers.await_status(&alloc_id(61), "complete");
    agent.shutdown().await;
}

async fn until(output: &mut node::driver::exec::Output, seen: &mut String, text: &str) {
    let read = async {
        let mut chunk = [0; 1024];
        while !seen.contains(text) {
            let length = output.read(&mut chunk).await.unwrap();
            assert!(length > 0, "the output ended with {seen:?}");
            seen.push_str(&String::from_utf8_lossy(&chunk[..length]));
        }
    };
    tokio::time::timeout(Duration::from_secs(20), read).await.expect("the output comes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_outlives_its_agent_and_no_line_is_lost_or_repeated() {
    let Some(engine) = engine::shared("a_container_outlives_its_agent") else { return };
    let (base, servers) = (Base::new(), FakeServers::new());
    servers.assign(alloc(71, "service", json!([container("t", LONG, json!({}))])));
    let agent = start(with_engine(base.path(), &engine), &servers).await;
    eventually("output", || (lines(base.path(), 71) >= 5).then_some(()));
    servers.await_status(&alloc_id(71), "running");
    let before = container_id(&engine, 71).unwrap();
    agent.shutdown().await;
    let written = lines(base.path(), 71);

    let agent = start(with_engine(base.path(), &engine), &servers).await;
    let task = agent.local().allocs.get(&alloc_id(71)).unwrap().tasks.state("t").unwrap();
    assert_eq!((task.state.as_str(), task.restarts), ("running", 0));
    eventually("more output", || (lines(base.path(), 71) > written + 5).then_some(()));
    let ids: Vec<_> = engine.containers(&alloc_id(71)).into_iter().map(|found| found.id.unwrap()).collect();
    assert_eq!(ids, [before], "the same one, and no other");
    servers.stop(&alloc_id(71));
    servers.await_status(&alloc_id(71), "complete");
    let log = log(base.path(), 71, "t.stdout.0");
    assert_whole(&log);
    assert!(log.ends_with("asked\n"), "{log}");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_ended_without_an_agent_is_reported_and_an_unknown_one_is_removed() {
    let Some(engine) = engine::shared("a_container_that_ended_without_an_agent") else { return };
    let (base, servers) = (Base::new(), FakeServers::new());
    let short = "echo line 1; sleep 0.7; echo line 2; exit 5";
    servers.assign(alloc(81, "batch", json!([container("t", short, json!({}))])));
    servers.assign(alloc(82, "service", json!([container("t", LONG, json!({}))])));
    let agent = start(with_engine(base.path(), &engine), &servers).await;
    servers.await_status(&alloc_id(81), "running");
    servers.await_status(&alloc_id(82), "running");
    agent.shutdown().await;
    eventually("the end of the container", || {
        let found = engine.inspect(&container_id(&engine, 81)?);
        (found.state?.running == Some(false)).then_some(())
    });
    let agent = start(with_engine(base.path(), &engine), &servers).await;
    let task = servers.await_task(&alloc_id(81), "t", |task| task.state == DEAD);
    let end = task.events.iter().find(|event| event.kind == "Terminated").unwrap();
    assert_eq!(end.exit_code, 5);
    assert_eq!(log(base.path(), 81, "t.stdout.0"), "line 1\nline 2\n");
    assert!(engine.containers(&alloc_id(81)).is_empty());

    // An agent that knows of no task has one that it must have started.
    agent.shutdown().await;
    std::fs::remove_dir_all(base.path().join("client/state.db")).unwrap();
    assert_eq!(engine.containers(&alloc_id(82)).len(), 1);
    let agent = start(with_engine(base.path(), &engine), &FakeServers::new()).await;
    assert!(engine.containers(&alloc_id(82)).is_empty());
    agent.shutdown().await;
}

/// Names the directory and the engine with which the process started below is an agent.
const VICTIM: &str = "NODE_TEST_DOCKER_VICTIM";

/// Not a test of its own: the agent that [`containers_survive_a_kill_of_the_agent`] kills.
#[tokio::test(flavor = "multi_thread")]
async fn victim() {
    let Ok(victim) = std::env::var(VICTIM) else { return };
    let (base, endpoint) = victim.split_once(' ').unwrap();
    let servers = FakeServers::new();
    servers.assign(alloc(201, "service", json!([container("t", LONG, json!({}))])));
    let _agent = start(with_plugin(Path::new(base), json!({"endpoint": endpoint})), &servers).await;
    servers.await_status(&alloc_id(201), "running");
    eventually("output", || (lines(Path::new(base), 201) >= 3).then_some(()));
    std::fs::write(Path::new(base).join("running"), "").unwrap();
    std::future::pending::<()>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn containers_survive_a_kill_of_the_agent() {
    let Some(engine) = engine::shared("containers_survive_a_kill") else { return };
    let base = Base::new();
    let mut victim = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "docker::victim", "--nocapture"])
        .env(VICTIM, format!("{} {}", base.path().display(), engine.endpoint()))
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    eventually("a running task", || base.path().join("running").exists().then_some(()));
    victim.kill().unwrap();
    victim.wait().unwrap();
    let before = container_id(&engine, 201).unwrap();
    let servers = FakeServers::new();
    servers.assign(alloc(201, "service", json!([container("t", LONG, json!({}))])));
    let written = lines(base.path(), 201);
    let agent = start(with_engine(base.path(), &engine), &servers).await;
    let task = agent.local().allocs.get(&alloc_id(201)).unwrap().tasks.state("t").unwrap();
    let starts = kinds(&task).iter().filter(|kind| **kind == "Started").count();
    assert_eq!((task.state.as_str(), starts, task.restarts), ("running", 1, 0));
    eventually("more output", || (lines(base.path(), 201) > written + 3).then_some(()));
    let ids: Vec<_> = engine.containers(&alloc_id(201)).into_iter().map(|found| found.id.unwrap()).collect();
    assert_eq!(ids, [before]);
    servers.stop(&alloc_id(201));
    servers.await_status(&alloc_id(201), "complete");
    assert_whole(&log(base.path(), 201, "t.stdout.0"));
    agent.shutdown().await;
}

fn health(agent: &node::Agent) -> (bool, bool) {
    let node: Node = (*agent.local().context.node()).clone();
    (node.drivers["docker"].detected, node.drivers["docker"].healthy)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_outlives_an_engine_that_is_killed_if_the_engine_spares_it() {
    let Some(engine) = engine::own("a_task_outlives_an_engine", true) else { return };
    let (base, servers) = (Base::new(), FakeServers::new());
    servers.assign(alloc(91, "service", json!([container("t", LONG, json!({}))])));
    let agent = start(with_engine(base.path(), &engine), &servers).await;
    assert_eq!(health(&agent), (true, true));
    let attributes = agent.local().context.node().attributes.0.clone();
    assert_eq!(
        (attributes["driver.docker"].as_str(), attributes["driver.docker.os_type"].as_str()),
        ("1", "linux")
    );
    assert!(attributes.contains_key("driver.docker.version"));
    servers.await_status(&alloc_id(91), "running");
    eventually("output", || (lines(base.path(), 91) >= 3).then_some(()));
    let before = container_id(&engine, 91).unwrap();

    engine.kill();
    eventually("an unhealthy driver", || (health(&agent) == (true, false)).then_some(()));
    // Another agent that starts meanwhile does not take the task for lost.
    agent.shutdown().await;
    let agent = start(with_engine(base.path(), &engine), &servers).await;
    assert_eq!(health(&agent), (false, false), "never seen by this one");
    let state = || agent.local().allocs.get(&alloc_id(91)).unwrap().tasks.state("t").unwrap();
    assert_eq!((state().state.as_str(), state().restarts), ("running", 0));
    engine.await_start();
    eventually("a healthy driver", || (health(&agent) == (true, true)).then_some(()));
    let written = lines(base.path(), 91);
    eventually("more output", || (lines(base.path(), 91) > written + 3).then_some(()));
    assert_eq!((state().state.as_str(), state().restarts), ("running", 0));
    assert_eq!(container_id(&engine, 91).unwrap(), before);
    servers.stop(&alloc_id(91));
    servers.await_status(&alloc_id(91), "complete");
    assert_whole(&log(base.path(), 91, "t.stdout.0"));
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_its_engine_ends_is_started_again_when_the_engine_says_so() {
    let Some(engine) = engine::own("a_task_that_its_engine_ends", false) else { return };
    let (base, servers) = (Base::new(), FakeServers::new());
    let group = json!({
        "Tasks": [container("t", LONG, json!({}))],
        "RestartPolicy": {"Attempts": 1, "Mode": "fail", "Interval": "1m", "Delay": "10ms"}
    });
    servers.assign(group_alloc(101, "service", group));
    let agent = start(with_engine(base.path(), &engine), &servers).await;
    servers.await_status(&alloc_id(101), "running");
    let task = agent.local().allocs.get(&alloc_id(101)).unwrap().tasks.running("t").unwrap();
    eventually("output", || (lines(base.path(), 101) >= 3).then_some(()));
    engine.kill();
    eventually("an unhealthy driver", || (health(&agent) == (true, false)).then_some(()));
    assert!(task.inspect().await.outcome.is_none(), "the engine has said nothing");
    engine.await_start();
    // Without live-restore it ends what runs when it comes back, in the way in which it stops containers.
    let state = servers.await_task(&alloc_id(101), "t", |task| task.restarts == 1 && task.state == "running");
    let end = state.events.iter().find(|event| event.kind == "Terminated").unwrap();
    assert_eq!(end.exit_code, 3);
    assert!(matches!(task.inspect().await.outcome, Some(Outcome::Exited(_))));
    assert_eq!(engine.containers(&alloc_id(101)).len(), 1);
    servers.stop(&alloc_id(101));
    servers.await_status(&alloc_id(101), "complete");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_volume_of_the_host_is_mounted() {
    let Some(engine) = engine::shared("a_volume_of_the_host_is_mounted") else { return };
    let (base, servers) = (Base::new(), FakeServers::new());
    let data = base.path().join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("file"), "from the host\n").unwrap();
    let mut settings = with_engine(base.path(), &engine);
    let volume = node::settings::HostVolume { path: data.clone(), read_only: false };
    settings.host_volumes.insert("disk".to_string(), volume);
    let mut task =
        container("t", "cat /data/file; echo back > /data/back; touch /fixed/x || echo fixed", json!({}));
    task["VolumeMounts"] = json!([
        {"Volume": "v", "Destination": "/data"}, {"Volume": "v", "Destination": "/fixed", "ReadOnly": true}
    ]);
    let volumes = json!({"v": {"Name": "v", "Type": "host", "Source": "disk"}});
    servers.assign(group_alloc(180, "batch", json!({"Tasks": [task], "Volumes": volumes})));
    let agent = start(settings, &servers).await;
    servers.await_status(&alloc_id(180), "complete");
    assert_eq!(log(base.path(), 180, "t.stdout.0"), "from the host\nfixed\n");
    assert_eq!(std::fs::read_to_string(data.join("back")).unwrap(), "back\n");
    agent.shutdown().await;
}
