//! Lists as JSON: small ones whole, large ones in parts, so that a list takes no more memory than a part of it.

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use crate::answer::JSON;
use crate::error::Failure;

/// A list that is longer is sent in parts, without its length.
const WHOLE_MAX: usize = 256 * 1024;

/// The size of a part: about a millisecond of compression. The last item of a part may go beyond it.
const PART: usize = 64 * 1024;

/// Parts that wait for a slow reader. The list then waits too.
const PARTS_WAITING_MAX: usize = 4;

/// Large lists that are sent at the same time, each with a thread and a snapshot. One more is answered 429.
pub(crate) const LARGE_LISTS_MAX: usize = 32;

/// Marks an answer whose body comes in parts of JSON.
#[derive(Clone, Copy)]
pub(crate) struct InParts;

/// Items of a list on their way to JSON.
pub(crate) struct Rendering<I, W> {
    pub items: I,
    /// Writes an item.
    pub write: W,
}

/// What the first part of a list says of it.
pub(crate) enum Begun<I, W> {
    /// It is whole.
    Whole(Response),
    /// The answer, and what is left to be sent.
    Large(Response, Rest<I, W>),
}

/// What is left of a large list.
pub(crate) struct Rest<I, W> {
    rendering: Rendering<I, W>,
    parts: mpsc::Sender<Part>,
    begun: Vec<u8>,
}

enum Part {
    Json(Bytes),
    /// Without it the list ended early: something failed.
    End,
}

impl<I: Iterator, W: Fn(I::Item, &mut Vec<u8>)> Rendering<I, W> {
    /// Renders until it is clear whether the list is a large one.
    pub(crate) fn begin(mut self) -> Begun<I, W> {
        let mut begun = vec![b'['];
        if self.fill(&mut begun, WHOLE_MAX) {
            return Begun::Whole(([(header::CONTENT_TYPE, JSON)], begun).into_response());
        }
        let (parts, receiver) = mpsc::channel(PARTS_WAITING_MAX);
        let mut response = ([(header::CONTENT_TYPE, JSON)], in_parts(receiver)).into_response();
        response.extensions_mut().insert(InParts);
        Begun::Large(response, Rest { rendering: self, parts, begun })
    }

    /// Adds items until there are so many bytes. True if that was the last of them.
    fn fill(&mut self, to: &mut Vec<u8>, len: usize) -> bool {
        while to.len() < len {
            let Some(item) = self.items.next() else {
                if to.last() == Some(&b',') {
                    to.pop();
                }
                to.push(b']');
                return true;
            };
            (self.write)(item, to);
            to.push(b',');
        }
        false
    }
}

impl<I: Iterator, W: Fn(I::Item, &mut Vec<u8>)> Rest<I, W> {
    /// Sends the rest, as fast as it is read. Ends early when nobody reads any more.
    pub(crate) fn send(mut self, _seat: OwnedSemaphorePermit) {
        let mut part = self.begun;
        loop {
            // The comma after the last item stays behind: it is none if that was the last of all.
            let comma = part.pop();
            if self.parts.blocking_send(Part::Json(part.into())).is_err() {
                return;
            }
            part = comma.into_iter().collect();
            let is_over = self.rendering.fill(&mut part, PART);
            if is_over {
                let sent = self.parts.blocking_send(Part::Json(part.into()));
                let _ = sent.and_then(|()| self.parts.blocking_send(Part::End));
                return;
            }
        }
    }
}

fn in_parts(receiver: mpsc::Receiver<Part>) -> Body {
    Body::from_stream(stream::unfold(Some(receiver), |receiver| async {
        let mut receiver = receiver?;
        match receiver.recv().await {
            Some(Part::Json(bytes)) => Some((Ok(bytes), Some(receiver))),
            Some(Part::End) => None,
            // The status was sent: all that is left is to end the connection.
            None => Some((Err(std::io::Error::other("the list could not be rendered to its end")), None)),
        }
    }))
}

/// Adds an item as JSON.
pub(crate) fn write_json<T: Serialize + ?Sized>(value: &T, to: &mut Vec<u8>) {
    serde_json::to_writer(to, value).expect("types of the HTTP API have a JSON form");
}

/// # Errors
/// 429.
pub(crate) fn too_many_large() -> Failure {
    Failure::too_many(format!(
        "{LARGE_LISTS_MAX} large lists are being sent already: try again later, or ask for a page with `per_page`"
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::body::to_bytes;
    use tokio::sync::Semaphore;

    use super::*;

    fn rendering(
        items: std::ops::Range<usize>,
    ) -> Rendering<std::ops::Range<usize>, impl Fn(usize, &mut Vec<u8>)> {
        Rendering { items, write: |item, to: &mut Vec<u8>| write_json(&format!("item {item}"), to) }
    }

    fn seat() -> OwnedSemaphorePermit {
        Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap()
    }

    #[tokio::test]
    async fn a_small_list_has_its_length_and_a_large_one_comes_in_parts() {
        for count in [0, 1, 2, 1_000, 19_000, 100_000] {
            let expected: Vec<String> = (0..count).map(|item| format!("item {item}")).collect();
            let expected = serde_json::to_vec(&expected).unwrap();
            let body = match rendering(0..count).begin() {
                Begun::Whole(response) => {
                    assert!(expected.len() <= WHOLE_MAX && response.extensions().get::<InParts>().is_none());
                    to_bytes(response.into_body(), usize::MAX).await.unwrap()
                }
                Begun::Large(response, rest) => {
                    assert!(expected.len() >= WHOLE_MAX && response.extensions().get::<InParts>().is_some());
                    let sending = tokio::task::spawn_blocking(|| rest.send(seat()));
                    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
                    sending.await.unwrap();
                    body
                }
            };
            assert!(body == expected, "{count} items");
        }
    }

    #[tokio::test]
    async fn who_goes_away_ends_the_list_and_a_list_that_fails_ends_the_connection() {
        let Begun::Large(response, rest) = rendering(0..1_000_000).begin() else { panic!("it is large") };
        drop(response);
        tokio::task::spawn_blocking(|| rest.send(seat())).await.unwrap();

        let fails = Rendering {
            items: 0..1_000_000,
            write: |item, to: &mut Vec<u8>| match item {
                100_000 => panic!("a bug"),
                item => write_json(&item, to),
            },
        };
        let Begun::Large(response, rest) = fails.begin() else { panic!("it is large") };
        let sending = tokio::task::spawn_blocking(|| rest.send(seat()));
        assert!(to_bytes(response.into_body(), usize::MAX).await.is_err());
        assert!(sending.await.unwrap_err().is_panic());
    }
}
