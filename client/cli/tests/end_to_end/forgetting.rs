//! What was forgotten is gone: from every byte on the disk, and for whoever has all of the disk.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{Index, Uuid};
use journal::EncodedBatch;
use journal::store::{Directory, Driving, KeepSettings, RETENTION, Store};
use keyring::{KeyTree, ServerSecret, Signer};
use model::event::{ObjectKind, ObjectKinds};
use model::{Event, SealedItems, SealedKey, VariableKey};
use serde_json::Value;
use state::keyring::Keyring;

use super::cluster::Host;
use super::support::short_history::ShortHistory;
use super::support::{Agent, AgentConfig, eventually, files_with, text, until};

/// Recognized wherever it stands.
const SECRETS: [&str; 3] = ["correct-horse-battery-0", "correct-horse-battery-1", "correct-horse-battery-2"];

fn lines(agent: &Agent) -> Vec<Value> {
    serde_json::from_str(&agent.run(&["log", "-json"]).expect_success()).unwrap()
}

/// Whether so many servers have the key tree.
fn has_trees(agent: &Agent, servers: usize) -> bool {
    let all = lines(agent);
    let have = all.iter().filter(|line| line["Event"] == "ForgottenErased");
    let mut have: Vec<String> = have.map(|line| text(&line["Object"])).collect();
    have.sort();
    have.dedup();
    have.len() == servers
}

fn put(agent: &Agent, path: &str, value: &str) -> u64 {
    agent.run(&["var", "put", "-force", path, &format!("password={value}")]).expect_success();
    agent.get(&format!("/v1/var/{path}"))["ModifyIndex"].as_u64().unwrap()
}

fn value(agent: &Agent, path: &str, as_of: u64) -> String {
    let as_of = format!("-as-of={as_of}");
    agent.run(&["var", "get", &as_of, "-item=password", path]).expect_success().trim_end().to_string()
}

/// The newest erasure of this name.
fn status(agent: &Agent, path: &str) -> Value {
    agent.get(&format!("/v1/var/{path}?forgotten"))[0].clone()
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(files_below(&path)),
            false => files.push(path),
        }
    }
    files
}

/// Everything that a server which is not running has on its disk.
struct Disk {
    home: PathBuf,
    files: Vec<Vec<u8>>,
    log: Vec<EncodedBatch>,
    server: Uuid,
}

impl Disk {
    fn of(config: &AgentConfig) -> Disk {
        let files = files_below(&config.home).into_iter();
        let files = files.map(|path| std::fs::read(path).unwrap()).collect();
        // Opening a log may repair its end: that of a copy.
        let copy = tempfile::tempdir().unwrap();
        let log = server::log_dir(&config.home.join("data"));
        for file in std::fs::read_dir(&log).unwrap() {
            let path = file.unwrap().path();
            if path.is_file() {
                std::fs::copy(&path, copy.path().join(path.file_name().unwrap())).unwrap();
            }
        }
        // What is kept of facts that the log no longer has.
        let kept = tempfile::tempdir().unwrap();
        for file in std::fs::read_dir(config.home.join("data/server/kept")).into_iter().flatten() {
            let path = file.unwrap().path();
            std::fs::copy(&path, kept.path().join(path.file_name().unwrap())).unwrap();
        }
        let keep = KeepSettings {
            files: Arc::new(Directory::open(kept.path()).unwrap()),
            kinds: ObjectKinds::NONE,
            max_bytes: u64::MAX,
        };
        let settings = journal::store::Settings {
            segment_bytes: 64 << 20,
            retention: RETENTION,
            archive: None,
            keep: Some(keep),
            driving: Driving::Threads,
        };
        let directory = Arc::new(Directory::open(copy.path()).unwrap());
        let store = Store::open(directory, settings, Arc::new(|why| panic!("{why}"))).unwrap();
        let mut log = store.kept(Index(1), Index(u64::MAX), usize::MAX).unwrap();
        log.extend(store.batches(store.horizon(), Index(u64::MAX), usize::MAX).unwrap());
        let id = std::fs::read_to_string(config.home.join("data/server/server-id")).unwrap();
        Disk { home: config.home.clone(), files, log, server: id.trim().parse().unwrap() }
    }

    fn events(&self) -> Vec<Event> {
        let there = |batch: &EncodedBatch| -> Vec<Event> {
            let rows = batch.rows().filter(|row| !row.left_out);
            rows.map(|row| batch.event(&row).unwrap()).collect()
        };
        self.log.iter().flat_map(there).collect()
    }

    /// What was ever written under this name.
    fn written(&self, key: &VariableKey) -> Vec<SealedItems> {
        let of = |event| match event {
            Event::VariableSet(set) if set.key == *key => Some(set.items),
            _ => None,
        };
        self.events().into_iter().filter_map(of).collect()
    }

    /// Key trees in files, and those that were sealed in the log for any key which is in a file.
    fn trees(&self) -> Vec<KeyTree> {
        let given: Vec<(Uuid, SealedKey)> = self.events().into_iter().flat_map(shared).collect();
        let mut trees = Vec::new();
        for bytes in &self.files {
            for (tree, _) in &given {
                let without_checksum = bytes.len().checked_sub(32).map(|len| &bytes[..len]);
                let contents = [Some(&bytes[..]), without_checksum].into_iter().flatten();
                trees.extend(contents.filter_map(|bytes| KeyTree::from_bytes(*tree, bytes)));
            }
            let Some(secret) = private_key(bytes) else { continue };
            let secret = ServerSecret::new(self.server, &secret).unwrap();
            let own = given.iter().filter(|(_, sealed)| sealed.server == self.server);
            trees.extend(own.filter_map(|(tree, sealed)| secret.open_tree(*tree, &sealed.bytes).ok()));
        }
        trees
    }

    /// How many of these can be opened with anything that is there.
    fn opened(&self, key: &VariableKey, items: &[SealedItems]) -> usize {
        let signers: Vec<Signer> = self
            .trees()
            .into_iter()
            .map(|tree| {
                let signer = Signer::new(ServerSecret::new(self.server, &[1; 32]).unwrap());
                signer.trees().put(tree);
                signer
            })
            .collect();
        let opens = |items: &&SealedItems| {
            signers.iter().any(|signer| signer.open_items(&Keyring::default(), key, items).is_ok())
        };
        items.iter().filter(opens).count()
    }

    /// Files and batches in which a text stands.
    fn places_of(&self, words: &str) -> Vec<String> {
        let has = |bytes: &[u8]| bytes.windows(words.len()).any(|part| part == words.as_bytes());
        let batches = self.log.iter().filter(|batch| has(batch.bytes())).map(|_| "a batch".to_string());
        files_with(&self.home, words).into_iter().chain(batches).collect()
    }
}

fn shared(event: Event) -> Vec<(Uuid, SealedKey)> {
    match event {
        Event::KeyTreeFounded(e) => e.sealed.into_iter().map(|sealed| (e.tree, sealed)).collect(),
        Event::KeyTreeShared(e) => vec![(e.tree, e.sealed)],
        _ => Vec::new(),
    }
}

/// 32 bytes, or as many in hexadecimal.
fn private_key(bytes: &[u8]) -> Option<[u8; 32]> {
    if let Ok(bytes) = bytes.try_into() {
        return Some(bytes);
    }
    let text = std::str::from_utf8(bytes).ok()?.trim();
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    let digits = (0..64).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok());
    digits.collect::<Option<Vec<u8>>>()?.try_into().ok()
}

#[test]
fn what_a_forgotten_variable_held_cannot_be_read_with_all_of_the_disk() {
    let directory = tempfile::tempdir().unwrap();
    let config = AgentConfig::server(directory.path(), "server");
    let mut agent = config.start();
    until("the server has a key tree", || has_trees(&agent, 1));
    let (doomed, kept) = (VariableKey::new("default", "app/doomed"), VariableKey::new("default", "app/kept"));
    let written: Vec<u64> = SECRETS.iter().map(|secret| put(&agent, "app/doomed", secret)).collect();
    let first = put(&agent, "app/kept", "old");
    let last = put(&agent, "app/kept", "new");
    assert_eq!(value(&agent, "app/doomed", written[0]), SECRETS[0]);

    // Whoever has the disk can open them as long as they are not forgotten.
    agent.terminate();
    drop(agent);
    let disk = Disk::of(&config);
    let (items, others) = (disk.written(&doomed), disk.written(&kept));
    assert_eq!((items.len(), others.len()), (3, 2));
    assert_eq!((disk.opened(&doomed, &items), disk.opened(&kept, &others)), (3, 2));
    let agent = config.start();

    let said = agent.run(&["var", "forget", "app/doomed"]).expect_failure();
    assert!(said.contains("no var forget. -yes asks no questions"), "{said}");
    assert_eq!(value(&agent, "app/doomed", last), SECRETS[2], "nobody said yes");
    let said = agent.run(&["var", "forget", "-yes", "app/doomed"]).expect_success();
    let at = status(&agent, "app/doomed")["ForgottenAt"].as_u64().unwrap();
    let done = format!(
        "Variable \"app/doomed\" was forgotten at index {at}: no server can open any more what it held\n"
    );
    assert!(said.ends_with(&done), "{said}");
    assert_eq!(agent.run(&["var", "forget", "-status", "app/doomed"]).expect_success(), done);

    the_past_says_so(&agent, at, &written, last);
    assert_eq!(
        (value(&agent, "app/kept", first), value(&agent, "app/kept", last)),
        ("old".into(), "new".into())
    );

    // The name is free again.
    let anew = put(&agent, "app/doomed", "another");
    assert_eq!(value(&agent, "app/doomed", anew), "another");

    // Neither with the disk as it is now, nor with what a kill leaves of it.
    let disk = Disk::of(&agent.kill());
    for secret in SECRETS {
        assert_eq!(disk.places_of(secret), Vec::<String>::new());
    }
    assert!(!disk.places_of("app/doomed").is_empty(), "what is there is found");
    assert_eq!((disk.opened(&doomed, &items), disk.opened(&kept, &others)), (0, 2));
    assert_eq!(disk.opened(&doomed, &disk.written(&doomed)), 1, "what was written since");
    let agent = config.start();
    assert_eq!(status(&agent, "app/doomed")["Complete"], true);
    assert_eq!(
        (value(&agent, "app/kept", first), value(&agent, "app/doomed", anew)),
        ("old".into(), "another".into())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_kept_of_a_forgotten_variable_cannot_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let keep = [ObjectKind::Variable];
    let server = ShortHistory::start(&data, &keep).await;
    while !server.run(&["log", "-json"]).await.stdout.contains("ForgottenErased") {
        tokio::task::yield_now().await;
    }
    let (doomed, other) =
        (VariableKey::new("default", "app/doomed"), VariableKey::new("default", "app/kept"));
    for (path, value) in [("app/doomed", SECRETS[0]), ("app/kept", "other")] {
        let value = format!("password={value}");
        server.run(&["var", "put", path, &value]).await.expect_success();
    }
    server.let_all_go().await;
    server.stop().await;
    let config = AgentConfig::elsewhere(directory.path(), 0);
    let disk = Disk::of(&config);
    let (items, others) = (disk.written(&doomed), disk.written(&other));
    assert_eq!((items.len(), others.len()), (1, 1));
    assert_eq!((disk.opened(&doomed, &items), disk.opened(&other, &others)), (1, 1));

    let server = ShortHistory::start(&data, &keep).await;
    let said = server.run(&["var", "forget", "-yes", "app/doomed"]).await.expect_success();
    assert!(said.contains("no server can open any more what it held"), "{said}");
    server.let_all_go().await;
    let log = server.run(&["log", "-since", "0"]).await.expect_success();
    assert!(log.contains("VariableSet") && log.contains("VariableForgotten"), "{log}");
    server.stop().await;
    let disk = Disk::of(&config);
    assert_eq!(disk.written(&doomed), items, "the fact is still there");
    assert_eq!((disk.opened(&doomed, &items), disk.opened(&other, &others)), (0, 1));
    assert_eq!(disk.places_of(SECRETS[0]), Vec::<String>::new());
}

/// And it still knows who wrote when.
fn the_past_says_so(agent: &Agent, at: u64, written: &[u64], last: u64) {
    let gone = agent.run(&["var", "get", "app/doomed"]).expect_failure();
    assert!(gone.contains(&format!("variable not found: it was forgotten at index {at}")), "{gone}");
    for index in written {
        let past = agent.run(&["var", "get", &format!("-as-of={index}"), "app/doomed"]).expect_failure();
        let why = format!(
            "variable app/doomed in namespace default was forgotten at index {at}: what it held is erased"
        );
        assert!(past.contains(&why), "{past}");
    }
    let as_of = format!("-as-of={last}");
    let versions = agent.run(&["var", "history", "-json", &as_of, "app/doomed"]).expect_success();
    let versions: Vec<Value> = serde_json::from_str(&versions).unwrap();
    let indexes: Vec<u64> = versions.iter().rev().map(|one| one["ModifyIndex"].as_u64().unwrap()).collect();
    assert_eq!(indexes, written);
    assert!(agent.run(&["var", "list", "-out=terse", &as_of]).expect_success().contains("app/doomed"));
    assert!(lines(agent).iter().any(|line| {
        line["Event"] == "VariableForgotten"
            && line["Object"] == "var/default/app/doomed"
            && line["Index"] == at
    }));
}

#[test]
fn a_server_that_is_killed_while_it_erases_goes_on_when_it_is_back() {
    let directory = tempfile::tempdir().unwrap();
    let config = AgentConfig::server(directory.path(), "server");
    let mut agent = config.start();
    until("the server has a key tree", || has_trees(&agent, 1));
    let kept = put(&agent, "app/kept", "safe");
    for round in 0..6 {
        let path = format!("app/doomed-{round}");
        put(&agent, &path, SECRETS[0]);
        agent.run(&["var", "forget", "-yes", "-detach", &path]).expect_success();
        agent = agent.kill().start();
        until("it is erased", || status(&agent, &path)["Complete"] == true);
        assert_eq!(value(&agent, "app/kept", kept), "safe");
    }
    let disk = Disk::of(&agent.kill());
    for round in 0..6 {
        let key = VariableKey::new("default", &format!("app/doomed-{round}"));
        let items = disk.written(&key);
        assert_eq!((items.len(), disk.opened(&key, &items)), (1, 0), "{round}");
    }
    let key = VariableKey::new("default", "app/kept");
    assert_eq!(disk.opened(&key, &disk.written(&key)), 1);
    let left = files_below(&config.home.join("data/server/key-trees"));
    assert_eq!(left.len(), 1, "the tree alone: {left:?}");
}

#[test]
fn an_erasure_waits_for_a_server_that_is_down() {
    let directory = tempfile::tempdir().unwrap();
    let all: Vec<Host> = (0..3).map(|_| Host::local()).collect();
    let member =
        |nth: usize| AgentConfig::member(directory.path(), &format!("server-{nth}"), &all[nth], &all);
    let configs: Vec<AgentConfig> = (0..3).map(member).collect();
    let mut agents: Vec<Option<Agent>> = configs.iter().map(|config| Some(config.launch())).collect();
    let one = agents[0].take().unwrap();
    until("every server has the key tree", || {
        let listed = one.run(&["log", "-json"]);
        listed.code == 0 && has_trees(&one, 3)
    });
    let doomed = VariableKey::new("default", "app/doomed");
    put(&one, "app/doomed", SECRETS[0]);
    let kept = put(&one, "app/kept", "safe");
    let down = agents[2].take().unwrap().kill();
    let disk = Disk::of(&down);
    let items = disk.written(&doomed);
    eventually("the others go on", || {
        let forgotten = one.run(&["var", "forget", "-yes", "-detach", "app/doomed"]);
        (forgotten.code == 0).then_some(())
    });
    let pending = || {
        let pending = status(&one, "app/doomed")["Pending"].as_array().cloned().unwrap_or_default();
        pending.iter().map(|server| text(&server["Name"])).collect::<Vec<_>>()
    };
    until("the two that run have erased it", || pending().len() == 1);
    assert_eq!(pending(), ["server-2.global"]);
    let said = one.run(&["var", "forget", "-status", "app/doomed"]).expect_success();
    assert!(said.contains("its key is still to be erased by server-2.global\n"), "{said}");
    assert_eq!(disk.opened(&doomed, &items), items.len(), "that is why");

    agents[2] = Some(down.launch());
    until("all have", || status(&one, "app/doomed")["Complete"] == true);
    let third = agents[2].as_ref().unwrap();
    until("the third server knows all of it", || status(third, "app/doomed")["Complete"] == true);
    assert_eq!(value(third, "app/kept", kept), "safe");
    let others = agents.into_iter().flatten().map(Agent::kill).collect::<Vec<_>>();
    for config in others.into_iter().chain([one.kill()]) {
        let disk = Disk::of(&config);
        assert_eq!(disk.opened(&doomed, &disk.written(&doomed)), 0, "{}", config.home.display());
        assert_eq!(disk.places_of(SECRETS[0]), Vec::<String>::new());
    }
}
