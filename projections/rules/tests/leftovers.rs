//! What is forgotten of jobs that live on, and what stays with them.

use base::{Duration, Time};
use model::command::{LeftoverAges, Leftovers, Plan, RegisterJob};
use model::document::{Job, ReschedulePolicy};
use model::event::AllocsStopped;
use model::{Command, Event, NodeStatus};
use rules::leftovers::find;
use state::alloc::endings::RESCHEDULED;
use state::alloc::reschedule;
use test_world::{World, job_document, key, node_id, stop, unknown};

const HOUR: Duration = Duration::from_secs(3600);
const AGES: LeftoverAges =
    LeftoverAges { evals: HOUR, batch_evals: Duration::from_secs(24 * 3600), deployments: HOUR };

/// A job of that type with `web[0]` on node 1, running. What fails is replaced, three times a day.
fn running(kind: &str) -> World {
    let mut story = World::new();
    for number in [1, 2] {
        story.register_node(number, "r1").unwrap();
        let command = Command::UpdateNodeStatus { node: node_id(number), claimed: NodeStatus::Ready };
        story.submit(command).unwrap();
    }
    register(&mut story, kind);
    let plan = Plan { placed: vec![story.placement("web", 0, 1, None)], ..story.plan() };
    assert!(story.settle("web", plan).unwrap().full);
    story.report(1, &[("web[0]", "running")]).unwrap();
    story
}

fn register(story: &mut World, kind: &str) {
    let mut job = job_document("web", kind, Duration::ZERO);
    job.task_groups[0].reschedule_policy = Some(ReschedulePolicy {
        attempts: Some(3),
        interval: Some(Duration::from_secs(24 * 3600).into()),
        ..ReschedulePolicy::default()
    });
    // Each registration is another version.
    let priority = 50 + story.state.index.0 as i64 % 40;
    let job = Job { priority: Some(priority), ..job };
    let request = RegisterJob::new(job);
    story.submit(Command::RegisterJob(Box::new(request))).unwrap();
}

/// Settles what waits, with an empty plan.
fn settle_all(story: &mut World) {
    while story.waiting_eval("web").is_some() {
        let plan = story.plan();
        story.settle("web", plan).unwrap();
    }
}

fn later(story: &mut World, by: Duration) {
    story.now = story.now.plus(by);
}

/// As a person asks for it: whatever is old enough.
fn collect(story: &mut World) -> Vec<&'static str> {
    let command = Command::CollectLeftovers { named: None, ages: AGES };
    let events = story.submit(command).unwrap().events;
    story.check_replay();
    events.iter().map(Event::name).collect()
}

fn next(story: &World) -> Option<Time> {
    let row = story.state.jobs.find(&key("web")).unwrap();
    find(&story.state, row, &AGES, story.now).next
}

/// B59.
#[test]
fn an_old_evaluation_goes_with_the_allocations_it_placed() {
    let mut story = running("service");
    let replaced = Plan {
        stopped: vec![stop(vec![story.alloc("web[0]")], None)],
        placed: vec![story.placement("web", 1, 2, None)],
        ..story.plan()
    };
    register(&mut story, "service");
    let placed = vec![story.placement("web", 1, 2, None)];
    let replaced = Plan { placed, snapshot: story.state.index, ..replaced };
    assert!(story.settle("web", replaced).unwrap().full);
    story.report(2, &[("web[1]", "running")]).unwrap();
    later(&mut story, Duration::from_secs(7200));
    assert_eq!(collect(&mut story), Vec::<&str>::new(), "its node has not ended it yet");

    story.report(1, &[("web[0]", "complete")]).unwrap();
    settle_all(&mut story);
    let ended = story.now;
    assert_eq!(next(&story), Some(ended.plus(HOUR)));
    later(&mut story, Duration::from_secs(3599));
    assert_eq!(collect(&mut story), Vec::<&str>::new());
    later(&mut story, Duration::from_secs(1));
    assert_eq!(collect(&mut story), ["AllocsCollected", "EvalsDeleted"]);
    let job = story.state.jobs.lookup(&key("web")).unwrap();
    assert_eq!((job.allocs.len(), job.evals.len()), (1, 1), "what runs stays, with its evaluation");
    assert_eq!(next(&story), None, "nothing is looked at again before something ends");
}

/// B60.
#[test]
fn reschedule_attempts_stay_known() {
    let mut story = running("service");
    story.report(1, &[("web[0]", "failed")]).unwrap();
    let old = story.alloc("web[0]");
    let plan = Plan {
        placed: vec![story.placement("web", 0, 2, Some(old))],
        stopped: vec![AllocsStopped { description: RESCHEDULED.into(), ..stop(vec![old], None) }],
        ..story.plan()
    };
    assert!(story.settle("web", plan).unwrap().full);
    story.report(2, &[("web[0]'", "running")]).unwrap();
    settle_all(&mut story);
    later(&mut story, Duration::from_secs(7200));
    assert_eq!(collect(&mut story), Vec::<&str>::new());
    let state = &story.state;
    let successor = state.allocs.lookup(story.alloc("web[0]'")).unwrap();
    assert_eq!(reschedule::past(state, successor).len(), 1);
}

/// B64.
#[test]
fn what_took_the_place_of_an_allocation_stays_with_it() {
    let mut story = running("service");
    let original = story.alloc("web[0]");
    let plan = Plan {
        unknown: vec![unknown(vec![original])],
        placed: vec![story.placement("web", 0, 2, Some(original))],
        ..story.plan()
    };
    register(&mut story, "service");
    let plan = Plan { snapshot: story.state.index, ..plan };
    assert!(story.settle("web", plan).unwrap().full);
    story.report(2, &[("web[0]'", "running")]).unwrap();
    let replacement = story.alloc("web[0]'");
    register(&mut story, "service");
    let plan = Plan { stopped: vec![stop(vec![replacement], None)], ..story.plan() };
    story.settle("web", plan).unwrap();
    story.report(2, &[("web[0]'", "complete")]).unwrap();
    settle_all(&mut story);
    later(&mut story, Duration::from_secs(7200));
    collect(&mut story);
    let allocs = &story.state.allocs;
    assert!(allocs.lookup(replacement).is_some(), "the original may come back and has to know");
    assert!(allocs.lookup(original).is_some());
}

/// B61: without it, the scheduler would place another one whatever the policy says.
#[test]
fn a_failure_that_nothing_replaced_stays_for_as_long_as_it_is_wanted() {
    let mut story = running("service");
    story.report(1, &[("web[0]", "failed")]).unwrap();
    settle_all(&mut story);
    later(&mut story, Duration::from_secs(7200));
    collect(&mut story);
    assert!(story.state.allocs.lookup(story.alloc("web[0]")).is_some());

    let deregister = Command::DeregisterJob {
        key: key("web"),
        purge: false,
        eval_priority: None,
        no_shutdown_delay: false,
    };
    story.submit(deregister).unwrap();
    settle_all(&mut story);
    later(&mut story, Duration::from_secs(7200));
    assert_eq!(collect(&mut story), ["AllocsCollected", "EvalsDeleted"]);
    assert!(story.state.jobs.lookup(&key("web")).is_some(), "the job itself has four hours");
}

/// B62.
#[test]
fn finished_batch_work_stays_until_there_is_another_version() {
    for kind in ["batch", "sysbatch"] {
        let mut story = running(kind);
        story.report(1, &[("web[0]", "complete")]).unwrap();
        settle_all(&mut story);
        later(&mut story, Duration::from_secs(48 * 3600));
        collect(&mut story);
        let finished = story.alloc("web[0]");
        assert!(story.state.allocs.lookup(finished).is_some(), "{kind}");

        register(&mut story, kind);
        settle_all(&mut story);
        assert_eq!(collect(&mut story), ["AllocsCollected", "EvalsDeleted"], "{kind}");
        assert!(story.state.allocs.lookup(finished).is_none(), "{kind}");
    }
}

/// B63.
#[test]
fn evaluations_of_a_purged_job_go_too() {
    let mut story = running("service");
    let purge = Command::DeregisterJob {
        key: key("web"),
        purge: true,
        eval_priority: None,
        no_shutdown_delay: false,
    };
    story.submit(purge).unwrap();
    story.report(1, &[("web[0]", "complete")]).unwrap();
    later(&mut story, Duration::from_secs(7200));
    assert_eq!(collect(&mut story), ["AllocsCollected", "EvalsDeleted"]);
    assert!(story.state.evals.is_empty());
}

#[test]
fn an_evaluation_stays_with_an_allocation_that_was_not_named() {
    let mut story = running("service");
    let eval = story.state.allocs.lookup(story.alloc("web[0]")).unwrap().eval;
    let deregister = Command::DeregisterJob {
        key: key("web"),
        purge: false,
        eval_priority: None,
        no_shutdown_delay: false,
    };
    story.submit(deregister).unwrap();
    settle_all(&mut story);
    story.report(1, &[("web[0]", "complete")]).unwrap();
    later(&mut story, Duration::from_secs(7200));
    let named = Leftovers { evals: vec![eval], ..Leftovers::default() };
    let command = Command::CollectLeftovers { named: Some(named), ages: AGES };
    assert!(story.submit(command).unwrap().events.is_empty());
}
