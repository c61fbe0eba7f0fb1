//! Services and checks as a whole agent has them.

use std::time::Duration;

use model::document::{Allocation, Timestamp};
use node::alloc::handle::AllocCommand;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::watch;
use wire::messages::{AllocCheckStatus, ServiceRegistration};

use crate::support::*;

fn service(name: &str, extra: Value) -> Value {
    let mut service = json!({"Name": name, "Provider": "nomad", "PortLabel": "http", "Tags": ["v1"]});
    service.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    service
}

/// A service allocation with a port, one service of the group and one of its task.
fn two_services(of_group: Value, mut task: Value, of_task: Value) -> Allocation {
    task["Services"] = json!([of_task]);
    with_port(group_alloc(1, "service", json!({"Services": [of_group], "Tasks": [task]})), 20001)
}

fn with_port(mut alloc: Allocation, port: i64) -> Allocation {
    let ports =
        json!({"Shared": {"Ports": [{"Label": "http", "Value": port, "HostIP": "127.0.0.1"}]}, "Tasks": {}});
    alloc.allocated_resources = serde_json::from_value(ports).unwrap();
    alloc
}

fn id(workload: &str, name: &str) -> String {
    format!("_nomad-task-{}-{workload}-{name}-http", alloc_id(1))
}

/// Waits until the servers have exactly these instances.
#[track_caller]
fn await_services(servers: &FakeServers, ids: &[String]) -> Vec<ServiceRegistration> {
    let mut wanted = ids.to_vec();
    wanted.sort();
    let known = || servers.cluster.lock().unwrap().services.clone();
    eventually(&format!("services {wanted:?}, last {:?}", known().keys()), || {
        let known = known();
        known.keys().eq(&wanted).then(|| known.into_values().collect())
    })
}

fn forever() -> Value {
    mock("t", json!({"run_for": "1h"}))
}

#[tokio::test(flavor = "multi_thread")]
async fn services_are_registered_changed_in_place_and_removed_before_the_delay() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let mut task = forever();
    task["ShutdownDelay"] = json!("1h");
    let alloc =
        two_services(service("web", json!({})), task, service("api", json!({"CanaryTags": ["canary"]})));
    let mut canary = alloc.clone();
    canary.deployment_status = serde_json::from_value(json!({"Canary": true})).unwrap();
    servers.assign(canary);
    let agent = start(settings(base.path()), &servers).await;
    let both = [id("group-g", "web"), id("t", "api")];
    let known = await_services(&servers, &both);
    assert_eq!(
        (known[0].service_name.as_str(), known[0].address.as_str(), known[0].port),
        ("web", "127.0.0.1", 20001)
    );
    assert_eq!((&*known[0].node_id, &*known[0].alloc_id), (&*agent.node_id(), &*alloc_id(1)));
    assert_eq!((&known[0].tags.0, &known[1].tags.0), (&vec!["v1".to_string()], &vec!["canary".to_string()]));

    servers.assign(alloc.clone());
    eventually("the canary is promoted", || {
        (await_services(&servers, &both)[1].tags.0 == ["v1"]).then_some(())
    });
    let mut newer = alloc;
    newer.job.as_mut().unwrap().task_groups[0].services[0] =
        serde_json::from_value(service("shop", json!({"Tags": ["v2"]}))).unwrap();
    servers.assign(newer);
    let both = [id("group-g", "shop"), id("t", "api")];
    assert_eq!(await_services(&servers, &both)[0].tags.0, ["v2"]);

    servers.stop(&alloc_id(1));
    await_services(&servers, &[]);
    let state =
        servers.await_task(&alloc_id(1), "t", |state| kinds(state).contains(&"Waiting for shutdown delay"));
    assert_eq!(state.state, "running", "clients have left before it is killed");
    let mut urgent = servers.cluster.lock().unwrap().assigned[&alloc_id(1)].clone();
    urgent.desired_transition.no_shutdown_delay = Some(true);
    servers.assign(urgent);
    servers.await_status(&alloc_id(1), "complete");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn services_are_registered_again_by_the_next_agent_and_by_one_that_the_servers_forgot() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let task = shell("t", "exec tail -f /dev/null");
    let alloc = two_services(service("web", json!({})), task, service("api", json!({})));
    servers.assign(alloc.clone());
    let agent = start(settings(base.path()), &servers).await;
    let both = [id("group-g", "web"), id("t", "api")];
    await_services(&servers, &both);
    servers.await_status(&alloc_id(1), "running");
    agent.shutdown().await;

    // While no agent runs, the job loses a service, and the servers lose the other.
    let mut newer = alloc;
    newer.job.as_mut().unwrap().task_groups[0].services.0.clear();
    servers.assign(newer);
    servers.change(|cluster| drop(cluster.services.remove(&both[1])));
    let beats = servers.cluster.lock().unwrap().beats;
    let agent = start(settings(base.path()), &servers).await;
    await_services(&servers, &both[1..]);
    // One that was never known would wait before it registers again.
    eventually("a heartbeat", || (servers.cluster.lock().unwrap().beats > beats).then_some(()));

    servers.change(|cluster| {
        cluster.services.clear();
        cluster.forgotten = true;
    });
    await_services(&servers, &both[1..]);
    servers.stop(&alloc_id(1));
    servers.await_status(&alloc_id(1), "complete");
    await_services(&servers, &[]);
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_are_away_or_refuse_hold_up_no_task() {
    let (base, servers) = (Base::new(), FakeServers::new());
    servers.change(|cluster| cluster.refuses_services = true);
    servers.assign(two_services(service("web", json!({})), forever(), service("api", json!({}))));
    let agent = start(settings(base.path()), &servers).await;
    servers.await_status(&alloc_id(1), "running");
    servers.change(|cluster| {
        cluster.refuses_services = false;
        cluster.unreachable = true;
    });
    servers.change(|cluster| cluster.unreachable = false);
    await_services(&servers, &[id("group-g", "web"), id("t", "api")]);
    servers.stop(&alloc_id(1));
    await_services(&servers, &[]);
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_done_fails_by_name() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let consul = json!({"Name": "web"});
    servers.assign(two_services(consul, forever(), service("api", json!({}))));
    let mut task = forever();
    task["Services"] = json!([service("api", json!({"AddressMode": "alloc"}))]);
    servers.assign(alloc(2, "service", json!([task])));
    let agent = start(settings(base.path()), &servers).await;
    let failed = servers.await_status(&alloc_id(1), "failed");
    let text = &failed.task_states["t"]
        .events
        .iter()
        .find(|event| event.kind == "Setup Failure")
        .unwrap()
        .display_message;
    assert!(text.contains("\"group_services\" failed: service \"web\": provider \"consul\""), "{text}");
    let failed = servers.await_status(&alloc_id(2), "failed");
    let events = &failed.task_states["t"].events;
    let text = &events.iter().find(|event| event.kind == "Task hook failed").unwrap().display_message;
    assert!(text.starts_with("task_services: service \"api\": address_mode \"alloc\": "), "{text}");
    agent.shutdown().await;
}

/// Answers HTTP with the status that it is set to; 0 for not at all.
async fn web_server(status: u16) -> (i64, watch::Sender<u16>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (to, status) = watch::channel(status);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut status = status.clone();
            tokio::spawn(async move {
                if matches!(stream.read(&mut [0; 4096]).await, Ok(0) | Err(_)) {
                    return;
                }
                let Ok(code) = status.wait_for(|code| *code > 0).await.map(|code| *code) else { return };
                let answer =
                    format!("HTTP/1.1 {code} X\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody");
                stream.write_all(answer.as_bytes()).await.ok();
            });
        }
    });
    (port.into(), to)
}

fn http_check(name: &str, extra: Value) -> Value {
    let mut check =
        json!({"Name": name, "Type": "http", "Path": "/health", "Interval": "50ms", "Timeout": "10s"});
    check.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    check
}

/// A service of the task (of the mock driver) with these checks.
fn checked(port: i64, checks: Value, group: Value) -> Allocation {
    let mut task = forever();
    task["Services"] = json!([service("api", json!({"Checks": checks}))]);
    let mut all = json!({"Tasks": [task]});
    all.as_object_mut().unwrap().extend(group.as_object().unwrap().clone());
    with_port(group_alloc(1, "service", all), port)
}

#[track_caller]
fn await_check(
    agent: &node::Agent,
    name: &str,
    holds: impl Fn(&AllocCheckStatus) -> bool,
) -> AllocCheckStatus {
    let all = || agent.local().context.checks.of(&alloc_id(1));
    eventually(&format!("check {name}, last {:?}", all()), || {
        all().into_values().find(|check| check.check == name && holds(check))
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_pass_fail_and_time_out() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let (port, health) = web_server(200).await;
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let tcp = |name: &str, port: String| json!({"Name": name, "Type": "tcp", "PortLabel": port, "Interval": "50ms", "Timeout": "1s"});
    let checks = json!([
        http_check("web", json!({})),
        http_check("hurried", json!({"Timeout": "100ms", "OnUpdate": "ignore"})),
        tcp("open", String::new()),
        tcp("closed", closed.to_string()),
    ]);
    servers.assign(checked(port, checks, json!({})));
    let agent = start(settings(base.path()), &servers).await;
    let is = |status: &'static str| move |check: &AllocCheckStatus| check.status == status;
    let web = await_check(&agent, "web", is("success"));
    assert_eq!(
        (web.status_code, web.output.as_str(), web.mode.as_str()),
        (200, "nomad: http ok", "healthiness")
    );
    assert_eq!((web.service.as_str(), web.task.as_str(), web.group.as_str()), ("api", "t", "job.g[0]"));
    assert!(web.timestamp > 0);
    assert_eq!(await_check(&agent, "open", is("success")).output, "nomad: tcp ok");
    let closed = await_check(&agent, "closed", is("failure"));
    assert!(closed.output.starts_with("nomad: dial tcp 127.0.0.1:"), "{closed:?}");
    health.send_replace(503);
    let sick = await_check(&agent, "web", is("failure"));
    assert_eq!((sick.status_code, sick.output.as_str()), (503, "body"));
    health.send_replace(0);
    let late = await_check(&agent, "hurried", |check| check.output.contains("no answer"));
    assert_eq!((late.output.as_str(), late.mode.as_str()), ("nomad: no answer within 100ms", "readiness"));
    servers.stop(&alloc_id(1));
    servers.await_status(&alloc_id(1), "complete");
    assert!(agent.local().context.checks.of(&alloc_id(1)).is_empty(), "an end purges them");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_are_run_as_the_newest_version_of_the_job_has_them() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let (port, _health) = web_server(200).await;
    let check = |expected: &str| http_check("web", json!({"Header": {"X-Expected": [expected]}}));
    servers.assign(checked(port, json!([check("a"), http_check("old", json!({}))]), json!({})));
    let agent = start(settings(base.path()), &servers).await;
    let is = |status: &'static str| move |check: &AllocCheckStatus| check.status == status;
    let before = await_check(&agent, "web", is("success"));
    await_check(&agent, "old", is("success"));
    let (other, _health) = web_server(503).await;
    // Its address is no part of a check's id.
    servers.assign(checked(other, json!([check("b"), http_check("new", json!({}))]), json!({})));
    let after = await_check(&agent, "web", is("failure"));
    assert_eq!((after.id, after.status_code), (before.id, 503));
    await_check(&agent, "new", is("failure"));
    let all = agent.local().context.checks.of(&alloc_id(1));
    assert_eq!(all.len(), 2, "{all:?}");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_that_fails_too_often_restarts_its_task_under_the_policy() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let (port, _health) = web_server(500).await;
    let check = http_check("sick", json!({"CheckRestart": {"Limit": 2, "Grace": "10ms"}}));
    let policy = json!({"Attempts": 1, "Mode": "fail", "Interval": "10m", "Delay": "10ms"});
    servers.assign(checked(port, json!([check]), json!({"RestartPolicy": policy})));
    let agent = start(settings(base.path()), &servers).await;
    let state = servers.await_status(&alloc_id(1), "failed").task_states["t"].clone();
    let seen = kinds(&state);
    // Nothing deploys it, so its health is watched for a migration.
    let seen = seen.strip_suffix(&["Alloc Unhealthy"]).unwrap_or(&seen);
    let wanted = [
        "Restart Signaled",
        "Terminated",
        "Restarting",
        "Started",
        "Restart Signaled",
        "Terminated",
        "Not Restarting",
    ];
    assert!(seen.ends_with(&wanted), "{seen:?}");
    let asked = state.events.iter().find(|event| event.kind == "Restart Signaled").unwrap();
    assert_eq!(asked.restart_reason, "healthcheck: check \"sick\" unhealthy");
    assert_eq!(state.restarts, 1);
    await_services(&servers, &[]);
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_of_the_group_restarts_all_its_tasks() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let (port, health) = web_server(500).await;
    let check = http_check("sick", json!({"CheckRestart": {"Limit": 1, "Grace": "10ms"}}));
    let group = json!({
        "Services": [service("web", json!({"Checks": [check]}))],
        "RestartPolicy": {"Attempts": 1000, "Mode": "fail", "Interval": "10m", "Delay": "10ms"},
        "Tasks": [forever(), mock("u", json!({"run_for": "1h"}))],
    });
    servers.assign(with_port(group_alloc(1, "service", group), port));
    let agent = start(settings(base.path()), &servers).await;
    for task in ["t", "u"] {
        let state = servers.await_task(&alloc_id(1), task, |state| state.restarts >= 1);
        let asked = state.events.iter().find(|event| event.kind == "Restart Signaled").unwrap();
        assert_eq!(asked.restart_reason, "healthcheck: check \"sick\" unhealthy");
    }
    health.send_replace(200);
    await_check(&agent, "sick", |check| check.status == "success");
    await_services(&servers, &[id("group-g", "web")]);
    let handle = agent.local().allocs.get(&alloc_id(1)).unwrap();
    handle.ask(|reply| AllocCommand::Restart { task: None, revive: true, reply }).await.unwrap();
    await_services(&servers, &[id("group-g", "web")]);
    agent.shutdown().await;
}

/// An update block with this deadline, for an allocation of a deployment.
fn deployed(mut alloc: Allocation, health_check: &str, deadline: Duration) -> Allocation {
    alloc.deployment_id = "c1e5a5bd-0000-4000-8000-000000000001".into();
    alloc.job.as_mut().unwrap().task_groups[0].update = serde_json::from_value(json!({
        "HealthCheck": health_check, "MinHealthyTime": "100ms", "HealthyDeadline": format!("{}ms", deadline.as_millis())
    }))
    .unwrap();
    alloc
}

fn health(alloc: &Allocation) -> Option<(bool, Timestamp)> {
    let status = alloc.deployment_status.as_ref()?;
    Some((status.healthy?, status.timestamp))
}

#[track_caller]
fn await_health(servers: &FakeServers) -> (bool, Timestamp) {
    eventually("health", || health(&servers.update(&alloc_id(1))?))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_allocation_is_healthy_only_when_its_checks_pass() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let (port, health_of) = web_server(500).await;
    let alloc = checked(port, json!([http_check("web", json!({}))]), json!({}));
    servers.assign(deployed(alloc, "checks", Duration::from_secs(300)));
    let agent = start(settings(base.path()), &servers).await;
    servers.await_status(&alloc_id(1), "running");
    await_check(&agent, "web", |check| check.status == "failure");
    assert_eq!(health(&servers.update(&alloc_id(1)).unwrap()), None);
    health_of.send_replace(200);
    let passed = await_check(&agent, "web", |check| check.status == "success");
    let (healthy, at) = await_health(&servers);
    assert!(healthy && at.time().secs() >= passed.timestamp);
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_allocation_is_unhealthy_at_the_deadline_unless_only_its_tasks_count() {
    for (health_check, healthy) in [("checks", false), ("task_states", true)] {
        let (base, servers) = (Base::new(), FakeServers::new());
        let (port, _health) = web_server(500).await;
        let alloc = checked(port, json!([http_check("web", json!({}))]), json!({}));
        servers.assign(deployed(alloc, health_check, Duration::from_secs(1)));
        let agent = start(settings(base.path()), &servers).await;
        assert_eq!(await_health(&servers).0, healthy, "{health_check}");
        let state = servers
            .await_task(&alloc_id(1), "t", |state| healthy || kinds(state).contains(&"Alloc Unhealthy"));
        if !healthy {
            assert_eq!(state.events.last().unwrap().message, "Services not healthy by deadline: api");
        }
        agent.shutdown().await;
    }
}
