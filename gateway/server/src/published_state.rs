//! Whole states, as snapshot files carry them: taken from what is published, and put back through the log.

use std::sync::Arc;

use base::{Time, Uuid};
use control::{Control, SubmitError};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http_gateway::ClusterError;
use model::{Actor, Command, Image, Request, RequestId};
use raft::RaftJournal;
use state::State;

use crate::snapshot_file::{Content, Meta, StateImages};

pub(crate) struct PublishedState {
    pub control: Control,
    pub log: Arc<RaftJournal>,
    /// Our release.
    pub version: String,
}

impl StateImages for PublishedState {
    fn image(&self) -> BoxFuture<'_, Result<(Meta, Image), ClusterError>> {
        let (state, term) = (self.control.state(), self.log.status().term);
        let release = self.version.clone();
        async move {
            let made = tokio::task::spawn_blocking(move || {
                let image = state::Imager::default().image(&state);
                let contents = contents(&state);
                let created = Time::ZERO.plus(crate::start::since_1970().into());
                (Meta { created, cluster: state.cluster, index: state.index, term, release, contents }, image)
            });
            made.await.map_err(|panic| ClusterError::Failed(format!("make an image of the state: {panic}")))
        }
        .boxed()
    }

    fn install(&self, _: Meta, image: Image) -> BoxFuture<'_, Result<(), ClusterError>> {
        async move {
            let restore = Uuid::from_random(
                crate::identity::entropy().map_err(|error| ClusterError::Failed(error.to_string()))?,
            );
            let index = image.index;
            let chunks = u32::try_from(image.chunks.len())
                .map_err(|_| ClusterError::Invalid("the snapshot has too many chunks".to_string()))?;
            for (number, chunk) in (0..).zip(image.chunks) {
                let bytes = chunk.bytes.expect("a file holds every chunk").to_vec();
                self.ask(Command::GiveStateChunk { restore, number, bytes }).await?;
            }
            self.ask(Command::RestoreState { restore, chunks, image: index }).await
        }
        .boxed()
    }
}

impl PublishedState {
    async fn ask(&self, command: Command) -> Result<(), ClusterError> {
        let request = Request { id: RequestId::default(), actor: Actor::Anonymous, command };
        match self.control.submit(request).await {
            Ok(_) => Ok(()),
            Err(SubmitError::Rejected(rejection)) => Err(ClusterError::Invalid(rejection.to_string())),
            Err(error) => Err(ClusterError::Failed(error.to_string())),
        }
    }
}

/// What `operator snapshot inspect` shows.
fn contents(state: &State) -> Vec<Content> {
    let counts = [
        ("Nodes", state.nodes.len()),
        ("Jobs", state.jobs.len()),
        ("Evals", state.evals.len()),
        ("Allocs", state.allocs.len()),
    ];
    counts.map(|(kind, count)| Content { kind: kind.to_string(), count: count as u64, bytes: 0 }).into()
}
