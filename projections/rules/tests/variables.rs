//! Variables: who may change one, what becomes of the versions before, and what the next key seals.

use base::{Duration, Index, Uuid};
use model::command::{AcquireVariableLock, ActivateRootKey, ResealVersion, SetVariable};
use model::document::Namespace;
use model::{
    Actor, Caller, Command, Event, Rejection, SealedData, SealedItems, SealedKey, VariableKey, VariableLock,
};
use rules::Decision;
use rules::variable::check_path;
use state::variable::{VERSIONS_MAX, Variable};
use test_world::World;

fn id(number: u128) -> Uuid {
    Uuid::from(number)
}

fn key(path: &str) -> VariableKey {
    VariableKey::new("default", path)
}

/// Items with the same number are the same; each seal is another one.
fn items(number: u8, seal: u8) -> SealedItems {
    sealed_with(1, number, seal)
}

fn sealed_with(root: u128, number: u8, seal: u8) -> SealedItems {
    SealedItems { sealed: SealedData { key: id(root), bytes: vec![number, seal] }, digest: [number; 32] }
}

/// With a root key.
fn world() -> World {
    let mut world = World::new();
    world.submit(Command::AnnounceServerKey { server: id(50), public: [1; 32] }).unwrap();
    activate(&mut world, 1, false);
    world
}

fn activate(world: &mut World, root: u128, full: bool) {
    let sealed = vec![SealedKey { server: id(50), bytes: vec![1] }];
    let (modulus, exponent) = (vec![1], vec![1]);
    let wanted = ActivateRootKey { key: id(root), modulus, exponent, sealed, only_after: None, full };
    world.submit(Command::ActivateRootKey(Box::new(wanted))).unwrap();
}

fn set(
    world: &mut World,
    path: &str,
    items: SealedItems,
    only_at: Option<Index>,
    lock: Option<Uuid>,
) -> Result<Decision, Rejection> {
    world.submit(Command::SetVariable(Box::new(SetVariable { key: key(path), items, only_at, lock })))
}

fn acquire(world: &mut World, path: &str, lock: u128, keep_items: bool) -> Result<Decision, Rejection> {
    let lock = VariableLock { id: id(lock), ttl: Duration::from_secs(15), delay: Duration::from_secs(15) };
    let wanted = AcquireVariableLock { key: key(path), items: items(9, 9), keep_items, lock };
    world.submit(Command::AcquireVariableLock(Box::new(wanted)))
}

fn row<'a>(world: &'a World, path: &str) -> &'a Variable {
    world.state.variables.get(&key(path)).expect("it is there")
}

fn conflict(path: &str, at: u64) -> Rejection {
    Rejection::VariableConflict { key: key(path), at: Index(at) }
}

#[test]
fn only_some_paths_are_for_variables() {
    let longest = "p".repeat(128);
    let fit = ["a", "a/b-c_d~E/9", "nomad/jobs", "nomad/jobs/x", "nomad/job-templates/x", "nomads", &longest];
    for path in fit {
        assert_eq!(check_path(path), Ok(()), "{path}");
    }
    let longer = "p".repeat(129);
    let unfit = [
        "",
        "a b",
        "a.b",
        "ü",
        "nomad",
        "nomad/",
        "nomad/foo",
        "nomad/jobs2",
        "nomad/job-templates",
        "nomad/job-templates/a/b",
        &longer,
    ];
    for path in unfit {
        assert!(matches!(check_path(path), Err(Rejection::VariableInvalid(_))), "{path}");
    }
}

#[test]
fn a_variable_is_set_compared_and_deleted() {
    let mut world = world();
    assert_eq!(set(&mut world, "a", items(1, 1), Some(Index(7)), None), Err(conflict("a", 0)));
    set(&mut world, "a", items(1, 1), Some(Index::ZERO), None).unwrap();
    let first = row(&world, "a").modified;
    assert_eq!((first, row(&world, "a").created), (world.state.index, world.state.index));

    let again = set(&mut world, "a", items(1, 2), None, None).unwrap();
    assert!(again.events.is_empty(), "the same items, in another seal");
    assert_eq!(
        set(&mut world, "a", items(2, 1), Some(Index::ZERO), None),
        Err(conflict("a", first.0)),
        "it is there already"
    );
    set(&mut world, "a", items(2, 1), Some(first), None).unwrap();
    let second = row(&world, "a").modified;
    assert!(second > first && row(&world, "a").created == first);
    assert_eq!(world.state.variables.changed(), second);

    let delete = |only_at| Command::DeleteVariable { key: key("a"), only_at, lock: None };
    assert_eq!(world.submit(delete(Some(first))), Err(conflict("a", second.0)));
    world.submit(delete(Some(second))).unwrap();
    assert!(world.state.variables.is_empty() && world.state.variables.changed() == world.state.index);
    assert!(world.submit(delete(None)).unwrap().events.is_empty(), "it is gone already");
    assert_eq!(world.submit(delete(Some(second))), Err(conflict("a", 0)));

    let elsewhere =
        SetVariable { key: VariableKey::new("dev", "a"), items: items(1, 1), only_at: None, lock: None };
    let unknown = world.submit(Command::SetVariable(Box::new(elsewhere)));
    assert_eq!(unknown, Err(Rejection::NamespaceUnknown("dev".to_string())));
    let huge = SealedItems { sealed: SealedData { key: id(1), bytes: vec![0; 600_000] }, digest: [0; 32] };
    for refused in [huge, sealed_with(8, 1, 1)] {
        assert!(matches!(set(&mut world, "a", refused, None, None), Err(Rejection::VariableInvalid(_))));
    }
    world.check_replay();
}

#[test]
fn the_last_versions_stay_with_who_wrote_them() {
    let mut world = world();
    for number in 0..VERSIONS_MAX as u8 + 3 {
        let caller = Caller { accessor: "a-1".into(), name: format!("writer {number}"), ..Caller::default() };
        let wanted = SetVariable { key: key("a"), items: items(number, 0), only_at: None, lock: None };
        world.submit_as(Actor::Caller(caller), Command::SetVariable(Box::new(wanted))).unwrap();
    }
    let variable = row(&world, "a");
    assert_eq!(variable.versions.len(), VERSIONS_MAX);
    assert!(variable.version(2).is_none() && variable.version(3).is_some());
    assert_eq!(variable.current().number, 22);
    assert_eq!(
        (variable.current().author.as_str(), variable.current().accessor.as_str()),
        ("writer 22", "a-1")
    );
    assert_eq!(world.state.variables.bytes(), 2 * VERSIONS_MAX as u64);
    world.check_replay();
}

#[test]
fn who_holds_the_lock_alone_changes_the_variable() {
    let mut world = world();
    acquire(&mut world, "a", 7, true).unwrap();
    assert_eq!(row(&world, "a").current().items, items(9, 9), "there was none to keep");
    let locked_at = row(&world, "a").modified.0;
    assert_eq!(acquire(&mut world, "a", 8, true), Err(conflict("a", locked_at)));
    let own = acquire(&mut world, "a", 7, true).unwrap_err();
    assert_eq!(own.to_string(), "variable already holds a lock");
    assert_eq!(set(&mut world, "a", items(1, 1), None, None), Err(conflict("a", locked_at)));
    assert_eq!(set(&mut world, "a", items(1, 1), None, Some(id(8))), Err(conflict("a", locked_at)));
    set(&mut world, "a", items(1, 1), None, Some(id(7))).unwrap();
    assert_eq!(row(&world, "a").lock.map(|lock| lock.id), Some(id(7)), "it stays locked");
    let delete = Command::DeleteVariable { key: key("a"), only_at: None, lock: None };
    assert!(world.submit(delete).is_err());

    let release = |lock| Command::ReleaseVariableLock { key: key("a"), lock: id(lock) };
    assert!(matches!(world.submit(release(8)), Err(Rejection::VariableConflict { .. })));
    world.submit(release(7)).unwrap();
    assert!(row(&world, "a").lock.is_none() && row(&world, "a").current().items == items(1, 1));
    assert!(world.submit(release(7)).is_err(), "it is not held any more");
    assert!(set(&mut world, "a", items(2, 1), None, Some(id(7))).is_err(), "who lost it writes nothing");
    let missing = Command::ReleaseVariableLock { key: key("b"), lock: id(7) };
    assert_eq!(world.submit(missing), Err(Rejection::VariableUnknown(key("b"))));

    acquire(&mut world, "a", 9, true).unwrap();
    assert_eq!(row(&world, "a").current().items, items(1, 1), "it keeps its items");
    let expire = |lock| Command::ExpireVariableLock { key: key("a"), lock: id(lock) };
    assert!(world.submit(expire(7)).unwrap().events.is_empty(), "another one has it");
    let expired = world.submit(expire(9)).unwrap();
    assert!(matches!(&expired.events[..], [Event::VariableLockReleased(e)] if e.expired));
    assert!(world.submit(expire(9)).unwrap().events.is_empty());
    world.check_replay();
}

#[test]
fn a_namespace_with_variables_is_not_deleted() {
    let mut world = world();
    let namespace = Namespace { name: "dev".into(), ..Namespace::default() };
    world.submit(Command::UpsertNamespace(Box::new(namespace))).unwrap();
    let key = VariableKey::new("dev", "a");
    let wanted = SetVariable { key: key.clone(), items: items(1, 1), only_at: None, lock: None };
    world.submit(Command::SetVariable(Box::new(wanted))).unwrap();
    let delete = || Command::DeleteNamespace { name: "dev".into() };
    let refused = world.submit(delete()).unwrap_err();
    assert_eq!(refused.to_string(), "namespace \"dev\" has 1 variables");
    world.submit(Command::DeleteVariable { key, only_at: None, lock: None }).unwrap();
    world.submit(delete()).unwrap();
    world.check_replay();
}

#[test]
fn a_full_rotation_ends_when_no_version_is_sealed_with_a_former_key() {
    let mut world = world();
    set(&mut world, "a", items(1, 1), None, None).unwrap();
    set(&mut world, "a", items(2, 1), None, None).unwrap();
    let before = row(&world, "a").clone();
    activate(&mut world, 2, true);
    assert_eq!(world.state.keyring.rekeying().iter().collect::<Vec<_>>(), [&id(1)]);
    assert!(world.submit(Command::FinishRekey).unwrap().events.is_empty(), "there is something left");

    let reseal = |number: u8, version: u64| ResealVersion {
        key: key("a"),
        version,
        before: [number; 32],
        from: id(1),
        items: sealed_with(2, number + 100, 7),
    };
    let other = world.submit(Command::ResealVariables { versions: vec![reseal(7, 0)] }).unwrap();
    assert!(other.events.is_empty(), "the version has other items");
    world.submit(Command::ResealVariables { versions: vec![reseal(1, 0), reseal(1, 0)] }).unwrap();
    world.submit(Command::ResealVariables { versions: vec![reseal(2, 1)] }).unwrap();
    let after = row(&world, "a");
    assert_eq!((after.modified, after.current().number), (before.modified, 1), "nobody sees a difference");
    assert!(after.versions.iter().all(|version| version.items.sealed.key == id(2)));
    world.submit(Command::FinishRekey).unwrap();
    assert!(world.state.keyring.rekeying().is_empty());
    world.check_replay();
}
