use model::document::{AllocationListStub, Evaluation};

use crate::Error;
use crate::client::{Answer, Client, Query, segment};

/// Evaluations. Ids are whole UUIDs.
impl Client {
    /// `GET /v1/evaluations`: takes `prefix`, `status`, `job`, `filter` and paging.
    pub async fn evaluations(&self, query: Query) -> Result<Answer<Vec<Evaluation>>, Error> {
        self.get("/v1/evaluations", query).await
    }

    /// `GET /v1/evaluation/:id`: takes `related`.
    pub async fn evaluation(&self, id: &str, query: Query) -> Result<Answer<Evaluation>, Error> {
        self.get(&format!("/v1/evaluation/{}", segment(id)), query).await
    }

    /// `GET /v1/evaluation/:id/allocations`: what it placed or changed.
    pub async fn evaluation_allocations(
        &self,
        id: &str,
        query: Query,
    ) -> Result<Answer<Vec<AllocationListStub>>, Error> {
        self.get(&format!("/v1/evaluation/{}/allocations", segment(id)), query).await
    }
}
