//! What an agent offers to whoever reaches it over the network: said when it starts, and by `agent-info`.

use std::net::{IpAddr, SocketAddr};

use super::AgentSettings;

impl AgentSettings {
    /// One line for each thing that is open beyond this host and could be closed.
    pub(crate) fn exposures(&self) -> Vec<String> {
        let mut lines = without_tls(self);
        lines.extend(without_access_control(self));
        lines
    }
}

fn without_tls(settings: &AgentSettings) -> Vec<String> {
    let open = |what: &str, ip: IpAddr, port: u16, key: &str| {
        let address = SocketAddr::new(ip, port);
        format!(
            "{what} is open on {address} without TLS: others on the network can read and change what is sent; set {key}"
        )
    };
    let mut lines = Vec::new();
    if is_beyond_this_host(settings.http_ip()) && !settings.tls.http {
        lines.push(open("the HTTP API", settings.http_ip(), settings.ports.http, "tls.http"));
    }
    if settings.server.enabled && is_beyond_this_host(settings.rpc_ip()) && !settings.tls.rpc {
        lines.push(open("the node RPC", settings.rpc_ip(), settings.ports.rpc, "tls.rpc"));
    }
    lines
}

fn without_access_control(settings: &AgentSettings) -> Option<String> {
    let address = SocketAddr::new(settings.http_ip(), settings.ports.http);
    (is_beyond_this_host(settings.http_ip()) && !settings.acl.enabled)
        .then(|| format!("whoever reaches {address} may do everything: set acl.enabled"))
}

fn is_beyond_this_host(ip: IpAddr) -> bool {
    !ip.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_open_is_named_once() {
        let mut settings = AgentSettings::dev();
        assert_eq!(settings.exposures(), [""; 0]);
        settings.bind_addr = "10.0.0.1".parse().unwrap();
        let lines = settings.exposures();
        assert!(lines[0].starts_with("the HTTP API is open on 10.0.0.1:4646 without TLS: "), "{lines:?}");
        assert!(lines[1].starts_with("the node RPC is open on 10.0.0.1:4647 without TLS: "), "{lines:?}");
        assert!(lines[2].starts_with("whoever reaches 10.0.0.1:4646 may do everything"), "{lines:?}");
        assert_eq!(lines.len(), 3);
        (settings.tls.http, settings.tls.rpc) = (true, true);
        assert_eq!(settings.exposures().len(), 1);
        settings.acl.enabled = true;
        assert_eq!(settings.exposures(), [""; 0]);
        settings.acl.enabled = false;
        settings.addresses.http = Some("::1".parse().unwrap());
        assert_eq!(settings.exposures(), [""; 0]);
    }
}
