use axum::Router;
use axum::extract::State as With;
use axum::routing::get;
use base::Index;

use crate::answer::{self, Answer};
use crate::request::Read;
use crate::server::Server;

pub fn router() -> Router<Server> {
    Router::new()
        .route("/v1/status/leader", get(leader))
        .route("/v1/status/peers", get(peers))
        .route("/v1/regions", get(regions))
}

async fn leader(With(server): With<Server>, mut read: Read) -> Answer {
    // Asked of whoever is there: without a leader that is the answer, at once or after the usual wait.
    read.options.index = Index::ZERO;
    read.options.stale = false;
    server.read(&read, |state| state.index, |_| Ok(&server.agent.rpc_addr)).await
}

async fn peers(With(server): With<Server>, _: Read) -> Answer {
    Ok(answer::json(&[&server.agent.rpc_addr]))
}

async fn regions(With(server): With<Server>) -> Answer {
    Ok(answer::json(&[&server.agent.region]))
}
