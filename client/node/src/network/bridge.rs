//! The built-in bridge: for hosts that have no plugins.
//!
//! Everything is asked of the kernel directly, so nothing has to be installed. Interfaces carry an alias that says whose
//! they are; rules are in tables of our own, replaced whole (see [`rules`]).

use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::forwarding;
use super::link::{Link, Links};
use super::namespace;
use super::nft::{self, Layer};
use super::record::{self, Port, Record};
use super::rules::{self, Attached, Shape};
use super::{NetworkError, NetworkSettings};

/// The name of the interface inside.
pub const INSIDE: &str = "eth0";

/// Stands beside the bridge that we have made, and before the allocation beside its port.
const ALIAS: &str = "sojourn";

const ALIAS_BYTES_MAX: usize = 255;

/// What comes before the digits of the allocation in the name of its port.
const PORT_PREFIX: &str = "sj";

/// Names of interfaces have 15 characters at most, so that an id does not fit.
pub fn port_name(alloc_id: &str) -> String {
    let digest = Sha256::digest(alloc_id.as_bytes());
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{PORT_PREFIX}{}", &digits[..13])
}

/// The name of our tables of packet filters.
fn table(settings: &NetworkSettings) -> String {
    format!("sojourn-{}", settings.bridge_name)
}

fn failed(what: &str) -> impl Fn(io::Error) -> NetworkError + '_ {
    move |error| NetworkError(format!("{what}: {error}"))
}

/// Connects the namespace at `path` to the bridge, which is made if it is not there. `directory` is that of the records.
pub fn attach(
    settings: &NetworkSettings,
    directory: &Path,
    alloc_id: &str,
    port: &Port,
    path: &Path,
) -> Result<(), NetworkError> {
    let mut links = Links::open().map_err(failed("netlink"))?;
    let bridge = prepare(settings, &mut links)?;
    let plug = |links: &mut Links| -> io::Result<()> {
        let namespace = File::open(path)?;
        links.add_pair(&port.interface, bridge.index, INSIDE, &namespace)?;
        let own = links.find(&port.interface)?.ok_or_else(|| io::Error::other("it is gone again"))?;
        links.set_alias(own.index, &alias(directory, alloc_id))?;
        // To reach itself by a port of the host: the kernel may redirect a frame on the bridge already.
        links.set_hairpin(own.index)?;
        links.set_up(own.index)
    };
    plug(&mut links).map_err(failed("interface of the allocation"))?;
    namespace::within(path, || furnish(settings, port)).map_err(failed("inside of the allocation"))
}

/// Inside the namespace of the allocation.
fn furnish(settings: &NetworkSettings, port: &Port) -> io::Result<()> {
    let mut links = Links::open()?;
    loopback_up(&mut links)?;
    let inside = links.find(INSIDE)?.ok_or_else(|| io::Error::other("the interface did not arrive"))?;
    use_addresses_at_once(INSIDE);
    links.set_up(inside.index)?;
    let (subnet, v6) = (settings.bridge_subnet, settings.bridge_subnet_v6);
    links.add_address(inside.index, port.address.into(), subnet.prefix)?;
    links.add_default_route(inside.index, subnet.gateway().into())?;
    if let Some((subnet, address)) = v6.zip(port.address_v6) {
        links.add_address(inside.index, address.into(), subnet.prefix)?;
        links.add_default_route(inside.index, subnet.gateway().into())?;
    }
    Ok(())
}

pub fn loopback_up(links: &mut Links) -> io::Result<()> {
    match links.find("lo")? {
        Some(loopback) => links.set_up(loopback.index),
        None => Ok(()),
    }
}

/// The bridge, with its addresses, and a host that passes packets on.
fn prepare(settings: &NetworkSettings, links: &mut Links) -> Result<Link, NetworkError> {
    let name = &settings.bridge_name;
    let gateway = settings.bridge_subnet.gateway();
    let make = |links: &mut Links| -> io::Result<Link> {
        if links.find(name)?.is_none() {
            // A bridge without one of its own changes it with its ports, and neighbours would look for it again.
            let [a, b, c, d] = gateway.octets();
            links.add_bridge(name, [0x0a, 0x58, a, b, c, d])?;
            let made = links.find(name)?.ok_or_else(|| io::Error::other("it is gone again"))?;
            links.set_alias(made.index, ALIAS)?;
            use_addresses_at_once(name);
        }
        links.find(name)?.ok_or_else(|| io::Error::other("it is gone again"))
    };
    let bridge = make(links).map_err(|error| NetworkError(format!("bridge \"{name}\": {error}")))?;
    if bridge.kind != "bridge" {
        return Err(NetworkError(format!(
            "bridge_network_name \"{name}\" is an interface that is no bridge"
        )));
    }
    let configure = |links: &mut Links| -> io::Result<()> {
        links.add_address(bridge.index, IpAddr::V4(gateway), settings.bridge_subnet.prefix)?;
        if let Some(subnet) = settings.bridge_subnet_v6 {
            links.add_address(bridge.index, IpAddr::V6(subnet.gateway()), subnet.prefix)?;
        }
        links.set_up(bridge.index)?;
        switch_on("ipv4/ip_forward")?;
        // The host reaches ports of allocations at its loopback too.
        switch_on(&format!("ipv4/conf/{name}/route_localnet"))?;
        match settings.bridge_subnet_v6 {
            Some(_) => switch_on("ipv6/conf/all/forwarding"),
            None => Ok(()),
        }
    };
    configure(links).map_err(|error| NetworkError(format!("bridge \"{name}\": {error}")))?;
    forwarding::allow(name, settings.bridge_subnet_v6.is_some());
    Ok(bridge)
}

/// The kernel asks for a second whether another one has the address that it gives an IPv6 interface itself, and finds no
/// neighbours meanwhile. Nobody else gives out addresses here.
pub fn use_addresses_at_once(interface: &str) {
    // A kernel without IPv6 has no such file.
    std::fs::write(format!("/proc/sys/net/ipv6/conf/{interface}/accept_dad"), "0").ok();
}

fn switch_on(key: &str) -> io::Result<()> {
    let path = format!("/proc/sys/net/{key}");
    match std::fs::read_to_string(&path) {
        Ok(value) if value.trim() == "1" => Ok(()),
        _ => std::fs::write(&path, "1").map_err(|error| io::Error::other(format!("{path}: {error}"))),
    }
}

/// Brings the rules in line with the records. Without any, everything of ours goes.
pub fn filter<'r>(
    settings: &NetworkSettings,
    records: impl Iterator<Item = &'r Record>,
) -> Result<(), NetworkError> {
    let ports: Vec<&Port> = records.filter_map(Record::port).collect();
    let name = table(settings);
    if ports.is_empty() {
        return clear(settings, &name);
    }
    let attached: Vec<Attached<'_>> = ports
        .iter()
        .map(|port| Attached {
            interface: &port.interface,
            address: port.address,
            address_v6: port.address_v6,
            forwards: &port.forwards,
            isolated: port.isolated.as_deref(),
        })
        .collect();
    let shape = Shape {
        bridge: &settings.bridge_name,
        subnet: settings.bridge_subnet,
        subnet_v6: settings.bridge_subnet_v6,
    };
    let tables = rules::tables(&name, &shape, &attached);
    let unused = tables.iter().all(|table| table.layer != Layer::Bridge);
    nft::replace(&tables).map_err(failed("packet filters"))?;
    if unused {
        // A kernel that cannot filter there has none to be removed either.
        nft::remove(&name, Layer::Bridge).ok();
    }
    Ok(())
}

fn clear(settings: &NetworkSettings, table: &str) -> Result<(), NetworkError> {
    let mut links = Links::open().map_err(failed("netlink"))?;
    let all = links.all().map_err(failed("interfaces"))?;
    let bridge = all.iter().find(|link| link.name == settings.bridge_name && link.kind == "bridge");
    if let Some(bridge) = bridge {
        let in_use = all.iter().any(|link| link.master == bridge.index);
        if bridge.alias == ALIAS && !in_use {
            links.remove(&bridge.name).map_err(failed("bridge"))?;
        }
        forwarding::forget(&settings.bridge_name);
    }
    for layer in [Layer::Inet, Layer::Bridge] {
        match nft::remove(table, layer) {
            Err(error) if nft::is_unsupported(&error) => {}
            removed => removed.map_err(failed("packet filters"))?,
        }
    }
    Ok(())
}

/// Takes the allocation off the bridge. What packets are let through is decided by [`filter`].
pub fn detach(port: &Port) -> Result<(), NetworkError> {
    let mut links = Links::open().map_err(failed("netlink"))?;
    // Its other end goes with it.
    links.remove(&port.interface).map_err(failed("interface of the allocation"))
}

/// True when the allocation is connected as the record says.
pub fn is_attached(port: &Port, path: &Path) -> bool {
    let outside = Links::open().and_then(|mut links| links.find(&port.interface));
    let inside = || namespace::within(path, || Links::open()?.find(INSIDE));
    outside.is_ok_and(|link| link.is_some()) && inside().is_ok_and(|link| link.is_some())
}

/// What stands beside the port of an allocation: whose it is, and where that is written down.
fn alias(directory: &Path, alloc_id: &str) -> String {
    let mut alias = format!("{ALIAS} {alloc_id} {}", directory.display());
    // The kernel has no room for more. A path that is cut leads nowhere, as one whose agent is gone.
    alias.truncate(alias.floor_char_boundary(ALIAS_BYTES_MAX));
    alias
}

/// The allocation, and the directory of its record.
fn read_alias(alias: &str) -> Option<(&str, &Path)> {
    let (alloc_id, directory) = alias.strip_prefix(ALIAS)?.trim_start().split_once(' ')?;
    Some((alloc_id, Path::new(directory)))
}

/// The directory of an agent whose allocations are on the bridge, if that is another one. It does not run now, and will find
/// them again.
pub fn owner(settings: &NetworkSettings, own: &Path) -> io::Result<Option<PathBuf>> {
    let all = Links::open()?.all()?;
    let Some(bridge) = all.iter().find(|link| link.name == settings.bridge_name) else { return Ok(None) };
    let ports = all.iter().filter(|link| link.master == bridge.index);
    let mut owners = ports.filter_map(|link| read_alias(&link.alias));
    let others =
        owners.find(|(alloc_id, directory)| *directory != own && record::exists(directory, alloc_id));
    Ok(others.map(|(_, directory)| directory.to_path_buf()))
}

/// Removes ports of the bridge, and their namespaces, that no record names: the records were lost.
pub fn remove_unknown<'r>(settings: &NetworkSettings, records: impl Iterator<Item = &'r Record>) {
    let known: Vec<&str> = records.filter_map(Record::port).map(|port| port.interface.as_str()).collect();
    let Ok(mut links) = Links::open() else { return };
    let Ok(all) = links.all() else { return };
    let Some(bridge) = all.iter().find(|link| link.name == settings.bridge_name) else { return };
    for link in all.iter().filter(|link| link.master == bridge.index) {
        let Some((alloc_id, _)) = read_alias(&link.alias) else { continue };
        if known.contains(&link.name.as_str()) {
            continue;
        }
        tracing::warn!(interface = link.name, alloc = alloc_id, "removing a network that nobody knows");
        if let Err(error) = links.remove(&link.name) {
            tracing::warn!(interface = link.name, %error, "it was not removed");
        }
        if alloc_id.parse::<base::Uuid>().is_ok() {
            namespace::remove(&namespace::path(alloc_id)).ok();
        }
    }
}
