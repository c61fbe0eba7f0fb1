//! Networks of allocations: namespaces of their own, and what connects them.
//!
//! | mode | what connects it |
//! |---|---|
//! | `none` | nothing: it has a loopback ([`namespace`]) |
//! | `bridge` | the plugins that are installed ([`plugins`]), else the built-in bridge ([`bridge`]) |
//! | `cni/<name>` | the plugins of that configuration |
//!
//! What is made is written down before ([`record`]), so that the next agent can undo it, at whatever moment this one dies.

mod bridge;
mod forwarding;
pub mod hosts;
mod link;
pub mod namespace;
mod netlink;
mod nft;
pub mod plugins;
mod record;
mod request;
mod rules;
mod subnet;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use self::link::Links;
pub use self::record::Status;
use self::record::{Attachment, Port, Record};
pub use self::request::{Mode, Request, group_request};
pub use self::subnet::Subnet;

/// What the operator decides about networks of allocations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkSettings {
    pub bridge_name: String,
    pub bridge_subnet: Subnet<Ipv4Addr>,
    pub bridge_subnet_v6: Option<Subnet<Ipv6Addr>>,
    pub bridge_hairpin: bool,
    /// Where plugins are looked for.
    pub cni_path: Vec<PathBuf>,
    pub cni_config_dir: PathBuf,
    /// Ports of the default host network are open at all addresses of the host.
    pub bind_wildcard: bool,
    /// By name; ports may ask for them.
    pub host_networks: BTreeMap<String, HostNetwork>,
}

/// Addresses of the host under a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostNetwork {
    /// Networks that its addresses are in; empty for all.
    pub cidr: String,
    /// The interface that has them; empty for any.
    pub interface: String,
    pub reserved_ports: String,
}

impl Default for NetworkSettings {
    fn default() -> NetworkSettings {
        NetworkSettings {
            bridge_name: "nomad".to_string(),
            bridge_subnet: Subnet { base: Ipv4Addr::new(172, 26, 64, 0), prefix: 20 },
            bridge_subnet_v6: None,
            bridge_hairpin: false,
            cni_path: vec![PathBuf::from("/opt/cni/bin")],
            cni_config_dir: PathBuf::from("/opt/cni/config"),
            bind_wildcard: true,
            host_networks: BTreeMap::new(),
        }
    }
}

/// Why an allocation has no network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NetworkError(pub String);

impl NetworkError {
    fn io(what: &str, error: &io::Error) -> NetworkError {
        NetworkError(format!("{what}: {error}"))
    }
}

/// The network of an allocation, ready for its tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    pub namespace: PathBuf,
    pub status: Status,
    /// The driver that has made the namespace; empty for the agent.
    pub driver: String,
}

/// The networks of all allocations of the node.
#[derive(Clone, Debug)]
pub struct Networks(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    settings: NetworkSettings,
    directory: PathBuf,
    /// Held while something is made or undone, which may take its time: one after the other.
    work: Mutex<Work>,
    /// Never held for long.
    records: Mutex<BTreeMap<String, Record>>,
}

#[derive(Debug, Default)]
struct Work {
    /// The number of the address that was given away last.
    last_host: u32,
    /// No other agent of this host has the bridge while this is there.
    bridge: Option<UnixListener>,
}

impl Networks {
    /// `directory` is where is written down what there is.
    pub fn open(settings: NetworkSettings, directory: PathBuf) -> Networks {
        let directory = std::path::absolute(&directory).unwrap_or(directory);
        let records = record::load(&directory);
        let hosts = records.values().filter_map(Record::port);
        let last_host = hosts.filter_map(|port| settings.bridge_subnet.host(port.address)).max().unwrap_or(0);
        let work = Mutex::new(Work { last_host, bridge: None });
        Networks(Arc::new(Shared { settings, directory, work, records: Mutex::new(records) }))
    }

    pub fn settings(&self) -> &NetworkSettings {
        &self.0.settings
    }

    /// The network of an allocation, if everything of it was made.
    pub fn find(&self, alloc_id: &str) -> Option<Network> {
        self.0.records().get(alloc_id).filter(|record| record.complete).map(network)
    }

    /// Writes down what will be made. What an earlier agent has left of it stays if it is whole, and goes otherwise.
    ///
    /// # Errors
    /// When it is not possible here.
    pub async fn begin(&self, request: Request) -> Result<(), NetworkError> {
        self.blocking(move |shared, work| shared.begin(work, request)).await
    }

    /// Makes the network that was begun. `of` is the namespace that a driver has made for it.
    ///
    /// # Errors
    /// When it cannot be made; what there is of it is undone by [`Networks::tear_down`].
    pub async fn set_up(&self, alloc_id: &str, of: Option<PathBuf>) -> Result<Network, NetworkError> {
        let alloc_id = alloc_id.to_string();
        self.blocking(move |shared, work| shared.set_up(work, &alloc_id, of.as_deref())).await
    }

    /// Undoes everything, but for the namespace that a driver has made: that is remembered until [`Networks::forget`]. It is
    /// no error when there is nothing.
    ///
    /// # Errors
    /// When something is left; it is known still, and the next agent tries again.
    pub async fn tear_down(&self, alloc_id: &str) -> Result<(), NetworkError> {
        let alloc_id = alloc_id.to_string();
        self.blocking(move |shared, work| shared.tear_down(work, &alloc_id)).await
    }

    /// The driver has removed its namespace, so that nothing is left to remember.
    ///
    /// # Errors
    /// When that cannot be written down.
    pub async fn forget(&self, alloc_id: &str) -> Result<(), NetworkError> {
        let alloc_id = alloc_id.to_string();
        self.blocking(move |shared, _| shared.forget(&alloc_id)).await
    }

    /// The driver that has made the namespace of an allocation, also while it is being made; empty for the agent.
    pub fn driver_of(&self, alloc_id: &str) -> String {
        self.0.records().get(alloc_id).map(|record| record.driver.clone()).unwrap_or_default()
    }

    /// Removes what earlier agents have left of allocations that are not known any more. Returns those whose namespace
    /// a driver has made, with the driver.
    pub async fn collect(&self, known: BTreeSet<String>) -> Vec<(String, String)> {
        self.blocking(move |shared, work| Ok(shared.collect(work, &known))).await.unwrap_or_default()
    }

    /// One after the other, on a thread that may wait. What nobody waits for any more when its turn comes is not done: the
    /// allocation may be gone by then, and with it whoever would undo this.
    async fn blocking<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Shared, &mut Work) -> Result<T, NetworkError> + Send + 'static,
    ) -> Result<T, NetworkError> {
        let shared = Arc::clone(&self.0);
        let abandoned = CancellationToken::new();
        let _when_dropped = abandoned.clone().drop_guard();
        let done = tokio::task::spawn_blocking(move || {
            let mut work = shared.work();
            match abandoned.is_cancelled() {
                true => Err(NetworkError("the allocation was removed meanwhile".to_string())),
                false => act(&shared, &mut work),
            }
        });
        let done = done.await;
        done.unwrap_or_else(|error| Err(NetworkError(format!("a network was not made: {error}"))))
    }
}

fn network(record: &Record) -> Network {
    Network {
        namespace: namespace::path(&record.alloc_id),
        status: record.status.clone(),
        driver: record.driver.clone(),
    }
}

impl Shared {
    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn records(&self) -> MutexGuard<'_, BTreeMap<String, Record>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All records as they are now.
    fn all(&self) -> Vec<Record> {
        self.records().values().cloned().collect()
    }

    fn begin(&self, work: &mut Work, request: Request) -> Result<(), NetworkError> {
        if !rustix::process::geteuid().is_root() {
            return Err(NetworkError("networks of groups need an agent that is root".to_string()));
        }
        let before = self.records().get(&request.alloc_id).cloned();
        if let Some(record) = before {
            if record.complete && self.is_whole(&record) {
                return Ok(());
            }
            self.tear_down(work, &request.alloc_id)?;
        }
        let attachment = self.attachment(work, &request)?;
        let Request { alloc_id, driver, .. } = request;
        self.keep(Record { alloc_id, attachment, driver, ..Record::default() })
    }

    fn attachment(&self, work: &mut Work, request: &Request) -> Result<Attachment, NetworkError> {
        let chain = match &request.mode {
            Mode::None => return Ok(Attachment::Loopback),
            Mode::Plugins(name) => plugins::configured(&self.settings, name, request)?,
            Mode::Bridge if plugins::can_bridge(&self.settings) => {
                if request.isolated.is_some() {
                    return Err(NetworkError(
                        "network isolation \"job\" needs the built-in bridge, and this node has the plugins of \
                         cni_path make its bridges"
                            .to_string(),
                    ));
                }
                plugins::bridging(&self.settings, request)?
            }
            Mode::Bridge => return self.port(work, request).map(Attachment::Bridge),
        };
        Ok(Attachment::Plugins(Box::new(chain)))
    }

    /// A port of the built-in bridge, with an address that nobody has.
    fn port(&self, work: &mut Work, request: &Request) -> Result<Port, NetworkError> {
        self.claim_bridge(work)?;
        let subnet = self.settings.bridge_subnet;
        let all = self.all();
        let taken =
            all.iter().filter_map(Record::port).filter_map(|port| subnet.host(port.address)).collect();
        let host = subnet.next(&taken, work.last_host);
        let host =
            host.ok_or_else(|| NetworkError("bridge_network_subnet has no free address".to_string()))?;
        work.last_host = host;
        Ok(Port {
            bridge: self.settings.bridge_name.clone(),
            interface: bridge::port_name(&request.alloc_id),
            address: subnet.address(host),
            address_v6: self.settings.bridge_subnet_v6.map(|subnet| subnet.address(host)),
            forwards: request.ports.clone(),
            isolated: request.isolated.clone(),
        })
    }

    /// Two agents of one host would give away the same addresses. The name is one of this network namespace and goes with
    /// the process.
    fn claim_bridge(&self, work: &mut Work) -> Result<(), NetworkError> {
        if work.bridge.is_some() {
            return Ok(());
        }
        let name = &self.settings.bridge_name;
        let bound = SocketAddr::from_abstract_name(format!("sojourn/bridge/{name}"))
            .and_then(|address| UnixListener::bind_addr(&address));
        let taken = |of: &str| {
            NetworkError(format!(
                "bridge \"{name}\" is that of another agent on this host{of}: set bridge_network_name and \
                 bridge_network_subnet to something else"
            ))
        };
        let fails = |error| NetworkError::io(&format!("bridge \"{name}\""), &error);
        let bound = bound.map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => taken(""),
            _ => fails(error),
        })?;
        if let Some(other) = bridge::owner(&self.settings, &self.directory).map_err(fails)? {
            return Err(taken(&format!(", with {}", other.display())));
        }
        work.bridge = Some(bound);
        Ok(())
    }

    fn keep(&self, record: Record) -> Result<(), NetworkError> {
        let saved = record::save(&self.directory, &record);
        saved.map_err(|error| NetworkError::io("write down the network", &error))?;
        self.records().insert(record.alloc_id.clone(), record);
        Ok(())
    }

    fn set_up(&self, work: &mut Work, alloc_id: &str, of: Option<&Path>) -> Result<Network, NetworkError> {
        let lost = || NetworkError("the allocation was removed meanwhile".to_string());
        let record = self.records().get(alloc_id).cloned().ok_or_else(lost)?;
        let path = namespace::path(alloc_id);
        if record.complete {
            if of.is_none_or(|of| is_same(of, &path)) {
                return Ok(network(&record));
            }
            // The driver has made a new one: the old one was lost with its processes.
            self.undo(&record)?;
        }
        let mut record = Record { complete: false, ..record };
        self.keep(record.clone())?;
        let made = match of {
            Some(of) => namespace::adopt(of, &path),
            None => namespace::create(&path),
        };
        made.map_err(|error| NetworkError::io("network namespace", &error))?;
        match &mut record.attachment {
            Attachment::Loopback => {
                let up = namespace::within(&path, || bridge::loopback_up(&mut Links::open()?));
                up.map_err(|error| NetworkError::io("loopback", &error))?;
            }
            Attachment::Bridge(port) => {
                self.claim_bridge(work)?;
                bridge::attach(&self.settings, &self.directory, alloc_id, port, &path)?;
                record.status = Status {
                    interface: bridge::INSIDE.to_string(),
                    address: port.address.to_string(),
                    address_v6: port.address_v6.map(|address| address.to_string()).unwrap_or_default(),
                    dns: None,
                };
                bridge::filter(&self.settings, self.all().iter())?;
            }
            Attachment::Plugins(chain) => {
                record.status = plugins::add(&self.settings, alloc_id, chain, &path)?;
            }
        }
        record.complete = true;
        self.keep(record.clone())?;
        Ok(network(&record))
    }

    /// True when the kernel still has everything that the record says.
    fn is_whole(&self, record: &Record) -> bool {
        let path = namespace::path(&record.alloc_id);
        namespace::is_mounted(&path)
            && match &record.attachment {
                Attachment::Loopback => true,
                Attachment::Bridge(port) => bridge::is_attached(port, &path),
                Attachment::Plugins(chain) => plugins::check(&self.settings, &record.alloc_id, chain, &path),
            }
    }

    fn tear_down(&self, work: &mut Work, alloc_id: &str) -> Result<(), NetworkError> {
        let record = self.records().get(alloc_id).cloned();
        let Some(record) = record else { return Ok(()) };
        self.undo(&record)?;
        if record.port().is_some() {
            self.claim_bridge(work)?;
            let mut others = self.all();
            others.retain(|other| other.alloc_id != alloc_id);
            bridge::filter(&self.settings, others.iter())?;
        }
        match record.driver.is_empty() {
            true => self.forget(alloc_id),
            false => {
                let (attachment, status) = Default::default();
                self.keep(Record { attachment, status, complete: false, ..record })
            }
        }
    }

    fn forget(&self, alloc_id: &str) -> Result<(), NetworkError> {
        record::forget(&self.directory, alloc_id)
            .map_err(|error| NetworkError::io("forget the network", &error))?;
        self.records().remove(alloc_id);
        Ok(())
    }

    /// What the kernel has of it, besides rules.
    fn undo(&self, record: &Record) -> Result<(), NetworkError> {
        let path = namespace::path(&record.alloc_id);
        match &record.attachment {
            Attachment::Loopback => {}
            Attachment::Bridge(port) => bridge::detach(port)?,
            Attachment::Plugins(chain) => plugins::remove(&self.settings, &record.alloc_id, chain, &path)?,
        }
        namespace::remove(&path).map_err(|error| NetworkError::io("network namespace", &error))
    }

    fn collect(&self, work: &mut Work, wanted: &BTreeSet<String>) -> Vec<(String, String)> {
        if !rustix::process::geteuid().is_root() {
            return Vec::new();
        }
        let all = self.all();
        let gone = all.into_iter().filter(|record| !wanted.contains(&record.alloc_id));
        let gone: Vec<(String, String)> = gone.map(|record| (record.alloc_id, record.driver)).collect();
        for (alloc_id, _) in &gone {
            if let Err(error) = self.tear_down(work, alloc_id) {
                tracing::warn!(alloc = alloc_id, %error, "a network is left");
            }
        }
        let has_bridge = Links::open()
            .and_then(|mut links| links.find(&self.settings.bridge_name))
            .is_ok_and(|bridge| bridge.is_some());
        if has_bridge && !plugins::can_bridge(&self.settings) && self.claim_bridge(work).is_ok() {
            bridge::remove_unknown(&self.settings, self.all().iter());
            // The rules of an agent that died while it changed something.
            if let Err(error) = bridge::filter(&self.settings, self.all().iter()) {
                tracing::warn!(%error, "rules of networks were not renewed");
            }
        }
        gone.into_iter().filter(|(_, driver)| !driver.is_empty()).collect()
    }
}

/// True when this process can make bridges, and say what passes them.
pub fn can_bridge() -> bool {
    rustix::process::geteuid().is_root() && nft::is_possible(nft::Layer::Inet)
}

/// True when both paths lead to one namespace.
fn is_same(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |path: &Path| std::fs::metadata(path).map(|found| (found.dev(), found.ino())).ok();
    id(one).is_some() && id(one) == id(other)
}

#[cfg(test)]
mod tests;
