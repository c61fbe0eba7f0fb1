//! The broker over states that real commands led to.

use base::{Duration, Index, Rng, Time};
use control::broker::{Broker, BrokerSettings, Delivery, NotHeld};
use control::leader::controller::Controller;
use model::command::{EvalEnd, Plan, RegisterJob, Settlement};
use model::document::{Job, TaskGroup};
use model::event::{EvalOutcome, NewEval};
use model::{
    Actor, Batch, Command, CommandRecord, EvalId, EvalStatus, JobKey, JobType, LoggedEvent, NodeStatus,
    RequestId, SchedulerRules, Trigger,
};
use rules::Context;
use state::State;

const TYPES: [JobType; 4] = [JobType::Service, JobType::Batch, JobType::System, JobType::Sysbatch];

struct Bench {
    state: State,
    broker: Broker,
    now: Time,
    chance: Rng,
}

impl Bench {
    fn new() -> Bench {
        let mut broker = Broker::new(BrokerSettings::default());
        let state = State::default();
        broker.lead(&state, Time::ZERO);
        Bench { state, broker, now: Time::from_secs(1_000), chance: Rng::new(1) }
    }

    fn submit(&mut self, command: Command) {
        let index = self.state.index.next();
        let mut ctx = Context::new(index, self.now, index.0);
        let decision = rules::decide(&self.state, &mut ctx, &Actor::ANONYMOUS, &command).unwrap();
        let batch = Batch {
            commands: vec![CommandRecord {
                request: RequestId::default(),
                kind: command.kind(),
                actor: Actor::ANONYMOUS,
            }],
            events: decision.events.into_iter().map(|event| LoggedEvent { command: 0, event }).collect(),
            ..self.state.next_batch(self.now, base::Uuid::NIL)
        };
        let delta = self.state.apply(&batch).unwrap();
        self.broker.observe(&self.state, &delta, self.now);
    }

    fn job(&mut self, name: &str, priority: i64) {
        let group = TaskGroup { name: Some("g".to_string()), count: Some(1), ..TaskGroup::default() };
        let job = Job {
            namespace: Some("default".to_string()),
            id: Some(name.to_string()),
            kind: Some("service".to_string()),
            priority: Some(priority),
            task_groups: vec![group].into(),
            ..Job::default()
        };
        self.submit(Command::RegisterJob(Box::new(RegisterJob::new(job))));
    }

    fn evaluate(&mut self, name: &str) {
        self.submit(Command::EvaluateJob { key: JobKey::new("default", name), force_reschedule: false });
    }

    fn dequeue(&mut self) -> Option<Delivery> {
        self.dequeue_all(1).pop()
    }

    fn dequeue_all(&mut self, max: usize) -> Vec<Delivery> {
        self.broker.dequeue(&self.state, &TYPES, max, self.now, &mut self.chance)
    }

    fn job_of(&self, eval: EvalId) -> String {
        self.state.evals.lookup(eval).unwrap().facts.key.id.clone()
    }

    fn settle(&mut self, delivery: &Delivery) {
        let outcome = EvalOutcome { snapshot: self.state.index, ..EvalOutcome::default() };
        let end = EvalEnd::complete(outcome);
        let plan = Plan { snapshot: self.state.index, ..Plan::default() };
        self.submit(Command::SettleEval(Box::new(Settlement { eval: delivery.eval, plan, end: Some(end) })));
    }

    fn after(&mut self, secs: i64) -> Vec<Command> {
        self.now = self.now.plus(Duration::from_secs(secs));
        self.broker.expire(&self.state, self.now, &mut self.chance)
    }
}

fn pause(pause_eval_broker: bool) -> Command {
    let rules = SchedulerRules { pause_eval_broker, ..SchedulerRules::default() };
    Command::SetScheduler { rules, only_at: None }
}

/// It was to be tried again after a minute, and was given out sooner because room appeared.
#[test]
fn what_a_worker_has_is_given_to_no_other_when_its_time_comes() {
    let mut bench = Bench::new();
    bench.job("web", 50);
    let first = bench.dequeue().unwrap();
    let snapshot = bench.state.index;
    let facts = &bench.state.evals.lookup(first.eval).unwrap().facts;
    let waits = NewEval {
        id: EvalId(7.into()),
        key: facts.key.clone(),
        kind: facts.kind,
        priority: facts.priority,
        trigger: Trigger::MaxPlanAttempts,
        status: EvalStatus::Blocked,
        description: String::new(),
        node: None,
        job_modify: Index::ZERO,
        node_modify: Index::ZERO,
        previous: Some(first.eval),
        wait_until: Time::ZERO,
        outcome: EvalOutcome { snapshot, escaped: true, ..EvalOutcome::default() },
    };
    let end = EvalEnd { blocked: Some(waits), ..EvalEnd::complete(EvalOutcome::default()) };
    let plan = Plan { snapshot, ..Plan::default() };
    bench.submit(Command::SettleEval(Box::new(Settlement { eval: first.eval, plan, end: Some(end) })));
    assert_eq!(bench.dequeue(), None, "it waits");
    bench.submit(Command::RegisterNode { document: Box::new(test_world::node_document(1, "r1")) });
    let node = test_world::node_id(1);
    bench.submit(Command::UpdateNodeStatus { node, claimed: NodeStatus::Ready });
    let second = bench.dequeue().expect("there is room");
    bench.after(30);
    bench.broker.touch(second.eval, second.token, bench.now).unwrap();
    bench.after(31);
    assert_eq!(bench.dequeue(), None, "the worker is still at it");
    bench.broker.touch(second.eval, second.token, bench.now).unwrap();
}

#[test]
fn a_worker_gets_at_most_half_of_what_is_ready() {
    let mut bench = Bench::new();
    for number in 0..5 {
        bench.job(&format!("job-{number}"), 50);
    }
    let mut took = || bench.dequeue_all(64).len();
    assert_eq!([took(), took(), took(), took()], [3, 1, 1, 0]);
    bench.job("late", 50);
    bench.job("later", 50);
    bench.job("last", 50);
    assert_eq!(bench.dequeue_all(1).len(), 1);
}

#[test]
fn the_most_urgent_goes_first_and_among_equals_the_oldest() {
    let mut bench = Bench::new();
    bench.job("low", 10);
    bench.job("first", 50);
    bench.job("second", 50);
    bench.job("high", 90);
    let order: Vec<String> = std::iter::from_fn(|| bench.dequeue().map(|d| bench.job_of(d.eval))).collect();
    assert_eq!(order, ["high", "first", "second", "low"]);
}

#[test]
fn one_evaluation_of_a_job_is_worked_on_at_a_time() {
    let mut bench = Bench::new();
    bench.job("web", 50);
    bench.evaluate("web");
    let first = bench.dequeue().unwrap();
    assert_eq!(bench.dequeue(), None);
    bench.settle(&first);
    let second = bench.dequeue().unwrap();
    assert_ne!(first.eval, second.eval);
    assert!(
        second.wait_index >= bench.state.index,
        "the second worker must have seen what the first one did"
    );
}

#[test]
fn what_was_superseded_is_never_handed_out() {
    let mut bench = Bench::new();
    bench.job("web", 50);
    (0..3).for_each(|_| bench.evaluate("web"));
    let first = bench.dequeue().unwrap();
    bench.settle(&first);
    let second = bench.dequeue().unwrap();
    bench.settle(&second);
    assert_eq!(bench.dequeue(), None);
    let canceled = bench.state.evals.iter().filter(|(_, eval)| eval.status == EvalStatus::Canceled).count();
    assert_eq!(canceled, 2);
}

#[test]
fn only_who_holds_an_evaluation_may_speak_for_it() {
    let mut bench = Bench::new();
    bench.job("web", 50);
    let held = bench.dequeue().unwrap();
    assert_eq!(bench.broker.touch(held.eval, held.token ^ 1, bench.now), Err(NotHeld::WrongToken));
    assert_eq!(bench.broker.touch(EvalId::default(), held.token, bench.now), Err(NotHeld::NotOutstanding));
    assert_eq!(bench.broker.touch(held.eval, held.token, bench.now), Ok(()));
}

#[test]
fn a_silent_worker_loses_its_evaluation_and_another_gets_it() {
    let mut bench = Bench::new();
    bench.job("web", 50);
    let lost = bench.dequeue().unwrap();
    assert!(bench.after(59).is_empty());
    assert_eq!(bench.dequeue(), None);
    bench.after(1);
    assert_eq!(bench.broker.touch(lost.eval, lost.token, bench.now), Err(NotHeld::NotOutstanding));
    bench.after(1);
    let again = bench.dequeue().unwrap();
    assert_eq!(again.eval, lost.eval);
    assert_ne!(again.token, lost.token);
}

/// Given back, it is as it was before.
#[test]
fn what_a_worker_gives_back_goes_to_another() {
    let mut bench = Bench::new();
    bench.job("web", 50);
    let held = bench.dequeue().unwrap();
    let before = bench.state.clone();
    let failed = bench.broker.nack(held.eval, held.token, bench.now, &mut bench.chance);
    assert!(matches!(failed, Ok(None)) && bench.state == before, "nothing is to be written");
    bench.after(1);
    let again = bench.dequeue().unwrap();
    assert_eq!(again.eval, held.eval);
    assert_ne!(again.token, held.token);
    assert_eq!(bench.state.evals.lookup(held.eval).unwrap().status, EvalStatus::Pending);
}

#[test]
fn delivered_in_vain_too_often_an_evaluation_fails_and_its_job_is_tried_again_later() {
    let mut bench = Bench::new();
    bench.job("web", 50);
    let mut failed = None;
    for wait in [1, 20, 0] {
        let delivery = bench.dequeue().unwrap();
        failed = bench.broker.nack(delivery.eval, delivery.token, bench.now, &mut bench.chance).unwrap();
        bench.after(wait);
    }
    let command = failed.expect("the third delivery was the last");
    bench.submit(command);
    let failed = bench.state.evals.iter().find(|(_, eval)| eval.status == EvalStatus::Failed);
    let first = failed.map(|(_, eval)| (eval.id(), eval.description.clone())).unwrap();
    assert_eq!(first.1, "evaluation reached delivery limit (3)");
    assert_eq!(bench.dequeue(), None, "the follow-up waits");
    bench.after(360);
    let follow_up = bench.dequeue().unwrap();
    assert_eq!(bench.state.evals.lookup(follow_up.eval).unwrap().facts.previous, Some(first.0));
}

#[test]
fn a_new_leader_hands_out_what_the_old_one_had_and_the_old_worker_has_no_say() {
    let mut bench = Bench::new();
    bench.job("web", 50);
    let old = bench.dequeue().unwrap();
    bench.broker.lead(&bench.state, bench.now);
    assert_eq!(bench.broker.touch(old.eval, old.token, bench.now), Err(NotHeld::NotOutstanding));
    assert_eq!(bench.dequeue().unwrap().eval, old.eval);
}

#[test]
fn who_does_not_lead_hands_out_nothing() {
    let mut bench = Bench::new();
    bench.broker.follow();
    bench.job("web", 50);
    assert_eq!(bench.dequeue(), None);
    assert_eq!(bench.broker.stats().ready, 0);
    assert_eq!(bench.state.index, Index(1));
}

#[test]
fn a_paused_broker_hands_out_nothing_and_forgets_nothing() {
    let mut bench = Bench::new();
    bench.job("web", 50);
    let begun = bench.dequeue().unwrap();
    bench.submit(pause(true));
    bench.job("late", 90);
    assert_eq!(bench.dequeue(), None);
    bench.settle(&begun);
    bench.submit(pause(false));
    let next = bench.dequeue().unwrap();
    assert_eq!(bench.job_of(next.eval), "late");
}

#[test]
fn workers_are_behind_once_something_has_waited_too_long_for_them() {
    let mut bench = Bench::new();
    let is_behind = |bench: &Bench| bench.broker.is_behind(&bench.state, bench.now);
    bench.job("first", 50);
    bench.job("low", 10);
    bench.after(5);
    assert!(!is_behind(&bench), "nobody has scheduled anything yet: nothing is known of them");
    let first = bench.dequeue().unwrap();
    assert!(is_behind(&bench) && bench.broker.longest_wait(bench.now) == Duration::from_secs(5));
    // What waits is of a low priority; what is more urgent does not make it younger.
    bench.job("urgent", 90);
    assert!(is_behind(&bench));
    bench.settle(&first);
    assert!(bench.dequeue().is_some());
    assert!(bench.dequeue().is_some());
    assert!(!is_behind(&bench) && bench.broker.longest_wait(bench.now) == Duration::ZERO);
}

#[test]
fn who_does_nothing_is_not_behind() {
    let mut bench = Bench::new();
    bench.job("first", 50);
    bench.job("second", 50);
    bench.dequeue().unwrap();
    bench.after(2);
    assert!(bench.broker.is_behind(&bench.state, bench.now));
    // The clock was set: nothing has waited longer by that.
    bench.now = bench.now.plus(Duration::from_secs(3_600));
    bench.broker.clock_moved(Duration::from_secs(3_600));
    assert_eq!(bench.broker.longest_wait(bench.now), Duration::from_secs(2));
    bench.submit(pause(true));
    assert!(!bench.broker.is_behind(&bench.state, bench.now));
    bench.submit(pause(false));
    assert!(bench.broker.is_behind(&bench.state, bench.now));
    bench.after(8);
    assert!(!bench.broker.is_behind(&bench.state, bench.now), "no worker took anything for ten seconds");
}
