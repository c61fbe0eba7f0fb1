use api::{
    DrainSpec, HostStats, IntroductionToken, IntroductionTokenRequest, NodeDrainUpdateResponse,
    NodeEligibilityUpdateResponse, NodeIdentity, NodeIdentityRenewRequest, NodeListStub,
    NodeUpdateDrainRequest, NodeUpdateEligibilityRequest,
};
use model::document::{Allocation, Map, Node};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Error;
use crate::client::{Answer, Client, Query, segment};

/// What a node calls its own: `NodeMetaResponse` of Nomad's API.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodeMeta {
    /// What jobs see: the static ones under the dynamic ones.
    pub meta: Map<String, String>,
    /// Set while the node runs; nothing hides a static one.
    pub dynamic: Map<String, Option<String>>,
    /// From its configuration.
    #[serde(rename = "Static")]
    pub fixed: Map<String, String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct NodeMetaApplyRequest {
    #[serde(rename = "NodeID")]
    node_id: String,
    meta: Map<String, Option<String>>,
}

/// Nodes. Ids are whole UUIDs.
impl Client {
    /// `GET /v1/nodes`: takes `prefix`, `resources`, `os`, `filter` and paging.
    pub async fn nodes(&self, query: Query) -> Result<Answer<Vec<NodeListStub>>, Error> {
        self.get("/v1/nodes", query).await
    }

    /// `GET /v1/node/:id`.
    pub async fn node(&self, id: &str, query: Query) -> Result<Answer<Node>, Error> {
        self.get(&format!("/v1/node/{}", segment(id)), query).await
    }

    /// `GET /v1/node/:id/allocations`: whole allocations.
    pub async fn node_allocations(&self, id: &str, query: Query) -> Result<Answer<Vec<Allocation>>, Error> {
        self.get(&format!("/v1/node/{}/allocations", segment(id)), query).await
    }

    /// `PUT /v1/node/:id/drain`: without a drain the running one is stopped.
    pub async fn drain(
        &self,
        id: &str,
        drain_spec: Option<DrainSpec>,
        mark_eligible: bool,
        meta: Map<String, String>,
    ) -> Result<NodeDrainUpdateResponse, Error> {
        let request = NodeUpdateDrainRequest { node_id: id.to_string(), drain_spec, mark_eligible, meta };
        Ok(self.put(&format!("/v1/node/{}/drain", segment(id)), Query::new(), &request).await?.value)
    }

    /// `PUT /v1/node/:id/eligibility`: `eligible` or `ineligible`.
    pub async fn set_eligibility(
        &self,
        id: &str,
        eligibility: &str,
    ) -> Result<NodeEligibilityUpdateResponse, Error> {
        let request =
            NodeUpdateEligibilityRequest { node_id: id.to_string(), eligibility: eligibility.to_string() };
        Ok(self.put(&format!("/v1/node/{}/eligibility", segment(id)), Query::new(), &request).await?.value)
    }

    /// `GET /v1/client/stats`: use of the node's machine, asked of the node itself.
    pub async fn node_stats(&self, id: &str) -> Result<HostStats, Error> {
        Ok(self.get("/v1/client/stats", Query::new().with("node_id", id)).await?.value)
    }

    /// `GET /v1/client/identity`: what the token says that a node holds.
    pub async fn node_identity(&self, id: &str) -> Result<NodeIdentity, Error> {
        Ok(self.get("/v1/client/identity", Query::new().with("node_id", id)).await?.value)
    }

    /// `POST /v1/client/identity/renew`: the node asks for another token with its next heartbeat.
    pub async fn renew_node_identity(&self, id: &str) -> Result<(), Error> {
        let request = NodeIdentityRenewRequest { node_id: id.to_string() };
        let _: Value = self.post("/v1/client/identity/renew", Query::new(), &request).await?.value;
        Ok(())
    }

    /// `POST /v1/acl/identity/client-introduction-token`: what a new node registers with.
    pub async fn introduce_node(
        &self,
        request: &IntroductionTokenRequest,
    ) -> Result<IntroductionToken, Error> {
        let path = "/v1/acl/identity/client-introduction-token";
        Ok(self.post(path, Query::new(), request).await?.value)
    }

    /// `GET /v1/client/metadata`: of this node, or of the agent's own if it is empty.
    pub async fn node_meta(&self, id: &str) -> Result<NodeMeta, Error> {
        Ok(self.get("/v1/client/metadata", Query::new().with("node_id", id)).await?.value)
    }

    /// `POST /v1/client/metadata`: sets names, and takes back those without a value.
    pub async fn set_node_meta(
        &self,
        id: &str,
        meta: Map<String, Option<String>>,
    ) -> Result<NodeMeta, Error> {
        let query = Query::new().with("node_id", id);
        let request = NodeMetaApplyRequest { node_id: id.to_string(), meta };
        Ok(self.post("/v1/client/metadata", query, &request).await?.value)
    }
}
