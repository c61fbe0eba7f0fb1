//! What is forgotten, and what servers do about the key tree that variables are encrypted with.

use base::{Index, Uuid};
use model::command::CreateAclToken;
use model::document::AuthMethodRecord;
use model::event::{
    ForgottenErased, KeyTreeFounded, KeyTreeHolderRemoved, KeyTreeRequested, KeyTreeShared, SecretsForgotten,
    VariableForgotten,
};
use model::{
    KeyTreeCommand, Rejection, SealedData, SealedKey, VariableKey, auth_method_secrets, token_secrets,
};
use state::State;
use state::erasure::Erasure;

use crate::acl;
use crate::decision::Decision;
use crate::variable::{check_holder, check_path, invalid};

/// Variables, tokens and auth methods that a cluster has forgotten, for ever: each one takes up to four kilobytes of the key tree,
/// which is one entry of the log when a server gets it. One more is refused.
pub const FORGOTTEN_MAX: usize = 1_024;
/// Servers that have the tree: as many as root keys are sealed for. One more is refused until another was removed.
const HOLDERS_MAX: usize = 64;
/// Largest tree that is accepted, sealed: one of which as much was given up as may be takes 4.2 MB.
const SEALED_TREE_MAX: usize = 6 << 20;

/// # Errors
/// [`Rejection::VariableConflict`] while somebody else has its lock.
pub(crate) fn forget(state: &State, key: &VariableKey, lock: Option<Uuid>) -> Result<Decision, Rejection> {
    check_path(&key.path)?;
    check_holder(key, state.variables.get(key), lock)?;
    check_room(state)?;
    Ok(VariableForgotten { key: key.clone() }.into())
}

/// One that was deleted before had its secret under a key that nothing says any more: it may have been a root key.
///
/// # Errors
/// [`Rejection::AclInvalid`]: there is none, or its secret is under another key than one of its own, which is not given up with it.
pub(crate) fn forget_token(state: &State, accessor: Uuid) -> Result<Decision, Rejection> {
    check_room(state)?;
    let of = token_secrets(accessor);
    let Some(token) = state.acl.token(accessor) else {
        return acl::invalid(format!("cannot find token {accessor}"));
    };
    check_own(state, &of, [&token.secret.sealed].into_iter())?;
    let mut decision = acl::token::delete(&state.acl, &[accessor])?;
    decision.events.push(SecretsForgotten { of }.into());
    Ok(decision)
}

/// # Errors
/// As [`forget_token`].
pub(crate) fn forget_auth_method(state: &State, name: &str) -> Result<Decision, Rejection> {
    check_room(state)?;
    let of = auth_method_secrets(name);
    let mut decision = acl::method::delete(&state.acl, name)?;
    let known = state.acl.methods.get(name).into_iter();
    check_own(state, &of, known.flat_map(|set| secrets(&set.document)))?;
    decision.events.push(SecretsForgotten { of }.into());
    Ok(decision)
}

fn secrets(record: &AuthMethodRecord) -> impl Iterator<Item = &SealedData> {
    [&record.client_secret, &record.private_key].into_iter().flatten()
}

/// Who encrypted it may not have known yet that what has its name was forgotten.
///
/// # Errors
/// [`Rejection::AclInvalid`].
fn check_kept(state: &State, of: &VariableKey, secret: &SealedData) -> Result<(), Rejection> {
    match state.erasure.forgotten_at(of, secret.key) {
        Some(_) => acl::invalid(format!("{} was forgotten meanwhile: try again", of.path)),
        None => Ok(()),
    }
}

/// # Errors
/// As [`check_kept`].
pub(crate) fn check_kept_token(state: &State, request: &CreateAclToken) -> Result<(), Rejection> {
    // An accessor that is none is refused where the rest of it is looked at.
    let Ok(accessor) = request.token.accessor_id.parse() else { return Ok(()) };
    check_kept(state, &token_secrets(accessor), &request.secret.sealed)
}

/// # Errors
/// As [`check_kept`].
pub(crate) fn check_kept_method(state: &State, record: &AuthMethodRecord) -> Result<(), Rejection> {
    let of = auth_method_secrets(&record.method.name);
    secrets(record).try_for_each(|secret| check_kept(state, &of, secret))
}

fn check_own<'a>(
    state: &State,
    of: &VariableKey,
    mut secrets: impl Iterator<Item = &'a SealedData>,
) -> Result<(), Rejection> {
    let key = state.erasure.key_of(of);
    match secrets.any(|secret| secret.key != key) {
        true => acl::invalid(format!(
            "{} has a secret that a root key encrypts, from before the cluster had a key tree, which cannot be erased: \
             delete it without forget, and replace the secret",
            of.path
        )),
        false => Ok(()),
    }
}

fn check_room(state: &State) -> Result<(), Rejection> {
    if state.erasure.forgotten().len() >= FORGOTTEN_MAX {
        return invalid(format!(
            "{FORGOTTEN_MAX} variables, tokens and auth methods were forgotten already, and no more can be"
        ));
    }
    Ok(())
}

pub(crate) fn key_tree(state: &State, now: Index, command: &KeyTreeCommand) -> Result<Decision, Rejection> {
    let erasure = &state.erasure;
    match command {
        KeyTreeCommand::Request { server, public } => request(erasure, *server, *public),
        KeyTreeCommand::Found { tree, sealed, after } => found(erasure, *tree, sealed, *after),
        KeyTreeCommand::Share { tree, public, sealed } => share(erasure, *tree, public, sealed),
        KeyTreeCommand::ReportErased { server, tree, up_to } => report(erasure, now, *server, *tree, *up_to),
        KeyTreeCommand::RemoveHolder { server } => Ok(match erasure.holders().contains_key(server) {
            true => KeyTreeHolderRemoved { server: *server }.into(),
            false => Decision::nothing(),
        }),
    }
}

fn request(erasure: &Erasure, server: Uuid, public: [u8; 32]) -> Result<Decision, Rejection> {
    if server.is_nil() {
        return refused("Server", "the id of a server");
    }
    let known = erasure.holders().get(&server);
    if known.is_some_and(|known| known.public == public && known.has.is_none()) {
        return Ok(Decision::nothing());
    }
    if known.is_none() && erasure.holders().len() >= HOLDERS_MAX {
        return refused("Server", "at most 64 servers with a key tree");
    }
    Ok(KeyTreeRequested { server, public }.into())
}

fn found(
    erasure: &Erasure,
    tree: Uuid,
    sealed: &[SealedKey],
    after: Option<Uuid>,
) -> Result<Decision, Rejection> {
    if erasure.tree() != after {
        // Somebody was quicker.
        return Ok(Decision::nothing());
    }
    if tree.is_nil() || erasure.tree() == Some(tree) {
        return refused("Tree", "an id that no key tree has");
    }
    if sealed.is_empty() || !sealed.iter().all(|sealed| erasure.holders().contains_key(&sealed.server)) {
        return refused("Sealed", "a key tree that is sealed for servers which requested it");
    }
    sealed.iter().try_for_each(check_sealed)?;
    Ok(KeyTreeFounded { tree, sealed: sealed.to_vec() }.into())
}

/// What was sealed for another key than the one that the server requested it with helps nobody, and one that has it
/// needs it no more.
fn share(
    erasure: &Erasure,
    tree: Uuid,
    public: &[u8; 32],
    sealed: &SealedKey,
) -> Result<Decision, Rejection> {
    check_sealed(sealed)?;
    let holder = erasure.holders().get(&sealed.server);
    let waits = holder
        .is_some_and(|holder| holder.sealed.is_none() && holder.has.is_none() && holder.public == *public);
    if erasure.tree() != Some(tree) || !waits {
        return Ok(Decision::nothing());
    }
    Ok(KeyTreeShared { tree, sealed: sealed.clone() }.into())
}

fn report(
    erasure: &Erasure,
    now: Index,
    server: Uuid,
    tree: Uuid,
    up_to: Index,
) -> Result<Decision, Rejection> {
    if up_to >= now {
        return refused("UpTo", "an index that has been");
    }
    let Some(holder) = erasure.holders().get(&server) else { return Ok(Decision::nothing()) };
    let is_news = holder.has != Some(tree) || holder.erased < up_to;
    if erasure.tree() != Some(tree) || !is_news {
        return Ok(Decision::nothing());
    }
    Ok(ForgottenErased { server, up_to: up_to.max(holder.erased) }.into())
}

fn check_sealed(sealed: &SealedKey) -> Result<(), Rejection> {
    if (1..=SEALED_TREE_MAX).contains(&sealed.bytes.len()) {
        return Ok(());
    }
    refused("Sealed.Bytes", "a sealed key tree")
}

fn refused<T>(field: &'static str, expected: &'static str) -> Result<T, Rejection> {
    Err(Rejection::KeyTreeInvalid { field: field.into(), expected: expected.into() })
}
