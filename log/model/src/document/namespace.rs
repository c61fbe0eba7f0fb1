//! Namespaces.

use serde::{Deserialize, Serialize};

use super::{Bytes, List, Map};
use crate::codec::compiled_once;

compiled_once! { Namespace }

/// `Namespace` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase", remote = "Self")]
pub struct Namespace {
    pub name: String,
    pub description: String,
    pub quota: String,
    pub capabilities: Option<NamespaceCapabilities>,
    pub node_pool_configuration: Option<NamespaceNodePoolConfiguration>,
    pub vault_configuration: Option<NamespaceVaultConfiguration>,
    pub consul_configuration: Option<NamespaceConsulConfiguration>,
    pub meta: Map<String, String>,
    pub create_index: u64,
    pub modify_index: u64,
    pub required_extra_claims: Map<String, String>,
    pub optional_extra_claims: Map<String, String>,
    pub hash: Bytes,
}

/// `NamespaceCapabilities` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NamespaceCapabilities {
    pub enabled_task_drivers: List<String>,
    pub disabled_task_drivers: List<String>,
    pub enabled_network_modes: List<String>,
    pub disabled_network_modes: List<String>,
}

/// `NamespaceNodePoolConfiguration` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NamespaceNodePoolConfiguration {
    pub default: String,
    pub allowed: List<String>,
    pub denied: List<String>,
}

/// `NamespaceVaultConfiguration` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NamespaceVaultConfiguration {
    pub default: String,
    pub allowed: List<String>,
    pub denied: List<String>,
}

/// `NamespaceConsulConfiguration` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NamespaceConsulConfiguration {
    pub default: String,
    pub allowed: List<String>,
    pub denied: List<String>,
}
