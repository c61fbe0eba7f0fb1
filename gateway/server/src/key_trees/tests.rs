//! Servers that follow one log, without a cluster around them: each step may be the last one before a kill.

use std::path::PathBuf;
use std::time::Duration;

use base::Uuid;
use keyring::{Items, KeyError, KeyTree, STUCK_AFTER, ServerSecret, Signer};
use model::{Command, SealedItems, VariableKey};
use state::keyring::Keyring;
use test_world::World;

use super::KeyTreeFiles;
use super::keeper::{Viewpoint, next};

struct TestServer {
    server: Uuid,
    dir: PathBuf,
    signer: Signer,
    files: KeyTreeFiles,
}

impl TestServer {
    fn start(home: &std::path::Path, number: u128) -> TestServer {
        let (server, dir) = (Uuid::from(number), home.join(number.to_string()));
        std::fs::create_dir_all(&dir).unwrap();
        let signer = Signer::new(ServerSecret::new(server, &[number as u8; 32]).unwrap());
        let (files, trees) = KeyTreeFiles::open(&dir).unwrap();
        trees.into_iter().for_each(|tree| signer.trees().put(tree));
        TestServer { server, dir, signer, files }
    }

    fn restart(&mut self) {
        *self = TestServer::start(self.dir.parent().unwrap(), u128::from_be_bytes(self.server.0));
    }

    fn view(&self, leading_for: Option<Duration>, members: &[u128]) -> Viewpoint {
        let members = Some(members.iter().copied().map(Uuid::from).collect());
        Viewpoint { server: self.server, leading_for, members }
    }

    /// Takes a step, killed once before it is said and once after. Whether there was one.
    fn step(&mut self, world: &mut World, view: &Viewpoint) -> bool {
        let lost = next(&self.signer, &self.files, &world.state, view).unwrap();
        self.restart();
        let Some(command) = next(&self.signer, &self.files, &world.state, view).unwrap() else {
            assert!(lost.is_none(), "what was not said is said again");
            return false;
        };
        let decided = world.submit(Command::KeyTree(Box::new(command))).unwrap();
        self.restart();
        !decided.events.is_empty()
    }

    fn seal(&self, world: &World, key: &VariableKey) -> SealedItems {
        self.signer.seal_items(&world.state, key, &items()).unwrap()
    }

    fn open(&self, key: &VariableKey, sealed: &SealedItems) -> Result<Items, KeyError> {
        self.signer.open_items(&Keyring::default(), key, sealed)
    }

    fn left(&self) -> Vec<String> {
        let dir = std::fs::read_dir(self.dir.join("key-trees")).unwrap();
        dir.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

fn items() -> Items {
    Items::from([("password".to_string(), "hunter2".to_string())])
}

/// Until nobody has anything to do. The first one leads a cluster of these members.
fn settle(world: &mut World, servers: &mut [TestServer], leading_for: Duration, members: &[u128]) {
    for _ in 0..100 {
        let steps = servers.iter_mut().enumerate().map(|(nth, server)| {
            let view = server.view((nth == 0).then_some(leading_for), members);
            server.step(world, &view)
        });
        if !steps.collect::<Vec<_>>().contains(&true) {
            return;
        }
    }
    panic!("they find no end");
}

fn forget(world: &mut World, key: &VariableKey) -> base::Index {
    world.submit(Command::ForgetVariable { key: key.clone(), lock: None }).unwrap();
    world.state.index
}

/// All servers know what key trees are.
fn upgraded() -> World {
    let mut world = World::new();
    world.submit(Command::RaiseEpoch { epoch: model::KEY_TREE_EPOCH }).unwrap();
    world
}

#[test]
fn servers_get_the_tree_and_erase_what_is_forgotten_whenever_they_are_killed() {
    let home = tempfile::tempdir().unwrap();
    let mut world = upgraded();
    let mut servers = [1, 2].map(|number| TestServer::start(home.path(), number));
    settle(&mut world, &mut servers, Duration::ZERO, &[1, 2]);
    let tree = world.state.erasure.tree().expect("the leader founded it");
    for server in &servers {
        assert_eq!(server.left(), [tree.to_string()], "the key that it came with is gone");
    }
    let (doomed, kept) = (VariableKey::new("default", "a"), VariableKey::new("default", "b"));
    let (lost, stays) = (servers[0].seal(&world, &doomed), servers[1].seal(&world, &kept));
    assert_eq!(servers[1].open(&doomed, &lost), Ok(items()), "all have the same tree");

    let at = forget(&mut world, &doomed);
    settle(&mut world, &mut servers[..1], Duration::ZERO, &[1, 2]);
    assert_eq!(world.state.erasure.pending(at).collect::<Vec<_>>(), [Uuid::from(2)]);
    settle(&mut world, &mut servers, Duration::ZERO, &[1, 2]);
    assert_eq!(world.state.erasure.pending(at).count(), 0);
    for server in &servers {
        assert_eq!(server.open(&doomed, &lost), Err(KeyError::Erased));
        assert_eq!(server.open(&kept, &stays), Ok(items()));
    }

    // One that comes later, and one that lost its file, get it from the others: without what was forgotten.
    std::fs::remove_dir_all(servers[1].dir.join("key-trees")).unwrap();
    servers[1].restart();
    let again = forget(&mut world, &VariableKey::new("default", "c"));
    settle(&mut world, &mut servers, Duration::ZERO, &[1, 2]);
    assert_eq!(world.state.erasure.pending(again).count(), 0);
    assert_eq!(servers[1].open(&doomed, &lost), Err(KeyError::Erased));
    assert_eq!(servers[1].open(&kept, &stays), Ok(items()));
    world.check_replay();
}

#[test]
fn a_tree_that_all_servers_lost_is_replaced_after_a_while() {
    let home = tempfile::tempdir().unwrap();
    let mut world = upgraded();
    let mut servers = [TestServer::start(home.path(), 1)];
    settle(&mut world, &mut servers, Duration::ZERO, &[1]);
    let (first, key) = (world.state.erasure.tree(), VariableKey::new("default", "a"));
    let lost = servers[0].seal(&world, &key);
    std::fs::remove_dir_all(servers[0].dir.join("key-trees")).unwrap();
    servers[0].restart();
    settle(&mut world, &mut servers, STUCK_AFTER - Duration::from_secs(1), &[1]);
    assert_eq!(world.state.erasure.tree(), first, "another one may have it");
    settle(&mut world, &mut servers, STUCK_AFTER, &[1]);
    assert_ne!(world.state.erasure.tree(), first);
    assert_eq!(servers[0].open(&key, &lost), Err(KeyError::Tree(first.unwrap())));
    let next = servers[0].seal(&world, &key);
    assert_eq!(servers[0].open(&key, &next), Ok(items()));
    world.check_replay();
}

/// What only one server could open would be lost with it.
#[test]
fn a_tree_is_founded_when_every_server_can_get_it_and_not_replaced_while_one_may_have_it() {
    let home = tempfile::tempdir().unwrap();
    let mut world = upgraded();
    let mut servers = [1, 2].map(|number| TestServer::start(home.path(), number));
    settle(&mut world, &mut servers[..1], STUCK_AFTER, &[1, 2]);
    assert_eq!(world.state.erasure.tree(), None, "the second one has not requested it");
    let unknown = Viewpoint { members: None, ..servers[0].view(Some(STUCK_AFTER), &[]) };
    assert!(!servers[0].step(&mut world, &unknown), "there may be another one");
    settle(&mut world, &mut servers, Duration::ZERO, &[1, 2]);
    let (tree, key) = (world.state.erasure.tree().unwrap(), VariableKey::new("default", "a"));
    let sealed = servers[0].seal(&world, &key);

    std::fs::remove_dir_all(servers[0].dir.join("key-trees")).unwrap();
    servers[0].restart();
    settle(&mut world, &mut servers[..1], STUCK_AFTER, &[1, 2]);
    assert_eq!(world.state.erasure.tree(), Some(tree), "the second one may be back");
    assert_eq!(servers[0].open(&key, &sealed), Err(KeyError::Tree(tree)));
    settle(&mut world, &mut servers, STUCK_AFTER, &[1, 2]);
    assert_eq!(servers[0].open(&key, &sealed), Ok(items()));

    // Unless it left the cluster.
    std::fs::remove_dir_all(servers[0].dir.join("key-trees")).unwrap();
    servers[0].restart();
    settle(&mut world, &mut servers[..1], STUCK_AFTER, &[1]);
    assert_ne!(world.state.erasure.tree(), Some(tree));
    world.check_replay();
}

#[test]
fn nobody_waits_for_a_server_that_left_and_it_is_waited_for_again_when_it_is_back() {
    let home = tempfile::tempdir().unwrap();
    let mut world = upgraded();
    let mut servers = [1, 3].map(|number| TestServer::start(home.path(), number));
    settle(&mut world, &mut servers, Duration::ZERO, &[1, 3]);
    let key = VariableKey::new("default", "a");
    let lost = servers[1].seal(&world, &key);
    let at = forget(&mut world, &key);
    settle(&mut world, &mut servers[..1], STUCK_AFTER - Duration::from_secs(1), &[1, 2]);
    assert_eq!(world.state.erasure.pending(at).collect::<Vec<_>>(), [Uuid::from(3)]);
    // Whether it is a member is not known.
    let unknown = Viewpoint { members: None, ..servers[0].view(Some(STUCK_AFTER), &[]) };
    assert!(!servers[0].step(&mut world, &unknown));
    settle(&mut world, &mut servers[..1], STUCK_AFTER, &[1, 2]);
    assert_eq!(world.state.erasure.pending(at).count(), 0);
    assert_eq!(servers[1].open(&key, &lost), Ok(items()), "it has not followed");

    let view = servers[1].view(None, &[1, 2]);
    while servers[1].step(&mut world, &view) {}
    assert_eq!(world.state.erasure.pending(at).count(), 0);
    assert!(world.state.erasure.holders().contains_key(&Uuid::from(3)));
    assert_eq!(servers[1].open(&key, &lost), Err(KeyError::Erased));
    world.check_replay();
}

#[test]
fn nothing_is_written_that_an_earlier_release_does_not_know() {
    let home = tempfile::tempdir().unwrap();
    let mut world = World::new();
    let mut server = TestServer::start(home.path(), 1);
    let view = server.view(Some(STUCK_AFTER), &[1]);
    assert!(!server.step(&mut world, &view), "a server of an earlier release may be there");
    assert_eq!(server.left(), Vec::<String>::new());
    world.submit(Command::RaiseEpoch { epoch: model::KEY_TREE_EPOCH }).unwrap();
    settle(&mut world, std::slice::from_mut(&mut server), Duration::ZERO, &[1]);
    assert!(world.state.erasure.tree().is_some());
    world.check_replay();
}

#[test]
fn a_tree_that_was_sealed_for_another_key_is_requested_anew() {
    let home = tempfile::tempdir().unwrap();
    let mut world = upgraded();
    let mut server = TestServer::start(home.path(), 1);
    let view = server.view(Some(Duration::ZERO), &[1]);
    assert!(server.step(&mut world, &view), "it requests a tree");
    let tree = KeyTree::generate().unwrap();
    let other = ServerSecret::new(Uuid::from(1), &[9; 32]).unwrap();
    let sealed = vec![tree.seal_for(other.server(), &other.public()).unwrap()];
    let found = model::KeyTreeCommand::Found { tree: tree.id(), sealed, after: None };
    world.submit(Command::KeyTree(Box::new(found))).unwrap();
    let before = world.state.erasure.holders()[&Uuid::from(1)].public;
    assert!(server.step(&mut world, &view));
    let holder = &world.state.erasure.holders()[&Uuid::from(1)];
    assert!(holder.public != before && holder.sealed.is_none());
}
