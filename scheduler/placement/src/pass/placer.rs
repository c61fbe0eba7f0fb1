//! Finds nodes for the placement requests of a service or batch job.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::Rng;
use model::document::{AllocationMetric, NodeScoreMeta, TaskGroup};
use state::alloc::Alloc;
use state::job::JobVersion;

use crate::feasibility::metrics::{add_exhausted, with_pool};
use crate::feasibility::node_check::NodeCheck;
use crate::feasibility::proposed::Proposed;
use crate::feasibility::requirements::Requirements;
use crate::feasibility::resource_request::ResourceRequest;
use crate::pass::plan_draft::{PlacedVersion, PlacementColumns, PlanDraft};
use crate::preemption::Preemptor;
use crate::ranking::eval_ranking::{EvalRanking, RankedGroup, Sibling};
use crate::ranking::memory::Memory;
use crate::ranking::sampling::{self, Sampler};
use crate::reconcile::{GroupPlan, PassContext, PlacementRequest};
use crate::reschedule;
use crate::settings::settings;

/// Finds nodes, group by group.
pub struct Placer<'e, 'c> {
    cx: &'c PassContext<'e>,
    memory: &'c mut Memory,
    proposed: Proposed<'e>,
    allocs: Vec<&'e Alloc>,
    ports: Rng,
    seed: u64,
    /// `None`: jobs of this type do not preempt.
    preemptor: Option<Preemptor>,
    /// The order in which nodes are visited, by node pool and datacenters; only where nodes are sampled.
    samplers: BTreeMap<(Option<String>, Vec<String>), Option<Sampler>>,
    /// The requirements of what was placed. While it is empty, the memory has not been updated to the state.
    shapes: Vec<Requirements>,
}

impl<'e, 'c> Placer<'e, 'c> {
    pub fn new(
        cx: &'c PassContext<'e>,
        memory: &'c mut Memory,
        proposed: Proposed<'e>,
        allocs: Vec<&'e Alloc>,
        seed: u64,
    ) -> Placer<'e, 'c> {
        let (ports, samplers) = (Rng::stream(seed, "ports"), BTreeMap::new());
        let preemptor = Preemptor::of(cx);
        Placer { cx, memory, proposed, allocs, ports, seed, preemptor, samplers, shapes: Vec::new() }
    }

    /// Successors of destructive updates come first, then what is missing. Requests for the same version are placed
    /// together; `node_check` is that of the current version.
    pub fn place(
        &mut self,
        draft: &mut PlanDraft,
        name: &str,
        node_check: &NodeCheck<'e>,
        decision: &GroupPlan<'e>,
    ) {
        let state = self.cx.state;
        let requests: Vec<PlacementRequest<'e>> = decision.requests().copied().collect();
        let one_by_one = node_check.requirements.volumes.one_by_one;
        for requests in requests.chunk_by(|one, next| run(one) == run(next) && !one_by_one) {
            let version = requests[0].version;
            if Arc::ptr_eq(version, self.cx.job.current()) {
                self.place_same_version(draft, name, node_check, requests);
            } else if let Some(group) = version.group(name) {
                let settings = settings(state, version.job.node_pool.as_deref().unwrap_or_default());
                self.place_same_version(
                    draft,
                    name,
                    &NodeCheck::new(state, self.cx.job, version, group, &settings),
                    requests,
                );
            }
        }
    }

    fn place_same_version(
        &mut self,
        draft: &mut PlanDraft,
        name: &str,
        node_check: &NodeCheck<'e>,
        requests: &[PlacementRequest<'e>],
    ) {
        let version: &'e JobVersion = requests[0].version;
        let Some(group) = version.group(name) else { return };
        let state = self.cx.state;
        let siblings = self.siblings(draft, name);
        if self.shapes.is_empty() {
            self.memory.follow(state);
        }
        let mut requirements = node_check.requirements.clone();
        let first = (requests[0].name_index, requests[0].previous);
        requirements.volumes.resolve(state, self.cx.job, group, first, &self.proposed);
        draft.missing.extend(requirements.volumes.missing(state));
        self.shapes.push(node_check.requirements.clone());
        let kept = self.memory.ranking(state, &requirements);
        let nodes = kept.ranking.available().map(|(_, nodes)| nodes).sum::<i64>() as usize;
        let of = RankedGroup {
            job: &version.job,
            group,
            distinct_hosts: node_check.distinct_hosts,
            limit: limit(self.cx, version, group, &node_check.requirements, nodes),
        };
        let where_to = (node_check.requirements.pool.clone(), node_check.requirements.datacenters.clone());
        let mut ranking = EvalRanking::new(state, kept, of, &siblings, &self.proposed);
        let mut group_placer = GroupPlacer {
            cx: self.cx,
            version,
            group,
            resource_request: &node_check.resource_request,
            proposed: &mut self.proposed,
            ports: &mut self.ports,
            seed: self.seed,
            preemptor: self.preemptor.as_mut(),
            sampler: self.samplers.entry(where_to).or_default(),
            columns: PlacementColumns::default(),
        };
        for request in requests {
            if let Some(metric) = draft.failed.get_mut(name) {
                metric.coalesced_failures += 1;
                add_exhausted(metric, group);
                draft
                    .groups
                    .entry(name.to_string())
                    .or_default()
                    .add_unplaced(request.name_index, version.version);
            } else if group_placer.try_place(draft, &mut ranking, request) {
                *draft.queued.entry(name.to_string()).or_default() -= 1;
            } else {
                let metric = ranking.metric(true);
                let mut metric = group_placer.metric(&ranking, metric);
                add_exhausted(&mut metric, group);
                draft.failed.insert(name.to_string(), metric);
                draft
                    .groups
                    .entry(name.to_string())
                    .or_default()
                    .add_unplaced(request.name_index, version.version);
            }
        }
        let columns = group_placer.columns;
        draft.place(self.cx, name, &run(&requests[0]), &node_check.resource_request.template, columns);
        draft.groups.entry(name.to_string()).or_default().failed = draft.failed.get(name).cloned();
    }

    /// Notes which classes are eligible: a blocked evaluation is unblocked by nodes of those.
    pub fn add_classes(&mut self, draft: &mut PlanDraft) {
        if draft.failed.is_empty() {
            return;
        }
        for requirements in &self.shapes {
            let kept = self.memory.ranking(self.cx.state, requirements);
            draft.add_classes(kept.ranking.classes(self.cx.state, kept.node_columns).into_iter());
            draft.escaped |= requirements.escapes();
        }
    }

    /// Allocations of the job that use resources, as the plan leaves them.
    fn siblings(&self, draft: &PlanDraft, group: &str) -> Vec<Sibling> {
        let state = self.cx.state;
        let stay = |alloc: &&&Alloc| alloc.takes_room() && !self.proposed.is_stopped(alloc.id);
        let of_state = self.allocs.iter().filter(stay).map(|alloc| Sibling {
            row: alloc.node,
            same_group: &*alloc.group == group,
            ending: alloc.is_stopping(),
        });
        let of_plan = draft.plan.placed.iter().flat_map(|placed| {
            let rows = placed.nodes.iter().filter_map(|node| state.nodes.find(*node));
            rows.map(|row| Sibling { row, same_group: placed.group == group, ending: false })
        });
        of_state.chain(of_plan).collect()
    }
}

/// Placements of one group that run the same version.
struct GroupPlacer<'r, 'e> {
    cx: &'r PassContext<'e>,
    version: &'r JobVersion,
    group: &'e TaskGroup,
    resource_request: &'r ResourceRequest,
    proposed: &'r mut Proposed<'e>,
    ports: &'r mut Rng,
    seed: u64,
    preemptor: Option<&'r mut Preemptor>,
    sampler: &'r mut Option<Sampler>,
    columns: PlacementColumns,
}

impl<'e> GroupPlacer<'_, 'e> {
    /// Places one allocation and stops the one it replaces. Changes nothing if no node is feasible.
    fn try_place<'f>(
        &mut self,
        draft: &mut PlanDraft,
        ranking: &mut EvalRanking<'f>,
        request: &PlacementRequest<'e>,
    ) -> bool
    where
        'e: 'f,
    {
        let leaving = request.instead_of.filter(|stop| !self.proposed.is_stopped(stop.alloc.id));
        if let Some(stop) = leaving {
            self.proposed.stop(stop.alloc);
            ranking.left(stop.alloc, self.proposed);
        }
        let Some(at) = self.choose(ranking, request) else {
            if let Some(stop) = leaving {
                self.proposed.unstop(stop.alloc);
                ranking.stayed(stop.alloc, self.proposed);
            }
            return false;
        };
        let victims = ranking.victims(at).to_vec();
        if let Some(preemptor) = self.preemptor.as_deref_mut() {
            preemptor.preempt(&victims, self.proposed);
        }
        let row = ranking.row(at);
        let node = self.cx.state.nodes.cold(row);
        let granted = self.resource_request.dedicated.grant(self.cx.state, row, self.proposed, self.ports);
        let grant = granted.expect("the node was found feasible");
        self.proposed.place(row, &self.resource_request.template, &grant);
        self.proposed.mount(row, self.group, request.name_index);
        ranking.placed(at, self.proposed);
        self.columns.push(node.id, request.name_index, request.previous, grant, &victims);
        request.instead_of.iter().for_each(|stop| draft.stop(stop));
        true
    }

    fn choose<'f>(&mut self, ranking: &mut EvalRanking<'f>, request: &PlacementRequest<'e>) -> Option<u32>
    where
        'e: 'f,
    {
        let suspects = request.previous.map(|previous| reschedule::penalties(self.cx.state, previous));
        ranking.penalise(&suspects.unwrap_or_default(), self.proposed);
        let home = request.previous.filter(|previous| stays_on_node(self.version, self.group, previous));
        let kept = home.and_then(|previous| ranking.only(previous.node, self.proposed));
        let chosen = kept.or_else(|| ranking.best(self.proposed, self.sampler, self.seed));
        if chosen.is_some() && self.columns.metric.is_none() {
            let scores = ranking.top(self.proposed);
            let metric = ranking.metric(false);
            self.columns.metric = Some(self.shown(ranking, metric, scores));
        }
        let chosen = chosen.or_else(|| self.choose_with_preemption(ranking, home));
        ranking.forgive(self.proposed);
        chosen
    }

    /// Tries again with preemption, for jobs that may preempt.
    fn choose_with_preemption<'f>(
        &mut self,
        ranking: &mut EvalRanking<'f>,
        home: Option<&Alloc>,
    ) -> Option<u32>
    where
        'e: 'f,
    {
        let preemptor = self.preemptor.as_deref()?;
        let kept =
            home.and_then(|previous| ranking.only_with_preemption(previous.node, self.proposed, preemptor));
        let chosen =
            kept.or_else(|| ranking.best_with_preemption(self.proposed, preemptor, self.sampler, self.seed))?;
        if self.columns.metric.is_none() {
            let (metric, scores) = (ranking.metric_with_preemption(), ranking.top_with_preemption());
            self.columns.metric = Some(self.shown(ranking, metric, scores));
        }
        Some(chosen)
    }

    fn shown(
        &self,
        ranking: &EvalRanking,
        metric: AllocationMetric,
        scores: Vec<NodeScoreMeta>,
    ) -> AllocationMetric {
        let metric = self.metric(ranking, metric);
        AllocationMetric { score_meta_data: scores.into(), ..metric }
    }

    fn metric(&self, ranking: &EvalRanking, metric: AllocationMetric) -> AllocationMetric {
        let mut metric =
            with_pool(metric, ranking.node_ranking().available(), self.version.job.node_pool.as_deref());
        if let Some(visited) = ranking.visited() {
            metric.nodes_evaluated = visited as i64;
        }
        metric
    }
}

/// How many nodes are considered for each placement; `None`: all.
fn limit(
    cx: &PassContext,
    version: &JobVersion,
    group: &TaskGroup,
    requirements: &Requirements,
    nodes: usize,
) -> Option<usize> {
    let set = settings(cx.state, requirements.pool.as_deref().unwrap_or_default()).limit?;
    let chooses = !requirements.affinities.is_empty() || !requirements.spreads.is_empty();
    let count = group.count.unwrap_or(1).max(0) as u32;
    Some(sampling::limit(version.kind, count, chooses, nodes, set))
}

/// The successor should stay on the node: its ephemeral disk is sticky, and node pool and datacenters are unchanged.
fn stays_on_node(version: &JobVersion, group: &TaskGroup, previous: &Alloc) -> bool {
    let (old, new) = (&previous.version.job, &version.job);
    let disk = group.ephemeral_disk.as_ref();
    let sticky = disk.is_some_and(|disk| disk.sticky == Some(true) || disk.migrate == Some(true));
    sticky && old.node_pool == new.node_pool && old.datacenters == new.datacenters
}

fn run(request: &PlacementRequest) -> PlacedVersion {
    PlacedVersion { version: request.version.version, deployment: request.deployment, canary: request.canary }
}
