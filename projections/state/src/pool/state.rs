use model::Algorithm;
use model::document::NodePool;

use crate::domain::Domain;
use crate::names::{DocumentDomain, Named, NamedDocument, NamedTable};

/// Where nodes and jobs are that name no pool.
pub const DEFAULT: &str = "default";
/// Every node there is. No node can name it.
pub const ALL: &str = "all";

pub type Pool = Named<NodePool>;

/// All pools but the two that are always there.
pub type Pools = NamedTable<NodePool>;

impl NamedDocument for NodePool {
    const BUILT_IN: &[&str] = &[ALL, DEFAULT];
    const DOMAIN: DocumentDomain = DocumentDomain(Domain::Pools);
}

impl Pool {
    /// What nodes in it are chosen by, if not by the cluster's own.
    pub fn algorithm(&self) -> Option<Algorithm> {
        Algorithm::from_word(&self.document.scheduler_configuration.as_ref()?.scheduler_algorithm)
    }

    pub fn memory_oversubscription(&self) -> Option<bool> {
        self.document.scheduler_configuration.as_ref()?.memory_oversubscription_enabled
    }
}
