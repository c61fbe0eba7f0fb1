use api::{AllocWhy, DeploymentWhy, EvalWhy, JobWhy, NodeWhy, ObjectHistory, WhyNot};

use crate::Error;
use crate::client::{Client, Query, segment};

/// Why things are as they are, and what was. Only Sojourn's servers say.
impl Client {
    /// `GET /v1/job/:id/explain`.
    pub async fn explain_job(&self, id: &str, query: Query) -> Result<JobWhy, Error> {
        Ok(self.get(&format!("/v1/job/{}/explain", segment(id)), query).await?.value)
    }

    /// `GET /v1/node/:id/explain/:job`.
    pub async fn why_not(&self, job: &str, node: &str, query: Query) -> Result<WhyNot, Error> {
        Ok(self.get(&format!("/v1/node/{}/explain/{}", segment(node), segment(job)), query).await?.value)
    }

    /// `GET /v1/evaluation/:id/explain`.
    pub async fn explain_evaluation(&self, id: &str) -> Result<EvalWhy, Error> {
        Ok(self.get(&format!("/v1/evaluation/{}/explain", segment(id)), Query::new()).await?.value)
    }

    /// `GET /v1/allocation/:id/explain`.
    pub async fn explain_allocation(&self, id: &str) -> Result<AllocWhy, Error> {
        Ok(self.get(&format!("/v1/allocation/{}/explain", segment(id)), Query::new()).await?.value)
    }

    /// `GET /v1/deployment/:id/explain`.
    pub async fn explain_deployment(&self, id: &str) -> Result<DeploymentWhy, Error> {
        Ok(self.get(&format!("/v1/deployment/{}/explain", segment(id)), Query::new()).await?.value)
    }

    /// `GET /v1/job|node|evaluation|deployment/:id/history`.
    pub async fn object_history(&self, kind: &str, id: &str, query: Query) -> Result<ObjectHistory, Error> {
        Ok(self.get(&format!("/v1/{kind}/{}/history", segment(id)), query).await?.value)
    }

    /// `GET /v1/node/:id/explain`.
    pub async fn explain_node(&self, id: &str) -> Result<NodeWhy, Error> {
        Ok(self.get(&format!("/v1/node/{}/explain", segment(id)), Query::new()).await?.value)
    }
}
