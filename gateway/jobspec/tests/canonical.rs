//! How defaults are merged, and what servers add. `contract.rs` compares each single one with the contract.

use jobspec::{apply_defaults, canonicalize, unsupported};
use model::document::{Duration, Job, UpdateStrategy, input};
use serde_json::{Value, json};

fn job(value: Value) -> Job {
    input::from_value(value).unwrap()
}

fn smallest(kind: &str) -> Job {
    job(json!({
        "ID": "example", "Type": kind,
        "TaskGroups": [{ "Name": "g", "Tasks": [{ "Name": "t", "Driver": "raw_exec" }] }],
    }))
}

#[test]
fn canonical_jobs_stay_as_they_are() {
    for kind in ["service", "batch", "system", "sysbatch"] {
        let mut once = smallest(kind);
        canonicalize(&mut once);
        let mut twice = once.clone();
        canonicalize(&mut twice);
        assert_eq!(once, twice, "{kind}");
    }
}

#[test]
fn servers_set_datacenters_pool_and_identity_and_keep_two_fields_of_the_job_update() {
    let mut given = smallest("service");
    given.update = Some(UpdateStrategy { max_parallel: Some(3), canary: Some(1), ..Default::default() });
    canonicalize(&mut given);
    assert_eq!(given.datacenters.0, ["*"]);
    assert_eq!(given.node_pool.as_deref(), Some("default"));
    let update = given.update.unwrap();
    assert_eq!((update.max_parallel, update.canary), (Some(3), Some(0)));
    assert_eq!(given.task_groups[0].update.as_ref().unwrap().canary, Some(1));
    let identity = given.task_groups[0].tasks[0].identity.as_ref().unwrap();
    assert_eq!((identity.name.as_str(), identity.audience[0].as_str()), ("default", "nomadproject.io"));
}

#[test]
fn groups_take_what_they_leave_open_from_the_job() {
    let mut given = smallest("service");
    let of_job = json!({
        "Reschedule": { "Attempts": 3, "Interval": "1h" },
        "Migrate": { "MaxParallel": 2 },
        "Update": { "MaxParallel": 5, "HealthCheck": "manual" },
    });
    let of_job = job(of_job);
    (given.reschedule, given.migrate, given.update) = (of_job.reschedule, of_job.migrate, of_job.update);
    given.task_groups[0].update = Some(UpdateStrategy { max_parallel: Some(7), ..Default::default() });
    canonicalize(&mut given);
    let group = &given.task_groups[0];
    let reschedule = group.reschedule_policy.as_ref().unwrap();
    // The default of services stands next to what was said: validation tells the author that the two disagree.
    assert_eq!((reschedule.attempts, reschedule.unlimited), (Some(3), Some(true)));
    assert_eq!(reschedule.delay, Some(Duration::from_secs(30)));
    assert_eq!(group.migrate.as_ref().unwrap().max_parallel, Some(2));
    let update = group.update.as_ref().unwrap();
    assert_eq!((update.max_parallel, update.health_check.as_deref()), (Some(7), Some("manual")));
    assert_eq!((given.reschedule, given.migrate), (None, None));
}

#[test]
fn a_scaled_group_starts_at_its_minimum() {
    let mut given = smallest("service");
    given.task_groups[0].scaling =
        job(json!({ "TaskGroups": [{ "Scaling": { "Min": 4, "Max": 9 } }] })).task_groups[0].scaling.clone();
    apply_defaults(&mut given);
    assert_eq!(given.task_groups[0].count, Some(4));
    assert!(
        given.task_groups[0].scaling.as_ref().unwrap().target.is_empty(),
        "the target is the server's to say"
    );
    canonicalize(&mut given);
    let scaling = given.task_groups[0].scaling.as_ref().unwrap();
    assert_eq!(scaling.target["Group"], "g");
    assert_eq!((scaling.enabled, scaling.kind.as_str()), (Some(true), "horizontal"));
}

#[test]
fn services_and_checks_are_named_after_their_place() {
    let mut given = job(json!({
        "ID": "shop",
        "TaskGroups": [{
            "Name": "web",
            "Services": [{ "Checks": [{ "Type": "tcp" }], "CheckRestart": { "Limit": 3 } }],
            "Tasks": [{ "Name": "t", "Services": [{}, { "Name": "${JOB}-x-${TASK}" }] }],
        }],
    }));
    apply_defaults(&mut given);
    assert_eq!(given.task_groups[0].services[0].checks[0].name, "", "checks are named by servers");
    canonicalize(&mut given);
    let group = &given.task_groups[0];
    assert_eq!(group.services[0].name, "shop-web");
    assert_eq!(group.services[0].checks[0].name, "service: \"shop-web\" check");
    assert_eq!(group.services[0].checks[0].check_restart.as_ref().unwrap().limit, 3);
    assert_eq!(group.tasks[0].services[0].name, "shop-web-t");
    assert_eq!(group.tasks[0].services[1].name, "shop-x-t");
}

/// D90. The scheduling reference has servers take the older spellings in and ignore them; here they mean what they say.
#[test]
fn older_spellings_of_disconnect_become_the_block() {
    let mut given = smallest("service");
    given.task_groups[0].max_client_disconnect = Some(Duration::from_secs(60));
    let warning =
        "group \"g\": max_client_disconnect is an older spelling of lost_after in a disconnect block";
    assert_eq!(unsupported(&given), [warning]);
    canonicalize(&mut given);
    let group = &given.task_groups[0];
    let disconnect = group.disconnect.as_ref().unwrap();
    assert_eq!(disconnect.lost_after, Some(Duration::from_secs(60)));
    assert_eq!((disconnect.replace, disconnect.reconcile.as_deref()), (Some(true), Some("best_score")));
    assert_eq!(group.max_client_disconnect, None);
}

#[test]
fn services_of_the_mesh_get_their_proxies_once() {
    let mut given = job(json!({
        "ID": "shop",
        "TaskGroups": [{
            "Name": "web",
            "Networks": [{ "Mode": "bridge" }],
            "Services": [
                { "Name": "front", "Connect": { "SidecarService": {}, "SidecarTask": { "User": "envoy", "Resources": { "MemoryMB": 64 } } } },
                { "Name": "plain" },
            ],
            "Tasks": [{ "Name": "t", "Driver": "podman" }],
        }, {
            "Name": "edge",
            "Networks": [{}],
            "Services": [{ "Name": "way", "Connect": { "Gateway": { "Ingress": {} } } }],
        }, {
            "Name": "self",
            "Networks": [{}],
            "Services": [{ "Name": "own", "Connect": { "Native": true } }],
            "Tasks": [{ "Name": "t", "Driver": "docker" }],
        }],
    }));
    canonicalize(&mut given);
    let web = &given.task_groups[0];
    let proxy = &web.tasks[1];
    assert_eq!((proxy.name.as_str(), proxy.kind.as_str()), ("connect-proxy-front", "connect-proxy:front"));
    assert_eq!((proxy.driver.as_str(), proxy.user.as_str()), ("podman", "envoy"));
    assert_eq!(proxy.resources.as_ref().unwrap().memory_mb, Some(64));
    assert_eq!(proxy.config["image"], "${meta.connect.sidecar_image}");
    assert!(proxy.lifecycle.as_ref().unwrap().sidecar);
    assert_eq!(proxy.kill_timeout, Some(Duration::from_secs(5)));
    let port = &web.networks[0].dynamic_ports[0];
    assert_eq!(
        (port.label.as_str(), port.to, port.host_network.as_str()),
        ("connect-proxy-front", -1, "default")
    );
    let gateway = &given.task_groups[1].tasks[0];
    assert_eq!(
        (gateway.name.as_str(), gateway.config["network_mode"].as_str()),
        ("connect-ingress-way", Some("host"))
    );
    assert_eq!(gateway.resources.as_ref().unwrap().cpu, Some(250));
    let own = &given.task_groups[2];
    assert_eq!((own.services[0].task_name.as_str(), own.tasks[0].kind.as_str()), ("t", "connect-native:own"));
    let once = given.clone();
    canonicalize(&mut given);
    assert_eq!(given, once);
}

fn exposing(checks: Value) -> Job {
    job(json!({
        "ID": "shop",
        "TaskGroups": [{
            "Name": "web",
            "Networks": [{ "Mode": "bridge", "DynamicPorts": [{ "Label": "api", "To": 9001 }] }],
            "Services": [
                { "Name": "front", "PortLabel": "8080", "Connect": { "SidecarService": {} }, "Checks": checks },
                { "Name": "back", "PortLabel": "api", "Connect": { "SidecarService": {} }, "Checks": checks },
                { "Name": "plain", "PortLabel": "api", "Checks": checks },
            ],
            "Tasks": [{ "Name": "t", "Driver": "docker" }],
        }],
    }))
}

#[test]
fn exposed_checks_get_a_port_and_a_path_through_the_proxy_once() {
    let mut given = exposing(json!([
        { "Type": "http", "Path": "/health", "Expose": true },
        { "Type": "grpc", "Path": "/grpc.health.v1.Health/Check", "PortLabel": "own", "Expose": true },
        { "Type": "http", "Path": "/metrics" },
    ]));
    canonicalize(&mut given);
    let group = &given.task_groups[0];
    let paths = |at: usize| {
        let sidecar = group.services[at].connect.as_ref().unwrap().sidecar_service.as_ref().unwrap();
        let paths = &sidecar.proxy.as_ref().unwrap().expose.as_ref().unwrap().paths;
        let shown = paths.iter().map(|path| {
            format!("{} {} {} {}", path.path, path.protocol, path.local_path_port, path.listener_port)
        });
        shown.collect::<Vec<_>>()
    };
    let front = ["/health http 8080 svc_front_ck_e1f621", "/grpc.health.v1.Health/Check http2 8080 own"];
    assert_eq!(paths(0), front);
    assert_eq!(paths(1)[0], "/health http 9001 svc_back_ck_4e93ac");
    assert_eq!(group.services[0].checks[0].port_label, "svc_front_ck_e1f621");
    assert_eq!(group.services[0].checks[2].port_label, "");
    assert_eq!(group.services[2].checks[0].port_label, "", "without a proxy nothing is let through");
    let ports: Vec<(&str, i64, &str)> = group.networks[0]
        .dynamic_ports
        .iter()
        .map(|port| (port.label.as_str(), port.to, port.host_network.as_str()))
        .filter(|(label, ..)| label.starts_with("svc_"))
        .collect();
    assert_eq!(ports, [("svc_front_ck_e1f621", -1, "default"), ("svc_back_ck_4e93ac", -1, "default")]);
    let once = given.clone();
    canonicalize(&mut given);
    assert_eq!(given, once);
}

#[test]
fn an_exposed_check_keeps_its_port_when_only_its_interval_changes() {
    let label = |check: Value| {
        let mut given = exposing(json!([check]));
        canonicalize(&mut given);
        given.task_groups[0].services[0].checks[0].port_label.clone()
    };
    let first = label(json!({ "Type": "http", "Path": "/a", "Expose": true, "Interval": "1s" }));
    assert_eq!(first, label(json!({ "Type": "http", "Path": "/a", "Expose": true, "Interval": "9s" })));
    assert_ne!(first, label(json!({ "Type": "http", "Path": "/b", "Expose": true, "Interval": "1s" })));
}

/// `name address:port` of what the proxy binds to, then the labels of the ports, in a network of this mode.
fn bound(mode: &str, gateway: Value) -> (Vec<String>, Vec<String>) {
    let mut given = job(json!({
        "ID": "edge",
        "TaskGroups": [{
            "Name": "g",
            "Networks": [{ "Mode": mode }],
            "Services": [{ "Name": "way", "PortLabel": "wan", "Connect": { "Gateway": gateway } }],
        }],
    }));
    canonicalize(&mut given);
    let once = given.clone();
    canonicalize(&mut given);
    assert_eq!(given, once);
    let group = &given.task_groups[0];
    let gateway = group.services[0].connect.as_ref().unwrap().gateway.as_ref().unwrap();
    let Some(proxy) = &gateway.proxy else { return (Vec::new(), Vec::new()) };
    assert!(proxy.connect_timeout.is_some());
    assert!(proxy.envoy_gateway_no_default_bind != proxy.envoy_gateway_bind_tagged_addresses);
    let addresses = proxy.envoy_gateway_bind_addresses.iter();
    let ports = group.networks[0].dynamic_ports.iter().map(|port| format!("{} {}", port.label, port.to));
    (
        addresses.map(|(name, bound)| format!("{name} {}:{}", bound.address, bound.port)).collect(),
        ports.collect(),
    )
}

#[test]
fn gateways_in_a_network_of_their_own_listen_on_all_its_addresses() {
    let ingress = json!({ "Ingress": { "Listeners": [
        { "Port": 8080, "Services": [{ "Name": "a" }, { "Name": "b" }] },
        { "Port": 9090, "Services": [{ "Name": "c" }] },
    ] } });
    let terminating = json!({ "Terminating": { "Services": [{ "Name": "old" }] } });
    let mesh = json!({ "Mesh": {}, "Proxy": { "EnvoyGatewayBindTaggedAddresses": true } });
    let (lan, wan) = ("lan 0.0.0.0:-1", "wan 0.0.0.0:-1");
    for mode in ["bridge", "cni/own"] {
        for (gateway, addresses, ports) in [
            (&ingress, &["a 0.0.0.0:8080", "b 0.0.0.0:8080", "c 0.0.0.0:9090"][..], &[][..]),
            (&terminating, &["default 0.0.0.0:-1"], &["connect-terminating-way -1"]),
            (&mesh, &[lan, wan], &["connect-mesh-way-lan -1"]),
        ] {
            let (bound, made) = bound(mode, gateway.clone());
            assert_eq!((bound.as_slice(), made.as_slice()), (&strings(addresses)[..], &strings(ports)[..]));
        }
    }
    assert_eq!(bound("host", ingress), (vec![], vec![]), "the node's own addresses will do");
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}

#[test]
fn addresses_that_a_gateway_names_are_left_alone() {
    let named = json!({ "Address": "10.0.0.1", "Port": 80 });
    let gateway = |proxy: Value| json!({ "Terminating": {}, "Proxy": proxy });
    let of = |proxy: Value| bound("bridge", gateway(proxy)).0;
    let tagged = "EnvoyGatewayBindTaggedAddresses";
    assert_eq!(of(json!({ "EnvoyGatewayBindAddresses": { "x": named }, tagged: true })), ["x 10.0.0.1:80"]);
    assert_eq!(of(json!({ "EnvoyGatewayNoDefaultBind": true })), [""; 0]);
}
