use api::{AgentSelf, ServerMembers};
use bytes::Bytes;
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Method, Response};

use crate::Error;
use crate::client::{Answer, Client, Query};

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
