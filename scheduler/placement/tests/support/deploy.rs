//! What tests of deployments do and look at.

use base::Duration;
use model::document::{AllocDeploymentStatus, Job, ReschedulePolicy, UpdateStrategy};
use model::event::{AllocTransitionRequested, DeploymentCreated, DeploymentGoal, DeploymentStatusChanged};
use model::{Actor, AllocId, ClientStatus, Command, DeploymentId, DeploymentStatus};
use placement::Outcome;
use rules::Decision;
use state::alloc::Alloc;
use state::deployment::{Deployment, GroupProgress};

use super::{With, World, group, job, key};

impl World {
    /// Its node says that it runs, and is well or not.
    pub fn judge(&mut self, alloc: AllocId, healthy: bool) {
        let status = if healthy { ClientStatus::Running } else { ClientStatus::Failed };
        let mut update = self.update(alloc, status);
        update.deployment_status = Some(AllocDeploymentStatus {
            healthy: Some(healthy),
            timestamp: self.now.into(),
            ..AllocDeploymentStatus::default()
        });
        let node = self.alloc(alloc).node_id;
        self.command(Actor::Node(node), Command::UpdateAllocs { node, updates: vec![update] });
    }

    /// This many allocations of the newest deployment whose health is not known yet become healthy.
    pub fn heal(&mut self, count: usize) {
        let deployment = self.deployment().id;
        let open = |alloc: &&&Alloc| {
            alloc.deployment == Some(deployment) && alloc.health.healthy.is_none() && !alloc.is_terminal()
        };
        let wanted = self.wanted();
        let open: Vec<AllocId> = wanted.iter().filter(open).map(|alloc| alloc.id).take(count).collect();
        assert_eq!(open.len(), count, "so many wait to be judged");
        open.into_iter().for_each(|alloc| self.judge(alloc, true));
    }

    /// The newest deployment of the job.
    pub fn deployment(&self) -> &Deployment {
        let job = self.state.jobs.lookup(&key()).expect("the job is known");
        let row = job.deployments.last().expect("the job has a deployment");
        self.state.deployments.get(*row)
    }

    /// Its only group.
    pub fn progress(&self) -> &GroupProgress {
        self.deployment().groups.get("web").expect("the group is part of the deployment")
    }

    /// What is due for the newest deployment is done, as the leader's watcher would have it.
    pub fn advance(&mut self) -> Decision {
        let deployment = self.deployment().id;
        self.submit(Command::AdvanceDeployment { deployment })
    }

    /// Everything becomes well, step by step, until the newest deployment is over.
    pub fn deploy(&mut self) {
        for _ in 0..100 {
            let deployment = self.deployment();
            let (id, active) = (deployment.id, deployment.is_active());
            if !active {
                break;
            }
            let open = |alloc: &&Alloc| alloc.deployment == Some(id) && alloc.health.healthy.is_none();
            let open: Vec<AllocId> = self.wanted().into_iter().filter(open).map(|alloc| alloc.id).collect();
            self.pass(10);
            open.into_iter().for_each(|alloc| self.judge(alloc, true));
            self.advance();
            if !self.pending().is_empty() {
                self.work_off();
            }
        }
        assert_eq!(self.deployment().status, DeploymentStatus::Successful, "{:#?}", self.deployment());
    }

    pub fn set_status(&mut self, status: DeploymentStatus) {
        let deployment = self.deployment().id;
        self.event(DeploymentStatusChanged { deployment, status, description: "by hand".into() });
    }

    pub fn promote(&mut self) -> Outcome {
        let deployment = self.deployment().id;
        self.submit(Command::PromoteDeployment { deployment, groups: Vec::new() });
        self.work_off()
    }

    /// Registers the job and schedules it.
    pub fn run(&mut self, job: Job) -> Outcome {
        let eval = self.register(job);
        self.settle(eval)
    }

    /// Some allocations are asked to migrate, as a drain does.
    pub fn drain(&mut self, allocs: Vec<AllocId>) {
        self.event(AllocTransitionRequested {
            allocs,
            migrate: true,
            reschedule: false,
            no_shutdown_delay: false,
            force_reschedule: false,
            disable_placement: false,
            cause: "drain".into(),
        });
    }

    /// The same job, in place with a policy that replaces at once.
    pub fn with_policy(mut self) -> World {
        let count = self.wanted().len() as i64;
        self.run(job("service", count).with(at_once));
        self
    }

    /// The oldest evaluation that is pending: it sees all that happened.
    pub fn next(&mut self) -> Outcome {
        let next = self.pending()[0];
        self.settle(next)
    }

    /// The node says that it is unwell after all.
    pub fn judge_again(&mut self, alloc: AllocId) {
        self.pass(1);
        self.judge(alloc, false);
    }
}

/// So many may be on their way at once; with canaries, if there are any.
pub fn rolling(parallel: i64, canary: i64) -> impl Fn(&mut Job) {
    move |job| {
        group(job).update = Some(UpdateStrategy {
            max_parallel: Some(parallel),
            canary: Some(canary),
            min_healthy_time: Some(Duration::from_secs(10).into()),
            healthy_deadline: Some(Duration::from_secs(300).into()),
            progress_deadline: Some(Duration::from_secs(600).into()),
            ..UpdateStrategy::default()
        });
    }
}

/// The job runs without ever having had a deployment.
pub fn old(count: i64) -> World {
    World::running(job("service", count), 2 * count as u128)
}

/// Failed allocations are replaced at once.
pub fn at_once(job: &mut Job) {
    let delay = Some(Duration::ZERO.into());
    group(job).reschedule_policy =
        Some(ReschedulePolicy { unlimited: Some(true), delay, ..ReschedulePolicy::default() });
}

/// What the plan does to deployments that were there before.
pub fn statuses(outcome: &Outcome) -> Vec<(DeploymentStatus, &str)> {
    let changed = outcome.settlement.plan.deployment_statuses.iter();
    changed.map(|changed| (changed.status, changed.description.as_str())).collect()
}

pub fn began(outcome: &Outcome) -> Option<&DeploymentCreated> {
    outcome.settlement.plan.deployment.as_ref()
}

/// Versions and deployments of what the plan places, with names and whether they are canaries.
pub fn placements(outcome: &Outcome) -> Vec<(u64, Option<DeploymentId>, Vec<u32>, bool)> {
    let placed = outcome.settlement.plan.placed.iter();
    placed.map(|event| (event.version, event.deployment, event.names.clone(), event.canary)).collect()
}

pub fn host(world: &World, name: u32) -> u128 {
    world.node_of(world.named(name))
}

/// The wanted allocation of that name that is no canary.
pub fn member(world: &World, name: u32) -> AllocId {
    let wanted = world.wanted();
    let mut named = wanted.iter().filter(|alloc| alloc.name_index == name && !alloc.health.canary);
    named.next().expect("the name is held").id
}

pub fn canaries(world: &World) -> Vec<AllocId> {
    world.wanted().iter().filter(|alloc| alloc.health.canary).map(|alloc| alloc.id).collect()
}

/// A deployment of the job's newest version that no plan made.
pub fn begin(world: &mut World, is_multiregion: bool, status: DeploymentStatus, desired_total: u32) {
    let version = world.state.jobs.lookup(&key()).unwrap().current().version;
    let goal = DeploymentGoal { group: "web".into(), desired_total, ..DeploymentGoal::default() };
    world.event(DeploymentCreated {
        deployment: DeploymentId(base::Uuid::from(0xdeb)),
        key: key(),
        version,
        priority: 50,
        is_multiregion,
        status,
        description: "by hand".into(),
        groups: vec![goal],
    });
}
