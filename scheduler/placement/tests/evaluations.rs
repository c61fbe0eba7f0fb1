//! How evaluations begin and end (cases A).

use crate::support::*;
use model::command::EvalEnd;
use model::document::NodeResources;
use model::event::{EvalCreated, NewEval};
use model::{Command, Eligibility, EvalId, EvalStatus, JobType, Trigger};
use placement::{Attempts, give_up, max_attempts};

fn end(outcome: &placement::Outcome) -> &EvalEnd {
    outcome.settlement.end.as_ref().unwrap()
}

/// An evaluation of the job with another trigger.
fn triggered(world: &mut World, trigger: Trigger) -> EvalId {
    let job = world.state.jobs.lookup(&key()).unwrap();
    let id = EvalId(base::Uuid::from(0xe0a1 + trigger as u128));
    let eval = NewEval {
        id,
        key: key(),
        kind: job.current().kind,
        priority: 50,
        trigger,
        status: EvalStatus::Pending,
        description: String::new(),
        node: None,
        job_modify: job.job_modified,
        node_modify: base::Index::ZERO,
        previous: None,
        wait_until: base::Time::ZERO,
        outcome: Default::default(),
    };
    world.event(EvalCreated { eval });
    id
}

/// A01-A04.
#[test]
fn a_scheduler_refuses_triggers_it_does_not_know() {
    for (kind, trigger, refused) in [
        ("service", Trigger::Scheduled, true),
        ("service", Trigger::PeriodicJob, false),
        ("system", Trigger::AllocFailure, true),
        ("sysbatch", Trigger::MaxDisconnectTimeout, true),
        ("sysbatch", Trigger::PeriodicJob, false),
        ("system", Trigger::PeriodicJob, true),
        ("system", Trigger::RollingUpdate, false),
        ("batch", Trigger::RescheduleLater, false),
    ] {
        let mut world = World::with_nodes(1);
        world.register(job(kind, 1));
        let eval = triggered(&mut world, trigger);
        let outcome = world.settle(eval);
        assert_eq!(end(&outcome).status == EvalStatus::Failed, refused, "{kind} {trigger}");
        if refused {
            let expected = format!("scheduler cannot handle '{trigger}' evaluation reason");
            assert_eq!(end(&outcome).description, expected);
            assert!(outcome.settlement.plan.is_empty());
        }
    }
}

/// A05-A08.
#[test]
fn an_evaluation_is_given_up_after_its_attempts() {
    for (kind, attempts, retried) in
        [("service", 5, true), ("batch", 2, true), ("system", 5, false), ("sysbatch", 2, false)]
    {
        assert_eq!(max_attempts(JobType::from_word(kind).unwrap()), attempts);
        let mut world = World::with_nodes(1);
        let eval = world.register(job(kind, 1));
        let last = world.plan(eval);
        let settlement = give_up(&world.state, world.eval(eval), 7, &last);
        let end = settlement.end.unwrap();
        assert_eq!(end.status, EvalStatus::Failed);
        assert_eq!(end.description, format!("maximum attempts reached ({attempts})"));
        assert_eq!(end.outcome.blocked, end.blocked.as_ref().map(|blocked| blocked.id));
        assert_eq!(end.blocked.is_some(), retried, "{kind}");
        if let Some(blocked) = end.blocked {
            assert_eq!(blocked.trigger, Trigger::MaxPlanAttempts);
            assert_eq!((blocked.status, blocked.previous), (EvalStatus::Blocked, Some(eval)));
            assert_eq!(blocked.description, "created due to placement conflicts");
        }
    }
}

/// A09.
#[test]
fn attempts_that_come_to_something_are_not_counted() {
    let mut world = World::with_nodes(10);
    let eval = world.register(job("service", 10));
    let mut attempts = Attempts::default();
    let try_with = |world: &mut World, taking: &[u128]| {
        let outcome = world.plan(eval);
        let closed: Vec<u128> = nodes(&outcome).into_iter().filter(|node| !taking.contains(node)).collect();
        closed.iter().for_each(|node| world.eligible(*node, Eligibility::Ineligible));
        let verdict = world.submit(Command::SettleEval(Box::new(outcome.settlement))).verdict.unwrap();
        closed.iter().for_each(|node| world.eligible(*node, Eligibility::Eligible));
        assert_eq!((verdict.full, verdict.placed), (false, taking.len() as u32));
        verdict
    };
    for node in 1..=7 {
        attempts.count(&try_with(&mut world, &[node]));
        assert!(!attempts.are_spent(JobType::Service), "after {node}");
    }
    for vain in 1..=5 {
        attempts.count(&try_with(&mut world, &[]));
        assert_eq!(attempts.are_spent(JobType::Service), vain == 5);
    }
}

/// A10.
#[test]
fn what_does_not_fit_is_queued_and_blocked() {
    let mut world = World::with_nodes(1);
    let eval = world.register(job("service", 3).with(|job| {
        job.constraints.clear();
        task(job).resources.get_or_insert_default().cpu = Some(3600);
    }));
    let outcome = world.settle(eval);
    assert_eq!((placed(&outcome), end(&outcome).status), (vec![0], EvalStatus::Complete));
    assert_eq!(queued(&outcome), [("web".to_string(), 2)]);
    let metric = failed(&outcome);
    assert_eq!((metric.coalesced_failures, metric.nodes_exhausted), (1, 1));
    assert_eq!(metric.dimension_exhausted["cpu"], 1);
    assert_eq!(metric.resources_exhausted["main"].cpu, Some(7200));
}

/// A12, A13.
#[test]
fn without_nodes_everything_waits() {
    let mut world = World::new();
    let eval = world.register(job("service", 10));
    let outcome = world.settle(eval);
    assert!(outcome.settlement.plan.is_empty());
    assert_eq!(failed(&outcome).coalesced_failures, 9);
    assert_eq!(queued(&outcome), [("web".to_string(), 10)]);
    let blocked = end(&outcome).blocked.as_ref().unwrap();
    assert_eq!(blocked.description, "created to place remaining allocations");
    assert_eq!((blocked.trigger, blocked.previous), (Trigger::QueuedAllocs, Some(eval)));
    let ended = world.eval(eval);
    assert_eq!((ended.status, ended.description.as_str()), (EvalStatus::Complete, ""));
    assert_eq!(ended.outcome.blocked, Some(blocked.id));
}

/// A14, A17.
#[test]
fn a_blocked_evaluation_knows_the_classes_it_saw() {
    let mut world = World::new();
    world.node(1, |_| {});
    world.node(2, |node| _ = node.attributes.insert("kernel.name".into(), "windows".into()));
    let eval = world.register(job("service", 2).with(|job| {
        job.constraints.push(constraint("${attr.kernel.name}", "=", "linux"));
    }));
    let outcome = world.settle(eval);
    let blocked = end(&outcome).blocked.as_ref().unwrap();
    assert!(!blocked.outcome.escaped);
    let mut eligible: Vec<bool> = blocked.outcome.classes.iter().map(|(_, eligible)| *eligible).collect();
    eligible.sort_unstable();
    assert_eq!(eligible, [false, true]);
}

/// A15.
#[test]
fn a_constraint_beyond_the_class_escapes() {
    let mut world = World::with_nodes(2);
    let eval = world.register(job("service", 1).with(|job| {
        job.constraints.push(constraint("${node.unique.name}", "=", "n9"));
    }));
    let outcome = world.settle(eval);
    let blocked = end(&outcome).blocked.as_ref().unwrap();
    assert!(blocked.outcome.escaped && blocked.outcome.classes.is_empty());
    assert_eq!(failed(&outcome).constraint_filtered["${node.unique.name} = n9"], 2);
}

/// A18-A20: blocked, released when room of its class appears, blocked again, done.
#[test]
fn a_blocked_evaluation_waits_for_room_it_may_use() {
    let mut world = World::with_nodes(1);
    let eval = world.register(job("service", 3));
    let first = world.settle(eval);
    let blocked = end(&first).blocked.as_ref().unwrap().id;
    assert_eq!(world.unblocked(), []);

    world.node(2, |node| node.datacenter = "dc9".into());
    assert_eq!(world.unblocked(), [blocked], "a class it never saw may do");
    let again = world.settle(blocked);
    assert!(again.settlement.plan.is_empty());
    assert_eq!((world.eval(blocked).status, end(&again).blocked.is_none()), (EvalStatus::Blocked, true));
    assert_eq!(world.unblocked(), []);

    world.node(3, |_| {});
    assert_eq!(world.unblocked(), [blocked]);
    let again = world.settle(blocked);
    assert_eq!((placed(&again), world.eval(blocked).status), (vec![1], EvalStatus::Blocked));
    world.node(4, |_| {});
    let last = world.settle(blocked);
    assert_eq!((placed(&last), world.eval(blocked).status), (vec![2], EvalStatus::Complete));
    assert_eq!(queued(&last), [("web".to_string(), 0)]);
}

/// A21.
#[test]
fn success_cancels_the_blocked_evaluation_of_the_job() {
    let mut world = World::with_nodes(1);
    let eval = world.register(job("service", 2));
    let blocked = end(&world.settle(eval)).blocked.as_ref().unwrap().id;
    let eval = world.register(job("service", 1));
    world.settle(eval);
    assert_eq!(world.eval(blocked).status, EvalStatus::Canceled);
    assert_eq!(world.eval(blocked).description, format!("evaluation \"{eval}\" successful"));
}

/// A28.
#[test]
fn of_two_evaluations_that_wait_for_room_the_newer_stays() {
    let mut world = World::with_nodes(1);
    let eval = world.register(job("service", 2));
    let older = end(&world.settle(eval)).blocked.as_ref().unwrap().id;
    let newer = end(&world.evaluate()).blocked.as_ref().unwrap().id;
    assert_eq!(world.eval(older).status, EvalStatus::Canceled);
    assert_eq!(world.eval(older).description, "existing blocked evaluation exists for job \"job\"");
    assert_eq!(world.eval(newer).status, EvalStatus::Blocked);
    let job = world.state.jobs.find(&key()).unwrap();
    assert_eq!(world.state.evals.blocked_of(job), world.state.evals.find(newer));
}

/// A29.
#[test]
fn room_on_nodes_that_were_ruled_out_wakes_nobody() {
    let mut world = World::new();
    let windows = |node: &mut model::document::Node| {
        node.attributes.insert("kernel.name".into(), "windows".into());
    };
    world.node(1, windows);
    let linux = |job: &mut model::document::Job| {
        job.constraints.push(constraint("${attr.kernel.name}", "=", "linux"));
    };
    let eval = world.register(job("service", 1).with(linux));
    let blocked = end(&world.settle(eval)).blocked.as_ref().unwrap().id;
    world.node(2, windows);
    assert_eq!(world.unblocked(), []);
    world.node(9, |_| {});
    assert_eq!(world.unblocked(), [blocked]);
}

/// A30.
#[test]
fn room_that_came_while_the_scheduler_was_looking_elsewhere_wakes_at_once() {
    let mut world = World::with_nodes(1);
    let eval = world.register(job("service", 2));
    let looked = world.plan(eval);
    world.node(2, |node| node.node_class = "c9".into());
    let blocked = end(&looked).blocked.as_ref().unwrap().id;
    let verdict = world.submit(Command::SettleEval(Box::new(looked.settlement))).verdict;
    assert!(verdict.unwrap().full);
    assert_eq!(world.unblocked(), [blocked]);
    assert_eq!(placed(&world.settle(blocked)), [1]);
}

/// A23, A24.
#[test]
fn a_stopped_job_ends_and_an_unchanged_one_stays() {
    let mut world = World::running(job("service", 3), 3);
    let outcome = world.evaluate();
    assert!(outcome.settlement.plan.is_empty());
    assert_eq!((counters(&outcome), end(&outcome).status), ("ignore 3".to_string(), EvalStatus::Complete));
    let eval = world.deregister(false);
    let outcome = world.settle(eval);
    assert_eq!(counters(&outcome), "stop 3");
    assert_eq!(queued(&outcome), [("web".to_string(), 0)]);
    assert_eq!(stopped(&world, &outcome)[0].1, "alloc not needed due to job update");
    let again = world.evaluate();
    assert!(again.settlement.plan.is_empty());
}

/// A27: unlike in Nomad, follow-ups are stored whatever the evaluation was.
#[test]
fn follow_ups_are_linked_both_ways() {
    let mut world = World::running(job("service", 1), 1);
    world.report(world.named(0), model::ClientStatus::Failed);
    let eval = world.pending()[0];
    let outcome = world.settle(eval);
    let follow_up = &outcome.settlement.plan.follow_ups[0];
    assert_eq!(follow_up.previous, Some(eval));
    assert_eq!(world.eval(eval).outcome.next, Some(follow_up.id));
}

#[test]
fn a_job_that_no_node_could_ever_take_says_why() {
    let mut world = World::with_nodes(3);
    let eval = world.register(job("service", 1).with(|job| {
        task(job).resources.get_or_insert_default().cores = Some(2);
    }));
    let metric = failed(&world.settle(eval));
    assert_eq!((metric.nodes_exhausted, metric.dimension_exhausted["cores"]), (3, 3));
}

#[test]
fn an_unchanged_plan_does_not_depend_on_the_order_of_registration() {
    let plan = |order: [u128; 4]| {
        let mut world = World::new();
        for n in order {
            world.node(n, |node| {
                let resources: &mut NodeResources = node.node_resources.as_mut().unwrap();
                resources.cpu.cpu_shares += i64::try_from(n % 2).unwrap();
            });
        }
        let eval = world.register(job("service", 3));
        let plan = placement::schedule(&world.state, world.eval(eval), 1, world.now).settlement.plan;
        (plan.placed[0].nodes.clone(), plan.placed[0].ids.clone())
    };
    assert_eq!(plan([1, 2, 3, 4]), plan([4, 2, 1, 3]));
}
