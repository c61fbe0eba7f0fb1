use api::{
    EventCursor, EventCursorAckRequest, EventCursorPosition, EventCursorRequest, EventCursorResetRequest,
};
use reqwest::Method;

use crate::Error;
use crate::client::{Answer, Client, Query, segment};

/// Durable cursors of the event stream, by their names.
impl Client {
    /// `GET /v1/event/cursors`: takes `prefix`.
    pub async fn event_cursors(&self, query: Query) -> Result<Answer<Vec<EventCursor>>, Error> {
        self.get("/v1/event/cursors", query).await
    }

    /// `GET /v1/event/cursor/:name`.
    pub async fn event_cursor(&self, name: &str) -> Result<EventCursor, Error> {
        Ok(self.get(&path(name), Query::new()).await?.value)
    }

    /// `PUT /v1/event/cursor/:name`: makes it, or changes what it gives.
    pub async fn set_event_cursor(
        &self,
        name: &str,
        wanted: &EventCursorRequest,
    ) -> Result<EventCursor, Error> {
        Ok(self.put(&path(name), Query::new(), wanted).await?.value)
    }

    /// `POST /v1/event/cursor/:name/ack`: everything up to this event is done with; of a cursor that is split, by this member.
    pub async fn acknowledge_events(
        &self,
        name: &str,
        member: Option<u32>,
        id: &str,
    ) -> Result<EventCursorPosition, Error> {
        let wanted = EventCursorAckRequest { id: id.to_string(), member };
        Ok(self.post(&format!("{}/ack", path(name)), Query::new(), &wanted).await?.value)
    }

    /// `POST /v1/event/cursor/:name/reset`.
    pub async fn reset_event_cursor(
        &self,
        name: &str,
        wanted: &EventCursorResetRequest,
    ) -> Result<EventCursorPosition, Error> {
        Ok(self.post(&format!("{}/reset", path(name)), Query::new(), wanted).await?.value)
    }

    /// `DELETE /v1/event/cursor/:name`.
    pub async fn delete_event_cursor(&self, name: &str) -> Result<(), Error> {
        self.send(self.request(Method::DELETE, &path(name), Query::new())).await.map(drop)
    }
}

fn path(name: &str) -> String {
    format!("/v1/event/cursor/{}", segment(name))
}
