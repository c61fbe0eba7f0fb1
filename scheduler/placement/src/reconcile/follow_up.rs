use std::collections::BTreeMap;

use base::{Index, Rng, Time};
use model::event::NewEval;
use model::{AllocId, EvalId, EvalStatus, Trigger};
use state::alloc::Alloc;
use state::alloc::reschedule::WINDOW;

use super::PassContext;
use crate::descriptions;

/// Evaluations that this pass creates for a later time.
#[derive(Debug)]
pub struct FollowUps {
    pub created: Vec<NewEval>,
    rng: Rng,
}

/// The trigger and description of the first evaluation, and of the others.
type Naming = [(Trigger, &'static str); 2];

const DISCONNECTS: Naming = [(Trigger::MaxDisconnectTimeout, descriptions::DISCONNECT_TIMEOUT); 2];
const RESCHEDULES: Naming =
    [(Trigger::RescheduleLater, descriptions::RESCHEDULE_LATER), (Trigger::AllocFailure, "")];
const STOPS_ON_CLIENT: Naming = [(Trigger::AllocFailure, ""); 2];

impl FollowUps {
    pub fn new(seed: u64) -> FollowUps {
        FollowUps { created: Vec::new(), rng: Rng::stream(seed, "follow-up evaluations") }
    }

    /// For allocations that are lost if they stay unknown until then.
    pub fn disconnects(&mut self, cx: &PassContext, due: Vec<(Time, &Alloc)>) -> Assigned {
        self.batch(cx, due, DISCONNECTS)
    }

    /// For allocations that are rescheduled then.
    pub fn reschedules(&mut self, cx: &PassContext, due: Vec<(Time, &Alloc)>) -> Assigned {
        self.batch(cx, due, RESCHEDULES)
    }

    /// For lost allocations that their clients will have stopped by then (`stop_on_client_after`).
    pub fn stops_on_client(&mut self, cx: &PassContext, due: Vec<(Time, &Alloc)>) -> Assigned {
        self.batch(cx, due, STOPS_ON_CLIENT)
    }

    /// One that continues an update, unless one already waits.
    pub fn rollout(&mut self, cx: &PassContext, time: Time) {
        if find(cx, |eval| eval.facts.trigger == Trigger::RollingUpdate).is_none() {
            self.create(cx, (Trigger::RollingUpdate, descriptions::ROLLING), time);
        }
    }

    /// For a job that runs on every node, whose scheduler accepts no trigger for a timeout.
    pub fn expiry(&mut self, cx: &PassContext, time: Time) -> EvalId {
        self.create(cx, (Trigger::NodeUpdate, descriptions::DISCONNECT_TIMEOUT), time)
    }

    /// Due times within [`WINDOW`] of the first one share an evaluation.
    fn batch(&mut self, cx: &PassContext, mut due: Vec<(Time, &Alloc)>, naming: Naming) -> Assigned {
        due.sort_by_key(|(time, alloc)| (*time, alloc.id));
        let mut assigned = Assigned::default();
        let mut current: Option<(Time, EvalId)> = None;
        for (time, alloc) in due {
            let eval = match current {
                Some((start, eval)) if time.since(start) < WINDOW => eval,
                None => self.create(cx, naming[0], time),
                Some(_) => self.create(cx, naming[1], time),
            };
            if current.is_none_or(|(_, shared)| shared != eval) {
                current = Some((time, eval));
            }
            assigned.insert(alloc.id, eval);
        }
        assigned
    }

    fn create(&mut self, cx: &PassContext, (trigger, why): (Trigger, &str), wait_until: Time) -> EvalId {
        let facts = &cx.eval.facts;
        let eval = NewEval {
            id: EvalId(self.rng.uuid()),
            key: facts.key.clone(),
            kind: cx.job.current().kind,
            priority: facts.priority,
            trigger,
            status: EvalStatus::Pending,
            description: why.to_string(),
            node: None,
            job_modify: cx.job.job_modified,
            node_modify: Index::ZERO,
            previous: Some(cx.eval_id()),
            wait_until,
            outcome: Default::default(),
        };
        self.created.push(eval);
        self.created.last().map(|eval| eval.id).expect("one was just created")
    }
}

/// Which evaluation each allocation waits for.
pub type Assigned = BTreeMap<AllocId, EvalId>;

/// An evaluation of the job already waits for that time, or for one just before it.
pub fn is_covered(cx: &PassContext, time: Time) -> bool {
    find(cx, |eval| eval.reschedules_at(time)).is_some()
}

fn find(cx: &PassContext, holds: impl Fn(&state::eval::Eval) -> bool) -> Option<EvalId> {
    let live = cx.job.live_evals.iter().map(|row| cx.state.evals.get(*row));
    let mut waiting = live.filter(|eval| {
        eval.id() != cx.eval_id() && eval.status == EvalStatus::Pending && eval.facts.wait_until > cx.now
    });
    waiting.find(|eval| holds(eval)).map(|eval| eval.id())
}
