//! Containers of Podman: how they run, how they are ended, and how they outlive the agent and the service.

use std::path::Path;
use std::time::Duration;

use futures_util::stream::StreamExt;
use node::NodeSettings;
use node::driver::ExecConfig;
use node::driver::exec::run_once;
use node::task::events::DEAD;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

use crate::docker::assert_whole;
use crate::support::podman::{self, IMAGE, TestPodman};
use crate::support::*;

pub fn with_podman(base: &Path, podman: &TestPodman, more: Value) -> NodeSettings {
    let mut settings = settings(base);
    let mut plugin = json!({"socket_path": podman.socket()});
    for (key, value) in more.as_object().unwrap() {
        plugin[key] = value.clone();
    }
    let plugin = plugin.as_object().unwrap().clone().into_iter().collect();
    settings.plugins.insert("podman".to_string(), plugin);
    settings.dev = false;
    settings
}

/// A task that runs a shell script in a container.
pub fn container(script: &str, more: Value) -> Value {
    let mut config =
        json!({"image": IMAGE, "network_mode": "none", "command": "/bin/sh", "args": ["-c", script]});
    for (key, value) in more.as_object().unwrap() {
        config[key] = value.clone();
    }
    json!({"Name": "t", "Driver": "podman", "Config": config})
}

/// Says something ten times a second, and what it is asked with.
const LONG: &str =
    "trap 'echo asked; exit 3' TERM; n=0; while :; do n=$((n+1)); echo line $n; sleep 0.1; done";

fn lines(base: &Path, alloc: u8) -> usize {
    log(base, alloc, "t.stdout.0").lines().count()
}

async fn until(output: &mut node::driver::exec::Output, text: &str) {
    let (mut seen, mut chunk) = (String::new(), [0; 1024]);
    let read = async {
        while !seen.contains(text) {
            let length = output.read(&mut chunk).await.unwrap();
            assert!(length > 0, "the output ended with {seen:?}");
            seen.push_str(&String::from_utf8_lossy(&chunk[..length]));
        }
    };
    tokio::time::timeout(Duration::from_secs(20), read).await.expect("the output comes");
}

/// One engine for all of it: each takes a second to begin.
#[tokio::test(flavor = "multi_thread")]
async fn containers_of_podman_run_as_their_tasks_ask_for_it() {
    let Some(podman) = podman::own("containers_of_podman_run") else { return };
    let (base, servers) = (Base::new(), FakeServers::new());
    let script = "echo out $NOMAD_TASK_NAME $NOMAD_TASK_DIR; echo err >&2; hostname; ulimit -n; \
                  touch /x || echo rootfs; touch /alloc/logs/x || echo logs; mount; ls /dev; \
                  cat /proc/self/status; echo own > /local/own; id; exit 7";
    let more = json!({
        "hostname": "inside", "ulimit": {"nofile": "100:200", "nproc": "4096"}, "readonly_rootfs": true, "tmpfs": ["/fast:size=1m"],
        "cap_drop": ["all"], "volumes": ["local/data:/data"], "devices": ["/dev/null:/dev/nothing"],
        "security_opt": ["no-new-privileges"], "labels": {"a": "b"}, "pids_limit": 50, "init": false
    });
    let mut alloc_1 = alloc(1, "batch", json!([container(script, more)]));
    std::fs::create_dir_all(base.path().join("alloc").join(alloc_id(1)).join("t/local/data")).unwrap();
    alloc_1.job.as_mut().unwrap().task_groups[0].tasks[0].user = "1000:1000".into();
    servers.assign(alloc_1);
    let mut hungry = alloc(2, "batch", json!([container("a=x; while :; do a=$a$a; done", json!({}))]));
    hungry.allocated_resources =
        serde_json::from_value(json!({"Tasks": {"t": {"Cpu": {}, "Memory": {"MemoryMB": 8}}}, "Shared": {}}))
            .unwrap();
    servers.assign(hungry);
    servers.assign(alloc(3, "service", json!([container(LONG, json!({}))])));
    let wrong = [
        (json!({"imgae": "x"}), "driver podman has no config key \"imgae\""),
        (json!({"command": "/no-such"}), "Failed to start container "),
        (json!({"socket": "x"}), "socket \"x\" is not one of the plugin"),
        (json!({"image": "127.0.0.1:1/none:1"}), "Failed to pull `127.0.0.1:1/none:1`: "),
    ];
    for (n, (more, _)) in wrong.iter().enumerate() {
        servers.assign(alloc(10 + n as u8, "batch", json!([container("true", more.clone())])));
    }
    let agent = start(with_podman(base.path(), &podman, json!({})), &servers).await;
    let attributes = agent.local().context.node().attributes.0.clone();
    assert_eq!(attributes["driver.podman"], "1");
    assert!(attributes.contains_key("driver.podman.version"));

    let end = |id: u8| {
        let update = servers.await_status(&alloc_id(id), "failed");
        update.task_states["t"].events.clone()
    };
    let events = end(1);
    let event =
        events.iter().find(|event| event.kind == "Terminated").unwrap_or_else(|| panic!("{events:?}"));
    assert_eq!(event.exit_code, 7);
    let out = log(base.path(), 1, "t.stdout.0");
    for text in [
        "out t /local\n",
        "inside\n100\nrootfs\nlogs\n",
        "tmpfs on /fast",
        "on /data type",
        "nothing",
        "CapEff:\t0000000000000000",
        "NoNewPrivs:\t1",
        "uid=1000(1000) gid=1000(1000)",
    ] {
        assert!(out.contains(text), "{text}: {out}");
    }
    assert!(log(base.path(), 1, "t.stderr.0").starts_with("err\n"));
    let events = end(2);
    let event =
        events.iter().find(|event| event.kind == "Terminated").unwrap_or_else(|| panic!("{events:?}"));
    // Whether the engine also says why depends on what its monitor sees of the control group.
    assert_eq!(event.exit_code, 137, "{event:?}");
    for (n, (_, text)) in wrong.iter().enumerate() {
        let events = end(10 + n as u8);
        assert!(events.iter().any(|event| event.display_message.contains(text)), "{text}: {events:?}");
    }
    assert!(podman.containers(&alloc_id(1)).is_empty(), "containers leave nothing behind");

    servers.await_status(&alloc_id(3), "running");
    let task = agent.local().allocs.get(&alloc_id(3)).unwrap().tasks.running("t").unwrap();
    let usage = task.stats(Duration::from_secs(60)).next().await.unwrap();
    assert!(usage.processes >= 1 && usage.resident_bytes > 0, "{usage:?}");
    let command = |script: &str| ["/bin/sh", "-c", script].map(String::from).to_vec();
    let output =
        run_once(&*task, command("echo $NOMAD_TASK_NAME; echo err >&2; exit 3"), Duration::from_secs(20));
    let output = output.await.unwrap();
    assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b"t\n"[..], &b"err\n"[..]));
    assert_eq!(output.exit.code, 3);
    let mut exec = task.exec(ExecConfig { command: command("cat; echo end"), tty: false }).await.unwrap();
    exec.stdin.write(b"hello\n").await.unwrap();
    exec.stdin.end().await.unwrap();
    let mut text = String::new();
    exec.stdout.read_to_string(&mut text).await.unwrap();
    assert_eq!((text.as_str(), exec.exit.await.unwrap().code), ("hello\nend\n", 0));
    let script = "trap 'stty size' WINCH; echo up; while :; do sleep 0.05; done";
    let mut exec = task.exec(ExecConfig { command: command(script), tty: true }).await.unwrap();
    until(&mut exec.stdout, "up").await;
    exec.terminal.as_ref().unwrap().resize(api::TtySize { height: 33, width: 77 }).unwrap();
    until(&mut exec.stdout, "33 77").await;
    drop(exec);

    servers.stop(&alloc_id(3));
    let task = servers.await_task(&alloc_id(3), "t", |task| task.state == DEAD);
    assert_eq!(task.events.iter().find(|event| event.kind == "Terminated").unwrap().exit_code, 3);
    assert!(log(base.path(), 3, "t.stdout.0").ends_with("asked\n"), "the last line is there too");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_of_podman_outlives_the_agent_and_the_service() {
    let Some(podman) = podman::own("a_container_of_podman_outlives") else { return };
    let (base, servers) = (Base::new(), FakeServers::new());
    servers.assign(alloc(1, "service", json!([container(LONG, json!({}))])));
    let agent = start(with_podman(base.path(), &podman, json!({})), &servers).await;
    servers.await_status(&alloc_id(1), "running");
    eventually("output", || (lines(base.path(), 1) >= 3).then_some(()));
    let before = podman.containers(&alloc_id(1));
    assert_eq!(before.len(), 1);

    podman.kill();
    let health = |agent: &node::Agent| {
        let info = agent.local().context.node().drivers["podman"].clone();
        (info.detected, info.healthy)
    };
    eventually("an unhealthy driver", || (health(&agent) == (true, false)).then_some(()));
    let written = lines(base.path(), 1);
    eventually("more output, without the service", || (lines(base.path(), 1) > written + 3).then_some(()));
    agent.shutdown().await;
    let agent = start(with_podman(base.path(), &podman, json!({})), &servers).await;
    let state = || agent.local().allocs.get(&alloc_id(1)).unwrap().tasks.state("t").unwrap();
    assert_eq!((state().state.as_str(), state().restarts), ("running", 0));
    podman.start();
    eventually("a healthy driver", || (health(&agent) == (true, true)).then_some(()));
    let written = lines(base.path(), 1);
    eventually("more output", || (lines(base.path(), 1) > written + 3).then_some(()));
    assert_eq!((state().state.as_str(), state().restarts), ("running", 0));
    assert_eq!(podman.containers(&alloc_id(1)), before);

    // An agent that knows of no task removes what it must have started.
    servers.assign(alloc(2, "service", json!([container(LONG, json!({}))])));
    servers.await_status(&alloc_id(2), "running");
    servers.stop(&alloc_id(1));
    servers.await_status(&alloc_id(1), "complete");
    assert_whole(&log(base.path(), 1, "t.stdout.0"));
    agent.shutdown().await;
    std::fs::remove_dir_all(base.path().join("client/state.db")).unwrap();
    assert_eq!(podman.containers(&alloc_id(2)).len(), 1);
    let agent = start(with_podman(base.path(), &podman, json!({})), &FakeServers::new()).await;
    assert!(podman.containers(&alloc_id(2)).is_empty());
    agent.shutdown().await;
}
