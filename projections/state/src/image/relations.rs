//! What follows from rows: who is on which node, and what belongs to which job.
//!
//! Rows are gone through in their order, in which also the folds built these lists.

use std::sync::Arc;

use base::IdMap;
use model::AllocId;

use super::sparse::Sparse;
use crate::alloc::Alloc;
use crate::deployment::Deployments;
use crate::eval::Evals;
use crate::job::JobState;
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

/// The links of every page that is held, with the number of its first row.
pub(super) struct Links(pub Vec<(u32, Vec<Link>)>);

impl Links {
    fn all(&self) -> impl Iterator<Item = (u32, &Link)> {
        self.0.iter().flat_map(|(first, page)| (*first..).zip(page))
    }

    /// The allocations that are known, each with its row.
    fn known(&self) -> impl Iterator<Item = (u32, &Link)> {
        self.all().filter(|(_, link)| !link.gone)
    }
}

/// `None` if two allocations have one id.
pub(super) fn alloc_ids(links: &Links) -> Option<IdMap<AllocId>> {
    IdMap::from_entries(links.known().map(|(row, link)| (link.id, row)).collect())
}

/// What is on each of so many nodes.
pub(super) fn loads(
    nodes: usize,
    links: &Links,
    pages: &[(Vec<Arc<Alloc>>, Vec<u64>)],
) -> Vec<Arc<NodeLoad>> {
    let lists = alloc_lists(&Sparse::<()>::dense(nodes), links, |link| link.node);
    let mut ports = vec![Vec::new(); nodes];
    let rows = pages.iter().flat_map(|(rows, _)| rows);
    let taking = links.all().zip(rows).filter(|((_, link), _)| link.has_ports);
    taking.for_each(|((_, link), alloc)| ports[link.node as usize].extend_from_slice(&alloc.ports));
    let mut equipped = vec![Vec::new(); nodes];
    let holding = links.all().filter(|(_, link)| link.is_equipped);
    holding.for_each(|(row, link)| equipped[link.node as usize].push(AllocRow(row)));
    let load =
        |((allocs, ports), equipped)| Arc::new(NodeLoad { allocs, ports: PortSet::of(ports), equipped });
    lists.into_pages().flatten().zip(ports).zip(equipped).map(load).collect()
}

/// The allocations of each job.
pub(super) fn allocs_of_jobs(jobs: &Sparse<JobState>, links: &Links) -> Sparse<Vec<AllocRow>> {
    alloc_lists(jobs, links, |link| link.job)
}

fn alloc_lists<T>(owners: &Sparse<T>, links: &Links, owner: impl Fn(&Link) -> u32) -> Sparse<Vec<AllocRow>> {
    let mut counts = owners.map(|_| 0);
    links.known().for_each(|(_, link)| counts.get_mut(owner(link)).into_iter().for_each(|count| *count += 1));
    let mut lists = counts.map(|count| Vec::with_capacity(*count));
    let all = links.known();
    all.for_each(|(row, link)| {
        lists.get_mut(owner(link)).into_iter().for_each(|list| list.push(AllocRow(row)))
    });
    lists
}

/// The evaluations of each job.
pub(super) fn evals_of_jobs(jobs: &Sparse<JobState>, evals: &Evals) -> Sparse<Vec<EvalRow>> {
    let mut lists = jobs.map(|_| Vec::new());
    for (row, eval) in evals.rows.held().filter(|(_, eval)| !eval.gone) {
        lists.get_mut(eval.job.0).into_iter().for_each(|list| list.push(EvalRow(row)));
    }
    lists
}

/// The deployments of each job.
pub(super) fn deployments_of_jobs(
    jobs: &Sparse<JobState>,
    deployments: &Deployments,
) -> Sparse<Vec<DeploymentRow>> {
    let mut lists = jobs.map(|_| Vec::new());
    for (row, deployment) in deployments.rows.held().filter(|(_, deployment)| !deployment.gone) {
        lists.get_mut(deployment.job.0).into_iter().for_each(|list| list.push(DeploymentRow(row)));
    }
    lists
}
