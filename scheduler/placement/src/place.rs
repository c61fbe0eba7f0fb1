//! Finds places for what a pass over a service or batch job wants.

use base::Rng;
use model::document::{AllocationMetric, TaskGroup};
use state::alloc::Alloc;
use state::node::NodeRow;

use crate::ask::Ask;
use crate::field::{Field, For, Sibling};
use crate::judge::Judge;
use crate::memory::Memory;
use crate::metrics::{add_exhausted, with_pool};
use crate::plan::{Columns, Draft};
use crate::ports::NodePorts;
use crate::proposed::Proposed;
use crate::reconcile::{GroupPlan, Situation, Wish};
use crate::reschedule;

/// Finds places, group by group.
pub struct Placer<'e, 'c> {
    cx: &'c Situation<'e>,
    memory: &'c mut Memory,
    /// The memory was brought up to the state: most evaluations place nothing, and need none.
    followed: bool,
    proposed: Proposed<'e>,
    allocs: Vec<&'e Alloc>,
    ports: Rng,
}

impl<'e, 'c> Placer<'e, 'c> {
    pub fn new(
        cx: &'c Situation<'e>,
        memory: &'c mut Memory,
        proposed: Proposed<'e>,
        allocs: Vec<&'e Alloc>,
        ports: Rng,
    ) -> Placer<'e, 'c> {
        Placer { cx, memory, followed: false, proposed, allocs, ports }
    }

    /// Successors of what a new version replaces come first, then what is missing.
    pub fn place(
        &mut self,
        draft: &mut Draft,
        name: &str,
        group: &TaskGroup,
        judge: &Judge<'e>,
        decision: &GroupPlan<'e>,
    ) {
        if decision.requested() == 0 {
            return;
        }
        let state = self.cx.state;
        let siblings = self.siblings(draft, name);
        if !std::mem::replace(&mut self.followed, true) {
            self.memory.follow(state);
        }
        let kept = self.memory.board(state, &judge.shape);
        let job = &self.cx.job.current().job;
        let of = For { job, group, distinct_hosts: judge.distinct_hosts };
        let mut field = Field::new(state, kept, of, &siblings, &self.proposed);
        let mut round = Round {
            cx: self.cx,
            group,
            ask: &judge.ask,
            proposed: &mut self.proposed,
            ports: &mut self.ports,
            columns: Columns::default(),
        };
        for wish in decision.destructive.iter().chain(&decision.places) {
            if let Some(metric) = draft.failed.get_mut(name) {
                metric.coalesced_failures += 1;
                add_exhausted(metric, group);
            } else if let Some(row) = round.try_place(draft, &mut field, wish) {
                draft.placed.push(row);
                *draft.queued.entry(name.to_string()).or_default() -= 1;
            } else {
                let mut metric = round.metric(&mut field, true);
                add_exhausted(&mut metric, group);
                draft.failed.insert(name.to_string(), metric);
            }
        }
        let columns = round.columns;
        draft.place(self.cx, name, &judge.ask.template, columns);
        draft.groups.entry(name.to_string()).or_default().failed = draft.failed.get(name).cloned();
    }

    /// What the nodes of each class said to the groups that were placed: whoever waits for room waits for those that
    /// may do.
    pub fn learn_classes<'j>(&mut self, draft: &mut Draft, judges: impl Iterator<Item = &'j Judge<'e>>)
    where
        'e: 'j,
    {
        if draft.failed.is_empty() {
            return;
        }
        for judge in judges {
            let kept = self.memory.board(self.cx.state, &judge.shape);
            draft.learn_classes(kept.board.classes(self.cx.state, kept.fleet).into_iter());
            draft.escaped |= judge.escapes();
        }
    }

    /// Allocations of the job that take room, as the plan leaves them.
    fn siblings(&self, draft: &Draft, group: &str) -> Vec<Sibling> {
        let stay = |alloc: &&&Alloc| alloc.takes_room() && !self.proposed.is_stopped(alloc.id);
        let of_state = self.allocs.iter().filter(stay).map(|alloc| Sibling {
            row: alloc.node,
            same_group: &*alloc.group == group,
            ending: alloc.is_stopping(),
        });
        let of_plan = draft.placed.iter().map(|row| Sibling { row: *row, same_group: false, ending: false });
        of_state.chain(of_plan).collect()
    }
}

/// The placements of one group.
struct Round<'r, 'e> {
    cx: &'r Situation<'e>,
    group: &'r TaskGroup,
    ask: &'r Ask,
    proposed: &'r mut Proposed<'e>,
    ports: &'r mut Rng,
    columns: Columns,
}

impl<'e> Round<'_, 'e> {
    /// Places one allocation and stops what it stands in for; changes nothing if no node will do.
    fn try_place(&mut self, draft: &mut Draft, field: &mut Field, wish: &Wish<'e>) -> Option<NodeRow> {
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
            return None;
        };
        let row = field.row(at);
        let node = self.cx.state.nodes.cold(row);
        let ask = self.ask;
        let numbers = if ask.ports.is_empty() {
            Vec::new()
        } else {
            ask.ports.assign(&NodePorts::new(&node.document, self.proposed.ports(row)), self.ports)
        };
        self.proposed.place(row, ask.amount, &numbers);
        field.placed(at, self.proposed);
        self.columns.push(node.id, wish.name_index, wish.previous, &numbers);
        wish.instead_of.iter().for_each(|stop| draft.stop(stop));
        Some(row)
    }

    fn choose(&mut self, field: &mut Field, wish: &Wish<'e>) -> Option<u32> {
        let suspects = wish.previous.map(|previous| reschedule::penalties(self.cx.state, previous));
        field.penalise(&suspects.unwrap_or_default(), self.proposed);
        let home = wish.previous.filter(|previous| stays_home(self.cx, self.group, previous));
        let kept = home.and_then(|previous| field.only(previous.node, self.proposed));
        let chosen = kept.or_else(|| field.best(self.proposed));
        if chosen.is_some() && self.columns.metric.is_none() {
            let scores = field.top(self.proposed);
            let mut metric = self.metric(field, false);
            metric.score_meta_data = scores.into();
            self.columns.metric = Some(metric);
        }
        field.forgive(self.proposed);
        chosen
    }

    fn metric(&self, field: &mut Field, everything: bool) -> AllocationMetric {
        let metric = field.metric(everything);
        let pool = self.cx.job.current().job.node_pool.as_deref();
        with_pool(metric, field.board().available(), pool)
    }
}

/// The group's disk is to stay with it, and the job still goes where it went.
fn stays_home(cx: &Situation, group: &TaskGroup, previous: &Alloc) -> bool {
    let (old, new) = (&previous.version.job, &cx.job.current().job);
    let disk = group.ephemeral_disk.as_ref();
    let sticky = disk.is_some_and(|disk| disk.sticky == Some(true) || disk.migrate == Some(true));
    sticky && old.node_pool == new.node_pool && old.datacenters == new.datacenters
}
