//! What the engine is asked to make for a task. Pure, but for links of files that are followed.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::super::containers::mounts;
use super::super::containers::parts::{self, MIB};
use super::settings::{Logging, Settings};
use crate::driver::{TaskConfig, TaskMount};
use crate::task::environment::ranges;

/// Bytes of output that the engine keeps in a file before it begins another one.
const LOG_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The request by which the engine makes the container: what it calls a specification.
///
/// # Errors
/// Names the key whose value is not possible or not allowed.
pub fn body(
    settings: &Settings,
    config: &TaskConfig,
    image: &str,
    is_rootless: bool,
) -> Result<Value, String> {
    let keys = &config.config;
    let mut body = Map::new();
    let mut put = |key: &str, value: Value| drop(body.insert(key.to_string(), value));
    put("name", json!(parts::name(config)));
    put("image", json!(image));
    put("env", json!(config.env));
    put("labels", json!(parts::labels(&settings.extra_labels, config)));
    let words: Vec<&str> =
        keys.text("command").into_iter().chain(keys.texts("args").iter().map(String::as_str)).collect();
    if !words.is_empty() {
        put("command", json!(words));
    }
    for (key, name) in
        [("working_dir", "work_dir"), ("init_path", "init_path"), ("apparmor_profile", "apparmor_profile")]
    {
        if let Some(text) = keys.text(key) {
            put(name, json!(text));
        }
    }
    for (key, name) in [
        ("entrypoint", "entrypoint"),
        ("cap_add", "cap_add"),
        ("cap_drop", "cap_drop"),
        ("selinux_opts", "selinux_opts"),
    ] {
        if !keys.texts(key).is_empty() {
            put(name, json!(keys.texts(key)));
        }
    }
    for (key, name) in [
        ("tty", "terminal"),
        ("init", "init"),
        ("privileged", "privileged"),
        ("readonly_rootfs", "read_only_filesystem"),
    ] {
        put(name, json!(keys.boolean(key)));
    }
    if !config.user.is_empty() {
        put("user", json!(config.user));
    }
    if !keys.map("sysctl").is_empty() {
        put("sysctl", json!(keys.map("sysctl")));
    }
    if let Some(score) = keys.number("oom_score_adj") {
        put("oom_score_adj", json!(score));
    }
    put("log_configuration", log_configuration(settings, config)?);
    isolation(config, &mut put)?;
    limits(config, &mut put)?;
    files(settings, config, &mut put)?;
    network(settings, config, is_rootless, &mut put)?;
    Ok(Value::Object(body))
}

/// True when the output is in a file that is to be read.
///
/// # Errors
/// When the task's block has another driver.
pub fn logging(settings: &Settings, config: &TaskConfig) -> Result<Logging, String> {
    match config.config.block("logging") {
        Some(block) => Logging::read(block),
        None => Ok(settings.logging.clone()),
    }
}

fn log_configuration(settings: &Settings, config: &TaskConfig) -> Result<Value, String> {
    Ok(match logging(settings, config)? {
        Logging::Nomad if config.logs.is_none() || settings.disable_log_collection => {
            json!({"driver": "none"})
        }
        Logging::Nomad => json!({"driver": "k8s-file", "size": LOG_BYTES_MAX}),
        Logging::Journald { tag: None } => json!({"driver": "journald"}),
        Logging::Journald { tag } => json!({"driver": "journald", "options": {"tag": tag}}),
    })
}

/// `MODE` or `MODE:VALUE`.
fn namespace(text: &str) -> Value {
    match text.split_once(':') {
        Some(("ns", path)) => json!({"nsmode": "path", "value": path}),
        Some((mode, value)) => json!({"nsmode": mode, "value": value}),
        None => json!({"nsmode": text}),
    }
}

/// `task:NAME` is the container of another task of the group.
fn of_task(config: &TaskConfig, text: &str) -> String {
    match text.strip_prefix("task:") {
        Some(task) => {
            format!("container:{}", parts::name(&TaskConfig { task: task.to_string(), ..config.clone() }))
        }
        None => text.to_string(),
    }
}

fn isolation(config: &TaskConfig, put: &mut impl FnMut(&str, Value)) -> Result<(), String> {
    let keys = &config.config;
    if let Some(mode) = keys.text("userns") {
        put("userns", namespace(mode));
    }
    if let Some(mode) = keys.text("ipc_mode") {
        let known = ["host", "private", "shareable", "none"].contains(&mode)
            || ["container:", "ns:", "task:"].iter().any(|prefix| mode.starts_with(prefix));
        if !known {
            let modes = "host, private, shareable, none, container:ID, ns:PATH or task:NAME";
            return Err(format!("ipc_mode must be {modes}, not \"{mode}\""));
        }
        put("ipcns", namespace(&of_task(config, mode)));
    }
    for option in keys.texts("security_opt") {
        match option.split_once(['=', ':']).unwrap_or((option, "true")) {
            ("no-new-privileges", "true" | "false") => {
                put("no_new_privileges", json!(option.ends_with("true") || option == "no-new-privileges"))
            }
            ("seccomp", "unconfined") => put("seccomp_profile_path", json!("unconfined")),
            ("seccomp", path) if path.starts_with('/') => put("seccomp_profile_path", json!(path)),
            ("apparmor", profile) if keys.text("apparmor_profile").is_none() => {
                put("apparmor_profile", json!(profile));
            }
            _ => {
                let known = "no-new-privileges, seccomp=PATH, seccomp=unconfined or apparmor=PROFILE";
                return Err(format!("security_opt must be {known}, not \"{option}\""));
            }
        }
    }
    Ok(())
}

/// Bytes, from a text like `100m`.
fn bytes(key: &str, text: &str) -> Result<i64, String> {
    let lower = text.trim().to_lowercase();
    let digits = lower.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match lower[digits.len()..].trim_end_matches('b') {
        "" => Some(1),
        "k" => Some(1024),
        "m" => Some(MIB),
        "g" => Some(1024 * MIB),
        _ => None,
    };
    let bytes = digits.parse::<i64>().ok().zip(unit).and_then(|(number, unit)| number.checked_mul(unit));
    bytes.filter(|bytes| *bytes >= 0).ok_or_else(|| format!("{key} must be a size like 100m, not \"{text}\""))
}

fn limits(config: &TaskConfig, put: &mut impl FnMut(&str, Value)) -> Result<(), String> {
    let (keys, limits) = (&config.config, &config.limits);
    let of = |key: &str| keys.text(key).map(|text| bytes(key, text)).transpose();
    let mut memory = Map::new();
    let hard = match limits.memory_max_mb {
        ..0 => None,
        0 => Some(limits.memory_mb * MIB),
        most => Some(most * MIB),
    };
    let soft = (limits.memory_max_mb != 0).then_some(limits.memory_mb * MIB);
    if let Some(hard) = hard {
        memory.insert("limit".to_string(), json!(hard));
    }
    if let Some(soft) = of("memory_reservation")?.or(soft) {
        memory.insert("reservation".to_string(), json!(soft));
    }
    // The sum with the memory; without it nothing is swapped.
    if let Some(swap) = of("memory_swap")?.or(hard) {
        if hard.is_some_and(|hard| swap < hard) {
            return Err("memory_swap must not be less than the memory of the task".to_string());
        }
        memory.insert("swap".to_string(), json!(swap));
    }
    if let Some(swappiness) = keys.number("memory_swappiness") {
        if !(0..=100).contains(&swappiness) {
            return Err("memory_swappiness must be between 0 and 100".to_string());
        }
        memory.insert("swappiness".to_string(), json!(swappiness));
    }
    let mut cpu = Map::from_iter([("shares".to_string(), json!(limits.cpu_shares()))]);
    if !config.cores.is_empty() {
        cpu.insert("cpus".to_string(), json!(ranges(&config.cores)));
    }
    let period = keys.number("cpu_cfs_period").filter(|period| *period != 0).unwrap_or(100_000);
    if !(1000..=1_000_000).contains(&period) {
        return Err("cpu_cfs_period must be between 1000 and 1000000".to_string());
    }
    if keys.boolean("cpu_hard_limit") {
        cpu.insert("period".to_string(), json!(period));
        cpu.insert("quota".to_string(), json!(parts::quota(limits, period)?));
    }
    let mut all = json!({"memory": memory, "cpu": cpu});
    if let Some(pids) = keys.number("pids_limit").filter(|limit| *limit > 0) {
        all["pids"] = json!({"limit": pids});
    }
    put("resource_limits", all);
    if let Some(size) = of("shm_size")? {
        put("shm_size", json!(size));
    }
    let rlimit = |(name, text): (&String, &String)| {
        let (soft, hard) = parts::ulimit(name, text)?;
        // Without a bound, as the kernel writes it.
        let number = |limit: i64| if limit < 0 { u64::MAX } else { limit as u64 };
        Ok::<_, String>(json!({"type": name, "soft": number(soft), "hard": number(hard)}))
    };
    let rlimits = keys.map("ulimit").iter().map(rlimit).collect::<Result<Vec<Value>, _>>()?;
    if !rlimits.is_empty() {
        put("r_limits", json!(rlimits));
    }
    Ok(())
}

fn bind(source: &str, target: &str, options: &[&str]) -> Value {
    let mut all = vec!["rbind"];
    all.extend(options.iter().filter(|option| !option.is_empty()));
    json!({"type": "bind", "source": source, "destination": target, "options": all})
}

fn files(settings: &Settings, config: &TaskConfig, put: &mut impl FnMut(&str, Value)) -> Result<(), String> {
    let keys = &config.config;
    let label = settings.selinux_label.as_str();
    let (mut binds, mut volumes) = (Vec::new(), Vec::new());
    for (source, target, read_only) in mounts::own(config) {
        let mode = if read_only { "ro" } else { "rw" };
        binds.push(bind(&source.to_string_lossy(), target, &[mode, label]));
    }
    for TaskMount { host_path, task_path, read_only, propagation, selinux_label } in &config.mounts {
        let mode = if *read_only { "ro" } else { "rw" };
        binds.push(bind(&host_path.to_string_lossy(), task_path, &[mode, propagation, selinux_label]));
    }
    for volume in keys.texts("volumes") {
        let (source, target, mode) = mounts::split(volume)?;
        let mut options: Vec<&str> = mode.split(',').filter(|option| !option.is_empty()).collect();
        // A name is that of a volume of the engine; paths have a slash.
        if !source.contains('/') {
            if !settings.volumes_enabled {
                return Err(format!("volumes: {}; cannot mount {source}", mounts::DISABLED));
            }
            volumes.push(json!({"Name": source, "Dest": target, "Options": options}));
            continue;
        }
        let source = mounts::host_path(settings.volumes_enabled, config, source, "volumes")?;
        options.push(label);
        binds.push(bind(&source, target, &options));
    }
    for text in keys.texts("tmpfs") {
        let (target, options) = text.split_once(':').unwrap_or((text, ""));
        if !target.starts_with('/') {
            return Err(format!("tmpfs: \"{text}\" must be an absolute path, with options after a colon"));
        }
        let options: Vec<&str> = options.split(',').filter(|option| !option.is_empty()).collect();
        binds.push(json!({"type": "tmpfs", "source": "tmpfs", "destination": target, "options": options}));
    }
    let is_shared = config.network_namespace.is_some() && keys.text("network_mode").is_none();
    let hosts = config.hosts_file.as_ref().filter(|_| is_shared);
    for (file, inside) in [(hosts, "/etc/hosts"), (config.resolv_conf.as_ref(), "/etc/resolv.conf")] {
        if let Some(file) = file {
            binds.push(bind(&file.to_string_lossy(), inside, &["rw", label]));
        }
    }
    put("mounts", json!(binds));
    if !volumes.is_empty() {
        put("volumes", json!(volumes));
    }
    let device = |text: &String| match text.starts_with('/') {
        true => Ok(json!({"path": text})),
        false => Err(format!("devices: \"{text}\" must be host[:container[:permissions]]")),
    };
    // Podman takes them in the form of its command line.
    let given = config.devices.iter().map(|device| {
        json!({"path": format!("{}:{}:{}", device.host_path.display(), device.task_path, device.permissions)})
    });
    let devices = keys.texts("devices").iter().map(device).collect::<Result<Vec<Value>, _>>()?;
    let devices: Vec<Value> = devices.into_iter().chain(given).collect();
    if !devices.is_empty() {
        put("devices", json!(devices));
    }
    Ok(())
}

/// The network of the group, or that of the task's own choice.
///
/// # Errors
/// Names the key that does not go with it.
pub fn mode(config: &TaskConfig) -> Result<Option<String>, String> {
    let keys = &config.config;
    let (mode, group) = (keys.text("network_mode"), &config.network_namespace);
    match (mode, group) {
        (None, None) => Ok(None),
        (Some("host"), _) => Ok(Some("host".to_string())),
        (Some(mode), None) => Ok(Some(of_task(config, mode))),
        (Some(mode), Some(_)) => {
            let why = "the group has a network of its own; leave it out, or use \"host\"";
            Err(format!("network_mode \"{mode}\": {why}"))
        }
        (None, Some(path)) => Ok(Some(format!("ns:{}", path.display()))),
    }
}

fn network(
    settings: &Settings,
    config: &TaskConfig,
    is_rootless: bool,
    put: &mut impl FnMut(&str, Value),
) -> Result<(), String> {
    let keys = &config.config;
    let mode = mode(config)?;
    let in_group = config.network_namespace.is_some() && keys.text("network_mode").is_none();
    if let Some(hostname) = keys.text("hostname") {
        put("hostname", json!(hostname));
    }
    let usual = if is_rootless {
        settings.rootless_mode.clone().unwrap_or("slirp4netns".into())
    } else {
        "bridge".into()
    };
    let mode = mode.unwrap_or(usual);
    let addresses = addresses(config, &mode)?;
    // What is no mode is the name of a network.
    let is_mode = ["bridge", "host", "none", "pasta", "slirp4netns", "private"].contains(&mode.as_str())
        || mode.contains(':');
    let (mode, network) = if is_mode { (mode, None) } else { ("bridge".to_string(), Some(mode)) };
    put("netns", namespace(&mode));
    if network.is_some() || addresses.as_object().is_some_and(|all| !all.is_empty()) {
        let name = network.unwrap_or_else(|| "podman".to_string());
        put("Networks", json!({name: addresses}));
    }
    let is_own = mode == "bridge" || mode == "pasta" || mode.starts_with("slirp4netns") || mode == "private";
    if !keys.texts("extra_hosts").is_empty() && !in_group {
        put("hostadd", json!(keys.texts("extra_hosts")));
    }
    if config.resolv_conf.is_some() {
        put("use_image_resolve_conf", json!(true));
    } else if is_own && !settings.dns_servers.is_empty() {
        put("dns_server", json!(settings.dns_servers));
    }
    if in_group && config.hosts_file.is_some() {
        put("use_image_hosts", json!(true));
    }
    let mut ports = Vec::new();
    for label in keys.texts("ports") {
        let (port, inside) = parts::port(config, label)?;
        if is_own {
            for protocol in ["tcp", "udp"] {
                ports.push(json!({
                    "host_ip": port.host_ip, "host_port": port.value, "container_port": inside, "protocol": protocol
                }));
            }
        }
    }
    put("portmappings", json!(ports));
    Ok(())
}

/// Addresses can be chosen on a bridge only.
fn addresses(config: &TaskConfig, mode: &str) -> Result<Value, String> {
    let keys = &config.config;
    let single = ["ipv4_address", "ipv6_address"].into_iter().filter_map(|key| keys.text(key));
    let ips: Vec<&str> = single.chain(keys.texts("static_ips").iter().map(String::as_str)).collect();
    let mac = keys.text("static_mac");
    let mut all = BTreeMap::new();
    if !ips.is_empty() {
        all.insert("static_ips", json!(ips));
    }
    if let Some(mac) = mac {
        all.insert("static_mac", json!(mac));
    }
    let other = ["host", "none", "pasta", "slirp4netns", "private"].contains(&mode) || mode.contains(':');
    match other && !all.is_empty() {
        true => {
            let keys = "ipv4_address, ipv6_address, static_ips and static_mac";
            Err(format!("{keys} need a bridge or a network of its name as network_mode, not \"{mode}\""))
        }
        false => Ok(json!(all)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::keys::TASK;
    use super::super::settings::{PLUGIN, Settings};
    use super::*;
    use crate::driver::Values;
    use crate::testing::task_config;

    fn made(plugin: Value, block: Value) -> Result<Value, String> {
        let fields = |value: Value| value.as_object().unwrap().clone().into_iter().collect();
        let settings = Settings::read(&Values::read("podman", PLUGIN, fields(plugin))?, 0)?.remove(0);
        let mut block = block;
        block["image"] = json!("a");
        let config = TaskConfig { config: Values::read("podman", TASK, fields(block))?, ..task_config() };
        body(&settings, &config, "i", false)
    }

    #[test]
    fn a_container_gets_the_devices_that_its_task_was_given() {
        let (host_path, task_path) = ("/dev/x0".into(), "/dev/y0".to_string());
        let device = crate::driver::TaskDevice { host_path, task_path, permissions: "rw".to_string() };
        let block = [("image".to_string(), json!("a")), ("devices".to_string(), json!(["/dev/a"]))].into();
        let config = Values::read("podman", TASK, block).unwrap();
        let config = TaskConfig { config, devices: vec![device], ..task_config() };
        let settings = Settings::read(&Values::default(), 0).unwrap().remove(0);
        let body = body(&settings, &config, "i", false).unwrap();
        assert_eq!(body["devices"], json!([{"path": "/dev/a"}, {"path": "/dev/x0:/dev/y0:rw"}]));
    }

    #[test]
    fn keys_become_a_specification() {
        let body = made(
            json!({}),
            json!({
                "entrypoint": "/init", "command": "a", "args": ["b"], "ulimit": {"nofile": "10:20"}, "init": true,
                "network_mode": "blue", "ipv4_address": "10.1.0.9", "tmpfs": ["/t:size=1m"], "shm_size": "2m",
                "security_opt": ["no-new-privileges"], "ipc_mode": "task:other", "memory_swappiness": 3
            }),
        )
        .unwrap();
        assert_eq!((&body["entrypoint"], &body["command"]), (&json!(["/init"]), &json!(["a", "b"])));
        assert_eq!(body["r_limits"], json!([{"type": "nofile", "soft": 10, "hard": 20}]));
        assert_eq!(body["Networks"], json!({"blue": {"static_ips": ["10.1.0.9"]}}));
        assert_eq!((&body["shm_size"], &body["no_new_privileges"]), (&json!(2 * MIB), &json!(true)));
        assert_eq!(body["ipcns"]["nsmode"], "container");
        assert_eq!(body["resource_limits"]["memory"]["swappiness"], 3);
    }

    #[test]
    fn what_is_not_possible_is_refused_by_name() {
        for (block, text) in [
            (json!({"imgae": "x"}), "driver podman has no config key \"imgae\""),
            (json!({"port_map": {}}), "config key \"port_map\" is not supported: "),
            (json!({"ipc_mode": "x"}), "ipc_mode must be host, private"),
            (json!({"security_opt": ["label=x"]}), "security_opt must be "),
            (json!({"memory_reservation": "much"}), "memory_reservation must be a size like 100m"),
            (
                json!({"network_mode": "host", "static_mac": "a"}),
                "ipv4_address, ipv6_address, static_ips and",
            ),
            (json!({"volumes": ["/etc:/e"]}), "volumes: volumes are not enabled on this node"),
            (json!({"volumes": ["data:/e"]}), "volumes: volumes are not enabled on this node"),
            (json!({"tmpfs": ["x"]}), "tmpfs: \"x\" must be an absolute path"),
            (json!({"ports": ["db"]}), "port \"db\" is not one of"),
            (json!({"logging": {"driver": "x"}}), "logging: driver must be"),
        ] {
            let error = made(json!({"volumes": {"enabled": false}}), block).unwrap_err();
            assert!(error.starts_with(text), "{error}");
        }
    }
}
