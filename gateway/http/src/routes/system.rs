//! Housekeeping by hand.

use axum::Router;
use axum::extract::State as With;
use base::Duration;
use model::Command;

use super::write;
use crate::app_state::AppState;
use crate::error::Failure;
use crate::request::{Write, random};

/// Rounds of collection for one call: each forgets some hundreds of jobs.
const ROUNDS_MAX: usize = 1_000;

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/v1/system/gc", write(collect))
        .route("/v1/system/reconcile/summaries", write(reconcile))
}

/// Forgets jobs that ended for good, with all they owned, and nodes that left, however short a time ago.
async fn collect(With(server): With<AppState>, mut write: Write) -> Result<(), Failure> {
    for _ in 0..ROUNDS_MAX {
        let (jobs_after, nodes_after) = (Duration::ZERO, Duration::ZERO);
        if !server.submit(&write, Command::CollectGarbage { jobs_after, nodes_after }).await?.wrote {
            break;
        }
        write.request = model::RequestId(base::Uuid::from_random(random()));
    }
    Ok(())
}

/// Summaries follow from the facts each time one is written: there is nothing they could have missed.
async fn reconcile(_: Write) {}
