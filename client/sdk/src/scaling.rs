use api::{
    JobRegisterResponse, JobScaleStatusResponse, ScalingPolicy, ScalingPolicyListStub, ScalingRequest,
};

use crate::Error;
use crate::client::{Answer, Client, Query, segment};

/// Counts of groups, and the policies autoscalers read.
impl Client {
    /// `PUT /v1/job/:id/scale`.
    pub async fn scale(
        &self,
        id: &str,
        request: &ScalingRequest,
        query: Query,
    ) -> Result<JobRegisterResponse, Error> {
        Ok(self.put(&format!("/v1/job/{}/scale", segment(id)), query, request).await?.value)
    }

    /// `GET /v1/job/:id/scale`.
    pub async fn scale_status(&self, id: &str, query: Query) -> Result<JobScaleStatusResponse, Error> {
        Ok(self.get(&format!("/v1/job/{}/scale", segment(id)), query).await?.value)
    }

    /// `GET /v1/scaling/policies`: takes `prefix`, `job` and `type`.
    pub async fn scaling_policies(&self, query: Query) -> Result<Answer<Vec<ScalingPolicyListStub>>, Error> {
        self.get("/v1/scaling/policies", query).await
    }

    /// `GET /v1/scaling/policy/:id`.
    pub async fn scaling_policy(&self, id: &str) -> Result<ScalingPolicy, Error> {
        Ok(self.get(&format!("/v1/scaling/policy/{}", segment(id)), Query::new()).await?.value)
    }
}
