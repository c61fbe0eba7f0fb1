//! Namespaces: one that came with the cluster, and those that operators make.

use model::Doc;
use model::document::{Bytes, Namespace};

use crate::domain::Domain;
use crate::names::{DocumentDomain, NamedDocument, NamedTable};

/// Where jobs are that name no namespace.
pub const DEFAULT: &str = "default";

pub type Namespaces = NamedTable<Namespace>;

impl NamedDocument for Namespace {
    const BUILT_IN: &[&str] = &[DEFAULT];
    const DOMAIN: DocumentDomain = DocumentDomain(Domain::Namespaces);
}

/// A namespace as Nomad's API shows it; `None` if there is none of that name.
pub fn document(namespaces: &Namespaces, name: &str) -> Option<Namespace> {
    let shown = match namespaces.get(name) {
        Some(set) => {
            Namespace { create_index: set.created.0, modify_index: set.modified.0, ..set.document.clone() }
        }
        None if name == DEFAULT => Namespace {
            name: DEFAULT.to_string(),
            description: "Default shared namespace".to_string(),
            create_index: 1,
            modify_index: 1,
            ..Namespace::default()
        },
        None => return None,
    };
    let set = Namespace { create_index: 0, modify_index: 0, ..shown.clone() };
    let hash = blake3::hash(&Doc::of(&set).0).as_bytes().to_vec();
    Some(Namespace { hash: Bytes(hash), ..shown })
}
