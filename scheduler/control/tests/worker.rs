//! What a worker needs, step by step.

use std::sync::Arc;

use base::{Duration, Index, Rng, Time};
use control::broker::{Delivery, Release};
use control::worker::{Need, Outcome, SYNC_LIMIT, Worker};
use control::{Receipt, SubmitError};
use model::command::{RegisterJob, Reply, Settlement, Verdict};
use model::document::{Job, Resources, Task, TaskGroup};
use model::{Command, EvalId, NodeId, NodeStatus, Rejection};

use test_world::World;

/// A world with one pending evaluation, delivered to a worker.
fn delivered() -> (World, Worker, Delivery) {
    let (world, worker, mut deliveries) = delivered_all(&["web"]);
    (world, worker, deliveries.remove(0))
}

/// A world with two nodes, and an evaluation of each of these jobs. No node has room for two of their allocations.
fn delivered_all(jobs: &[&str]) -> (World, Worker, Vec<Delivery>) {
    let mut world = World::new();
    for number in [1, 2] {
        world.register_node(number, "r1").unwrap();
        let node = test_world::node_id(number);
        world.submit(Command::UpdateNodeStatus { node, claimed: NodeStatus::Ready }).unwrap();
    }
    let evals: Vec<EvalId> = jobs.iter().map(|id| world.submit(job(id)).unwrap().reply().evals[0]).collect();
    let wait_index = world.state.index;
    let deliveries = evals.into_iter().map(|eval| Delivery { eval, token: 7, wait_index }).collect();
    let mut worker = Worker::new(Rng::new(1));
    assert!(matches!(worker.begin(), Need::Dequeue));
    (world, worker, deliveries)
}

fn job(id: &str) -> Command {
    let resources = Resources { cpu: Some(600), memory_mb: Some(100), ..Resources::default() };
    let task =
        Task { name: "t".into(), driver: "none".into(), resources: Some(resources), ..Task::default() };
    let group = TaskGroup {
        name: Some("g".into()),
        count: Some(1),
        tasks: vec![task].into(),
        ..TaskGroup::default()
    };
    let job = Job {
        namespace: Some("default".into()),
        id: Some(id.into()),
        kind: Some("service".into()),
        task_groups: vec![group].into(),
        ..Job::default()
    };
    Command::RegisterJob(Box::new(RegisterJob::new(job)))
}

fn step(worker: &mut Worker, outcome: Outcome) -> Need {
    worker.step(outcome, Time::from_secs(2_000_000))
}

/// As far as the plan.
fn submitted(world: &World, worker: &mut Worker, delivery: &Delivery) -> Settlement {
    let need = step(worker, Outcome::Dequeued(vec![delivery.clone()]));
    assert!(matches!(need, Need::State { index, limit: SYNC_LIMIT } if index == delivery.wait_index));
    let need = step(worker, Outcome::State(Arc::new(world.state.clone())));
    assert!(matches!(need, Need::Schedule(eval) if eval == delivery.eval), "{need:?}");
    let need = step(worker, Outcome::Go);
    assert!(matches!(&need, Need::Touch(touched) if *touched == [delivery.clone()]), "{need:?}");
    match step(worker, Outcome::Held(vec![true])) {
        Need::Submit(mut settlements) if settlements.len() == 1 => settlements.remove(0),
        other => panic!("{other:?}"),
    }
}

/// Has the worker schedule as long as it wants to.
fn scheduled(worker: &mut Worker, world: &World, deliveries: &[Delivery]) -> Vec<Delivery> {
    step(worker, Outcome::Dequeued(deliveries.to_vec()));
    let mut need = step(worker, Outcome::State(Arc::new(world.state.clone())));
    while let Need::Schedule(_) = need {
        need = step(worker, Outcome::Go);
    }
    match need {
        Need::Touch(touched) => touched,
        other => panic!("{other:?}"),
    }
}

fn plans(need: Need) -> Vec<Settlement> {
    match need {
        Need::Submit(settlements) => settlements,
        other => panic!("{other:?}"),
    }
}

fn node_of(settlement: &Settlement) -> Option<NodeId> {
    settlement.plan.placed.first().map(|placed| placed.nodes[0])
}

/// What is done, and what is given back.
fn released(need: Need) -> (Vec<Delivery>, Vec<Delivery>) {
    match need {
        Need::Release(Release { done, back }) => (done, back),
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
    let reply = world.submit(Command::SettleEval(Box::new(settlement))).unwrap().reply();
    assert!(reply.verdict.as_ref().unwrap().full);
    let receipt = Receipt { index: world.state.index, time: Time::ZERO, wrote: true, reply };
    let need = step(&mut worker, Outcome::Submitted(vec![Ok(receipt)]));
    assert_eq!(released(need), (vec![delivery], vec![]));
    assert!(matches!(step(&mut worker, Outcome::Done), Need::Dequeue));
    world.check_replay();
}

#[test]
fn a_plan_that_is_accepted_in_part_is_made_again_on_the_state_it_led_to() {
    let (world, mut worker, delivery) = delivered();
    submitted(&world, &mut worker, &delivery);
    let later = world.state.index.next();
    let need = step(&mut worker, Outcome::Submitted(vec![Ok(receipt(later, false))]));
    assert!(matches!(need, Need::State { index, limit: SYNC_LIMIT } if index == later));
    // Nobody knows what became of the plan's rest: whoever gets the evaluation next finds out.
    assert_eq!(released(step(&mut worker, Outcome::TimedOut)), (vec![], vec![delivery.clone()]));
    assert!(matches!(step(&mut worker, Outcome::Done), Need::Dequeue));
}

#[test]
fn a_server_that_is_behind_takes_no_more_work_until_it_has_caught_up() {
    let (world, mut worker, delivery) = delivered();
    step(&mut worker, Outcome::Dequeued(vec![delivery.clone()]));
    assert_eq!(released(step(&mut worker, Outcome::TimedOut)), (vec![], vec![delivery.clone()]));
    let need = step(&mut worker, Outcome::Done);
    let longer = Duration(SYNC_LIMIT.0 * 10);
    assert!(matches!(need, Need::State { index, limit } if (index, limit) == (delivery.wait_index, longer)));
    assert!(matches!(step(&mut worker, Outcome::State(Arc::new(world.state))), Need::Dequeue));
}

#[test]
fn a_worker_that_lost_its_evaluation_submits_nothing() {
    let (world, mut worker, delivery) = delivered();
    step(&mut worker, Outcome::Dequeued(vec![delivery.clone()]));
    step(&mut worker, Outcome::State(Arc::new(world.state)));
    step(&mut worker, Outcome::Go);
    assert_eq!(released(step(&mut worker, Outcome::Held(vec![false]))), (vec![delivery], vec![]));
}

#[test]
fn an_evaluation_that_is_over_is_not_scheduled() {
    let (world, mut worker, delivery) = delivered();
    let unknown = Delivery { eval: EvalId(9.into()), ..delivery };
    step(&mut worker, Outcome::Dequeued(vec![unknown.clone()]));
    let need = step(&mut worker, Outcome::State(Arc::new(world.state)));
    assert_eq!(released(need), (vec![unknown], vec![]));
}

#[test]
fn a_rejected_plan_is_given_back_unless_the_evaluation_ended_meanwhile() {
    let (world, mut worker, delivery) = delivered();
    submitted(&world, &mut worker, &delivery);
    let ended = SubmitError::Rejected(Rejection::EvalNotOutstanding(delivery.eval));
    let need = step(&mut worker, Outcome::Submitted(vec![Err(ended)]));
    assert_eq!(released(need), (vec![delivery.clone()], vec![]));
    step(&mut worker, Outcome::Done);
    submitted(&world, &mut worker, &delivery);
    let need = step(&mut worker, Outcome::Submitted(vec![Err(SubmitError::Unknown)]));
    assert_eq!(released(need), (vec![], vec![delivery]));
}

#[test]
fn each_plan_of_a_group_rests_on_those_before_it_and_all_are_accepted() {
    let (mut world, mut worker, deliveries) = delivered_all(&["a", "b", "c"]);
    let snapshot = world.state.index;
    assert_eq!(scheduled(&mut worker, &world, &deliveries), deliveries);
    let settlements = plans(step(&mut worker, Outcome::Held(vec![true; 3])));
    let (first, second) = (node_of(&settlements[0]).unwrap(), node_of(&settlements[1]).unwrap());
    assert_ne!(first, second, "the second saw that the first had taken the node");
    assert_eq!(node_of(&settlements[2]), None, "the third saw that both are full");
    // Whoever makes a decision again finds by this what it rested on.
    let seed = settlements[0].plan.seed;
    let plans = settlements.iter().map(|one| (one.plan.snapshot, one.plan.seed, one.plan.now));
    let now = settlements[0].plan.now;
    assert!(plans.eq((0..3).map(|place| (snapshot, seed.wrapping_add(place), now))));
    let outcomes = settlements.into_iter().map(|settlement| {
        let reply = world.submit(Command::SettleEval(Box::new(settlement))).unwrap().reply();
        assert!(reply.verdict.as_ref().unwrap().full);
        Ok(Receipt { index: world.state.index, time: Time::ZERO, wrote: true, reply })
    });
    let need = worker.step(Outcome::Submitted(outcomes.collect()), Time::from_secs(2_000_000));
    assert_eq!(released(need), (deliveries, vec![]));
    world.check_replay();
}

#[test]
fn what_rests_on_a_plan_that_is_not_submitted_is_planned_again() {
    let (world, mut worker, deliveries) = delivered_all(&["a", "b", "c"]);
    scheduled(&mut worker, &world, &deliveries);
    // Another worker has the second one by now.
    let settlements = plans(step(&mut worker, Outcome::Held(vec![true, false, true])));
    assert_eq!(settlements.iter().map(|one| one.eval).collect::<Vec<_>>(), [deliveries[0].eval]);
    let later = world.state.index.next();
    let need = step(&mut worker, Outcome::Submitted(vec![Ok(receipt(later, true))]));
    assert_eq!(released(need), (deliveries[..2].to_vec(), vec![]));
    let need = step(&mut worker, Outcome::Done);
    assert!(matches!(need, Need::State { index, .. } if index == world.state.index), "{need:?}");
    let need = step(&mut worker, Outcome::State(Arc::new(world.state.clone())));
    assert!(matches!(need, Need::Schedule(eval) if eval == deliveries[2].eval));
}

#[test]
fn of_a_group_the_accepted_part_is_done_and_the_rest_tried_again() {
    let (world, mut worker, deliveries) = delivered_all(&["a", "b", "c"]);
    scheduled(&mut worker, &world, &deliveries);
    plans(step(&mut worker, Outcome::Held(vec![true; 3])));
    let later = world.state.index.next();
    let outcomes = vec![Ok(receipt(later, true)), Ok(receipt(later, false)), Err(SubmitError::Unknown)];
    let need = step(&mut worker, Outcome::Submitted(outcomes));
    assert_eq!(released(need), (vec![deliveries[0].clone()], vec![deliveries[2].clone()]));
    assert!(matches!(step(&mut worker, Outcome::Done), Need::State { index, .. } if index == later));
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
    let decision = world.submit(Command::SettleEval(Box::new(settlement))).unwrap();
    assert!(decision.reply().verdict.unwrap().full && decision.reply().evals.is_empty());
    let eval = world.state.evals.lookup(delivery.eval).unwrap();
    assert_eq!((eval.status, &*eval.description), (model::EvalStatus::Failed, why));
    assert!(placement::is_quarantined(eval) && eval.outcome.snapshot > Index::ZERO);
    let need = step(worker, Outcome::Submitted(vec![Ok(receipt(world.state.index, true))]));
    assert_eq!(released(need), (vec![delivery.clone()], vec![]));
    step(worker, Outcome::Done);
    world.check_replay();
}
