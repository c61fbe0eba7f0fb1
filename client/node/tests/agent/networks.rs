//! Groups with networks of their own, in a network namespace of the test's own.

use std::io::Read;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use bollard::models::ContainerSummaryStateEnum;
use model::document::Allocation;
use node::NodeSettings;
use serde_json::{Value, json};

use crate::docker::{container, with_plugin};
use crate::isolated::isolated;
use crate::podman::with_podman;
use crate::support::packages::install;
use crate::support::podman;
use crate::support::*;

/// Set in the process that has the namespaces of its own.
const INSIDE: &str = "NODE_TEST_NETWORK";

/// Runs the test in a process with a network and mounts of its own. Returns true in that process.
fn alone(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED {test}: networks of groups need root");
        return false;
    }
    install(&["iproute2", "nftables", "busybox-static"], &["ip", "nft", "busybox"]);
    // What other tests have mounted there was copied along, and would go when they end.
    let script = "grep -o ' /run/netns/[^ ]*' /proc/self/mountinfo | xargs -r umount -l; \
                  mount -t tmpfs tmpfs /run && ip link set lo up && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "sh", "-c", script, "sh"]).arg(std::env::current_exe().unwrap());
    let output = command.args(["--exact", test, "--nocapture"]).env(INSIDE, "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() && complained.contains("unshare failed") {
        eprintln!("SKIPPED {test}: the kernel gives no namespaces: {complained}");
        return false;
    }
    eprint!("{complained}");
    assert!(output.status.success(), "{said}\n{complained}");
    false
}

/// Without plugins, whatever this host has.
fn without_plugins(mut settings: NodeSettings) -> NodeSettings {
    settings.network.cni_path = Vec::new();
    settings
}

/// An allocation with one port: `20000 + id` of the host leads to 8080.
fn networked(id: u8, network: Value, tasks: Value) -> Allocation {
    let mut network = network;
    network["DynamicPorts"] = json!([{"Label": "web", "To": 8080}]);
    let mut alloc = group_alloc(id, "service", json!({"Networks": [network], "Tasks": tasks}));
    let ports = json!([{"Label": "web", "Value": 20000 + u32::from(id), "To": 8080, "HostIP": "127.0.0.1"}]);
    let granted = json!({"Shared": {"Ports": ports}});
    alloc.allocated_resources = Some(serde_json::from_value(granted).unwrap());
    alloc
}

/// A container in the network of its group.
fn joining_container(script: &str, more: Value) -> Value {
    let mut task = container("c", script, more);
    task["Config"].as_object_mut().unwrap().remove("network_mode");
    task
}

/// A task that answers each caller with what it has to say.
fn server(name: &str, says: &str) -> Value {
    let script = format!("exec busybox nc -ll -p 8080 -e /bin/sh -c '{says}'");
    shell(name, &script)
}

fn ask(port: u16) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer).filter(|answer| !answer.is_empty())
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What the kernel has: interfaces, addresses, namespaces and their mounts, and rules.
#[derive(Debug, PartialEq, Eq)]
struct Inventory {
    interfaces: usize,
    addresses: usize,
    namespaces: usize,
    mounts: usize,
    rules: usize,
}

fn inventory() -> Inventory {
    let lines = |program: &str, arguments: &[&str]| output(program, arguments).lines().count();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    Inventory {
        interfaces: lines("ip", &["-o", "link"]),
        addresses: lines("ip", &["-o", "address"]),
        namespaces: std::fs::read_dir("/run/netns").map_or(0, |found| found.count()),
        // An engine has namespaces of its own, elsewhere.
        mounts: mounts.lines().filter(|line| line.contains("/run/netns/")).count(),
        rules: lines("nft", &["list", "ruleset"]),
    }
}

/// Waits until the kernel has what it had.
#[track_caller]
fn await_inventory(before: &Inventory) {
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while inventory() != *before {
        assert!(std::time::Instant::now() < deadline, "{:?} is left of {before:?}", inventory());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_are_in_the_network_of_their_group() {
    if !alone("networks::processes_are_in_the_network_of_their_group") {
        return;
    }
    let (base, servers) = (Base::new(), FakeServers::new());
    let before = inventory();
    let says = "echo $NOMAD_ALLOC_IP_web $NOMAD_ALLOC_ADDR_web $NOMAD_PORT_web $NOMAD_HOST_PORT_web";
    let other = shell("other", "busybox nc 127.0.0.1 8080; exec sleep 1000");
    servers.assign(networked(1, json!({"Mode": "bridge"}), json!([server("web", says), other])));
    servers.assign(networked(2, json!({"Mode": "none"}), json!([shell("t", "ip -o link; exec sleep 1000")])));
    let agent = start(without_plugins(settings(base.path())), &servers).await;
    let update = servers.await_status(&alloc_id(1), "running");
    let status = update.network_status.unwrap();
    assert_eq!((status.interface_name.as_str(), status.address.as_str()), ("eth0", "172.26.64.2"));
    let answer = eventually("an answer", || ask(20001));
    assert_eq!(answer, "172.26.64.2 172.26.64.2:8080 8080 20001\n");
    servers.await_status(&alloc_id(2), "running");
    let links =
        eventually("output", || Some(log(base.path(), 2, "t.stdout.0")).filter(|log| !log.is_empty()));
    assert!(links.lines().count() == 1 && links.contains("LOOPBACK,UP"), "{links}");

    // Another agent finds it as it is.
    agent.shutdown().await;
    assert_eq!(ask(20001).as_deref(), Some(answer.as_str()));
    let agent = start(without_plugins(settings(base.path())), &servers).await;
    assert_eq!(ask(20001).as_deref(), Some(answer.as_str()));
    let node = agent.local().context.node();
    let modes: Vec<String> =
        node.node_resources.as_ref().unwrap().networks.iter().map(|network| network.mode.clone()).collect();
    assert!(modes.contains(&"bridge".to_string()), "{modes:?}");

    servers.stop(&alloc_id(1));
    servers.stop(&alloc_id(2));
    let ended = servers.await_status(&alloc_id(1), "complete");
    assert_eq!(ended.network_status.unwrap().address, "172.26.64.2", "the servers keep where it was");
    servers.await_status(&alloc_id(2), "complete");
    await_inventory(&before);
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn isolated_tasks_are_in_the_network_of_their_group() {
    if !alone("networks::isolated_tasks_are_in_the_network_of_their_group") {
        return;
    }
    let (base, servers) = (Base::new(), FakeServers::new());
    let before = inventory();
    let script =
        "cat /etc/hosts /etc/resolv.conf; ls /sys/class/net; exec busybox nc -ll -p 8080 -e /bin/echo up";
    let network = json!({"Mode": "bridge", "DNS": {"Servers": ["192.0.2.53"]}});
    servers.assign(networked(1, network, json!([isolated("web", script)])));
    let agent = start(without_plugins(settings(base.path())), &servers).await;
    servers.await_status(&alloc_id(1), "running");
    assert_eq!(eventually("an answer", || ask(20001)), "up\n");
    let said = log(base.path(), 1, "web.stdout.0");
    for expected in ["\n172.26.64.2 ", "\nnameserver 192.0.2.53\n", "\neth0\nlo\n"] {
        assert!(said.contains(expected), "{expected:?} in {said}");
    }
    servers.stop(&alloc_id(1));
    servers.await_status(&alloc_id(1), "complete");
    await_inventory(&before);
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_network_cannot_do_fails_the_group_by_name() {
    if !alone("networks::what_a_network_cannot_do_fails_the_group_by_name") {
        return;
    }
    let (base, servers) = (Base::new(), FakeServers::new());
    let tasks = || json!([shell("t", "exec sleep 1000")]);
    servers.assign(networked(1, json!({"Mode": "cni/mesh"}), tasks()));
    servers.assign(networked(2, json!({"Mode": "bridge", "Hostname": "web"}), tasks()));
    servers.assign(networked(3, json!({"Mode": "none", "Isolation": "job"}), tasks()));
    let before = inventory();
    let agent = start(without_plugins(settings(base.path())), &servers).await;
    for (id, why) in [
        (1, "no network \"mesh\" is configured in cni_config_dir, /opt/cni/config"),
        (2, "network hostname: none of the group's drivers can set a hostname"),
        (3, "network isolation \"job\" is possible with mode \"bridge\" only"),
    ] {
        let update = servers.await_status(&alloc_id(id), "failed");
        let events = &update.task_states["t"].events;
        let setup = events.iter().find(|event| event.kind == "Setup Failure").unwrap();
        assert!(setup.display_message.contains(why), "{setup:?}");
    }
    assert_eq!(inventory(), before);
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn containers_and_processes_share_the_network_of_their_group() {
    if !alone("networks::containers_and_processes_share_the_network_of_their_group") {
        return;
    }
    let Some(engine) = engine::shared("containers_and_processes_share") else { return };
    let before = inventory();
    let (base, servers) = (Base::new(), FakeServers::new());
    let script = "cat /etc/hosts /etc/resolv.conf; hostname; exec sleep 1000";
    let task = joining_container(script, json!({"extra_hosts": ["db:10.9.8.7"]}));
    let network = json!({
        "Mode": "bridge", "Hostname": "web-${NOMAD_ALLOC_INDEX}", "DNS": {"Servers": ["192.0.2.53"]}
    });
    let mut alloc = networked(240, network, json!([task, server("web", "hostname -i; echo hello")]));
    alloc.name = "job.g[0]".into();
    servers.assign(alloc);
    let plugin = json!({"endpoint": engine.endpoint(), "infra_image": engine::PAUSE});
    let settings = || without_plugins(with_plugin(base.path(), plugin.clone()));
    let agent = start(settings(), &servers).await;
    let update = servers.await_status(&alloc_id(240), "running");
    let address = update.network_status.unwrap().address;
    assert!(eventually("an answer", || ask(20240)).ends_with("hello\n"));
    let said = eventually("output", || {
        Some(log(base.path(), 240, "c.stdout.0")).filter(|log| log.contains("web-0\n"))
    });
    for line in [format!("{address} web-0"), "10.9.8.7 db".to_string(), "nameserver 192.0.2.53".to_string()] {
        assert!(said.lines().any(|own| own == line), "{line}: {said}");
    }
    agent.shutdown().await;
    let agent = start(settings(), &servers).await;
    assert!(eventually("an answer", || ask(20240)).ends_with("hello\n"));
    let state = servers.await_task(&alloc_id(240), "c", |state| state.state == "running");
    assert_eq!(kinds(&state).iter().filter(|kind| **kind == "Started").count(), 1);
    servers.stop(&alloc_id(240));
    servers.await_status(&alloc_id(240), "complete");
    eventually("no container", || engine.containers(&alloc_id(240)).is_empty().then_some(()));
    await_inventory(&before);
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn containers_of_podman_serve_ports_in_the_network_of_their_group() {
    if !alone("networks::containers_of_podman_serve_ports_in_the_network_of_their_group") {
        return;
    }
    let Some(podman) = podman::own("containers_of_podman_serve_ports") else { return };
    let before = inventory();
    let (base, servers) = (Base::new(), FakeServers::new());
    let script = "exec busybox nc -ll -p 8080 -e /bin/busybox echo from podman";
    let mut task = crate::podman::container(script, json!({}));
    task["Config"].as_object_mut().unwrap().remove("network_mode");
    servers.assign(networked(230, json!({"Mode": "bridge"}), json!([task])));
    let settings = || without_plugins(with_podman(base.path(), &podman, json!({})));
    let agent = start(settings(), &servers).await;
    servers.await_status(&alloc_id(230), "running");
    assert!(eventually("an answer", || ask(20230)).ends_with("from podman\n"));
    agent.shutdown().await;
    let agent = start(settings(), &servers).await;
    assert!(eventually("an answer", || ask(20230)).ends_with("from podman\n"));
    servers.stop(&alloc_id(230));
    servers.await_status(&alloc_id(230), "complete");
    assert!(podman.containers(&alloc_id(230)).is_empty());
    await_inventory(&before);
    agent.shutdown().await;
}

/// Where Debian has the plugins.
const PLUGINS: &str = "/usr/lib/cni";

#[tokio::test(flavor = "multi_thread")]
async fn installed_plugins_make_the_bridge_and_configured_networks() {
    if rustix::process::geteuid().is_root() && std::env::var_os(INSIDE).is_none() {
        install(&["containernetworking-plugins", "iptables"], &["/usr/lib/cni/bridge", "iptables"]);
    }
    if !alone("networks::installed_plugins_make_the_bridge_and_configured_networks") {
        return;
    }
    let (base, servers) = (Base::new(), FakeServers::new());
    let config = json!({"cniVersion": "1.0.0", "name": "mesh", "plugins": [
        {"type": "loopback"},
        {"type": "ptp", "ipam": {"type": "host-local", "subnet": "10.77.0.0/24", "dataDir": "/run/mesh"}}
    ]});
    let networked_settings = || {
        let mut settings = settings(base.path());
        settings.network.cni_path = vec![PLUGINS.into()];
        settings.network.cni_config_dir = base.path().join("cni");
        settings
    };
    std::fs::create_dir(base.path().join("cni")).unwrap();
    std::fs::write(base.path().join("cni/mesh.conflist"), config.to_string()).unwrap();
    let says = "echo $NOMAD_ALLOC_ADDR_web";
    servers.assign(networked(1, json!({"Mode": "bridge"}), json!([server("web", says)])));
    servers.assign(networked(2, json!({"Mode": "cni/mesh"}), json!([server("web", says)])));
    servers.assign(networked(3, json!({"Mode": "bridge", "Isolation": "job"}), json!([server("web", says)])));
    let agent = start(networked_settings(), &servers).await;
    let node = agent.local().context.node();
    let version = &node.attributes["plugins.cni.version.bridge"];
    assert!(!version.contains("builtin"), "{version}");
    let refused = servers.await_status(&alloc_id(3), "failed");
    let setup = refused.task_states["web"].events.iter().find(|event| event.kind == "Setup Failure").unwrap();
    assert!(setup.display_message.contains("isolation \"job\" needs the built-in bridge"), "{setup:?}");
    let status = servers.await_status(&alloc_id(1), "running").network_status.unwrap();
    assert!(status.address.starts_with("172.26.64."), "{status:?}");
    let expected = format!("{}:8080\n", status.address);
    assert_eq!(eventually("an answer", || ask(20001)), expected);
    let mesh = servers.await_status(&alloc_id(2), "running").network_status.unwrap();
    assert!(mesh.interface_name == "eth0" && mesh.address.starts_with("10.77.0."), "{mesh:?}");
    let inside = || TcpStream::connect((mesh.address.as_str(), 8080)).ok();
    eventually("an answer inside", inside);
    agent.shutdown().await;
    let agent = start(networked_settings(), &servers).await;
    assert_eq!(eventually("an answer", || ask(20001)), expected);
    servers.stop(&alloc_id(1));
    servers.stop(&alloc_id(2));
    servers.await_status(&alloc_id(1), "complete");
    servers.await_status(&alloc_id(2), "complete");
    // The plugins leave their bridge.
    eventually("nothing else is left", || {
        let left = inventory();
        (left.namespaces == 0 && left.interfaces == 2).then_some(())
    });
    agent.shutdown().await;
}

/// Names the directory and the number of the round of the agent that is killed.
const VICTIM: &str = "NODE_TEST_NETWORK_VICTIM";

/// How many kills there are, unless this says otherwise.
const KILLS: &str = "SOJOURN_TEST_KILLS";
const FEW: u32 = 12;

/// Not a test of its own: the agent that [`nothing_is_left_after_kills_at_any_moment`] kills. It sets networks up and
/// tears them down for as long as it lives.
#[tokio::test(flavor = "multi_thread")]
async fn victim() {
    let Ok(victim) = std::env::var(VICTIM) else { return };
    let [base, round, engine] = victim.split(' ').collect::<Vec<_>>()[..] else { panic!("{victim}") };
    let first: u8 = (round.parse::<u32>().unwrap() % 20 * 10) as u8;
    let servers = FakeServers::new();
    let (mut settings, tasks) = (
        settings(Path::new(base)),
        match engine {
            "" => json!([shell("t", "exec sleep 1000")]),
            _ => json!([joining_container("exec sleep 1000", json!({}))]),
        },
    );
    if !engine.is_empty() {
        settings = with_plugin(Path::new(base), json!({"endpoint": engine, "infra_image": engine::PAUSE}));
    }
    let assign = |id: u8| {
        let mode = ["bridge", "none", "bridge"][usize::from(id % 3)];
        servers.assign(networked(id, json!({"Mode": mode}), tasks.clone()));
    };
    let _agent = start(without_plugins(settings), &servers).await;
    for id in (first..first + 10).cycle() {
        assign(id);
        let other = first + (id - first + 5) % 10;
        servers.change(|cluster| drop(cluster.assigned.remove(&alloc_id(other))));
        tokio::time::sleep(Duration::from_millis(15)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_after_kills_at_any_moment() {
    if !alone("networks::nothing_is_left_after_kills_at_any_moment") {
        return;
    }
    let kills: u32 = std::env::var(KILLS).ok().and_then(|text| text.parse().ok()).unwrap_or(FEW);
    let base = Base::new();
    let before = inventory();
    let most = kill_agents(base.path(), "", kills, 900);
    assert!(most > before.interfaces, "the agents have made something");
    let agent = start(without_plugins(settings(base.path())), &FakeServers::new()).await;
    await_inventory(&before);
    eprintln!("{kills} kills: {before:?} before and after, {most} interfaces at most");
    agent.shutdown().await;
}

/// A busy host may take this long until an agent has begun.
const WITHIN_MS_MAX: u64 = 20_000;

/// Starts agents one after the other and kills each within so many milliseconds, or more where one had not come to anything
/// yet; returns the most interfaces that were left.
fn kill_agents(base: &Path, engine: &str, kills: u32, mut within_ms: u64) -> usize {
    let before = inventory().interfaces;
    let mut most = before;
    for round in 0..kills {
        let mut victim = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "networks::victim", "--nocapture"])
            .env(VICTIM, format!("{} {round} {engine}", base.display()))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut chance = [0; 2];
        getrandom::fill(&mut chance).unwrap();
        // The moment is what is tested, so it is one of chance.
        std::thread::sleep(Duration::from_millis(u64::from(u16::from_ne_bytes(chance)) % within_ms));
        victim.kill().unwrap();
        victim.wait().unwrap();
        let left = inventory().interfaces;
        most = most.max(left);
        if left <= before {
            within_ms = (within_ms * 3 / 2).min(WITHIN_MS_MAX);
        }
    }
    most
}

#[tokio::test(flavor = "multi_thread")]
async fn no_container_runs_after_kills_at_any_moment() {
    if !alone("networks::no_container_runs_after_kills_at_any_moment") {
        return;
    }
    let Some(engine) = engine::shared("no_container_runs") else { return };
    let kills: u32 = std::env::var(KILLS).ok().and_then(|text| text.parse().ok()).unwrap_or(FEW) / 3;
    let base = Base::new();
    let before = inventory();
    let most = kill_agents(base.path(), &engine.endpoint(), kills, 3000);
    let made = engine.containers("").len();
    let gc = json!({"dangling_containers": {"period": "1m", "creation_grace": "1m"}});
    let plugin = json!({"endpoint": engine.endpoint(), "infra_image": engine::PAUSE, "gc": gc});
    let agent = start(without_plugins(with_plugin(base.path(), plugin)), &FakeServers::new()).await;
    await_inventory(&before);
    // What the engine was busy with when an agent died is seen by one of the first sweeps, without any grace: the last of them
    // is over after a minute and a half. The network of an allocation that the agent still knew of has its grace, and goes with the
    // sweep after it.
    let running = || {
        let all = engine.containers("").into_iter();
        all.filter(|found| found.state == Some(ContainerSummaryStateEnum::RUNNING)).count()
    };
    eventually_within(Duration::from_secs(240), "no container runs", || (running() == 0).then_some(()));
    eprintln!("{kills} kills: {before:?} before and after, {most} interfaces and {made} containers before");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_whose_network_ends_with_the_engine_fails_and_leaves_nothing() {
    if !alone("networks::a_group_whose_network_ends_with_the_engine_fails_and_leaves_nothing") {
        return;
    }
    let Some(engine) = engine::own("a_group_whose_network_ends", false) else { return };
    let (base, servers) = (Base::new(), FakeServers::new());
    let before = inventory();
    let plugin = json!({"endpoint": engine.endpoint(), "infra_image": engine::PAUSE});
    let tasks = json!([joining_container("exec sleep 1000", json!({})), shell("s", "exec sleep 1000")]);
    let mut alloc = networked(1, json!({"Mode": "bridge"}), tasks);
    let policy = json!({"Attempts": 5, "Mode": "fail", "Interval": 60_000_000_000_u64, "Delay": 10_000_000});
    alloc.job.as_mut().unwrap().task_groups[0].restart_policy = Some(serde_json::from_value(policy).unwrap());
    servers.assign(alloc);
    let agent = start(without_plugins(with_plugin(base.path(), plugin)), &servers).await;
    servers.await_status(&alloc_id(1), "running");
    engine.kill();
    engine.await_start();
    // The servers place it anew, with another network.
    let update = servers.await_status(&alloc_id(1), "failed");
    let events = &update.task_states["c"].events;
    let text = "the network of the group has ended with its engine";
    assert!(events.iter().any(|event| event.display_message.contains(text)), "{events:?}");
    await_inventory(&before);
    agent.shutdown().await;
}
