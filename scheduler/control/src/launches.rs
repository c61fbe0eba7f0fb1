//! When to launch which periodic job.

use std::collections::BTreeMap;

use base::{Duration, Time};
use model::Command;
use model::cron::next_launch;
use state::job::{JobRow, JobState};
use state::{Delta, State};

use crate::moments::Moments;

/// A moment that passed longer ago than this was missed: nobody led. However many were missed, the job is launched
/// once for now.
const MISSED: Duration = Duration::from_secs(5);

/// Periodic jobs that are wanted, and when each is launched next. Exists on the leader only.
#[derive(Debug, Default)]
pub struct Launches {
    moments: Moments<JobRow>,
    /// The moments that commands were given for. Where children may not overlap nothing came of some.
    passed: BTreeMap<JobRow, Time>,
}

impl Launches {
    /// A new leader does not know what the one before has seen.
    pub fn rebuild(&mut self, state: &State) {
        self.clear();
        state.jobs.iter().for_each(|(row, job)| self.take(row, job));
    }

    pub fn clear(&mut self) {
        self.moments.clear();
        self.passed.clear();
    }

    pub fn observe(&mut self, state: &State, delta: &Delta) {
        delta.jobs.iter().for_each(|row| self.take(*row, state.jobs.get(*row)));
    }

    pub fn next_deadline(&self) -> Option<Time> {
        self.moments.next()
    }

    /// Launches that are due. Each job's next moment follows from this one.
    pub fn expire(&mut self, state: &State, now: Time) -> Vec<Command> {
        let mut commands = Vec::new();
        while let (Some(due), Some(row)) = (self.moments.next(), self.moments.take_due(now)) {
            let job = state.jobs.get(row);
            let at = if now.since(due) > MISSED { now } else { due };
            commands.push(Command::LaunchJob { key: job.key.clone(), at, forced: false });
            self.passed.insert(row, at);
            self.take(row, job);
        }
        commands
    }

    /// Periodic jobs that are wanted.
    pub fn len(&self) -> usize {
        self.moments.len()
    }

    pub fn is_empty(&self) -> bool {
        self.moments.is_empty()
    }

    fn take(&mut self, row: JobRow, job: &JobState) {
        let passed = self.passed.get(&row).copied().unwrap_or(Time::ZERO);
        let next = job.schedule().and_then(|schedule| next_launch(schedule, job.last_launch().max(passed)));
        match next {
            Some(moment) => self.moments.set(row, moment),
            None => {
                self.moments.forget(row);
                self.passed.remove(&row);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use base::Uuid;
    use model::document::{Job, PeriodicConfig};
    use model::event::{JobLaunched, JobRegistered, JobStopped};
    use model::{Actor, Batch, CommandRecord, Doc, Event, JobKey, LoggedEvent, RequestId};

    use super::*;

    const BEGIN: Time = Time(1_000_000_000 * 60 * 1000);

    fn fold(state: &mut State, events: Vec<Event>) -> Delta {
        let record = CommandRecord { request: RequestId::default(), kind: 0, actor: Actor::Anonymous };
        let events = events.into_iter().map(|event| LoggedEvent { command: 0, event }).collect();
        let batch = Batch { commands: vec![record], events, ..state.next_batch(BEGIN, Uuid::NIL) };
        state.apply(&batch).unwrap()
    }

    fn key() -> JobKey {
        JobKey::new("default", "tick")
    }

    fn begun() -> (State, Delta) {
        let periodic = PeriodicConfig { spec: Some("* * * * *".into()), ..PeriodicConfig::default() };
        let document =
            Doc::of(&Job { kind: Some("batch".into()), periodic: Some(periodic), ..Job::default() });
        let registered = JobRegistered { key: key(), version: 0, document, submission: Doc::default() };
        let mut state = State::default();
        let delta = fold(&mut state, vec![registered.into()]);
        (state, delta)
    }

    fn minutes(n: i64) -> Time {
        BEGIN.plus(Duration::from_secs(60 * n))
    }

    fn launched_at(commands: &[Command]) -> Vec<Time> {
        let at = |command: &Command| match command {
            Command::LaunchJob { at, forced: false, .. } => *at,
            other => panic!("{other:?}"),
        };
        commands.iter().map(at).collect()
    }

    #[test]
    fn each_moment_is_launched_once_also_if_nothing_came_of_it() {
        let (state, delta) = begun();
        let mut launches = Launches::default();
        launches.observe(&state, &delta);
        assert_eq!(launches.next_deadline(), Some(minutes(1)));
        assert_eq!(launched_at(&launches.expire(&state, minutes(1))), [minutes(1)]);
        launches.observe(&state, &delta);
        assert_eq!(launches.next_deadline(), Some(minutes(2)));
    }

    #[test]
    fn moments_that_nobody_led_are_made_up_for_once() {
        let (mut state, _) = begun();
        let (at, child) = (minutes(3), "tick/periodic-1".to_string());
        fold(&mut state, vec![JobLaunched { key: key(), at, child, forced: false }.into()]);
        let mut launches = Launches::default();
        launches.rebuild(&state);
        assert_eq!(launches.next_deadline(), Some(minutes(4)));
        let late = minutes(9).plus(Duration::from_secs(30));
        assert_eq!(launched_at(&launches.expire(&state, late)), [late]);
        assert_eq!(launches.next_deadline(), Some(minutes(10)));
    }

    #[test]
    fn a_stopped_job_is_not_launched() {
        let (mut state, delta) = begun();
        let mut launches = Launches::default();
        launches.observe(&state, &delta);
        assert_eq!(launches.len(), 1);
        let delta = fold(&mut state, vec![JobStopped { key: key(), version: 1 }.into()]);
        launches.observe(&state, &delta);
        assert!(launches.is_empty());
    }
}
