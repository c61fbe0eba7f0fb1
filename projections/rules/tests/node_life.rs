//! What the servers conclude when nodes speak or fall silent, and which jobs are looked at then.

use base::Duration;
use model::command::{Plan, RegisterJob};
use model::document::{Job, NodePool, ReschedulePolicy};
use model::event::AllocsStopped;
use model::{Command, CommandRecord, EPOCH, Event, NodeStatus, Rejection, RequestId, Trigger};
use rules::{Context, Decision, decide};
use state::alloc::endings::RESCHEDULED;
use state::{Delta, Moment};
use test_world::{World, job_document, key, node_id, stop, unknown};

const MINUTE: Duration = Duration::from_secs(60);

/// With as many ready nodes.
fn nodes(count: u128) -> World {
    let mut story = World::new();
    for number in 1..=count {
        story.register_node(number, "r1").unwrap();
        ready(&mut story, number);
    }
    story
}

/// With a job of that type whose `name[0]` runs on node 1, and may be away for a while.
fn running(kind: &str, lost_after: Duration) -> World {
    let mut story = nodes(2);
    story.register_job("web", kind, lost_after).unwrap();
    place(&mut story, 0, 1);
    story.report(1, &[("web[0]", "running")]).unwrap();
    story
}

fn place(story: &mut World, index: u32, node: u128) {
    let plan = Plan { placed: vec![story.placement("web", index, node, None)], ..story.plan() };
    assert!(story.settle("web", plan).unwrap().full);
}

fn register(story: &mut World, job: Job) {
    let request = RegisterJob::new(job);
    story.submit(Command::RegisterJob(Box::new(request))).unwrap();
}

fn ready(story: &mut World, number: u128) -> Decision {
    let command = Command::UpdateNodeStatus { node: node_id(number), claimed: NodeStatus::Ready };
    story.submit(command).unwrap()
}

fn silent(story: &mut World, number: u128) -> Decision {
    story.submit(Command::MissHeartbeat { node: node_id(number) }).unwrap()
}

fn status(story: &World, number: u128) -> NodeStatus {
    let nodes = &story.state.nodes;
    nodes.hot(nodes.find(node_id(number)).unwrap()).status
}

/// Jobs that are to be looked at, and why.
fn looks(decision: &Decision) -> Vec<(&str, Trigger)> {
    let created = decision.events.iter().filter_map(|event| {
        let Event::EvalCreated(created) = event else { return None };
        Some((created.eval.key.id.as_str(), created.eval.trigger))
    });
    created.collect()
}

/// A31-A33.
#[test]
fn only_jobs_that_have_something_to_lose_are_looked_at() {
    let cases: [(&str, Option<bool>, bool); 5] = [
        // The type, whether it completed and was wanted to run, and whether somebody has to look.
        ("service", None, true),
        ("service", Some(false), false),
        ("batch", None, true),
        ("batch", Some(true), false),
        ("sysbatch", None, false),
    ];
    for (kind, completed, expected) in cases {
        let mut story = running(kind, Duration::ZERO);
        if completed == Some(false) {
            let command = Command::EvaluateJob { key: key("web"), force_reschedule: false };
            story.submit(command).unwrap();
            let stopped = vec![stop(vec![story.alloc("web[0]")], None)];
            let plan = Plan { stopped, ..story.plan() };
            story.settle("web", plan).unwrap();
        }
        if completed.is_some() {
            story.report(1, &[("web[0]", "complete")]).unwrap();
        }
        let decision = silent(&mut story, 1);
        assert_eq!(status(&story, 1), NodeStatus::Down);
        let expected: &[_] = if expected { &[("web", Trigger::NodeUpdate)] } else { &[] };
        assert_eq!(looks(&decision), expected, "{kind}, completed and wanted {completed:?}");
        story.check_replay();
    }
}

/// A34, A35.
#[test]
fn a_node_that_becomes_ready_is_for_the_system_jobs_that_reach_it() {
    let pool = NodePool { name: "other".into(), ..NodePool::default() };
    let mut story = World::new();
    story.submit(Command::UpsertNodePool(Box::new(pool))).unwrap();
    story.register_job("near", "system", Duration::ZERO).unwrap();
    story.register_job("stopped", "system", Duration::ZERO).unwrap();
    let stop = Command::DeregisterJob {
        key: key("stopped"),
        purge: false,
        eval_priority: None,
        no_shutdown_delay: false,
    };
    story.submit(stop).unwrap();
    let far = job_document("far", "system", Duration::ZERO);
    register(&mut story, Job { node_pool: Some("other".into()), ..far });
    story.register_node(1, "r1").unwrap();
    assert_eq!(looks(&ready(&mut story, 1)), [("near", Trigger::NodeUpdate)]);
    story.check_replay();
}

/// D80.
#[test]
fn a_silent_node_has_no_say_until_it_knocks() {
    for (lost_after, expected) in [(MINUTE, NodeStatus::Disconnected), (Duration::ZERO, NodeStatus::Down)] {
        let mut story = running("service", lost_after);
        silent(&mut story, 1);
        let refused = story.report(1, &[("web[0]", "failed")]).unwrap_err();
        assert_eq!(refused, Rejection::NodeSilent(node_id(1), expected));
        ready(&mut story, 1);
        assert_eq!(status(&story, 1), NodeStatus::Initializing);
        story.report(1, &[("web[0]", "running")]).unwrap();
        story.check_replay();
    }
}

/// D81.
#[test]
fn a_silent_node_is_waited_for_if_something_on_it_may_be() {
    let mut story = running("service", Duration::ZERO);
    silent(&mut story, 1);
    assert_eq!(status(&story, 1), NodeStatus::Down);

    let mut story = running("service", MINUTE);
    silent(&mut story, 1);
    assert_eq!(status(&story, 1), NodeStatus::Disconnected);

    let mut story = running("service", MINUTE);
    story.submit(Command::EvaluateJob { key: key("web"), force_reschedule: false }).unwrap();
    let plan = Plan { stopped: vec![stop(vec![story.alloc("web[0]")], None)], ..story.plan() };
    story.settle("web", plan).unwrap();
    silent(&mut story, 1);
    assert_eq!(status(&story, 1), NodeStatus::Down, "what is to end is not waited for");
}

/// D82.
#[test]
fn a_node_that_returns_is_ready_once_it_has_told_what_it_runs() {
    let mut story = running("service", MINUTE);
    silent(&mut story, 1);
    let look: &[_] = &[("web", Trigger::NodeUpdate)];
    assert_eq!(looks(&ready(&mut story, 1)), look);
    assert_eq!(status(&story, 1), NodeStatus::Initializing);
    assert!(ready(&mut story, 1).events.is_empty());
    assert_eq!(status(&story, 1), NodeStatus::Initializing);
    story.report(1, &[("web[0]", "running")]).unwrap();
    assert_eq!(looks(&ready(&mut story, 1)), look);
    assert_eq!(status(&story, 1), NodeStatus::Ready);
    story.check_replay();
}

/// D83.
#[test]
fn a_node_is_given_up_when_nothing_on_it_may_come_back_any_more() {
    let mut story = running("service", MINUTE);
    silent(&mut story, 1);
    let plan = Plan { unknown: vec![unknown(vec![story.alloc("web[0]")])], ..story.plan() };
    assert!(story.settle("web", plan).unwrap().full);
    story.now = story.now.plus(Duration::from_secs(59));
    assert!(silent(&mut story, 1).events.is_empty());
    story.now = story.now.plus(Duration::from_secs(1));
    silent(&mut story, 1);
    assert_eq!(status(&story, 1), NodeStatus::Down);
    story.check_replay();
}

/// With two allocations of a job of that type, running on node 1, that may be replaced so often within a day.
fn replaceable(kind: &str, attempts: i64) -> World {
    let mut story = nodes(2);
    let mut job = job_document("web", kind, Duration::ZERO);
    job.task_groups[0].reschedule_policy = Some(ReschedulePolicy {
        attempts: Some(attempts),
        interval: Some(Duration::from_secs(24 * 3600).into()),
        ..ReschedulePolicy::default()
    });
    register(&mut story, job);
    for index in [0, 1] {
        if index > 0 {
            let command = Command::EvaluateJob { key: key("web"), force_reschedule: false };
            story.submit(command).unwrap();
        }
        place(&mut story, index, 1);
    }
    story.report(1, &[("web[0]", "running"), ("web[1]", "running")]).unwrap();
    story
}

/// E49, E50.
#[test]
fn a_failure_is_looked_at_once_while_attempts_are_left() {
    let look: &[_] = &[("web", Trigger::AllocFailure)];
    let mut story = replaceable("service", 1);
    assert_eq!(looks(&story.report(1, &[("web[0]", "failed"), ("web[1]", "failed")]).unwrap()), look);
    let again = story.report(1, &[("web[0]", "failed/1")]).unwrap();
    assert_eq!((again.events.len(), looks(&again)), (1, vec![]), "it waits for its successor already");

    let old = story.alloc("web[0]");
    let plan = Plan {
        placed: vec![story.placement("web", 0, 2, Some(old))],
        stopped: vec![AllocsStopped { description: RESCHEDULED.into(), ..stop(vec![old], None) }],
        ..story.plan()
    };
    assert!(story.settle("web", plan).unwrap().full);
    let spent = story.report(2, &[("web[0]'", "failed")]).unwrap();
    assert_eq!(looks(&spent), [], "its one attempt was its predecessor's");
    story.check_replay();

    let mut story = replaceable("service", 0);
    assert_eq!(looks(&story.report(1, &[("web[0]", "failed")]).unwrap()), []);
}

/// Two calls of its node, decided in one batch.
#[test]
fn failures_that_are_decided_together_are_looked_at_once() {
    let story = replaceable("service", 1);
    let calls = ["web[0]", "web[1]"].map(|name| story.reported(1, &[(name, "failed")]));
    let mut working = story.state.clone();
    let at = Moment { index: working.index.next(), time: story.now, epoch: EPOCH };
    let decided = calls.map(|(actor, command)| {
        let decision = decide(&working, &mut Context::new(at.index, at.time, 1), &actor, &command).unwrap();
        let record = CommandRecord { request: RequestId::default(), kind: command.kind(), actor };
        working.absorb(at, &record, decision.events.iter(), &mut Delta::default());
        decision
    });
    let looked: Vec<_> = decided.iter().flat_map(looks).collect();
    assert_eq!(looked, [("web", Trigger::AllocFailure)]);
}

#[test]
fn what_ended_long_ago_is_forgotten() {
    let mut story = running("batch", Duration::ZERO);
    let hours = |hours: i64| Duration::from_secs(hours * 3600);
    let collect = Command::CollectGarbage { jobs_after: hours(4), nodes_after: hours(24) };
    story.report(1, &[("web[0]", "complete")]).unwrap();
    silent(&mut story, 1);
    while story.waiting_eval("web").is_some() {
        let plan = story.plan();
        story.settle("web", plan).unwrap();
    }
    let collected = |story: &mut World| {
        let events = story.submit(collect.clone()).unwrap().events;
        events.iter().map(Event::name).collect::<Vec<_>>()
    };
    assert_eq!(collected(&mut story), Vec::<&str>::new());
    story.now = story.now.plus(hours(5));
    assert_eq!(collected(&mut story), ["EvalsDeleted", "JobPurged"]);
    story.now = story.now.plus(hours(20));
    assert_eq!(collected(&mut story), ["NodeDeregistered"]);
    story.check_replay();
}

/// E51.
#[test]
fn what_runs_on_every_node_is_not_rescheduled() {
    for kind in ["system", "sysbatch"] {
        let mut story = replaceable(kind, 9);
        assert_eq!(looks(&story.report(1, &[("web[0]", "failed")]).unwrap()), [], "{kind}");
    }
}
