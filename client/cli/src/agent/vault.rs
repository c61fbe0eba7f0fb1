//! The Vaults of the settings for the node, and the identities that servers add to jobs.

use jobspec::ImpliedIdentities;
use node::vault::VaultSettings;

use crate::settings::AgentSettings;

/// Those that are switched on.
pub(super) fn settings(settings: &AgentSettings) -> Vec<VaultSettings> {
    let enabled = settings.vaults.iter().filter(|(_, vault)| vault.enabled);
    enabled.map(|(name, vault)| vault.settings(name)).collect()
}

/// What servers add to jobs.
pub(super) fn identities(settings: &AgentSettings) -> ImpliedIdentities {
    let of_consul = |identity: Option<jobspec::ImpliedIdentity>| {
        identity.map(|identity| ("default".to_string(), identity)).into_iter().collect()
    };
    let consul = settings.consul.as_ref();
    let vaults = settings.vaults.iter().filter(|(_, vault)| vault.enabled);
    ImpliedIdentities {
        vault: vaults
            .filter_map(|(name, vault)| Some((name.clone(), vault.default_identity.clone()?)))
            .collect(),
        consul_services: of_consul(consul.and_then(|consul| consul.service_identity.clone())),
        consul_tasks: of_consul(consul.and_then(|consul| consul.task_identity.clone())),
    }
}
