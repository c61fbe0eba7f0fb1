//! Which keys the cluster signs with.

use base::Uuid;
use model::command::ActivateRootKey;
use model::event::{RootKeyActivated, RootKeyRemoved, RootKeySealed, RootKeysRekeying, ServerKeyAnnounced};
use model::{Rejection, SealedKey, SigningAlgorithm};
use state::keyring::Keyring;

use crate::decision::Decision;

/// Keys that are kept, the active one included: with one a month, those of five years.
pub const ROOT_KEYS_MAX: usize = 64;
/// Largest half of a key that is accepted; an RSA key of 4,096 bits, sealed, takes 2,400 bytes.
const KEY_BYTES_MAX: usize = 4_096;
/// A public key of Ed25519.
const ED25519_BYTES: usize = 32;

pub(crate) fn announce(keyring: &Keyring, server: Uuid, public: [u8; 32]) -> Result<Decision, Rejection> {
    if server.is_nil() {
        return invalid("Server", "the id of a server");
    }
    if keyring.servers().get(&server).is_some_and(|known| known.public == public) {
        return Ok(Decision::nothing());
    }
    Ok(ServerKeyAnnounced { server, public }.into())
}

/// # Errors
/// [`Rejection::RootKeyRefused`] when another key became the active one meanwhile, or there are too many.
pub(crate) fn activate(keyring: &Keyring, request: &ActivateRootKey) -> Result<Decision, Rejection> {
    let active = keyring.active().map_or(Uuid::NIL, |(key, _)| key);
    if request.only_after.is_some_and(|after| after != active) {
        return refused("another root key became the active one meanwhile");
    }
    if request.key.is_nil() || keyring.keys().contains_key(&request.key) {
        return invalid("KeyID", "an id that no key has");
    }
    let is_key = match SigningAlgorithm::of_exponent(&request.exponent) {
        SigningAlgorithm::Rs256 => fits(&request.modulus) && fits(&request.exponent),
        SigningAlgorithm::EdDsa => request.modulus.len() == ED25519_BYTES,
    };
    if !is_key {
        return invalid("PublicKey", "an RSA modulus and exponent, or the 32 bytes of an Ed25519 key");
    }
    if request.sealed.is_empty() {
        return invalid("Sealed", "a copy for at least one server");
    }
    request.sealed.iter().try_for_each(|sealed| check_sealed(keyring, sealed))?;
    if keyring.keys().len() >= ROOT_KEYS_MAX {
        return refused(&format!("there are {ROOT_KEYS_MAX} root keys already: remove one that is not used"));
    }
    let activated = RootKeyActivated {
        key: request.key,
        modulus: request.modulus.clone(),
        exponent: request.exponent.clone(),
        sealed: request.sealed.clone(),
    };
    let former: Vec<Uuid> = keyring.keys().keys().copied().collect();
    let mut events = vec![activated.into()];
    if request.full && !former.is_empty() {
        events.push(RootKeysRekeying { keys: former }.into());
    }
    Ok(Decision::of(events))
}

pub(crate) fn seal(keyring: &Keyring, key: Uuid, sealed: &SealedKey) -> Result<Decision, Rejection> {
    check_sealed(keyring, sealed)?;
    let known = keyring.keys().get(&key).ok_or(Rejection::RootKeyUnknown(key))?;
    if known.sealed.contains_key(&sealed.server) {
        return Ok(Decision::nothing());
    }
    Ok(RootKeySealed { key, sealed: sealed.clone() }.into())
}

/// # Errors
/// [`Rejection::RootKeyUnknown`]; [`Rejection::RootKeyRefused`] for the active key.
pub(crate) fn remove(keyring: &Keyring, key: Uuid) -> Result<Decision, Rejection> {
    if !keyring.keys().contains_key(&key) {
        return Err(Rejection::RootKeyUnknown(key));
    }
    if keyring.active().is_some_and(|(active, _)| active == key) {
        return refused("the active root key cannot be removed: rotate first");
    }
    Ok(RootKeyRemoved { key }.into())
}

fn check_sealed(keyring: &Keyring, sealed: &SealedKey) -> Result<(), Rejection> {
    if !keyring.servers().contains_key(&sealed.server) {
        return invalid("Sealed.Server", "a server that has announced its key");
    }
    if !fits(&sealed.bytes) {
        return invalid("Sealed.Bytes", "a sealed key");
    }
    Ok(())
}

fn fits(bytes: &[u8]) -> bool {
    (1..=KEY_BYTES_MAX).contains(&bytes.len())
}

fn invalid<T>(field: &'static str, expected: &'static str) -> Result<T, Rejection> {
    Err(Rejection::RootKeyInvalid { field: field.into(), expected: expected.into() })
}

fn refused(why: &str) -> Result<Decision, Rejection> {
    Err(Rejection::RootKeyRefused(why.to_string()))
}

#[cfg(test)]
mod tests {
    use base::{Index, Time};
    use model::{Actor, Command, CommandRecord, RequestId};
    use state::{Delta, Moment, State};

    use super::*;
    use crate::Context;

    const PUBLIC: [u8; 32] = [7; 32];

    /// Decides and folds; whether something was written.
    fn submit(state: &mut State, index: u64, command: Command) -> Result<bool, Rejection> {
        let mut ctx = Context::new(Index(index), Time(index as i64), 1);
        let decision = crate::decide(state, &mut ctx, &Actor::ANONYMOUS, &command)?;
        let at = Moment { index: Index(index), time: Time(index as i64), epoch: model::EPOCH };
        let record = CommandRecord { request: RequestId::default(), kind: 0, actor: Actor::ANONYMOUS };
        state.absorb(at, &record, decision.events.iter(), &mut Delta::default());
        Ok(!decision.events.is_empty())
    }

    fn server(id: u128, public: [u8; 32]) -> Command {
        Command::AnnounceServerKey { server: Uuid::from(id), public }
    }

    fn key(id: u128, servers: &[u128], only_after: Option<u128>) -> Command {
        let sealed = servers.iter().map(|server| SealedKey { server: (*server).into(), bytes: vec![9] });
        Command::ActivateRootKey(Box::new(ActivateRootKey {
            key: id.into(),
            modulus: vec![1],
            exponent: vec![2],
            sealed: sealed.collect(),
            only_after: only_after.map(Uuid::from),
            full: false,
        }))
    }

    fn remove(id: u128) -> Command {
        Command::RemoveRootKey { key: id.into() }
    }

    #[test]
    fn one_key_is_active_and_the_ones_before_it_go_on_request() {
        let mut state = State::default();
        assert_eq!(submit(&mut state, 1, server(1, PUBLIC)), Ok(true));
        assert_eq!(submit(&mut state, 2, server(1, PUBLIC)), Ok(false), "it is known already");
        assert_eq!(submit(&mut state, 2, key(10, &[1], Some(0))), Ok(true));
        let late = submit(&mut state, 3, key(11, &[1], Some(0))).unwrap_err();
        assert_eq!(late.to_string(), "another root key became the active one meanwhile");
        assert_eq!(submit(&mut state, 3, key(11, &[1], None)), Ok(true));
        let (active, row) = state.keyring.active().unwrap();
        assert_eq!((active, row.created, row.created_at), (11.into(), Index(3), Time(3)));
        let refused = submit(&mut state, 4, remove(11)).unwrap_err();
        assert_eq!(refused.to_string(), "the active root key cannot be removed: rotate first");
        assert_eq!(submit(&mut state, 4, remove(10)), Ok(true));
        assert_eq!(submit(&mut state, 5, remove(10)), Err(Rejection::RootKeyUnknown(10.into())));
        assert_eq!(state.keyring.keys().len(), 1);
    }

    #[test]
    fn what_is_no_public_key_is_refused() {
        let mut state = State::default();
        submit(&mut state, 1, server(1, PUBLIC)).unwrap();
        let mut with = |modulus: usize, exponent: usize| {
            let Command::ActivateRootKey(wanted) = key(10, &[1], None) else { unreachable!() };
            let (modulus, exponent) = (vec![1; modulus], vec![1; exponent]);
            submit(
                &mut state,
                2,
                Command::ActivateRootKey(Box::new(ActivateRootKey { modulus, exponent, ..*wanted })),
            )
        };
        for (modulus, exponent) in [(0, 0), (0, 3), (31, 0), (33, 0), (256, 0), (256, 5_000)] {
            let refused = with(modulus, exponent).unwrap_err().to_string();
            assert!(refused.contains("PublicKey"), "{modulus} and {exponent}: {refused}");
        }
        assert_eq!(with(32, 0), Ok(true));
        assert_eq!(state.keyring.algorithm(), SigningAlgorithm::EdDsa);
    }

    #[test]
    fn a_key_is_sealed_for_servers_that_come_later_and_anew_for_one_that_lost_its_own() {
        let mut state = State::default();
        submit(&mut state, 1, server(1, PUBLIC)).unwrap();
        submit(&mut state, 2, key(10, &[1], None)).unwrap();
        let sealed = |server: u128| SealedKey { server: server.into(), bytes: vec![8] };
        let seal = |server| Command::SealRootKey { key: 10.into(), sealed: sealed(server) };
        assert!(submit(&mut state, 3, seal(2)).is_err(), "nobody knows that server");
        submit(&mut state, 3, server(2, PUBLIC)).unwrap();
        assert_eq!(submit(&mut state, 4, seal(2)), Ok(true));
        assert_eq!(submit(&mut state, 5, seal(2)), Ok(false));
        submit(&mut state, 5, server(2, [8; 32])).unwrap();
        assert!(!state.keyring.active().unwrap().1.sealed.contains_key(&2.into()));
    }

    #[test]
    fn nothing_grows_without_bound() {
        let mut state = State::default();
        for id in 1..=65 {
            submit(&mut state, id, server(id.into(), PUBLIC)).unwrap();
        }
        assert_eq!(state.keyring.servers().len(), 64);
        assert!(!state.keyring.servers().contains_key(&1.into()), "the first that was announced made room");
        for id in 0..ROOT_KEYS_MAX as u64 {
            submit(&mut state, 100 + id, key(100 + u128::from(id), &[65], None)).unwrap();
        }
        let full = submit(&mut state, 200, key(500, &[65], None)).unwrap_err();
        assert_eq!(full.to_string(), "there are 64 root keys already: remove one that is not used");
    }
}
