//! Jobs that bring forth others, groups that are scaled, versions that have names.

use base::{Duration, Time};
use model::command::{DispatchJob, RegisterJob, ScaleJob};
use model::document::{
    Constraint, Job, ParameterizedJobConfig, PeriodicConfig, ScalingPolicy, UpdateStrategy,
};
use model::{Command, JobStatus, Rejection, Trigger};
use rules::Decision;
use test_world::{World, job_document, key};

fn register(world: &mut World, job: Job) -> Decision {
    world.submit(registration(job)).unwrap()
}

fn registration(job: Job) -> Command {
    Command::RegisterJob(Box::new(RegisterJob::new(job)))
}

fn parameterized() -> Job {
    let takes = ParameterizedJobConfig {
        payload: "required".into(),
        meta_required: vec!["who".to_string()].into(),
        meta_optional: vec!["why".to_string()].into(),
    };
    Job { parameterized_job: Some(takes), ..job_document("mail", "batch", Duration::ZERO) }
}

fn periodic(prohibit_overlap: bool) -> Job {
    let schedule = PeriodicConfig {
        enabled: Some(true),
        spec: Some("* * * * *".into()),
        prohibit_overlap: Some(prohibit_overlap),
        ..PeriodicConfig::default()
    };
    Job { periodic: Some(schedule), ..job_document("tick", "batch", Duration::ZERO) }
}

fn dispatch(world: &mut World, change: impl Fn(&mut DispatchJob)) -> Result<Decision, Rejection> {
    let meta = [("who".to_string(), "ann".to_string())].into_iter().collect();
    let mut request =
        DispatchJob { key: key("mail"), payload: b"hello".to_vec(), meta, ..DispatchJob::default() };
    change(&mut request);
    world.submit(Command::DispatchJob(Box::new(request)))
}

fn launch(world: &mut World, at: Time, forced: bool) -> Result<Decision, Rejection> {
    world.submit(Command::LaunchJob { key: key("tick"), at, forced })
}

#[test]
fn a_job_that_is_registered_stopped_waits_until_it_is_registered_otherwise() {
    let mut world = World::new();
    let with = |stop| Job { stop: Some(stop), ..job_document("web", "service", Duration::ZERO) };
    let seen = |world: &World| {
        let job = world.state.jobs.lookup(&key("web")).unwrap();
        (job.is_stopped(), job.current().version)
    };
    for (stop, version) in [(true, 0), (true, 0), (false, 1), (false, 1), (true, 2)] {
        register(&mut world, with(stop));
        assert_eq!(seen(&world), (stop, version));
    }
    register(&mut world, with(false));
    let stop = Command::DeregisterJob {
        key: key("web"),
        purge: false,
        eval_priority: None,
        no_shutdown_delay: false,
    };
    world.submit(stop).unwrap();
    register(&mut world, with(true));
    assert_eq!(seen(&world), (true, 4), "it is stopped already");
    world.check_replay();
}

#[test]
fn a_count_beyond_all_sense_is_refused_whoever_asks_for_it() {
    let mut world = World::new();
    let with = |count: i64, canary: i64| {
        let mut job = job_document("web", "service", Duration::ZERO);
        job.task_groups[0].count = Some(count);
        job.task_groups[0].update =
            Some(UpdateStrategy { canary: Some(canary), ..UpdateStrategy::default() });
        job
    };
    for (count, canary) in [(50_001, 0), (i64::MAX, 0), (1, 1_000_000_000)] {
        let command = registration(with(count, canary));
        let why = world.submit(command).unwrap_err().to_string();
        assert!(why.ends_with("at most 50000 are allowed"), "{why}");
    }
    register(&mut world, with(50_000, 0));
    let mut large = with(1, 0);
    large.task_groups[0].constraints = vec![Constraint {
        operand: "regexp".into(),
        r_target: "x".repeat(5_000_000),
        ..Constraint::default()
    }]
    .into();
    let why = world.submit(registration(large)).unwrap_err().to_string();
    assert_eq!(why, "TaskGroups[0].Constraints[0].RTarget: 5000000 bytes: expected at most 4096");
    let scaled = |world: &mut World, count| scale(world, |request| request.count = Some(count));
    let why = scaled(&mut world, 1_000_000_000).unwrap_err().to_string();
    assert!(why.contains("the groups count 1000000000 allocations; at most 50000 are allowed"), "{why}");
    scaled(&mut world, 10).unwrap();
    world.check_replay();
}

#[test]
fn launches_within_one_second_get_names_of_their_own() {
    let mut world = World::new();
    register(&mut world, periodic(false));
    let at = Time::from_secs(1_000_020);
    let mut name = || launch(&mut world, at, true).unwrap().child.unwrap();
    assert_eq!(name(), "tick/periodic-1000020");
    assert_eq!(name(), "tick/periodic-1000020-2");
    assert_eq!(name(), "tick/periodic-1000020-3");
    world.check_replay();
}

#[test]
fn a_dispatch_makes_a_child_with_its_own_payload_and_meta() {
    let mut world = World::new();
    assert!(register(&mut world, parameterized()).reply().evals.is_empty(), "the parent itself never runs");
    let decision = dispatch(&mut world, |request| request.id_prefix = "eu".into()).unwrap();
    let id = decision.child.clone().unwrap();
    assert!(id.starts_with("mail/dispatch-eu-1000000-"), "{id}");
    assert_eq!(decision.reply().evals.len(), 1);
    let child = world.state.jobs.lookup(&key(&id)).unwrap();
    let job = &child.current().job;
    assert!(job.dispatched);
    assert_eq!((job.parent_id.as_deref(), &job.payload.0[..]), (Some("mail"), &b"hello"[..]));
    assert_eq!(job.meta.get("who").map(String::as_str), Some("ann"));
    let summary = world.state.jobs.children_summary(&key("mail"));
    assert_eq!((summary.pending, summary.running, summary.dead), (1, 0, 0));
    assert_eq!(world.state.jobs.lookup(&key("mail")).unwrap().summary_modified, world.state.index);
    world.check_replay();
}

#[test]
fn a_dispatch_with_a_known_token_makes_no_second_child() {
    let mut world = World::new();
    register(&mut world, parameterized());
    let once = dispatch(&mut world, |request| request.idempotency_token = "t1".into()).unwrap();
    let twice = dispatch(&mut world, |request| request.idempotency_token = "t1".into()).unwrap();
    assert_eq!((once.child, twice.events.len()), (twice.child, 0));
    let other = dispatch(&mut world, |request| request.idempotency_token = "t2".into()).unwrap();
    assert!(!other.events.is_empty());
    assert_eq!(world.state.jobs.children(&key("mail")).count(), 2);
    world.check_replay();
}

#[test]
fn what_the_parent_does_not_take_is_refused() {
    let mut world = World::new();
    register(&mut world, parameterized());
    let before = world.state.index;
    type Change = fn(&mut DispatchJob);
    let wrong: [(Change, &str); 6] = [
        (|r| r.payload.clear(), "Payload is not provided but required by the job"),
        (|r| r.payload = vec![0; 16 * 1024 + 1], "Payload exceeds maximum size; 16385 > 16384"),
        (|r| drop(r.meta.insert("x".into(), "1".into())), "unpermitted metadata keys: [x]"),
        (|r| r.meta.clear(), "did not provide required meta keys: [who]"),
        (|r| r.priority = 101, "job priority must be between [1, 100], but is 101"),
        (|r| r.id_prefix = "a b".into(), "IdPrefixTemplate: expected text without spaces"),
    ];
    for (change, expected) in wrong {
        let why = dispatch(&mut world, change).unwrap_err().to_string();
        assert!(why.contains(expected), "{why}");
    }
    register(&mut world, job_document("web", "service", Duration::ZERO));
    let why = dispatch(&mut world, |request| request.key = key("web")).unwrap_err().to_string();
    assert_eq!(why, "Specified job \"web\" is not a parameterized job");
    assert_eq!(world.state.index.0, before.0 + 1, "only the other job was written");
    world.check_replay();
}

#[test]
fn a_schedule_launches_once_for_each_moment() {
    let mut world = World::new();
    register(&mut world, periodic(false));
    let at = Time::from_secs(1_000_020);
    let decision = launch(&mut world, at, false).unwrap();
    assert_eq!(decision.child.as_deref(), Some("tick/periodic-1000020"));
    let child = world.state.jobs.lookup(&key("tick/periodic-1000020")).unwrap();
    assert!(child.current().job.periodic.is_none());
    let eval = world.state.evals.lookup(decision.reply().evals[0]).unwrap();
    assert_eq!(eval.facts.trigger, Trigger::PeriodicJob);
    assert!(launch(&mut world, at, false).unwrap().events.is_empty(), "that moment is over");
    assert_eq!(world.state.jobs.lookup(&key("tick")).unwrap().last_launch(), at);
    world.check_replay();
}

#[test]
fn children_overlap_only_where_they_may_or_somebody_insists() {
    let mut world = World::new();
    register(&mut world, periodic(true));
    launch(&mut world, Time::from_secs(1_000_060), false).unwrap();
    assert!(launch(&mut world, Time::from_secs(1_000_120), false).unwrap().events.is_empty());
    assert!(!launch(&mut world, Time::from_secs(1_000_120), true).unwrap().events.is_empty());
    let mut off = periodic(false);
    off.periodic.as_mut().unwrap().enabled = Some(false);
    register(&mut world, off);
    let why = launch(&mut world, Time::from_secs(1_000_180), true).unwrap_err().to_string();
    assert_eq!(why, "can't force run non-tracked job \"tick\" (default): its periodic block is not enabled");
    register(&mut world, job_document("web", "batch", Duration::ZERO));
    let why = world.submit(Command::LaunchJob { key: key("web"), at: world.now, forced: true });
    assert_eq!(
        why.unwrap_err().to_string(),
        "can't force run non-tracked job \"web\" (default): it is not periodic"
    );
    world.check_replay();
}

#[test]
fn a_purged_child_is_not_counted_any_more() {
    let mut world = World::new();
    register(&mut world, parameterized());
    let id = dispatch(&mut world, |_| ()).unwrap().child.unwrap();
    let purge =
        Command::DeregisterJob { key: key(&id), purge: true, eval_priority: None, no_shutdown_delay: false };
    world.submit(purge).unwrap();
    assert_eq!(world.state.jobs.children(&key("mail")).count(), 0);
    assert_eq!(world.state.jobs.lookup(&key("mail")).unwrap().status, JobStatus::Running);
    world.check_replay();
}

fn scale(world: &mut World, change: impl Fn(&mut ScaleJob)) -> Result<Decision, Rejection> {
    let mut request = ScaleJob {
        key: key("web"),
        group: "g".into(),
        count: Some(3),
        message: "busy".into(),
        ..ScaleJob::default()
    };
    change(&mut request);
    world.submit(Command::ScaleJob(Box::new(request)))
}

#[test]
fn a_group_is_scaled_within_its_limits_and_its_history_kept() {
    let mut world = World::new();
    let mut job = job_document("web", "service", Duration::ZERO);
    job.task_groups[0].scaling =
        Some(ScalingPolicy { min: Some(1), max: Some(5), ..ScalingPolicy::default() });
    let group = job.task_groups[0].name.clone().unwrap();
    register(&mut world, job);
    let scale = |world: &mut World, change: fn(&mut ScaleJob)| {
        let group = group.clone();
        scale(world, move |request| {
            request.group = group.clone();
            change(request);
        })
    };
    let decision = scale(&mut world, |_| ()).unwrap();
    let web = world.state.jobs.lookup(&key("web")).unwrap();
    assert_eq!((web.current().version, web.current().group(&group).unwrap().count), (1, Some(3)));
    let line = &web.scalings(&group)[0];
    assert_eq!(
        (line.count, line.message.as_str(), line.create_index),
        (Some(3), "busy", world.state.index.0)
    );
    assert_eq!(line.eval_id, Some(decision.reply().evals[0].to_string()));
    scale(&mut world, |request| (request.count, request.error) = (None, true)).unwrap();
    let web = world.state.jobs.lookup(&key("web")).unwrap();
    assert_eq!((web.current().version, web.scalings(&group).len()), (1, 2), "a line of its own, no version");
    type Change = fn(&mut ScaleJob);
    let wrong: [(Change, &str); 5] = [
        (|r| r.group = "db".into(), "task group \"db\" specified for scaling does not exist in job"),
        (|r| r.count = Some(0), "group count was less than scaling policy minimum: 0 < 1"),
        (|r| r.count = Some(6), "group count was greater than scaling policy maximum: 6 > 5"),
        (|r| r.count = Some(-1), "scaling action count can't be negative"),
        (|r| r.error = true, "scaling action should not contain count if error is true"),
    ];
    for (change, expected) in wrong {
        assert_eq!(scale(&mut world, change).unwrap_err().to_string(), expected);
    }
    world.check_replay();
}

#[test]
fn a_version_with_a_name_is_kept() {
    let mut world = World::new();
    let tag = |world: &mut World, version, name: &str| {
        let (key, name, description) = (key("web"), name.to_string(), String::new());
        world.submit(Command::TagJobVersion { key, version, name, description })
    };
    let next = |world: &mut World, priority| {
        let job = job_document("web", "service", Duration::ZERO);
        register(world, Job { priority: Some(priority), ..job });
    };
    next(&mut world, 1);
    tag(&mut world, None, "golden").unwrap();
    (2..12).for_each(|priority| next(&mut world, priority));
    let web = world.state.jobs.lookup(&key("web")).unwrap();
    assert_eq!((web.versions.len(), web.tagged("golden")), (7, Some(0)));
    let why = tag(&mut world, Some(9), "golden").unwrap_err().to_string();
    assert_eq!(why, "tag \"golden\" already exists on a different version of job \"web\"");
    assert!(tag(&mut world, Some(3), "old").is_err(), "it is not kept any more");
    let untag = |name: &str| Command::UntagJobVersion { key: key("web"), name: name.to_string() };
    assert!(world.submit(untag("nothing")).is_err());
    world.submit(untag("golden")).unwrap();
    let web = world.state.jobs.lookup(&key("web")).unwrap();
    assert!(web.version(0).is_none(), "nobody names it, nobody keeps it");
    world.check_replay();
}
