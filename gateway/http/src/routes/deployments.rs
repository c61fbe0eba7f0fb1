//! Deployments are not built: there are none, and none can be changed.

use axum::Router;
use axum::extract::State as With;
use axum::routing::get;
use base::Index;
use model::document::{AllocationListStub, Deployment};

use super::write;
use crate::answer::Answer;
use crate::error::Failure;
use crate::page::{Page, id_prefix};
use crate::request::Read;
use crate::server::Server;

pub fn router() -> Router<Server> {
    Router::new()
        .route("/v1/deployments", get(list))
        .route("/v1/deployment/{id}", get(read))
        .route("/v1/deployment/allocations/{id}", get(allocations))
        .route("/v1/deployment/{verb}/{id}", write(async || not_found()))
}

async fn list(With(server): With<Server>, read: Read) -> Answer {
    id_prefix(&read.options.prefix)?;
    server.list(read, |_| Index::ZERO, |_, _| Ok(Page::<Deployment>::whole(std::iter::empty()))).await
}

async fn read(With(server): With<Server>, read: Read) -> Answer {
    server.read(&read, |_| Index::ZERO, |_| Err::<Deployment, _>(not_found())).await
}

async fn allocations(With(server): With<Server>, read: Read) -> Answer {
    server.list(read, |_| Index::ZERO, |_, _| Ok(Page::<AllocationListStub>::whole(std::iter::empty()))).await
}

fn not_found() -> Failure {
    Failure::not_found("deployment not found")
}
