use api::{JobListStub, NodeListStub, NodePool};
use reqwest::Method;

use crate::Error;
use crate::client::{Answer, Client, Query, segment};

/// Node pools, by their names.
impl Client {
    /// `GET /v1/node/pools`: takes `prefix` and paging.
    pub async fn node_pools(&self, query: Query) -> Result<Answer<Vec<NodePool>>, Error> {
        self.get("/v1/node/pools", query).await
    }

    /// `GET /v1/node/pool/:name`.
    pub async fn node_pool(&self, name: &str) -> Result<NodePool, Error> {
        Ok(self.get(&format!("/v1/node/pool/{}", segment(name)), Query::new()).await?.value)
    }

    /// `PUT /v1/node/pools`.
    pub async fn apply_node_pool(&self, pool: &NodePool) -> Result<(), Error> {
        self.send(self.request(Method::PUT, "/v1/node/pools", Query::new()).json(pool)).await.map(drop)
    }

    /// `DELETE /v1/node/pool/:name`.
    ///
    /// # Errors
    /// 500 with the reason, while nodes or jobs are in it.
    pub async fn delete_node_pool(&self, name: &str) -> Result<(), Error> {
        let path = format!("/v1/node/pool/{}", segment(name));
        self.send(self.request(Method::DELETE, &path, Query::new())).await.map(drop)
    }

    /// `GET /v1/node/pool/:name/nodes`: takes `filter` and paging.
    pub async fn node_pool_nodes(
        &self,
        name: &str,
        query: Query,
    ) -> Result<Answer<Vec<NodeListStub>>, Error> {
        self.get(&format!("/v1/node/pool/{}/nodes", segment(name)), query).await
    }

    /// `GET /v1/node/pool/:name/jobs`: takes `filter` and paging.
    pub async fn node_pool_jobs(&self, name: &str, query: Query) -> Result<Answer<Vec<JobListStub>>, Error> {
        self.get(&format!("/v1/node/pool/{}/jobs", segment(name)), query).await
    }
}
