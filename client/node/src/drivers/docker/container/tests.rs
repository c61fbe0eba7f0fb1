//! Tables of what becomes of a task's keys.

use std::collections::BTreeMap;
use std::path::Path;

use bollard::models::MountType;
use model::document::PortMapping;
use serde_json::{Value, json};

use super::super::super::containers::parts::{name, port_map};
use super::super::keys::TASK;
use super::super::settings::PLUGIN;
use super::*;
use crate::driver::{TaskDevice, TaskMount, TaskNames};
use crate::layout::AllocDir;
use crate::testing::task_config;

const ID: &str = "5d16e7fe-8a2e-4b44-9c0a-3c7ab13b9f01";

fn settings(config: Value) -> Settings {
    let config = config.as_object().unwrap().clone().into_iter().collect();
    Settings::read(&Values::read("docker", PLUGIN, config).unwrap(), None).unwrap()
}

fn task_in(base: &Path, config: Value) -> Result<TaskConfig, String> {
    let mut block: BTreeMap<String, Value> = config.as_object().unwrap().clone().into_iter().collect();
    block.entry("image".to_string()).or_insert(json!("bb:1"));
    let dir = AllocDir::new(base, ID).unwrap();
    Ok(TaskConfig {
        alloc_id: ID.to_string(),
        task: "web".to_string(),
        instance: "1".to_string(),
        config: Values::read("docker", TASK, block)?,
        env: BTreeMap::from([("A".to_string(), "1".to_string())]),
        dir: dir.task("web"),
        shared_dir: dir.shared(),
        limits: Limits { cpu_mhz: 500, memory_mb: 64, memory_max_mb: 0, node_cpu_mhz: 4000, node_cores: 2 },
        ports: vec![
            PortMapping { label: "http".into(), value: 20100, to: 80, host_ip: "10.0.0.1".into() },
            PortMapping { label: "same".into(), value: 20101, to: 0, host_ip: "10.0.0.1".into() },
        ],
        mounts: vec![TaskMount {
            host_path: "/srv/data".into(),
            task_path: "/data".to_string(),
            read_only: true,
            propagation: "rslave",
            selinux_label: String::new(),
        }],
        names: TaskNames { job_id: "j".into(), node_id: "n".into(), ..TaskNames::default() },
        ..task_config()
    })
}

fn task(config: Value) -> TaskConfig {
    task_in(Path::new("/data"), config).unwrap()
}

fn made(plugin: Value, config: Value) -> Result<ContainerCreateBody, String> {
    let config = task_in(Path::new("/data"), config)?;
    body(&settings(plugin), &config, "sha256:1")
}

fn host(plugin: Value, config: Value) -> HostConfig {
    made(plugin, config).unwrap().host_config.unwrap()
}

#[test]
fn a_plain_task_has_its_directories_and_what_tells_whose_it_is() {
    let body = made(json!({"extra_labels": ["job_*", "node_id"]}), json!({})).unwrap();
    assert_eq!((body.image.as_deref(), &body.cmd, &body.entrypoint), (Some("sha256:1"), &None, &None));
    assert_eq!(body.env.unwrap(), ["A=1"]);
    let labels: BTreeMap<_, _> = body.labels.unwrap().into_iter().collect();
    let expected = [
        ("com.hashicorp.nomad.alloc_id", ID),
        ("com.hashicorp.nomad.job_id", "j"),
        ("com.hashicorp.nomad.node_id", "n"),
        ("sojourn.node_id", "n"),
    ];
    assert_eq!(labels, expected.map(|(name, value)| (name.to_string(), value.to_string())).into());
    let host = body.host_config.unwrap();
    let alloc = format!("/data/{ID}");
    assert_eq!(
        host.binds.unwrap(),
        [
            format!("{alloc}/alloc:/alloc"),
            format!("{alloc}/web/local:/local"),
            format!("{alloc}/web/secrets:/secrets"),
            format!("{alloc}/alloc/logs:/alloc/logs:ro"),
            "/srv/data:/data:ro,rslave".to_string(),
        ]
    );
    assert_eq!((host.memory, host.memory_swap, host.cpu_shares), (Some(64 * MIB), Some(64 * MIB), Some(500)));
    assert_eq!((host.pids_limit, host.network_mode.as_deref()), (Some(-1), Some("default")));
    assert_eq!(host.log_config.unwrap().config.unwrap()["max-file"], "2");
    assert_eq!(name(&task(json!({}))), format!("web-{ID}"));
}

#[test]
fn commands_and_arguments_are_those_of_the_job_or_the_image() {
    let cmd = |config| made(json!({}), config).unwrap().cmd;
    assert_eq!(cmd(json!({"command": "a", "args": ["b", 1]})).unwrap(), ["a", "b", "1"]);
    assert_eq!(cmd(json!({"args": ["b"]})).unwrap(), ["b"]);
    let body = made(json!({}), json!({"entrypoint": ["/init"], "work_dir": "/x", "tty": true})).unwrap();
    assert_eq!((body.entrypoint.unwrap(), body.working_dir.unwrap()), (vec!["/init".into()], "/x".into()));
    assert_eq!((body.tty, body.open_stdin), (Some(true), Some(false)));
    let body = made(json!({}), json!({"healthchecks": {"disable": true}})).unwrap();
    assert_eq!(body.healthcheck.unwrap().test.unwrap(), ["NONE"]);
}

#[test]
fn memory_beyond_what_is_reserved_is_a_hard_limit() {
    let of = |memory_max_mb, hard| {
        let limits = Limits { memory_mb: 64, memory_max_mb, ..Limits::default() };
        let mut host = HostConfig::default();
        memory(&limits, hard, &mut host)?;
        let mib = |bytes: Option<i64>| bytes.map(|bytes| bytes / MIB);
        Ok::<_, String>((mib(host.memory), mib(host.memory_reservation), mib(host.memory_swap)))
    };
    assert_eq!(of(0, 0), Ok((Some(64), None, Some(64))));
    assert_eq!(of(128, 0), Ok((Some(128), Some(64), Some(128))));
    assert_eq!(of(128, 256), Ok((Some(256), Some(64), Some(256))));
    assert_eq!(of(-1, 0), Ok((None, Some(64), None)));
    assert_eq!(of(0, 32), Err("memory_hard_limit 32 is below memory, 64".to_string()));
}

#[test]
fn the_cpu_is_shared_or_limited() {
    let of = |cpu_mhz, node_cpu_mhz| Limits { cpu_mhz, node_cpu_mhz, ..Limits::default() }.cpu_shares();
    assert_eq!((of(0, 4000), of(500, 4000), of(300_000, 524_288)), (2, 500, 150_000));
    let host = host(json!({}), json!({"cpu_hard_limit": true, "ulimit": {"nofile": "10:20", "core": 0}}));
    // An eighth of two cores.
    assert_eq!((host.cpu_period, host.cpu_quota), (Some(100_000), Some(25_000)));
    let ulimits: BTreeMap<_, _> = host
        .ulimits
        .unwrap()
        .into_iter()
        .map(|limit| (limit.name.unwrap(), (limit.soft, limit.hard)))
        .collect();
    assert_eq!(ulimits["nofile"], (Some(10), Some(20)));
    assert_eq!(ulimits["core"], (Some(0), Some(0)));
    let mut own = task(json!({}));
    own.cores = vec![1, 0, 3];
    let host = body(&settings(json!({})), &own, "i").unwrap().host_config.unwrap();
    assert_eq!(host.cpuset_cpus.unwrap(), "0-1,3");
}

#[test]
fn ports_of_the_group_are_published() {
    let body = made(json!({}), json!({"ports": ["http", "same"]})).unwrap();
    assert_eq!(body.exposed_ports.unwrap(), ["20101/tcp", "20101/udp", "80/tcp", "80/udp"]);
    let bindings = body.host_config.unwrap().port_bindings.unwrap();
    let binding = &bindings["80/udp"].as_ref().unwrap()[0];
    assert_eq!((binding.host_ip.as_deref(), binding.host_port.as_deref()), (Some("10.0.0.1"), Some("20100")));
    assert_eq!(port_map(&task(json!({"ports": ["http"]}))), [("http".to_string(), 80)].into());
}

#[test]
fn networks_of_users_take_names_and_addresses() {
    let config = json!({"network_mode": "blue", "network_aliases": ["db"], "ipv4_address": "10.1.0.9"});
    let endpoints = made(json!({}), config).unwrap().networking_config.unwrap().endpoints_config.unwrap();
    assert_eq!(endpoints["blue"].aliases.as_ref().unwrap(), &["db"]);
    assert_eq!(endpoints["blue"].ipam_config.as_ref().unwrap().ipv4_address.as_deref(), Some("10.1.0.9"));
}

#[test]
fn what_the_operator_allows_is_given() {
    let plugin = json!({
        "allow_privileged": true, "volumes": {"enabled": true, "selinuxlabel": "z"}, "allow_runtimes": ["kata"],
        "allowed_modes": {"pid": ["host"], "ipc": ["container:*"]}
    });
    let host = host(
        plugin,
        json!({
            "privileged": true, "volumes": ["/etc:/host:ro", "local/x:/x"], "runtime": "kata", "pid_mode": "host",
            "ipc_mode": "container:abc", "cgroupns": "private",
            "mount": [
                {"type": "tmpfs", "target": "/t", "tmpfs_options": {"size": 1024}},
                {"type": "bind", "target": "/b", "source": "/srv", "bind_options": {"propagation": "rshared"}},
                {"target": "/v", "source": "data", "volume_options": {"driver_config": {"name": "nfs"}}}
            ]
        }),
    );
    assert_eq!((host.privileged, host.pid_mode.as_deref()), (Some(true), Some("host")));
    let binds = host.binds.unwrap();
    assert_eq!(binds[0], format!("/data/{ID}/alloc:/alloc:z"));
    assert_eq!(binds[3], format!("/data/{ID}/alloc/logs:/alloc/logs:ro,z"));
    assert_eq!(binds[5..], ["/etc:/host:ro,z".to_string(), format!("/data/{ID}/web/local/x:/x:z")]);
    let mounts = host.mounts.unwrap();
    let kinds: Vec<_> = mounts.iter().map(|mount| mount.typ.unwrap()).collect();
    assert_eq!(kinds, [MountType::TMPFS, MountType::BIND, MountType::VOLUME]);
}

#[test]
fn what_is_not_possible_or_not_allowed_is_refused_by_name() {
    let strict = json!({"pids_limit": 10});
    for (config, text) in [
        (json!({"imgae": "x"}), "driver docker has no config key \"imgae\""),
        (json!({"image": ""}), "config key \"image\" is required"),
        (json!({"cpuset_cpus": "0"}), "config key \"cpuset_cpus\" is not supported: ask for cores"),
        (json!({"port_map": {"a": 1}}), "config key \"port_map\" is not supported: "),
        (json!({"isolation": "process"}), "config key \"isolation\" is not supported: it is about"),
        (json!({"privileged": true}), "Docker privileged mode is disabled on this Nomad agent"),
        (json!({"cap_add": ["net_raw"]}), "driver does not allow the following capabilities: net_raw"),
        (json!({"runtime": "kata"}), "requested runtime \"kata\" is not allowed"),
        (json!({"pid_mode": "host"}), "pid_mode \"host\" is not among the allowed_modes"),
        (json!({"ipc_mode": "host"}), "ipc_mode \"host\" is not among the allowed_modes"),
        (json!({"cgroupns": "x"}), "cgroupns must be \"host\" or \"private\", not \"x\""),
        (json!({"ports": ["db"]}), "port \"db\" is not one of a network block of the group"),
        (
            json!({"network_aliases": ["a"]}),
            "network_aliases, ipv4_address, ipv6_address and mac_address need",
        ),
        (json!({"ulimit": {"nofile": "many"}}), "ulimit nofile must be a number"),
        (json!({"pids_limit": 11}), "pids_limit 11 is above that of this node, 10"),
        (json!({"cpu_cfs_period": 2_000_000}), "cpu_cfs_period must be between"),
        (json!({"volume_driver": "nfs"}), "volume_driver: volumes are not enabled on this node"),
        (json!({"volumes": ["/etc:/e"]}), "volumes: volumes are not enabled on this node; cannot mount /etc"),
        (json!({"volumes": ["../../../etc:/e"]}), "volumes: volumes are not enabled on this node; cannot"),
        (json!({"volumes": ["x"]}), "volumes: \"x\" must be \"source:target\""),
        (
            json!({"mount": {"type": "bind", "target": "/x", "source": "/etc"}}),
            "mount: volumes are not enabled",
        ),
        (
            json!({"mount": {"type": "bind", "target": "/x"}}),
            "mount: a mount of type \"bind\" needs a source",
        ),
        (json!({"mount": {"type": "nfs", "target": "/x"}}), "mount: type must be"),
        (
            json!({"mount": {"target": "/x", "tmpfs_options": {"size": 1}}}),
            "mount: tmpfs_options is for mounts",
        ),
        (
            json!({"mount": {"target": "/x", "volume_options": {"driver_config": {}}}}),
            "mount: driver_config: ",
        ),
        (json!({"logging": {"type": "a", "driver": "b"}}), "logging has the type \"a\""),
    ] {
        let error = made(strict.clone(), config).unwrap_err();
        assert!(error.starts_with(text), "{error}");
    }
}

#[test]
fn a_link_that_leads_out_of_the_allocation_is_not_followed() {
    let base = tempfile::tempdir().unwrap();
    let dir = AllocDir::new(base.path(), ID).unwrap();
    dir.build().unwrap();
    let local = dir.build_task("web", None).unwrap().local;
    std::os::unix::fs::symlink("/etc", local.join("out")).unwrap();
    std::os::unix::fs::symlink("/nowhere-yet", local.join("later")).unwrap();
    let try_mount = |source: &str| {
        let config = task_in(base.path(), json!({"volumes": [format!("{source}:/x")]})).unwrap();
        body(&settings(json!({})), &config, "i").map(drop)
    };
    try_mount("local/new").unwrap();
    try_mount("../alloc/data").unwrap();
    for source in ["local/out/passwd", "local/out", "local/later"] {
        assert!(try_mount(source).unwrap_err().starts_with("volumes: "), "{source}");
    }
}

#[test]
fn in_the_network_of_its_group_a_container_joins_the_one_that_has_it() {
    let joined = |config: Value| {
        let mut task = task(config);
        task.network_namespace = Some("/run/netns/x".into());
        task.hosts_file = Some("/data/hosts".into());
        task.resolv_conf = Some("/data/resolv.conf".into());
        body(&settings(json!({})), &task, "id")
    };
    let made = joined(json!({"ports": ["http"], "dns_servers": ["1.1.1.1"], "extra_hosts": ["a:1.2.3.4"]}));
    let made = made.unwrap();
    let host = made.host_config.unwrap();
    assert_eq!(host.network_mode, Some(format!("container:sojourn_init_{ID}")));
    assert_eq!((host.dns, host.extra_hosts, made.hostname), (None, None, None));
    assert!(host.port_bindings.is_none_or(|bindings| bindings.is_empty()));
    let binds = host.binds.unwrap();
    for bind in ["/data/hosts:/etc/hosts", "/data/resolv.conf:/etc/resolv.conf"] {
        assert!(binds.iter().any(|own| own == bind), "{binds:?}");
    }
    let own = joined(json!({"network_mode": "host"})).unwrap().host_config.unwrap();
    assert_eq!(own.network_mode.as_deref(), Some("host"));
    assert!(!own.binds.unwrap().iter().any(|bind| bind.ends_with("/etc/hosts")));
    for (config, named) in [
        (json!({"network_mode": "none"}), "network_mode \"none\": the group has a network of its own"),
        (json!({"hostname": "x"}), "hostname: the group has a network of its own"),
    ] {
        let error = joined(config).unwrap_err();
        assert!(error.starts_with(named), "{error}");
    }
}

#[test]
fn a_container_gets_the_devices_that_its_task_was_given() {
    let given = |plugin: Value, config: Value, variable: &str| {
        let mut task = task(config);
        task.device_env = BTreeMap::from([(variable.to_string(), "GPU-1".to_string())]);
        let (host_path, task_path) = ("/dev/x0".into(), "/dev/y0".to_string());
        task.devices = vec![TaskDevice { host_path, task_path, permissions: "rw".to_string() }];
        body(&settings(plugin), &task, "id").unwrap().host_config.unwrap()
    };
    let host = given(json!({}), json!({"devices": [{"host_path": "/dev/a"}]}), "ACME");
    let devices = host.devices.unwrap();
    let paths: Vec<_> = devices.iter().map(|device| device.path_in_container.as_deref().unwrap()).collect();
    assert_eq!((paths, host.runtime), (vec!["/dev/a", "/dev/y0"], None));
    assert_eq!(devices[1].path_on_host.as_deref(), Some("/dev/x0"));
    let runtime = |plugin, config| given(plugin, config, "NVIDIA_VISIBLE_DEVICES").runtime.unwrap();
    assert_eq!(runtime(json!({}), json!({})), "nvidia");
    assert_eq!(runtime(json!({"nvidia_runtime": "nv2"}), json!({})), "nv2");
    assert_eq!(runtime(json!({}), json!({"runtime": "runc"})), "runc");
}
