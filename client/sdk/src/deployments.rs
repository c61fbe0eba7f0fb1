use model::document::Deployment;

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
}
