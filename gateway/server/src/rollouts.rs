//! Deployments of jobs that are in several regions: asks the other regions how far they are with the same job, and gives that to the
//! rules. Each leader does this for its own region.

use std::sync::Arc;

use control::{Control, Leadership};
use federation::rollouts::{PAUSE, Watched, watched};
use futures_util::future::join_all;
use model::command::RegionProgress;
use model::{Actor, DeploymentStatus, Request};

use crate::region_links::RegionLinks;

pub(crate) struct Rollouts {
    pub control: Control,
    pub links: Arc<RegionLinks>,
    pub region: String,
}

impl Rollouts {
    /// Goes on for as long as the server runs.
    pub(crate) async fn keep(self) {
        let mut leadership = self.control.leadership();
        while leadership.wait_for(|now| *now == Leadership::Mine).await.is_ok() {
            let watched = watched(&self.control.state(), &self.region);
            join_all(watched.iter().map(|watched| self.observe(watched))).await;
            tokio::time::sleep(PAUSE.to_std()).await;
        }
    }

    async fn observe(&self, watched: &Watched) {
        let query = &watched.query;
        let asked = watched.peers.iter().map(|region| async move {
            let progress: Option<DeploymentStatus> = match self.links.rollout(region, query).await {
                Ok(progress) => progress,
                Err(error) => {
                    tracing::debug!(region, job = query.key.id, %error, "a region does not say how far it is");
                    None
                }
            };
            progress.map(|status| RegionProgress { region: region.clone(), status })
        });
        let peers = join_all(asked).await.into_iter().flatten().collect();
        let (deployment, command) = (watched.deployment, watched.observed(peers));
        let actor = Actor::Server("rollouts".to_string());
        // What is not decided now is looked at again in a moment.
        if let Err(error) = self.control.submit(Request::unnamed(actor, command)).await {
            tracing::debug!(%deployment, %error, "what other regions do is not taken note of");
        }
    }
}
