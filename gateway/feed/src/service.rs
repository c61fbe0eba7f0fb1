//! Services as the stream shows them.

use api::ServiceRegistration;
use model::document::List;
use state::service::Registered;

/// An instance as Nomad's API shows it.
pub fn registration(row: &Registered) -> ServiceRegistration {
    ServiceRegistration {
        id: row.service.id.clone(),
        service_name: row.service.name.clone(),
        namespace: row.key.namespace.clone(),
        node_id: row.node.to_string(),
        datacenter: row.datacenter.clone(),
        job_id: row.key.id.clone(),
        alloc_id: row.alloc.to_string(),
        tags: List(row.service.tags.clone()),
        address: row.service.address.clone(),
        port: i64::from(row.service.port),
        create_index: row.created.0,
        modify_index: row.modified.0,
    }
}
