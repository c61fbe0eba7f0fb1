//! Tokens and auth methods whose secrets are erased with them. Ours.

use base::Index;
use model::{Command, VariableKey};
use state::State;

use super::super::variables::server_names;
use crate::answer::{Answer, written};
use crate::app_state::AppState;
use crate::error::Failure;
use crate::request::{Reading, Write};
use crate::view::variable as view;

/// Deletes it, and has every server erase the key of its secrets.
pub(super) async fn submit(server: &AppState, write: &Write, command: Command, of: &VariableKey) -> Answer {
    let receipt = server.submit(write, command).await?;
    let state = server.after(&receipt).await?;
    let mut erasures = view::erasures(&state.erasure, of, &server_names(server));
    erasures.retain(|erasure| erasure.forgotten_at == receipt.index.0);
    let erasure = erasures.into_iter().next();
    written(receipt.index, &erasure.ok_or_else(|| Failure::internal("it is not forgotten"))?)
}

/// How far that is with whatever was forgotten under this name, the newest first.
pub(super) async fn shown(server: &AppState, read: &Reading, of: &VariableKey) -> Answer {
    let names = server_names(server);
    let view = |state: &State| Ok(view::erasures(&state.erasure, of, &names));
    server.read(read, |state: &State| state.erasure.changed().max(Index(1)), view).await
}
