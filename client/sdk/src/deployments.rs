use api::{
    DeploymentFailRequest, DeploymentPauseRequest, DeploymentPromoteRequest, DeploymentUpdateResponse,
};
use model::document::{AllocationListStub, Deployment};
use serde::Serialize;

use crate::Error;
use crate::client::{Answer, Client, Query, segment};

/// Deployments. Ids are whole UUIDs.
impl Client {
    /// `GET /v1/deployments`: takes `prefix`, `filter` and paging.
    pub async fn deployments(&self, query: Query) -> Result<Answer<Vec<Deployment>>, Error> {
        self.get("/v1/deployments", query).await
    }

    /// `GET /v1/deployment/:id`.
    pub async fn deployment(&self, id: &str, query: Query) -> Result<Answer<Deployment>, Error> {
        self.get(&format!("/v1/deployment/{}", segment(id)), query).await
    }

    /// `GET /v1/deployment/allocations/:id`.
    pub async fn deployment_allocations(
        &self,
        id: &str,
        query: Query,
    ) -> Result<Answer<Vec<AllocationListStub>>, Error> {
        self.get(&format!("/v1/deployment/allocations/{}", segment(id)), query).await
    }

    /// `PUT /v1/deployment/promote/:id`: the canaries of these groups, or of all if none is named.
    pub async fn promote_deployment(
        &self,
        id: &str,
        groups: &[String],
    ) -> Result<DeploymentUpdateResponse, Error> {
        let (all, groups) = (groups.is_empty(), groups.to_vec().into());
        let request =
            DeploymentPromoteRequest { deployment_id: id.to_string(), all, groups, ..Default::default() };
        self.change_deployment("promote", id, &request).await
    }

    /// `PUT /v1/deployment/fail/:id`.
    pub async fn fail_deployment(&self, id: &str) -> Result<DeploymentUpdateResponse, Error> {
        let request = DeploymentFailRequest { deployment_id: id.to_string() };
        self.change_deployment("fail", id, &request).await
    }

    /// `PUT /v1/deployment/pause/:id`: pauses it, or resumes it.
    pub async fn pause_deployment(&self, id: &str, pause: bool) -> Result<DeploymentUpdateResponse, Error> {
        let request = DeploymentPauseRequest { deployment_id: id.to_string(), pause };
        self.change_deployment("pause", id, &request).await
    }

    async fn change_deployment<T: Serialize>(
        &self,
        change: &str,
        id: &str,
        request: &T,
    ) -> Result<DeploymentUpdateResponse, Error> {
        let path = format!("/v1/deployment/{change}/{}", segment(id));
        Ok(self.put(&path, Query::new(), request).await?.value)
    }
}
