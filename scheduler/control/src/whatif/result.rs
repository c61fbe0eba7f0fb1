//! How a fork differs from the state that it began with.

use std::collections::{BTreeMap, BTreeSet};

use model::command::failed_groups;
use model::document::{
    AllocationMetric, ForkAllocation, ForkDeployment, ForkFree, ForkGroup, ForkResult, ForkRoom,
    ForkUnplaced, List,
};
use model::{ClientStatus, DeploymentStatus, EvalStatus, JobKey, JobType};
use state::State;
use state::alloc::Alloc;
use state::eval::Eval;
use state::job::{JobRow, JobState};

use super::kept::KeptFork;
use super::machine::{Ended, Touched};
use super::{Change, DURATION_MAX, LISTED_MAX};

/// `max_parallel` of a group that does not say.
const MAX_PARALLEL: i64 = 1;

pub(super) fn of(fork: &KeptFork) -> ForkResult {
    let (base, after) = (&*fork.base, &*fork.state);
    let (ended, changes) = (fork.ended, fork.changes.as_slice());
    let mut result = ForkResult {
        index: base.index.0,
        time: fork.begin.into(),
        quiet: ended == Ended::Quiet,
        ended_by: word(ended).to_string(),
        virtual_time: fork.now.since(fork.begin).into(),
        steps: fork.steps,
        evaluations: fork.evaluations,
        notes: notes(after, changes, ended).into(),
        ..ForkResult::default()
    };
    Allocations { base, after, result: &mut result }.compare(&fork.touched);
    let unplaced = unplaced(base, after, &fork.touched, changes);
    result.counts.unplaced = unplaced.iter().map(|group| group.after).sum();
    result.counts.unplaced_before = waiting(base).values().map(failures).sum();
    let violated = violated(base, after, &fork.touched);
    let deployments = deployments(base, after, &fork.touched);
    let failed = deployments.iter().filter(|deployment| deployment.failed).count();
    result.counts.violated = (violated.len() + failed) as u64;
    result.unplaced = cut(unplaced, &mut result.cut_short);
    result.violated = cut(violated, &mut result.cut_short);
    result.deployments = cut(deployments, &mut result.cut_short);
    (result.free, result.free_total) = free(base, after);
    result
}

pub(super) fn word(ended: Ended) -> &'static str {
    match ended {
        Ended::Quiet => "quiet",
        Ended::Until => "until",
        Ended::Paused => "paused",
        Ended::Steps => "steps",
        Ended::Evaluations => "evaluations",
        Ended::Allocations => "allocations",
        Ended::Duration => "duration",
        Ended::Time => "time",
    }
}

fn notes(after: &State, changes: &[Change], ended: Ended) -> Vec<String> {
    let mut notes = Vec::new();
    let named: BTreeSet<JobKey> = changes.iter().filter_map(job_of).collect();
    for job in named.iter().filter_map(|key| after.jobs.lookup(key)).filter(|job| job.is_wanted()) {
        let document = &job.current().job;
        if document.periodic.is_some() || document.parameterized_job.is_some() {
            let what = if document.periodic.is_some() { "periodic" } else { "parameterized" };
            notes.push(format!("job {:?} is {what}: it is not launched on a fork", job.key.id));
        }
    }
    let text = match ended {
        Ended::Quiet | Ended::Until => return notes,
        Ended::Paused => {
            "the evaluation broker is paused: evaluations wait until operators end that".to_string()
        }
        Ended::Duration => format!("after {DURATION_MAX} something was still waited for"),
        Ended::Steps | Ended::Evaluations | Ended::Allocations | Ended::Time => {
            format!("the bound of {} was reached: this is how far it came", word(ended))
        }
    };
    notes.push(text);
    notes
}

/// The job that a change is about.
fn job_of(change: &Change) -> Option<JobKey> {
    match change {
        Change::Job(request) => {
            let (namespace, id) = (request.job.namespace.as_deref(), request.job.id.as_deref());
            Some(JobKey::new(namespace.unwrap_or_default(), id.unwrap_or_default()))
        }
        Change::Stop(key) | Change::Scale { key, .. } => Some(key.clone()),
        Change::Drain(_) | Change::Down(_) | Change::Add { .. } | Change::Scheduler(_) => None,
    }
}

fn cut<T>(mut items: Vec<T>, cut_short: &mut bool) -> List<T> {
    *cut_short |= items.len() > LISTED_MAX;
    items.truncate(LISTED_MAX);
    items.into()
}

/// What became of allocations.
struct Allocations<'a> {
    base: &'a State,
    after: &'a State,
    result: &'a mut ForkResult,
}

impl<'a> Allocations<'a> {
    fn compare(mut self, touched: &Touched) {
        let mut allocs: Vec<&Alloc> = touched.allocs.iter().map(|row| self.after.allocs.get(*row)).collect();
        allocs.sort_by(|one, other| self.order(one).cmp(&self.order(other)));
        for alloc in allocs.into_iter().filter(|alloc| !alloc.gone) {
            match self.base.allocs.lookup(alloc.id) {
                Some(before) if !before.is_terminal() => self.one_of_before(before, alloc),
                Some(_) => {}
                None => self.newcomer(alloc),
            }
        }
    }

    fn order(&self, alloc: &'a Alloc) -> (&'a JobKey, &'a str, u32, model::AllocId) {
        let key = &self.after.jobs.get(alloc.job).key;
        (key, &*alloc.group, alloc.name_index, alloc.id)
    }

    fn one_of_before(&mut self, before: &Alloc, alloc: &'a Alloc) {
        if !alloc.is_terminal() {
            let counts = &mut self.result.counts;
            counts.updated_in_place += u64::from(alloc.version.version != before.version.version);
            counts.unknown += u64::from(alloc.client == ClientStatus::Unknown);
            return;
        }
        let heir = self.heir(alloc);
        let counts = &mut self.result.counts;
        let (list, count) = if alloc.preempted_by.is_some() && before.preempted_by.is_none() {
            (&mut self.result.preempted, &mut counts.preempted)
        } else {
            match heir {
                Some(heir) if heir.node == alloc.node => (&mut self.result.replaced, &mut counts.replaced),
                Some(_) => (&mut self.result.moved, &mut counts.moved),
                None if alloc.client == ClientStatus::Lost => (&mut self.result.lost, &mut counts.lost),
                None => (&mut self.result.stopped, &mut counts.stopped),
            }
        };
        *count += 1;
        if list.len() < LISTED_MAX {
            let shown = shown(self.after, Some(alloc), heir);
            list.push(shown);
        } else {
            self.result.cut_short = true;
        }
    }

    /// One that lives on in the place of another is listed with that.
    fn newcomer(&mut self, alloc: &'a Alloc) {
        let inherits = alloc.previous.and_then(|id| self.base_of(id)).is_some();
        if alloc.is_terminal() || inherits {
            return;
        }
        self.result.counts.placed += 1;
        if self.result.placed.len() < LISTED_MAX {
            self.result.placed.push(shown(self.after, None, Some(alloc)));
        } else {
            self.result.cut_short = true;
        }
    }

    /// The allocation that lived when the fork began and whose place this one has in the end.
    fn base_of(&self, mut id: model::AllocId) -> Option<&'a Alloc> {
        loop {
            let known = self.after.allocs.lookup(id)?;
            if let Some(before) = self.base.allocs.lookup(id) {
                // One that may still return has its place, and this one fills in for it.
                return Some(before).filter(|before| !before.is_terminal() && known.is_terminal());
            }
            id = known.previous?;
        }
    }

    /// The one that has its place in the end.
    fn heir(&self, alloc: &Alloc) -> Option<&'a Alloc> {
        let mut heir = self.after.allocs.lookup(alloc.next?)?;
        while let Some(next) = heir.next {
            heir = self.after.allocs.lookup(next)?;
        }
        Some(heir).filter(|heir| !heir.is_terminal())
    }
}

fn shown(after: &State, from: Option<&Alloc>, to: Option<&Alloc>) -> ForkAllocation {
    let Some(named) = from.or(to) else { return ForkAllocation::default() };
    let key = &after.jobs.get(named.job).key;
    let id = |alloc: Option<&Alloc>| alloc.map(|alloc| alloc.node_id.to_string()).unwrap_or_default();
    let name = |alloc: Option<&Alloc>| {
        alloc.map(|alloc| after.nodes.cold(alloc.node).document.name.clone()).unwrap_or_default()
    };
    ForkAllocation {
        id: from.map(|alloc| alloc.id.to_string()).unwrap_or_default(),
        name: named.name(),
        namespace: key.namespace.clone(),
        job_id: key.id.clone(),
        from_node_id: id(from),
        from_node_name: name(from),
        to_node_id: id(to),
        to_node_name: name(to),
        cause: from.map(|alloc| alloc.desired_description.to_string()).unwrap_or_default(),
    }
}

/// Allocations without a node, by job and group.
type Waiting = BTreeMap<(JobKey, String), AllocationMetric>;

fn failures(failed: &AllocationMetric) -> u64 {
    failed.coalesced_failures.max(0) as u64 + 1
}

/// What blocked evaluations wait for.
fn waiting(state: &State) -> Waiting {
    let mut waiting = Waiting::new();
    state.evals.blocked().for_each(|(_, row)| add_waiting(&mut waiting, state.evals.get(row)));
    waiting
}

fn add_waiting(waiting: &mut Waiting, eval: &Eval) {
    for (group, failed) in failed_groups(&eval.outcome) {
        waiting.insert((eval.facts.key.clone(), group), failed);
    }
}

/// Groups that lack more than before. Of jobs that were changed whatever is lacking now: that is what was asked.
fn unplaced(base: &State, after: &State, touched: &Touched, changes: &[Change]) -> Vec<ForkUnplaced> {
    let (before, mut now) = (waiting(base), waiting(after));
    add_given_up(&mut now, after, touched);
    let changed: BTreeSet<JobKey> = changes.iter().filter_map(job_of).collect();
    let shown = now.into_iter().filter_map(|((key, group), failed)| {
        let before = before.get(&(key.clone(), group.clone())).map_or(0, failures);
        let after = failures(&failed);
        (after > before || changed.contains(&key)).then(|| ForkUnplaced {
            namespace: key.namespace.clone(),
            job_id: key.id.clone(),
            group,
            before,
            after,
            failed,
        })
    });
    shown.collect()
}

/// Not everything that lacks a node waits for one: after a deployment has failed nothing is tried any more, and jobs that run
/// on every node wait for some nodes only. What such a group last saw stands in its evaluations.
fn add_given_up(waiting: &mut Waiting, after: &State, touched: &Touched) {
    let mut newest: BTreeMap<JobRow, Vec<&Eval>> = BTreeMap::new();
    for eval in touched.evals.iter().map(|row| after.evals.get(*row)) {
        if after.evals.blocked_of(eval.job).is_none() && after.jobs.get(eval.job).is_wanted() {
            newest.entry(eval.job).or_default().push(eval);
        }
    }
    for (row, mut evals) in newest {
        evals.sort_by_key(|eval| (eval.modified, eval.created, eval.id()));
        let job = after.jobs.get(row);
        if job.current().kind.is_per_node() {
            let over = |eval: &&&Eval| matches!(eval.status, EvalStatus::Complete | EvalStatus::Failed);
            evals.iter().rev().find(over).into_iter().for_each(|eval| add_waiting(waiting, eval));
            continue;
        }
        for group in job.current().job.task_groups.iter() {
            let name = group.name.clone().unwrap_or_default();
            let short = group.count.unwrap_or(1) - live(after, job, &name);
            let failed = evals.iter().rev().find_map(|eval| failed_groups(&eval.outcome).remove(&name));
            if let Some(failed) = failed.filter(|_| short > 0) {
                let failed = AllocationMetric { coalesced_failures: short - 1, ..failed };
                waiting.insert((job.key.clone(), name), failed);
            }
        }
    }
}

/// Allocations of the group that hold a place: those of batch jobs also after they have done their work.
fn live(state: &State, job: &JobState, group: &str) -> i64 {
    let allocs = job.allocs.iter().map(|row| state.allocs.get(*row)).filter(|alloc| &*alloc.group == group);
    let done = |alloc: &Alloc| alloc.version.kind.is_batch() && alloc.client == ClientStatus::Complete;
    allocs.filter(|alloc| !alloc.is_terminal() || done(alloc)).count() as i64
}

/// Groups of services of which fewer were running than may be, while more were before.
fn violated(base: &State, after: &State, touched: &Touched) -> Vec<ForkGroup> {
    let mut violated = Vec::new();
    for (row, lowest) in &touched.lowest {
        let job = after.jobs.get(*row);
        if job.purged || job.is_stopped() || job.current().kind != JobType::Service {
            continue;
        }
        let before = base.jobs.lookup(&job.key);
        violated.extend(lowest.iter().filter_map(|(name, lowest)| violation(before, job, name, *lowest)));
    }
    violated.sort_by(|one, other| {
        let key = |group: &ForkGroup| (group.namespace.clone(), group.job_id.clone(), group.group.clone());
        key(one).cmp(&key(other))
    });
    violated
}

fn violation(before: Option<&JobState>, after: &JobState, name: &str, lowest: u32) -> Option<ForkGroup> {
    let group = after.current().group(name)?;
    let wanted = group.count.unwrap_or(1).max(0);
    // Who wanted fewer before was not given more at once.
    let wanted_before = before?.current().group(name)?.count.unwrap_or(1).max(0);
    let migrate = group.migrate.as_ref().and_then(|migrate| migrate.max_parallel);
    let update = group.update.as_ref().and_then(|update| update.max_parallel);
    let parallel = migrate.unwrap_or(MAX_PARALLEL).max(update.unwrap_or(MAX_PARALLEL));
    let allowed = (wanted.min(wanted_before) - parallel).max(0);
    let running = |job: &JobState| job.groups.get(name).map_or(0, |group| group.running);
    let running_before = running(before?);
    let broken = i64::from(lowest) < allowed && lowest < running_before;
    broken.then(|| ForkGroup {
        namespace: after.key.namespace.clone(),
        job_id: after.key.id.clone(),
        group: name.to_string(),
        wanted: wanted as u64,
        allowed: allowed as u64,
        running_before: running_before.into(),
        lowest: lowest.into(),
        running_after: running(after).into(),
    })
}

/// Those that changed, as far as they are not what they were.
fn deployments(base: &State, after: &State, touched: &Touched) -> Vec<ForkDeployment> {
    let mut shown: Vec<ForkDeployment> = Vec::new();
    for known in touched.deployments.iter().map(|row| after.deployments.get(*row)).filter(|known| !known.gone)
    {
        let before = base.deployments.lookup(known.id);
        if before.is_some_and(|before| before.status == known.status && !known.is_active()) {
            continue;
        }
        let key = &after.jobs.get(known.job).key;
        shown.push(ForkDeployment {
            namespace: key.namespace.clone(),
            job_id: key.id.clone(),
            job_version: known.version,
            status: known.status.to_string(),
            status_description: known.description.clone(),
            failed: known.status == DeploymentStatus::Failed,
        });
    }
    shown.sort_by(|one, other| {
        let key = |one: &ForkDeployment| (one.namespace.clone(), one.job_id.clone(), one.job_version);
        key(one).cmp(&key(other))
    });
    shown
}

fn free(base: &State, after: &State) -> (List<ForkFree>, ForkFree) {
    let mut by_datacenter: BTreeMap<String, ForkFree> = BTreeMap::new();
    let mut total = ForkFree::default();
    for (state, side) in [(base, before as Side), (after, now as Side)] {
        for row in state.nodes.rows() {
            let datacenter = &state.nodes.cold(row).document.datacenter;
            let known = by_datacenter.entry(datacenter.clone()).or_default();
            known.datacenter.clone_from(datacenter);
            let hot = state.nodes.hot(row);
            if hot.takes_work() {
                for room in [side(known), side(&mut total)] {
                    let free = hot.capacity.minus(hot.used);
                    room.nodes += 1;
                    room.cpu += u64::from(hot.capacity.cpu_mhz);
                    room.memory_mb += u64::from(hot.capacity.memory_mib);
                    room.free_cpu += u64::from(free.cpu_mhz);
                    room.free_memory_mb += u64::from(free.memory_mib);
                }
            }
        }
    }
    (by_datacenter.into_values().collect(), total)
}

type Side = fn(&mut ForkFree) -> &mut ForkRoom;

fn before(free: &mut ForkFree) -> &mut ForkRoom {
    &mut free.before
}

fn now(free: &mut ForkFree) -> &mut ForkRoom {
    &mut free.after
}
