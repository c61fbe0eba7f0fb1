//! Deployments of jobs that are in several regions: asks the other regions how far they are with the same job, and gives that to the
//! rules, which say what follows from it. Each leader does this for its own region; nothing is written into another one's log.

use std::sync::Arc;
use std::time::Duration;

use control::{Control, Leadership};
use futures_util::future::join_all;
use model::command::{ObserveRollout, RegionProgress};
use model::{Actor, Command, DeploymentId, DeploymentStatus, JobKey, Request};
use serde::{Deserialize, Serialize};
use state::State;

use crate::region_links::RegionLinks;

/// Between two looks at the other regions.
const PAUSE: Duration = Duration::from_secs(1);

/// What a region is asked about a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RolloutQuery {
    pub key: JobKey,
    /// Stands for the job as it was registered for all regions.
    pub rollout: String,
}

pub(crate) struct Rollouts {
    pub control: Control,
    pub links: Arc<RegionLinks>,
    pub region: String,
}

/// A deployment that may have to wait for others, or fail with them.
struct Watched {
    deployment: DeploymentId,
    query: RolloutQuery,
    peers: Vec<String>,
}

impl Rollouts {
    /// Goes on for as long as the server runs.
    pub(crate) async fn keep(self) {
        let mut leadership = self.control.leadership();
        while leadership.wait_for(|now| *now == Leadership::Mine).await.is_ok() {
            let watched = watched(&self.control.state(), &self.region);
            join_all(watched.into_iter().map(|watched| self.observe(watched))).await;
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn observe(&self, watched: Watched) {
        let Watched { deployment, query, peers } = watched;
        let asked = peers.into_iter().map(|region| async {
            let progress: Option<DeploymentStatus> = match self.links.rollout(&region, &query).await {
                Ok(progress) => progress,
                Err(error) => {
                    tracing::debug!(region, job = query.key.id, %error, "a region does not say how far it is");
                    None
                }
            };
            progress.map(|status| RegionProgress { region, status })
        });
        let peers = join_all(asked).await.into_iter().flatten().collect();
        let command = Command::ObserveRollout(Box::new(ObserveRollout { deployment, peers }));
        let actor = Actor::Server("rollouts".to_string());
        // What is not decided now is looked at again in a moment.
        if let Err(error) = self.control.submit(Request::unnamed(actor, command)).await {
            tracing::debug!(%deployment, %error, "what other regions do is not taken note of");
        }
    }
}

fn watched(state: &State, own: &str) -> Vec<Watched> {
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

/// How far this region is.
pub(crate) fn progress(state: &State, query: &RolloutQuery) -> Option<DeploymentStatus> {
    state::deployment::progress(state, &query.key, &query.rollout)
}
