//! What the host of this agent looks like, for whoever has to find out why it behaves as it does.

use std::io::Read;
use std::path::Path;

use api::{DiskUsage, HostData};
use model::document::Map;

/// Longest file of the host that is shown, in bytes; what comes after it is left out.
const FILE_MAX: u64 = 1 << 20;

/// A variable whose name holds one of these may be a secret.
const SECRET_WORDS: [&str; 6] = ["TOKEN", "SECRET", "PASSWORD", "KEY", "LICENSE", "CREDENTIAL"];

/// Reads files of the host: not for a thread that others wait for.
pub fn host_data() -> HostData {
    let read = |path: &str| start_of(Path::new(path));
    HostData {
        os: read("/proc/version").trim().to_string(),
        network: interfaces().into(),
        resolv_conf: read("/etc/resolv.conf"),
        hosts: read("/etc/hosts"),
        environment: std::env::vars_os()
            .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
            .map(|(name, value)| (name.clone(), shown(&name, value)))
            .collect(),
        disk: std::iter::once("/").filter_map(|at| Some((at.to_string(), usage(Path::new(at))?))).collect(),
    }
}

/// Empty if it cannot be read.
fn start_of(path: &Path) -> String {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path);
    match file.and_then(|file| file.take(FILE_MAX).read_to_end(&mut bytes)) {
        Ok(_) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(_) => String::new(),
    }
}

fn shown(name: &str, value: String) -> String {
    let name = name.to_uppercase();
    if SECRET_WORDS.iter().any(|word| name.contains(word)) { "<redacted>".to_string() } else { value }
}

/// Each network interface with what the kernel says of it.
fn interfaces() -> Vec<Map<String, String>> {
    let Ok(folder) = std::fs::read_dir("/sys/class/net") else { return Vec::new() };
    let mut names: Vec<String> =
        folder.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    let described = |name: String| {
        let fact = |fact: &str| {
            let text = std::fs::read_to_string(format!("/sys/class/net/{name}/{fact}")).unwrap_or_default();
            (fact.to_string(), text.trim().to_string())
        };
        [("name".to_string(), name.clone()), fact("address"), fact("mtu"), fact("operstate")]
            .into_iter()
            .collect()
    };
    names.into_iter().map(described).collect()
}

fn usage(at: &Path) -> Option<DiskUsage> {
    let disk = rustix::fs::statvfs(at).ok()?;
    let mib = |blocks: u64| (blocks.saturating_mul(disk.f_frsize) >> 20) as i64;
    Some(DiskUsage { disk_mb: mib(disk.f_blocks), used_mb: mib(disk.f_blocks.saturating_sub(disk.f_bfree)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_a_secret_is_not_shown() {
        for name in ["NOMAD_TOKEN", "aws_secret_access_key", "DB_PASSWORD"] {
            assert_eq!(shown(name, "x".to_string()), "<redacted>");
        }
        assert_eq!(shown("HOME", "/root".to_string()), "/root");
    }
}
