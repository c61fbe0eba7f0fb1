//! The host: system, kernel, memory and disk.

use std::path::Path;

use super::Attributes;

/// Every signal that this agent can send.
const SIGNALS: &str = "SIGABRT,SIGALRM,SIGBUS,SIGCONT,SIGFPE,SIGHUP,SIGILL,SIGINT,SIGIO,SIGIOT,SIGKILL,SIGNULL,\
SIGPIPE,SIGPROF,SIGQUIT,SIGSEGV,SIGSTOP,SIGSYS,SIGTERM,SIGTRAP,SIGTSTP,SIGTTIN,SIGTTOU,SIGUSR1,SIGUSR2,SIGWINCH,\
SIGXCPU,SIGXFSZ";

pub fn describe(attributes: &mut Attributes) {
    let uname = rustix::system::uname();
    let text = |value: &std::ffi::CStr| value.to_string_lossy().into_owned();
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let machine = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
    let values = [
        ("cpu.arch", architecture().to_string()),
        ("kernel.name", "linux".to_string()),
        ("kernel.version", text(uname.release())),
        ("kernel.arch", text(uname.machine())),
        ("os.name", os_field(&release, "ID")),
        ("os.version", os_field(&release, "VERSION_ID")),
        ("os.signals", SIGNALS.to_string()),
        ("unique.hostname", text(uname.nodename())),
        ("unique.host_id", machine.trim().to_string()),
    ];
    let given = values.into_iter().filter(|(_, value)| !value.is_empty());
    attributes.extend(given.map(|(name, value)| (name.to_string(), value)));
}

/// As Go names it: constraints in job files compare with that.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        "powerpc64" => "ppc64le",
        other => other,
    }
}

fn os_field(release: &str, name: &str) -> String {
    let value = release.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    value.unwrap_or_default().trim_matches('"').to_string()
}

pub fn memory_bytes() -> u64 {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = info.lines().find_map(|line| line.strip_prefix("MemTotal:")).unwrap_or_default();
    line.split_ascii_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// The size of the disk that holds `path`.
pub fn disk_bytes(path: &Path) -> u64 {
    rustix::fs::statvfs(path).map_or(0, |disk| disk.f_blocks * disk.f_frsize)
}

/// The volume that holds `path`.
pub fn volume(path: &Path) -> String {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mut best = ("", "");
    for line in mounts.lines() {
        let mut fields = line.split(' ');
        let (Some(device), Some(mount)) = (fields.next(), fields.next()) else { continue };
        if path.starts_with(mount) && mount.len() >= best.1.len() {
            best = (device, mount);
        }
    }
    best.0.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distribution_is_read() {
        let release = "NAME=\"Debian\"\nVERSION_ID=\"12\"\nID=debian\n";
        assert_eq!(os_field(release, "ID"), "debian");
        assert_eq!(os_field(release, "VERSION_ID"), "12");
    }

    #[test]
    fn every_announced_signal_can_be_sent() {
        for name in SIGNALS.split(',').filter(|name| !matches!(*name, "SIGNULL" | "SIGIOT")) {
            assert!(crate::driver::signal_named(name).is_some(), "{name}");
        }
    }
}
