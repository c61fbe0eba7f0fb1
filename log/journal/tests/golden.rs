//! Logged bytes are a promise: each kind and version has samples whose bytes never change.
//!
//! `UPDATE_GOLDEN=1` writes files that are missing; it never touches one that is there. A failing test after a
//! change of a payload means: make a new version (see `upcasts.rs`).

use std::fs;
use std::path::PathBuf;

use base::{Index, Time, Uuid};
use model::event::*;
use model::*;

use crate::samples::{id, node, samples};

#[test]
fn every_kind_reads_and_writes_its_golden_bytes() {
    for (kind, version, name, layout) in KINDS {
        let samples = samples(name);
        assert!(samples.len() >= 2, "{name} needs its smallest and a usual sample");
        assert!(samples.iter().all(|event| event.kind() == *kind), "{name} has samples of its own");
        let batch = batch_of(samples);
        let bytes = journal::encode(&batch).into_bytes();
        let text = format!("archived as {layout:?} (size, alignment)\n{:#?}\n", batch.events);
        check(&format!("{name}.v{version}.bin"), &bytes);
        check(&format!("{name}.v{version}.txt"), text.as_bytes());
        assert_eq!(journal::decode(bytes).unwrap(), batch, "{name}");
    }
}

/// What a version that is no longer written becomes stands in a `.read.txt` beside its text.
#[test]
fn every_golden_file_still_reads() {
    let files = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|ext| ext == "bin")).collect();
    assert!(files.len() >= KINDS.len());
    for file in files {
        let name = file.file_stem().unwrap().to_str().unwrap();
        let batch = journal::decode(fs::read(&file).unwrap().into()).unwrap();
        let events = format!("{:#?}\n", batch.events);
        if KINDS.iter().any(|(_, version, kind, _)| name == format!("{kind}.v{version}")) {
            let text = fs::read_to_string(file.with_extension("txt")).unwrap();
            assert_eq!(events, text.split_once('\n').unwrap().1, "{name}");
        } else {
            check(&format!("{name}.read.txt"), events.as_bytes());
        }
    }
}

fn check(name: &str, bytes: &[u8]) {
    let path = folder().join(name);
    if !path.exists() && std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(folder()).unwrap();
        fs::write(&path, bytes).unwrap();
    }
    let golden = fs::read(&path).unwrap_or_else(|_| panic!("{name} is missing: run with UPDATE_GOLDEN=1"));
    assert!(golden == bytes, "{name} changed: a logged type is frozen");
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden")
}

/// Kind, version, name, size and alignment of the archived form.
macro_rules! kinds {
    ($(($kind:literal, $version:literal) $name:ident)+) => {
        const KINDS: &[(u16, u16, &str, (usize, usize))] = &[$((
            $kind,
            $version,
            stringify!($name),
            (size_of::<rkyv::Archived<$name>>(), align_of::<rkyv::Archived<$name>>()),
        )),+];
    };
}
model::for_each_event!(kinds);

fn batch_of(events: Vec<Event>) -> Batch {
    Batch {
        // The payloads have not changed since the first.
        epoch: 1,
        index: Index(42),
        previous: Index(41),
        digest: Digest {
            nodes: 1,
            jobs: 2,
            evals: 3,
            allocs: 4,
            deployments: 6,
            requests: 5,
            cluster: u64::MAX,
        },
        time: Time(1_700_000_000_000_000_001),
        proposer: Uuid::from(7),
        commands: vec![
            CommandRecord { request: RequestId(Uuid::NIL), kind: 0, actor: Actor::ANONYMOUS },
            CommandRecord { request: RequestId(id(1)), kind: 3, actor: Actor::Node(node()) },
            CommandRecord { request: RequestId(id(2)), kind: 4, actor: Actor::Server("worker".into()) },
            CommandRecord {
                request: RequestId(id(3)),
                kind: 5,
                actor: Actor::Caller(Caller { accessor: "zażółć".into(), ..Caller::default() }),
            },
        ],
        events: events
            .into_iter()
            .zip([0, 1, 2, 3])
            .map(|(event, command)| LoggedEvent { command, event })
            .collect(),
    }
}
