//! `operator log repair` on a damaged log.
//!
//! A test binary of its own: a process that another test starts would hold the lock of the log for a moment.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use base::{Index, Term, Time, Uuid};
use history::{History, States};
use journal::store::{Directory, Driving, Entry, Payload, RETENTION, Settings, Store, StoreError};
use journal::{EncodedBatch, MemoryJournal, Sink};
use model::event::NodeAllocsReported;
use model::{Actor, Batch, CommandRecord, Digest, Image, LoggedEvent, NodeId, RequestId};
use serde_json::Value;
use state::State;

const BATCHES: u64 = 30;
const DAMAGED: &str = "00000000000000000003.seg";

#[test]
fn the_loss_is_reported_and_nothing_changes_before_it_is_accepted() {
    let log = DamagedLog::create();
    let before = log.files();
    let reported = log.repair(&[]);
    assert_eq!(reported.code, 1, "{}", reported.stdout);
    assert!(reported.stdout.contains(&format!("\n{DAMAGED}  ")), "{}", reported.stdout);
    let json = log.repair(&["-json"]);
    assert_eq!((json.code, json.stderr.as_str()), (1, ""));
    let found: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&found["Damage"][0]["File"], &found["Repaired"]), (&DAMAGED.into(), &false.into()));
    let kept = found["LastKept"].as_u64().unwrap();
    assert!((1..BATCHES).contains(&kept), "{kept}");
    assert_eq!(found["Lost"], serde_json::json!({"First": kept + 1, "Last": BATCHES}));
    let price = format!(
        "Kept:    the state after batch {kept}\nHistory: from batch 1\nLost:    batches {} to {BATCHES} ({} in all)\n",
        kept + 1,
        BATCHES - kept
    );
    assert!(reported.stdout.ends_with(&price), "{}", reported.stdout);
    let again = format!(
        "Nothing was changed. To repair the log and accept the loss: sojourn operator log repair -accept-loss {}\n",
        log.data_dir()
    );
    assert_eq!(reported.stderr, again);
    assert_eq!(log.files(), before);
    assert!(!log.dir.path().join("server/first-index").exists());
}

#[test]
fn an_accepted_loss_is_all_that_is_lost() {
    let log = DamagedLog::create();
    let segment = log.files()[DAMAGED].clone();
    let found: Value = serde_json::from_str(&log.repair(&["-json"]).stdout).unwrap();
    let done = log.repair(&["-accept-loss"]);
    assert_eq!((done.code, done.stderr.as_str()), (0, ""));
    let aside = format!("\nThe log is repaired. Put aside in its directory:\n    {DAMAGED}.damaged-1\n");
    assert!(done.stdout.contains(&aside), "{}", done.stdout);
    assert_eq!(log.files()[&format!("{DAMAGED}.damaged-1")], segment);
    let first = fs::read_to_string(log.dir.path().join("server/first-index")).unwrap();
    assert_eq!(first.trim(), (BATCHES + 1_000).to_string(), "what was lost is never given again");
    let store = open(&log.path).unwrap();
    assert_eq!(store.batch_at(u64::MAX - 1).0, found["LastKept"]);
    drop(store);
    let healthy = log.repair(&[]);
    let nothing = format!("Nothing in the log in {} is damaged.\n", log.path.display());
    assert_eq!((healthy.code, healthy.stdout), (0, nothing));
}

#[test]
fn an_open_or_missing_log_is_not_changed() {
    let log = DamagedLog::create();
    let before = log.files();
    let held = Directory::open(&log.path).unwrap();
    let refused = log.repair(&["-accept-loss"]);
    let why = format!(
        "Error repairing log: the server has to be stopped first: the log in {} is in use by another process\n",
        log.path.display()
    );
    assert_eq!((refused.code, refused.stderr), (1, why));
    drop(held);
    assert_eq!(log.files(), before);
    let elsewhere = tempfile::tempdir().unwrap();
    let refused = run(&["operator", "log", "repair", elsewhere.path().to_str().unwrap()]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.ends_with("server/log: expected a server's data_dir\n"), "{}", refused.stderr);
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    let usage = run(&["operator", "log", "repair"]);
    assert!(usage.stderr.starts_with("This command takes one argument: <data_dir>\n"), "{}", usage.stderr);
}

struct NothingPublished;

impl States for NothingPublished {
    fn published(&self) -> Arc<State> {
        Arc::default()
    }

    fn origin(&self) -> Arc<State> {
        Arc::default()
    }
}

/// The log looks whole, and its history knows better.
#[test]
fn a_lost_end_is_reported_and_accepted() {
    let log = DamagedLog::create_whole();
    let seen = BATCHES + 5;
    let batches = (1..=seen).map(|index| journal::encode(&batch(index))).collect();
    let journal = Arc::new(MemoryJournal::with(batches, Nobody));
    let index = Some(log.dir.path().join("server/history"));
    let history = History::open(index, journal, NothingPublished, 0).unwrap();
    history.allocs_with_prefix("", 1, Index(seen), Duration::from_secs(20)).unwrap();
    history.shutdown();
    drop(history);
    let before = log.files();

    let reported = log.repair(&["-json"]);
    let found: Value = serde_json::from_str(&reported.stdout).unwrap();
    assert_eq!((reported.code, &found["Repaired"], &found["LastKept"]), (1, &false.into(), &BATCHES.into()));
    assert_eq!(found["Lost"], serde_json::json!({"First": BATCHES + 1, "Last": seen}));
    let reported = log.repair(&[]);
    let why = format!("has seen batch {seen}, and the log ends with batch {BATCHES}\n");
    assert!(reported.stdout.contains(&why), "{}", reported.stdout);
    let done = log.repair(&["-accept-loss"]);
    assert!(done.code == 0 && done.stdout.ends_with("\nThe log is repaired.\n"), "{}", done.stdout);
    assert_eq!(log.files(), before, "nothing in the log has to change");
    let first = fs::read_to_string(log.dir.path().join("server/first-index")).unwrap();
    assert_eq!(first.trim(), (seen + 1_000).to_string());
    assert_eq!(log.repair(&[]).code, 0);
}

/// Nobody follows the log.
struct Nobody;

impl Sink for Nobody {
    fn committed(&mut self, _: EncodedBatch) {}
    fn restored(&mut self, _: Image) {}
    fn leading(&mut self, _: Term) {}
    fn following(&mut self, _: Option<u64>) {}
    fn halted(&mut self, _: String) {}
}

/// A process that a test starts inherits the locks of the other tests until it executes its program.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A data directory with a log.
struct DamagedLog {
    dir: tempfile::TempDir,
    path: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

impl DamagedLog {
    fn create_whole() -> DamagedLog {
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("server").join("log");
        let store = open(&path).unwrap();
        for index in 0..=BATCHES {
            let (done, appended) = mpsc::channel();
            store.append(vec![entry(index)], Box::new(move || done.send(()).unwrap())).unwrap();
            appended.recv().unwrap();
        }
        drop(store);
        DamagedLog { dir, path, _turn }
    }

    /// One byte in the middle of a segment is not what was written.
    fn create() -> DamagedLog {
        let log = DamagedLog::create_whole();
        let mut bytes = log.files().remove(DAMAGED).expect("there are several segments");
        bytes[300] ^= 0x20;
        fs::write(log.path.join(DAMAGED), bytes).unwrap();
        match open(&log.path).map(|_| ()) {
            Err(StoreError::Damaged { file, .. }) => assert_eq!(file, DAMAGED),
            other => panic!("{other:?}"),
        }
        log
    }

    fn data_dir(&self) -> &str {
        self.dir.path().to_str().unwrap()
    }

    fn repair(&self, flags: &[&str]) -> CommandOutput {
        run(&[&["operator", "log", "repair"], flags, &[self.data_dir()]].concat())
    }

    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let read = |entry: std::io::Result<fs::DirEntry>| {
            let entry = entry.unwrap();
            (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())
        };
        fs::read_dir(&self.path).unwrap().map(read).collect()
    }
}

fn open(log: &Path) -> Result<Store, StoreError> {
    let settings = Settings {
        segment_bytes: 1024,
        retention: RETENTION,
        archive: None,
        keep: None,
        driving: Driving::Threads,
    };
    Store::open(Arc::new(Directory::open(log)?), settings, Arc::new(|why| panic!("{why}")))
}

fn entry(index: u64) -> Entry {
    let payload = match index {
        0 => Payload::Membership(b"members".as_slice().into()),
        _ => Payload::Batch(journal::encode(&batch(index))),
    };
    Entry { index, term: 1, payload }
}

fn batch(index: u64) -> Batch {
    let node = NodeId(Uuid::from(u128::from(index)));
    Batch {
        epoch: model::EPOCH,
        index: Index(index),
        previous: Index(index - 1),
        digest: Digest::default(),
        time: Time::from_secs(index as i64),
        proposer: Uuid::from(1),
        commands: vec![CommandRecord { request: RequestId::default(), kind: 1, actor: Actor::ANONYMOUS }],
        events: vec![LoggedEvent { command: 0, event: NodeAllocsReported { node }.into() }],
    }
}

struct CommandOutput {
    code: i32,
    stdout: String,
    stderr: String,
}

fn run(arguments: &[&str]) -> CommandOutput {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sojourn"));
    let output = command.env_clear().stdin(Stdio::null()).args(arguments).output().unwrap();
    CommandOutput {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}
