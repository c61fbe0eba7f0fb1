//! Sealing while the cluster's keys are on their way.

use std::time::Duration;

use keyring::KeyError;
use state::State;
use tokio::time::{Instant, timeout_at};

use crate::app_state::AppState;
use crate::error::Failure;

/// How long a write waits for the root key, or for the key tree that this server is to get.
const KEYS_WAIT: Duration = Duration::from_secs(5);

/// What `seal` makes of the state once this server can seal. A cluster that has just been founded draws its keys in its
/// first moments, and the log says when a server has them: who bootstraps it at once waits instead of failing.
///
/// # Errors
/// 500 if there is still no key after [`KEYS_WAIT`]. `what`: "secrets", for example.
pub(crate) async fn once_keyed<T>(
    server: &AppState,
    what: &str,
    seal: impl Fn(&State) -> Result<T, KeyError>,
) -> Result<T, Failure> {
    let (mut news, deadline) = (server.control.watch(), Instant::now() + KEYS_WAIT);
    loop {
        match seal(&server.control.state()) {
            Err(KeyError::Open(_) | KeyError::Tree(_))
                if matches!(timeout_at(deadline, news.changed()).await, Ok(Ok(()))) => {}
            sealed => {
                return sealed.map_err(|error| {
                    Failure::internal(format!(
                        "the cluster has no key to seal {what} with yet, try again in a moment: {error}"
                    ))
                });
            }
        }
    }
}
