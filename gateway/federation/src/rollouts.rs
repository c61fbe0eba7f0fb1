//! Deployments of jobs that are in several regions: which of them the leader asks other regions about, and what it makes of the
//! answers. The rules say what follows from that. Nothing is written into another region's log.

use base::Duration;
use model::command::{ObserveRollout, RegionProgress};
use model::{Command, DeploymentId, DeploymentStatus, JobKey};
use serde::{Deserialize, Serialize};
use state::State;

/// Between two looks at the other regions.
pub const PAUSE: Duration = Duration::from_secs(1);

/// What a region is asked about a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RolloutQuery {
    pub key: JobKey,
    /// Stands for the job as it was registered for all regions.
    pub rollout: String,
}

/// A deployment that may have to wait for others, or fail with them.
#[derive(Clone, Debug)]
pub struct Watched {
    pub deployment: DeploymentId,
    pub query: RolloutQuery,
    /// The other regions of the job.
    pub peers: Vec<String>,
}

/// What has to be asked now, in the region of that name.
pub fn watched(state: &State, own: &str) -> Vec<Watched> {
    let active = state.deployments.iter().map(|(_, known)| known);
    let active = active.filter(|known| known.is_multiregion && known.is_active() && !known.gone);
    let watched = active.filter_map(|known| {
        let owner = state.jobs.get(known.job);
        let block = owner.version(known.version)?.job.multiregion.clone()?;
        let peers = block.regions.iter().map(|region| region.name.clone()).filter(|name| name != own);
        let query = RolloutQuery { key: owner.key.clone(), rollout: block.rollout.clone() };
        Some(Watched { deployment: known.id, query, peers: peers.collect() })
    });
    watched.collect()
}

/// How far this region is; nothing, if the job was not registered here.
pub fn progress(state: &State, query: &RolloutQuery) -> Option<DeploymentStatus> {
    state::deployment::progress(state, &query.key, &query.rollout)
}

impl Watched {
    /// What was heard of the regions that have answered. The others are waited for.
    pub fn observed(&self, peers: Vec<RegionProgress>) -> Command {
        Command::ObserveRollout(Box::new(ObserveRollout { deployment: self.deployment, peers }))
    }
}
