//! Follows what the authoritative region has decided for all regions: policies, roles, global tokens, namespaces, node
//! pools, and how one logs in for a global token. `federation` decides; here its followers get what they need: answers of that
//! region, sealed secrets, decisions of this one.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use base::{Time, Uuid};
use control::{Control, Leadership, SubmitError};
use federation::{Answer, Failure, Follower, Need, Outcome, Submitted};
use http_gateway::RegionError;
use keyring::Signer;
use model::{Actor, Command, TokenSecret, token_secrets};
use state::node::secret_hash;
use tokio::time::{sleep, timeout};

use crate::region_links::RegionLinks;
use crate::settings::FederationSettings;
use crate::start::since_1970;

/// How long an answer may take, with what a wait is lengthened by and what a large list takes.
const ANSWER_MAX: Duration = Duration::from_secs(120);

/// Largest list: twice as many tokens as there may be, of 500 bytes each.
const LIST_MAX: usize = 256 << 20;

#[derive(Debug, thiserror::Error)]
enum ReplicationError {
    #[error(transparent)]
    Region(#[from] RegionError),
    #[error("{path} is answered with {status}: {text}")]
    Refused { path: String, status: StatusCode, text: String },
    #[error("{path} takes too long")]
    Late { path: String },
    #[error("the answer to {path} cannot be read: {why}")]
    Answer { path: String, why: String },
}

impl From<ReplicationError> for Failure {
    fn from(error: ReplicationError) -> Failure {
        match error {
            ReplicationError::Refused { status: StatusCode::NOT_FOUND, .. } => {
                Failure::Gone(error.to_string())
            }
            error => Failure::Other(error.to_string()),
        }
    }
}

pub(crate) struct Replication {
    pub control: Control,
    pub links: Arc<RegionLinks>,
    pub signer: Arc<Signer>,
    pub settings: FederationSettings,
}

impl Replication {
    /// Goes on for as long as the server runs; ends at once where there is nothing to follow.
    pub(crate) async fn keep(self) {
        if !self.settings.follows() {
            return;
        }
        futures_util::future::join_all(Follower::all().into_iter().map(|follower| self.follow(follower)))
            .await;
    }

    async fn follow(&self, mut follower: Follower) {
        let mut leadership = self.control.leadership();
        let mut need = follower.begin();
        loop {
            let outcome = match need {
                Need::Rest(span) => {
                    sleep(span.to_std()).await;
                    // While another server leads, that one follows.
                    if leadership.wait_for(|now| *now == Leadership::Mine).await.is_err() {
                        return;
                    }
                    Outcome::Rested
                }
                Need::Read(path) => Outcome::Read(self.fetch(&path).await.map_err(Failure::from)),
                Need::Seal { accessor, secret } => Outcome::Sealed(self.seal(accessor, &secret)),
                Need::Submit(command) => Outcome::Submitted(self.submit(*command).await),
            };
            let now = Time::ZERO.plus(since_1970().into());
            need = follower.step(outcome, &self.control.state(), now);
            if let Some(why) = follower.news() {
                let (what, from) = (follower.name(), &self.settings.authoritative_region);
                tracing::warn!(what, from, why, "what another region decides is not all here yet");
            }
        }
    }

    fn seal(&self, accessor: Uuid, secret: &str) -> Result<TokenSecret, String> {
        let (state, of) = (self.control.state(), token_secrets(accessor));
        let sealed = self.signer.seal_secret(&state, &of, &accessor.0, secret.as_bytes());
        let sealed = sealed.map_err(|error| error.to_string())?;
        Ok(TokenSecret { digest: secret_hash(secret), sealed })
    }

    async fn submit(&self, command: Command) -> Submitted {
        let actor = Actor::Server(format!("replication:{}", self.settings.authoritative_region));
        match self.control.submit(model::Request::unnamed(actor, command)).await {
            // What is compared next includes it.
            Ok(receipt) => match self.control.reach(receipt.index).await {
                Ok(_) => Submitted::Done,
                Err(_) => Submitted::Unknown(SubmitError::NotLeading.to_string()),
            },
            Err(SubmitError::Rejected(why)) => Submitted::Rejected(why.to_string()),
            Err(error) => Submitted::Unknown(error.to_string()),
        }
    }

    /// What the authoritative region answers, and how new it is.
    async fn fetch(&self, path: &str) -> Result<Answer, ReplicationError> {
        let request = Request::builder().uri(path).header("x-nomad-token", &self.settings.replication_token);
        let wrong = |why: String| ReplicationError::Answer { path: path.to_string(), why };
        let request = request.body(Body::empty()).map_err(|error| wrong(error.to_string()))?;
        let fetched = async {
            let answer = self.links.ask_secretly(&self.settings.authoritative_region, request).await?;
            let (head, body) = answer.into_parts();
            let body: Bytes = to_bytes(body, LIST_MAX).await.map_err(|error| wrong(error.to_string()))?;
            Ok::<_, ReplicationError>((head, body))
        };
        let late = |_| Err(ReplicationError::Late { path: path.to_string() });
        let (head, body) = timeout(ANSWER_MAX, fetched).await.unwrap_or_else(late)?;
        if !head.status.is_success() {
            let text = String::from_utf8_lossy(&body).into_owned();
            return Err(ReplicationError::Refused { path: path.to_string(), status: head.status, text });
        }
        let index = head.headers.get("x-nomad-index").and_then(|index| index.to_str().ok()?.parse().ok());
        Ok(Answer { index: index.unwrap_or(1), body })
    }
}
