//! Housekeeping by hand.

use axum::Router;
use axum::extract::State as With;
use base::Duration;
use model::Command;
use model::command::LeftoverAges;

use super::write;
use crate::access::Management;
use crate::app_state::AppState;
use crate::error::Failure;
use crate::request::{Call, Write, random};

/// Rounds of collection for one call: each forgets some hundreds of jobs.
const ROUNDS_MAX: usize = 1_000;

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/v1/system/gc", write(collect))
        .route("/v1/system/reconcile/summaries", write(reconcile))
}

/// Forgets what is over however short a time ago: jobs that ended for good with all they owned, nodes that left, and what
/// jobs leave behind that live on.
async fn collect(With(server): With<AppState>, mut write: Write) -> Result<(), Failure> {
    let (jobs_after, nodes_after) = (Duration::ZERO, Duration::ZERO);
    repeat(&server, &mut write, Command::CollectGarbage { jobs_after, nodes_after }).await?;
    let leftovers = Command::CollectLeftovers { named: None, ages: LeftoverAges::NONE };
    repeat(&server, &mut write, leftovers).await
}

/// Until nothing is left that it would forget.
async fn repeat(server: &AppState, write: &mut Write, command: Command) -> Result<(), Failure> {
    for _ in 0..ROUNDS_MAX {
        let wrote = server.submit(write, command.clone()).await?.wrote;
        write.request = model::RequestId(base::Uuid::from_random(random()));
        if !wrote {
            break;
        }
    }
    Ok(())
}

/// Summaries follow from the facts each time one is written: there is nothing they could have missed.
async fn reconcile(_: Call<Management>) {}
