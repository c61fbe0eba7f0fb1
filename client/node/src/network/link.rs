//! Interfaces, their addresses and routes, in the network namespace of the calling thread.

use std::io;
use std::net::IpAddr;
use std::os::fd::AsRawFd;

use super::netlink::{Attributes, CREATE, EXCL, Family, Socket, parse};

const NEWLINK: u16 = 16;
const DELLINK: u16 = 17;
const GETLINK: u16 = 18;
const SETLINK: u16 = 19;
const NEWADDR: u16 = 20;
const NEWROUTE: u16 = 24;

const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MASTER: u16 = 10;
const IFLA_PROTINFO: u16 = 12;
const IFLA_LINKINFO: u16 = 18;
const IFLA_IFALIAS: u16 = 20;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;
const IFLA_BRPORT_MODE: u16 = 4;

const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_FLAGS: u16 = 8;
/// The address is used at once, without asking whether somebody else has it.
const IFA_F_NODAD: u32 = 0x2;

const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;

const AF_UNSPEC: u8 = 0;
const AF_INET: u8 = 2;
const AF_BRIDGE: u8 = 7;
const AF_INET6: u8 = 10;
const IFF_UP: u32 = 1;

/// An interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    pub index: u32,
    pub name: String,
    /// A text that stands beside it; empty for none.
    pub alias: String,
    /// The index of the bridge it is a port of; 0 for none.
    pub master: u32,
    /// Such as `bridge` or `veth`; empty for hardware.
    pub kind: String,
}

/// The hands for interfaces of one namespace.
#[derive(Debug)]
pub struct Links(Socket);

impl Links {
    pub fn open() -> io::Result<Links> {
        Socket::open(Family::Route).map(Links)
    }

    pub fn all(&mut self) -> io::Result<Vec<Link>> {
        let found = self.0.dump(GETLINK, &interface(AF_UNSPEC, 0, 0))?;
        Ok(found.iter().filter_map(|body| read(body)).collect())
    }

    pub fn find(&mut self, name: &str) -> io::Result<Option<Link>> {
        Ok(self.all()?.into_iter().find(|link| link.name == name))
    }

    pub fn add_bridge(&mut self, name: &str, mac: [u8; 6]) -> io::Result<()> {
        let info = Attributes::new().text(IFLA_INFO_KIND, "bridge");
        let attributes =
            Attributes::new().text(IFLA_IFNAME, name).bytes(IFLA_ADDRESS, &mac).nested(IFLA_LINKINFO, info);
        self.0.change(NEWLINK, CREATE | EXCL, &interface(AF_UNSPEC, 0, 0), attributes)
    }

    /// A pair of interfaces, one a port of the bridge, the other in `namespace` under the name `inside`.
    pub fn add_pair(
        &mut self,
        name: &str,
        bridge: u32,
        inside: &str,
        namespace: &impl AsRawFd,
    ) -> io::Result<()> {
        let peer =
            Attributes::new().text(IFLA_IFNAME, inside).number(IFLA_NET_NS_FD, namespace.as_raw_fd() as u32);
        let data = Attributes::new().nested_after(VETH_INFO_PEER, &interface(AF_UNSPEC, 0, 0), peer);
        let info = Attributes::new().text(IFLA_INFO_KIND, "veth").nested(IFLA_INFO_DATA, data);
        let attributes =
            Attributes::new().text(IFLA_IFNAME, name).number(IFLA_MASTER, bridge).nested(IFLA_LINKINFO, info);
        self.0.change(NEWLINK, CREATE | EXCL, &interface(AF_UNSPEC, 0, 0), attributes)
    }

    pub fn set_alias(&mut self, index: u32, alias: &str) -> io::Result<()> {
        let attributes = Attributes::new().bytes(IFLA_IFALIAS, alias.as_bytes());
        self.0.change(SETLINK, 0, &interface(AF_UNSPEC, index, 0), attributes)
    }

    pub fn set_up(&mut self, index: u32) -> io::Result<()> {
        self.0.change(SETLINK, 0, &interface(AF_UNSPEC, index, IFF_UP), Attributes::new())
    }

    /// A port of a bridge sends frames back to where they came from.
    pub fn set_hairpin(&mut self, index: u32) -> io::Result<()> {
        let port = Attributes::new().bytes(IFLA_BRPORT_MODE, &[1]);
        let attributes = Attributes::new().nested(IFLA_PROTINFO, port);
        self.0.change(SETLINK, 0, &interface(AF_BRIDGE, index, 0), attributes)
    }

    /// It is no error when it is gone.
    pub fn remove(&mut self, name: &str) -> io::Result<()> {
        let Some(link) = self.find(name)? else { return Ok(()) };
        match self.0.change(DELLINK, 0, &interface(AF_UNSPEC, link.index, 0), Attributes::new()) {
            Err(error) if error.raw_os_error() == Some(ENODEV) => Ok(()),
            result => result,
        }
    }

    /// It is no error when the interface has it.
    pub fn add_address(&mut self, index: u32, address: IpAddr, prefix: u8) -> io::Result<()> {
        let bytes = octets(address);
        let mut header = vec![family(address), prefix, 0, 0];
        header.extend(index.to_ne_bytes());
        let mut attributes = Attributes::new().bytes(IFA_LOCAL, &bytes).bytes(IFA_ADDRESS, &bytes);
        if address.is_ipv6() {
            attributes = attributes.number(IFA_FLAGS, IFA_F_NODAD);
        }
        there_already(self.0.change(NEWADDR, CREATE | EXCL, &header, attributes))
    }

    /// The way to everywhere.
    pub fn add_default_route(&mut self, index: u32, gateway: IpAddr) -> io::Result<()> {
        const MAIN: u8 = 254;
        const BOOT: u8 = 3;
        const UNICAST: u8 = 1;
        let header = [family(gateway), 0, 0, 0, MAIN, BOOT, 0, UNICAST, 0, 0, 0, 0];
        let attributes = Attributes::new().number(RTA_OIF, index).bytes(RTA_GATEWAY, &octets(gateway));
        there_already(self.0.change(NEWROUTE, CREATE | EXCL, &header, attributes))
    }
}

const ENODEV: i32 = 19;

fn there_already(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        result => result,
    }
}

fn family(address: IpAddr) -> u8 {
    if address.is_ipv4() { AF_INET } else { AF_INET6 }
}

pub fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// `struct ifinfomsg`; `flags` are set, others stay.
fn interface(family: u8, index: u32, flags: u32) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[0] = family;
    bytes[4..8].copy_from_slice(&index.to_ne_bytes());
    bytes[8..12].copy_from_slice(&flags.to_ne_bytes());
    bytes[12..].copy_from_slice(&flags.to_ne_bytes());
    bytes
}

fn read(body: &[u8]) -> Option<Link> {
    let index = u32::from_ne_bytes(*body.get(4..8)?.first_chunk()?);
    let mut link = Link { index, ..Link::default() };
    for (kind, value) in parse(body.get(16..)?) {
        match kind {
            IFLA_IFNAME => link.name = text(value),
            IFLA_IFALIAS => link.alias = text(value),
            IFLA_MASTER => link.master = u32::from_ne_bytes(*value.first_chunk()?),
            IFLA_LINKINFO => {
                let info = parse(value).into_iter().find(|(kind, _)| *kind == IFLA_INFO_KIND);
                link.kind = info.map(|(_, name)| text(name)).unwrap_or_default();
            }
            _ => {}
        }
    }
    Some(link)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').to_string()
}
