//! The command line of a machine, and what of it the operator leaves to jobs.

use std::path::{Path, PathBuf};

use super::{MONITOR, PROGRAM};
use crate::driver::{TaskConfig, Values};

pub const EMULATOR: &str = "x86_64";

const DRIVE_INTERFACES: [&str; 8] = ["ide", "scsi", "sd", "mtd", "floppy", "pflash", "virtio", "none"];

const ACCELERATORS: [&str; 2] = ["tcg", "kvm"];

/// Memory of a machine, in MB.
const MEMORY: std::ops::RangeInclusive<i64> = 128..=4_000_000;

/// The socket of the agent in the guest, in the directory of the task.
const GUEST_AGENT: &str = "qa.sock";

/// The name of the emulator's program, and its arguments.
///
/// # Errors
/// What the job asks for and cannot have.
pub fn of(operator: &Values, config: &TaskConfig) -> Result<(String, Vec<String>), String> {
    let keys = &config.config;
    let emulator = emulator(operator, keys)?;
    let image = image(operator, config)?;
    let accelerator = one_of(keys, "accelerator", &ACCELERATORS)?;
    let interface = one_of(keys, "drive_interface", &DRIVE_INTERFACES)?;
    let machine = word(keys, "machine_type", "pc")?;
    let memory = config.limits.memory_mb;
    if !MEMORY.contains(&memory) {
        let (least, most) = (MEMORY.start(), MEMORY.end());
        return Err(format!("memory must be between {least} and {most} MB for a machine, got {memory}"));
    }
    let name = image.file_name().unwrap_or_default().to_string_lossy();
    let file = image.to_str().ok_or("image_path is not text")?;
    let mut args = vec![
        "-machine".to_string(),
        format!("type={machine},accel={accelerator}"),
        "-name".to_string(),
        escaped(&name),
        "-m".to_string(),
        format!("{memory}M"),
        "-drive".to_string(),
        format!("file={},if={interface},id=image0", escaped(file)),
        "-nographic".to_string(),
    ];
    // Sockets are named from the task's directory, in which the emulator runs: a longer path would not fit.
    if keys.boolean("graceful_shutdown") {
        args.extend(["-monitor".to_string(), format!("unix:{MONITOR},server=on,wait=off")]);
    }
    if keys.boolean("guest_agent") {
        let socket = format!("socket,path={GUEST_AGENT},server=on,wait=off,id=qga0");
        let port = "virtserialport,chardev=qga0,name=org.qemu.guest_agent.0";
        args.extend(["-chardev", &socket, "-device", "virtio-serial", "-device", port].map(str::to_string));
    }
    args.extend(allowed_args(operator, keys)?.iter().cloned());
    args.extend(ports(config)?);
    if accelerator == "kvm" {
        args.push("-enable-kvm".to_string());
    }
    if !config.cores.is_empty() {
        args.extend(["-smp".to_string(), config.cores.len().to_string()]);
    }
    Ok((emulator, args))
}

/// A comma ends a value unless it is doubled.
fn escaped(value: &str) -> String {
    value.replace(',', ",,")
}

/// The first is the one that a job gets that names none.
fn one_of<'a>(keys: &'a Values, key: &str, allowed: &[&'a str]) -> Result<&'a str, String> {
    let given = keys.text(key).unwrap_or(allowed[0]);
    match allowed.contains(&given) {
        true => Ok(given),
        false => Err(format!("{key} must be one of {}, got \"{given}\"", allowed.join(", "))),
    }
}

/// A name that adds nothing else to a command line.
fn word<'a>(keys: &'a Values, key: &str, usual: &'a str) -> Result<&'a str, String> {
    let given = keys.text(key).unwrap_or(usual);
    match given.chars().all(|char| char.is_ascii_alphanumeric() || "-_.".contains(char)) {
        true => Ok(given),
        false => Err(format!("{key} must be letters, digits, dots and dashes, got \"{given}\"")),
    }
}

fn emulator(operator: &Values, keys: &Values) -> Result<String, String> {
    let given = word(keys, "emulator", EMULATOR)?;
    let given = given.strip_prefix(PROGRAM).unwrap_or(given);
    let allowed = operator.texts("emulators_allowlist");
    match allowed.is_empty() || allowed.iter().any(|one| one.strip_prefix(PROGRAM).unwrap_or(one) == given) {
        true => Ok(format!("{PROGRAM}{given}")),
        false => Err(format!("emulator \"{given}\" is not in emulators_allowlist")),
    }
}

/// The file itself: a link out of the directories that are allowed does not lead past the operator.
fn image(operator: &Values, config: &TaskConfig) -> Result<PathBuf, String> {
    let given = config.config.text("image_path").expect("the schema requires an image");
    let path = config.dir.root.join(given);
    let image = path.canonicalize().map_err(|error| format!("image_path \"{given}\": {error}"))?;
    let alloc = config.shared_dir.parent().unwrap_or(&config.shared_dir);
    let mut allowed = operator.texts("image_paths").iter().map(PathBuf::from).chain([alloc.to_path_buf()]);
    let below = |directory: PathBuf| image.starts_with(Path::canonicalize(&directory).unwrap_or(directory));
    match allowed.any(below) {
        true => Ok(image),
        false => Err(format!(
            "image_path \"{given}\" is neither in the directory of the allocation nor in image_paths"
        )),
    }
}

fn allowed_args<'a>(operator: &Values, keys: &'a Values) -> Result<&'a [String], String> {
    let (args, allowed) = (keys.texts("args"), operator.texts("args_allowlist"));
    // One dash or two are the same.
    let bare = |flag: &str| flag.trim_start_matches('-').to_string();
    let refused = |arg: &&String| arg.starts_with('-') && !allowed.iter().any(|one| bare(one) == bare(arg));
    match args.iter().find(refused).filter(|_| !allowed.is_empty()) {
        Some(arg) => Err(format!("args: \"{arg}\" is not in args_allowlist")),
        None => Ok(args),
    }
}

/// Leads ports of the node to those of the guest, for both protocols.
fn ports(config: &TaskConfig) -> Result<Vec<String>, String> {
    let map = config.config.map("port_map");
    if map.is_empty() {
        return Ok(Vec::new());
    }
    let mut forwards = Vec::new();
    for (label, guest) in &map {
        let guest: u16 = guest
            .parse()
            .map_err(|_| format!("port_map: {label} must be a port of the guest, got \"{guest}\""))?;
        let port = config.ports.iter().find(|port| port.label == *label);
        let port = port.ok_or_else(|| format!("port_map: the group has no port \"{label}\""))?;
        // Inside of a network of its own, a port of the node leads to `to`.
        let inside = config.network_namespace.is_some() && port.to > 0;
        let host = if inside { port.to } else { port.value };
        forwards.extend(["tcp", "udp"].map(|protocol| format!("hostfwd={protocol}::{host}-:{guest}")));
    }
    let network = format!("user,id=user.0,{}", forwards.join(","));
    Ok(["-netdev", &network, "-device", "virtio-net,netdev=user.0"].map(str::to_string).into())
}

#[cfg(test)]
mod tests {
    use model::document::PortMapping;
    use serde_json::{Value, json};

    use super::super::{BUILTIN, TASK};
    use super::*;
    use crate::testing::task_config;

    fn line(operator: Value, keys: Value, change: impl FnOnce(&mut TaskConfig)) -> Result<String, String> {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("alloc/t/local")).unwrap();
        std::fs::write(root.join("alloc/t/local/a,b.img"), "").unwrap();
        std::fs::write(root.join("outside.img"), "").unwrap();
        std::os::unix::fs::symlink(root.join("outside.img"), root.join("alloc/t/local/link.img")).unwrap();
        let read =
            |schema, block: Value| Values::read("qemu", schema, serde_json::from_value(block).unwrap());
        let mut config = task_config();
        config.shared_dir = root.join("alloc/alloc");
        config.dir.root = root.join("alloc/t");
        config.limits.memory_mb = 256;
        config.ports = vec![PortMapping { label: "web".into(), value: 21_000, to: 80, ..Default::default() }];
        let mut all = json!({"image_path": "local/a,b.img"});
        all.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
        config.config = read(TASK, all).unwrap();
        change(&mut config);
        let operator =
            serde_json::from_str(&operator.to_string().replace("ROOT", root.to_str().unwrap())).unwrap();
        let (program, args) = of(&read(BUILTIN.plugin_schema, operator).unwrap(), &config)?;
        Ok(format!("{program} {}", args.join(" ")).replace(root.to_str().unwrap(), ""))
    }

    #[test]
    fn a_machine_has_what_the_job_says() {
        let plain = line(json!({}), json!({}), |_| {}).unwrap();
        assert_eq!(
            plain,
            "qemu-system-x86_64 -machine type=pc,accel=tcg -name a,,b.img -m 256M \
             -drive file=/alloc/t/local/a,,b.img,if=ide,id=image0 -nographic"
        );
        let keys = json!({
            "emulator": "aarch64", "machine_type": "virt", "accelerator": "kvm", "drive_interface": "virtio",
            "graceful_shutdown": true, "guest_agent": true, "args": ["-snapshot"], "port_map": {"web": 8080}
        });
        let full = line(json!({}), keys, |config| config.cores = vec![1, 3]).unwrap();
        assert_eq!(
            full,
            "qemu-system-aarch64 -machine type=virt,accel=kvm -name a,,b.img -m 256M \
             -drive file=/alloc/t/local/a,,b.img,if=virtio,id=image0 -nographic \
             -monitor unix:qm.sock,server=on,wait=off \
             -chardev socket,path=qa.sock,server=on,wait=off,id=qga0 -device virtio-serial \
             -device virtserialport,chardev=qga0,name=org.qemu.guest_agent.0 -snapshot \
             -netdev user,id=user.0,hostfwd=tcp::21000-:8080,hostfwd=udp::21000-:8080 \
             -device virtio-net,netdev=user.0 -enable-kvm -smp 2"
        );
        let inside = line(json!({}), json!({"port_map": {"web": "8080"}}), |config| {
            config.network_namespace = Some("/run/netns/x".into());
        });
        assert!(inside.unwrap().contains("hostfwd=tcp::80-:8080"));
    }

    #[test]
    fn the_operator_says_which_files_arguments_and_emulators_a_job_may_name() {
        let operator = json!({
            "image_paths": ["ROOT/outside.img"], "args_allowlist": ["-snapshot", "--device"],
            "emulators_allowlist": ["qemu-system-x86_64"]
        });
        let open = |keys| line(operator.clone(), keys, |_| {});
        assert!(
            open(json!({"image_path": "local/link.img", "args": ["--snapshot", "-device", "x"]})).is_ok()
        );
        for (keys, text) in [
            (json!({"args": ["-snapshot", "-drive"]}), "args: \"-drive\" is not in args_allowlist"),
            (json!({"emulator": "arm"}), "emulator \"arm\" is not in emulators_allowlist"),
        ] {
            assert_eq!(open(keys).unwrap_err(), text);
        }
    }

    #[test]
    fn what_a_machine_cannot_have_is_named() {
        let outside = "is neither in the directory of the allocation nor in image_paths";
        for (keys, text) in [
            (json!({"image_path": "local/link.img"}), outside),
            (json!({"image_path": "../../outside.img"}), outside),
            (json!({"image_path": "local/none.img"}), "image_path \"local/none.img\": No such file"),
            (json!({"accelerator": "xen"}), "accelerator must be one of tcg, kvm, got \"xen\""),
            (json!({"drive_interface": "usb"}), "drive_interface must be one of ide, scsi,"),
            (json!({"machine_type": "pc,x=y"}), "machine_type must be letters"),
            (json!({"emulator": "../x"}), "emulator must be letters, digits, dots and dashes, got \"../x\""),
            (json!({"port_map": {"web": "x"}}), "port_map: web must be a port of the guest, got \"x\""),
            (json!({"port_map": {"ssh": 22}}), "port_map: the group has no port \"ssh\""),
        ] {
            let error = line(json!({}), keys, |_| {}).unwrap_err();
            assert!(error.contains(text), "{error}");
        }
        let small = line(json!({}), json!({}), |config| config.limits.memory_mb = 64).unwrap_err();
        assert_eq!(small, "memory must be between 128 and 4000000 MB for a machine, got 64");
    }
}
