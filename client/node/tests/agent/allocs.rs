//! A whole agent against servers in memory, with the mock driver.

use crate::support::*;
use metrics::Sampled;
use node::figures::PublishedFigures;
use node::settings::HostVolume;
use node::task::events::DEAD;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_allocation_runs_to_its_end_and_is_reported() {
    let (base, servers) = (Base::new(), FakeServers::new());
    servers.assign(alloc(1, "batch", json!([mock("t", json!({"run_for": "50ms"}))])));
    let agent = start(settings(base.path()), &servers).await;
    let update = servers.await_status(&alloc_id(1), "complete");
    let task = &update.task_states["t"];
    assert_eq!(kinds(task), ["Received", "Task Setup", "Started", "Terminated"]);
    assert!(!task.failed && !task.finished_at.is_zero() && task.started_at <= task.finished_at);
    assert_eq!(update.client_description, "All tasks have completed");
    assert_eq!(update.node_id, agent.node_id());
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_node_registers_as_what_it_is() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let agent = start(settings(base.path()), &servers).await;
    let node = eventually("registration", || servers.cluster.lock().unwrap().registered.first().cloned());
    assert_eq!((node.name.as_str(), node.datacenter.as_str()), ("alpha", "dc1"));
    assert_eq!(node.attributes["driver.raw_exec"], "1");
    assert_eq!(node.attributes["kernel.name"], "linux");
    assert_eq!(node.meta["rack"], "r7");
    let resources = node.node_resources.unwrap();
    assert_eq!((resources.cpu.cpu_shares, resources.memory.memory_mb), (4000, 1024));
    assert_eq!(resources.networks[0].ip, "127.0.0.1");
    assert!(node.drivers["mock_driver"].healthy);
    agent.shutdown().await;
    let again = FakeServers::new();
    let agent = start(settings(base.path()), &again).await;
    assert_eq!(agent.node_id(), node.id, "it stays who it is");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_offers_its_host_volumes_and_the_drivers_that_are_allowed() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let mut settings = settings(base.path());
    let volume = HostVolume { path: base.path().into(), read_only: true };
    settings.host_volumes = [("data".to_string(), volume)].into();
    settings.driver_filter.denied = ["raw_exec".to_string()].into();
    let agent = start(settings.clone(), &servers).await;
    let node = eventually("registration", || servers.cluster.lock().unwrap().registered.first().cloned());
    let offered = &node.host_volumes["data"];
    assert_eq!((offered.path.as_str(), offered.read_only), (base.path().to_str().unwrap(), true));
    assert_eq!((offered.name.as_str(), offered.id.as_str()), ("data", ""));
    assert_eq!(
        node.drivers.keys().collect::<Vec<_>>(),
        ["docker", "exec", "java", "mock_driver", "podman", "qemu"]
    );
    assert!(!node.attributes.contains_key("driver.raw_exec"));
    agent.shutdown().await;
    settings.host_volumes.get_mut("data").unwrap().path = "/no/such/path".into();
    let refused = node::Agent::start(settings, |_| FakeServers::new()).await.unwrap_err().to_string();
    assert!(
        refused.contains("client.host_volume \"data\": expected an existing path, \"/no/such/path\""),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_task_is_restarted_by_its_policy_and_then_given_up() {
    let (base, servers) = (Base::new(), FakeServers::new());
    servers.assign(group_alloc(
        1,
        "service",
        json!({
            "RestartPolicy": {"Attempts": 2, "Mode": "fail", "Interval": "1h", "Delay": "1ms"},
            "Tasks": [mock("t", json!({"exit_code": 1}))]
        }),
    ));
    let agent = start(settings(base.path()), &servers).await;
    let update = servers.await_status(&alloc_id(1), "failed");
    let task = &update.task_states["t"];
    assert_eq!((task.restarts, task.failed, task.state.as_str()), (2, true, DEAD));
    assert!(kinds(task).contains(&"Not Restarting"));
    let setups = kinds(task).into_iter().filter(|kind| *kind == "Task Setup").count();
    // The oldest events are dropped by now.
    assert!(setups <= 1, "a restart builds nothing anew");
    let read = async |allocations| {
        node::figures::read(&agent.local(), PublishedFigures { node: false, allocations }).await.sampled
    };
    let about_it = |one: &Sampled| one.labels.iter().any(|(name, _)| *name == "alloc_id");
    assert!(!read(false).await.iter().any(about_it), "it is published with allocations");
    let counted = read(true).await;
    let total = |name: &str| {
        let found = counted.iter().find(|one| one.name.strip_prefix("nomad.client.") == Some(name));
        found.map_or(0, |one| one.total_count)
    };
    let totals = ["running", "restart", "failed", "complete", "oom_killed"];
    assert_eq!(totals.map(|name| total(&format!("allocs.{name}"))), [3, 2, 1, 0, 0], "{counted:?}");
    let hooks = ["alloc_hook.prerun.success", "alloc_hook.prerun.elapsed", "task_hook.prestart.success"];
    assert_eq!(hooks.map(total), [1, 1, 3], "{counted:?}");
    assert_eq!(["alloc_hook.prerun.failed", "task_hook.prestart.failed"].map(total), [0, 0]);
    let labels = &counted.iter().find(|one| about_it(one)).unwrap().labels;
    let of = |label: &str| labels.iter().find(|(name, _)| *name == label).map(|(_, value)| value.as_str());
    assert_eq!((of("task"), of("alloc_id")), (Some("t"), Some(alloc_id(1).as_str())));
    assert!(of("node_id").is_some_and(|node| !node.is_empty()));
    assert_eq!((of("node_status"), of("node_scheduling_eligibility")), (Some("ready"), Some("eligible")));
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn delay_mode_keeps_trying() {
    let (base, servers) = (Base::new(), FakeServers::new());
    servers.assign(group_alloc(
        1,
        "service",
        json!({
            "RestartPolicy": {"Attempts": 1, "Mode": "delay", "Interval": "100ms", "Delay": "1ms"},
            "Tasks": [mock("t", json!({"exit_code": 1}))]
        }),
    ));
    let agent = start(settings(base.path()), &servers).await;
    let task = servers.await_task(&alloc_id(1), "t", |task| task.restarts >= 4);
    assert!(!task.failed);
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_allocation_ends_leader_first() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let mut leader = mock("leader", json!({"run_for": "1h", "kill_after": "200ms"}));
    leader["Leader"] = json!(true);
    let tasks = json!([leader, mock("follower", json!({"run_for": "1h"}))]);
    servers.assign(alloc(1, "service", tasks));
    let agent = start(settings(base.path()), &servers).await;
    servers.await_task(&alloc_id(1), "follower", |task| task.state == "running");
    servers.stop(&alloc_id(1));
    let update = servers.await_status(&alloc_id(1), "complete");
    let [leader, follower] = ["leader", "follower"].map(|name| &update.task_states[name]);
    assert!(leader.finished_at <= follower.finished_at);
    assert_eq!(kinds(follower).last(), Some(&"Killed"));
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks_run_around_the_main_task() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let hook = |name: &str, stage: &str, sidecar: bool, config| {
        let mut task = mock(name, config);
        task["Lifecycle"] = json!({"Hook": stage, "Sidecar": sidecar});
        task
    };
    servers.assign(alloc(
        1,
        "batch",
        json!([
            hook("init", "prestart", false, json!({"run_for": "20ms"})),
            hook("proxy", "prestart", true, json!({"run_for": "1h"})),
            mock("main", json!({"run_for": "50ms"})),
            hook("hello", "poststart", false, json!({"run_for": "1ms"})),
            hook("clean", "poststop", false, json!({"run_for": "1ms"})),
        ]),
    ));
    let agent = start(settings(base.path()), &servers).await;
    let update = servers.await_status(&alloc_id(1), "complete");
    let task = |name: &str| &update.task_states[name];
    assert!(task("init").finished_at <= task("main").started_at);
    assert!(task("main").started_at <= task("hello").started_at);
    assert!(kinds(task("proxy")).contains(&"Main Tasks Dead"));
    assert!(task("proxy").finished_at <= task("clean").started_at);
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_task_takes_its_siblings_along() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let tasks =
        [mock("bad", json!({"run_for": "50ms", "exit_code": 2})), mock("good", json!({"run_for": "1h"}))];
    servers.assign(alloc(1, "service", json!(tasks)));
    let agent = start(settings(base.path()), &servers).await;
    let good = servers.await_task(&alloc_id(1), "good", |task| task.state == DEAD);
    assert!(kinds(&good).contains(&"Sibling Task Failed"));
    assert_eq!(servers.await_status(&alloc_id(1), "failed").client_description, "Failed tasks");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_supported_fails_with_a_reason() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let mut vault = mock("t", json!({"run_for": "1h"}));
    vault["Vault"] = json!({"Role": "r"});
    servers.assign(alloc(1, "service", json!([vault])));
    servers.assign(alloc(2, "service", json!([mock("t", json!({"run_fro": "1h"}))])));
    servers.assign(group_alloc(
        3,
        "service",
        json!({
            "Networks": [{"Mode": "overlay"}], "Tasks": [mock("t", json!({"run_for": "1h"}))]
        }),
    ));
    let mut broken = alloc(4, "service", json!([]));
    broken.task_group = "other".into();
    servers.assign(broken);
    let agent = start(settings(base.path()), &servers).await;
    for (id, kind, text) in [
        (1, "Task hook failed", "vault: this node has no Vault \"default\""),
        (2, "Failed Validation", "driver mock_driver has no config key \"run_fro\""),
        (3, "Setup Failure", "failed to setup alloc: pre-run hook \"network\" failed"),
    ] {
        let update = servers.await_status(&alloc_id(id), "failed");
        let events = &update.task_states["t"].events;
        let event = events.iter().find(|event| event.kind == kind).unwrap_or_else(|| panic!("{events:?}"));
        assert!(event.display_message.starts_with(text), "{}", event.display_message);
    }
    let update = servers.await_status(&alloc_id(4), "failed");
    assert!(update.client_description.contains("the job has no task group \"other\""));
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forgotten_node_registers_again() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let agent = start(settings(base.path()), &servers).await;
    eventually("registration", || (servers.cluster.lock().unwrap().registered.len() == 1).then_some(()));
    servers.cluster.lock().unwrap().forgotten = true;
    eventually("a second registration", || {
        (servers.cluster.lock().unwrap().registered.len() == 2).then_some(())
    });
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_run_on_without_servers_and_reconnect_when_these_return() {
    let (base, servers) = (Base::new(), FakeServers::new());
    servers.assign(alloc(1, "service", json!([mock("t", json!({"run_for": "1h"}))])));
    let agent = start(settings(base.path()), &servers).await;
    servers.await_status(&alloc_id(1), "running");
    servers.change(|cluster| cluster.unreachable = true);
    let before = servers.cluster.lock().unwrap().calls.len();
    eventually("failing calls", || (servers.cluster.lock().unwrap().calls.len() > before + 1).then_some(()));
    servers.change(|cluster| {
        cluster.unreachable = false;
        cluster.updates.clear();
    });
    let mut lost = servers.cluster.lock().unwrap().assigned[&alloc_id(1)].clone();
    lost.client_status = "unknown".into();
    servers.assign(lost);
    let update = servers.await_status(&alloc_id(1), "running");
    assert_eq!(kinds(&update.task_states["t"]).last(), Some(&"Reconnected"));
    assert_eq!(update.task_states["t"].restarts, 0);
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_allocation_the_servers_dropped_is_destroyed() {
    let (base, servers) = (Base::new(), FakeServers::new());
    servers.assign(alloc(1, "service", json!([mock("t", json!({"run_for": "1h"}))])));
    let agent = start(settings(base.path()), &servers).await;
    servers.await_status(&alloc_id(1), "running");
    let dir = base.path().join("alloc").join(alloc_id(1));
    assert!(dir.join("t/local").is_dir());
    servers.forget_alloc(&alloc_id(1));
    eventually("removal", || (!dir.exists()).then_some(()));
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_version_of_the_job_does_not_restart_the_task() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let first = alloc(1, "service", json!([mock("t", json!({"run_for": "1h"}))]));
    servers.assign(first.clone());
    let agent = start(settings(base.path()), &servers).await;
    servers.await_status(&alloc_id(1), "running");
    let mut second = first;
    second.job.as_mut().unwrap().version = Some(7);
    servers.assign(second);
    let local = agent.local();
    let handle = local.allocs.get(&alloc_id(1)).unwrap();
    let version = || handle.alloc.borrow().job.as_ref().and_then(|job| job.version);
    eventually("the new version", || (version() == Some(7)).then_some(()));
    assert_eq!(handle.tasks.state("t").unwrap().restarts, 0);
    assert_eq!(handle.tasks.state("t").unwrap().state, "running");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_gets_the_health_of_its_allocation() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let mut healthy = group_alloc(
        1,
        "service",
        json!({
            "Update": {"MinHealthyTime": "100ms", "HealthyDeadline": "1m", "HealthCheck": "task_states"},
            "Tasks": [mock("t", json!({"run_for": "1h"}))]
        }),
    );
    healthy.deployment_id = "d".into();
    let mut failing = group_alloc(2, "service", json!({"Tasks": [mock("t", json!({"exit_code": 1}))]}));
    failing.deployment_id = "d".into();
    servers.assign(healthy);
    servers.assign(failing);
    let agent = start(settings(base.path()), &servers).await;
    for (id, expected) in [(1, true), (2, false)] {
        let health = eventually("a verdict", || servers.update(&alloc_id(id))?.deployment_status?.healthy);
        assert_eq!(health, expected, "allocation {id}");
    }
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn too_long_a_run_is_ended_as_complete() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let mut long = group_alloc(
        1,
        "batch",
        json!({
            "MaxRunDuration": "1s", "Tasks": [mock("t", json!({"run_for": "1h"}))]
        }),
    );
    long.create_time = node::clock::now().0;
    servers.assign(long);
    let agent = start(settings(base.path()), &servers).await;
    let update = servers.await_status(&alloc_id(1), "complete");
    assert_eq!(update.client_description, "allocation exceeded max_run_duration");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_allocation_that_ended_before_is_not_run_again() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let mut ended = alloc(1, "batch", json!([mock("t", json!({"run_for": "1ms"}))]));
    ended.client_status = "complete".into();
    servers.assign(ended);
    servers.assign(alloc(2, "batch", json!([mock("t", json!({"run_for": "1ms"}))])));
    let agent = start(settings(base.path()), &servers).await;
    servers.await_status(&alloc_id(2), "complete");
    assert!(agent.local().allocs.get(&alloc_id(1)).is_none());
    assert!(!base.path().join("alloc").join(alloc_id(1)).exists());
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_oldest_ended_allocations_make_room_and_running_ones_stay() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let mut settings = settings(base.path());
    settings.gc.allocs_max = 2;
    settings.gc.interval = std::time::Duration::from_secs(3600);
    let agent = start(settings, &servers).await;
    for id in [1, 2] {
        servers.assign(alloc(id, "batch", json!([mock("t", json!({"run_for": "1ms"}))])));
        servers.await_status(&alloc_id(id), "complete");
    }
    servers.assign(alloc(3, "service", json!([mock("t", json!({"run_for": "1h"}))])));
    servers.await_status(&alloc_id(3), "running");
    let local = agent.local();
    eventually("room", || local.allocs.get(&alloc_id(1)).is_none().then_some(()));
    assert!(local.allocs.get(&alloc_id(2)).is_some() && local.allocs.get(&alloc_id(3)).is_some());
    // Too many of them run; the one that ends is what there is to remove, and that does not wait for an interval.
    servers.assign(alloc(4, "service", json!([mock("t", json!({"run_for": "1h"}))])));
    servers.await_status(&alloc_id(4), "running");
    eventually("room", || local.allocs.get(&alloc_id(2)).is_none().then_some(()));
    servers.assign(alloc(5, "batch", json!([mock("t", json!({"run_for": "300ms"}))])));
    servers.await_status(&alloc_id(5), "complete");
    eventually("room", || local.allocs.get(&alloc_id(5)).is_none().then_some(()));
    assert!(local.allocs.get(&alloc_id(3)).is_some() && local.allocs.get(&alloc_id(4)).is_some());
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_servers_only_what_may_run_alone_goes_on() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let tasks = json!([mock("t", json!({"run_for": "1h"}))]);
    servers.assign(group_alloc(
        1,
        "service",
        json!({"Tasks": tasks, "Disconnect": {"StopOnClientAfter": "1s"}}),
    ));
    servers.assign(alloc(2, "service", tasks));
    let mut settings = settings(base.path());
    // Registration and the first heartbeat come at once.
    settings.dev = true;
    // Whatever has ended is in the way.
    settings.gc.allocs_max = 1;
    settings.gc.interval = std::time::Duration::from_millis(100);
    let agent = start(settings, &servers).await;
    servers.await_status(&alloc_id(1), "running");
    servers.await_status(&alloc_id(2), "running");
    servers.change(|cluster| cluster.unreachable = true);
    let local = agent.local();
    let end = || local.allocs.get(&alloc_id(1)).expect("it stays until the servers know").is_done();
    eventually("the end", || end().then_some(()));
    assert_eq!(local.allocs.get(&alloc_id(2)).unwrap().tasks.state("t").unwrap().state, "running");
    // Room is made every second.
    eventually("time to make room", || {
        let task = local.allocs.get(&alloc_id(1))?.tasks.state("t")?;
        (node::clock::now().0 - task.finished_at.time().0 > 2_000_000_000).then_some(())
    });
    assert!(end());
    // The servers would show it as running for ever.
    servers.change(|cluster| cluster.unreachable = false);
    servers.await_status(&alloc_id(1), "complete");
    eventually("room", || local.allocs.get(&alloc_id(1)).is_none().then_some(()));
    agent.shutdown().await;
    assert!(!base.path().join("alloc").join(alloc_id(2)).exists(), "in development mode nothing stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_call_that_succeeds_after_an_outage_has_a_heartbeat_sent() {
    let (base, servers) = (Base::new(), FakeServers::new());
    servers.change(|cluster| cluster.ttl = Some(std::time::Duration::from_secs(3600)));
    servers.assign(alloc(1, "service", json!([mock("t", json!({"run_for": "1h"}))])));
    let mut settings = settings(base.path());
    // Retries come after a second; an undisturbed heartbeat would come after an hour.
    settings.dev = true;
    let agent = start(settings, &servers).await;
    servers.await_status(&alloc_id(1), "running");
    let beats = || servers.cluster.lock().unwrap().beats;
    eventually("the first heartbeat", || (beats() == 1).then_some(()));
    servers.change(|cluster| cluster.unreachable = true);
    let failed = |calls: &[&str]| calls.iter().filter(|call| **call == "client_allocs").count();
    let before = failed(&servers.cluster.lock().unwrap().calls);
    eventually("a call that fails", || {
        (failed(&servers.cluster.lock().unwrap().calls) > before + 1).then_some(())
    });
    servers.change(|cluster| (cluster.unreachable, cluster.wants_heartbeat) = (false, true));
    eventually("a heartbeat", || (beats() > 1).then_some(()));
    // Its reports are refused until then.
    servers.change(|cluster| {
        cluster.updates.clear();
        cluster.wants_heartbeat = true;
    });
    servers.stop(&alloc_id(1));
    eventually("a report that is refused", || {
        let cluster = servers.cluster.lock().unwrap();
        (cluster.calls.last() == Some(&"update_allocs")).then_some(())
    });
    servers.change(|cluster| cluster.wants_heartbeat = false);
    let before = beats();
    servers.await_status(&alloc_id(1), "complete");
    eventually("a heartbeat after the report", || (beats() > before).then_some(()));
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sticky_data_moves_to_the_successor_after_the_predecessor_ended() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let group = || {
        json!({
            "EphemeralDisk": {"Sticky": true}, "Tasks": [mock("t", json!({"run_for": "1h", "kill_after": "300ms"}))]
        })
    };
    servers.assign(group_alloc(1, "service", group()));
    let agent = start(settings(base.path()), &servers).await;
    servers.await_status(&alloc_id(1), "running");
    let data = |id| base.path().join("alloc").join(alloc_id(id)).join("alloc/data/db");
    std::fs::write(data(1), "rows").unwrap();
    servers.stop(&alloc_id(1));
    let mut next = group_alloc(2, "service", group());
    next.previous_allocation = alloc_id(1);
    servers.assign(next);
    let second = servers.await_task(&alloc_id(2), "t", |task| task.state == "running");
    let first = servers.await_status(&alloc_id(1), "complete");
    assert!(first.task_states["t"].finished_at <= second.started_at);
    assert_eq!(std::fs::read_to_string(data(2)).unwrap(), "rows");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replacement_waits_for_what_it_replaces_on_another_node() {
    let running = listening::running().await;
    let servers = &running.servers;
    let previous = alloc(7, "service", json!([mock("t", json!({}))]));
    let set = |status: &str| {
        let mut previous = previous.clone();
        previous.client_status = status.into();
        servers.change(|cluster| drop(cluster.elsewhere.insert(alloc_id(7), previous)));
    };
    set("running");
    let group = json!({"EphemeralDisk": {"Sticky": true, "Migrate": true}, "Tasks": [mock("t", json!({"run_for": "1h"}))]});
    let mut next = group_alloc(1, "service", group);
    next.previous_allocation = alloc_id(7);
    servers.assign(next);
    let mut orphan = alloc(2, "service", json!([mock("t", json!({"run_for": "1h"}))]));
    orphan.previous_allocation = alloc_id(8);
    servers.assign(orphan);
    servers.await_status(&alloc_id(2), "running");
    let asked = || servers.cluster.lock().unwrap().calls.iter().filter(|call| **call == "alloc").count();
    // One call for each predecessor, and one that waits for a change.
    eventually("the questions", || (asked() >= 3).then_some(()));
    set("running");
    eventually("one more", || (asked() >= 4).then_some(()));
    let waiting = running.agent.local().allocs.get(&alloc_id(1)).unwrap().tasks.state("t").unwrap();
    assert_eq!(kinds(&waiting), ["Received"]);
    assert_eq!(allocations(&running.agent).await, [("blocked", 1.0), ("migrating", 0.0), ("pending", 1.0)]);
    set("complete");
    let task = servers.await_task(&alloc_id(1), "t", |task| task.state == "running");
    let message = task.events.iter().find(|event| event.kind == "Task hook message").unwrap();
    let why =
        format!("ephemeral_disk: the data of allocation {} was not fetched from its node: ", alloc_id(7));
    assert!(message.display_message.starts_with(&why), "{message:?}");
    assert_eq!(allocations(&running.agent).await, [("blocked", 0.0), ("migrating", 0.0), ("pending", 0.0)]);
    running.agent.shutdown().await;
}

/// How many of them wait, as the metrics of the node say.
async fn allocations(agent: &node::Agent) -> [(&'static str, f64); 3] {
    let figures = node::figures::read(&agent.local(), PublishedFigures::default()).await;
    ["blocked", "migrating", "pending"].map(|what| {
        let name = format!("nomad.client.allocations.{what}");
        (what, figures.gauges.iter().find(|gauge| gauge.name == name).unwrap().value)
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_preempted_here_ends_before_what_takes_its_room() {
    let (base, servers) = (Base::new(), FakeServers::new());
    servers.assign(alloc(1, "service", json!([mock("t", json!({"run_for": "1h", "kill_after": "300ms"}))])));
    let agent = start(settings(base.path()), &servers).await;
    servers.await_status(&alloc_id(1), "running");
    servers.stop(&alloc_id(1));
    let mut next = alloc(2, "service", json!([mock("t", json!({"run_for": "1h"}))]));
    next.preempted_allocations = vec![alloc_id(1)].into();
    servers.assign(next);
    let second = servers.await_task(&alloc_id(2), "t", |task| task.state == "running");
    let first = servers.await_status(&alloc_id(1), "complete");
    assert!(first.task_states["t"].finished_at <= second.started_at);
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_allocations_at_once_are_all_run() {
    let (base, servers) = (Base::new(), FakeServers::new());
    // More than one call fetches.
    let ids: Vec<u8> = (0..200).collect();
    for id in &ids {
        servers.assign(alloc(*id, "batch", json!([mock("t", json!({"run_for": "1ms"}))])));
    }
    let mut settings = settings(base.path());
    settings.gc.allocs_max = 1000;
    let agent = start(settings, &servers).await;
    for id in &ids {
        servers.await_status(&alloc_id(*id), "complete");
    }
    agent.shutdown().await;
}
