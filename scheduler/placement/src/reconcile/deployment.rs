//! The deployment of the job: which one a pass continues, cancels, begins or completes.

use std::collections::BTreeSet;
use std::sync::Arc;

use base::{Duration, Rng};
use model::document::{Job, TaskGroup, UpdateStrategy};
use model::event::{DeploymentCreated, DeploymentGoal, DeploymentGoalsChanged, DeploymentStatusChanged};
use model::{AllocId, DeploymentId, DeploymentStatus, JobType};
use rules::deployment::texts;
use state::State;
use state::alloc::Alloc;
use state::deployment::{Deployment, GroupProgress};
use state::job::{JobState, JobVersion};

use super::PassContext;
use crate::pass::plan_draft::PlanDraft;

/// The default that job canonicalisation fills in.
const PROGRESS_DEADLINE: Duration = Duration::from_secs(600);

/// The newest deployment of the job: either an old one, or the one of the current version.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rollout<'a> {
    /// Of another version, or successful: no allocation joins it any more. Beside a current one only in a job of several regions.
    pub old: Option<&'a Deployment>,
    /// Of the current version. It may have failed.
    pub current: Option<&'a Deployment>,
}

impl<'a> Rollout<'a> {
    /// Only services and system jobs have deployments.
    pub fn of(state: &'a State, job: &JobState) -> Rollout<'a> {
        let newest = job.deployments.last().map(|row| state.deployments.get(*row));
        let deploys = matches!(job.current().kind, JobType::Service | JobType::System);
        let Some(newest) = newest.filter(|_| deploys) else { return Rollout::default() };
        let over = newest.status == DeploymentStatus::Successful;
        if over || !job.is_wanted() || !newest.is_of(job.current()) {
            Rollout { old: Some(newest), current: None }
        } else {
            let before = || job.deployments.iter().rev().skip(1).map(|row| state.deployments.get(*row));
            let left_canaries = |old: &&Deployment| {
                let mut groups = old.groups.values();
                !old.is_of(job.current())
                    && groups.any(|group| !group.promoted && !group.placed_canaries.is_empty())
            };
            // One of several regions begins with its version: nobody has seen to what one before has left behind.
            let old = newest.is_multiregion.then(|| before().find(left_canaries)).flatten();
            Rollout { old, current: Some(newest) }
        }
    }

    /// Cancels an old deployment that is still active.
    pub fn cancelled(&self, job: &JobState) -> Option<DeploymentStatusChanged> {
        let why = if job.is_wanted() { texts::NEWER_VERSION } else { texts::JOB_STOPPED };
        let old = self.old.filter(|old| old.is_active())?;
        Some(changed(old.id, DeploymentStatus::Cancelled, why))
    }

    pub fn latest(&self) -> Option<&'a Deployment> {
        self.current.or(self.old)
    }

    pub fn active(&self) -> Option<&'a Deployment> {
        self.current.filter(|current| current.is_active())
    }

    pub fn is_paused(&self) -> bool {
        use DeploymentStatus::{Initializing, Paused, Pending};
        self.current.is_some_and(|current| matches!(current.status, Paused | Pending | Initializing))
    }

    pub fn is_failed(&self) -> bool {
        self.current.is_some_and(|current| current.status == DeploymentStatus::Failed)
    }

    pub fn holds(&self, alloc: &Alloc) -> bool {
        self.current.is_some_and(|current| alloc.deployment == Some(current.id))
    }

    /// Canaries of old and failed deployments that were never promoted.
    pub fn unneeded_canaries(&self) -> BTreeSet<AllocId> {
        let over = self.old.into_iter().chain(self.current.filter(|_| self.is_failed()));
        let groups = over.flat_map(|deployment| deployment.groups.values()).filter(|group| !group.promoted);
        groups.flat_map(|group| &group.placed_canaries).copied().collect()
    }

    pub fn canaries(&self) -> BTreeSet<AllocId> {
        let groups = self.current.into_iter().flat_map(|current| current.groups.values());
        groups.flat_map(|group| &group.placed_canaries).copied().collect()
    }
}

/// The state of a group in the deployment of the current version.
#[derive(Clone, Debug)]
pub struct GroupDeployment {
    /// `None` if the group is replaced all at once.
    pub update: Option<UpdateStrategy>,
    /// The group is already part of the deployment.
    pub existing: bool,
    pub goal: DeploymentGoal,
    before: DeploymentGoal,
    promoted: bool,
    healthy: u32,
}

impl GroupDeployment {
    pub fn of(cx: &PassContext, name: &str, group: &TaskGroup) -> GroupDeployment {
        let update = update_block(&cx.job.current().job, group).cloned();
        let known = cx.rollout.current.and_then(|current| current.groups.get(name));
        let goal = known.map_or_else(|| fresh(name, update.as_ref()), |known| known.goal.clone());
        GroupDeployment {
            update,
            existing: known.is_some(),
            before: goal.clone(),
            goal,
            promoted: known.is_some_and(|known| known.promoted),
            healthy: known.map_or(0, |known| known.healthy),
        }
    }

    pub fn is_canarying(&self) -> bool {
        self.goal.desired_canaries > 0 && !self.promoted
    }

    /// How many allocations may be updated at once; `None`: no limit.
    pub fn max_parallel(&self) -> Option<usize> {
        self.update.as_ref().and_then(max_parallel)
    }

    /// How many canaries have to be placed before the rest is updated; 0 once they were promoted.
    pub fn canaries_wanted(&self) -> u32 {
        let canary = self.update.as_ref().and_then(|update| update.canary).unwrap_or(0);
        if self.promoted { 0 } else { u32::try_from(canary).unwrap_or(0) }
    }

    /// A system job begins a deployment only for a version that has not run on any node yet.
    pub fn begins_per_node(&self, cx: &PassContext, allocs: &[&Alloc]) -> bool {
        let rollout = &cx.rollout;
        let rests = rollout.is_paused() || rollout.is_failed();
        let deployed = rollout.old.is_some_and(|old| old.is_of(cx.job.current()));
        let has_run = allocs.iter().any(|alloc| cx.is_current(&alloc.version));
        let deploys = cx.job.current().kind == JobType::System && self.update.is_some();
        deploys && !self.existing && !rests && !deployed && !has_run
    }

    /// Everything that the deployment waits for is healthy and promoted.
    pub fn is_complete(&self) -> bool {
        let wanted = self.goal.desired_total.max(self.goal.desired_canaries);
        !self.existing || (self.healthy >= wanted && !self.is_canarying())
    }

    /// The goal, if it differs from what the deployment has.
    pub fn news(self, begins: bool) -> Option<DeploymentGoal> {
        let changed = if self.existing { self.goal != self.before } else { begins };
        changed.then_some(self.goal)
    }
}

fn fresh(name: &str, update: Option<&UpdateStrategy>) -> DeploymentGoal {
    let deadline = update.and_then(|update| update.progress_deadline);
    DeploymentGoal {
        group: name.to_string(),
        auto_revert: update.and_then(|update| update.auto_revert).unwrap_or(false),
        auto_promote: update.and_then(|update| update.auto_promote).unwrap_or(false),
        progress_deadline: deadline.map_or(PROGRESS_DEADLINE, |span| span.0),
        desired_canaries: 0,
        desired_total: 0,
    }
}

/// The `update` block of the group, or else of the job; `None` if it sets no limit. Batch jobs ignore it: they replace
/// all at once.
pub fn update_block<'j>(job: &'j Job, group: &'j TaskGroup) -> Option<&'j UpdateStrategy> {
    let update = group.update.as_ref().or(job.update.as_ref());
    update.filter(|update| job.kind.as_deref() != Some("batch") && max_parallel(update).is_some())
}

pub fn max_parallel(update: &UpdateStrategy) -> Option<usize> {
    let parallel = update.max_parallel.unwrap_or(1);
    usize::try_from(parallel).ok().filter(|parallel| *parallel > 0)
}

/// What the groups of a pass decide about the deployment.
#[derive(Debug, Default)]
pub struct Summary {
    pub goals: Vec<DeploymentGoal>,
    /// Every group is complete.
    pub complete: bool,
}

/// Puts the changes of deployments into the plan. Returns the deployment that the plan's placements join.
pub fn conclude(
    cx: &PassContext,
    draft: &mut PlanDraft,
    seed: u64,
    summary: Summary,
) -> Option<DeploymentId> {
    let plan = &mut draft.plan;
    let rollout = &cx.rollout;
    plan.deployment_statuses.extend(rollout.cancelled(cx.job));
    let current = match (rollout.current, summary.goals) {
        (None, goals) if goals.is_empty() => return None,
        (None, goals) => {
            let created = created(cx, seed, goals);
            let id = created.deployment;
            plan.deployment = Some(created);
            return Some(id);
        }
        (Some(current), groups) => {
            if !groups.is_empty() && current.is_active() {
                plan.goals = Some(DeploymentGoalsChanged { deployment: current.id, groups });
            }
            current
        }
    };
    let next = if current.status == DeploymentStatus::Initializing {
        Some((DeploymentStatus::Pending, texts::WAITS_TO_BEGIN))
    } else if summary.complete {
        completed(current)
    } else {
        None
    };
    plan.deployment_statuses.extend(next.map(|(status, why)| changed(current.id, status, why)));
    current.is_active().then_some(current.id)
}

/// The next status of a complete deployment. A failed one stays failed.
fn completed(current: &Deployment) -> Option<(DeploymentStatus, &'static str)> {
    use DeploymentStatus::{Blocked, Successful, Unblocking};
    match (current.is_multiregion, current.status) {
        (_, status) if !status.is_active() => None,
        (true, Blocked | Unblocking) => None,
        (true, _) => Some((Blocked, texts::WAITS_FOR_PEER)),
        (false, _) => Some((Successful, texts::SUCCESSFUL)),
    }
}

/// The id of a deployment that begins in this pass.
pub fn fresh_id(seed: u64) -> DeploymentId {
    DeploymentId(Rng::stream(seed, "deployment").uuid())
}

fn created(cx: &PassContext, seed: u64, groups: Vec<DeploymentGoal>) -> DeploymentCreated {
    let version = cx.job.current();
    let mut canaries = groups.iter().filter(|goal| goal.desired_canaries > 0);
    let description = if groups.iter().all(|goal| goal.desired_canaries == 0) {
        texts::RUNNING
    } else if canaries.all(|goal| goal.auto_promote) {
        texts::PROMOTES_ITSELF
    } else {
        texts::NEEDS_PROMOTION
    };
    DeploymentCreated {
        deployment: fresh_id(seed),
        key: cx.job.key.clone(),
        version: version.version,
        priority: cx.eval.facts.priority,
        is_multiregion: version.job.rollout().is_some(),
        status: DeploymentStatus::Running,
        description: description.to_string(),
        groups,
    }
}

fn changed(deployment: DeploymentId, status: DeploymentStatus, description: &str) -> DeploymentStatusChanged {
    DeploymentStatusChanged { deployment, status, description: description.to_string() }
}

/// The version that replacements get while canaries of the current version run: the newest one whose deployment was
/// promoted or had no canaries, and not older than `previous`. With it the deployment that they join.
///
/// Nomad also takes a version that failed without canaries. Here a failed version gets no further allocations.
pub fn proven<'a>(
    cx: &PassContext<'a>,
    group: &str,
    previous: &'a Arc<JobVersion>,
) -> Option<(&'a Arc<JobVersion>, Option<DeploymentId>)> {
    let past = |progress: &GroupProgress| progress.promoted || progress.goal.desired_canaries == 0;
    let all = cx.job.deployments.iter().map(|row| cx.state.deployments.get(*row));
    let proven = all.filter(|deployment| {
        let of_this_job = deployment.job_created == cx.job.current().job_created;
        let failed = deployment.status == DeploymentStatus::Failed;
        of_this_job && !failed && deployment.groups.get(group).is_some_and(past)
    });
    let (version, deployment) = match proven.max_by_key(|deployment| (deployment.version, deployment.created))
    {
        Some(deployment) => (cx.job.version(deployment.version)?, Some(deployment.id)),
        None => {
            let version = cx.job.version(previous.version)?;
            let update = version.job.update.as_ref();
            let unlimited = update.and_then(max_parallel).is_none();
            (Some(version).filter(|_| unlimited)?, None)
        }
    };
    let fits = version.version >= previous.version && version.group(group).is_some();
    fits.then_some((version, deployment))
}
