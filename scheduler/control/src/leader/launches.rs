//! Launches periodic jobs when their time has come.

use std::collections::BTreeMap;

use base::{Duration, Rng, Time};
use model::Command;
use model::cron::next_launch;
use state::job::{JobRow, JobState};
use state::{Delta, State};

use super::controller::Controller;
use super::deadlines::Deadlines;

/// A launch time that passed longer ago than this was missed: nobody led. However many were missed, the job is
/// launched once, for now.
const MISSED: Duration = Duration::from_secs(5);

/// When each periodic job is launched next.
#[derive(Debug, Default)]
pub struct Launches {
    deadlines: Deadlines<JobRow>,
    /// Launch times that a command was given for: where launches may not overlap, some lead to no child.
    passed: BTreeMap<JobRow, Time>,
}

impl Controller for Launches {
    fn name(&self) -> &'static str {
        "launches"
    }

    fn lead(&mut self, state: &State, _: Time) {
        self.follow();
        state.jobs.iter().for_each(|(row, job)| self.take(row, job));
    }

    fn follow(&mut self) {
        self.deadlines.clear();
        self.passed.clear();
    }

    fn observe(&mut self, state: &State, delta: &Delta, _: Time) {
        delta.jobs.iter().for_each(|row| self.take(*row, state.jobs.get(*row)));
    }

    fn next_deadline(&self) -> Option<Time> {
        self.deadlines.next()
    }

    /// Each job's next launch follows from this one.
    fn expire(&mut self, state: &State, now: Time, _: &mut Rng) -> Vec<Command> {
        let mut commands = Vec::new();
        while let (Some(due), Some(row)) = (self.deadlines.next(), self.deadlines.take_due(now)) {
            let job = state.jobs.get(row);
            let at = if now.since(due) > MISSED { now } else { due };
            commands.push(Command::LaunchJob { key: job.key.clone(), at, forced: false });
            self.passed.insert(row, at);
            self.take(row, job);
        }
        commands
    }
}

impl Launches {
    /// Periodic jobs that are not stopped.
    pub fn len(&self) -> usize {
        self.deadlines.len()
    }

    pub fn is_empty(&self) -> bool {
        self.deadlines.is_empty()
    }

    fn take(&mut self, row: JobRow, job: &JobState) {
        let passed = self.passed.get(&row).copied().unwrap_or(Time::ZERO);
        let next = job.schedule().and_then(|schedule| next_launch(schedule, job.last_launch().max(passed)));
        match next {
            Some(launch) => self.deadlines.set(row, launch),
            None => {
                self.deadlines.forget(row);
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
        let record = CommandRecord { request: RequestId::default(), kind: 0, actor: Actor::ANONYMOUS };
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
        launches.observe(&state, &delta, BEGIN);
        assert_eq!(launches.next_deadline(), Some(minutes(1)));
        assert_eq!(launched_at(&launches.expire(&state, minutes(1), &mut Rng::new(1))), [minutes(1)]);
        launches.observe(&state, &delta, BEGIN);
        assert_eq!(launches.next_deadline(), Some(minutes(2)));
    }

    #[test]
    fn moments_that_nobody_led_are_made_up_for_once() {
        let (mut state, _) = begun();
        let (at, child) = (minutes(3), "tick/periodic-1".to_string());
        fold(&mut state, vec![JobLaunched { key: key(), at, child, forced: false }.into()]);
        let mut launches = Launches::default();
        launches.lead(&state, BEGIN);
        assert_eq!(launches.next_deadline(), Some(minutes(4)));
        let late = minutes(9).plus(Duration::from_secs(30));
        assert_eq!(launched_at(&launches.expire(&state, late, &mut Rng::new(1))), [late]);
        assert_eq!(launches.next_deadline(), Some(minutes(10)));
    }

    #[test]
    fn a_stopped_job_is_not_launched() {
        let (mut state, delta) = begun();
        let mut launches = Launches::default();
        launches.observe(&state, &delta, BEGIN);
        assert_eq!(launches.len(), 1);
        let delta = fold(&mut state, vec![JobStopped { key: key(), version: 1 }.into()]);
        launches.observe(&state, &delta, BEGIN);
        assert!(launches.is_empty());
    }
}
