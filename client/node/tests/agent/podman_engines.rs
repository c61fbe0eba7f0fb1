//! Engines of Podman: where their images come from and when they go, several of them, those of users, and addresses that
//! tasks choose.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::podman::{container, with_podman};
use crate::support::podman::{self, TestPodman};
use crate::support::*;

/// A program that holds the credentials of all registries, as long as this is held.
struct Helper(PathBuf);

impl Helper {
    /// In a directory where programs are found: their names are looked for there.
    fn install() -> Helper {
        let name = format!("docker-credential-sojourn-test-{}", std::process::id());
        let path = PathBuf::from("/usr/local/bin").join(name);
        let (user, secret) = (registry::USER, registry::PASSWORD);
        let script = format!(
            "#!/bin/sh\nread -r registry\nprintf '{{\"ServerURL\":\"%s\",\"Username\":\"{user}\",\"Secret\":\"{secret}\"}}' \"$registry\"\n"
        );
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        Helper(path)
    }

    /// As the operator names it.
    fn name(&self) -> String {
        self.0.file_name().unwrap().to_str().unwrap().replace("docker-credential-", "")
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).ok();
    }
}

/// A registry that gives its images at once.
fn open_registry(podman: &TestPodman) -> registry::Registry {
    let registry = registry::start(engine::archive(&podman.busybox()));
    registry.open();
    registry
}

fn has_image(podman: &TestPodman, name: &str) -> bool {
    podman.ask(&["image", "ls", "--format", "{{.Repository}}:{{.Tag}}"]).lines().any(|line| line == name)
}

#[tokio::test(flavor = "multi_thread")]
async fn images_of_podman_are_pulled_with_the_credentials_of_the_task_or_the_operator() {
    let Some(podman) = podman::own("images_of_podman_are_pulled") else { return };
    let (base, servers) = (Base::new(), FakeServers::new());
    let [own, in_file, by_file, by_program] = [(); 4].map(|()| open_registry(&podman));
    let helper = Helper::install();
    // `me:secret` in base64.
    let auths = json!({
        "auths": {&in_file.address: {"auth": "bWU6c2VjcmV0"}}, "credHelpers": {&by_file.address: helper.name()}
    });
    let config = base.path().join("auth.json");
    std::fs::write(&config, auths.to_string()).unwrap();
    let task = |registry: &registry::Registry, version: &str, auth: Value| {
        let image = format!("{}/app{version}", registry.address);
        let mut auth = auth;
        auth["tls_verify"] = json!(false);
        json!([container("true", json!({"image": image, "auth": auth}))])
    };
    let given = |password: &str| json!({"username": registry::USER, "password": password});
    servers.assign(alloc(1, "batch", task(&own, ":1", given("wrong"))));
    for (n, registry) in [(2, &in_file), (3, &by_file), (4, &by_program)] {
        servers.assign(alloc(n, "batch", task(registry, ":1", json!({}))));
    }
    servers.assign(alloc(5, "batch", task(&in_file, ":2", json!({}))));
    let more = json!({"auth": {"config": config, "helper": helper.name()}, "gc": {"image": true, "image_delay": "100ms"}});
    let agent = start(with_podman(base.path(), &podman, more), &servers).await;
    let why = |n| {
        let update = servers.await_status(&alloc_id(n), "failed");
        let mut events = update.task_states["t"].events.iter();
        let event = events.find(|event| event.display_message.contains("Failed to pull"));
        event.unwrap_or_else(|| panic!("{update:?}")).display_message.clone()
    };
    let unauthorized = why(1);
    assert!(
        unauthorized.contains("nauthorized") || unauthorized.contains("authentication"),
        "{unauthorized}"
    );
    for n in [2, 3, 4] {
        servers.await_status(&alloc_id(n), "complete");
    }
    assert!(why(5).contains("manifest unknown"), "{}", why(5));

    // With the right password it is there at last, by its digest too; and goes when nobody has it any more.
    servers.assign(alloc(6, "service", {
        let mut tasks = task(&own, ":1", given(registry::PASSWORD));
        tasks[0]["Config"]["args"] = json!(["-c", "exec sleep 1000"]);
        tasks
    }));
    servers.await_status(&alloc_id(6), "running");
    let image = format!("{}/app:1", own.address);
    assert!(has_image(&podman, &image));
    let digest = format!("@{}", own.digest);
    servers.assign(alloc(7, "batch", task(&own, &digest, given(registry::PASSWORD))));
    servers.await_status(&alloc_id(7), "complete");
    servers.stop(&alloc_id(6));
    servers.await_status(&alloc_id(6), "complete");
    eventually("the removal of the image", || (!has_image(&podman, &image)).then_some(()));
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_chooses_its_engine_of_podman() {
    let test = "a_task_chooses_its_engine_of_podman";
    let (Some(first), Some(second)) = (podman::own(test), podman::own(test)) else { return };
    let (base, servers) = (Base::new(), FakeServers::new());
    let script = "trap 'exit 3' TERM; while :; do sleep 0.1; done";
    servers.assign(alloc(1, "service", json!([container(script, json!({}))])));
    servers.assign(alloc(2, "service", json!([container(script, json!({"socket": "app"}))])));
    let sockets = |other: &str| {
        let mut settings = with_podman(base.path(), &first, json!({}));
        let plugin = settings.plugins.get_mut("podman").unwrap();
        let blocks = json!([{"name": "app", "socket_path": other}, {"socket_path": first.socket()}]);
        plugin.remove("socket_path");
        plugin.insert("socket".to_string(), blocks);
        settings
    };
    let agent = start(sockets(&second.socket()), &servers).await;
    for n in [1, 2] {
        servers.await_status(&alloc_id(n), "running");
    }
    let where_they_are =
        || [&first, &second].map(|engine| [1, 2].map(|n| engine.containers(&alloc_id(n)).len()));
    assert_eq!(where_they_are(), [[1, 0], [0, 1]]);
    let attributes = agent.local().context.node().attributes.0.clone();
    assert_eq!(attributes["driver.podman.app.socketName"], "app");
    assert_eq!(attributes["driver.podman.defaultPodman"], "true");

    // The next agent finds both, each where it is, and ends them there.
    agent.shutdown().await;
    let agent = start(sockets(&second.socket()), &servers).await;
    let state = |n| agent.local().allocs.get(&alloc_id(n)).unwrap().tasks.state("t").unwrap();
    for n in [1, 2] {
        assert_eq!((state(n).state.as_str(), state(n).restarts), ("running", 0));
        servers.stop(&alloc_id(n));
        servers.await_status(&alloc_id(n), "complete");
    }
    agent.shutdown().await;

    // Two names for one engine are refused, also where it has two sockets.
    let again = first.second_service();
    let agent = start(sockets(&again.socket), &servers).await;
    let info = agent.local().context.node().drivers["podman"].clone();
    assert!(!info.detected && !info.healthy, "{info:?}");
    let said = "socket \"default\" and socket \"app\" lead to the same engine, that of ";
    assert!(info.health_description.contains(said), "{info:?}");
    servers.assign(alloc(3, "batch", json!([container("true", json!({}))])));
    let update = servers.await_status(&alloc_id(3), "failed");
    let mut events = update.task_states["t"].events.iter();
    assert!(events.any(|event| event.display_message.contains(said)), "{update:?}");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_runs_with_the_engine_of_a_user() {
    let Some(podman) = podman::of_a_user("a_container_runs_with_the_engine_of_a_user") else { return };
    let (base, servers) = (Base::new(), FakeServers::new());
    std::fs::set_permissions(base.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let script = "cat /proc/self/uid_map; echo here > /local/made; trap 'echo asked; exit 3' TERM; \
                  while :; do echo line; sleep 0.1; done";
    servers.assign(alloc(1, "service", json!([container(script, json!({}))])));
    let agent = start(with_podman(base.path(), &podman, json!({})), &servers).await;
    assert_eq!(agent.local().context.node().attributes.0["driver.podman.rootless"], "true");
    servers.await_status(&alloc_id(1), "running");
    let out = || log(base.path(), 1, "t.stdout.0");
    eventually("output", || out().contains("line\n").then_some(()));
    let map: Vec<String> = out().lines().next().unwrap().split_whitespace().map(str::to_string).collect();
    assert_eq!(map[..2], ["0", "65534"], "the container's root is the user");
    let task = agent.local().allocs.get(&alloc_id(1)).unwrap().tasks.running("t").unwrap();
    let command = ["/bin/sh", "-c", "id; exit 4"].map(String::from).to_vec();
    let output = node::driver::exec::run_once(&*task, command, PATIENCE).await.unwrap();
    assert_eq!((output.exit.code, output.stdout.starts_with(b"uid=0")), (4, true));
    servers.stop(&alloc_id(1));
    servers.await_status(&alloc_id(1), "complete");
    assert!(out().ends_with("asked\n"), "{}", out());
    assert!(podman.containers(&alloc_id(1)).is_empty());
    agent.shutdown().await;
}

/// What an engine of a user gives a task that asks for no network, and what the operator says instead.
#[tokio::test(flavor = "multi_thread")]
async fn the_engine_of_a_user_has_a_usual_network() {
    let Some(podman) = podman::of_a_user("the_engine_of_a_user_has_a_usual_network") else { return };
    let task = || {
        let mut task = container("ip addr", json!({}));
        task["Config"].as_object_mut().unwrap().remove("network_mode");
        json!([task])
    };
    let usual = json!({});
    let none = json!({"networking": {"default_rootless_mode": "none"}});
    for (more, has_network) in [(usual, true), (none, false)] {
        let (base, servers) = (Base::new(), FakeServers::new());
        std::fs::set_permissions(base.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        servers.assign(alloc(1, "batch", task()));
        let agent = start(with_podman(base.path(), &podman, more), &servers).await;
        servers.await_status(&alloc_id(1), "complete");
        let out = log(base.path(), 1, "t.stdout.0");
        assert!(out.contains("inet 127.0.0.1/8"), "{out}");
        assert_eq!(out.contains("inet 10.0.2.100/24"), has_network, "{out}");
        agent.shutdown().await;
    }
}

/// A range of addresses that no other test process has: it goes by the number of this one. Each test begins at another number.
fn subnet(from: u32) -> String {
    let id = std::process::id();
    format!("10.{}.{}", from + id / 256 % 50, id % 256)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_chooses_its_addresses_of_both_families() {
    if !std::path::Path::new("/proc/net/if_inet6").exists() {
        eprintln!("SKIPPED a_task_chooses_its_addresses_of_both_families: this host has no IPv6");
        return;
    }
    let Some(podman) = podman::own("a_task_chooses_its_addresses_of_both_families") else { return };
    let (base, servers) = (Base::new(), FakeServers::new());
    let (name, net) = (format!("sojourn6-{}", std::process::id()), subnet(150));
    let net6 = format!("fd00:{:x}", std::process::id() & 0xffff);
    let (v4, v6) = (format!("{net}.0/24"), format!("{net6}::/64"));
    let made = podman.ask(&["network", "create", "--ipv6", "--subnet", &v4, "--subnet", &v6, &name]);
    assert_eq!(made.trim(), name);
    let script = "ip addr; trap 'exit 3' TERM; while :; do sleep 0.1; done";
    let task = |more: Value| {
        let mut config = json!({"network_mode": name});
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!([container(script, config)])
    };
    let by_keys = json!({"ipv4_address": format!("{net}.77"), "ipv6_address": format!("{net6}::77")});
    servers.assign(alloc(1, "service", task(by_keys)));
    let by_list = json!({"static_ips": [format!("{net6}::78"), format!("{net}.78")]});
    servers.assign(alloc(2, "service", task(by_list)));
    servers.assign(alloc(3, "batch", task(json!({"ipv6_address": "2001:db8::9"}))));
    let agent = start(with_podman(base.path(), &podman, json!({})), &servers).await;
    for (n, end) in [(1, "77"), (2, "78")] {
        servers.await_status(&alloc_id(n), "running");
        let out = || log(base.path(), n, "t.stdout.0");
        for text in [format!("inet {net}.{end}/24"), format!("inet6 {net6}::{end}/64")] {
            eventually(&text, || out().contains(&text).then_some(()));
        }
    }
    let update = servers.await_status(&alloc_id(3), "failed");
    let mut events = update.task_states["t"].events.iter();
    assert!(events.any(|event| event.display_message.contains("2001:db8::9")), "{update:?}");
    for n in [1, 2] {
        servers.stop(&alloc_id(n));
        servers.await_status(&alloc_id(n), "complete");
    }
    agent.shutdown().await;
    podman.ask(&["network", "rm", "-f", &name]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_chooses_its_addresses_in_a_network_of_podman() {
    let Some(podman) = podman::own("a_task_chooses_its_addresses") else { return };
    let (base, servers) = (Base::new(), FakeServers::new());
    let (name, net) = (format!("sojourn{}", std::process::id()), subnet(200));
    let made = podman.ask(&["network", "create", "--subnet", &format!("{net}.0/24"), &name]);
    assert_eq!(made.trim(), name);
    let script = "ip addr; trap 'exit 3' TERM; while :; do sleep 0.1; done";
    let task = |more: Value| {
        let mut config = json!({"network_mode": name});
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!([container(script, config)])
    };
    let single = json!({"ipv4_address": format!("{net}.77"), "static_mac": "92:d0:c6:0a:29:33"});
    servers.assign(alloc(1, "service", task(single)));
    servers.assign(alloc(2, "service", task(json!({"static_ips": [format!("{net}.78")]}))));
    let taken = json!({"ipv4_address": "203.0.113.9"});
    servers.assign(alloc(3, "batch", task(taken)));
    let agent = start(with_podman(base.path(), &podman, json!({})), &servers).await;
    for n in [1, 2] {
        servers.await_status(&alloc_id(n), "running");
    }
    let out = |n| log(base.path(), n, "t.stdout.0");
    for (n, text) in
        [(1, format!("inet {net}.77/24")), (1, "92:d0:c6:0a:29:33".into()), (2, format!("inet {net}.78/24"))]
    {
        eventually(&text, || out(n).contains(&text).then_some(()));
    }
    let update = servers.await_status(&alloc_id(3), "failed");
    let mut events = update.task_states["t"].events.iter();
    assert!(events.any(|event| event.display_message.contains("203.0.113.9")), "{update:?}");
    for n in [1, 2] {
        servers.stop(&alloc_id(n));
        servers.await_status(&alloc_id(n), "complete");
    }
    agent.shutdown().await;
    podman.ask(&["network", "rm", "-f", &name]);
}
