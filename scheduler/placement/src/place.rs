//! Finds places for what a pass over a service or batch job wants.

use std::sync::Arc;

use base::Rng;
use model::document::TaskGroup;
use state::State;
use state::alloc::Alloc;
use state::job::JobVersion;
use state::node::NodeRow;

use crate::candidates::{Candidates, Scope};
use crate::field::{Field, Sibling};
use crate::judge::Judge;
use crate::metrics::{Tally, add_exhausted, with_pool};
use crate::plan::{Columns, Draft, Run};
use crate::ports::NodePorts;
use crate::proposed::Proposed;
use crate::reconcile::{GroupPlan, Situation, Wish};
use crate::reschedule;

/// Where a version of the job may go.
pub struct Ground<'e> {
    scope: Scope<'e>,
    /// Found when the first placement is wanted: most evaluations want none.
    candidates: Option<Candidates>,
}

impl<'e> Ground<'e> {
    pub fn new(scope: Scope<'e>) -> Ground<'e> {
        Ground { scope, candidates: None }
    }
}

/// Finds places, group by group.
pub struct Placer<'e, 'c> {
    pub cx: &'c Situation<'e>,
    pub ground: Ground<'e>,
    pub proposed: Proposed<'e>,
    pub allocs: Vec<&'e Alloc>,
    pub ports: Rng,
}

impl<'e> Placer<'e, '_> {
    /// Successors of what a new version replaces come first, then what is missing. What runs the same is placed
    /// together; `judge` is that of the wanted version.
    pub fn place(&mut self, draft: &mut Draft, name: &str, judge: &mut Judge<'e>, decision: &GroupPlan<'e>) {
        let state = self.cx.state;
        let wishes: Vec<Wish<'e>> = decision.wishes().copied().collect();
        for wishes in wishes.chunk_by(|one, next| run(one) == run(next)) {
            let version = wishes[0].version;
            if Arc::ptr_eq(version, self.cx.job.current()) {
                self.place_alike(draft, name, judge, wishes);
            } else if let Some(group) = version.group(name) {
                // Another version goes where that version may go.
                let ground = Ground::new(Scope::new(state, &version.job));
                let own = std::mem::replace(&mut self.ground, ground);
                self.place_alike(draft, name, &mut Judge::new(state, version, group), wishes);
                self.ground = own;
            }
        }
    }

    fn place_alike(&mut self, draft: &mut Draft, name: &str, judge: &mut Judge<'e>, wishes: &[Wish<'e>]) {
        let version: &'e JobVersion = wishes[0].version;
        let Some(group) = version.group(name) else { return };
        let state = self.cx.state;
        let siblings = self.siblings(draft, name);
        let scope = &mut self.ground.scope;
        let candidates = &*self.ground.candidates.get_or_insert_with(|| Candidates::find(state, scope));
        let template = judge.ask.template.clone();
        let count = group.count.unwrap_or(1).max(0) as u32;
        let mut field = Field::new(state, judge, candidates, &self.proposed, &siblings, count);
        let mut round = Round {
            cx: self.cx,
            version,
            group,
            candidates,
            proposed: &mut self.proposed,
            ports: &mut self.ports,
            columns: Columns::default(),
        };
        for wish in wishes {
            if let Some(metric) = draft.failed.get_mut(name) {
                metric.coalesced_failures += 1;
                add_exhausted(metric, group);
            } else if let Some(row) = round.try_place(draft, &mut field, wish) {
                draft.placed.push(row);
                *draft.queued.entry(name.to_string()).or_default() -= 1;
            } else {
                let tally = field.tally_all(round.proposed);
                let mut metric = round.metric(&field, &tally);
                add_exhausted(&mut metric, group);
                draft.failed.insert(name.to_string(), metric);
            }
        }
        let columns = round.columns;
        draft.place(self.cx, name, &run(&wishes[0]), &template, columns);
        draft.groups.entry(name.to_string()).or_default().failed = draft.failed.get(name).cloned();
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
    version: &'r JobVersion,
    group: &'r TaskGroup,
    candidates: &'r Candidates,
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
        let row = field.candidate(at).row;
        let node = self.cx.state.nodes.cold(row);
        let ask = &field.judge().ask;
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
        let home = wish.previous.filter(|previous| stays_home(self.version, self.group, previous));
        let kept = home.and_then(|previous| field.only(previous.node, self.proposed));
        let chosen = kept.or_else(|| field.best(self.proposed));
        if chosen.is_some() && self.columns.metric.is_none() {
            let scores = field.top(self.proposed);
            let mut metric = self.metric(field, &field.tally);
            metric.score_meta_data = scores.into();
            self.columns.metric = Some(metric);
        }
        field.forgive(self.proposed);
        chosen
    }

    fn metric(&self, field: &Field, tally: &Tally) -> model::document::AllocationMetric {
        let state: &State = self.cx.state;
        let metric = tally.metric(state, &field.judge().reasons, self.candidates.list.len());
        with_pool(metric, self.candidates, self.version.job.node_pool.as_deref())
    }
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
