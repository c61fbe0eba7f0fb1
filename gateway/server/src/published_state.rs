//! Whole states, as snapshot files carry them: taken from what is published, and put back through the log.

use std::sync::Arc;

use base::{Time, Uuid};
use control::{Control, SubmitError};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http_gateway::ClusterError;
use model::{Actor, Command, Image, Request};
use raft::RaftJournal;
use state::State;
use state::operator::{RESTORED_BYTES_MAX, pieces_of};

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
            let image = readable(image).await?;
            let chunks =
                image.chunks.iter().map(|chunk| chunk.bytes.as_ref().expect("a file holds every chunk"));
            let mut pieces = 0_u32;
            for piece in chunks.flat_map(|chunk| pieces_of(chunk)) {
                let give = Command::GiveStateChunk { restore, number: pieces, bytes: piece.to_vec() };
                self.ask(give).await?;
                pieces += 1;
            }
            self.ask(Command::RestoreState { restore, chunks: pieces, image: image.index }).await
        }
        .boxed()
    }
}

impl PublishedState {
    async fn ask(&self, command: Command) -> Result<(), ClusterError> {
        let request = Request::unnamed(Actor::ANONYMOUS, command);
        match self.control.submit(request).await {
            Ok(_) => Ok(()),
            Err(SubmitError::Rejected(rejection)) => Err(ClusterError::Invalid(rejection.to_string())),
            Err(error) => Err(ClusterError::Failed(error.to_string())),
        }
    }
}

/// Looks for a state in an image before the log gets any of it: pieces of what cannot be restored would stay there, and no
/// image of the state is kept while they wait for the rest.
async fn readable(image: Image) -> Result<Image, ClusterError> {
    let bytes: u64 =
        image.chunks.iter().filter_map(|chunk| chunk.bytes.as_ref()).map(|b| b.len() as u64).sum();
    if bytes > RESTORED_BYTES_MAX {
        let text = format!("the state has {bytes} bytes, and at most {RESTORED_BYTES_MAX} can be restored");
        return Err(ClusterError::Invalid(text));
    }
    let read = tokio::task::spawn_blocking(move || state::restore(&image).map(|_| image));
    let read = read.await.map_err(|panic| ClusterError::Failed(format!("read the state: {panic}")))?;
    read.map_err(|error| ClusterError::Invalid(error.to_string()))
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
