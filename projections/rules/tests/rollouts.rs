//! Deployments of one job in several regions, as one of them decides about its own.

use base::Uuid;
use model::command::{EvalEnd, ObserveRollout, Plan, RegionProgress, RegisterJob, Settlement};
use model::document::{Job, Multiregion, MultiregionRegion, MultiregionStrategy, TaskGroup, UpdateStrategy};
use model::event::{DeploymentStatusChanged, EvalOutcome};
use model::{Command, DeploymentStatus as Status, EvalId};
use state::deployment::Deployment;
use state::deployment::progress;
use test_world::{World, key};

const REGIONS: [&str; 3] = ["one", "two", "three"];

/// A service in three regions, in the second of them.
fn job(parallel: i64, on_failure: &str, rollout: &str) -> Job {
    let strategy =
        MultiregionStrategy { max_parallel: Some(parallel), on_failure: Some(on_failure.to_string()) };
    let region = |name: &str| MultiregionRegion { name: name.to_string(), ..MultiregionRegion::default() };
    let group = TaskGroup {
        name: Some("web".into()),
        count: Some(0),
        update: Some(UpdateStrategy { max_parallel: Some(1), ..UpdateStrategy::default() }),
        ..TaskGroup::default()
    };
    Job {
        namespace: Some("default".into()),
        id: Some("web".into()),
        kind: Some("service".into()),
        region: Some("two".into()),
        multiregion: Some(Multiregion {
            strategy: Some(strategy),
            regions: REGIONS.map(region).to_vec().into(),
            rollout: rollout.to_string(),
        }),
        task_groups: vec![group].into(),
        ..Job::default()
    }
}

struct Region(World, EvalId);

impl Region {
    fn registers(job: Job) -> Region {
        let mut world = World::new();
        let registered = world.submit(Command::RegisterJob(Box::new(RegisterJob::new(job)))).unwrap();
        let eval = registered.reply().evals[0];
        Region(world, eval)
    }

    /// With a deployment that the scheduler has given this status.
    fn with(job: Job, status: Status) -> Region {
        let mut region = Region::registers(job);
        let changed = DeploymentStatusChanged {
            deployment: region.deployment().id,
            status,
            description: String::new(),
        };
        let plan =
            Plan { snapshot: region.0.state.index, deployment_statuses: vec![changed], ..Plan::default() };
        let end = Some(EvalEnd::complete(EvalOutcome::default()));
        let settlement = Settlement { eval: region.1, plan, end };
        region.0.submit(Command::SettleEval(Box::new(settlement))).unwrap();
        region
    }

    fn deployment(&self) -> &Deployment {
        let owner = self.0.state.jobs.lookup(&key("web")).unwrap();
        self.0.state.deployments.get(*owner.deployments.last().unwrap())
    }

    /// What becomes of its deployment once it sees the first and the third region like this.
    fn sees(mut self, first: Option<Status>, third: Option<Status>) -> Status {
        let peer = |(region, status): (&str, Option<Status>)| {
            status.map(|status| RegionProgress { region: region.to_string(), status })
        };
        let peers = [("one", first), ("three", third)].into_iter().filter_map(peer).collect();
        let observed = ObserveRollout { deployment: self.deployment().id, peers };
        self.0.submit(Command::ObserveRollout(Box::new(observed))).unwrap();
        self.0.check_replay();
        self.deployment().status
    }
}

/// F65.
#[test]
fn a_new_version_ends_the_deployment_of_the_one_before() {
    use Status::{Blocked, Cancelled, Failed, Initializing, Paused, Pending, Running, Successful};
    for status in [Initializing, Pending, Running, Paused, Blocked, Failed, Successful] {
        let mut region = Region::with(job(1, "", "first"), status);
        let before = region.deployment().id;
        region.0.submit(Command::RegisterJob(Box::new(RegisterJob::new(job(1, "", "second"))))).unwrap();
        let ended = region.0.state.deployments.lookup(before).unwrap();
        let is_over = [Failed, Successful].contains(&status);
        assert_eq!(ended.status, if is_over { status } else { Cancelled });
        assert_eq!(region.deployment().status, Initializing);
        assert_ne!(region.deployment().id, before);
        region.0.check_replay();
    }
}

/// F61.
#[test]
fn a_region_begins_when_few_enough_before_it_are_under_way() {
    let cases = [
        (1, None, Status::Pending),
        (1, Some(Status::Running), Status::Pending),
        (1, Some(Status::Paused), Status::Pending),
        (1, Some(Status::Blocked), Status::Running),
        (1, Some(Status::Successful), Status::Running),
        (1, Some(Status::Cancelled), Status::Running),
        (2, None, Status::Running),
        (0, None, Status::Running),
    ];
    for (parallel, first, becomes) in cases {
        let region = Region::with(job(parallel, "", "r"), Status::Pending);
        assert_eq!(region.sees(first, None), becomes, "{parallel} at once, the first is {first:?}");
    }
}

/// F62.
#[test]
fn a_complete_region_waits_for_all_others() {
    use Status::{Blocked, Failed, Running, Successful};
    let cases = [
        ("", Some(Blocked), Some(Blocked), Successful),
        ("", Some(Successful), Some(Successful), Successful),
        ("", Some(Successful), Some(Running), Blocked),
        ("", Some(Successful), None, Blocked),
        ("fail_local", Some(Failed), Some(Successful), Successful),
        ("", Some(Successful), Some(Failed), Blocked),
    ];
    for (on_failure, first, third, becomes) in cases {
        let region = Region::with(job(1, on_failure, "r"), Blocked);
        assert_eq!(region.sees(first, third), becomes, "{on_failure:?}: {first:?} and {third:?}");
    }
}

/// F63.
#[test]
fn a_failure_takes_those_with_it_that_the_job_says() {
    use Status::{Blocked, Failed, Pending, Running, Successful};
    let cases = [
        ("", Pending, Some(Failed), None, Failed),
        ("", Running, Some(Failed), None, Failed),
        ("", Running, Some(Successful), Some(Failed), Running),
        ("fail_all", Blocked, Some(Successful), Some(Failed), Failed),
        ("fail_all", Pending, Some(Failed), None, Failed),
        ("fail_local", Running, Some(Failed), Some(Failed), Running),
        ("fail_local", Pending, Some(Failed), None, Running),
        ("fail_all", Successful, Some(Failed), None, Successful),
    ];
    for (on_failure, own, first, third, becomes) in cases {
        let region = Region::with(job(1, on_failure, "r"), own);
        assert_eq!(region.sees(first, third), becomes, "{on_failure:?}, {own:?}: {first:?} and {third:?}");
    }
}

/// F64.
#[test]
fn what_waits_goes_on_by_hand_and_nothing_else_does() {
    use Status::{Blocked, Pending, Running, Successful};
    for (own, becomes) in [(Pending, Running), (Blocked, Successful)] {
        let mut region = Region::with(job(1, "", "r"), own);
        let deployment = region.deployment().id;
        region.0.submit(Command::UnblockDeployment { deployment }).unwrap();
        assert_eq!(region.deployment().status, becomes);
        region.0.check_replay();
    }
    let mut region = Region::with(job(1, "", "r"), Running);
    let deployment = region.deployment().id;
    let refused = region.0.submit(Command::UnblockDeployment { deployment }).unwrap_err();
    assert_eq!(refused.to_string(), "can't unblock a deployment that waits for no other region");
    let unknown = model::DeploymentId(Uuid::from(1));
    assert!(region.0.submit(Command::UnblockDeployment { deployment: unknown }).is_err());
}

#[test]
fn a_region_says_how_far_it_is_with_what_was_registered_everywhere() {
    let web = key("web");
    assert_eq!(progress(&World::new().state, &web, "r"), None);
    let mut region = Region::with(job(1, "", "r"), Status::Running);
    assert_eq!(progress(&region.0.state, &web, "r"), Some(Status::Running));
    assert_eq!(progress(&region.0.state, &web, "other"), None);
    // A newer one does not make it forget how the one before went.
    let newer = RegisterJob::new(Job { priority: Some(60), ..job(1, "", "newer") });
    let deployment = region.deployment().id;
    region.0.submit(Command::FailDeployment { deployment }).unwrap();
    region.0.submit(Command::RegisterJob(Box::new(newer))).unwrap();
    assert_eq!(progress(&region.0.state, &web, "r"), Some(Status::Failed));
    assert_eq!(progress(&region.0.state, &web, "newer"), Some(Status::Initializing));
    let stop = Command::DeregisterJob {
        key: web.clone(),
        purge: false,
        eval_priority: None,
        no_shutdown_delay: false,
    };
    region.0.submit(stop).unwrap();
    assert_eq!(progress(&region.0.state, &web, "newer"), Some(Status::Cancelled));
    region.0.check_replay();
    // What has no deployments is everywhere at once.
    let batch = Job { kind: Some("batch".into()), ..job(1, "", "b") };
    let region = Region::registers(batch);
    assert_eq!(progress(&region.0.state, &web, "b"), Some(Status::Successful));
}

/// F68.
#[test]
fn nobody_waits_for_a_region_in_which_the_job_was_purged() {
    let web = key("web");
    let purge = Command::DeregisterJob {
        key: web.clone(),
        purge: true,
        eval_priority: None,
        no_shutdown_delay: false,
    };
    let mut region = Region::with(job(1, "", "r"), Status::Running);
    region.0.submit(purge).unwrap();
    assert!(region.0.state.jobs.lookup(&web).is_none());
    assert_eq!(progress(&region.0.state, &web, "r"), Some(Status::Cancelled));
    assert_eq!(progress(&region.0.state, &web, "other"), None);
    // Also where something else has its name by now.
    let newer = RegisterJob::new(Job { multiregion: None, region: None, ..job(1, "", "r") });
    region.0.submit(Command::RegisterJob(Box::new(newer))).unwrap();
    assert_eq!(progress(&region.0.state, &web, "r"), Some(Status::Cancelled));
    // Registered once more it is asked anew.
    region.0.submit(Command::RegisterJob(Box::new(RegisterJob::new(job(1, "", "r"))))).unwrap();
    assert_eq!(progress(&region.0.state, &web, "r"), Some(Status::Initializing));
    region.0.check_replay();
}
