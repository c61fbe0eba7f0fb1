//! Deployments outside the scheduler: what is counted, promoted, failed and gone back to (cases DP and F45 to F60).

use base::{Duration, Time, Uuid};
use model::command::{EvalEnd, Plan, RegisterJob, Settlement};
use model::document::{AllocDeploymentStatus, Allocation, Job, ReschedulePolicy, TaskGroup};
use model::event::{
    AllocsPlaced, AllocsUpdatedInPlace, DeploymentCreated, DeploymentGoal, DeploymentStatusChanged,
    EvalOutcome, Event,
};
use model::{
    Actor, AllocId, Command, DeploymentId, DeploymentStatus, Doc, EvalId, NodeStatus, Rejection, Template,
    Trigger,
};
use rules::Decision;
use state::deployment::{Deployment, GroupProgress, next_deadline};
use test_world::{World, key, node_id};

const DEADLINE: Duration = Duration::from_secs(600);

fn alloc(number: u128) -> AllocId {
    AllocId(Uuid::from(0xa0 + number))
}

fn goal() -> DeploymentGoal {
    DeploymentGoal {
        group: "web".into(),
        progress_deadline: DEADLINE,
        desired_total: 2,
        ..DeploymentGoal::default()
    }
}

/// A job whose versions differ by priority.
fn job(priority: i64, attempts: i64) -> Job {
    let policy = ReschedulePolicy {
        attempts: Some(attempts),
        interval: Some(Duration::from_secs(3600).into()),
        delay: Some(Duration::from_secs(5).into()),
        ..ReschedulePolicy::default()
    };
    let group =
        TaskGroup { name: Some("web".into()), reschedule_policy: Some(policy), ..TaskGroup::default() };
    Job {
        namespace: Some("default".into()),
        id: Some("web".into()),
        kind: Some("service".into()),
        priority: Some(priority),
        task_groups: vec![group].into(),
        ..Job::default()
    }
}

struct Deploy {
    world: World,
    count: u128,
    deployments: u128,
}

impl Deploy {
    fn new() -> Deploy {
        let mut world = World::new();
        world.register_node(1, "r1").unwrap();
        world.submit(Command::UpdateNodeStatus { node: node_id(1), claimed: NodeStatus::Ready }).unwrap();
        Deploy { world, count: 0, deployments: 0 }
    }

    /// With the job and a deployment that has placed two allocations.
    fn of(goal: DeploymentGoal, attempts: i64) -> Deploy {
        let mut deploy = Deploy::new();
        deploy.begin(job(50, attempts), goal);
        deploy
    }

    fn begin(&mut self, job: Job, goal: DeploymentGoal) {
        let register = RegisterJob::new(job);
        let eval = self.world.submit(Command::RegisterJob(Box::new(register))).unwrap().reply().evals[0];
        let owner = self.world.state.jobs.lookup(&key("web")).unwrap();
        self.deployments += 1;
        let deployment = DeploymentId(Uuid::from(0xd0 + self.deployments));
        let created = DeploymentCreated {
            deployment,
            key: key("web"),
            version: owner.current().version,
            priority: 70,
            is_multiregion: false,
            status: DeploymentStatus::Running,
            description: "Deployment is running".into(),
            groups: vec![goal.clone()],
        };
        let first = self.count;
        self.count += 2;
        let placed = AllocsPlaced {
            eval,
            key: key("web"),
            version: owner.current().version,
            group: "web".into(),
            template: Doc::of(&Template::default()),
            metrics: Doc::default(),
            ids: vec![alloc(first), alloc(first + 1)],
            nodes: vec![node_id(1); 2],
            names: vec![0, 1],
            previous: vec![],
            deployment: Some(deployment),
            canary: goal.desired_canaries > 0,
            ports: vec![],
            given: Vec::new(),
        };
        self.settle(eval, Plan { deployment: Some(created), placed: vec![placed], ..Plan::default() });
    }

    fn settle(&mut self, eval: EvalId, plan: Plan) -> Decision {
        let plan = Plan { snapshot: self.world.state.index, ..plan };
        let outcome = EvalOutcome::default();
        let end = EvalEnd::complete(outcome);
        let settlement = Settlement { eval, plan, end: Some(end) };
        let decision = self.world.submit(Command::SettleEval(Box::new(settlement))).unwrap();
        assert!(decision.verdict.as_ref().unwrap().full);
        decision
    }

    fn deployment(&self) -> &Deployment {
        let owner = self.world.state.jobs.lookup(&key("web")).unwrap();
        self.world.state.deployments.get(*owner.deployments.last().unwrap())
    }

    fn progress(&self) -> &GroupProgress {
        &self.deployment().groups["web"]
    }

    fn counts(&self) -> (u32, u32, u32) {
        let progress = self.progress();
        (progress.placed, progress.healthy, progress.unhealthy)
    }

    /// The node's verdict, a second after the last.
    fn judge(&mut self, number: u128, healthy: bool) {
        self.world.now = self.world.now.plus(Duration::from_secs(1));
        let update = Allocation {
            id: alloc(number).to_string(),
            client_status: if healthy { "running" } else { "failed" }.into(),
            deployment_status: Some(AllocDeploymentStatus {
                healthy: Some(healthy),
                timestamp: self.world.now.into(),
                ..AllocDeploymentStatus::default()
            }),
            ..Allocation::default()
        };
        let node = node_id(1);
        self.world
            .submit_as(Actor::Node(node), Command::UpdateAllocs { node, updates: vec![update] })
            .unwrap();
    }

    fn advance(&mut self) -> Vec<Event> {
        let deployment = self.deployment().id;
        self.world.submit(Command::AdvanceDeployment { deployment }).unwrap().events
    }

    fn promote(&mut self) -> Result<Decision, Rejection> {
        let deployment = self.deployment().id;
        self.world.submit(Command::PromoteDeployment { deployment, groups: vec![] })
    }

    fn outcome(&self) -> (DeploymentStatus, &str) {
        (self.deployment().status, &self.deployment().description)
    }

    fn wait(&mut self, span: Duration) {
        self.world.now = self.world.now.plus(span);
    }
}

fn triggers(events: &[Event]) -> Vec<Trigger> {
    let created = events.iter().filter_map(|event| match event {
        Event::EvalCreated(created) => Some(created.eval.trigger),
        _ => None,
    });
    created.collect()
}

fn canaries(desired_canaries: u32) -> DeploymentGoal {
    DeploymentGoal { desired_canaries, ..goal() }
}

#[test]
fn what_is_placed_and_how_it_is_is_counted() {
    let mut deploy = Deploy::of(goal(), 1);
    let begun = deploy.world.now;
    assert_eq!(deploy.counts(), (2, 0, 0));
    assert_eq!(deploy.progress().require_progress_by, begun.plus(DEADLINE));
    deploy.wait(Duration::from_secs(99));
    deploy.judge(0, true);
    assert_eq!(deploy.counts(), (2, 1, 0));
    assert_eq!(deploy.progress().require_progress_by, begun.plus(Duration::from_secs(700)));
    deploy.judge(1, false);
    assert_eq!(deploy.counts(), (2, 1, 1));
    deploy.judge(0, false);
    assert_eq!(deploy.counts(), (2, 0, 2));
    // Nomad counts no recovery.
    deploy.world.check_replay();
}

#[test]
fn a_repeated_verdict_is_no_news() {
    let mut deploy = Deploy::of(goal(), 1);
    deploy.judge(0, true);
    let first = deploy.world.state.allocs.lookup(alloc(0)).unwrap().health;
    let deployment = deploy.deployment().id;
    let unwell = Command::SetAllocHealth { deployment, healthy: vec![], unhealthy: vec![alloc(0)] };
    deploy.world.submit(unwell).unwrap();
    // The node reports a task, and repeats what it found before.
    let node = node_id(1);
    let update = Allocation {
        id: alloc(0).to_string(),
        client_status: "running".into(),
        client_description: "Tasks are running".into(),
        deployment_status: Some(AllocDeploymentStatus {
            healthy: Some(true),
            timestamp: first.time.into(),
            ..AllocDeploymentStatus::default()
        }),
        ..Allocation::default()
    };
    let repeat = Command::UpdateAllocs { node, updates: vec![update] };
    deploy.world.submit_as(Actor::Node(node), repeat).unwrap();
    assert_eq!(deploy.world.state.allocs.lookup(alloc(0)).unwrap().health.healthy, Some(false));
}

/// F45.
#[test]
fn only_healthy_canaries_are_promoted() {
    let mut deploy = Deploy::of(canaries(2), 1);
    deploy.judge(0, true);
    let refused = deploy.promote().unwrap_err();
    assert_eq!(refused.to_string(), "Task group \"web\" has 1/2 healthy allocations");
    deploy.judge(1, true);
    let before = deploy.progress().require_progress_by;
    deploy.wait(Duration::from_secs(60));
    let promoted = deploy.promote().unwrap();
    assert_eq!(triggers(&promoted.events), [Trigger::DeploymentWatcher]);
    assert!(deploy.progress().promoted && deploy.progress().require_progress_by > before);
    let canary = |number| deploy.world.state.allocs.lookup(alloc(number)).unwrap().health.canary;
    assert!(!canary(0) && !canary(1));
    assert_eq!(deploy.promote().unwrap_err().to_string(), "no canaries to promote");
    deploy.world.check_replay();
}

#[test]
fn canaries_that_promote_themselves_need_nobody() {
    let goal = DeploymentGoal { auto_promote: true, ..canaries(2) };
    let mut deploy = Deploy::of(goal, 1);
    deploy.judge(0, true);
    deploy.advance();
    assert!(!deploy.progress().promoted);
    deploy.judge(1, true);
    assert_eq!(triggers(&deploy.advance()), [Trigger::DeploymentWatcher]);
    assert!(deploy.progress().promoted);
    assert_eq!(deploy.outcome(), (DeploymentStatus::Running, "Deployment is running"));
}

#[test]
fn the_scheduler_goes_on_once_for_what_became_healthy() {
    let mut deploy = Deploy::of(goal(), 1);
    assert!(deploy.advance().is_empty(), "nothing happened yet");
    deploy.judge(0, true);
    deploy.judge(1, true);
    let events = deploy.advance();
    assert_eq!(triggers(&events), [Trigger::DeploymentWatcher]);
    let Event::EvalCreated(created) = &events[0] else { panic!("{events:?}") };
    assert_eq!((created.eval.priority, created.eval.outcome.deployment), (70, Some(deploy.deployment().id)));
    assert!(deploy.advance().is_empty(), "the evaluation that waits will see it");
}

/// F46.
#[test]
fn without_progress_a_deployment_fails_at_its_deadline() {
    let mut deploy = Deploy::of(goal(), 1);
    let deadline = deploy.progress().require_progress_by;
    assert_eq!(next_deadline(deploy.deployment()), Some(deadline));
    deploy.wait(Duration(DEADLINE.0 - 1));
    assert!(deploy.advance().is_empty());
    deploy.wait(Duration(1));
    assert_eq!(triggers(&deploy.advance()), [Trigger::DeploymentWatcher]);
    assert_eq!(deploy.outcome(), (DeploymentStatus::Failed, "Failed due to progress deadline"));
    assert!(deploy.advance().is_empty(), "what is over is over");
    assert_eq!(next_deadline(deploy.deployment()), None);
}

#[test]
fn a_deployment_that_has_all_it_needs_is_never_late() {
    let mut deploy = Deploy::of(goal(), 1);
    deploy.judge(0, true);
    deploy.judge(1, true);
    assert_eq!(next_deadline(deploy.deployment()), None);
    let mut deploy = Deploy::of(canaries(1), 1);
    deploy.judge(0, true);
    assert_eq!(next_deadline(deploy.deployment()), None, "it waits for whoever promotes it");
}

/// F47.
#[test]
fn without_a_deadline_the_first_unhealthy_allocation_fails_it() {
    let goal = DeploymentGoal { progress_deadline: Duration::ZERO, ..goal() };
    let mut deploy = Deploy::of(goal, 1);
    assert_eq!(deploy.progress().require_progress_by, Time::ZERO);
    deploy.judge(0, false);
    deploy.advance();
    assert_eq!(deploy.outcome(), (DeploymentStatus::Failed, "Failed due to unhealthy allocations"));
}

/// F48.
#[test]
fn an_unhealthy_allocation_is_replaced_while_attempts_are_left() {
    let mut deploy = Deploy::of(goal(), 1);
    deploy.judge(0, false);
    assert_eq!(triggers(&deploy.advance()), [Trigger::DeploymentWatcher]);
    assert!(deploy.world.state.allocs.lookup(alloc(0)).unwrap().transition.reschedule);
    assert_eq!(deploy.outcome().0, DeploymentStatus::Running);
    assert!(deploy.advance().is_empty(), "it was asked for");

    let mut deploy = Deploy::of(goal(), 0);
    deploy.judge(0, false);
    deploy.advance();
    assert_eq!(deploy.outcome(), (DeploymentStatus::Failed, "Failed due to unhealthy allocations"));
}

/// The deployment in hand succeeds: its version is one to go back to.
fn succeed(deploy: &mut Deploy) {
    let deployment = deploy.deployment().id;
    let evaluate = Command::EvaluateJob { key: key("web"), force_reschedule: false };
    let eval = deploy.world.submit(evaluate).unwrap().reply().evals[0];
    let status = DeploymentStatus::Successful;
    let done = DeploymentStatusChanged { deployment, status, description: "done".into() };
    let decision = deploy.settle(eval, Plan { deployment_statuses: vec![done], ..Plan::default() });
    assert!(decision.events.iter().any(|event| matches!(event, Event::JobStabilityChanged(_))));
    assert!(deploy.world.state.jobs.lookup(&key("web")).unwrap().is_stable(deploy.deployment().version));
}

/// F49.
#[test]
fn a_failed_deployment_goes_back_to_what_was_stable() {
    let reverts = DeploymentGoal { auto_revert: true, ..goal() };
    let mut deploy = Deploy::of(reverts.clone(), 0);
    succeed(&mut deploy);
    deploy.begin(job(60, 0), reverts);
    deploy.judge(2, false);
    let events = deploy.advance();
    assert_eq!(triggers(&events), [Trigger::DeploymentWatcher]);
    let why = "Failed due to unhealthy allocations - rolling back to job version 0";
    assert_eq!(deploy.outcome(), (DeploymentStatus::Failed, why));
    let owner = deploy.world.state.jobs.lookup(&key("web")).unwrap();
    assert_eq!((owner.current().version, owner.current().job.priority), (2, Some(50)));
    deploy.world.check_replay();
}

/// F49: however many registrations come in between, the newest stable version is not forgotten.
#[test]
fn the_newest_stable_version_is_kept() {
    let reverts = DeploymentGoal { auto_revert: true, ..goal() };
    let mut deploy = Deploy::of(reverts.clone(), 0);
    succeed(&mut deploy);
    for priority in 60..68 {
        deploy.begin(job(priority, 0), reverts.clone());
    }
    let versions = &deploy.world.state.jobs.lookup(&key("web")).unwrap().versions;
    assert_eq!(versions.iter().map(|kept| kept.version).collect::<Vec<_>>(), [8, 7, 6, 5, 4, 0]);
    deploy.judge(16, false);
    deploy.advance();
    let why = "Failed due to unhealthy allocations - rolling back to job version 0";
    assert_eq!(deploy.outcome(), (DeploymentStatus::Failed, why));
    deploy.world.check_replay();
}

/// F50.
#[test]
fn without_another_stable_version_it_stays_where_it_is() {
    let reverts = DeploymentGoal { auto_revert: true, ..goal() };
    let mut deploy = Deploy::of(reverts.clone(), 0);
    deploy.judge(0, false);
    deploy.advance();
    let why = "Failed due to unhealthy allocations - no stable job version to auto revert to";
    assert_eq!(deploy.outcome().1, why);

    let mut deploy = Deploy::of(reverts.clone(), 0);
    succeed(&mut deploy);
    deploy.begin(job(60, 0), reverts.clone());
    // Somebody has gone back by hand already.
    let revert = Command::RevertJob { key: key("web"), version: 0, only_from: Some(1) };
    deploy.world.submit(revert).unwrap();
    deploy.judge(2, false);
    deploy.advance();
    let why = "Failed due to unhealthy allocations - not rolling back to stable job version 0 as current job has \
               same specification";
    assert_eq!(deploy.outcome().1, why);
}

/// F60.
#[test]
fn a_pause_stops_the_clock() {
    let mut deploy = Deploy::of(goal(), 1);
    let deployment = deploy.deployment().id;
    deploy.world.submit(Command::PauseDeployment { deployment }).unwrap();
    assert_eq!(deploy.outcome(), (DeploymentStatus::Paused, "Deployment is paused"));
    deploy.wait(Duration(2 * DEADLINE.0));
    assert!(deploy.advance().is_empty(), "nothing is late meanwhile");
    let resumed = deploy.world.submit(Command::ResumeDeployment { deployment }).unwrap();
    assert_eq!(triggers(&resumed.events), [Trigger::DeploymentWatcher]);
    assert_eq!(deploy.outcome(), (DeploymentStatus::Running, "Deployment is running"));
    assert_eq!(deploy.progress().require_progress_by, deploy.world.now.plus(DEADLINE));
}

#[test]
fn what_is_over_takes_no_commands() {
    let mut deploy = Deploy::of(goal(), 1);
    let deployment = deploy.deployment().id;
    deploy.world.submit(Command::FailDeployment { deployment }).unwrap();
    assert_eq!(deploy.outcome(), (DeploymentStatus::Failed, "Deployment marked as failed"));
    let refused = |deploy: &mut Deploy, command| deploy.world.submit(command).unwrap_err().to_string();
    let index = deploy.world.state.index;
    let fail = Command::FailDeployment { deployment };
    assert_eq!(refused(&mut deploy, fail), "can't fail terminal deployment");
    let pause = Command::PauseDeployment { deployment };
    assert_eq!(refused(&mut deploy, pause), "can't pause terminal deployment");
    let resume = Command::ResumeDeployment { deployment };
    assert_eq!(refused(&mut deploy, resume), "can't resume terminal deployment");
    assert_eq!(deploy.promote().unwrap_err().to_string(), "can't promote terminal deployment");
    assert_eq!(deploy.world.state.index, index, "nothing changed");
}

#[test]
fn health_is_set_only_on_what_belongs_to_the_deployment() {
    let mut deploy = Deploy::of(goal(), 1);
    let deployment = deploy.deployment().id;
    let set = |deploy: &mut Deploy, healthy: &[AllocId], unhealthy: &[AllocId]| {
        let (healthy, unhealthy) = (healthy.to_vec(), unhealthy.to_vec());
        deploy.world.submit(Command::SetAllocHealth { deployment, healthy, unhealthy })
    };
    assert!(set(&mut deploy, &[], &[]).is_err());
    assert!(set(&mut deploy, &[alloc(9)], &[]).is_err());
    assert!(set(&mut deploy, &[alloc(0)], &[alloc(0)]).is_err());
    let events = set(&mut deploy, &[alloc(0)], &[]).unwrap().events;
    assert_eq!(triggers(&events), [Trigger::DeploymentWatcher]);
    assert_eq!(deploy.counts(), (2, 1, 0));
    set(&mut deploy, &[], &[alloc(1)]).unwrap();
    assert_eq!(deploy.outcome(), (DeploymentStatus::Failed, "Failed due to unhealthy allocations"));
    deploy.world.check_replay();
}

/// F51.
#[test]
fn what_joins_another_deployment_proves_its_health_again() {
    let mut deploy = Deploy::of(goal(), 1);
    deploy.judge(0, true);
    deploy.begin(job(60, 1), goal());
    let evaluate = Command::EvaluateJob { key: key("web"), force_reschedule: false };
    let eval = deploy.world.submit(evaluate).unwrap().reply().evals[0];
    let joined = AllocsUpdatedInPlace {
        eval,
        version: 1,
        template: Doc::of(&Template::default()),
        allocs: vec![alloc(0)],
        deployment: Some(deploy.deployment().id),
    };
    deploy.settle(eval, Plan { updated: vec![joined], ..Plan::default() });
    let moved = deploy.world.state.allocs.lookup(alloc(0)).unwrap();
    assert_eq!((moved.health.healthy, moved.deployment), (None, Some(deploy.deployment().id)));
    assert_eq!(deploy.counts(), (3, 0, 0));
    deploy.judge(0, true);
    assert_eq!(deploy.counts(), (3, 1, 0));
}

#[test]
fn an_earlier_version_becomes_the_newest_again() {
    let mut deploy = Deploy::of(goal(), 1);
    deploy.begin(job(60, 1), goal());
    let revert = |version, only_from| Command::RevertJob { key: key("web"), version, only_from };
    let refused = |deploy: &mut Deploy, command| deploy.world.submit(command).unwrap_err().to_string();
    assert_eq!(refused(&mut deploy, revert(1, None)), "can't revert to current version: 1");
    let why = "current job has version 1; enforcing version 0";
    assert_eq!(refused(&mut deploy, revert(0, Some(0))), why);
    assert!(refused(&mut deploy, revert(7, None)).ends_with("at version 7 not found"));
    let events = deploy.world.submit(revert(0, Some(1))).unwrap().events;
    assert_eq!(triggers(&events), [Trigger::JobRegister]);
    let owner = deploy.world.state.jobs.lookup(&key("web")).unwrap();
    assert_eq!((owner.current().version, owner.current().job.priority), (2, Some(50)));
}

#[test]
fn deployments_go_with_their_job() {
    let mut deploy = Deploy::of(goal(), 1);
    let deployment = deploy.deployment().id;
    let purge = Command::DeregisterJob {
        key: key("web"),
        purge: true,
        eval_priority: None,
        no_shutdown_delay: false,
    };
    deploy.world.submit(purge).unwrap();
    assert!(deploy.world.state.deployments.lookup(deployment).is_none());
    let gone = deploy.world.submit(Command::FailDeployment { deployment }).unwrap_err();
    assert_eq!(gone, Rejection::DeploymentUnknown(deployment));
    deploy.world.check_replay();
}

/// E40: failed allocations are replaced on demand, whatever their policy says.
#[test]
fn forcing_a_reschedule_marks_what_failed() {
    let mut deploy = Deploy::of(goal(), 0);
    deploy.judge(0, false);
    let evaluate = Command::EvaluateJob { key: key("web"), force_reschedule: true };
    deploy.world.submit(evaluate).unwrap();
    let forced =
        |number| deploy.world.state.allocs.lookup(alloc(number)).unwrap().transition.force_reschedule;
    assert!(forced(0) && !forced(1));
}
