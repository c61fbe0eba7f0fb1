use api::{
    AutopilotConfiguration, JoinResponse, KeyringDeleted, KeyringRequest, KeyringResponse, KeyringRotated,
    LeadershipTransferResponse, OperatorHealthReply, RaftConfiguration, SchedulerConfiguration,
    SchedulerConfigurationResponse, SchedulerScan, SchedulerSetConfigurationResponse, SigningRootKey,
    UpgradeRaised, UpgradeStatus,
};
use model::document::input;
use reqwest::{Method, Response};

use crate::Error;
use crate::client::{Answer, Client, Query, segment};

/// A member of the raft cluster, as it is named to the servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RaftPeer {
    Id(String),
    /// `HOST:PORT` of its RPC.
    Address(String),
}

impl RaftPeer {
    fn query(&self) -> Query {
        match self {
            RaftPeer::Id(id) => Query::new().with("id", id),
            RaftPeer::Address(address) => Query::new().with("address", address),
        }
    }
}

/// What is done with a key that encrypts gossip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyChange {
    Install,
    Use,
    Remove,
}

/// The servers and what they agree on.
impl Client {
    /// `PUT /v1/agent/join`: gossip addresses of servers. Who could not be joined stands in the answer.
    pub async fn join(&self, addresses: &[String]) -> Result<JoinResponse, Error> {
        let query = addresses.iter().fold(Query::new(), |query, address| query.with("address", address));
        Ok(self.put("/v1/agent/join", query, &()).await?.value)
    }

    /// `PUT /v1/agent/force-leave`: a failed server counts as one that left; `prune` also takes it off the list.
    pub async fn force_leave(&self, name: &str, prune: bool) -> Result<(), Error> {
        let query = Query::new().with("node", name).flag("prune", prune);
        self.send(self.request(Method::PUT, "/v1/agent/force-leave", query)).await.map(drop)
    }

    /// `GET /v1/agent/keyring/list`.
    pub async fn gossip_keys(&self) -> Result<KeyringResponse, Error> {
        Ok(self.get("/v1/agent/keyring/list", Query::new()).await?.value)
    }

    /// `PUT /v1/agent/keyring/install`, `use` or `remove`: an answer only if every live server followed.
    pub async fn change_gossip_keys(&self, how: KeyChange, key: &str) -> Result<KeyringResponse, Error> {
        let path = match how {
            KeyChange::Install => "/v1/agent/keyring/install",
            KeyChange::Use => "/v1/agent/keyring/use",
            KeyChange::Remove => "/v1/agent/keyring/remove",
        };
        Ok(self.put(path, Query::new(), &KeyringRequest { key: key.to_string() }).await?.value)
    }

    /// `GET /v1/operator/raft/configuration`.
    pub async fn raft_configuration(&self, stale: bool) -> Result<RaftConfiguration, Error> {
        Ok(self.get("/v1/operator/raft/configuration", Query::new().flag("stale", stale)).await?.value)
    }

    /// `GET /v1/operator/upgrade`.
    pub async fn upgrade(&self) -> Result<UpgradeStatus, Error> {
        Ok(self.get("/v1/operator/upgrade", Query::new()).await?.value)
    }

    /// `PUT /v1/operator/upgrade`: 409 while the servers are of several releases.
    pub async fn finish_upgrade(&self) -> Result<UpgradeRaised, Error> {
        Ok(self.put("/v1/operator/upgrade", Query::new(), &()).await?.value)
    }

    /// `DELETE /v1/operator/raft/peer`.
    pub async fn remove_raft_peer(&self, peer: &RaftPeer) -> Result<(), Error> {
        self.send(self.request(Method::DELETE, "/v1/operator/raft/peer", peer.query())).await.map(drop)
    }

    /// `PUT /v1/operator/raft/transfer-leadership`: returns once the other server leads.
    pub async fn transfer_leadership(&self, to: &RaftPeer) -> Result<LeadershipTransferResponse, Error> {
        Ok(self.put("/v1/operator/raft/transfer-leadership", to.query(), &()).await?.value)
    }

    /// `GET /v1/operator/autopilot/configuration`.
    pub async fn autopilot(&self) -> Result<AutopilotConfiguration, Error> {
        Ok(self.get("/v1/operator/autopilot/configuration", Query::new()).await?.value)
    }

    /// `PUT /v1/operator/autopilot/configuration`: false if it is not at the index `cas` any more.
    pub async fn set_autopilot(&self, wanted: &AutopilotConfiguration, cas: u64) -> Result<bool, Error> {
        let query = Query::new().with("cas", cas);
        Ok(self.put("/v1/operator/autopilot/configuration", query, wanted).await?.value)
    }

    /// `GET /v1/operator/keyring/keys`.
    pub async fn root_keys(&self) -> Result<Vec<SigningRootKey>, Error> {
        Ok(self.get("/v1/operator/keyring/keys", Query::new()).await?.value)
    }

    /// `PUT /v1/operator/keyring/rotate`.
    pub async fn rotate_root_key(&self, full: bool, algo: &str) -> Result<KeyringRotated, Error> {
        let query = Query::new().flag("full", full).with("algo", algo);
        Ok(self.put("/v1/operator/keyring/rotate", query, &()).await?.value)
    }

    /// `DELETE /v1/operator/keyring/key/:id`.
    pub async fn remove_root_key(&self, key: &str, force: bool) -> Result<KeyringDeleted, Error> {
        let path = format!("/v1/operator/keyring/key/{}", segment(key));
        Ok(self.delete(&path, Query::new().flag("force", force)).await?.value)
    }

    /// `GET /v1/operator/scheduler/configuration`.
    pub async fn scheduler(&self) -> Result<SchedulerConfigurationResponse, Error> {
        Ok(self.get("/v1/operator/scheduler/configuration", Query::new()).await?.value)
    }

    /// `PUT /v1/operator/scheduler/configuration`: not updated if it is not at the index `cas` any more.
    pub async fn set_scheduler(
        &self,
        wanted: &SchedulerConfiguration,
        cas: u64,
    ) -> Result<SchedulerSetConfigurationResponse, Error> {
        let query = Query::new().with("cas", cas);
        Ok(self.put("/v1/operator/scheduler/configuration", query, wanted).await?.value)
    }

    /// `GET /v1/operator/scheduler/scan`.
    pub async fn scheduler_scan(&self) -> Result<SchedulerScan, Error> {
        Ok(self.get("/v1/operator/scheduler/scan", Query::new()).await?.value)
    }

    /// `PUT /v1/operator/scheduler/scan`.
    pub async fn set_scheduler_scan(&self, wanted: &SchedulerScan) -> Result<(), Error> {
        let path = "/v1/operator/scheduler/scan";
        let answer: Result<Answer<SchedulerSetConfigurationResponse>, Error> =
            self.put(path, Query::new(), wanted).await;
        answer.map(drop)
    }

    /// `GET /v1/operator/autopilot/health`: an answer also when some server is not healthy.
    pub async fn autopilot_health(&self) -> Result<OperatorHealthReply, Error> {
        let path = "/v1/operator/autopilot/health";
        let request = self.request(Method::GET, path, Query::new());
        let response = match request.send().await {
            Ok(response) if response.status().as_u16() == 429 => response,
            Ok(response) => self.checked(response).await?,
            Err(error) => return Err(Error::unreachable(self.address(), &error)),
        };
        let text = response.bytes().await.map_err(|error| Error::unreachable(self.address(), &error))?;
        input::from_slice(&text).map_err(|source| Error::Answer { path: path.to_string(), source })
    }

    /// `GET /v1/operator/snapshot`: the file, as it comes.
    pub async fn save_snapshot(&self, stale: bool) -> Result<Response, Error> {
        let query = Query::new().flag("stale", stale);
        self.send(self.request(Method::GET, "/v1/operator/snapshot", query)).await
    }

    /// `PUT /v1/operator/snapshot`: puts the state of a file in place of what is there.
    pub async fn restore_snapshot(&self, file: tokio::fs::File) -> Result<(), Error> {
        let request = self.request(Method::PUT, "/v1/operator/snapshot", Query::new());
        self.send(request.body(reqwest::Body::from(file))).await.map(drop)
    }
}
