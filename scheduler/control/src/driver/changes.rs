//! Who waits for what to change: readers are woken by batches that concern them, and not by all.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::Index;
use parking_lot::Mutex;
use state::alloc::AllocRow;
use state::deployment::DeploymentRow;
use state::eval::EvalRow;
use state::job::JobRow;
use state::node::NodeRow;
use state::{Delta, State};
use tokio::sync::watch;

/// What a reader waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// Each batch.
    Everything,
    /// A node, or an allocation on it.
    Node(NodeRow),
    /// A job, an evaluation of it, a deployment, or how many of its allocations are in which state.
    Job(JobRow),
    Eval(EvalRow),
    Alloc(AllocRow),
    Deployment(DeploymentRow),
    /// The services that are registered.
    Services,
    Variables,
    /// Sinks of the event stream, and how far they and other readers have come.
    Sinks,
}

/// Which batch changed a table last.
type LastChange = fn(&State) -> Index;

/// Subjects that are whole tables.
const TABLES: [(Subject, LastChange); 3] = [
    (Subject::Services, |state| state.services.changed()),
    (Subject::Variables, |state| state.variables.changed()),
    (Subject::Sinks, |state| state.sinks.changed().max(state.cursors.changed())),
];

/// All who wait. Their number is bounded where they come from: connections and waiting reads are.
#[derive(Debug, Default)]
pub struct Changes {
    waiting: Mutex<BTreeMap<Subject, watch::Sender<()>>>,
    /// The batch that changed each table last, as the waiting know.
    tables: Mutex<[Index; TABLES.len()]>,
}

/// Somebody who waits for changes of one subject.
#[derive(Debug)]
pub struct Waiter {
    subject: Subject,
    news: watch::Receiver<()>,
    changes: Arc<Changes>,
}

impl Changes {
    /// Whoever looks at the state after this, and then waits, misses nothing.
    pub fn wait_for(self: &Arc<Self>, subject: Subject) -> Waiter {
        let mut waiting = self.waiting.lock();
        let news = waiting.entry(subject).or_insert_with(|| watch::channel(()).0).subscribe();
        Waiter { subject, news, changes: self.clone() }
    }

    /// Wakes those whom a batch concerns. The state is published already.
    pub fn notify(&self, state: &State, delta: &Delta) {
        let changed = TABLES.map(|(_, changed)| changed(state));
        let before = std::mem::replace(&mut *self.tables.lock(), changed);
        let waiting = self.waiting.lock();
        if waiting.is_empty() {
            return;
        }
        // A batch is small, and waiting readers may be many.
        let wake = |subject| {
            if let Some(sender) = waiting.get(&subject) {
                sender.send_replace(());
            }
        };
        if delta.restored {
            // Rows are others now: whoever waits has to look.
            return waiting.values().for_each(|sender| sender.send_replace(()));
        }
        wake(Subject::Everything);
        delta.nodes.iter().for_each(|row| wake(Subject::Node(*row)));
        delta.evals.iter().for_each(|row| wake(Subject::Eval(*row)));
        for row in &delta.jobs {
            wake(Subject::Job(*row));
            // A parent's summary counts its children.
            let parent = state.jobs.get(*row).parent().and_then(|parent| state.jobs.find(&parent));
            parent.into_iter().for_each(|parent| wake(Subject::Job(parent)));
        }
        for row in &delta.deployments {
            wake(Subject::Deployment(*row));
            wake(Subject::Job(state.deployments.get(*row).job));
        }
        for row in &delta.allocs {
            wake(Subject::Alloc(*row));
            wake(Subject::Node(state.allocs.get(*row).node));
        }
        let tables = TABLES.iter().zip(before.iter().zip(&changed));
        tables.filter(|(_, (before, now))| before != now).for_each(|((subject, _), _)| wake(*subject));
    }

    #[cfg(test)]
    fn subjects(&self) -> usize {
        self.waiting.lock().len()
    }
}

impl Waiter {
    /// Returns at the next change, or at once if there was one since the last call.
    pub async fn changed(&mut self) {
        // The sender goes with the last waiter.
        self.news.changed().await.unwrap_or(());
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut waiting = self.changes.waiting.lock();
        if waiting.get(&self.subject).is_some_and(|sender| sender.receiver_count() <= 1) {
            waiting.remove(&self.subject);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn woken(waiter: &mut Waiter) -> bool {
        let woken = waiter.news.has_changed().unwrap();
        waiter.news.mark_unchanged();
        woken
    }

    #[test]
    fn only_whom_a_batch_concerns_is_woken() {
        let changes = Arc::new(Changes::default());
        let mut all = changes.wait_for(Subject::Everything);
        let mut one = changes.wait_for(Subject::Node(NodeRow(1)));
        let mut other = changes.wait_for(Subject::Node(NodeRow(2)));
        let mut variables = changes.wait_for(Subject::Variables);
        let delta = Delta { nodes: vec![NodeRow(1), NodeRow(1)], ..Delta::default() };
        changes.notify(&State::default(), &delta);
        let woken = [&mut all, &mut one, &mut other, &mut variables].map(woken);
        assert_eq!(woken, [true, true, false, false]);
        assert!(!self::woken(&mut one), "once for each batch");
        changes.notify(&State::default(), &Delta::everything());
        assert!([&mut all, &mut one, &mut other, &mut variables].map(self::woken).iter().all(|woken| *woken));
    }

    #[test]
    fn what_nobody_waits_for_any_more_is_forgotten() {
        let changes = Arc::new(Changes::default());
        let one = changes.wait_for(Subject::Eval(EvalRow(7)));
        let mut two = changes.wait_for(Subject::Eval(EvalRow(7)));
        drop(one);
        changes.notify(&State::default(), &Delta { evals: vec![EvalRow(7)], ..Delta::default() });
        assert!(woken(&mut two));
        drop(two);
        assert_eq!(changes.subjects(), 0);
    }

    #[test]
    fn a_change_between_a_look_and_the_wait_is_not_missed() {
        let changes = Arc::new(Changes::default());
        let mut waiter = changes.wait_for(Subject::Variables);
        changes.notify(&State::default(), &Delta::everything());
        assert!(woken(&mut waiter));
    }
}
