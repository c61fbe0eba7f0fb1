//! Has what ended long ago forgotten, so that a cluster that runs for years holds what is of use.

use std::collections::BTreeSet;

use base::{Duration, Rng, Time};
use model::command::{LeftoverAges, Leftovers};
use model::{Command, JobKey, JobStatus};
use rules::leftovers::{self, LEFTOVERS_MAX};
use rules::{COLLECTED_MAX, job_due};
use state::job::JobRow;
use state::{Delta, State};

use super::controller::Controller;
use super::deadlines::Deadlines;

/// One collection bounds how much it forgets; if it reached that, the next follows soon.
const SOON: Duration = Duration::from_secs(1);

/// Most jobs whose leftovers one call looks at. The rest follows soon.
const LOOKS_MAX: usize = 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GarbageSettings {
    /// The time between two collections.
    pub every: Duration,
    /// How long an ended job stays to be looked at after its last change.
    pub jobs_after: Duration,
    /// How long a node stays that is down.
    pub nodes_after: Duration,
    /// How long the rest stays of what is over.
    pub leftovers: LeftoverAges,
}

/// As in Nomad.
impl Default for GarbageSettings {
    fn default() -> GarbageSettings {
        let hours = |hours: i64| Duration::from_secs(hours * 3600);
        GarbageSettings {
            every: Duration::from_secs(5 * 60),
            jobs_after: hours(4),
            nodes_after: hours(24),
            leftovers: LeftoverAges { evals: hours(1), batch_evals: hours(24), deployments: hours(1) },
        }
    }
}

/// When garbage is collected next.
#[derive(Debug)]
pub struct Garbage {
    settings: GarbageSettings,
    /// When it is the turn of nodes, and of what purged jobs left running.
    next: Option<Time>,
    /// When jobs are looked at next, and what they leave behind.
    next_jobs: Option<Time>,
    /// When a job that is dead may have been so for long enough.
    dead: Deadlines<JobRow>,
    /// When something of a job may have become old enough: jobs in which nothing ended are not looked at.
    jobs: Deadlines<JobRow>,
}

impl Garbage {
    pub fn new(settings: GarbageSettings) -> Garbage {
        Garbage {
            settings,
            next: None,
            next_jobs: None,
            dead: Deadlines::default(),
            jobs: Deadlines::default(),
        }
    }

    /// The dead jobs that are due, as commands of a bounded size.
    fn collect_dead(&mut self, state: &State, now: Time) -> Vec<Command> {
        let jobs_after = self.settings.jobs_after;
        let mut named: Vec<JobKey> = Vec::new();
        for _ in 0..LOOKS_MAX {
            let Some(row) = self.dead.take_due(now) else { break };
            let job = state.jobs.get(row);
            // One that is not over is looked at again when it changes.
            match (!job.purged).then(|| job_due(state, job, jobs_after)).flatten() {
                Some(due) if due > now => self.dead.set(row, due),
                Some(_) => {
                    named.push(job.key.clone());
                    // A command forgets a part of what is large: the rest is named once more.
                    self.dead.set(row, now.plus(SOON));
                }
                None => {}
            }
        }
        let command =
            |jobs: &[JobKey]| Command::CollectDue { jobs: jobs.to_vec(), jobs_after, nodes_after: None };
        named.chunks(COLLECTED_MAX).map(command).collect()
    }

    /// The leftovers of the jobs that are due, as commands of a bounded size.
    fn collect_leftovers(&mut self, state: &State, now: Time) -> Vec<Command> {
        let ages = self.settings.leftovers;
        let mut commands = Vec::new();
        let mut named = Leftovers::default();
        for _ in 0..LOOKS_MAX {
            let Some(row) = self.jobs.take_due(now) else { break };
            let found = leftovers::find(state, row, &ages, now);
            if let Some(next) = found.next {
                self.jobs.set(row, next);
            }
            for part in parts(found.leftovers) {
                if named.len() + part.len() > LEFTOVERS_MAX {
                    let full = std::mem::take(&mut named);
                    commands.push(Command::CollectLeftovers { named: Some(full), ages });
                }
                named.allocs.extend(part.allocs);
                named.evals.extend(part.evals);
                named.deployments.extend(part.deployments);
            }
        }
        if !named.is_empty() {
            commands.push(Command::CollectLeftovers { named: Some(named), ages });
        }
        commands
    }
}

/// Cuts what one command cannot forget at once. Allocations come before the evaluations that they hold.
fn parts(found: Leftovers) -> Vec<Leftovers> {
    if found.len() <= LEFTOVERS_MAX {
        return vec![found];
    }
    let Leftovers { evals, allocs, deployments } = found;
    let allocs = allocs.chunks(LEFTOVERS_MAX);
    let allocs = allocs.map(|allocs| Leftovers { allocs: allocs.to_vec(), ..Leftovers::default() });
    let evals = evals.chunks(LEFTOVERS_MAX);
    let evals = evals.map(|evals| Leftovers { evals: evals.to_vec(), ..Leftovers::default() });
    let deployments = deployments.chunks(LEFTOVERS_MAX);
    let deployments = deployments.map(|all| Leftovers { deployments: all.to_vec(), ..Leftovers::default() });
    allocs.chain(evals).chain(deployments).collect()
}

impl Controller for Garbage {
    fn name(&self) -> &'static str {
        "garbage"
    }

    fn lead(&mut self, state: &State, now: Time) {
        self.next = Some(now.plus(self.settings.every));
        self.next_jobs = self.next;
        self.jobs.clear();
        self.dead.clear();
        let dead = state.jobs.iter().filter(|(_, job)| job.status == JobStatus::Dead);
        dead.for_each(|(row, _)| self.dead.set(row, now));
        // Of most jobs there ever were nothing is left but the row.
        let has_some = |row: &JobRow| {
            let job = state.jobs.get(*row);
            !job.allocs.is_empty() || !job.evals.is_empty() || !job.deployments.is_empty()
        };
        state.jobs.all_rows().filter(has_some).for_each(|row| self.jobs.set(row, now));
    }

    fn follow(&mut self) {
        (self.next, self.next_jobs) = (None, None);
        self.jobs.clear();
        self.dead.clear();
    }

    fn observe(&mut self, state: &State, delta: &Delta, now: Time) {
        let left = delta.nodes.iter().filter(|row| state.nodes.hot(**row).gone).count();
        if left >= COLLECTED_MAX {
            self.next = self.next.map(|next| next.min(now.plus(SOON)));
        }
        let due = now.plus(self.settings.leftovers.shortest());
        for row in delta.jobs.iter().copied().collect::<BTreeSet<JobRow>>() {
            // One that is due sooner is looked at then, and again when more of it will be old enough.
            if self.jobs.get(row).is_none_or(|own| own > due) {
                self.jobs.set(row, due);
            }
            let job = state.jobs.get(row);
            if job.status == JobStatus::Dead && !job.purged {
                self.dead.set(row, now.plus(self.settings.jobs_after));
            } else {
                self.dead.forget(row);
            }
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        self.next.min(self.next_jobs)
    }

    fn expire(&mut self, state: &State, now: Time, _: &mut Rng) -> Vec<Command> {
        let mut commands = Vec::new();
        let GarbageSettings { every, jobs_after, nodes_after, .. } = self.settings;
        if self.next.is_some_and(|next| next <= now) {
            self.next = Some(now.plus(every));
            let nodes_after = Some(nodes_after);
            commands.push(Command::CollectDue { jobs: Vec::new(), jobs_after, nodes_after });
            // An expired token is worth nothing already: this only makes room.
            if rules::acl::has_expired(&state.acl, now) {
                commands.push(Command::CollectExpiredTokens);
            }
            if rules::cursor::has_expired(&state.cursors, now) {
                commands.push(Command::ExpireEventCursors);
            }
        }
        if self.next_jobs.is_some_and(|next| next <= now) {
            commands.extend(self.collect_dead(state, now));
            commands.extend(self.collect_leftovers(state, now));
            let soon = now.plus(SOON);
            let waits = [self.dead.next(), self.jobs.next()].into_iter().flatten().any(|next| next <= soon);
            self.next_jobs = Some(now.plus(if waits { SOON } else { every }));
        }
        commands
    }
}

#[cfg(test)]
mod tests {
    use base::Index;
    use model::command::RegisterJob;
    use model::document::{Job, TaskGroup};
    use model::{Actor, CommandRecord, JobKey, RequestId};
    use state::Moment;

    use super::*;

    /// Decides and folds at that second.
    fn submit(state: &mut State, second: i64, command: Command) -> Delta {
        let at = Moment { index: state.index.next(), time: Time::from_secs(second), epoch: model::EPOCH };
        let mut ctx = rules::Context::new(at.index, at.time, at.index.0);
        let decision = rules::decide(state, &mut ctx, &Actor::ANONYMOUS, &command).unwrap();
        let record = CommandRecord { request: RequestId::default(), kind: 0, actor: Actor::ANONYMOUS };
        let mut delta = Delta::default();
        state.absorb(at, &record, decision.events.iter(), &mut delta);
        state.seal(at, &delta);
        delta
    }

    fn job() -> Job {
        let text = |text: &str| Some(text.to_string());
        let group = TaskGroup { name: text("g"), count: Some(1), ..TaskGroup::default() };
        Job {
            id: text("web"),
            namespace: text("default"),
            kind: text("service"),
            priority: Some(50),
            datacenters: vec!["*".to_string()].into(),
            node_pool: text("default"),
            task_groups: vec![group].into(),
            ..Job::default()
        }
    }

    #[test]
    fn garbage_is_collected_every_five_minutes_while_this_server_leads() {
        let (state, mut rng) = (State::default(), Rng::new(1));
        let mut garbage = Garbage::new(GarbageSettings::default());
        assert_eq!(garbage.next_deadline(), None);
        garbage.lead(&state, Time::from_secs(1000));
        assert!(garbage.expire(&state, Time::from_secs(1299), &mut rng).is_empty());
        let commands = garbage.expire(&state, Time::from_secs(1300), &mut rng);
        let four_hours = Duration::from_secs(4 * 3600);
        assert!(
            matches!(&commands[..], [Command::CollectDue { jobs_after, .. }] if *jobs_after == four_hours)
        );
        assert_eq!(garbage.next_deadline(), Some(Time::from_secs(1600)));
        garbage.follow();
        assert_eq!(garbage.next_deadline(), None);
    }

    #[test]
    fn leftovers_are_named_when_they_are_old_enough_and_jobs_without_any_are_not_looked_at() {
        let (mut state, mut rng) = (State::default(), Rng::new(1));
        let mut garbage = Garbage::new(GarbageSettings::default());
        garbage.lead(&state, Time::from_secs(0));
        let register = RegisterJob::new(job());
        let (key, no_shutdown_delay) = (JobKey::new("default", "web"), false);
        let purge = Command::DeregisterJob { key, purge: true, eval_priority: None, no_shutdown_delay };
        for (second, command) in [(10, Command::RegisterJob(Box::new(register))), (20, purge)] {
            let delta = submit(&mut state, second, command);
            garbage.observe(&state, &delta, Time::from_secs(second));
        }
        let ended: Vec<_> = state.evals.iter().map(|(_, eval)| eval.id()).collect();
        assert!(!ended.is_empty() && state.index == Index(2));

        let mut leftovers = |garbage: &mut Garbage, state: &State, second| {
            let commands = garbage.expire(state, Time::from_secs(second), &mut rng);
            commands.into_iter().find(|command| matches!(command, Command::CollectLeftovers { .. }))
        };
        assert!(leftovers(&mut garbage, &state, 3600).is_none(), "an hour is not over yet");
        let found = leftovers(&mut garbage, &state, 3900).unwrap();
        let Command::CollectLeftovers { named: Some(named), .. } = &found else { panic!("{found:?}") };
        assert_eq!(named.evals, ended);
        let delta = submit(&mut state, 3901, found.clone());
        garbage.observe(&state, &delta, Time::from_secs(3901));
        assert!(state.evals.is_empty());
        assert!(garbage.jobs.is_empty(), "nothing else of the job can get old");

        // Another leader starts from the state alone.
        let mut other = Garbage::new(GarbageSettings::default());
        other.lead(&state, Time::from_secs(4000));
        assert!(leftovers(&mut other, &state, 4300).is_none() && other.jobs.is_empty());
    }
}
