//! What follows from rows: who is on which node, and what belongs to which job.
//!
//! Rows are gone through in their order, in which also the folds built these lists.

use std::sync::Arc;

use base::IdMap;
use model::AllocId;

use crate::alloc::Alloc;
use crate::deployment::Deployments;
use crate::eval::Evals;
use crate::node::{NodeLoad, PortSet};
use crate::row::{AllocRow, DeploymentRow, EvalRow};

/// What the lists take from an allocation, gathered while its page is at hand.
#[derive(Clone, Copy)]
pub(super) struct Link {
    id: AllocId,
    job: u32,
    node: u32,
    gone: bool,
    has_ports: bool,
    is_equipped: bool,
}

impl Link {
    pub fn of(alloc: &Alloc) -> Link {
        Link {
            id: alloc.id,
            job: alloc.job.0,
            node: alloc.node.0,
            gone: alloc.gone,
            has_ports: alloc.takes_room() && !alloc.ports.is_empty(),
            is_equipped: alloc.takes_room() && alloc.is_equipped(),
        }
    }
}

/// The allocations that are known, each with its row.
fn known(pages: &[Vec<Link>]) -> impl Iterator<Item = (u32, &Link)> {
    (0..).zip(pages.iter().flatten()).filter(|(_, link)| !link.gone)
}

/// `None` if two allocations have one id.
pub(super) fn alloc_ids(pages: &[Vec<Link>]) -> Option<IdMap<AllocId>> {
    IdMap::from_entries(known(pages).map(|(row, link)| (link.id, row)).collect())
}

/// What is on each of so many nodes.
pub(super) fn loads(nodes: usize, pages: &[Vec<Link>], rows: &[Vec<Arc<Alloc>>]) -> Vec<Arc<NodeLoad>> {
    let lists = alloc_lists(nodes, pages, |link| link.node);
    let mut ports = vec![Vec::new(); nodes];
    let taking = pages.iter().flatten().zip(rows.iter().flatten()).filter(|(link, _)| link.has_ports);
    taking.for_each(|(link, alloc)| ports[link.node as usize].extend_from_slice(&alloc.ports));
    let mut equipped = vec![Vec::new(); nodes];
    let holding = (0..).zip(pages.iter().flatten()).filter(|(_, link)| link.is_equipped);
    holding.for_each(|(row, link)| equipped[link.node as usize].push(AllocRow(row)));
    let load =
        |((allocs, ports), equipped)| Arc::new(NodeLoad { allocs, ports: PortSet::of(ports), equipped });
    lists.into_iter().zip(ports).zip(equipped).map(load).collect()
}

/// The allocations of each of so many jobs.
pub(super) fn allocs_of_jobs(jobs: usize, pages: &[Vec<Link>]) -> Vec<Vec<AllocRow>> {
    alloc_lists(jobs, pages, |link| link.job)
}

fn alloc_lists(owners: usize, pages: &[Vec<Link>], owner: impl Fn(&Link) -> u32) -> Vec<Vec<AllocRow>> {
    let mut counts = vec![0; owners];
    known(pages).for_each(|(_, link)| counts[owner(link) as usize] += 1);
    let mut lists: Vec<Vec<AllocRow>> = counts.into_iter().map(Vec::with_capacity).collect();
    known(pages).for_each(|(row, link)| lists[owner(link) as usize].push(AllocRow(row)));
    lists
}

/// The evaluations of each of so many jobs.
pub(super) fn evals_of_jobs(jobs: usize, evals: &Evals) -> Vec<Vec<EvalRow>> {
    let mut lists = vec![Vec::new(); jobs];
    let known = (0..).zip(evals.rows.iter()).filter(|(_, eval)| !eval.gone);
    known.for_each(|(row, eval)| lists[eval.job.0 as usize].push(EvalRow(row)));
    lists
}

/// The deployments of each of so many jobs.
pub(super) fn deployments_of_jobs(jobs: usize, deployments: &Deployments) -> Vec<Vec<DeploymentRow>> {
    let mut lists = vec![Vec::new(); jobs];
    let known = (0..).zip(deployments.rows.iter()).filter(|(_, deployment)| !deployment.gone);
    known.for_each(|(row, deployment)| lists[deployment.job.0 as usize].push(DeploymentRow(row)));
    lists
}
