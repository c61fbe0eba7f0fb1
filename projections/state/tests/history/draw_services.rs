//! What happens to services.

use base::Rng;
use model::event::*;
use model::{AllocId, Service, ServiceEnd};
use state::State;

use super::draw::one;

pub fn events(state: &State, rng: &mut Rng) -> Option<Vec<Event>> {
    let known: Vec<AllocId> = {
        let mut known: Vec<AllocId> = state.services.iter().map(|row| row.alloc).collect();
        known.dedup();
        known
    };
    if rng.below(3) == 0 {
        let alloc = one(&known, rng)?;
        let own = state.services.of_alloc(alloc).iter().map(|row| row.service.id.clone());
        let services = own.take(1 + rng.below(2) as usize).collect();
        let causes = [ServiceEnd::Asked, ServiceEnd::AllocEnded, ServiceEnd::NodeGone];
        return Some(vec![ServicesDeregistered { alloc, services, cause: one(&causes, rng)? }.into()]);
    }
    let jobs: Vec<_> = state.jobs.iter().map(|(_, job)| (job.key.clone(), job.allocs.clone())).collect();
    let (key, allocs) = jobs.get(rng.below(jobs.len().max(1) as u64) as usize)?;
    let alloc = state.allocs.get(one(allocs, rng)?);
    let services = (0..=rng.below(3)).map(|number| service(alloc.id, number, rng)).collect();
    let (node, datacenter) = (alloc.node_id, "dc1".to_string());
    let event = ServicesRegistered { alloc: alloc.id, node, key: key.clone(), datacenter, services };
    Some(vec![event.into()])
}

fn service(alloc: AllocId, number: u64, rng: &mut Rng) -> Service {
    let name = format!("service-{}", rng.below(4));
    Service {
        id: format!("_nomad-task-{alloc}-group-web-{number}-http"),
        name,
        tags: (0..rng.below(3)).map(|tag| format!("tag-{tag}")).collect(),
        address: format!("10.0.0.{}", rng.below(256)),
        port: rng.below(1 << 16) as u16,
    }
}
