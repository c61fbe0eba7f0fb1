//! The hosts of a cluster's servers: network namespaces if this machine allows them, else ports of this host.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::end_to_end::support::free_port;

/// Hosts that can be cut off: network namespaces, removed when dropped.
pub struct Hosts {
    /// Part of the namespaces' names, so that concurrent runs do not collide.
    mark: u32,
    count: u8,
}

/// Where one server listens.
#[derive(Clone, Debug)]
pub struct Host {
    /// The network namespace it runs in, if it has one.
    pub namespace: Option<String>,
    pub ip: IpAddr,
    pub http: u16,
    pub rpc: u16,
    pub serf: u16,
}

impl Host {
    pub fn http(&self) -> SocketAddr {
        SocketAddr::new(self.ip, self.http)
    }

    /// A host on the loopback device, which cannot be cut off.
    pub fn local() -> Host {
        let ip = IpAddr::V4(Ipv4Addr::LOCALHOST);
        Host { namespace: None, ip, http: free_port(), rpc: free_port(), serf: free_port() }
    }
}

impl Hosts {
    /// `None` when this machine does not let us make network namespaces.
    pub fn make(count: u8) -> Option<Hosts> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let nth = MADE.fetch_add(1, Ordering::Relaxed);
        let hosts = Hosts { mark: (std::process::id() * 8 + nth) % 10_000, count };
        let bridge = hosts.bridge();
        // This range is reserved for benchmarks and not routed.
        let gateway = format!("198.18.{}.254/24", hosts.subnet());
        let made = ip(&["link", "add", &bridge, "type", "bridge"])
            && ip(&["addr", "add", &gateway, "dev", &bridge])
            && ip(&["link", "set", &bridge, "up"])
            && (0..count).all(|number| hosts.make_one(number));
        made.then_some(hosts)
    }

    fn make_one(&self, number: u8) -> bool {
        let (namespace, link) = (self.namespace(number), self.link(number));
        let address = format!("{}/24", self.host(number).ip);
        ip(&["netns", "add", &namespace])
            && ip(&["link", "add", &link, "type", "veth", "peer", "name", "eth0", "netns", &namespace])
            && ip(&["link", "set", &link, "master", &self.bridge(), "up"])
            && ip(&["-n", &namespace, "addr", "add", &address, "dev", "eth0"])
            && ip(&["-n", &namespace, "link", "set", "eth0", "up"])
            && ip(&["-n", &namespace, "link", "set", "lo", "up"])
    }

    pub fn host(&self, number: u8) -> Host {
        let ip = IpAddr::V4(Ipv4Addr::new(198, 18, self.subnet(), number + 1));
        Host { namespace: Some(self.namespace(number)), ip, http: 4646, rpc: 4647, serf: 4648 }
    }

    /// Cuts the host off in both directions.
    pub fn cut(&self, number: u8) {
        assert!(ip(&["link", "set", &self.link(number), "down"]));
    }

    pub fn join(&self, number: u8) {
        assert!(ip(&["link", "set", &self.link(number), "up"]));
    }

    fn subnet(&self) -> u8 {
        (self.mark % 250) as u8
    }

    fn bridge(&self) -> String {
        format!("sjb{}", self.mark)
    }

    fn link(&self, number: u8) -> String {
        format!("sjv{}-{number}", self.mark)
    }

    fn namespace(&self, number: u8) -> String {
        format!("sj{}-{number}", self.mark)
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for number in 0..self.count {
            // Its end of the link goes with it.
            ip(&["netns", "del", &self.namespace(number)]);
        }
        ip(&["link", "del", &self.bridge()]);
    }
}

/// Whether it worked. Its output is dropped.
fn ip(arguments: &[&str]) -> bool {
    let ran = Command::new("ip").args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    ran.is_ok_and(|status| status.success())
}
