//! One pass over a service or batch job.

use std::collections::{BTreeMap, BTreeSet};

use base::{Index, Rng};
use model::document::TaskGroup;
use state::State;
use state::alloc::Alloc;
use state::job::JobVersion;
use state::node::NodeRow;

use crate::candidates::{Candidate, Candidates, Scope};
use crate::diff::{Definition, is_destructive};
use crate::field::{Field, Sibling};
use crate::judge::{Distinct, Judge};
use crate::metrics::{Tally, add_exhausted, with_pool};
use crate::plan::{Columns, Draft};
use crate::ports::NodePorts;
use crate::proposed::Proposed;
use crate::reconcile::{Again, FollowUps, GroupPlan, Situation, Update, Wish, reconcile};
use crate::reschedule;

pub fn pass(cx: &Situation, seed: u64) -> Draft {
    let mut draft = Draft::new(cx, seed);
    let mut proposed = Proposed::new(cx.state);
    let allocs: Vec<&Alloc> = cx.job.allocs.iter().map(|row| cx.state.allocs.get(*row)).collect();
    draft.conclude_silent_stops(cx, allocs.iter().copied());
    let version = cx.job.current();
    let mut scope = Scope::new(cx.state, &version.job);
    let mut judges = judges(cx, version);
    let (decisions, mut follow_ups, again) = decide(
        cx,
        seed,
        &allocs,
        &mut Context { scope: &mut scope, judges: &mut judges, proposed: &proposed },
    );
    for (name, decision) in &decisions {
        carry_out(cx, &mut draft, &mut proposed, judges.get(name), name, decision);
    }
    let mut placer =
        Placer { cx, candidates: None, scope, proposed, allocs, ports: Rng::stream(seed, "ports") };
    for (name, decision) in decisions {
        if let (Some(judge), Some(group)) = (judges.get_mut(&name), version.group(&name)) {
            placer.place(&mut draft, &name, group, judge, &decision);
        }
    }
    for judge in judges.values() {
        draft.learn_classes(judge.classes());
        draft.escaped |= judge.escapes();
    }
    if let Some(time) = again.at(!draft.plan.placed.is_empty()) {
        follow_ups.rollout(cx, time);
    }
    draft.plan.follow_ups = follow_ups.created;
    draft
}

/// What the decisions about groups share.
struct Context<'c, 'e> {
    scope: &'c mut Scope<'e>,
    judges: &'c mut BTreeMap<String, Judge<'e>>,
    proposed: &'c Proposed<'e>,
}

/// A judge for each group that is wanted.
pub fn judges<'e>(cx: &Situation<'e>, version: &'e JobVersion) -> BTreeMap<String, Judge<'e>> {
    let groups = version.job.task_groups.iter().filter(|_| cx.job.is_wanted());
    let judge =
        |group: &'e TaskGroup| (group.name.clone().unwrap_or_default(), Judge::new(cx.state, version, group));
    groups.map(judge).collect()
}

/// Decides each group, in the order of their names; and when to go on with updates that may not do everything now.
fn decide<'e>(
    cx: &Situation<'e>,
    seed: u64,
    allocs: &[&'e Alloc],
    shared: &mut Context<'_, 'e>,
) -> (Vec<(String, GroupPlan<'e>)>, FollowUps, Again) {
    let version = cx.job.current();
    let mut by_group: BTreeMap<&str, Vec<&Alloc>> = BTreeMap::new();
    allocs.iter().for_each(|alloc| by_group.entry(&alloc.group).or_default().push(alloc));
    let wanted = version.job.task_groups.iter().filter_map(|group| group.name.as_deref());
    let names: BTreeSet<&str> = by_group.keys().copied().chain(wanted).collect();
    let mut follow_ups = FollowUps::new(seed);
    let mut decisions = Vec::new();
    let mut again = Again::default();
    for name in names {
        let group = version.group(name).filter(|_| cx.job.is_wanted());
        let of_group = by_group.remove(name).unwrap_or_default();
        let mut updates = Updates::default();
        let mut judge = |alloc: &'e Alloc| match (group, shared.judges.get_mut(name)) {
            (Some(group), Some(judge)) => {
                updates.judge(cx, group, alloc, judge, shared.scope, shared.proposed)
            }
            _ => Update::Ignore,
        };
        let decision = reconcile(cx, group, &of_group, &mut follow_ups, &mut judge);
        again = again.or(decision.again);
        decisions.push((name.to_string(), decision));
    }
    (decisions, follow_ups, again)
}

/// What does not depend on finding a place.
fn carry_out(
    cx: &Situation,
    draft: &mut Draft,
    proposed: &mut Proposed,
    judge: Option<&Judge>,
    name: &str,
    decision: &GroupPlan,
) {
    for stop in &decision.stops {
        draft.stop(stop);
        proposed.stop(stop.alloc);
    }
    decision.unknown.iter().for_each(|(alloc, follow_up)| draft.mark_unknown(alloc, *follow_up));
    decision.reconnected.iter().for_each(|alloc| draft.reconnect(alloc));
    if let Some(judge) = judge {
        decision.in_place.iter().for_each(|alloc| proposed.resize(alloc, judge.ask.amount));
        let updated = decision.in_place.iter().map(|alloc| alloc.id).collect();
        draft.update_in_place(cx, &judge.ask.template, updated);
    }
    if cx.job.current().group(name).is_some() {
        draft.queued.insert(name.to_string(), decision.requested() as u32);
    }
    draft.groups.entry(name.to_string()).or_default().desired = decision.desired.clone();
}

/// What a new version means for allocations of a group, by the version they run.
#[derive(Debug, Default)]
pub struct Updates {
    destructive: BTreeMap<Index, bool>,
}

impl Updates {
    /// Rule UP-1.
    pub fn judge<'e>(
        &mut self,
        cx: &Situation<'e>,
        group: &TaskGroup,
        alloc: &'e Alloc,
        judge: &mut Judge<'e>,
        scope: &mut Scope<'e>,
        proposed: &Proposed<'e>,
    ) -> Update {
        let (old, new) = (&alloc.version, cx.job.current());
        if old.registered == new.registered {
            return Update::Ignore;
        }
        let destructive = self.destructive.entry(old.registered).or_insert_with(|| {
            old.group(&alloc.group).is_none_or(|before| {
                is_destructive(
                    Definition { job: &old.job, group: before },
                    Definition { job: &new.job, group },
                )
            })
        });
        if *destructive {
            return Update::Destructive;
        }
        if alloc.is_terminal() {
            return Update::Ignore;
        }
        let hot = cx.state.nodes.hot(alloc.node);
        if hot.gone || !scope.contains(alloc.node, hot) || shares_host(cx, alloc, judge.distinct_hosts) {
            return Update::Destructive;
        }
        let fits = judge.in_place(alloc, &Candidate::of(alloc.node, hot), proposed);
        if fits { Update::InPlace } else { Update::Destructive }
    }
}

/// Another allocation keeps this one off its host.
fn shares_host(cx: &Situation, alloc: &Alloc, distinct: Option<Distinct>) -> bool {
    let Some(distinct) = distinct else { return false };
    let rows = &cx.state.nodes.load(alloc.node).allocs;
    rows.iter().map(|row| cx.state.allocs.get(*row)).any(|other| {
        let counts = distinct == Distinct::Job || other.group == alloc.group;
        other.id != alloc.id && other.job == alloc.job && !other.is_terminal() && counts
    })
}

/// Finds places, group by group.
struct Placer<'e, 'c> {
    cx: &'c Situation<'e>,
    /// Found when the first placement is wanted: most evaluations want none.
    candidates: Option<Candidates>,
    scope: Scope<'e>,
    proposed: Proposed<'e>,
    allocs: Vec<&'e Alloc>,
    ports: Rng,
}

impl<'e> Placer<'e, '_> {
    /// Successors of what a new version replaces come first, then what is missing.
    fn place(
        &mut self,
        draft: &mut Draft,
        name: &str,
        group: &TaskGroup,
        judge: &mut Judge<'e>,
        decision: &GroupPlan<'e>,
    ) {
        if decision.requested() == 0 {
            return;
        }
        let state = self.cx.state;
        let siblings = self.siblings(draft, name);
        let scope = &mut self.scope;
        let candidates = &*self.candidates.get_or_insert_with(|| Candidates::find(state, scope));
        let template = judge.ask.template.clone();
        let count = group.count.unwrap_or(1).max(0) as u32;
        let mut field = Field::new(state, judge, candidates, &self.proposed, &siblings, count);
        let mut round = Round {
            cx: self.cx,
            group,
            candidates,
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
                let tally = field.tally_all(round.proposed);
                let mut metric = round.metric(&field, &tally);
                add_exhausted(&mut metric, group);
                draft.failed.insert(name.to_string(), metric);
            }
        }
        let columns = round.columns;
        draft.place(self.cx, name, &template, columns);
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
        let home = wish.previous.filter(|previous| stays_home(self.cx, self.group, previous));
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
        with_pool(metric, self.candidates, self.cx.job.current().job.node_pool.as_deref())
    }
}

/// The group's disk is to stay with it, and the job still goes where it went.
fn stays_home(cx: &Situation, group: &TaskGroup, previous: &Alloc) -> bool {
    let (old, new) = (&previous.version.job, &cx.job.current().job);
    let disk = group.ephemeral_disk.as_ref();
    let sticky = disk.is_some_and(|disk| disk.sticky == Some(true) || disk.migrate == Some(true));
    sticky && old.node_pool == new.node_pool && old.datacenters == new.datacenters
}
