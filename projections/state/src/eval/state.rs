use std::collections::BTreeMap;
use std::sync::Arc;

use base::{IdMap, Index, Time};
use model::event::{EvalOutcome, NewEval};
use model::{Doc, EvalId, EvalStatus, JobKey, JobType, Trigger};

use crate::alloc::reschedule::WINDOW;
use crate::row::{EvalRow, JobRow};
use crate::rows::{Rows, releases};

#[derive(Clone, Debug, PartialEq)]
pub struct Eval {
    /// As it was created.
    pub facts: Arc<NewEval>,
    pub job: JobRow,
    pub status: EvalStatus,
    pub description: String,
    pub outcome: EvalOutcome,
    /// As in [`EvalUpdated`](model::event::EvalUpdated).
    pub desired: Doc,
    /// A worker finished with it.
    pub acked: bool,
    /// It was deleted.
    pub gone: bool,
    pub created: Index,
    pub modified: Index,
    pub create_time: Time,
    pub modify_time: Time,
}

impl Eval {
    pub fn id(&self) -> EvalId {
        self.facts.id
    }

    /// It waits for the time at which what failed is replaced, or for one just before it.
    pub fn reschedules_at(&self, due: Time) -> bool {
        let (trigger, until) = (self.facts.trigger, self.facts.wait_until);
        let made_for_it = matches!(trigger, Trigger::RescheduleLater | Trigger::AllocFailure);
        let covers = until != Time::ZERO && until <= due && due.since(until) < WINDOW;
        self.status == EvalStatus::Pending && made_for_it && covers
    }
}

releases!(Eval, Eval::released());

impl Eval {
    /// How an evaluation reads that was deleted and released.
    fn released() -> Eval {
        let facts = NewEval {
            id: EvalId::default(),
            key: JobKey::new("", ""),
            kind: JobType::Service,
            priority: 0,
            trigger: Trigger::JobRegister,
            status: EvalStatus::Complete,
            description: String::new(),
            node: None,
            job_modify: Index::ZERO,
            node_modify: Index::ZERO,
            previous: None,
            wait_until: Time::ZERO,
            outcome: EvalOutcome::default(),
        };
        Eval {
            facts: Arc::new(facts),
            job: JobRow(0),
            status: EvalStatus::Complete,
            description: String::new(),
            outcome: EvalOutcome::default(),
            desired: Doc::default(),
            acked: true,
            gone: true,
            created: Index::ZERO,
            modified: Index::ZERO,
            create_time: Time::ZERO,
            modify_time: Time::ZERO,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evals {
    pub(crate) by_id: IdMap<EvalId>,
    pub(crate) rows: Rows<Arc<Eval>>,
    /// Blocked evaluations: at most one per job.
    pub(crate) blocked: Arc<BTreeMap<JobRow, EvalRow>>,
}

impl Evals {
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    pub fn find(&self, id: EvalId) -> Option<EvalRow> {
        self.by_id.get(&id).map(EvalRow)
    }

    pub fn get(&self, row: EvalRow) -> &Eval {
        &self.rows[row.0]
    }

    pub fn lookup(&self, id: EvalId) -> Option<&Eval> {
        self.find(id).map(|row| self.get(row))
    }

    /// Known evaluations in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (EvalRow, &Eval)> {
        self.by_id.rows().map(|row| (EvalRow(row), self.get(EvalRow(row))))
    }

    pub fn with_prefix(&self, prefix: &str) -> impl Iterator<Item = EvalRow> {
        self.by_id.with_prefix(prefix).map(EvalRow)
    }

    /// Blocked evaluations by the row of their job.
    pub fn blocked(&self) -> impl Iterator<Item = (JobRow, EvalRow)> {
        self.blocked.iter().map(|(job, eval)| (*job, *eval))
    }

    pub fn blocked_of(&self, job: JobRow) -> Option<EvalRow> {
        self.blocked.get(&job).copied()
    }
}

/// Why an evaluation may not be deleted; `None` if it may.
pub fn why_kept(state: &crate::State, eval: &Eval) -> Option<&'static str> {
    if !eval.status.is_terminal() {
        return Some("it is not over");
    }
    let allocs = state.jobs.get(eval.job).allocs.iter().map(|row| state.allocs.get(*row));
    let runs = allocs.filter(|alloc| alloc.eval == eval.id()).any(|alloc| !alloc.client.is_terminal());
    runs.then_some("an allocation that it placed has not ended")
}
