use api::{EventSink, EventSinkRequest};
use reqwest::Method;

use crate::Error;
use crate::client::{Answer, Client, Query, segment};

/// Sinks of the event stream, by their names.
impl Client {
    /// `GET /v1/event/sinks`: takes `prefix`.
    pub async fn event_sinks(&self, query: Query) -> Result<Answer<Vec<EventSink>>, Error> {
        self.get("/v1/event/sinks", query).await
    }

    /// `GET /v1/event/sink/:name`.
    pub async fn event_sink(&self, name: &str) -> Result<EventSink, Error> {
        Ok(self.get(&path(name), Query::new()).await?.value)
    }

    /// `PUT /v1/event/sink/:name`: makes it, or changes it.
    pub async fn set_event_sink(&self, name: &str, wanted: &EventSinkRequest) -> Result<EventSink, Error> {
        Ok(self.put(&path(name), Query::new(), wanted).await?.value)
    }

    /// `POST /v1/event/sink/:name/ACTION`: `pause`, `resume`, `retry` or `skip`.
    pub async fn turn_event_sink(&self, name: &str, action: &str) -> Result<EventSink, Error> {
        Ok(self.post(&format!("{}/{action}", path(name)), Query::new(), &()).await?.value)
    }

    /// `DELETE /v1/event/sink/:name`.
    pub async fn delete_event_sink(&self, name: &str) -> Result<(), Error> {
        self.send(self.request(Method::DELETE, &path(name), Query::new())).await.map(drop)
    }
}

fn path(name: &str) -> String {
    format!("/v1/event/sink/{}", segment(name))
}
