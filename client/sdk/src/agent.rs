use api::{AgentSelf, SearchRequest, SearchResponse, ServerMembers};
use bytes::Bytes;
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Method, Response};
use serde::Deserialize;

use crate::Error;
use crate::client::{Answer, Client, Query};
use crate::stream::Frames;

/// Any call: for routes that have no method here.
#[derive(Clone, Debug)]
pub struct ApiRequest {
    pub method: String,
    /// From `/v1` on; may bring its own query string.
    pub path: String,
    pub filter: String,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct OneTimeAnswer {
    one_time_token: OneTimeToken,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct OneTimeToken {
    #[serde(rename = "OneTimeSecretID")]
    one_time_secret_id: String,
}

/// The agent that answers, and the servers it knows.
impl Client {
    /// `GET /v1/agent/self`.
    pub async fn agent_self(&self) -> Result<AgentSelf, Error> {
        Ok(self.get("/v1/agent/self", Query::new()).await?.value)
    }

    /// `GET /v1/agent/members`.
    pub async fn members(&self) -> Result<ServerMembers, Error> {
        Ok(self.get("/v1/agent/members", Query::new()).await?.value)
    }

    /// `GET /v1/agent/servers`: the servers that a client agent talks to.
    pub async fn agent_servers(&self) -> Result<Vec<String>, Error> {
        Ok(self.get("/v1/agent/servers", Query::new()).await?.value)
    }

    /// `PUT /v1/agent/servers`: other servers for a client agent.
    pub async fn set_agent_servers(&self, addresses: &[String]) -> Result<(), Error> {
        let query = addresses.iter().fold(Query::new(), |query, address| query.with("address", address));
        self.send(self.request(Method::PUT, "/v1/agent/servers", query)).await.map(drop)
    }

    /// `GET /v1/agent/monitor`: takes `log_level`, `log_json`, `log_include_location`, `node_id` and `server_id`.
    pub async fn monitor(&self, query: Query) -> Result<Frames, Error> {
        let response = self.send(self.request(Method::GET, "/v1/agent/monitor", query)).await?;
        Ok(Frames::new(self.address(), response))
    }

    /// `GET /v1/agent/monitor/export`: takes `logs_since`, `service_name`, `on_disk`, `follow`, `node_id` and
    /// `server_id`.
    pub async fn monitor_export(&self, query: Query) -> Result<Frames, Error> {
        let response = self.send(self.request(Method::GET, "/v1/agent/monitor/export", query)).await?;
        Ok(Frames::new(self.address(), response))
    }

    /// `GET /v1/status/peers`: RPC addresses of the servers that vote.
    pub async fn peers(&self) -> Result<Vec<String>, Error> {
        Ok(self.get("/v1/status/peers", Query::new()).await?.value)
    }

    /// `GET /v1/metrics`: takes `format`; the text as it comes.
    pub async fn metrics(&self, query: Query) -> Result<String, Error> {
        let response = self.send(self.request(Method::GET, "/v1/metrics", query)).await?;
        response.text().await.map_err(|e| Error::unreachable(self.address(), &e))
    }

    /// `PUT /v1/acl/token/onetime`: a secret that is good for one exchange.
    pub async fn one_time_token(&self) -> Result<String, Error> {
        let answer: Answer<OneTimeAnswer> = self.put("/v1/acl/token/onetime", Query::new(), &()).await?;
        Ok(answer.value.one_time_token.one_time_secret_id)
    }

    /// `PUT /v1/system/gc`: collects all that has ended.
    pub async fn collect_garbage(&self) -> Result<(), Error> {
        self.send(self.request(Method::PUT, "/v1/system/gc", Query::new())).await.map(drop)
    }

    /// `PUT /v1/system/reconcile/summaries`: counts the summaries of all jobs again.
    pub async fn reconcile_summaries(&self) -> Result<(), Error> {
        let path = "/v1/system/reconcile/summaries";
        self.send(self.request(Method::PUT, path, Query::new())).await.map(drop)
    }

    /// `PUT /v1/search`: what begins with the prefix, by context; `all` searches everywhere.
    pub async fn search(&self, request: &SearchRequest) -> Result<SearchResponse, Error> {
        Ok(self.put("/v1/search", Query::new(), request).await?.value)
    }

    /// `GET /v1/status/leader`: `HOST:PORT` of the leader's RPC address.
    pub async fn leader(&self) -> Result<String, Error> {
        let answer: Answer<String> = self.get("/v1/status/leader", Query::new()).await?;
        Ok(answer.value)
    }

    /// Sends anything and gives back the answer as it is, success or not.
    ///
    /// # Errors
    /// [`Error::Address`] when method, path or a header cannot stand in a request.
    pub async fn call_raw(&self, request: ApiRequest) -> Result<Response, Error> {
        let wrong = |reason: String| Error::Address { address: request.path.clone(), reason };
        let method = Method::from_bytes(request.method.as_bytes()).map_err(|e| wrong(e.to_string()))?;
        let query = Query::new().with("filter", &request.filter);
        let mut builder = self.request(method, &request.path, query).body(request.body.clone());
        for (name, value) in &request.headers {
            let name = HeaderName::try_from(name.as_str()).map_err(|e| wrong(e.to_string()))?;
            let value = HeaderValue::try_from(value.as_str()).map_err(|e| wrong(e.to_string()))?;
            builder = builder.header(name, value);
        }
        builder.send().await.map_err(|e| Error::unreachable(self.address(), &e))
    }
}
