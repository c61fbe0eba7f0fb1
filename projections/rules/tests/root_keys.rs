//! Which keys the cluster signs with, and for whom they are sealed.

use base::{Index, Uuid};
use model::command::ActivateRootKey;
use model::{Command, Rejection, SealedKey, SigningAlgorithm};
use test_world::World;

const PUBLIC: [u8; 32] = [7; 32];
/// Keys that are kept: with one a month, those of five years.
const ROOT_KEYS_MAX: u64 = 64;

/// Whether something was written.
fn submit(world: &mut World, command: Command) -> Result<bool, Rejection> {
    world.submit(command).map(|decision| !decision.events.is_empty())
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
    let mut world = World::new();
    assert_eq!(submit(&mut world, server(1, PUBLIC)), Ok(true));
    assert_eq!(submit(&mut world, server(1, PUBLIC)), Ok(false), "it is known already");
    assert_eq!(submit(&mut world, key(10, &[1], Some(0))), Ok(true));
    let late = submit(&mut world, key(11, &[1], Some(0))).unwrap_err();
    assert_eq!(late.to_string(), "another root key became the active one meanwhile");
    assert_eq!(submit(&mut world, key(11, &[1], None)), Ok(true));
    let (active, row) = world.state.keyring.active().unwrap();
    assert_eq!((active, row.created, row.created_at), (11.into(), Index(3), world.now));
    let refused = submit(&mut world, remove(11)).unwrap_err();
    assert_eq!(refused.to_string(), "the active root key cannot be removed: rotate first");
    assert_eq!(submit(&mut world, remove(10)), Ok(true));
    assert_eq!(submit(&mut world, remove(10)), Err(Rejection::RootKeyUnknown(10.into())));
    assert_eq!(world.state.keyring.keys().len(), 1);
}

#[test]
fn what_is_no_public_key_is_refused() {
    let mut world = World::new();
    submit(&mut world, server(1, PUBLIC)).unwrap();
    let mut with = |modulus: usize, exponent: usize| {
        let Command::ActivateRootKey(wanted) = key(10, &[1], None) else { unreachable!() };
        let (modulus, exponent) = (vec![1; modulus], vec![1; exponent]);
        submit(
            &mut world,
            Command::ActivateRootKey(Box::new(ActivateRootKey { modulus, exponent, ..*wanted })),
        )
    };
    for (modulus, exponent) in [(0, 0), (0, 3), (31, 0), (33, 0), (256, 0), (256, 5_000)] {
        let refused = with(modulus, exponent).unwrap_err().to_string();
        assert!(refused.contains("PublicKey"), "{modulus} and {exponent}: {refused}");
    }
    assert_eq!(with(32, 0), Ok(true));
    assert_eq!(world.state.keyring.algorithm(), SigningAlgorithm::EdDsa);
}

#[test]
fn a_key_is_sealed_for_servers_that_come_later_and_anew_for_one_that_lost_its_own() {
    let mut world = World::new();
    submit(&mut world, server(1, PUBLIC)).unwrap();
    submit(&mut world, key(10, &[1], None)).unwrap();
    let sealed = |server: u128| SealedKey { server: server.into(), bytes: vec![8] };
    let seal = |server| Command::SealRootKey { key: 10.into(), sealed: sealed(server) };
    assert!(submit(&mut world, seal(2)).is_err(), "nobody knows that server");
    submit(&mut world, server(2, PUBLIC)).unwrap();
    assert_eq!(submit(&mut world, seal(2)), Ok(true));
    assert_eq!(submit(&mut world, seal(2)), Ok(false));
    submit(&mut world, server(2, [8; 32])).unwrap();
    assert!(!world.state.keyring.active().unwrap().1.sealed.contains_key(&2.into()));
}

#[test]
fn nothing_grows_without_bound() {
    let mut world = World::new();
    for id in 1..=65 {
        submit(&mut world, server(id, PUBLIC)).unwrap();
    }
    assert_eq!(world.state.keyring.servers().len(), 64);
    assert!(!world.state.keyring.servers().contains_key(&1.into()), "the first that was announced made room");
    for id in 0..ROOT_KEYS_MAX {
        submit(&mut world, key(100 + u128::from(id), &[65], None)).unwrap();
    }
    let full = submit(&mut world, key(500, &[65], None)).unwrap_err();
    assert_eq!(full.to_string(), "there are 64 root keys already: remove one that is not used");
}
