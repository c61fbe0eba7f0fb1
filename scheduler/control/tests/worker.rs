//! What a worker needs, step by step.

use std::sync::Arc;

use base::{Duration, Index, Rng, Time};
use control::broker::Delivery;
use control::worker::{Need, Outcome, SYNC_LIMIT, Worker};
use control::{Receipt, SubmitError};
use model::command::{RegisterJob, Reply, Settlement, Verdict};
use model::document::{Job, Task, TaskGroup};
use model::{Command, EvalId, Rejection};

use test_world::World;

/// A world with one pending evaluation, delivered to a worker.
fn delivered() -> (World, Worker, Delivery) {
    let mut world = World::new();
    world.register_node(1, "r1").unwrap();
    let task = Task { name: "t".into(), driver: "none".into(), ..Task::default() };
    let group = TaskGroup {
        name: Some("g".into()),
        count: Some(1),
        tasks: vec![task].into(),
        ..TaskGroup::default()
    };
    let job = Job {
        namespace: Some("default".into()),
        id: Some("web".into()),
        kind: Some("service".into()),
        task_groups: vec![group].into(),
        ..Job::default()
    };
    let command = Command::RegisterJob(Box::new(RegisterJob::new(job)));
    let eval = world.submit(command).unwrap().reply().evals[0];
    let delivery = Delivery { eval, token: 7, wait_index: world.state.index };
    let mut worker = Worker::new(Rng::new(1));
    assert!(matches!(worker.begin(), Need::Dequeue));
    (world, worker, delivery)
}

fn step(worker: &mut Worker, outcome: Outcome) -> Need {
    worker.step(outcome, Time::from_secs(2_000_000))
}

/// As far as the plan.
fn submitted(world: &World, worker: &mut Worker, delivery: &Delivery) -> Box<Settlement> {
    let need = step(worker, Outcome::Dequeued(Some(delivery.clone())));
    assert!(matches!(need, Need::State { index, limit: SYNC_LIMIT } if index == delivery.wait_index));
    let need = step(worker, Outcome::State(Arc::new(world.state.clone())));
    assert!(matches!(&need, Need::Touch(touched) if touched == delivery), "{need:?}");
    match step(worker, Outcome::Held(true)) {
        Need::Submit(settlement) => settlement,
        other => panic!("{other:?}"),
    }
}

fn receipt(index: Index, full: bool) -> Receipt {
    let verdict = Some(Verdict { full, ..Verdict::default() });
    Receipt { index, time: Time::ZERO, wrote: true, reply: Reply { verdict, ..Reply::default() } }
}

#[test]
fn a_plan_that_is_accepted_in_full_ends_in_an_ack() {
    let (mut world, mut worker, delivery) = delivered();
    let settlement = submitted(&world, &mut worker, &delivery);
    assert_eq!(settlement.eval, delivery.eval);
    let reply = world.submit(Command::SettleEval(settlement)).unwrap().reply();
    assert!(reply.verdict.as_ref().unwrap().full);
    let receipt = Receipt { index: world.state.index, time: Time::ZERO, wrote: true, reply };
    let need = step(&mut worker, Outcome::Submitted(Ok(receipt)));
    assert!(matches!(&need, Need::Ack(acked) if *acked == delivery), "{need:?}");
    assert!(matches!(step(&mut worker, Outcome::Done), Need::Dequeue));
    world.check_replay();
}

#[test]
fn a_plan_that_is_accepted_in_part_is_made_again_on_the_state_it_led_to() {
    let (world, mut worker, delivery) = delivered();
    submitted(&world, &mut worker, &delivery);
    let later = world.state.index.next();
    let need = step(&mut worker, Outcome::Submitted(Ok(receipt(later, false))));
    assert!(matches!(need, Need::State { index, limit: SYNC_LIMIT } if index == later));
    // Nobody knows what became of the plan's rest: whoever gets the evaluation next finds out.
    assert!(matches!(step(&mut worker, Outcome::TimedOut), Need::Nack(given) if given == delivery));
    assert!(matches!(step(&mut worker, Outcome::Done), Need::Dequeue));
}

#[test]
fn a_server_that_is_behind_takes_no_more_work_until_it_has_caught_up() {
    let (world, mut worker, delivery) = delivered();
    step(&mut worker, Outcome::Dequeued(Some(delivery.clone())));
    assert!(matches!(step(&mut worker, Outcome::TimedOut), Need::Nack(given) if given == delivery));
    let need = step(&mut worker, Outcome::Done);
    let longer = Duration(SYNC_LIMIT.0 * 10);
    assert!(matches!(need, Need::State { index, limit } if (index, limit) == (delivery.wait_index, longer)));
    assert!(matches!(step(&mut worker, Outcome::State(Arc::new(world.state))), Need::Dequeue));
}

#[test]
fn a_worker_that_lost_its_evaluation_submits_nothing() {
    let (world, mut worker, delivery) = delivered();
    step(&mut worker, Outcome::Dequeued(Some(delivery.clone())));
    step(&mut worker, Outcome::State(Arc::new(world.state)));
    assert!(matches!(step(&mut worker, Outcome::Held(false)), Need::Ack(acked) if acked == delivery));
}

#[test]
fn an_evaluation_that_is_over_is_not_scheduled() {
    let (world, mut worker, delivery) = delivered();
    let unknown = Delivery { eval: EvalId(9.into()), ..delivery };
    step(&mut worker, Outcome::Dequeued(Some(unknown)));
    assert!(matches!(step(&mut worker, Outcome::State(Arc::new(world.state))), Need::Ack(_)));
}

#[test]
fn a_rejected_plan_is_given_back_unless_the_evaluation_ended_meanwhile() {
    let (world, mut worker, delivery) = delivered();
    submitted(&world, &mut worker, &delivery);
    let ended = SubmitError::Rejected(Rejection::EvalNotOutstanding(delivery.eval));
    assert!(matches!(step(&mut worker, Outcome::Submitted(Err(ended))), Need::Ack(_)));
    step(&mut worker, Outcome::Done);
    submitted(&world, &mut worker, &delivery);
    assert!(matches!(step(&mut worker, Outcome::Submitted(Err(SubmitError::Unknown))), Need::Nack(_)));
}

/// A36.
#[test]
fn an_evaluation_that_panics_fails_with_the_reason_and_without_a_follow_up() {
    let (mut world, worker, delivery) = delivered();
    let mut worker = worker.with_scheduler(|_, _, _, _, _| panic!("a job that nobody thought of"));
    fails(
        &mut world,
        &mut worker,
        &delivery,
        "quarantined: the scheduler panicked: a job that nobody thought of",
    );
    // The next evaluation finds a worker that works.
    let mut worker = worker.with_scheduler(placement::schedule_with);
    let key = model::JobKey::new("default", "web");
    let again = world.submit(Command::EvaluateJob { key, force_reschedule: false }).unwrap().reply().evals[0];
    let delivery = Delivery { eval: again, token: 8, wait_index: world.state.index };
    let settlement = submitted(&world, &mut worker, &delivery);
    assert_eq!(settlement.end.unwrap().status, model::EvalStatus::Complete);
}

#[test]
fn an_evaluation_that_ended_the_server_twice_is_not_looked_at() {
    let (mut world, worker, delivery) = delivered();
    let worker = worker.with_scheduler(|_, _, _, _, _| unreachable!("it would end the server again"));
    let mut worker = worker.avoiding([delivery.eval].into());
    let why = "quarantined: this server ended twice while its scheduler was at it";
    fails(&mut world, &mut worker, &delivery, why);
}

/// It is over, nothing follows, and its job's place in the queue is free.
fn fails(world: &mut World, worker: &mut Worker, delivery: &Delivery, why: &str) {
    let settlement = submitted(world, worker, delivery);
    let decision = world.submit(Command::SettleEval(settlement)).unwrap();
    assert!(decision.reply().verdict.unwrap().full && decision.reply().evals.is_empty());
    let eval = world.state.evals.lookup(delivery.eval).unwrap();
    assert_eq!((eval.status, &*eval.description), (model::EvalStatus::Failed, why));
    assert!(placement::is_quarantined(eval) && eval.outcome.snapshot > Index::ZERO);
    let need = step(worker, Outcome::Submitted(Ok(receipt(world.state.index, true))));
    assert!(matches!(need, Need::Ack(_)));
    step(worker, Outcome::Done);
    world.check_replay();
}
