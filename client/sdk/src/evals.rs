use api::{EvalDeleteRequest, EvalDeleteResponse};
use model::document::{AllocationListStub, Evaluation};
use reqwest::Method;

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

    /// `GET /v1/evaluations/count`: takes `filter` and `prefix`.
    pub async fn evaluations_count(&self, query: Query) -> Result<u64, Error> {
        let answer: Answer<api::EvalCountResponse> = self.get("/v1/evaluations/count", query).await?;
        Ok(u64::try_from(answer.value.count).unwrap_or(0))
    }

    /// `DELETE /v1/evaluations`: how many are gone.
    ///
    /// # Errors
    /// 500 while evaluations are handed out: the broker has to be paused first.
    pub async fn delete_evaluations(&self, request: &EvalDeleteRequest) -> Result<u64, Error> {
        let path = "/v1/evaluations";
        let response = self.send(self.request(Method::DELETE, path, Query::new()).json(request)).await?;
        let text = response.bytes().await.map_err(|error| Error::unreachable(self.address(), &error))?;
        let deleted: EvalDeleteResponse = model::document::input::from_slice(&text)
            .map_err(|source| Error::Answer { path: path.to_string(), source })?;
        Ok(deleted.count.unsigned_abs())
    }
}
