use api::{
    AllocResourceUsage, AllocSignalRequest, AllocStopResponse, AllocationHistory, AllocationRestartRequest,
};
use model::document::{Allocation, AllocationListStub, Map};
use reqwest::Method;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::client::{Answer, Client, Query, segment};
use crate::stream::Frames;

/// Which of a task's two logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogSource {
    Stdout,
    Stderr,
}

/// Where in a task's log to begin, and whether to stay.
#[derive(Clone, Debug)]
pub struct LogRequest {
    pub task: String,
    pub source: LogSource,
    pub follow: bool,
    /// Bytes from the start, or from the end with `from_end`.
    pub offset: u64,
    pub from_end: bool,
}

/// How one check of a service went last: `AllocCheckStatus` of Nomad's API.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AllocCheckStatus {
    #[serde(rename = "ID")]
    pub id: String,
    pub check: String,
    pub group: String,
    pub mode: String,
    pub output: String,
    pub service: String,
    pub task: String,
    pub status: String,
    pub status_code: i64,
    /// Unix seconds.
    pub timestamp: i64,
}

/// Allocations. Ids are whole UUIDs.
impl Client {
    /// `GET /v1/allocations`: takes `prefix`, `resources`, `filter` and paging.
    pub async fn allocations(&self, query: Query) -> Result<Answer<Vec<AllocationListStub>>, Error> {
        self.get("/v1/allocations", query).await
    }

    /// `GET /v1/allocation/:id`.
    pub async fn allocation(&self, id: &str, query: Query) -> Result<Answer<Allocation>, Error> {
        self.get(&format!("/v1/allocation/{}", segment(id)), query).await
    }

    /// `GET /v1/allocation/:id/history`: every transition, oldest first. Not every server has it.
    pub async fn allocation_history(&self, id: &str) -> Result<Answer<AllocationHistory>, Error> {
        self.get(&format!("/v1/allocation/{}/history", segment(id)), Query::new()).await
    }

    /// `PUT /v1/allocation/:id/stop`: takes `no_shutdown_delay`.
    pub async fn stop_allocation(&self, id: &str, query: Query) -> Result<AllocStopResponse, Error> {
        Ok(self.put(&format!("/v1/allocation/{}/stop", segment(id)), query, &()).await?.value)
    }

    /// `GET /v1/client/allocation/:id/stats`: asked of the node that runs it.
    pub async fn allocation_stats(&self, id: &str) -> Result<AllocResourceUsage, Error> {
        Ok(self.get(&format!("/v1/client/allocation/{}/stats", segment(id)), Query::new()).await?.value)
    }

    /// `PUT /v1/client/allocation/:id/restart`: its running tasks, or as the request says.
    pub async fn restart_allocation(
        &self,
        id: &str,
        request: &AllocationRestartRequest,
        query: Query,
    ) -> Result<(), Error> {
        let path = format!("/v1/client/allocation/{}/restart", segment(id));
        self.send(self.request(Method::PUT, &path, query).json(request)).await.map(drop)
    }

    /// `PUT /v1/client/allocation/:id/signal`: an empty task means all.
    pub async fn signal_allocation(
        &self,
        id: &str,
        request: &AllocSignalRequest,
        query: Query,
    ) -> Result<(), Error> {
        let path = format!("/v1/client/allocation/{}/signal", segment(id));
        self.send(self.request(Method::PUT, &path, query).json(request)).await.map(drop)
    }

    /// `GET /v1/client/allocation/:id/checks`: by the id of the check.
    pub async fn allocation_checks(
        &self,
        id: &str,
        query: Query,
    ) -> Result<Map<String, AllocCheckStatus>, Error> {
        Ok(self.get(&format!("/v1/client/allocation/{}/checks", segment(id)), query).await?.value)
    }

    /// `GET /v1/client/fs/logs/:id`: the task's log, in pieces as they come.
    pub async fn logs(&self, id: &str, request: &LogRequest) -> Result<Frames, Error> {
        let query = Query::new()
            .with("task", &request.task)
            .with("type", if request.source == LogSource::Stdout { "stdout" } else { "stderr" })
            .flag("follow", request.follow)
            .with("offset", request.offset)
            .with("origin", if request.from_end { "end" } else { "start" });
        let path = format!("/v1/client/fs/logs/{}", segment(id));
        let response = self.send(self.request(Method::GET, &path, query)).await?;
        Ok(Frames::new(self.address(), response))
    }
}
