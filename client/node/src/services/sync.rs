//! Keeps the servers up to date about the instances of this node.

use std::sync::Arc;
use std::time::Duration;

use base::Rng;
use tokio::time::{Instant, sleep_until};

use super::registry::Call;
use crate::clock::jitter;
use crate::contact::ServerContact;
use crate::context::Context;
use crate::server::{ServerClient, ServerError};

/// The wait after a call that reached no server grows from the first to the longest. A heartbeat that is answered ends it.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// How the servers say that there is no such instance, as a part of the message.
const UNKNOWN: &str = "not found";

/// Runs until it is dropped. No task waits for it.
pub(crate) async fn run<S: ServerClient>(context: Arc<Context>, server: Arc<S>, contact: Arc<ServerContact>) {
    let mut rng = Rng::stream(context.seed, "services");
    let mut forgotten = contact.forgotten.subscribe();
    let mut wait = FIRST_WAIT;
    loop {
        if forgotten.has_changed().unwrap_or(false) {
            forgotten.mark_unchanged();
            context.services.send_again(None);
        }
        let call = match context.services.next_call(Instant::now()) {
            Ok(call) => call,
            Err(at) => {
                tokio::select! {
                    () = context.services.changed() => {}
                    () = until(at) => {}
                    Ok(()) = forgotten.changed() => context.services.send_again(None),
                }
                continue;
            }
        };
        match send(&*server, &call).await {
            Ok(()) => {
                wait = FIRST_WAIT;
                context.services.done(&call);
            }
            Err(error @ (ServerError::Unreachable(_) | ServerError::NoLeader)) => {
                tracing::warn!(%error, "services are not registered or removed yet");
                contact.next_success(wait + jitter(&mut rng, wait / 4)).await;
                wait = (wait * 2).min(LONGEST_WAIT);
            }
            Err(error) => {
                tracing::warn!(%error, "the servers refuse services of this node");
                context.services.refused(&call, Instant::now());
            }
        }
    }
}

async fn send<S: ServerClient>(server: &S, call: &Call) -> Result<(), ServerError> {
    match call {
        Call::Register(services) => server.register_services(services.clone()).await,
        Call::Remove { namespace, id } => match server.remove_service(namespace, id).await {
            Err(ServerError::Refused(text)) if text.contains(UNKNOWN) => Ok(()),
            answered => answered,
        },
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
