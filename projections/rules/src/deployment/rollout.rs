//! Deployments of one job in several regions: when each goes on, and when it gives up. A region decides about its own
//! deployment alone, by what it has read of the others. What it cannot read it waits for.

use model::command::{ObserveRollout, RegionProgress};
use model::document::{Job, Multiregion, MultiregionStrategy};
use model::event::{DeploymentCreated, EvalCreated, Event};
use model::{DeploymentId, DeploymentStatus, JobKey, Rejection};
use state::State;
use state::deployment::Deployment;
use state::job::JobState;

use super::decide::{active, changed, evaluation, fail, known, refused};
use super::texts;
use crate::decision::{Context, Decision};

/// The deployment of a version that was just registered. The scheduler fills it with what it will place once its turn comes.
/// Only services wait for others: whatever else there is runs in all regions at once.
pub(crate) fn begun(
    ctx: &mut Context,
    key: &JobKey,
    version: u64,
    priority: u32,
    job: &Job,
) -> Option<Event> {
    let updates = job.task_groups.iter().filter_map(|group| group.update.as_ref().or(job.update.as_ref()));
    let deploys = updates.into_iter().any(|update| update.max_parallel.unwrap_or(1) > 0);
    let is_service = job.kind.as_deref() == Some("service");
    if job.rollout().is_none() || !is_service || !deploys || job.stop == Some(true) {
        return None;
    }
    let created = DeploymentCreated {
        deployment: DeploymentId(ctx.mint()),
        key: key.clone(),
        version,
        priority,
        is_multiregion: true,
        status: DeploymentStatus::Initializing,
        description: texts::WAITS_TO_BEGIN.to_string(),
        groups: Vec::new(),
    };
    Some(created.into())
}

/// The end of those that a new deployment takes the place of. The scheduler looks at the newest one alone, and ends others only in
/// the moment when it makes one itself.
pub(crate) fn superseded(state: &State, job: &JobState) -> Vec<Event> {
    let known = job.deployments.iter().map(|row| state.deployments.get(*row));
    let active = known.filter(|known| known.is_active());
    active.map(|known| changed(known, DeploymentStatus::Cancelled, texts::NEWER_VERSION)).collect()
}

/// Does what follows from how far the others are: begins, ends, or fails with them.
pub(crate) fn observe(
    state: &State,
    ctx: &mut Context,
    observed: &ObserveRollout,
) -> Result<Decision, Rejection> {
    let deployment = known(state, observed.deployment)?;
    let owner = state.jobs.get(deployment.job);
    let version = owner.version(deployment.version);
    let Some(version) = version.filter(|_| deployment.is_active() && deployment.is_multiregion) else {
        return Ok(Decision::nothing());
    };
    let own = version.job.region.as_deref().unwrap_or_default();
    let Some(regions) = &version.job.multiregion else { return Ok(Decision::nothing()) };
    let Some(rollout) = Rollout::of(regions, own, &observed.peers) else { return Ok(Decision::nothing()) };
    if rollout.fails() {
        return Ok(fail(state, ctx, deployment, texts::PEER_FAILED));
    }
    match deployment.status {
        DeploymentStatus::Pending if rollout.begins() => Ok(begin(state, ctx, deployment)),
        DeploymentStatus::Blocked if rollout.ends() => Ok(end(deployment)),
        _ => Ok(Decision::nothing()),
    }
}

/// By hand: what waits for other regions does so no longer.
pub(crate) fn unblock(state: &State, ctx: &mut Context, id: DeploymentId) -> Result<Decision, Rejection> {
    if !known(state, id)?.is_multiregion {
        return Err(refused("can't unblock a deployment of a job in one region"));
    }
    let deployment = active(state, id, "unblock")?;
    match deployment.status {
        DeploymentStatus::Pending => Ok(begin(state, ctx, deployment)),
        DeploymentStatus::Blocked => Ok(end(deployment)),
        _ => Err(refused("can't unblock a deployment that waits for no other region")),
    }
}

fn begin(state: &State, ctx: &mut Context, deployment: &Deployment) -> Decision {
    let running = changed(deployment, DeploymentStatus::Running, texts::RUNNING);
    Decision::of(vec![running, EvalCreated { eval: evaluation(state, ctx, deployment) }.into()])
}

fn end(deployment: &Deployment) -> Decision {
    changed(deployment, DeploymentStatus::Successful, texts::SUCCESSFUL).into()
}

/// The other regions of a job, as one of them sees them.
struct Rollout<'a> {
    /// How far those are that come before it, and those that come after it; nothing of those that are not known.
    before: Vec<Option<DeploymentStatus>>,
    after: Vec<Option<DeploymentStatus>>,
    parallel: usize,
    on_failure: &'a str,
}

impl<'a> Rollout<'a> {
    /// Nothing, if the region is none of them.
    fn of(block: &'a Multiregion, own: &str, peers: &[RegionProgress]) -> Option<Rollout<'a>> {
        let at = block.regions.iter().position(|region| region.name == own)?;
        let status = |name: &str| peers.iter().find(|peer| peer.region == name).map(|peer| peer.status);
        let mut all = block.regions.iter().map(|region| status(&region.name));
        let before: Vec<_> = all.by_ref().take(at).collect();
        let strategy = block.strategy.as_ref();
        let parallel = strategy.and_then(|strategy| strategy.max_parallel).unwrap_or(0);
        Some(Rollout {
            before,
            after: all.skip(1).collect(),
            parallel: usize::try_from(parallel).ok().filter(|regions| *regions > 0).unwrap_or(usize::MAX),
            on_failure: strategy.and_then(|strategy| strategy.on_failure.as_deref()).unwrap_or_default(),
        })
    }

    fn fails(&self) -> bool {
        let has_failed = |peers: &[Option<DeploymentStatus>]| peers.contains(&Some(DeploymentStatus::Failed));
        match self.on_failure {
            MultiregionStrategy::FAIL_LOCAL => false,
            MultiregionStrategy::FAIL_ALL => has_failed(&self.before) || has_failed(&self.after),
            _ => has_failed(&self.before),
        }
    }

    /// Fewer regions before it are still to come to their end than may be deployed at the same time.
    fn begins(&self) -> bool {
        self.before.iter().filter(|peer| !self.is_done(**peer)).count() < self.parallel
    }

    fn ends(&self) -> bool {
        self.before.iter().chain(&self.after).all(|peer| self.is_done(*peer))
    }

    /// Nobody waits for a region in which the job was stopped.
    fn is_done(&self, peer: Option<DeploymentStatus>) -> bool {
        use DeploymentStatus::{Blocked, Cancelled, Failed, Successful, Unblocking};
        match peer {
            Some(Blocked | Unblocking | Successful | Cancelled) => true,
            Some(Failed) => self.on_failure == MultiregionStrategy::FAIL_LOCAL,
            Some(_) | None => false,
        }
    }
}
