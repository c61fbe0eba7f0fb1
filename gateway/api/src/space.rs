//! Namespaces and node pools.

pub use model::document::{Namespace, NamespaceCapabilities, NodePool, NodePoolSchedulerConfiguration};
