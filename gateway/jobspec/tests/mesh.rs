//! The proxies of the service mesh: what is added for them, and where they may run.

use jobspec::{canonicalize, validate};
use model::document::{Duration, Job};
use serde_json::{Value, json};

use super::canonical::job;
use super::judge::{errors, parsed, with_group, with_task};

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

/// A group with one service, `behind` its proxy or not, and one exposed check.
fn with_check(mode: &str, behind: &str, port: &str, check: &str) -> String {
    with_group(&format!(
        r#"network {{
  mode = "{mode}"
  port "http" {{}}
  port "api" {{ to = 9001 }}
}}
service {{
  name = "front"
  port = "{port}"
  {behind}
  check {{
    expose = true
    interval = "1s"
    timeout = "1s"
    {check}
  }}
}}"#
    ))
}

#[test]
fn only_what_a_proxy_in_a_bridge_can_let_through_is_exposed() {
    const PROXY: &str = "connect {\n sidecar_service {}\n}";
    const HTTP: &str = "type = \"http\"\npath = \"/health\"";
    for port in ["9001", "api"] {
        assert_eq!(errors(&with_check("bridge", PROXY, port, HTTP)), [""; 0], "{port}");
    }
    for (mode, behind, port, check, message) in [
        ("bridge", "", "9001", HTTP, "expose needs a service with sidecar_service"),
        ("bridge", PROXY, "9001", "type = \"tcp\"", "only http and grpc checks are exposed"),
        ("host", PROXY, "9001", HTTP, "exactly one network, of mode \"bridge\""),
        ("bridge", PROXY, "http", HTTP, "cannot be determined from its port \"http\""),
    ] {
        let errors = errors(&with_check(mode, behind, port, check));
        assert!(errors.iter().any(|wrong| wrong.contains(message)), "{message}: {errors:?}");
    }
    let of_task = "service {\n check {\n type = \"http\"\n path = \"/\"\n expose = true\n }\n}";
    let errors = errors(&with_task(of_task));
    let message = "Job.TaskGroups[0].Tasks[0].Services[0].Checks[0].Expose";
    assert!(errors.iter().any(|wrong| wrong.starts_with(message)), "{errors:?}");
    let warnings = validate(&parsed(&with_check("bridge", PROXY, "9001", "type = \"grpc\""))).warnings;
    assert!(warnings.iter().any(|warning| warning.contains("the check is not exposed")), "{warnings:?}");
}

#[test]
fn proxies_of_the_mesh_need_one_network_to_run_in() {
    let with = |networks: &str, connect: &str| {
        let service =
            format!("service {{\n name = \"a\"\n port = \"80\"\n connect {{\n{connect} {{}}\n }}\n}}");
        errors(&with_group(&format!("{networks}\n{service}")))
    };
    let network = |mode: &str| format!("network {{\n mode = \"{mode}\"\n}}");
    for mode in ["bridge", "cni/own"] {
        assert_eq!(with(&network(mode), "sidecar_service"), [""; 0], "{mode}");
        assert_eq!(with(&network(mode), "gateway"), [""; 0], "{mode}");
    }
    assert_eq!(with(&network("host"), "gateway"), [""; 0]);
    let (none, two) = (String::new(), [network("bridge"), network("bridge")].join("\n"));
    for networks in [none.clone(), two, network("host"), network("none")] {
        let errors = with(&networks, "sidecar_service");
        let message = "sidecar_service needs exactly one network";
        assert!(errors.iter().any(|wrong| wrong.contains(message)), "{networks}: {errors:?}");
    }
    for networks in [none, network("none")] {
        let errors = with(&networks, "gateway");
        let message = "a gateway needs exactly one network";
        assert!(errors.iter().any(|wrong| wrong.contains(message)), "{networks}: {errors:?}");
    }
}
