use api::{
    EvalOptions, JobAction, JobDeregisterResponse, JobDispatchRequest, JobDispatchResponse, JobDoctor,
    JobEvaluateRequest, JobListStub, JobPlanRequest, JobPlanResponse, JobRegisterRequest,
    JobRegisterResponse, JobRevertRequest, JobSummary, JobValidateRequest, JobValidateResponse,
    JobVersionsResponse, JobsParseRequest, PeriodicForceResponse, TagVersionRequest,
};
use model::document::{AllocationListStub, Deployment, Evaluation, Job, JobSubmission};
use serde_json::Value;

use crate::Error;
use crate::client::{Answer, Client, Query, segment};

/// Jobs. A job id may hold any character; it is escaped here.
impl Client {
    /// `GET /v1/jobs`: takes `prefix`, `per_page`, `filter`, `meta` and the blocking parameters.
    pub async fn jobs(&self, query: Query) -> Result<Answer<Vec<JobListStub>>, Error> {
        self.get("/v1/jobs", query).await
    }

    /// `PUT /v1/jobs`.
    ///
    /// # Errors
    /// 500 with `Enforcing job modify index …` when the job is not at the expected index, or with the text of
    /// every problem when the job is not valid.
    pub async fn register(&self, request: &JobRegisterRequest) -> Result<JobRegisterResponse, Error> {
        Ok(self.put("/v1/jobs", in_namespace_of(self, request.job.as_ref()), request).await?.value)
    }

    /// `PUT /v1/validate/job`: problems are in the answer, not an error.
    pub async fn validate(&self, job: Job) -> Result<JobValidateResponse, Error> {
        let query = in_namespace_of(self, Some(&job));
        Ok(self.put("/v1/validate/job", query, &JobValidateRequest { job: Some(job) }).await?.value)
    }

    /// `PUT /v1/jobs/doctor`: what of the job works on this cluster. Not in Nomad's API.
    pub async fn doctor(&self, job: Job) -> Result<JobDoctor, Error> {
        let query = in_namespace_of(self, Some(&job));
        Ok(self.put("/v1/jobs/doctor", query, &JobValidateRequest { job: Some(job) }).await?.value)
    }

    /// `PUT /v1/jobs/parse`: a job file becomes a job on the agent.
    pub async fn parse(&self, request: &JobsParseRequest) -> Result<Job, Error> {
        Ok(self.put("/v1/jobs/parse", Query::new(), request).await?.value)
    }

    /// `PUT /v1/job/:id/plan`: what registering would do.
    pub async fn plan(&self, id: &str, request: &JobPlanRequest) -> Result<JobPlanResponse, Error> {
        let query = in_namespace_of(self, request.job.as_ref());
        Ok(self.put(&format!("/v1/job/{}/plan", segment(id)), query, request).await?.value)
    }

    /// `GET /v1/job/:id`.
    pub async fn job(&self, id: &str, query: Query) -> Result<Answer<Job>, Error> {
        self.get(&format!("/v1/job/{}", segment(id)), query).await
    }

    /// `GET /v1/job/:id`, as it was sent: with fields that [`Job`] does not have.
    pub async fn job_as_sent(&self, id: &str, query: Query) -> Result<Value, Error> {
        Ok(self.get(&format!("/v1/job/{}", segment(id)), query).await?.value)
    }

    /// `GET /v1/job/:id/summary`.
    pub async fn job_summary(&self, id: &str, query: Query) -> Result<Answer<JobSummary>, Error> {
        self.get(&format!("/v1/job/{}/summary", segment(id)), query).await
    }

    /// `GET /v1/job/:id/versions`: newest first; takes `diffs`.
    pub async fn job_versions(&self, id: &str, query: Query) -> Result<Answer<JobVersionsResponse>, Error> {
        self.get(&format!("/v1/job/{}/versions", segment(id)), query).await
    }

    /// `GET /v1/job/:id/submission`: the source the given version was registered with.
    pub async fn job_submission(
        &self,
        id: &str,
        version: u64,
        query: Query,
    ) -> Result<Answer<JobSubmission>, Error> {
        let path = format!("/v1/job/{}/submission", segment(id));
        self.get(&path, query.with("version", version)).await
    }

    /// `GET /v1/job/:id/allocations`: takes `all`.
    pub async fn job_allocations(
        &self,
        id: &str,
        query: Query,
    ) -> Result<Answer<Vec<AllocationListStub>>, Error> {
        self.get(&format!("/v1/job/{}/allocations", segment(id)), query).await
    }

    /// `GET /v1/job/:id/actions`.
    pub async fn job_actions(&self, id: &str, query: Query) -> Result<Answer<Vec<JobAction>>, Error> {
        self.get(&format!("/v1/job/{}/actions", segment(id)), query).await
    }

    /// `GET /v1/job/:id/evaluations`.
    pub async fn job_evaluations(&self, id: &str, query: Query) -> Result<Answer<Vec<Evaluation>>, Error> {
        self.get(&format!("/v1/job/{}/evaluations", segment(id)), query).await
    }

    /// `GET /v1/job/:id/deployment`: the latest one, if the job ever had one.
    pub async fn job_deployment(&self, id: &str, query: Query) -> Result<Answer<Option<Deployment>>, Error> {
        self.get(&format!("/v1/job/{}/deployment", segment(id)), query).await
    }

    /// `PUT /v1/job/:id/revert`: an earlier version becomes the newest.
    pub async fn revert(&self, id: &str, version: u64, query: Query) -> Result<JobRegisterResponse, Error> {
        let request =
            JobRevertRequest { job_id: id.to_string(), job_version: version, ..JobRevertRequest::default() };
        Ok(self.put(&format!("/v1/job/{}/revert", segment(id)), query, &request).await?.value)
    }

    /// `GET /v1/job/:id/deployments`: takes `all`.
    pub async fn job_deployments(&self, id: &str, query: Query) -> Result<Answer<Vec<Deployment>>, Error> {
        self.get(&format!("/v1/job/{}/deployments", segment(id)), query).await
    }

    /// `PUT /v1/job/:id/evaluate`.
    pub async fn evaluate_job(
        &self,
        id: &str,
        force_reschedule: bool,
        query: Query,
    ) -> Result<JobRegisterResponse, Error> {
        let request =
            JobEvaluateRequest { job_id: id.to_string(), eval_options: EvalOptions { force_reschedule } };
        Ok(self.put(&format!("/v1/job/{}/evaluate", segment(id)), query, &request).await?.value)
    }

    /// `PUT /v1/job/:id/dispatch`: takes `idempotency_token`.
    pub async fn dispatch(
        &self,
        request: &JobDispatchRequest,
        query: Query,
    ) -> Result<JobDispatchResponse, Error> {
        let path = format!("/v1/job/{}/dispatch", segment(&request.job_id));
        Ok(self.put(&path, query, request).await?.value)
    }

    /// `PUT /v1/job/:id/periodic/force`: launches a periodic job now.
    pub async fn force_periodic(&self, id: &str, query: Query) -> Result<PeriodicForceResponse, Error> {
        Ok(self.put(&format!("/v1/job/{}/periodic/force", segment(id)), query, &()).await?.value)
    }

    /// `PUT /v1/job/:id/versions/:tag/tag`: names a version; takes back nothing that has the name already.
    pub async fn tag_version(
        &self,
        id: &str,
        name: &str,
        tag: &TagVersionRequest,
        query: Query,
    ) -> Result<(), Error> {
        let request = self.request(reqwest::Method::PUT, &tag_path(id, name), query);
        self.send(request.json(tag)).await.map(drop)
    }

    /// `DELETE /v1/job/:id/versions/:tag/tag`.
    pub async fn untag_version(&self, id: &str, name: &str, query: Query) -> Result<(), Error> {
        self.send(self.request(reqwest::Method::DELETE, &tag_path(id, name), query)).await.map(drop)
    }

    /// `DELETE /v1/job/:id`: takes `purge`, `global`, `no_shutdown_delay`, `eval_priority`.
    pub async fn deregister(&self, id: &str, query: Query) -> Result<JobDeregisterResponse, Error> {
        Ok(self.delete(&format!("/v1/job/{}", segment(id)), query).await?.value)
    }
}

fn tag_path(id: &str, name: &str) -> String {
    format!("/v1/job/{}/versions/{}/tag", segment(id), segment(name))
}

/// The client's namespace if it has one, else the job's own: servers take the query's word over the body's.
fn in_namespace_of(client: &Client, job: Option<&Job>) -> Query {
    let own = job.and_then(|job| job.namespace.as_deref()).unwrap_or_default();
    Query::new().with("namespace", if client.namespace().is_empty() { own } else { client.namespace() })
}
