//! The files by which tasks in a network of their own find names.

use std::io::{self, Write};
use std::path::Path;

use model::document::DNSConfig;

/// The host's own, and the one that a local resolver keeps beside its stub.
const HOST_RESOLV: &str = "/etc/resolv.conf";
const BEHIND_STUB: &str = "/run/systemd/resolve/resolv.conf";

/// The address at which that stub answers on the host, and nowhere else.
const STUB: &str = "127.0.0.53";

/// `/etc/hosts` of a task.
pub fn hosts(address: &str, hostname: &str) -> String {
    let mut text = "127.0.0.1 localhost\n\
                    ::1 localhost ip6-localhost ip6-loopback\n\
                    fe00::0 ip6-localnet\n\
                    ff00::0 ip6-mcastprefix\n\
                    ff02::1 ip6-allnodes\n\
                    ff02::2 ip6-allrouters\n"
        .to_string();
    if !address.is_empty() && !hostname.is_empty() {
        text.push_str(&format!("{address} {hostname}\n"));
    }
    text
}

/// The lines of a job, as `name:address`.
///
/// # Errors
/// Names the one that is none.
pub fn extra(extra: &[String]) -> Result<String, String> {
    let mut text = String::new();
    for line in extra {
        let parts = line.split_once(':').filter(|(name, address)| {
            !name.is_empty() && address.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok()
        });
        let (name, address) =
            parts.ok_or_else(|| format!("extra_hosts: expected NAME:ADDRESS, not \"{line}\""))?;
        text.push_str(&format!("{} {name}\n", address.trim_matches(['[', ']'])));
    }
    Ok(text)
}

/// `resolv.conf` of a task: what is wanted, and the host's where nothing is.
pub fn resolv_conf(wanted: Option<&DNSConfig>, host: &str) -> String {
    let nothing = DNSConfig::default();
    let wanted = wanted.unwrap_or(&nothing);
    let lines = |key: &str| -> Vec<String> {
        let own = host.lines().filter(|line| line.split_whitespace().next() == Some(key));
        own.map(str::to_string).collect()
    };
    let mut text = Vec::new();
    text.extend(match wanted.servers.is_empty() {
        true => lines("nameserver"),
        false => wanted.servers.iter().map(|server| format!("nameserver {server}")).collect(),
    });
    for (key, values) in [("search", &wanted.searches), ("options", &wanted.options)] {
        text.extend(match values.is_empty() {
            true => lines(key),
            false => vec![format!("{key} {}", values.join(" "))],
        });
    }
    text.join("\n") + "\n"
}

/// What the host itself resolves names with, as seen from another namespace.
pub fn host_resolv_conf() -> String {
    let own = std::fs::read_to_string(HOST_RESOLV).unwrap_or_default();
    match own.contains(STUB) {
        true => std::fs::read_to_string(BEHIND_STUB).unwrap_or(own),
        false => own,
    }
}

/// Writes a file that everybody may read, in a directory in which tasks may write: what stands there under the name, a link
/// to elsewhere for one, is replaced and not followed.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = std::fs::File::options().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_finds_itself_and_what_its_job_names() {
        let extra = ["db:10.0.0.9", "six:[fd00::9]"].map(str::to_string);
        let text = hosts("172.26.64.2", "web");
        assert!(text.starts_with("127.0.0.1 localhost\n"), "{text}");
        assert!(text.ends_with("\n172.26.64.2 web\n"), "{text}");
        assert_eq!(self::extra(&extra).unwrap(), "10.0.0.9 db\nfd00::9 six\n");
        let wrong = self::extra(&["db".to_string()]).unwrap_err();
        assert_eq!(wrong, "extra_hosts: expected NAME:ADDRESS, not \"db\"");
    }

    #[test]
    fn what_the_job_does_not_say_comes_from_the_host() {
        let host = "# made\nnameserver 10.0.0.53\nsearch example.org\noptions ndots:2\n";
        assert_eq!(resolv_conf(None, host), "nameserver 10.0.0.53\nsearch example.org\noptions ndots:2\n");
        let wanted = DNSConfig {
            servers: vec!["1.1.1.1".to_string(), "8.8.8.8".to_string()].into(),
            options: vec!["rotate".to_string(), "ndots:1".to_string()].into(),
            ..DNSConfig::default()
        };
        let text = resolv_conf(Some(&wanted), host);
        assert_eq!(
            text,
            "nameserver 1.1.1.1\nnameserver 8.8.8.8\nsearch example.org\noptions rotate ndots:1\n"
        );
    }
}
