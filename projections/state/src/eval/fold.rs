#![warn(clippy::wildcard_enum_match_arm)]

use std::collections::BTreeSet;
use std::sync::Arc;

use model::event::{EvalAcked, EvalCreated, EvalUpdated, EvalsCanceled, EvalsDeleted, PlanCommitted};
use model::{Doc, EvalId, EvalStatus};

use super::state::{Eval, Evals};
use crate::moment::Moment;
use crate::row::EvalRow;
use crate::{Delta, State};

impl Evals {
    pub(crate) fn acked(&mut self, event: &EvalAcked) -> EvalRow {
        let row = self.known(event.eval);
        self.get_mut(row).acked = true;
        row
    }

    /// A plan for it was decided: the next worker must have seen what it changed.
    pub(crate) fn planned(&mut self, at: Moment, event: &PlanCommitted) -> EvalRow {
        let row = self.known(event.eval);
        let eval = self.get_mut(row);
        assert!(!eval.status.is_terminal(), "a plan is of an evaluation that has not ended");
        eval.modified = at.index;
        row
    }

    pub(crate) fn known(&self, id: EvalId) -> EvalRow {
        self.find(id).expect("the event names a created evaluation")
    }

    fn get_mut(&mut self, row: EvalRow) -> &mut Eval {
        Arc::make_mut(self.rows.held_mut(row.0))
    }
}

impl State {
    pub(crate) fn eval_created(&mut self, at: Moment, event: &EvalCreated, delta: &mut Delta) {
        let facts = &event.eval;
        assert!(self.evals.find(facts.id).is_none(), "an evaluation is created once");
        let job = self.jobs.known(&facts.key);
        let row = EvalRow(self.evals.rows.push(Arc::new(Eval {
            facts: Arc::new(facts.clone()),
            job,
            status: facts.status,
            description: facts.description.clone(),
            outcome: facts.outcome.clone(),
            desired: Doc::default(),
            acked: false,
            gone: false,
            created: at.index,
            modified: at.index,
            create_time: at.time,
            modify_time: at.time,
        })));
        self.evals.by_id.insert(facts.id, row.0);
        let owner = self.jobs.get_mut(job);
        Arc::make_mut(&mut owner.evals).push(row);
        owner.live_evals.push(row);
        owner.had_evals = true;
        if facts.status == EvalStatus::Blocked {
            Arc::make_mut(&mut self.evals.blocked).insert(job, row);
        }
        delta.evals.push(row);
        delta.jobs.push(job);
    }

    pub(crate) fn eval_updated(&mut self, at: Moment, event: &EvalUpdated, delta: &mut Delta) {
        let row = self.evals.known(event.eval);
        let eval = self.evals.get_mut(row);
        assert!(!eval.status.is_terminal(), "an evaluation that ended does not change");
        eval.outcome = event.outcome.clone();
        eval.desired = event.desired.clone();
        let job = eval.job;
        if event.status.is_terminal() {
            self.end_eval(at, row, event.status, event.description.clone(), delta);
        } else {
            (eval.status, eval.description) = (event.status, event.description.clone());
            (eval.modified, eval.modify_time) = (at.index, at.time);
            if event.status == EvalStatus::Blocked {
                Arc::make_mut(&mut self.evals.blocked).insert(job, row);
            }
            delta.evals.push(row);
            delta.jobs.push(job);
        }
        self.count_queued(at, row);
    }

    pub(crate) fn evals_canceled(&mut self, at: Moment, event: &EvalsCanceled, delta: &mut Delta) {
        for id in &event.evals {
            let row = self.evals.known(*id);
            self.end_eval(at, row, EvalStatus::Canceled, event.cause.clone(), delta);
        }
    }

    pub(crate) fn evals_deleted(&mut self, at: Moment, event: &EvalsDeleted, delta: &mut Delta) {
        let mut jobs = BTreeSet::new();
        for id in &event.evals {
            let row = self.evals.known(*id);
            self.evals.by_id.remove(id);
            let eval = self.evals.get_mut(row);
            assert!(eval.status.is_terminal(), "what is not over is not forgotten");
            (eval.gone, eval.modified) = (true, at.index);
            jobs.insert(eval.job);
            delta.evals.push(row);
        }
        // Once for each job: it may have as many as are deleted.
        for job in jobs {
            let evals = Arc::make_mut(&mut self.jobs.get_mut(job).evals);
            evals.retain(|row| !self.evals.get(*row).gone);
        }
    }

    pub(crate) fn end_eval(
        &mut self,
        at: Moment,
        row: EvalRow,
        status: EvalStatus,
        description: String,
        delta: &mut Delta,
    ) {
        assert!(status.is_terminal(), "an evaluation ends in a terminal status");
        let eval = self.evals.get_mut(row);
        assert!(!eval.status.is_terminal(), "an evaluation ends once");
        (eval.status, eval.description) = (status, description);
        (eval.modified, eval.modify_time) = (at.index, at.time);
        let job = eval.job;
        self.jobs.get_mut(job).live_evals.retain(|live| *live != row);
        if self.evals.blocked_of(job) == Some(row) {
            Arc::make_mut(&mut self.evals.blocked).remove(&job);
        }
        delta.evals.push(row);
        delta.jobs.push(job);
    }

    /// What the scheduler could not place yet stands in the job's summary.
    fn count_queued(&mut self, at: Moment, row: EvalRow) {
        let eval = self.evals.get(row);
        let (job, queued) = (eval.job, eval.outcome.queued.clone());
        let state = self.jobs.get_mut(job);
        for (group, count) in queued {
            if let Some(counts) = state.groups.get_mut(&group).filter(|counts| counts.queued != count) {
                counts.queued = count;
                state.summary_modified = at.index;
            }
        }
    }
}
