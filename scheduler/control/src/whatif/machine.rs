//! The leader, one worker and the nodes around a state, in turns and with a clock that jumps from deadline to deadline.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::{Rng, Time};
use model::command::Reply;
use model::{
    Actor, Command, CommandRecord, JobKey, NodeId, NodeStatus, Rejection, RequestId, SchedulerRules,
};
use rules::Context;
use state::alloc::AllocRow;
use state::deployment::DeploymentRow;
use state::eval::EvalRow;
use state::job::JobRow;
use state::{Delta, Moment, State};

use super::kept::KeptFork;
use super::nodes::IdealNodes;
use super::{ALLOCATIONS_MAX, DURATION_MAX, EVALUATIONS_MAX, STEPS_MAX, Until};
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
#[derive(Clone, Debug, Default)]
pub(super) struct Touched {
    pub allocs: BTreeSet<AllocRow>,
    pub deployments: BTreeSet<DeploymentRow>,
    pub evals: BTreeSet<EvalRow>,
    /// The fewest that were running of each group, so far.
    pub lowest: BTreeMap<JobRow, BTreeMap<String, u32>>,
}

/// A fork that runs: how far it has come, and the machines that take it further.
pub(super) struct Fork {
    pub at: KeptFork,
    leader: Leader,
    worker: Worker,
    nodes: IdealNodes,
    rng: Rng,
}

impl Fork {
    /// Takes the state over as a new leader does.
    pub fn open(at: KeptFork) -> Fork {
        // Of the index: the same state is continued in the same way.
        let index = at.state.index;
        let seeded = |purpose| Rng::stream(index.0, purpose);
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
        let (state, now) = (at.state.clone(), at.now);
        let (nodes, rng) = (IdealNodes::default(), seeded("commands of a fork"));
        let mut fork = Fork { at, leader, worker, nodes, rng };
        // It only asks to found a cluster that was not founded yet.
        let _founds = fork.leader.lead(&state, now);
        let alive = |row: &_| !state.nodes.hot(*row).status.is_silent();
        state.nodes.rows().filter(alive).for_each(|row| fork.trust(state.nodes.cold(row).id));
        fork.nodes.begin(&state, now);
        fork
    }

    pub fn state(&self) -> &State {
        &self.at.state
    }

    /// The node goes on with its heartbeats: none is waited for until long after the end.
    pub fn trust(&mut self, node: NodeId) {
        self.leader.heartbeat(node, self.far());
    }

    /// What is due then or later is not waited for.
    fn far(&self) -> Time {
        self.at.begin.plus(DURATION_MAX).plus(DURATION_MAX)
    }

    /// The node's last heartbeat comes now.
    pub fn expect_heartbeat(&mut self, node: NodeId) {
        let row = self.at.state.nodes.find(node);
        if row.is_some_and(|row| self.at.state.nodes.hot(row).status != NodeStatus::Down) {
            self.leader.heartbeat(node, self.at.now);
        }
    }

    /// Closes or opens the registration of jobs, and returns whether it was closed.
    pub fn close_registration(&mut self, close: bool) -> bool {
        let Some(scheduler) = &mut Arc::make_mut(&mut self.at.state).operator.scheduler else { return false };
        std::mem::replace(&mut scheduler.rules.reject_job_registration, close)
    }

    /// Runs the fork. Workers come first, then nodes, then controllers; then time passes.
    pub fn run(&mut self, until: Until, go_on: &dyn Fn() -> bool) -> Ended {
        let last = self.at.begin.plus(DURATION_MAX);
        let end = match until {
            Until::Quiet => last,
            Until::Passed(span) => self.at.now.plus(span).min(last),
        };
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
            self.at.steps += 1;
            match self.next_deadline() {
                None => {
                    if let Until::Passed(_) = until {
                        self.at.now = end;
                    }
                    let waits = self.leader.broker_stats().ready > 0;
                    return if waits { Ended::Paused } else { Ended::Quiet };
                }
                Some(due) if due > end => {
                    self.at.now = end;
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
        self.at.steps += 1;
        let at = Moment {
            index: self.at.state.index.next(),
            time: self.at.now.max(self.at.state.time),
            epoch: self.at.state.epoch(),
        };
        let ctx = Context::new(at.index, at.time, self.rng.next());
        let mut ctx = ctx.with_job_count_max(self.at.job_count_max);
        let decision = rules::decide(&self.at.state, &mut ctx, &actor, command)?;
        let (wrote, reply): (bool, Reply) = (!decision.events.is_empty(), decision.reply());
        if wrote {
            let record = CommandRecord { request: RequestId::default(), kind: command.kind(), actor };
            let mut delta = Delta::default();
            // Nobody else holds this copy: what it shares with the state that it began with is copied page by page.
            let state = Arc::make_mut(&mut self.at.state);
            state.absorb(at, &record, decision.events.iter(), &mut delta);
            state.seal(at, &delta);
            self.observe(&delta);
        }
        Ok(Receipt { index: self.at.state.index, time: at.time, wrote, reply })
    }

    fn observe(&mut self, delta: &Delta) {
        let Fork { at, leader, nodes, .. } = self;
        let KeptFork { state, touched, base, now, .. } = at;
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
            () if self.at.steps >= STEPS_MAX => Some(Ended::Steps),
            () if self.at.evaluations >= EVALUATIONS_MAX => Some(Ended::Evaluations),
            () if self.at.touched.allocs.len() >= ALLOCATIONS_MAX => Some(Ended::Allocations),
            () => None,
        }
    }

    /// Has the worker schedule the most urgent evaluation; false when there is none.
    fn work(&mut self) -> bool {
        // One after the other: what others do between two evaluations is part of what happens.
        let deliveries = self.leader.dequeue(&self.at.state, &TYPES, 1, self.at.now);
        if deliveries.is_empty() {
            return false;
        }
        self.at.evaluations += 1;
        let mut need = self.worker.step(Outcome::Dequeued(deliveries), self.at.now);
        while !matches!(need, Need::Dequeue) {
            let outcome = self.meet(need);
            need = self.worker.step(outcome, self.at.now);
        }
        true
    }

    fn meet(&mut self, need: Need) -> Outcome {
        match need {
            Need::Dequeue => Outcome::Dequeued(Vec::new()),
            // It is the only state there is.
            Need::State { .. } => Outcome::State(self.at.state.clone()),
            Need::Schedule(_) => Outcome::Go,
            Need::Touch(deliveries) => Outcome::Held(self.leader.touch_all(&deliveries, self.at.now)),
            Need::Submit(settlements) => {
                let settled = settlements.into_iter().map(|settlement| {
                    let actor = Actor::Server("worker".into());
                    let settled = self.submit(actor, &Command::SettleEval(Box::new(settlement)));
                    settled.map_err(SubmitError::Rejected)
                });
                Outcome::Submitted(settled.collect())
            }
            Need::Release(release) => {
                let orders = self.leader.release(&self.at.state, &release, self.at.now);
                self.carry_out(orders);
                Outcome::Done
            }
        }
    }

    /// Has nodes report what they have done; false when there is nothing.
    fn report(&mut self) -> bool {
        let reports = self.nodes.reports(&self.at.state, self.at.now);
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
        self.at.now = self.at.now.max(due);
        let orders = self.leader.expire(&self.at.state, self.at.now);
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
