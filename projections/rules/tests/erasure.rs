//! What is forgotten, who has to erase it, and how servers come to the key tree.

use base::{Index, Uuid};
use model::command::{CreateAclToken, SetVariable};
use model::document::{ACLAuthMethod, ACLAuthMethodConfig, ACLToken, AuthMethodRecord};
use model::{
    Command, KEY_TREE_EPOCH, KeyTreeCommand, Rejection, SealedData, SealedItems, SealedKey, TokenSecret,
    VariableKey, auth_method_secrets, token_secrets,
};
use rules::erasure::FORGOTTEN_MAX;
use rules::{Decision, variable};
use state::Imager;
use state::operator::pieces_of;
use test_world::World;

const PUBLIC: [u8; 32] = [7; 32];

fn id(number: u128) -> Uuid {
    Uuid::from(number)
}

fn key(path: &str) -> VariableKey {
    VariableKey::new("default", path)
}

fn tree(world: &mut World, command: KeyTreeCommand) -> Result<Decision, Rejection> {
    world.submit(Command::KeyTree(Box::new(command)))
}

fn sealed(server: u128) -> SealedKey {
    SealedKey { server: id(server), bytes: vec![1, 2, 3] }
}

fn request(world: &mut World, server: u128, public: [u8; 32]) -> bool {
    let wanted = KeyTreeCommand::Request { server: id(server), public };
    !tree(world, wanted).unwrap().events.is_empty()
}

fn found(world: &mut World, number: u128, servers: &[u128], after: Option<u128>) -> bool {
    let sealed = servers.iter().map(|server| sealed(*server)).collect();
    let wanted = KeyTreeCommand::Found { tree: id(number), sealed, after: after.map(id) };
    !tree(world, wanted).unwrap().events.is_empty()
}

fn share(world: &mut World, server: u128, public: [u8; 32]) -> bool {
    let wanted = KeyTreeCommand::Share { tree: id(100), public, sealed: sealed(server) };
    !tree(world, wanted).unwrap().events.is_empty()
}

/// Up to what the server has seen.
fn report(world: &mut World, server: u128) -> bool {
    let up_to = world.state.index;
    let wanted = KeyTreeCommand::ReportErased { server: id(server), tree: id(100), up_to };
    !tree(world, wanted).unwrap().events.is_empty()
}

/// Two servers that have the tree 100.
fn world() -> World {
    let mut world = World::new();
    world.submit(Command::RaiseEpoch { epoch: KEY_TREE_EPOCH }).unwrap();
    assert!(request(&mut world, 1, PUBLIC) && request(&mut world, 2, PUBLIC));
    assert!(found(&mut world, 100, &[1, 2], None));
    assert!(report(&mut world, 1) && report(&mut world, 2));
    world
}

fn set(world: &mut World, path: &str, number: u8) -> Result<Decision, Rejection> {
    set_with(world, path, number, world.state.erasure.key_of(&key(path)))
}

fn set_with(world: &mut World, path: &str, number: u8, own: Uuid) -> Result<Decision, Rejection> {
    let sealed = SealedData { key: own, bytes: vec![2, number] };
    let items = SealedItems { sealed, digest: [number; 32] };
    let wanted = SetVariable { key: key(path), items, only_at: None, lock: None };
    world.submit(Command::SetVariable(Box::new(wanted)))
}

/// The index at which it is forgotten.
fn forget(world: &mut World, path: &str) -> Index {
    world.submit(Command::ForgetVariable { key: key(path), lock: None }).unwrap();
    world.state.index
}

fn pending(world: &World, at: Index) -> Vec<Uuid> {
    world.state.erasure.pending(at).collect()
}

#[test]
fn what_is_forgotten_is_erased_when_every_server_has_said_so() {
    let mut world = world();
    set(&mut world, "a", 1).unwrap();
    set(&mut world, "a", 2).unwrap();
    set(&mut world, "b", 1).unwrap();
    let own = world.state.erasure.key_of(&key("a"));
    let at = forget(&mut world, "a");
    assert!(world.state.variables.get(&key("a")).is_none() && world.state.variables.get(&key("b")).is_some());
    let erasure = &world.state.erasure;
    assert_eq!((erasure.forgotten_at(&key("a"), own), erasure.last_of(&key("a"))), (Some(at), Some(at)));
    assert_eq!(erasure.forgotten_at(&key("b"), own), None);
    assert_eq!(pending(&world, at), [id(1), id(2)]);
    let seen = world.state.index;
    assert!(report(&mut world, 1));
    let again = KeyTreeCommand::ReportErased { server: id(1), tree: id(100), up_to: seen };
    assert!(tree(&mut world, again).unwrap().events.is_empty(), "it has said so");
    assert_eq!(pending(&world, at), [id(2)]);
    assert!(report(&mut world, 2));
    assert_eq!(pending(&world, at), []);

    // Under the same name with another key: the old one is given up for ever.
    let late = set_with(&mut world, "a", 1, own).unwrap_err().to_string();
    assert!(late.contains("the variable was forgotten meanwhile: try again"), "{late}");
    set(&mut world, "a", 1).unwrap();
    let next = world.state.erasure.key_of(&key("a"));
    let again = forget(&mut world, "a");
    assert_ne!(own, next);
    assert_eq!(world.state.erasure.forgotten_at(&key("a"), next), Some(again));
    assert_eq!(world.state.erasure.given_up(), [(own, at), (next, again)]);
    assert_eq!((pending(&world, at).len(), pending(&world, again).len()), (0, 2));
    world.check_replay();
}

#[test]
fn one_that_was_purged_before_is_forgotten_too_and_a_locked_one_is_not() {
    let mut world = world();
    set(&mut world, "a", 1).unwrap();
    world.submit(Command::DeleteVariable { key: key("a"), only_at: None, lock: None }).unwrap();
    let at = forget(&mut world, "a");
    assert_eq!(pending(&world, at).len(), 2);

    set(&mut world, "b", 1).unwrap();
    let lock = model::VariableLock {
        id: id(9),
        ttl: base::Duration::from_secs(15),
        delay: base::Duration::from_secs(15),
    };
    let items = world.state.variables.get(&key("b")).unwrap().current().items.clone();
    let wanted = model::command::AcquireVariableLock { key: key("b"), items, keep_items: true, lock };
    world.submit(Command::AcquireVariableLock(Box::new(wanted))).unwrap();
    let refused = world.submit(Command::ForgetVariable { key: key("b"), lock: None }).unwrap_err();
    assert!(matches!(refused, Rejection::VariableConflict { .. }), "{refused}");
    let invalid = world.submit(Command::ForgetVariable { key: key("a b"), lock: None }).unwrap_err();
    assert_eq!(Err(invalid), variable::check_path("a b"));
    world.submit(Command::ForgetVariable { key: key("b"), lock: Some(id(9)) }).unwrap();
    world.check_replay();
}

#[test]
fn a_server_gets_the_tree_once_and_another_time_if_it_lost_it() {
    let mut world = world();
    assert!(!found(&mut world, 101, &[1], None), "somebody was quicker");
    assert!(request(&mut world, 3, PUBLIC));
    assert!(!request(&mut world, 3, PUBLIC), "it is known already");
    assert!(!share(&mut world, 3, [8; 32]), "sealed for another key");
    assert!(share(&mut world, 3, PUBLIC));
    assert!(!share(&mut world, 3, PUBLIC), "another server was quicker");
    let at = forget(&mut world, "a");
    assert!(pending(&world, at).contains(&id(3)), "what it was given opens it");
    assert!(report(&mut world, 3));
    assert!(world.state.erasure.holders()[&id(3)].sealed.is_none());
    assert!(!share(&mut world, 3, PUBLIC), "it has it");

    // Who lost its tree may have an older one somewhere on its disk.
    let (lost, before) = ([9; 32], world.state.erasure.holders()[&id(3)].erased);
    assert!(request(&mut world, 3, lost));
    assert_eq!(world.state.erasure.holders()[&id(3)].erased, before);
    assert!(share(&mut world, 3, lost));

    // All of them lost it.
    assert!(found(&mut world, 101, &[1, 2, 3], Some(100)));
    assert_eq!(world.state.erasure.tree(), Some(id(101)));
    assert!(!report(&mut world, 1), "it speaks of a tree that is no more");
    world.check_replay();
}

#[test]
fn nobody_waits_for_a_server_that_left_until_it_is_back() {
    let mut world = world();
    let at = forget(&mut world, "a");
    report(&mut world, 1);
    assert_eq!(pending(&world, at), [id(2)]);
    tree(&mut world, KeyTreeCommand::RemoveHolder { server: id(2) }).unwrap();
    assert_eq!(pending(&world, at), []);
    let again = tree(&mut world, KeyTreeCommand::RemoveHolder { server: id(2) }).unwrap();
    assert!(again.events.is_empty());
    assert!(request(&mut world, 2, PUBLIC));
    assert_eq!(pending(&world, at), [id(2)], "what is on its disk opens it");
    world.check_replay();
}

#[test]
fn what_is_wrong_is_refused_by_its_name() {
    let mut world = world();
    let future = KeyTreeCommand::ReportErased { server: id(1), tree: id(100), up_to: Index(1_000) };
    let nobody = KeyTreeCommand::Request { server: Uuid::NIL, public: PUBLIC };
    let strangers = KeyTreeCommand::Found { tree: id(7), sealed: vec![sealed(9)], after: Some(id(100)) };
    let same = KeyTreeCommand::Found { tree: id(100), sealed: vec![sealed(1)], after: Some(id(100)) };
    let empty = SealedKey { server: id(1), bytes: Vec::new() };
    let empty = KeyTreeCommand::Share { tree: id(100), public: PUBLIC, sealed: empty };
    for (wanted, field) in
        [(future, "UpTo"), (nobody, "Server"), (strangers, "Sealed"), (same, "Tree"), (empty, "Sealed.Bytes")]
    {
        let refused = tree(&mut world, wanted).unwrap_err().to_string();
        assert!(refused.starts_with(&format!("invalid key tree: {field}: expected ")), "{refused}");
    }
    let stranger = KeyTreeCommand::ReportErased { server: id(9), tree: id(100), up_to: Index(1) };
    assert!(tree(&mut world, stranger).unwrap().events.is_empty());
    for server in 3..=64 {
        assert!(request(&mut world, server, PUBLIC));
    }
    let full = KeyTreeCommand::Request { server: id(65), public: PUBLIC };
    let full = tree(&mut world, full).unwrap_err().to_string();
    assert_eq!(full, "invalid key tree: Server: expected at most 64 servers with a key tree");
    for _ in 0..FORGOTTEN_MAX {
        forget(&mut world, "a");
    }
    let full = world.submit(Command::ForgetVariable { key: key("a"), lock: None }).unwrap_err();
    assert_eq!(
        full.to_string(),
        "1024 variables, tokens and auth methods were forgotten already, and no more can be"
    );
    world.check_replay();
}

/// A client token with its secret under this key.
fn token(accessor: u128, key: Uuid) -> Command {
    let token = ACLToken {
        accessor_id: id(accessor).to_string(),
        kind: ACLToken::CLIENT.to_string(),
        policies: vec!["dev".to_string()].into(),
        ..ACLToken::default()
    };
    let secret = TokenSecret { digest: [accessor as u8; 32], sealed: SealedData { key, bytes: vec![2] } };
    Command::CreateAclToken(Box::new(CreateAclToken { token, secret }))
}

fn method(name: &str, key: Uuid) -> AuthMethodRecord {
    let config = ACLAuthMethodConfig {
        oidc_discovery_url: "https://id.example".into(),
        oidc_client_id: "sojourn".into(),
        allowed_redirect_uris: vec!["http://localhost:4649/oidc/callback".to_string()].into(),
        ..ACLAuthMethodConfig::default()
    };
    let method = ACLAuthMethod {
        name: name.into(),
        kind: ACLAuthMethod::OIDC.into(),
        token_locality: ACLAuthMethod::LOCAL.into(),
        max_token_ttl: base::Duration::from_secs(600).into(),
        config: Some(config),
        ..ACLAuthMethod::default()
    };
    AuthMethodRecord { method, client_secret: Some(SealedData { key, bytes: vec![2] }), private_key: None }
}

/// Its fact, as the newest of all.
fn last_given_up(world: &World) -> (Uuid, Index) {
    *world.state.erasure.given_up().last().unwrap()
}

#[test]
fn a_token_and_an_auth_method_go_with_the_keys_of_their_secrets() {
    let mut world = world();
    let own = world.state.erasure.key_of(&token_secrets(id(5)));
    world.submit(token(5, own)).unwrap();
    world.submit(Command::ForgetAclToken { accessor: id(5) }).unwrap();
    assert!(world.state.acl.token(id(5)).is_none());
    let at = world.state.index;
    assert_eq!(last_given_up(&world), (own, at));
    assert_eq!(pending(&world, at), [id(1), id(2)]);
    assert!(report(&mut world, 1) && report(&mut world, 2));
    assert_eq!(pending(&world, at), []);
    let gone = world.submit(Command::ForgetAclToken { accessor: id(5) }).unwrap_err().to_string();
    assert_eq!(gone, format!("cannot find token {}", id(5)));
    // Whoever sealed it before does not bring the key back.
    let late = world.submit(token(5, own)).unwrap_err().to_string();
    assert_eq!(late, format!("acl-token/{} was forgotten meanwhile: try again", id(5)));
    world.submit(token(5, world.state.erasure.key_of(&token_secrets(id(5))))).unwrap();

    let of = auth_method_secrets("sso");
    let own = world.state.erasure.key_of(&of);
    world.submit(Command::CreateAuthMethod(Box::new(method("sso", own)))).unwrap();
    world.submit(Command::ForgetAuthMethod { name: "sso".into() }).unwrap();
    assert!(world.state.acl.methods.get("sso").is_none());
    assert_eq!(last_given_up(&world), (own, world.state.index));
    let late = world.submit(Command::CreateAuthMethod(Box::new(method("sso", own)))).unwrap_err();
    assert!(late.to_string().contains("was forgotten meanwhile"), "{late}");
    let unknown = world.submit(Command::ForgetAuthMethod { name: "sso".into() }).unwrap_err();
    assert_eq!(unknown, Rejection::AuthMethodUnknown("sso".into()));

    // Under a root key it cannot be given up, and nobody says that it is.
    world.submit(token(6, id(9))).unwrap();
    world.submit(Command::CreateAuthMethod(Box::new(method("old", id(9))))).unwrap();
    let before = world.state.index;
    for command in
        [Command::ForgetAclToken { accessor: id(6) }, Command::ForgetAuthMethod { name: "old".into() }]
    {
        let why = world.submit(command).unwrap_err().to_string();
        assert!(why.contains("has a secret that a root key encrypts"), "{why}");
    }
    assert_eq!(world.state.index, before);
    world.check_replay();
}

/// The snapshot has a token and an auth method whose secrets nobody can open any more.
#[test]
fn a_restored_snapshot_brings_no_forgotten_token_back() {
    let mut world = world();
    let key_of = |world: &World, of: &VariableKey| world.state.erasure.key_of(of);
    for number in [5, 6] {
        let own = key_of(&world, &token_secrets(id(number)));
        world.submit(token(number, own)).unwrap();
    }
    for name in ["sso", "kept"] {
        let own = key_of(&world, &auth_method_secrets(name));
        world.submit(Command::CreateAuthMethod(Box::new(method(name, own)))).unwrap();
    }
    let image = Imager::default().image(&world.state);
    world.submit(Command::ForgetAclToken { accessor: id(5) }).unwrap();
    world.submit(Command::ForgetAuthMethod { name: "sso".into() }).unwrap();
    let (restore, mut chunks) = (id(77), 0);
    for chunk in &image.chunks {
        for piece in pieces_of(chunk.bytes.as_ref().unwrap()) {
            let bytes = piece.to_vec();
            world.submit(Command::GiveStateChunk { restore, number: chunks, bytes }).unwrap();
            chunks += 1;
        }
    }
    world.submit(Command::RestoreState { restore, chunks, image: image.index }).unwrap();
    let acl = &world.state.acl;
    assert!(acl.token(id(5)).is_none() && acl.token(id(6)).is_some());
    assert!(acl.methods.get("sso").is_none() && acl.methods.get("kept").is_some());
    world.check_replay();
}

/// The snapshot is from before, and knows nothing of it.
#[test]
fn a_restored_snapshot_brings_nothing_back_that_was_forgotten() {
    let mut world = world();
    set(&mut world, "a", 1).unwrap();
    set(&mut world, "b", 1).unwrap();
    let image = Imager::default().image(&world.state);
    let at = forget(&mut world, "a");
    report(&mut world, 1);
    set(&mut world, "b", 2).unwrap();
    let restore = id(77);
    let mut chunks = 0;
    for chunk in &image.chunks {
        for piece in pieces_of(chunk.bytes.as_ref().unwrap()) {
            let bytes = piece.to_vec();
            world.submit(Command::GiveStateChunk { restore, number: chunks, bytes }).unwrap();
            chunks += 1;
        }
    }
    world.submit(Command::RestoreState { restore, chunks, image: image.index }).unwrap();
    assert!(world.state.variables.get(&key("a")).is_none());
    assert_eq!(world.state.variables.get(&key("b")).unwrap().current().number, 0, "it is as it was");
    assert_eq!(world.state.erasure.last_of(&key("a")), Some(at));
    assert_eq!(pending(&world, at), [id(2)]);
    world.check_replay();
}

/// Another cluster forgot it: its keys are given up here as well.
#[test]
fn what_the_snapshot_of_another_cluster_forgot_stays_forgotten() {
    let mut other = world();
    set(&mut other, "a", 1).unwrap();
    forget(&mut other, "a");
    set(&mut other, "a", 2).unwrap();
    let image = Imager::default().image(&other.state);
    let mut world = world();
    let restore = id(77);
    let mut chunks = 0;
    for chunk in &image.chunks {
        for piece in pieces_of(chunk.bytes.as_ref().unwrap()) {
            let bytes = piece.to_vec();
            world.submit(Command::GiveStateChunk { restore, number: chunks, bytes }).unwrap();
            chunks += 1;
        }
    }
    world.submit(Command::RestoreState { restore, chunks, image: image.index }).unwrap();
    let own = world.state.variables.get(&key("a")).unwrap().current().items.sealed.key;
    assert_eq!(own, world.state.erasure.key_of(&key("a")), "the next key of that name");
    assert_eq!(world.state.erasure.last_of(&key("a")), Some(world.state.index));
    world.check_replay();
}
