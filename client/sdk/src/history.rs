use api::{DecisionsAgain, EventChain, HistoryFileVerified, HistoryStorage, HistoryVerified, ObjectHistory};
use model::document::{ForkKept, ForkResult, List};
use reqwest::{Method, Response};
use serde::Serialize;
use serde_json::Value;

use crate::Error;
use crate::client::{Answer, Client, Query, segment};

/// The log, documents of any moment, and what would happen.
impl Client {
    /// `GET /v1/history`: takes `since`, `per_page` and `next_token`. Ours.
    pub async fn log(&self, query: Query) -> Result<Answer<ObjectHistory>, Error> {
        self.get("/v1/history", query).await
    }

    /// `GET /v1/history/verify`: a part of the log, folded again from the state after `since`, the oldest there is without it.
    /// Ours.
    pub async fn verify_history(&self, since: Option<u64>) -> Result<HistoryVerified, Error> {
        let since = since.map(|index| index.to_string()).unwrap_or_default();
        Ok(self.get("/v1/history/verify", Query::new().with("since", since)).await?.value)
    }

    /// `GET /v1/history/decisions`: the decisions of a part of the log, made again. `since` is a moment, and `algorithm` the one
    /// to schedule by; empty ones are unset. Ours.
    pub async fn decisions_again(&self, since: &str, algorithm: &str) -> Result<DecisionsAgain, Error> {
        let query = Query::new().with("since", since).with("algorithm", algorithm);
        Ok(self.get("/v1/history/decisions", query).await?.value)
    }

    /// `GET /v1/operator/history`: how much history the server has that answers. Ours.
    pub async fn history_storage(&self) -> Result<HistoryStorage, Error> {
        Ok(self.get("/v1/operator/history", Query::new()).await?.value)
    }

    /// `GET /v1/operator/history/verify`: the file that an index is in, once all of it was read. Ours.
    pub async fn verify_history_file(&self, from: u64) -> Result<HistoryFileVerified, Error> {
        let query = Query::new().with("from", from.to_string());
        Ok(self.get("/v1/operator/history/verify", query).await?.value)
    }

    /// `GET /v1/operator/history/export`: a copy of that file, as it comes. Ours.
    pub async fn export_history_file(&self, from: u64) -> Result<Response, Error> {
        let query = Query::new().with("from", from.to_string());
        self.send(self.request(Method::GET, "/v1/operator/history/export", query)).await
    }

    /// As [`Client::verify_history_file`], of the first file of kept facts that does not end below an index. Ours.
    pub async fn verify_kept_file(&self, from: u64) -> Result<HistoryFileVerified, Error> {
        let query = Query::new().with("from", from.to_string()).flag("kept", true);
        Ok(self.get("/v1/operator/history/verify", query).await?.value)
    }

    /// A copy of that file, as it comes. Ours.
    pub async fn export_kept_file(&self, from: u64) -> Result<Response, Error> {
        let query = Query::new().with("from", from.to_string()).flag("kept", true);
        self.send(self.request(Method::GET, "/v1/operator/history/export", query)).await
    }

    /// `GET /v1/event/:id/causes`: what led to an event, a fact or what a request changed. Ours.
    pub async fn event_causes(&self, id: &str) -> Result<EventChain, Error> {
        Ok(self.get(&format!("/v1/event/{}/causes", segment(id)), Query::new()).await?.value)
    }

    /// `GET /v1/event/:id/effects`: what followed. Ours.
    pub async fn event_effects(&self, id: &str) -> Result<EventChain, Error> {
        Ok(self.get(&format!("/v1/event/{}/effects", segment(id)), Query::new()).await?.value)
    }

    /// `POST /v1/fork`: what an [`api::ForkRequest`], or something with its fields, would lead to. Ours.
    pub async fn fork(&self, request: &impl Serialize) -> Result<ForkResult, Error> {
        Ok(self.post("/v1/fork", Query::new(), request).await?.value)
    }

    /// `GET /v1/forks`: the kept forks that the caller may read. Ours.
    pub async fn forks(&self) -> Result<List<ForkKept>, Error> {
        Ok(self.get("/v1/forks", Query::new()).await?.value)
    }

    /// `GET /v1/fork/:id`: how a kept fork differs from the state that it began with. Ours.
    pub async fn kept_fork(&self, id: &str) -> Result<ForkResult, Error> {
        Ok(self.get(&format!("/v1/fork/{}", segment(id)), Query::new()).await?.value)
    }

    /// `POST /v1/fork/:id/changes`: takes an [`api::ForkChangesRequest`], or something with its fields. Ours.
    pub async fn change_fork(&self, id: &str, request: &impl Serialize) -> Result<ForkResult, Error> {
        Ok(self.post(&format!("/v1/fork/{}/changes", segment(id)), Query::new(), request).await?.value)
    }

    /// `POST /v1/fork/:id/advance`: lets so much time pass on its clock. Ours.
    pub async fn advance_fork(&self, id: &str, by: &str) -> Result<ForkResult, Error> {
        let request = api::ForkAdvanceRequest { by: by.to_string() };
        Ok(self.post(&format!("/v1/fork/{}/advance", segment(id)), Query::new(), &request).await?.value)
    }

    /// `DELETE /v1/fork/:id`. Ours.
    pub async fn delete_fork(&self, id: &str) -> Result<(), Error> {
        let _empty: Answer<Value> = self.delete(&format!("/v1/fork/{}", segment(id)), Query::new()).await?;
        Ok(())
    }

    /// `GET /v1/…`, whatever it answers. A segment may hold any character.
    pub async fn document(&self, segments: &[&str], query: Query) -> Result<Answer<Value>, Error> {
        let path: String = segments.iter().map(|name| format!("/{}", segment(name))).collect();
        self.get(&format!("/v1{path}"), query).await
    }
}
