//! The leader, one worker and the nodes around a state, in turns and with a clock that jumps from deadline to deadline.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::{Rng, Time};
use model::command::Reply;
use model::{
    Actor, Command, CommandRecord, EPOCH, JobKey, NodeId, NodeStatus, Rejection, RequestId, SchedulerRules,
};
use rules::Context;
use state::alloc::AllocRow;
use state::deployment::DeploymentRow;
use state::eval::EvalRow;
use state::job::JobRow;
use state::{Delta, Moment, State};

use super::nodes::IdealNodes;
use super::{ALLOCATIONS_MAX, DURATION_MAX, EVALUATIONS_MAX, Question, STEPS_MAX, Until};
use crate::broker::BrokerSettings;
use crate::heartbeats::HeartbeatSettings;
use crate::leader::{Leader, Order};
use crate::worker::{Need, Outcome, TYPES, Worker};
use crate::{GarbageSettings, Receipt, SubmitError};

/// Controllers whose deadlines a fork does not wait for, and whose commands it leaves out: nobody renews locks there,
/// batch jobs do not end, and what ended is still to be compared.
const LEFT_OUT: [&str; 3] = ["garbage", "launches", "locks"];

/// Why a fork went no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Quiet,
    /// The time that was asked for has passed, and something is left to be done.
    Until,
    /// Operators have the broker pause: evaluations wait for that to end.
    Paused,
    Steps,
    Evaluations,
    Allocations,
    /// [`DURATION_MAX`] has passed on its clock.
    Duration,
    /// Whoever asked wants it to end.
    Time,
}

/// What was touched since the beginning.
#[derive(Debug, Default)]
pub(super) struct Touched {
    pub allocs: BTreeSet<AllocRow>,
    pub deployments: BTreeSet<DeploymentRow>,
    pub evals: BTreeSet<EvalRow>,
    /// The fewest that were running of each group, so far.
    pub lowest: BTreeMap<JobRow, BTreeMap<String, u32>>,
}

pub(super) struct Fork {
    pub base: Arc<State>,
    state: Arc<State>,
    leader: Leader,
    worker: Worker,
    nodes: IdealNodes,
    rng: Rng,
    job_count_max: i64,
    pub begin: Time,
    pub now: Time,
    pub touched: Touched,
    pub steps: u64,
    pub evaluations: u64,
    /// Nodes that were added.
    pub added: u32,
}

impl Fork {
    /// Takes the state over as a new leader does.
    pub fn open(base: Arc<State>, question: &Question) -> Fork {
        let now = question.now.max(base.time);
        // Of the index: the same state is continued in the same way.
        let seeded = |purpose| Rng::stream(base.index.0, purpose);
        let leader = Leader::new(
            // As a server has them unless it is configured otherwise.
            BrokerSettings::default(),
            HeartbeatSettings::default(),
            GarbageSettings::default(),
            SchedulerRules::default(),
            seeded("leader of a fork"),
        );
        let mut worker = Worker::new(seeded("worker of a fork"));
        let Need::Dequeue = worker.begin() else { unreachable!("a worker begins without work") };
        let mut fork = Fork {
            state: base.clone(),
            leader,
            worker,
            nodes: IdealNodes::default(),
            rng: seeded("commands of a fork"),
            job_count_max: question.job_count_max,
            begin: now,
            now,
            touched: Touched::default(),
            steps: 0,
            evaluations: 0,
            added: 0,
            base,
        };
        // It only asks to found a cluster that was not founded yet.
        let _founds = fork.leader.lead(&fork.state, now);
        let base = fork.base.clone();
        let alive = |row: &_| !base.nodes.hot(*row).status.is_silent();
        base.nodes.rows().filter(alive).for_each(|row| fork.trust(base.nodes.cold(row).id));
        fork.nodes.begin(&base, now);
        fork
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    /// The node goes on with its heartbeats: none is waited for until long after the end.
    pub fn trust(&mut self, node: NodeId) {
        self.leader.heartbeat(node, self.far());
    }

    /// What is due then or later is not waited for.
    fn far(&self) -> Time {
        self.begin.plus(DURATION_MAX).plus(DURATION_MAX)
    }

    /// The node's last heartbeat comes now.
    pub fn expect_heartbeat(&mut self, node: NodeId) {
        let row = self.state.nodes.find(node);
        if row.is_some_and(|row| self.state.nodes.hot(row).status != NodeStatus::Down) {
            self.leader.heartbeat(node, self.now);
        }
    }

    /// Closes or opens the registration of jobs, and returns whether it was closed.
    pub fn close_registration(&mut self, close: bool) -> bool {
        let Some(scheduler) = &mut Arc::make_mut(&mut self.state).operator.scheduler else { return false };
        std::mem::replace(&mut scheduler.rules.reject_job_registration, close)
    }

    /// Runs the fork. Workers come first, then nodes, then controllers; then time passes.
    pub fn run(&mut self, until: Until, go_on: &dyn Fn() -> bool) -> Ended {
        loop {
            if let Some(bound) = self.bound() {
                return bound;
            }
            if !go_on() {
                return Ended::Time;
            }
            if self.work() || self.report() {
                continue;
            }
            self.steps += 1;
            let end = self.begin.plus(match until {
                Until::Quiet => DURATION_MAX,
                Until::Passed(span) => span.min(DURATION_MAX),
            });
            match self.next_deadline() {
                None => {
                    if let Until::Passed(_) = until {
                        self.now = end;
                    }
                    let waits = self.leader.broker_stats().ready > 0;
                    return if waits { Ended::Paused } else { Ended::Quiet };
                }
                Some(due) if due > end => {
                    self.now = end;
                    return if until == Until::Quiet { Ended::Duration } else { Ended::Until };
                }
                Some(due) => self.pass(due),
            }
        }
    }

    /// Decides and folds one command, and has everybody see it.
    ///
    /// # Errors
    /// As the rules reject it.
    pub fn submit(&mut self, actor: Actor, command: &Command) -> Result<Receipt, Rejection> {
        self.steps += 1;
        let at = Moment { index: self.state.index.next(), time: self.now.max(self.state.time), epoch: EPOCH };
        let ctx = Context::new(at.index, at.time, self.rng.next());
        let mut ctx = ctx.with_job_count_max(self.job_count_max);
        let decision = rules::decide(&self.state, &mut ctx, &actor, command)?;
        let (wrote, reply): (bool, Reply) = (!decision.events.is_empty(), decision.reply());
        if wrote {
            let record = CommandRecord { request: RequestId::default(), kind: command.kind(), actor };
            let mut delta = Delta::default();
            // Nobody else holds this copy: what it shares with the state that it began with is copied page by page.
            let state = Arc::make_mut(&mut self.state);
            state.absorb(at, &record, decision.events.iter(), &mut delta);
            state.seal(at, &delta);
            self.observe(&delta);
        }
        Ok(Receipt { index: self.state.index, time: at.time, wrote, reply })
    }

    fn observe(&mut self, delta: &Delta) {
        let Fork { state, leader, nodes, touched, base, now, .. } = self;
        leader.observe(state, delta, *now);
        nodes.observe(state, delta, *now);
        touched.allocs.extend(&delta.allocs);
        touched.deployments.extend(&delta.deployments);
        touched.evals.extend(&delta.evals);
        for row in &delta.jobs {
            let job = state.jobs.get(*row);
            let lowest = touched.lowest.entry(*row).or_insert_with(|| running(base, &job.key));
            for (group, summary) in &job.groups {
                let least = lowest.entry(group.clone()).or_insert(summary.running);
                *least = summary.running.min(*least);
            }
        }
    }

    fn bound(&self) -> Option<Ended> {
        match () {
            () if self.steps >= STEPS_MAX => Some(Ended::Steps),
            () if self.evaluations >= EVALUATIONS_MAX => Some(Ended::Evaluations),
            () if self.touched.allocs.len() >= ALLOCATIONS_MAX => Some(Ended::Allocations),
            () => None,
        }
    }

    /// Has the worker schedule the most urgent evaluation; false when there is none.
    fn work(&mut self) -> bool {
        // One after the other: what others do between two evaluations is part of what happens.
        let deliveries = self.leader.dequeue(&self.state, &TYPES, 1, self.now);
        if deliveries.is_empty() {
            return false;
        }
        self.evaluations += 1;
        let mut need = self.worker.step(Outcome::Dequeued(deliveries), self.now);
        while !matches!(need, Need::Dequeue) {
            let outcome = self.meet(need);
            need = self.worker.step(outcome, self.now);
        }
        true
    }

    fn meet(&mut self, need: Need) -> Outcome {
        match need {
            Need::Dequeue => Outcome::Dequeued(Vec::new()),
            // It is the only state there is.
            Need::State { .. } => Outcome::State(self.state.clone()),
            Need::Schedule(_) => Outcome::Go,
            Need::Touch(deliveries) => Outcome::Held(self.leader.touch_all(&deliveries, self.now)),
            Need::Submit(settlements) => {
                let settled = settlements.into_iter().map(|settlement| {
                    let actor = Actor::Server("worker".into());
                    let settled = self.submit(actor, &Command::SettleEval(Box::new(settlement)));
                    settled.map_err(SubmitError::Rejected)
                });
                Outcome::Submitted(settled.collect())
            }
            Need::Release(release) => {
                let orders = self.leader.release(&self.state, &release, self.now);
                self.carry_out(orders);
                Outcome::Done
            }
        }
    }

    /// Has nodes report what they have done; false when there is nothing.
    fn report(&mut self) -> bool {
        let reports = self.nodes.reports(&self.state, self.now);
        let any = !reports.is_empty();
        for (node, updates) in reports {
            let reported = self.submit(Actor::Node(node), &Command::UpdateAllocs { node, updates });
            reported.expect("the report was made for this state");
        }
        any
    }

    fn next_deadline(&mut self) -> Option<Time> {
        let far = self.far();
        let controllers = self.leader.controllers_mut().filter(|one| !LEFT_OUT.contains(&one.name()));
        let deadlines = controllers.filter_map(|controller| controller.next_deadline());
        deadlines.chain(self.nodes.next_deadline()).min().filter(|due| *due < far)
    }

    /// Time passes, and controllers do what is due then.
    fn pass(&mut self, due: Time) {
        self.now = self.now.max(due);
        let orders = self.leader.expire(&self.state, self.now);
        self.carry_out(orders);
    }

    fn carry_out(&mut self, orders: impl IntoIterator<Item = Order>) {
        for Order { by, command } in orders.into_iter().filter(|order| !LEFT_OUT.contains(&order.by)) {
            // As in a cluster: what was decided meanwhile may leave nothing to do, and the rejection says no more than that.
            self.submit(Actor::Server(by.into()), &command).ok();
        }
    }
}

fn running(base: &State, key: &JobKey) -> BTreeMap<String, u32> {
    let groups = base.jobs.lookup(key).into_iter().flat_map(|job| &job.groups);
    groups.map(|(name, group)| (name.clone(), group.running)).collect()
}
