//! Putting a saved state in place of what is there, piece by piece.

use base::{Index, Uuid};
use model::Rejection;
use model::event::{StateChunkGiven, StateRestored};
use state::State;
use state::operator::{PIECE_BYTES_MAX, RESTORED_BYTES_MAX};

use crate::decision::Decision;

/// Takes the next piece. The first one begins anew, whatever came before.
///
/// # Errors
/// [`Rejection::RestoreInvalid`].
pub fn give(state: &State, restore: Uuid, number: u32, bytes: &[u8]) -> Result<Decision, Rejection> {
    let (restoring, invalid) =
        (&state.restoring, |why: &str| Err(Rejection::RestoreInvalid(why.to_string())));
    let ends_a_chunk = number > 0 && restoring.pieces.last().is_some_and(|piece| piece.continues);
    if bytes.len() > PIECE_BYTES_MAX || (bytes.is_empty() && !ends_a_chunk) {
        return invalid("a piece of a state is empty or too large");
    }
    let follows = restoring.restore == restore && restoring.pieces.len() as u64 == u64::from(number);
    if number > 0 && !follows {
        return invalid("another restore is under way, or a piece is missing: begin anew");
    }
    if number > 0 && restoring.bytes + bytes.len() as u64 > RESTORED_BYTES_MAX {
        return invalid("the state is larger than what can be restored");
    }
    Ok(StateChunkGiven { restore, number, bytes: bytes.to_vec() }.into())
}

/// Puts the pieces together and their state in place of this one.
///
/// # Errors
/// [`Rejection::RestoreInvalid`] with what is wrong with them.
pub fn finish(state: &State, restore: Uuid, chunks: u32, image: Index) -> Result<Decision, Rejection> {
    let restoring = &state.restoring;
    if restoring.restore != restore || restoring.pieces.len() as u64 != u64::from(chunks) {
        return Err(Rejection::RestoreInvalid("not all pieces of the state are there".to_string()));
    }
    match state::restore(&restoring.image(image)) {
        Ok(_) => Ok(StateRestored { restore, chunks, image }.into()),
        Err(error) => Err(Rejection::RestoreInvalid(error.to_string())),
    }
}
