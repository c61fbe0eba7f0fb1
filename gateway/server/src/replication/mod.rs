//! Follows what the authoritative region has decided for all regions: policies, roles, global tokens, namespaces, node
//! pools, and how one logs in for a global token. `compare.rs` says what is to be done about them, without a connection.
//!
//! The leader reads the lists of that region, waits there for their next change, and writes what differs into its own log.
//! Nothing is remembered: what is to be done follows from the two sides as they are, so that a new leader, and a region that
//! was cut off, catch up with their first reading.

mod compare;
mod logins;

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use control::{Control, Leadership, SubmitError};
use http_gateway::RegionError;
use keyring::Signer;
use model::command::CreateAclToken;
use model::document::{ACLPolicy, ACLToken};
use model::{Actor, Command, TokenSecret, token_secrets};
use serde::de::DeserializeOwned;
use state::node::secret_hash;
use tokio::time::{sleep, timeout};

use crate::region_links::RegionLinks;
use crate::settings::FederationSettings;
use compare::{Change, Changes, List};
use logins::Seen;

/// How long a list waits for its next change. Then it is compared again, which changes nothing as a rule.
const WAIT: &str = "60s";

/// How long an answer may take, with what a wait is lengthened by and what a large list takes.
const ANSWER_MAX: Duration = Duration::from_secs(120);

/// Largest list: twice as many tokens as there may be, of 500 bytes each.
const LIST_MAX: usize = 256 << 20;

/// Between two readings of a list: at most ten a second, as Nomad has it.
const PAUSE: Duration = Duration::from_millis(100);

/// How long to wait after a reading that failed: twice as long each time, up to what Nomad waits.
const AGAIN: Duration = Duration::from_secs(1);
const AGAIN_MAX: Duration = Duration::from_secs(30);

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
    #[error("acl.replication_token: expected a management token of the authoritative region")]
    Token,
    #[error("a secret cannot be sealed: {0}")]
    Seal(#[from] keyring::KeyError),
    #[error(transparent)]
    Submit(SubmitError),
    #[error("{0}")]
    Waits(String),
}

pub(crate) struct Replication {
    pub control: Control,
    pub links: Arc<RegionLinks>,
    pub signer: Arc<Signer>,
    pub settings: FederationSettings,
}

/// What is followed by itself: one list, or what depends on several.
enum Followed {
    List(List),
    Logins(Seen),
}

impl Followed {
    fn name(&self) -> &'static str {
        match self {
            Followed::List(List::Policies) => "policies",
            Followed::List(List::Roles) => "roles",
            Followed::List(List::Tokens) => "tokens",
            Followed::List(List::Namespaces) => "namespaces",
            Followed::List(List::Pools) => "node pools",
            Followed::Logins(_) => "auth methods and binding rules",
        }
    }
}

/// Is answered once what the path shows is newer than this.
fn waiting(path: &str, index: u64) -> String {
    format!("{path}?index={index}&wait={WAIT}")
}

impl Replication {
    /// Goes on for as long as the server runs; ends at once where there is nothing to follow.
    pub(crate) async fn keep(self) {
        if !self.settings.follows() {
            return;
        }
        let lists = futures_util::future::join_all(List::ALL.map(|list| self.follow(Followed::List(list))));
        tokio::join!(lists, self.follow(Followed::Logins(Seen::default())));
    }

    async fn follow(&self, mut followed: Followed) {
        let (mut index, mut pause, mut said) = (0, AGAIN, None::<String>);
        let mut leadership = self.control.leadership();
        // While another server leads, that one follows.
        while leadership.wait_for(|now| *now == Leadership::Mine).await.is_ok() {
            match self.round(&mut followed, index).await {
                Ok(newer) => {
                    (index, pause, said) = (newer, AGAIN, None);
                    sleep(PAUSE).await;
                }
                Err(error) => {
                    let why = error.to_string();
                    if said.as_ref() != Some(&why) {
                        let from = &self.settings.authoritative_region;
                        let what = followed.name();
                        tracing::warn!(what, from, why, "what another region decides is not all here yet");
                        said = Some(why);
                    }
                    index = 0;
                    sleep(pause).await;
                    pause = (pause * 2).min(AGAIN_MAX);
                }
            }
        }
    }

    /// Waits until a list is newer than this, and does what it asks for. How new it is.
    async fn round(&self, followed: &mut Followed, index: u64) -> Result<u64, ReplicationError> {
        if index == 0 {
            // To another token lists would seem to be shorter than they are.
            let own: ACLToken = self.read("/v1/acl/token/self").await?.1;
            own.is_management().then_some(()).ok_or(ReplicationError::Token)?;
        }
        let (newer, Changes { changes, mut waits }) = match followed {
            Followed::List(list) => self.compare_list(*list, index).await?,
            Followed::Logins(seen) => self.compare_logins(seen, index).await?,
        };
        for change in changes {
            let command = match change {
                Change::Command(command) => *command,
                Change::Policy(name) => {
                    let policy = self.read::<ACLPolicy>(&format!("/v1/acl/policy/{name}")).await?.1;
                    Command::UpsertAclPolicy(Box::new(policy))
                }
                Change::Token(stub) => {
                    let path = format!("/v1/acl/token/{}", stub.accessor_id);
                    let token = self.read::<ACLToken>(&path).await?.1;
                    self.create(ACLToken { policies: stub.policies, roles: stub.roles, ..token })?
                }
            };
            if let Some(why) = self.submit(command).await? {
                waits = Some(why);
            }
        }
        waits.map_or(Ok(newer), |why| Err(ReplicationError::Waits(why)))
    }

    /// Waits until a list is newer than this. How new it is, and what it asks for.
    async fn compare_list(&self, list: List, index: u64) -> Result<(u64, Changes), ReplicationError> {
        let (newer, read) = self.fetch(&waiting(list.path(), index)).await?;
        let compared = list.compare(&self.control.state(), &read, crate::start::since_1970());
        let unread = |why: serde_json::Error| ReplicationError::Answer {
            path: list.path().to_string(),
            why: why.to_string(),
        };
        Ok((newer, compared.map_err(unread)?))
    }

    /// The same token with the same secret, which is sealed with a key of this region.
    fn create(&self, token: ACLToken) -> Result<Command, ReplicationError> {
        let wrong = |why: &str| ReplicationError::Waits(format!("token {}: {why}", token.accessor_id));
        let accessor: base::Uuid = token.accessor_id.parse().map_err(|_| wrong("expected a UUID"))?;
        if token.secret_id.is_empty() {
            return Err(wrong("its region cannot open its secret"));
        }
        let state = self.control.state();
        let of = token_secrets(accessor);
        let sealed = self.signer.seal_secret(&state, &of, &accessor.0, token.secret_id.as_bytes())?;
        let secret = TokenSecret { digest: secret_hash(&token.secret_id), sealed };
        let token = ACLToken { secret_id: String::new(), ..token };
        Ok(Command::CreateAclToken(Box::new(CreateAclToken { token, secret })))
    }

    /// Why it is not possible now, if the rules refuse it.
    async fn submit(&self, command: Command) -> Result<Option<String>, ReplicationError> {
        let actor = Actor::Server(format!("replication:{}", self.settings.authoritative_region));
        match self.control.submit(model::Request::unnamed(actor, command)).await {
            Ok(receipt) => {
                // What is compared next includes it.
                let reached = self.control.reach(receipt.index).await;
                reached.map_err(|_| ReplicationError::Submit(SubmitError::NotLeading))?;
                Ok(None)
            }
            Err(SubmitError::Rejected(why)) => Ok(Some(why.to_string())),
            Err(error) => Err(ReplicationError::Submit(error)),
        }
    }

    async fn read<T: DeserializeOwned>(&self, path: &str) -> Result<(u64, T), ReplicationError> {
        let (index, body) = self.fetch(path).await?;
        let read = serde_json::from_slice(&body);
        let read =
            read.map_err(|error| ReplicationError::Answer { path: path.to_string(), why: error.to_string() });
        Ok((index, read?))
    }

    /// Nothing, if it is gone meanwhile.
    async fn find<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, ReplicationError> {
        match self.read(path).await {
            Ok((_, found)) => Ok(Some(found)),
            Err(ReplicationError::Refused { status: StatusCode::NOT_FOUND, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What the authoritative region answers, and how new it is.
    async fn fetch(&self, path: &str) -> Result<(u64, Bytes), ReplicationError> {
        let request = Request::builder().uri(path).header("x-nomad-token", &self.settings.replication_token);
        let wrong = |why: String| ReplicationError::Answer { path: path.to_string(), why };
        let request = request.body(Body::empty()).map_err(|error| wrong(error.to_string()))?;
        let fetched = async {
            let answer = self.links.ask_secretly(&self.settings.authoritative_region, request).await?;
            let (head, body) = answer.into_parts();
            let body = to_bytes(body, LIST_MAX).await.map_err(|error| wrong(error.to_string()))?;
            Ok::<_, ReplicationError>((head, body))
        };
        let late = |_| Err(ReplicationError::Late { path: path.to_string() });
        let (head, body) = timeout(ANSWER_MAX, fetched).await.unwrap_or_else(late)?;
        if !head.status.is_success() {
            let text = String::from_utf8_lossy(&body).into_owned();
            return Err(ReplicationError::Refused { path: path.to_string(), status: head.status, text });
        }
        let index = head.headers.get("x-nomad-index").and_then(|index| index.to_str().ok()?.parse().ok());
        Ok((index.unwrap_or(1), body))
    }
}
