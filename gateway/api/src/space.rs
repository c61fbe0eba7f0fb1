//! Namespaces and node pools.

pub use model::document::{
    Namespace, NamespaceCapabilities, NamespaceConsulConfiguration, NamespaceNodePoolConfiguration,
    NamespaceVaultConfiguration, NodePool, NodePoolSchedulerConfiguration,
};
