//! Finds places for what a pass over a service or batch job wants.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::Rng;
use model::document::{AllocationMetric, NodeScoreMeta, TaskGroup};
use state::alloc::Alloc;
use state::job::JobVersion;

use crate::ask::Ask;
use crate::evict::Evictor;
use crate::field::{Field, For, Sibling};
use crate::judge::Judge;
use crate::memory::Memory;
use crate::metrics::{add_exhausted, with_pool};
use crate::plan::{Columns, Draft, Run};
use crate::proposed::Proposed;
use crate::reconcile::{GroupPlan, Situation, Wish};
use crate::reschedule;
use crate::sample::{self, Sampler};
use crate::settings::settings;
use crate::shape::Shape;

/// Finds places, group by group.
pub struct Placer<'e, 'c> {
    cx: &'c Situation<'e>,
    memory: &'c mut Memory,
    proposed: Proposed<'e>,
    allocs: Vec<&'e Alloc>,
    ports: Rng,
    seed: u64,
    /// `None`: jobs of this type take nobody's place.
    evictor: Option<Evictor>,
    /// The order of visits, by the pool that is visited, where not all nodes are looked at.
    samplers: BTreeMap<(Option<String>, Vec<String>), Option<Sampler>>,
    /// What was asked for; empty until something is, and the memory is not brought up to the state before.
    shapes: Vec<Shape>,
}

impl<'e, 'c> Placer<'e, 'c> {
    pub fn new(
        cx: &'c Situation<'e>,
        memory: &'c mut Memory,
        proposed: Proposed<'e>,
        allocs: Vec<&'e Alloc>,
        seed: u64,
    ) -> Placer<'e, 'c> {
        let (ports, samplers) = (Rng::stream(seed, "ports"), BTreeMap::new());
        let evictor = Evictor::of(cx);
        Placer { cx, memory, proposed, allocs, ports, seed, evictor, samplers, shapes: Vec::new() }
    }

    /// Successors of what a new version replaces come first, then what is missing. What runs the same is placed
    /// together; `judge` is that of the wanted version.
    pub fn place(&mut self, draft: &mut Draft, name: &str, judge: &Judge<'e>, decision: &GroupPlan<'e>) {
        let state = self.cx.state;
        let wishes: Vec<Wish<'e>> = decision.wishes().copied().collect();
        let apart = judge.shape.volumes.apart;
        for wishes in wishes.chunk_by(|one, next| run(one) == run(next) && !apart) {
            let version = wishes[0].version;
            if Arc::ptr_eq(version, self.cx.job.current()) {
                self.place_alike(draft, name, judge, wishes);
            } else if let Some(group) = version.group(name) {
                let settings = settings(state, version.job.node_pool.as_deref().unwrap_or_default());
                self.place_alike(
                    draft,
                    name,
                    &Judge::new(state, self.cx.job, version, group, &settings),
                    wishes,
                );
            }
        }
    }

    fn place_alike(&mut self, draft: &mut Draft, name: &str, judge: &Judge<'e>, wishes: &[Wish<'e>]) {
        let version: &'e JobVersion = wishes[0].version;
        let Some(group) = version.group(name) else { return };
        let state = self.cx.state;
        let siblings = self.siblings(draft, name);
        if self.shapes.is_empty() {
            self.memory.follow(state);
        }
        let mut shape = judge.shape.clone();
        shape.volumes.resolve(state, self.cx.job, group, wishes[0].name_index, &self.proposed);
        draft.missing.extend(shape.volumes.missing(state));
        self.shapes.push(judge.shape.clone());
        let kept = self.memory.board(state, &shape);
        let nodes = kept.board.available().map(|(_, nodes)| nodes).sum::<i64>() as usize;
        let of = For {
            job: &version.job,
            group,
            distinct_hosts: judge.distinct_hosts,
            limit: limit(self.cx, version, group, &judge.shape, nodes),
        };
        let where_to = (judge.shape.pool.clone(), judge.shape.datacenters.clone());
        let mut field = Field::new(state, kept, of, &siblings, &self.proposed);
        let mut round = Round {
            cx: self.cx,
            version,
            group,
            ask: &judge.ask,
            proposed: &mut self.proposed,
            ports: &mut self.ports,
            seed: self.seed,
            evictor: self.evictor.as_mut(),
            sampler: self.samplers.entry(where_to).or_default(),
            columns: Columns::default(),
        };
        for wish in wishes {
            if let Some(metric) = draft.failed.get_mut(name) {
                metric.coalesced_failures += 1;
                add_exhausted(metric, group);
            } else if round.try_place(draft, &mut field, wish) {
                *draft.queued.entry(name.to_string()).or_default() -= 1;
            } else {
                let metric = field.metric(true);
                let mut metric = round.metric(&field, metric);
                add_exhausted(&mut metric, group);
                draft.failed.insert(name.to_string(), metric);
            }
        }
        let columns = round.columns;
        draft.place(self.cx, name, &run(&wishes[0]), &judge.ask.template, columns);
        draft.groups.entry(name.to_string()).or_default().failed = draft.failed.get(name).cloned();
    }

    /// What the nodes of each class said to what was asked for: whoever waits for room waits for those that may do.
    pub fn learn_classes(&mut self, draft: &mut Draft) {
        if draft.failed.is_empty() {
            return;
        }
        for shape in &self.shapes {
            let kept = self.memory.board(self.cx.state, shape);
            draft.learn_classes(kept.board.classes(self.cx.state, kept.fleet).into_iter());
            draft.escaped |= shape.escapes();
        }
    }

    /// Allocations of the job that take room, as the plan leaves them.
    fn siblings(&self, draft: &Draft, group: &str) -> Vec<Sibling> {
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

/// Placements of one group that run the same.
struct Round<'r, 'e> {
    cx: &'r Situation<'e>,
    version: &'r JobVersion,
    group: &'e TaskGroup,
    ask: &'r Ask,
    proposed: &'r mut Proposed<'e>,
    ports: &'r mut Rng,
    seed: u64,
    evictor: Option<&'r mut Evictor>,
    sampler: &'r mut Option<Sampler>,
    columns: Columns,
}

impl<'e> Round<'_, 'e> {
    /// Places one allocation and stops what it stands in for; changes nothing if no node will do.
    fn try_place<'f>(&mut self, draft: &mut Draft, field: &mut Field<'f>, wish: &Wish<'e>) -> bool
    where
        'e: 'f,
    {
        let leaving = wish.instead_of.filter(|stop| !self.proposed.is_stopped(stop.alloc.id));
        if let Some(stop) = leaving {
            self.proposed.stop(stop.alloc);
            field.left(stop.alloc, self.proposed);
        }
        let Some(at) = self.choose(field, wish) else {
            if let Some(stop) = leaving {
                self.proposed.unstop(stop.alloc);
                field.stayed(stop.alloc, self.proposed);
            }
            return false;
        };
        let victims = field.victims(at).to_vec();
        if let Some(evictor) = self.evictor.as_deref_mut() {
            evictor.preempt(&victims, self.proposed);
        }
        let row = field.row(at);
        let node = self.cx.state.nodes.cold(row);
        let granted = self.ask.fixtures.grant(self.cx.state, row, self.proposed, self.ports);
        let grant = granted.expect("the node was found to have it all");
        self.proposed.place(row, &self.ask.template, &grant);
        self.proposed.mount(row, self.group, wish.name_index);
        field.placed(at, self.proposed);
        self.columns.push(node.id, wish.name_index, wish.previous, grant, &victims);
        wish.instead_of.iter().for_each(|stop| draft.stop(stop));
        true
    }

    fn choose<'f>(&mut self, field: &mut Field<'f>, wish: &Wish<'e>) -> Option<u32>
    where
        'e: 'f,
    {
        let suspects = wish.previous.map(|previous| reschedule::penalties(self.cx.state, previous));
        field.penalise(&suspects.unwrap_or_default(), self.proposed);
        let home = wish.previous.filter(|previous| stays_home(self.version, self.group, previous));
        let kept = home.and_then(|previous| field.only(previous.node, self.proposed));
        let chosen = kept.or_else(|| field.best(self.proposed, self.sampler, self.seed));
        if chosen.is_some() && self.columns.metric.is_none() {
            let scores = field.top(self.proposed);
            let metric = field.metric(false);
            self.columns.metric = Some(self.shown(field, metric, scores));
        }
        let chosen = chosen.or_else(|| self.choose_evicting(field, home));
        field.forgive(self.proposed);
        chosen
    }

    /// The second look, for jobs that may take the place of others.
    fn choose_evicting<'f>(&mut self, field: &mut Field<'f>, home: Option<&Alloc>) -> Option<u32>
    where
        'e: 'f,
    {
        let evictor = self.evictor.as_deref()?;
        let kept = home.and_then(|previous| field.only_evicting(previous.node, self.proposed, evictor));
        let chosen = kept.or_else(|| field.best_evicting(self.proposed, evictor, self.sampler, self.seed))?;
        if self.columns.metric.is_none() {
            let (metric, scores) = (field.metric_evicting(), field.top_evicting());
            self.columns.metric = Some(self.shown(field, metric, scores));
        }
        Some(chosen)
    }

    fn shown(&self, field: &Field, metric: AllocationMetric, scores: Vec<NodeScoreMeta>) -> AllocationMetric {
        let metric = self.metric(field, metric);
        AllocationMetric { score_meta_data: scores.into(), ..metric }
    }

    fn metric(&self, field: &Field, metric: AllocationMetric) -> AllocationMetric {
        let mut metric = with_pool(metric, field.board().available(), self.version.job.node_pool.as_deref());
        if let Some(visited) = field.visited() {
            metric.nodes_evaluated = visited as i64;
        }
        metric
    }
}

/// How many nodes are considered for each placement; `None` for all of them.
fn limit(
    cx: &Situation,
    version: &JobVersion,
    group: &TaskGroup,
    shape: &Shape,
    nodes: usize,
) -> Option<usize> {
    let set = settings(cx.state, shape.pool.as_deref().unwrap_or_default()).limit?;
    let chooses = !shape.affinities.is_empty() || !shape.spreads.is_empty();
    let count = group.count.unwrap_or(1).max(0) as u32;
    Some(sample::limit(version.kind, count, chooses, nodes, set))
}

/// The group's disk is to stay with it, and the job still goes where it went.
fn stays_home(version: &JobVersion, group: &TaskGroup, previous: &Alloc) -> bool {
    let (old, new) = (&previous.version.job, &version.job);
    let disk = group.ephemeral_disk.as_ref();
    let sticky = disk.is_some_and(|disk| disk.sticky == Some(true) || disk.migrate == Some(true));
    sticky && old.node_pool == new.node_pool && old.datacenters == new.datacenters
}

fn run(wish: &Wish) -> Run {
    Run { version: wish.version.version, deployment: wish.deployment, canary: wish.canary }
}
