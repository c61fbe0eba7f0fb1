//! States that nobody else sees: what would be true if somebody asked for something.

use std::sync::Arc;

use base::Time;
use model::command::{RegisterJob, Settlement};
use model::document::Job;
use model::event::{EvalCreated, Event};
use model::{Actor, Command, CommandRecord, EvalId, JobType, Rejection, RequestId, Trigger};

use crate::decide::{Context, Decision};
use crate::job::{JobRow, JobVersion};
use crate::{Delta, Kept, Moment, State, eval, job, plan};

impl State {
    /// This state with the job registered, and the evaluation that looks at it: also of a job that would wait for its
    /// time, and also while registration is closed.
    ///
    /// # Errors
    /// As for the registration itself.
    pub fn with_job(
        &self,
        request: &RegisterJob,
        now: Time,
        seed: u64,
    ) -> Result<(State, EvalId), Rejection> {
        let mut fork = self.clone();
        if let Some(scheduler) = &mut fork.operator.scheduler {
            scheduler.rules.reject_job_registration = false;
        }
        let at = fork.moment(now);
        let mut ctx = Context::new(at.index, at.time, seed);
        let mut decision = job::decide::register(&fork, &mut ctx, request)?;
        if decision.reply().evals.is_empty() {
            let key = job::decide::key_of(&request.job)?;
            let kind = JobType::from_word(request.job.kind.as_deref().unwrap_or_default());
            let kind = kind.expect("a job of an unknown type is not registered");
            let priority = job::decide::priority_of(&request.job);
            let eval = eval::decide::new(&mut ctx, &key, kind, priority, Trigger::JobRegister);
            decision.events.push(EvalCreated { eval }.into());
        }
        let eval = decision.reply().evals[0];
        fork.take(at, 0, &decision.events);
        Ok((fork, eval))
    }

    /// This state with a worker's result in it.
    ///
    /// # Errors
    /// As for the settlement itself.
    pub fn settled(&self, settlement: &Settlement, now: Time) -> Result<(State, Decision), Rejection> {
        let mut fork = self.clone();
        let at = fork.moment(now);
        // A plan's ids come from its own seed; only evaluations of jobs that make room are named here.
        let mut ctx = Context::new(at.index, at.time, settlement.plan.seed);
        let decision = plan::decide::settle(self, &mut ctx, settlement)?;
        fork.take(at, 0, &decision.events);
        Ok((fork, decision))
    }

    /// This state after one more command.
    ///
    /// # Errors
    /// As for the command itself.
    pub fn after(&self, command: &Command, now: Time, seed: u64) -> Result<State, Rejection> {
        let mut fork = self.clone();
        let at = fork.moment(now);
        let mut ctx = Context::new(at.index, at.time, seed);
        let decision = crate::decide(&fork, &mut ctx, &Actor::Anonymous, command)?;
        fork.take(at, command.kind(), &decision.events);
        Ok(fork)
    }

    fn moment(&self, now: Time) -> Moment {
        Moment { index: self.index.next(), time: now.max(self.time) }
    }

    fn take(&mut self, at: Moment, kind: u16, events: &[Event]) {
        let record = CommandRecord { request: RequestId::default(), kind, actor: Actor::Anonymous };
        let mut delta = Delta::default();
        self.absorb(at, &record, events.iter(), &mut delta);
        self.seal(at, &delta);
    }
}

impl State {
    /// This state as if the job's current version had always been this one: no allocation of it is out of date.
    pub fn with_current(&self, row: JobRow, job: Job) -> State {
        let mut fork = self.clone();
        let state = fork.jobs.get_mut(row);
        let version = JobVersion { job: Kept::of(&job), ..JobVersion::clone(state.current()) };
        state.versions[0] = Arc::new(version);
        fork.settle_digest();
        fork
    }
}
