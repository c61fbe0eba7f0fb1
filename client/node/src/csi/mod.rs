//! Storage plugins of this node, which are tasks themselves, and the volumes that tasks have of them.
//!
//! `plugins.rs`: which plugins there are, as their supervisors found them. `supervisor.rs`: the loop beside each plugin's task.
//! `paths.rs`, `volume.rs`: where volumes are mounted, and how. `calls.rs`: what servers ask of the plugins. The task hook
//! `csi_plugin_supervisor` and the hook `csi` of allocations use them.

mod calls;
pub mod paths;
mod plugins;
mod supervisor;
pub mod volume;

use std::time::Duration;

pub use plugins::{Instance, Plugins};
pub use supervisor::{Supervised, watch};

/// How patient the node is with plugins, and with others that have a volume.
#[derive(Clone, Copy, Debug)]
pub struct CsiSettings {
    /// How often a plugin that is well is probed, one that is not, and one that has not been well yet.
    pub probe_every: Duration,
    pub probe_unhealthy_every: Duration,
    pub probe_new_every: Duration,
    /// Before a claim is tried again that others stand in the way of; twice as long each time after that, up to the second.
    pub claim_pause: Duration,
    pub claim_pause_max: Duration,
    /// For how long that goes on before the allocation fails.
    pub claim_within: Duration,
    /// How long an allocation waits for the plugin of its volume.
    pub plugin_within: Duration,
    /// How long an allocation that has ended tries to give its volumes back. After that the servers ask for it.
    pub undo_within: Duration,
}

impl CsiSettings {
    /// Nomad's, as far as it has them.
    pub const fn usual() -> CsiSettings {
        CsiSettings {
            probe_every: Duration::from_secs(30),
            probe_unhealthy_every: Duration::from_secs(5),
            probe_new_every: Duration::from_millis(500),
            claim_pause: Duration::from_secs(1),
            claim_pause_max: Duration::from_secs(60),
            claim_within: Duration::from_secs(24 * 60 * 60),
            plugin_within: Duration::from_secs(5 * 60),
            undo_within: Duration::from_secs(60),
        }
    }
}
