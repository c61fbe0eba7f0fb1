use base::{Duration, Time, Uuid};
use model::Rejection;
use model::event::{OneTimeTokenCreated, OneTimeTokenExchanged};
use state::acl::Acl;

use super::{Decision, invalid};

/// How long a one-time token can be exchanged.
pub const ONE_TIME_LIFETIME: Duration = Duration::from_secs(600);
/// One-time tokens at the same time.
const ONE_TIME_MAX: usize = 16_384;

/// A token has one: the one before it is worth nothing from here on.
pub(crate) fn create(acl: &Acl, now: Time, accessor: Uuid, digest: [u8; 32]) -> Result<Decision, Rejection> {
    let token = acl.token(accessor).ok_or(Rejection::AclTokenUnknown(accessor))?;
    if token.document.expires().is_some_and(|expires| expires <= now) {
        return Err(Rejection::AclTokenUnknown(accessor));
    }
    if acl.one_time().len() >= ONE_TIME_MAX && !acl.one_time().contains_key(&accessor) {
        return invalid(format!(
            "there are {ONE_TIME_MAX} one-time tokens already: try again in some minutes"
        ));
    }
    Ok(OneTimeTokenCreated { accessor, digest, expires: now.plus(ONE_TIME_LIFETIME) }.into())
}

pub(crate) fn exchange(acl: &Acl, now: Time, digest: &[u8; 32]) -> Result<Decision, Rejection> {
    let found = acl.one_time().iter().find(|(_, token)| token.digest == *digest && token.expires > now);
    let (accessor, _) = found.ok_or(Rejection::OneTimeTokenRefused)?;
    let token = acl.token(*accessor).ok_or(Rejection::OneTimeTokenRefused)?;
    if token.document.expires().is_some_and(|expires| expires <= now) {
        return Err(Rejection::OneTimeTokenRefused);
    }
    Ok(OneTimeTokenExchanged { accessor: *accessor }.into())
}
