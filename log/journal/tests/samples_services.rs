//! Samples of events about services.

use model::event::*;
use model::*;

use crate::samples::{id, node};

pub fn samples(name: &str) -> Vec<Event> {
    let alloc = || AllocId(id(4));
    let empty =
        || Service { id: String::new(), name: String::new(), tags: vec![], address: String::new(), port: 0 };
    let full = || Service {
        id: format!("_nomad-task-{}-group-web-ünï-http", alloc()),
        name: "ünï".to_string(),
        tags: vec!["a".to_string(), "b=c".to_string()],
        address: "10.0.0.1".to_string(),
        port: u16::MAX,
    };
    match name {
        "ServicesRegistered" => vec![
            ServicesRegistered {
                alloc: AllocId::default(),
                node: NodeId::default(),
                key: JobKey::new("", ""),
                datacenter: String::new(),
                services: vec![],
            }
            .into(),
            ServicesRegistered {
                alloc: alloc(),
                node: node(),
                key: JobKey::new("default", "web"),
                datacenter: "dc1".to_string(),
                services: vec![empty(), full()],
            }
            .into(),
        ],
        "ServicesDeregistered" => [ServiceEnd::Asked, ServiceEnd::AllocEnded, ServiceEnd::NodeGone]
            .into_iter()
            .map(|cause| ServicesDeregistered { alloc: alloc(), services: vec![full().id], cause }.into())
            .collect(),
        other => crate::samples_volumes::samples(other),
    }
}
