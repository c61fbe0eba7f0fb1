//! A token that is handed on once, like to a browser: in exchange there is the one that it stands for.

use api::{OneTimeToken, OneTimeTokenExchangeRequest, OneTimeTokenExchangeResponse, OneTimeTokenResponse};
use axum::Router;
use axum::extract::State as With;
use model::Command;
use model::document::Timestamp;
use state::node::secret_hash;

use super::super::write;
use super::{new_id, tokens};
use crate::access::{denied, of_caller};
use crate::answer::{Answer, written};
use crate::app_state::AppState;
use crate::error::Failure;
use crate::request::{Json, Write};

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/v1/acl/token/onetime", write(create))
        .route("/v1/acl/token/onetime/exchange", write(exchange))
}

async fn create(With(server): With<AppState>, write: Write) -> Answer {
    let accessor = write.access.accessor().ok_or_else(denied)?;
    let secret = new_id().to_string();
    let command = Command::CreateOneTimeToken { accessor, digest: secret_hash(&secret) };
    let receipt = server.submit(&write, command).await?;
    let state = server.after(&receipt).await?;
    let made = state.acl.one_time().get(&accessor).filter(|made| made.digest == secret_hash(&secret));
    let made = made.ok_or_else(|| Failure::not_found("another one-time token was made meanwhile"))?;
    let one_time_token = OneTimeToken {
        one_time_secret_id: secret,
        accessor_id: accessor.to_string(),
        expires_at: Timestamp(Some(made.expires)),
        create_index: made.created.0,
        modify_index: made.created.0,
    };
    let response = OneTimeTokenResponse { one_time_token: Some(one_time_token), index: receipt.index.0 };
    written(receipt.index, &response)
}

async fn exchange(
    With(server): With<AppState>,
    write: Write,
    Json(request): Json<OneTimeTokenExchangeRequest>,
) -> Answer {
    server.proving(write.caller.address, of_caller, exchanged(&server, &write, &request)).await
}

async fn exchanged(server: &AppState, write: &Write, request: &OneTimeTokenExchangeRequest) -> Answer {
    let digest = secret_hash(&request.one_time_secret_id);
    // Whose it is is known until it is exchanged, and not any more then.
    server.fresh(api::Consistency::Leased, base::Index::ZERO).await?;
    let state = server.control.state();
    let owner = state.acl.one_time().iter().find(|(_, token)| token.digest == digest);
    let accessor = *owner.ok_or_else(denied)?.0;
    let receipt = server.submit(write, Command::ExchangeOneTimeToken { digest }).await?;
    let token = tokens::whole(server, &state, accessor).map(|shown| shown.token);
    written(receipt.index, &OneTimeTokenExchangeResponse { token, index: receipt.index.0 })
}
