//! Says to the cluster how far a reader of the event stream has come, beside the reading.

use std::time::Duration;

use sdk::{Client, Error};
use tokio::sync::watch;
use tokio::time::sleep;

/// The time from one acknowledgement to the next: each is a write.
const EVERY: Duration = Duration::from_millis(200);
/// The pause after one that failed.
const RETRY: Duration = Duration::from_secs(1);

/// Acknowledges what `places` says, the newest each time, and the last one when nobody says more.
///
/// # Errors
/// The server refuses it; or it cannot be reached for the last one.
pub(crate) async fn run(
    client: &Client,
    (cursor, member): (&str, Option<u32>),
    mut places: watch::Receiver<String>,
) -> Result<(), Error> {
    while places.changed().await.is_ok() {
        let mut done = false;
        while !done {
            let place = places.borrow_and_update().clone();
            let is_last = places.has_changed().is_err();
            match client.acknowledge_events(cursor, member, &place).await {
                Ok(_) => done = true,
                Err(error) if error.is_transient() && !is_last => sleep(RETRY).await,
                Err(error) => return Err(error),
            }
        }
        sleep(EVERY).await;
    }
    Ok(())
}
