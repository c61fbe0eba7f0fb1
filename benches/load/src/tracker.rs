//! What became of the jobs of a run, by their numbers.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{oneshot, watch};

use crate::latency::Latencies;
use crate::options::Wait;

/// Jobs of a run; a clone is a handle of the same.
#[derive(Clone)]
pub(crate) struct Tracker(Arc<Shared>);

struct Shared {
    began: Instant,
    count: u32,
    /// Allocations are distinguished by their ids.
    by_id: bool,
    jobs: Mutex<Jobs>,
    /// Sent when any of these changes.
    changed: watch::Sender<Totals>,
}

#[derive(Default)]
struct Jobs {
    rows: Vec<Row>,
    /// The first job of this step.
    first: usize,
    /// Allocations seen, where jobs have several or lose some: whether they have been running.
    allocs: HashMap<u128, bool>,
    /// Allocations placed on each node, where nodes fail.
    on_nodes: HashMap<u128, u64>,
    failed: Option<Failed>,
    /// Nodes that were down and had not been let fail.
    down_alive: HashSet<u128>,
    waiting: HashMap<u32, (Wait, oneshot::Sender<()>)>,
    step: Step,
}

#[derive(Clone, Copy, Default)]
struct Row {
    intended: Duration,
    placed: u32,
    running: u32,
    accepted: bool,
}

/// Nodes that have fallen silent, and what came of it.
#[derive(Clone, Debug)]
pub(crate) struct Failed {
    at: Duration,
    nodes: HashSet<u128>,
    down: HashSet<u128>,
    pub down_after: Latencies,
    pub replaced: u64,
    pub replaced_after: Latencies,
}

impl Failed {
    pub(crate) fn all_down(&self) -> bool {
        self.down.len() == self.nodes.len()
    }
}

/// Jobs of this step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub accepted: u64,
    pub placed: u64,
    pub running: u64,
}

/// Since the step began.
#[derive(Clone, Debug, Default)]
pub(crate) struct Step {
    /// Jobs handed out to be submitted.
    pub submitted: u64,
    pub accepted: u64,
    /// Jobs of which all allocations are placed, and run.
    pub placed: u64,
    pub running: u64,
    pub allocs_placed: u64,
    pub errors: u64,
    pub first_error: Option<String>,
    pub accepted_after: Latencies,
    pub placed_after: Latencies,
    pub running_after: Latencies,
    /// When the last allocation was placed.
    pub last_placed: Option<Duration>,
}

/// An allocation as the event stream shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SeenAlloc {
    pub job: u32,
    pub id: u128,
    pub running: bool,
    /// 0 where that does not matter.
    pub node: u128,
}

/// What a piece of the event stream shows.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Seen {
    pub allocs: Vec<SeenAlloc>,
    /// Nodes that are down.
    pub down: Vec<u128>,
}

impl Tracker {
    /// Of jobs with so many allocations each, on nodes of which some may fail.
    pub(crate) fn new(count: u32, nodes_fail: bool) -> Tracker {
        let (changed, _) = watch::channel(Totals::default());
        let (began, by_id) = (Instant::now(), count > 1 || nodes_fail);
        Tracker(Arc::new(Shared { began, count, by_id, jobs: Mutex::default(), changed }))
    }

    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        self.0.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Since the run began.
    pub(crate) fn now(&self) -> Duration {
        self.0.began.elapsed()
    }

    /// Another step begins. What comes of earlier jobs no longer counts.
    pub(crate) fn begin_step(&self) {
        let mut jobs = self.jobs();
        jobs.first = jobs.rows.len();
        jobs.step = Step::default();
        self.0.changed.send_replace(Totals::default());
    }

    pub(crate) fn step(&self) -> Step {
        self.jobs().step.clone()
    }

    /// Sent when more is placed, or runs.
    pub(crate) fn changed(&self) -> watch::Receiver<Totals> {
        self.0.changed.subscribe()
    }

    pub(crate) fn totals(&self) -> Totals {
        self.jobs().totals()
    }

    /// All jobs that may exist.
    pub(crate) fn submitted_ever(&self) -> u32 {
        self.jobs().rows.len() as u32
    }

    /// The number of the next job, meant to be submitted then.
    pub(crate) fn submit(&self, intended: Duration) -> u32 {
        let mut jobs = self.jobs();
        jobs.rows.push(Row { intended, ..Row::default() });
        jobs.step.submitted += 1;
        (jobs.rows.len() - 1) as u32
    }

    pub(crate) fn accepted(&self, job: u32) {
        let now = self.now();
        let mut jobs = self.jobs();
        let row = &mut jobs.rows[job as usize];
        row.accepted = true;
        let after = now.saturating_sub(row.intended);
        jobs.step.accepted += 1;
        jobs.step.accepted_after.record(after);
    }

    pub(crate) fn failed(&self, error: String) {
        let mut jobs = self.jobs();
        jobs.step.errors += 1;
        jobs.step.first_error.get_or_insert(error);
    }

    /// Resolves once the job is there. Ask before it is submitted.
    pub(crate) fn wait_for(&self, job: u32, wait: Wait) -> oneshot::Receiver<()> {
        let (reached, waits) = oneshot::channel();
        self.jobs().waiting.insert(job, (wait, reached));
        waits
    }

    /// Brings those nodes to the front on which the most allocations were placed.
    pub(crate) fn sort_by_allocs(&self, nodes: &mut [u128]) {
        let jobs = self.jobs();
        nodes.sort_by_key(|node| std::cmp::Reverse(jobs.on_nodes.get(node).copied().unwrap_or(0)));
    }

    /// These nodes have fallen silent now.
    pub(crate) fn nodes_failed(&self, nodes: HashSet<u128>) {
        let (down, down_after, replaced_after) = Default::default();
        let failed = Failed { at: self.now(), nodes, down, down_after, replaced: 0, replaced_after };
        self.jobs().failed = Some(failed);
    }

    /// What came of it, and how many allocations were placed on these nodes.
    pub(crate) fn failure(&self) -> Option<(Failed, u64)> {
        let jobs = self.jobs();
        let failed = jobs.failed.clone()?;
        let lost = failed.nodes.iter().filter_map(|node| jobs.on_nodes.get(node)).sum();
        Some((failed, lost))
    }

    /// Nodes that were down though they send heartbeats, since the run began.
    pub(crate) fn down_alive(&self) -> u64 {
        self.jobs().down_alive.len() as u64
    }

    /// True once all failed nodes are down and what was on them is replaced.
    pub(crate) fn is_recovered(&self) -> bool {
        self.failure().is_none_or(|(failed, lost)| failed.all_down() && failed.replaced >= lost)
    }

    /// What was just read of the event stream.
    pub(crate) fn seen(&self, seen: &Seen) {
        if seen.allocs.is_empty() && seen.down.is_empty() {
            return;
        }
        let now = self.now();
        let mut jobs = self.jobs();
        for alloc in &seen.allocs {
            jobs.see(&self.0, now, *alloc);
        }
        for node in &seen.down {
            match &mut jobs.failed {
                Some(failed) if failed.nodes.contains(node) => {
                    if failed.down.insert(*node) {
                        failed.down_after.record(now.saturating_sub(failed.at));
                    }
                }
                _ => {
                    jobs.down_alive.insert(*node);
                }
            }
        }
        let totals = jobs.totals();
        drop(jobs);
        self.0.changed.send_replace(totals);
    }

    /// Numbers of jobs that were accepted in this step and not seen placed whole.
    pub(crate) fn missing(&self) -> HashSet<u32> {
        let (jobs, count) = (self.jobs(), self.0.count);
        let late = |row: &Row| row.accepted && row.placed < count;
        let numbered = jobs.rows.iter().enumerate().skip(jobs.first);
        numbered.filter(|(_, row)| late(row)).map(|(number, _)| number as u32).collect()
    }
}

impl Jobs {
    fn totals(&self) -> Totals {
        let Step { accepted, placed, running, .. } = self.step;
        Totals { accepted, placed, running }
    }

    fn see(&mut self, shared: &Shared, now: Duration, alloc: SeenAlloc) {
        let (number, count) = (alloc.job as usize, shared.count);
        let Some(row) = self.rows.get_mut(number) else { return };
        // Each allocation counts once for each of the two, however often it is seen.
        let (is_new, runs) = match shared.by_id {
            false => (row.placed == 0, alloc.running && row.running == 0),
            true => {
                let known = self.allocs.get(&alloc.id).copied();
                let ran = known == Some(true);
                self.allocs.insert(alloc.id, ran || alloc.running);
                (known.is_none(), alloc.running && !ran)
            }
        };
        if is_new && alloc.node != 0 {
            *self.on_nodes.entry(alloc.node).or_default() += 1;
        }
        if is_new
            && row.placed >= count
            && let Some(failed) = &mut self.failed
        {
            failed.replaced += 1;
            failed.replaced_after.record(now.saturating_sub(failed.at));
        }
        row.placed += u32::from(is_new);
        row.running += u32::from(runs);
        let row = *row;
        if number < self.first || !(is_new || runs) {
            return;
        }
        let after = now.saturating_sub(row.intended);
        if is_new {
            self.step.allocs_placed += 1;
            if row.placed <= count {
                self.step.last_placed = Some(now);
            }
            if row.placed == count {
                self.step.placed += 1;
                self.step.placed_after.record(after);
            }
        }
        if runs && row.running == count {
            self.step.running += 1;
            self.step.running_after.record(after);
        }
        let reached = |wait| match wait {
            Wait::Accepted => true,
            Wait::Placed => row.placed >= count,
            Wait::Running => row.running >= count,
        };
        if self.waiting.get(&alloc.job).is_some_and(|(wait, _)| reached(*wait))
            && let Some((_, waiting)) = self.waiting.remove(&alloc.job)
        {
            // A client that has given up waits no longer.
            let _ = waiting.send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alloc(job: u32, id: u128, running: bool) -> SeenAlloc {
        SeenAlloc { job, id, running, node: 0 }
    }

    #[test]
    fn an_allocation_counts_once_however_often_it_is_seen() {
        let tracker = Tracker::new(2, false);
        let job = tracker.submit(Duration::ZERO);
        tracker.accepted(job);
        let mut reached = tracker.wait_for(job, Wait::Running);
        tracker.seen(&Seen {
            allocs: vec![alloc(job, 1, false), alloc(job, 1, false), alloc(99, 5, true)],
            down: Vec::new(),
        });
        assert_eq!((tracker.step().placed, tracker.step().allocs_placed), (0, 1));
        assert_eq!(tracker.missing(), HashSet::from([job]));
        tracker.seen(&Seen {
            allocs: vec![alloc(job, 2, true), alloc(job, 2, false), alloc(job, 2, true)],
            down: Vec::new(),
        });
        assert_eq!((tracker.step().placed, tracker.step().running), (1, 0));
        assert!(reached.try_recv().is_err());
        tracker.seen(&Seen { allocs: vec![alloc(job, 1, true)], down: Vec::new() });
        assert_eq!((tracker.step().running, tracker.missing().len()), (1, 0));
        reached.try_recv().unwrap();
    }

    #[test]
    fn a_step_counts_its_own_jobs_only() {
        let tracker = Tracker::new(1, false);
        let early = tracker.submit(Duration::ZERO);
        tracker.accepted(early);
        tracker.begin_step();
        let own = tracker.submit(tracker.now());
        tracker.seen(&Seen { allocs: vec![alloc(early, 1, false), alloc(own, 2, false)], down: Vec::new() });
        let step = tracker.step();
        assert_eq!((step.submitted, step.accepted, step.placed, step.allocs_placed), (1, 0, 1, 1));
        assert_eq!(step.placed_after.summary().unwrap().count, 1);
        assert_eq!(tracker.submitted_ever(), 2);
    }

    #[test]
    fn what_was_on_failed_nodes_is_recovered_once_they_are_down_and_others_have_it() {
        let tracker = Tracker::new(1, true);
        let job = tracker.submit(Duration::ZERO);
        let on = |id, node| SeenAlloc { node, ..alloc(job, id, false) };
        let seen = |allocs: &[SeenAlloc], down: &[u128]| {
            tracker.seen(&Seen { allocs: allocs.to_vec(), down: down.to_vec() });
        };
        seen(&[on(1, 10)], &[]);
        assert!(tracker.is_recovered());
        let mut nodes = [9, 10, 11];
        tracker.sort_by_allocs(&mut nodes);
        assert_eq!(nodes, [10, 9, 11]);
        tracker.nodes_failed(HashSet::from([10, 11]));
        seen(&[], &[10, 12]);
        seen(&[on(2, 13), on(2, 13)], &[10]);
        assert!(!tracker.is_recovered());
        seen(&[], &[11]);
        assert_eq!(tracker.down_alive(), 1, "12 was to live");
        let (failed, lost) = tracker.failure().unwrap();
        assert_eq!((failed.replaced, lost, tracker.is_recovered()), (1, 1, true));
        assert_eq!(failed.down_after.summary().unwrap().count, 2);
    }
}
