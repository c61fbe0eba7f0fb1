//! Who calls, and what this server signs for nodes and their tasks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::{Time, Uuid};
use control::SubmitError;
use keyring::{
    Admission, Claims, Holder, KeyError, NodeClaims, Presented, Workload, is_expired, key_of, uses_identity,
};
use model::document::{Map, Node};
use model::{AllocId, NodeId, Rejection};
use state::State;
use state::node::secret_hash;
use wire::RemoteError;

use super::{Rpc, refused};
use crate::start::since_1970;

/// How long a node waits for the tokens of its tasks while this server cannot sign: the first key is drawn, or a copy is
/// on its way.
const KEY_WAIT: Duration = Duration::from_secs(10);

/// The release of Nomad whose nodes first knew what to do with an identity.
const IDENTITIES_SINCE: (u32, u32) = (1, 11);

/// How a node has proven that it is the one it says.
#[derive(Debug)]
pub(super) enum Proof {
    Secret,
    Identity(Arc<Claims>),
}

impl Proof {
    fn claims(&self) -> Option<&Claims> {
        match self {
            Proof::Secret => None,
            Proof::Identity(claims) => Some(claims),
        }
    }
}

/// For what is valid for a while, never for what is decided in the log.
pub(super) fn now() -> Time {
    Time::ZERO.plus(since_1970().into())
}

/// Signed tokens have dots, secrets have none.
fn is_signed(token: &str) -> bool {
    token.contains('.')
}

impl Rpc {
    /// The node a caller says it is, if it proves that.
    pub(super) fn authenticate(
        &self,
        state: &State,
        node_id: &str,
        token: &str,
    ) -> Result<(NodeId, Proof), RemoteError> {
        let node: NodeId = node_id.parse().map_err(|_| "missing or malformed node ID")?;
        let row = state.nodes.find(node);
        let row = row.ok_or_else(|| refused(SubmitError::Rejected(Rejection::NodeUnknown(node))))?;
        if is_signed(token) {
            return match self.identity(state, token) {
                Some((of, claims)) if of == node => Ok((node, Proof::Identity(claims))),
                _ => Err(RemoteError::permission_denied()),
            };
        }
        // Only digests are compared: the time it takes says nothing about the secret.
        if state.nodes.cold(row).secret_hash != secret_hash(token) {
            return Err(RemoteError::permission_denied());
        }
        Ok((node, Proof::Secret))
    }

    /// The node that a token belongs to. With a secret every node has to be looked at, the one that `alloc` is on first: who
    /// asks for an allocation mostly runs it.
    pub(super) fn caller(
        &self,
        state: &State,
        token: &str,
        alloc: Option<AllocId>,
    ) -> Result<NodeId, RemoteError> {
        let found = if is_signed(token) {
            self.identity(state, token).map(|(node, _)| node)
        } else {
            let hash = secret_hash(token);
            let likely = alloc.and_then(|id| state.allocs.lookup(id)).map(|alloc| alloc.node);
            let mut nodes = likely.into_iter().chain(state.nodes.rows()).map(|row| state.nodes.cold(row));
            nodes.find(|node| node.secret_hash == hash).map(|node| node.id)
        };
        found.filter(|node| state.nodes.find(*node).is_some()).ok_or_else(RemoteError::permission_denied)
    }

    /// # Errors
    /// The node is new, and not introduced as the configuration asks for.
    pub(super) fn check_introduction(
        &self,
        state: &State,
        id: NodeId,
        node: &Node,
        token: &str,
    ) -> Result<(), RemoteError> {
        let presented = match token {
            "" => Presented::Nothing,
            // Agents of before 1.11 present the secret that they are about to make known.
            own if own == node.secret_id => Presented::Nothing,
            _ if !is_signed(token) => Presented::Invalid,
            _ => match keyring::verify(&state.keyring, token, now()) {
                Ok(claims) if !is_expired(&claims, now()) => Presented::Token(Box::new(claims)),
                _ => Presented::Invalid,
            },
        };
        let claims = claims_of(id, node);
        match keyring::admit(self.introduction.enforcement, &presented, &claims, &node.name) {
            Admission::Allowed => Ok(()),
            Admission::Unproven => {
                tracing::warn!(
                    node = node.id,
                    name = node.name,
                    "a new node registers without an introduction"
                );
                Ok(())
            }
            Admission::Denied => Err(RemoteError::permission_denied()),
        }
    }

    /// A new identity for a node, if it needs one. While none can be signed, its secret or the one it has still works.
    pub(super) async fn node_identity(
        &self,
        state: &State,
        node: NodeId,
        proof: &Proof,
        force: bool,
    ) -> Option<String> {
        let document = &state.nodes.cold(state.nodes.find(node)?).document;
        if state::node::nomad_release(document)? < IDENTITIES_SINCE {
            return None;
        }
        let claims = claims_of(node, document);
        let ttl = state::pool::document(&state.pools, &claims.pool)?.node_identity_ttl.0;
        let is_good = proof.claims().is_some_and(|held| !held.is_outdated(&claims, now(), ttl));
        if is_good && !force {
            return None;
        }
        let (key, _) = state.keyring.active()?;
        let wanted = vec![(key, Claims::of_node(&self.region, claims, now(), ttl))];
        match self.sign_all(state, wanted).await {
            Ok(mut signed) => signed.pop(),
            Err(why) => {
                tracing::debug!(%node, why, "no identity is signed for now");
                None
            }
        }
    }

    /// The node of an identity that this cluster has signed and that has not expired.
    fn identity(&self, state: &State, token: &str) -> Option<(NodeId, Arc<Claims>)> {
        let claims = self.verified.verify(&state.keyring, token, now()).ok()?;
        match &claims.holder {
            Holder::Node(node) if !is_expired(&claims, now()) => Some((NodeId(node.id), claims)),
            _ => None,
        }
    }

    /// The tokens of the default identities of tasks that use them, by allocation and task; only of this node.
    pub(super) async fn default_identities(
        &self,
        ids: &[AllocId],
        node: NodeId,
    ) -> BTreeMap<AllocId, Map<String, String>> {
        let mut news = self.control.watch();
        let deadline = tokio::time::Instant::now() + KEY_WAIT;
        loop {
            news.borrow_and_update();
            let state = self.state();
            let (owners, wanted): (Vec<_>, Vec<_>) =
                self.wanted_identities(&state, ids, node).into_iter().unzip();
            match self.sign_all(&state, wanted).await {
                Ok(tokens) => {
                    let mut signed: BTreeMap<AllocId, Map<String, String>> = BTreeMap::new();
                    for ((alloc, task), token) in owners.into_iter().zip(tokens) {
                        signed.entry(alloc).or_default().0.insert(task, token);
                    }
                    return signed;
                }
                Err(why) => {
                    if !matches!(tokio::time::timeout_at(deadline, news.changed()).await, Ok(Ok(()))) {
                        tracing::warn!(%node, why, "tasks begin without their identities");
                        return BTreeMap::new();
                    }
                }
            }
        }
    }

    /// What is to be signed for the tasks of these allocations, and with which key; the nil one while there is none.
    fn wanted_identities(
        &self,
        state: &State,
        ids: &[AllocId],
        node: NodeId,
    ) -> Vec<((AllocId, String), (Uuid, Claims))> {
        let found = ids.iter().filter_map(|id| state.allocs.lookup(*id));
        let own = found.filter(|alloc| alloc.node_id == node);
        let tasks = own.flat_map(|alloc| {
            let group = alloc.version.group(&alloc.group);
            group.into_iter().flat_map(|group| &*group.tasks).map(move |task| (alloc, task))
        });
        let using = tasks.filter(|(_, task)| uses_identity(task));
        using
            .filter_map(|(alloc, task)| {
                let workload = Workload::Task(&task.name);
                let time = alloc.create_time;
                let claims =
                    Claims::of_workload(state, &self.region, alloc, workload, "default", time).ok()?;
                let key = key_of(&state.keyring, alloc.created).unwrap_or(Uuid::NIL);
                Some(((alloc.id, task.name.clone()), (key, claims)))
            })
            .collect()
    }

    /// Signs beside the threads that serve calls.
    pub(super) async fn sign_all(
        &self,
        state: &State,
        wanted: Vec<(Uuid, Claims)>,
    ) -> Result<Vec<String>, String> {
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let (signer, keyring) = (Arc::clone(&self.signer), state.keyring.clone());
        let sign = move || {
            let signed = wanted.iter().map(|(key, claims)| signer.sign(&keyring, *key, claims));
            signed.collect::<Result<Vec<String>, KeyError>>()
        };
        let signed = tokio::task::spawn_blocking(sign).await.map_err(|panic| panic.to_string())?;
        signed.map_err(|error| error.to_string())
    }
}

fn claims_of(id: NodeId, node: &Node) -> NodeClaims {
    NodeClaims {
        id: id.0,
        pool: if node.node_pool.is_empty() { "default".to_string() } else { node.node_pool.clone() },
        class: node.node_class.clone(),
        datacenter: node.datacenter.clone(),
    }
}
