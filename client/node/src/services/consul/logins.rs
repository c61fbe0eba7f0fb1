//! Tokens of services: one with an identity of its own is logged in before it is registered, and everything about it is said
//! with its token. The tokens are kept in the local state for the next agent.

use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;
use wire::messages::WorkloadIdentityRequest;

use super::client::ConsulError;
use super::{Consul, Registration};
use crate::remote::ServerQueries;
use crate::returned::ReturnedToken;
use crate::store::Store;

/// How long the servers may take to sign.
const SIGNED_WITHIN: Duration = Duration::from_secs(10);

/// In keys of the local state: whose tokens they are.
const HELD: &str = "consul-service/default";

/// With what a service is logged in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceLogin {
    pub alloc_id: String,
    /// The name of its identity.
    pub identity: String,
    /// As the job names it, and as it is registered.
    pub service: String,
    pub name: String,
    /// The servers know the allocation from this index on.
    pub created: u64,
}

impl Consul {
    /// Who signs identities of services; none of them is registered before.
    pub(crate) fn signs_with(&self, servers: &Arc<dyn ServerQueries>) {
        let servers: Weak<dyn ServerQueries> = Arc::downgrade(servers);
        *self.servers.lock().unwrap_or_else(PoisonError::into_inner) = Some(servers);
        self.changed.notify_one();
    }

    /// Where tokens survive this agent; those of an earlier one are taken up.
    pub(crate) fn keep_tokens_in(&self, store: &Store) {
        self.returned.keep_in(store);
        let held = store.load_returned(HELD).into_iter();
        let held = held.filter_map(|(key, held)| {
            Some((key.strip_prefix(HELD)?.strip_prefix('/')?.to_string(), held.token))
        });
        let mut content = self.lock();
        content.service_tokens.extend(held);
        content.store = store.downgrade();
    }

    pub(super) fn held_token(&self, id: &str) -> Option<String> {
        self.lock().service_tokens.get(id).cloned()
    }

    /// That of the service which has the check.
    pub(super) fn token_of_check(&self, check_id: &str) -> Option<String> {
        let content = self.lock();
        let has = |service: &Registration| service.check_ids.iter().any(|own| own == check_id);
        let (id, _) = content.wanted.iter().find(|(_, (.., service))| has(service))?;
        content.service_tokens.get(id).cloned()
    }

    /// The service is gone: its token is logged out as soon as Consul is reached.
    pub(super) fn give_back_of(&self, id: &str) {
        let mut content = self.lock();
        let Some(token) = content.service_tokens.remove(id) else { return };
        let store = content.store.upgrade();
        drop(content);
        self.returned.add(ReturnedToken { token, namespace: String::new() });
        if let Some(store) = store {
            store.forget_returned(&format!("{HELD}/{id}"));
        }
    }

    /// Tokens of services that nobody wants any more.
    pub(super) fn give_back_unknown(&self) {
        let content = self.lock();
        let is_known = |id: &String| content.wanted.contains_key(id) || content.removed.contains(id);
        let unknown: Vec<String> =
            content.service_tokens.keys().filter(|id| !is_known(id)).cloned().collect();
        drop(content);
        unknown.iter().for_each(|id| self.give_back_of(id));
    }

    /// Registers a service, with its own token if it has an identity. A token that is refused is given up for another one.
    pub(super) async fn register(&self, service: &Registration) -> Result<(), ConsulError> {
        let token = match &service.login {
            Some(login) => Some(self.token_for(&service.id, login).await?),
            None => None,
        };
        let registered = self.client.register(service, token.as_deref()).await;
        if let (Err(ConsulError::Refused { status: 401 | 403, .. }), Some(_)) = (&registered, token) {
            self.give_back_of(&service.id);
        }
        registered
    }

    async fn token_for(&self, id: &str, login: &ServiceLogin) -> Result<String, ConsulError> {
        if let Some(held) = self.held_token(id) {
            return Ok(held);
        }
        let bearer = timeout(SIGNED_WITHIN, self.signed(login)).await;
        let bearer = bearer.unwrap_or_else(|_| Err("the servers do not answer".to_string()));
        let bearer =
            bearer.map_err(|why| ConsulError::Unsigned(format!("service {:?}: {why}", login.name)))?;
        let meta = json!({"alloc_id": login.alloc_id, "service": login.name, "requested_by": "sojourn"});
        let token = self.client.login(&self.client.service_auth_method, &bearer, meta).await?;
        let mut content = self.lock();
        content.service_tokens.insert(id.to_string(), token.clone());
        let store = content.store.upgrade();
        drop(content);
        if let Some(store) = store {
            let held = ReturnedToken { token: token.clone(), namespace: String::new() };
            store.put_returned(&format!("{HELD}/{id}"), &held);
        }
        Ok(token)
    }

    async fn signed(&self, login: &ServiceLogin) -> Result<String, String> {
        let servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let servers = servers.and_then(|servers| servers.upgrade()).ok_or("this node has no servers yet")?;
        let request = WorkloadIdentityRequest {
            alloc_id: login.alloc_id.clone(),
            identity_name: login.identity.clone(),
            workload_identifier: login.service.clone(),
            workload_type: 1,
            interpolated_workload_identifier: login.name.clone(),
        };
        let answer = servers.sign_identities(vec![request], login.created.saturating_sub(1)).await;
        let answer = answer.map_err(|error| error.to_string())?;
        if let Some(rejected) = answer.rejections.first() {
            return Err(format!("identity {:?}: {}", login.identity, rejected.reason));
        }
        let signed = answer.signed_identities.0.into_iter().next();
        signed.map(|signed| signed.jwt).ok_or_else(|| format!("identity {:?} was left out", login.identity))
    }
}
