//! The networks that a plugin has made: it gets back what it has said of one, with its tasks and to remove it.

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use executor::spec;
use plugin::proto::driver::{HostsConfig, NetworkIsolationSpec};
use serde::{Deserialize, Serialize};

/// The directory with one file an allocation.
#[derive(Clone, Debug)]
pub struct Networks(pub PathBuf);

/// Fields are only ever added.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Made {
    mode: i32,
    path: String,
    labels: std::collections::BTreeMap<String, String>,
    /// Name and address.
    host: Option<(String, String)>,
}

impl Networks {
    pub fn put(&self, alloc_id: &str, of: &NetworkIsolationSpec) -> io::Result<()> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
        let host = of.hosts_config.clone().map(|host| (host.hostname, host.address));
        let made = Made { mode: of.mode, path: of.path.clone(), labels: of.labels.clone(), host };
        spec::write(&self.0, &file(alloc_id), &made)
    }

    pub fn find(&self, alloc_id: &str) -> Option<NetworkIsolationSpec> {
        let made: Made = spec::read(&self.0, &file(alloc_id)).ok().flatten()?;
        let hosts_config = made.host.map(|(hostname, address)| HostsConfig { hostname, address });
        Some(NetworkIsolationSpec { mode: made.mode, path: made.path, labels: made.labels, hosts_config })
    }

    pub fn remove(&self, alloc_id: &str) {
        std::fs::remove_file(self.0.join(file(alloc_id))).ok();
    }
}

fn file(alloc_id: &str) -> String {
    format!("{alloc_id}.json")
}
